r"""The gamma distribution and those made from it: beta and Dirichlet.

The sampler of Marsaglia and Tsang (2000) makes \(z = d\,(1 + c\,\varepsilon)^3\) with \(d = a - \tfrac13\),
\(c = 1/\sqrt{9d}\) from normal noise and rejects at most one proposal in twenty. Values are carried as
\(y = \ln z\): a gamma variable with a small concentration is often smaller than any floating-point number.
"""

from __future__ import annotations

import functools

import numpy as np

from ..arrays import (
    astype,
    broadcast_to,
    exp,
    expm1,
    log,
    log1p,
    sigmoid,
    softmax,
    sqrt,
    stop_gradient,
    where,
)
from ..arrays.conversion import as_shape, convert
from ..core.dtypes import float64
from ..core.errors import ShapeError
from ..core.tensor import Tensor, wrap
from ..core.typing import ArrayLike, DTypeLike, KeyLike, ShapeLike
from ..primitives.gamma import digamma
from ..transforms.control.loops import scan
from ..transforms.custom import custom_jvp
from .arguments import (
    as_parameter_tensor,
    check,
    check_scale,
    floating_type,
    key_and_shape,
    prepare,
    working_type,
)
from .continuous import located, rounded, standard_normal
from .keys import pair
from .rejection import first_accepted
from .words import Shape, draw_open_fraction


def gamma(
    shape: ShapeLike | None = None,
    concentration: ArrayLike = 1.0,
    scale: ArrayLike = 1.0,
    *,
    key: KeyLike = None,
    dtype: DTypeLike | None = None,
) -> Tensor:
    r"""Gamma with density \(z^{a-1} e^{-z/s} / (\Gamma(a)\,s^a)\): mean \(as\), variance \(as^2\).

    >>> import wonderland as wl
    >>> x = wl.random.gamma((20000,), 4.0, 0.5, key=wl.random.key(0))
    >>> f"{x.mean():.1f} {x.var():.1f}"
    '2.0 1.0'

    Differentiable in both parameters: along a quantile of the distribution, so that the derivative of a mean
    over draws is an unbiased estimate of the derivative of the expectation.
    """
    _check_concentration("gamma", concentration)
    check_scale("gamma", "scale", scale)
    key, shape, target, (concentration, scale) = prepare("gamma", shape, key, dtype, concentration, scale)
    concentration = convert(concentration, working_type(target))
    return located(exp(log_gamma_variable(key, shape, concentration)), 0, scale, target)


def beta(
    shape: ShapeLike | None = None,
    a: ArrayLike = 1.0,
    b: ArrayLike = 1.0,
    *,
    key: KeyLike = None,
    dtype: DTypeLike | None = None,
) -> Tensor:
    r"""Beta with density proportional to \(x^{a-1}(1-x)^{b-1}\) on [0, 1]: mean \(a/(a+b)\).

    >>> import wonderland as wl
    >>> x = wl.random.beta((20000,), 2.0, 6.0, key=wl.random.key(0))
    >>> f"{x.mean():.2f}"
    '0.25'

    \(x = z_a/(z_a + z_b)\) of two gamma variables, computed as the sigmoid of the difference of their logarithms.
    """
    _check_concentration("beta", a)
    _check_concentration("beta", b)
    key, shape, target, (a, b) = prepare("beta", shape, key, dtype, a, b)
    first, second = pair(key)
    a, b = (convert(x, working_type(target)) for x in (a, b))
    return rounded(sigmoid(log_gamma_variable(first, shape, a) - log_gamma_variable(second, shape, b)), target)


def dirichlet(
    concentration: ArrayLike, shape: ShapeLike = (), *, key: KeyLike = None, dtype: DTypeLike | None = None
) -> Tensor:
    r"""Probabilities with density proportional to \(\prod_i x_i^{a_i-1}\), shape (*shape, ..., k).

    >>> import wonderland as wl
    >>> p = wl.random.dirichlet([1.0, 2.0, 3.0], (4,), key=wl.random.key(0))
    >>> p.shape, bool((abs(p.sum(axis=-1) - 1) < 1e-5).all())
    ((4, 3), True)

    The concentration is (..., k); the result is the softmax of the logarithms of gamma variables.
    """
    concentration = as_parameter_tensor("dirichlet", concentration)
    if not concentration.ndim or not concentration.shape[-1]:
        raise ShapeError(f"dirichlet: a concentration of shape {concentration.shape}.", "shape (..., k) with k >= 1")
    _check_concentration("dirichlet", concentration)
    target = floating_type("dirichlet", dtype, concentration)
    concentration = convert(concentration, working_type(target))
    sizes = (*as_shape("dirichlet", shape), *concentration.shape)
    key, sizes = key_and_shape("dirichlet", sizes, key, target, concentration)
    return rounded(softmax(log_gamma_variable(key, sizes, concentration), axis=-1), target)


def _check_concentration(name: str, x: ArrayLike) -> None:
    check(name, "a concentration", x, lambda v: (v > 0) & np.isfinite(v), "concentrations above 0")


def log_gamma_variable(key: Tensor, shape: Shape, concentration: Tensor) -> Tensor:
    """The logarithm of a gamma variable of scale 1, of shape key.shape[:-1] + shape."""
    full_shape = key.shape[:-1] + shape
    a = broadcast_to(stop_gradient(concentration), full_shape)
    rejection_key, power_key = pair(key)
    small = a < 1
    d = where(small, a + 1, a) - 1 / 3
    c = 1 / sqrt(9 * d)

    def propose(first: Tensor, second: Tensor) -> tuple[Tensor, Tensor]:
        x = standard_normal(first, shape, a.dtype)
        t = c * x
        inside = t > -1
        t = where(inside, t, 0)
        # d (1 - v + ln v) for v = (1 + t)^3, without the cancellation of large terms
        gap = d * (3 * (log1p(t) - t) - t * t * (3 + t))
        return t, inside & (log(draw_open_fraction(second, shape, a.dtype)) < 0.5 * x * x + gap)

    t = first_accepted(propose, rejection_key, shape, a.dtype)
    # a variable of concentration a < 1 is one of concentration a + 1 times u^(1/a)
    power = log(draw_open_fraction(power_key, shape, a.dtype)) / a
    y = log(d) + 3 * log1p(t) + where(small, power, 0)
    return _along_quantile(broadcast_to(concentration, full_shape), y)


# --- the derivative with respect to the concentration


@custom_jvp
def _along_quantile(a: Tensor, y: Tensor) -> Tensor:
    """y, with the derivative that keeps the probability below it when the concentration a changes."""
    return y


@_along_quantile.defjvp
def _along_quantile_jvp(primals: tuple[Tensor, Tensor], tangents: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
    y = _along_quantile(*primals)
    slope = _quantile_slope(astype(primals[0], float64), astype(y, float64))
    return y, tangents[1] + tangents[0] * astype(slope, y.dtype)


@functools.cache
def _nodes() -> tuple[Tensor, Tensor]:
    """Points and weights of Gauss and Legendre on [0, 1]."""
    points, weights = np.polynomial.legendre.leggauss(32)
    return wrap((points + 1) / 2), wrap(weights / 2)


def _quantile_slope(a: Tensor, y: Tensor) -> Tensor:
    r"""\(dy/da = -\partial_a P(a, z) / (z\,p(z))\) for \(z = e^y\) and the distribution function P.

    With \(t = z e^s\), \(\partial_a P = \int_0^z p(t)(\ln t - \psi(a))\,dt\) becomes an integral of
    \(e^{as - z(e^s - 1)}(y + s - \psi(a))\) over s < 0, or minus that over s > 0: the lighter tail.
    """
    z = exp(y)
    below = z <= a
    heavy = where(below, 1, z)
    above = where(heavy < 32, log1p(80 / heavy), sqrt(80 / heavy))
    reach = where(below, -(40 / a + sqrt(80 / a)), above)  # beyond it the integrand is below e^-40
    shift = y - digamma(a)

    def add(total: Tensor, node: tuple[Tensor, Tensor]) -> tuple[Tensor, None]:
        r, weight = node
        s = reach * (r * r)
        return total + exp(a * s - z * expm1(s)) * (shift + s) * (2 * r * weight), None

    return reach * scan(add, 0 * y, _nodes())[0]
