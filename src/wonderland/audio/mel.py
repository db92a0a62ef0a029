r"""The mel scale, on which equal steps sound equal, filters that are equally wide on it, and cepstral coefficients.

    HTK:     m(f) = 2595 log10(1 + f / 700)
    Slaney:  m(f) = 3 f / 200 up to 1000 Hz, then 15 + 27 log(f / 1000) / log(6.4)

Book, section 8.1.1.
"""

from __future__ import annotations

import functools
import math
from types import ModuleType
from typing import Any

import numpy as np

from .. import arrays
from ..arrays.conversion import as_real
from ..core.arguments import as_int, as_number, shown
from ..core.dtypes import as_dtype, default_float
from ..core.errors import InputError
from ..core.tensor import Tensor, wrap
from ..core.typing import Array, ArrayLike, DTypeLike
from .loudness import power_to_db, spectrogram

SCALES = ("htk", "slaney")
_LOG_STEP = math.log(6.4) / 27  # Slaney: 27 mels for a factor of 6.4 above 1000 Hz, which is mel 15


def hz_to_mel(frequencies: ArrayLike, mel_scale: str = "htk") -> Tensor:
    """Frequencies in hertz on the mel scale.

    >>> import wonderland as wl
    >>> wl.audio.hz_to_mel(wl.tensor([0.0, 1000.0]), "slaney")
    tensor([ 0., 15.])
    """
    return _to_mel(arrays, as_real("hz_to_mel", frequencies), _scale("hz_to_mel", mel_scale))


def mel_to_hz(mels: ArrayLike, mel_scale: str = "htk") -> Tensor:
    """The inverse of `hz_to_mel`.

    >>> import wonderland as wl
    >>> wl.audio.mel_to_hz(wl.tensor([0.0, 15.0]), "slaney")
    tensor([   0., 1000.])
    """
    return _to_hz(arrays, as_real("mel_to_hz", mels), _scale("mel_to_hz", mel_scale))


# The formulas are written for a namespace: NumPy's for filters, which are constants, and ours for tensors.


def _to_mel(xp: ModuleType, f: Any, mel_scale: str) -> Any:
    if mel_scale == "htk":
        return 2595.0 / math.log(10.0) * xp.log1p(f / 700.0)
    return xp.where(f < 1000.0, f * (3 / 200), 15.0 + xp.log(xp.maximum(f, 1000.0) / 1000.0) / _LOG_STEP)


def _to_hz(xp: ModuleType, m: Any, mel_scale: str) -> Any:
    if mel_scale == "htk":
        return 700.0 * xp.expm1(m * (math.log(10.0) / 2595.0))
    return xp.where(m < 15.0, m * (200 / 3), 1000.0 * xp.exp(_LOG_STEP * (xp.maximum(m, 15.0) - 15.0)))


def _scale(name: str, mel_scale: str) -> str:
    if mel_scale not in SCALES:
        raise InputError(f"{name}: mel_scale={shown(mel_scale)}.", '"htk" or "slaney"')
    return str(mel_scale)


def mel_filter_bank(
    n_freqs: int,
    n_mels: int,
    sample_rate: int,
    f_min: float = 0.0,
    f_max: float | None = None,
    *,
    norm: str | None = None,
    mel_scale: str = "htk",
    dtype: DTypeLike | None = None,
) -> Tensor:
    r"""Triangles over the frequencies of a spectrum: (n_freqs, n_mels), so that `spectrogram @ bank` is in mels.

    >>> import wonderland as wl
    >>> wl.audio.mel_filter_bank(201, n_mels=40, sample_rate=16_000).shape
    (201, 40)

    Triangle m rises from the m-th to the next of n_mels + 2 points that are equally spaced on the mel scale between
    `f_min` and `f_max` (half the sample rate), and falls to the one after. `norm="slaney"` divides by half its width
    in hertz, so that each has the same area. `mel_scale="slaney", norm="slaney"` are librosa's defaults, those here
    torchaudio's. A filter that lies between two frequencies would hear nothing, and is refused.
    """
    target = default_float if dtype is None else as_dtype(dtype)
    return wrap(_bank("mel_filter_bank", n_freqs, n_mels, sample_rate, f_min, f_max, norm, mel_scale).astype(target))


def _bank(
    name: str,
    n_freqs: int,
    n_mels: int,
    rate: float,
    f_min: float,
    f_max: float | None,
    norm: str | None,
    mel_scale: str,
) -> Array:
    n_freqs, n_mels = as_int(name, "n_freqs", n_freqs, least=2), as_int(name, "n_mels", n_mels, least=1)
    half = float(as_number(name, "sample_rate", rate)) / 2
    high = half if f_max is None else float(as_number(name, "f_max", f_max))
    low = float(as_number(name, "f_min", f_min))
    if not 0 <= low < high <= half:
        raise InputError(
            f"{name}: f_min={low:g}, f_max={high:g} with sample_rate={rate}.", f"0 <= f_min < f_max <= {half:g}"
        )
    if norm not in (None, "slaney"):
        raise InputError(f"{name}: norm={shown(norm)}.", '"slaney" or None')
    bank = _triangles(n_freqs, n_mels, half, low, high, norm, _scale(name, mel_scale))
    deaf = np.flatnonzero(bank.max(axis=0) == 0)
    if len(deaf):
        raise InputError(
            f"{name}: {len(deaf)} of {n_mels} filters lie between two of the {n_freqs} frequencies, first {deaf[0]}.",
            "a larger n_fft or fewer n_mels",
        )
    return bank


@functools.lru_cache(maxsize=16)
def _triangles(
    n_freqs: int, n_mels: int, half: float, low: float, high: float, norm: str | None, mel_scale: str
) -> Array:
    first, last = _to_mel(np, np.array([low, high]), mel_scale)
    points = _to_hz(np, np.linspace(first, last, n_mels + 2), mel_scale)
    left, middle, right = points[:-2], points[1:-1], points[2:]
    frequencies = np.linspace(0, half, n_freqs)[:, None]
    rise, fall = (frequencies - left) / (middle - left), (right - frequencies) / (right - middle)
    bank = np.maximum(0.0, np.minimum(rise, fall))
    if norm == "slaney":
        bank *= 2 / (right - left)
    bank.setflags(write=False)
    return bank


def mel_spectrogram(
    x: ArrayLike,
    sample_rate: int = 16_000,
    n_fft: int = 400,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: str | ArrayLike = "hann",
    *,
    n_mels: int = 80,
    f_min: float = 0.0,
    f_max: float | None = None,
    power: float = 2.0,
    norm: str | None = None,
    mel_scale: str = "htk",
    center: bool = True,
    pad_mode: str = "reflect",
    normalized: bool = False,
) -> Tensor:
    """The spectrogram with frequencies gathered by mel filters: (..., time) to (..., frames, n_mels).

    >>> import wonderland as wl
    >>> wl.audio.mel_spectrogram(wl.ones((2, 1600)), n_fft=400, hop_length=160, n_mels=40).shape
    (2, 11, 40)

    Settings are those of `spectrogram` and `mel_filter_bank`. `wl.log(mel + 1e-6)` or `power_to_db` of it is what
    networks for speech and music take.
    """
    energy = spectrogram(
        x, n_fft, hop_length, win_length, window, power=power, center=center, pad_mode=pad_mode, normalized=normalized
    )
    bank = _bank("mel_spectrogram", energy.shape[-1], n_mels, sample_rate, f_min, f_max, norm, mel_scale)
    return energy @ arrays.asarray(bank.astype(energy.dtype))


def dct_matrix(
    n: int, n_out: int | None = None, norm: str | None = "ortho", *, dtype: DTypeLike | None = None
) -> Tensor:
    r"""\(D_{jk} = s_k\cos\left(\frac{\pi}{n}(j + \frac12)k\right)\), (n, n_out): `x @ D` is a cosine transform, DCT-II.

    >>> import wonderland as wl
    >>> D = wl.audio.dct_matrix(4, dtype=wl.float64)
    >>> bool(wl.allclose(D.T @ D, wl.eye(4, dtype=wl.float64)))
    True

    With `norm="ortho"` columns are orthonormal, \(s_0 = \sqrt{1/n}\) and \(s_k = \sqrt{2/n}\); without, \(s_k = 2\).
    """
    n = as_int("dct_matrix", "n", n, least=1)
    n_out = n if n_out is None else as_int("dct_matrix", "n_out", n_out, least=1)
    if n_out > n:
        raise InputError(f"dct_matrix: {n_out} coefficients of {n} numbers.", f"n_out up to {n}")
    if norm not in (None, "ortho"):
        raise InputError(f"dct_matrix: norm={shown(norm)}.", '"ortho" or None')
    matrix = np.cos(np.pi / n * (np.arange(n)[:, None] + 0.5) * np.arange(n_out))
    scale = np.full(n_out, 2.0) if norm is None else np.sqrt(np.where(np.arange(n_out) == 0, 1, 2) / n)
    return wrap((matrix * scale).astype(default_float if dtype is None else as_dtype(dtype)))


def mfcc(
    x: ArrayLike,
    sample_rate: int = 16_000,
    n_mfcc: int = 13,
    *,
    log_mels: bool = False,
    top_db: float | None = 80.0,
    **settings: Any,
) -> Tensor:
    """Mel-frequency cepstral coefficients, the cosine transform of the loudness in mels: (..., frames, n_mfcc).

    >>> import wonderland as wl
    >>> x = wl.sin(wl.arange(1600, dtype=wl.float32))
    >>> wl.audio.mfcc(x, n_mfcc=13, n_fft=400, hop_length=160, n_mels=40).shape
    (11, 13)

    Few coefficients hold the shape of the spectrum, that is, the vowel, and leave out the pitch. The loudness is
    in decibels, or with `log_mels` log(mel + 1e-6). Other settings are those of `mel_spectrogram`. Book, section 8.1.1.
    """
    n_mfcc = as_int("mfcc", "n_mfcc", n_mfcc, least=1)
    mels = mel_spectrogram(x, sample_rate, **settings)
    if n_mfcc > mels.shape[-1]:
        raise InputError(f"mfcc: n_mfcc={n_mfcc} of n_mels={mels.shape[-1]}.", f"n_mfcc up to {mels.shape[-1]}")
    loudness = arrays.log(mels + 1e-6) if log_mels else power_to_db(mels, top_db=top_db)
    return loudness @ dct_matrix(mels.shape[-1], n_mfcc, dtype=mels.dtype)
