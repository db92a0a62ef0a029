"""Native code as an engine."""

from __future__ import annotations

from ...core.context import uncollected
from ...ir.graph import Graph
from ...ir.simplify import simplify
from .keeping import kept
from .program import Program


class Native:
    """Compiles graphs, and keeps the programs that were used last."""

    def program(self, graph: Graph) -> Program:
        found = graph.programs.get("native")
        if not isinstance(found, Program):
            found = uncollected(Program, simplify(graph), graph.states)
            kept.add(found, graph)
        return found


ENGINE = Native()
