"""XLA as an engine."""

from __future__ import annotations

from ...ir.graph import Graph
from .program import Program


class XLA:
    """Runs graphs on the devices that JAX knows."""

    def program(self, graph: Graph) -> Program:
        made = graph.programs.get("xla")
        if made is None:
            made = graph.programs["xla"] = Program(graph)
        return made


ENGINE = XLA()
