"""`shard`: the tensors of a model on the devices of a mesh, where programs of the XLA engine work on their parts."""

from __future__ import annotations

from typing import TypeVar, cast

from ..core.context import current
from ..core.errors import TraceError
from ..distributed.devices import join_devices
from ..distributed.joining import joined_if_launched
from ..engines.choosing import require, using_backend
from ..engines.engine import WithDevices, engine
from .mesh import Mesh
from .rules import Rules, layout

__all__ = ["shard"]
T = TypeVar("T")


def shard(tree: T, rules: Rules = "data", *, mesh: Mesh) -> T:
    """Put the tensors of a model, and of its optimizer, on a mesh of devices; the tree itself is returned.

    >>> import wonderland as wl
    >>> model = wl.models.MLP(64, [256], 16)
    >>> optimizer = wl.optim.Adam(model, lr=1e-3)
    >>> mesh = wl.mesh(data=2, model=4)
    >>> model, optimizer = wl.shard((model, optimizer), ("data", "tensor"), mesh=mesh)  # doctest: +SKIP

    `rules` say along which axes of the mesh each tensor is split (`scale/rules.py`): patterns of paths, or "data",
    "full", "tensor" and tuples of these. A compiled step is called as before. Batches are split by their rows over the
    axis "data", results are whole, and new state lies as the old one did. It needs `wl.set_backend("xla")`; with
    another engine the values come to the host at the next step.

    Of several processes (`wl.distributed.init`) the mesh has the devices of all. Every process calls `shard` with the
    same values, which are compared, and keeps the parts that its devices hold.
    """
    require("xla")
    if current().trace is not None:
        raise TraceError("shard: inside a transformation values are nowhere yet.", "wl.shard outside, before the step")
    with using_backend("xla"):
        join_devices(joined_if_launched())
    xla = cast(WithDevices, engine("xla"))
    for one in layout(tree, mesh, rules).placed:
        where = xla.over_mesh(mesh.axes, mesh.sizes, one.placement)
        one.cell.put(xla.brought(one.cell.value, where))
    return tree
