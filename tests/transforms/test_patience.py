"""What is prepared for the next call, and when that is left out."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

import wonderland as wl
from wonderland import nn
from wonderland.transforms.jit.patience import LONGEST, Patience
from wonderland.transforms.jit.recent import Recent


def test_what_is_used_is_prepared_at_once() -> None:
    patience = Patience()
    assert all(patience.prepares(used=True) for _ in range(10))


def test_what_is_not_used_is_prepared_more_and_more_rarely() -> None:
    patience = Patience()
    prepared = [i for i in range(200) if patience.prepares(used=False)]
    gaps = [b - a - 1 for a, b in itertools.pairwise(prepared)]
    assert gaps[:4] == [0, 1, 3, 7]
    assert set(gaps[4:]) == {LONGEST}
    assert patience.prepares(used=True)  # and then it begins anew
    assert patience.prepares(used=False)


def test_state_that_is_looked_at_between_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    counts, real = [0], Recent._enter

    def enter(self: Any, *args: Any) -> None:
        counts[0] += 1
        real(self, *args)

    monkeypatch.setattr(Recent, "_enter", enter)
    model, f = nn.Linear(3, 3), wl.jit(lambda model, x: model(x))
    with wl.using_backend("native"):
        for _ in range(100):
            f(model, wl.ones(3))
            model.weight.value  # noqa: B018 - so the next call has to look, too
        assert 3 < counts[0] < 15
        for _ in range(LONGEST + 3):
            f(model, wl.ones(3))
        counts[0] = 0
        for _ in range(20):
            f(model, wl.ones(3))
        assert counts[0] == 0  # functions of C
