"""Distributions over outcomes: one of several, or yes and no."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import arrays, random
from ..core.dtypes import is_floating, is_half, is_integer
from ..core.errors import InputError, ShapeError
from ..core.tensor import Tensor
from ..core.typing import ArrayLike, KeyLike
from ..random.arguments import as_parameter_tensor, check, known
from .distribution import Distribution, Shape, accepted, finite


def log_probability(p: ArrayLike) -> Tensor:
    """ln p, and -inf without an infinite derivative at 0."""
    zero = p == 0
    return arrays.where(zero, -arrays.inf, arrays.log(arrays.where(zero, 1.0, p)))


class Categorical(Distribution):
    r"""One of k outcomes, with probabilities \(p_i \ge 0\) that sum to 1: \(p(x) = \prod_i p_i^{x_i}\), x one-hot.

    >>> import wonderland as wl
    >>> d = wl.distributions.Categorical([0.6, 0.3, 0.1])
    >>> print(d.prob(1), d.prob(wl.tensor([0.0, 1.0, 0.0])))
    tensor(0.3) tensor(0.3)

    Give `probs` (..., k), or `logits`, whose softmax they are. Draws are indices. `log_prob` takes indices (integers)
    of the shape of the batch, or floating one-hot vectors (..., k), where \(0 \ln 0 = 0\); soft ones give
    \(\sum_i x_i \ln p_i\). The mean and variance are those of the index. Book, sections 3.2.2 and A.3.
    """

    parameters = ("logits",)  # logarithms of probabilities, however they were given
    discrete = True

    def __init__(self, probs: ArrayLike | None = None, logits: ArrayLike | None = None) -> None:
        (given,) = accepted("Categorical", one_of("Categorical", probs, logits))
        if not given.ndim or not given.shape[-1]:
            raise ShapeError(f"Categorical: parameters of shape {given.shape} have no outcomes.", "shape (..., k)")
        if logits is None:
            check_simplex("Categorical", given)
            self.logits = log_probability(given)
        else:
            check("Categorical", "a logit", given, lambda v: v < arrays.inf, "numbers, or -inf for what cannot happen")
            finite("Categorical", "the largest logit", arrays.max(given, axis=-1))
            self.logits = arrays.log_softmax(given)

    @property
    def probs(self) -> Tensor:
        """The probabilities (..., k)."""
        return arrays.exp(self.logits)

    @property
    def batch_shape(self) -> Shape:
        return self.logits.shape[:-1]

    def _draw(self, sizes: Shape, key: KeyLike) -> Tensor:
        lead = sizes[: len(sizes) - len(self.batch_shape)]
        return random.categorical(self.logits, shape=lead, key=key)

    def log_prob(self, value: ArrayLike) -> Tensor:
        x = as_parameter_tensor("Categorical.log_prob", value)
        k = self.logits.shape[-1]
        if is_floating(x.dtype):
            if x.shape[-1:] != (k,):
                raise ShapeError(f"Categorical: values of shape {x.shape} are not one-hot.", f"(..., {k}), or integers")
            x = arrays.astype(x, self.logits.dtype)
            return arrays.sum(arrays.where(x == 0, 0.0, x * self.logits), axis=-1)
        if not is_integer(x.dtype):
            raise InputError(f"Categorical: values of dtype {x.dtype}.", "integers from 0, or one-hot vectors")
        shape = arrays.broadcast_shapes(x.shape, self.batch_shape)
        logits = arrays.broadcast_to(self.logits, (*shape, k))
        index = arrays.broadcast_to(arrays.where(x < 0, k, x), shape)
        return arrays.squeeze(arrays.take_along_axis(logits, index[..., None], axis=-1), -1)

    def cdf(self, value: ArrayLike) -> Tensor:
        x = self._value("cdf", value)
        below = arrays.arange(self.logits.shape[-1]) <= x[..., None]
        return arrays.sum(arrays.where(below, self.probs, 0.0), axis=-1)

    def support(self) -> Tensor:
        k = self.logits.shape[-1]
        values = arrays.reshape(arrays.arange(k), (k, *(1,) * len(self.batch_shape)))
        return arrays.broadcast_to(values, (k, *self.batch_shape))

    @property
    def mean(self) -> Tensor:
        index = arrays.arange(self.logits.shape[-1], dtype=self.dtype)
        return arrays.sum(self.probs * index, axis=-1)

    @property
    def variance(self) -> Tensor:
        index = arrays.arange(self.logits.shape[-1], dtype=self.dtype)
        return arrays.sum(self.probs * arrays.square(index - self.mean[..., None]), axis=-1)

    @property
    def mode(self) -> Tensor:
        """The most probable index."""
        return arrays.argmax(self.logits, axis=-1)

    def entropy(self) -> Tensor:
        p = self.probs
        return -arrays.sum(arrays.where(p == 0, 0.0, p * arrays.where(p == 0, 0.0, self.logits)), axis=-1)


class Bernoulli(Distribution):
    r"""1 with probability p and 0 otherwise: \(p^x (1-p)^{1-x}\); its negative logarithm is binary cross-entropy.

    >>> import wonderland as wl
    >>> d = wl.distributions.Bernoulli(0.7)
    >>> print(d.prob(1), d.prob(0), d.variance)
    tensor(0.7) tensor(0.3) tensor(0.21)

    Give `probs`, or `logits` \(\ln\frac{p}{1-p}\), from which the logarithms are computed stably. Book, section A.3.
    """

    discrete = True

    def __init__(self, probs: ArrayLike | None = None, logits: ArrayLike | None = None) -> None:
        self.form = "probs" if logits is None else "logits"
        (self.parameter,) = accepted("Bernoulli", one_of("Bernoulli", probs, logits))
        if logits is None:
            check("Bernoulli", "a probability", self.parameter, lambda v: (v >= 0) & (v <= 1), "from 0 to 1")
        else:
            finite("Bernoulli", "a logit", self.parameter)

    parameters = ("parameter",)

    @property
    def params(self) -> dict[str, Any]:
        return {self.form: self.parameter}

    @property
    def probs(self) -> Tensor:
        """The probability of 1."""
        return self.parameter if self.form == "probs" else arrays.sigmoid(self.parameter)

    @property
    def logits(self) -> Tensor:
        """The logarithm of the odds."""
        hit, miss = self._logs()
        return self.parameter if self.form == "logits" else hit - miss

    def _logs(self) -> tuple[Tensor, Tensor]:
        """ln p and ln(1 - p)."""
        if self.form == "logits":
            return -arrays.softplus(-self.parameter), -arrays.softplus(self.parameter)
        return log_probability(self.parameter), log_probability(1 - self.parameter)

    def _draw(self, sizes: Shape, key: KeyLike) -> Tensor:
        return random.bernoulli(sizes, self.probs, key=key, dtype=self.dtype)

    def log_prob(self, value: ArrayLike) -> Tensor:
        x = self._value("log_prob", value)
        check("Bernoulli.log_prob", "a value", x, lambda v: (v == 0) | (v == 1), "0 and 1")
        hit, miss = self._logs()
        return arrays.where(x == 1, hit, miss)

    def cdf(self, value: ArrayLike) -> Tensor:
        x = self._value("cdf", value)
        return arrays.where(x < 0, 0.0, arrays.where(x < 1, 1 - self.probs, 1.0))

    def support(self) -> Tensor:
        values = arrays.reshape(arrays.arange(2), (2, *(1,) * len(self.batch_shape)))
        return arrays.broadcast_to(values, (2, *self.batch_shape))

    @property
    def mean(self) -> Tensor:
        return self.probs

    @property
    def variance(self) -> Tensor:
        return self.probs * (1 - self.probs)

    def entropy(self) -> Tensor:
        p, (hit, miss) = self.probs, self._logs()
        return -arrays.where(p == 0, 0.0, p * hit) - arrays.where(p == 1, 0.0, (1 - p) * miss)


def one_of(name: str, probs: ArrayLike | None, logits: ArrayLike | None) -> ArrayLike:
    """The one that was given."""
    given = probs if logits is None else logits
    if given is None or (probs is not None and logits is not None):
        raise InputError(f"{name}: {'neither' if probs is None else 'both'} of probs and logits.", "one of them")
    return given


def check_simplex(name: str, p: Tensor) -> None:
    """Refuse rows that are known and not probabilities."""
    check(name, "a probability", p, lambda v: v >= 0, "probabilities of at least 0")
    value = known(p)
    if value is not None:
        sums = value.sum(-1, dtype=np.float64)
        if not (abs(sums - 1) <= (2e-2 if is_half(value.dtype) else 1e-4)).all():
            worst = np.ravel(sums)[np.argmax(abs(np.ravel(sums) - 1))]
            raise InputError(f"{name}: the probabilities sum to {worst:.6g}.", "p / p.sum(), or logits=...")
