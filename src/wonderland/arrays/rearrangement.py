"""Axes moved, merged, split, reduced and repeated by patterns with names: `rearrange`, `reduce`, `repeat`.

A pattern such as "b (h w) c -> b h w c" names the axes of a tensor before and after. The notation is that of
einops; the parser and its errors are ours. Book, section 2.1.4.

    name     an axis                          (h w)    an axis made of two, the last varying fastest
    1, ()    an axis of size 1                ...      any number of axes
    3        an axis of that size: new in `repeat`, reduced in `reduce`
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ..core.broadcasting import normalize_axis
from ..core.errors import InputError, ShapeError
from ..core.tensor import Tensor, wrap
from ..core.typing import ArrayLike
from ..primitives.creation import check_size
from . import reductions
from .conversion import as_tensor
from .gathering import take
from .joining import stack
from .manipulation import broadcast_to, reshape, transpose

__all__ = ["rearrange", "reduce", "repeat"]

REDUCTIONS = {name: getattr(reductions, name) for name in ("sum", "mean", "max", "min", "prod", "any", "all")}


def rearrange(x: ArrayLike, /, pattern: str, **sizes: int) -> Tensor:
    """x with its axes in another order, merged or split, as the pattern says.

    >>> import wonderland as wl
    >>> images = wl.zeros((8, 32, 32, 3))
    >>> wl.rearrange(images, "b (h p) (w q) c -> b (h w) (p q c)", p=4, q=4).shape
    (8, 64, 48)

    Every axis on the left stands on the right, too, so nothing is lost and the inverse pattern brings x back (and the
    gradient home). `sizes` give the axes that the shape does not determine. A list of tensors is stacked first.
    """
    return _apply("rearrange", x, pattern, sizes, None)


def reduce(x: ArrayLike, /, pattern: str, reduction: str | Callable[..., Tensor], **sizes: int) -> Tensor:
    """x reduced over the axes that are missing on the right, the others rearranged.

    >>> import wonderland as wl
    >>> wl.reduce(wl.arange(6).reshape(2, 3), "a b -> b", "sum")
    tensor([3, 5, 7])
    >>> wl.reduce(wl.zeros((8, 32, 32, 3)), "b (h 2) (w 2) c -> b h w c", "max").shape
    (8, 16, 16, 3)

    `reduction` is "sum", "mean", "max", "min", "prod", "any", "all", or a function f(x, axis=axes).
    """
    if isinstance(reduction, str):
        if reduction not in REDUCTIONS:
            raise InputError(f"reduce: reduction={reduction!r}.", f"one of {', '.join(REDUCTIONS)}, or a function")
        return _apply("reduce", x, pattern, sizes, REDUCTIONS[reduction])
    return _apply("reduce", x, pattern, sizes, reduction)


def repeat(x: ArrayLike, repeats: ArrayLike | str, /, axis: int | None = None, **sizes: int) -> Tensor:
    """Each element repeated along an axis (of the flattened tensor if none is named), or a pattern of einops.

    >>> import wonderland as wl
    >>> wl.repeat(wl.tensor([1, 2]), 2), wl.repeat(wl.tensor([1, 2]), wl.tensor([1, 3]))
    (tensor([1, 1, 2, 2]), tensor([1, 2, 2, 2]))

    `repeats` is one number, or one per element of the axis. With a string x is repeated along the new axes of
    a pattern, whose `sizes` are given by name (see `wl.rearrange` for the notation):

    >>> wl.repeat(wl.zeros((2, 3)), "h w -> h w c", c=4).shape
    (2, 3, 4)
    """
    x = as_tensor("repeat", x)
    if isinstance(repeats, str):
        if axis is not None:
            sizes["axis"] = axis
        return repeat_pattern(x, repeats, sizes)
    if sizes:
        raise InputError(f"repeat: {', '.join(sizes)} without a pattern.", 'wl.repeat(x, "h w -> h w c", c=3)')
    if axis is None:
        x, axis = reshape(x, (x.size,)), 0
    place = normalize_axis("repeat", axis, x.ndim)
    n = x.shape[place]
    given = np.asarray(repeats)
    if given.dtype.kind not in "iu" or given.ndim > 1 or given.size not in (1, n):
        raise InputError(
            f"repeat: counts of {given.dtype}{list(given.shape)} for axis {axis} of size {n}.",
            "one integer, or one per element of the axis",
        )
    counts = np.broadcast_to(given, (n,))
    if counts.size and counts.min() < 0:
        raise InputError("repeat: a negative number of repetitions.", "counts of 0 or more")
    check_size("repeat", (*x.shape[:place], int(counts.sum()), *x.shape[place + 1 :]), x.dtype)
    return take(x, wrap(np.repeat(np.arange(n), counts)), axis=place)


def repeat_pattern(x: ArrayLike, pattern: str, sizes: dict[str, int]) -> Tensor:
    """`wl.repeat` with a pattern: x repeated along the axes that are new on the right."""
    return _apply("repeat", x, pattern, sizes, None)


# --- the notation


class Axis(NamedTuple):
    """One elementary axis. Those without a name have a size, and a number that tells them apart."""

    name: str
    size: int | None = None


ELLIPSIS = Axis("...")
MERGED = Axis("(...)")  # an ellipsis inside parentheses: its axes become one
Group = tuple[Axis, ...]  # the axes that make up one axis of a tensor


class Pattern(NamedTuple):
    left: tuple[Group, ...]
    right: tuple[Group, ...]


@functools.lru_cache(maxsize=1024)
def _parse(name: str, pattern: str) -> Pattern:
    sides = pattern.split("->")
    if len(sides) != 2:
        raise InputError(f"{name}: the pattern {pattern!r} needs one arrow.", '"a b -> b a"')
    left, right = (_parse_side(name, pattern, side, label) for side, label in zip(sides, "<>", strict=True))
    mine, theirs = ({axis for group in side for axis in group} for side in (left, right))
    if MERGED in mine:
        raise InputError(f"{name}: '...' stands in parentheses on the left of {pattern!r}.", "only on the right")
    if MERGED in theirs:
        theirs = theirs - {MERGED} | {ELLIPSIS}
    lost, new = mine - theirs, theirs - mine
    nameless = {axis for axis in (*lost, *new) if axis.size is not None}
    if (name != "reduce" and (lost & nameless)) or (name != "repeat" and (new & nameless)):
        raise InputError(
            f"{name}: {_names(nameless)} of {pattern!r} has no name by which to find it on the other side.",
            "a name, with its size as an argument",
        )
    if lost and name != "reduce":
        raise InputError(
            f"{name}: {_names(lost)} of {pattern!r} is missing on the right.",
            "wl.reduce to sum or average over it",
        )
    if new and (name != "repeat" or ELLIPSIS in new):
        raise InputError(
            f"{name}: {_names(new)} of {pattern!r} is missing on the left.",
            "wl.repeat to repeat along a new axis",
        )
    return Pattern(left, right)


def _names(axes: set[Axis]) -> str:
    return ", ".join(sorted(repr(axis.name if axis.size is None else str(axis.size)) for axis in axes))


def _parse_side(name: str, pattern: str, side: str, label: str) -> tuple[Group, ...]:
    text = side.replace("(", " ( ").replace(")", " ) ").replace("...", " ... ").replace("…", " ... ")
    groups: list[Group] = []
    inside: list[Axis] | None = None  # the axes of an open parenthesis
    seen: set[str] = set()
    for number, token in enumerate(text.split()):
        if token == "(":
            if inside is not None:
                raise InputError(f"{name}: parentheses inside parentheses in {pattern!r}.", "one level")
            inside = []
        elif token == ")":
            if inside is None:
                raise InputError(
                    f"{name}: a parenthesis is closed but not opened in {pattern!r}.", '"(h w) c -> h w c"'
                )
            groups.append(tuple(inside))
            inside = None
        else:
            axis = _axis(name, pattern, token, f"{label}{number}")
            if axis is not None and axis.name in seen:
                raise InputError(f"{name}: {token!r} stands twice on one side of {pattern!r}.", "each name once")
            found = () if axis is None else (axis,)
            seen.update(axis.name for axis in found)
            if found == (ELLIPSIS,) and inside is not None:
                found = (MERGED,)
            if inside is None:
                groups.append(found)
            else:
                inside.extend(found)
    if inside is not None:
        raise InputError(f"{name}: a parenthesis is opened but not closed in {pattern!r}.", '"(h w) c -> h w c"')
    return tuple(groups)


def _axis(name: str, pattern: str, token: str, unique: str) -> Axis | None:
    """The axis of a token; None for one of size 1, which has no elements to keep track of."""
    if token == "...":
        return ELLIPSIS
    if token.isdecimal():
        size = int(token)
        return None if size == 1 else Axis(unique, size)
    if not token.isidentifier() or token.startswith("_") or token.endswith("_"):
        raise InputError(f"{name}: {token!r} in {pattern!r} is not a name of an axis.", "letters, then digits or _")
    return Axis(token)


# --- carrying it out


def _apply(
    name: str, x: ArrayLike, pattern: str, sizes: dict[str, int], reduction: Callable[..., Tensor] | None
) -> Tensor:
    x = stack(x) if isinstance(x, (list, tuple)) else as_tensor(name, x)
    if not isinstance(pattern, str):
        raise InputError(f"{name}: the pattern is a {type(pattern).__name__}.", '"b h w c -> b (h w) c"')
    parsed = _parse(name, pattern)
    left, right = _expand(name, x.shape, pattern, parsed)
    known = _solve(name, x.shape, pattern, left, right, sizes)
    axes = [axis for group in left for axis in group]
    x = reshape(x, tuple(known[axis] for axis in axes))
    targets = [axis for group in right for axis in group]
    gone = tuple(i for i, axis in enumerate(axes) if axis not in targets)
    if gone:
        assert reduction is not None  # other patterns leave no axis out
        x = reduction(x, axis=gone)
        axes = [axis for axis in axes if axis in targets]
    x = transpose(x, [axes.index(axis) for axis in targets if axis in axes])
    if len(axes) < len(targets):
        x = reshape(x, tuple(known[axis] if axis in axes else 1 for axis in targets))
        x = broadcast_to(x, tuple(known[axis] for axis in targets))
    return reshape(x, tuple(math.prod(known[axis] for axis in group) for group in right))


def _expand(name: str, shape: tuple[int, ...], pattern: str, parsed: Pattern) -> tuple[list[Group], list[Group]]:
    """Both sides with "..." replaced by as many axes as it stands for."""
    rest = len(shape) - len(parsed.left)
    if (ELLIPSIS,) in parsed.left:
        rest += 1
    if rest < 0 or (rest and (ELLIPSIS,) not in parsed.left):
        raise ShapeError(
            f"{name}: the left of {pattern!r} does not fit a tensor of shape {shape} with {len(shape)} axes.",
            "one name or parenthesis per axis, or '...'",
        )
    dots = [Axis(f"...{i}") for i in range(rest)]

    def expand(side: tuple[Group, ...]) -> list[Group]:
        groups: list[Group] = []
        for group in side:
            if group == (ELLIPSIS,):
                groups.extend((dot,) for dot in dots)
            else:
                groups.append(tuple(a for axis in group for a in (dots if axis == MERGED else [axis])))
        return groups

    return expand(parsed.left), expand(parsed.right)


def _solve(
    name: str,
    shape: tuple[int, ...],
    pattern: str,
    left: list[Group],
    right: list[Group],
    sizes: dict[str, int],
) -> dict[Axis, int]:
    """The size of every elementary axis, from the sizes given and the shape."""
    axes = {axis for group in left + right for axis in group}
    known = {axis: axis.size for axis in axes if axis.size is not None}
    for key, value in sizes.items():
        if Axis(key) not in axes:
            raise InputError(f"{name}: {key}={value} names no axis of {pattern!r}.", "sizes for axes of the pattern")
        if not isinstance(value, int) or isinstance(value, bool) or value < 0:
            raise InputError(f"{name}: {key}={value!r} is not a size.", "an integer of 0 or more")
        known[Axis(key)] = value
    for n, group in zip(shape, left, strict=True):
        unknown = [axis for axis in group if axis not in known]
        product = math.prod(known[axis] for axis in group if axis in known)
        text = " ".join(axis.name if axis.size is None else str(axis.size) for axis in group) or "1"
        if len(unknown) > 1:
            raise ShapeError(
                f"{name}: the sizes of ({text}) in {pattern!r} are not determined by an axis of size {n}.",
                f"a size by name, {unknown[0].name}=...",
            )
        if unknown and product and n % product == 0:
            known[unknown[0]] = n // product
        elif unknown or product != n:
            raise ShapeError(
                f"{name}: an axis of size {n} (shape {shape}) cannot be ({text}) of {pattern!r}: "
                f"the known sizes multiply to {product}.",
                "sizes whose product is the size of the axis",
            )
    for group in right:
        for axis in group:
            if axis not in known:
                raise ShapeError(
                    f"{name}: the size of the new axis {axis.name!r} of {pattern!r} is not given.",
                    f"{axis.name}=...",
                )
    return known
