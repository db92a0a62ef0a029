"""The settings of transforms: probabilities, ranges, sizes; each checked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from ...core.arguments import as_int, as_number, shown
from ...core.errors import InputError

Range: TypeAlias = float | Sequence[float]  # (low, high), or one number: as far to both sides
Size: TypeAlias = int | Sequence[int]  # (height, width), or one number for both


def as_probability(name: str, what: str, value: float) -> float:
    """A number from 0 to 1."""
    if not 0 <= as_number(name, what, value) <= 1:
        raise InputError(f"{name}: {what}={value!r} is not a probability.", "a number from 0 to 1")
    return float(value)


def as_range(
    name: str, what: str, value: Any, around: float = 0.0, least: float = -np.inf, most: float = np.inf
) -> tuple[float, float]:
    """(low, high) as given; a single number v is (around - v, around + v), cut off at the lower bound.

    >>> as_range("RandomRotation", "degrees", 20)
    (-20.0, 20.0)
    >>> as_range("Brightness", "brightness", 1.5, around=1.0, least=0.0)
    (0.0, 2.5)
    """
    if np.ndim(value) == 0:
        if not 0 <= as_number(name, what, value) <= most - around:
            bound = f"0 to {most - around:g}" if np.isfinite(most) else "0 or more"
            raise InputError(f"{name}: {what}={value!r}.", f"{bound}, or a pair (low, high)")
        return max(around - float(value), least), around + float(value)
    pair = tuple(value)
    if len(pair) != 2:
        raise InputError(f"{name}: {what}={shown(value)}.", "a number or a pair (low, high)")
    low, high = (float(as_number(name, what, end)) for end in pair)
    if not least <= low <= high <= most:
        bounds = f"from {least} to {most}" if np.isfinite(least) or np.isfinite(most) else "with low <= high"
        raise InputError(f"{name}: {what}={shown(value)}.", f"a pair (low, high) {bounds}")
    return low, high


def as_size(name: str, size: Any) -> tuple[int, int]:
    """(height, width); a single number is both."""
    pair = (size, size) if np.ndim(size) == 0 else tuple(size)
    if len(pair) != 2:
        raise InputError(f"{name}: size={shown(size)}.", "a number or a pair (height, width)")
    return as_int(name, "size", pair[0], least=1), as_int(name, "size", pair[1], least=1)
