"""The matrix exponential and its directional derivative, batched on leading axes. Book, section 2.1.2, E.2.7.

The derivative L(A, E) of exp at A in direction E is a block of a larger exponential,

    exp [[A, E], [0, A]] = [[exp A, L(A, E)], [0, exp A]],

and the derivative of L is again such a block. So two primitives are closed under differentiation.
"""

from __future__ import annotations

import numpy as np

from ..core.broadcasting import broadcast_shapes
from ..core.dtypes import DType, complex128, float64, is_complex
from ..core.errors import ShapeError
from ..core.primitive import LINEAR, Aval, Primitive
from ..core.tensor import Tensor
from ..core.typing import Array, Shaped
from . import creation
from .contraction import swap_last
from .elementwise import elementwise_batch
from .linear_algebra import check_matrices, check_square, cubic, pass_through, square_abstract
from .structure import broadcast_to, concatenate, take_slice, unbroadcast

DEGREE = 13
# Up to this norm the approximation of degree 13 is exact to float64 (Higham, 2005).
LARGEST_NORM = 5.371920351148152


def _coefficients() -> list[float]:
    """c_k of the Pade approximation exp(x) = p(x) / p(-x), p(x) = sum_k c_k x^k."""
    c = [1.0]
    for k in range(DEGREE):
        c.append(c[-1] * (DEGREE - k) / ((2 * DEGREE - k) * (k + 1)))
    return c


C = _coefficients()


def _norm(x: Array) -> Array:
    """The largest absolute column sum of each matrix, with two trailing axes of size 1."""
    return np.max(np.sum(np.abs(x), axis=-2), axis=-1, initial=0)[..., None, None]


def _exponential(x: Array) -> Array:
    """Scaling and squaring: exp(A) = exp(A / 2^s)^(2^s), with s for every matrix on its own."""
    squarings = np.maximum(np.frexp(_norm(x) / LARGEST_NORM)[1], 0)
    x = x * 2.0**-squarings
    one = np.eye(x.shape[-1])
    x2 = x @ x
    x4 = x2 @ x2
    x6 = x4 @ x2
    odd = x6 @ (C[13] * x6 + C[11] * x4 + C[9] * x2) + C[7] * x6 + C[5] * x4 + C[3] * x2 + C[1] * one
    even = x6 @ (C[12] * x6 + C[10] * x4 + C[8] * x2) + C[6] * x6 + C[4] * x4 + C[2] * x2 + C[0] * one
    odd = x @ odd
    out = np.linalg.solve(even - odd, even + odd)
    for i in range(int(np.max(squarings, initial=0))):
        out = np.where(squarings > i, out @ out, out)
    return out


def _wide(dtype: DType) -> DType:
    return complex128 if is_complex(dtype) else float64


def _matrix_exp(x: Array) -> Array:
    return _exponential(x.astype(_wide(x.dtype))).astype(x.dtype)


matrix_exp: Primitive = Primitive(
    "matrix_exp",
    _matrix_exp,
    square_abstract("matrix_exp"),
    jvp=(lambda t, out, x: matrix_exp_derivative(x, t),),
    cost=cubic(16.0),
)
matrix_exp.batch = pass_through(matrix_exp)

# --- the derivative of the exponential at x in direction e, linear in e


def _derivative(x: Array, e: Array) -> Array:
    n = x.shape[-1]
    size = _norm(e)
    direction = e / np.where(size > 0, size, 1)  # the length of e must not decide on the scaling
    shape = np.broadcast_shapes(x.shape, e.shape)
    block = np.zeros((*shape[:-2], 2 * n, 2 * n), _wide(x.dtype))
    block[..., :n, :n] = block[..., n:, n:] = x
    block[..., :n, n:] = direction
    return (_exponential(block)[..., :n, n:] * size).astype(x.dtype)


def _derivative_abstract(x: Shaped, e: Shaped) -> Aval:
    check_square("matrix_exp_derivative", x)
    check_matrices("matrix_exp_derivative", x, e)
    if x.shape[-2:] != e.shape[-2:]:
        raise ShapeError(f"matrix_exp_derivative: a matrix {x.shape} and a direction {e.shape}.", "equal sizes")
    return Aval(broadcast_shapes("matrix_exp_derivative", x.shape, e.shape), x.dtype)


def _block(a: Tensor, b: Tensor) -> Tensor:
    """[[a, b], [0, a]]"""
    n = len(a.shape)
    top = concatenate(a, b, axis=n - 1)
    bottom = concatenate(creation.zeros_like(a), a, axis=n - 1)
    return concatenate(top, bottom, axis=n - 2)


def _derivative_jvp(t: Tensor, out: Tensor, x: Tensor, e: Tensor) -> Tensor:
    x, e, t = (broadcast_to(v, shape=out.shape) for v in (x, e, t))
    n, last = out.shape[-1], out.ndim - 1
    second = matrix_exp_derivative(_block(x, e), _block(t, creation.zeros_like(t)))
    return take_slice(take_slice(second, last - 1, 0, n), last, n, 2 * n)


matrix_exp_derivative: Primitive = Primitive(
    "matrix_exp_derivative",
    _derivative,
    _derivative_abstract,
    jvp=(_derivative_jvp, LINEAR),
    transpose=(None, lambda ct, x, e: unbroadcast(matrix_exp_derivative(swap_last(x), ct), e.shape)),
    cost=cubic(128.0),
)
matrix_exp_derivative.batch = elementwise_batch(matrix_exp_derivative)
