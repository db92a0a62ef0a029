"""WAV files: chunks of bytes, of which "fmt " says how samples are stored and "data" has them. Book, section 8.1.1."""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ...core.arguments import as_int, as_number, shown
from ...core.errors import DTypeError, FileError, InputError, ShapeError
from ...core.typing import Array, ArrayLike, DTypeLike, PathLike
from .files import as_path, damaged, read_bytes

PCM, FLOAT, EXTENSIBLE = 1, 3, 0xFFFE
# The last 14 bytes of the name of a sub-format; its first two are the tag that older headers have.
_SUBFORMAT = bytes.fromhex("000000001000800000aa00389b71")
_OTHER_CODECS = {2: "ADPCM", 6: "A-law", 7: "mu-law", 17: "IMA ADPCM", 49: "GSM", 80: "MPEG", 85: "MP3"}
# how samples of a tag and a number of bits lie in the file; 24 bits have no type and are put together by hand
_STORED = {(PCM, 8): "u1", (PCM, 16): "<i2", (PCM, 24): "u1", (PCM, 32): "<i4", (FLOAT, 32): "<f4", (FLOAT, 64): "<f8"}
_LONGEST_FORM = 64  # bytes of a 'fmt ' chunk that anybody reads
_UNTIL_END = 0xFFFFFFFF  # what programs write that do not know the size beforehand


class Waveform(NamedTuple):
    """Sound: samples (time, channels) and how many there are per second.

    >>> import numpy as np
    >>> Waveform(np.zeros((4000, 1)), 8000).seconds
    0.5
    """

    samples: Array
    sample_rate: int

    @property
    def seconds(self) -> float:
        """How long it lasts."""
        return len(self.samples) / self.sample_rate


def sample_count(seconds: float, sample_rate: float) -> int:
    """The number of samples of some seconds of sound (or of video, of EEG, of prices). Book, section 8.1.1.

    >>> import wonderland as wl
    >>> wl.audio.sample_count(180, 44_100)  # three minutes of music
    7938000
    """
    if not as_number("sample_count", "seconds", seconds) >= 0 or not sample_rate > 0:
        raise InputError(f"sample_count: seconds={seconds}, sample_rate={sample_rate}.", "a time, and a rate above 0")
    return round(seconds * as_number("sample_count", "sample_rate", sample_rate))


def nbytes(seconds: float, sample_rate: float, channels: int = 1, dtype: DTypeLike = np.float32) -> int:
    """The memory that so much sound takes: samples times channels times the size of a number.

    >>> import wonderland as wl
    >>> wl.audio.nbytes(180, 44_100, channels=2) / 1e6
    63.504
    """
    channels = as_int("nbytes", "channels", channels, least=1)
    return sample_count(seconds, sample_rate) * channels * np.dtype(dtype).itemsize


def read_wav(path: PathLike, *, normalize: bool = True, dtype: DTypeLike = np.float32) -> Waveform:
    """The sound in a WAV file: samples (time, channels), by default floating from -1 to 1, and the sample rate.

    >>> import os, tempfile, numpy as np, wonderland as wl
    >>> path = os.path.join(tempfile.mkdtemp(), "tone.wav")
    >>> wl.audio.write_wav(path, np.array([[0.0, 0.5], [-0.5, 0.25]]), 8000)
    >>> wl.audio.read_wav(path)
    Waveform(samples=array([[ 0.  ,  0.5 ],
           [-0.5 ,  0.25]], dtype=float32), sample_rate=8000)

    PCM of 8, 16, 24 and 32 bits and floating samples of 32 and 64 bits, with any number of channels. `normalize=False`
    gives the integers as they are (8 bits from 0 to 255, 24 bits as int32). `samples.T` is (channels, time), which the
    functions here take.
    """
    data = read_bytes("read_wav", path, unpack=False)
    if len(data) < 12 or data[:4] != b"RIFF" or data[8:12] != b"WAVE":
        raise damaged("read_wav", path, f"a WAV file, which begins with RIFF....WAVE, found {data[:12]!r}")
    form = None
    for name, body, size in _chunks(data):
        if name == b"fmt ":
            form = _form(path, body)
        elif name == b"data":
            if form is None:
                raise damaged("read_wav", path, "a 'fmt ' chunk before the samples")
            tag, channels, rate, bits = form
            if size != _UNTIL_END and size > len(body):
                raise damaged("read_wav", path, f"{size:,} bytes of samples, found {len(body):,}: it breaks off")
            width = channels * bits // 8
            if len(body) % width:
                raise damaged("read_wav", path, f"samples of {width} bytes ({channels} channels), found {len(body):,}")
            stored = _stored(body, tag, bits).reshape(-1, channels)
            return Waveform(_normalized(stored, bits, dtype) if normalize else stored, rate)
    raise damaged("read_wav", path, "a 'data' chunk with samples" if form else "a 'fmt ' and a 'data' chunk")


class WavHead(NamedTuple):
    """What a WAV file says of its sound before the samples come: how many there are, and how they are stored."""

    frames: int
    channels: int
    sample_rate: int


def look_at_wav(path: PathLike) -> WavHead:
    """What the header of a WAV file says; the samples are not read.

    >>> import os, tempfile, numpy as np, wonderland as wl
    >>> path = os.path.join(tempfile.mkdtemp(), "tone.wav")
    >>> wl.audio.write_wav(path, np.zeros((50, 2)), 8000)
    >>> look_at_wav(path)
    WavHead(frames=50, channels=2, sample_rate=8000)
    """
    where = as_path("read_wav", path)
    try:
        with where.open("rb") as file:
            begin = file.read(12)
            if begin[:4] != b"RIFF" or begin[8:] != b"WAVE":
                raise damaged("read_wav", path, f"a WAV file, which begins with RIFF....WAVE, found {begin!r}")
            form = None
            while len(head := file.read(8)) == 8:
                size = int.from_bytes(head[4:], "little")
                if head[:4] == b"data" and form is not None:
                    there = where.stat().st_size - file.tell()
                    _, channels, rate, bits = form
                    return WavHead(min(size, there) // (channels * bits // 8), channels, rate)
                if head[:4] == b"fmt ":
                    form = _form(path, file.read(min(size, _LONGEST_FORM)))
                    file.seek(max(0, size - _LONGEST_FORM), os.SEEK_CUR)
                else:
                    file.seek(size, os.SEEK_CUR)
                file.seek(size % 2, os.SEEK_CUR)
    except OSError as error:
        raise FileError(
            f"read_wav: cannot read {str(where)!r}: {error.strerror}.", "a file that you may read"
        ) from None
    raise damaged("read_wav", path, "a 'data' chunk with samples" if form else "a 'fmt ' and a 'data' chunk")


def _chunks(data: bytes) -> Iterator[tuple[bytes, bytes, int]]:
    """(name, content, size said) of each chunk; a content that breaks off is shorter than its size."""
    start = 12
    while start + 8 <= len(data):
        name, size = data[start : start + 4], int.from_bytes(data[start + 4 : start + 8], "little")
        yield name, data[start + 8 : start + 8 + size], size
        start += 8 + size + size % 2  # chunks begin at even places


def _form(path: PathLike, body: bytes) -> tuple[int, int, int, int]:
    """(tag, channels, sample rate, bits) of a 'fmt ' chunk."""
    if len(body) < 16:
        raise damaged("read_wav", path, f"a 'fmt ' chunk of 16 bytes, found {len(body)}")
    tag, channels, rate, _, width, bits = struct.unpack("<HHIIHH", body[:16])
    if tag == EXTENSIBLE:
        if len(body) < 40 or body[26:40] != _SUBFORMAT:
            raise damaged("read_wav", path, "the sub-format of an extensible WAV file")
        tag = int.from_bytes(body[24:26], "little")
    if (tag, bits) not in _STORED:
        kind = {PCM: "PCM", FLOAT: "floating"}.get(tag) or _OTHER_CODECS.get(tag, f"codec {tag}")
        raise FileError(
            f"read_wav: {str(path)!r} holds {kind} samples of {bits} bits.",
            "PCM of 8, 16, 24 or 32 bits, or floating of 32 or 64; `ffmpeg -i in.wav -c:a pcm_s16le out.wav` converts",
        )
    if not channels or not rate or width != channels * bits // 8:
        raise damaged(
            "read_wav",
            path,
            f"a sane header, found {channels} channels, {rate} Hz, {bits} bits, blocks of {width} bytes",
        )
    return tag, channels, rate, bits


def _stored(body: bytes, tag: int, bits: int) -> Array:
    values = np.frombuffer(body, _STORED[tag, bits])
    if bits == 24:
        # the three bytes become the upper ones of four, so that the sign comes along
        four = np.zeros((len(values) // 3, 4), np.uint8)
        four[:, 1:] = values.reshape(-1, 3)
        return four.reshape(-1).view("<i4").astype(np.int32) >> 8
    return values.astype(values.dtype.newbyteorder("="))


def _normalized(values: Array, bits: int, dtype: DTypeLike) -> Array:
    target = np.dtype(dtype)
    if target.kind != "f":
        raise DTypeError(f"read_wav: samples from -1 to 1 are not {target}.", "a floating dtype, or normalize=False")
    if values.dtype.kind == "f":
        return values.astype(target)
    centered = values.astype(np.float64) - (128 if bits == 8 else 0)
    return (centered / 2.0 ** (bits - 1)).astype(target)


def write_wav(
    path: PathLike, samples: ArrayLike, sample_rate: int, *, encoding: str | None = None, clip: bool = False
) -> None:
    """Write samples, (time, channels) or (time,), as a WAV file.

    >>> import os, tempfile, numpy as np, wonderland as wl
    >>> path = os.path.join(tempfile.mkdtemp(), "tone.wav")
    >>> wl.audio.write_wav(path, np.sin(np.arange(8000) / 5), 8000, encoding="pcm24")
    >>> wl.audio.read_wav(path).samples.shape
    (8000, 1)

    `encoding` is "pcm8", "pcm16", "pcm24", "pcm32", "float32" or "float64". Floating samples lie from -1 to 1 and
    become pcm16 by default; louder ones are refused, or cut off with `clip=True`. Integers (uint8, int16, int32) are
    written as they are.
    """
    values = np.asarray(samples)
    values = values[:, None] if values.ndim == 1 else values
    rate = as_int("write_wav", "sample_rate", sample_rate, least=1)
    if values.ndim != 2 or not 1 <= values.shape[1] < 2**16:
        raise ShapeError(f"write_wav: samples of shape {values.shape}.", "(time, channels) or (time,)")
    name = _default_encoding(values.dtype) if encoding is None else encoding
    kinds = {"pcm8": (PCM, 8), "pcm16": (PCM, 16), "pcm24": (PCM, 24), "pcm32": (PCM, 32)}
    kinds |= {"float32": (FLOAT, 32), "float64": (FLOAT, 64)}
    if name not in kinds:
        raise InputError(f"write_wav: encoding={shown(name)}.", f"one of {', '.join(kinds)}")
    tag, bits = kinds[name]
    body = _encoded(values, tag, bits, clip)
    block = values.shape[1] * bits // 8
    form = struct.pack("<HHIIHH", tag, values.shape[1], rate, rate * block, block, bits)
    if tag == FLOAT:  # other than PCM, a file says how long its extension is, and how many samples there are
        form += struct.pack("<H", 0)
    chunks = _chunk(b"fmt ", form) + (_chunk(b"fact", struct.pack("<I", len(values))) if tag == FLOAT else b"")
    chunks += _chunk(b"data", body)
    if len(chunks) + 4 >= 2**32:
        raise InputError(
            f"write_wav: {len(body):,} bytes of samples; a WAV file holds less than 4 GB.", "several files"
        )
    Path(os.fspath(path)).write_bytes(b"RIFF" + struct.pack("<I", len(chunks) + 4) + b"WAVE" + chunks)


def _chunk(name: bytes, body: bytes) -> bytes:
    return name + struct.pack("<I", len(body)) + body + b"\0" * (len(body) % 2)


def _default_encoding(dtype: np.dtype) -> str:
    names = {"u1": "pcm8", "i2": "pcm16", "i4": "pcm32"}
    if dtype.kind == "f":
        return "pcm16"
    if (found := names.get(f"{dtype.kind}{dtype.itemsize}")) is None:
        raise DTypeError(f"write_wav: samples of dtype {dtype}.", "floating from -1 to 1, or uint8, int16 or int32")
    return found


def _encoded(values: Array, tag: int, bits: int, clip: bool) -> bytes:
    if values.dtype.kind == "f":
        if not np.isfinite(values).all():
            raise InputError("write_wav: the samples have NaN or infinities.", "finite samples")
        if tag == FLOAT:
            return values.astype(_STORED[tag, bits]).tobytes()
        values = values.astype(np.float64)
        if not clip and values.size and np.abs(values).max() > 1:
            raise InputError(
                f"write_wav: a sample is {np.abs(values).max():g}, louder than 1.",
                'x / abs(x).max(), clip=True, or encoding="float32"',
            )
        scale = 2.0 ** (bits - 1)
        whole = np.clip(np.round(values * scale), -scale, scale - 1).astype(np.int64) + (128 if bits == 8 else 0)
    else:
        if tag == FLOAT or bits not in (8 * values.dtype.itemsize, 24) or (bits == 24 and values.dtype != np.int32):
            raise DTypeError(
                f"write_wav: {values.dtype} is not written as {'floating' if tag == FLOAT else 'PCM'} of {bits} bits.",
                "floating samples from -1 to 1",
            )
        if bits == 24 and values.size and not (values.min() >= -(2**23) and values.max() < 2**23):
            raise InputError("write_wav: a sample does not fit into 24 bits.", "integers from -8388608 to 8388607")
        whole = values
    if bits == 24:
        return np.ascontiguousarray(whole, "<i4").view(np.uint8).reshape(-1, 4)[:, :3].tobytes()
    return whole.astype(_STORED[tag, bits]).tobytes()
