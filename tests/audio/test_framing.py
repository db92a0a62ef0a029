"""Frames and their sum: against sliding windows, and each the transpose of the other."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import wonderland as wl
from wonderland.errors import InputError, ShapeError


@settings(max_examples=40)
@given(st.integers(1, 30), st.integers(1, 12), st.integers(1, 15))
def test_frames_are_sliding_windows_and_overlap_add_is_the_transpose(time, length, hop):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(2, time))
    if length > time:
        with pytest.raises(ShapeError, match="shorter than one frame"):
            wl.audio.frame(x, length, hop)
        return
    frames = wl.audio.frame(x, length, hop)
    np.testing.assert_array_equal(
        np.asarray(frames), np.lib.stride_tricks.sliding_window_view(x, length, axis=-1)[:, ::hop]
    )
    f = rng.normal(size=frames.shape)
    back = np.asarray(wl.audio.overlap_add(f, hop))
    used = back.shape[-1]
    assert used == (frames.shape[-2] - 1) * hop + length <= time
    np.testing.assert_allclose(np.vdot(np.asarray(frames), f), np.vdot(x[:, :used], back), rtol=1e-9, atol=1e-9)


def test_derivatives_and_transformations():
    x = np.random.default_rng(1).normal(size=(3, 11))
    for length, hop in ((4, 2), (5, 2), (2, 3)):
        wl.check_grads(lambda x, n=length, h=hop: wl.sin(wl.audio.frame(x, n, h)), (x,))
        f = wl.audio.frame(x, length, hop)
        wl.check_grads(lambda f, h=hop: wl.sin(wl.audio.overlap_add(f, h)), (f,))
        np.testing.assert_array_equal(
            np.asarray(wl.jit(lambda x, n=length, h=hop: wl.audio.frame(x, n, h))(x)), np.asarray(f)
        )
        np.testing.assert_array_equal(
            np.asarray(wl.vmap(lambda x, n=length, h=hop: wl.audio.frame(x, n, h))(wl.asarray(x))), np.asarray(f)
        )


def test_bad_frames_are_refused():
    with pytest.raises(InputError, match="hop_length=0"):
        wl.audio.frame(np.zeros(5), 2, 0)
    with pytest.raises(ShapeError, match=r"\(\) is shorter"):
        wl.audio.frame(1.0, 1, 1)
    with pytest.raises(ShapeError, match="frames of shape"):
        wl.audio.overlap_add(np.zeros(3), 1)


@pytest.mark.parametrize("center", [True, False])
def test_counts_of_frames_are_those_of_the_transform(center):
    for time in (16, 17, 23, 40):
        for n_fft, hop in ((8, 3), (9, 4), (16, 16)):
            spectrum = wl.audio.stft(np.ones(time), n_fft, hop, center=center)
            assert wl.audio.frame_count(time, n_fft, hop, center=center) == spectrum.shape[0]
    np.testing.assert_array_equal(wl.audio.frame_count(np.array([8, 16]), 8, 4), [3, 5])
    assert wl.audio.frame_count(wl.tensor([8, 16]), 8, 4).tolist() == [3, 5]


@pytest.mark.book("8-07", "8-21", "8-25", name=("wl.audio.frame_count", "wl.data.PadCollate"))
def test_padded_signals_have_the_frames_of_the_signals_alone():
    rng = np.random.default_rng(2)
    signals = [rng.normal(size=n) for n in (50, 33, 20)]
    batch = wl.data.PadCollate()(signals)
    counts = wl.audio.frame_count(batch.lengths, 16, 4)
    options = {"n_fft": 16, "hop_length": 4, "pad_mode": "constant"}
    for operation in (
        lambda x: wl.audio.stft(x, **options),
        lambda x: wl.audio.spectrogram(x, power=1.0, **options),
        lambda x: wl.audio.mel_spectrogram(x, 8000, n_mels=3, **options),
        lambda x: wl.audio.mfcc(x, 8000, 2, n_mels=3, log_mels=True, **options),
    ):
        together = np.asarray(operation(batch.values))
        for row, signal, count in zip(together, signals, counts, strict=True):
            alone = np.asarray(operation(signal))
            assert len(alone) == count
            np.testing.assert_allclose(row[:count], alone, rtol=1e-12, atol=1e-12)
    # a reflected end is another sound than silence
    reflected = np.asarray(wl.audio.stft(batch.values, 16, 4))
    assert np.abs(reflected[2, : counts[2]] - np.asarray(wl.audio.stft(signals[2], 16, 4))).max() > 0.1
