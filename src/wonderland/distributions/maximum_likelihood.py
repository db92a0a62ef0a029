"""Distributions fitted to data by maximum likelihood. Book, section A.6."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .. import arrays, linalg
from ..arrays.conversion import as_real, as_tensor
from ..core.dtypes import float64, is_integer
from ..core.errors import InputError, LinearAlgebraError, ShapeError
from ..core.tensor import Tensor, wrap
from ..core.typing import Array, ArrayLike
from ..random.arguments import check
from ..transforms.derivatives import hessian
from ..transforms.reverse import value_and_grad
from .continuous import Cauchy, Delta, Laplace, StudentT, Uniform
from .counts import Poisson
from .discrete import Bernoulli, Categorical
from .distribution import Distribution
from .gamma_family import Beta, Exponential, Gamma
from .multivariate_normal import MultivariateNormal
from .normal import LogNormal, Normal

Build = Callable[[Tensor], Distribution]  # from a vector of free numbers
Start = Callable[[Array], list[float]]  # from data to the numbers to begin with


def fit_mle(
    family: type[Distribution] | Build,
    data: ArrayLike,
    method: str = "auto",
    start: ArrayLike | None = None,
    steps: int = 200,
) -> Distribution:
    r"""The distribution of a family under which the data are most likely: it maximises \(\sum_i \ln p(x_i)\).

    >>> import wonderland as wl
    >>> d = wl.distributions.fit_mle(wl.distributions.Normal, wl.tensor([1.0, 2.0, 3.0, 4.0]))
    >>> print(d.mean, d.variance)  # 1/n, not Bessel's 1/(n - 1): wl.var(x, correction=1)
    tensor(2.5) tensor(1.25)

    `family` is a class of `wl.distributions`; the data are (n,), or (n, k) for vectors. With `method` "closed" by
    formula, with "gradient" by descending the negative log-likelihood with derivatives, "auto" by formula where there
    is one. Any function from a vector of free numbers to a distribution is a family, too, with `start` where to
    begin. Book, section A.6.
    """
    if method not in ("auto", "closed", "gradient"):
        raise InputError(f"fit_mle: method={method!r}.", '"auto", "closed" or "gradient"')
    x = as_tensor("fit_mle", arrays.asarray(data))
    if not x.ndim or not x.shape[0]:
        raise ShapeError(f"fit_mle: data of shape {x.shape} hold no examples.", "shape (n,) or (n, k)")
    check("fit_mle", "a number of the data", x, np.isfinite, "finite numbers")
    if method != "gradient" and family in _CLOSED:
        return _CLOSED[family](x)
    if method == "closed":
        raise InputError(f"fit_mle: no formula for {_name(family)}.", 'method="gradient"')
    return _descended(family, arrays.astype(as_real("fit_mle", x), float64), start, steps)


def _name(family: object) -> str:
    return getattr(family, "__name__", repr(family))


# --- closed forms


def _real(x: Tensor) -> Tensor:
    return as_real("fit_mle", x)


def _fit_bernoulli(x: Tensor) -> Distribution:
    check("fit_mle", "an outcome of Bernoulli", x, lambda v: (v == 0) | (v == 1), "0 and 1")
    return Bernoulli(arrays.mean(_real(x), axis=0))


def _fit_categorical(x: Tensor) -> Distribution:
    if not is_integer(x.dtype):
        return Categorical(arrays.mean(_real(x), axis=0))  # one-hot rows
    counts = np.bincount(np.asarray(x))
    return Categorical(wrap((counts / counts.sum()).astype(np.float32)))


def _fit_normal(x: Tensor) -> Distribution:
    spread = arrays.std(_real(x), axis=0)
    check("fit_mle", "the variance of the data", spread, lambda v: v > 0, "numbers that differ")
    return Normal(arrays.mean(_real(x), axis=0), spread)


def _fit_log_normal(x: Tensor) -> Distribution:
    check("fit_mle", "a number of the data", x, lambda v: v > 0, "positive numbers")
    normal = _fit_normal(arrays.log(_real(x)))
    return LogNormal(**normal.params)


def _fit_multivariate_normal(x: Tensor) -> Distribution:
    if x.ndim < 2:
        raise ShapeError(f"fit_mle: data of shape {x.shape} are no vectors.", "shape (n, k)")
    mean = arrays.mean(_real(x), axis=0)
    gap = _real(x) - mean
    try:
        return MultivariateNormal(mean, gap.mT @ gap / len(x))
    except LinearAlgebraError as error:
        raise InputError(
            f"fit_mle: the covariance of data of shape {x.shape} has no inverse.",
            "more examples, or fewer numbers each",
        ) from error


def _fit_laplace(x: Tensor) -> Distribution:
    ordered = arrays.sort(_real(x), axis=0)
    n = len(x)
    middle = 0.5 * (ordered[(n - 1) // 2] + ordered[n // 2])
    return Laplace(middle, arrays.mean(arrays.abs(_real(x) - middle), axis=0))


def _fit_exponential(x: Tensor) -> Distribution:
    check("fit_mle", "a number of the data", x, lambda v: v >= 0, "numbers of at least 0")
    return Exponential(1 / arrays.mean(_real(x), axis=0))


def _fit_poisson(x: Tensor) -> Distribution:
    check("fit_mle", "a count", x, lambda v: (v >= 0) & (v == np.floor(v)), "whole numbers of at least 0")
    return Poisson(arrays.mean(_real(x), axis=0))


def _fit_uniform(x: Tensor) -> Distribution:
    high = arrays.max(_real(x), axis=0)
    return Uniform(arrays.min(_real(x), axis=0), arrays.nextafter(high, arrays.full_like(high, arrays.inf)))


def _fit_delta(x: Tensor) -> Distribution:
    if bool(arrays.any(x != x[:1])):
        raise InputError("fit_mle: the data of a Delta differ.", "one value only")
    return Delta(x[0])


_CLOSED: dict[object, Callable[[Tensor], Distribution]] = {
    Bernoulli: _fit_bernoulli,
    Categorical: _fit_categorical,
    Normal: _fit_normal,
    LogNormal: _fit_log_normal,
    MultivariateNormal: _fit_multivariate_normal,
    Laplace: _fit_laplace,
    Exponential: _fit_exponential,
    Poisson: _fit_poisson,
    Uniform: _fit_uniform,
    Delta: _fit_delta,
}


# --- by derivatives: free numbers theta, and where to start


def _moments(x: Any) -> tuple[float, float]:
    return float(np.mean(x)), float(max(np.var(x), 1e-12))


def _location_and_scale(family: Callable[[Tensor, Tensor], Distribution]) -> tuple[Build, Start]:
    def start(x: Any) -> list[float]:
        middle = float(np.median(x))
        return [middle, float(np.log(max(np.mean(np.abs(x - middle)), 1e-6)))]

    return lambda theta: family(theta[0], arrays.exp(theta[1])), start


def _start_gamma(x: Array) -> list[float]:
    mean, variance = _moments(x)
    return [float(np.log(mean * mean / variance)), float(np.log(mean / variance))]


def _start_beta(x: Array) -> list[float]:
    mean, variance = _moments(x)
    total = max(mean * (1 - mean) / variance - 1, 0.1)
    return [float(np.log(mean * total)), float(np.log((1 - mean) * total))]


_FREE: dict[object, tuple[Build, Start]] = {
    Normal: _location_and_scale(Normal),
    Cauchy: _location_and_scale(Cauchy),
    LogNormal: (lambda t: LogNormal(t[0], arrays.exp(t[1])), lambda x: [float(np.log(x).mean()), 0.0]),
    StudentT: (
        lambda t: StudentT(arrays.exp(t[2]), t[0], arrays.exp(t[1])),
        lambda x: [*_location_and_scale(StudentT)[1](x), 1.0],
    ),
    Bernoulli: (lambda t: Bernoulli(logits=t[0]), lambda x: [0.0]),
    Categorical: (lambda t: Categorical(logits=t), lambda x: [0.0] * (int(np.max(x)) + 1)),
    Exponential: (lambda t: Exponential(arrays.exp(t[0])), lambda x: [0.0]),
    Poisson: (lambda t: Poisson(arrays.exp(t[0])), lambda x: [0.0]),
    Gamma: (lambda t: Gamma(arrays.exp(t[0]), arrays.exp(t[1])), _start_gamma),
    Beta: (lambda t: Beta(arrays.exp(t[0]), arrays.exp(t[1])), _start_beta),
}


def _descended(family: Any, x: Tensor, start: ArrayLike | None, steps: int) -> Distribution:
    """Newton's method on the mean negative log-likelihood, damped where it is not convex, with a line search."""
    if family in _FREE:
        build, first = _FREE[family]
        low, high = family.bounds
        least = (lambda v: v >= low) if family is Exponential else (lambda v: v > low)
        check("fit_mle", f"a value for {_name(family)}", x, lambda v: least(v) & (v < high), f"values in {low, high}")
        theta = wrap(np.asarray(first(np.asarray(x)) if start is None else start, dtype=np.float64))
    elif start is None or isinstance(family, type):
        raise InputError(
            f"fit_mle: no free parameters are known for {_name(family)}.",
            "a function from a vector to a distribution, and start=...",
        )
    else:
        build, theta = family, arrays.astype(arrays.asarray(start), float64)
    values = arrays.astype(x, "int64") if family is Categorical else x

    def loss(theta: Tensor) -> Tensor:
        return -arrays.mean(build(theta).log_prob(values))

    for _ in range(steps):
        value, slope = value_and_grad(loss)(theta)
        if not np.isfinite(float(value)):
            raise InputError(f"fit_mle: the data have no likelihood under {_name(family)}.", "values of its support")
        if float(arrays.max(arrays.abs(slope))) < 1e-12:
            break
        theta, moved = _step(loss, theta, value, slope)
        if not moved:
            break
    return build(theta)


def _step(loss: Callable[[Tensor], Tensor], theta: Tensor, value: Tensor, slope: Tensor) -> tuple[Tensor, bool]:
    curvature = hessian(loss)(theta)
    lowest = float(arrays.min(linalg.eigvalsh(0.5 * (curvature + curvature.mT))))
    damping = max(0.0, 1e-9 - lowest) * 1.5
    direction = linalg.solve(curvature + damping * arrays.eye(len(theta), dtype=float64), slope)
    size = 1.0
    while size > 1e-12:
        new = theta - size * direction
        found = float(loss(new))
        if found < float(value) - 1e-4 * size * float(arrays.sum(slope * direction)):
            return new, True
        size *= 0.5
    return theta, False
