"""The normal distribution, and what it becomes under the exponential function."""

from __future__ import annotations

import math

from .. import arrays, random
from ..core.tensor import Tensor
from ..core.typing import ArrayLike, KeyLike
from .distribution import LocationScale, Shape, accepted, positive

_HALF_LOG_TWO_PI = 0.5 * math.log(2 * math.pi)


class Normal(LocationScale):
    r"""\(\mathcal N(\mu, \sigma^2)\): density \(\frac{1}{\sigma\sqrt{2\pi}} e^{-\frac12((x-\mu)/\sigma)^2}\).

    >>> import wonderland as wl
    >>> d = wl.distributions.Normal(0.0, 1.0)
    >>> print(d.prob(0.0), d.cdf(0.0))
    tensor(0.398942) tensor(0.5)

    `scale` is the standard deviation \(\sigma\). The notation \(\mathcal N(\mu, \sigma^2)\) names the variance:
    \(\mathcal N(0, 0.01)\) is `Normal.from_variance(0.0, 0.01)`, with scale 0.1. Draws by `rsample` are
    \(\mu + \sigma\varepsilon\), differentiable in both parameters. Book, section A.3.
    """

    @classmethod
    def from_variance(cls, loc: ArrayLike, variance: ArrayLike) -> Normal:
        """The normal distribution with a mean and a variance.

        >>> import wonderland as wl
        >>> print(wl.distributions.Normal.from_variance(0.0, 0.01).scale)
        tensor(0.1)
        """
        loc, variance = accepted("Normal", loc, variance)
        positive("Normal", "variance", variance)
        return cls(loc, arrays.sqrt(variance))

    def _draw(self, sizes: Shape, key: KeyLike) -> Tensor:
        return random.normal(sizes, self.loc, self.scale, key=key)

    def log_prob(self, value: ArrayLike) -> Tensor:
        z = (self._value("log_prob", value) - self.loc) / self.scale
        return -0.5 * z * z - arrays.log(self.scale) - _HALF_LOG_TWO_PI

    def cdf(self, value: ArrayLike) -> Tensor:
        return 0.5 * arrays.erfc((self.loc - self._value("cdf", value)) / (self.scale * math.sqrt(2)))

    def icdf(self, probability: ArrayLike) -> Tensor:
        return self.loc + self.scale * math.sqrt(2) * arrays.erfinv(2 * self._probability(probability) - 1)

    @property
    def mean(self) -> Tensor:
        return self._spread(self.loc)

    @property
    def variance(self) -> Tensor:
        return self._spread(self.scale * self.scale)

    def entropy(self) -> Tensor:
        return self._spread(arrays.log(self.scale) + (_HALF_LOG_TWO_PI + 0.5))


class LogNormal(LocationScale):
    r"""\(e^x\) for \(x \sim \mathcal N(\mu, \sigma^2)\): positive, with a long tail.

    >>> import wonderland as wl
    >>> print(wl.distributions.LogNormal(0.0, 1.0).mean)  # e^(1/2)
    tensor(1.648721)
    """

    bounds = (0.0, arrays.inf)

    @property
    def _normal(self) -> Normal:
        return Normal(self.loc, self.scale)

    def _draw(self, sizes: Shape, key: KeyLike) -> Tensor:
        return arrays.exp(self._normal._draw(sizes, key))

    def log_prob(self, value: ArrayLike) -> Tensor:
        x = self._value("log_prob", value)
        inside = x > 0
        log_x = arrays.log(arrays.where(inside, x, 1.0))
        return arrays.where(inside, self._normal.log_prob(log_x) - log_x, -arrays.inf)

    def cdf(self, value: ArrayLike) -> Tensor:
        x = self._value("cdf", value)
        return arrays.where(x > 0, self._normal.cdf(arrays.log(arrays.where(x > 0, x, 1.0))), 0.0)

    def icdf(self, probability: ArrayLike) -> Tensor:
        return arrays.exp(self._normal.icdf(probability))

    @property
    def mean(self) -> Tensor:
        return self._spread(arrays.exp(self.loc + 0.5 * self.scale * self.scale))

    @property
    def variance(self) -> Tensor:
        s2 = self.scale * self.scale
        return self._spread(arrays.expm1(s2) * arrays.exp(2 * self.loc + s2))

    def entropy(self) -> Tensor:
        return self._normal.entropy() + self.loc
