"""Markov chains of any order: counts as a language model, the baseline of all others. Notes, section 5.4.2.

    p(x_t | x_1, ..., x_{t-1}) = p(x_t | the last k tokens), the same for all t

At the beginning of a sequence there are fewer than k tokens; what is missing is padding, a context of its own. Contexts
are numbered: those of no token, of one, ..., of k tokens, each by its tokens as digits.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Self

import numpy as np

from ... import arrays
from ...core import dtypes
from ...core.arguments import as_int, as_number
from ...core.errors import InputError
from ...core.room import check_room
from ...core.tensor import Tensor
from ...core.typing import Array, ArrayLike, KeyLike
from ...nn.module.module import Module
from ...nn.module.parameter import Buffer, Held
from ...nn.sequences.cache import StateCache
from ...nn.sequences.reading import one_more
from ...nn.sequences.token_masks import as_lengths, as_token_mask, places_of
from ...random.discrete import categorical
from ...random.keys import split
from ...random.streams import take_key
from ...transforms.control.loops import runs_in_python
from ..transformers.language_model import as_tokens, last_of

__all__ = ["MarkovChain"]


class MarkovChain(Module):
    r"""\(p(x_t \mid x_{t-k}, \dots, x_{t-1}) = \frac{n(x_{t-k}, \dots, x_t) + a}{n(x_{t-k}, \dots, x_{t-1}) + aV}\).

    >>> import wonderland as wl
    >>> chain = wl.models.MarkovChain(order=1, vocabulary=2).fit([[0, 1, 0, 1], [0, 0, 1]])
    >>> chain.probabilities([0]).tolist()  # after a 0: once another one, three times a 1
    [0.25, 0.75]
    >>> chain.num_free()
    2

    Counts n of `order` k and the next token, normalised, are the maximum of the likelihood; `smoothing` a is added to
    each count. What follows a context that was never seen is uniform. The first tokens of a sequence follow contexts
    of fewer tokens, which are counted apart. With V tokens there are \(V^k (V-1)\) free parameters, \(2^k\) of a binary
    chain, without those of the beginning; all \(V (V^{k+1} - 1)/(V - 1)\) counts are kept. Notes, section 5.4.2.

    It is a language model like others: `chain(tokens)` gives logits (batch, time, V), those at place i for token i + 1,
    `extend` and `step` read on, and `wl.generation` writes with it. The `vocabulary` is that of the data by default.
    """

    counts: Held[Buffer]
    context = None  # it reads for ever

    def __init__(self, order: int = 1, vocabulary: int | None = None, smoothing: float = 0.0) -> None:
        self.order = as_int("MarkovChain", "order", order, 0)
        self.smoothing = float(as_number("MarkovChain", "smoothing", smoothing))
        if not self.smoothing >= 0 or math.isinf(self.smoothing):
            raise InputError(f"MarkovChain: smoothing={smoothing}.", "a number from 0 on, added to each count")
        self.vocabulary = None if vocabulary is None else as_int("MarkovChain", "vocabulary", vocabulary, 1)
        size = self.vocabulary or 1
        self.counts = Buffer(arrays.zeros((self._room(size), size), dtype=dtypes.int64))

    def _room(self, size: int) -> int:
        """How many contexts there are: of up to `order` tokens."""
        found = sum(size**j for j in range(self.order + 1))
        check_room("MarkovChain", 8 * found * size, f"the counts of order {self.order} need", "a lower order")
        return found

    # --- learning

    def fit(
        self, sequences: ArrayLike | Iterable[ArrayLike], lengths: ArrayLike | None = None, *, more: bool = False
    ) -> Self:
        """Count the tokens of sequences: a list of tokens (n,), or (batch, time) of which `lengths` are real.

        With `more` counts are added to those that are there, else they begin anew.
        """
        rows = _rows(sequences, lengths)
        largest = max((int(row.max(initial=-1)) for row in rows), default=-1)
        if self.vocabulary is None or not more:
            size = self.vocabulary or largest + 1
            if size < 1:
                raise InputError("MarkovChain: there are no tokens to count.", "sequences that are not all empty")
            self.vocabulary = size
            self.counts = Buffer(arrays.zeros((self._room(size), size), dtype=dtypes.int64))
        if largest >= self.vocabulary or any(int(row.min(initial=0)) < 0 for row in rows):
            raise InputError(
                f"MarkovChain: a token outside of 0 to {self.vocabulary - 1}.", f"vocabulary={largest + 1} or more"
            )
        found = np.zeros(self.counts.shape, np.int64)
        for row in rows:
            after = np.asarray(self._contexts(row[None, :-1], np.zeros(1, np.int64), np.zeros(1, np.int64))[0])[0]
            before = np.concatenate([[0], after]).astype(np.int64)[: len(row)]
            np.add.at(found, (before, row), 1)
        self.counts = self.counts + found
        return self

    def num_free(self) -> int:
        r"""The number of free parameters of contexts of k tokens, \(V^k (V - 1)\)."""
        size = self._known()
        return size**self.order * (size - 1)

    def probabilities(self, context: ArrayLike = ()) -> Tensor:
        """The distribution (V,) of the token after a context (n,), of which the last k tokens count.

        A shorter context is one at the beginning of a sequence.
        """
        row = np.asarray(context, np.int64).reshape(1, -1)
        self._check(row)
        if not row.shape[1]:
            return arrays.exp(self._logits(arrays.asarray(0)))
        return arrays.exp(self(row)[0, -1])

    def log_prob(self, tokens: ArrayLike, lengths: ArrayLike | None = None) -> Tensor:
        r"""\(\sum_t \log p(x_t \mid \dots)\) of whole sequences (batch, time) from their beginning on: (batch,)."""
        ids = as_tokens(self, tokens)
        real = as_token_mask("MarkovChain", ids.shape, None, lengths)
        ids = ids if real is None else arrays.where(real, ids, 0)
        first = arrays.broadcast_to(self._logits(arrays.asarray(0)), (ids.shape[0], 1, self._known()))
        before = arrays.concat([first, self(ids)[:, :-1]], axis=1) if ids.shape[1] else first[:, :0]
        each = arrays.take_along_axis(before, ids[..., None], axis=-1)[..., 0]
        return arrays.sum(each if real is None else arrays.where(real, each, 0.0), axis=-1)

    def sample(self, length: int, rows: int = 1, key: KeyLike = None) -> Tensor:
        """So many sequences of a length, drawn from the beginning on: (rows, length)."""
        count = as_int("MarkovChain", "length", length, 0)
        cache = self.new_cache(as_int("MarkovChain", "rows", rows, 0))
        logits = arrays.broadcast_to(self._logits(arrays.asarray(0)), (cache.rows, self._known()))
        found = []
        for one in split(take_key("MarkovChain", key), count) if count else ():
            found.append(categorical(logits=logits, key=one))
            logits, cache = self.step(found[-1], cache)
        return arrays.stack(found, axis=1) if found else arrays.zeros((cache.rows, 0), dtype=dtypes.int64)

    # --- as a language model

    def forward(
        self, tokens: ArrayLike, token_mask: ArrayLike | None = None, lengths: ArrayLike | None = None
    ) -> Tensor:
        ids = as_tokens(self, tokens)
        real = as_token_mask("MarkovChain", ids.shape, token_mask, lengths)
        zero = arrays.zeros((ids.shape[0],), dtype=dtypes.int64)
        if real is None:
            self._check(ids)
            return self._logits(self._contexts(ids, zero, zero)[0])
        # real tokens are moved to the front, where their contexts are, and each takes the one of its place
        ids = arrays.where(real, ids, 0)
        self._check(ids)
        order = arrays.argsort(arrays.astype(~real, dtypes.int64), axis=-1)
        rows, _ = self._contexts(arrays.take_along_axis(ids, order, axis=-1), zero, zero)
        return self._logits(arrays.take_along_axis(rows, places_of(real, ids.shape[1]), axis=-1))

    def new_cache(self, rows: int, capacity: int = 0) -> StateCache:
        """The state before sequences begin: the number of the last tokens, none."""
        self._known()
        return StateCache(rows, last=arrays.zeros((rows,), dtype=dtypes.int64))

    def extend(
        self,
        tokens: ArrayLike,
        cache: StateCache | None = None,
        lengths: ArrayLike | None = None,
        last: bool = False,
    ) -> tuple[Tensor, StateCache]:
        """Logits (batch, t, V) of further tokens (batch, t), of which `lengths` are real, and the cache.

        With `last` only those after the last real token of each row, (batch, V).
        """
        ids = as_tokens(self, tokens)
        kept = self.new_cache(ids.shape[0]) if cache is None else cache
        counts = arrays.full((ids.shape[0],), ids.shape[1], dtype=dtypes.int64)
        if lengths is not None:
            counts = as_lengths("MarkovChain", lengths, ids.shape)
            ids = arrays.where(arrays.arange(ids.shape[1]) < counts[:, None], ids, 0)
        self._check(ids)
        before = kept.state["last"]
        rows, numbers = self._contexts(ids, before, kept.lengths + 0)
        numbers = arrays.concat([before[:, None], numbers], axis=1)
        setattr(kept, "last", arrays.take_along_axis(numbers, counts[:, None], axis=1)[:, 0])  # noqa: B010 - by name
        kept.advance(counts)
        if last:
            rows = last_of(rows[..., None], lengths)[:, 0]
        return self._logits(rows), kept

    def step(self, token: ArrayLike, cache: StateCache | None = None) -> tuple[Tensor, StateCache]:
        """Logits (batch, V) after one more token (batch,), and the cache with it."""
        return one_more(self.extend, token, cache)

    # --- contexts and their numbers

    def _contexts(self, ids: Tensor | Array, last: Tensor | Array, read: Tensor | Array) -> tuple[Tensor, Tensor]:
        """After each of further tokens (rows, t): the row of the table, and the number of the last k tokens.

        `last` (rows,) is that number before, and `read` (rows,) how many tokens came before.
        """
        size, k, time = self._known(), self.order, ids.shape[1]
        ids = arrays.astype(arrays.asarray(ids), dtypes.int64)
        powers = [size**j for j in range(k + 1)]
        before = [(arrays.asarray(last)[:, None] // powers[j]) % size for j in reversed(range(k))]
        line = arrays.concat([*before, ids], axis=1)  # (rows, k + t)
        numbers = arrays.zeros(ids.shape, dtype=dtypes.int64)
        for back in range(k):
            numbers = numbers + line[:, k - back : k - back + time] * powers[back]
        known = arrays.minimum(arrays.asarray(read)[:, None] + arrays.arange(1, time + 1), k)
        first = arrays.asarray([sum(powers[:j]) for j in range(k + 1)])  # contexts of fewer tokens come first
        return numbers + arrays.take(first, known, axis=0), numbers

    def _logits(self, rows: Tensor) -> Tensor:
        """Logarithms of the probabilities of rows of the table."""
        n = arrays.astype(arrays.take(self.counts, rows, axis=0), dtypes.default_float) + self.smoothing
        total = arrays.sum(n, axis=-1, keepdims=True)
        share = arrays.where(total > 0, n / arrays.where(total > 0, total, 1.0), 1 / n.shape[-1])
        return arrays.where(share > 0, arrays.log(arrays.where(share > 0, share, 1.0)), -math.inf)

    def _check(self, ids: Tensor | Array) -> None:
        """Refuse tokens that a gather would take for others."""
        size = self._known()
        if not runs_in_python() or not ids.size:
            return
        found = np.asarray(ids)
        if not 0 <= found.min() <= found.max() < size:
            raise InputError(f"MarkovChain: tokens from {found.min()} to {found.max()}.", f"from 0 to {size - 1}")

    def _known(self) -> int:
        if self.vocabulary is None:
            raise InputError("MarkovChain: nothing was counted, and there is no vocabulary.", "chain.fit(sequences)")
        return self.vocabulary

    def extra_repr(self) -> str:
        return f"order={self.order}, vocabulary={self.vocabulary}, smoothing={self.smoothing}"


def _rows(sequences: ArrayLike | Iterable[ArrayLike], lengths: ArrayLike | None) -> list[Array]:
    """Sequences as rows of integers, without padding."""
    several = isinstance(sequences, (list, tuple)) and lengths is None
    table = [np.asarray(row) for row in sequences] if several else np.asarray(sequences)  # type: ignore[union-attr]
    if not several and (np.ndim(table) != 2):
        raise InputError(f"MarkovChain: sequences of shape {np.shape(table)}.", "(batch, time), or a list of rows")
    ends = None if lengths is None else np.asarray(as_lengths("MarkovChain", lengths, np.shape(table)))
    rows = [row if ends is None else row[: ends[i]] for i, row in enumerate(table)]
    for row in rows:
        if row.ndim != 1 or (row.size and row.dtype.kind not in "iu"):
            raise InputError(f"MarkovChain: a sequence {row.dtype}{list(row.shape)}.", "integers (n,)")
    return [row.astype(np.int64) for row in rows]
