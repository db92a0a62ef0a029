"""The short-time Fourier transform: against SciPy and sums written out, and there and back again."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.signal

import wonderland as wl
from wonderland.errors import DTypeError, InputError, ShapeError

X = np.random.default_rng(0).normal(size=(2, 50))


@pytest.mark.parametrize("window", ["hann", "hamming", "blackman", "boxcar"])
@pytest.mark.parametrize(("n_fft", "hop"), [(16, 4), (16, 16), (15, 5), (12, 7)])
def test_spectra_are_those_of_scipy(n_fft, hop, window):
    w = scipy.signal.get_window(window, n_fft)
    options = {"window": w, "nperseg": n_fft, "noverlap": n_fft - hop, "padded": False}
    _, _, theirs = scipy.signal.stft(X, boundary=None, **options)
    ours = wl.audio.stft(X, n_fft, hop, window=window, center=False)
    np.testing.assert_allclose(np.asarray(ours), np.swapaxes(theirs, -1, -2) * w.sum(), atol=1e-12)
    if n_fft % 2 == 0:  # SciPy pads odd frames by another half
        _, _, theirs = scipy.signal.stft(X, boundary="zeros", **options)
        ours = wl.audio.stft(X, n_fft, hop, window=window, pad_mode="constant")
        np.testing.assert_allclose(np.asarray(ours), np.swapaxes(theirs, -1, -2) * w.sum(), atol=1e-12)


def written_out(x, n_fft, hop, win_length):
    """The definition, frame by frame, with a reflected signal and a window in the middle of the frame."""
    x = np.pad(x, n_fft // 2, mode="reflect")
    w = np.zeros(n_fft)
    start = (n_fft - win_length) // 2
    w[start : start + win_length] = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(win_length) / win_length)
    k, j = np.arange(n_fft // 2 + 1)[:, None], np.arange(n_fft)
    transform = np.exp(-2j * np.pi * k * j / n_fft)
    return np.array([transform @ (w * x[i : i + n_fft]) for i in range(0, len(x) - n_fft + 1, hop)])


@pytest.mark.parametrize(("n_fft", "hop", "win_length"), [(16, 4, 16), (16, 5, 10), (13, 3, 8)])
def test_spectra_are_the_sums_written_out(n_fft, hop, win_length):
    wanted = written_out(X[0], n_fft, hop, win_length)
    np.testing.assert_allclose(np.asarray(wl.audio.stft(X[0], n_fft, hop, win_length)), wanted, atol=1e-12)
    normalized = wl.audio.stft(X[0], n_fft, hop, win_length, normalized=True)
    np.testing.assert_allclose(np.asarray(normalized), wanted / np.sqrt(n_fft), atol=1e-12)


@pytest.mark.book("8-03", name=("wl.audio.stft", "wl.audio.spectrogram"))
@pytest.mark.parametrize("frequency", [500, 1000, 1300])
def test_a_pure_tone_peaks_at_its_frequency(frequency):
    rate, n_fft = 8000, 256
    tone = np.sin(2 * np.pi * frequency * np.arange(rate // 4) / rate)
    loudness = np.asarray(wl.audio.spectrogram(tone, n_fft))
    assert (loudness[2:-2].argmax(axis=-1) == round(frequency * n_fft / rate)).all()


@pytest.mark.parametrize("time", [50, 47])
@pytest.mark.parametrize(
    ("n_fft", "hop", "win_length", "window"),
    [(16, 4, None, "hann"), (16, 8, None, "hamming"), (15, 4, 11, "blackman"), (16, 16, None, "boxcar")],
)
def test_the_inverse_gives_the_signal_back(n_fft, hop, win_length, window, time):
    x = X[:, :time]
    spectrum = wl.audio.stft(x, n_fft, hop, win_length, window)
    back = np.asarray(wl.audio.istft(spectrum, n_fft, hop, win_length, window, length=time))
    assert back.shape == x.shape
    covered = min(time, (spectrum.shape[-2] - 1) * hop)
    np.testing.assert_allclose(back[:, :covered], x[:, :covered], atol=1e-12)
    once = wl.audio.stft(x, n_fft, hop, win_length, window, center=False, normalized=True)
    back = wl.audio.istft(once, n_fft, hop, win_length, window, center=False, normalized=True)
    np.testing.assert_allclose(np.asarray(back)[:, n_fft:-n_fft], x[:, n_fft : back.shape[-1] - n_fft], atol=1e-12)
    assert wl.audio.istft(spectrum, n_fft, hop, win_length, window, length=2 * time).shape == (2, 2 * time)


def test_the_inverse_of_any_spectrum_is_that_of_scipy():
    spectrum = np.random.default_rng(1).normal(size=(2, 9, 9)) + 1j
    spectrum[..., [0, -1]] = spectrum[..., [0, -1]].real
    ours = wl.audio.istft(spectrum, 16, 4)
    scaled = np.swapaxes(spectrum, -1, -2) / scipy.signal.get_window("hann", 16).sum()
    _, theirs = scipy.signal.istft(scaled, nperseg=16, noverlap=12, boundary=True)
    np.testing.assert_allclose(np.asarray(ours), theirs, atol=1e-12)


def test_derivatives_and_transformations():
    x = X[:, :24]
    wl.check_grads(lambda x: wl.audio.stft(x, 8, 3, 6), (x,))
    wl.check_grads(lambda x, w: wl.audio.stft(x, 8, 3, window=w), (x, np.hanning(8)))  # a window that is learned
    wl.check_grads(lambda s: wl.audio.istft(s, 8, 2), (np.asarray(wl.audio.stft(x, 8, 2)),))
    spectrum = np.asarray(wl.audio.stft(x, 8, 3))
    np.testing.assert_allclose(np.asarray(wl.jit(lambda x: wl.audio.stft(x, 8, 3))(x)), spectrum, atol=1e-12)
    np.testing.assert_allclose(
        np.asarray(wl.vmap(lambda x: wl.audio.stft(x, 8, 3))(wl.asarray(x))), spectrum, atol=1e-12
    )
    there_and_back = wl.jit(lambda x: wl.audio.istft(wl.audio.stft(x, 8, 2), 8, 2))
    np.testing.assert_allclose(np.asarray(there_and_back(x)), x, atol=1e-12)
    assert wl.audio.stft(x.astype(np.float32), 8).dtype == wl.complex64


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_fft": 0}, "n_fft=0 is too small"),
        ({"n_fft": 8, "win_length": 9}, "win_length=9 is more than n_fft=8"),
        ({"n_fft": 8, "window": "round"}, "there is no window 'round'"),
        ({"n_fft": 8, "window": np.ones(7)}, r"a window of shape \(7,\)"),
        ({"n_fft": 8, "pad_mode": "mirror"}, "pad_mode='mirror'"),
        ({"n_fft": 100}, "cannot be reflected by n_fft // 2 = 50"),
        ({"n_fft": 100, "center": False}, "shorter than n_fft=100"),
        ({"n_fft": 8, "hop_length": 0}, "hop_length=0"),
    ],
)
def test_bad_settings_are_refused(arguments, message):
    with pytest.raises(InputError, match=message):
        wl.audio.stft(X, **arguments)


def test_bad_signals_and_spectra_are_refused():
    with pytest.raises(ShapeError, match="has no samples"):
        wl.audio.stft(np.zeros((2, 0)), 4)
    with pytest.raises(DTypeError, match="complex"):
        wl.audio.stft(X + 1j, 4)
    with pytest.raises(DTypeError, match="with its phases"):
        wl.audio.istft(np.ones((3, 5)))
    with pytest.raises(ShapeError, match="5 frequencies with n_fft=16"):
        wl.audio.istft(np.ones((3, 5)) + 0j, 16)
    for hop in (8, 20):
        with pytest.raises(InputError, match="leave gaps"):
            wl.audio.istft(np.ones((3, 5)) + 0j, 8, hop)
