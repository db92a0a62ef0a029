"""Convolutions as products of spectra, which are cheap for large kernels. Book, chapter 7 (exercises)."""

from __future__ import annotations

from typing import Any

from ... import arrays, fft
from ...arrays.conversion import promote
from ...core.arguments import as_int
from ...core.dtypes import is_floating
from ...core.errors import DTypeError, ShapeError
from ...core.tensor import Tensor
from ...core.typing import ArrayLike, ShapeLike
from ...primitives.structure import place
from ...primitives.windows import count_windows, extents
from .convolution import _operands, _plus
from .windows import PaddingLike, as_padding, as_sizes, check_fit, with_axes, with_one_batch

__all__ = ["fft_conv", "long_conv"]


def fft_conv(
    x: ArrayLike,
    weight: Tensor,
    bias: ArrayLike | None = None,
    stride: ShapeLike = 1,
    padding: PaddingLike = 0,
    dilation: ShapeLike = 1,
    groups: int = 1,
) -> Tensor:
    r"""What `conv1d`, `conv2d` or `conv3d` gives, by \(\mathcal F^{-1}(\mathcal F x \cdot \overline{\mathcal F w})\).

    >>> import wonderland as wl
    >>> F, x, w = wl.nn.functional, wl.random.normal((2, 30, 30, 3)), wl.random.normal((9, 9, 3, 4))
    >>> y = F.fft_conv(x, w, padding="same")
    >>> y.shape, bool(wl.allclose(y, F.conv2d(x, w, padding="same"), atol=1e-4))
    ((2, 30, 30, 4), True)

    The number of spatial axes is that of the weight, (*kernel, in / groups, out). The time hardly depends on the size
    of the kernel: n log n for n places instead of n times the kernel's size. Book, chapter 7 (exercises).
    """
    axes = getattr(weight, "ndim", 4) - 2
    if axes not in (1, 2, 3):
        raise ShapeError(
            f"fft_conv: a weight of shape {weight.shape} does not have 1, 2 or 3 axes for the kernel.",
            "(*kernel, in / groups, out)",
        )
    return fft_conv_nd("fft_conv", axes, x, weight, bias, stride, padding, dilation, groups)


def fft_conv_nd(
    name: Any,
    axes: int,
    x: ArrayLike,
    weight: ArrayLike,
    bias: ArrayLike | None,
    stride: ShapeLike,
    padding: PaddingLike,
    dilation: ShapeLike,
    groups: int,
) -> Tensor:
    """`conv_nd` by way of spectra."""
    x, w, b = _operands(name, axes, x, weight, bias)
    _check_floating(name, x)
    dtype = x.dtype
    x, lead = with_one_batch(name, x, axes)
    stride, dilation = as_sizes(name, "stride", stride, axes), as_sizes(name, "dilation", dilation, axes)
    kernel, spatial = w.shape[:-2], x.shape[1:-1]
    pairs = as_padding(name, padding, kernel, stride, dilation)
    check_fit(name, (*lead, *x.shape[1:]), kernel, pairs, dilation)
    groups = as_int(name, "groups", groups, 1)
    if w.shape[-2] * groups != x.shape[-1] or w.shape[-1] % groups:
        raise ShapeError(
            f"{name}: an input of shape {x.shape}, a weight of shape {w.shape} and groups={groups} do not fit.",
            "(..., *spatial, in) with (*kernel, in / groups, out), both multiples of groups",
        )
    counts = count_windows(name, spatial, kernel, stride, pairs, dilation)
    # outputs that wrap around the end are not among the windows, so the padded size is enough
    sizes = [fast_size(n + low + high) for n, (low, high) in zip(spatial, pairs, strict=True)]
    x = arrays.pad(x, ((0, 0), *pairs, (0, 0)))
    w = _spread(w, extents(kernel, dilation), dilation)
    inputs, filters = w.shape[-2], w.shape[-1] // groups
    xf = fft.rfftn(x, s=sizes, axes=tuple(range(1, axes + 1)))
    wf = arrays.conj(fft.rfftn(w, s=sizes, axes=tuple(range(axes))))
    # for every frequency and group a product of matrices: (frequencies, groups, batch, in) by (.., in, out)
    xf = arrays.moveaxis(arrays.reshape(xf, (*xf.shape[:-1], groups, inputs)), 0, -2)
    wf = arrays.moveaxis(arrays.reshape(wf, (*wf.shape[:-1], groups, filters)), -2, -3)
    yf = arrays.moveaxis(arrays.matmul(xf, wf), -2, 0)
    yf = arrays.reshape(yf, (*yf.shape[:-2], groups * filters))
    y = fft.irfftn(yf, s=sizes, axes=tuple(range(1, axes + 1)))
    seen = tuple(slice(0, (count - 1) * s + 1, s) for count, s in zip(counts, stride, strict=True))
    y = arrays.astype(y[(slice(None), *seen)], dtype)  # spectra of half precision are float32
    return with_axes(y if b is None else _plus(name, y, b), lead)


def _spread(w: Tensor, reaches: tuple[int, ...], dilation: tuple[int, ...]) -> Tensor:
    """The filter with dilation - 1 zeros between its places."""
    if all(d == 1 for d in dilation):
        return w
    index = (*[(0, None, d) for d in dilation], (0, None, 1), (0, None, 1))
    return place(w, shape=(*reaches, *w.shape[-2:]), index=index)


def _check_floating(name: str, x: Tensor) -> None:
    if not is_floating(x.dtype):
        raise DTypeError(f"{name}: spectra of {x.dtype} are not taken here.", "a floating dtype")


def fast_size(n: int) -> int:
    """The next number without prime factors above 5, for which transforms are fast.

    >>> [fast_size(n) for n in (7, 31, 97)]
    [8, 32, 100]
    """
    while True:
        rest = n
        for factor in (2, 3, 5):
            while rest % factor == 0 and rest > 1:
                rest //= factor
        if rest <= 1:
            return n
        n += 1


def long_conv(x: ArrayLike, kernel: ArrayLike) -> Tensor:
    r"""\(y_{tc} = \sum_{s \le t} k_{sc} x_{t - s, c}\): a causal convolution with a kernel as long as the sequence.

    >>> import wonderland as wl
    >>> x = wl.tensor([1.0, 0.0, 0.0, 2.0])[:, None]
    >>> wl.round(wl.nn.functional.long_conv(x, wl.tensor([4.0, 2.0, 1.0])[:, None])[:, 0])
    tensor([4., 2., 1., 8.])

    x is (..., length, channels), the kernel (any length, channels), each channel by itself: a true convolution, with
    s = 0 for the present. It is computed with spectra in n log n steps; zeros at the end keep the end of the sequence
    from reaching around to its beginning. Book, chapter 7 (exercises) and section 13.3.
    """
    x, k = promote("long_conv", x, kernel)
    if x.ndim < 2 or k.ndim != 2 or x.shape[-1] != k.shape[-1] or not x.shape[-2] or not k.shape[0]:
        raise ShapeError(
            f"long_conv: an input of shape {x.shape} and a kernel of shape {k.shape}.",
            "(..., length, channels) and (kernel length, channels)",
        )
    _check_floating("long_conv", x)
    n = x.shape[-2]
    k = k[:n]
    size = fast_size(n + k.shape[0] - 1)
    spectrum = fft.rfft(x, n=size, axis=-2) * fft.rfft(k, n=size, axis=0)
    return arrays.astype(fft.irfft(spectrum, n=size, axis=-2)[..., :n, :], x.dtype)
