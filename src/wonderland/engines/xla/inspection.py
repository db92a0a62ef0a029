"""What XLA made of a graph, to look at: its text, and what XLA itself counts."""

from __future__ import annotations

from collections.abc import Sequence

import jax
from jax.sharding import Sharding

from ...core.primitive import Aval
from ...core.tensor import Distant, Tensor
from ...ir.graph import Graph
from .engine import ENGINE
from .placement import Placement
from .program import exact


def compiled(graph: Graph, operands: Sequence[Tensor | Aval], device: str | None) -> tuple[str, float]:
    """The text of the program for operands that are where these are, and its operations on each device.

    It is the program that a call would run, and a call to come need not compile it again.
    """
    where = ENGINE.placement([x for x in operands if isinstance(x, Tensor)], device)
    shardings = [_sharding(i, x, operands, graph, where) for i, x in enumerate(operands)]
    structs = [jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=s) for x, s in zip(operands, shardings, strict=True)]
    with exact():
        made = ENGINE.program(graph).made(structs, where)
    costs = made.cost_analysis() or {}
    return made.as_text() or "", float(costs.get("flops", 0.0))


def _sharding(
    place: int, x: Tensor | Aval, operands: Sequence[Tensor | Aval], graph: Graph, where: Placement
) -> Sharding:
    """Where a call would have an operand, see transforms/jit/distant.py."""
    if place < graph.constants:
        return where.whole
    if type(x) is Distant and isinstance(x.far, jax.Array) and where.has(x.far):
        return x.far.sharding
    if place < graph.constants + graph.cells and isinstance(x, Tensor):
        return where.like(x, [o for o in operands if isinstance(o, Tensor)])
    return where.split(x)
