"""Averages, covariances, counts, histograms and positions in sorted rows, against NumPy."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import wonderland as wl

RNG = np.random.default_rng(5)


@pytest.mark.parametrize("axis", [None, 0, 1, -1])
def test_average(axis: Any) -> None:
    x, w = RNG.normal(size=(4, 5)), RNG.random((4, 5))
    np.testing.assert_allclose(wl.average(x, axis=axis), np.average(x, axis=axis))
    np.testing.assert_allclose(wl.average(x, axis=axis, weights=w), np.average(x, axis=axis, weights=w))
    got, want = (m.average(x, axis=axis, weights=w, returned=True) for m in (wl, np))
    for a, b in zip(got, want, strict=True):
        np.testing.assert_allclose(a, b)
    np.testing.assert_allclose(wl.average(x, axis=axis, returned=True)[1], np.average(x, axis=axis, returned=True)[1])
    if axis is not None:
        v = RNG.random(x.shape[axis])
        np.testing.assert_allclose(wl.average(x, axis=axis, weights=v), np.average(x, axis=axis, weights=v))
    np.testing.assert_allclose(wl.ptp(x, axis=axis), np.ptp(x, axis=axis))


def test_average_refuses_weights_that_do_not_fit() -> None:
    with pytest.raises(wl.errors.ShapeError, match=r"weights of shape \(3,\)"):
        wl.average(wl.ones((3, 2)), weights=wl.ones(3))
    with pytest.raises(wl.errors.ShapeError, match="2 weights for an axis of size 3"):
        wl.average(wl.ones((3, 2)), axis=0, weights=wl.ones(2))


@pytest.mark.parametrize("options", [{}, {"bias": True}, {"ddof": 0}, {"ddof": 2}, {"rowvar": False}])
def test_covariance(options: dict[str, Any]) -> None:
    x, y = RNG.normal(size=(4, 7)), RNG.normal(size=(4, 7))
    n = 4 if options.get("rowvar") is False else 7
    weights = {"fweights": RNG.integers(1, 4, n), "aweights": RNG.random(n)}
    np.testing.assert_allclose(wl.cov(x, **options), np.cov(x, **options), rtol=1e-10)
    np.testing.assert_allclose(wl.cov(x, y, **options), np.cov(x, y, **options), rtol=1e-10)
    np.testing.assert_allclose(wl.cov(x, **options, **weights), np.cov(x, **options, **weights), rtol=1e-10)  # type: ignore[arg-type, call-overload]
    for name, w in weights.items():
        np.testing.assert_allclose(wl.cov(x, **options, **{name: w}), np.cov(x, **options, **{name: w}), rtol=1e-10)  # type: ignore[arg-type, call-overload]
    rowvar = options.get("rowvar", True)
    np.testing.assert_allclose(wl.corrcoef(x, y, rowvar), np.corrcoef(x, y, rowvar), rtol=1e-10)


def test_covariance_of_vectors_and_of_complex_numbers() -> None:
    x = RNG.normal(size=6)
    np.testing.assert_allclose(wl.cov(x), np.cov(x))
    np.testing.assert_allclose(wl.corrcoef(x), np.corrcoef(x))
    z = RNG.normal(size=(3, 6)) + 1j * RNG.normal(size=(3, 6))
    np.testing.assert_allclose(wl.cov(z), np.cov(z))
    np.testing.assert_allclose(wl.cov(z, aweights=np.arange(1.0, 7.0)), np.cov(z, aweights=np.arange(1.0, 7.0)))
    np.testing.assert_allclose(wl.corrcoef(z), np.corrcoef(z))
    assert wl.cov(wl.ones((2, 3), dtype="bfloat16")).dtype == wl.bfloat16
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        np.testing.assert_array_equal(wl.cov(wl.ones((2, 1))), np.cov(np.ones((2, 1))))
    with pytest.raises(wl.errors.DTypeError, match="fweights are float"):
        wl.cov(x, fweights=np.ones(6))


def test_derivatives_of_covariances() -> None:
    x, w = RNG.normal(size=(3, 5)), RNG.random(5) + 0.5
    wl.check_grads(wl.cov, (x,), order=2)
    wl.check_grads(wl.corrcoef, (x,))
    wl.check_grads(lambda x, w: wl.cov(x, aweights=w), (x, w))
    wl.check_grads(lambda x, w: wl.average(x, axis=1, weights=w), (x, w))


# --- counts


def test_bincount() -> None:
    x, w = RNG.integers(0, 9, 40), RNG.random(40)
    np.testing.assert_array_equal(wl.bincount(x), np.bincount(x))
    np.testing.assert_array_equal(wl.bincount(x, minlength=20), np.bincount(x, minlength=20))
    np.testing.assert_allclose(wl.bincount(x, w), np.bincount(x, w))
    np.testing.assert_array_equal(wl.jit(lambda x: wl.bincount(x, length=12))(x), np.bincount(x, minlength=12))
    assert wl.bincount(wl.zeros(0, dtype="int64"), minlength=2).tolist() == [0, 0]
    np.testing.assert_array_equal(wl.bincount(wl.asarray(x.astype("uint8"))), np.bincount(x))
    np.testing.assert_array_equal(
        wl.grad(lambda w: wl.bincount(wl.asarray(x), w)[3])(wl.asarray(w)), (x == 3).astype(float)
    )


def test_bincount_refuses_what_it_would_count_wrongly() -> None:
    with pytest.raises(wl.errors.WonderlandError, match="out of range"):
        wl.bincount(wl.tensor([1, -1]))
    for backend in ("native", "numpy"):
        with wl.using_backend(backend), pytest.raises(wl.errors.WonderlandError, match="out of range"):
            wl.jit(lambda x: wl.bincount(x, length=3))(wl.tensor([1, 3])).numpy()
    with pytest.raises(wl.errors.InputError, match="length="):
        wl.jit(wl.bincount)(wl.tensor([1, 3]))
    with pytest.raises(wl.errors.DTypeError, match="elements are float32"):
        wl.bincount(wl.tensor([1.0]))


@pytest.mark.parametrize("right", [False, True])
def test_digitize(right: bool) -> None:
    x = np.array([[-1.0, 0.0, 0.5], [1.0, 2.5, np.nan]])
    for bins in ([0.0, 1.0, 1.0, 2.0], [2.0, 1.0, 1.0, 0.0], [1.0], []):
        np.testing.assert_array_equal(wl.digitize(x, np.array(bins), right), np.digitize(x, np.array(bins), right))
        if bins and bins[0] < 2:
            side = "right" if right else "left"
            np.testing.assert_array_equal(wl.bucketize(x, np.array(bins), right=right), np.searchsorted(bins, x, side))  # type: ignore[call-overload]
    with pytest.raises(wl.errors.InputError, match="do not go one way"):
        wl.digitize(x, [0.0, 2.0, 1.0])


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64"])
def test_histogram(dtype: str) -> None:
    x, w = (RNG.normal(size=(20, 30)) * 5).astype(dtype), RNG.random((20, 30))
    calls: list[dict[str, Any]] = [{}, {"bins": 7}, {"bins": 5, "range": (-3, 4)}, {"bins": [-2, 0, 1, 7]}]
    for options in [*calls, {"bins": 4, "weights": w}, {"bins": 6, "density": True}, {"density": True, "weights": w}]:
        got, want = wl.histogram(x, **options), np.histogram(x, **options)
        np.testing.assert_allclose(got.counts, want[0], rtol=1e-5 if dtype != "float64" else 1e-12)
        np.testing.assert_allclose(got.edges, want[1], rtol=1e-5 if dtype != "float64" else 1e-12, atol=1e-6)
        traced = wl.jit(lambda x, options=options: tuple(wl.histogram(x, **options)))(wl.asarray(x))
        np.testing.assert_allclose(traced[0], got.counts, rtol=1e-6)
    for rule in ("auto", "sturges", "fd"):
        np.testing.assert_allclose(
            wl.histogram_bin_edges(x, rule), np.histogram_bin_edges(x.astype("float64"), rule), rtol=1e-5, atol=1e-5
        )


def test_histograms_of_few_elements_and_of_gaps() -> None:
    for x in (np.zeros(0), np.array([3.0]), np.array([2.0, 2.0])):
        got, want = wl.histogram(x, 3), np.histogram(x, 3)
        np.testing.assert_array_equal(got.counts, want[0])
        np.testing.assert_allclose(got.edges, want[1])
    x = np.array([0.1, np.nan, 0.9, 1.0, np.inf])
    np.testing.assert_array_equal(wl.histogram(x, 4, (0, 1)).counts, np.histogram(x, 4, (0, 1))[0])
    with pytest.raises(wl.errors.InputError, match="reach from nan"):
        wl.histogram(x)
    with pytest.raises(wl.errors.InputError, match="do not go one way"):
        wl.histogram(x, [0.0, 2.0, 1.0])
    with pytest.raises(wl.errors.InputError, match="bins=0"):
        wl.histogram(x, 0)


# --- positions in sorted rows


def test_searchsorted_in_rows() -> None:
    rows, values = np.sort(RNG.integers(0, 9, (2, 3, 6)), axis=-1), RNG.integers(0, 9, (2, 3, 4))
    for side in ("left", "right"):
        want = np.empty(values.shape, np.int64)
        for i in np.ndindex(2, 3):
            want[i] = np.searchsorted(rows[i], values[i], side)
        for f in (wl.searchsorted, wl.jit(wl.searchsorted, static_argnames="side")):
            np.testing.assert_array_equal(f(wl.asarray(rows), wl.asarray(values), side=side), want)
        one = wl.searchsorted(rows[:1], values, side=side)  # the axes before the last broadcast
        np.testing.assert_array_equal(
            one[1], [np.searchsorted(r, v, side) for r, v in zip(rows[0], values[1], strict=True)]
        )
    mixed = RNG.permuted(rows, axis=-1)
    np.testing.assert_array_equal(
        wl.searchsorted(mixed, values, sorter=wl.argsort(mixed)), wl.searchsorted(rows, values)
    )
    with pytest.raises(wl.errors.ShapeError, match="rows of values"):
        wl.searchsorted(rows, values[0])
    with pytest.raises(wl.errors.ShapeError, match="do not broadcast"):
        wl.searchsorted(rows, RNG.integers(0, 9, (2, 2, 4)))
