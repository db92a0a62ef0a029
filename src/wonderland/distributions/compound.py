"""Distributions made of others: mixtures, and batches that are read as one vector."""

from __future__ import annotations

from typing import Any

from .. import arrays
from ..core.errors import InputError, ShapeError
from ..core.tensor import Tensor
from ..core.typing import ArrayLike, KeyLike
from ..random.keys import pair
from ..random.streams import take_key
from .discrete import Categorical
from .distribution import Distribution, Shape


class Mixture(Distribution):
    r"""\(p(x) = \sum_j w_j\,p_j(x)\): one of the components is chosen, and a value drawn from it.

    >>> import wonderland as wl
    >>> from wonderland.distributions import Mixture, Normal
    >>> d = Mixture([0.5, 0.5], Normal(wl.tensor([-1.0, 1.0]), 0.1))
    >>> print(d.mean, d.variance)
    tensor(0.) tensor(1.01)

    `mixing` are the weights, a `Categorical` or probabilities (..., k); `components` a distribution whose last batch
    axis has size k. A target with several likely values needs such an output: one number would lie between them.
    Book, section 3.2.2.
    """

    parameters = ("mixing", "components")

    def __init__(self, mixing: Categorical | ArrayLike, components: Distribution) -> None:
        self.mixing = mixing if isinstance(mixing, Categorical) else Categorical(mixing)
        self.components = components
        if not isinstance(components, Distribution):
            raise InputError(f"Mixture: the components are a {type(components).__name__}.", "one batched distribution")
        k = self.mixing.logits.shape[-1]
        if components.batch_shape[-1:] != (k,):
            raise ShapeError(
                f"Mixture: {k} weights for components of batch shape {components.batch_shape}.",
                f"components with a last batch axis of size {k}",
            )

    @property
    def discrete(self) -> bool:  # type: ignore[override]
        return self.components.discrete

    @property
    def batch_shape(self) -> Shape:
        return arrays.broadcast_shapes(self.mixing.batch_shape, self.components.batch_shape[:-1])

    @property
    def event_shape(self) -> Shape:
        return self.components.event_shape

    @property
    def bounds(self) -> tuple[Tensor | float, Tensor | float]:  # type: ignore[override]
        low, high = self.components.bounds
        return (
            arrays.min(low, axis=-1) if isinstance(low, Tensor) and low.ndim else low,
            arrays.max(high, axis=-1) if isinstance(high, Tensor) and high.ndim else high,
        )

    def _over(self, x: ArrayLike) -> Tensor:
        """Something per component and event, weighted and summed over the components."""
        weights = arrays.reshape(self.mixing.probs, (*self.mixing.logits.shape, *(1,) * len(self.event_shape)))
        return arrays.sum(weights * x, axis=-1 - len(self.event_shape))

    def _apart(self, x: Tensor) -> Tensor:
        """A value with a new axis for the components."""
        return arrays.expand_dims(x, axis=x.ndim - len(self.event_shape))

    def _draw(self, sizes: Shape, key: KeyLike) -> Tensor:
        first, second = pair(take_key("Mixture", key))
        lead = sizes[: len(sizes) - len(self.batch_shape)]
        k = self.mixing.logits.shape[-1]
        logits = arrays.broadcast_to(self.mixing.logits, (*self.batch_shape, k))
        chosen = Categorical(logits=logits)._draw(sizes, first)
        every = self.components._draw((*lead, *self.batch_shape, k), second)
        hit = arrays.arange(k) == chosen[..., None]
        hit = arrays.reshape(hit, (*hit.shape, *(1,) * len(self.event_shape)))
        return arrays.sum(arrays.where(hit, every, 0), axis=-1 - len(self.event_shape))

    def log_prob(self, value: ArrayLike) -> Tensor:
        x = self._apart(self._value("log_prob", value))
        return arrays.logsumexp(self.mixing.logits + self.components.log_prob(x), axis=-1)

    def cdf(self, value: ArrayLike) -> Tensor:
        return self._over(self.components.cdf(self._apart(self._value("cdf", value))))

    @property
    def mean(self) -> Tensor:
        return self._over(self.components.mean)

    @property
    def variance(self) -> Tensor:
        # the mean of the variances plus the variance of the means
        means = self.components.mean
        return self._over(self.components.variance + arrays.square(means - self._apart(self.mean)))


MixtureSameFamily = Mixture  # PyTorch's name


class Independent(Distribution):
    """A batch of distributions, whose last axes are read as one event: log_prob sums over them.

    >>> import wonderland as wl
    >>> from wonderland.distributions import Independent, Normal
    >>> d = Independent(Normal(wl.zeros(3), 1.0))
    >>> print(d.event_shape, d.log_prob(wl.zeros(3)))
    (3,) tensor(-2.756816)
    """

    parameters = ("base",)

    def __init__(self, base: Distribution, reinterpreted_batch_ndims: int = 1) -> None:
        if not 0 <= reinterpreted_batch_ndims <= len(base.batch_shape):
            raise ShapeError(
                f"Independent: {reinterpreted_batch_ndims} axes of a batch of shape {base.batch_shape}.", "fewer axes"
            )
        self.base = base
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims

    @property
    def params(self) -> dict[str, Any]:
        return {"base": self.base, "reinterpreted_batch_ndims": self.reinterpreted_batch_ndims}

    @property
    def has_rsample(self) -> bool:  # type: ignore[override]
        return self.base.has_rsample

    @property
    def discrete(self) -> bool:  # type: ignore[override]
        return self.base.discrete

    @property
    def batch_shape(self) -> Shape:
        return self.base.batch_shape[: len(self.base.batch_shape) - self.reinterpreted_batch_ndims]

    @property
    def event_shape(self) -> Shape:
        return self.base.batch_shape[len(self.batch_shape) :] + self.base.event_shape

    def _draw(self, sizes: Shape, key: KeyLike) -> Tensor:
        return self.base._draw((*sizes, *self.base.batch_shape[len(self.batch_shape) :]), key)

    def _summed(self, x: Tensor) -> Tensor:
        n = self.reinterpreted_batch_ndims
        return arrays.sum(x, axis=tuple(range(-n, 0))) if n else x

    def log_prob(self, value: ArrayLike) -> Tensor:
        return self._summed(self.base.log_prob(value))

    @property
    def mean(self) -> Tensor:
        return self.base.mean

    @property
    def variance(self) -> Tensor:
        return self.base.variance

    def entropy(self) -> Tensor:
        return self._summed(arrays.broadcast_to(self.base.entropy(), self.base.batch_shape))
