"""A run of several processes on a mesh of all their devices.

The state lies on the mesh, the rows that the processes read become one batch there, and the step is that of a process
alone: XLA adds up what the layout asks for, and losses, outputs and statistics are those of the whole batch.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from ..arrays import asarray
from ..core import trees
from ..core.cell import Cell
from ..core.errors import InputError, WonderlandError
from ..core.tensor import Distant, Tensor
from ..data.loader import share_of
from ..engines.devices import moved
from ..engines.engine import WithDevices
from ..nn.module.module import Module
from ..random.streams import default_stream
from ..scale.mesh import mesh
from ..scale.sharding import shard

if TYPE_CHECKING:
    from .feeding import Loader
    from .trainer import Trainer

Batch = TypeVar("Batch")  # a tree of tensors


class OnMesh:
    """The mesh that a model is on; or one of all devices, by the rule "data", if it is on none over the processes."""

    def __init__(self, engine: WithDevices, model: Module) -> None:
        self._engine = engine
        self._where = engine.placement([cell.value for cell in _cells(model)], None)
        self._chosen = self._where.spans
        if not self._chosen:
            somewhere = engine.over_mesh(["data"], [engine.everywhere()], [])
            self._where = engine.placement([engine.brought(asarray(np.float32(0)), somewhere)], None)
        self.share = self._where.share  # of the rows of a batch, see `DataLoader.share`

    @contextlib.contextmanager
    def held(self, trainer: Trainer) -> Iterator[None]:
        """For the time of a run the state is on the mesh; if that was not chosen, it is on the host again afterwards.

        So the first process may go on with the model without the others.
        """
        if self._chosen:
            yield
            return
        shard((trainer.model, trainer.optimizer), "data", mesh=mesh(data=self._engine.everywhere()))
        try:
            yield
        except (WonderlandError, KeyboardInterrupt):  # after other errors the devices may have nothing to give
            _take_back(trainer)
            raise
        _take_back(trainer)

    def spread(self, batch: Batch, loader: Loader) -> Batch:
        """The batch of all processes, from the rows that a loader has handed out here."""
        all_read = self.share[1] == 1  # and a loader without parts does not count them

        def whole(leaf: object) -> object:
            if not isinstance(leaf, (Tensor, np.ndarray)) or not leaf.ndim:
                return leaf  # it is for all rows
            own, count = (len(leaf), len(leaf)) if all_read else loader.part
            if len(leaf) != own:
                raise InputError(
                    f"fit: a tensor of shape {leaf.shape} in a batch of which this process has {own} rows.",
                    "batches whose first axis is the examples, or fit(..., distributed=False)",
                )
            first = 0 if own == count else share_of(self.share, count)[0].start
            return self._engine.assembled(asarray(leaf), first, count, self._where)

        return trees.map(whole, batch)

    def whole(self, tree: Batch) -> Batch:
        """Tensors of a batch with the rows of all processes, in each of them."""
        return trees.map(
            lambda leaf: self._engine.brought(leaf, self._where.whole) if type(leaf) is Distant else leaf, tree
        )


def is_here(tree: object, whole: bool = False) -> bool:
    """Whether no part of a tree is in other processes; or, with `whole`, whether all of it is here as well."""
    fars = [cell.value.far for cell in _cells(tree) if type(cell.value) is Distant]
    return all(far is None or far.is_fully_addressable or (whole and far.is_fully_replicated) for far in fars)


def _take_back(trainer: Trainer) -> None:
    state = (trainer.model, trainer.optimizer, trainer.average, trainer.scaler, trainer.loss_function, default_stream)
    for cell in _cells(state):
        if type(cell.value) is Distant:
            cell.put(moved(cell.value, "cpu"))


def _cells(tree: object) -> Iterator[Cell]:
    return (leaf for leaf in trees.leaves(tree) if isinstance(leaf, Cell))
