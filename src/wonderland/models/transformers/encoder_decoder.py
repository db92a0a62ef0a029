"""What encoder-decoder models share: a source is read once, and a sequence is written token by token. Book, 11.1.

    source (b, s) --embed_source--> --encoder--> memory (b, s, e)
                                                    | keys and values
    tokens (b, t) --embed---------> --decoder-----------------------> (b, t, e) --logits--> (b, t, vocabulary)

A subclass has two stacks, and says how sources and tokens become vectors and how vectors become logits.
"""

from __future__ import annotations

from ... import arrays
from ...core.errors import InputError
from ...core.tensor import Tensor
from ...core.typing import ArrayLike
from ...nn.attention.blocks import TransformerStack
from ...nn.module.module import Module
from ...nn.sequences.cache import LayerCaches
from ...nn.sequences.reading import one_more
from ...nn.sequences.token_masks import as_token_mask, places_of
from .language_model import as_tokens, last_of

__all__ = ["EncoderDecoder"]


class EncoderDecoder(Module):
    r"""The base of models of \(p(y \mid x) = \prod_i p(y_i \mid y_1, \dots, y_{i-1}, x)\). Book, sections 11.1, 11.1.3.

    `model(source, tokens)` gives logits (batch, t, vocabulary), those at place i for what follows `tokens[:, i]`. It is
    trained with teacher forcing: `tokens = wl.series.shift_right(targets, start=model.start_token)`. The encoder sees
    all of the source. The decoder's queries come from its own tokens, keys and values from what the encoder made of the
    source, the memory, so the two may have any lengths. `source_mask` (batch, s) or `source_lengths`, and `token_mask`
    (batch, t) or `lengths`, say what is real on either side.

    To write a sequence, the source is encoded once, and the keys and values of the memory are computed once:

        memory = model.encode(source, lengths=source_lengths)
        cache = model.new_cache(rows, capacity, memory, model.memory_mask(source, lengths=source_lengths))
        logits, cache = model.step(start_tokens, cache)

    `context` is the largest number of tokens that can be written, None if there is none.
    """

    vocabulary: int
    context: int | None
    start_token: int
    stop_tokens: tuple[int, ...] = ()  # at which `wl.generation` ends
    encoder: TransformerStack
    decoder: TransformerStack

    def embed_source(self, source: Tensor, places: Tensor) -> Tensor:
        """Vectors (batch, s, e) of a source's tokens at places."""
        raise NotImplementedError

    def embed(self, tokens: Tensor, places: Tensor) -> Tensor:
        """Vectors (batch, t, e) of the decoder's tokens at places."""
        raise NotImplementedError

    def logits(self, h: Tensor) -> Tensor:
        """Logits (..., vocabulary) from the decoder's results (..., e)."""
        raise NotImplementedError

    # --- the whole

    def encode(
        self, source: ArrayLike, token_mask: ArrayLike | None = None, lengths: ArrayLike | None = None
    ) -> Tensor:
        """The memory (batch, s, e) of sources (batch, s); what it holds for padding means nothing."""
        ids = as_tokens(self, source)
        real = as_token_mask(self._describe(), ids.shape, token_mask, lengths)
        ids = ids if real is None else arrays.where(real, ids, 0)  # padding may have a number of its own
        return self.encoder(self.embed_source(ids, places_of(real, ids.shape[1])), token_mask=real)

    def memory_mask(
        self, source: ArrayLike, token_mask: ArrayLike | None = None, lengths: ArrayLike | None = None
    ) -> Tensor | None:
        """Which tokens of the memory are real, (batch, s); None if all are."""
        return as_token_mask(self._describe(), arrays.asarray(source).shape[:2], token_mask, lengths)

    def decode(
        self,
        tokens: ArrayLike,
        memory: ArrayLike,
        memory_mask: ArrayLike | None = None,
        token_mask: ArrayLike | None = None,
        lengths: ArrayLike | None = None,
    ) -> Tensor:
        """Logits (batch, t, vocabulary) of tokens (batch, t), given a memory (batch, s, e)."""
        ids = as_tokens(self, tokens)
        real = as_token_mask(self._describe(), ids.shape, token_mask, lengths)
        ids = ids if real is None else arrays.where(real, ids, 0)
        if self.context is not None and ids.shape[1] > self.context:
            raise InputError(
                f"{self._describe()}: {ids.shape[1]} tokens, and a context of {self.context}.",
                f"at most {self.context} tokens at once, or a model with a larger context",
            )
        h = self.embed(ids, places_of(real, ids.shape[1]))  # (b, t, e)
        return self.logits(self.decoder(h, memory, token_mask=real, memory_mask=memory_mask))

    def forward(
        self,
        source: ArrayLike,
        tokens: ArrayLike,
        source_mask: ArrayLike | None = None,
        source_lengths: ArrayLike | None = None,
        token_mask: ArrayLike | None = None,
        lengths: ArrayLike | None = None,
    ) -> Tensor:
        memory = self.encode(source, source_mask, source_lengths)  # (b, s, e)
        real = self.memory_mask(source, source_mask, source_lengths)
        return self.decode(tokens, memory, real, token_mask, lengths)

    # --- reading on

    def new_cache(
        self, rows: int, capacity: int, memory: ArrayLike, memory_mask: ArrayLike | None = None
    ) -> LayerCaches:
        """A cache for so many sequences of up to `capacity` tokens, which holds the keys and values of their memory."""
        return self.decoder.new_cache(rows, capacity, memory, memory_mask)

    def extend(
        self, tokens: ArrayLike, cache: LayerCaches, lengths: ArrayLike | None = None, last: bool = False
    ) -> tuple[Tensor, LayerCaches]:
        """Logits (batch, t, vocabulary) of further tokens (batch, t), of which `lengths` are real, and the cache.

        With `last` only those after the last real token of each row, (batch, vocabulary).
        """
        ids = as_tokens(self, tokens)
        if cache is None:
            raise InputError(
                f"{self._describe()}: no cache, which holds what the decoder attends to.",
                "model.new_cache(rows, capacity, model.encode(source))",
            )
        real = as_token_mask(self._describe(), ids.shape, None, lengths)
        ids = ids if real is None else arrays.where(real, ids, 0)
        places = arrays.expand_dims(cache.lengths, -1) + arrays.arange(ids.shape[1])
        if real is not None:  # padding has no places of its own, which might be beyond the context
            after = cache.lengths + arrays.sum(real, axis=-1)
            places = arrays.minimum(places, arrays.maximum(arrays.expand_dims(after, -1) - 1, 0))
        h, cache = self.decoder.extend(self.embed(ids, places), cache, lengths)
        return self.logits(last_of(h, lengths) if last else h), cache

    def step(self, token: ArrayLike, cache: LayerCaches) -> tuple[Tensor, LayerCaches]:
        """Logits (batch, vocabulary) after one more token (batch,), and the cache with it."""
        return one_more(self.extend, token, cache)
