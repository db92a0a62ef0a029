"""`jit` and state: cells, modules and streams are read when a call begins and written back when it ends."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import numpy as np
import pytest

import wonderland as wl
from tests.agreement import same
from tests.transforms.running_mean import Mean
from wonderland import nn
from wonderland.core.cell import Cell


def test_cells_from_outside_are_read_and_written() -> None:
    count = Cell(wl.tensor(0))
    scale = Cell(wl.tensor(2.0))

    @wl.jit
    def f(x: Any) -> Any:
        count.assign(count + 1)
        return x * scale

    for i in range(3):
        assert f(wl.tensor(1.0)).item() == 2.0 + i
        scale.assign(scale + 1)
    assert count.item() == 3
    assert f.traces == 1
    assert type(count.value) is wl.Tensor


def test_modules_from_outside_that_change_are_traced_again() -> None:
    class Scale(nn.Module):
        def __init__(self) -> None:
            self.factor = 2.0

        def forward(self, x: Any) -> Any:
            return x * self.factor if self.training else x

    model = Scale()
    f = wl.jit(lambda x: model(x))
    assert f(1.0).item() == 2.0
    model.factor = 3.0
    assert f(1.0).item() == 3.0
    model.eval()
    assert f(1.0).item() == 1.0
    assert f.traces == 3
    model.train()
    assert f(1.0).item() == 3.0
    assert f.traces == 3  # the trace for this state of the model is remembered
    model = Scale()
    assert f(1.0).item() == 2.0
    layers = [nn.Linear(2, 2)]
    holder = Holder(layers)
    g = wl.jit(lambda x: holder(x))
    g(wl.ones(2))
    holder.layers.append(nn.Linear(2, 3))  # in place
    assert g(wl.ones(2)).shape == (3,)
    Scale()  # modules that have nothing to do with it
    before = g.traces
    g(wl.ones(2))
    assert g.traces == before


def test_a_layer_from_outside_that_is_replaced_by_one_of_the_same_kind() -> None:
    x = wl.ones(2)
    for reach in (
        lambda model: lambda x: model(x),
        lambda model: model,
        lambda model: model.forward,
        lambda model: functools.partial(lambda model, x: model(x), model),
        lambda model: functools.partial(lambda x, models: models[0](x), models=[model]),
        lambda model: wl.vmap(model.forward, in_axes=None, axis_size=1),
    ):
        model = Holder([nn.Linear(2, 2)])
        f = wl.jit(reach(model))
        f(x)
        model.layers[0] = nn.Linear(2, 2)
        same(f(x).reshape(2), model(x))
        model.layers[0].weight = nn.Parameter(wl.zeros((2, 2)))
        same(f(x).reshape(2), model(x))
        before = f.traces
        model.layers[0].weight.assign(wl.ones((2, 2)))  # another value in the same place
        same(f(x).reshape(2), model(x))
        assert f.traces == before


def test_modules_reached_through_plain_objects_are_traced_again() -> None:
    class Trainer:
        def __init__(self) -> None:
            self.model = Holder([nn.Linear(2, 2)])

        def predict(self, x: Any) -> Any:
            return self.model(x) if self.model.training else -self.model(x)

    trainer = Trainer()
    f = wl.jit(trainer.predict)
    first = f(wl.ones(2))
    trainer.model.eval()
    same(f(wl.ones(2)), -first)


class Holder(nn.Module):
    def __init__(self, layers: list[Any]) -> None:
        self.layers = layers

    def forward(self, x: Any) -> Any:
        for layer in self.layers:
            x = layer(x)
        return x


def test_the_state_of_a_module_argument_is_written_back() -> None:
    rng = np.random.default_rng(0)
    eager, compiled = Mean(3), Mean(3)
    f = wl.jit(lambda model, x: model(x))
    for _ in range(3):
        x = wl.asarray(rng.normal(size=(4, 3)).astype(np.float32))
        same(f(compiled, x), eager(x))
    same(compiled.state_dict(), eager.state_dict())
    assert f.traces == 1
    compiled.eval()
    f(compiled, x)
    assert f.traces == 2
    assert compiled.steps.item() == 3


def test_another_module_of_the_same_structure_reuses_the_trace() -> None:
    f = wl.jit(lambda model, x: model(x))
    models = [Mean(2) for _ in range(3)]
    for i, model in enumerate(models):
        model.gain = wl.tensor([1.0 + i, 2.0])  # type: ignore[assignment]
        np.testing.assert_array_equal(f(model, wl.zeros((1, 2))), np.zeros((1, 2)))
        f(model, wl.ones((1, 2)))
    assert f.traces == 1
    for model in models:
        assert model.steps.item() == 2
        np.testing.assert_allclose(model.mean, [0.1, 0.1], rtol=1e-6)
    f(Mean(3), wl.ones((1, 3)))
    assert f.traces == 2


def test_a_module_that_is_passed_twice() -> None:
    f = wl.jit(lambda a, b, x: (a(x), b(x)))
    x = wl.ones((1, 2))
    one, two = Mean(2), Mean(2)
    f(one, one, x)
    assert one.steps.item() == 2
    f(one, two, x)
    assert (one.steps.item(), two.steps.item()) == (3, 1)
    f(two, two, x)
    assert two.steps.item() == 3


def test_a_module_that_is_passed_and_closed_over() -> None:
    outside = Mean(2)
    f = wl.jit(lambda model, x: (model(x), outside(x)))
    x = wl.ones((1, 2))
    other = Mean(2)
    f(other, x)
    assert (other.steps.item(), outside.steps.item()) == (1, 1)
    f(outside, x)
    assert outside.steps.item() == 3
    f(other, x)
    assert (other.steps.item(), outside.steps.item()) == (2, 4)


def test_a_part_of_a_module_that_is_passed_and_closed_over() -> None:
    whole = nn.Sequential(Mean(2), Mean(2))
    f = wl.jit(lambda part, x: (part(x), whole(x)))
    x = wl.ones((1, 2))
    other = Mean(2)
    f(other, x)
    f(whole[0], x)
    assert (whole[0].steps.item(), whole[1].steps.item()) == (3, 2)
    f(whole[1], x)
    assert (whole[0].steps.item(), whole[1].steps.item()) == (4, 4)
    f(other, x)
    assert other.steps.item() == 2


def test_a_cell_that_is_passed_and_closed_over() -> None:
    outside = nn.Buffer(wl.tensor(0.0))

    def both(cell: Any) -> Any:
        cell.assign(cell + 1)
        outside.assign(outside + 10)
        return cell + outside

    f = wl.jit(both)
    other = nn.Buffer(wl.tensor(100.0))
    assert f(other).item() == 111.0
    assert f(outside).item() == 42.0
    assert f(other).item() == 133.0
    assert (other.item(), outside.item()) == (102.0, 31.0)


def test_a_module_that_is_returned_is_the_one_that_was_passed() -> None:
    f = wl.jit(lambda model, x: (model, model(x)))
    one, two = Mean(2), Mean(2)
    assert f(one, wl.ones((1, 2)))[0] is one
    assert f(two, wl.ones((1, 2)))[0] is two
    assert f.traces == 1


def test_a_module_made_inside_is_a_new_one_each_time() -> None:
    f = wl.jit(lambda x: Mean(x.shape[-1]))
    one, two = f(wl.ones((1, 2))), f(wl.ones((1, 2)))
    assert one is not two
    one.gain = wl.zeros(2)  # type: ignore[assignment]
    np.testing.assert_array_equal(two.gain, [1.0, 1.0])
    outer = wl.jit(lambda x: f(x)(x))
    np.testing.assert_allclose(outer(wl.ones((1, 2))), [[0.9, 0.9]], rtol=1e-6)


def test_modules_for_temporary_use_do_not_prevent_reuse() -> None:
    f = wl.jit(lambda x: Mean(x.shape[-1])(x))
    for _ in range(3):
        np.testing.assert_allclose(f(wl.ones((1, 2))), [[0.9, 0.9]], rtol=1e-6)
    assert f.traces == 1


def test_lazy_layers_are_completed_while_tracing() -> None:
    model = nn.Sequential(nn.LazyLinear(4), wl.tanh, nn.LazyLinear(1))
    f = wl.jit(lambda model, x: model(x).sum())
    x = wl.ones((2, 3))
    first = f(model, x)
    assert model[0].weight.shape == (3, 4)
    assert type(model[0].weight.value) is wl.Tensor
    same(f(model, x), first)
    np.testing.assert_allclose(model(x).sum(), first, rtol=1e-6)
    gradients = wl.jit(wl.grad(lambda model, x: model(x).sum()))(model, x)
    assert sorted(gradients) == ["0.bias", "0.weight", "2.bias", "2.weight"]
    other = nn.Sequential(nn.LazyLinear(4), wl.tanh, nn.LazyLinear(1))
    f(other, x)
    assert not np.array_equal(other[0].weight, model[0].weight)


def test_gradients_reach_modules_through_jit() -> None:
    model = nn.Sequential(nn.Linear(3, 4), wl.tanh, nn.Linear(4, 1))
    x = wl.ones((2, 3))
    f = wl.jit(lambda model, x: model(x).sum())
    expected = wl.grad(lambda model, x: model(x).sum())(model, x)
    same(wl.grad(f)(model, x), expected)
    same(wl.grad(f)(model, x), expected)
    assert f.traces == 1
    f(model, x).backward()
    same({path: p.grad for path, p in model.named_parameters()}, expected)


def test_random_streams_go_on_inside_jit() -> None:
    def draw() -> Any:
        return wl.random.normal((3,))

    wl.random.seed(0)
    eager = [draw() for _ in range(3)]
    wl.random.seed(0)
    f = wl.jit(draw)
    same([f() for _ in range(3)], eager)
    assert f.traces == 1


class Momentum:
    """An optimizer with state, known to trees by its parts."""

    def __init__(self, model: Any, rate: float) -> None:
        self.model = model
        self.rate = Cell(wl.tensor(rate))
        self.velocity = {path: Cell(wl.zeros_like(p)) for path, p in model.named_parameters()}
        self.steps = Cell(wl.tensor(0))

    def __tree_parts__(self) -> tuple[dict[str, Any], Any]:
        return {"model": self.model, "rate": self.rate, "velocity": self.velocity, "steps": self.steps}, None

    @classmethod
    def __tree_new__(cls) -> Momentum:
        return object.__new__(cls)

    def __tree_fill__(self, children: dict[str, Any], static: Any) -> None:
        self.__dict__.update(children)

    def step(self, gradients: dict[str, Any]) -> None:
        self.steps.assign(self.steps + 1)
        for path, parameter in self.model.named_parameters():
            self.velocity[path].assign(0.9 * self.velocity[path] + gradients[path])
            parameter.assign(parameter - self.rate * self.velocity[path])


def training_step(model: Any, optimizer: Any, x: Any, y: Any) -> Any:
    def loss_of(model: Any, x: Any, y: Any) -> Any:
        return ((model(x) - y) ** 2).mean()

    loss, gradients = wl.value_and_grad(loss_of)(model, x, y)
    optimizer.step(gradients)
    return loss


@pytest.mark.parametrize("style", ["arguments", "closure"])
def test_a_training_step_gives_the_same_bits_with_and_without_jit(style: str) -> None:
    rng = np.random.default_rng(0)
    data = [
        (wl.asarray(rng.normal(size=(8, 3)).astype(np.float32)), wl.asarray(rng.normal(size=(8, 1)).astype(np.float32)))
        for _ in range(5)
    ]

    def train(compiled: bool) -> tuple[list[Any], Any, Any, Any]:
        wl.random.seed(0)
        model = nn.Sequential(nn.Linear(3, 4), wl.tanh, Mean(4), nn.Linear(4, 1))
        optimizer = Momentum(model, 0.1)
        step = functools.partial(training_step, model, optimizer) if style == "closure" else training_step
        run = wl.jit(step) if compiled else step
        args = () if style == "closure" else (model, optimizer)
        return [run(*args, x, y) for x, y in data], model, optimizer, run  # type: ignore[call-arg]

    losses, model, optimizer, _ = train(False)
    losses_, model_, optimizer_, run = train(True)
    same(losses_, losses)
    same(model_.state_dict(), model.state_dict())
    same([c.value for c in optimizer_.velocity.values()], [c.value for c in optimizer.velocity.values()])
    assert optimizer_.steps.item() == 5
    assert model_[2].steps.item() == 5
    assert run.traces == 1


def test_changes_of_a_module_argument_are_seen() -> None:
    class Scales(nn.Module):
        def __init__(self) -> None:
            self.factors = [nn.Parameter(wl.tensor(2.0))]
            self.table = np.ones(2, np.float32)
            self.sign = 1

        def forward(self, x: Any) -> Any:
            for factor in self.factors:
                x = x * factor
            return self.sign * x * self.table

    f = wl.jit(lambda model, x: model(x))
    model = Scales()
    x = wl.ones(2)
    assert f(model, x).tolist() == [2.0, 2.0]
    model.factors.append(nn.Parameter(wl.tensor(3.0)))  # in place, which no attribute shows
    assert f(model, x).tolist() == [6.0, 6.0]
    model.sign = -1
    assert f(model, x).tolist() == [-6.0, -6.0]
    model.table[1] = 10.0
    assert f(model, x).tolist() == [-6.0, -60.0]
    model.factors[0].assign(wl.tensor(0.0))
    assert f(model, x).tolist() == [0.0, 0.0]
    layers = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    g = wl.jit(lambda model, x: model(x))
    g(layers, x)
    layers.append(nn.Linear(2, 3))
    assert g(layers, x).shape == (3,)
    layers[2].freeze()
    g(layers, x)
    layers[0].weight.assign(wl.zeros((2, 2)))
    layers[0].bias.assign(wl.zeros(2))
    np.testing.assert_allclose(g(layers, x), layers(x), rtol=1e-6)


def test_modules_that_are_dataclasses() -> None:
    @dataclasses.dataclass
    class Affine(nn.Module):  # which makes them equal by value, and not hashable
        scale: Any
        shift: float = 1.0

        def forward(self, x: Any) -> Any:
            return x * self.scale + self.shift

    f = wl.jit(lambda model, x: model(x))
    models = [Affine(nn.Parameter(wl.tensor(2.0))), Affine(nn.Parameter(wl.tensor(3.0)))]
    for _ in range(2):
        assert [f(model, 1.0).item() for model in models] == [3.0, 4.0]
    assert f.traces == 1
    g = wl.jit(lambda x: models[0](x))
    assert g(1.0).item() == 3.0
    models[0].shift = 5.0
    assert g(1.0).item() == f(models[0], 1.0).item() == 7.0


def test_modules_that_nobody_needs_are_freed() -> None:
    import gc
    import weakref

    f = wl.jit(lambda model, x: model(x))
    model = Mean(2)
    f(model, wl.ones((1, 2)))
    reference = weakref.ref(model)
    cell = weakref.ref(model.mean)
    del model
    gc.collect()
    assert reference() is None
    assert cell() is None


def test_a_module_that_knows_its_parent() -> None:
    class Node(nn.Module):
        def __init__(self) -> None:
            self.weight = nn.Parameter(wl.tensor(2.0))

        def forward(self, x: Any) -> Any:
            return x * self.weight

    parent, child = Node(), Node()
    parent.child, child.parent = child, parent
    f = wl.jit(lambda model, x: model(x) + model.child(x))
    assert f(parent, 1.0).item() == 4.0
    assert f(parent, 2.0).item() == 8.0


def test_calling_with_many_parameters_is_cheap() -> None:
    model = nn.Sequential(*[nn.Linear(2, 2) for _ in range(50)])
    f = wl.jit(lambda model, x: x)
    f(model, wl.ones(2))
    from wonderland.transforms.jit import constants

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(constants, "_taken_apart", lambda *args: pytest.fail("the module is taken apart again"))
        for _ in range(3):
            f(model, wl.ones(2))
    model[3] = nn.Linear(2, 2)
    f(model, wl.ones(2))
    assert f.traces == 1


def test_plain_values_in_stateful_objects_are_part_of_the_trace() -> None:
    class Holder:
        def __init__(self, value: Any) -> None:
            self.value = value

        def __tree_parts__(self) -> tuple[dict[str, Any], Any]:
            return {"value": self.value}, None

    f = wl.jit(lambda holder, x: x * holder.value)
    holder = Holder(2.0)
    assert f(holder, 1.0).item() == 2.0
    holder.value = 3.0
    assert f(holder, 1.0).item() == 3.0
    holder.value = wl.tensor([1.0, 2.0])
    assert f(holder, 1.0).tolist() == [1.0, 2.0]
    holder.value = wl.tensor([3.0, 4.0])
    assert f(holder, 1.0).tolist() == [3.0, 4.0]
