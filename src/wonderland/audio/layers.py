"""The operations on sound as modules, so that a model can take waveforms. Book, section 8.1.1."""

from __future__ import annotations

from typing import Any

from ..arrays import log
from ..core.errors import InputError
from ..core.tensor import Tensor
from ..core.typing import ArrayLike
from ..nn.module.module import Module
from .emphasis import preemphasis
from .loudness import amplitude_to_db, power_to_db, spectrogram
from .mel import mel_spectrogram, mfcc
from .resampling import resample


class _Operation(Module):
    """A module without parameters: a function and its settings."""

    def __init__(self, **settings: Any) -> None:
        self.settings = tuple(settings.items())

    def extra_repr(self) -> str:
        return ", ".join(f"{name}={value!r}" for name, value in self.settings)


class Spectrogram(_Operation):
    """`spectrogram` with fixed settings: (..., time) to (..., frames, n_fft // 2 + 1).

    >>> import wonderland as wl
    >>> layer = wl.audio.Spectrogram(n_fft=64, hop_length=32)
    >>> layer, layer(wl.ones((2, 320))).shape
    (Spectrogram(n_fft=64, hop_length=32), (2, 11, 33))
    """

    def __init__(self, n_fft: int = 400, hop_length: int | None = None, **settings: Any) -> None:
        super().__init__(n_fft=n_fft, hop_length=hop_length, **settings)

    def forward(self, x: ArrayLike) -> Tensor:
        return spectrogram(x, **dict(self.settings))


class MelSpectrogram(_Operation):
    """`mel_spectrogram` with fixed settings: (..., time) to (..., frames, n_mels).

    >>> import wonderland as wl
    >>> model = wl.nn.Sequential(wl.audio.MelSpectrogram(8000, n_fft=256, n_mels=20), wl.nn.Conv1d(20, 4, 3))
    >>> model(wl.ones((2, 800))).shape
    (2, 11, 4)
    """

    def __init__(self, sample_rate: int = 16_000, n_fft: int = 400, **settings: Any) -> None:
        super().__init__(sample_rate=sample_rate, n_fft=n_fft, **settings)

    def forward(self, x: ArrayLike) -> Tensor:
        return mel_spectrogram(x, **dict(self.settings))


class LogMel(_Operation):
    r"""\(\log(\mathrm{mel} + \epsilon)\), loudness in mels as networks take it: (..., time) to (..., frames, n_mels).

    >>> import wonderland as wl
    >>> wl.audio.LogMel(8000, n_fft=256, hop_length=80, n_mels=20)(wl.ones((2, 800))).shape
    (2, 11, 20)

    `eps` is what silence has in its place. Other settings are those of `mel_spectrogram`.
    """

    def __init__(self, sample_rate: int = 16_000, n_fft: int = 400, eps: float = 1e-6, **settings: Any) -> None:
        super().__init__(sample_rate=sample_rate, n_fft=n_fft, **settings)
        self.eps = eps

    def forward(self, x: ArrayLike) -> Tensor:
        return log(mel_spectrogram(x, **dict(self.settings)) + self.eps)


class MFCC(_Operation):
    """`mfcc` with fixed settings: (..., time) to (..., frames, n_mfcc).

    >>> import wonderland as wl
    >>> wl.audio.MFCC(8000, n_mfcc=13, n_fft=256, n_mels=20)(wl.ones(800)).shape
    (13, 13)
    """

    def __init__(self, sample_rate: int = 16_000, n_mfcc: int = 13, **settings: Any) -> None:
        super().__init__(sample_rate=sample_rate, n_mfcc=n_mfcc, **settings)

    def forward(self, x: ArrayLike) -> Tensor:
        return mfcc(x, **dict(self.settings))


class AmplitudeToDB(_Operation):
    """`power_to_db`, or `amplitude_to_db` for `stype="magnitude"`.

    >>> import wonderland as wl
    >>> wl.round(wl.audio.AmplitudeToDB("power")(wl.tensor([1.0, 100.0])))
    tensor([ 0., 20.])
    """

    def __init__(self, stype: str = "power", top_db: float | None = 80.0) -> None:
        if stype not in ("power", "magnitude"):
            raise InputError(f"AmplitudeToDB: stype={stype!r}.", '"power" or "magnitude"')
        super().__init__(stype=stype, top_db=top_db)

    def forward(self, x: ArrayLike) -> Tensor:
        settings = dict(self.settings)
        decibels = power_to_db if settings["stype"] == "power" else amplitude_to_db
        return decibels(x, top_db=settings["top_db"])


class Resample(_Operation):
    """`resample` between two fixed rates.

    >>> import wonderland as wl
    >>> wl.audio.Resample(16_000, 8000)(wl.ones((2, 100))).shape
    (2, 50)
    """

    def __init__(self, orig_freq: int = 16_000, new_freq: int = 16_000, **settings: Any) -> None:
        super().__init__(orig_freq=orig_freq, new_freq=new_freq, **settings)

    def forward(self, x: ArrayLike) -> Tensor:
        return resample(x, **dict(self.settings))


class PreEmphasis(_Operation):
    """`preemphasis` with a fixed coefficient.

    >>> import wonderland as wl
    >>> wl.audio.PreEmphasis(0.5)(wl.tensor([1.0, 1.0, 2.0]))
    tensor([1. , 0.5, 1.5])
    """

    def __init__(self, coeff: float = 0.97) -> None:
        super().__init__(coeff=coeff)

    def forward(self, x: ArrayLike) -> Tensor:
        return preemphasis(x, **dict(self.settings))
