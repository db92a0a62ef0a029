"""Stable forms of the functions that models are made of: softmax, log-sum-exp, sigmoid, relu, norms and similarities."""

from __future__ import annotations

import math
from typing import Any

from ..primitives import elementwise as p
from ..primitives.creation import ones_like, zeros_like
from ..tensor import Tensor
from .conversion import as_inexact, as_real, as_tensor, promote_inexact
from .elementwise import abs as abs_
from .elementwise import maximum, minimum, where
from .manipulation import squeeze
from .reductions import max as max_
from .reductions import sum as sum_


def sigmoid(x: Any, /) -> Tensor:
    r"""\(\sigma(x) = 1/(1 + e^{-x})\), with \(\sigma' = \sigma(1-\sigma) \le 1/4\). Book, section 6.4.3.

    >>> import wonderland as wl
    >>> print(wl.sigmoid(0.0), wl.grad(wl.sigmoid)(0.0))
    tensor(0.5) tensor(0.25)
    """
    return p.sigmoid(as_real("sigmoid", x))


def relu(x: Any, /) -> Tensor:
    r"""\(\max(0, x)\), with derivative 0 at 0. Book, sections 6.4.3 and 6.4.4.

    >>> import wonderland as wl
    >>> print(wl.grad(wl.relu)(0.0))
    tensor(0.)
    """
    x = as_tensor("relu", x)
    return p.where(p.less_equal(x, zeros_like(x)), zeros_like(x), x)


def softplus(x: Any, /) -> Tensor:
    r"""\(\ln(1 + e^x)\) without overflow; its derivative is the sigmoid."""
    x = as_real("softplus", x)
    return p.logaddexp(x, zeros_like(x))


def log_sigmoid(x: Any, /) -> Tensor:
    r"""\(\ln\sigma(x) = -\ln(1 + e^{-x})\) without underflow."""
    return -softplus(-as_real("log_sigmoid", x))


def _finite_max(x: Tensor, axis: Any) -> Tensor:
    """The maximum to subtract before exponentiating, no derivative through it; 0 where it is infinite."""
    top = stop_gradient(max_(x, axis=axis, keepdims=True))
    return where(p.isfinite(top), top, zeros_like(top))


def logsumexp(x: Any, /, *, axis: Any = None, keepdims: bool = False, b: Any = None, where: Any = None) -> Tensor:
    r"""\(\ln\sum_i b_i e^{x_i}\) over the axes, without overflow; -inf where nothing is summed.

    >>> import wonderland as wl
    >>> print(wl.logsumexp(wl.tensor([1000.0, 1000.0])))
    tensor(1000.6931)
    """
    x = as_real("logsumexp", x)
    if where is not None:
        x = p.where(*_masked(where, x, -math.inf))
    if 0 in x.shape:
        return p.log(sum_(p.exp(x), axis=axis, keepdims=keepdims))
    top = _finite_max(x, axis)
    terms = p.exp(x - top)
    if b is not None:
        terms = terms * b
    out = p.log(sum_(terms, axis=axis, keepdims=True)) + top
    return out if keepdims else squeeze_axes(out, x, axis)


def squeeze_axes(out: Tensor, x: Tensor, axis: Any) -> Tensor:
    return squeeze(out, tuple(range(x.ndim)) if axis is None else axis)


def _masked(mask: Any, x: Tensor, fill: float) -> tuple[Any, Any, Any]:
    return as_tensor("where", mask), x, p.full_like(x, fill)


def softmax(x: Any, /, *, axis: Any = -1, where: Any = None) -> Tensor:
    r"""\(e^{x_i} / \sum_j e^{x_j}\) along an axis: numbers of the simplex. Book, notation (simplex, last axis).

    >>> import wonderland as wl
    >>> wl.softmax(wl.tensor([0.0, 0.0, 1000.0]))
    tensor([0., 0., 1.])

    `where` is a mask of the entries that take part; the others get 0, and a row without entries is all 0.
    """
    x = as_real("softmax", x)
    if where is not None:
        x = p.where(*_masked(where, x, -math.inf))
    if 0 in x.shape:
        return x
    terms = p.exp(x - _finite_max(x, axis))
    total = sum_(terms, axis=axis, keepdims=True)
    return terms / p.where(total == 0, ones_like(total), total)


def log_softmax(x: Any, /, *, axis: Any = -1) -> Tensor:
    r"""\(x_i - \ln\sum_j e^{x_j}\) along an axis, without overflow."""
    x = as_real("log_softmax", x)
    return x - logsumexp(x, axis=axis, keepdims=True)


def xlogy(x: Any, y: Any, /) -> Tensor:
    """x log y, and 0 where x is 0 (also for y = 0)."""
    x, y = promote_inexact("xlogy", x, y)
    zero = x == 0
    return p.where(zero, zeros_like(x * y), x * p.log(p.where(zero, ones_like(y), y)))


def norm(x: Any, /, *, axis: Any = None, keepdims: bool = False) -> Tensor:
    r"""The Euclidean norm \(\sqrt{\sum_i |x_i|^2}\) over the axes (all if none is named); its derivative at 0 is 0.

    >>> import wonderland as wl
    >>> print(wl.norm(wl.tensor([3.0, 4.0])), wl.grad(wl.norm)(wl.zeros(2)))
    tensor(5.) tensor([0., 0.])
    """
    x = abs_(as_inexact("norm", x))
    total = sum_(x * x, axis=axis, keepdims=keepdims)
    zero = total == 0
    # the inner `where` keeps the infinite slope of the root at 0 out of the derivative
    return p.where(zero, zeros_like(total), p.sqrt(p.where(zero, ones_like(total), total)))


def sq_norm(x: Any, /, *, axis: Any = None, keepdims: bool = False) -> Tensor:
    r"""\(\sum_i |x_i|^2\) over the axes."""
    x = abs_(as_inexact("sq_norm", x))
    return sum_(x * x, axis=axis, keepdims=keepdims)


def normalize(x: Any, /, *, axis: Any = -1, eps: float = 1e-12) -> Tensor:
    """x divided by its norm along an axis; the zero vector stays zero."""
    x = as_inexact("normalize", x)
    return x / maximum(norm(x, axis=axis, keepdims=True), eps)


def cosine_similarity(x1: Any, x2: Any, /, *, axis: int = -1, eps: float = 1e-12) -> Tensor:
    r"""\(\langle x, y\rangle / (\|x\|\,\|y\|)\), in [-1, 1]; 0 for a zero vector. Book, E.2.2."""
    x1, x2 = promote_inexact("cosine_similarity", x1, x2)
    products = sum_(normalize(x1, axis=axis, eps=eps) * normalize(x2, axis=axis, eps=eps), axis=axis)
    return minimum(maximum(products, -1.0), 1.0)


def pairwise_sq_distances(x1: Any, x2: Any, /) -> Tensor:
    r"""\(\|x_i - y_j\|^2\) for all rows of two matrices (..., n, d) and (..., m, d), through inner products.

    Tiny negative results of rounding are raised to 0. Book, section 2.1.1.
    """
    x1, x2 = promote_inexact("pairwise_sq_distances", x1, x2)
    squares = sq_norm(x1, axis=-1, keepdims=True) + sq_norm(x2, axis=-1, keepdims=True).mT
    return relu(squares - 2 * (x1 @ x2.mT))


def is_binary(x: Any, /) -> bool:
    """Whether all elements are 0 or 1. Book, notation Binary(c)."""
    x = as_tensor("is_binary", x)
    return bool(((x == 0) | (x == 1)).all())


def is_simplex(x: Any, /, *, axis: int = -1, strict: bool = False, tolerance: float = 1e-5) -> bool:
    """Whether the elements are not negative (positive if `strict`) and sum to 1 along an axis. Book, notation."""
    x = as_tensor("is_simplex", x)
    positive = (x > 0) if strict else (x >= 0)
    return bool(positive.all()) and bool((abs_(sum_(x, axis=axis) - 1) <= tolerance).all())


from ..transforms.custom import stop_gradient  # noqa: E402 - needs tensors

__all__ = [
    "cosine_similarity",
    "is_binary",
    "is_simplex",
    "log_sigmoid",
    "log_softmax",
    "logsumexp",
    "norm",
    "normalize",
    "pairwise_sq_distances",
    "relu",
    "sigmoid",
    "softmax",
    "softplus",
    "sq_norm",
    "xlogy",
]
