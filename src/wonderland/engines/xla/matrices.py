"""Linear algebra by XLA's own factorizations, in float32 at least; matrices that NumPy's LAPACK refuses are refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from ...core.dtypes import complex_of, is_complex, is_half
from ...core.errors import LinearAlgebraError
from ...primitives.factorization import INDEFINITE, POSITIVE
from ...primitives.linear_algebra import FINITE, NO_CONVERGENCE, RIDGE
from ...primitives.matrix_exponential import LARGEST_NORM, C
from .contractions import matmul
from .widening import wide

if TYPE_CHECKING:
    from .lowering import Lowering

Results = jax.Array | list[jax.Array]

SINGULAR, ZERO_ON_DIAGONAL = "is singular", "is singular: it has a zero on its diagonal"


def _in_single(rule: Callable[..., Results], checked: bool) -> Callable[..., Results]:
    """Half precision is computed in float32, the smallest type of LAPACK."""

    def widened(*args: jax.Array, **params: object) -> Results:
        first, rest = args[:checked], args[checked:]
        dtype = rest[0].dtype
        out = rule(*first, *map(wide, rest), **params)
        if not is_half(dtype):
            return out
        return [o.astype(dtype) for o in out] if isinstance(out, list) else out.astype(dtype)

    return widened


def _refuse(lowering: Lowering, name: str, x: jax.Array, bad: jax.Array, problem: str, hint: str) -> None:
    """Refuse the first matrix of x for which `bad` holds somewhere in its results."""
    lead = x.shape[:-2]
    if not x.size:
        return
    each = bad.reshape(*lead, -1).any(axis=-1)
    number = jnp.arange(each.size, dtype=jnp.int64).reshape(each.shape)

    def message(which: int) -> LinearAlgebraError:
        index = [int(i) for i in np.unravel_index(int(which), lead)] if lead else []
        where = f"the matrix at index {index} of shape {x.shape}" if lead else f"the matrix of shape {x.shape}"
        return LinearAlgebraError(f"{name}: {where} {problem}.", hint)

    lowering.refuse(each, number, message)


def _diagonal(x: jax.Array) -> jax.Array:
    return jnp.diagonal(x, axis1=-2, axis2=-1)


def _hermitian(x: jax.Array) -> jax.Array:
    return (x + jnp.conj(x.mT)) / 2


# --- systems


def _with_lead(a: jax.Array, b: jax.Array) -> tuple[jax.Array, jax.Array]:
    lead = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    return jnp.broadcast_to(a, lead + a.shape[-2:]), jnp.broadcast_to(b, lead + b.shape[-2:])


def _solved(lowering: Lowering, name: str, a: jax.Array, b: jax.Array) -> jax.Array:
    factors, _, order = lax.linalg.lu(a)
    _refuse(lowering, name, a, _diagonal(factors) == 0, SINGULAR, RIDGE)
    factors, b = _with_lead(factors, b)
    order = jnp.broadcast_to(order, b.shape[:-1])
    b = jnp.take_along_axis(b, order[..., None], axis=-2)
    b = lax.linalg.triangular_solve(factors, b, left_side=True, lower=True, unit_diagonal=True)
    return lax.linalg.triangular_solve(factors, b, left_side=True, lower=False)


def _solve(lowering: Lowering, a: jax.Array, b: jax.Array) -> jax.Array:
    return _solved(lowering, "solve", a, b)


def _solve_triangular(lowering: Lowering, a: jax.Array, b: jax.Array, lower: bool) -> jax.Array:
    _refuse(lowering, "solve_triangular", a, _diagonal(a) == 0, ZERO_ON_DIAGONAL, RIDGE)
    return lax.linalg.triangular_solve(*_with_lead(a, b), left_side=True, lower=lower)


def _inv(lowering: Lowering, x: jax.Array) -> jax.Array:
    return _solved(lowering, "inv", x, jnp.broadcast_to(jnp.eye(x.shape[-1], dtype=x.dtype), x.shape))


# --- factorizations


def _cholesky(lowering: Lowering, x: jax.Array) -> jax.Array:
    out = lax.linalg.cholesky(_hermitian(x), symmetrize_input=False)
    _refuse(lowering, "cholesky", x, jnp.isnan(out), INDEFINITE, POSITIVE)
    return out


def _eigh(lowering: Lowering, x: jax.Array) -> list[jax.Array]:
    vectors, values = lax.linalg.eigh(_hermitian(x), symmetrize_input=False)
    finite = jnp.isfinite(x).all(axis=(-2, -1))[..., None]  # NaN gives NaN
    _refuse(lowering, "eigh", x, jnp.isnan(values) & finite, NO_CONVERGENCE, FINITE)
    return [values, vectors]


def _svd_of(lowering: Lowering, name: str, x: jax.Array, full: bool) -> list[jax.Array]:
    u, s, vh = jnp.linalg.svd(x, full_matrices=full)
    _refuse(lowering, name, x, jnp.isnan(s), NO_CONVERGENCE, FINITE)
    return [u, s, vh]


def _svd(lowering: Lowering, x: jax.Array, full: bool) -> list[jax.Array]:
    return _svd_of(lowering, "svd", x, full)


def _eig(lowering: Lowering, x: jax.Array) -> list[jax.Array]:
    dtype = complex_of(x.dtype)
    values, vectors = jnp.linalg.eig(wide(x))
    _refuse(lowering, "eig", x, ~jnp.isfinite(wide(x)), NO_CONVERGENCE, FINITE)
    return [values.astype(dtype), vectors.astype(dtype)]


def _lu(x: jax.Array) -> list[jax.Array]:
    m, n = x.shape[-2:]
    k = min(m, n)
    factors, _, order = lax.linalg.lu(x)
    exchange = (jnp.arange(m)[:, None] == order[..., None, :]).astype(x.dtype)
    return [exchange, jnp.tril(factors[..., :k], -1) + jnp.eye(m, k, dtype=x.dtype), jnp.triu(factors[..., :k, :])]


def _qr(x: jax.Array, complete: bool) -> list[jax.Array]:
    return list(jnp.linalg.qr(x, mode="complete" if complete else "reduced"))


# --- what is made of them


def _pinv(lowering: Lowering, x: jax.Array, rtol: jax.Array) -> jax.Array:
    u, s, vh = _svd_of(lowering, "pinv", x, False)
    kept = s > rtol[..., 0] * jnp.max(s, axis=-1, keepdims=True, initial=0)
    inverse = jnp.where(kept, 1 / jnp.where(kept, s, jnp.ones((), s.dtype)), jnp.zeros((), s.dtype))
    return matmul(jnp.conj(vh.mT) * inverse[..., None, :].astype(x.dtype), jnp.conj(u.mT))


def _cofactor(lowering: Lowering, x: jax.Array) -> jax.Array:
    u, s, vh = _svd_of(lowering, "cofactor", x, True)
    ones = jnp.ones_like(s[..., :1])
    before = jnp.cumprod(jnp.concatenate([ones, s[..., :-1]], axis=-1), axis=-1)
    after = jnp.cumprod(jnp.concatenate([ones, s[..., :0:-1]], axis=-1), axis=-1)[..., ::-1]
    phase = (jnp.linalg.det(u) * jnp.linalg.det(vh))[..., None, None]
    return phase * matmul(jnp.conj(u) * (before * after)[..., None, :].astype(x.dtype), jnp.conj(vh))


def _norm(x: jax.Array) -> jax.Array:
    return jnp.max(jnp.sum(jnp.abs(x), axis=-2), axis=-1, initial=0)[..., None, None]


def _exponential(x: jax.Array) -> jax.Array:
    """Scaling and squaring, as primitives/matrix_exponential.py has it."""
    squarings = jnp.clip(jnp.frexp(_norm(x) / LARGEST_NORM)[1], 0, 1100)
    x = x * jnp.exp2(-squarings.astype(jnp.float64)).astype(x.dtype)
    one = jnp.eye(x.shape[-1], dtype=x.dtype)
    x2 = matmul(x, x)
    x4 = matmul(x2, x2)
    x6 = matmul(x4, x2)
    odd = matmul(x6, C[13] * x6 + C[11] * x4 + C[9] * x2) + C[7] * x6 + C[5] * x4 + C[3] * x2 + C[1] * one
    even = matmul(x6, C[12] * x6 + C[10] * x4 + C[8] * x2) + C[6] * x6 + C[4] * x4 + C[2] * x2 + C[0] * one
    odd = matmul(x, odd)
    out = jnp.linalg.solve(even - odd, even + odd)

    def square(i: jax.Array, out: jax.Array) -> jax.Array:
        return jnp.where(squarings > i, matmul(out, out), out)

    return lax.fori_loop(0, jnp.max(squarings, initial=0), square, out)


def _wide(x: jax.Array) -> jax.Array:
    return x.astype(jnp.complex128 if is_complex(x.dtype) else jnp.float64)


def _matrix_exp(x: jax.Array) -> jax.Array:
    return _exponential(_wide(x)).astype(x.dtype) if x.size else x


def _matrix_exp_derivative(x: jax.Array, e: jax.Array) -> jax.Array:
    dtype, n = x.dtype, x.shape[-1]
    size = _norm(_wide(e))
    direction = _wide(e) / jnp.where(size > 0, size, 1)  # the length of e must not decide on the scaling
    shape = np.broadcast_shapes(x.shape, e.shape)
    if not all(shape):
        return jnp.zeros(shape, dtype)
    a, b = jnp.broadcast_to(_wide(x), shape), jnp.broadcast_to(direction, shape)
    block = jnp.concatenate(
        [jnp.concatenate([a, b], axis=-1), jnp.concatenate([jnp.zeros_like(a), a], axis=-1)], axis=-2
    )
    return (_exponential(block)[..., :n, n:] * size).astype(dtype)


PLAIN: dict[str, Callable[..., Results]] = {
    "det": _in_single(jnp.linalg.det, False),
    "slogdet": _in_single(lambda x: list(jnp.linalg.slogdet(x)), False),
    "qr": _in_single(_qr, False),
    "lu": _in_single(_lu, False),
    "matrix_exp": _matrix_exp,
    "matrix_exp_derivative": _matrix_exp_derivative,
}
CHECKED: dict[str, Callable[..., Results]] = {
    "solve": _in_single(_solve, True),
    "solve_triangular": _in_single(_solve_triangular, True),
    "inv": _in_single(_inv, True),
    "pinv": _in_single(_pinv, True),
    "cofactor": _in_single(_cofactor, True),
    "cholesky": _in_single(_cholesky, True),
    "eigh": _in_single(_eigh, True),
    "svd": _in_single(_svd, True),
    "eig": _eig,
}
