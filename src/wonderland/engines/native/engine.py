"""Native code as an engine."""

from __future__ import annotations

from ...core.context import uncollected
from ...core.errors import InputError
from ...ir.at_size import AtSize
from ...ir.folding import folded
from ...ir.graph import Graph
from ...ir.simplify import simplify
from .general import Sized, program_for
from .keeping import kept
from .program import Program


class Native:
    """Compiles graphs, and keeps the programs that were used last."""

    def program(self, graph: Graph) -> Program | Sized:
        found = graph.programs.get("native")
        if isinstance(found, Program | Sized):
            return found
        if graph.at_size is not None and (sized := self._sized(graph, graph.at_size)) is not None:
            graph.programs["native"] = sized
            return sized
        found = uncollected(Program, folded(simplify(graph), graph.steady), graph.states, graph.steady)
        kept.add(found, graph)
        return found

    def _sized(self, graph: Graph, size: AtSize) -> Sized | None:
        """The program for all sizes, at the size of a graph; None if there is none, or if one of its own is faster."""
        if not size.template.named and _keeps_filters(graph):
            return None
        if program_for(size.template, size.n) is not None:
            return Sized(size, graph)
        if size.template.named:
            raise InputError(
                f"{graph.name}: no program serves all sizes of the batch: {size.template.refused}.",
                "wl.jit without dynamic=, which compiles for every size",
            )
        return None


def _keeps_filters(graph: Graph) -> bool:
    """Whether filters are the same in many calls: convolutions that know their size make more of that."""
    return bool(graph.steady) and any(e.primitive.name == "convolution" for e in graph.equations)


ENGINE = Native()
