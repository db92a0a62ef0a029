"""Models of any layers over sequences: a language model, a label for each token, a class for each sequence.

    tokens or values (b, t) --embed--> (b, t, e) --encoder--> (b, t, e) --+--> scores of each token
                                                                          +--> one vector --> scores of the sequence

Notes, sections 5.3 and 5.4; book, section 13.4.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from ... import arrays
from ...core import dtypes
from ...core.arguments import as_int, shown
from ...core.errors import InputError, ShapeError
from ...core.tensor import Tensor
from ...core.typing import ArrayLike, DTypeLike, KeyLike
from ...nn.functional.global_pooling import global_avg_pool
from ...nn.layers.linear import Linear
from ...nn.mixing.mixing_block import NormLike, as_norm
from ...nn.module.module import Module
from ...nn.recurrent.recurrent import end_places
from ...nn.sequences.stack import SequenceStack
from ...nn.sequences.token_masks import as_token_mask, silenced
from ...random.keys import split
from ...random.streams import take_key
from ..transformers.language_model import CausalLanguageModel
from ..transformers.seq2seq import table

__all__ = ["SeriesClassifier", "SequenceLabeller", "SequenceLanguageModel"]


class SequenceLanguageModel(CausalLanguageModel):
    r"""A language model of any blocks that read on: tokens (batch, time) to logits. Book, sections 11.2.4 and 13.4.

    >>> import wonderland as wl
    >>> e = 16
    >>> blocks = [wl.nn.MixingBlock(wl.nn.Recurrent(wl.nn.GRUCell(e, e)), e, norm="rms") for _ in range(2)]
    >>> model = wl.models.SequenceLanguageModel(65, e, blocks)
    >>> wl.generation.generate(model, [1, 2, 3], 5, key=wl.random.key(0)).shape
    (8,)

    Blocks take `block(x, token_mask=...)` and have `new_cache`, `extend` and `step`: attention, recurrent layers,
    state-space models, and mixtures of them. `norm` acts after the last one. With `tied` logits come from the table of
    the tokens, which start from \(N(0, 1/e)\) and are multiplied by \(\sqrt e\) when they are read. Without the blocks
    there are V e parameters, those of the norm, and V e more if not `tied`.
    """

    def __init__(
        self,
        vocabulary: int,
        embed_dim: int,
        blocks: Sequence[Module],
        *,
        norm: NormLike = "rms",
        tied: bool = True,
        context: int | None = None,
        dtype: DTypeLike | None = None,
        key: KeyLike = None,
    ) -> None:
        name = "SequenceLanguageModel"
        self.vocabulary = as_int(name, "vocabulary", vocabulary, 1)
        self.embed_dim = as_int(name, "embed_dim", embed_dim, 1)
        self.context = None if context is None else as_int(name, "context", context, 1)
        keys = split(take_key(name, key), 2)
        self.tokens = table(self.vocabulary, self.embed_dim, dtype, keys[0])
        self.stack = SequenceStack(blocks, as_norm(name, norm, self.embed_dim, dtype))
        self.head = None if tied else Linear(self.embed_dim, self.vocabulary, bias=False, dtype=dtype, key=keys[1])

    def embed(self, tokens: Tensor, places: Tensor) -> Tensor:
        return self.tokens(tokens) * math.sqrt(self.embed_dim)

    def logits(self, h: Tensor) -> Tensor:
        return self.tokens.attend(h) if self.head is None else self.head(h)

    def extra_repr(self) -> str:
        return f"vocabulary={self.vocabulary}, context={self.context}"


class _Encoded(Module):
    """Sequences that are embedded, encoded, and given scores."""

    def __init__(
        self, encoder: Module, features: int, classes: int, embed: Module | None, dtype: DTypeLike | None, key: KeyLike
    ) -> None:
        name = type(self).__name__
        self.embed, self.encoder = embed, encoder
        self.features, self.classes = as_int(name, "features", features, 1), as_int(name, "classes", classes, 1)
        self.head = Linear(self.features, self.classes, dtype=dtype, key=take_key(name, key))

    def _encoded(
        self, x: ArrayLike, token_mask: ArrayLike | None, lengths: ArrayLike | None
    ) -> tuple[Tensor, Tensor | None]:
        """Contextualised representations (batch, time, features), and which tokens are real."""
        values = arrays.asarray(x)
        tokens = dtypes.is_integer(values.dtype)
        if values.ndim != (2 if tokens else 3) or (tokens and self.embed is None):
            raise ShapeError(
                f"{self._describe()}: an input {values.dtype}{list(values.shape)}.",
                "(batch, time, features), or with an embedding integers (batch, time)",
            )
        real = as_token_mask(self._describe(), values.shape[:2], token_mask, lengths)
        values = silenced(values, real)
        h = values if self.embed is None else silenced(self.embed(values), real)
        h = self.encoder(h) if real is None else self.encoder(h, token_mask=real)
        if h.ndim != 3 or h.shape[:2] != values.shape[:2] or h.shape[-1] != self.features:
            raise ShapeError(
                f"{self._describe()}: the encoder makes {h.shape} of {values.shape}.",
                f"(batch, time, {self.features}): features={h.shape[-1]}?",
            )
        return silenced(h, real), real

    def extra_repr(self) -> str:
        return f"{self.features}, {self.classes}"


class SequenceLabeller(_Encoded):
    r"""\(y_t = z_t W + b\), scores for each token from its representation in context. Notes, section 5.3.

    >>> import wonderland as wl
    >>> encoder = wl.models.RNNEncoder("lstm", 8, 16, bidirectional=True)
    >>> model = wl.models.SequenceLabeller(encoder, encoder.size, classes=5, embed=wl.nn.Embedding(100, 8))
    >>> model(wl.zeros((2, 7), dtype=wl.int64), lengths=[7, 4]).shape
    (2, 7, 5)

    The encoder is any layer `encoder(x, token_mask=...)` that keeps the time, with so many `features`; one that reads
    both ways lets a label depend on what comes later. `embed` is a table of tokens, or a linear layer for inputs of
    other features. Padding has scores 0 and is not seen; `wl.series.sequence_loss(scores, labels, mask,
    loss=wl.nn.functional.cross_entropy)` leaves it out. With a causal encoder and numbers for scores it forecasts the
    next value at each step. There are (features + 1) classes parameters beside those of the parts.
    """

    def __init__(
        self,
        encoder: Module,
        features: int,
        classes: int,
        *,
        embed: Module | None = None,
        dtype: DTypeLike | None = None,
        key: KeyLike = None,
    ) -> None:
        super().__init__(encoder, features, classes, embed, dtype, key)

    def forward(self, x: ArrayLike, token_mask: ArrayLike | None = None, lengths: ArrayLike | None = None) -> Tensor:
        h, real = self._encoded(x, token_mask, lengths)
        return silenced(self.head(h), real)


class SeriesClassifier(_Encoded):
    r"""Scores of whole sequences, from what is known at their end or from the mean over tokens. Notes, section 5.3.

    >>> import wonderland as wl
    >>> encoder = wl.models.RNNEncoder("gru", 3, 16, bidirectional=True)
    >>> model = wl.models.SeriesClassifier(encoder, encoder.size, classes=10)
    >>> model(wl.ones((2, 50, 3)), lengths=[50, 20]).shape
    (2, 10)

    `pooling` is "last", the result at the last real token (of an `RNNEncoder` that of both directions, where each has
    read everything), or "mean", over the real tokens. Other arguments are those of `SequenceLabeller`.
    """

    def __init__(
        self,
        encoder: Module,
        features: int,
        classes: int,
        *,
        embed: Module | None = None,
        pooling: str = "last",
        dtype: DTypeLike | None = None,
        key: KeyLike = None,
    ) -> None:
        super().__init__(encoder, features, classes, embed, dtype, key)
        if pooling not in ("last", "mean"):
            raise InputError(f"SeriesClassifier: pooling={shown(pooling)}.", "'last' or 'mean'")
        self.pooling = pooling

    def forward(self, x: ArrayLike, token_mask: ArrayLike | None = None, lengths: ArrayLike | None = None) -> Tensor:
        h, real = self._encoded(x, token_mask, lengths)
        if self.pooling == "mean":
            return self.head(global_avg_pool(h, axes=1, mask=real))
        ends = getattr(self.encoder, "at_end", _at_end)
        return self.head(ends(h, real))


def _at_end(h: Tensor, real: Tensor | None) -> Tensor:
    """The vectors of the last real tokens, (batch, e); zeros of a sequence without one."""
    if real is None or not h.shape[1]:
        return h[:, -1] if h.shape[1] else arrays.zeros((h.shape[0], h.shape[2]), dtype=h.dtype)
    return arrays.take_along_axis(h, end_places(real)[1][:, None, None], axis=1)[:, 0]
