"""Distributions of numbers of events."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import arrays, random
from ..errors import TraceError
from ..random.arguments import check, known
from ..tensor import Tensor
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

    def __init__(self, total_count: Any, probs: Any = None, logits: Any = None) -> None:
        one_of("Binomial", probs, logits)
        self.total_count, given = accepted("Binomial", total_count, probs if logits is None else logits)
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

    def _draw(self, sizes: Shape, key: Any) -> Tensor:
        return random.binomial(sizes, self.total_count, self.probs, key=key, dtype=self.dtype)

    def log_prob(self, value: Any) -> Tensor:
        k, n = self._value("log_prob", value), self.total_count
        inside = (k >= 0) & (k <= n) & (k == arrays.floor(k))
        k = arrays.where(inside, k, 0.0)
        hit, miss = self.trial._logs()
        ways = log_gamma(n + 1) - log_gamma(k + 1) - log_gamma(n - k + 1)
        terms = arrays.where(k == 0, 0.0, k * hit) + arrays.where(k == n, 0.0, (n - k) * miss)
        return arrays.where(inside, ways + terms, -arrays.inf)

    def cdf(self, value: Any) -> Tensor:
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

    def __init__(self, rate: Any) -> None:
        (self.rate,) = accepted("Poisson", rate)
        positive("Poisson", "rate", self.rate)

    def _draw(self, sizes: Shape, key: Any) -> Tensor:
        return random.poisson(sizes, self.rate, key=key, dtype=self.dtype)

    def log_prob(self, value: Any) -> Tensor:
        k = self._value("log_prob", value)
        inside = (k >= 0) & (k == arrays.floor(k))
        k = arrays.where(inside, k, 0.0)
        return arrays.where(inside, k * arrays.log(self.rate) - self.rate - log_gamma(k + 1), -arrays.inf)

    def cdf(self, value: Any) -> Tensor:
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
