"""The matrix product, batched on leading axes. Book, sections 2.1.2 and 2.1.3."""

from __future__ import annotations

import math

import numpy as np

from ..core.broadcasting import broadcast_shapes
from ..core.dtypes import HALVES, float32
from ..core.errors import DTypeError, ShapeError
from ..core.primitive import LINEAR, Aval, Primitive
from ..core.tensor import Tensor
from ..core.typing import Array, Shaped
from .elementwise import elementwise_batch
from .structure import reshape, transpose, unbroadcast


def _matmul(x: Array, y: Array) -> Array:
    if x.dtype in HALVES:
        return np.matmul(x.astype(float32), y.astype(float32)).astype(x.dtype)
    if y.ndim == 2 and x.ndim > 2 and x.size:
        # one large product instead of many small ones
        return np.matmul(x.reshape(-1, x.shape[-1]), y).reshape(*x.shape[:-1], y.shape[-1])
    return np.matmul(x, y)


def matmul_shape(x: tuple[int, ...], y: tuple[int, ...]) -> tuple[int, ...]:
    if len(x) < 2 or len(y) < 2:
        raise ShapeError(f"matmul: shapes {x} and {y}: both need at least two axes.", "wl.matmul or @ for vectors")
    if x[-1] != y[-2]:
        flipped = " (their transposes would fit: x.mT @ y or x @ y.mT)" if x[-2] == y[-2] or x[-1] == y[-1] else ""
        raise ShapeError(
            f"matmul: shapes {x} and {y} do not fit: the inner sizes {x[-1]} and {y[-2]} differ.",
            f"shapes (..., n, k) and (..., k, m){flipped}",
        )
    return (*broadcast_shapes("matmul", x[:-2], y[:-2]), x[-2], y[-1])


def _abstract(x: Shaped, y: Shaped) -> Aval:
    if x.dtype != y.dtype or x.dtype.kind == "b":
        raise DTypeError(f"matmul: dtypes {x.dtype} and {y.dtype}.", "two numeric tensors of one dtype")
    return Aval(matmul_shape(x.shape, y.shape), x.dtype)


def swap_last(x: Tensor) -> Tensor:
    """The last two axes exchanged."""
    n = len(x.shape)
    return transpose(x, axes=(*range(n - 2), n - 1, n - 2))


def _transpose_right(ct: Tensor, x: Tensor, y: Tensor) -> Tensor:
    if len(y.shape) == 2 and x.ndim > 2:
        flat = reshape(x, shape=(math.prod(x.shape[:-1]), x.shape[-1]))
        return swap_last(flat) @ reshape(ct, shape=(flat.shape[0], ct.shape[-1]))
    return unbroadcast(swap_last(x) @ ct, y.shape)


def _cost(x: Shaped, y: Shaped) -> int:
    return math.prod(matmul_shape(x.shape, y.shape)) * x.shape[-1]


matmul: Primitive = Primitive(
    "matmul",
    _matmul,
    _abstract,
    jvp=(LINEAR, LINEAR),
    transpose=(lambda ct, x, y: unbroadcast(ct @ swap_last(y), x.shape), _transpose_right),
    cost=_cost,
    single=1 << 21,
)
matmul.batch = elementwise_batch(matmul)
