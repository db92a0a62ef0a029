"""What a campaign found."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class Outcome:
    """How many cases were tried, and every failure as a text that reproduces it."""

    tried: int = 0
    failures: list[str] = field(default_factory=list)
