"""Sampled functions: differences, derivatives, integrals and values in between; polynomials."""

from __future__ import annotations

import numpy as np

from ..core.arguments import as_int
from ..core.broadcasting import normalize_axes, normalize_axis
from ..core.dtypes import floating_of
from ..core.errors import InputError, ShapeError
from ..core.tensor import Tensor, wrap
from ..core.typing import ArrayLike, Axes
from .arithmetic import clip, remainder
from .complexes import real
from .conversion import as_inexact, as_operand, as_real, as_tensor, asarray, convert, promote, promote_inexact
from .creation import zeros
from .gathering import searchsorted, take
from .joining import concat
from .logic import isnan, where
from .manipulation import ravel, reshape
from .reductions import diff, sum
from .sorting import argsort

__all__ = ["ediff1d", "gradient", "interp", "lerp", "polyval", "trapezoid", "vander"]


def ediff1d(x: ArrayLike, /, to_end: ArrayLike | None = None, to_begin: ArrayLike | None = None) -> Tensor:
    """The differences of neighbours in the flattened tensor, between `to_begin` and `to_end` if they are given.

    >>> import wonderland as wl
    >>> wl.ediff1d(wl.tensor([1, 4, 9]), to_begin=0)
    tensor([0, 3, 5])
    """
    x = ravel(as_tensor("ediff1d", x))
    steps = diff(x)
    parts = [None if part is None else ravel(asarray(part, dtype=x.dtype)) for part in (to_begin, to_end)]
    return concat([part for part in (parts[0], steps, parts[1]) if part is not None])


# --- derivatives


def _along(x: Tensor, axis: int, start: int | None, stop: int | None) -> Tensor:
    return x[(slice(None),) * axis + (slice(start, stop),)]


def gradient(
    f: ArrayLike, /, *spacing: ArrayLike, axis: Axes = None, edge_order: int = 1
) -> Tensor | tuple[Tensor, ...]:
    r"""The slope of sampled values along each axis: \((f_{i+1}-f_{i-1})/(x_{i+1}-x_{i-1})\), one-sided at the ends.

    >>> import wonderland as wl
    >>> wl.gradient(wl.tensor([0.0, 1.0, 4.0, 9.0]))
    tensor([1., 2., 4., 5.])

    `spacing` is a step for all axes, or one step or vector of coordinates per axis; between uneven coordinates the
    formula is exact for parabolas. `edge_order=2` is so at the ends, too. Of several axes the result is a tuple.

    The derivative of a function is `wl.grad`.
    """
    f = as_inexact("gradient", f)
    axes = normalize_axes("gradient", axis, f.ndim)
    if isinstance(axis, (tuple, list)):
        axes = tuple(normalize_axis("gradient", a, f.ndim) for a in axis)  # in the order that was asked for
    edge_order = as_int("gradient", "edge_order", edge_order)
    if edge_order not in (1, 2):
        raise InputError(f"gradient: edge_order={edge_order}.", "1 or 2")
    if len(spacing) not in (0, 1, len(axes)):
        raise InputError(f"gradient: {len(spacing)} spacings for {len(axes)} axes.", "none, one, or one per axis")
    given = list(spacing) * len(axes) if len(spacing) == 1 else list(spacing) or [1.0] * len(axes)
    if len(spacing) == 1 and len(axes) > 1 and _ndim(spacing[0]):
        raise InputError(f"gradient: one vector of coordinates for {len(axes)} axes.", "one per axis")
    found = tuple(_gradient(f, a, step, edge_order) for a, step in zip(axes, given, strict=True))
    return found[0] if len(found) == 1 else found


def _ndim(x: ArrayLike) -> int:
    return asarray(x).ndim


def _gradient(f: Tensor, axis: int, spacing: ArrayLike, edge_order: int) -> Tensor:
    n = f.shape[axis]
    if n <= edge_order:
        raise ShapeError(
            f"gradient: axis {axis} of shape {f.shape} is too short.", f"{edge_order + 1} elements or more"
        )
    steps = asarray(spacing) if isinstance(spacing, (list, tuple)) else as_operand("gradient", spacing)
    if isinstance(steps, Tensor) and steps.ndim:
        if steps.shape != (n,):
            raise ShapeError(
                f"gradient: coordinates of shape {steps.shape} for an axis of size {n}.", "one per element"
            )
        steps = reshape(diff(as_real("gradient", steps)), (n - 1,) + (1,) * (f.ndim - axis - 1))
        before, after = steps[:-1], steps[1:]
        first, second = (steps[:1], steps[1:2]), (steps[-1:], steps[-2:-1])
    else:
        before = after = steps
        first = second = (steps, steps)
    slopes = diff(f, axis=axis)
    slopes = slopes / steps
    low, high = _along(slopes, axis, None, -1), _along(slopes, axis, 1, None)
    inner = (low * after + high * before) / (before + after)
    start, end = _along(slopes, axis, None, 1), _along(slopes, axis, -1, None)
    if edge_order == 2:  # on by half a step along the parabola through three points
        bend = (_along(high, axis, None, 1) - start) / (first[0] + first[1])
        start = start - bend * first[0]
        bend = (end - _along(low, axis, -1, None)) / (second[0] + second[1])
        end = end + bend * second[0]
    return concat([start, inner, end], axis=axis)


# --- integrals


def trapezoid(y: ArrayLike, /, x: ArrayLike | None = None, dx: float | Tensor = 1.0, axis: int = -1) -> Tensor:
    r"""The integral of sampled values by the trapezoidal rule, \(\sum_i (x_{i+1}-x_i)(y_i+y_{i+1})/2\).

    >>> import wonderland as wl
    >>> wl.trapezoid(wl.tensor([0.0, 1.0, 4.0])), wl.trapezoid(wl.tensor([0.0, 1.0, 4.0]), x=wl.tensor([0.0, 1.0, 3.0]))
    (tensor(3.), tensor(5.5))

    `x` are coordinates, a vector or of the shape of y; without them `dx` is the step.
    """
    y = as_inexact("trapezoid", y)
    place = normalize_axis("trapezoid", axis, y.ndim)
    if x is None:
        step = dx
    else:
        x = as_real("trapezoid", x)
        if x.ndim == 1:
            step = reshape(diff(x), (-1,) + (1,) * (y.ndim - place - 1)) if x.size > 1 else 1.0
        else:
            step = diff(x, axis=axis)
    return sum((_along(y, place, 1, None) + _along(y, place, None, -1)) * (step * 0.5), axis=place)


# --- in between


def lerp(start: ArrayLike, end: ArrayLike, weight: ArrayLike, /) -> Tensor:
    r"""\(a + w\,(b - a)\): from a at weight 0 to b at weight 1, and on beyond them.

    >>> import wonderland as wl
    >>> wl.lerp(wl.tensor([0.0, 10.0]), wl.tensor([1.0, 20.0]), 0.5)
    tensor([ 0.5, 15. ])
    """
    a, b, w = promote_inexact("lerp", start, end, weight)
    near = real(w) < 0.5  # from the nearer end, so that both ends are exact
    return where(near, a + w * (b - a), b - (b - a) * (1 - w))


def interp(
    x: ArrayLike,
    xp: ArrayLike,
    fp: ArrayLike,
    /,
    left: ArrayLike | None = None,
    right: ArrayLike | None = None,
    period: float | None = None,
) -> Tensor:
    r"""The line through the points \((\mathrm{xp}_i, \mathrm{fp}_i)\) at x; outside of them their first and last value.

    >>> import wonderland as wl
    >>> wl.interp(wl.tensor([0.5, 2.5, 9.0]), wl.tensor([0.0, 1.0, 3.0]), wl.tensor([0.0, 10.0, 20.0]))
    tensor([ 5. , 17.5, 20. ])

    `xp` rises. `left` and `right` replace the values outside. With `period` the coordinates go round, and `xp` may
    have any order. Differentiable in x, in xp and in fp.
    """
    x, xp = promote_inexact("interp", x, as_real("interp", asarray(xp)))
    fp = as_inexact("interp", asarray(fp))
    if xp.ndim != 1 or xp.shape != fp.shape or not xp.size:
        raise ShapeError(f"interp: xp of shape {xp.shape} with fp of shape {fp.shape}.", "two vectors of one length")
    if period is not None:
        if not period:
            raise InputError("interp: the period is 0.", "a number that is not 0")
        period = abs(period)
        x, xp = remainder(x, period), remainder(xp, period)
        order = argsort(xp)
        xp, fp = take(xp, order), take(fp, order)
        xp = concat([xp[-1:] - period, xp, xp[:1] + period])
        fp = concat([fp[-1:], fp, fp[:1]])
    n = xp.size
    high = clip(searchsorted(xp, x, side="right"), min(1, n - 1), n - 1)
    low = clip(high - 1, 0, None)
    x0, x1, y0, y1 = take(xp, low), take(xp, high), take(fp, low), take(fp, high)
    width = where(x1 == x0, 1.0, x1 - x0)
    share = convert((x - x0) / width, floating_of(xp.dtype))
    line = where(y0 == y1, y0, y0 + share * (y1 - y0))
    line = where(x == x1, y1, where(x == x0, y0, line))
    below = fp[0] if left is None or period is not None else left
    above = fp[-1] if right is None or period is not None else right
    found = where(x < xp[0], below, where(x > xp[-1], above, line))
    return where(isnan(x), x, found)


# --- polynomials


def vander(x: ArrayLike, /, N: int | None = None, increasing: bool = False) -> Tensor:
    r"""The matrix of powers \(x_i^j\) of a vector (n), with N columns (n if not said), the highest power first.

    >>> import wonderland as wl
    >>> wl.vander(wl.tensor([2, 3]), 3)
    tensor([[4, 2, 1],
            [9, 3, 1]])
    """
    x = as_tensor("vander", x)
    if x.ndim != 1:
        raise InputError(f"vander: a tensor of shape {x.shape}.", "a vector")
    count = x.size if N is None else as_int("vander", "N", N, least=0)
    powers = np.arange(count) if increasing else np.arange(count)[::-1]
    return reshape(x, (-1, 1)) ** wrap(powers.copy()) if x.size and count else zeros((x.size, count), dtype=x.dtype)


def polyval(p: ArrayLike, x: ArrayLike, /) -> Tensor:
    r"""The polynomial \(p_0 x^{n-1} + p_1 x^{n-2} + \dots + p_{n-1}\) at x, by Horner's rule.

    >>> import wonderland as wl
    >>> wl.polyval(wl.tensor([3, 0, 1]), wl.tensor([2, 5]))
    tensor([13, 76])
    """
    p = asarray(p) if isinstance(p, (list, tuple)) else as_tensor("polyval", p)
    if p.ndim != 1:
        raise InputError(f"polyval: coefficients of shape {p.shape}.", "a vector")
    p, x = promote("polyval", p, x)
    value = x * 0
    for i in range(p.size):
        value = value * x + p[i]
    return value
