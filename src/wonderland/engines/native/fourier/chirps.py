"""Transforms of sizes with large prime factors, as convolutions (Bluestein): formulas on parts of complex numbers.

With c_j = exp(sign i pi j^2 / n), and because 2 j k = j^2 + k^2 - (k - j)^2,

    y_k = sum_j x_j exp(sign 2 pi i j k / n) = c_k sum_j (x_j c_j) conj c_(k - j),

a convolution, which is a product of spectra of any size m >= 2 n - 1 that has small factors alone.
"""

from __future__ import annotations

import math

import numpy as np

from ....core import dtypes
from ....core.primitive import Aval
from ....core.tensor import Tensor, wrap
from ....core.typing import Array
from ....ir.graph import Equation, Var
from ....primitives import fourier
from ....primitives.creation import zeros_like
from ....primitives.elementwise import astype
from ....primitives.structure import concatenate, place, take_slice
from ..complexes.functions import multiply
from ..complexes.on_arrays import on_arrays
from ..complexes.pairs import Pair
from .roots import LONGEST, is_smooth, roots


def fft(x: Pair, axes: tuple[int, ...], inverse: bool, norm: str) -> Pair | None:
    rough = [a for a in axes if _is_rough(x.real.shape[a])]
    if not rough:
        return None
    for axis in axes:
        if axis in rough:
            x = _chirped(x, axis, inverse, norm)
        else:
            x = _transformed(x, axis, inverse, norm)
    return x


def rfft(x: Tensor, axis: int, norm: str) -> Pair | None:
    n = x.shape[axis]
    if not _is_rough(n):
        return None
    x = astype(x, dtype=dtypes.float32) if dtypes.is_half(x.dtype) else x
    y = _chirped(Pair(x, zeros_like(x)), axis, False, norm)
    return Pair(*(take_slice(part, axis, 0, n // 2 + 1) for part in (y.real, y.imag)))


def irfft(x: Pair, n: int, axis: int, norm: str) -> Tensor | None:
    """The spectrum is filled up with its conjugates, opposite to each other."""
    if not _is_rough(n):
        return None
    behind = n - n // 2 - 1  # frequencies above the half
    real, imag = x.real, x.imag
    first, last = (take_slice(imag, axis, at, at + 1) for at in (0, n // 2))
    middle = take_slice(imag, axis, 1, n // 2 if n % 2 == 0 else n // 2 + 1)
    ends = [zeros_like(last)] if n % 2 == 0 else []
    imag = concatenate(zeros_like(first), middle, *ends, axis=axis)
    real, imag = (
        concatenate(part, take_slice(part, axis, behind, 0, -1) * sign, axis=axis)
        for part, sign in ((real, 1.0), (imag, -1.0))
    )
    return _chirped(Pair(real, imag), axis, True, norm).real


def _is_rough(n: int) -> bool:
    return 0 < n <= LONGEST // 4 and not is_smooth(n)


def _chirped(x: Pair, axis: int, inverse: bool, norm: str) -> Pair:
    shape, dtype = x.real.shape, x.real.dtype
    n, sign = shape[axis], 1 if inverse else -1
    m = _size(2 * n - 1)
    chirp = roots(2 * n, sign * (np.arange(n) ** 2 % (2 * n)))
    scale = {"backward": 1 / n if inverse else 1.0, "forward": 1.0 if inverse else 1 / n, "ortho": 1 / math.sqrt(n)}

    def constant(values: Array) -> Pair:
        values = values.reshape(-1, *(1,) * (len(shape) - 1 - axis))
        return Pair(*(wrap(np.array(part, dtype)) for part in (values.real, values.imag)))

    filled = (*shape[:axis], m, *shape[axis + 1 :])
    index = tuple((0, n if a == axis else None, 1) for a in range(len(shape)))
    turned = multiply(x, constant(chirp))
    x = Pair(*(place(part, shape=filled, index=index) for part in (turned.real, turned.imag)))
    kernel = np.zeros(m, np.complex128)
    kernel[:n] = chirp.conj()
    kernel[m - n + 1 :] = chirp[:0:-1].conj()
    product = multiply(_transformed(x, axis, False, "backward"), constant(np.fft.fft(kernel)))
    found = _transformed(product, axis, True, "backward")
    found = Pair(*(take_slice(part, axis, 0, n) for part in (found.real, found.imag)))
    return multiply(found, constant(chirp * scale[norm]))


def _size(least: int) -> int:
    """The next power of 2, or 3, 5, 9 or 15 times one."""
    return min(odd << max(0, -(-least // odd) - 1).bit_length() for odd in (1, 3, 5, 9, 15))


def _transformed(x: Pair, axis: int, inverse: bool, norm: str) -> Pair:
    var = Var(Aval(x.real.shape, dtypes.complex_of(x.real.dtype)))
    e = Equation(fourier.fft, [var], {"axes": (axis,), "inverse": inverse, "norm": norm}, [Var(var.aval)])
    (found,) = on_arrays(e, [x])
    assert isinstance(found, Pair)
    return found
