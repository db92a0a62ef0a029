"""Reading and writing along axes, segments, searching, sorting and sets, against NumPy."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import wonderland as wl

RNG = np.random.default_rng(0)
FLOATS = ("float16", "bfloat16", "float32", "float64")


@st.composite
def along_axis(draw: Any) -> tuple[np.ndarray, np.ndarray, int]:
    shape = draw(hnp.array_shapes(min_dims=1, max_dims=3, min_side=1, max_side=4))
    axis = draw(st.integers(-len(shape), len(shape) - 1))
    size = [draw(st.sampled_from([1, n])) for n in shape]
    size[axis] = draw(st.integers(0, 4))
    n = shape[axis]
    return RNG.normal(size=shape), RNG.integers(-n, n, size=size), axis


@given(along_axis())
def test_take_along_axis_and_back(case: tuple[np.ndarray, np.ndarray, int]) -> None:
    x, indices, axis = case
    expected = np.take_along_axis(x, indices, axis=axis)
    ours = wl.take_along_axis(x, indices, axis=axis)
    np.testing.assert_array_equal(ours.numpy(), expected)
    values = RNG.normal(size=expected.shape)
    put = x.copy()
    np.put_along_axis(put, np.broadcast_to(indices, expected.shape), values, axis=axis)
    np.testing.assert_array_equal(wl.put_along_axis(x, indices, values, axis=axis).numpy(), put)
    # repeated indices accumulate in the gradient
    gradient = wl.grad(lambda x: (wl.take_along_axis(x, indices, axis=axis) * values).sum())(wl.asarray(x))
    added = wl.put_along_axis(np.zeros_like(x), indices, values, axis=axis, mode="add")
    np.testing.assert_allclose(gradient.numpy(), added.numpy(), atol=1e-12)


@given(
    hnp.arrays(
        np.float64,
        hnp.array_shapes(min_dims=1, max_dims=3, min_side=1, max_side=4),
        elements=st.floats(-9, 9),
    ),
    hnp.array_shapes(min_dims=0, max_dims=2, min_side=0, max_side=3),
    st.data(),
)
def test_take(x: np.ndarray, block: tuple[int, ...], data: Any) -> None:
    axis = data.draw(st.none() | st.integers(-x.ndim, x.ndim - 1))
    n = x.size if axis is None else x.shape[axis]
    indices = RNG.integers(-n, n, size=block)
    np.testing.assert_array_equal(wl.take(x, indices, axis=axis).numpy(), np.take(x, indices, axis=axis))
    with pytest.raises(wl.errors.IndexOutOfRange):
        wl.take(x, wl.asarray(np.full((1,), n)), axis=axis)
    with pytest.raises(wl.errors.DTypeError):
        wl.take(x, wl.tensor([0.5]), axis=axis)
    with pytest.raises(wl.errors.DTypeError):
        wl.take(x, wl.tensor([True]), axis=axis)


def test_dynamic_slices_stay_inside() -> None:
    x = np.arange(20.0).reshape(4, 5)
    for i in range(-1, 5):
        for j in range(-1, 6):
            a, b = min(max(i, 0), 2), min(max(j, 0), 2)
            ours = wl.dynamic_slice(x, [wl.tensor(i), j], [2, 3])
            np.testing.assert_array_equal(ours.numpy(), x[a : a + 2, b : b + 3])
            changed = x.copy()
            changed[a : a + 2, b : b + 3] = -1
            ours = wl.dynamic_update_slice(x, -np.ones((2, 3)), [wl.tensor(i), j])
            np.testing.assert_array_equal(ours.numpy(), changed)
    for f in (
        lambda: wl.dynamic_slice(x, [0], [2, 3]),
        lambda: wl.dynamic_slice(x, [0, 0], [5, 3]),
        lambda: wl.dynamic_update_slice(x, np.zeros(2), [0, 0]),
    ):
        with pytest.raises(wl.errors.ShapeError):
            f()


@pytest.mark.book("2.23", "B2-04", name="wl.masked_fill")
def test_masks_stop_values_and_gradients() -> None:
    x, mask = wl.tensor([1.0, 2.0, 3.0]), wl.tensor([True, False, True])
    filled = wl.masked_fill(x, mask, -9.0)
    assert filled.tolist() == [-9, 2, -9]
    assert wl.grad(lambda x: (wl.masked_fill(x, mask, 0.0) ** 2).sum())(x).tolist() == [0, 4, 0]
    assert wl.grad(lambda x: (wl.where(mask, 0.0, x) ** 2).sum())(x).tolist() == [0, 4, 0]
    assert wl.grad(lambda x: ((x * wl.tensor([0.0, 1.0, 0.0])) ** 2).sum())(x).tolist() == [0, 4, 0]


def test_nonzero() -> None:
    x = RNG.integers(0, 2, size=(3, 4))
    for ours, theirs in zip(wl.nonzero(x), np.nonzero(x), strict=True):
        assert ours.dtype == wl.int64
        np.testing.assert_array_equal(ours.numpy(), theirs)
    with pytest.raises(wl.errors.ShapeError):
        wl.nonzero(wl.tensor(1))
    with pytest.raises(wl.errors.TraceError):
        wl.vmap(lambda x: wl.nonzero(x)[0])(wl.ones((2, 3)))


@pytest.mark.parametrize("dtype", (*FLOATS, "int32", "uint8"))
def test_searchsorted(dtype: str) -> None:
    edges = np.array([1, 2, 2, 5]).astype(wl.asarray(0, dtype=dtype).dtype)
    values = np.array([[0, 1], [2, 9]]).astype(edges.dtype)
    for side in ("left", "right"):
        expected = np.searchsorted(edges.astype(float), values.astype(float), side=side)
        np.testing.assert_array_equal(wl.searchsorted(edges, values, side=side).numpy(), expected)
    order = wl.tensor([3, 1, 0, 2])
    shuffled = wl.asarray(edges)[wl.argsort(order)]
    np.testing.assert_array_equal(
        wl.searchsorted(shuffled, values, sorter=wl.argsort(shuffled)).numpy(),
        np.searchsorted(edges.astype(float), values.astype(float)),
    )
    with pytest.raises(wl.errors.InputError):
        wl.searchsorted(edges, values, side="middle")
    with pytest.raises(wl.errors.ShapeError):
        wl.searchsorted(values, values[0])


# --- segments


@given(st.integers(0, 8), st.integers(1, 4), st.lists(st.integers(1, 3), max_size=2))
def test_segments(rows: int, count: int, rest: list[int]) -> None:
    data = RNG.normal(size=(rows, *rest))
    ids = RNG.integers(0, count, size=rows)
    groups = [data[ids == k] for k in range(count)]
    shape = tuple(rest)
    expected = {
        "sum": [g.sum(0) for g in groups],
        "mean": [g.mean(0) if len(g) else np.zeros(shape) for g in groups],
        "max": [g.max(0) if len(g) else np.full(shape, -math.inf) for g in groups],
        "min": [g.min(0) if len(g) else np.full(shape, math.inf) for g in groups],
        "prod": [g.prod(0) for g in groups],
    }
    for name, values in expected.items():
        ours = getattr(wl, f"segment_{name}")(data, ids, count)
        np.testing.assert_allclose(ours.numpy(), np.stack(values), atol=1e-12)
    if rows:
        weights = RNG.normal(size=(count, *rest))
        g = wl.grad(lambda x: (wl.segment_sum(x, ids, count) * weights).sum())(wl.asarray(data))
        np.testing.assert_allclose(g.numpy(), weights[ids])
        g = wl.grad(lambda x: (wl.segment_mean(x, ids, count) * weights).sum())(wl.asarray(data))
        sizes = np.bincount(ids, minlength=count)[ids].reshape(-1, *[1] * len(rest))
        np.testing.assert_allclose(g.numpy(), weights[ids] / sizes)
        assert wl.segment_sum(data, ids).shape[0] == ids.max() + 1


def test_segment_max_shares_the_gradient_among_equals() -> None:
    g = wl.grad(lambda x: wl.segment_max(x, wl.tensor([0, 0, 0, 1]), 2).sum())(wl.tensor([2.0, 2.0, 1.0, 5.0]))
    assert g.tolist() == [0.5, 0.5, 0, 1]
    assert wl.segment_max(wl.tensor([1, 2]), wl.tensor([0, 0]), 2).tolist() == [2, np.iinfo(np.int64).min]


def test_bad_segments() -> None:
    data = wl.ones((3, 2))
    with pytest.raises(wl.errors.ShapeError, match="one id per row"):
        wl.segment_sum(data, wl.tensor([0, 1]), 2)
    with pytest.raises(wl.errors.DTypeError):
        wl.segment_sum(data, wl.tensor([0.0, 1.0, 1.0]), 2)
    with pytest.raises(wl.errors.IndexOutOfRange):
        wl.segment_sum(data, wl.tensor([0, 1, 2]), 2)
    with pytest.raises(wl.errors.DTypeError):
        wl.segment_max(data > 0, wl.tensor([0, 1, 1]), 2)


# --- sorting


@pytest.mark.parametrize("dtype", (*FLOATS, "int8", "uint64", "bool"))
@given(hnp.array_shapes(min_dims=1, max_dims=3, min_side=0, max_side=5), st.integers(-1, 0), st.booleans())
def test_sorting(dtype: str, shape: tuple[int, ...], axis: int, descending: bool) -> None:
    x = RNG.integers(0, 4, size=shape).astype(wl.asarray(0, dtype=dtype).dtype)
    wide = x.astype(float)
    ours = wl.sort(x, axis=axis, descending=descending)
    assert ours.dtype == dtype
    expected = -np.sort(-wide, axis=axis) if descending else np.sort(wide, axis=axis)
    np.testing.assert_array_equal(ours.numpy().astype(float), expected)
    order = wl.argsort(x, axis=axis, descending=descending)
    assert order.dtype == wl.int64
    # equal elements keep their order
    np.testing.assert_array_equal(order.numpy(), np.argsort(-wide if descending else wide, axis=axis, kind="stable"))


def test_sorting_puts_nan_among_the_largest_and_differentiates() -> None:
    x = wl.tensor([math.nan, 1.0, -1.0])
    assert wl.sort(x).tolist()[:2] == [-1, 1]
    assert math.isnan(wl.sort(x)[2].item())
    g = wl.grad(lambda x: (wl.sort(x) * wl.tensor([1.0, 2.0, 3.0])).sum())(wl.tensor([5.0, 1.0, 3.0]))
    assert g.tolist() == [3, 1, 2]
    with pytest.raises(wl.errors.AxisError):
        wl.sort(wl.tensor(1.0))


@given(hnp.array_shapes(min_dims=1, max_dims=3, min_side=1, max_side=5), st.data())
def test_top_k(shape: tuple[int, ...], data: Any) -> None:
    x = RNG.permutation(math.prod(shape)).reshape(shape).astype(float)
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    k = data.draw(st.integers(0, shape[axis]))
    for largest in (True, False):
        values, indices = wl.top_k(wl.asarray(x), k, axis=axis, largest=largest)
        ordered = np.sort(x, axis=axis)
        ordered = np.flip(ordered, axis) if largest else ordered
        np.testing.assert_array_equal(values.numpy(), np.take(ordered, range(k), axis=axis))
        np.testing.assert_array_equal(np.take_along_axis(x, indices.numpy(), axis=axis), values.numpy())
    with pytest.raises(wl.errors.InputError, match="k="):
        wl.top_k(x, shape[axis] + 1, axis=axis)


def test_sets() -> None:
    x = np.array([[3.0, 1.0, 3.0], [np.nan, 1.0, np.nan]])
    ours, theirs = wl.unique_all(x), np.unique_all(x)
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_array_equal(a.numpy(), b)
    np.testing.assert_array_equal(wl.unique_values(x).numpy(), np.unique_values(x)[np.argsort(np.unique_values(x))])
    np.testing.assert_array_equal(wl.unique_counts(x).counts.numpy(), [2, 2, 1, 1])
    inverse = wl.unique_inverse(np.array([2, 0, 2]))
    assert inverse.values[inverse.inverse_indices].tolist() == [2, 0, 2]
    assert wl.unique(wl.tensor([2.0, 1.0, 2.0], dtype="bfloat16")).tolist() == [1, 2]


@given(st.lists(st.integers(-3, 3), max_size=6), st.lists(st.integers(-3, 3), max_size=6), st.booleans())
def test_isin(a: list[int], b: list[int], invert: bool) -> None:
    x, y = np.array(a, dtype=np.int64), np.array(b, dtype=np.int64)
    np.testing.assert_array_equal(wl.isin(x, y, invert=invert).numpy(), np.isin(x, y, invert=invert))
    for dtype in (np.complex64, np.float32):
        ours = wl.isin(x.astype(dtype), y.astype(dtype), invert=invert)
        np.testing.assert_array_equal(ours.numpy(), np.isin(x, y, invert=invert))


def test_nan_is_in_nothing() -> None:
    assert wl.isin(wl.tensor([math.nan, 1.0]), wl.tensor([math.nan, 1.0])).tolist() == [False, True]
