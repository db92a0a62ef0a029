"""Medians and quantiles against NumPy: methods, axes, NaN, infinities, types; and their derivatives."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import wonderland as wl
from wonderland.arrays.quantiles import PLACES, PLOTTING

RNG = np.random.default_rng(7)
METHODS = [*PLOTTING, *PLACES]
AXES: list[Any] = [None, 0, 1, -1, (0, 2), (0, 1, 2)]
SHARES: list[Any] = [0, 1, 0.5, 0.3, [0.0, 0.1, 0.25, 0.5, 0.77, 1.0], [[0.2], [0.9]]]


def by_numpy(name: str, *args: Any, **options: Any) -> Any:
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return getattr(np, name)(*args, **options)


def with_gaps(shape: tuple[int, ...]) -> Any:
    x = RNG.normal(size=shape)
    x[RNG.random(shape) < 0.3] = np.nan
    return x


@pytest.mark.parametrize("method", METHODS)
def test_every_method_places_a_quantile_where_numpy_does(method: str) -> None:
    for n in (1, 2, 3, 4, 5, 10, 11):
        x = RNG.permutation(n).astype(float) ** 2
        q = np.array([0.0, 0.1, 0.2, 0.25, 0.3, 1 / 3, 0.4, 0.5, 0.6, 0.75, 0.9, 0.99, 1.0])
        np.testing.assert_allclose(wl.quantile(x, q, method=method), np.quantile(x, q, method=method), rtol=1e-12)  # type: ignore[call-overload]
        # multiples of 1/n, where the stepwise methods jump
        q = np.arange(n + 1) / n
        np.testing.assert_allclose(wl.quantile(x, q, method=method), np.quantile(x, q, method=method), rtol=1e-12)  # type: ignore[call-overload]


@pytest.mark.parametrize("axis", AXES)
@pytest.mark.parametrize("q", SHARES)
def test_axes_and_shapes_of_q(axis: Any, q: Any) -> None:
    x = RNG.normal(size=(3, 4, 5))
    for keepdims in (False, True):
        for name, factor in (("quantile", 1), ("percentile", 100)):
            share = np.multiply(q, factor)
            got = getattr(wl, name)(x, share, axis=axis, keepdims=keepdims)
            want = getattr(np, name)(x, share, axis=axis, keepdims=keepdims)
            assert got.shape == want.shape
            np.testing.assert_allclose(got, want, rtol=1e-12)


@pytest.mark.parametrize("axis", AXES)
def test_nan_is_kept_or_left_out(axis: Any) -> None:
    x = with_gaps((3, 4, 5))
    x[:, 1, 2] = np.nan
    for keepdims in (False, True):
        for name in ("median", "nanmedian"):
            got = getattr(wl, name)(x, axis=axis, keepdims=keepdims)
            want = by_numpy(name, x, axis=axis, keepdims=keepdims)
            assert got.shape == want.shape
            np.testing.assert_allclose(got, want, rtol=1e-12)
        for name in ("quantile", "nanquantile"):
            for q in (0.3, [0.0, 0.6, 1.0]):
                got = getattr(wl, name)(x, wl.tensor(q, wl.float64), axis=axis, keepdims=keepdims)
                np.testing.assert_allclose(got, by_numpy(name, x, q, axis=axis, keepdims=keepdims), rtol=1e-12)
    got = wl.nanpercentile(x, 30, axis=axis, method="hazen")
    np.testing.assert_allclose(got, by_numpy("nanpercentile", x, 30, axis=axis, method="hazen"), rtol=1e-12)


def test_infinities_are_values() -> None:
    x = wl.tensor([-np.inf, -np.inf, 1.0, np.inf, np.inf])
    np.testing.assert_array_equal(
        wl.quantile(x, [0.0, 0.1, 0.25, 0.5, 0.75, 0.9, 1.0]), x.numpy()[[0, 0, 1, 2, 3, 4, 4]]
    )
    assert wl.median(wl.tensor([np.inf, np.inf])).item() == np.inf
    assert wl.median(wl.tensor([1.0, 2.0, np.inf])).item() == 2.0


def test_types() -> None:
    for dtype in ("float16", "bfloat16", "float32", "float64"):
        x = wl.tensor([3.0, 1.0, 2.0, 8.0]).astype(dtype)
        for out in (wl.median(x), wl.quantile(x, 0.5), wl.nanmedian(x), wl.nanquantile(x, 0.5)):
            assert (out.dtype, out.item()) == (dtype, 2.5)  # type: ignore[comparison-overlap]
    assert wl.median(wl.tensor([1, 2])).dtype == wl.float32
    large = wl.full((2,), 60000.0, dtype="float16")
    assert wl.median(large).item() == 60000.0
    with pytest.raises(wl.errors.DTypeError):
        wl.median(wl.tensor([1j]))


def test_what_is_refused() -> None:
    x = wl.arange(3)
    with pytest.raises(wl.errors.InputError, match=r"q reaches from 0.5 to 1.5"):
        wl.quantile(x, [0.5, 1.5])
    with pytest.raises(wl.errors.InputError, match="percentile: q reaches from -1"):
        wl.percentile(x, -1)
    with pytest.raises(wl.errors.InputError, match="method='cubic'"):
        wl.quantile(x, 0.5, method="cubic")
    with pytest.raises(wl.errors.InputError, match="no elements"):
        wl.quantile(wl.zeros((0, 3)), 0.5, axis=0)
    assert np.isnan(wl.median(wl.zeros((0, 3)), axis=0).numpy()).all()
    with pytest.raises(wl.errors.InputError, match="kth=3 for an axis of size 3"):
        wl.partition(x, 3)


def test_derivatives_go_to_the_elements_in_the_middle() -> None:
    x = wl.tensor([5.0, 1.0, 3.0, 2.0], wl.float64)
    np.testing.assert_allclose(wl.grad(wl.median)(x), [0, 0, 0.5, 0.5])
    np.testing.assert_allclose(wl.grad(lambda x: wl.quantile(x, 0.1))(x), [0, 0.7, 0, 0.3], atol=1e-12)
    y = RNG.permutation(24).reshape(2, 3, 4) * 0.7
    for method in ("linear", "midpoint", "hazen"):
        wl.check_grads(lambda y, m=method: wl.quantile(y, [0.13, 0.6], axis=(0, 2), method=m), (y,), order=2)
    wl.check_grads(lambda q: wl.quantile(wl.asarray(y), q, axis=1), (wl.tensor([0.13, 0.6], wl.float64),))
    gaps = with_gaps((4, 6))
    slope = wl.grad(lambda g: wl.nanmedian(g, axis=1).sum())(wl.asarray(gaps)).numpy()
    assert not slope[np.isnan(gaps)].any()
    np.testing.assert_allclose(slope.sum(axis=1), 1.0)


def test_engines_agree_and_q_may_be_traced() -> None:
    x = wl.asarray(with_gaps((5, 33)))
    for f in (
        lambda x, q: wl.nanquantile(x, q, axis=1, method="median_unbiased"),
        lambda x, q: wl.quantile(wl.nan_to_num(x), q, axis=0),
        lambda x, q: wl.median(x, axis=1) + q[0],
    ):
        q = wl.tensor([0.2, 0.7], wl.float64)
        np.testing.assert_allclose(wl.jit(f)(x, q), f(x, q), rtol=1e-12)
        with wl.using_backend("numpy"):
            np.testing.assert_allclose(wl.jit(f)(x, q), f(x, q), rtol=1e-12)


def test_partitions_hold_what_numpy_promises() -> None:
    x = RNG.normal(size=(4, 9))
    for axis in (0, -1):
        got = wl.partition(x, 3, axis=axis).numpy()
        np.testing.assert_array_equal(np.take(got, 3, axis), np.take(np.partition(x, 3, axis), 3, axis))
        order = wl.argpartition(x, [1, 3], axis=axis)
        np.testing.assert_array_equal(wl.take_along_axis(x, order, axis=axis), got)
