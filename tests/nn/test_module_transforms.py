"""Modules as arguments of the transformations."""

from __future__ import annotations

import contextlib
import threading
from typing import Any

import numpy as np
import pytest

import wonderland as wl
from wonderland import nn
from wonderland.errors import TraceError


class Net(nn.Module):
    """A running mean as state, a layer used twice, a constant."""

    def __init__(self, dtype=wl.float64):
        self.inner = nn.Linear(3, 3, dtype=dtype)
        self.outer = nn.Linear(3, 2, dtype=dtype)
        self.mean = nn.Buffer(wl.zeros(3, dtype=dtype))
        self.shift = wl.full((3,), 0.5, dtype=dtype)

    def forward(self, x):
        if self.training:
            self.mean = 0.9 * self.mean + 0.1 * x.reshape(-1, 3).mean(axis=0)
        x = x - self.mean + self.shift
        return self.outer(wl.tanh(self.inner(wl.tanh(self.inner(x)))))


def loss_of(model, x, y):
    return ((model(x) - y) ** 2).mean()


@pytest.fixture
def data():
    key = wl.random.key(0)
    return wl.random.normal((6, 3), key=key, dtype=wl.float64), wl.ones((6, 2), dtype=wl.float64)


def numerical(model, x, y, path, index, step=1e-6):
    p = dict(model.named_parameters())[path]
    value = p.value
    p.assign(value.at[index].add(step))
    up = loss_of(model, x, y).item()
    p.assign(value.at[index].add(-step))
    down = loss_of(model, x, y).item()
    p.assign(value)
    return (up - down) / (2 * step)


def test_gradients_of_every_parameter(data):
    model = Net().eval()
    value, gradients = wl.value_and_grad(loss_of)(model, *data)
    np.testing.assert_allclose(value, loss_of(model, *data), rtol=1e-15)
    assert list(gradients) == ["inner.weight", "inner.bias", "outer.weight", "outer.bias"]
    for path, gradient in gradients.items():
        assert gradient.shape == dict(model.named_parameters())[path].shape
        for index in np.ndindex(*gradient.shape):
            np.testing.assert_allclose(gradient[index].item(), numerical(model, *data, path, index), atol=1e-8)
    assert all(type(c.value) is wl.Tensor for c in (*model.parameters(), *model.buffers()))


def test_state_changed_inside_is_kept(data):
    a, b = Net(), Net()
    b.load_state_dict(a.state_dict())
    x, y = data
    wl.grad(loss_of)(a, x, y)
    b(x)
    np.testing.assert_array_equal(a.mean, b.mean)
    assert float(abs(a.mean).max()) > 0
    assert type(a.mean.value) is wl.Tensor
    assert a.mean.value._node is None


def test_frozen_parameters_have_no_gradient(data):
    model = Net().eval()
    every = wl.grad(loss_of)(model, *data)
    model.freeze("inner.bias")
    some = wl.grad(loss_of)(model, *data)
    assert set(some) == set(every) - {"inner.bias"}
    for path in some:
        np.testing.assert_allclose(some[path], every[path], rtol=1e-12)
    loss_of(model, *data).backward()
    assert model.inner.bias.grad is None
    np.testing.assert_allclose(model.inner.weight.grad, every["inner.weight"], rtol=1e-12)


@pytest.mark.book("6-20", name=("wl.nn.Parameter", "wl.nn.Module.parameters"))
def test_shared_parameters_sum_their_gradients():
    x = wl.tensor([1.0, -2.0], dtype=wl.float64)
    tied = nn.Sequential(nn.Linear(2, 2, dtype=wl.float64), wl.tanh, nn.Linear(2, 2, dtype=wl.float64))
    tied[2].weight, tied[2].bias = tied[0].weight, tied[0].bias
    assert len(tied.parameters()) == 2
    assert tied.num_parameters() == 6
    untied = nn.Sequential(nn.Linear(2, 2, dtype=wl.float64), wl.tanh, nn.Linear(2, 2, dtype=wl.float64))
    untied[0].load_state_dict(tied[0].state_dict())
    untied[2].load_state_dict(tied[0].state_dict())
    assert len(untied.parameters()) == 4
    loss = lambda m: (m(x) ** 2).sum()
    one, two = wl.grad(loss)(tied), wl.grad(loss)(untied)
    assert set(one) == {"0.weight", "0.bias"}
    for name in ("weight", "bias"):
        np.testing.assert_allclose(one[f"0.{name}"], two[f"0.{name}"] + two[f"2.{name}"], rtol=1e-12)
    loss(tied).backward()
    np.testing.assert_allclose(tied[2].weight.grad, one["0.weight"], rtol=1e-12)
    # an update by path moves both uses once
    before = tied[2].weight.numpy().copy()
    for path, p in tied.named_parameters():
        p.assign(p - one[path])
    np.testing.assert_allclose(tied[2].weight, before - one["0.weight"].numpy(), rtol=1e-12)


def test_shared_modules_in_one_argument_tree(data):
    model = Net().eval()
    gradients = wl.grad(lambda pair, x, y: loss_of(pair[0], x, y) + loss_of(pair[1], x, y))([model, model], *data)
    single = wl.grad(loss_of)(model, *data)
    total = {path: gradients[0][path] + gradients[1][path] for path in single}
    for path in single:
        np.testing.assert_allclose(total[path], 2 * single[path].numpy(), rtol=1e-12)


def test_nested_gradients(data):
    model = Net().eval()
    x, y = data

    def penalty(model):
        by_input = wl.grad(lambda x: loss_of(model, x, y))(x)
        return (by_input**2).sum()

    gradients = wl.grad(penalty)(model)
    p = model.inner.weight
    value, step = p.value, 1e-6
    for index in [(0, 0), (1, 2)]:
        p.assign(value.at[index].add(step))
        up = penalty(model).item()
        p.assign(value.at[index].add(-step))
        down = penalty(model).item()
        p.assign(value)
        np.testing.assert_allclose(
            gradients["inner.weight"][index].item(), (up - down) / (2 * step), rtol=1e-5, atol=1e-9
        )

    def norm(model):
        inner = wl.grad(loss_of)(model, x, y)
        return sum((g**2).sum() for g in inner.values())

    twice = wl.grad(norm)(model)
    expected = wl.jvp(lambda m: wl.grad(loss_of)(m, x, y), (model,), (wl.grad(loss_of)(model, x, y),))[1]
    for path in twice:
        np.testing.assert_allclose(twice[path], 2 * expected[path].numpy(), rtol=1e-9, atol=1e-12)


def test_an_exception_leaves_the_module_intact(data):
    model = Net()
    before = {path: v.numpy().copy() for path, v in model.state_dict().items() if path != "mean"}

    def fail(model, x, y):
        loss_of(model, x, y)
        raise RuntimeError("on purpose")

    for transform in (
        lambda f: wl.grad(f)(model, *data),
        lambda f: wl.jit(f)(model, *data),
        lambda f: wl.jit(wl.grad(f))(model, *data),
        lambda f: wl.vmap(f, in_axes=(None, 0, 0))(model.eval(), *data),
    ):
        with pytest.raises(RuntimeError, match="on purpose"):
            transform(fail)
        assert all(type(c.value) is wl.Tensor for c in (*model.parameters(), *model.buffers()))
        for path, value in before.items():
            np.testing.assert_array_equal(model.state_dict()[path], value)


def test_jvp_with_tangents_by_path(data):
    model = Net().eval()
    x, y = data
    tangents = {path: wl.random.normal(p.shape, dtype=p.dtype) for path, p in model.named_parameters()}
    value, tangent = wl.jvp(lambda m: loss_of(m, x, y), (model,), (tangents,))
    gradients = wl.grad(loss_of)(model, x, y)
    np.testing.assert_allclose(tangent, sum((gradients[p] * tangents[p]).sum() for p in gradients), rtol=1e-10)
    np.testing.assert_allclose(value, loss_of(model, x, y), rtol=1e-14)


def test_vmap_over_stacked_modules(data):
    x, _ = data
    models = [Net() for _ in range(4)]
    stacked = wl.tree.map(lambda *cells: wl.stack(cells), *models)
    assert stacked.inner.weight.shape == (4, 3, 3)
    outputs = wl.vmap(lambda m, x: m(x), in_axes=(0, None))(stacked, x)
    for i, model in enumerate(models):
        np.testing.assert_allclose(outputs[i], model(x), rtol=1e-12)
        np.testing.assert_allclose(stacked.mean[i], model.mean, rtol=1e-12)
    assert stacked.mean.shape == (4, 3)
    gradients = wl.vmap(wl.grad(lambda m, x: m(x).sum()), in_axes=(0, None))(stacked.eval(), x)
    for i, model in enumerate(models):
        expected = wl.grad(lambda m, x: m(x).sum())(model.eval(), x)
        np.testing.assert_allclose(gradients["inner.weight"][i], expected["inner.weight"], rtol=1e-9)


def test_vmap_with_the_module_shared_by_the_batch(data):
    model, (x, y) = Net().eval(), data
    per_example = wl.vmap(wl.grad(loss_of), in_axes=(None, 0, 0))(model, x, y)
    assert per_example["outer.weight"].shape == (6, 3, 2)
    for i in range(6):
        np.testing.assert_allclose(per_example["outer.weight"][i], wl.grad(loss_of)(model, x[i], y[i])["outer.weight"])
    model.train()
    with pytest.raises(TraceError, match="Buffer of shape"):
        wl.vmap(model)(x)
    assert type(model.mean.value) is wl.Tensor


def test_training_steps_under_jit_equal_eager_ones(data):
    def step(model, x, y):
        loss, gradients = wl.value_and_grad(loss_of)(model, x, y)
        for path, p in model.named_parameters():
            p.assign(p - 0.1 * gradients[path])
        return loss

    eager, traced = Net(), Net()
    traced.load_state_dict(eager.state_dict())
    fast = wl.jit(step)
    losses = [(step(eager, *data).item(), fast(traced, *data).item()) for _ in range(5)]
    np.testing.assert_allclose(*zip(*losses, strict=True), rtol=1e-12)
    assert losses[-1][0] < losses[0][0]
    for path, value in eager.state_dict().items():
        np.testing.assert_allclose(value, traced.state_dict()[path], rtol=1e-12)
    assert fast.traces == 1
    other = Net()
    first = loss_of(other.copy(), *data).item()
    np.testing.assert_allclose(fast(other, *data), first, rtol=1e-12)
    assert fast.traces == 1  # a module of the same structure


def test_jit_notices_changes_of_a_module(data):
    model, (x, _) = Net(), data
    by_argument, by_closure = wl.jit(lambda m, x: m(x)), wl.jit(lambda x: model(x))

    def check():
        for f in (lambda: by_argument(model, x), lambda: by_closure(x)):
            mean = model.mean.value
            expected = model(x)
            after = model.mean.value
            model.mean = mean
            np.testing.assert_allclose(f(), expected, rtol=1e-12)
            np.testing.assert_allclose(model.mean, after, rtol=1e-12)

    check()
    model.eval()
    check()
    model.shift = wl.full((3,), -0.5, dtype=wl.float64)
    check()
    model.outer = nn.Linear(3, 5, dtype=wl.float64)
    check()
    model.train()
    check()
    model.inner.weight = wl.ones((3, 3), dtype=wl.float64)
    check()


def test_imperative_training(data):
    model = Net().eval()
    first = loss_of(model, *data).item()
    for _ in range(20):
        model.zero_grad()
        loss = loss_of(model, *data)
        loss.backward()
        with wl.no_grad():
            for p in model.parameters():
                p.assign(p - 0.3 * p.grad)
    assert loss.item() < 0.5 * first
    assert all(type(p.value) is wl.Tensor and p.value._node is None for p in model.parameters())


def test_imperative_gradients_accumulate_and_state_is_not_recorded(data):
    model = Net()
    loss_of(model, *data).backward()
    assert model.mean.value._node is None
    expected = wl.grad(loss_of)(model.eval(), *data)["outer.bias"]
    model.zero_grad()
    for _ in range(2):
        loss_of(model, *data).backward()
    np.testing.assert_allclose(model.outer.bias.grad, 2 * expected.numpy(), rtol=1e-10)


def test_modules_in_loops_and_branches():
    layer = nn.Linear(3, 3, dtype=wl.float64)
    start = wl.ones(3, dtype=wl.float64)
    steps = wl.arange(4)

    def looped(m):
        return wl.scan(lambda c, _: (m(c), None), start, steps)[0].sum()

    def unrolled(m):
        c = start
        for _ in range(4):
            c = m(c)
        return c.sum()

    expected = wl.grad(unrolled)(layer)
    for f in (wl.grad(looped), wl.jit(wl.grad(looped))):
        for path, gradient in f(layer).items():
            np.testing.assert_allclose(gradient, expected[path], rtol=1e-12)
    by_dict = lambda p: wl.scan(lambda c, _: (nn.functional_call(layer, p, c), None), start, steps)[0].sum()
    parameters = {path: p.value for path, p in layer.named_parameters()}
    for path, gradient in wl.grad(by_dict)(parameters).items():
        np.testing.assert_allclose(gradient, expected[path], rtol=1e-12)
    lazy = nn.LazyLinear(3)
    wl.scan(lambda c, _: (lazy(c), None), wl.ones(3), steps)
    other = nn.LazyLinear(3)
    wl.cond(wl.tensor(True), other, lambda x: x, wl.ones(3))
    for module in (layer, lazy, other):
        assert type(module.weight.value) is wl.Tensor


def test_checkpoint_updates_state_once(data):
    model, (x, y) = Net(), data
    other = model.copy()
    gradients = wl.grad(lambda m: ((wl.checkpoint(m)(x) - y) ** 2).mean())(model)
    for path, gradient in wl.grad(loss_of)(other, x, y).items():
        np.testing.assert_allclose(gradients[path], gradient, rtol=1e-12)
    np.testing.assert_allclose(model.mean, other.mean, rtol=1e-12)


@pytest.mark.book("6-83", name=("wl.nn.Module", "wl.nn.Parameter", "wl.custom_vjp"))
def test_a_trainable_activation_as_a_module_and_as_a_custom_primitive():
    """PReLU and Swish: the composed module and the hand-written rule agree in values and gradients."""

    class PReLU(nn.Module):
        def __init__(self):
            self.alpha = nn.Parameter(wl.tensor(0.25, dtype=wl.float64))

        def forward(self, x):
            return wl.where(x >= 0, x, self.alpha * x)

    class Swish(nn.Module):
        def __init__(self):
            self.alpha = nn.Parameter(wl.tensor(1.5, dtype=wl.float64))

        def forward(self, x):
            return x * wl.sigmoid(self.alpha * x)

    @wl.custom_vjp
    def prelu(x, alpha):
        return wl.where(x >= 0, x, alpha * x)

    prelu.defvjp(
        lambda x, alpha: (prelu(x, alpha), (x, alpha)),
        lambda saved, v: (
            v * wl.where(saved[0] >= 0, 1.0, saved[1]),
            (v * wl.where(saved[0] >= 0, 0.0, saved[0])).sum(),
        ),
    )

    @wl.custom_vjp
    def swish(x, alpha):
        return x * wl.sigmoid(alpha * x)

    def swish_backward(saved, v):
        x, alpha = saved
        s = wl.sigmoid(alpha * x)
        return v * (s + alpha * x * s * (1 - s)), (v * x * x * s * (1 - s)).sum()

    swish.defvjp(lambda x, alpha: (swish(x, alpha), (x, alpha)), swish_backward)

    x = wl.linspace(-2, 2, 9, dtype=wl.float64)
    for module, primitive in ((PReLU(), prelu), (Swish(), swish)):
        np.testing.assert_array_equal(module(x), primitive(x, module.alpha.value))
        by_module, by_x = wl.grad(lambda m, x: (m(x) ** 2).sum(), argnums=(0, 1))(module, x)
        squares = lambda x, alpha, f=primitive: (f(x, alpha) ** 2).sum()
        g_x, g_alpha = wl.grad(squares, argnums=(0, 1))(x, module.alpha.value)
        np.testing.assert_allclose(by_x, g_x, rtol=1e-12, atol=1e-15)
        np.testing.assert_allclose(by_module["alpha"], g_alpha, rtol=1e-12)


@pytest.mark.parametrize(
    "transform", [wl.grad, wl.jit, lambda f: wl.vmap(f, in_axes=(None, 0))], ids=["grad", "jit", "vmap"]
)
def test_other_threads_see_values_while_one_traces(transform: Any) -> None:
    model, x = nn.Sequential(nn.Linear(3, 3), wl.tanh, nn.Linear(3, 1)), wl.ones((2, 3))
    want = model(x).tolist()
    traced, looked = threading.Event(), threading.Event()

    def slow(model: Any, x: Any) -> Any:
        y = model(x).sum()
        traced.set()
        assert looked.wait(10)
        return y

    thread = threading.Thread(target=lambda: transform(slow)(model, x))
    thread.start()
    assert traced.wait(10)
    try:
        assert model(x).tolist() == want
        model[0].weight.assign(model[0].weight + 1)
    finally:
        looked.set()
        thread.join()
    assert model(x).tolist() != want


def test_nothing_stays_behind_in_cells() -> None:
    """What a transformation put into a cell ends with it: the value outside is the only one, for every thread."""
    model = Net()
    x = wl.ones((4, 3), dtype=wl.float64)
    params = {path: p.value for path, p in model.named_parameters()}

    def loss(model: Any, x: Any = x) -> Any:
        return model(x).sum()

    def broken(model: Any) -> Any:
        raise ArithmeticError(str(loss(model)))

    for run in (
        lambda: wl.grad(loss)(model),
        lambda: wl.jit(wl.grad(loss))(model),
        lambda: wl.grad(wl.jit(loss))(model),
        lambda: wl.vmap(lambda x: loss(model.eval(), x))(x[None]),
        lambda: wl.grad(wl.checkpoint(loss))(model.train()),
        lambda: wl.jvp(lambda x: loss(model, x), (x,), (x,)),
        lambda: wl.grad(lambda p: nn.functional_call(model, p, x).sum())(params),
        lambda: wl.jit(lambda p: nn.functional_call(model, p, x))(params),
        lambda: wl.grad(broken)(model),
        lambda: wl.jit(broken)(model),
    ):
        with contextlib.suppress(ArithmeticError):
            run()
        assert not any(cell._inside for cell in wl.tree.leaves(model))
