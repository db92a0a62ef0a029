"""What a task is: how data become inputs and targets, what is lost and measured, and what a report shows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from ... import nn, train
from ...core.errors import InputError
from ...data.tables.table import Table
from ...metrics.metric import Metric
from ...train.feeding import Data
from ..inputs import Options, check_alike, like_those_of
from ..predictions import Predictions

Known: TypeAlias = Options | None  # what a run keeps of its data, if there is one
Arrays: TypeAlias = tuple[np.ndarray, np.ndarray]


@dataclass(frozen=True)
class Prepared:
    """Inputs and targets, cut into parts, and what a model needs to know of them."""

    name: str
    train: Arrays
    validation: Arrays | None
    test: Arrays
    shape: tuple[int, ...]  # of one input
    outputs: int  # how many numbers a model gives
    about: dict[str, Any] = field(default_factory=dict)  # plain data that stay with the model, as names of classes
    plan: str = field(default="", kw_only=True)  # how the columns of a table become numbers
    test_table: Table | None = field(default=None, kw_only=True)  # the rows to test with, as they were read
    test_ids: tuple[str, ...] = field(default=(), kw_only=True)  # names of the examples to test with, as of files
    notes: tuple[str, ...] = field(default=(), kw_only=True)  # what there is to say before training

    def part(self, name: str) -> Arrays:
        """The part of a name."""
        found = {"train": self.train, "validation": self.validation, "test": self.test}.get(name)
        if found is None:
            raise InputError(f"the data have no part {name!r}.", "train, validation or test")
        return found


class Whole(NamedTuple):
    """All of other data, read as those of a run were: nothing is split off."""

    x: np.ndarray
    y: np.ndarray | None = None  # None if nobody asked for targets
    table: Table | None = None  # the rows of x, if they came from a table
    ids: tuple[str, ...] = ()  # names of the examples, as those of files
    left_out: int = 0  # rows whose target is missing
    notes: tuple[str, ...] = ()  # what was odd: columns that nobody needs, categories that are new


class Task:
    """The base of tasks."""

    name: str = ""
    target_is_input: bool = False  # so that both move when images move
    needs: str = "inputs"  # what `about` has, if other data can be read as those of the training

    def has_classes(self, about: Options) -> bool:
        """Whether the outputs are scores of classes."""
        return False

    def prepare(
        self, data: Options, validation: float, seed: int, *, run: Known = None, sequences: bool = False
    ) -> Prepared:
        """Read the data of the settings `{"name": ..., option: value, ...}`, check and split them.

        `run` is what a run keeps `about` its data: others are then read as those were, or refused. Inputs of two axes
        are `sequences`, or else grey images.
        """
        raise NotImplementedError

    def read_all(self, data: Options, run: Options, *, targets: bool, sequences: bool = False) -> Whole:
        """All examples of other data as inputs, with their targets if these are wanted, which must then be there."""
        raise InputError(f"data for the task {self.name!r} are not read as examples.", self.instead)

    def everything(self, data: Options, run: Options, sequences: bool) -> tuple[Arrays, int, list[str]]:
        """All examples of other data, how many were left out because their target is missing, and notes about them."""
        found = self.prepare(data, 0.0, 0, run=run, sequences=sequences)
        x, y = (np.concatenate(both) for both in zip(found.train, found.test, strict=True))
        return (x, y), 0, []

    def like_those_of(self, settings: Options, data: Options, run: Options, targets: bool) -> Options:
        """The settings of data for a trained model: what is said, and what the run's say about all data."""
        return like_those_of(settings, data, run, targets)

    def around(self, model: nn.Module, x: np.ndarray, about: Options) -> nn.Module:
        """The model with the layers that bring inputs like x to a common scale, and outputs back to the targets'."""
        return model

    def drawn_anew(self, part: Arrays, about: Options) -> Callable[..., object] | None:
        """What makes another of every batch (inputs, targets) of training, by chance if it takes a generator."""
        return None

    def at_once(self, part: Arrays, size: int) -> int:
        """How many examples are in a batch of training, if `size` are wanted."""
        return min(size, len(part[0]))

    def batches(self, part: Arrays, about: Options) -> Data:
        """A part as it is measured: arrays, or batches in a fixed order."""
        return part

    def first(self, part: Arrays, about: Options) -> object:
        """One batch, to look at gradients."""
        return part[0][: self.batch], part[1][: self.batch]

    def check_alike(self, part: Arrays, shape: tuple[int, ...]) -> None:
        """Refuse inputs that are not like those of a run."""
        check_alike(part[0], shape)

    def unsuited(self, data: Prepared) -> Mapping[str, str]:
        """Settings that would do nothing in this task, and why."""
        return {}

    def loss(self, smoothing: float, about: Options) -> nn.Module:
        """The loss of outputs and targets."""
        raise NotImplementedError

    def metrics(self, about: Options) -> list[Metric]:
        """What is measured beside the loss."""
        return []

    def measure(self, model: nn.Module, part: Arrays, about: Options) -> dict[str, Any]:
        """The loss and the metrics on a part of the data, as plain numbers."""
        loss, fed = self.loss(0.0, about), self.batches(part, about)
        found = train.evaluate(model, loss, fed, metrics=self.metrics(about), batch_size=self.batch)
        return {name: train.evaluation.plain(value) for name, value in found.items()}

    def answers(self, model: nn.Module, part: Arrays, about: Options) -> np.ndarray | None:
        """Probabilities of the classes (n, m), or numbers like the targets; None if a model gives something else."""
        return None

    def held_out(self, model: nn.Module, data: Prepared) -> Arrays | None:
        """What the model says about the validation data, and the truth, NaN where it is not known."""
        found = None if data.validation is None else self.answers(model, data.validation, data.about)
        return None if found is None or data.validation is None else (found, data.validation[1])

    batch: int = 256  # examples at a time when a model is measured or asked

    def shown(self, data: Prepared) -> Prepared:
        """The data of a report: with fewer examples to test with, if there are very many."""
        return data

    def outcome(self, model: nn.Module, data: Prepared) -> dict[str, Any]:
        """What a report shows beside curves and the model: predictions, targets, examples, names of classes."""
        return {}

    def evidence(self, model: nn.Module, data: Prepared, outcome: Options) -> Options | None:
        """What a diagnosis looks at, the arguments of `wl.report.examine`; None where there is none."""
        return None

    def predict(self, model: nn.Module, data: Options, shape: tuple[int, ...], about: Options) -> Predictions:
        """What the model says about other inputs."""
        raise InputError(f"a model for the task {self.name!r} makes no predictions of examples.", self.instead)

    instead: str = "`wonderland evaluate`"
