"""What XLA made of a graph, to look at: its text, and what XLA itself counts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import jax
from jax.sharding import Sharding

from ...core.primitive import Aval
from ...core.tensor import Distant, Tensor
from ...ir.graph import Graph
from .engine import ENGINE
from .placement import Placement, devices
from .program import Program, exact


class Compiled(NamedTuple):
    """A program as XLA compiled it, and what it says of it. Numbers are those of one device."""

    text: str
    devices: list[str]
    operations: float
    accessed: float  # bytes that instructions read and write
    arguments: int  # bytes
    results: int
    temporary: int
    reused: int  # bytes of arguments in whose place results are


def compiled(graph: Graph, operands: Sequence[Tensor | Aval], device: str | None) -> Compiled:
    """The program for operands that are where these are.

    It is the program that a call would run, and a call to come need not compile it again.
    """
    where = ENGINE.placement([x for x in operands if isinstance(x, Tensor)], device)
    shardings = [_sharding(i, x, operands, graph, where) for i, x in enumerate(operands)]
    structs = [jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=s) for x, s in zip(operands, shardings, strict=True)]
    with exact():
        made = ENGINE.program(graph).made(structs, where)
    return _described(made, where.whole)


def last(graph: Graph) -> Compiled | None:
    """The program that ran last for values on devices, if one did."""
    program = graph.programs.get("xla")
    found = program.last if isinstance(program, Program) else None
    return None if found is None else _described(*found)


def _described(made: jax.stages.Compiled, where: Sharding) -> Compiled:
    costs, memory = made.cost_analysis() or {}, made.memory_analysis()
    sizes = [int(getattr(memory, f"{what}_size_in_bytes", 0)) for what in ("argument", "output", "temp", "alias")]
    return Compiled(
        made.as_text() or "",
        [name for name, device in devices().items() if device in where.device_set],
        float(costs.get("flops", 0.0)),
        float(costs.get("bytes accessed", 0.0)),
        *sizes,
    )


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
