"""`checkpoint`: keep only a function's arguments for the backward pass and compute the rest again (book, 6.3)."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

from ..arguments import as_function, as_int, as_list
from ..errors import InputError
from .call import checkpointed
from .jit import Jitted


def checkpoint(
    f: Callable[..., Any],
    *,
    static_argnums: int | tuple[int, ...] = (),
    static_argnames: str | tuple[str, ...] = (),
) -> Callable[..., Any]:
    """f with the same value and derivatives, whose intermediate values are computed again instead of kept.

    >>> import wonderland as wl
    >>> f = lambda x: wl.sin(wl.sin(x)).sum()
    >>> bool(wl.allclose(wl.grad(wl.checkpoint(f))(wl.ones(3)), wl.grad(f)(wl.ones(3))))
    True

    The function is traced, as by `wl.jit`, which explains the options. Random numbers are the same in both runs, and
    state (running statistics, random streams) is updated once. Book, section 6.3 (Fig. F.6.1).
    """
    numbers = (static_argnums,) if isinstance(static_argnums, int) else tuple(static_argnums)
    names = (static_argnames,) if isinstance(static_argnames, str) else tuple(static_argnames)
    return Jitted(f, numbers, names, primitive=checkpointed)


def checkpoint_sequential(
    functions: Sequence[Callable[[Any], Any]], segments: int | Sequence[int] | None = None
) -> Callable[[Any], Any]:
    """The composition of `functions`, of which only the values at the borders of the segments are kept.

    `segments` is their number (the square root of the length if not given), or the positions in the list at which one
    starts. With L functions and k segments the backward pass holds k + L/k values, least for k = sqrt(L).

    >>> import wonderland as wl
    >>> f = wl.checkpoint_sequential([wl.sin] * 9)
    >>> wl.grad(lambda x: f(x).sum())(wl.zeros(2))
    tensor([1., 1.])
    """
    blocks = [as_function("checkpoint_sequential", f) for f in as_list("checkpoint_sequential", "functions", functions)]
    n = len(blocks)
    if n == 0:
        raise InputError("checkpoint_sequential: there is no function.", "at least one")
    if segments is None:
        segments = max(1, round(math.sqrt(n)))
    if isinstance(segments, int):
        if not 1 <= segments <= n:
            raise InputError(f"checkpoint_sequential: {segments} segments for {n} functions.", f"1 to {n} segments")
        starts = [i * n // segments for i in range(segments)]
    else:
        starts = sorted({0, *[as_int("checkpoint_sequential", "a segment", s) for s in segments]})
        if starts[-1] >= n or starts[0] < 0:
            raise InputError(
                f"checkpoint_sequential: segments start at {starts} in a list of {n}.", f"positions 0 to {n - 1}"
            )
    edges = [*starts, n]

    def segment(part: list[Callable[[Any], Any]]) -> Callable[[Any], Any]:
        def run(x: Any) -> Any:
            for block in part:
                x = block(x)
            return x

        return checkpoint(run)

    parts = [segment(blocks[a:b]) for a, b in itertools.pairwise(edges)]

    def composed(x: Any) -> Any:
        for part in parts:
            x = part(x)
        return x

    return composed
