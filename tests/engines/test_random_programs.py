"""Random programs of every kind of statement, and their transformations: native code gives what NumPy gives.

`python -m tools.fuzz` tries as many as there is time for.
"""

from __future__ import annotations

import pytest

from tools.fuzz.comparing import problem
from tools.fuzz.generation import random_case
from tools.fuzz.statements import STATEMENTS
from tools.fuzz.transformed import KINDS

SEED = 1
TOGETHER = 12  # programs of one test


@pytest.mark.parametrize("name", sorted(STATEMENTS))
def test_every_statement_alone(name: str) -> None:
    for number in range(2):
        for kind in ("value", "grad"):
            case = random_case(SEED, number, [name], kind)
            assert problem(case) is None, case.snippet()


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_every_transformation(kind: str) -> None:
    for number in range(4):
        case = random_case(SEED + 1, number, kind=kind)
        assert problem(case) is None, case.snippet()


@pytest.mark.parametrize("first", range(0, 120, TOGETHER))
def test_random_programs(first: int) -> None:
    for number in range(first, first + TOGETHER):
        case = random_case(SEED + 2, number)
        assert problem(case) is None, case.snippet()
