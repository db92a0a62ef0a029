"""Numbers that come from a size, as formulas: the 1/n of a mean, the n - 1 of a variance.

A trace has the number that Python computed. A program that is not traced again computes it from the size, so the
formula is guessed from the values at a few sizes, and taken if it gives all of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from ml_dtypes import finfo

from ..core.dtypes import is_floating, is_integer
from ..core.typing import Array

LARGEST = 1 << 24  # denominator of a factor, as far as float32 tells one from its neighbours
ULPS = 4  # by which a formula may differ from what Python computed in another order


class Formula(NamedTuple):
    """(a n + b) / (c n + d), all of them whole."""

    a: int
    b: int
    c: int
    d: int

    @property
    def whole(self) -> bool:
        """Whether nothing is divided."""
        return (self.c, self.d) == (0, 1)

    def of(self, n: int) -> float:
        """The number for a size."""
        above = self.a * n + self.b
        return above if self.whole else above / (self.c * n + self.d)

    def __str__(self) -> str:
        above, below = _linear(self.a, self.b), _linear(self.c, self.d)
        return above if below == "1" else f"({above}) / ({below})"


def _linear(factor: int, more: int) -> str:
    parts = [f"{factor} n"] if factor else []
    return " + ".join([*parts, *([str(more)] if more or not parts else [])])


def formula_of(values: Mapping[int, Array]) -> Formula | None:
    """The formula of a number that has these values at sizes; the smallest are the ones that tell most."""
    dtype = next(iter(values.values())).dtype
    if not (is_floating(dtype) or is_integer(dtype)) or not all(np.isfinite(float(v)) for v in values.values()):
        return None
    for n in sorted(values)[:2]:
        for formula in _candidates(float(values[n]), n):
            if all(_agrees(formula, size, value) for size, value in values.items()):
                return formula
    return None


def _agrees(formula: Formula, n: int, value: Array) -> bool:
    if formula.c * n + formula.d == 0:
        return False
    found = formula.of(n)
    if is_integer(value.dtype):
        return bool(found == int(value))
    return bool(abs(found - float(value)) <= ULPS * float(finfo(value.dtype).eps) * abs(found))


def _candidates(value: float, n: int) -> Iterator[Formula]:
    """What gives this value at n: factors of n, of n less one element, and of their reciprocals; then ratios."""
    for more in (0, -1, 1):
        factor = _fraction((value - more) / n)
        yield Formula(factor.numerator, more * factor.denominator, 0, factor.denominator)
    if value:
        factor = _fraction(value * n)
        yield Formula(0, factor.numerator, factor.denominator, 0)
        factor = _fraction((1 / value + 1) / n)
        yield Formula(0, factor.denominator, factor.numerator, -factor.denominator)
    if value not in (0.0, 1.0):
        k = round(value / (value - 1) / n)  # k n / (k n - 1), which unbiased variances are corrected by
        yield Formula(k, 0, k, -1)
        k = round(1 / (1 - value) / n)
        yield Formula(k, -1, k, 0)


def _fraction(x: float) -> Fraction:
    """The simplest fraction that is x up to the rounding of float32."""
    bound = 1
    while bound < LARGEST:
        found = Fraction(x).limit_denominator(bound)
        if abs(float(found) - x) <= 1e-7 * abs(x):
            return found
        bound *= 4
    return Fraction(x).limit_denominator(LARGEST)
