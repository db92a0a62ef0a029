"""Models that read on with a `Cache`: prompts at once, then one token of every row at a time. Book, section 11.2.3.

    prompts (rows, time), padded at the end --extend--> logits after the last token of each row     one program
    the next tokens (rows,)                 --step----> logits after them                           one per capacity

The cache is written in place. Its capacity doubles between steps, so that few programs are made.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple, Protocol, TypeGuard

import numpy as np

from .. import arrays
from ..core.errors import InputError, ShapeError
from ..core.tensor import Tensor
from ..core.typing import Array, ArrayLike, DTypeLike
from ..nn.attention.absolute_positions import LearnedPositions
from ..nn.module.module import Module
from ..nn.sequences.cache import Cache, KeyValueCache, StateCache, room_for
from ..train.evaluation import evaluating
from ..train.step import Model
from ..transforms.imperative import no_grad
from ..transforms.jit.jit import jit
from .next_token import Found, Then, check_tokens, checked, is_compiled, program, windows
from .prompts import Source, as_prompts

FIRST = 256  # places at the beginning, if so many tokens are to come: fewer would soon be too few
# lengths of prompts are rounded up, to a power of two or to multiples of the last of these, so that calls of similar
# lengths share compiled code
LEAST, CHUNK = 8, 64


class ReadsOn(Protocol):
    """A model with a cache; `encode`, and the memory in its cache, are for a source."""

    def new_cache(self, rows: int, capacity: int = 0, /, *memory: ArrayLike | None) -> Cache: ...
    def step(self, token: Tensor, cache: Cache, /) -> tuple[Tensor, Cache]: ...
    def extend(
        self, tokens: Tensor, cache: Cache, lengths: Tensor | None = None, /, *, last: bool = False
    ) -> tuple[Tensor, Cache]: ...


class Prefix(NamedTuple):
    """The beginning that prompts share, read once: `read_prefix` makes one, `generate(..., prefix=...)` takes it."""

    tokens: Array
    cache: Cache


def reads_on(model: object) -> TypeGuard[ReadsOn]:
    """Whether a model has a cache."""
    return callable(getattr(model, "extend", None)) and callable(getattr(model, "new_cache", None))


def read_prefix(
    model: Model, tokens: ArrayLike, *, jit: bool | None = None, cache_dtype: DTypeLike | None = None
) -> Prefix:
    """Read tokens (n,) that several prompts begin with, once for all of them. Book, section 11.2.3.

    >>> import wonderland as wl
    >>> model = wl.models.GPT(vocabulary=10, context=64, embed_dim=8, num_heads=2, depth=1, key=wl.random.key(0))
    >>> prefix = wl.generation.read_prefix(model, [1, 2, 3, 4, 5])
    >>> rows = wl.generation.greedy(model, [[6], [7, 8]], 4, prefix=prefix)
    >>> same = wl.generation.greedy(model, [[1, 2, 3, 4, 5, 6], [1, 2, 3, 4, 5, 7, 8]], 4)
    >>> all((a == b).all() for a, b in zip(rows, same))
    True

    Each generation begins with a copy of the cache, and gives what the whole prompts give; its results contain the
    prefix. What follows it in a row may be empty. A prefix belongs to the model with the weights of that time.
    """
    name = "read_prefix"
    row = as_prompts(name, tokens).rows[0]
    with evaluating(model), no_grad():
        if not reads_on(model):
            raise InputError(f"{name}: a {type(model).__name__} has no cache.", "a model with new_cache and extend")
        context, compiled = getattr(model, "context", None), is_compiled(model, jit)
        reader = CachedReader(name, model, context, len(row), compiled, 1, cache_dtype=cache_dtype)
        if len(row) > 1:  # the last one is read with what follows, which may be nothing
            reader.begin(row[None, :-1], np.array([len(row) - 1]))
    return Prefix(row, reader.cache)


class CachedReader:
    """Asks `model.extend(tokens, cache, lengths, last=True)` for prompts, and `model.step(token, cache)` from then on.

    Beyond a context that is fixed, every answer reads the last tokens of each row anew. A model whose layers all see a
    window, or keep a state, and that has no learned positions, goes on for ever: its cache rolls.
    """

    def __init__(
        self,
        name: str,
        model: ReadsOn,
        context: int | None,
        total: int,
        compiled: bool,
        rows: int,
        source: Source | None = None,
        prefix: Prefix | None = None,
        forced: bool = False,
        cache_dtype: DTypeLike | None = None,
    ) -> None:
        self.name, self.model, self.compiled, self.total = name, model, compiled, total
        self.vocabulary = getattr(model, "vocabulary", None)
        self.cache_dtype = cache_dtype
        self.memory = _memory(name, model, source, compiled)
        if prefix is None:
            self.cache: Cache = self._new_cache(rows, 1)
            self.read = np.zeros(rows, np.int64)  # how many tokens of each row the cache has, as `cache.lengths`
        else:
            self.cache = self._stored(prefix.cache.copy().reorder(np.zeros(rows, np.int64)))
            self.read = np.full(rows, len(prefix.tokens) - 1)
        self.context = context if forced or not _endless(model, self.cache) else None
        self.anew = False  # whether the context is full, and windows are read
        self.capacity = self.cache.capacity  # asked for once, as every layer has to say

    def begin(self, table: Array, lengths: Array) -> Tensor:
        if isinstance(self.vocabulary, int):
            check_tokens(self.name, table, self.vocabulary)
        if self.context is not None and int(lengths.max()) > self.context:
            return self._read_windows(table, lengths)
        start = int(self.read[0])
        return self._extend(table[:, start : int(lengths.max())], lengths - start)

    def _extend(self, tokens: Array, counts: Array) -> Tensor:
        """Logits after the last of so many further tokens of each row."""
        rows, time = tokens.shape
        start = int(self.read.max())
        size = _rounded(time) if self.compiled else time
        if self.context is not None:
            size = min(size, self.context - start)
        padded = np.zeros((rows, size), np.int64)
        padded[:, :time] = tokens
        self._reserve(start + size)
        extend = _extend_compiled if self.compiled else _extend
        logits = extend(self.model, arrays.asarray(padded), self.cache, arrays.asarray(counts))
        self.read += counts
        return checked(self.name, logits, (rows,))

    def advance(self, table: Array, lengths: Array, writing: Array, then: Then, *args: object) -> Found:
        if self.context is not None and int(self.read.max()) >= self.context:
            if self.anew or int(lengths[writing].max()) > self.context:
                return program(then, self.compiled)(self._read_windows(table, lengths), *args)
            # a row that has ended must not pass the end of the context: from now on it goes with one that writes
            self.reorder(np.where(writing, np.arange(len(writing)), np.argmax(writing)))
        tokens = arrays.asarray(table[np.arange(len(table)), lengths - 1])
        most = int(self.read.max()) + 1
        if self.capacity is not None and most > self.capacity:
            self._reserve(most)
        self.read += 1
        return _step(then, self.name, self.compiled)(self.model, tokens, self.cache, *args)

    def _read_windows(self, table: Array, lengths: Array) -> Tensor:
        assert self.context is not None
        self.anew = True
        self.cache = self._new_cache(len(table), self.context)
        self.read = np.zeros(len(table), np.int64)
        return self._extend(windows(table, lengths, self.context), np.minimum(lengths, self.context))

    def reorder(self, rows: Array) -> None:
        """Give every row the cache of another; there may be more or fewer rows then."""
        if len(rows) == len(self.read) and (rows == np.arange(len(rows))).all():
            return
        self.cache.reorder(rows)
        self.read = self.read[rows]
        if self.memory is not None:
            values, mask = self.memory
            chosen = arrays.asarray(rows)
            mask = None if mask is None else arrays.take(arrays.asarray(mask), chosen, axis=0)
            self.memory = (arrays.take(values, chosen, axis=0), mask)

    def _reserve(self, count: int) -> None:
        self.cache.reserve(self._room(count))
        self.capacity = self.cache.capacity

    def _room(self, count: int) -> int:
        """For how many tokens to reserve: as many as there will be, if they are not many."""
        return room_for(max(count, min(self.total, FIRST)))

    def _new_cache(self, rows: int, count: int) -> Cache:
        room = self._room(count)
        return self._stored(self.model.new_cache(rows, room, *(self.memory or ())))

    def _stored(self, cache: Cache) -> Cache:
        return cache if self.cache_dtype is None else cache.store_as(self.cache_dtype)


def _rounded(time: int) -> int:
    """For how many tokens a program is made that reads so many."""
    return max(LEAST, 1 << (time - 1).bit_length()) if time <= CHUNK else -(-time // CHUNK) * CHUNK


def _memory(name: str, model: object, source: Source | None, compiled: bool) -> tuple[Tensor, ArrayLike | None] | None:
    """What an encoder makes of the source, once, and which parts of it are real."""
    encodes = callable(getattr(model, "encode", None))
    if source is None:
        if encodes:
            raise InputError(f"{name}: a {type(model).__name__} writes about a source.", "source=tokens (rows, time)")
        return None
    if not encodes:
        raise InputError(
            f"{name}: a {type(model).__name__} has no encoder for a source.", "the source as part of the prompt"
        )
    encode = _encode_compiled if compiled else _encode
    values, mask = arrays.asarray(source.values), None if source.mask is None else arrays.asarray(source.mask)
    memory = encode(model, values, mask)
    if mask is not None and hasattr(model, "memory_mask"):
        mask = model.memory_mask(values, token_mask=mask)  # the memory may be shorter than the source
    if mask is not None and tuple(mask.shape) != tuple(memory.shape[:2]):
        raise ShapeError(
            f"{name}: a mask {tuple(mask.shape)} of a memory {tuple(memory.shape)}.",
            "a method `memory_mask(source, token_mask=)` of the model that says which parts of its memory are real",
        )
    return memory, mask


def _endless(model: object, cache: Cache) -> bool:
    """Whether a model may read for ever: windows and states alone, and no table of positions."""
    if isinstance(model, Module) and any(isinstance(part, LearnedPositions) for part in model.modules()):
        return False
    kept = [part for part in cache.modules() if isinstance(part, (KeyValueCache, StateCache))]
    return bool(kept) and all(isinstance(part, StateCache) or part.window is not None for part in kept)


def _encode(model: object, values: Tensor, mask: Tensor | None) -> Tensor:
    encode: Callable[..., Tensor] = getattr(model, "encode")  # noqa: B009 - it is there
    return encode(values) if mask is None else encode(values, token_mask=mask)


def _extend(model: ReadsOn, tokens: Tensor, cache: Cache, lengths: Tensor) -> Tensor:
    return model.extend(tokens, cache, lengths, last=True)[0]


_encode_compiled, _extend_compiled = jit(_encode), jit(_extend)


@lru_cache(maxsize=64)
def _step(then: Then, name: str, compiled: bool) -> Then:
    """A step of the model, and what is wanted of its logits, in one program."""

    def step(model: ReadsOn, tokens: Tensor, cache: Cache, *args: object) -> Found:
        logits, _ = model.step(tokens, cache)
        return then(checked(name, logits, tokens.shape), *args)

    return jit(step) if compiled else step
