"""Logs of a run: JSON lines, CSV, and the event files that TensorBoard shows."""

from __future__ import annotations

import csv
import json
import math
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

from ..core.errors import FileError, InputError
from ..storage.parsing import parse_json
from .callbacks import Callback
from .history import Record
from .tensorboard import EventFile

if TYPE_CHECKING:
    from .trainer import Trainer


class JSONLines(Callback):
    """A line of JSON per epoch, and per `every` steps, appended to a file.

    >>> import json, os, tempfile, wonderland as wl
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "log.jsonl")
    ...     x = wl.ones((8, 1))
    ...     log = wl.train.JSONLines(path)
    ...     _ = wl.train.fit(wl.nn.Linear(1, 1), "mse_loss", (x, x), epochs=2, callbacks=[log], progress=False)
    ...     with open(path) as file:
    ...         [json.loads(line)["epoch"] for line in file]
    [1, 2]

    A resumed run goes on behind the last line of the step from which it goes on.
    """

    writes = True

    def __init__(self, path: str | os.PathLike[str], every: int | None = None) -> None:
        self.path, self.every = os.fspath(path), _interval("JSONLines", every)
        self._last = -1

    def on_fit_start(self, trainer: Trainer) -> None:
        kept = [line for line in _lines(self.path) if _step_of(line) <= trainer.step] if trainer.step else []
        _write(self.path, "w", "".join(kept))

    def on_step_end(self, trainer: Trainer) -> None:
        if self.every and trainer.step % self.every == 0:
            self._append({"step": trainer.step, "step_loss": trainer.loss, "lr": float(trainer.optimizer.lr)})

    def on_epoch_end(self, trainer: Trainer, record: Record) -> None:
        self._append(record)

    def _append(self, record: Mapping[str, object]) -> None:
        _write(self.path, "a", json.dumps({k: _finite(v) for k, v in record.items()}) + "\n")


class CSVLog(Callback):
    """A table with a row per epoch.

    >>> import os, tempfile, wonderland as wl
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "log.csv")
    ...     x = wl.ones((8, 1))
    ...     log = wl.train.CSVLog(path)
    ...     _ = wl.train.fit(wl.nn.Linear(1, 1), "mse_loss", (x, x), epochs=2, callbacks=[log], progress=False)
    ...     with open(path) as file:
    ...         print(file.readline().strip())
    epoch,step,loss,lr,seconds

    The whole table is written anew each epoch, so columns may join later.
    """

    writes = True

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.fspath(path)

    def on_epoch_end(self, trainer: Trainer, record: Record) -> None:
        rows = [{k: v for k, v in row.items() if isinstance(v, (int, float, str))} for row in trainer.history]
        names = list({name: None for row in rows for name in row})
        try:
            with open(self.path, "w", newline="", encoding="utf-8") as file:
                table = csv.DictWriter(file, names, lineterminator="\n")
                table.writeheader()
                table.writerows(rows)
        except OSError as error:
            raise FileError(f"cannot write {self.path}: {error.strerror}.", "a folder that exists") from None


class TensorBoard(Callback):
    """Event files for TensorBoard: the numbers of every epoch, the loss of every so many steps, and histograms.

    >>> import os, tempfile, wonderland as wl
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     x = wl.ones((8, 1))
    ...     log = wl.train.TensorBoard(folder)
    ...     _ = wl.train.fit(wl.nn.Linear(1, 1), "mse_loss", (x, x), epochs=2, callbacks=[log], progress=False)
    ...     [name.split(".")[0] for name in os.listdir(folder)]
    ['events']

    `histograms=True` adds one of each parameter per epoch. Look at them with `tensorboard --logdir FOLDER`.
    """

    writes = True

    def __init__(self, folder: str | os.PathLike[str], every: int | None = None, histograms: bool = False) -> None:
        self.folder, self.every, self.histograms = os.fspath(folder), _interval("TensorBoard", every), histograms
        self.file: EventFile | None = None

    def on_fit_start(self, trainer: Trainer) -> None:
        self.file = EventFile(self.folder)

    def on_step_end(self, trainer: Trainer) -> None:
        if self.every and trainer.step % self.every == 0 and self.file is not None:
            self.file.scalars(trainer.step, {"step_loss": trainer.loss})

    def on_epoch_end(self, trainer: Trainer, record: Record) -> None:
        assert self.file is not None  # the run has started
        numbers = {k: float(v) for k, v in record.items() if isinstance(v, (int, float)) and k not in ("epoch", "step")}
        self.file.scalars(trainer.step, numbers)
        if self.histograms:
            self.file.histograms(trainer.step, dict(trainer.model.state_dict()))

    def on_fit_end(self, trainer: Trainer) -> None:
        if self.file is not None:
            self.file.close()


def _interval(name: str, every: int | None) -> int | None:
    if every is not None and every < 1:
        raise InputError(f"{name}: every={every}.", "a number of steps, or None")
    return every


def _write(path: str, mode: str, text: str) -> None:
    try:
        os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
        with open(path, mode, encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise FileError(f"cannot write {path}: {error.strerror}.", "a folder that you may write to") from None


def _lines(path: str) -> list[str]:
    """The whole lines of a log; a last one that was cut off by a crash is left out."""
    try:
        with open(path, "rb") as file:
            return [line.decode("utf-8", "replace") for line in file if line.endswith(b"\n")]
    except FileNotFoundError:
        return []
    except OSError as error:
        raise FileError(f"cannot read {path}: {error.strerror}.", "the log of the run, or another path") from None


def _step_of(line: str) -> float:
    try:
        step = parse_json(line)["step"]
    except (ValueError, KeyError, TypeError):
        return math.inf  # a line that is not ours goes
    return step if isinstance(step, (int, float)) and "\ufffd" not in line else math.inf


def _finite(value: object) -> object:
    """JSON has no NaN and no infinity; they are written as texts."""
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value
