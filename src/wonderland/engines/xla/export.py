"""Programs as StableHLO, for other machines and other accelerators than those at hand."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import cast

import jax
import jax.numpy as jnp
import numpy as np
from jax import export

from ...core.errors import InputError, WonderlandError
from ...core.typing import Array
from ...ir.graph import Graph
from ...ir.size_numbers import Formula
from ...ir.sizes import Extent, resized
from .lowering import Lowering
from .program import exact


def exported(graph: Graph, constants: Sequence[Array], platforms: Sequence[str]) -> export.Exported:
    """The function of a graph for some platforms; its first inputs are constants of it.

    The results are the number of the first check that failed (0: none), and those of the graph.
    """
    return _exported(graph, constants, platforms, [], [])


def exported_for_all(
    graph: Graph, constants: Sequence[Array], platforms: Sequence[str], name: str, least: int, formulas: list[Formula]
) -> export.Exported:
    """The same for a template's graph, whose last inputs are numbers that come from the size of that name."""
    size = cast(int, export.symbolic_shape(name, constraints=[f"{name} >= {least}"])[0])  # JAX's stand for integers
    traces: list[Lowering] = []
    try:
        return _exported(resized(graph, lambda e: size * _multiple(e)), constants, platforms, traces, formulas, size)
    except WonderlandError:
        raise
    except Exception as error:  # JAX has many kinds for what it cannot do without knowing a size
        reason = next(iter(str(error).splitlines()), type(error).__name__)
        raise InputError(
            f"export_stablehlo: no program serves all sizes of {graph.name}: {_where(traces)}{reason}",
            "export_stablehlo without dynamic=, for each size",
        ) from error


def _exported(
    graph: Graph,
    constants: Sequence[Array],
    platforms: Sequence[str],
    traces: list[Lowering],
    formulas: list[Formula],
    size: int = 0,  # or one that varies, which JAX calls one, too
) -> export.Exported:
    given = graph.inputs[len(constants) : len(graph.inputs) - len(formulas)]
    numbers = graph.inputs[len(graph.inputs) - len(formulas) :]

    def f(*arrays: jax.Array) -> list[jax.Array]:
        lowering = Lowering()
        traces.append(lowering)
        n = jnp.asarray(size, np.int64)
        found = [_number(formula, n, v.dtype) for formula, v in zip(formulas, numbers, strict=True)]
        outs = lowering.graph(graph, [*map(jnp.asarray, constants), *arrays, *found])
        return [lowering.checks.status.check, *outs]

    f.__name__ = "".join(c if c.isalnum() else "_" for c in graph.name)
    avals = [jax.ShapeDtypeStruct(v.shape, v.dtype) for v in given]
    with exact():
        return export.export(jax.jit(f), platforms=list(platforms))(*avals)


def _number(formula: Formula, n: jax.Array, dtype: np.dtype[np.generic]) -> jax.Array:
    """A number that comes from the size, computed as Python does: in float64, unless it is whole."""
    n = n if formula.whole else n.astype(jnp.float64)
    above = formula.a * n + formula.b
    return (above if formula.whole else above / (formula.c * n + formula.d)).astype(dtype)


def _multiple(extent: Extent) -> int:
    """How often an extent of a graph contains the batch; pieces are a matter of code."""
    return extent.inner * extent.outer


def _where(traces: list[Lowering]) -> str:
    """The equation at which a trace came to its end."""
    e = traces[-1].equation if traces else None
    if e is None:
        return ""
    source = f" ({os.path.basename(e.source.file)}:{e.source.line})" if e.source else ""
    return f"{e.primitive.name}{source}: "


def restored(data: bytes) -> export.Exported:
    """What was exported, from its bytes."""
    return export.deserialize(bytearray(data))


def called(made: export.Exported, arrays: Sequence[Array]) -> list[jax.Array]:
    """The results of what was exported, on JAX's default device."""
    with exact():
        return list(made.call(*arrays))
