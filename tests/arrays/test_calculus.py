"""Sampled functions, polynomials and running forms against NumPy and PyTorch's definitions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import wonderland as wl

RNG = np.random.default_rng(11)


@pytest.mark.parametrize("edge_order", [1, 2])
def test_gradient(edge_order: int) -> None:
    f = RNG.normal(size=(4, 5, 3))
    x, y = np.cumsum(RNG.random(4) + 0.1), np.cumsum(RNG.random(5) + 0.1)
    calls: list[tuple[tuple[Any, ...], dict[str, Any]]] = [
        ((), {}),
        ((2.0,), {}),
        ((x, y, 0.5), {}),
        ((y,), {"axis": 1}),
        ((0.3, x), {"axis": (2, 0)}),
    ]
    for spacing, options in calls:
        got = wl.gradient(f, *spacing, **options, edge_order=edge_order)
        want = np.gradient(f, *spacing, **options, edge_order=edge_order)  # type: ignore[call-overload]
        for a, b in zip(wl.tree.leaves(got), want if isinstance(want, (tuple, list)) else [want], strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-12)
    wl.check_grads(lambda f, x: wl.gradient(f, x, axis=0, edge_order=edge_order), (f, x), order=2)
    assert wl.gradient(wl.ones(4)).dtype == wl.float32
    with pytest.raises(wl.errors.ShapeError, match="too short"):
        wl.gradient(wl.ones(edge_order), edge_order=edge_order)
    with pytest.raises(wl.errors.InputError, match="2 spacings for 3 axes"):
        wl.gradient(f, 1.0, 2.0)


def test_trapezoid() -> None:
    y, x = RNG.normal(size=(4, 5)), np.cumsum(RNG.random(5))
    np.testing.assert_allclose(wl.trapezoid(y), np.trapezoid(y))
    np.testing.assert_allclose(wl.trapezoid(y, dx=0.3, axis=0), np.trapezoid(y, dx=0.3, axis=0))
    np.testing.assert_allclose(wl.trapezoid(y, x), np.trapezoid(y, x))
    np.testing.assert_allclose(wl.trapezoid(y, y + 3, axis=0), np.trapezoid(y, y + 3, axis=0))
    wl.check_grads(wl.trapezoid, (y, x), order=2)
    assert wl.trapezoid(wl.ones(1)).item() == 0.0


def test_interpolation() -> None:
    xp, fp = np.sort(RNG.normal(size=7)), RNG.normal(size=7)
    x = np.concatenate([RNG.normal(size=20) * 2, xp, [np.nan, np.inf, -np.inf]])
    calls: list[dict[str, Any]] = [{}, {"left": -5.0, "right": 7.0}]
    for options in [*calls, {"period": 1.5}]:
        finite = x[np.isfinite(x)] if "period" in options else x
        np.testing.assert_allclose(
            wl.interp(finite, xp, fp, **options), np.interp(finite, xp, fp, **options), rtol=1e-9
        )
    numbers = x[~np.isnan(x)]  # of one point NumPy gives its value for NaN, too
    np.testing.assert_allclose(wl.interp(numbers, xp[:1], fp[:1]), np.interp(numbers, xp[:1], fp[:1]))
    np.testing.assert_allclose(wl.interp(x, xp, fp + 1j), np.interp(x, xp, fp + 1j), rtol=1e-9)
    steps, heights = np.array([0.0, 1.0, 1.0, 2.0]), np.array([0.0, 1.0, 5.0, 6.0])
    at = np.array([0.5, 1.0, 1.5, 2.0])
    np.testing.assert_allclose(wl.interp(at, steps, heights), np.interp(at, steps, heights))
    held = np.array([1.0, np.inf, np.inf, np.inf])
    np.testing.assert_array_equal(wl.interp(at, steps, held), np.interp(at, steps, held))
    inside = RNG.uniform(xp[0] + 0.05, xp[-1] - 0.05, 6)
    wl.check_grads(wl.interp, (inside, xp, fp))
    np.testing.assert_allclose(wl.jit(wl.interp)(x, xp, fp), wl.interp(x, xp, fp), rtol=1e-12)
    with pytest.raises(wl.errors.ShapeError, match="two vectors of one length"):
        wl.interp(x, xp, fp[1:])


def test_lerp_meets_both_ends() -> None:
    a, b = RNG.normal(size=9).astype("float32") * 100, RNG.normal(size=9).astype("float32") * 1e-3
    np.testing.assert_array_equal(wl.lerp(a, b, 0.0), a)
    np.testing.assert_array_equal(wl.lerp(a, b, 1.0), b)
    wl.check_grads(wl.lerp, (RNG.normal(size=3), RNG.normal(size=3), np.array([-0.5, 0.3, 1.4])), order=2)
    np.testing.assert_allclose(wl.lerp(1.0, 2j, wl.tensor(0.25 + 0j, wl.complex128)), 0.75 + 0.5j)


def test_differences_and_polynomials() -> None:
    x = RNG.normal(size=(3, 4))
    np.testing.assert_allclose(wl.ediff1d(x), np.ediff1d(x))
    np.testing.assert_allclose(wl.ediff1d(x, 9.0, [1.0, 2.0]), np.ediff1d(x, 9.0, [1.0, 2.0]))
    for count in (None, 0, 2, 6):
        for increasing in (False, True):
            np.testing.assert_allclose(wl.vander(x[0], count, increasing), np.vander(x[0], count, increasing))
    np.testing.assert_allclose(wl.polyval(x[0], x), np.polyval(x[0], x))
    np.testing.assert_array_equal(wl.polyval([1, 2, 3], wl.tensor([2, 0])), np.polyval([1, 2, 3], [2, 0]))
    wl.check_grads(wl.polyval, (x[0], x), order=2)


# --- running forms


def last_extreme(x: Any, axis: int, f: Any) -> tuple[Any, Any]:
    """Step by step: an element that is as large as all before it, or NaN, takes the place of them."""
    moved = np.moveaxis(x, axis, 0)
    values, places = moved.copy(), np.zeros(moved.shape, np.int64)
    for j in range(1, len(moved)):
        better = np.isnan(moved[j]) | f(moved[j], values[j - 1])
        values[j] = np.where(better, moved[j], values[j - 1])
        places[j] = np.where(better, j, places[j - 1])
    return np.moveaxis(values, 0, axis), np.moveaxis(places, 0, axis)


@pytest.mark.parametrize("dtype", ["int32", "float32", "float64", "bool"])
@pytest.mark.parametrize("name, better", [("cummax", np.greater_equal), ("cummin", np.less_equal)])
def test_running_extremes(name: str, better: Any, dtype: str) -> None:
    x = RNG.integers(0, 5, (3, 7, 9)).astype(dtype)
    if dtype.startswith("float"):
        x[0, 3, 4] = x[1, 2, 2] = x[1, 5, 2] = np.nan
    for axis in (0, 1, -1):
        f = lambda v, axis=axis: tuple(getattr(wl, name)(v, axis=axis))
        for got in (f(wl.asarray(x)), wl.jit(f)(wl.asarray(x))):
            for a, b in zip(got, last_extreme(x, axis, better), strict=True):
                np.testing.assert_array_equal(a, b)


def test_running_sums_of_exponentials() -> None:
    x = RNG.normal(size=(4, 40)) * 300
    x[1, :3] = -np.inf
    for axis in (0, 1):
        want = np.logaddexp.accumulate(x, axis=axis)
        np.testing.assert_allclose(wl.logcumsumexp(x, axis=axis), want, rtol=1e-14)
        np.testing.assert_allclose(wl.jit(lambda x, a=axis: wl.logcumsumexp(x, axis=a))(x), want, rtol=1e-13)
        slope = wl.grad(lambda x, a=axis: wl.logcumsumexp(x, axis=a)[-1].sum())(wl.asarray(x)).numpy()
        assert np.isfinite(slope).all()
    for dtype in ("float16", "bfloat16", "float32"):
        assert wl.logcumsumexp(wl.zeros(5, dtype=dtype)).dtype == dtype
    # the derivative of the last one is the softmax
    y = wl.asarray(RNG.normal(size=9) * 30)
    np.testing.assert_allclose(wl.grad(lambda y: wl.logcumsumexp(y)[-1])(y), wl.softmax(y), rtol=1e-10, atol=1e-300)
