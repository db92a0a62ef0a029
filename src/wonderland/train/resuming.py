"""Going on where a checkpoint was made: all of it, or nothing and the checkpoint before it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeGuard

import numpy as np

from .. import arrays
from ..core.arguments import shown
from ..core.errors import FileError, InputError, ModuleError, WonderlandError
from ..core.tensor import Tensor
from ..engines.devices import placed_like
from ..random.streams import default_stream
from .checkpoints import Checkpoint, CheckpointFolder, pass_over

if TYPE_CHECKING:
    from .trainer import Trainer

# what states of callbacks and metrics meet in values that are not theirs
_ODD = (InputError, KeyError, TypeError, ValueError, IndexError, AttributeError, OverflowError)


def resume(trainer: Trainer, folder: CheckpointFolder) -> None:
    """Take up the newest checkpoint that can be used; without one, the run begins at its beginning.

    One that is damaged or has odd values is passed over with a warning. One of another model, optimizer or data is
    sound, and `ModuleError` says that it does not fit.
    """
    for found in folder.sound():
        try:
            check_record(found)
            _take_up(trainer, found)
            return
        except FileError as error:
            pass_over(error)


def check_record(found: Checkpoint) -> None:
    """Refuse a record of which a value is not of its kind."""
    record = found.record
    running = record.get("running")
    stream = np.asarray(default_stream.value)
    sound = {
        "model": isinstance(record.get("model"), str),
        "optimizer": isinstance(record.get("optimizer"), str),
        "epoch": _counts(record.get("epoch")),
        "step": _counts(record.get("step")),
        "stopped": isinstance(record.get("stopped", 0), str | None),
        "running": isinstance(running, dict) and _is_number(running.get("total")) and _counts(running.get("count")),
        "loader": _is_table(record.get("loader"), _is_whole),
        "carried": record.get("carried") is None or _is_table(record["carried"], _is_whole),
        "random": _words(record.get("random"), stream.shape),
        "schedule": isinstance(record.get("schedule", 0), dict | None),
        "callbacks": _is_table(record.get("callbacks"), lambda state: isinstance(state, dict)),
        "history": isinstance(record.get("history"), dict),
    }
    for name, right in sound.items():
        if not right:
            what = f"{name}={shown(record.get(name))}"
            raise FileError(f"{found.path} has {what}; the checkpoint is not used.", "another one")


def _take_up(trainer: Trainer, found: Checkpoint) -> None:
    record = found.record
    remedy = "the same model, optimizer and data as before, another folder, or resume=False to start anew"
    for part, owner in (("model", trainer.model), ("optimizer", trainer.optimizer)):
        if record[part] != (kind := type(owner).__name__):
            raise ModuleError(f"fit: the checkpoint {found.path} is of a {record[part]}, not of a {kind}.", remedy)
    before = _states(trainer)
    try:
        trainer.model.load_state_dict(_placed(found.part("model"), trainer.model.state_dict()))
        trainer.optimizer.load_state_dict(_placed(found.part("optimizer"), trainer.optimizer.state_dict()))
        if trainer.average is not None:
            trainer.average.load_state_dict(_placed(found.part("average"), trainer.average.state_dict()))
        if trainer.scaler is not None and (factor := found.part("scaler")):
            trainer.scaler.load_state_dict(factor)
        trainer.loader.load_state_dict(record["loader"])
        if trainer.carried is not None:
            trainer.carried.load(trainer.model, record.get("carried"), found.part("carried"))
    except (ModuleError, InputError) as error:
        _put_back(trainer, before)
        reason = str(error).split("\n  try:")[0]
        raise ModuleError(f"fit: the checkpoint {found.path} does not fit. {reason}", remedy) from None
    try:
        _take_up_rest(trainer, found)
    except _ODD as error:
        _put_back(trainer, before)
        reason = f"{'' if isinstance(error, WonderlandError) else f'{type(error).__name__}: '}{error}".splitlines()[0]
        raise FileError(f"{found.path} has odd values ({reason}); the checkpoint is not used.", "another one") from None
    trainer.epoch, trainer.step = record["epoch"], record["step"]
    trainer._total, trainer._count = record["running"]["total"], record["running"]["count"]
    trainer._stop = record["stopped"]  # a run that has come to its end stays there
    trainer._saved_at = trainer.step
    trainer.progress.note(f"going on after epoch {trainer.epoch}, step {trainer.step} ({found.path})")


def _placed(values: dict[str, Tensor], present: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Values on the devices of those that they replace: a checkpoint knows nothing of the mesh that it was saved on."""
    return {name: placed_like(value, present.get(name)) for name, value in values.items()}


def _take_up_rest(trainer: Trainer, found: Checkpoint) -> None:
    record = found.record
    for name, metric in trainer.metrics.items():
        if (values := found.part(f"metrics.{name}")) and (
            trainer.together.first or not trainer.together.parts  # they are sums over all processes
        ):
            metric.load_state_dict({key: np.asarray(value) for key, value in values.items()})
    for name, callback in zip(trainer.callbacks.names(), trainer.callbacks.all, strict=True):
        if name in record["callbacks"]:
            callback.load_state_dict(record["callbacks"][name])
            callback.load_tensors(found.part(f"callbacks.{name}"))
    if record["schedule"] is not None and hasattr(trainer.schedule, "load_state_dict"):
        trainer.schedule.load_state_dict(record["schedule"])
    default_stream.assign(arrays.asarray(np.array(record["random"], np.uint32)))
    trainer.history.load_state_dict(record["history"])


def _states(trainer: Trainer) -> dict[str, Any]:
    """Everything that a checkpoint changes, as it is."""
    return {
        "model": trainer.model.state_dict(),
        "optimizer": trainer.optimizer.state_dict(),
        "average": None if trainer.average is None else trainer.average.state_dict(),
        "scaler": None if trainer.scaler is None else trainer.scaler.state_dict(),
        "loader": trainer.loader.state_dict(),
        "carried": None if trainer.carried is None else (trainer.carried.cache, trainer.carried.read),
        "metrics": {name: metric.state_dict() for name, metric in trainer.metrics.items()},
        "callbacks": [(callback.state_dict(), callback.tensors()) for callback in trainer.callbacks.all],
        "schedule": trainer.schedule.state_dict() if hasattr(trainer.schedule, "state_dict") else None,
        "stream": default_stream.value,
        "history": trainer.history.state_dict(),
    }


def _put_back(trainer: Trainer, states: dict[str, Any]) -> None:
    trainer.model.load_state_dict(states["model"])
    trainer.optimizer.load_state_dict(states["optimizer"])
    if trainer.average is not None:
        trainer.average.load_state_dict(states["average"])
    if trainer.scaler is not None:
        trainer.scaler.load_state_dict(states["scaler"])
    trainer.loader.load_state_dict(states["loader"])
    if trainer.carried is not None:
        trainer.carried.cache, trainer.carried.read = states["carried"]
    for name, metric in trainer.metrics.items():
        metric.load_state_dict(states["metrics"][name])
    for callback, (state, tensors) in zip(trainer.callbacks.all, states["callbacks"], strict=True):
        callback.load_state_dict(state)
        callback.load_tensors(tensors)
    if states["schedule"] is not None:
        trainer.schedule.load_state_dict(states["schedule"])
    default_stream.assign(states["stream"])
    trainer.history.load_state_dict(states["history"])


def _is_whole(value: object) -> TypeGuard[int]:
    return type(value) is int and abs(value) < 2**63


def _counts(value: object) -> bool:
    return _is_whole(value) and value >= 0


def _is_number(value: object) -> bool:
    return _is_whole(value) or (type(value) is float and math.isfinite(value))


def _is_table(value: object, right: Callable[[object], bool]) -> bool:
    return isinstance(value, dict) and all(map(right, value.values()))


def _words(value: object, shape: tuple[int, ...]) -> bool:
    """Whether lists of integers are random words of the shape that the stream has."""
    if not shape:
        return _is_whole(value) and 0 <= value < 2**32
    return isinstance(value, list) and len(value) == shape[0] and all(_words(part, shape[1:]) for part in value)
