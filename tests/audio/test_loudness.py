"""Spectrograms, decibels, mel filters and cepstra."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.fft

import wonderland as wl
from wonderland.errors import InputError

X = np.random.default_rng(0).normal(size=(2, 60))


def test_power_magnitude_and_others():
    modulus = np.abs(np.asarray(wl.audio.stft(X, 16)))
    for power in (1.0, 2.0, 3.0):
        ours = wl.audio.spectrogram(X, 16, power=power)
        np.testing.assert_allclose(np.asarray(ours), modulus**power, rtol=1e-10, atol=1e-12)
    with pytest.raises(InputError, match="power=0"):
        wl.audio.spectrogram(X, 16, power=0)


def test_decibels():
    x = np.array([1e-12, 1e-3, 1.0, 50.0])
    np.testing.assert_allclose(np.asarray(wl.audio.power_to_db(x, top_db=None)), [-100, -30, 0, 10 * np.log10(50)])
    np.testing.assert_allclose(np.asarray(wl.audio.power_to_db(x, top_db=40.0)).min(), 10 * np.log10(50) - 40)
    np.testing.assert_allclose(np.asarray(wl.audio.amplitude_to_db(x, ref=2.0, top_db=None))[2], -20 * np.log10(2))
    for there, back in (
        (wl.audio.power_to_db, wl.audio.db_to_power),
        (wl.audio.amplitude_to_db, wl.audio.db_to_amplitude),
    ):
        np.testing.assert_allclose(np.asarray(back(there(x[1:], ref=3.0, top_db=None), ref=3.0)), x[1:], rtol=1e-12)
    batch = np.random.default_rng(0).random((3, 4, 5)) ** 20 * np.array([1.0, 1e3, 1e6])[:, None, None]
    for together, alone in zip(wl.audio.power_to_db(batch, top_db=20.0), batch, strict=True):
        np.testing.assert_allclose(np.asarray(together), np.asarray(wl.audio.power_to_db(alone, top_db=20.0)))
        assert np.ptp(np.asarray(together)) == pytest.approx(20)
    wl.check_grads(lambda x: wl.audio.power_to_db(x), (np.array([0.5, 2.0, 3.0]),))
    assert np.isfinite(np.asarray(wl.grad(lambda x: wl.audio.power_to_db(x).sum())(wl.zeros(3)))).all()
    with pytest.raises(InputError, match="amin=0"):
        wl.audio.power_to_db(x, amin=0)


# --- mel filters: triangles written out one by one


def to_mel(f, scale):
    if scale == "htk":
        return 2595 * np.log10(1 + f / 700)
    return 3 * f / 200 if f < 1000 else 15 + 27 * np.log(f / 1000) / np.log(6.4)


def to_hz(m, scale):
    if scale == "htk":
        return 700 * (10 ** (m / 2595) - 1)
    return 200 * m / 3 if m < 15 else 1000 * 6.4 ** ((m - 15) / 27)


def bank_written_out(n_freqs, n_mels, rate, low, high, scale, area):
    points = [to_hz(m, scale) for m in np.linspace(to_mel(low, scale), to_mel(high, scale), n_mels + 2)]
    bank = np.zeros((n_freqs, n_mels))
    for m in range(n_mels):
        left, middle, right = points[m : m + 3]
        for k in range(n_freqs):
            f = k * rate / 2 / (n_freqs - 1)
            if left < f <= middle:
                bank[k, m] = (f - left) / (middle - left)
            elif middle < f < right:
                bank[k, m] = (right - f) / (right - middle)
        if area:
            bank[:, m] *= 2 / (right - left)
    return bank


@pytest.mark.parametrize("area", [False, True])
@pytest.mark.parametrize("scale", ["htk", "slaney"])
@pytest.mark.parametrize(("low", "high"), [(0.0, None), (100.0, 6000.0)])
def test_mel_filters_are_the_triangles_written_out(scale, area, low, high):
    norm = "slaney" if area else None
    ours = wl.audio.mel_filter_bank(201, 20, 16_000, low, high, norm=norm, mel_scale=scale, dtype=wl.float64)
    wanted = bank_written_out(201, 20, 16_000, low, high or 8000.0, scale, area)
    np.testing.assert_allclose(np.asarray(ours), wanted, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("scale", ["htk", "slaney"])
def test_mels_and_back(scale):
    f = np.array([0.0, 60.0, 999.0, 1000.0, 4000.0])
    mels = wl.audio.hz_to_mel(f, scale)
    np.testing.assert_allclose(np.asarray(mels), [to_mel(v, scale) for v in f], rtol=1e-12)
    np.testing.assert_allclose(np.asarray(wl.audio.mel_to_hz(mels, scale)), f, rtol=1e-12, atol=1e-12)
    wl.check_grads(lambda f: wl.audio.hz_to_mel(f, scale), (f + 10,))


def test_the_cosine_transform_is_that_of_scipy():
    x = np.random.default_rng(1).normal(size=(3, 10))
    for norm in ("ortho", None):
        ours = x @ np.asarray(wl.audio.dct_matrix(10, 6, norm, dtype=wl.float64))
        np.testing.assert_allclose(ours, scipy.fft.dct(x, norm=norm)[:, :6], atol=1e-12)
    with pytest.raises(InputError, match="11 coefficients of 10"):
        wl.audio.dct_matrix(10, 11)


SETTINGS = {"n_fft": 64, "hop_length": 16, "n_mels": 8}


@pytest.mark.book("8-03", name=("wl.audio.mel_spectrogram", "wl.audio.mfcc"))
def test_mel_spectrogram_and_cepstra_step_by_step():
    x = np.random.default_rng(2).normal(size=200)
    energy = np.abs(np.asarray(wl.audio.stft(x, 64, 16))) ** 2
    mels = energy @ bank_written_out(33, 8, 8000, 0.0, 4000.0, "htk", False)
    np.testing.assert_allclose(np.asarray(wl.audio.mel_spectrogram(x, 8000, **SETTINGS)), mels, rtol=1e-9)
    cepstra = scipy.fft.dct(10 * np.log10(mels), norm="ortho")[:, :5]
    np.testing.assert_allclose(np.asarray(wl.audio.mfcc(x, 8000, 5, top_db=None, **SETTINGS)), cepstra, rtol=1e-7)
    logarithmic = wl.audio.mfcc(x, 8000, 5, log_mels=True, **SETTINGS)
    np.testing.assert_allclose(
        np.asarray(logarithmic), scipy.fft.dct(np.log(mels + 1e-6), norm="ortho")[:, :5], rtol=1e-7
    )


def test_derivatives_and_transformations():
    x = np.random.default_rng(3).normal(size=(2, 100))
    wl.check_grads(lambda x: wl.audio.spectrogram(x, 16, 8, power=1.0), (x,))
    wl.check_grads(lambda x: wl.audio.mfcc(x, 8000, 4, log_mels=True, **SETTINGS), (x,))
    f = wl.jit(lambda x: wl.audio.mfcc(x, 8000, 4, log_mels=True, **SETTINGS))
    wanted = np.asarray(wl.audio.mfcc(x, 8000, 4, log_mels=True, **SETTINGS))
    np.testing.assert_allclose(np.asarray(f(x)), wanted, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(np.asarray(wl.vmap(f)(wl.asarray(x))), wanted, rtol=1e-9, atol=1e-9)
    # silence has a magnitude of 0, where the derivative is taken as 0
    assert np.isfinite(np.asarray(wl.grad(lambda x: wl.audio.spectrogram(x, 16, power=1.0).sum())(wl.zeros(40)))).all()


def test_layers_do_what_the_functions_do():
    x = wl.asarray(np.random.default_rng(4).normal(size=(2, 100)))
    pairs = [
        (wl.audio.Spectrogram(16, 4, power=1.0), wl.audio.spectrogram(x, 16, 4, power=1.0)),
        (wl.audio.MelSpectrogram(8000, **SETTINGS), wl.audio.mel_spectrogram(x, 8000, **SETTINGS)),
        (wl.audio.MFCC(8000, 4, **SETTINGS), wl.audio.mfcc(x, 8000, 4, **SETTINGS)),
        (wl.audio.Resample(3, 2), wl.audio.resample(x, 3, 2)),
        (wl.audio.PreEmphasis(0.9), wl.audio.preemphasis(x, 0.9)),
        (wl.audio.AmplitudeToDB("magnitude"), wl.audio.amplitude_to_db(x)),
    ]
    for layer, wanted in pairs:
        np.testing.assert_array_equal(np.asarray(layer(x)), np.asarray(wanted))
        np.testing.assert_allclose(np.asarray(wl.jit(layer)(x)), np.asarray(wanted), rtol=1e-9, atol=1e-9)
        assert not layer.state_dict()
    with pytest.raises(InputError, match="stype='decibel'"):
        wl.audio.AmplitudeToDB("decibel")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"f_min": 5000.0}, "f_min=5000, f_max=4000"),
        ({"f_max": 5000.0}, "f_max=5000 with sample_rate=8000"),
        ({"norm": "area"}, "norm='area'"),
        ({"mel_scale": "bark"}, "mel_scale='bark'"),
        ({"n_mels": 60}, "filters lie between two of the 33 frequencies"),
        ({"n_mels": 0}, "n_mels=0"),
    ],
)
def test_bad_settings_are_refused(arguments, message):
    with pytest.raises(InputError, match=message):
        wl.audio.mel_spectrogram(np.ones(100), 8000, **(SETTINGS | arguments))


def test_more_cepstra_than_mels_are_refused():
    with pytest.raises(InputError, match="n_mfcc=9 of n_mels=8"):
        wl.audio.mfcc(np.ones(100), 8000, 9, **SETTINGS)
