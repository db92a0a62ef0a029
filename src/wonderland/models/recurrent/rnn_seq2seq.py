"""Recurrent encoder-decoders: through one vector, or with attention to the whole source. Notes, 5.4.3 and 5.5.4.

source (b, s) --> embed --> recurrent layers, both ways --> annotations h_1, ..., h_s (b, s, 2D)
                                                                | last states: the thought vector
                                                                v bridge, 2D to D
tokens (b, t) --> embed ------------> recurrent layers from the state s_0 --> logits (b, t, vocabulary)
                             ^
                attention: c_t = sum_j alpha_tj h_j,  alpha_t = softmax_j a(s_{t-1}, h_j)
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import partial
from typing import TypeAlias

from ... import arrays
from ...core import dtypes
from ...core.arguments import as_int
from ...core.errors import InputError, ShapeError
from ...core.tensor import Tensor
from ...core.typing import ArrayLike, DTypeLike, KeyLike
from ...nn.attention.single_head import AdditiveScore
from ...nn.functional.attention_weights import attention_from_scores
from ...nn.layers.dropout import Dropout
from ...nn.layers.linear import Linear
from ...nn.module.containers import ModuleList
from ...nn.module.module import Module
from ...nn.module.parameter import Buffer, Held
from ...nn.recurrent.bidirectional import Bidirectional
from ...nn.recurrent.recurrent import end_places
from ...nn.sequences.cache import Cache, LayerCaches, StateCache
from ...nn.sequences.state_layer import State
from ...nn.sequences.token_masks import as_sequence, as_token_mask, places_of, silenced
from ...random.keys import split
from ...random.streams import take_key
from ...transforms.control.loops import scan
from ..transformers.encoder_decoder import EncoderDecoder
from ..transformers.language_model import as_tokens, last_of
from ..transformers.seq2seq import as_start, table
from .blocks import CellLike, one_step, recurrent_layer

__all__ = ["RNNEncoder", "RNNSeq2Seq"]

States: TypeAlias = list[State]
Attended: TypeAlias = tuple[Tensor, Tensor, Tensor]  # annotations, what scores need of them, which are real


class RNNEncoder(Module):
    """Recurrent layers over a whole sequence, one way or both: (batch, s, in) to (batch, s, size). Notes, 5.3.

    >>> import wonderland as wl
    >>> encoder = wl.models.RNNEncoder("gru", 4, 6, depth=2, bidirectional=True)
    >>> encoder(wl.ones((2, 5, 4))).shape, encoder.size
    ((2, 5, 12), 12)

    The result at each place is a representation of the token in its context. With `bidirectional` a second layer runs
    from the last real token to the first, and both results stand side by side. `at_end` gives one vector for each
    sequence: what each direction knows at its end, the thought vector.
    """

    def __init__(
        self,
        cell: CellLike,
        input_size: int,
        hidden_size: int,
        depth: int = 1,
        bidirectional: bool = False,
        dropout: float = 0.0,
        dtype: DTypeLike | None = None,
        key: KeyLike = None,
    ) -> None:
        name = type(self).__name__
        layers, h = as_int(name, "depth", depth, 1), as_int(name, "hidden_size", hidden_size, 1)
        self.input_size = as_int(name, "input_size", input_size, 1)
        self.size = 2 * h if bidirectional else h
        keys = split(take_key(name, key), 2 * layers)
        sizes = [self.input_size, *[self.size] * (layers - 1)]
        layer = partial(recurrent_layer, cell, hidden_size=h, dtype=dtype)
        self.bidirectional = bool(bidirectional)
        self.layers = ModuleList(
            [
                Bidirectional(layer(n, key=a), layer(n, key=b)) if bidirectional else layer(n, key=a)
                for n, a, b in zip(sizes, keys[::2], keys[1::2], strict=True)
            ]
        )
        self.dropout = Dropout(dropout) if dropout else None

    def forward(self, x: ArrayLike, token_mask: ArrayLike | None = None, lengths: ArrayLike | None = None) -> Tensor:
        h = as_sequence(self, x, self.input_size)
        real = as_token_mask(self._describe(), h.shape[:-1], token_mask, lengths)
        for i, layer in enumerate(self.layers):
            if i and self.dropout is not None:
                h = self.dropout(h)
            h = layer(h, token_mask=real)
        return h

    def at_end(self, h: ArrayLike, token_mask: ArrayLike | None = None, lengths: ArrayLike | None = None) -> Tensor:
        """What is known at the end, (batch, size), from results (batch, s, size); zeros if there is no token."""
        h = as_sequence(self, h, self.size)
        real = as_token_mask(self._describe(), h.shape[:-1], token_mask, lengths)
        if not h.shape[-2]:
            return arrays.zeros((*h.shape[:-2], h.shape[-1]), dtype=h.dtype)
        h = silenced(h, real)
        first, last = end_places(arrays.ones(h.shape[:-1], dtype=dtypes.bool_) if real is None else real)
        half = self.size // (2 if self.bidirectional else 1)
        end = arrays.take_along_axis(h[..., :half], last[..., None, None], axis=-2)[..., 0, :]
        if not self.bidirectional:
            return end
        begin = arrays.take_along_axis(h[..., half:], first[..., None, None], axis=-2)[..., 0, :]
        return arrays.concat([end, begin], axis=-1)

    def extra_repr(self) -> str:
        return f"{self.input_size}, {self.size}"


class AttendingCaches(LayerCaches):
    """The states of a decoder, and what it attends to: annotations, their part of the scores, which are real."""

    memory: Held[Buffer]
    keys: Held[Buffer]
    real: Held[Buffer]

    def __init__(self, layers: Iterable[Cache], memory: Tensor, keys: Tensor, real: Tensor) -> None:
        super().__init__(layers)
        self.memory, self.keys, self.real = Buffer(memory), Buffer(keys), Buffer(real)

    def attended(self) -> Attended:
        """All three, as they are now."""
        return self.memory + 0, self.keys + 0, self.real & True


class RNNSeq2Seq(EncoderDecoder):
    r"""\(p(y \mid x) = \prod_t p(y_t \mid s_t)\) with recurrent layers: through a thought vector, or with attention.

    >>> import wonderland as wl
    >>> model = wl.models.RNNSeq2Seq(13, embed_dim=32, attention=True)
    >>> source, targets = wl.ones((8, 20), dtype=wl.int64), wl.ones((8, 5), dtype=wl.int64)
    >>> tokens = wl.series.shift_right(targets, start=model.start_token)
    >>> model(source, tokens).shape, model.alignment(source, tokens).shape
    ((8, 5, 13), (8, 5, 20))
    >>> rows = wl.generation.greedy(model, None, 10, source=source)

    The encoder (`RNNEncoder`) reads the source, in both directions unless `bidirectional=False`. What it knows at its
    end is brought from 2D to D numbers by a linear layer and tanh, the bridge, and becomes the first state of the
    decoder: without attention all that the decoder knows of the source. Notes, section 5.4.3.

    With `attention` the first layer of the decoder sees a context at each step, \(c_t = \sum_j \alpha_{tj} h_j\), with
    weights \(\alpha_{tj}\) from additive scores of its state before, \(q = s_{t-1}\), and the annotations \(h_j\) of
    the source (Bahdanau, Cho and Bengio, 2015; `AdditiveScore`); so do the logits. Padding of the source has no weight,
    and if all is padding the context is 0. `alignment` gives the weights, of which `wl.nn.attention_picture` makes a
    picture. Notes, section 5.5.4.

    `cell` is that of both sides, "gru", "lstm", "rnn" or a function of sizes, unless `decoder_cell` is another: the
    bridge makes its states. `hidden_size` D is e by default. Source and target share a table of tokens unless there is
    a `source_vocabulary`. Other calls are those of `EncoderDecoder`.
    """

    context = None
    encoder: RNNEncoder  # type: ignore[assignment]  # as the base calls them
    decoder: ModuleList  # type: ignore[assignment]

    def __init__(
        self,
        vocabulary: int,
        source_vocabulary: int | None = None,
        *,
        embed_dim: int = 128,
        hidden_size: int | None = None,
        encoder_layers: int = 1,
        decoder_layers: int = 1,
        cell: CellLike = "gru",
        decoder_cell: CellLike | None = None,
        bidirectional: bool = True,
        attention: bool = True,
        start_token: int = 1,
        dropout: float = 0.0,
        dtype: DTypeLike | None = None,
        key: KeyLike = None,
    ) -> None:
        name = "RNNSeq2Seq"
        e = self.embed_dim = as_int(name, "embed_dim", embed_dim, 1)
        h = self.hidden_size = e if hidden_size is None else as_int(name, "hidden_size", hidden_size, 1)
        self.vocabulary = as_int(name, "vocabulary", vocabulary, 1)
        self.start_token = as_start(name, start_token, self.vocabulary)
        depth = as_int(name, "decoder_layers", decoder_layers, 1)
        keys = split(take_key(name, key), depth + 6)
        self.tokens = table(self.vocabulary, e, dtype, keys[0])
        self.source_tokens = None
        if source_vocabulary is not None:
            self.source_tokens = table(as_int(name, "source_vocabulary", source_vocabulary, 1), e, dtype, keys[1])
        self.dropout = Dropout(dropout) if dropout else None
        self.encoder = RNNEncoder(cell, e, h, encoder_layers, bidirectional, dropout, dtype, keys[2])
        seen = self.encoder.size if attention else 0
        kind = cell if decoder_cell is None else decoder_cell
        self.decoder = ModuleList(
            [recurrent_layer(kind, (h if i else e) + seen, h, dtype, keys[6 + i]) for i in range(depth)]
        )
        self.score = AdditiveScore(h, self.encoder.size, h, dtype=dtype, key=keys[3]) if attention else None
        wanted = sum(math.prod(shape) for layer in self.decoder for shape in layer.state_shapes().values())
        self.bridge = Linear(self.encoder.size, wanted, dtype=dtype, key=keys[4])
        self.head = Linear(h + seen, self.vocabulary, dtype=dtype, key=keys[5])

    def embed_source(self, source: Tensor, places: Tensor) -> Tensor:
        return self._embedded(self.source_tokens or self.tokens, source)

    def embed(self, tokens: Tensor, places: Tensor) -> Tensor:
        return self._embedded(self.tokens, tokens)

    def _embedded(self, tokens: Module, ids: Tensor) -> Tensor:
        x = tokens(ids) * math.sqrt(self.embed_dim)
        return x if self.dropout is None else self.dropout(x)

    def logits(self, h: Tensor) -> Tensor:
        return self.head(h if self.dropout is None else self.dropout(h))

    # --- the whole

    def thought_vector(self, memory: ArrayLike, memory_mask: ArrayLike | None = None) -> Tensor:
        """The source as one vector (batch, size), from the encoder's results (batch, s, size)."""
        return self.encoder.at_end(memory, memory_mask)

    def decode(
        self,
        tokens: ArrayLike,
        memory: ArrayLike,
        memory_mask: ArrayLike | None = None,
        token_mask: ArrayLike | None = None,
        lengths: ArrayLike | None = None,
    ) -> Tensor:
        return self.logits(self._decoded(tokens, memory, memory_mask, token_mask, lengths)[0])

    def alignment(
        self,
        source: ArrayLike,
        tokens: ArrayLike,
        source_mask: ArrayLike | None = None,
        source_lengths: ArrayLike | None = None,
    ) -> Tensor:
        r"""The weights \\(\alpha\\) (batch, t, s) with which the decoder looks at the source while it reads tokens.

        >>> import wonderland as wl
        >>> model = wl.models.RNNSeq2Seq(13, embed_dim=8)
        >>> weights = model.alignment(wl.tensor([[5, 6, 7]]), wl.tensor([[1, 7]]))
        >>> svg = wl.nn.attention_picture(weights[0], ["<s>", "7"], ["5", "6", "7"], title="alignment")

        Row i has the weights for the token after `tokens[:, i]`; they sum to 1, and padding has none.
        """
        if self.score is None:
            raise InputError(f"{self._describe()}: a model without attention has no alignment.", "attention=True")
        memory = self.encode(source, source_mask, source_lengths)
        found = self._decoded(tokens, memory, self.memory_mask(source, source_mask, source_lengths), None, None)[1]
        assert found is not None
        return found

    def _decoded(
        self,
        tokens: ArrayLike,
        memory: ArrayLike,
        memory_mask: ArrayLike | None,
        token_mask: ArrayLike | None,
        lengths: ArrayLike | None,
    ) -> tuple[Tensor, Tensor | None]:
        ids = as_tokens(self, tokens)
        real = as_token_mask(self._describe(), ids.shape, token_mask, lengths)
        ids = ids if real is None else arrays.where(real, ids, 0)
        start, attended = self._start(memory, memory_mask, ids.shape[0])
        h, _, weights = self._run(self.embed(ids, places_of(real, ids.shape[1])), start, attended, real)
        return h, weights

    def _start(self, memory: ArrayLike, memory_mask: ArrayLike | None, rows: int) -> tuple[States, Attended | None]:
        """The states before the first token, and what is attended to."""
        m = arrays.asarray(memory)
        if m.ndim != 3 or m.shape[0] != rows or m.shape[2] != self.encoder.size:
            raise ShapeError(
                f"{self._describe()}: {rows} rows, a memory of {m.shape[0] if m.ndim else 0} rows, shape {m.shape}.",
                f"({rows}, s, {self.encoder.size})",
            )
        real = as_token_mask(self._describe(), m.shape[:2], memory_mask)
        m = silenced(m, real)
        flat = arrays.tanh(self.bridge(self.thought_vector(m, real)))  # (rows, all states)
        states, at = [], 0
        for layer in self.decoder:
            parts = {}
            for name, shape in layer.state_shapes().items():
                size = math.prod(shape)
                parts[name] = arrays.reshape(flat[:, at : at + size], (rows, *shape))
                at += size
            states.append(parts)
        if self.score is None:
            return states, None
        seen = arrays.ones(m.shape[:2], dtype=dtypes.bool_) if real is None else real
        return states, (m, self.score.key(m), seen)

    def _run(
        self, x: Tensor, states: States, attended: Attended | None, real: Tensor | None
    ) -> tuple[Tensor, States, Tensor | None]:
        """Results (rows, t, ...) of further tokens from the states before them, the states after, and weights."""
        weights = None
        h, after = silenced(x, real), []
        for i, (layer, state) in enumerate(zip(self.decoder, states, strict=True)):
            if i and self.dropout is not None:
                h = self.dropout(h)
            if attended is None:
                h, state = layer.run(h, state, real)
            elif i == 0:
                h, context, weights, state = self._attending(h, state, attended, real)
            else:
                h, state = layer.run(arrays.concat([h, context], axis=-1), state, real)
            h = silenced(h, real)
            after.append(state)
        return (h if attended is None else arrays.concat([h, context], axis=-1)), after, weights

    def _attending(
        self, x: Tensor, state: State, attended: Attended, real: Tensor | None
    ) -> tuple[Tensor, Tensor, Tensor, State]:
        """The first layer with attention: what is looked at depends on the state before the step."""
        score, layer = self.score, self.decoder[0]
        assert score is not None
        memory, keys, seen = attended
        part = next(iter(state))  # the state that is an output

        def step(before: State, now: tuple[Tensor, Tensor | None]) -> tuple[State, tuple[Tensor, Tensor, Tensor]]:
            query = arrays.expand_dims(score.query(before[part]), -2)
            scores = score.output(arrays.tanh(query + keys))[..., 0]  # (rows, s)
            context, weights = attention_from_scores(scores[:, None], memory, seen[:, None])
            y, after = one_step(layer, arrays.concat([now[0], context[:, 0]], axis=-1), before)
            if now[1] is not None:
                held = arrays.expand_dims(now[1], -1)
                after = {name: arrays.where(held, value, before[name]) for name, value in after.items()}
            return after, (y, context[:, 0], weights[:, 0])

        times = arrays.swapaxes(x, 0, 1), None if real is None else arrays.swapaxes(real, 0, 1)
        state, found = scan(step, state, times)
        h, context, weights = (arrays.swapaxes(part, 0, 1) for part in found)
        return h, silenced(context, real), weights, state

    # --- reading on

    def new_cache(
        self, rows: int, capacity: int, memory: ArrayLike, memory_mask: ArrayLike | None = None
    ) -> LayerCaches:
        """The states that the source leads to; with attention also the annotations."""
        states, attended = self._start(memory, memory_mask, rows)
        layers = [StateCache(rows, **state) for state in states]
        return LayerCaches(layers) if attended is None else AttendingCaches(layers, *attended)

    def extend(
        self, tokens: ArrayLike, cache: LayerCaches, lengths: ArrayLike | None = None, last: bool = False
    ) -> tuple[Tensor, LayerCaches]:
        ids = as_tokens(self, tokens)
        if cache is None:
            raise InputError(
                f"{self._describe()}: no cache, which holds what the source leads to.",
                "model.new_cache(rows, capacity, model.encode(source))",
            )
        real = as_token_mask(self._describe(), ids.shape, None, lengths)
        ids = ids if real is None else arrays.where(real, ids, 0)
        attended = cache.attended() if isinstance(cache, AttendingCaches) else None
        x = self.embed(ids, arrays.arange(ids.shape[1]))
        h, states, _ = self._run(x, [part.state for part in cache.layers], attended, real)
        count = ids.shape[1] if lengths is None else arrays.asarray(lengths)
        for part, state in zip(cache.layers, states, strict=True):
            for name, value in state.items():
                setattr(part, name, value)
            part.advance(count)
        cache.advance(count)
        return self.logits(last_of(h, lengths) if last else h), cache

    def extra_repr(self) -> str:
        return f"vocabulary={self.vocabulary}, start_token={self.start_token}, attention={self.score is not None}"
