"""The native steps of matrix products against NumPy's in float64, for many shapes, layouts and epilogues."""

from __future__ import annotations

import ctypes
import itertools
import math
import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import wonderland as wl
from wonderland.core import dtypes
from wonderland.engines.native.machine import machine
from wonderland.engines.native.processor import Processor
from wonderland.engines.native.products.blocks import Blocks
from wonderland.engines.native.products.epilogue import Epilogue
from wonderland.engines.native.products.packing import Pack, packed
from wonderland.engines.native.products.product import Product
from wonderland.engines.native.products.steps import product_steps
from wonderland.engines.native.text.routine import Routine, slots_of
from wonderland.engines.native.tuning import FAR_PARTS
from wonderland.engines.native.values import Buffer, Const, Hole, Op, Shape, Value, View, as_array, broadcast, whole

Memory = dict[Buffer, Any]
HOST = machine().cpu


def run(steps: list[Any], memory: Memory, backwards: bool = False, cpu: Processor = HOST) -> None:
    """Run all chunks of the steps; memory that is not given starts as NaN."""
    for step in steps:
        for view in step.views:
            memory.setdefault(view.buffer, np.full(view.buffer.size, np.nan, view.buffer.dtype))
    buffers = list(memory)
    table = np.array([memory[b].ctypes.data for b in buffers], np.int64)
    for step in steps:
        assert {v.buffer for v in step.views} == {*step.reads, *step.writes}
        slots = slots_of(step.views)
        pairs = np.array([(buffers.index(b), offset) for b, offset in slots], np.int64)
        routine = Routine(slots, cpu)
        step.emit(routine)
        address = machine().function(f"{cpu} {step.describe()}", routine.text)
        call = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)(address)
        chunks = range(step.chunks)
        for chunk in reversed(chunks) if backwards else chunks:
            call(table.ctypes.data, pairs.ctypes.data, chunk)


def matrix(
    memory: Memory, lead: Shape, m: int, n: int, layout: str, shared: Shape = (), dtype: Any = wl.float32
) -> tuple[View, Any]:
    """A view of random numbers: rows, columns, or neither along memory; axes in `shared` repeat the same matrices."""
    rank = len(lead)
    shape = [1 if axis in shared else size for axis, size in enumerate(lead)] + [m, n]
    steps = [1, 1]  # between the elements that belong to the view
    order = list(range(rank + 2))
    if layout == "columns":
        order[-2:] = order[:-3:-1]
    elif layout == "apart":
        steps = [2, 3]
    elif layout == "inside":  # columns of a wider matrix
        shape[-1] += 5
    extent = [size * step for size, step in zip(shape, [1] * rank + steps, strict=True)]
    strides, step = [0] * (rank + 2), 1
    for axis in reversed(order):
        strides[axis] = step
        step *= extent[axis]
    strides[-2:] = [strides[-2] * steps[0], strides[-1] * steps[1]]
    for axis in shared:
        strides[axis] = 0
    offset = 3
    buffer = Buffer("input", step + offset, dtypes.as_dtype(dtype))
    random = np.random.default_rng([m, n, rank])
    memory[buffer] = random.standard_normal(buffer.size).astype(buffer.dtype)
    view = View(buffer, (*lead, m, n), tuple(strides), offset)
    return view, as_array(view, memory[buffer])


def assert_close(got: Any, x: Any, y: Any, dtype: Any = wl.float32) -> None:
    x, y = np.asarray(x, np.float64), np.asarray(y, np.float64)
    bound = (x.shape[-1] + 2) * np.finfo(dtype).eps * (np.abs(x) @ np.abs(y)) + 1e-30
    assert np.all(np.abs(got - x @ y) <= bound)


def product(
    memory: Memory, x: View, y: View, backwards: bool = False, cpu: Processor = HOST, fixed: Sequence[Buffer] = ()
) -> tuple[Any, list[Any]]:
    """The plain product of two views, of which some may be the same for many products."""
    hole = Hole((*x.shape[:-1], y.shape[-1]), x.dtype)
    out = whole(Buffer("output", math.prod(hole.shape), x.dtype), hole.shape)
    steps = product_steps(cpu, x, y, hole, [(out, hole)], fixed)
    run(steps, memory, backwards, cpu)
    return memory[out.buffer].reshape(hole.shape), steps


def checked(
    m: int,
    k: int,
    n: int,
    lead: Shape = (),
    layouts: str = "rows rows",
    dtype: Any = wl.float32,
    cpu: Processor = HOST,
    fixed: bool = False,
) -> list[Any]:
    memory: Memory = {}
    first, second = layouts.split()
    x, left = matrix(memory, lead, m, k, first, dtype=dtype)
    y, right = matrix(memory, lead, k, n, second, dtype=dtype)
    got, steps = product(memory, x, y, cpu=cpu, fixed=[y.buffer] if fixed else [])
    assert_close(got, left, right, dtype)
    return steps


layouts = st.sampled_from(["rows", "columns", "apart", "inside"])
sizes = st.one_of(st.integers(1, 8), st.sampled_from([15, 16, 17, 31, 32, 33, 47, 64, 97, 131]))


@given(sizes, sizes, sizes, layouts, layouts, st.sampled_from([(), (1,), (3,), (2, 3)]), st.data())
def test_products_of_any_shape_and_layout(
    m: int, k: int, n: int, first: str, second: str, lead: Shape, data: st.DataObject
) -> None:
    axes = st.sets(st.integers(0, len(lead) - 1)) if lead else st.just(set[int]())
    dtype = data.draw(st.sampled_from([wl.float32, wl.float64]))
    memory: Memory = {}
    x, left = matrix(memory, lead, m, k, first, tuple(data.draw(axes)), dtype)
    y, right = matrix(memory, lead, k, n, second, tuple(data.draw(axes)), dtype)
    fixed = data.draw(st.sampled_from([[], [x.buffer], [y.buffer], [x.buffer, y.buffer]]))
    got, _ = product(memory, x, y, fixed=fixed)
    assert_close(got, left, right, dtype)


KINDS = [
    (300, 64, 200, "rows rows"),
    (67, 700, 131, "rows rows"),  # sums in several parts
    (67, 700, 131, "inside inside"),
    (150, 700, 100, "columns rows"),  # x gathered
    (101, 300, 70, "columns rows"),
    (64, 260, 200, "rows columns"),  # y packed
    (53, 257, 37, "columns columns"),
    (40, 4099, 36, "columns rows"),  # the sum shared among chunks, with a rest
    (1, 5000, 300, "rows rows"),
    (1, 300, 500, "rows columns"),  # dot products
    (700, 300, 1, "rows rows"),
    (700, 300, 2, "rows columns"),
    (700, 300, 1, "columns rows"),
    (1, 70001, 1, "rows rows"),
    (300, 1, 300, "rows rows"),
    (611, 19, 10, "rows rows"),
    (611, 19, 7, "columns rows"),
    (9, 2050, 515, "columns rows"),  # rows of y far apart: read along, in parts of the sum
    (515, 2051, 33, "columns rows"),  # the same, transposed on the way
    (197, 384, 1000, "rows rows"),  # what lies in panels, or is copied, is asked for ahead
    (40, 1200, 515, "rows inside"),  # the same in parts of the sum
]


@pytest.mark.parametrize("fixed", [False, True])
@pytest.mark.parametrize("dtype", [wl.float32, wl.float64])
@pytest.mark.parametrize(("m", "k", "n", "layouts"), KINDS)
def test_products_of_every_kind(m: int, k: int, n: int, layouts: str, dtype: Any, fixed: bool) -> None:
    checked(m, k, n, (), layouts, dtype, fixed=fixed)


@pytest.mark.parametrize(("vector_bytes", "registers"), [(32, 16), (16, 32)])
@pytest.mark.parametrize(("m", "k", "n", "layouts"), KINDS[1::2])
def test_products_on_machines_with_shorter_vectors(
    m: int, k: int, n: int, layouts: str, vector_bytes: int, registers: int
) -> None:
    if vector_bytes > HOST.vector_bytes:
        pytest.skip("the host has shorter ones itself")
    checked(m, k, n, (), layouts, cpu=HOST._replace(vector_bytes=vector_bytes, registers=registers))


@pytest.mark.parametrize(("first", "second"), [(1 << 13, 1 << 17), (1 << 15, 1 << 19), (1 << 17, 12 << 20)])
@pytest.mark.parametrize(("m", "k", "n", "layouts"), [(70, 1433, 64, "rows rows"), (101, 517, 1024, "rows rows")])
def test_products_on_machines_with_other_caches(m: int, k: int, n: int, layouts: str, first: int, second: int) -> None:
    checked(m, k, n, (), layouts, cpu=HOST._replace(first_cache=first, second_cache=second))


def test_large_products_are_shared_among_chunks_and_small_ones_are_not() -> None:
    assert [s.chunks for s in checked(16, 16, 16)] == [1]
    assert all(s.chunks >= 4 for s in checked(512, 128, 256)[-1:])
    assert checked(40, 32, 40, (64,))[-1].chunks >= 4


@pytest.mark.parametrize("m", [1, 2, 3, 4, 5, 7])
@pytest.mark.parametrize("n", [1, 3, 4, 6, 9, 41])
def test_dot_products_of_any_number_of_rows_and_columns(m: int, n: int) -> None:
    for dtype in (wl.float32, wl.float64):
        steps = checked(m, 83, n, (), "rows columns", dtype)
        assert m * n < 12 or n < 4 or any(type(step).__name__ == "Dots" for step in steps)


def test_a_long_matrix_times_a_few_columns_is_dot_products_with_its_rows() -> None:
    assert [type(step).__name__ for step in checked(900, 700, 3)] == ["Pack", "ByRows"]
    assert [type(step).__name__ for step in checked(3, 700, 900, (), "columns columns")] == ["Pack", "ByRows"]
    assert [type(step).__name__ for step in checked(20, 30, 3)] == ["Product"]  # not worth a step by itself


@pytest.mark.parametrize(("m", "n"), [(16, 1433), (1433, 16), (64, 1433), (1433, 64)])
def test_a_large_matrix_with_few_rows_on_a_page_is_read_along_its_rows(m: int, n: int) -> None:
    # as in the gradient of a layer's weights: each chunk has all columns of some rows, and the parts are added
    memory: Memory = {}
    k = 2700
    x, left = matrix(memory, (), m, k, "columns")
    y, right = matrix(memory, (), k, n, "rows")
    got, steps = product(memory, x, y)
    assert_close(got, left, right)
    assert next(step for step in steps if isinstance(step, Product)).x.shape[:-2] == (FAR_PARTS,)
    assert type(steps[-1]).__name__ == "Total"
    few = checked(300, 64, 1433, (), "columns rows")  # a small one is not
    assert [type(step).__name__ for step in few] == ["Pack", "Product"]


def test_the_memory_of_a_chunk_is_bounded() -> None:
    memory: Memory = {}
    x, _ = matrix(memory, (64,), 1, 1, "rows")
    x = View(x.buffer, (64, 4000, 300), (0, 0, 0))
    y = View(x.buffer, (64, 300, 4000), (0, 0, 0))
    hole = Hole((64, 4000, 4000), wl.float32)
    out = whole(Buffer("output", math.prod(hole.shape), wl.float32), hole.shape)
    for step in product_steps(HOST, x, y, hole, [(out, op("add", hole, out))]):
        routine = Routine(slots_of(step.views), HOST)
        step.emit(routine)
        sizes = [int(n) for n in re.findall(r"alloca \[(\d+) x float", routine.text("kernel"))]
        assert sum(sizes) * 4 < 1 << 20


def test_a_row_of_ones_meets_every_element_once() -> None:
    # integers add up exactly in any order: the result must be exact
    memory: Memory = {}
    x, left = matrix(memory, (), 130, 513, "columns")
    y, right = matrix(memory, (), 513, 99, "rows")
    left[...], right[...] = np.arange(513) % 7, np.arange(99) % 5
    assert np.array_equal(product(memory, x, y)[0], left @ right)


@pytest.mark.parametrize(
    ("m", "k", "n", "first"), [(130, 700, 200, "rows"), (64, 4100, 48, "columns"), (16, 2050, 515, "columns")]
)
def test_the_order_of_chunks_does_not_change_a_bit(m: int, k: int, n: int, first: str) -> None:
    memory: Memory = {}
    x, _ = matrix(memory, (), m, k, first)
    y, _ = matrix(memory, (), k, n, "rows")
    assert np.array_equal(product(memory, x, y)[0], product(memory, x, y, backwards=True)[0])


# --- epilogues


def op(name: str, *args: Value) -> Op:
    return Op(name, list(args), args[0].shape, args[0].dtype)


@pytest.mark.parametrize(
    ("m", "k", "n", "layouts"),
    [(33, 20, 50, "rows rows"), (70, 600, 70, "rows rows"), (90, 30, 1, "rows rows"), (30, 3000, 20, "columns rows")],
)
@pytest.mark.parametrize("long", [False, True])
@pytest.mark.parametrize("lead", [(), (3,)])
def test_bias_activation_and_residual_are_computed_with_the_product(
    m: int, k: int, n: int, layouts: str, long: bool, lead: Shape
) -> None:
    memory: Memory = {}
    first, second = layouts.split()
    x, left = matrix(memory, lead, m, k, first)
    y, right = matrix(memory, lead, k, n, second, tuple(range(len(lead))))
    bias, b = matrix(memory, (), 1, n, "rows")
    residual, rest = matrix(memory, lead, m, n, "columns")
    shape = (*lead, m, n)
    hole = Hole(shape, wl.float32)
    shift = op("add", hole, broadcast(bias, shape))
    active = op("maximum", shift, Const(0.0, wl.float32, shape))
    if long:
        for _ in range(8):
            active = op("multiply", op("add", active, active), Const(0.5, wl.float32, shape))
    made = op("add", active, residual)
    outs = [whole(Buffer("output", math.prod(shape), wl.float32, i), shape) for i in range(3)]
    stores: list[tuple[View, Value]] = [(outs[0], hole), (outs[1], made), (outs[2], shift)]
    run(product_steps(HOST, x, y, hole, stores), memory)
    plain, got, shifted = (memory[out.buffer].reshape(shape) for out in outs)
    assert_close(plain, left, right)
    np.testing.assert_allclose(shifted, plain + b, rtol=1e-6)
    np.testing.assert_allclose(got, np.maximum(plain + b, 0) + rest, rtol=1e-6)


def test_a_result_may_be_stored_transposed() -> None:
    memory: Memory = {}
    x, left = matrix(memory, (2,), 70, 30, "rows")
    y, right = matrix(memory, (2,), 30, 50, "rows")
    hole = Hole((2, 70, 50), wl.float32)
    out = View(Buffer("output", 2 * 70 * 50, wl.float32), (2, 70, 50), (3500, 1, 70))
    run(product_steps(HOST, x, y, hole, [(out, hole)]), memory)
    assert_close(as_array(out, memory[out.buffer]), left, right)


@pytest.mark.parametrize("dtype", [wl.float16, wl.bfloat16])
def test_narrow_floats_are_summed_in_float32(dtype: Any) -> None:
    memory: Memory = {}
    x, left = matrix(memory, (), 40, 100, "rows", dtype=dtype)
    y, right = matrix(memory, (), 100, 35, "columns", dtype=dtype)
    got, _ = product(memory, x, y)
    exact = left.astype(np.float64) @ right.astype(np.float64)
    np.testing.assert_allclose(got.astype(np.float64), exact, rtol=float(wl.finfo(dtype).eps), atol=1e-3)


# --- packing


@given(sizes, sizes, layouts, st.sampled_from([(), (3,), (2, 3)]), st.data())
def test_packing_copies(m: int, n: int, layout: str, lead: Shape, data: st.DataObject) -> None:
    axes = st.sets(st.integers(0, len(lead) - 1)) if lead else st.just(set[int]())
    memory: Memory = {}
    view, array = matrix(memory, lead, m, n, layout, tuple(data.draw(axes)))
    step, copy = packed(HOST, view)
    run([step], memory)
    assert copy.strides[-1] == 1
    assert np.array_equal(as_array(copy, memory[copy.buffer]), array)


@pytest.mark.parametrize("k, n", [(256, 512), (700, 131)])
def test_a_matrix_for_many_products_is_copied_to_panels_that_they_read_from_end_to_end(k: int, n: int) -> None:
    pack, *rest = checked(32, k, n, fixed=True)
    assert isinstance(pack, Pack)
    products = [step for step in rest if isinstance(step, Product)]
    assert products
    for step in products:
        assert step.panels is not None
        assert not step.copied
        assert step.y.strides[-2:] == (step.width, 1)
        assert pack.copy.buffer.size == k * -(-n // step.width) * step.width


@pytest.mark.parametrize("k, n", [(384, 1000), (1200, 500)])
def test_a_block_asks_for_a_share_of_the_panel_that_comes_after_its_own(k: int, n: int) -> None:
    for m in (16, 100, 197):
        step = next(step for step in checked(m, k, n, fixed=True) if isinstance(step, Product))
        lines = step.cut * step.width // step.ahead.turn
        turns = step.ahead.turns * -(-step.blocks.rows // step.rows)
        assert lines <= turns * len(step.ahead.places) < lines + turns
    assert not checked(100, 64, 100, fixed=True)[-1].ahead.places  # it stays in the cache


def test_a_product_asks_for_what_is_added_to_it_where_that_is_large() -> None:
    for n, large in ((64, False), (1024, True)):
        memory: Memory = {}
        (x, left), (y, right), (z, added) = (
            matrix(memory, (), a, b, "rows") for a, b in ((256, 96), (96, n), (256, n))
        )
        hole = Hole((256, n), x.dtype)
        out = whole(Buffer("output", 256 * n, x.dtype), hole.shape)
        steps = product_steps(HOST, x, y, hole, [(out, Op("add", [z, hole], hole.shape, x.dtype))])
        run(steps, memory)
        np.testing.assert_allclose(memory[out.buffer].reshape(256, n), added + left @ right, rtol=1e-4, atol=1e-4)
        assert steps[-1].ahead.sources == [z] * large


def test_every_chunk_begins_with_a_whole_block_of_rows() -> None:
    for m, rows, n, time in itertools.product(range(1, 160), range(1, 25), (1, 40, 1000), (1, 200, 5000)):
        blocks = Blocks((), m, n, rows, 32, time)
        steps, parts = -(-m // rows), blocks.counts[1]
        starts = [part * steps // parts * rows for part in range(parts)]
        assert all(start + min(rows, m) <= m for start in starts), (m, rows, n, time)


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize(("m", "k", "n"), [(21, 1030, 1050), (67, 520, 2048), (193, 300, 1041)])
def test_blocks_share_the_panel_that_the_first_of_them_brought_together(m: int, k: int, n: int, turned: bool) -> None:
    memory: Memory = {}
    (x, left), (y, right) = matrix(memory, (), m, k, "rows"), matrix(memory, (), k, n, "rows")
    hole = Hole((n, m) if turned else (m, n), wl.float32)
    out = whole(Buffer("result", m * n, hole.dtype), hole.shape)
    step = Product(HOST, x, y, Epilogue(hole, [(out, hole)]), turned)
    assert step.copied
    run([step], memory)
    found, expected = as_array(out, memory[out.buffer]), left.astype(np.float64) @ right.astype(np.float64)
    assert np.allclose(found, expected.T if turned else expected, rtol=1e-5, atol=1e-5 * math.sqrt(k))


@pytest.mark.parametrize("m", [1, 2, 3, 23, 130])
def test_a_batch_of_any_size_shares_panels(m: int) -> None:
    rng = np.random.default_rng(m)
    y = rng.normal(size=(300, 2048)).astype(np.float32)
    product = wl.jit(lambda x: x @ y, dynamic={"x": {0: "batch"}})
    for rows in (m, 5, 61):
        x = rng.normal(size=(rows, 300)).astype(np.float32)
        assert np.allclose(product(x).numpy(), x.astype(np.float64) @ y, rtol=1e-5, atol=1e-4)


def test_columns_are_brought_together_once_where_many_chunks_need_them() -> None:
    for m, n, packs in ((512, 512, True), (784, 256, False)):
        *before, step = checked(m, 512 if packs else 64, n, (), "columns rows")
        assert [type(one) for one in before] == [Pack] * packs
        assert step.gathered is not packs


def test_packing_depends_on_one_factor_alone() -> None:
    pack, *rest = checked(64, 128, 256, layouts="rows columns")
    assert isinstance(pack, Pack)
    assert not any(isinstance(step, Pack) for step in rest)
    assert len(pack.reads) == 1


def test_what_is_looked_up_for_a_product_is_not_asked_for_as_if_it_lay_in_its_rows() -> None:
    random = np.random.default_rng(0)
    x, y, table = (random.standard_normal(shape).astype(np.float32) for shape in ((256, 96), (96, 1024), (4000,)))
    places = random.integers(0, 4000, (256, 1))
    operands = [wl.asarray(a) for a in (x, y, table, places)]
    found = wl.jit(lambda x, y, t, i: x @ y + t[i])(*operands)
    np.testing.assert_allclose(found, x @ y + table[places], rtol=1e-4, atol=1e-4)
