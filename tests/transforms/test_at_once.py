"""Calls that are repeated at once, by native code or by Python: what has changed since the last one is noticed."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import gc
import os
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pytest

import wonderland as wl
from tools.interrupts import Counters, counted, numbers
from wonderland import nn
from wonderland.core.cell import rest
from wonderland.engines.native import bound
from wonderland.transforms.jit.environment import Environment
from wonderland.transforms.jit.recent import Recent
from wonderland.transforms.jit.traced import Traced, waiting

NATIVE, PYTHON = "function of C", "Python"


@pytest.fixture(autouse=True, params=[NATIVE, PYTHON])
def way(request: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    if request.param == PYTHON:
        monkeypatch.setattr(bound, "is_possible", lambda: False)
    with wl.using_backend("native"):
        yield request.param


class Slow:
    """How many calls went the long way."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count, real = 0, Traced.run

        def run(traced: Any, *args: Any) -> Any:
            self.count += 1
            return real(traced, *args)

        monkeypatch.setattr(Traced, "run", run)

    def during(self, f: Callable[[], object]) -> int:
        before = self.count
        f()
        return self.count - before


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> Slow:
    return Slow(monkeypatch)


def _same(f: Any, *args: Any) -> None:
    """f gives what its function does, several times."""
    for _ in range(3):
        found, wanted = wl.tree.leaves(f(*args)), wl.tree.leaves(f.__wrapped__(*args))
        assert len(found) == len(wanted)
        for a, b in zip(found, wanted, strict=True):
            assert a.dtype == b.dtype
            assert a.shape == b.shape
            np.testing.assert_allclose(a, b, rtol=1e-5)


def test_arguments_that_are_not_in_one_piece(slow: Slow) -> None:
    """They are copied on the way in, with and without state that is written, and differentiated later."""
    wide = wl.asarray(np.random.default_rng(0).normal(size=(5, 9)))
    pieces = (wide[:, :-1], wide[::-1, 1:], wl.ones((5, 8), dtype=wide.dtype))
    layer, layers = nn.Linear(8, 3, dtype=wide.dtype), [nn.Linear(8, 3, dtype=wide.dtype) for _ in range(2)]
    layers[1].load_state_dict(layers[0].state_dict())

    @wl.jit
    def forward(layer: Any, x: Any) -> Any:
        return wl.tanh(layer(x))

    def train(layer: Any, x: Any) -> Any:
        grads = wl.grad(lambda layer: (layer(x) ** 2).sum())(layer)
        layer.weight.assign(layer.weight - 0.01 * grads["weight"])

    step = wl.jit(train)
    wanted = [np.tanh(np.asarray(x) @ np.asarray(layer.weight) + np.asarray(layer.bias)) for x in pieces * 2]
    forward(layer, pieces[0])
    found: list[Any] = []
    assert slow.during(lambda: found.extend(forward(layer, x) for x in pieces * 2)) == 0
    for a, b in zip(found, wanted, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)
    for x in pieces * 2:
        step(layers[0], x)
        train(layers[1], x)
    np.testing.assert_allclose(layers[0].weight, layers[1].weight, rtol=1e-12)
    for x in pieces:
        step(layers[0], x)
    assert slow.during(lambda: [step(layers[0], x) for x in pieces * 2]) == 0
    x = wide[:, :-1].requires_grad_()
    for _ in range(3):
        x.grad = None
        forward(layer, x).sum().backward()
        weight, bias = np.asarray(layer.weight), np.asarray(layer.bias)
        want = (1 - np.tanh(np.asarray(x) @ weight + bias) ** 2) @ weight.T
        np.testing.assert_allclose(np.asarray(x.grad), want, rtol=1e-10)


class Config:
    """What users keep their settings in."""

    def __init__(self, **settings: Any) -> None:
        self.__dict__.update(settings)


@dataclass
class Part:
    factor: Any


class Careful(Config):
    """Its attributes are read by a function of Python."""

    def __getattribute__(self, name: str) -> Any:
        return object.__getattribute__(self, name)


@pytest.mark.parametrize("kind", [Config, Careful])
def test_settings_that_the_function_refers_to(kind: type[Config], slow: Slow) -> None:
    settings: Any = kind(scale=2.0, part=Part(3.0), sizes=[1.0, 2.0], names={"a": 1.0, "b": 2.0}, pair=(1, Part(2.0)))

    def total(x: Any) -> Any:
        names = sum((i + 1) * value for i, value in enumerate(settings.names.values()))
        return x * settings.scale * settings.part.factor + sum(settings.sizes) + names + settings.pair[1].factor

    f, x = wl.jit(total), wl.ones(3)
    f(x), f(x)
    known = Environment(f.__wrapped__).guard(Anything())  # type: ignore[arg-type]
    assert known == (kind is Config)  # whether native code can tell
    assert slow.during(lambda: _same(f, x)) == 0

    def change(what: Callable[[], object]) -> None:
        what()
        _same(f, x)

    change(lambda: setattr(settings, "scale", 5.0))
    change(lambda: setattr(settings.part, "factor", 7.0))
    change(lambda: setattr(settings, "part", Part(8.0)))
    change(lambda: settings.sizes.append(4.0))
    change(lambda: settings.sizes.__setitem__(0, 9.0))
    change(lambda: settings.names.update(a=5.0))
    change(lambda: settings.names.update(a=settings.names.pop("a")))  # the same in another order
    change(lambda: settings.names.update(c=6.0))
    change(lambda: setattr(settings.pair[1], "factor", 11.0))
    change(lambda: setattr(settings, "more", 1.0))
    change(lambda: setattr(settings, "__dict__", {**vars(settings), "scale": 6.0}))


class Anything:
    """Takes all guards."""

    def __getattr__(self, name: str) -> Callable[..., int]:
        return lambda *args: 0


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "bfloat16", "complex64", "bool"])
def test_every_type_and_shape(dtype: str) -> None:
    f = wl.jit(lambda x, y: (x == y, wl.where(x == y, x, y)))
    for shape in ((), (3,), (0, 2), (2, 3, 4), (3,)):
        x, y = wl.ones(shape, dtype=dtype), wl.zeros(shape, dtype=dtype)
        _same(f, x, y)
        _same(f, y, x)


@pytest.mark.parametrize(
    "tree",
    [
        lambda x: x,
        lambda x: (x, x + 1),
        lambda x: [x, (x, x * 2)],
        lambda x: {"b": x, "a": {"c": x - 1}},
        lambda x: (x, None),
    ],
)
def test_trees_go_in_and_come_out(tree: Any, slow: Slow) -> None:
    f = wl.jit(lambda t: wl.tree.map(lambda leaf: leaf * 2 + 1, t))
    first, second = tree(wl.arange(4.0)), tree(wl.ones(4))
    f(first), f(second)
    assert slow.during(lambda: _same(f, first)) == 0
    assert slow.during(lambda: _same(f, second)) == 0
    _same(f, tree(wl.ones(5)))


class Ends(NamedTuple):
    low: Any
    high: Any


@dataclass
class Scaled:
    values: Any
    ends: Ends
    factor: float = field(metadata={"static": True})


class Shifted:
    """A node with functions of its own: `by` is static."""

    def __init__(self, values: Any, by: float) -> None:
        self.values, self.by = values, by


wl.tree.register(Shifted, lambda x: ((x.values,), x.by), lambda by, values: Shifted(values[0], by))


def test_nodes_of_other_kinds(slow: Slow) -> None:
    def tree(x: Any, factor: float = 2.0, by: float = 1.0) -> Any:
        return Scaled(Shifted(x, by), Ends(x + 1, [x - 1, None]), factor)

    def total(t: Any) -> Any:
        return t.factor * (t.values.values + t.values.by) * t.ends.high[0] - t.ends.low

    f = wl.jit(total)
    for x in (wl.arange(4.0), wl.ones(4)):
        given = tree(x)
        f(given)
        assert slow.during(functools.partial(_same, f, given)) == 0
        assert slow.during(functools.partial(_same, f, tree(x + 1))) == 0
    for other in (tree(x, factor=3.0), tree(x, by=5.0), tree(wl.ones(5)), Scaled(tree(x).values, Ends(x, [x]), 2.0)):
        _same(f, other)
    given = tree(x)
    _same(f, given)
    given.factor, given.ends = 7.0, Ends(x + 5, [x])  # what is static has changed, and what is not
    _same(f, given)


def test_graphs_are_arguments_like_others(slow: Slow) -> None:
    f = wl.jit(lambda graph, x: wl.sparse.matmul(graph.weight, graph.pattern, x) + graph.x)
    g = wl.jit(wl.sparse.matmul)

    def graph(weights: list[float], edges: Any = ((0, 1), (1, 2), (2, 0), (2, 2))) -> Any:
        return wl.graphs.Graph(3, edges, weights=weights, x=wl.ones((3, 2)), directed=True)

    x = wl.arange(6.0).reshape(3, 2)
    one, two = graph([1.0, 2.0, 3.0, 4.0]), graph([5.0, 6.0, 7.0, 8.0])
    f(one, x), g(one.weight, one.pattern, x)
    assert slow.during(lambda: (_same(f, one, x), _same(f, two, x))) == 0
    assert slow.during(lambda: (_same(g, two.weight, one.pattern, x), _same(g, one.weight, two.pattern, x))) == 0
    other = graph([1.0, 2.0, 3.0, 4.0], ((0, 2), (2, 1), (1, 0), (0, 0)))
    _same(f, other, x)
    _same(g, other.weight, other.pattern, x)


def test_numbers_and_arrays(slow: Slow) -> None:
    f = wl.jit(lambda x, y, flag: x * y if flag else x - y)
    f(wl.ones(3), 2.0, True)
    assert slow.during(lambda: _same(f, wl.ones(3), 3.5, True)) == 0
    _same(f, wl.ones(3), 3, True)
    _same(f, np.arange(3.0, dtype=np.float32), 3.5, True)
    _same(f, wl.ones(3), 3.5, False)
    _same(f, wl.ones(3), np.float32(2), True)


def test_arrays_that_are_not_in_one_piece() -> None:
    f, x = wl.jit(lambda x: x * 2), np.arange(12.0, dtype=np.float32).reshape(3, 4)
    for view in (x, x.T.copy().T, x[:, ::-1], x[::-1], np.broadcast_to(x[0], (3, 4))):
        _same(f, wl.asarray(view))


def test_dicts_of_other_keys() -> None:
    f, x = wl.jit(lambda d: sum(d.values())), wl.ones(2)
    _same(f, {"a": x, "b": 2 * x})
    _same(f, {"b": 2 * x, "a": x})
    _same(f, {"a": x, "c": 2 * x})
    _same(f, {"a": x, "b": x, "c": 2 * x})


FACTOR = 2.0


def test_what_the_function_refers_to(monkeypatch: pytest.MonkeyPatch) -> None:
    shift, tensor, layer = 1.0, wl.ones(2), nn.Linear(2, 2)
    f = wl.jit(lambda x: layer(x * FACTOR + shift) + tensor)
    x = wl.ones(2)
    with wl.no_grad():
        _same(f, x)
        shift = 3.0
        _same(f, x)
        monkeypatch.setattr(sys.modules[__name__], "FACTOR", 5.0)
        _same(f, x)
        tensor[0] = 7.0
        _same(f, x)
        layer.weight.assign(wl.ones((2, 2)))
        _same(f, x)
        layer.weight = nn.Parameter(wl.full((2, 2), 3.0))
        _same(f, x)


def test_settings_and_records() -> None:
    f, x = wl.jit(lambda x: (x * x).sum()), wl.ones(3)
    _same(f, x)
    with wl.no_grad():
        _same(f, x)
    with wl.using_backend("numpy"):
        _same(f, x)
    recorded = wl.ones(3).requires_grad_()
    f(recorded).backward()
    np.testing.assert_array_equal(recorded.grad, [2, 2, 2])
    np.testing.assert_array_equal(wl.grad(f)(x), [2, 2, 2])
    np.testing.assert_array_equal(wl.vmap(f)(wl.ones((2, 3))), [3, 3])
    before = wl.get_threads()
    wl.set_threads(1)
    _same(f, x)
    wl.set_threads(before)
    _same(f, x)


def test_every_block_of_the_same_settings_is_the_same(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Native code knows them by what was chosen; nothing is prepared anew."""
    prepared, real = [0], Recent._enter

    def enter(self: Any, *args: Any) -> None:
        prepared[0] += 1
        real(self, *args)

    monkeypatch.setattr(Recent, "_enter", enter)
    f, x = wl.jit(lambda x: x * x), wl.ones(3).requires_grad_()

    def block() -> Any:
        with wl.no_grad():
            return f(x)

    assert not any(block().requires_grad for _ in range(3))
    prepared[0] = 0
    assert not any(block().requires_grad for _ in range(10))
    assert prepared[0] == (0 if way == NATIVE else 10)
    assert f(x).requires_grad
    assert not block().requires_grad
    assert [f(x).requires_grad, wl.vmap(f)(x).requires_grad, f(x).requires_grad] == [True] * 3
    np.testing.assert_array_equal(wl.jacobian(f)(wl.ones(3)), 2 * np.eye(3))
    with wl.using_backend("numpy"):
        assert f(x).requires_grad


def test_a_call_inside_a_rule_is_not_taken_for_one_outside() -> None:
    f, seen = wl.jit(lambda x: x * 2), []

    @wl.custom_vjp
    def g(x: Any) -> Any:
        return f(x)

    def forward(x: Any) -> tuple[Any, None]:
        seen.append([f(x) for _ in range(3)])
        return f(x), None

    g.defvjp(forward, lambda residuals, ct: (5 * f(ct),))
    for _ in range(3):
        f(wl.ones(3))
        np.testing.assert_array_equal(wl.grad(lambda x: g(x).sum())(wl.ones(3)), np.full(3, 10))
        np.testing.assert_array_equal(wl.jit(wl.grad(lambda x: g(x).sum()))(wl.ones(3)), np.full(3, 10))
    assert len(seen) > 3


def _pair() -> tuple[Any, Any, Any]:
    model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
    optimizer = wl.optim.Adam(model, lr=0.1)

    @wl.jit
    def step(model: Any, optimizer: Any, x: Any) -> Any:
        loss, grads = wl.value_and_grad(lambda model: (model(x) ** 2).mean())(model)
        optimizer.step(grads)
        return loss

    return model, optimizer, step


def test_state_at_rest_is_trained_as_state_that_is_looked_at() -> None:
    x, results = wl.asarray(np.random.default_rng(0).normal(size=(5, 3)).astype(np.float32)), []
    for looks in (False, True):
        wl.random.seed(0)
        model, optimizer, step = _pair()
        losses = []
        for i in range(12):
            losses.append(step(model, optimizer, x).item())
            if looks and i % 2:
                [p.value for p in model.parameters()]
        results.append((losses, [np.array(p) for p in model.parameters()]))
    np.testing.assert_array_equal(results[0][0], results[1][0])
    for a, b in zip(results[0][1], results[1][1], strict=True):
        np.testing.assert_array_equal(a, b)


def test_who_holds_a_value_keeps_it() -> None:
    model, optimizer, step = _pair()
    x = wl.ones((5, 3))
    for _ in range(3):
        step(model, optimizer, x)
    for take in (
        lambda: model[0].weight.value,
        lambda: model[0].weight.numpy(),
        lambda: model[0].weight + 0,
        lambda: np.asarray(model[0].weight),
        lambda: model.state_dict()["0.weight"],
    ):
        held = take()
        copy = np.array(held)
        step(model, optimizer, x)
        step(model, optimizer, x)
        np.testing.assert_array_equal(held, copy)
        del held
        step(model, optimizer, x)


def test_what_is_put_into_cells_counts(slow: Slow) -> None:
    model, step, x = Counters(), wl.jit(counted), numbers(12, 12)
    for _ in range(3):
        step(model, x)
    assert slow.during(lambda: step(model, x)) == 0
    for cell in (model.steps, model.a, model.b, model.c):
        cell.assign(wl.full_like(cell.value, 9))
    step(model, x)
    step(model, x)
    assert model.check() == 11


def test_several_functions_and_models_take_turns(slow: Slow) -> None:
    model, optimizer, step = _pair()
    x = wl.ones((5, 3))
    model.requires_grad_(True)
    evaluate = wl.jit(lambda model, x: model(x).sum())

    def turn() -> float:
        with wl.no_grad():
            step(model, optimizer, x)
            return float(evaluate(model, x))

    values = [turn() for _ in range(3)]
    assert slow.during(lambda: values.append(turn())) == 0
    assert len(set(values)) == 4  # each sees what the other wrote
    other, other_optimizer, _ = _pair()
    step(other, other_optimizer, x)
    before = [np.array(p) for p in other.parameters()]
    step(model, optimizer, x)
    for p, b in zip(other.parameters(), before, strict=True):
        np.testing.assert_array_equal(p, b)


def test_nothing_is_kept_alive_or_leaks() -> None:
    model, optimizer, step = _pair()
    x = wl.ones((5, 3))
    for _ in range(5):
        step(model, optimizer, x)
    objects: list[Any] = [x, x._data, x._data.dtype, wl.Tensor, step._known.recent]
    before = [sys.getrefcount(o) for o in objects]
    for _ in range(200):
        step(model, optimizer, x)
    assert max(abs(sys.getrefcount(o) - b) for o, b in zip(objects, before, strict=True)) < 20
    dead = [weakref.ref(model), weakref.ref(optimizer), weakref.ref(model[0].weight)]
    del model, optimizer
    gc.collect()
    assert [d() for d in dead] == [None] * 3
    others = _pair()
    step(others[0], others[1], x)


def test_errors_leave_all_as_it_was() -> None:
    f = wl.jit(lambda x, i: x[i] * 2)
    x, good, bad = wl.arange(5.0), wl.tensor([1, 2]), wl.tensor([1, 9])
    for _ in range(3):
        np.testing.assert_array_equal(f(x, good), [2, 4])
    for _ in range(2):
        with pytest.raises(wl.errors.IndexOutOfRange):
            f(x, bad)
        np.testing.assert_array_equal(f(x, good), [2, 4])


def test_threads_share_a_step() -> None:
    model, step, x = Counters(), wl.jit(counted), numbers(12, 12)
    look = wl.jit(lambda model: (model.a.sum(), model.b.sum()))
    step(model, x), look(model)
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    wrong: list[object] = []

    def steps() -> None:
        with wl.using_backend("native"):
            for _ in range(200):
                step(model, x)
                a, b = look(model)
                if a.item() * 12 != b.item():
                    wrong.append((a, b))

    try:
        threads = [threading.Thread(target=steps) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
            assert not thread.is_alive()
    finally:
        sys.setswitchinterval(interval)
    assert not wrong
    model.check()  # steps of threads at a time may be lost, but not by halves
    assert not rest.runs


class Large(nn.Module):
    def __init__(self) -> None:
        self.weight = nn.Buffer(wl.zeros((300, 300)))
        self.count = nn.Buffer(wl.zeros(()))


def _slowly(model: Any, x: Any) -> Any:
    """A step that takes some milliseconds, after which both buffers are one larger."""
    zero = ((x @ x) @ (x @ x)).sum() * 0
    model.weight.assign(model.weight + 1 + zero)
    model.count.assign(model.count + 1 + zero)
    return zero


def test_a_value_that_is_replaced_while_native_code_works_on_it() -> None:
    model, step, x = Large(), wl.jit(_slowly), wl.zeros((300, 300))
    for _ in range(3):
        step(model, x)
    ended = threading.Event()

    def disturb() -> None:
        while not ended.is_set():
            model.weight.settle(wl.full((300, 300), -100.0))  # which a step replaces whole, if it is under way
            model.count.settle(wl.full((), -100.0))

    thread = threading.Thread(target=disturb)
    thread.start()
    try:
        with wl.using_backend("native"):
            for _ in range(20):
                step(model, x)
    finally:
        ended.set()
        thread.join()
    weight, count = np.array(model.weight), np.array(model.count)
    assert len(np.unique(weight)) == 1
    step(model, x)
    np.testing.assert_array_equal(np.array(model.weight), weight + 1)
    np.testing.assert_array_equal(np.array(model.count), count + 1)
    assert not rest.runs


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_forked_child_goes_on() -> None:
    model, step, x = Counters(), wl.jit(counted), numbers(12, 12)
    for _ in range(3):
        step(model, x)
    child = os.fork()
    if child == 0:
        try:
            for _ in range(3):
                step(model, x)
            os._exit(0 if model.check() == 6 else 1)
        finally:
            os._exit(2)
    assert os.waitpid(child, 0)[1] == 0
    step(model, x)
    assert model.check() == 4


def test_long_reads_see_state_before_or_after_a_step_and_nothing_between() -> None:
    model, x = Large(), wl.zeros(())
    step = wl.jit(lambda model: model.weight.assign(model.weight + 1))
    look = wl.jit(lambda model, x: (model.weight.min() + x.sum(), wl.sort(model.weight.reshape(-1))[-1]))
    sizes = [wl.zeros((n,)) for n in (1, 2)]  # in turn: not like the last call
    for x in sizes:
        step(model), look(model, x)
    ended, wrong = threading.Event(), []

    def steps() -> None:
        with wl.using_backend("native"):
            while not ended.is_set():
                step(model)

    thread = threading.Thread(target=steps)
    thread.start()
    try:
        for i in range(40):
            low, high = look(model, sizes[i % 2])
            if low.item() != high.item():
                wrong.append((low, high))
    finally:
        ended.set()
        thread.join()
    assert not wrong
    assert not waiting


class Keeping(nn.Module):
    """What depends on its weight alone is worth keeping."""

    def __init__(self) -> None:
        self.weight = nn.Parameter(wl.asarray(np.random.default_rng(0).normal(size=(70, 70)).astype(np.float32)) / 9)

    def forward(self, x: Any) -> Any:
        return x @ (self.weight.T @ self.weight)


@wl.no_grad()
def test_what_is_kept_of_parameters_is_never_older_than_they_are(slow: Slow) -> None:
    model, x = Keeping(), wl.ones((2, 70))
    optimizer = wl.optim.SGD(model, lr=0.1)
    forward = wl.jit(lambda model, x: model(x))

    @wl.jit
    def step(model: Any, optimizer: Any, x: Any) -> Any:
        loss, grads = wl.value_and_grad(lambda model: (model(x) ** 2).mean())(model)
        optimizer.step(grads)
        return loss

    weight = np.array(model.weight)

    def both(calls: int) -> None:
        """Compiled calls, without a look at what the cells hold in between."""
        for _ in range(calls):
            found = forward(model, x)
        wanted = np.ones((2, 70), np.float32) @ (weight.T @ weight)
        np.testing.assert_allclose(found, wanted, rtol=1e-3, atol=1e-3)

    both(3)
    program: Any = forward.last_trace.graph.programs["native"]  # type: ignore[union-attr]
    assert program.lasting.ready
    assert slow.during(lambda: both(3)) == 0
    rng = np.random.default_rng(1)
    for what in ("step", "assign", "item", "load", "step", "both", "step"):
        if what in ("step", "both"):
            for _ in range(3):
                step(model, optimizer, x)
                if what == "both":
                    forward(model, x)
        new = rng.normal(size=(70, 70)).astype(np.float32) / 9
        if what == "assign":
            model.weight.assign(wl.asarray(new))
        elif what == "item":
            model.weight[3] = wl.asarray(new[3])
        elif what == "load":
            model.load_state_dict({"weight": wl.asarray(new)})
        kept = forward(model, x)
        weight = np.array(model.weight)
        np.testing.assert_allclose(kept, np.ones((2, 70)) @ (weight.T @ weight), rtol=1e-3, atol=1e-3)
        both(3)
    del kept
    gone = weakref.ref(program.lasting.found([model.weight.value._data]))
    assert gone() is not None
    model.weight.assign(wl.zeros((70, 70)))
    gc.collect()
    assert gone() is None  # nobody holds what is of no use


def test_an_error_after_state_was_computed_leaves_it(slow: Slow) -> None:
    @wl.jit
    def step(model: Any, x: Any, i: Any) -> Any:
        model.a.assign(model.a[::-1] + x)  # is not written in place
        return x[i]

    model, x = Counters(), wl.arange(12.0)
    for i in range(3):
        step(model, x, wl.tensor(i))
    before = np.array(model.a)
    step(model, x, wl.tensor(0)), step(model, x, wl.tensor(1))

    def fails() -> None:
        with pytest.raises(wl.errors.IndexOutOfRange):
            step(model, x, wl.tensor(70))

    assert slow.during(fails) == 0
    np.testing.assert_array_equal(model.a, before + 11)


def test_other_contexts_have_their_own_settings() -> None:
    f, x = wl.jit(lambda x: x * 2), wl.ones(3).requires_grad_()

    async def run(enabled: bool) -> list[bool]:
        found = []
        with contextlib.nullcontext() if enabled else wl.no_grad():
            for _ in range(4):
                found.append(f(x).requires_grad)
                await asyncio.sleep(0)
        return found

    async def both() -> list[list[bool]]:
        return [*await asyncio.gather(run(True), run(False))]

    assert asyncio.run(both()) == [[True] * 4, [False] * 4]
