"""Continuous distributions of numbers with a location, a scale or two ends."""

from __future__ import annotations

import math

from .. import arrays, random
from ..core.tensor import Tensor
from ..core.typing import ArrayLike, KeyLike
from ..random.arguments import check, check_order
from ..random.keys import pair
from ..random.streams import take_key
from .distribution import Distribution, LocationScale, Shape, accepted, finite, positive
from .gamma_functions import beta_probability, digamma, log_beta


class Laplace(LocationScale):
    r"""Density \(\frac{1}{2s} e^{-|x-\mu|/s}\); its negative logarithm is the absolute error. Book, section 4.1.1.

    >>> import wonderland as wl
    >>> print(wl.distributions.Laplace(0.0, 2.0).prob(0.0))
    tensor(0.25)

    `rsample` is differentiable in both parameters.
    """

    def _draw(self, sizes: Shape, key: KeyLike) -> Tensor:
        return random.laplace(sizes, self.loc, self.scale, key=key)

    def log_prob(self, value: ArrayLike) -> Tensor:
        return -arrays.abs(self._value("log_prob", value) - self.loc) / self.scale - arrays.log(2 * self.scale)

    def cdf(self, value: ArrayLike) -> Tensor:
        z = (self._value("cdf", value) - self.loc) / self.scale
        half = 0.5 * arrays.exp(-arrays.abs(z))
        return arrays.where(z < 0, half, 1 - half)

    def icdf(self, probability: ArrayLike) -> Tensor:
        p = self._probability(probability)
        tail = arrays.log(2 * arrays.minimum(p, 1 - p))
        return self.loc + self.scale * arrays.where(p < 0.5, tail, -tail)

    @property
    def mean(self) -> Tensor:
        return self._spread(self.loc)

    @property
    def variance(self) -> Tensor:
        return self._spread(2 * self.scale * self.scale)

    def entropy(self) -> Tensor:
        return self._spread(1 + arrays.log(2 * self.scale))


class Cauchy(LocationScale):
    r"""Density \(\frac{1}{\pi s\,(1 + ((x-\mu)/s)^2)}\): tails so heavy that there is no mean and no variance (NaN).

    >>> import wonderland as wl
    >>> print(wl.distributions.Cauchy(0.0, 1.0).cdf(1.0))
    tensor(0.75)
    """

    def _draw(self, sizes: Shape, key: KeyLike) -> Tensor:
        return random.cauchy(sizes, self.loc, self.scale, key=key)

    def log_prob(self, value: ArrayLike) -> Tensor:
        z = (self._value("log_prob", value) - self.loc) / self.scale
        return -arrays.log1p(z * z) - arrays.log(math.pi * self.scale)

    def cdf(self, value: ArrayLike) -> Tensor:
        return arrays.atan((self._value("cdf", value) - self.loc) / self.scale) / math.pi + 0.5

    def icdf(self, probability: ArrayLike) -> Tensor:
        return self.loc + self.scale * arrays.tan(math.pi * (self._probability(probability) - 0.5))

    @property
    def mean(self) -> Tensor:
        return arrays.full(self.batch_shape, arrays.nan, dtype=self.dtype)

    @property
    def variance(self) -> Tensor:
        return self.mean

    def entropy(self) -> Tensor:
        return self._spread(arrays.log(4 * math.pi * self.scale))


class StudentT(Distribution):
    r"""Student's t with \(\nu\) degrees of freedom: density proportional to \((1 + z^2/\nu)^{-(\nu+1)/2}\).

    >>> import wonderland as wl
    >>> print(wl.distributions.StudentT(3.0).variance)
    tensor(3.)

    \(z = (x-\mu)/s\). The mean exists for \(\nu > 1\) (else NaN), the variance for \(\nu > 2\) (infinite down to 1).
    """

    parameters = ("df", "loc", "scale")
    has_rsample = True

    def __init__(self, df: ArrayLike, loc: ArrayLike = 0.0, scale: ArrayLike = 1.0) -> None:
        self.df, self.loc, self.scale = accepted("StudentT", df, loc, scale)
        positive("StudentT", "df", self.df)
        finite("StudentT", "loc", self.loc)
        positive("StudentT", "scale", self.scale)

    def _draw(self, sizes: Shape, key: KeyLike) -> Tensor:
        first, second = pair(take_key("StudentT", key))
        noise = random.normal(sizes, key=first, dtype=self.dtype)
        spread = random.gamma(sizes, 0.5 * self.df, 2 / self.df, key=second)
        return self.loc + self.scale * noise / arrays.sqrt(spread)

    def log_prob(self, value: ArrayLike) -> Tensor:
        z = (self._value("log_prob", value) - self.loc) / self.scale
        constant = arrays.log(self.scale) + 0.5 * arrays.log(self.df) + log_beta(0.5, 0.5 * self.df)
        return -0.5 * (self.df + 1) * arrays.log1p(z * z / self.df) - constant

    def cdf(self, value: ArrayLike) -> Tensor:
        z = (self._value("cdf", value) - self.loc) / self.scale
        tail = 0.5 * beta_probability(0.5 * self.df, 0.5, self.df / (self.df + z * z))
        return arrays.where(z < 0, tail, 1 - tail)

    @property
    def mean(self) -> Tensor:
        return self._spread(arrays.where(self.df > 1, self.loc, arrays.nan))

    @property
    def variance(self) -> Tensor:
        finite_ = self.df > 2
        ratio = self.df / arrays.where(finite_, self.df - 2, 1.0)
        missing = arrays.where(self.df > 1, arrays.inf, arrays.nan)
        return self._spread(arrays.where(finite_, self.scale * self.scale * ratio, missing))

    def entropy(self) -> Tensor:
        half = 0.5 * (self.df + 1)
        rest = 0.5 * arrays.log(self.df) + log_beta(0.5, 0.5 * self.df) + arrays.log(self.scale)
        return self._spread(half * (digamma(half) - digamma(0.5 * self.df)) + rest)


class Uniform(Distribution):
    r"""Density \(\frac{1}{h - l}\) on \([l, h)\).

    >>> import wonderland as wl
    >>> d = wl.distributions.Uniform(0.0, 0.5)
    >>> print(d.prob(0.25), d.prob(0.75))  # a density may exceed 1
    tensor(2.) tensor(0.)
    """

    parameters = ("low", "high")
    has_rsample = True

    def __init__(self, low: ArrayLike = 0.0, high: ArrayLike = 1.0) -> None:
        self.low, self.high = accepted("Uniform", low, high)
        finite("Uniform", "low", self.low)
        finite("Uniform", "high", self.high)
        check_order("Uniform", self.low, self.high)

    @property
    def bounds(self) -> tuple[Tensor, Tensor]:  # type: ignore[override]
        return self.low, self.high

    def _draw(self, sizes: Shape, key: KeyLike) -> Tensor:
        return random.uniform(sizes, self.low, self.high, key=key)

    def log_prob(self, value: ArrayLike) -> Tensor:
        x = self._value("log_prob", value)
        return arrays.where((x >= self.low) & (x < self.high), -arrays.log(self.high - self.low), -arrays.inf)

    def cdf(self, value: ArrayLike) -> Tensor:
        return arrays.clip((self._value("cdf", value) - self.low) / (self.high - self.low), 0.0, 1.0)

    def icdf(self, probability: ArrayLike) -> Tensor:
        return self.low + (self.high - self.low) * self._probability(probability)

    @property
    def mean(self) -> Tensor:
        return self._spread(0.5 * (self.low + self.high))

    @property
    def variance(self) -> Tensor:
        return self._spread((self.high - self.low) ** 2 / 12)

    def entropy(self) -> Tensor:
        return self._spread(arrays.log(self.high - self.low))


class Delta(Distribution):
    r"""All probability at one point: log_prob is 0 there and -inf elsewhere.

    >>> import wonderland as wl
    >>> print(wl.distributions.Delta(2.0).log_prob(wl.tensor([2.0, 3.0])))
    tensor([ 0., -inf])

    A prediction without uncertainty, as the limit of a narrow distribution. Book, section 3.2.2.
    """

    parameters = ("value",)
    has_rsample = True
    discrete = True

    def __init__(self, value: ArrayLike) -> None:
        (self.value,) = accepted("Delta", value)
        check("Delta", "value", self.value, lambda v: v == v, "a number")

    def _draw(self, sizes: Shape, key: KeyLike) -> Tensor:
        return arrays.broadcast_to(self.value, sizes)

    def log_prob(self, value: ArrayLike) -> Tensor:
        return arrays.where(self._value("log_prob", value) == self.value, 0.0, -arrays.inf)

    def cdf(self, value: ArrayLike) -> Tensor:
        return arrays.where(self._value("cdf", value) >= self.value, 1.0, 0.0)

    def support(self) -> Tensor:
        return self.value[None]

    @property
    def mean(self) -> Tensor:
        return self.value

    @property
    def variance(self) -> Tensor:
        return arrays.zeros_like(self.value)

    def entropy(self) -> Tensor:
        return arrays.zeros_like(self.value)
