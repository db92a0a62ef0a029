"""A module whose state is written by every call."""

from __future__ import annotations

from typing import Any

import wonderland as wl
from wonderland import nn


class Mean(nn.Module):
    """A running mean: state that is written in the forward pass."""

    def __init__(self, size: int) -> None:
        self.gain = nn.Parameter(wl.ones(size))
        self.mean = nn.Buffer(wl.zeros(size))
        self.steps = nn.Buffer(0)

    def forward(self, x: Any) -> Any:
        if self.training:
            self.mean = 0.9 * self.mean + 0.1 * x.mean(axis=0)
            self.steps = self.steps + 1  # type: ignore[assignment]
        return (x - self.mean) * self.gain
