"""What a line of a random program can be. Each statement takes a `Writer` and adds lines to its program."""

from __future__ import annotations

from ..writer import Statement
from . import elementwise, layers, loops, places, reductions, shapes

# a statement and how often it is written
STATEMENTS: dict[str, tuple[Statement, float]] = {
    **elementwise.STATEMENTS,
    **reductions.STATEMENTS,
    **shapes.STATEMENTS,
    **places.STATEMENTS,
    **layers.STATEMENTS,
    **loops.STATEMENTS,
}
