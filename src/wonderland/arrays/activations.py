"""Stable forms of the functions that models are made of: sigmoid, relu, softplus, log-sum-exp, softmax."""

from __future__ import annotations

import math

from ..core.errors import InputError
from ..core.fused import MANY, fused
from ..core.shortcuts import of_one
from ..core.tensor import Tensor, Tracer
from ..core.typing import ArrayLike, Axes
from ..primitives import elementwise as p
from ..primitives.creation import full_like, ones_like, zeros_like
from .arithmetic import clip
from .conversion import as_real, as_tensor, for_sums, promote_inexact
from .logic import as_bool
from .manipulation import squeeze
from .reductions import max as max_
from .reductions import sum as sum_
from .stopping import stop_gradient

__all__ = ["log_sigmoid", "log_softmax", "logit", "logsumexp", "relu", "sigmoid", "softmax", "softplus", "xlogy"]


@of_one(p.sigmoid)
def sigmoid(x: ArrayLike, /) -> Tensor:
    r"""\(\sigma(x) = 1/(1 + e^{-x})\), with \(\sigma' = \sigma(1-\sigma) \le 1/4\). Book, section 6.4.3.

    >>> import wonderland as wl
    >>> print(wl.sigmoid(0.0), wl.grad(wl.sigmoid)(0.0))
    tensor(0.5) tensor(0.25)
    """
    return p.sigmoid(as_real("sigmoid", x))


@of_one(p.relu)
def relu(x: ArrayLike, /) -> Tensor:
    r"""\(\max(0, x)\), with derivative 0 at 0. Book, sections 6.4.3 and 6.4.4.

    >>> import wonderland as wl
    >>> print(wl.relu(wl.tensor([-1.0, 2.0])), wl.grad(wl.relu)(0.0))
    tensor([0., 2.]) tensor(0.)
    """
    return p.relu(as_tensor("relu", x))


def softplus(x: ArrayLike, /) -> Tensor:
    r"""\(\ln(1 + e^x)\) without overflow; its derivative is the sigmoid.

    >>> import wonderland as wl
    >>> print(wl.softplus(0.0), wl.softplus(1000.0))
    tensor(0.69314) tensor(1000.)
    """
    x = as_real("softplus", x)
    return p.logaddexp(x, zeros_like(x))


def log_sigmoid(x: ArrayLike, /) -> Tensor:
    r"""\(\ln\sigma(x) = -\ln(1 + e^{-x})\) without underflow.

    >>> import wonderland as wl
    >>> print(wl.log_sigmoid(-1000.0))
    tensor(-1000.)
    """
    return -softplus(-as_real("log_sigmoid", x))


def logit(x: ArrayLike, /, *, eps: float | None = None) -> Tensor:
    r"""The log-odds \(\ln\frac{x}{1 - x}\), inverse of the sigmoid; -inf at 0 and inf at 1. Book, E.4.20.

    >>> import wonderland as wl
    >>> wl.logit(wl.tensor([0.0, 0.5, 0.75])), wl.logit(0.0, eps=0.25)
    (tensor([   -inf, 0.      , 1.098612]), tensor(-1.098612))

    With `eps` probabilities are first clipped to [eps, 1 - eps].
    """
    x = as_real("logit", x)
    if eps is not None:
        if not 0 <= eps <= 0.5:
            raise InputError(f"logit: eps={eps}.", "a number from 0 to 0.5")
        x = clip(x, eps, 1 - eps)
    return p.log(x) - p.log1p(-x)


# --- sums of exponentials


def _masked(x: Tensor, mask: ArrayLike | None) -> Tensor:
    """x with -inf where the mask is false, so that its exponential vanishes."""
    return x if mask is None else p.where(as_bool("where", mask), x, full_like(x, -math.inf))


def _finite_max(x: Tensor, axis: Axes) -> Tensor:
    """The maximum to subtract before exponentiating, no derivative through it; 0 where it is infinite."""
    top = stop_gradient(max_(x, axis=axis, keepdims=True))
    return p.where(p.isfinite(top), top, zeros_like(top))


def safe_log(x: Tensor) -> Tensor:
    """log x, and -inf with derivative 0 where x is 0."""
    zero = x == 0
    return p.where(zero, full_like(x, -math.inf), p.log(p.where(zero, ones_like(x), x)))


def logsumexp(
    x: ArrayLike,
    /,
    axis: Axes = None,
    *,
    keepdims: bool = False,
    b: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Tensor:
    r"""\(\ln\sum_i b_i e^{x_i}\) over the axes, without overflow; -inf where nothing is summed.

    >>> import wonderland as wl
    >>> print(wl.logsumexp(wl.tensor([1000.0, 1000.0], wl.float64)))
    tensor(1000.69314718, dtype=float64)

    `b` are weights, `where` is a mask of the entries that take part.
    """
    x = _masked(for_sums(as_real("logsumexp", x)), where)
    if b is not None:
        x, b = promote_inexact("logsumexp", x, b)
    if 0 in x.shape:
        return safe_log(sum_(p.exp(x), axis=axis, keepdims=keepdims))
    top = _finite_max(x, axis)
    terms = p.exp(x - top)
    out = safe_log(sum_(terms if b is None else terms * b, axis=axis, keepdims=True)) + top
    return out if keepdims else squeeze(out, tuple(range(out.ndim)) if axis is None else axis)


def softmax(
    x: ArrayLike, /, axis: Axes = -1, *, where: ArrayLike | None = None, temperature: float | Tensor = 1.0
) -> Tensor:
    r"""\(e^{x_i/\tau} / \sum_j e^{x_j/\tau}\) along an axis: a point of the simplex. Book, D.4.4 and section 4.2.1.

    >>> import wonderland as wl
    >>> wl.softmax(wl.tensor([0.0, 0.0, 1000.0]))
    tensor([0., 0., 1.])

    `where` is a mask of the entries that take part; the others get 0, and a row without entries is all 0.
    A high `temperature` \(\tau > 0\) brings the result closer to uniform, a low one closer to the one-hot maximum.
    """
    x = for_sums(as_real("softmax", x))
    if isinstance(temperature, Tensor) or temperature != 1:
        if not isinstance(temperature, Tracer) and not temperature > 0:
            raise InputError(f"softmax: temperature={temperature}.", "a temperature above 0")
        x = x / temperature
    x = _masked(x, where)
    if 0 in x.shape:
        return x
    return _softmax(x, axis=axis)


@fused(single=MANY)
def _softmax(x: Tensor, *, axis: Axes) -> Tensor:
    terms = p.exp(x - _finite_max(x, axis))
    total = sum_(terms, axis=axis, keepdims=True)
    return terms / p.where(total == 0, ones_like(total), total)


def log_softmax(x: ArrayLike, /, axis: Axes = -1, *, where: ArrayLike | None = None) -> Tensor:
    r"""\(x_i - \ln\sum_j e^{x_j}\) along an axis, without overflow; -inf where a mask leaves out.

    >>> import wonderland as wl
    >>> wl.log_softmax(wl.tensor([0.0, 1000.0]))
    tensor([-1000.,     0.])
    """
    x = _masked(for_sums(as_real("log_softmax", x)), where)
    if 0 in x.shape:
        return x
    return _log_softmax(x, axis=axis)


@fused(single=MANY)
def _log_softmax(x: Tensor, *, axis: Axes) -> Tensor:
    shifted = x - _finite_max(x, axis)
    total = sum_(p.exp(shifted), axis=axis, keepdims=True)
    return shifted - p.log(p.where(total == 0, ones_like(total), total))


def xlogy(x: ArrayLike, y: ArrayLike, /) -> Tensor:
    r"""\(x \ln y\), and 0 where x is 0 (also for y = 0).

    >>> import wonderland as wl
    >>> wl.xlogy(wl.tensor([0.0, 2.0]), wl.tensor([0.0, 1.0]))
    tensor([0., 0.])
    """
    x, y = promote_inexact("xlogy", x, y)
    zero = (x == 0) & (y == y)  # a NaN stays one
    product = x * p.log(p.where(zero, ones_like(y), y))
    return p.where(zero, zeros_like(product), product)
