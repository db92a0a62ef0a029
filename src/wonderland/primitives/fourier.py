"""Discrete Fourier transforms. All of them are linear.

With w = exp(-2 pi i / n), `fft` along an axis of size n is y_k = sum_j x_j w^(jk): a symmetric matrix, hence
its own transpose. `rfft` keeps the frequencies 0 .. n//2 of a real signal; `irfft` is its inverse. They are
each other's transpose but for weights that count how often a frequency occurs in the whole spectrum: twice,
except 0 and n/2.
"""

from __future__ import annotations

import math
from typing import Literal

import numpy as np

from ..core.dtypes import DType, complex_of, float32, is_complex, is_floating, is_half, real_of
from ..core.errors import DTypeError, ShapeError
from ..core.primitive import LINEAR, Aval, Primitive
from ..core.tensor import Tensor, wrap
from ..core.typing import Array, Shaped
from . import elementwise

Norm = Literal["backward", "ortho", "forward"]
# where the factor 1/n of forward and backward together goes; the transpose of a transform is scaled like it
TRANSPOSED_NORM: dict[str, Norm] = {"backward": "forward", "ortho": "ortho", "forward": "backward"}


def _cost(
    x: Shaped, axis: int | None = None, axes: tuple[int, ...] = (), n: int | None = None, **params: object
) -> int:
    size = math.prod(x.shape[a] for a in axes) if axis is None else (n or x.shape[axis])
    return math.prod(x.shape) * max(1, math.ceil(math.log2(max(2, size))))


# --- complex to complex, along several axes


def _fft(x: Array, axes: tuple[int, ...], inverse: bool, norm: Norm) -> Array:
    return (np.fft.ifftn if inverse else np.fft.fftn)(x, axes=axes, norm=norm)


def _fft_abstract(x: Shaped, axes: tuple[int, ...], inverse: bool, norm: Norm) -> Aval:
    if not is_complex(x.dtype):
        raise DTypeError(f"fft: takes complex tensors, received {x.dtype}.", "x.astype(wl.complex64)")
    return Aval(x.shape, x.dtype)


fft: Primitive = Primitive(
    "fft",
    _fft,
    _fft_abstract,
    jvp=(LINEAR,),
    transpose=(lambda ct, x, **params: fft(ct, **params),),
    batch=lambda args, batched, axes, **params: fft(args[0], axes=tuple(a + 1 for a in axes), **params),
    cost=_cost,
)

# --- real to half of the spectrum, and back, along one axis


def _weights(n: int, axis: int, ndim: int, dtype: DType) -> Tensor:
    """How often each frequency 0 .. n//2 occurs in the spectrum of a real signal of length n."""
    counts = np.full(n // 2 + 1, 2.0)
    counts[0] = 1
    if n % 2 == 0:
        counts[-1] = 1
    return wrap(counts.astype(real_of(dtype)).reshape(-1, *(1,) * (ndim - 1 - axis)))


def _rfft(x: Array, axis: int, norm: Norm) -> Array:
    # NumPy would scale float16 with a factor of that precision
    return np.fft.rfft(x.astype(float32) if is_half(x.dtype) else x, axis=axis, norm=norm)


def _rfft_abstract(x: Shaped, axis: int, norm: Norm) -> Aval:
    if not is_floating(x.dtype):
        raise DTypeError(f"rfft: takes real tensors, received {x.dtype}.", "wl.fft.fft for complex ones")
    return Aval((*x.shape[:axis], x.shape[axis] // 2 + 1, *x.shape[axis + 1 :]), complex_of(x.dtype))


def _rfft_transpose(ct: Tensor, x: Shaped, axis: int, norm: Norm) -> Tensor:
    n = x.shape[axis]
    ct = elementwise.conj(ct) / _weights(n, axis, ct.ndim, ct.dtype)
    out = irfft(ct, n=n, axis=axis, norm=TRANSPOSED_NORM[norm])
    return out if out.dtype == x.dtype else elementwise.astype(out, dtype=x.dtype)


rfft: Primitive = Primitive(
    "rfft",
    _rfft,
    _rfft_abstract,
    jvp=(LINEAR,),
    transpose=(_rfft_transpose,),
    batch=lambda args, batched, axis, norm: rfft(args[0], axis=axis + 1, norm=norm),
    cost=_cost,
)


def _irfft_abstract(x: Shaped, n: int, axis: int, norm: Norm) -> Aval:
    if not is_complex(x.dtype):
        raise DTypeError(f"irfft: takes complex tensors, received {x.dtype}.", "x.astype(wl.complex64)")
    if x.shape[axis] != n // 2 + 1:
        raise ShapeError(
            f"irfft: {x.shape[axis]} frequencies do not make a signal of length {n}.", "n//2 + 1 frequencies"
        )
    return Aval((*x.shape[:axis], n, *x.shape[axis + 1 :]), real_of(x.dtype))


def _irfft_transpose(ct: Tensor, x: Shaped, n: int, axis: int, norm: Norm) -> Tensor:
    spectrum = rfft(ct, axis=axis, norm=TRANSPOSED_NORM[norm])
    return elementwise.conj(spectrum) * _weights(n, axis, ct.ndim, ct.dtype)


irfft: Primitive = Primitive(
    "irfft",
    lambda x, n, axis, norm: np.fft.irfft(x, n=n, axis=axis, norm=norm),
    _irfft_abstract,
    jvp=(LINEAR,),
    transpose=(_irfft_transpose,),
    batch=lambda args, batched, n, axis, norm: irfft(args[0], n=n, axis=axis + 1, norm=norm),
    cost=_cost,
)
