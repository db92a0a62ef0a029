"""Integration with steps that adapt to the error: large where the solution is smooth, small where it is not."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from .. import arrays
from ..arrays import stop_gradient
from ..core import dtypes
from ..core.errors import GradientError, InputError
from ..core.tensor import Tensor
from ..transforms.control.branches import cond
from ..transforms.control.loops import runs_in_python, scan, while_loop
from .tableaus import Leaves, Slopes, Tableau, combined, moved, stages

SAFETY = 0.9  # of the step that the error would just allow
SMALLEST, LARGEST = 0.2, 10.0  # factors from one step to the next


@dataclass(frozen=True)
class Control:
    """What a step may cost: its error, and the number of steps between two times."""

    rtol: float
    atol: float
    max_steps: int
    bounded: bool
    first_step: float | None


class Going(NamedTuple):
    """An integration on its way between two times."""

    t: Tensor
    x: Leaves
    slope: Leaves  # at t
    h: Tensor  # the size of the next step, not negative
    rejected: Tensor  # whether the last step was
    taken: Tensor  # the number of steps


def integrate(table: Tableau, f: Slopes, x: Leaves, times: Tensor, control: Control) -> tuple[Leaves, Leaves]:
    """The state at the last of the times, and the states at all but the first, one after another along a new axis."""
    slope = f(x, times[0])
    direction = stop_gradient(arrays.sign(times[-1] - times[0]))
    if control.first_step is None:
        length = stop_gradient(arrays.abs(times[-1] - times[0]))
        constants = [stop_gradient(leaf) for leaf in x], [stop_gradient(leaf) for leaf in slope]
        h = first_step(table, f, *constants, stop_gradient(times[0]), direction, length, control)
    else:
        h = arrays.full((), control.first_step, dtype=times.dtype)
    eps = arrays.finfo(times.dtype).eps

    def interval(
        carry: tuple[Leaves, Leaves, Tensor], ends: tuple[Tensor, Tensor]
    ) -> tuple[tuple[Leaves, Leaves, Tensor], Leaves]:
        x, slope, h = carry
        start, end = ends

        def unfinished(now: Going) -> Tensor:
            # a step that does not change t would be repeated for ever
            possible = now.h > eps * arrays.maximum(arrays.abs(now.t), arrays.abs(end))
            return (now.t != end) & possible & (now.taken < control.max_steps)

        def advance(now: Going) -> Going:
            return step(table, f, now, end, direction, control)

        zero = arrays.zeros((), dtype=dtypes.int32)
        now = Going(start, x, slope, h, arrays.zeros((), dtype=dtypes.bool_), zero)
        if control.bounded and not runs_in_python():
            # a loop of known length can be differentiated in reverse mode, too
            def perhaps(now: Going, _: object) -> tuple[Going, None]:
                return cond(unfinished(now), advance, lambda now: now, now), None

            now, _ = scan(perhaps, now, length=control.max_steps)
        else:
            now = while_loop(unfinished, advance, now)
        x = _arrived(now, end)
        return (x, now.slope, now.h), x

    try:
        (x, _, _), xs = scan(interval, (x, slope, h), (times[:-1], times[1:]))
    except GradientError as error:
        if not str(error).startswith("while_loop:"):
            raise
        raise GradientError(
            "odeint: under jit the number of adaptive steps is not known, so that reverse mode cannot keep them.",
            "wl.ode.odeint_adjoint, or steps=..., or bounded=True with a small max_steps",
        ) from None
    return x, xs


def step(table: Tableau, f: Slopes, now: Going, end: Tensor, direction: Tensor, control: Control) -> Going:
    """One step, which ends at `end` at the latest; if its error is too large, the state stays and the step shrinks."""
    rest = end - now.t
    last = now.h >= arrays.abs(rest)
    h = arrays.where(last, rest, direction * now.h)
    ks = stages(table, f, now.x, now.t, h, first=now.slope)
    after = moved(now.x, h, table.b, ks)
    assert table.error is not None
    errors = [arrays.astype(h, e.dtype) * e for e in combined(table.error, ks)]
    ratio = stop_gradient(error_ratio(errors, now.x, after, control))
    accepted = ratio <= 1.0  # not so for NaN
    factor = arrays.clip(SAFETY * arrays.maximum(ratio, 1e-10) ** (-1.0 / table.order), SMALLEST, LARGEST)
    factor = arrays.where(arrays.isnan(ratio), SMALLEST, factor)
    factor = arrays.where(now.rejected | ~accepted, arrays.minimum(factor, 1.0), factor)
    size = stop_gradient(arrays.abs(h)) * factor
    # a step that was cut short by the end says nothing against longer ones
    size = arrays.where(accepted & last, arrays.maximum(size, now.h), size)
    t = arrays.where(last, end, now.t + h)
    t, x, slope = cond(accepted, lambda: (t, after, ks[-1]), lambda: (now.t, now.x, now.slope))
    return Going(t, x, slope, stop_gradient(size), ~accepted, now.taken + 1)


def error_ratio(errors: Leaves, before: Leaves, after: Leaves, control: Control) -> Tensor:
    r"""The root of the mean of \((e / (\mathrm{atol} + \mathrm{rtol}\,\max(|x|, |x'|)))^2\); 1 is just allowed."""
    scales = [
        control.atol + control.rtol * arrays.maximum(arrays.abs(x), arrays.abs(y))
        for x, y in zip(before, after, strict=True)
    ]
    return rms(errors, scales)


def rms(leaves: Leaves, scales: Leaves) -> Tensor:
    """The root of the mean square of all elements over their scales."""
    squares = [arrays.sum(arrays.abs(x / s) ** 2) for x, s in zip(leaves, scales, strict=True)]
    total = squares[0]
    for square in squares[1:]:
        total = total + square
    return arrays.sqrt(total / max(sum(math.prod(x.shape) for x in leaves), 1))


def first_step(
    table: Tableau, f: Slopes, x: Leaves, slope: Leaves, t: Tensor, direction: Tensor, length: Tensor, control: Control
) -> Tensor:
    """A first step by the sizes of the state, its slope and the change of the slope (Hairer et al., II.4)."""
    scales = [control.atol + control.rtol * arrays.abs(leaf) for leaf in x]
    size, speed = rms(x, scales), rms(slope, scales)
    small = (size < 1e-5) | (speed < 1e-5)
    guess = arrays.where(small, 1e-6, 0.01 * size / arrays.where(small, 1.0, speed))
    guess = arrays.astype(arrays.minimum(guess, length), t.dtype)
    there = f(moved(x, direction * guess, (1.0,), [slope]), t + direction * guess)
    change = rms([b - a for a, b in zip(slope, there, strict=True)], scales) / guess
    fastest = arrays.maximum(speed, change)
    flat = fastest <= 1e-15
    wanted = (0.01 / arrays.where(flat, 1.0, fastest)) ** (1.0 / table.order)
    wanted = arrays.where(flat, arrays.maximum(1e-6, guess * 1e-3), wanted)
    return stop_gradient(arrays.astype(arrays.minimum(arrays.minimum(100 * guess, wanted), length), t.dtype))


def _arrived(now: Going, end: Tensor) -> Leaves:
    """The state at the end; an error, or NaN where values cannot be looked at, if the integration did not get there."""
    there = now.t == end
    if runs_in_python():
        if not np.asarray(stop_gradient(there)):
            raise InputError(
                f"odeint: after {int(now.taken)} steps the integration is at t={float(now.t):.6g}, with a next step of "
                f"{float(now.h):.2g}, on its way to t={float(end):.6g}.",
                "larger rtol and atol, or max_steps; a solution that grows without bound or a stiff equation takes "
                "ever smaller steps, and NaN in f stops them",
            )
        return now.x
    return [arrays.where(there, leaf, arrays.full_like(leaf, math.nan)) for leaf in now.x]
