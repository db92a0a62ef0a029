"""Softmax layers for very many classes, trained with a few sampled ones. Notes, section 4.5.2."""

from __future__ import annotations

import math

import numpy as np

from ... import arrays
from ...arrays.conversion import as_real
from ...core import dtypes
from ...core.arguments import as_int
from ...core.errors import InputError, ShapeError
from ...core.tensor import Tensor
from ...core.typing import Array, ArrayLike, DTypeLike, KeyLike, ShapeLike
from ...random.continuous import uniform
from ...random.keys import split
from ...random.streams import Stream, take_key
from ..functional import cross_entropy
from ..functional.negative_sampling import nce_loss, negative_sampling_loss, sampled_softmax_loss
from ..module.lazy import at_once
from ..module.module import Module
from ..module.parameter import Buffer, Parameter

__all__ = ["unigram_probabilities", "SampledSoftmax"]

LOSSES = ("softmax", "nce", "negative")


def unigram_probabilities(counts: ArrayLike, power: float = 0.75) -> Array:
    r"""\(q_c \propto n_c^{\alpha}\): word2vec's distribution of negative samples, with \(\alpha\) = 0.75.

    >>> unigram_probabilities([16, 1]).round(4).tolist()
    [0.8889, 0.1111]
    """
    values = np.asarray(counts, np.float64)
    if values.ndim != 1 or not np.isfinite(values).all() or (values < 0).any() or not values.sum() > 0:
        raise InputError("unigram_probabilities: counts must be 0 or more, and not all 0.", "a vector of counts")
    raised = np.where(values > 0, values**power, 0.0)
    return raised / raised.sum()


class SampledSoftmax(Module):
    r"""A softmax layer \(p = \mathrm{softmax}(W z + b)\) over C classes whose training looks at k sampled ones.

    >>> import wonderland as wl
    >>> layer = wl.nn.SampledSoftmax(8, 1000, num_sampled=20, key=wl.random.key(0))
    >>> layer
    SampledSoftmax(in_features=8, num_classes=1000, num_sampled=20, loss='softmax', corrected=True)
    >>> z, y = wl.random.normal((4, 8), key=wl.random.key(1)), wl.tensor([3, 999, 0, 7])
    >>> layer(z, y).shape, layer.logits(z).shape, layer.predict(z).shape
    ((), (4, 1000), (4,))

    The layer called with codes and classes is the loss; new samples, the same for the whole batch, come from its random
    stream. `q` are the probabilities of the samples, uniform if None; `unigram_probabilities(counts)` for words.
    `loss` is one of

    - "softmax": `sampled_softmax_loss`. `corrected` divides by q, so that it tends to the full softmax as
      `num_sampled` grows. `corrected=False` with uniform q is the negative sampling of the notes: simple, but biased.
    - "nce": `nce_loss`, noise contrastive estimation.
    - "negative": `negative_sampling_loss`, that of word2vec.

    In `eval()` mode the loss is the exact one of the full softmax. `weight` is (C, in_features), a row per class.
    """

    def __init__(
        self,
        in_features: int,
        num_classes: int,
        num_sampled: int,
        q: ArrayLike | None = None,
        loss: str = "softmax",
        corrected: bool = True,
        bias: bool = True,
        dtype: DTypeLike | None = None,
        key: KeyLike = None,
    ) -> None:
        self.in_features = as_int("SampledSoftmax", "in_features", in_features, 1)
        self.num_classes = as_int("SampledSoftmax", "num_classes", num_classes, 2)
        self.num_sampled = as_int("SampledSoftmax", "num_sampled", num_sampled, 1)
        if loss not in LOSSES:
            raise InputError(f"SampledSoftmax: loss={loss!r}.", "one of " + ", ".join(map(repr, LOSSES)))
        self.loss, self.corrected = loss, corrected
        key = take_key("SampledSoftmax", key)
        kind = dtypes.default_float if dtype is None else dtype
        with at_once(key):
            keys = split(key, 2)
            self.stream = Stream(keys[0])
            bound = 1 / math.sqrt(self.in_features)
            self.weight = Parameter(uniform((num_classes, in_features), -bound, bound, key=keys[1], dtype=kind))
            self.bias = Parameter(arrays.zeros(num_classes, dtype=kind)) if bias else None
        self.set_probabilities(np.full(num_classes, 1 / num_classes) if q is None else q)

    def set_probabilities(self, q: ArrayLike) -> None:
        """Draw samples with the probabilities q (classes,) from now on."""
        chances = np.asarray(q, np.float64)
        if chances.shape != (self.num_classes,):
            raise ShapeError(f"SampledSoftmax: q of shape {chances.shape}.", f"({self.num_classes},), one per class")
        if not (chances >= 0).all() or abs(chances.sum() - 1) > 1e-5:
            raise InputError("SampledSoftmax: q are no probabilities.", "0 or more each, with sum 1")
        cumulative = np.cumsum(chances / chances.sum())
        cumulative[np.flatnonzero(chances)[-1] :] = 1.0  # rounding must not leave room for a class of probability 0
        self.cumulative = Buffer(cumulative, persistent=False)
        with np.errstate(divide="ignore"):
            self.log_q = Buffer(np.log(chances), self.weight.dtype, persistent=False)

    def sample(self, shape: ShapeLike | None = None, *, key: KeyLike = None) -> Tensor:
        """Classes drawn from q: `num_sampled` of them, or of any shape."""
        shape = (self.num_sampled,) if shape is None else shape
        u = uniform(shape, key=self.stream if key is None else key, dtype=dtypes.float64)
        return arrays.searchsorted(self.cumulative, u, side="right")

    def forward(self, z: ArrayLike, y: ArrayLike) -> Tensor:
        if not self.training:
            return cross_entropy(self.logits(z), y)
        samples = self.sample()
        if self.loss == "negative":
            return negative_sampling_loss(z, self.weight, self.bias, y, samples)
        log_q = arrays.take(self.log_q, samples, axis=0)
        if self.loss == "nce":
            log_q_y = arrays.take(self.log_q, arrays.asarray(y), axis=0)
            return nce_loss(z, self.weight, self.bias, y, samples, log_q_y, log_q)
        return sampled_softmax_loss(z, self.weight, self.bias, y, samples, log_q if self.corrected else None)

    def logits(self, z: ArrayLike) -> Tensor:
        """All logits (..., classes)."""
        scores = as_real("SampledSoftmax", z) @ self.weight.mT
        return scores if self.bias is None else scores + self.bias

    def log_probs(self, z: ArrayLike) -> Tensor:
        """The log-probabilities (..., classes) of the full softmax."""
        return arrays.log_softmax(self.logits(z), axis=-1)

    def predict(self, z: ArrayLike) -> Tensor:
        """The most probable class (...), which needs no probabilities: it is the one with the largest logit."""
        return arrays.argmax(self.logits(z), axis=-1)

    def class_vectors(self) -> Tensor:
        """The vectors (classes, in_features) that codes are compared with; see `wl.models.MIPSIndex`."""
        return arrays.asarray(self.weight)

    def extra_repr(self) -> str:
        sizes = f"in_features={self.in_features}, num_classes={self.num_classes}, num_sampled={self.num_sampled}"
        return f"{sizes}, loss={self.loss!r}, corrected={self.corrected}"
