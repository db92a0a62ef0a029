"""Every pass of the compiler visits what a graph is made of a bounded number of times, however much is shared in it."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import wonderland as wl
from wonderland.core.primitive import Aval
from wonderland.engines.native import memory, pieces, values
from wonderland.engines.native.kernels import text as kernel_text
from wonderland.engines.native.machine import machine
from wonderland.engines.native.program import text_of
from wonderland.engines.native.schedule import Schedule
from wonderland.engines.native.steps import Control, Fallback, Label
from wonderland.engines.native.text import routine
from wonderland.ir.graph import Graph
from wonderland.ir.simplify import simplify
from wonderland.ir.stage import stage

F = wl.nn.functional
Shape = tuple[int, ...]
MOST = 400  # visits for each equation: an expression is small, and some ten passes go through it


def graph_of(f: Callable[..., Any], *shapes: Shape, dtype: Any = np.float32) -> Graph:
    avals = [Aval(shape, np.dtype(dtype)) for shape in shapes]
    return simplify(stage(lambda *xs: wl.tree.leaves(f(*xs)), avals).graph)


def texts(graph: Graph) -> list[str]:
    """All that the compiler does before LLVM: steps, memory, descriptions, and the texts of different routines."""
    schedule = Schedule(graph, machine().cpu)
    memory.plan(schedule)
    native = [step for step in schedule.steps if not isinstance(step, (Control, Fallback, Label))]
    return [text_of(step, schedule.cpu, "step") for step in {str(s.describe()): s for s in native}.values()]


class Visits:
    """How often a part of an expression is looked into."""

    def __init__(self) -> None:
        self.count = 0

    def of(self, graph: Graph) -> int:
        self.count = 0
        texts(graph)
        return self.count


@pytest.fixture
def visits(monkeypatch: pytest.MonkeyPatch) -> Visits:
    made = Visits()
    inside = values.inside

    def counted(value: Any) -> Any:
        made.count += 1
        return inside(value)

    for module in (values, routine, kernel_text):
        monkeypatch.setattr(module, "inside", counted)
    return made


# --- graphs that are small, and endless when they are read as trees


def squares(n: int, x: Any) -> Any:
    for _ in range(n):
        x = x * x + x
    return x


def choices(n: int, x: Any) -> Any:
    y = x + 1
    for _ in range(n):
        x, y = wl.where(x > y, x * y, x), wl.maximum(x, y)
    return x + y


def rows(n: int, x: Any) -> Any:
    for _ in range(n):
        x = x - wl.exp(x).sum(axis=-1, keepdims=True) * x
    return x


def turned(n: int, x: Any) -> Any:
    for _ in range(n):
        x = x.T * 0.5 + x
    return x


def gathered(n: int, x: Any) -> Any:
    i = wl.astype(x, wl.int64)
    for _ in range(n):
        i = i[i, i] + i
    return i


def after_product(n: int, x: Any) -> Any:
    return squares(n, x @ x)


def chain(n: int, x: Any) -> Any:
    for _ in range(n):
        x = wl.sin(x)
    return x


def unrolled(n: int, x: Any) -> Any:
    return wl.concatenate([x[i % 8] * i for i in range(n)])


SHARED = [squares, choices, rows, turned, gathered, after_product, chain, unrolled]


@pytest.mark.parametrize("f", SHARED)
def test_visits_grow_with_the_graph(f: Any, visits: Visits) -> None:
    small, large = (graph_of(lambda x, n=n: f(n, x), (8, 8)) for n in (60, 120))
    few, many = visits.of(small), visits.of(large)
    assert many < 2.4 * few
    assert many < MOST * len(large.equations)


@pytest.mark.parametrize("f", [squares, choices, rows, after_product])
def test_visits_of_gradients_grow_with_the_graph(f: Any, visits: Visits) -> None:
    small, large = (graph_of(wl.grad(lambda x, n=n: f(n, x).sum()), (8, 8)) for n in (20, 40))
    few, many = visits.of(small), visits.of(large)
    assert many < 2.4 * few
    assert many < MOST * len(large.equations)


def pooled(pool: Any, shape: Shape, *settings: Any, **options: Any) -> tuple[Any, Shape]:
    return (lambda x: pool(x, *settings, **options)), shape


POOLS = {
    "1d, 11": pooled(F.max_pool1d, (2, 40, 3), 11),
    "1d, 32": pooled(F.max_pool1d, (2, 40, 3), 32, 1),
    "2d, 3 2 1": pooled(F.max_pool2d, (2, 9, 9, 3), 3, stride=2, padding=1),
    "3d, ceil": pooled(F.max_pool3d, (1, 7, 7, 7, 2), 3, 2, ceil_mode=True),
    "means": pooled(F.avg_pool3d, (1, 7, 7, 7, 2), 3, 2, padding=1),
}


def layered(pool: Any) -> Any:
    """Convolution, batch normalisation and ReLU before a pool."""

    def f(x: Any) -> Any:
        axes = tuple(range(x.ndim - 1))
        weight = wl.ones((*(3,) * (x.ndim - 2), x.shape[-1], 4)) / 9
        y = {3: F.conv1d, 4: F.conv2d, 5: F.conv3d}[x.ndim](x, weight, padding=1)
        y = (y - y.mean(axis=axes)) / wl.sqrt(y.var(axis=axes) + 1e-5)
        return pool(F.gelu(y))

    return f


@pytest.mark.parametrize("name", POOLS)
@pytest.mark.parametrize("fused", [False, True])
def test_pooling_takes_a_few_visits_for_each_place_of_the_window(name: str, fused: bool, visits: Visits) -> None:
    pool, shape = POOLS[name]
    f = layered(pool) if fused else pool
    for g in (f, wl.grad(lambda x: (f(x) ** 2).sum())):
        assert visits.of(graph_of(g, shape)) < 20_000


def length(graph: Graph) -> int:
    return sum(map(len, texts(graph)))


def test_code_grows_with_the_window_and_not_with_what_is_pooled() -> None:
    short, long = (length(graph_of(lambda x, k=k: F.max_pool1d(wl.tanh(x), k), (64, 4))) for k in (8, 32))
    assert long < 4.5 * short
    # an expression is written out for the 27 places of a window only if it is short
    plain, dear = (length(graph_of(lambda x, f=f: F.max_pool3d(f(x), 3), (1, 9, 9, 9, 2))) for f in (abs, F.gelu))
    assert dear < 3 * plain


def test_a_chain_of_a_thousand_operations_needs_no_deep_stack() -> None:
    graphs = [graph_of(lambda x, f=f: f(1000, x), (8, 8)) for f in (chain, after_product)]
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(len(inspect.stack()) + 60)
    try:
        for graph in graphs:
            texts(graph)
    finally:
        sys.setrecursionlimit(limit)


def test_an_expression_is_changed_without_recursion() -> None:
    value: Any = values.whole(values.Buffer("input", 8, np.dtype(np.float32)), (8,))
    for _ in range(5000):
        value = values.Op("sin", [value], (8,), np.dtype(np.float32))
    deep = values.broadcast(value, (4, 8))
    assert len(values.parts(deep)) == 5001
    assert values.reshaped(deep, (2, 2, 8)) is not None
    assert [v.strides for v in values.leaves(deep)] == [(0, 1)]
    other = values.replaced(deep, lambda part: part if isinstance(part, values.View) else None)
    assert other is deep


# --- passes over steps, buffers and pieces


def test_parts_of_a_tensor_are_compared_with_their_neighbours(monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[Any] = []
    apart = pieces._apart
    monkeypatch.setattr(pieces, "_apart", lambda *args: compared.append(args) or apart(*args))
    f = wl.grad(lambda x: sum(wl.sin(x[i]) * i for i in range(80)).sum())
    graph = graph_of(f, (80, 3))
    Schedule(graph, machine().cpu)
    assert not compared
    x = wl.random.normal((80, 3), key=wl.random.key(0))
    np.testing.assert_allclose(np.asarray(wl.jit(f)(x)), np.arange(80)[:, None] * np.cos(np.asarray(x)), rtol=1e-5)


def test_many_small_buffers_do_not_overlap(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "COMPARED", 4)

    def loss(weights: Any, x: Any) -> Any:
        for w in weights:
            x = wl.tanh(x @ w)
        return (x * x).sum()

    weights = [wl.random.normal((n, n), key=wl.random.key(n)) for n in (5,) * 12]
    schedule = Schedule(graph_of(lambda x, *ws: wl.grad(loss)(list(ws), x), (3, 5), *[(5, 5)] * 12), machine().cpu)
    size = memory.plan(schedule)
    life = memory.lifetimes(schedule)
    planned = [b for b in life if b.kind in memory.PLANNED]
    assert len(planned) > 8
    for i, a in enumerate(planned):
        assert a.offset % memory.ALIGN == 0
        assert a.offset + a.nbytes <= size
        for b in planned[:i]:
            together = life[a][0] <= life[b][1] and life[b][0] <= life[a][1]
            assert not together or a.offset + a.nbytes <= b.offset or b.offset + b.nbytes <= a.offset
    x = wl.ones((3, 5)) / 5
    for got, want in zip(wl.jit(wl.grad(loss))(weights, x), wl.grad(loss)(weights, x), strict=True):
        np.testing.assert_allclose(np.asarray(got), np.asarray(want), rtol=1e-4, atol=1e-6)


def test_gathers_along_a_short_row_are_written_once() -> None:
    def picked(width: int) -> int:
        table, places = Aval((100,), np.dtype(np.float32)), Aval((width,), np.dtype(np.int64))
        graph = simplify(stage(lambda x, i: [(x[i] * 2).sum()], [table, places]).graph)
        return sum(len(text.splitlines()) for text in texts(graph))

    lanes = machine().cpu.lanes(4)
    assert picked(3 * lanes) < 1.5 * picked(lanes)
