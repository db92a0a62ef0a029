"""Random programs: the same for everybody; what rounding explains is no failure, and what it does not explain is."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from tools.fuzz import comparing, minimising
from tools.fuzz.campaign import run
from tools.fuzz.case import Case, Line
from tools.fuzz.comparing import problem
from tools.fuzz.generation import random_case
from tools.fuzz.inputs import Input
from tools.fuzz.minimising import minimised
from tools.fuzz.rounding import bounds
from wonderland.core import dtypes


def case(text: str, *lines: str, kind: str = "value") -> Case:
    made = tuple(Line(f"v{i}", line) for i, line in enumerate(lines))
    return Case((Input("x0", text),), made, (made[-1].name,), kind)


NORMAL = "np.random.default_rng(0).normal(size=(300, 7)).astype(wl.float32)"


def test_a_program_is_known_by_its_seed_and_number() -> None:
    for number in range(30):
        assert random_case(3, number) == random_case(3, number)
    assert random_case(3, 0) != random_case(4, 0)


def test_programs_do_not_depend_on_who_tries_them() -> None:
    """Numbers are shared out among processes; each tries its own."""
    found = run(math.inf, 5, lambda _: None, programs=5, workers=2)
    assert found.tried == 5


def test_all_dtypes_kinds_and_sizes_appear() -> None:
    cases = [random_case(0, number) for number in range(250)]
    arrays = [a for c in cases for a in c.arrays()]
    assert {a.dtype.name for a in arrays} == {d.name for d in dtypes.ALL}
    assert {0, 1} < {a.size for a in arrays}
    assert max(a.size for a in arrays) > 100_000
    assert {c.kind for c in cases} == set(comparing.KINDS)


@pytest.mark.parametrize(
    "lines",
    [
        ["wl.exp(x0)"],
        ["wl.sum(x0 - 1e4 * x0 + 1e4 * x0)"],  # what is left is rounding
        ["wl.floor(wl.sin(x0) / wl.sin(x0) * 3)"],  # one unit decides
        ["wl.argmax(wl.tanh(x0 * 100), axis=0)"],  # nearly ties
        ["x0 * x0 - x0 * x0 * 1.0"],  # a fused product is not rounded
        ["wl.cumsum(x0, axis=0)"],
    ],
)
def test_rounding_is_no_failure(lines: list[str]) -> None:
    assert problem(case(NORMAL, *lines)) is None


@pytest.mark.parametrize("units, fails", [(2, False), (200, True)])
def test_a_wrong_digit_is_a_failure(units: int, fails: bool) -> None:
    reference = [np.linspace(1.0, 2.0, 50, dtype=np.float32)]
    (bound,) = bounds(lambda: reference, 3)
    assert bound.violations(reference[0] * np.float32(1 + units * 2**-23)).any() == fails


def test_what_is_exact_must_be_equal() -> None:
    for wrong in (np.array([1, 2, 4]), np.array([True, False])):
        (bound,) = bounds(lambda y=wrong: [y], 3)  # type: ignore[misc]
        assert not bound.violations(wrong).any()
        assert bound.violations(~wrong).all()


def test_what_is_finite_must_agree() -> None:
    (bound,) = bounds(lambda: [np.array([np.nan, np.inf, -np.inf, 1.0])], 3)
    assert bound.violations(np.array([1.0, -np.inf, np.inf, np.nan])).all()


def test_a_planted_failure_is_found_and_made_small(monkeypatch: pytest.MonkeyPatch) -> None:
    """A compiler that is wrong about the hyperbolic tangent."""
    original = comparing.Engines.__init__

    def planted(self: Any, c: Case, name: str) -> None:
        original(self, c, name)
        tried = self.tried
        if any("tanh" in line.text for line in c.lines):
            self.tried = lambda: [y * np.asarray(1.01, y.dtype) for y in tried()]

    monkeypatch.setattr(comparing.Engines, "__init__", planted)
    whole = case(NORMAL, "wl.sin(x0)", "wl.tanh(v0 + 3)", "v1.reshape((7, 300))", "wl.sum(v2, axis=0)")
    assert problem(whole) is not None
    small = minimised(whole, lambda c: problem(c) is not None, 30)
    assert [line.text for line in small.lines] in (["wl.tanh(v0 + 3)"], ["wl.tanh(v0 + 1)"], ["wl.tanh(x0 + 1)"])
    assert small.arrays()[0].size <= 4
    exec(compile(small.snippet(), "snippet", "exec"), {})


def test_a_line_that_is_refused_has_no_numbers_to_put_in_its_place() -> None:
    lines = (Line("v0", "x0 // x0"), Line("v1", "v0 + 1"))
    case = Case((Input("x0", "np.zeros(3, int)"),), lines, ("v1",))
    assert list(minimising._cut_lines(case)) == []
