"""Cutting, joining, inserting, turning, and elementwise formulas, against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import wonderland as wl

RNG = np.random.default_rng(2)
X = RNG.normal(size=(4, 6, 5))


def same(got: Any, want: Any) -> None:
    got, want = wl.tree.leaves(got), want if isinstance(want, (list, tuple)) else [want]
    for a, b in zip(got, want, strict=True):
        assert a.shape == b.shape
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("sections", [1, 3, 4, 9, [1, 4], [2, 2, 9], []])
def test_array_split(sections: Any) -> None:
    for axis in (0, 1, -1):
        same(wl.array_split(X, sections, axis=axis), np.array_split(X, sections, axis=axis))


def test_splits_with_names() -> None:
    same(wl.vsplit(X, 2), np.vsplit(X, 2))
    same(wl.hsplit(X, 3), np.hsplit(X, 3))
    same(wl.hsplit(X[0, 0], 5), np.hsplit(X[0, 0], 5))
    same(wl.dsplit(X, [1, 4]), np.dsplit(X, [1, 4]))
    for f, shape in ((wl.vsplit, (4,)), (wl.hsplit, ()), (wl.dsplit, (4, 4))):
        with pytest.raises(wl.errors.ShapeError, match="at least"):
            f(wl.zeros(shape), 2)


def test_joining() -> None:
    same(wl.append(X, 3.0), np.append(X, 3.0))
    same(wl.append(X, X, axis=1), np.append(X, X, axis=1))
    for parts in ([X[0], X[1]], [X[0, 0], X[1, 0]], [X, X]):
        same(wl.dstack(parts), np.dstack(parts))
    same(wl.column_stack([X[0, 0], X[0, :5]]), np.column_stack([X[0, 0], X[0, :5]]))
    same(wl.block([[X[0], X[1]], [X[2], X[3]]]), np.block([[X[0], X[1]], [X[2], X[3]]]))
    same(wl.block([1.0, X[0, 0]]), np.block([1.0, X[0, 0]]))
    same(wl.block([[X[0, 0]], [X[0]]]), np.block([[X[0, 0]], [X[0]]]))
    with pytest.raises(wl.errors.InputError, match="lists of depths"):
        wl.block([[X], X])
    for x in (X[0, 0, :1].reshape(()), X[0, 0], X[0], X):
        same(wl.atleast_3d(x), np.atleast_3d(x))


@pytest.mark.parametrize("obj", [0, -1, [1, 3], slice(0, 4, 2), [], [2, 2]])
def test_insert_and_delete(obj: Any) -> None:
    for axis in (0, 1, 2, None):
        same(wl.delete(X, obj, axis=axis), np.delete(X, obj, axis=axis))
        same(wl.insert(X, obj, 7.0, axis=axis), np.insert(X, obj, 7.0, axis=axis))
    if obj == [1, 3]:
        same(wl.insert(X, obj, X[:, :2], axis=1), np.insert(X, obj, X[:, :2], axis=1))


def test_masks_and_positions_that_do_not_exist() -> None:
    mask = np.array([True, False, False, True])
    same(wl.delete(X, mask, axis=0), np.delete(X, mask, axis=0))
    same(wl.insert(X, 2, X[0], axis=0), np.insert(X, 2, X[0], axis=0))
    same(wl.insert(X, 4, X[:2], axis=0), np.insert(X, [4], X[:2], axis=0))
    for f in (lambda: wl.delete(X, 4, axis=0), lambda: wl.insert(X, 5, 0.0, axis=0), lambda: wl.delete(X, 0.5, axis=0)):
        with pytest.raises(wl.errors.InputError, match="position"):
            f()


def test_turning_and_resizing() -> None:
    for k in range(-2, 6):
        same(wl.rot90(X, k), np.rot90(X, k))
        same(wl.rot90(X, k, (2, 0)), np.rot90(X, k, (2, 0)))
    same(wl.flipud(X), np.flipud(X))
    same(wl.fliplr(X), np.fliplr(X))
    for shape in ((7,), (3, 50), (0, 2)):
        same(wl.resize(X[0], shape), np.resize(X[0], shape))
    with pytest.raises(wl.errors.InputError, match="one axis"):
        wl.rot90(X, 1, (0, -3))


def test_indices() -> None:
    for n, k, m in ((4, 0, None), (4, 1, 6), (3, -2, 5), (2, 9, None), (0, 0, None)):
        same(wl.tril_indices(n, k, m), np.tril_indices(n, k, m))
        same(wl.triu_indices(n, k, m), np.triu_indices(n, k, m))
    same(wl.diag_indices(3, 3), np.diag_indices(3, 3))
    x = X > 0.3
    same(wl.argwhere(x), np.argwhere(x))
    same(wl.flatnonzero(x), np.flatnonzero(x))
    flat = RNG.integers(0, X.size, (2, 3))
    same(wl.unravel_index(flat, X.shape), np.unravel_index(flat, X.shape))
    same(wl.ravel_multi_index(wl.unravel_index(flat, X.shape), X.shape), flat)
    with pytest.raises(wl.errors.InputError, match="0 to 119"):
        wl.unravel_index(120, X.shape)


# --- elementwise formulas


SPECIAL = np.array([0.0, -0.0, 1.0, -1.0, 2.5, -3.5, 7.0, 1e300, -1e-300, np.inf, -np.inf, np.nan])


@pytest.mark.parametrize(
    "name", ["cbrt", "deg2rad", "rad2deg", "degrees", "radians", "sinc", "fabs", "rint", "isposinf", "isneginf"]
)
def test_of_one(name: str) -> None:
    with np.errstate(all="ignore"):
        for x in (SPECIAL, RNG.normal(size=50), RNG.normal(size=50).astype("float32")):
            got, want = getattr(wl, name)(x), getattr(np, name)(x)
            assert got.dtype == want.dtype
            tolerance = 1e-12 if x.dtype == np.float64 else 1e-5
            np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance * 1e-2)
            np.testing.assert_allclose(wl.jit(getattr(wl, name))(x), got, rtol=tolerance, atol=tolerance * 1e-2)


@pytest.mark.parametrize("name", ["fmod", "heaviside", "float_power", "logaddexp2", "fmax", "fmin"])
def test_of_two(name: str) -> None:
    a, b = (v.ravel() for v in np.meshgrid(SPECIAL, SPECIAL))
    with np.errstate(all="ignore"):
        got, want = getattr(wl, name)(a, b), getattr(np, name)(a, b)
        np.testing.assert_allclose(got, want, rtol=1e-13)
        np.testing.assert_array_equal(np.asarray(getattr(np, name)(wl.asarray(a), b)), got)
        small = np.array([0.5, 2.0, -3.0], "float32")
        assert getattr(wl, name)(small, small).dtype == "float32"
    i, j = np.array([7, -7, 7, -7]), np.array([3, 3, -3, -3])
    if name == "fmod":
        np.testing.assert_array_equal(wl.fmod(i, j), np.fmod(i, j))


def test_sinc_is_smooth_at_zero() -> None:
    f = wl.sinc
    at_zero = [1.0, 0.0, -(np.pi**2) / 3, 0.0, np.pi**4 / 5, 0.0, -(np.pi**6) / 7]
    for value in at_zero:
        assert f(wl.tensor(0.0, wl.float64)).item() == pytest.approx(value, rel=1e-12, abs=1e-12)
        f = wl.grad(f)  # type: ignore[assignment]
    wl.check_grads(wl.sinc, (np.array([0.0, 0.1, 0.31, 0.32, 1.0, -2.3]),), order=3)
    np.testing.assert_allclose(wl.sinc(np.array([1 + 1j, 0j])), np.sinc(np.array([1 + 1j, 0j])))


def test_derivatives_of_formulas() -> None:
    x, y = np.array([1.3, -2.6, 3.9]), np.array([0.7, 0.8, -1.1])
    wl.check_grads(wl.fmod, (x, y))
    wl.check_grads(wl.logaddexp2, (x, y), order=2)
    wl.check_grads(wl.float_power, (np.abs(x), y), order=2)
    np.testing.assert_array_equal(wl.grad(lambda x: wl.fmod(x, 2.0).sum())(wl.tensor([4.0, -4.0])), [1, 1])


def test_select() -> None:
    x = RNG.normal(size=(3, 4))
    tests, choices = [x > 1, x > 0, x > -0.5], [x, 2 * x, x * x]
    same(wl.select(tests, choices, -9.0), np.select(tests, choices, -9.0))
    same(wl.select(tests, choices), np.select(tests, choices))
    assert wl.select([True], [wl.tensor([1])], 0.5).dtype == wl.float32
    with pytest.raises(wl.errors.InputError, match="3 conditions and 2 choices"):
        wl.select(tests, choices[:2])


def test_predicates() -> None:
    z = np.array([1 + 0j, 1j, 2 - 3j])
    same(wl.isreal(z), np.isreal(z))
    same(wl.iscomplex(z), np.iscomplex(z))
    same(wl.isreal(X), np.isreal(X))
    with pytest.raises(wl.errors.DTypeError):
        wl.isposinf(z)


@pytest.mark.parametrize("decimals", [-2, -1, 0, 1, 3])
def test_rounding_to_decimals(decimals: int) -> None:
    x = RNG.normal(size=60) * 10.0 ** RNG.integers(-3, 6, 60)
    for v in (x, x.astype("float32"), (x * 10).astype("int64"), x + 1j * x[::-1]):
        got = wl.round(v, decimals)
        assert got.dtype == v.dtype
        np.testing.assert_allclose(got, np.round(v, decimals), rtol=1e-6 if v.dtype == np.float32 else 1e-14)
        np.testing.assert_array_equal(wl.asarray(v).round(decimals), got)
    assert wl.round(wl.tensor([1e300, wl.inf], wl.float64), 20).tolist() == [1e300, np.inf]
    assert wl.round(wl.tensor([15, 25, 35]), -1).tolist() == [20, 20, 40]


def test_nothing_is_not_cut_into_any_number_of_parts() -> None:
    empty = wl.zeros((0, 2))
    assert [part.shape for part in wl.split(empty, 3)] == [(0, 2)] * 3
    for cut in (wl.split, wl.array_split):
        with pytest.raises(wl.errors.SizeError, match="size 0 cut into 1000000000000 parts"):
            cut(empty, 10**12)
