"""Programs as StableHLO, for other machines and other accelerators than those at hand."""

from __future__ import annotations

from collections.abc import Sequence

import jax
from jax import export

from ...core.typing import Array
from ...ir.graph import Graph
from .lowering import Lowering
from .program import exact


def exported(graph: Graph, constants: Sequence[Array], platforms: Sequence[str]) -> export.Exported:
    """The function of a graph for some platforms; its first inputs are constants of it.

    The results are the number of the first check that failed (0: none), and those of the graph.
    """

    def f(*arrays: jax.Array) -> list[jax.Array]:
        lowering = Lowering()
        outs = lowering.graph(graph, [*map(jax.numpy.asarray, constants), *arrays])
        return [lowering.checks.status.check, *outs]

    f.__name__ = "".join(c if c.isalnum() else "_" for c in graph.name)
    avals = [jax.ShapeDtypeStruct(v.shape, v.dtype) for v in graph.inputs[len(constants) :]]
    with exact():
        return export.export(jax.jit(f), platforms=list(platforms))(*avals)


def restored(data: bytes) -> export.Exported:
    """What was exported, from its bytes."""
    return export.deserialize(bytearray(data))


def called(made: export.Exported, arrays: Sequence[Array]) -> list[jax.Array]:
    """The results of what was exported, on JAX's default device."""
    with exact():
        return list(made.call(*arrays))
