"""Reductions that leave NaN out, against NumPy's."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import wonderland as wl

RNG = np.random.default_rng(3)
AXES: list[Any] = [None, 0, 1, 2, (0, 2)]
REDUCTIONS = ["nansum", "nanprod", "nanmean", "nanvar", "nanstd", "nanmax", "nanmin"]


def gaps() -> Any:
    x = RNG.normal(size=(3, 4, 5))
    x[RNG.random(x.shape) < 0.3] = np.nan
    x[0, 1, 1], x[2, 2, 3] = np.inf, -np.inf
    return x


def by_numpy(name: str, *args: Any, **options: Any) -> Any:
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return getattr(np, name)(*args, **options)


@pytest.mark.parametrize("name", REDUCTIONS)
@pytest.mark.parametrize("axis", AXES)
def test_reductions(name: str, axis: Any) -> None:
    x = gaps()
    x[:, 1, 2] = np.nan  # nothing is left there
    for keepdims in (False, True):
        got = getattr(wl, name)(x, axis=axis, keepdims=keepdims)
        want = by_numpy(name, x, axis=axis, keepdims=keepdims)
        assert (got.shape, got.dtype) == (np.shape(want), want.dtype)
        np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("axis", AXES[:-1])
@pytest.mark.parametrize("name", ["nanargmax", "nanargmin"])
def test_positions(name: str, axis: Any) -> None:
    x = gaps()
    x[:, 0, 0] = 0.5
    x[0, 0, :], x[:, :, 0] = 0.1, 0.2
    for keepdims in (False, True):
        np.testing.assert_array_equal(
            getattr(wl, name)(x, axis=axis, keepdims=keepdims), getattr(np, name)(x, axis=axis, keepdims=keepdims)
        )


def test_positions_of_infinite_elements_and_of_none() -> None:
    assert wl.nanargmax(wl.tensor([wl.nan, -wl.inf])).item() == 1
    assert wl.nanargmin(wl.tensor([wl.nan, wl.nan, wl.inf])).item() == 2
    assert wl.nanargmax(wl.tensor([3, 5, 4])).item() == 1
    with pytest.raises(wl.errors.InputError, match="nanargmax: nothing but NaN along axis 0"):
        wl.nanargmax(wl.tensor([wl.nan, wl.nan]), axis=0)
    for backend in ("native", "numpy"):
        with wl.using_backend(backend), pytest.raises(wl.errors.WonderlandError, match="out of range"):
            wl.jit(wl.nanargmin)(wl.tensor([wl.nan, wl.nan])).numpy()


def test_running_forms() -> None:
    x = gaps()
    for axis in (None, 0, 2):
        np.testing.assert_allclose(wl.nancumsum(x, axis=axis), by_numpy("nancumsum", x, axis=axis))
        np.testing.assert_allclose(wl.nancumprod(x, axis=axis), by_numpy("nancumprod", x, axis=axis))


def test_corrections() -> None:
    x = gaps()
    x[np.isinf(x)] = 1.0
    for ddof in (1, 3):
        got, want = wl.nanvar(x, axis=1, correction=ddof), by_numpy("nanvar", x, axis=1, ddof=ddof)
        np.testing.assert_allclose(got, want, rtol=1e-12)


def test_types() -> None:
    for dtype in ("float16", "bfloat16", "float32"):
        x = wl.tensor([1.0, wl.nan, 3.0]).astype(dtype)
        for name in REDUCTIONS:
            assert getattr(wl, name)(x).dtype == dtype
    z = np.array([1 + 1j, np.nan, 3 - 2j])
    for name in ("nansum", "nanprod", "nanmean", "nanvar", "nanstd"):
        np.testing.assert_allclose(getattr(wl, name)(z), getattr(np, name)(z), rtol=1e-12)
    assert wl.nansum(wl.tensor([1, 2])).dtype == wl.int64
    np.testing.assert_array_equal(wl.nanmax(wl.tensor([1, 2])), 2)
    many = wl.full((70000,), 1.0, dtype="float16")
    assert wl.nanmean(many).item() == 1.0


@pytest.mark.parametrize("name", REDUCTIONS)
def test_derivatives_do_not_pass_through_nan(name: str) -> None:
    x = RNG.normal(size=(3, 4))
    hole = RNG.random(x.shape) < 0.3
    hole[0, 0], hole[:, 1] = True, False
    f = getattr(wl, name)

    def g(v: Any) -> Any:
        return f(wl.where(hole, wl.nan, v), axis=1)

    wl.check_grads(g, (x,), order=2)
    direct = wl.grad(lambda v: f(v, axis=1).sum())(wl.asarray(np.where(hole, np.nan, x))).numpy()
    assert np.isfinite(direct).all()
    assert not direct[hole].any()
    check = wl.grad(lambda v: g(v).sum())(wl.asarray(x)).numpy()
    np.testing.assert_allclose(direct, check, rtol=1e-12)


def test_larger_and_smaller_of_two() -> None:
    x, y = np.array([1.0, np.nan, 3.0, np.nan, -0.5]), np.array([2.0, 2.0, np.nan, np.nan, -1.5])
    for name in ("fmax", "fmin"):
        np.testing.assert_array_equal(getattr(wl, name)(x, y), getattr(np, name)(x, y))
        np.testing.assert_array_equal(getattr(np, name)(wl.asarray(x), y), getattr(np, name)(x, y))
    slope = wl.grad(lambda x, y: wl.nansum(wl.fmax(x, y)), argnums=(0, 1))(wl.asarray(x), wl.asarray(y))
    np.testing.assert_array_equal(slope[0], [0, 0, 1, 0, 1])
    np.testing.assert_array_equal(slope[1], [1, 1, 0, 0, 0])
    assert wl.fmax(wl.tensor([1, 2]), 2).dtype == wl.int64
