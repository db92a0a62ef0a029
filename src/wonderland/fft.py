"""Discrete Fourier transforms, `wl.fft`: the extension of the Array API standard (2024.12) and the 2-d names.

Along an axis of size n, with w = exp(-2 pi i / n),

    fft:   y_k = sum_j x_j w^(j k)             ifft:   x_j = (1/n) sum_k y_k w^(-j k)

`rfft` gives the frequencies 0 .. n//2 of a real signal (the others are their conjugates), `irfft` takes them
back; `hfft` and `ihfft` exchange the roles of signal and spectrum. `norm` says where the factor 1/n goes:
"backward" (on the inverse), "forward", or "ortho" (its root on both). All transforms are linear, and
differentiable in both modes. Convolutions of long signals are products of spectra. Book, sections 7
(exercises) and 13.3.1.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .arrays import astype, conj, roll
from .arrays.conversion import as_inexact, as_real, as_tensor, check_device
from .core.arguments import as_int, as_list, as_number
from .core.broadcasting import normalize_axes, normalize_axis
from .core.dtypes import as_dtype, complex_of, default_float, int64, is_floating
from .core.errors import DTypeError, InputError
from .core.tensor import Tensor, wrap
from .core.typing import Array, ArrayLike, Axes, DTypeLike
from .primitives import fourier as p
from .primitives.creation import check_size
from .primitives.structure import place, take_slice

# --- arguments


def _complex(name: str, x: ArrayLike) -> Tensor:
    x = as_inexact(name, x)
    return astype(x, complex_of(x.dtype))


def _check_norm(name: str, norm: object) -> str:
    norm = "backward" if norm is None else norm
    if not isinstance(norm, str) or norm not in p.TRANSPOSED_NORM:
        raise InputError(f"{name}: norm={norm!r}.", '"backward", "ortho" or "forward"')
    return norm


def _resized(name: str, x: Tensor, axis: int, n: int | None) -> Tensor:
    """x cut off, or filled up with zeros, to n elements along an axis."""
    old = x.shape[axis]
    size = old if n is None else as_int(name, "n", n)
    size = old if size == -1 else size
    if size < 1:
        raise InputError(
            f"{name}: a transform of {size} elements (shape {x.shape}, axis {axis}) is not defined.", "n >= 1"
        )
    if size < old:
        return take_slice(x, axis, 0, size)
    if size == old:
        return x
    index = tuple((0, old if i == axis else None, 1) for i in range(x.ndim))
    return place(x, shape=(*x.shape[:axis], size, *x.shape[axis + 1 :]), index=index)


def _axes_and_sizes(
    name: str, x: Tensor, s: Sequence[int | None] | None, axes: Sequence[int] | None
) -> tuple[list[int], list[int | None]]:
    """The axes in the order given (the last len(s), or all, by default), and the size asked for of each."""
    sizes = None if s is None else as_list(name, "s", s)
    if axes is None:
        count = x.ndim if sizes is None else len(sizes)
        if count > x.ndim:
            raise InputError(f"{name}: s={s!r} names more axes than the {x.ndim} of shape {x.shape}.", "a shorter s")
        places = list(range(x.ndim - count, x.ndim))
    else:
        axes = as_list(name, "axes", axes)
        normalize_axes(name, axes, x.ndim)  # refuses axes that do not exist or appear twice
        places = [normalize_axis(name, a, x.ndim) for a in axes]
    if sizes is None:
        sizes = [None] * len(places)
    if len(sizes) != len(places):
        raise InputError(f"{name}: s={s!r} and axes={axes!r} differ in length.", "one size per axis")
    if not places:
        raise InputError(
            f"{name}: there is no axis to transform (shape {x.shape}, axes={axes!r}).", "at least one axis"
        )
    return places, sizes


# --- one axis


def fft(x: ArrayLike, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Tensor:
    r"""The discrete Fourier transform \(y_k = \sum_j x_j e^{-2\pi i jk/n}\) along an axis.

    >>> import wonderland as wl
    >>> wl.fft.fft(wl.tensor([1.0, 0.0, 0.0, 0.0]))
    tensor([1.+0.j, 1.+0.j, 1.+0.j, 1.+0.j], dtype=complex64)

    x is cut off, or filled up with zeros, to n elements first. Book, section 7 (exercises).
    """
    return _fftn("fft", x, None if n is None else (n,), (axis,), norm, False)


def ifft(x: ArrayLike, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Tensor:
    r"""The inverse of `fft`: \(x_j = \frac1n \sum_k y_k e^{2\pi i jk/n}\).

    >>> import wonderland as wl
    >>> wl.fft.ifft(wl.fft.fft(wl.tensor([1.0, 2.0, 4.0, 8.0]))).real
    tensor([1., 2., 4., 8.])
    """
    return _fftn("ifft", x, None if n is None else (n,), (axis,), norm, True)


def rfft(x: ArrayLike, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Tensor:
    """The first n//2 + 1 elements of `fft` of a real signal; the others are their conjugates.

    >>> import wonderland as wl
    >>> wl.fft.rfft(wl.tensor([1.0, 2.0, 3.0, 4.0]))
    tensor([10.+0.j, -2.+2.j, -2.+0.j], dtype=complex64)
    """
    return _rfft("rfft", x, n, axis, norm)


def _rfft(name: str, x: ArrayLike, n: int | None, axis: int, norm: str) -> Tensor:
    x = as_real(name, x)
    place = normalize_axis(name, axis, x.ndim)
    return p.rfft(_resized(name, x, place, n), axis=place, norm=_check_norm(name, norm))


def irfft(x: ArrayLike, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Tensor:
    """The real signal of n elements with the given frequencies 0 .. n//2: the inverse of `rfft`.

    >>> import wonderland as wl
    >>> wl.fft.irfft(wl.fft.rfft(wl.tensor([1.0, 2.0, 3.0])), n=3)
    tensor([1., 2., 3.])

    By default n = 2 (m - 1) for m frequencies, so say n for signals of odd length. The imaginary parts of the
    frequencies 0 and n/2 do not matter.
    """
    return _irfft("irfft", x, n, axis, norm)


def _irfft(name: str, x: ArrayLike, n: int | None, axis: int, norm: str) -> Tensor:
    x = _complex(name, x)
    place = normalize_axis(name, axis, x.ndim)
    size = -1 if n is None else as_int(name, "n", n)
    size = 2 * (x.shape[place] - 1) if size == -1 else size
    if size < 1:
        raise InputError(
            f"{name}: a signal of {size} elements (shape {x.shape}, axis {axis}) is not defined.", "n >= 1"
        )
    half = _resized(name, x, place, size // 2 + 1)
    return p.irfft(half, n=size, axis=place, norm=_check_norm(name, norm))


def hfft(x: ArrayLike, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Tensor:
    """The real spectrum of n elements of a signal with x[-j] = conj(x[j]), given by its elements 0 .. n//2.

    >>> import wonderland as wl
    >>> wl.fft.hfft(wl.tensor([1.0, 2.0, 3.0]))
    tensor([ 8., -2.,  0., -2.])
    """
    return _irfft("hfft", conj(as_inexact("hfft", x)), n, axis, p.TRANSPOSED_NORM[_check_norm("hfft", norm)])


def ihfft(x: ArrayLike, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Tensor:
    """The inverse of `hfft`: the elements 0 .. n//2 of the signal with a real spectrum x.

    >>> import wonderland as wl
    >>> wl.fft.ihfft(wl.tensor([8.0, -2.0, 0.0, -2.0])).real
    tensor([1., 2., 3.])
    """
    return conj(_rfft("ihfft", x, n, axis, p.TRANSPOSED_NORM[_check_norm("ihfft", norm)]))


# --- several axes


def _fftn(
    name: str, x: ArrayLike, s: Sequence[int | None] | None, axes: Sequence[int] | None, norm: str, inverse: bool
) -> Tensor:
    x = _complex(name, x)
    places, sizes = _axes_and_sizes(name, x, s, axes)
    for a, size in zip(places, sizes, strict=True):
        x = _resized(name, x, a, size)
    return p.fft(x, axes=tuple(places), inverse=inverse, norm=_check_norm(name, norm))


def fftn(
    x: ArrayLike, /, *, s: Sequence[int] | None = None, axes: Sequence[int] | None = None, norm: str = "backward"
) -> Tensor:
    """`fft` along several axes, all by default; `s` gives their sizes.

    >>> import wonderland as wl
    >>> wl.fft.fftn(wl.ones((2, 2)))
    tensor([[4.+0.j, 0.+0.j],
            [0.+0.j, 0.+0.j]], dtype=complex64)
    """
    return _fftn("fftn", x, s, axes, norm, False)


def ifftn(
    x: ArrayLike, /, *, s: Sequence[int] | None = None, axes: Sequence[int] | None = None, norm: str = "backward"
) -> Tensor:
    """`ifft` along several axes: the inverse of `fftn`.

    >>> import wonderland as wl
    >>> wl.fft.ifftn(wl.ones((2, 2))).real
    tensor([[1., 0.],
            [0., 0.]])
    """
    return _fftn("ifftn", x, s, axes, norm, True)


def rfftn(
    x: ArrayLike, /, *, s: Sequence[int] | None = None, axes: Sequence[int] | None = None, norm: str = "backward"
) -> Tensor:
    """`rfft` along the last of the axes, then `fft` along the others.

    >>> import wonderland as wl
    >>> wl.fft.rfftn(wl.ones((4, 6))).shape
    (4, 4)
    """
    x = as_real("rfftn", x)
    places, sizes = _axes_and_sizes("rfftn", x, s, axes)
    y = _rfft("rfftn", x, sizes[-1], places[-1], norm)
    return _fftn("rfftn", y, sizes[:-1], places[:-1], norm, False) if places[:-1] else y


def irfftn(
    x: ArrayLike, /, *, s: Sequence[int] | None = None, axes: Sequence[int] | None = None, norm: str = "backward"
) -> Tensor:
    """The inverse of `rfftn`; `s` gives the sizes of the result, the last of which is 2 (m - 1) by default.

    >>> import wonderland as wl
    >>> wl.fft.irfftn(wl.fft.rfftn(wl.ones((3, 4))), s=(3, 4)).sum()
    tensor(12.)
    """
    x = _complex("irfftn", x)
    places, sizes = _axes_and_sizes("irfftn", x, s, axes)
    y = _fftn("irfftn", x, sizes[:-1], places[:-1], norm, True) if places[:-1] else x
    return _irfft("irfftn", y, sizes[-1], places[-1], norm)


def fft2(
    x: ArrayLike, /, *, s: Sequence[int] | None = None, axes: Sequence[int] = (-2, -1), norm: str = "backward"
) -> Tensor:
    """`fftn` along the last two axes.

    >>> import wonderland as wl
    >>> wl.fft.fft2(wl.ones((5, 2, 2))).shape
    (5, 2, 2)
    """
    return _fftn("fft2", x, s, axes, norm, False)


def ifft2(
    x: ArrayLike, /, *, s: Sequence[int] | None = None, axes: Sequence[int] = (-2, -1), norm: str = "backward"
) -> Tensor:
    """`ifftn` along the last two axes.

    >>> import wonderland as wl
    >>> wl.fft.ifft2(wl.fft.fft2(wl.eye(2))).real
    tensor([[1., 0.],
            [0., 1.]])
    """
    return _fftn("ifft2", x, s, axes, norm, True)


def rfft2(
    x: ArrayLike, /, *, s: Sequence[int] | None = None, axes: Sequence[int] = (-2, -1), norm: str = "backward"
) -> Tensor:
    """`rfftn` along the last two axes.

    >>> import wonderland as wl
    >>> wl.fft.rfft2(wl.ones((5, 4, 6))).shape
    (5, 4, 4)
    """
    return rfftn(x, s=s, axes=axes, norm=norm)


def irfft2(
    x: ArrayLike, /, *, s: Sequence[int] | None = None, axes: Sequence[int] = (-2, -1), norm: str = "backward"
) -> Tensor:
    """`irfftn` along the last two axes.

    >>> import wonderland as wl
    >>> wl.fft.irfft2(wl.fft.rfft2(wl.eye(2)))
    tensor([[1., 0.],
            [0., 1.]])
    """
    return irfftn(x, s=s, axes=axes, norm=norm)


# --- frequencies and their order


def _frequencies(name: str, counts: Array, n: int, d: float, dtype: DTypeLike | None) -> Tensor:
    d = as_number(name, "d", d)
    target = default_float if dtype is None else as_dtype(dtype)
    if not is_floating(target):
        raise DTypeError(f"{name}: frequencies are not {target}.", "a floating dtype")
    return wrap((counts / (n * d)).astype(target))


def _check_length(name: str, n: object) -> None:
    check_size(name, (as_int(name, "n", n, least=1),), int64)


def fftfreq(n: int, /, *, d: float = 1.0, dtype: DTypeLike | None = None, device: str | None = None) -> Tensor:
    """The frequency of each element of `fft` of n samples at distance d: 0, 1, .., -2, -1, divided by n d.

    >>> import wonderland as wl
    >>> wl.fft.fftfreq(4)
    tensor([ 0.  ,  0.25, -0.5 , -0.25])
    """
    check_device("fftfreq", device)
    _check_length("fftfreq", n)
    return _frequencies("fftfreq", np.fft.ifftshift(np.arange(n) - n // 2), n, d, dtype)


def rfftfreq(n: int, /, *, d: float = 1.0, dtype: DTypeLike | None = None, device: str | None = None) -> Tensor:
    """The frequency of each element of `rfft` of n samples at distance d: 0, 1, .., n//2, divided by n d.

    >>> import wonderland as wl
    >>> wl.fft.rfftfreq(4)
    tensor([0.  , 0.25, 0.5 ])
    """
    check_device("rfftfreq", device)
    _check_length("rfftfreq", n)
    return _frequencies("rfftfreq", np.arange(n // 2 + 1), n, d, dtype)


def _shifted(name: str, x: ArrayLike, axes: Axes, sign: int) -> Tensor:
    x = as_tensor(name, x)
    places = normalize_axes(name, list(axes) if isinstance(axes, Sequence) else axes, x.ndim)
    return roll(x, tuple(sign * (x.shape[a] // 2) for a in places), axis=places)


def fftshift(x: ArrayLike, /, *, axes: Axes = None) -> Tensor:
    """The spectrum with frequency 0 moved to the middle of the axes, all by default.

    >>> import wonderland as wl
    >>> wl.fft.fftshift(wl.fft.fftfreq(4))
    tensor([-0.5 , -0.25,  0.  ,  0.25])
    """
    return _shifted("fftshift", x, axes, 1)


def ifftshift(x: ArrayLike, /, *, axes: Axes = None) -> Tensor:
    """The inverse of `fftshift`; the two differ on axes of odd size.

    >>> import wonderland as wl
    >>> wl.fft.ifftshift(wl.fft.fftshift(wl.arange(5)))
    tensor([0, 1, 2, 3, 4])
    """
    return _shifted("ifftshift", x, axes, -1)


__all__ = [
    "fft",
    "ifft",
    "rfft",
    "irfft",
    "hfft",
    "ihfft",
    "fftn",
    "ifftn",
    "rfftn",
    "irfftn",
    "fft2",
    "ifft2",
    "rfft2",
    "irfft2",
    "fftfreq",
    "rfftfreq",
    "fftshift",
    "ifftshift",
]
