"""Sparse products and segments in native code: what is refused, long lines, lines of every kind, no messages stored."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import wonderland as wl
from tests.engines.engines import native, on_threads
from wonderland.core.primitive import TABLE
from wonderland.engines.native.steps import Fallback
from wonderland.engines.numpy.evaluate import evaluate
from wonderland.errors import IndexOutOfRange

Array = np.ndarray[Any, Any]


def pattern(rows: Array, columns: Array, shape: tuple[int, int]) -> wl.sparse.Pattern:
    return wl.sparse.Pattern.of(rows, columns, shape)


def of(lines: wl.sparse.Incidence) -> list[wl.Tensor]:
    return [lines.ptr, lines.owner, lines.order, lines.other]


def changed(x: wl.Tensor, place: int, value: int) -> wl.Tensor:
    data = np.array(x)
    data[place] = value
    return wl.asarray(data)


@pytest.mark.parametrize("place, value", [(0, -3), (2, 50), (3, 0), (5, 11)])
@pytest.mark.parametrize("size", [10, 4000])
def test_ptr_that_does_not_rise_is_refused_as_numpy_refuses_it(place: int, value: int, size: int) -> None:
    ids = np.sort(np.arange(size) % 5)
    lines = wl.sparse.Incidence.of(ids, 5)
    ptr = changed(lines.ptr, place, value if value < 11 else size + 1)
    x = wl.ones((size, 3))
    f = TABLE["segment_sum"]
    with pytest.raises(IndexOutOfRange) as plain:
        f(x, ptr, lines.owner, lines.order, in_order=True)
    with pytest.raises(IndexOutOfRange) as compiled:
        wl.jit(lambda x, p: f(x, p, lines.owner, lines.order, in_order=True))(x, ptr)
    assert str(plain.value).splitlines()[0] == str(compiled.value).splitlines()[0]
    assert "are no range within" in str(plain.value)


@pytest.mark.parametrize("which", ["other", "order"])
@pytest.mark.parametrize("bad", [40, -41, 2**31 - 1])
def test_indices_out_of_range_are_refused_as_numpy_refuses_them(which: str, bad: int) -> None:
    rng = np.random.default_rng(0)
    p = pattern(rng.integers(0, 30, 40), rng.integers(0, 40, 40), (30, 40))
    rows = of(p.rows)
    place = {"order": 2, "other": 3}[which]
    rows[place] = changed(rows[place], 17, bad)
    f = TABLE["sparse_matmul"]
    order = (p.rows.sorted, p.cols.sorted)
    args = (wl.ones(40), wl.ones((40, 5)))
    with pytest.raises(IndexOutOfRange) as plain:
        f(*args, *rows, *of(p.cols), in_order=order)
    with pytest.raises(IndexOutOfRange) as compiled:
        wl.jit(lambda v, x, *r: f(v, x, *r, *of(p.cols), in_order=order))(*args, *rows)
    assert str(plain.value).splitlines()[0] == str(compiled.value).splitlines()[0]


def test_negative_indices_count_from_the_end() -> None:
    p = pattern(np.array([0, 1]), np.array([2, 0]), (2, 3))
    rows = of(p.rows)
    rows[3] = wl.asarray(np.array([-1, -3], np.int32))
    x = wl.asarray(np.arange(6.0).reshape(3, 2))
    f = lambda x: TABLE["sparse_matmul"](wl.ones(2, dtype=x.dtype), x, *rows, *of(p.cols), in_order=(True, False))
    np.testing.assert_array_equal(f(x), [[4.0, 5.0], [0.0, 1.0]])
    np.testing.assert_array_equal(wl.jit(f)(x), [[4.0, 5.0], [0.0, 1.0]])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_line_with_very_many_entries_is_summed_in_parts(dtype: Any) -> None:
    """A running sum of 300,000 numbers near 1 in float32 would be off by 1e-4 and more."""
    count = 300_000
    rng = np.random.default_rng(0)
    x = rng.uniform(0.9, 1.1, (count, 3)).astype(dtype)
    lines = wl.sparse.Incidence.of(np.minimum(np.arange(count), 1), 3)
    found = np.asarray(wl.jit(wl.sparse.segment_sum)(wl.asarray(x), lines))
    wanted = x.astype(np.longdouble)[1:].sum(0)
    np.testing.assert_allclose(found[1].astype(np.float64), wanted.astype(np.float64), rtol=1e-6)
    np.testing.assert_array_equal(found[0], x[0])
    np.testing.assert_array_equal(found[2], 0)


def test_sums_of_half_precision_are_made_in_float32() -> None:
    lines = wl.sparse.Incidence.of(np.zeros(10_000, int), 1)
    x = wl.full((10_000, 2), 1.0, dtype=wl.float16)
    for f in (wl.sparse.segment_sum, wl.jit(wl.sparse.segment_sum)):
        np.testing.assert_array_equal(f(x, lines), np.full((1, 2), 10_000, np.float16))


@pytest.mark.parametrize("special", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_stays_in_its_lines(special: float) -> None:
    p = pattern(np.array([0, 0, 1, 2]), np.array([0, 1, 1, 2]), (4, 3))
    x = np.ones((3, 20))
    x[1] = special
    for f in (wl.sparse.matmul, wl.jit(wl.sparse.matmul)):
        found = np.asarray(f(wl.ones(4, dtype=wl.float64), p, wl.asarray(x)))
        assert not np.isfinite(found[:2]).any()
        np.testing.assert_array_equal(found[2:], [[1.0] * 20, [0.0] * 20])


@pytest.mark.parametrize("features", [1, 7, 16, 64, 100, 500])
@pytest.mark.parametrize("hub", [0, 3000])
def test_bits_do_not_depend_on_threads(features: int, hub: int) -> None:
    rng = np.random.default_rng(features)
    rows = np.concatenate([np.full(hub, 11), rng.integers(0, 3000, 20_000)])
    columns = rng.integers(0, 2000, len(rows))
    p = pattern(rows, columns, (3000, 2000))
    v, x = rng.normal(size=len(rows)).astype(np.float32), rng.normal(size=(2000, features)).astype(np.float32)

    def f(v: wl.Tensor, x: wl.Tensor) -> tuple[wl.Tensor, ...]:
        y = wl.sparse.matmul(v, p, x)
        return y, wl.sparse.sampled_matmul(y, x, p), wl.sparse.segment_max(wl.sparse.gather(x, p.cols), p.rows)

    program, arrays = native(f, v, x)
    with wl.debug.filled_memory():
        found = on_threads(program, arrays, (1, 2, 3, 7))
    for got, want in zip(found, evaluate(program.graph, arrays), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4 * np.abs(want[np.isfinite(want)]).max())


@pytest.mark.parametrize("features", [1, 8, 24])
def test_narrow_expressions_are_computed_once_before_they_are_read_in_another_order(features: int) -> None:
    rng = np.random.default_rng(features)
    ids = rng.integers(0, 900, 20_000)
    lines = wl.sparse.Incidence.of(ids, 900)
    assert not lines.sorted
    a, b = (rng.normal(size=(20_000, features)).astype(np.float32) for _ in range(2))

    def f(a: wl.Tensor, b: wl.Tensor) -> wl.Tensor:
        return wl.sparse.segment_sum(a * b - wl.sparse.gather(wl.ones((900, features)), lines), lines)

    program, arrays = native(f, a, b)
    with wl.debug.filled_memory():
        (found,) = on_threads(program, arrays, (1, 2, 3))
    want = np.zeros((900, features))
    np.add.at(want, ids, a.astype(np.float64) * b - 1)
    np.testing.assert_allclose(found, want, atol=1e-4)
    stored = program.arena_bytes >= a.nbytes
    assert stored == (features <= 16)  # a row of a line of the cache, 64 bytes; wider ones are read where they are


def test_messages_along_edges_are_not_stored() -> None:
    """Products, scores, softmax and messages of a layer with their gradients: memory is that of nodes and of edges."""
    nodes, edges, features = 500, 20_000, 64
    rng = np.random.default_rng(0)
    p = pattern(np.sort(rng.integers(0, nodes, edges)), rng.integers(0, nodes, edges), (nodes, nodes))
    v, x = rng.normal(size=edges).astype(np.float32), rng.normal(size=(nodes, features)).astype(np.float32)

    def loss(v: wl.Tensor, x: wl.Tensor) -> wl.Tensor:
        return (wl.sparse.matmul(v, p, x) ** 2).sum()

    def attention(v: wl.Tensor, x: wl.Tensor) -> wl.Tensor:
        scores = wl.sparse.sampled_matmul(x, x, p) + v
        return (wl.sparse.matmul(wl.sparse.segment_softmax(scores, p.rows), p, x) ** 2).sum()

    def messages(v: wl.Tensor, x: wl.Tensor) -> wl.Tensor:
        sent = wl.relu(wl.sparse.gather(x, p.cols) * v[:, None] + wl.sparse.gather(x, p.rows))
        return (wl.sparse.segment_sum(sent, p.rows) ** 2).sum()

    for f in (loss, attention, messages):
        program, _ = native(wl.grad(f, argnums=(0, 1)), v, x)
        assert not any(isinstance(step, Fallback) for step in program.schedule.steps)
        assert program.arena_bytes < 4 * edges * features / 2, f.__name__  # half of the messages


def test_state_is_updated_where_it_lies_and_stays_as_it_was_after_an_error() -> None:
    rng = np.random.default_rng(0)
    p = pattern(np.sort(rng.integers(0, 50, 400)), rng.integers(0, 50, 400), (50, 50))
    weight = wl.nn.Parameter(wl.asarray(rng.normal(size=(50, 8)).astype(np.float32)))

    @wl.jit
    def step(weight: wl.nn.Parameter, ptr: wl.Tensor) -> wl.Tensor:
        def loss(w: wl.Tensor) -> wl.Tensor:
            sent = wl.sparse.gather(w, p.cols)
            total = TABLE["segment_sum"](sent, ptr, p.rows.owner, p.rows.order, in_order=p.rows.sorted)
            return (total**2).sum() + (wl.sparse.matmul(None, p, w) ** 2).sum()

        value, slope = wl.value_and_grad(loss)(weight + 0.0)
        weight.assign(weight - 1e-3 * slope)
        return value

    with wl.using_backend("native"):
        first = float(step(weight, p.rows.ptr))
        place = weight._outside._data.ctypes.data
        assert float(step(weight, p.rows.ptr)) < first
        assert weight._outside._data.ctypes.data == place
        before = np.array(weight)
        with pytest.raises(IndexOutOfRange, match="segment_sum: the entries of line 6"):
            step(weight, changed(p.rows.ptr, 7, 401))
        np.testing.assert_array_equal(weight, before)
