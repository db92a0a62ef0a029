"""`associative_scan`: all prefixes of an associative operation.

Eagerly they are found in logarithmic depth, as every application is a call from Python. Compiled, the sequence is cut
into blocks: a loop goes through all blocks at once, step by step, and then the blocks are put together. That is as much
work, but two small loops instead of a tree of ever other shapes: it compiles at once, and its gradient is a loop too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from ... import arrays
from ...core import trees
from ...core.broadcasting import normalize_axis
from ...core.errors import ShapeError
from ...core.primitive import aval_of
from ...core.tensor import Tensor
from ..batching import vmap
from .bodies import check_same, tensors_of
from .loops import runs_in_python, scan

Tree = TypeVar("Tree")
Combine = Callable[[list[Tensor], list[Tensor]], list[Tensor]]

FEW = 64  # numbers of a leaf that a step should have: fewer take as long
MOST_BLOCKS = 64


def associative_scan(f: Callable[[Any, Any], Any], elems: Tree, *, reverse: bool = False, axis: int = 0) -> Tree:
    r"""The prefixes \(x_1,\; x_1 \circ x_2,\; x_1 \circ x_2 \circ x_3, \dots\) along an axis; \(\circ\) is associative.

    >>> import wonderland as wl
    >>> wl.associative_scan(lambda a, b: a * b, wl.tensor([1.0, 2.0, 3.0, 4.0]))
    tensor([ 1.,  2.,  6., 24.])

    `f(a, b)` combines two trees of tensors, whole slices at once, a before b (it need not commute: matrix products
    work). With `reverse` suffixes are combined instead. f is applied about 2 log2(n) times. In a compiled function it
    becomes the body of loops of n / k steps over k blocks, at most 64; slices of 64 numbers and more are combined one
    after the other. However it is done, each element is combined at most twice.
    """
    leaves, structure = tensors_of("associative_scan", elems)
    if not leaves:
        return elems
    axes = [normalize_axis("associative_scan", axis, leaf.ndim) for leaf in leaves]
    sizes = {leaf.shape[a] for leaf, a in zip(leaves, axes, strict=True)}
    if len(sizes) != 1:
        raise ShapeError(f"associative_scan: the leaves have sizes {sorted(sizes)} along axis {axis}.", "one size")
    moved = [arrays.moveaxis(leaf, a, 0) for leaf, a in zip(leaves, axes, strict=True)]
    if reverse:
        moved = [arrays.flip(leaf, axis=0) for leaf in moved]

    def combine(a: list[Tensor], b: list[Tensor]) -> list[Tensor]:
        # f sees the scanned axis where the user put it
        sides = [[arrays.moveaxis(x, 0, ax) for x, ax in zip(side, axes, strict=True)] for side in (a, b)]
        first, second = [trees.unflatten(structure, side) for side in sides]
        out, after = tensors_of("associative_scan", f(second, first) if reverse else f(first, second))
        before, types = [aval_of(x) for x in sides[0]], [aval_of(x) for x in out]
        check_same("associative_scan", "the values before and after", (structure, before), (after, types))
        return [arrays.moveaxis(x, ax, 0) for x, ax in zip(out, axes, strict=True)]

    result = _prefixes(combine, moved) if runs_in_python() else _in_blocks(combine, moved)
    if reverse:
        result = [arrays.flip(leaf, axis=0) for leaf in result]
    return trees.unflatten(structure, [arrays.moveaxis(x, 0, a) for x, a in zip(result, axes, strict=True)])


def _prefixes(combine: Combine, xs: list[Tensor]) -> list[Tensor]:
    """Combine neighbours, solve the half-sized problem, and fill in every second element."""
    n = xs[0].shape[0]
    if n < 2:
        return xs
    pairs = combine([x[0 : n - 1 : 2] for x in xs], [x[1:n:2] for x in xs])
    odd = _prefixes(combine, pairs)  # the prefixes that end at 1, 3, 5, ...
    even = [x[:1] for x in xs]
    if n > 2:
        before = [o[: (n - 1) // 2] for o in odd]
        later = combine(before, [x[2:n:2] for x in xs])
        even = [arrays.concat([e, m]) for e, m in zip(even, later, strict=True)]
    return [_interleave(e, o) for e, o in zip(even, odd, strict=True)]


def _interleave(even: Tensor, odd: Tensor) -> Tensor:
    k = odd.shape[0]
    woven = arrays.stack([even[:k], odd], axis=1).reshape((2 * k, *odd.shape[1:]))
    return woven if even.shape[0] == k else arrays.concat([woven, even[k:]])


def _in_blocks(combine: Combine, xs: list[Tensor]) -> list[Tensor]:
    """Prefixes of blocks, all blocks at once; then the blocks before are combined with each."""
    n, size = xs[0].shape[0], max(x[:1].size for x in xs)
    blocks = max(1, min(MOST_BLOCKS, -(-FEW // max(size, 1)), n // 4))
    if blocks == 1:
        return _one_by_one(combine, xs)
    length = n // blocks
    cut, rest = length * blocks, [x[length * blocks :] for x in xs]
    lanes = [arrays.swapaxes(x[:cut].reshape((blocks, length, *x.shape[1:])), 0, 1) for x in xs]
    inside = _steps(combine, lanes)  # (length, blocks, ...)
    ends = _one_by_one(combine, [x[-1] for x in inside])
    before = [x[:-1] for x in ends]
    later = vmap(combine, in_axes=(None, 0))(before, [x[:, 1:] for x in inside])
    whole = [arrays.swapaxes(arrays.concat([x[:, :1], y], axis=1), 0, 1) for x, y in zip(inside, later, strict=True)]
    made = [x.reshape((cut, *x.shape[2:])) for x in whole]
    if cut < n:
        tail = _one_by_one(combine, [arrays.concat([e[-1:], r]) for e, r in zip(ends, rest, strict=True)])
        made = [arrays.concat([x, t[1:]]) for x, t in zip(made, tail, strict=True)]
    return made


def _one_by_one(combine: Combine, xs: list[Tensor]) -> list[Tensor]:
    return [x[:, 0] for x in _steps(combine, [x[:, None] for x in xs])]


def _steps(combine: Combine, xs: list[Tensor]) -> list[Tensor]:
    """Prefixes along the first axis, one after the other; f sees the second one."""

    def step(sofar: list[Tensor], now: list[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
        new = combine(sofar, now)
        return new, new

    if xs[0].shape[0] < 2:
        return xs
    first = [x[0] for x in xs]
    return [arrays.concat([x[:1], y]) for x, y in zip(xs, scan(step, first, [x[1:] for x in xs])[1], strict=True)]
