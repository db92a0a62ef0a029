"""How far a share that was counted can be trusted."""

from __future__ import annotations

import math

from ..core.errors import InputError


def wilson_interval(right: int, of: int, z: float = 1.959964) -> tuple[float, float]:
    r"""Wilson's interval of a share: where it lies, with 95 % confidence, if `right` of `of` examples were counted.

    >>> low, high = wilson_interval(28, 30)
    >>> round(low, 3), round(high, 3)
    (0.787, 0.982)

    The shares p with \(|\hat p - p| \le z \sqrt{p(1-p)/n}\). It never leaves [0, 1], and is right for few examples,
    too. `z` is the quantile of the normal distribution; 2.576 for 99 %.
    """
    if not 0 <= right <= of or of < 1:
        raise InputError(f"wilson_interval: {right} of {of}.", "a count of one example or more")
    share, inverse = right / of, z * z / of
    middle = (share + inverse / 2) / (1 + inverse)
    half = z / (1 + inverse) * math.sqrt(share * (1 - share) / of + inverse / (4 * of))
    return (middle - half if right else 0.0), (middle + half if right < of else 1.0)
