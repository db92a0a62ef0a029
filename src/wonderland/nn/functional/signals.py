"""Convolution and correlation of plain arrays without channels, as signal processing has them. Book, section 7.1.3.

The layers and `conv1d` to `conv3d` are cross-correlations; these two functions keep the names apart.
"""

from __future__ import annotations

from ... import arrays, fft
from ...arrays.conversion import promote
from ...core.dtypes import is_inexact
from ...core.errors import DTypeError, InputError, ShapeError
from ...core.tensor import Tensor
from ...core.typing import ArrayLike
from .convolution import conv_nd
from .fft_convolution import fast_size

__all__ = ["convolve", "correlate"]

MODES = ("full", "same", "valid")


def convolve(x: ArrayLike, w: ArrayLike, mode: str = "full", method: str = "direct") -> Tensor:
    r"""The convolution \((x * w)_t = \sum_\tau x_\tau w_{t - \tau}\) over all axes: the kernel is flipped.

    >>> import wonderland as wl
    >>> wl.nn.functional.convolve(wl.tensor([1.0, 2.0, 3.0, 4.0]), wl.tensor([1.0, 2.0, 3.0]), mode="same")
    tensor([ 4., 10., 16., 17.])

    x and w have the same number of axes. `mode` is "full" (wherever they overlap, n + k - 1 places), "same" (the middle
    of that, as many as x has) or "valid" (where they overlap completely, n - k + 1). `method` is "direct" or "fft".
    It is commutative, as `correlate` is not. Book, section 7.1.3.
    """
    return _combined("convolve", x, w, mode, method, flip=True)


def correlate(x: ArrayLike, w: ArrayLike, mode: str = "valid", method: str = "direct") -> Tensor:
    r"""The cross-correlation \((x \star w)_t = \sum_\tau x_{t + \tau} \overline{w_\tau}\): the kernel is not flipped.

    >>> import wonderland as wl
    >>> wl.nn.functional.correlate(wl.tensor([1.0, 2.0, 3.0, 4.0]), wl.tensor([1.0, 2.0, 3.0]), mode="same")
    tensor([ 8., 14., 20., 11.])

    This is what layers call convolution. Arguments are those of `convolve`. Exchanging x and w reverses the result.
    """
    return _combined("correlate", x, w, mode, method, flip=False)


def _combined(name: str, x: ArrayLike, w: ArrayLike, mode: str, method: str, flip: bool) -> Tensor:
    x, w = promote(name, x, w)
    if mode not in MODES:
        raise InputError(f"{name}: mode={mode!r}.", " or ".join(map(repr, MODES)))
    if method not in ("direct", "fft"):
        raise InputError(f"{name}: method={method!r}.", '"direct" or "fft"')
    if x.ndim != w.ndim or not x.ndim or not x.size or not w.size:
        raise ShapeError(f"{name}: shapes {x.shape} and {w.shape}.", "two arrays with the same axes, not empty")
    if mode == "valid" and any(k > n for n, k in zip(x.shape, w.shape, strict=True)):
        raise ShapeError(
            f"{name}: a kernel of shape {w.shape} does not fit into {x.shape}.", 'a smaller kernel, or mode="full"'
        )
    if method == "fft" and not is_inexact(x.dtype):
        raise DTypeError(f"{name}: spectra of {x.dtype} are not exact.", 'method="direct", or a floating dtype')
    if method == "direct" and x.ndim > 3:
        raise ShapeError(f"{name}: {x.ndim} axes.", 'at most 3, or method="fft"')
    # the flipped kernel is correlated; place t of the full result is that of the kernel's last element at x_t
    kernel = arrays.flip(w) if flip else arrays.conj(w)
    full = _full_by_spectra(x, kernel) if method == "fft" else _full(name, x, kernel)
    full = arrays.astype(full, x.dtype)  # spectra of half precision are float32
    return full[tuple(_kept(n, k, mode) for n, k in zip(x.shape, w.shape, strict=True))]


def _full(name: str, x: Tensor, kernel: Tensor) -> Tensor:
    padding = tuple((k - 1, k - 1) for k in kernel.shape)
    return conv_nd(name, x.ndim, x[..., None], kernel[..., None, None], None, 1, padding, 1, 1)[..., 0]


def _full_by_spectra(x: Tensor, kernel: Tensor) -> Tensor:
    sizes = [n + k - 1 for n, k in zip(x.shape, kernel.shape, strict=True)]
    fast, flipped = [fast_size(n) for n in sizes], arrays.flip(kernel)
    if x.dtype.kind == "c":
        y = fft.ifftn(fft.fftn(x, s=fast) * fft.fftn(flipped, s=fast))
    else:
        y = fft.irfftn(fft.rfftn(x, s=fast) * fft.rfftn(flipped, s=fast), s=fast)
    return y[tuple(slice(0, n) for n in sizes)]


def _kept(n: int, k: int, mode: str) -> slice:
    """The part of the full result that a mode keeps; of an even kernel, "same" has one more place at the beginning."""
    if mode == "full":
        return slice(0, n + k - 1)
    return slice(k - 1, n) if mode == "valid" else slice((k - 1) // 2, (k - 1) // 2 + n)
