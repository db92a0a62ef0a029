"""Tasks that need a memory, drawn from a seed: symbols to remember over a lag, among much that does not count.

What a state has to do is known exactly: hold a symbol while blanks pass by (delay), or choose what to hold, by what it
is and not by when it comes (selective copying). Tokens are 0 for a blank, 1 for "now", then the symbols. Targets that
do not count are -100, as `wl.nn.functional.cross_entropy` has it. Book, chapter 13.
"""

from __future__ import annotations

import numpy as np

from ...core.arguments import as_int
from ...core.errors import InputError
from ...core.typing import Array
from ..generators import Seed
from ..randomness import as_generator

BLANK, NOW, SPECIAL = 0, 1, 2
IGNORED = -100


def make_delay_task(
    n_samples: int = 1000, lag: int = 200, *, length: int = 1, symbols: int = 8, seed: Seed = 0
) -> tuple[Array, Array]:
    r"""Some symbols, blanks, and the symbols again as targets: \(y_{t} = x_{t-\mathrm{lag}}\). Book, section 13.2.

    >>> import wonderland as wl
    >>> x, y = wl.data.make_delay_task(2, lag=5, length=2, seed=1)
    >>> x[0].tolist(), y[0].tolist()
    ([5, 4, 0, 0, 0, 1, 1], [-100, -100, -100, -100, -100, 5, 4])

    Tokens and targets are (n_samples, lag + length), with 2 + `symbols` kinds of tokens. The `length` symbols stand at
    the beginning, and each has to be told `lag` places later, where the token 1 says so. Whoever guesses is right once
    in `symbols` times.
    """
    name = "make_delay_task"
    n, count, kinds = _sizes(name, n_samples, length, symbols)
    gap = as_int(name, "lag", lag, least=1)
    if gap < count:
        raise InputError(f"{name}: {count} symbols and lag={gap}.", "a lag of as many places as there are symbols")
    drawn = as_generator(name, seed).integers(SPECIAL, SPECIAL + kinds, (n, count))
    x = np.concatenate([drawn, np.full((n, gap - count), BLANK), np.full((n, count), NOW)], axis=1)
    return x.astype(np.int64), _targets(drawn, gap)


def make_selective_copy_task(
    n_samples: int = 1000, lag: int = 200, *, length: int = 4, symbols: int = 8, seed: Seed = 0
) -> tuple[Array, Array]:
    """Symbols at random places among blanks, and at the end the symbols in their order. Book, section 13.4.3.

    >>> import wonderland as wl
    >>> x, y = wl.data.make_selective_copy_task(2, lag=6, length=2, seed=1)
    >>> x[0].tolist(), y[0].tolist()
    ([0, 0, 0, 5, 4, 0, 1, 1], [-100, -100, -100, -100, -100, -100, 5, 4])

    Tokens and targets are (n_samples, lag + length): the first `lag` places have `length` symbols, the others blanks. A
    layer that treats all places alike, as a convolution or a time-invariant state-space model does, cannot tell a
    symbol's place in the order from its time; one whose state is driven by what it reads can.
    """
    name = "make_selective_copy_task"
    n, count, kinds = _sizes(name, n_samples, length, symbols)
    span = as_int(name, "lag", lag, least=1)
    if span < count:
        raise InputError(f"{name}: {count} symbols in {span} places.", "a lag of as many places as there are symbols")
    rng = as_generator(name, seed)
    drawn = rng.integers(SPECIAL, SPECIAL + kinds, (n, count))
    places = np.sort(rng.permuted(np.tile(np.arange(span), (n, 1)), axis=1)[:, :count], axis=1)
    x = np.full((n, span + count), BLANK)
    np.put_along_axis(x, places, drawn, axis=1)
    x[:, span:] = NOW
    return x.astype(np.int64), _targets(drawn, span)


def _sizes(name: str, n_samples: int, length: int, symbols: int) -> tuple[int, int, int]:
    return (
        as_int(name, "n_samples", n_samples, least=1),
        as_int(name, "length", length, least=1),
        as_int(name, "symbols", symbols, least=2),
    )


def _targets(drawn: Array, before: int) -> Array:
    return np.concatenate([np.full((len(drawn), before), IGNORED), drawn], axis=1).astype(np.int64)
