"""`checkpoint`: keep only a function's arguments for the backward pass and compute the rest again (book, 6.3)."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from .. import arrays
from ..core import trees
from ..core.arguments import as_function, as_int, as_list
from ..core.errors import InputError
from ..core.tensor import Tensor
from .call import checkpointed
from .control.loops import Step, scan, scan_length
from .jit.jit import Jitted
from .signatures import P, Result

Carry = TypeVar("Carry")


def checkpoint(
    f: Callable[P, Result],
    *,
    static_argnums: int | tuple[int, ...] = (),
    static_argnames: str | tuple[str, ...] = (),
) -> Jitted[P, Result]:
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


def checkpoint_scan(
    f: Step,
    init: Carry,
    xs: object = None,
    length: int | None = None,
    *,
    every: int | None = None,
    reverse: bool = False,
) -> tuple[Carry, Any]:
    r"""`wl.scan` that keeps the carry of every so many steps for the backward pass, and computes the others again.

    >>> import wonderland as wl
    >>> step = lambda s, x: (wl.sin(s + x), s)
    >>> f = lambda x: wl.checkpoint_scan(step, 0.0, x)[0]
    >>> bool(wl.allclose(wl.grad(f)(wl.ones(10)), wl.grad(lambda x: wl.scan(step, 0.0, x)[0])(wl.ones(10))))
    True

    Backpropagation through n steps keeps what each of them computed, O(n). With a carry kept for `every` k steps it is
    n/k carries and the values of the k steps that are computed again, \(O(\sqrt n)\) for \(k = \sqrt n\), the default,
    for at most one more forward pass. Book, sections 6.3 and 13.2.2.
    """
    leaves, structure = trees.flatten(xs)
    sequences = [arrays.asarray(leaf) for leaf in leaves]
    n = scan_length(sequences, length)
    k = max(1, math.isqrt(max(0, n - 1)) + 1) if every is None else as_int("checkpoint_scan", "every", every, 1)
    whole, rest = divmod(n, k)

    def part(count: int) -> Step:
        def run(carry: Carry, now: list[Tensor]) -> tuple[Carry, object]:
            return scan(f, carry, trees.unflatten(structure, now), length=count, reverse=reverse)

        return checkpoint(run)

    def long(carry: Carry) -> tuple[Carry, object]:
        stacked = [arrays.reshape(x[: whole * k], (whole, k, *x.shape[1:])) for x in sequences]
        carry, ys = scan(part(k), carry, stacked, length=whole, reverse=reverse)
        return carry, trees.map(lambda y: arrays.reshape(y, (whole * k, *y.shape[2:])), ys)

    def short(carry: Carry) -> tuple[Carry, object]:
        return part(rest)(carry, [x[whole * k :] for x in sequences])

    runs = [long] * (whole > 0) + [short] * (rest > 0 or not whole)
    carry, results = init, []
    for run in runs[:: -1 if reverse else 1]:
        carry, ys = run(carry)
        results.append(ys)
    if len(results) == 1:
        return carry, results[0]
    first, second = results[:: -1 if reverse else 1]
    return carry, trees.map(lambda a, b: arrays.concat([a, b], axis=0), first, second)
