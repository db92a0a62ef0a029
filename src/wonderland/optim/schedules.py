"""Learning rates (or batch sizes) as plain functions of the step, counted from 0.

>>> from wonderland.optim import schedules
>>> rate = schedules.warmup(4, schedules.cosine(0.1, 8))
>>> [round(rate(t), 3) for t in range(12)]
[0.0, 0.025, 0.05, 0.075, 0.1, 0.096, 0.085, 0.069, 0.05, 0.031, 0.015, 0.004]

A loop says `optimizer.lr = rate(step)`; a compiled step may say `optimizer.lr = rate(optimizer.count)`, because all of
these also take a traced step. Any function of the step is a schedule (PyTorch's `LambdaLR`). Steps after the end keep
the last value. Book, section 2.3.2.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from types import ModuleType
from typing import Any, TypeAlias

import numpy as np

from .. import arrays
from ..core import dtypes
from ..core.arguments import as_int, as_list, as_number, shown
from ..core.errors import InputError
from ..core.naming import hints_for
from ..core.tensor import Tensor

__all__ = [
    "batch_sizes",
    "changes",
    "constant",
    "cosine",
    "cosine_restarts",
    "cyclic",
    "exponential",
    "inverse_sqrt",
    "join",
    "linear",
    "multi_step",
    "one_cycle",
    "piecewise",
    "polynomial",
    "Schedule",
    "step",
    "warmup",
]

Schedule = Callable[[Any], Any]
Step: TypeAlias = np.float64 | Tensor


def _schedule(name: str, formula: Callable[[ModuleType, Any], Any]) -> Schedule:
    """The function of a step whose formula is written for a namespace: NumPy for numbers, ours for tensors."""

    def rate(step: float | Tensor) -> float | Tensor:
        if isinstance(step, Tensor):
            return formula(arrays, arrays.astype(step, dtypes.float64))
        if as_number(name, "step", step) < 0:
            raise InputError(f"{name}: the step {step}.", "steps count from 0")
        return float(formula(np, np.float64(step)))

    rate.__name__ = rate.__qualname__ = name
    return rate


def _checked(name: str, what: str, value: float, least: float = 0.0) -> float:
    if not as_number(name, what, value) >= least or not math.isfinite(value):
        raise InputError(f"{name}: {what}={shown(value)}.", f"{what} >= {least:g}")
    return float(value)


def constant(lr: float) -> Schedule:
    r"""\(\eta_t = \eta\); `ConstantLR` with factor 1.

    >>> constant(0.1)(1000)
    0.1
    """
    lr = _checked("constant", "lr", lr)
    return _schedule("constant", lambda xp, t: 0.0 * t + lr)


def linear(start: float, end: float, total_steps: int) -> Schedule:
    r"""From `start` to `end` in a straight line; `LinearLR` with \(\eta\) times its factors.

    >>> [linear(1.0, 0.0, 4)(t) for t in (0, 1, 4, 9)]
    [1.0, 0.75, 0.0, 0.0]
    """
    start, end = _checked("linear", "start", start), _checked("linear", "end", end)
    n = as_int("linear", "total_steps", total_steps, 1)
    return _schedule("linear", lambda xp, t: start + (end - start) * xp.minimum(t / n, 1.0))


def step(lr: float, step_size: int, gamma: float = 0.1) -> Schedule:
    r"""\(\eta_t = \eta\,\gamma^{\lfloor t/s \rfloor}\), drops every s steps; `StepLR`.

    >>> [step(1.0, 10, 0.5)(t) for t in (0, 9, 10, 25)]
    [1.0, 1.0, 0.5, 0.25]
    """
    lr, gamma = _checked("step", "lr", lr), _checked("step", "gamma", gamma)
    size = as_int("step", "step_size", step_size, 1)
    return _schedule("step", lambda xp, t: lr * gamma ** xp.floor(t / size))


def multi_step(lr: float, milestones: Sequence[int], gamma: float = 0.1) -> Schedule:
    r"""\(\eta_t = \eta\,\gamma^k\) after k milestones; `MultiStepLR`.

    >>> [multi_step(1.0, [3, 8], 0.5)(t) for t in (2, 3, 7, 8)]
    [1.0, 0.5, 0.5, 0.25]
    """
    lr, gamma = _checked("multi_step", "lr", lr), _checked("multi_step", "gamma", gamma)
    marks = sorted(as_int("multi_step", "milestones", m, 0) for m in as_list("multi_step", "milestones", milestones))

    def formula(xp: ModuleType, t: Step) -> Step:
        value = 0.0 * t + lr
        for mark in marks:
            value = xp.where(t >= mark, value * gamma, value)
        return value

    return _schedule("multi_step", formula)


def piecewise(boundaries: Sequence[int], values: Sequence[float]) -> Schedule:
    """`values[k]` from `boundaries[k - 1]` on, one value more than boundaries.

    >>> rate = piecewise([10, 20], [0.1, 0.5, 0.01])
    >>> [rate(t) for t in (0, 9, 10, 20)]
    [0.1, 0.1, 0.5, 0.01]
    """
    return join([constant(v) for v in as_list("piecewise", "values", values)], boundaries)


def exponential(lr: float, gamma: float) -> Schedule:
    r"""\(\eta_t = \eta\,\gamma^t\); `ExponentialLR`.

    >>> exponential(1.0, 0.5)(3)
    0.125
    """
    lr, gamma = _checked("exponential", "lr", lr), _checked("exponential", "gamma", gamma)
    return _schedule("exponential", lambda xp, t: lr * gamma**t)


def polynomial(lr: float, total_steps: int, power: float = 1.0, end: float = 0.0) -> Schedule:
    r"""\(\eta_t = \eta_e + (\eta - \eta_e)(1 - t/T)^p\); `PolynomialLR`.

    >>> polynomial(1.0, 10, power=2.0)(5)
    0.25
    """
    lr, end = _checked("polynomial", "lr", lr), _checked("polynomial", "end", end)
    n, power = as_int("polynomial", "total_steps", total_steps, 1), _checked("polynomial", "power", power)
    return _schedule("polynomial", lambda xp, t: end + (lr - end) * (1.0 - xp.minimum(t / n, 1.0)) ** power)


def inverse_sqrt(lr: float, warmup_steps: int = 1) -> Schedule:
    r"""\(\eta_t = \eta\,\min(t/T, \sqrt{T/t})\) with \(T\) steps of warm-up: the schedule of the first transformers.

    >>> [inverse_sqrt(1.0, 100)(t) for t in (50, 100, 400)]
    [0.5, 1.0, 0.5]
    """
    lr, n = _checked("inverse_sqrt", "lr", lr), as_int("inverse_sqrt", "warmup_steps", warmup_steps, 1)
    return _schedule("inverse_sqrt", lambda xp, t: lr * xp.minimum(t / n, xp.sqrt(n / xp.maximum(t, 1.0))))


def cosine(lr: float, total_steps: int, end: float = 0.0) -> Schedule:
    r"""\(\eta_t = \eta_e + \tfrac12(\eta - \eta_e)(1 + \cos(\pi t/T))\); `CosineAnnealingLR`.

    >>> [round(cosine(1.0, 10)(t), 3) for t in (0, 5, 10, 11)]
    [1.0, 0.5, 0.0, 0.0]

    After \(T\) steps it stays at the end, where PyTorch's goes up again.
    """
    lr, end = _checked("cosine", "lr", lr), _checked("cosine", "end", end)
    n = as_int("cosine", "total_steps", total_steps, 1)
    return _schedule("cosine", lambda xp, t: end + (lr - end) * _half_wave(xp, xp.minimum(t / n, 1.0)))


def cosine_restarts(lr: float, period: int, factor: int = 1, end: float = 0.0) -> Schedule:
    """Cosines one after the other, each `factor` times longer than the one before; `CosineAnnealingWarmRestarts`.

    >>> rate = cosine_restarts(1.0, 2, factor=2)
    >>> [round(rate(t), 3) for t in range(7)]
    [1.0, 0.5, 1.0, 0.854, 0.5, 0.146, 1.0]
    """
    lr, end = _checked("cosine_restarts", "lr", lr), _checked("cosine_restarts", "end", end)
    n, factor = as_int("cosine_restarts", "period", period, 1), as_int("cosine_restarts", "factor", factor, 1)

    def formula(xp: ModuleType, t: Step) -> Step:
        if factor == 1:
            return end + (lr - end) * _half_wave(xp, t / n - xp.floor(t / n))
        # cycle k starts at n (f^k - 1) / (f - 1) and has n f^k steps; the logarithm is kept away from a rounded edge
        k = xp.floor(xp.log(t * (factor - 1) / n + 1.0) / math.log(factor) + 1e-9)
        length = float(factor) ** k
        return end + (lr - end) * _half_wave(xp, (t / n - (length - 1.0) / (factor - 1)) / length)

    return _schedule("cosine_restarts", formula)


def _half_wave(xp: ModuleType, progress: Step | float) -> Step:
    """From 1 to 0 while progress goes from 0 to 1."""
    return 0.5 * (1.0 + xp.cos(math.pi * progress))


def warmup(steps: int, then: Schedule, start: float = 0.0) -> Schedule:
    r"""A straight line from `start` to the first value of another schedule, in `steps` steps, and then that schedule.

    >>> [warmup(2, constant(0.1))(t) for t in range(4)]
    [0.0, 0.05, 0.1, 0.1]
    """
    n, start = as_int("warmup", "steps", steps, 0), _checked("warmup", "start", start)
    return join([linear(start, float(then(0)), n), then], [n]) if n else then


def one_cycle(
    max_lr: float,
    total_steps: int,
    pct_start: float = 0.3,
    div_factor: float = 25.0,
    final_div_factor: float = 1e4,
    anneal_strategy: str = "cos",
) -> Schedule:
    """Up from `max_lr / div_factor`, and down to that over `final_div_factor`; `OneCycleLR`.

    >>> rate = one_cycle(1.0, 11)
    >>> [round(rate(t), 3) for t in (0, 2, 10)]
    [0.04, 0.96, 0.0]

    `pct_start` is the part of the steps that goes up; `anneal_strategy` is "cos" or "linear".
    """
    top, n = _checked("one_cycle", "max_lr", max_lr), as_int("one_cycle", "total_steps", total_steps, 2)
    first = top / _checked("one_cycle", "div_factor", div_factor, 1.0)
    last = first / _checked("one_cycle", "final_div_factor", final_div_factor, 1.0)
    if not 0 <= as_number("one_cycle", "pct_start", pct_start) <= 1:
        raise InputError(f"one_cycle: pct_start={pct_start}.", "a part from 0 to 1")
    if anneal_strategy not in ("cos", "linear"):
        raise InputError(f"one_cycle: anneal_strategy={anneal_strategy!r}.", '"cos" or "linear"')
    peak = pct_start * n - 1.0

    def between(xp: ModuleType, a: float, b: float, progress: Step | float) -> Step | float:
        return b + (a - b) * (_half_wave(xp, progress) if anneal_strategy == "cos" else 1.0 - progress)

    def formula(xp: ModuleType, t: Step) -> Step:
        t = xp.minimum(t, n - 1.0)
        up = between(xp, first, top, t / peak if peak > 0 else 1.0)
        down = between(xp, top, last, (t - peak) / (n - 1.0 - peak) if peak < n - 1.0 else 1.0)
        return xp.where(t <= peak, up, down)

    return _schedule("one_cycle", formula)


def cyclic(
    base_lr: float,
    max_lr: float,
    step_size_up: int = 2000,
    step_size_down: int | None = None,
    mode: str = "triangular",
    gamma: float = 1.0,
) -> Schedule:
    """Up and down between two rates again and again; `CyclicLR`.

    >>> rate = cyclic(0.0, 1.0, step_size_up=2)
    >>> [rate(t) for t in range(6)]
    [0.0, 0.5, 1.0, 0.5, 0.0, 0.5]

    "triangular2" halves the height with every cycle, "exp_range" multiplies it by `gamma` to the step.
    """
    low, high = _checked("cyclic", "base_lr", base_lr), _checked("cyclic", "max_lr", max_lr)
    up = as_int("cyclic", "step_size_up", step_size_up, 1)
    total = up + (up if step_size_down is None else as_int("cyclic", "step_size_down", step_size_down, 1))
    gamma = _checked("cyclic", "gamma", gamma)
    if mode not in ("triangular", "triangular2", "exp_range"):
        raise InputError(f"cyclic: mode={mode!r}.", '"triangular", "triangular2" or "exp_range"')

    def formula(xp: ModuleType, t: Step) -> Step:
        cycle = xp.floor(t / total)
        place = t - total * cycle
        height = xp.minimum(place / up, (total - place) / (total - up)) * (high - low)
        if mode == "triangular2":
            height = height * 0.5**cycle
        elif mode == "exp_range":
            height = height * gamma**t
        return low + height

    return _schedule("cyclic", formula)


def join(schedules: Sequence[Schedule], boundaries: Sequence[int]) -> Schedule:
    """One schedule after the other, each counting from 0 where it begins; `SequentialLR`.

    >>> rate = join([constant(1.0), exponential(0.5, 0.5)], [10])
    >>> [rate(t) for t in (9, 10, 11)]
    [1.0, 0.5, 0.25]
    """
    parts = as_list("join", "schedules", schedules)
    starts = [0, *(as_int("join", "boundaries", b, 0) for b in as_list("join", "boundaries", boundaries))]
    if len(parts) != len(starts):
        raise InputError(
            f"join: {len(parts)} schedules and {len(starts) - 1} boundaries.", "one boundary fewer than schedules"
        )
    if any(a > b for a, b in pairwise(starts)):
        raise InputError(f"join: the boundaries {starts[1:]} do not rise.", "steps in rising order")

    def joined(step: float | Tensor) -> float | Tensor:
        if not isinstance(step, Tensor):
            if as_number("join", "step", step) < 0:
                raise InputError(f"join: the step {step}.", "steps count from 0")
            k = sum(step >= start for start in starts[1:])
            return parts[k](step - starts[k])
        value = parts[0](step)
        for part, start in zip(parts[1:], starts[1:], strict=True):
            value = arrays.where(step >= start, part(arrays.maximum(step - start, 0)), value)
        return value

    return joined


def batch_sizes(rate: Schedule, first: int, largest: int | None = None) -> Callable[[int], int]:
    r"""Batches that grow where a rate would fall: \(B_t = B_0\,\eta_0/\eta_t\), at most `largest`.

    >>> size = batch_sizes(step(0.1, 30, gamma=0.2), first=128, largest=2048)
    >>> [size(epoch) for epoch in (0, 30, 60)]
    [128, 640, 2048]

    Noise in the steps goes with \(\eta/B\), so that training goes much the same with fewer, larger, updates.
    """
    first = as_int("batch_sizes", "first", first, 1)
    top = math.inf if largest is None else as_int("batch_sizes", "largest", largest, first)
    beginning = float(rate(0))
    if beginning <= 0:
        raise InputError(f"batch_sizes: the schedule begins with {beginning}.", "a schedule that begins above 0")

    def size(step: int) -> int:
        now = float(rate(step))
        wanted = first * beginning / now if now > 0 else math.inf
        if math.isinf(min(wanted, top)):
            raise InputError(f"batch_sizes: at step {step} the rate is {now}.", "a largest size")
        return max(1, round(min(wanted, top)))

    return size


def changes(schedule: Schedule, steps: int) -> list[int]:
    """The steps below `steps` with another value than the step before, to mark them in a plot.

    >>> changes(multi_step(1.0, [3, 8]), 20)
    [3, 8]
    """
    values = [schedule(t) for t in range(as_int("changes", "steps", steps, 0))]
    return [t for t in range(1, len(values)) if values[t] != values[t - 1]]


hints_for(globals())
