"""What layers keep of the tokens that they have read, so that a further one costs no second look. Book, section 11.2.3.

A `Cache` belongs to one call after another of the same layer or model: `extend` and `step` read from it, change it and
return it. It is a module of buffers whose first axis are the rows of a batch. Each row has a length of its own, since
prompts differ. Under `jit` the buffers are written in place.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Self

import numpy as np

from ... import arrays
from ...arrays.conversion import as_tensor
from ...core import dtypes
from ...core.arguments import as_int
from ...core.errors import DTypeError, InputError, ShapeError
from ...core.tensor import Tensor
from ...core.typing import ArrayLike, DTypeLike
from ...transforms.control.loops import runs_in_python
from ..module.containers import ModuleList
from ..module.module import Module
from ..module.parameter import Buffer, Held

__all__ = ["Cache", "KeyValueCache", "LayerCaches", "MemoryCache", "StateCache"]

LEAST = 64  # places of a cache that grows; their number doubles, so that few sizes are compiled
SLACK = 64  # places beyond the window of a cache that rolls, for tokens that come together


def room_for(count: int) -> int:
    """How many places a cache has that must hold `count` tokens.

    >>> [room_for(n) for n in (1, 64, 65, 1000)]
    [64, 64, 128, 1024]
    """
    return max(LEAST, 1 << max(0, count - 1).bit_length())


class Cache(Module):
    """The base of all that is kept: `lengths` (rows,), how many tokens of each row have been read.

    >>> import wonderland as wl
    >>> layer = wl.nn.MultiHeadAttention(8, 2, causal=True)
    >>> y, cache = layer.extend(wl.ones((3, 5, 8)), None)
    >>> y, cache = layer.step(wl.ones((3, 8)), cache)
    >>> cache.lengths.tolist(), cache.capacity
    ([6, 6, 6], 64)
    """

    lengths: Held[Buffer]

    def __init__(self, rows: int) -> None:
        self.lengths = Buffer(arrays.zeros((as_int(type(self).__name__, "rows", rows, 0),), dtype=dtypes.int64))

    @property
    def rows(self) -> int:
        """How many sequences there are."""
        return self.lengths.shape[0]

    @property
    def capacity(self) -> int | None:
        """How many tokens a row may have; None if any number."""
        return None

    @property
    def nbytes(self) -> int:
        """The memory of all that is kept, without the lengths."""
        return sum(cell.nbytes for cache in self._all() for _, cell in cache._kept())

    def reserve(self, count: int) -> None:
        """Make room for sequences of `count` tokens; what is there stays."""

    def reorder(self, rows: ArrayLike) -> Self:
        """Give every row what another one has, as beam search does: `rows` are the numbers of those others.

        >>> import wonderland as wl
        >>> cache = wl.nn.StateCache(2, h=wl.tensor([[1.0], [2.0]]))
        >>> cache.reorder([1, 1, 0]).h.tolist()
        [[2.0], [2.0], [1.0]]
        """
        chosen = as_tensor("reorder", arrays.asarray(rows))
        if chosen.ndim != 1 or not dtypes.is_integer(chosen.dtype):
            raise ShapeError(f"reorder: rows {chosen.dtype}{list(chosen.shape)}.", "integers (n,), numbers of rows")
        for cache in self._all():
            for name, cell in [("lengths", cache.lengths), *cache._kept()]:
                cache._put(name, arrays.take(cell, chosen, axis=0))
        return self

    def rewind(self, lengths: ArrayLike) -> Self:
        """Forget the last tokens, so that each row has read `lengths` of them, one number or (rows,).

        >>> import wonderland as wl
        >>> layer = wl.nn.MultiHeadAttention(8, 2, causal=True)
        >>> _, cache = layer.extend(wl.ones((3, 5, 8)), None)
        >>> cache.rewind([4, 5, 0]).lengths.tolist()
        [4, 5, 0]

        Keys and values stay where they are until others take their places. A cache that rolls can go back by 64 tokens,
        or to the beginning; what keeps a state instead cannot go back.
        """
        counts = arrays.asarray(lengths)
        if counts.ndim > 1 or not dtypes.is_integer(counts.dtype) or counts.shape not in ((), (self.rows,)):
            raise ShapeError(
                f"rewind: lengths {counts.dtype}{list(counts.shape)} for {self.rows} rows.", f"integers ({self.rows},)"
            )
        counts = arrays.broadcast_to(arrays.astype(counts, dtypes.int64), (self.rows,))
        if runs_in_python():
            asked, there = counts.numpy(), self.lengths.numpy()
            if self.rows and ((asked < 0) | (asked > there)).any():
                raise InputError(f"rewind: to {asked.tolist()} of {there.tolist()} tokens.", "from 0 to what was read")
        parts = self._all()
        for cache in parts:
            cache._check_rewind(counts)
        for cache in parts:
            cache._rewind(counts)
        return self

    def _check_rewind(self, counts: Tensor) -> None:
        """Raise if what came before is lost."""

    def _rewind(self, counts: Tensor) -> None:
        self.lengths = counts

    def restart(self, which: ArrayLike, fresh: Cache) -> Self:
        """Let the rows where `which` (rows,) is true begin anew, with what a `fresh` cache of the same layer has.

        >>> import wonderland as wl
        >>> cache = wl.nn.StateCache(2, h=wl.ones((2, 1)))
        >>> cache.restart([True, False], wl.nn.StateCache(2, h=wl.zeros((2, 1)))).h.tolist()
        [[0.0], [1.0]]
        """
        chosen = arrays.asarray(which)
        if chosen.shape != (self.rows,) or chosen.dtype != dtypes.bool_:
            raise ShapeError(
                f"restart: {chosen.dtype}{list(chosen.shape)} for {self.rows} rows.", f"bools ({self.rows},)"
            )
        for cache, new in zip(self._all(), fresh._all(), strict=True):
            for name, cell in [("lengths", cache.lengths), *cache._kept()]:
                value = arrays.astype(getattr(new, name), cell.dtype)
                if value.shape == cell.shape:  # keys and values may have other room; without a length nobody sees them
                    mask = arrays.reshape(chosen, (-1, *[1] * (cell.ndim - 1)))
                    cache._put(name, arrays.where(mask, value, cell))
        return self

    def cut(self) -> Self:
        """Let no gradient pass from what is read later to what was read before: the numbers stay, as constants.

        >>> import wonderland as wl
        >>> layer = wl.nn.MultiHeadAttention(4, 2, causal=True)
        >>> def later(x):
        ...     _, cache = layer.extend(x, layer.new_cache(1, 6))
        ...     return layer.step(wl.ones((1, 4)), cache.cut())[0].sum()
        >>> wl.abs(wl.grad(later)(wl.ones((1, 5, 4)))).max().item()
        0.0
        """
        for cache in self._all():
            for name, cell in cache._kept():
                cache._put(name, arrays.stop_gradient(cell))
        return self

    def store_as(self, dtype: DTypeLike) -> Self:
        """Keep keys and values in another type: half precision takes half the memory, and half the time to read.

        >>> import wonderland as wl
        >>> layer = wl.nn.MultiHeadAttention(8, 2, causal=True)
        >>> cache = layer.new_cache(rows=1, capacity=100).store_as("bfloat16")
        >>> cache.keys.dtype, layer.step(wl.ones((1, 8)), cache)[0].dtype
        (dtype(bfloat16), dtype('float32'))

        They are rounded once, and computed with as if they had the type of the queries. "float16" has three more bits
        than "bfloat16", and no number above 65,504. States of recurrences stay as they are.
        """
        wanted = dtypes.as_dtype(dtype)
        if not dtypes.is_floating(wanted):
            raise DTypeError(f"store_as: keys and values of {wanted}.", "a floating type, as bfloat16")
        for cache in self._all():
            if isinstance(cache, KeyValueCache) and runs_in_python() and not cache.lengths.numpy().any():
                cache._empty_as(wanted)
            if isinstance(cache, (KeyValueCache, MemoryCache)):
                cache.astype(wanted)
        return self

    def advance(self, count: int | Tensor) -> None:
        """So many more tokens of each row have been read."""
        self.lengths = self.lengths + count

    def _put(self, name: str, value: Tensor) -> None:
        """A buffer's new value, of whatever shape."""
        cell = vars(self)[name]
        if cell.shape == value.shape:
            cell.assign(value)
        else:
            setattr(self, name, Buffer(value))

    def _empty_as(self, dtype: dtypes.DType) -> None:
        """Zeros of another type in place of those that are there: to convert these takes long."""
        for name, cell in [*self._kept()]:
            if dtypes.is_floating(cell.dtype) and cell.dtype != dtype:
                setattr(self, name, Buffer(arrays.zeros(cell.shape, dtype=dtype)))

    def _kept(self) -> Iterator[tuple[str, Buffer]]:
        """The buffers of this cache other than the lengths."""
        yield from ((name, cell) for name, cell in vars(self).items() if isinstance(cell, Buffer) and name != "lengths")

    def _all(self) -> list[Cache]:
        return [module for module in self.modules() if isinstance(module, Cache)]

    def extra_repr(self) -> str:
        return f"rows={self.rows}, capacity={self.capacity}, nbytes={self.nbytes:,}"


class StateCache(Cache):
    """Tensors of a fixed size, (rows, ...) each: the state of a recurrence, the last inputs of a convolution.

    >>> import wonderland as wl
    >>> cache = wl.nn.StateCache(3, h=wl.zeros((3, 16)))
    >>> cache.h.shape, cache.nbytes
    ((3, 16), 192)
    """

    def __init__(self, rows: int, **state: ArrayLike) -> None:
        super().__init__(rows)
        for name, value in state.items():
            given = arrays.asarray(value)
            if given.shape[:1] != (rows,):
                raise ShapeError(f"StateCache: {name} of shape {given.shape} for {rows} rows.", f"({rows}, ...)")
            setattr(self, name, Buffer(given))

    @property
    def state(self) -> dict[str, Tensor]:
        """The tensors by name, as they are now; later steps do not change them.

        >>> import wonderland as wl
        >>> wl.nn.StateCache(1, h=wl.ones((1, 2))).state
        {'h': tensor([[1., 1.]])}
        """
        return {name: cell + 0 for name, cell in self._kept()}

    def _check_rewind(self, counts: Tensor) -> None:
        raise InputError(
            "StateCache: a state does not remember what it was before.",
            "cache.copy() before reading on, or a model with a cache of keys and values",
        )


class LayerCaches(Cache):
    """The caches of the layers of a model, and how many tokens the model has read.

    >>> import wonderland as wl
    >>> cache = wl.nn.LayerCaches([wl.nn.KeyValueCache(2, 4, 8, 8), wl.nn.KeyValueCache(2, 4, 8, 8)])
    >>> len(cache.layers), cache.nbytes
    (2, 65536)
    """

    def __init__(self, layers: Iterable[Cache]) -> None:
        parts = list(layers)
        if not parts or len({part.rows for part in parts}) > 1:
            raise InputError(f"LayerCaches: caches of {[part.rows for part in parts]} rows.", "one size for all")
        super().__init__(parts[0].rows)
        self.layers = ModuleList(parts)

    @property
    def capacity(self) -> int | None:
        found = [part.capacity for part in self.layers if part.capacity is not None]
        return min(found, default=None)

    def reserve(self, count: int) -> None:
        for part in self.layers:
            part.reserve(count)


class KeyValueCache(Cache):
    r"""The keys and values of the tokens read so far: (rows, places, heads, size). Book, section 11.2.3.

    >>> import wonderland as wl
    >>> cache = wl.nn.KeyValueCache(rows=1, heads=12, key_size=64, value_size=64, capacity=1024)
    >>> cache.nbytes * 12  # twelve layers in float32
    75497472

    They take \(2 n h k\) numbers of memory for n tokens. With a `window`, where a query sees the last so many tokens,
    token i has the place i modulo the number of places: new tokens take the place of those that nobody sees any more,
    and a sequence may go on for ever in the same memory.
    """

    keys: Held[Buffer]
    values: Held[Buffer]

    def __init__(
        self,
        rows: int,
        heads: int,
        key_size: int,
        value_size: int,
        capacity: int = 0,
        window: int | None = None,
        dtype: DTypeLike | None = None,
    ) -> None:
        super().__init__(rows)
        self.window = None if window is None else as_int("KeyValueCache", "window", window, 1)
        places = self._places(as_int("KeyValueCache", "capacity", capacity, 0))
        kind = dtypes.default_float if dtype is None else dtypes.as_dtype(dtype)
        self.keys = Buffer(arrays.zeros((rows, places, heads, key_size), dtype=kind))
        self.values = Buffer(arrays.zeros((rows, places, heads, value_size), dtype=kind))

    def _places(self, count: int) -> int:
        places = room_for(count)
        return places if self.window is None else min(places, self.window + SLACK)

    @property
    def places(self) -> int:
        """How many tokens are kept."""
        return self.keys.shape[1]

    @property
    def capacity(self) -> int | None:
        return None if self.rolls else self.places

    @property
    def rolls(self) -> bool:
        """Whether later tokens take the places of earlier ones: if there are as many as the window needs."""
        return self.window is not None and self.places >= self.window + SLACK

    @property
    def chunk(self) -> int:
        """How many tokens may come together."""
        return SLACK + 1 if self.rolls else self.places

    def reserve(self, count: int) -> None:
        places = self._places(count)
        if places > self.places:
            for name in ("keys", "values"):
                held = getattr(self, name)
                more = arrays.zeros((held.shape[0], places - held.shape[1], *held.shape[2:]), dtype=held.dtype)
                setattr(self, name, Buffer(arrays.concat([held, more], axis=1)))

    def append(self, keys: Tensor, values: Tensor, lengths: Tensor | None = None) -> None:
        """Keep those of further tokens, (rows, t, heads, size), of which the first `lengths` are real in each row."""
        count = keys.shape[1]
        if count > self.chunk:
            raise InputError(f"KeyValueCache: {count} tokens at once.", f"{self.chunk} at most, or reserve(...)")
        self._check_room(count if lengths is None else lengths)
        places = arrays.expand_dims(self.lengths, -1) + arrays.arange(count)
        slots = places
        if self.rolls:
            # what is written for padding has a place that no query sees: beyond the newest token by less than a round
            slots = places % self.places
        rows = arrays.arange(self.rows)[:, None]
        self.keys = self.keys.at[rows, slots].set(arrays.astype(keys, self.keys.dtype))
        self.values = self.values.at[rows, slots].set(arrays.astype(values, self.values.dtype))
        self.advance(count if lengths is None else lengths)

    def _check_room(self, count: int | Tensor) -> None:
        if self.rolls or not runs_in_python():
            return  # in compiled code a place beyond the last raises by itself
        most = int(np.max((self.lengths + count).numpy(), initial=0))
        if most > self.places:
            raise InputError(f"KeyValueCache: {most} tokens in {self.places} places.", f"cache.reserve({most}) before")

    def _check_rewind(self, counts: Tensor) -> None:
        if not self.rolls or not runs_in_python():
            return
        back = np.where(counts.numpy() > 0, (self.lengths - counts).numpy(), 0)
        lost = (back > SLACK) & (self.lengths.numpy() > self.places)
        if lost.any():
            raise InputError(
                f"KeyValueCache: to go back by {int(back[lost].max())} tokens, of which a window of {self.window} has "
                "lost what came before.",
                f"by {SLACK} at most, or cache.copy() before reading on",
            )

    def key_places(self) -> Tensor:
        """The places of the tokens whose keys are kept: (keys,), or (rows, keys) if it rolls, below 0 where none is."""
        slots = arrays.arange(self.places)
        if not self.rolls:
            return slots
        newest = self.lengths[:, None] - 1
        return newest - (newest - slots) % self.places

    def seen(self, places: Tensor) -> Tensor:
        """Which of the kept keys queries at places (rows, t) may see, (rows, t, keys): the past, within the window."""
        keys, queries = self.key_places(), arrays.expand_dims(places, -1)
        keys = keys if keys.ndim == 1 else arrays.expand_dims(keys, 1)
        seen = (keys >= 0) & (keys <= queries)
        return seen if self.window is None else seen & (keys > queries - self.window)


class MemoryCache(Cache):
    """The keys and values of a whole sequence that is attended to, (rows, heads, s, size), and which tokens are real.

    Cross-attention computes them once for all that is written; `MultiHeadAttention.memory_cache` makes one.
    """

    keys: Held[Buffer]
    values: Held[Buffer]
    real: Held[Buffer]

    def __init__(self, keys: Tensor, values: Tensor, real: Tensor | None = None) -> None:
        super().__init__(keys.shape[0])
        self.keys, self.values = Buffer(keys), Buffer(values)
        self.real = Buffer(arrays.ones((keys.shape[0], keys.shape[-2]), dtype=dtypes.bool_) if real is None else real)
        self.lengths = arrays.sum(self.real, axis=-1)

    def _rewind(self, counts: Tensor) -> None:
        """What is attended to stays whole."""
