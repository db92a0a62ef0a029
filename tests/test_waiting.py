"""The line for those who wait: none for what is quick, one in a file, and one that counts on a terminal."""

from __future__ import annotations

import io
import sys

import pytest

from wonderland.core import waiting
from wonderland.core.waiting import Waiting


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Seconds that pass when a test says so."""
    now = [0.0]
    monkeypatch.setattr(waiting.time, "monotonic", lambda: now[0])
    return now


@pytest.mark.parametrize("kind", [io.StringIO, Terminal])
def test_what_is_quick_says_nothing(kind: type[io.StringIO], clock: list[float], monkeypatch) -> None:
    monkeypatch.setattr(sys, "stderr", out := kind())
    with Waiting("reading", 3, "files") as line:
        for _ in range(3):
            clock[0] += 0.3
            line.advance()
    assert out.getvalue() == ""


def test_one_line_in_a_file(clock: list[float], monkeypatch) -> None:
    monkeypatch.setattr(sys, "stderr", out := io.StringIO())
    with Waiting("reading a.csv", 5_000_000, "MB", 10**6) as line:
        for block in line.counting([b"x" * 1_000_000] * 5):
            clock[0] += 0.6 * len(block) / 1e6
    assert out.getvalue() == "wonderland: reading a.csv: 3 of 5 MB, 1 s ...\n"


def test_a_terminal_counts_and_is_clean_afterwards(clock: list[float], monkeypatch) -> None:
    monkeypatch.setattr(sys, "stderr", out := Terminal())
    with Waiting("compiling step", 0, "routines") as line:
        for _ in range(3):
            clock[0] += 2.0
            line.advance()
    lines = out.getvalue().split("\r")
    assert lines[1:4] == [f"wonderland: compiling step: {i} routines, {2 * i} s" for i in (1, 2, 3)]
    assert lines[4] == "\033[K"


def test_no_stream_is_no_reason_to_fail(clock: list[float], monkeypatch) -> None:
    monkeypatch.setattr(sys, "stderr", None)
    with Waiting("reading", 1, "files") as line:
        clock[0] = 5.0
        line.advance()
