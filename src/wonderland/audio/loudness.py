"""Spectrograms: how loud each frequency is in each frame, on a linear scale or in decibels. Book, section 8.1.1."""

from __future__ import annotations

import math

from .. import arrays
from ..arrays.conversion import as_real
from ..core.arguments import as_number
from ..core.errors import InputError
from ..core.tensor import Tensor
from ..core.typing import ArrayLike
from .fourier import stft


def spectrogram(
    x: ArrayLike,
    n_fft: int = 400,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: str | ArrayLike = "hann",
    *,
    power: float = 2.0,
    center: bool = True,
    pad_mode: str = "reflect",
    normalized: bool = False,
) -> Tensor:
    r"""\(|X_{ik}|^p\) of the short-time Fourier transform: (..., time) to (..., frames, n_fft // 2 + 1).

    >>> import wonderland as wl
    >>> wl.audio.spectrogram(wl.ones((2, 1600)), n_fft=400, hop_length=200).shape
    (2, 9, 201)

    `power=2` is the energy, `power=1` the magnitude. The other settings are those of `stft`. The result is an image for
    networks with two spatial axes, `[..., None]` away, or a sequence with frequencies as channels. Book, figure 8.1.
    """
    power = _positive("spectrogram", "power", power)
    spectrum = stft(x, n_fft, hop_length, win_length, window, center=center, pad_mode=pad_mode, normalized=normalized)
    if power == 1:
        return arrays.abs(spectrum)
    energy = arrays.square(arrays.real(spectrum)) + arrays.square(arrays.imag(spectrum))
    return energy if power == 2 else arrays.power(energy, power / 2)


def power_to_db(x: ArrayLike, ref: float = 1.0, amin: float = 1e-10, top_db: float | None = 80.0) -> Tensor:
    r"""\(10\log_{10}(\max(x, a) / \mathrm{ref})\): ten times the energy is 10 decibels more.

    >>> import wonderland as wl
    >>> wl.round(wl.audio.power_to_db(wl.tensor([1.0, 100.0, 0.0])))
    tensor([  0.,  20., -60.])

    Values more than `top_db` below the largest are raised to that; None keeps them. The largest is that of each
    spectrogram, the last two axes, so signals of a batch do not see each other.
    """
    return _decibels("power_to_db", 10.0, x, ref, amin, top_db)


def amplitude_to_db(x: ArrayLike, ref: float = 1.0, amin: float = 1e-5, top_db: float | None = 80.0) -> Tensor:
    r"""\(20\log_{10}(\max(x, a) / \mathrm{ref})\): ten times the magnitude is 20 decibels more. See `power_to_db`.

    >>> import wonderland as wl
    >>> wl.round(wl.audio.amplitude_to_db(wl.tensor([1.0, 10.0])))
    tensor([ 0., 20.])
    """
    return _decibels("amplitude_to_db", 20.0, x, ref, amin, top_db)


def db_to_power(x: ArrayLike, ref: float = 1.0) -> Tensor:
    r"""\(\mathrm{ref}\cdot 10^{x/10}\), the inverse of `power_to_db`.

    >>> import wonderland as wl
    >>> wl.round(wl.audio.db_to_power(wl.tensor([0.0, 20.0])))
    tensor([  1., 100.])
    """
    return _positive("db_to_power", "ref", ref) * arrays.power(10.0, as_real("db_to_power", x) / 10.0)


def db_to_amplitude(x: ArrayLike, ref: float = 1.0) -> Tensor:
    r"""\(\mathrm{ref}\cdot 10^{x/20}\), the inverse of `amplitude_to_db`.

    >>> import wonderland as wl
    >>> wl.round(wl.audio.db_to_amplitude(wl.tensor([0.0, 20.0])))
    tensor([ 1., 10.])
    """
    return _positive("db_to_amplitude", "ref", ref) * arrays.power(10.0, as_real("db_to_amplitude", x) / 20.0)


def _decibels(name: str, factor: float, x: ArrayLike, ref: float, amin: float, top_db: float | None) -> Tensor:
    x = as_real(name, x)
    amin, ref = _positive(name, "amin", amin), _positive(name, "ref", ref)
    y = factor * (arrays.log10(arrays.maximum(x, amin)) - math.log10(max(ref, amin)))
    if top_db is None:
        return y
    loudest = arrays.max(y, axis=tuple(range(max(0, y.ndim - 2), y.ndim)), keepdims=True)
    return arrays.maximum(y, loudest - _positive(name, "top_db", top_db))


def _positive(name: str, what: str, value: float) -> float:
    if not as_number(name, what, value) > 0:
        raise InputError(f"{name}: {what}={value}.", f"{what} > 0")
    return float(value)
