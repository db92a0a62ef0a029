"""Calls of compiled functions that are recorded: cheap when repeated, and differentiated as if each were written out.

The oracle is `wl.grad` of the plain function at copies of what the call was given.
"""

from __future__ import annotations

import functools
import gc
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import wonderland as wl
from tests.transforms.test_at_once import NATIVE, PYTHON, Slow
from tests.transforms.test_interrupts import THROUGH, _interrupted
from tools.interrupts import Twins, grown
from wonderland import nn
from wonderland.core.cell import LISTED, rest
from wonderland.engines.native import bound
from wonderland.transforms.jit.traced import runs

rng = np.random.default_rng(0)


@pytest.fixture(autouse=True, params=[NATIVE, PYTHON])
def way(request: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    if request.param == PYTHON:
        monkeypatch.setattr(bound, "is_possible", lambda: False)
    with wl.using_backend("native"):
        yield request.param


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> Slow:
    return Slow(monkeypatch)


def numbers(*shape: int) -> wl.Tensor:
    return wl.asarray(rng.normal(size=shape).astype(np.float32))


def network(key: int = 0) -> Any:
    wl.random.seed(key)
    return nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))


def loss_of(model: Any, x: Any) -> Any:
    return (model(x) ** 2).mean()


def stepping() -> Any:
    @wl.jit
    def step(model: Any, optimizer: Any, x: Any) -> Any:
        loss, grads = wl.value_and_grad(loss_of)(model, x)
        optimizer.step(grads)
        return loss

    return step


def gradients(model: Any) -> dict[str, Any]:
    """What `backward` has left, which is taken away."""
    found = {path: np.array(p.grad) for path, p in model.named_parameters()}
    for p in model.parameters():
        p.zero_grad()
    return found


def grad_of(x: wl.Tensor) -> Any:
    assert x.grad is not None
    return x.grad.numpy()


def wanted(model: Any, x: Any) -> dict[str, Any]:
    return {path: np.array(g) for path, g in wl.grad(loss_of)(model, x.detach()).items()}


def same(found: dict[str, Any], want: dict[str, Any]) -> None:
    assert found.keys() == want.keys()
    for path, value in want.items():
        np.testing.assert_allclose(found[path], value, rtol=1e-4, atol=1e-6)


def places(model: Any) -> list[int]:
    return [p._outside._data.ctypes.data for p in model.parameters()]


def at_rest(call: Callable[[], object]) -> None:
    """Call it until it is repeated at once."""
    for _ in range(3):
        call()


def test_a_repeated_call_is_recorded_without_looking_at_its_state(slow: Slow) -> None:
    model, f, x = network(), wl.jit(loss_of), numbers(5, 3)
    want, value = wanted(model, x), loss_of(model, x).item()
    at_rest(lambda: f(model, x))
    results: list[wl.Tensor] = []
    assert slow.during(lambda: results.extend(f(model, x) for _ in range(5))) == 0
    for loss in results:
        assert loss.requires_grad
        assert not loss.is_leaf
        assert repr(loss.grad_fn) == "<call>"
        assert [record.name for record in loss.grad_fn.next_functions] == ["leaf"] * 4
        assert loss.item() == pytest.approx(value, rel=1e-5)
        loss.backward()
        same(gradients(model), want)
    assert slow.during(lambda: f(model, x).backward()) == 0  # and what `backward` does disturbs no rest


CHANGES: dict[str, Callable[[Any, Any, Any, Any], object]] = {
    "compiled step": lambda model, optimizer, step, x: step(model, optimizer, x),
    "optimizer": lambda model, optimizer, step, x: optimizer.step(wl.grad(loss_of)(model, x)),
    "assign": lambda model, optimizer, step, x: [p.assign(p * 0 + 7) for p in model.parameters()],
    "load": lambda model, optimizer, step, x: model.load_state_dict(network(5).state_dict()),
    "item": lambda model, optimizer, step, x: model[0].weight.__setitem__((0, 0), wl.tensor(5.0)),
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("before", [1, 4], ids=["first call", "repeated call"])
def test_the_gradient_is_that_at_the_values_of_then(change: str, before: int) -> None:
    model, f, step, x = network(), wl.jit(loss_of), stepping(), numbers(5, 3)
    optimizer = wl.optim.SGD(model, lr=0.5, momentum=0.9)
    for _ in range(3):
        step(model, optimizer, x)
    losses, wants = [], []
    for _ in range(3):
        for _ in range(before):
            loss = f(model, x)
        losses.append(loss)
        wants.append(wanted(model, x))
        for _ in range(3):
            CHANGES[change](model, optimizer, step, x)
    del loss
    for loss, want in zip(reversed(losses), reversed(wants), strict=True):
        with wl.no_grad():
            step(model, optimizer, x)
        loss.backward()
        same(gradients(model), want)


def _dot(model: Any, x: Any) -> Any:
    return (model.a * model.b * x).sum()


@pytest.mark.parametrize("calls", [1, 3], ids=["first call", "repeated call"])
@pytest.mark.parametrize("named", [False, True], ids=["positional", "named"])
def test_a_step_at_rest_leaves_a_record_what_it_holds(calls: int, named: bool) -> None:
    """Nobody looks at the parameters in between, so only the record tells that they are held."""
    model, step, f, x = Twins(), wl.jit(grown), wl.jit(_dot), wl.ones(16)
    for _ in range(calls):
        at_rest(lambda: step(model))
        loss = f(model, x=x) if named else f(model, x)
    at_rest(lambda: step(model))
    other = f(model, x)
    loss.backward()
    then = 1 + 3 * calls
    np.testing.assert_array_equal(grad_of(model.a), np.full(16, then))
    np.testing.assert_array_equal(grad_of(model.b), np.full(16, then))
    other.backward()
    np.testing.assert_array_equal(grad_of(model.a), np.full(16, then + then + 3))


def test_state_is_overwritten_in_place_when_no_record_lives(slow: Slow) -> None:
    model, f, step, x = network(), wl.jit(loss_of), stepping(), numbers(5, 3)
    optimizer = wl.optim.SGD(model, lr=0.1)

    def turn() -> None:
        f(model, x)
        step(model, optimizer, x)

    at_rest(turn)
    before = places(model)
    at_rest(turn)
    assert places(model) == before
    at_rest(turn)  # nobody has looked since
    assert slow.during(lambda: at_rest(turn)) == 0


def test_state_is_copied_once_while_a_record_lives(slow: Slow) -> None:
    model, f, step, x = network(), wl.jit(loss_of), stepping(), numbers(5, 3)
    optimizer = wl.optim.SGD(model, lr=0.1)
    other, other_optimizer, other_step = network(1), wl.optim.SGD(network(1), lr=0.1), stepping()
    other_optimizer = wl.optim.SGD(other, lr=0.1)
    at_rest(lambda: (f(model, x), step(model, optimizer, x), other_step(other, other_optimizer, x)))
    before = places(model)
    loss, want = f(model, x), wanted(model, x)
    assert slow.during(lambda: other_step(other, other_optimizer, x)) <= 1  # `wanted` has looked
    at_rest(lambda: (f(model, x), other_step(other, other_optimizer, x)))
    assert slow.during(lambda: at_rest(lambda: other_step(other, other_optimizer, x))) == 0
    step(model, optimizer, x)
    assert set(places(model)).isdisjoint(before)
    moved = places(model)
    at_rest(lambda: step(model, optimizer, x))
    assert slow.during(lambda: at_rest(lambda: step(model, optimizer, x))) == 0  # the record has what it needs
    assert places(model) == moved
    loss.backward()
    same(gradients(model), want)


@pytest.mark.parametrize("seed", range(8))
def test_calls_steps_and_derivatives_in_any_order(seed: int) -> None:
    """Two models whose parameters are counted; each record is to know the count of its call."""
    chance = np.random.default_rng(seed)
    step, f, x = wl.jit(grown), wl.jit(_dot), wl.ones(16)
    models, counts = [Twins(), Twins()], [1, 1]
    kept: list[tuple[wl.Tensor, int, int]] = []

    def check(loss: wl.Tensor, which: int, count: int) -> None:
        loss.backward()
        for p in (models[which].a, models[which].b):
            np.testing.assert_array_equal(grad_of(p), np.full(16, count))
            p.zero_grad()

    often = {
        "call": 6,
        "keep": 4,
        "named": 3,
        "quiet": 3,
        "step": 9,
        "assign": 0.3,
        "look": 0.3,
        "backward": 3,
        "drop": 4,
    }
    weights = np.array([*often.values()]) / sum(often.values())
    for _ in range(400):
        which = int(chance.integers(2))
        model = models[which]
        match chance.choice([*often], p=weights):
            case "call":
                assert f(model, x).item() == 16 * counts[which] ** 2
            case "keep":
                kept.append((f(model, x), which, counts[which]))
            case "named":
                kept.append((f(model, x=x), which, counts[which]))
            case "quiet":
                with wl.no_grad():
                    assert not f(model, x).requires_grad
            case "step":
                step(model)
                counts[which] += 1
            case "assign":
                counts[which] = int(chance.integers(1, 100))
                for p in (model.a, model.b):
                    p.assign(wl.full(16, float(counts[which])))
            case "look":
                assert model.a.numpy()[0] == counts[which]
            case "backward" if kept:
                check(*kept.pop(int(chance.integers(len(kept)))))
            case "drop" if kept:
                del kept[int(chance.integers(len(kept)))]
    while kept:
        check(*kept.pop())
    assert not rest.snapshots


def test_many_records_of_calls_that_are_never_at_once() -> None:
    """Each has a snapshot of its own; steps beside them do not become slower with their number."""
    model, f, step, x = Twins(), wl.jit(_dot), wl.jit(grown), wl.ones(16)
    kept = [f(model, x=x) for _ in range(3 * LISTED)]
    assert 0 < len(rest.snapshots) <= LISTED + 1
    at_rest(lambda: step(model))
    kept[0].backward()
    kept[-1].backward()
    np.testing.assert_array_equal(grad_of(model.a), np.full(16, 2))


def test_arguments_that_change_later() -> None:
    model, f = network(), wl.jit(loss_of)
    x = numbers(5, 3)
    at_rest(lambda: f(model, x))
    loss, want = f(model, x), wanted(model, x)
    x[0] = 100.0
    loss.backward()
    same(gradients(model), want)


def test_arguments_of_which_something_is_recorded(slow: Slow) -> None:
    def product(x: Any, pair: Any) -> Any:
        return {"y": wl.sin(x) * pair["a"], "index": wl.argmax(x), "z": (pair["b"] * 2,)}

    f, x, a, b = wl.jit(product), numbers(4), numbers(4), numbers(3)
    at_rest(lambda: f(x, {"a": a, "b": b}))
    for leaf in (x, a, b):
        assert not f(x, {"a": a, "b": b})["y"].requires_grad
        leaf.requires_grad_()
        before = slow.count
        found = f(x, {"a": a, "b": b})
        assert slow.count == before
        y, index, z = found["y"], found["index"], found["z"][0]
        assert y.requires_grad
        assert z.requires_grad
        assert not index.requires_grad
        (y.sum() + z.sum()).backward()
        want = {id(x): np.cos(x) * np.array(a), id(a): np.sin(x), id(b): np.full(3, 2)}[id(leaf)]
        np.testing.assert_allclose(grad_of(leaf), want, rtol=1e-5)
        with wl.no_grad():
            assert not f(x, {"a": a, "b": b})["y"].requires_grad
        leaf.zero_grad()
        leaf.requires_grad_(False)
    assert not f(x, {"a": a, "b": b})["y"].requires_grad


def test_calls_of_calls_hooks_and_kept_gradients() -> None:
    model, f, g, x = network(), wl.jit(lambda model, x: model(x)), wl.jit(lambda y: (y**3).sum()), numbers(5, 3)
    at_rest(lambda: g(f(model, x)))
    seen: list[Any] = []
    y = f(model, x)
    y.retain_grad()
    remove = y.register_hook(lambda gradient: seen.append(np.array(gradient)))
    z = g(y)
    z.backward()
    np.testing.assert_allclose(grad_of(y), 3 * np.array(y) ** 2, rtol=1e-5)
    np.testing.assert_allclose(seen[0], 3 * np.array(y) ** 2, rtol=1e-5)
    want = wl.grad(lambda model: (model(x) ** 3).sum())(model)
    same(gradients(model), {path: np.array(value) for path, value in want.items()})
    remove()
    with pytest.raises(wl.errors.GradientError, match="recording of call was released by an earlier backward"):
        z.backward()
    w = g(f(model, x))
    w.backward(retain_graph=True)
    w.backward()
    same(gradients(model), {path: 2 * np.array(value) for path, value in want.items()})


def test_derivatives_of_derivatives() -> None:
    f, x = wl.jit(lambda x, c: (c * x**3).sum()), wl.asarray(np.array([1.0, 2.0])).requires_grad_()
    c = wl.asarray(np.array([2.0, 5.0]))
    at_rest(lambda: f(x, c))
    f(x, c).backward(create_graph=True)
    first = x.grad
    assert first is not None
    np.testing.assert_allclose(first, 3 * np.array(c) * np.array(x) ** 2, rtol=1e-12)
    x.zero_grad()
    first.sum().backward()
    np.testing.assert_allclose(grad_of(x), 6 * np.array(c) * np.array(x), rtol=1e-12)


def test_what_the_function_refers_to_may_be_recorded() -> None:
    w, x = numbers(3), numbers(3)
    f = wl.jit(lambda x: (w * x).sum())
    at_rest(lambda: f(x))
    for _ in range(2):
        assert not f(x).requires_grad
        w.requires_grad_()
        for _ in range(4):
            f(x).backward()
        np.testing.assert_allclose(grad_of(w), 4 * np.array(x), rtol=1e-5)
        w.requires_grad_(False)


def test_parameters_that_are_frozen_and_thawed() -> None:
    model, f, x = network(), wl.jit(loss_of), numbers(5, 3)
    for _ in range(2):
        at_rest(lambda: f(model, x))
        f(model, x).backward()
        assert all(p.grad is not None for p in model.parameters())
        gradients(model)
        model.requires_grad_(False)
        at_rest(lambda: f(model, x))
        assert not f(model, x).requires_grad
        model.requires_grad_(True)
        model[0].requires_grad_(False)
        at_rest(lambda: f(model, x))
        f(model, x).backward()
        assert [p.grad is None for p in model.parameters()] == [True, True, False, False]
        model.requires_grad_(True)
        for p in model.parameters():
            p.zero_grad()


class Counting(nn.Module):
    """A forward pass that writes state."""

    def __init__(self) -> None:
        self.weight = nn.Parameter(wl.ones(3))
        self.calls = nn.Buffer(wl.zeros(()))

    def forward(self, x: Any) -> Any:
        self.calls.assign(self.calls + 1)
        return (self.weight * x * self.calls).sum()


def test_state_that_a_recorded_call_writes() -> None:
    model, f, x = Counting(), wl.jit(lambda model, x: model(x)), numbers(3)
    losses = [f(model, x) for _ in range(5)]
    assert model.calls.item() == 5
    for i, loss in enumerate(losses, 1):
        loss.backward()
        np.testing.assert_allclose(grad_of(model.weight), i * np.array(x), rtol=1e-5)
        model.weight.zero_grad()


def test_a_checkpoint_stays_one(slow: Slow) -> None:
    model, f, x = network(), wl.checkpoint(loss_of), numbers(5, 3)
    at_rest(lambda: f(model, x))
    assert slow.during(lambda: f(model, x)) == 0
    loss = f(model, x)
    assert loss.grad_fn.name == "checkpoint"
    loss.backward()
    same(gradients(model), wanted(model, x))


def test_another_model_of_the_same_structure() -> None:
    models, f, x = [network(0), network(1)], wl.jit(loss_of), numbers(5, 3)
    for _ in range(3):
        losses = [f(model, x) for model in models for _ in range(3)]
        for i, model in enumerate(models):
            losses[3 * i + 2].backward()
            same(gradients(model), wanted(model, x))


def test_errors_and_debugging_know_where_a_call_was_made() -> None:
    f, x = wl.jit(lambda x: wl.sqrt(x).sum()), wl.zeros(3).requires_grad_()
    at_rest(lambda: f(x))
    with wl.debug.nans():
        loss = f(x)
        assert loss.grad_fn.place is not None
    loss.backward()
    assert np.isinf(np.array(x.grad)).all()


def test_a_record_without_state_is_in_nobodys_way() -> None:
    f = wl.jit(lambda x: (x * x).sum())
    x = numbers(3).requires_grad_()
    kept = [f(x) for _ in range(4)]
    assert kept[-1].requires_grad
    assert not rest.snapshots


def test_parameters_and_layers_in_the_arguments() -> None:
    f, weight, layer, x = (
        wl.jit(lambda w, d: (w * d["a"](d["x"])).sum()),
        nn.Parameter(numbers(2)),
        nn.Linear(3, 2),
        numbers(3),
    )
    want = layer(x)
    for w in (weight, wl.asarray(np.array(weight)).requires_grad_()):
        at_rest(functools.partial(f, w, {"a": layer, "x": x}))
        f(w, {"a": layer, "x": x}).backward()
        np.testing.assert_allclose(grad_of(w), np.array(want), rtol=1e-5)
        assert layer.bias is not None
        np.testing.assert_allclose(grad_of(layer.bias), np.array(weight), rtol=1e-5)
        layer.bias.zero_grad()


# --- memory


def test_a_result_that_is_dropped_frees_what_its_record_held() -> None:
    model, f, y = network(), wl.jit(loss_of), numbers(5, 3)
    at_rest(lambda: f(model, y))
    gc.disable()  # reference counts alone do it: there are no cycles
    try:
        for end in ("drop", "backward", "look"):
            x = numbers(5, 3)
            loss, held = f(model, x), weakref.ref(x._data)
            del x
            assert held() is not None
            assert len(rest.snapshots) == 1
            if end == "backward":
                loss.backward()
            else:
                if end == "look":
                    assert loss.grad_fn.next_functions
                del loss
            assert held() is None
            assert not rest.snapshots
    finally:
        gc.enable()


def test_nothing_grows_and_models_are_freed() -> None:
    model, f, x = network(), wl.jit(loss_of), numbers(5, 3)
    at_rest(lambda: f(model, x))
    objects: list[Any] = [x, x._data, wl.Tensor, f._known.recent, *[p._outside for p in model.parameters()]]
    objects += [p._outside._data for p in model.parameters()] + [p._leaf for p in model.parameters()]
    before = [sys.getrefcount(o) for o in objects]
    for _ in range(200):
        loss = f(model, x)
    del loss
    assert max(abs(sys.getrefcount(o) - b) for o, b in zip(objects, before, strict=True)) < 20
    del objects
    loss = f(model, x)
    loss.backward()


def test_models_are_freed_while_a_record_has_their_numbers() -> None:
    f, x = wl.jit(loss_of), numbers(5, 3)

    def call() -> tuple[Any, list[weakref.ref[Any]]]:
        model = network()
        for _ in range(4):
            loss = f(model, x)
        return loss, [weakref.ref(model), weakref.ref(model[0].weight)]

    loss, dead = call()
    gc.collect()
    assert [d() for d in dead] == [None] * 2
    loss.backward()


# --- threads and interrupts


def test_records_of_one_thread_and_steps_of_another() -> None:
    model, step, f, x = Twins(), wl.jit(grown), wl.jit(_dot), wl.ones(16)
    at_rest(lambda: (step(model), f(model, x)))
    ended, wrong = threading.Event(), []

    def steps() -> None:
        with wl.using_backend("native"):
            while not ended.is_set():
                step(model)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    thread = threading.Thread(target=steps)
    thread.start()
    try:
        kept: list[Any] = []
        for i in range(400):
            kept.append(f(model, x))
            if i % 3 == 0:
                f(model, x)
            if len(kept) > i % 5:
                loss = kept.pop(0)
                loss.backward()
                a, b = np.array(model.a.grad), np.array(model.b.grad)
                model.a.zero_grad(), model.b.zero_grad()
                if not (a == b).all() or not (a == a[0]).all() or (a**2).sum() != loss.item():
                    wrong.append((a, b, loss))
    finally:
        ended.set()
        thread.join()
        sys.setswitchinterval(interval)
    assert not wrong
    assert not runs
    assert not rest.runs


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_an_interrupted_call_leaves_nothing_behind() -> None:
    model, step, f, x, place, end = Twins(), wl.jit(grown), wl.jit(_dot), wl.ones(16), 1, ""
    at_rest(lambda: (step(model), f(model, x)))
    while end != THROUGH:
        f(model, x), step(model), f(model, x)
        end = _interrupted(functools.partial(f, model, x), place)
        assert not runs
        assert not rest.runs
        assert not rest.snapshots
        loss = f(model, x)
        step(model)
        loss.backward()
        a, b = np.array(model.a.grad), np.array(model.b.grad)
        np.testing.assert_array_equal(a, b)
        assert (a**2).sum() == loss.item()
        np.testing.assert_array_equal(np.array(model.a), a + 1)
        model.a.zero_grad(), model.b.zero_grad()
        del loss
        place += 1
    assert place > 3
