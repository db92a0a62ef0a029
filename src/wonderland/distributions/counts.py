"""Distributions of numbers of events."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import arrays, random
from ..core.errors import TraceError
from ..core.tensor import Tensor
from ..core.typing import ArrayLike, KeyLike
from ..random.arguments import check, known
from ..random.keys import pair
from ..random.streams import take_key
from .discrete import Bernoulli, one_of
from .distribution import Distribution, Shape, accepted, positive
from .expectation import expectation
from .gamma_functions import beta_probability, gamma_probability, log_gamma


class Binomial(Distribution):
    r"""Successes in n trials of probability p: \(\binom nk p^k (1-p)^{n-k}\).

    >>> import wonderland as wl
    >>> print(wl.distributions.Binomial(10, 0.5).prob(7))
    tensor(0.117188)
    """

    parameters = ("total_count", "trial")
    discrete = True

    def __init__(self, total_count: ArrayLike, probs: ArrayLike | None = None, logits: ArrayLike | None = None) -> None:
        self.total_count, given = accepted("Binomial", total_count, one_of("Binomial", probs, logits))
        whole = lambda v: (v >= 0) & (v == np.floor(v))  # noqa: E731 - a condition
        check("Binomial", "total_count", self.total_count, whole, "a whole number of at least 0")
        self.trial = Bernoulli(given) if logits is None else Bernoulli(logits=given)

    @property
    def params(self) -> dict[str, Any]:
        return {"total_count": self.total_count, **self.trial.params}

    @property
    def probs(self) -> Tensor:
        """The probability of a success."""
        return self.trial.probs

    def _draw(self, sizes: Shape, key: KeyLike) -> Tensor:
        return random.binomial(sizes, self.total_count, self.probs, key=key, dtype=self.dtype)

    def log_prob(self, value: ArrayLike) -> Tensor:
        k, n = self._value("log_prob", value), self.total_count
        inside = (k >= 0) & (k <= n) & (k == arrays.floor(k))
        k = arrays.where(inside, k, 0.0)
        hit, miss = self.trial._logs()
        ways = log_gamma(n + 1) - log_gamma(k + 1) - log_gamma(n - k + 1)
        terms = arrays.where(k == 0, 0.0, k * hit) + arrays.where(k == n, 0.0, (n - k) * miss)
        return arrays.where(inside, ways + terms, -arrays.inf)

    def cdf(self, value: ArrayLike) -> Tensor:
        k, n = arrays.floor(self._value("cdf", value)), self.total_count
        inside = (k >= 0) & (k < n)
        hits, rest = arrays.where(inside, k, 0.0), arrays.where(inside, n - k, 1.0)
        return arrays.where(inside, beta_probability(rest, hits + 1, 1 - self.probs), arrays.where(k < 0, 0.0, 1.0))

    def support(self) -> Tensor:
        most = known(self.total_count)
        if most is None:
            raise TraceError("Binomial: the number of its values is traced.", "a total_count that is known")
        count = int(most.max()) + 1
        values = arrays.reshape(arrays.arange(count), (count, *(1,) * len(self.batch_shape)))
        return arrays.broadcast_to(values, (count, *self.batch_shape))

    @property
    def mean(self) -> Tensor:
        return self.total_count * self.probs

    @property
    def variance(self) -> Tensor:
        return self.mean * (1 - self.probs)

    def entropy(self) -> Tensor:
        return expectation(self, lambda k: -self.log_prob(k))


class Poisson(Distribution):
    r"""Events of rate \(\lambda\): \(\lambda^k e^{-\lambda}/k!\).

    >>> import wonderland as wl
    >>> print(wl.distributions.Poisson(3.0).prob(0))
    tensor(0.049787)
    """

    parameters = ("rate",)
    discrete = True

    def __init__(self, rate: ArrayLike) -> None:
        (self.rate,) = accepted("Poisson", rate)
        positive("Poisson", "rate", self.rate)

    def _draw(self, sizes: Shape, key: KeyLike) -> Tensor:
        return random.poisson(sizes, self.rate, key=key, dtype=self.dtype)

    def log_prob(self, value: ArrayLike) -> Tensor:
        k = self._value("log_prob", value)
        inside = (k >= 0) & (k == arrays.floor(k))
        k = arrays.where(inside, k, 0.0)
        return arrays.where(inside, k * arrays.log(self.rate) - self.rate - log_gamma(k + 1), -arrays.inf)

    def cdf(self, value: ArrayLike) -> Tensor:
        k = arrays.floor(self._value("cdf", value))
        inside = k >= 0
        return arrays.where(inside, 1 - gamma_probability(arrays.where(inside, k, 0.0) + 1, self.rate), 0.0)

    def support(self) -> Tensor:
        """The values up to where less than 1e-16 of the probability is left."""
        rate = known(self.rate)
        if rate is None:
            raise TraceError("Poisson: the number of its values is traced.", "a rate that is known")
        count = int(rate.max() + 10 * np.sqrt(rate.max()) + 30)
        values = arrays.reshape(arrays.arange(count), (count, *(1,) * len(self.batch_shape)))
        return arrays.broadcast_to(values, (count, *self.batch_shape))

    @property
    def mean(self) -> Tensor:
        return self.rate

    @property
    def variance(self) -> Tensor:
        return self.rate

    def entropy(self) -> Tensor:
        return expectation(self, lambda k: -self.log_prob(k))


class NegativeBinomial(Distribution):
    r"""Successes of probability p before r failures: \(\frac{\Gamma(k+r)}{k!\,\Gamma(r)} (1-p)^r p^k\), any r > 0.

    >>> import wonderland as wl
    >>> d = wl.distributions.NegativeBinomial.from_mean(4.0, dispersion=0.5)
    >>> print(d.mean, d.variance)  # mu, and mu + dispersion * mu ** 2
    tensor(4.) tensor(12.)

    `total_count` is r, and p is given as `probs` or as `logits`. It is a Poisson distribution whose rate is drawn from
    a gamma distribution: counts that vary more than those of one rate.
    """

    parameters = ("total_count", "logits")
    discrete = True

    def __init__(self, total_count: ArrayLike, probs: ArrayLike | None = None, logits: ArrayLike | None = None) -> None:
        name = "NegativeBinomial"
        self.total_count, given = accepted(name, total_count, one_of(name, probs, logits))
        positive(name, "total_count", self.total_count)
        if logits is None:
            check(name, "a probability", given, lambda v: (v > 0) & (v < 1), "a number between 0 and 1")
            given = arrays.log(given) - arrays.log1p(-given)
        self.logits = given

    @classmethod
    def from_mean(cls, mean: ArrayLike, dispersion: ArrayLike) -> NegativeBinomial:
        r"""With mean \(\mu\) and variance \(\mu + a\mu^2\), for a `dispersion` a > 0: r is 1/a."""
        mu, a = accepted("NegativeBinomial", mean, dispersion)
        positive("NegativeBinomial", "mean", mu)
        positive("NegativeBinomial", "dispersion", a)
        return cls(1 / a, logits=arrays.log(mu * a))

    @property
    def probs(self) -> Tensor:
        """The probability of a success."""
        return arrays.sigmoid(self.logits)

    def _draw(self, sizes: Shape, key: KeyLike) -> Tensor:
        first, second = pair(take_key("NegativeBinomial", key))
        rate = random.gamma(sizes, self.total_count, arrays.exp(self.logits), key=first)
        tiny = arrays.asarray(np.finfo(np.float32).tiny, dtype=rate.dtype)
        return random.poisson(sizes, arrays.maximum(rate, tiny), key=second, dtype=self.dtype)

    def log_prob(self, value: ArrayLike) -> Tensor:
        k, r = self._value("log_prob", value), self.total_count
        inside = (k >= 0) & (k == arrays.floor(k))
        k = arrays.where(inside, k, 0.0)
        ways = log_gamma(k + r) - log_gamma(k + 1) - log_gamma(r)
        terms = -r * arrays.softplus(self.logits) - k * arrays.softplus(-self.logits)
        return arrays.where(inside, ways + terms, -arrays.inf)

    def cdf(self, value: ArrayLike) -> Tensor:
        k = arrays.floor(self._value("cdf", value))
        inside = k >= 0
        hits = arrays.where(inside, k, 0.0) + 1
        return arrays.where(inside, beta_probability(self.total_count, hits, arrays.sigmoid(-self.logits)), 0.0)

    def support(self) -> Tensor:
        """The values up to where less than 1e-16 of the probability is left."""
        mean, variance = known(self.mean), known(self.variance)
        if mean is None or variance is None:
            raise TraceError("NegativeBinomial: the number of its values is traced.", "parameters that are known")
        # beyond the mean the probabilities fall by p at least, of which variance / mean is 1 / (1 - p)
        count = int((mean + 12 * np.sqrt(variance) + 40 * variance / mean).max() + 30)
        values = arrays.reshape(arrays.arange(count), (count, *(1,) * len(self.batch_shape)))
        return arrays.broadcast_to(values, (count, *self.batch_shape))

    @property
    def mean(self) -> Tensor:
        return self.total_count * arrays.exp(self.logits)

    @property
    def variance(self) -> Tensor:
        return self.mean * (1 + arrays.exp(self.logits))

    def entropy(self) -> Tensor:
        return expectation(self, lambda k: -self.log_prob(k))
