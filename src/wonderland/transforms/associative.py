"""`associative_scan`: all prefixes of an associative operation in logarithmic depth."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import arrays, trees
from ..broadcasting import normalize_axis
from ..errors import ShapeError
from ..primitives.primitive import aval_of
from .bodies import check_same, tensors_of


def associative_scan(f: Callable[[Any, Any], Any], elems: Any, *, reverse: bool = False, axis: int = 0) -> Any:
    r"""The prefixes \(x_1,\; x_1 \circ x_2,\; x_1 \circ x_2 \circ x_3, \dots\) along an axis; \(\circ\) is associative.

    >>> import wonderland as wl
    >>> wl.associative_scan(lambda a, b: a * b, wl.tensor([1.0, 2.0, 3.0, 4.0]))
    tensor([ 1.,  2.,  6., 24.])

    `f(a, b)` combines two trees of tensors, whole slices at once, a before b (it need not commute: matrix products
    work). With `reverse` suffixes are combined instead. The depth is about 2 log2(n) applications of f.
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

    def combine(a: list[Any], b: list[Any]) -> list[Any]:
        # f sees the scanned axis where the user put it
        sides = [[arrays.moveaxis(x, 0, ax) for x, ax in zip(side, axes, strict=True)] for side in (a, b)]
        first, second = [trees.unflatten(structure, side) for side in sides]
        out, after = tensors_of("associative_scan", f(second, first) if reverse else f(first, second))
        before, types = [aval_of(x) for x in sides[0]], [aval_of(x) for x in out]
        check_same("associative_scan", "the values before and after", (structure, before), (after, types))
        return [arrays.moveaxis(x, ax, 0) for x, ax in zip(out, axes, strict=True)]

    result = _prefixes(combine, moved)
    if reverse:
        result = [arrays.flip(leaf, axis=0) for leaf in result]
    return trees.unflatten(structure, [arrays.moveaxis(x, 0, a) for x, a in zip(result, axes, strict=True)])


def _prefixes(combine: Any, xs: list[Any]) -> list[Any]:
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


def _interleave(even: Any, odd: Any) -> Any:
    k = odd.shape[0]
    woven = arrays.stack([even[:k], odd], axis=1).reshape((2 * k, *odd.shape[1:]))
    return woven if even.shape[0] == k else arrays.concat([woven, even[k:]])
