"""Where the randomness of data comes from: one NumPy generator per purpose, epoch and example.

Philox is counter-based: the seed and the epoch are its key, the purpose and the index a place in its counter. So the
numbers of an example depend on nothing but these four, and not on who loads it, or when.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

from ..core.arguments import as_int

ORDER, EXAMPLE, BATCH, SPLIT, STREAM = range(5)  # purposes: none shares its numbers with another
_WORD = (1 << 64) - 1

Seed: TypeAlias = int | np.random.Generator | None  # None: something new every time


def generator(seed: int, epoch: int = 0, index: int = 0, purpose: int = ORDER) -> np.random.Generator:
    """The generator of an example (or of a batch, or of an order) in an epoch.

    >>> float(generator(0, epoch=1, index=7).random()) == float(generator(0, epoch=1, index=7).random())
    True
    >>> float(generator(0, epoch=1, index=7).random()) == float(generator(0, epoch=2, index=7).random())
    False
    """
    key = np.array([seed & _WORD, epoch & _WORD], np.uint64)
    counter = np.array([0, 0, index & _WORD, purpose], np.uint64)
    return np.random.Generator(np.random.Philox(key=key, counter=counter))


def as_seed(name: str, seed: int | np.random.Generator | None) -> int:
    """A seed: an integer as it is, a generator's next number, and something new every time for None."""
    if seed is None:
        seed = np.random.default_rng()
    if isinstance(seed, np.random.Generator):
        return int(seed.integers(1 << 63))
    return as_int(name, "seed", seed)
