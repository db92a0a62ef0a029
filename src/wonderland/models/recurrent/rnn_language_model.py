"""Recurrent language models: a decoder that draws its tokens, alone or given something. Notes, section 5.4.2.

token x_{t-1} --embed--> + condition c + covariates v_t --> [ recurrent layer ] x depth --> logits of x_t

z_t = f(z_{t-1}, x_{t-1}),   x_t ~ p(x_t | z_t)          the state z_t of an LSTM is the pair (c_t, h_t)
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from ... import arrays
from ...arrays.conversion import as_real
from ...core import dtypes
from ...core.arguments import as_int
from ...core.errors import InputError, ShapeError
from ...core.tensor import Tensor
from ...core.typing import ArrayLike, DTypeLike, KeyLike
from ...nn.layers.dropout import Dropout
from ...nn.layers.linear import Linear
from ...nn.module.module import Module
from ...nn.module.parameter import Buffer, Held
from ...nn.sequences.cache import Cache, LayerCaches
from ...nn.sequences.reading import one_more
from ...nn.sequences.token_masks import as_token_mask, places_of, silenced
from ...random.keys import split
from ...random.streams import take_key
from ..transformers.language_model import CausalLanguageModel, as_tokens, last_of
from ..transformers.seq2seq import table
from .blocks import CellLike, recurrent_stack

__all__ = ["GivenModel", "RNNLanguageModel"]


class GivenCaches(LayerCaches):
    """The states of a model, and what it is given: a condition (rows, e), covariates of places (rows, n, e)."""

    condition: Held[Buffer]
    covariates: Held[Buffer]

    def __init__(self, layers: Iterable[Cache], condition: Tensor | None, covariates: Tensor | None) -> None:
        super().__init__(layers)
        if condition is not None:
            self.condition = Buffer(condition)
        if covariates is not None:
            self.covariates = Buffer(covariates)


class RNNLanguageModel(CausalLanguageModel):
    r"""\(z_t = f(z_{t-1}, x_{t-1}),\ x_t \sim p(x_t \mid z_t)\): tokens (batch, time) to logits. Notes, section 5.4.2.

    >>> import wonderland as wl
    >>> model = wl.models.RNNLanguageModel(vocabulary=65, embed_dim=64, depth=2, cell="lstm")
    >>> model(wl.zeros((8, 100), dtype=wl.int64)).shape
    (8, 100, 65)
    >>> wl.generation.generate(model, [1, 2, 3], 5, key=wl.random.key(0)).shape
    (8,)

    `cell` is "lstm", "gru", "rnn" or a function of sizes (see `recurrent_layer`), `depth` the number of layers and
    `hidden_size` their width, e by default. With `residual` each layer is added to its input, which deep stacks need.
    `tied` (only for equal sizes) takes the table of the tokens for the logits. Dropout acts on the embeddings and after
    each layer. The state has a fixed size, so a text may go on for ever.

    With V tokens, e features, hidden size h, L layers and g = 4, 3 or 1 gates of an LSTM, GRU or RNN there are
    V e + g h (e + h + 2) + (L - 1) g h (2h + 2) parameters; without `tied` (h + 1) V more, with `residual` (L + 1) h.

    `condition` is the number of features of something that is given for a whole sequence, \(p(x_t \mid x_{<t}, c)\):
    `model(tokens, condition=c)` with c (batch, condition), or integers (batch,) that are classes. `covariates` is that
    of what is known at each step (a date, a weekday): `model(tokens, covariates=v)` with v (batch, time, covariates),
    those at place i for what token i + 1 is drawn from. Both are mapped to e features and added to the embeddings.
    `model.given(c, v)` is the model for certain values of them, with which `wl.generation` can write.
    """

    context = None

    def __init__(
        self,
        vocabulary: int,
        embed_dim: int = 256,
        hidden_size: int | None = None,
        depth: int = 2,
        *,
        cell: CellLike = "lstm",
        residual: bool = False,
        tied: bool = False,
        dropout: float = 0.0,
        condition: int = 0,
        covariates: int = 0,
        dtype: DTypeLike | None = None,
        key: KeyLike = None,
    ) -> None:
        name = "RNNLanguageModel"
        self.vocabulary = as_int(name, "vocabulary", vocabulary, 1)
        e = self.embed_dim = as_int(name, "embed_dim", embed_dim, 1)
        h = e if hidden_size is None else as_int(name, "hidden_size", hidden_size, 1)
        layers = as_int(name, "depth", depth, 1)
        if tied and e != h:
            raise InputError(f"{name}: tied logits from {h} features, and a table of {e}.", "equal sizes")
        keys = split(take_key(name, key), 5)
        self.tokens = table(self.vocabulary, e, dtype, keys[0])
        self.dropout = Dropout(dropout) if dropout else None
        self.condition = _map(name, "condition", condition, e, dtype, keys[1])
        self.covariates = _map(name, "covariates", covariates, e, dtype, keys[2])
        self.stack = recurrent_stack(name, cell, (e, *[h] * layers), dropout, residual, dtype, keys[3])
        self.head = None if tied else Linear(h, self.vocabulary, dtype=dtype, key=keys[4])

    def embed(self, tokens: Tensor, places: Tensor) -> Tensor:
        x = self.tokens(tokens) * math.sqrt(self.embed_dim)  # (b, t, e)
        return x if self.dropout is None else self.dropout(x)

    def logits(self, h: Tensor) -> Tensor:
        return self.tokens.attend(h) if self.head is None else self.head(h)

    def forward(
        self,
        tokens: ArrayLike,
        token_mask: ArrayLike | None = None,
        lengths: ArrayLike | None = None,
        condition: ArrayLike | None = None,
        covariates: ArrayLike | None = None,
    ) -> Tensor:
        ids = as_tokens(self, tokens)
        real = as_token_mask(self._describe(), ids.shape, token_mask, lengths)
        ids = ids if real is None else arrays.where(real, ids, 0)
        x = self.embed(ids, places_of(real, ids.shape[1]))
        if (c := self._condition(condition, ids.shape[0])) is not None:
            x = x + c[:, None]
        if (v := self._covariates(covariates, ids.shape, real)) is not None:
            x = x + v
        return self.logits(self.stack(x, token_mask=real))

    def given(self, condition: ArrayLike | None = None, covariates: ArrayLike | None = None) -> GivenModel:
        """The model \\(p(x_t \\mid x_{<t}, c, v)\\) for certain c and v, as `wl.generation` and others take models.

        >>> import wonderland as wl
        >>> model = wl.models.RNNLanguageModel(5, 8, condition=3, key=wl.random.key(0))
        >>> rows = wl.generation.greedy(model.given(condition=[0, 1, 2]), [[1], [1], [1]], 4)
        >>> len(rows)
        3

        They have as many rows as there are sequences, or one for all. Covariates (rows, n, ...) are those of the first
        n places.
        """
        return GivenModel(self, condition, covariates)

    # --- reading on

    def new_cache(
        self,
        rows: int,
        capacity: int = 0,
        condition: ArrayLike | None = None,
        covariates: ArrayLike | None = None,
    ) -> LayerCaches:
        """The states before sequences begin, and what is given for them: the covariates of all places to come."""
        cache = self.stack.new_cache(rows, capacity)
        c = self._condition(condition, rows)
        v = self._covariates(
            covariates, (rows, *arrays.asarray(covariates).shape[-2:-1]) if covariates is not None else (), None
        )
        return cache if c is None and v is None else GivenCaches(cache.layers, c, v)

    def extend(
        self,
        tokens: ArrayLike,
        cache: LayerCaches | None = None,
        lengths: ArrayLike | None = None,
        last: bool = False,
    ) -> tuple[Tensor, LayerCaches]:
        ids = as_tokens(self, tokens)
        kept = self.new_cache(*ids.shape) if cache is None else cache
        real = as_token_mask(self._describe(), ids.shape, None, lengths)
        ids = ids if real is None else arrays.where(real, ids, 0)
        places = arrays.expand_dims(kept.lengths, -1) + arrays.arange(ids.shape[1])
        x = self.embed(ids, places)
        if isinstance(kept, GivenCaches) and self.condition is not None:
            x = x + kept.condition[:, None]
        if isinstance(kept, GivenCaches) and self.covariates is not None:
            if real is not None:  # padding has no places of its own
                places = arrays.where(real, places, 0)
            x = x + arrays.take_along_axis(kept.covariates, places[..., None], axis=1)
        h, kept = self.stack.extend(x, kept, lengths)
        return self.logits(last_of(h, lengths) if last else h), kept

    # --- what is given

    def _condition(self, condition: ArrayLike | None, rows: int) -> Tensor | None:
        """What is added for a condition, (rows, e)."""
        wanted = 0 if self.condition is None else self.condition.weight.shape[0]
        if self.condition is None or condition is None:
            self._refuse("condition", condition, wanted)
            return None
        c = arrays.asarray(condition)
        if dtypes.is_integer(c.dtype) and c.ndim == 1:
            c = arrays.one_hot(c, wanted)
        c = as_real(self._describe(), c)
        if c.ndim != 2 or c.shape[1] != wanted or c.shape[0] not in (1, rows):
            raise ShapeError(
                f"{self._describe()}: a condition of shape {arrays.asarray(condition).shape} for {rows} rows.",
                f"({rows}, {wanted}), or classes ({rows},) below {wanted}",
            )
        return self.condition(arrays.broadcast_to(c, (rows, wanted)))

    def _covariates(self, covariates: ArrayLike | None, shape: tuple[int, ...], real: Tensor | None) -> Tensor | None:
        """What is added for covariates, (rows, time, e)."""
        wanted = 0 if self.covariates is None else self.covariates.weight.shape[0]
        if self.covariates is None or covariates is None:
            self._refuse("covariates", covariates, wanted)
            return None
        v = as_real(self._describe(), covariates)
        if v.ndim != 3 or v.shape[1:] != (shape[1], wanted) or v.shape[0] not in (1, shape[0]):
            raise ShapeError(
                f"{self._describe()}: covariates of shape {v.shape} for tokens {shape}.",
                f"({shape[0]}, {shape[1]}, {wanted})",
            )
        return self.covariates(silenced(arrays.broadcast_to(v, (*shape, wanted)), real))

    def _refuse(self, what: str, found: ArrayLike | None, wanted: int) -> None:
        if wanted:
            raise InputError(
                f"{self._describe()}: no {what}, and the model has {wanted} features of it.",
                f"{what}=...; model.given(...) to write, or to read on",
            )
        if found is not None:
            raise InputError(
                f"{self._describe()}: a {what}, and the model has none.", f"a model with {what}=n features"
            )

    def extra_repr(self) -> str:
        return f"vocabulary={self.vocabulary}"


class GivenModel(Module):
    """A language model with what it is given: `RNNLanguageModel.given` makes one. Its weights are those of the model.

    >>> import wonderland as wl
    >>> model = wl.models.RNNLanguageModel(5, 8, covariates=2)
    >>> model.given(covariates=wl.ones((1, 10, 2)))(wl.zeros((3, 7), dtype=wl.int64)).shape
    (3, 7, 5)
    """

    context = None

    def __init__(
        self, model: RNNLanguageModel, condition: ArrayLike | None = None, covariates: ArrayLike | None = None
    ) -> None:
        self.model = model
        self.condition = None if condition is None else Buffer(arrays.asarray(condition))
        self.covariates = None if covariates is None else Buffer(arrays.asarray(covariates))
        rows = 1 if condition is None else arrays.asarray(condition).shape[0]
        model.new_cache(
            rows if covariates is None else max(rows, arrays.asarray(covariates).shape[0]), 0, condition, covariates
        )
        self.vocabulary = model.vocabulary

    def forward(
        self, tokens: ArrayLike, token_mask: ArrayLike | None = None, lengths: ArrayLike | None = None
    ) -> Tensor:
        ids = as_tokens(self, tokens)
        real = as_token_mask(self._describe(), ids.shape, token_mask, lengths)
        v: Tensor | None = None
        if self.covariates is not None:  # those of the place of each token
            v = arrays.broadcast_to(self.covariates, (ids.shape[0], *self.covariates.shape[1:]))
            places = arrays.broadcast_to(places_of(real, ids.shape[1]), ids.shape)
            v = arrays.take_along_axis(v, places[..., None], axis=1)
        return self.model(ids, token_mask=real, condition=self.condition, covariates=v)

    def new_cache(self, rows: int, capacity: int = 0) -> LayerCaches:
        """The states before sequences begin, with what is given."""
        return self.model.new_cache(rows, capacity, self.condition, self.covariates)

    def extend(
        self,
        tokens: ArrayLike,
        cache: LayerCaches | None = None,
        lengths: ArrayLike | None = None,
        last: bool = False,
    ) -> tuple[Tensor, LayerCaches]:
        """As that of the model."""
        kept = self.new_cache(*as_tokens(self, tokens).shape) if cache is None else cache
        return self.model.extend(tokens, kept, lengths, last)

    def step(self, token: ArrayLike, cache: LayerCaches | None = None) -> tuple[Tensor, LayerCaches]:
        """As that of the model."""
        return one_more(self.extend, token, cache)


def _map(name: str, what: str, size: int, e: int, dtype: DTypeLike | None, key: Tensor) -> Linear | None:
    count = as_int(name, what, size, 0)
    return Linear(count, e, bias=False, dtype=dtype, key=key) if count else None
