"""WAV files: written here and read by others, written by others and read here, and damaged."""

from __future__ import annotations

import struct
import wave

import numpy as np
import pytest
import scipy.io.wavfile

import wonderland as wl
from wonderland.errors import DTypeError, FileError, InputError, ShapeError, WonderlandError

SINE = np.stack([np.sin(np.arange(101) / 3), np.cos(np.arange(101) / 5)], axis=1)


@pytest.mark.book("8-01", "8-02", name=("wl.audio.read_wav", "wl.audio.write_wav", "wl.audio.Waveform"))
@pytest.mark.parametrize("channels", [1, 2])
@pytest.mark.parametrize(
    ("encoding", "error"),
    [("pcm8", 2**-7), ("pcm16", 2**-15), ("pcm24", 2**-23), ("pcm32", 2**-31), ("float32", 1e-7), ("float64", 0)],
)
def test_a_sine_comes_back(tmp_path, encoding, error, channels):
    path = tmp_path / "sine.wav"
    wl.audio.write_wav(path, SINE[:, :channels], 8000, encoding=encoding)
    sound = wl.audio.read_wav(path, dtype=np.float64)
    assert (sound.samples.shape, sound.sample_rate) == ((101, channels), 8000)
    assert sound.seconds == 101 / 8000
    assert np.abs(sound.samples - SINE[:, :channels]).max() <= error
    assert wl.audio.read_wav(path).samples.dtype == np.float32
    # written again it is the same file
    wl.audio.write_wav(tmp_path / "again.wav", sound.samples, 8000, encoding=encoding)
    assert (tmp_path / "again.wav").read_bytes() == path.read_bytes()
    # and others read the same
    rate, theirs = scipy.io.wavfile.read(path)
    ours = wl.audio.read_wav(path, normalize=False).samples
    assert rate == 8000
    np.testing.assert_array_equal(
        ours, theirs.reshape(-1, channels) >> 8 if encoding == "pcm24" else theirs.reshape(-1, channels)
    )
    if encoding.startswith("pcm"):
        with wave.open(str(path)) as file:
            assert (file.getnchannels(), file.getnframes(), file.getframerate()) == (channels, 101, 8000)
            assert 8 * file.getsampwidth() == int(encoding[3:])


@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.int32, np.float32, np.float64])
def test_files_of_scipy_are_read(tmp_path, dtype):
    path = tmp_path / "theirs.wav"
    rng = np.random.default_rng(0)
    info = None if np.dtype(dtype).kind == "f" else np.iinfo(dtype)
    x = rng.normal(size=(7, 3)).astype(dtype) if info is None else rng.integers(info.min, info.max, (7, 3), dtype)
    scipy.io.wavfile.write(path, 22_050, x)
    sound = wl.audio.read_wav(path, normalize=False)
    assert sound.sample_rate == 22_050
    assert sound.samples.dtype == dtype
    np.testing.assert_array_equal(sound.samples, x)
    if info is not None:
        wl.audio.write_wav(path, x, 22_050)
        np.testing.assert_array_equal(scipy.io.wavfile.read(path)[1], x)
        loudness = np.abs(wl.audio.read_wav(path).samples)
        assert loudness.max() <= 1


def chunk(name, body, size=None):
    return name + struct.pack("<I", len(body) if size is None else size) + body + b"\0" * (len(body) % 2)


def riff(*chunks):
    return b"RIFF" + struct.pack("<I", 4 + sum(map(len, chunks))) + b"WAVE" + b"".join(chunks)


def form(tag=1, channels=1, rate=8000, bits=16, width=None, more=b""):
    width = channels * bits // 8 if width is None else width
    return chunk(b"fmt ", struct.pack("<HHIIHH", tag, channels, rate, rate * width, width, bits) + more)


def read(tmp_path, data, **options):
    path = tmp_path / "made.wav"
    path.write_bytes(data)
    return wl.audio.read_wav(path, **options)


def test_other_chunks_and_headers_are_understood(tmp_path):
    samples = chunk(b"data", np.array([1, -2, 3], "<i2").tobytes())
    wanted = [[1], [-2], [3]]
    # chunks of odd length are followed by a byte that does not count
    data = riff(chunk(b"LIST", b"abc"), form(), chunk(b"junk", b"x"), samples, chunk(b"id3 ", b"tail"))
    assert read(tmp_path, data, normalize=False).samples.tolist() == wanted
    guid = bytes.fromhex("0100000000001000800000aa00389b71")
    extensible = form(0xFFFE, more=struct.pack("<HHI", 22, 16, 4) + guid)
    assert read(tmp_path, riff(extensible, samples), normalize=False).samples.tolist() == wanted
    streamed = riff(form(), chunk(b"data", np.array([1, -2, 3], "<i2").tobytes(), 0xFFFFFFFF))
    assert read(tmp_path, streamed, normalize=False).samples.tolist() == wanted
    assert read(tmp_path, riff(form(), chunk(b"data", b""))).samples.shape == (0, 1)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "begins with RIFF"),
        (b"OggS" + bytes(40), "begins with RIFF"),
        (riff(), "a 'fmt ' and a 'data' chunk"),
        (riff(form()), "a 'data' chunk with samples"),
        (riff(chunk(b"data", b"ab")), "a 'fmt ' chunk before the samples"),
        (riff(chunk(b"fmt ", b"short"), chunk(b"data", b"ab")), "a 'fmt ' chunk of 16 bytes, found 5"),
        (riff(form(), chunk(b"data", b"abcd", 100)), "100 bytes of samples, found 4: it breaks off"),
        (riff(form(), chunk(b"data", b"abc")), "samples of 2 bytes"),
        (riff(form(channels=0), chunk(b"data", b"ab")), "found 0 channels"),
        (riff(form(rate=0), chunk(b"data", b"ab")), "0 Hz"),
        (riff(form(width=7), chunk(b"data", b"ab")), "blocks of 7 bytes"),
        (riff(form(0xFFFE), chunk(b"data", b"ab")), "sub-format"),
    ],
)
def test_damaged_files_are_refused(tmp_path, data, message):
    with pytest.raises(InputError, match=message):
        read(tmp_path, data)


@pytest.mark.parametrize(
    ("header", "message"),
    [
        (form(7, bits=8), "mu-law samples of 8 bits"),
        (form(85, bits=16), "MP3 samples"),
        (form(1, bits=12, width=2), "PCM samples of 12 bits"),
        (form(3, bits=16), "floating samples of 16 bits"),
        (form(999), "codec 999"),
    ],
)
def test_other_codecs_are_refused_by_name(tmp_path, header, message):
    with pytest.raises(FileError, match=message):
        read(tmp_path, riff(header, chunk(b"data", b"abcd")))


def test_every_cut_of_a_file_is_refused(tmp_path):
    path = tmp_path / "whole.wav"
    wl.audio.write_wav(path, SINE[:5], 8000)
    whole = path.read_bytes()
    for end in range(len(whole)):
        with pytest.raises(InputError, match="damaged"):
            read(tmp_path, whole[:end])


def test_spoiled_bytes_give_sound_or_an_error_of_ours(tmp_path):
    path = tmp_path / "whole.wav"
    wl.audio.write_wav(path, SINE[:5], 8000, encoding="float32")
    whole = np.frombuffer(path.read_bytes(), np.uint8)
    rng = np.random.default_rng(0)
    refused = 0
    for _ in range(100):
        spoiled = whole.copy()
        places = rng.integers(0, 60, rng.integers(1, 4))
        spoiled[places] = rng.integers(0, 256, len(places))
        try:
            assert read(tmp_path, spoiled.tobytes()).samples.ndim == 2
        except WonderlandError:
            refused += 1
    assert 0 < refused < 100


def test_bad_samples_are_refused(tmp_path):
    path = tmp_path / "bad.wav"
    for samples, options, message in [
        (np.zeros((2, 2, 2)), {}, r"samples of shape \(2, 2, 2\)"),
        (np.array([0.0, 1.5]), {}, r"a sample is 1\.5, louder than 1"),
        (np.array([np.nan]), {}, "NaN"),
        (np.zeros(3), {"encoding": "mp3"}, "encoding='mp3'"),
        (np.array([2**23], np.int32), {"encoding": "pcm24"}, "does not fit into 24 bits"),
    ]:
        with pytest.raises(InputError, match=message):
            wl.audio.write_wav(path, samples, 8000, **options)
    with pytest.raises(ShapeError, match=r"\(3, 0\)"):
        wl.audio.write_wav(path, np.zeros((3, 0)), 8000)
    with pytest.raises(DTypeError, match="int64"):
        wl.audio.write_wav(path, np.arange(3), 8000)
    with pytest.raises(DTypeError, match="int16 is not written as PCM of 32 bits"):
        wl.audio.write_wav(path, np.zeros(3, np.int16), 8000, encoding="pcm32")
    with pytest.raises(InputError, match="sample_rate=0"):
        wl.audio.write_wav(path, np.zeros(3), 0)
    with pytest.raises(InputError, match="there is no"):
        wl.audio.read_wav(path)
    wl.audio.write_wav(path, np.array([-3.0, 1.0, 0.5]), 8000, clip=True)
    assert wl.audio.read_wav(path, normalize=False).samples[:, 0].tolist() == [-32768, 32767, 16384]
    with pytest.raises(DTypeError, match="a floating dtype, or normalize=False"):
        wl.audio.read_wav(path, dtype=np.int16)
