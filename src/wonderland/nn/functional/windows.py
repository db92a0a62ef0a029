"""Arguments of functions with windows: numbers for each spatial axis, padding, and leading axes."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any, TypeAlias

from ... import arrays
from ...core.arguments import as_int, shown
from ...core.errors import InputError, ShapeError
from ...core.tensor import Tensor
from ...primitives.windows import Pairs, extents, padded_shape

Sizes = tuple[int, ...]
PaddingLike: TypeAlias = (
    int | str | Sequence[int | Sequence[int]]
)  # one number, one for each axis, or pairs; a way by name


def as_sizes(name: str, what: str, value: object, axes: int, least: int = 1) -> Sizes:
    """One number for all spatial axes, or one for each.

    >>> as_sizes("conv2d", "stride", 2, 2), as_sizes("conv2d", "stride", (1, 2), 2)
    ((2, 2), (1, 2))
    """
    if not isinstance(value, (tuple, list)):
        return (as_int(name, what, value, least),) * axes
    if len(value) != axes:
        raise InputError(f"{name}: {what}={shown(value)} for {axes} spatial axes.", f"a number, or {axes} of them")
    return tuple(as_int(name, what, n, least) for n in value)


def as_padding(name: str, padding: PaddingLike, window: Sizes, stride: Sizes, dilation: Sizes) -> Pairs:
    """Pairs (low, high) from a number, from one for each axis, from pairs, or from "valid", "same" or "causal".

    >>> as_padding("conv1d", "same", (4,), (1,), (1,)), as_padding("conv2d", (0, 2), (3, 3), (1, 1), (1, 1))
    (((1, 2),), ((0, 0), (2, 2)))
    >>> as_padding("conv1d", "causal", (3,), (1,), (2,))
    ((4, 0),)
    """
    if isinstance(padding, str):
        if padding == "valid":
            return ((0, 0),) * len(window)
        if padding not in ("same", "causal"):
            raise InputError(f"{name}: padding={padding!r}.", '"same", "valid", "causal" or numbers')
        centred = stride if padding == "same" else stride[1:]
        if any(s != 1 for s in centred):
            raise InputError(f"{name}: padding={padding!r} keeps the size only for stride 1, not {stride}.", "numbers")
        # of an odd number of places, as with even kernels, one more goes to the end
        pairs = tuple(((reach - 1) // 2, reach // 2) for reach in extents(window, dilation))
        return pairs if padding == "same" else ((sum(pairs[0]), 0), *pairs[1:])
    if isinstance(padding, (tuple, list)) and len(padding) == len(window):
        return tuple(as_sizes(name, "padding", pair, 2, least=0) for pair in padding)  # type: ignore[misc]
    return tuple((n, n) for n in as_sizes(name, "padding", padding, len(window), least=0))


def with_one_batch(name: str, x: Tensor, axes: int) -> tuple[Tensor, Sizes]:
    """(..., *spatial, channels) with its leading axes made one, and these axes."""
    if x.ndim < axes + 1:
        raise ShapeError(
            f"{name}: an input of shape {x.shape} has fewer than {axes + 1} axes.",
            f"channels last: (..., {', '.join(SPATIAL[axes])}, channels)",
        )
    lead = x.shape[: x.ndim - axes - 1]
    if 0 in x.shape[len(lead) : -1]:
        raise ShapeError(
            f"{name}: an input of shape {x.shape} is empty along a spatial axis.",
            f"(..., {', '.join(SPATIAL[axes])}, channels) with one element or more along each",
        )
    return (x if len(lead) == 1 else arrays.reshape(x, (math.prod(lead), *x.shape[len(lead) :]))), lead


def check_fit(name: Any, shape: Sizes, window: Sizes, padding: Pairs, dilation: Sizes) -> None:
    """Raise for windows that are larger than what they slide over, the spatial axes of a shape (..., *spatial, c)."""
    room, reaches = padded_shape(shape[-len(window) - 1 : -1], padding), extents(window, dilation)
    if any(map(operator.lt, room, reaches)):
        raise ShapeError(
            f"{name}: a window of shape {window} with dilation {dilation} does not fit into an input of shape {shape} "
            f"with padding {padding}: it reaches over {reaches} places where there are {room}.",
            "a smaller window, more padding, or a larger input",
        )


def with_axes(y: Tensor, lead: Sizes) -> Tensor:
    """The leading axes put back in place of one."""
    return y if len(lead) == 1 else arrays.reshape(y, (*lead, *y.shape[1:]))


SPATIAL = {1: ("length",), 2: ("height", "width"), 3: ("depth", "height", "width")}
