"""`gather`, `scatter` and relatives, by their definition: one loop over the places of the index."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import wonderland as wl
from wonderland.errors import IndexOutOfRange, InputError, ShapeError

COMBINE = {"set": lambda a, b: b, "add": np.add, "multiply": np.multiply, "max": np.maximum, "min": np.minimum}


def by_loop(x: Any, axis: int, index: Any, src: Any, mode: str) -> Any:
    out = x.copy()
    for place in np.ndindex(*index.shape):
        there = (*place[:axis], index[place], *place[axis + 1 :])
        out[there] = COMBINE[mode](out[there], src[place])  # type: ignore[operator]
    return out


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("shape", [(4, 5, 6), (2, 3, 6), (3, 0, 1)])
def test_gather_and_scatter_by_definition(axis: int, shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(axis)
    x, src = rng.normal(size=(4, 5, 6)), rng.normal(size=(6, 6, 6))
    index = rng.integers(0, x.shape[axis], shape)
    wanted = np.array([x[(*p[:axis], index[p], *p[axis + 1 :])] for p in np.ndindex(*shape)]).reshape(shape)
    np.testing.assert_array_equal(wl.gather(x, axis, index), wanted)
    np.testing.assert_array_equal(wl.scatter(x, axis, index, src), by_loop(x, axis, index, src, "set"))
    np.testing.assert_allclose(wl.scatter_add(x, axis, index, src), by_loop(x, axis, index, src, "add"))
    for reduce, mode in {"sum": "add", "prod": "multiply", "amax": "max", "amin": "min"}.items():
        found = wl.scatter_reduce(x, axis, index, src, reduce)
        np.testing.assert_allclose(found, by_loop(x, axis, index, src, mode))
    same = np.full(index.shape, 2.0)
    np.testing.assert_allclose(
        wl.scatter(x, axis, index, 2.0, reduce="multiply"), by_loop(x, axis, index, same, "multiply")
    )


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_slices_at_positions(axis: int) -> None:
    rng = np.random.default_rng(0)
    x, index = rng.normal(size=(4, 5, 6)), np.array([3, 0, 3])
    source = rng.normal(size=np.take(x, index, axis=axis).shape)
    np.testing.assert_array_equal(wl.index_select(x, axis, index), np.take(x, index, axis=axis))
    added, copied = np.moveaxis(x, axis, 0).copy(), np.moveaxis(x, axis, 0).copy()
    for i, part in zip(index, np.moveaxis(source, axis, 0), strict=True):
        added[i] += 0.5 * part
        copied[i] = part
    np.testing.assert_allclose(wl.index_add(x, axis, index, source, alpha=0.5), np.moveaxis(added, 0, axis))
    np.testing.assert_array_equal(wl.index_copy(x, axis, index, source), np.moveaxis(copied, 0, axis))
    filled = np.moveaxis(x.copy(), axis, 0)
    filled[index] = 7.0
    np.testing.assert_array_equal(wl.index_fill(x, axis, index, 7.0), np.moveaxis(filled, 0, axis))


def test_derivatives() -> None:
    rng = np.random.default_rng(0)
    x, src, index = rng.normal(size=(3, 4)), rng.normal(size=(2, 4)), np.array([[2, 0, 2, 1], [0, 0, 1, 2]])
    wl.check_grads(lambda x: wl.gather(x, 0, index), (x,))
    wl.check_grads(lambda x, src: wl.scatter_add(x, 0, index, src), (x, src))
    wl.check_grads(lambda x, src: wl.index_add(x, 0, np.array([1, 1]), src), (x, src))


def test_errors_name_both_shapes() -> None:
    with pytest.raises(ShapeError, match=r"gather: an index of shape \(3,\) for a tensor of shape \(2, 3\)"):
        wl.gather(wl.zeros((2, 3)), 0, wl.tensor([0, 1, 1]))
    with pytest.raises(ShapeError, match=r"scatter: values of shape \(1, 3\) for an index of shape \(2, 3\)"):
        wl.scatter(wl.zeros((2, 3)), 0, wl.zeros((2, 3), dtype="int64"), wl.ones((1, 3)))
    with pytest.raises(ShapeError, match=r"index_add: a source of shape \(3, 3\)"):
        wl.index_add(wl.zeros((2, 3)), 0, wl.tensor([0, 1]), wl.ones((3, 3)))
    with pytest.raises(InputError, match="reduce='mean'"):
        wl.scatter_reduce(wl.zeros(2), 0, wl.tensor([0]), wl.ones(1), "mean")
    with pytest.raises(IndexOutOfRange):
        wl.index_select(wl.zeros(2), 0, wl.tensor([2]))


def test_block_diag_and_cdist() -> None:
    from scipy.linalg import block_diag
    from scipy.spatial.distance import cdist

    rng = np.random.default_rng(0)
    parts = [rng.normal(size=(2, 3)), rng.normal(size=4), np.float64(5.0), np.zeros((0, 2))]
    np.testing.assert_array_equal(wl.block_diag(*parts), block_diag(*parts))  # type: ignore[arg-type]
    x, y = rng.normal(size=(5, 3)), rng.normal(size=(4, 3))
    for p, name in ((2.0, "euclidean"), (1.0, "cityblock"), (np.inf, "chebyshev")):
        np.testing.assert_allclose(wl.cdist(x, y, p=p), cdist(x, y, name), rtol=1e-12)
    np.testing.assert_allclose(wl.cdist(x, y, p=3.5), cdist(x, y, "minkowski", p=3.5), rtol=1e-12)
    np.testing.assert_array_equal(wl.cdist(x, x, p=0), cdist(x, x, "hamming") * 3)
    wl.check_grads(lambda x, y: wl.cdist(x, y, p=3.0), (x, y))
    assert not np.isnan(wl.grad(lambda x: wl.cdist(x, x, p=3.0).sum())(x)).any()
    with pytest.raises(InputError, match="p=-1"):
        wl.cdist(x, y, p=-1)
