"""A graph as a program of XLA: compiled by JAX, called with arrays, checked afterwards.

JAX's settings belong to its user. So 64 bits and exact products are asked for by its context managers, wherever
something is traced or called.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Iterator

import jax
import numpy as np

from ...core.context import exhaust
from ...core.handover import Delivery
from ...core.typing import Array
from ...ir.graph import Graph
from .lowering import Lowering
from .status import Status

Outputs = tuple[Status, list[jax.Array]]
# On processors the older of XLA's two code generators, which compiles most programs many times as fast.
OPTIONS = {"xla_cpu_use_fusion_emitters": False}


@contextlib.contextmanager
def exact() -> Iterator[None]:
    """All types are what they are, and products of float32 have its precision."""
    with jax.enable_x64(True), jax.default_matmul_precision("highest"):
        yield


class Program:
    """A compiled graph. JAX compiles it when it is first called, once for each kind of placement."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.lowering: Lowering  # of the last trace; all are alike
        self._function: Callable[..., Outputs] = jax.jit(self._traced, compiler_options=OPTIONS)
        with exact():  # what cannot be lowered is known now
            self._function.trace(*[jax.ShapeDtypeStruct(v.shape, v.dtype) for v in graph.inputs])

    def _traced(self, *arrays: jax.Array) -> Outputs:
        self.lowering = lowering = Lowering()
        outs = lowering.graph(self.graph, arrays)
        return lowering.checks.status, outs

    def __call__(self, arrays: list[Array], owned: Collection[int], deliver: Delivery | None) -> list[Array]:
        with exact():
            try:
                status, outs = self._function(*arrays)
                found = [np.asarray(o) for o in outs]
            except jax.errors.JaxRuntimeError as error:
                self._raise_what_python_raised(error)
                raise
        if self.lowering.checks.known:
            self.lowering.checks.raise_(status)
        if deliver is not None:
            exhaust(deliver(found, {}))
        return found

    def _raise_what_python_raised(self, error: Exception) -> None:
        raised, self.lowering.raised = self.lowering.raised, []
        if raised:
            raise raised[0] from error
