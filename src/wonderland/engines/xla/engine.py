"""XLA as an engine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import jax
from jax.sharding import Sharding

from ...core.primitive import Aval
from ...core.tensor import Distant, Tensor
from ...ir.graph import Graph
from ..engine import Processes
from . import processes
from .placement import Placement, assembled, bring, devices, named, over_mesh, placement
from .program import Program


class XLA:
    """Runs graphs on the devices that JAX knows."""

    def program(self, graph: Graph) -> Program:
        made = graph.programs.get("xla")
        if made is None:
            made = graph.programs["xla"] = Program(graph)
        return made

    def devices(self) -> list[str]:
        """The names of the devices."""
        return list(devices())

    def brought(self, x: Tensor, where: Sharding) -> Distant:
        """A copy of a value elsewhere."""
        far = x.far if type(x) is Distant else None
        return Distant(bring(x._data if far is None else cast(jax.Array, far), where))

    def moved(self, x: Tensor, device: str) -> Distant:
        """A copy of a value on a device."""
        return self.brought(x, placement([], device).whole)

    def over_mesh(
        self, axes: Sequence[str], sizes: Sequence[int], split: Sequence[str | tuple[str, ...] | None]
    ) -> Sharding:
        """How an array is placed whose axes are split over axes of a mesh."""
        return over_mesh(axes, sizes, split)

    def everywhere(self) -> int:
        """How many devices the largest mesh has: as many in each process."""
        return jax.process_count() * len(jax.local_devices())

    def assembled(self, x: Tensor, first: int, count: int, where: Placement) -> Distant:
        """A batch of `count` rows on a mesh, of which this process has some, from number `first` on."""
        there = where.split(Aval((count, *x.shape[1:]), x.dtype))
        return Distant(assembled(x._data, first, count, there))

    def check_device(self, device: str) -> None:
        """Raise if there is no such device."""
        named(device)

    def check_unused(self) -> None:
        """Raise if it is too late for other processes to join this one."""
        processes.check_unused()

    def join(self, group: Processes, address: str, place_on_machine: int | None) -> None:
        """Become one of several processes whose devices make meshes together."""
        processes.join(group, address, place_on_machine)

    def placement(self, operands: Sequence[Tensor], device: str | None) -> Placement:
        """Where a program runs that takes these tensors."""
        return placement([cast(jax.Array, x.far) for x in operands if type(x) is Distant and x.far is not None], device)


ENGINE = XLA()
