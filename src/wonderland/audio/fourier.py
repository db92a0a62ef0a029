r"""The short-time Fourier transform: the frequencies of each frame of a signal, and the way back.

Signals are (..., time), spectra (..., frames, frequencies): a sequence whose channels are frequencies. (PyTorch and
librosa have the last two axes the other way round.) Book, section 8.1.1.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .. import arrays, fft
from ..arrays.conversion import as_inexact, as_real
from ..core.arguments import as_int
from ..core.dtypes import DType, is_complex, real_of
from ..core.errors import DTypeError, InputError, ShapeError
from ..core.tensor import Tensor
from ..core.typing import ArrayLike
from .framing import frame, overlap_add
from .windows import check_window, window_values

PAD_MODES = ("reflect", "constant", "edge", "symmetric", "wrap")


class Frames(NamedTuple):
    """The settings of a short-time transform, checked."""

    n_fft: int
    hop: int
    win_length: int
    window: str | Tensor

    def values(self, dtype: DType) -> Tensor:
        """The window, with zeros on both sides up to n_fft."""
        window = self.window
        if isinstance(window, str):
            before = (self.n_fft - self.win_length) // 2
            full = np.zeros(self.n_fft)
            full[before : before + self.win_length] = window_values(window, self.win_length)
            return arrays.asarray(full.astype(dtype))
        window = arrays.astype(window, dtype)
        before = (self.n_fft - self.win_length) // 2
        return arrays.pad(window, (before, self.n_fft - self.win_length - before))


def as_frames(name: str, n_fft: int, hop_length: int | None, win_length: int | None, window: str | ArrayLike) -> Frames:
    """The settings with their defaults: a window of n_fft samples and a quarter of it as hop."""
    n_fft = as_int(name, "n_fft", n_fft, least=1)
    win_length = n_fft if win_length is None else as_int(name, "win_length", win_length, least=1)
    hop = max(1, win_length // 4) if hop_length is None else as_int(name, "hop_length", hop_length, least=1)
    if win_length > n_fft:
        raise InputError(f"{name}: win_length={win_length} is more than n_fft={n_fft}.", "a window that fits a frame")
    if isinstance(window, str):
        check_window(name, window)
    else:
        window = as_real(name, window)
        if window.shape != (win_length,):
            raise ShapeError(
                f"{name}: a window of shape {window.shape} with win_length={win_length}.",
                f"a name, or {win_length} numbers",
            )
    return Frames(n_fft, hop, win_length, window)


def stft(
    x: ArrayLike,
    n_fft: int = 400,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: str | ArrayLike = "hann",
    *,
    center: bool = True,
    pad_mode: str = "reflect",
    normalized: bool = False,
) -> Tensor:
    r"""\(X_{ik} = \sum_j w_j\, x_{hi + j}\, e^{-2\pi \mathrm{i} jk/n}\): (..., time) to (..., frames, n_fft // 2 + 1).

    >>> import wonderland as wl
    >>> time = wl.arange(800, dtype=wl.float32) / 8000
    >>> tone = wl.cos(2 * wl.pi * 1000 * time)
    >>> spectrum = wl.audio.stft(tone, n_fft=64)
    >>> spectrum.shape, int(wl.abs(spectrum)[5].argmax())  # 1000 Hz * 64 / 8000 Hz = 8
    ((51, 33), 8)

    Names and defaults are PyTorch's: `window` is a name or its values, the hop is a quarter of the window, and `center`
    pads n_fft // 2 samples on both sides, so that frame i is centred at sample i * hop. `normalized` divides by
    \(\sqrt n\). Book, section 8.1.1.
    """
    settings = as_frames("stft", n_fft, hop_length, win_length, window)
    x = as_real("stft", x)
    n_fft = settings.n_fft
    if not x.ndim or not x.shape[-1]:
        raise ShapeError(f"stft: a signal of shape {x.shape} has no samples.", "(..., time)")
    if center:
        x = _centered(x, n_fft // 2, pad_mode)
    if x.shape[-1] < n_fft:
        raise ShapeError(
            f"stft: a signal of {x.shape[-1]} samples is shorter than n_fft={n_fft}.",
            "a longer signal, a smaller n_fft, or center=True",
        )
    frames = frame(x, n_fft, settings.hop) * settings.values(x.dtype)  # (..., frames, n_fft)
    return fft.rfft(frames, norm="ortho" if normalized else "backward")


def _centered(x: Tensor, half: int, pad_mode: str) -> Tensor:
    if pad_mode not in PAD_MODES:
        raise InputError(f"stft: pad_mode={pad_mode!r}.", f"one of {', '.join(PAD_MODES)}")
    if pad_mode == "reflect" and half >= x.shape[-1]:
        raise ShapeError(
            f"stft: {x.shape[-1]} samples cannot be reflected by n_fft // 2 = {half}.",
            'a longer signal, a smaller n_fft, or pad_mode="constant"',
        )
    return arrays.pad(x, ((0, 0),) * (x.ndim - 1) + ((half, half),), mode=pad_mode)


def istft(
    spectrum: ArrayLike,
    n_fft: int | None = None,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: str | ArrayLike = "hann",
    *,
    center: bool = True,
    normalized: bool = False,
    length: int | None = None,
) -> Tensor:
    r"""The signal whose frames are closest to the spectrum: \(x_t = \sum_i w_{t-hi} f_{i,t-hi} / \sum_i w_{t-hi}^2\).

    >>> import wonderland as wl
    >>> x = wl.sin(wl.arange(100, dtype=wl.float64))
    >>> bool(wl.allclose(wl.audio.istft(wl.audio.stft(x, n_fft=16), n_fft=16, length=100), x))
    True

    The settings are those of `stft`; it is undone exactly where windows overlap, that is, where the divisor is not 0.
    `length` cuts off, or fills up with zeros, to that many samples; n_fft is 2 (frequencies - 1) by default.
    """
    spectrum = as_inexact("istft", spectrum)
    if not is_complex(spectrum.dtype):
        raise DTypeError(f"istft: a spectrum of dtype {spectrum.dtype}.", "what stft gave, complex, with its phases")
    if spectrum.ndim < 2 or not spectrum.shape[-2]:
        raise ShapeError(f"istft: a spectrum of shape {spectrum.shape}.", "(..., frames, frequencies)")
    n_fft = 2 * (spectrum.shape[-1] - 1) if n_fft is None else as_int("istft", "n_fft", n_fft, least=1)
    if spectrum.shape[-1] != n_fft // 2 + 1:
        raise ShapeError(
            f"istft: {spectrum.shape[-1]} frequencies with n_fft={n_fft}.", f"{n_fft // 2 + 1}, as stft gives"
        )
    settings = as_frames("istft", n_fft, hop_length, win_length, window)
    _check_overlap(settings, spectrum.shape[-2])
    w = settings.values(real_of(spectrum.dtype))
    frames = fft.irfft(spectrum, n=n_fft, norm="ortho" if normalized else "backward") * w
    x = overlap_add(frames, settings.hop)
    weight = overlap_add(arrays.broadcast_to(arrays.square(w), frames.shape[-2:]), settings.hop)
    half = n_fft // 2 if center else 0
    end = x.shape[-1] - half if length is None else min(x.shape[-1], half + as_int("istft", "length", length, least=1))
    x, weight = x[..., half:end], weight[half:end]
    x = x / arrays.where(weight > 1e-11, weight, 1.0)
    missing = 0 if length is None else length - x.shape[-1]
    return arrays.pad(x, ((0, 0),) * (x.ndim - 1) + ((0, missing),)) if missing > 0 else x


def _check_overlap(settings: Frames, count: int) -> None:
    """Refuse windows with gaps between them: samples there are in no frame."""
    if count == 1 or not isinstance(settings.window, str):
        return
    w = window_values(settings.window, settings.win_length) ** 2
    # between the first and the last frames the sum of squares repeats every hop
    if settings.hop > len(w) or min(w[k :: settings.hop].sum() for k in range(settings.hop)) < 1e-11:
        raise InputError(
            f"istft: windows {settings.window!r} of {settings.win_length} samples every {settings.hop} leave gaps.",
            "a smaller hop_length: a half or a quarter of win_length",
        )
