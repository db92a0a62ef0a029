"""Keys: where random numbers come from. A key is a uint32 tensor of shape (2,); leading axes hold many keys.

New keys are made from Philox blocks in domains of their own (see primitives/random_bits.py), so the bits of a
key's children are never the bits that the key itself draws.
"""

from __future__ import annotations

import numpy as np

from ..arrays import asarray, astype, stack
from ..arrays.conversion import as_shape
from ..core.dtypes import is_integer, uint32, uint64
from ..core.errors import DTypeError, InputError, ShapeError
from ..core.tensor import Tensor, wrap
from ..core.typing import Array, ArrayLike, ShapeLike
from ..primitives.random_bits import FOLD, SPLIT, random_bits

_MASK = 0xFFFFFFFF


def key(seed: ArrayLike) -> Tensor:
    """The key of an integer: its low and its high 32 bits.

    >>> import wonderland as wl
    >>> wl.random.key(7)
    tensor([7, 0], dtype=uint32)

    The same seed gives the same numbers on every machine. An integer tensor gives one key per element.
    """
    return _words("key", "seed", seed)


def split(key: Tensor | Array, n: ShapeLike = 2) -> Tensor:
    """n new keys, shape (..., n, 2), whose numbers are independent of each other and of the key's own.

    >>> import wonderland as wl
    >>> first, second = wl.random.split(wl.random.key(0))
    >>> wl.random.split(first, 5).shape
    (5, 2)

    n may be a shape. The first keys do not depend on how many are made. Use a key once: either draw from it
    or split it.
    """
    shape = as_shape("split", n)
    return random_bits(as_key("split", key), shape=(*shape, 2), domain=SPLIT)


def pair(key: Tensor) -> tuple[Tensor, Tensor]:
    """Two new keys, with the leading axes of the key in front."""
    both = split(key)
    return both[..., 0, :], both[..., 1, :]


def fold_in(key: Tensor | Array, data: ArrayLike) -> Tensor:
    """A new key from a key and an integer, such as the number of a step or of a layer.

    >>> import wonderland as wl
    >>> key = wl.random.key(0)
    >>> bool((wl.random.fold_in(key, 1) == wl.random.fold_in(key, 2)).all())
    False

    `data` is an integer of up to 64 bits, or a tensor of them (traced ones too): one key per element.
    """
    return fold_words(as_key("fold_in", key), _words("fold_in", "data", data))


def fold_words(key: Tensor, words: Tensor) -> Tensor:
    """A new key from a key and two words."""
    # Scrambling the key first keeps nearby keys with nearby data apart.
    return random_bits(random_bits(key, shape=(2,), domain=FOLD) ^ words, shape=(2,), domain=FOLD)


def as_key(name: str, key: object) -> Tensor:
    """The key if it is one, else an error that says how to make one."""
    if isinstance(key, np.ndarray):
        key = asarray(key)
    if not isinstance(key, Tensor):
        raise DTypeError(f"{name}: a {type(key).__name__} is not a key.", "key=wl.random.key(seed)")
    if key.dtype != uint32:
        raise DTypeError(f"{name}: a key is uint32, received {key.dtype}{list(key.shape)}.", "wl.random.key(seed)")
    if key.shape[-1:] != (2,):
        raise ShapeError(f"{name}: a key has shape (2,) or (..., 2), received {key.shape}.", "wl.random.key(seed)")
    return key


def _words(name: str, what: str, number: object) -> Tensor:
    """The low and high 32 bits of integers, negative ones as two's complement; shape (..., 2)."""
    if isinstance(number, (int, np.integer)):
        number = int(number)
        if not -(2**63) <= number < 2**64:
            raise InputError(f"{name}: the {what} {number} has more than 64 bits.", "an integer from 0 to 2**64 - 1")
        return wrap(np.array([number & _MASK, number >> 32 & _MASK], uint32))
    if not isinstance(number, (Tensor, np.ndarray, list)):
        raise DTypeError(f"{name}: the {what} is a {type(number).__name__}.", "an integer")
    number = asarray(number)
    if not is_integer(number.dtype):
        raise DTypeError(f"{name}: the {what} is {number.dtype}.", "integers")
    wide = astype(number, uint64)
    return stack([astype(wide & _MASK, uint32), astype(wide >> 32, uint32)], axis=-1)
