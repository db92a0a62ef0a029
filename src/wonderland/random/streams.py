"""Streams: a key and a counter in a cell, so that each call gets new numbers without handing keys around.

A stream is state like a module's buffer: inside `jit` it is read at the start and written back at the end,
and a stream that is an attribute of a module belongs to the module's state.
"""

from __future__ import annotations

import numpy as np

from ..arrays import asarray, concat, where
from ..core.cell import Cell
from ..core.context import current
from ..core.dtypes import uint32
from ..core.errors import DTypeError, ShapeError
from ..core.interpreter import read
from ..core.tensor import Tensor, wrap
from ..core.typing import Array, KeyLike
from . import keys

# what moves the counter on: by one, or into its second word
_STEP, _CARRY = (wrap(np.array([0, 0, 1, carry], np.uint32)) for carry in (0, 1))

Source = Tensor | Array | int | np.integer | None  # a seed, a key, a stream or its value; None: the global stream


class Stream(Cell):
    """A sequence of keys: a uint32 cell with the two words of a key and the two of a counter.

    >>> import wonderland as wl
    >>> stream = wl.random.Stream(0)
    >>> x, y = wl.random.normal((2,), key=stream), wl.random.normal((2,), key=stream)
    >>> bool((x == y).any())
    False

    `Stream(seed)`, `Stream(key)`; `Stream()` starts from the global stream; `Stream(stream.value)` continues
    a stream. Key number i is `wl.random.fold_in(key, i)`. Under `vmap` every example sees the same keys;
    `fold_in` the example's number to tell them apart. A stream shared by threads gives no defined order: give
    each thread its own.
    """

    __slots__ = ()

    def __init__(self, source: Source = None) -> None:
        super().__init__(_start(source))

    def next_key(self) -> Tensor:
        """The next key; the counter moves on."""
        value = read(self)
        self.assign(value + where(value[2] == 0xFFFFFFFF, _CARRY, _STEP))
        key, group = keys.fold_words(value[:2], value[2:]), current().settings.group
        # processes that share a batch drop different things; the stream itself is the same in all of them
        return keys.fold_in(key, group.rank) if group is not None and group.rank else key

    def seed(self, source: Source) -> None:
        """Start again from a seed, a key or another stream's value."""
        self.assign(_start(source))


def _start(source: Source) -> Tensor:
    """The first value of a stream."""
    if source is None:
        source = default_stream.next_key()
    elif isinstance(source, Stream):
        return read(source)
    elif isinstance(source, (int, np.integer)):
        source = keys.key(source)
    value = asarray(source) if isinstance(source, (Tensor, np.ndarray)) else source
    if not isinstance(value, Tensor) or value.dtype != uint32:
        found = str(value.dtype) if isinstance(value, Tensor) else type(value).__name__
        raise DTypeError(f"Stream: a stream starts from an integer or a key, received {found}.", "Stream(seed)")
    if value.shape[-1:] == (4,):
        return value
    if value.shape != (2,):
        raise ShapeError(f"Stream: a key has shape (2,), received {value.shape}.", "Stream(wl.random.key(seed))")
    return concat([value, wrap(np.zeros(2, uint32))])


class GlobalStream(Stream):
    """The stream that draws without a key take theirs from. It starts from seed 0, so a program repeats itself."""

    __slots__ = ()
    permanent = True


# the value of GlobalStream(0), not computed: a trace may be what first loads this file
default_stream = GlobalStream(wrap(np.zeros(4, np.uint32)))


def seed(n: Source) -> None:
    """Start the global stream again; draws without a key then repeat. A fresh program starts from `seed(0)`.

    >>> import wonderland as wl
    >>> wl.random.seed(3)
    >>> first = wl.random.normal((2,))
    >>> wl.random.seed(3)
    >>> bool((first == wl.random.normal((2,))).all())
    True
    """
    default_stream.seed(n)


manual_seed = seed


def take_key(name: str, key: KeyLike) -> Tensor:
    """The key of a draw: the one given, or the next of the stream given, or of the global stream."""
    if key is None:
        return default_stream.next_key()
    return key.next_key() if isinstance(key, Stream) else keys.as_key(name, key)


def lead_of(name: str, key: KeyLike) -> tuple[int, ...]:
    """The leading axes of the key that `take_key` will give."""
    return () if key is None or isinstance(key, Stream) else keys.as_key(name, key).shape[:-1]
