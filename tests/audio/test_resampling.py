"""Resampling, pre-emphasis and mu-law."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.signal

import wonderland as wl
from wonderland.errors import AxisError, DTypeError, InputError, ShapeError

X = np.random.default_rng(0).normal(size=(2, 45))


@pytest.mark.book("8-05", name="wl.audio.resample")
@pytest.mark.parametrize(("old", "new"), [(1, 2), (2, 1), (3, 2), (2, 3), (44_100, 16_000), (7, 5), (160, 147)])
def test_resampled_signals_are_those_of_scipy(old, new):
    ours = wl.audio.resample(X, old, new)
    common = np.gcd(old, new)
    theirs = scipy.signal.resample_poly(X, new // common, old // common, axis=-1)
    assert ours.shape[-1] == -(-45 * new // old)
    np.testing.assert_allclose(np.asarray(ours), theirs, atol=1e-10)
    np.testing.assert_allclose(np.asarray(wl.audio.resample(X.T, old, new, axis=0)), theirs.T, atol=1e-10)


@pytest.mark.book("8-05", "8-06", name=("wl.audio.sample_count", "wl.audio.nbytes"))
def test_a_duration_keeps_its_length_in_seconds():
    for seconds, rate, count in ((2, 240, 480), (3600, 1 / 60, 60), (180, 44_100, 7_938_000), (10, 24, 240)):
        assert wl.audio.sample_count(seconds, rate) == count
    assert wl.audio.nbytes(180, 44_100, 2, np.int16) == 4 * 7_938_000
    assert wl.audio.resample(np.zeros(wl.audio.sample_count(0.5, 44_100)), 44_100, 16_000).shape == (8000,)
    with pytest.raises(InputError, match="sample_rate=0"):
        wl.audio.sample_count(1, 0)


def test_a_tone_stays_that_tone_and_one_too_high_is_removed():
    time = np.arange(2000) / 8000
    for old, new in ((8000, 12_000), (8000, 4000)):
        low = np.asarray(wl.audio.resample(np.sin(2 * np.pi * 440 * time), old, new))
        again = np.sin(2 * np.pi * 440 * np.arange(len(low)) / new)
        np.testing.assert_allclose(low[50:-50], again[50:-50], atol=2e-3)
    high = np.asarray(wl.audio.resample(np.sin(2 * np.pi * 3000 * time), 8000, 4000))
    assert np.abs(high[50:-50]).max() < 2e-3


def test_resampling_is_linear_and_differentiable():
    wl.check_grads(lambda x: wl.audio.resample(x, 3, 2, zeros=3), (X[:, :20],))
    wl.check_grads(lambda x: wl.audio.resample(x, 2, 3, zeros=3, axis=0), (X[:, :4].T,))
    f = wl.jit(lambda x: wl.audio.resample(x, 3, 2))
    np.testing.assert_allclose(np.asarray(f(X)), np.asarray(wl.audio.resample(X, 3, 2)), atol=1e-12)
    each = wl.vmap(lambda x: wl.audio.resample(x, 3, 2))(wl.asarray(X))
    np.testing.assert_allclose(np.asarray(each), np.asarray(f(X)), atol=1e-12)
    np.testing.assert_array_equal(np.asarray(wl.audio.resample(X, 8000, 8000)), X)
    with pytest.raises(InputError, match="new_freq=0"):
        wl.audio.resample(X, 1, 0)
    with pytest.raises(InputError, match=r"orig_freq=1\.5 is not an integer"):
        wl.audio.resample(X, 1.5, 2)
    with pytest.raises(ShapeError, match="no samples"):
        wl.audio.resample(np.zeros((2, 0)), 1, 2)
    with pytest.raises(AxisError):
        wl.audio.resample(X, 1, 2, axis=5)


def test_emphasis_against_scipy_and_back():
    y = wl.audio.preemphasis(X, 0.9)
    np.testing.assert_allclose(np.asarray(y), scipy.signal.lfilter([1, -0.9], [1], X), atol=1e-12)
    np.testing.assert_allclose(
        np.asarray(wl.audio.deemphasis(X, 0.9)), scipy.signal.lfilter([1], [1, -0.9], X), atol=1e-10
    )
    np.testing.assert_allclose(np.asarray(wl.audio.deemphasis(y, 0.9)), X, atol=1e-10)
    wl.check_grads(wl.audio.preemphasis, (X[:, :6],))
    wl.check_grads(wl.audio.deemphasis, (X[:, :6],))
    np.testing.assert_allclose(
        np.asarray(wl.jit(wl.audio.deemphasis)(X)), np.asarray(wl.audio.deemphasis(X)), atol=1e-10
    )
    with pytest.raises(InputError, match="coeff=2"):
        wl.audio.preemphasis(X, 2)
    with pytest.raises(ShapeError, match="no samples"):
        wl.audio.preemphasis(np.zeros(0))


def test_mu_law_there_and_back():
    x = np.linspace(-1, 1, 1001)
    compressed = np.sign(x) * np.log1p(255 * np.abs(x)) / np.log(256)
    np.testing.assert_allclose(np.asarray(wl.audio.mu_law_compress(x)), compressed, atol=1e-12)
    np.testing.assert_allclose(np.asarray(wl.audio.mu_law_expand(compressed)), x, atol=1e-12)
    classes = np.asarray(wl.audio.mu_law_encode(x))
    np.testing.assert_array_equal(classes, np.floor((compressed + 1) / 2 * 255 + 0.5).astype(int))
    assert (classes.min(), classes.max(), classes.dtype) == (0, 255, np.int64)
    everything = np.arange(256)
    decoded = wl.audio.mu_law_decode(everything, dtype=wl.float64)
    np.testing.assert_array_equal(np.asarray(wl.audio.mu_law_encode(decoded)), everything)
    # soft sounds are represented more finely than loud ones
    error = np.abs(np.asarray(wl.audio.mu_law_decode(classes, dtype=wl.float64)) - x)
    assert error[np.abs(x) < 0.05].max() < error.max() / 5 < 0.01
    for f in (wl.audio.mu_law_compress, wl.audio.mu_law_expand):
        wl.check_grads(f, (np.array([-0.7, 0.3, 1e-3]),))
    slope = wl.grad(wl.audio.mu_law_compress)(wl.tensor(0.0, dtype=wl.float64))
    np.testing.assert_allclose(float(slope), 255 / np.log(256))


def test_bad_levels_and_samples_are_refused():
    with pytest.raises(InputError, match=r"a sample is 1\.5"):
        wl.audio.mu_law_encode(np.array([0.0, 1.5]))
    with pytest.raises(InputError, match="a sample is nan"):
        wl.audio.mu_law_encode(np.array([np.nan]))
    with pytest.raises(InputError, match="a class is 256"):
        wl.audio.mu_law_decode(np.array([256]))
    with pytest.raises(DTypeError, match="classes of dtype"):
        wl.audio.mu_law_decode(np.array([0.5]))
    with pytest.raises(InputError, match="quantization_channels=1"):
        wl.audio.mu_law_encode(np.array([0.0]), 1)
