"""Linear systems, inverses and determinants, batched on leading axes. Book, section 2.1.2.

All of them are computed by NumPy's LAPACK in the type of the argument (half precision in float32) and refuse
a matrix that they cannot handle with a `LinearAlgebraError`. Derivatives are written with the primitives
themselves, so that every order follows from the first.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable

import numpy as np

from ..core.broadcasting import broadcast_shapes
from ..core.dtypes import float32, is_complex, is_half, is_inexact, real_of
from ..core.errors import DTypeError, LinearAlgebraError, ShapeError
from ..core.primitive import LINEAR, ZERO, Aval, Primitive, Rule
from ..core.tensor import Tensor, wrap
from ..core.typing import Array, Shaped
from . import creation, elementwise
from .contraction import swap_last
from .elementwise import elementwise_batch
from .structure import reshape, sum_, unbroadcast

RIDGE = "add a small multiple of wl.eye(n), or use wl.linalg.pinv or lstsq if the matrix may be singular"
NO_CONVERGENCE = "was not decomposed: the iteration did not converge"
FINITE = "check the matrix for NaN and inf; wl.debug.nans() finds the operation that made them"

# --- what all of them share


def check_matrices(name: str, *xs: Shaped) -> None:
    for x in xs:
        if not is_inexact(x.dtype) or x.dtype != xs[0].dtype:
            listed = " and ".join(str(a.dtype) for a in xs)
            raise DTypeError(f"{name}: received {listed}.", "floating or complex tensors of one dtype")
        if len(x.shape) < 2:
            raise ShapeError(f"{name}: a tensor of shape {x.shape} is not a matrix.", "at least two axes: (..., m, n)")


def check_square(name: str, x: Shaped) -> None:
    check_matrices(name, x)
    if x.shape[-1] != x.shape[-2]:
        raise ShapeError(f"{name}: needs square matrices, received shape {x.shape}.", "a tensor of shape (..., n, n)")


def square_abstract(name: str) -> Callable[..., Aval]:
    """The abstract rule of a function from square matrices to square matrices."""

    def abstract(x: Shaped) -> Aval:
        check_square(name, x)
        return Aval(x.shape, x.dtype)

    return abstract


def in_single(impl: Rule) -> Rule:
    """Half precision is computed in float32, the smallest type of LAPACK. NaN gives NaN, and no warning."""

    @functools.wraps(impl)
    def wrapper(*xs: Array, **params: object) -> Array | list[Array]:
        dtype = xs[0].dtype
        with np.errstate(all="ignore"):
            if not is_half(dtype):
                return impl(*xs, **params)
            out = impl(*[x.astype(float32) for x in xs], **params)
            return [o.astype(dtype) for o in out] if isinstance(out, list) else out.astype(dtype)

    return wrapper


def lapack(name: str, f: Rule, problem: str, hint: str, square: bool = True) -> Rule:
    """f, with a `LinearAlgebraError` that says which matrix has the problem when LAPACK gives up."""

    def impl(x: Array, *rest: Array) -> Array | list[Array]:
        try:
            return f(x, *rest)
        except np.linalg.LinAlgError as error:
            if x.ndim < 2 or (square and x.shape[-1] != x.shape[-2]):
                raise  # a wrong shape, which the abstract rule explains
            raise LinearAlgebraError(f"{name}: {_culprit(f, x, rest)} {problem}.", hint) from error

    return impl


def _culprit(f: Rule, x: Array, rest: tuple[Array, ...]) -> str:
    for index in np.ndindex(x.shape[:-2]) if x.ndim > 2 else ():
        try:
            # the right-hand sides play no part in the failure
            f(x[index], *[np.zeros_like(x[index]) for _ in rest])
        except np.linalg.LinAlgError:
            return f"the matrix at index {list(index)} of shape {x.shape}"
    return f"the matrix of shape {x.shape}"


def conj(x: Tensor) -> Tensor:
    return elementwise.conj(x) if is_complex(x.dtype) else x


def adjoint(x: Tensor) -> Tensor:
    """The conjugate transpose."""
    return conj(swap_last(x))


def hermitian_part(x: Tensor) -> Tensor:
    return (x + adjoint(x)) * 0.5


def triangle(x: Tensor, lower: bool, k: int = 0) -> Tensor:
    """The lower (upper) triangle with the diagonal number k and what is below (above) it."""
    mask = np.tri(x.shape[-2], x.shape[-1], k if lower else k - 1, dtype=bool)
    return elementwise.where(wrap(mask if lower else ~mask), x, creation.zeros_like(x))


def matrix_sum(x: Tensor) -> Tensor:
    """The sum over the last two axes."""
    n = len(x.shape)
    return sum_(x, axes=(n - 2, n - 1))


def pass_through(primitive: Primitive) -> Rule:
    """The batching rule of a function of one argument: leading axes are batch axes already."""
    return lambda args, batched, **params: primitive(*args, **params)


def cubic(factor: float) -> Callable[..., int]:
    """A cost of factor * m n min(m, n) for every matrix."""

    def cost(x: Shaped, *rest: Shaped, **params: object) -> int:
        m, n = x.shape[-2:]
        return math.ceil(factor * math.prod(x.shape) * min(m, n))

    return cost


# --- solve: X with A X = B


def _solve(a: Array, b: Array) -> Array:
    if a.ndim == 2 and b.ndim > 2 and a.shape[0] == a.shape[1] == b.shape[-2]:
        # one matrix: all right-hand sides at once, so that it is factored once
        columns = np.moveaxis(b, -2, 0)
        return np.moveaxis(np.linalg.solve(a, columns.reshape(len(a), -1)).reshape(columns.shape), 0, -2)
    return np.linalg.solve(a, b)


def _solve_abstract(name: str) -> Callable[..., Aval]:
    def abstract(a: Shaped, b: Shaped, **params: object) -> Aval:
        check_square(name, a)
        check_matrices(name, a, b)
        if a.shape[-1] != b.shape[-2]:
            raise ShapeError(
                f"{name}: a matrix of shape {a.shape} and right-hand sides of shape {b.shape} do not fit: "
                f"the sizes {a.shape[-1]} and {b.shape[-2]} differ.",
                "shapes (..., n, n) and (..., n, k), or (n,) for a single right-hand side",
            )
        return Aval(broadcast_shapes(name, a.shape[:-2], b.shape[:-2]) + b.shape[-2:], a.dtype)

    return abstract


def _solve_cost(a: Shaped, b: Shaped, **params: object) -> int:
    n = a.shape[-1]
    return cubic(1 / 3)(a) + math.prod(_solve_abstract("solve")(a, b).shape) * n


solve: Primitive = Primitive(
    "solve",
    in_single(lapack("solve", _solve, "is singular", RIDGE)),
    _solve_abstract("solve"),
    jvp=(lambda t, x, a, b: -solve(a, t @ x), LINEAR),
    transpose=(None, lambda ct, a, b: unbroadcast(solve(swap_last(a), ct), b.shape)),
    cost=_solve_cost,
)
solve.batch = elementwise_batch(solve)

# --- solve_triangular: the other triangle of A is not read


def _upper_solve(a: Array, b: Array) -> Array:
    # The factors of a small upper triangular matrix are 1 and itself, so `solve` only substitutes backwards.
    # Larger ones are cut in two, which turns most of the work into matrix products.
    n = a.shape[-1]
    if n <= 64:
        return np.linalg.solve(a, b)
    h = n // 2
    low = _upper_solve(a[..., h:, h:], b[..., h:, :])
    top = _upper_solve(a[..., :h, :h], b[..., :h, :] - a[..., :h, h:] @ low)
    return np.concatenate([top, low], axis=-2)


def _solve_triangular(lower: bool) -> Rule:
    def impl(a: Array, b: Array) -> Array:
        if a.shape[-2:] != (b.shape[-2],) * 2:
            raise ValueError("the shapes do not fit")
        if lower:
            # in reverse order a lower triangular matrix is an upper triangular one
            return _upper_solve(np.tril(a)[..., ::-1, ::-1], b[..., ::-1, :])[..., ::-1, :]
        return _upper_solve(np.triu(a), b)

    return lapack("solve_triangular", impl, "is singular: it has a zero on its diagonal", RIDGE)


_TRIANGULAR = {lower: in_single(_solve_triangular(lower)) for lower in (False, True)}

solve_triangular: Primitive = Primitive(
    "solve_triangular",
    lambda a, b, lower: _TRIANGULAR[lower](a, b),
    _solve_abstract("solve_triangular"),
    jvp=(lambda t, x, a, b, lower: -solve_triangular(a, triangle(t, lower) @ x, lower=lower), LINEAR),
    transpose=(
        None,
        lambda ct, a, b, lower: unbroadcast(solve_triangular(swap_last(a), ct, lower=not lower), b.shape),
    ),
    cost=lambda a, b, lower: math.prod(_solve_abstract("solve_triangular")(a, b).shape) * a.shape[-1] // 2,
)
solve_triangular.batch = elementwise_batch(solve_triangular)

# --- inverse and pseudo-inverse

inv: Primitive = Primitive(
    "inv",
    in_single(lapack("inv", np.linalg.inv, "is singular", RIDGE)),
    square_abstract("inv"),
    jvp=(lambda t, out, x: -(out @ t @ out),),
    cost=cubic(1.0),
)
inv.batch = pass_through(inv)


_pinv_svd = lapack("pinv", lambda x: np.linalg.svd(x, full_matrices=False), NO_CONVERGENCE, FINITE, square=False)


def _pinv(x: Array, rtol: Array) -> Array:
    u, s, vh = _pinv_svd(x)
    kept = s > rtol[..., 0] * np.max(s, axis=-1, keepdims=True, initial=0)
    inverse = np.where(kept, 1 / np.where(kept, s, 1), 0).astype(s.dtype)
    return (np.conj(vh.swapaxes(-1, -2)) * inverse[..., None, :]) @ np.conj(u.swapaxes(-1, -2))


def _pinv_abstract(x: Shaped, rtol: Shaped) -> Aval:
    check_matrices("pinv", x)
    batch = broadcast_shapes("pinv", x.shape[:-2], rtol.shape[:-2])
    return Aval((*batch, x.shape[-1], x.shape[-2]), x.dtype)


def _pinv_jvp(t: Tensor, p: Tensor, x: Tensor, rtol: Tensor) -> Tensor:
    # Golub and Pereyra, while the rank stays: the change of the inverse, and of the two spaces that it maps between
    ph, th = adjoint(p), adjoint(t)
    left, right = th - th @ (x @ p), th - (p @ x) @ th
    return -(p @ t @ p) + p @ ph @ left + right @ ph @ p


# rtol is real, with two trailing axes of size 1
pinv: Primitive = Primitive(
    "pinv",
    in_single(_pinv),
    _pinv_abstract,
    jvp=(_pinv_jvp, ZERO),
    cost=cubic(8.0),
)
pinv.batch = elementwise_batch(pinv)

# --- determinants


def _det_abstract(x: Shaped) -> Aval:
    check_square("det", x)
    return Aval(x.shape[:-2], x.dtype)


det: Primitive = Primitive(
    "det",
    in_single(np.linalg.det),
    _det_abstract,
    jvp=(lambda t, out, x: matrix_sum(cofactor(x) * t),),
    cost=cubic(1 / 3),
)
det.batch = pass_through(det)


def _cofactor(x: Array) -> Array:
    # Cofactors of a product are the products of the cofactors, and those of a unitary matrix are its
    # conjugate times its determinant. Unlike det(x) inv(x).T this holds for singular matrices as well.
    u, s, vh = np.linalg.svd(x)
    ones = np.ones_like(s[..., :1])
    before = np.cumprod(np.concatenate([ones, s[..., :-1]], axis=-1), axis=-1)
    after = np.cumprod(np.concatenate([ones, s[..., :0:-1]], axis=-1), axis=-1)[..., ::-1]
    phase = (np.linalg.det(u) * np.linalg.det(vh))[..., None, None]
    return phase * ((np.conj(u) * (before * after)[..., None, :]) @ np.conj(vh))


def _cofactor_jvp(t: Tensor, out: Tensor, x: Tensor) -> Tensor:
    inverse = swap_last(inv(x))
    trace = matrix_sum(inverse * t)
    return reshape(trace, shape=(*trace.shape, 1, 1)) * out - inverse @ swap_last(t) @ out


# the determinants of what is left without row i and column j, with alternating signs: the derivative of det
cofactor: Primitive = Primitive(
    "cofactor",
    in_single(lapack("cofactor", _cofactor, NO_CONVERGENCE, FINITE)),
    square_abstract("cofactor"),
    jvp=(_cofactor_jvp,),
    cost=cubic(12.0),
)
cofactor.batch = pass_through(cofactor)


def _slogdet_abstract(x: Shaped) -> list[Aval]:
    check_square("slogdet", x)
    return [Aval(x.shape[:-2], x.dtype), Aval(x.shape[:-2], real_of(x.dtype))]


def _slogdet_jvp(primals: list[Tensor], tangents: list[Tensor], out: list[Tensor]) -> list[Tensor | None]:
    (x,), (t,) = primals, tangents
    relative = matrix_sum(swap_last(inv(x)) * t)  # d det / det
    if not is_complex(x.dtype):
        return [None, relative]
    turn = elementwise.imag(relative)
    return [out[0] * elementwise.complex_(creation.zeros_like(turn), turn), elementwise.real(relative)]


slogdet: Primitive = Primitive(
    "slogdet",
    in_single(lambda x: list(np.linalg.slogdet(x))),
    _slogdet_abstract,
    jvp=_slogdet_jvp,
    multiple=True,
    cost=cubic(1 / 3),
)
slogdet.batch = pass_through(slogdet)
