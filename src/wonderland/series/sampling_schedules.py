"""How often a model is fed its own predictions, as a plain function of the training step: 0 at first, then more.

>>> p = linear(100)
>>> p(0), p(50), p(1000)
(0.0, 0.5, 1.0)

The three forms are those of scheduled sampling, written as the probability to use a prediction (there: of the truth).
They also take a traced step. Book, section 8.3.2.
"""

from __future__ import annotations

import math

from ..core.arguments import as_number
from ..core.errors import InputError
from ..optim.schedules import Schedule, _schedule
from ..optim.schedules import linear as _linear

__all__ = ["exponential", "inverse_sigmoid", "linear"]


def linear(steps: int, end: float = 1.0) -> Schedule:
    r"""\(p_i = \mathrm{end} \cdot \min(1, i / \mathrm{steps})\).

    >>> linear(10, end=0.5)(5)
    0.25
    """
    if not 0 <= as_number("linear", "end", end) <= 1:
        raise InputError(f"linear: end={end} is not a probability.", "a number from 0 to 1")
    return _linear(0.0, end, steps)


def exponential(k: float) -> Schedule:
    r"""\(p_i = 1 - k^i\) with \(0 < k < 1\).

    >>> exponential(0.5)(2)
    0.75
    """
    if not 0 < as_number("exponential", "k", k) < 1:
        raise InputError(f"exponential: k={k}.", "0 < k < 1")
    return _schedule("exponential", lambda xp, step: 1.0 - xp.exp(step * math.log(k)))


def inverse_sigmoid(k: float) -> Schedule:
    r"""\(p_i = 1 - \frac{k}{k + e^{i/k}}\) with \(k \ge 1\): little at first, half after \(k \ln k\) steps.

    >>> round(inverse_sigmoid(10)(23), 2)
    0.5
    """
    if not as_number("inverse_sigmoid", "k", k) >= 1:
        raise InputError(f"inverse_sigmoid: k={k}.", "k >= 1")
    # 1 - k / (k + e^u) = 1 / (1 + k e^-u), which does not overflow
    return _schedule("inverse_sigmoid", lambda xp, step: 1.0 / (1.0 + k * xp.exp(-step / k)))
