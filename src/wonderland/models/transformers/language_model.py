"""What decoder-only language models share: tokens in, logits of the next token out, at once or read on.

    tokens (b, t) --embed--> (b, t, e) --stack--> (b, t, e) --logits--> (b, t, vocabulary)

A subclass has a `stack` of causal blocks, and says how tokens become vectors and vectors become logits.
"""

from __future__ import annotations

from ... import arrays
from ...core import dtypes
from ...core.errors import DTypeError, InputError, ShapeError
from ...core.tensor import Tensor
from ...core.typing import ArrayLike
from ...nn.module.module import Module
from ...nn.sequences.cache import LayerCaches
from ...nn.sequences.reading import one_more
from ...nn.sequences.stack import SequenceStack
from ...nn.sequences.token_masks import as_token_mask, places_of

__all__ = ["CausalLanguageModel"]


class CausalLanguageModel(Module):
    """The base of GPT, LLaMA, Mamba and relatives. Book, sections 11.2.4 and 13.4.

    `model(tokens)` gives logits (batch, time, vocabulary), those at place i for token i + 1. `token_mask` (batch, time)
    or `lengths` (batch,) say which tokens are real; padding may be on either side. `extend` and `step` read on with a
    `Cache` and give the same logits. `context` is the largest number of tokens, None if there is none. `wl.generation`
    begins an empty text with the `start_token` and ends one at the `stop_tokens`, if the model has them.
    """

    vocabulary: int
    context: int | None
    start_token: int | None = None
    stop_tokens: tuple[int, ...] = ()
    stack: SequenceStack

    def embed(self, tokens: Tensor, places: Tensor) -> Tensor:
        """Vectors (batch, time, e) of tokens at places."""
        raise NotImplementedError

    def logits(self, h: Tensor) -> Tensor:
        """Logits (..., vocabulary) from the stack's results (..., e)."""
        raise NotImplementedError

    def forward(
        self, tokens: ArrayLike, token_mask: ArrayLike | None = None, lengths: ArrayLike | None = None
    ) -> Tensor:
        ids = as_tokens(self, tokens)  # (b, t)
        real = as_token_mask(self._describe(), ids.shape, token_mask, lengths)
        ids = ids if real is None else arrays.where(real, ids, 0)  # padding may have a number of its own
        self._check_length(ids.shape[-1])
        h = self.embed(ids, places_of(real, ids.shape[-1]))  # (b, t, e)
        return self.logits(self.stack(h, token_mask=real))

    def new_cache(self, rows: int, capacity: int = 0) -> LayerCaches:
        """A cache for so many sequences, with room for `capacity` tokens each."""
        return self.stack.new_cache(rows, capacity)

    def extend(
        self,
        tokens: ArrayLike,
        cache: LayerCaches | None = None,
        lengths: ArrayLike | None = None,
        last: bool = False,
    ) -> tuple[Tensor, LayerCaches]:
        """Logits (batch, t, vocabulary) of further tokens (batch, t), of which `lengths` are real, and the cache.

        With `last` only those after the last real token of each row, (batch, vocabulary).
        """
        ids = as_tokens(self, tokens)
        kept = self.new_cache(*ids.shape) if cache is None else cache
        real = as_token_mask(self._describe(), ids.shape, None, lengths)
        ids = ids if real is None else arrays.where(real, ids, 0)
        places = arrays.expand_dims(kept.lengths, -1) + arrays.arange(ids.shape[1])
        if real is not None:  # padding has no places of its own, which might be beyond the context
            after = kept.lengths + arrays.sum(real, axis=-1)
            places = arrays.minimum(places, arrays.maximum(arrays.expand_dims(after, -1) - 1, 0))
        h, kept = self.stack.extend(self.embed(ids, places), kept, lengths)
        if last:
            h = last_of(h, lengths)
        return self.logits(h), kept

    def step(self, token: ArrayLike, cache: LayerCaches | None = None) -> tuple[Tensor, LayerCaches]:
        """Logits (batch, vocabulary) after one more token (batch,), and the cache with it."""
        return one_more(self.extend, token, cache)

    def _check_length(self, count: int) -> None:
        if self.context is not None and count > self.context:
            raise InputError(
                f"{self._describe()}: {count} tokens, and a context of {self.context}.",
                f"at most {self.context} tokens at once, or a model with a larger context",
            )


def as_tokens(model: Module, tokens: ArrayLike) -> Tensor:
    """Integers (batch, time)."""
    ids = arrays.asarray(tokens)
    if not dtypes.is_integer(ids.dtype):
        raise DTypeError(f"{model._describe()}: tokens of {ids.dtype}.", "integers, as `tokenizer.encode` gives them")
    if ids.ndim != 2:
        raise ShapeError(
            f"{model._describe()}: tokens of shape {ids.shape}.", "(batch, time); tokens[None] for one row"
        )
    return ids


def last_of(h: Tensor, lengths: ArrayLike | None) -> Tensor:
    """The vector of the last real token of each row: (batch, t, e) to (batch, e); the first one if there is none."""
    if lengths is None:
        return h[:, -1]
    index = arrays.maximum(arrays.asarray(lengths) - 1, 0)
    return arrays.take_along_axis(h, arrays.reshape(index, (-1, 1, 1)), axis=1)[:, 0]
