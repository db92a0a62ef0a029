"""What is worth compiling is what comes again: by counts, and by no clock."""

from __future__ import annotations

from wonderland.core import sightings
from wonderland.core.sightings import Sightings


def test_many_elements_need_few_calls_and_few_elements_many():
    seen = Sightings()
    assert [seen.enough("a", sightings.MANY) for _ in range(5)] == [False, False, False, True, True]
    assert [seen.enough("b", 10) for _ in range(64)] == [False] * 63 + [True]


def test_calls_that_save_little_wait_until_they_have_done_much_together():
    seen = Sightings()
    assert [seen.enough("a", 100, 1000) for _ in range(10)] == [False] * 9 + [True]
    assert [seen.enough("b", 10_000, 1000) for _ in range(4)] == [False] * 3 + [True]


def test_only_the_last_kinds_are_remembered(monkeypatch):
    monkeypatch.setattr(sightings, "REMEMBERED", 3)
    seen = Sightings()
    for kind in range(10):
        seen.enough(kind, 1)
    assert len(seen._counts) == 3
