"""What a task is: how data become inputs and targets, what is lost and measured, and what a report shows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ... import nn, train
from ...errors import InputError

Arrays = tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]


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

    def part(self, name: str) -> Arrays:
        """The part of a name."""
        found = {"train": self.train, "validation": self.validation, "test": self.test}.get(name)
        if found is None:
            raise InputError(f"the data have no part {name!r}.", "train, validation or test")
        return found


class Task:
    """The base of tasks."""

    name: str = ""

    def prepare(self, data: Mapping[str, Any], validation: float, seed: int) -> Prepared:
        """Read the data of the settings `{"name": ..., option: value, ...}`, check and split them."""
        raise NotImplementedError

    def around(self, model: nn.Module, x: Any) -> nn.Module:
        """The model with the layers that bring inputs like x to a common scale, and outputs back."""
        return model

    def loss(self, smoothing: float, about: Mapping[str, Any]) -> nn.Module:
        """The loss of outputs and targets."""
        raise NotImplementedError

    def metrics(self, about: Mapping[str, Any]) -> list[Any]:
        """What is measured beside the loss."""
        return []

    def measure(self, model: Any, part: Arrays, about: Mapping[str, Any]) -> dict[str, Any]:
        """The loss and the metrics on a part of the data, as plain numbers."""
        found = train.evaluate(model, self.loss(0.0, about), part, metrics=self.metrics(about), batch_size=self.batch)
        return {name: train.evaluation.plain(value) for name, value in found.items()}

    batch: int = 256  # examples at a time when a model is measured or asked

    def outcome(self, model: Any, data: Prepared) -> dict[str, Any]:
        """What a report shows beside curves and the model: predictions, targets, examples, names of classes."""
        return {}

    def predict(self, model: Any, data: Mapping[str, Any], shape: tuple[int, ...], about: Mapping[str, Any]) -> Any:
        """What the model says about other inputs: lists by name, each with an entry per example."""
        raise InputError(f"a model for the task {self.name!r} makes no predictions of examples.", self.instead)

    instead: str = "`wonderland evaluate`"
