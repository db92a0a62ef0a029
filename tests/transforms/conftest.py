"""Every graph that a test in this folder runs is verified first, with the graphs inside it."""

from __future__ import annotations

from typing import Any

import pytest


@pytest.fixture(autouse=True)
def verified_graphs(monkeypatch: pytest.MonkeyPatch) -> None:
    from wonderland.engines.numpy.evaluate import Plan
    from wonderland.ir.verify import verify

    prepare = Plan.__init__

    def prepare_verified(self: Plan, graph: Any) -> None:
        verify(graph)
        prepare(self, graph)

    monkeypatch.setattr(Plan, "__init__", prepare_verified)
