"""Several processes that train one model: what each of them does for itself, and where they agree.

Every process has the whole model and a part of the rows of every batch. Losses and gradients are added up in the step
(train/step.py), so all of them see the same losses and hold the same weights; counting, callbacks and decisions are
then the same everywhere. What is left is here: parts of the data, sums of metrics, who writes, and when to stop.

On an engine with devices the processes are one machine with all of them instead (on_mesh.py): what a step gives is of
the whole batch, and nothing is added up here.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sized
from typing import TYPE_CHECKING, TypeAlias, TypeVar

import numpy as np

from ..arrays import asarray
from ..core.errors import InputError
from ..core.tensor import Tensor
from ..distributed.agreement import agree, of_tensors
from ..distributed.devices import join_devices
from ..distributed.group import Group
from ..distributed.joining import get_group, init, joined_if_launched
from ..metrics.metric import Metric
from ..nn.module.module import Module
from ..storage.safetensors import decode, encode
from .on_mesh import OnMesh, is_here
from .truncation import Pieces

if TYPE_CHECKING:
    from .feeding import Loader
    from .trainer import Trainer

Step: TypeAlias = Callable[..., tuple[Tensor, object]]
Batch = TypeVar("Batch")  # a tree of tensors


def group_for(distributed: bool | None) -> Group:
    """The processes that `fit` computes with: those that have joined or were launched, if nothing is said."""
    if distributed is None:
        return joined_if_launched()
    if not distributed:
        return Group()
    group = init()
    if group.size == 1 and get_group() is group:
        raise InputError(
            "fit: distributed=True, and there are no other processes.", "`wonderland launch -n 2 program.py`"
        )
    return group


class Together:
    """The processes of a run, as its trainer sees them. A process alone is the first of one."""

    def __init__(self, group: Group, model: Module, compiled: bool = True) -> None:
        self.group = group
        self.first = group.rank == 0
        self._weights: dict[tuple[int, int], Tensor] = {}
        engine = join_devices(group) if compiled and self.several else None
        self.mesh = None if engine is None else OnMesh(engine, model)
        if engine is None and not is_here(model):
            raise InputError(
                "fit: the model is on the devices of several processes, which do not train together.",
                "fit in all of them, compiled and on the engine of the mesh; or a model that is not on a mesh",
            )

    @property
    def several(self) -> bool:
        return self.group.size > 1

    @property
    def parts(self) -> bool:
        """Whether each process computes with its rows alone, and sums are made between them."""
        return self.several and self.mesh is None

    def share(self, *loaders: Loader | None, cut: object = None) -> None:
        """Let loaders hand out the rows of this process."""
        if self.several and cut is not None:
            raise InputError("fit: truncated sequences in several processes.", "one process, or truncated=None")
        for loader in loaders if self.several else ():
            if loader is not None:
                loader.share(*((self.group.rank, self.group.size) if self.mesh is None else self.mesh.share))

    # --- on a mesh of all their devices

    def on_mesh(self, trainer: Trainer) -> contextlib.AbstractContextManager[None]:
        """For the time of a run the state is on the mesh, if there is one."""
        return contextlib.nullcontext() if self.mesh is None else self.mesh.held(trainer)

    def spread(self, batch: Batch, loader: Loader | Pieces) -> Batch:
        """The batch of all processes on the mesh, from the rows that a loader has handed out here; or just these."""
        return batch if self.mesh is None or isinstance(loader, Pieces) else self.mesh.spread(batch, loader)

    def whole(self, tree: Batch) -> Batch:
        """Tensors of such a batch with the rows of all processes, to be read in each of them."""
        return tree if self.mesh is None else self.mesh.whole(tree)

    def can_look(self, model: Module) -> bool:
        """Whether the first process can see all of the model by itself."""
        return self.first and is_here(model, whole=True)

    # --- each with its part

    def step(self, step: Step, loader: Loader) -> tuple[Step, Callable[[object], int]]:
        """The step, with the share that the rows of this process have in the batch, and the size of the whole."""

        def weighted(*args: object) -> tuple[Tensor, object]:
            own, whole = loader.part
            if (own, whole) not in self._weights:
                self._weights[own, whole] = asarray(np.float32(own / whole))
            return step(*args, weight=self._weights[own, whole])

        return weighted, lambda batch: loader.part[1]

    def has_rows(self, loader: Loader | Pieces) -> bool:
        """Whether the batch that was handed out last has rows of this process, and not just one of another."""
        return isinstance(loader, Pieces) or not self.parts or loader.part[0] > 0

    def agree_on_start(self, trainer: Trainer, epochs: int) -> None:
        """Refuse to begin, in every process, if they do not begin with the same weights, data and settings."""
        if not self.several:
            return
        facts = {
            "the number of epochs": epochs,
            "the step to go on from": trainer.step,
            "the batches of an epoch": _length(trainer.loader),
            "the seed and place in the data": trainer.loader.state_dict(),
            "the precision": trainer.precision,
            "the optimizer": type(trainer.optimizer).__name__,
            "the model": type(trainer.model).__name__,
            "the callbacks": trainer.callbacks.names(),
            "the metrics": list(trainer.metrics),
        }
        facts |= {f"the weights of {name}": text for name, text in of_tensors(trainer.model.state_dict()).items()}
        facts |= {f"the optimizer's {name}": text for name, text in of_tensors(trainer.optimizer.state_dict()).items()}
        agree(self.group, "fit", facts)

    def stop(self, reason: str | None) -> str | None:
        """Why to stop, if one of the processes wants to: the same answer in all of them."""
        if not self.several:
            return reason
        wants = self.group.transport.gather(np.array([reason is not None], np.uint8))
        if not wants.any():
            return None
        return next(found for found in self.group.gather(reason) if found is not None)

    def add_up(self, metrics: Mapping[str, Metric], *, keep: bool = False) -> None:
        """Give all processes the metrics over all parts; with `keep`, the first alone, and the others begin anew."""
        if not self.parts:
            return
        named = {f"{name}.{key}": value for name, m in metrics.items() for key, value in m.state_dict().items()}
        parts = [decode(found, "metrics")[0] for found in self.group.gather_bytes(b"".join(encode(named)))]
        for name, metric in metrics.items():
            states = [{key: np.asarray(part[f"{name}.{key}"]) for key in metric.state_dict()} for part in parts]
            metric.reset()
            for state in states if self.first or not keep else ():
                metric.merge(state)

    def total(self, loss: float, count: int) -> tuple[float, int]:
        """The sums of losses and of examples over the processes."""
        if not self.parts:
            return loss, count
        sums = self.group.sum(np.array([loss, count], np.float64))
        return float(sums[0]), int(sums[1])


def _length(loader: Sized) -> int | None:
    try:
        return len(loader)
    except TypeError:  # a stream
        return None
