"""Numbers that come from a size: formulas are found from a few values, and nothing is guessed that does not fit."""

from __future__ import annotations

import math
from collections.abc import Callable

import ml_dtypes
import numpy as np
import pytest

from wonderland.ir.size_numbers import formula_of

SIZES = (2, 3, 7, 32, 33, 130, 4099)
KNOWN: dict[str, Callable[[int], float]] = {
    "n": lambda n: n,
    "12 n": lambda n: 12 * n,
    "n / 2": lambda n: n / 2,
    "6 n - 1": lambda n: 6 * n - 1,
    "1 / n": lambda n: 1 / n,
    "2 / (784 n)": lambda n: 2 / (784 * n),
    "1 / (16 n - 1)": lambda n: 1 / (16 * n - 1),
    "16 n / (16 n - 1)": lambda n: 16 * n / (16 * n - 1),
    "(4 n - 1) / (4 n)": lambda n: (4 * n - 1) / (4 * n),
    "-0.5 / n": lambda n: -0.5 / n,
    "0.1 / n": lambda n: 0.1 / n,
}


@pytest.mark.parametrize("dtype", [np.float32, np.float64, ml_dtypes.bfloat16])
@pytest.mark.parametrize("which", KNOWN)
def test_formulas(which: str, dtype: type) -> None:
    f = KNOWN[which]
    found = formula_of({n: np.asarray(f(n), dtype) for n in SIZES})
    assert found is not None
    if dtype != ml_dtypes.bfloat16:  # of which many formulas are one number
        for n in (1, 2, 5, 1000, 10**6):
            assert found.of(n) == pytest.approx(f(n), rel=1e-6)


def test_whole_numbers_stay_whole() -> None:
    found = formula_of({n: np.asarray(3 * n - 1) for n in SIZES})
    assert found is not None
    assert (str(found), found.of(10**15)) == ("3 n + -1", 3 * 10**15 - 1)


@pytest.mark.parametrize(
    "f", [math.sqrt, math.log, lambda n: n * n, lambda n: min(n, 100), lambda n: n // 2, lambda n: 1 / (n * n + 1)]
)
def test_what_is_no_such_formula(f: Callable[[int], float]) -> None:
    assert formula_of({n: np.asarray(f(n)) for n in SIZES}) is None
    assert formula_of({n: np.asarray(f(n), np.float32) for n in SIZES}) is None


def test_numbers_that_cannot_be_computed_with() -> None:
    assert formula_of({n: np.asarray(n > 5) for n in SIZES}) is None
    assert formula_of({n: np.asarray(np.inf if n > 5 else n) for n in SIZES}) is None
