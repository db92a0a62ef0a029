"""Waiting times and shares: exponential, gamma, beta and Dirichlet."""

from __future__ import annotations

from .. import arrays, random
from ..core.errors import ShapeError
from ..core.tensor import Tensor
from ..core.typing import ArrayLike, KeyLike
from .distribution import Distribution, Shape, accepted, positive
from .gamma_functions import beta_probability, digamma, gamma_probability, log_beta, log_gamma


class Exponential(Distribution):
    r"""Density \(\lambda e^{-\lambda x}\) for x >= 0: the time until an event of rate \(\lambda\).

    >>> import wonderland as wl
    >>> print(wl.distributions.Exponential(2.0).mean)
    tensor(0.5)
    """

    parameters = ("rate",)
    has_rsample = True
    bounds = (0.0, arrays.inf)

    def __init__(self, rate: ArrayLike) -> None:
        (self.rate,) = accepted("Exponential", rate)
        positive("Exponential", "rate", self.rate)

    def _draw(self, sizes: Shape, key: KeyLike) -> Tensor:
        return random.exponential(sizes, 1 / self.rate, key=key)

    def log_prob(self, value: ArrayLike) -> Tensor:
        x = self._value("log_prob", value)
        return arrays.where(x >= 0, arrays.log(self.rate) - self.rate * arrays.where(x >= 0, x, 0.0), -arrays.inf)

    def cdf(self, value: ArrayLike) -> Tensor:
        return -arrays.expm1(-self.rate * arrays.maximum(self._value("cdf", value), 0.0))

    def icdf(self, probability: ArrayLike) -> Tensor:
        return -arrays.log1p(-self._probability(probability)) / self.rate

    @property
    def mean(self) -> Tensor:
        return 1 / self.rate

    @property
    def variance(self) -> Tensor:
        return 1 / (self.rate * self.rate)

    def entropy(self) -> Tensor:
        return 1 - arrays.log(self.rate)


class Gamma(Distribution):
    r"""Density \(\frac{\beta^a}{\Gamma(a)} x^{a-1} e^{-\beta x}\) for x > 0: the sum of a times of rate \(\beta\).

    >>> import wonderland as wl
    >>> d = wl.distributions.Gamma(4.0, 2.0)
    >>> print(d.mean, d.variance)
    tensor(2.) tensor(1.)

    `rsample` is differentiable in both parameters, along quantiles.
    """

    parameters = ("concentration", "rate")
    has_rsample = True
    bounds = (0.0, arrays.inf)

    def __init__(self, concentration: ArrayLike, rate: ArrayLike = 1.0) -> None:
        self.concentration, self.rate = accepted("Gamma", concentration, rate)
        positive("Gamma", "concentration", self.concentration)
        positive("Gamma", "rate", self.rate)

    def _draw(self, sizes: Shape, key: KeyLike) -> Tensor:
        return random.gamma(sizes, self.concentration, 1 / self.rate, key=key)

    def log_prob(self, value: ArrayLike) -> Tensor:
        x = self._value("log_prob", value)
        a, rate = self.concentration, self.rate
        inside = x >= 0
        x = arrays.where(inside, x, 1.0)
        density = a * arrays.log(rate) + _log_power(a - 1, x) - rate * x - log_gamma(a)
        return arrays.where(inside, density, -arrays.inf)

    def cdf(self, value: ArrayLike) -> Tensor:
        return gamma_probability(self.concentration, self.rate * self._value("cdf", value))

    @property
    def mean(self) -> Tensor:
        return self.concentration / self.rate

    @property
    def variance(self) -> Tensor:
        return self.concentration / (self.rate * self.rate)

    def entropy(self) -> Tensor:
        a = self.concentration
        return a - arrays.log(self.rate) + log_gamma(a) + (1 - a) * digamma(a)


class Beta(Distribution):
    r"""Density \(x^{a-1}(1-x)^{b-1}/B(a, b)\) on [0, 1]: what a - 1 hits and b - 1 misses say of a probability.

    >>> import wonderland as wl
    >>> print(wl.distributions.Beta(8.0, 4.0).mean)
    tensor(0.666667)

    `concentration1` is a and `concentration0` b, as in PyTorch. `rsample` is differentiable in both.
    """

    parameters = ("concentration1", "concentration0")
    has_rsample = True
    bounds = (0.0, 1.0)

    def __init__(self, concentration1: ArrayLike, concentration0: ArrayLike) -> None:
        self.concentration1, self.concentration0 = accepted("Beta", concentration1, concentration0)
        positive("Beta", "concentration1", self.concentration1)
        positive("Beta", "concentration0", self.concentration0)

    def _draw(self, sizes: Shape, key: KeyLike) -> Tensor:
        return random.beta(sizes, self.concentration1, self.concentration0, key=key)

    def log_prob(self, value: ArrayLike) -> Tensor:
        x = self._value("log_prob", value)
        a, b = self.concentration1, self.concentration0
        inside = (x >= 0) & (x <= 1)
        x = arrays.where(inside, x, 0.5)
        density = _log_power(a - 1, x) + _log_power(b - 1, 1 - x) - log_beta(a, b)
        return arrays.where(inside, density, -arrays.inf)

    def cdf(self, value: ArrayLike) -> Tensor:
        return beta_probability(self.concentration1, self.concentration0, self._value("cdf", value))

    @property
    def mean(self) -> Tensor:
        return self.concentration1 / (self.concentration1 + self.concentration0)

    @property
    def variance(self) -> Tensor:
        a, b = self.concentration1, self.concentration0
        return a * b / ((a + b) ** 2 * (a + b + 1))

    def entropy(self) -> Tensor:
        a, b = self.concentration1, self.concentration0
        rest = (a + b - 2) * digamma(a + b) - (a - 1) * digamma(a) - (b - 1) * digamma(b)
        return log_beta(a, b) + rest


class Dirichlet(Distribution):
    r"""Density \(\prod_i x_i^{a_i - 1}/B(a)\) on the simplex: probabilities of k outcomes, concentrations (..., k).

    >>> import wonderland as wl
    >>> print(wl.distributions.Dirichlet(wl.tensor([1.0, 2.0, 1.0])).mean)
    tensor([0.25, 0.5 , 0.25])
    """

    parameters = ("concentration",)
    has_rsample = True

    def __init__(self, concentration: ArrayLike) -> None:
        (self.concentration,) = accepted("Dirichlet", concentration)
        if not self.concentration.ndim or not self.concentration.shape[-1]:
            raise ShapeError(f"Dirichlet: a concentration of shape {self.concentration.shape}.", "shape (..., k)")
        positive("Dirichlet", "concentration", self.concentration)

    @property
    def batch_shape(self) -> Shape:
        return self.concentration.shape[:-1]

    @property
    def event_shape(self) -> Shape:
        return self.concentration.shape[-1:]

    def _draw(self, sizes: Shape, key: KeyLike) -> Tensor:
        lead = sizes[: len(sizes) - len(self.batch_shape)]
        return random.dirichlet(self.concentration, lead, key=key)

    def _log_normalizer(self) -> Tensor:
        a = self.concentration
        return arrays.sum(log_gamma(a), axis=-1) - log_gamma(arrays.sum(a, axis=-1))

    def log_prob(self, value: ArrayLike) -> Tensor:
        x = self._value("log_prob", value)
        _check_events("Dirichlet", x, self.event_shape)
        inside = arrays.all(x >= 0, axis=-1) & (arrays.abs(arrays.sum(x, axis=-1) - 1) < 1e-3)
        safe = arrays.where(inside[..., None], x, 0.5)
        density = arrays.sum(_log_power(self.concentration - 1, safe), axis=-1) - self._log_normalizer()
        return arrays.where(inside, density, -arrays.inf)

    @property
    def mean(self) -> Tensor:
        return self.concentration / arrays.sum(self.concentration, axis=-1, keepdims=True)

    @property
    def variance(self) -> Tensor:
        total = arrays.sum(self.concentration, axis=-1, keepdims=True)
        return self.mean * (1 - self.mean) / (total + 1)

    def entropy(self) -> Tensor:
        a, total = self.concentration, arrays.sum(self.concentration, axis=-1)
        parts = arrays.sum((a - 1) * digamma(a), axis=-1)
        return self._log_normalizer() + (total - a.shape[-1]) * digamma(total) - parts


def _log_power(exponent: Tensor, x: Tensor) -> Tensor:
    """exponent * ln x, with its limits at x = 0; a zero exponent keeps its derivative ln x."""
    inside = x > 0
    limit = arrays.where(exponent == 0, 0.0, arrays.where(exponent > 0, -arrays.inf, arrays.inf))
    return arrays.where(inside, exponent * arrays.log(arrays.where(inside, x, 1.0)), limit)


def _check_events(name: str, x: Tensor, event: Shape) -> None:
    if x.shape[-1:] != event:
        raise ShapeError(
            f"{name}: values of shape {x.shape} are no vectors of {event[0]} numbers.", f"(..., {event[0]})"
        )
