"""Shapes that broadcast against each other, and axes. Book, section 2.1.1."""

from __future__ import annotations

import operator
from typing import Any

from .errors import AxisError, BroadcastError, ShapeError
from .tensor import Shape
from .typing import Axes


def broadcast_shapes(name: str, *shapes: Shape) -> Shape:
    """The shape of the result of an elementwise operation: sizes agree from the right, or one of them is 1.

    >>> broadcast_shapes("add", (4, 1), (3,))
    (4, 3)
    """
    first = shapes[0]
    if all(shape == first for shape in shapes):
        return first
    rank = max(map(len, shapes))
    result = [1] * rank
    for shape in shapes:
        offset = rank - len(shape)
        for i, n in enumerate(shape):
            if n != 1:
                if result[offset + i] not in (1, n):
                    listed = " and ".join(map(str, shapes))
                    raise ShapeError(
                        f"{name}: shapes {listed} do not broadcast: sizes {result[offset + i]} and {n} "
                        f"meet at axis {offset + i - rank}.",
                        "give both the same size there, or size 1 with x[:, None] or wl.expand_dims",
                    )
                result[offset + i] = n
    return tuple(result)


def broadcasts_to(shape: Shape, target: Shape) -> bool:
    """Whether a value of this shape can be repeated to the other.

    >>> broadcasts_to((4, 1), (2, 4, 3)), broadcasts_to((4, 2), (4, 3))
    (True, False)
    """
    return len(shape) <= len(target) and all(n in (1, m) for n, m in zip(shape[::-1], target[::-1], strict=False))


def without_axes(shape: Shape, axes: tuple[int, ...]) -> Shape:
    """The sizes of the axes that are left.

    >>> without_axes((2, 3, 4), (0, 2))
    (3,)
    """
    return tuple(n for i, n in enumerate(shape) if i not in axes)


def check_no_outer(name: str, shapes: list[Shape]) -> None:
    """Refuse that all operands are repeated and one of them gets a new axis for it, as (n, 1) with (n,).

    Broadcasting stays silent where one operand has the shape of the result already, as when a bias (d,) is added to
    (n, d), and where the axes are written out, as in (n, 1) with (1, m).
    """
    spread = [shape for shape in shapes if any(n != 1 for n in shape)]
    if len({len(shape) for shape in spread}) < 2:
        return
    result = broadcast_shapes(name, *shapes)
    if not any((1,) * (len(result) - len(shape)) + shape == result for shape in spread):
        raise BroadcastError(
            f"{name}: the shapes {' and '.join(map(str, spread))} broadcast into {result}, which none of them has.",
            "x.squeeze(-1) or y[:, None] so that the shapes agree; if the larger result is wanted, write all axes "
            "as in x[:, None] and y[None, :], or use wl.outer",
        )


def normalize_axis(name: str, axis: int, ndim: int) -> int:
    """A non-negative axis, or an error that names the operation."""
    if type(axis) is not int:
        axis = _integer(name, axis)
    if not -ndim <= axis < ndim:
        raise AxisError(
            f"{name}: axis {axis} is out of range for a tensor with {ndim} axes.",
            f"an axis from {-ndim} to {ndim - 1}" if ndim else "a tensor with at least one axis",
        )
    return axis % ndim


def _integer(name: str, axis: Any) -> int:
    try:
        return operator.index(axis)
    except TypeError:
        raise AxisError(f"{name}: {axis!r} is not an axis.", "an integer") from None


def normalize_axes(name: str, axis: Axes, ndim: int) -> tuple[int, ...]:
    """All axes for None, else a sorted tuple of distinct non-negative axes."""
    if axis is None:
        return tuple(range(ndim))
    if not isinstance(axis, (tuple, list)):
        return (normalize_axis(name, axis, ndim),)  # type: ignore[arg-type]  # another sequence is refused there
    axes = [normalize_axis(name, a, ndim) for a in axis]
    if len(set(axes)) != len(axes):
        raise AxisError(f"{name}: an axis appears twice in {tuple(axis)}.", "each axis once")
    return tuple(sorted(axes))
