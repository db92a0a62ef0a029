"""The generator of someone who calls by hand: a generator, a seed, or nothing (then `wl.random.seed` rules)."""

from __future__ import annotations

import numpy as np

from ..core.arguments import shown
from ..core.errors import InputError
from .generators import Seed, generator


def as_generator(name: str, rng: Seed = None) -> np.random.Generator:
    """The generator itself, one for an integer seed, or, for None, the next of the global random stream.

    >>> bool(as_generator("demo", 3).random() == as_generator("demo", 3).random())
    True
    """
    if isinstance(rng, np.random.Generator):
        return rng
    if rng is None:
        from ..random.streams import default_stream  # not needed by those who pass a seed

        high, low = (int(word) for word in np.asarray(default_stream.next_key()))
        return generator(high << 32 | low)
    if isinstance(rng, (int, np.integer)) and not isinstance(rng, bool):
        return generator(int(rng))
    raise InputError(f"{name}: {shown(rng)} is neither a seed nor a generator.", "0, or np.random.default_rng(0)")
