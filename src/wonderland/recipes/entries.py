"""What the catalogue says of a model: what builds it, for which tasks, and how it is best trained."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from .. import nn
from .inputs import Options

Builder = Callable[..., nn.Module]
FEW = 1000  # examples, below which usual passes are too few steps


def more_passes(examples: int) -> Options:
    """Settings for sets that are small, as folders of one's own often are: 400 steps or more, of small batches.

    >>> more_passes(170), more_passes(5000)
    ({'batch_size': 32, 'epochs': 80}, {})
    """
    if examples >= FEW:
        return {}
    return {"batch_size": 32, "epochs": min(max(30, 400 // max(examples // 32, 1)), 100)}


@dataclass(frozen=True)
class Usual:
    """What is usual when a model is trained for a task: the settings, and the data."""

    train: Options
    data: str | None


@dataclass(frozen=True)
class ModelEntry:
    """A model by name: what builds it from (input shape, outputs, options), and how it is best trained.

    One that is for several tasks has the others in `also`; its builder is told which one it is by `task`.
    """

    build: Builder
    description: str
    train: Options = field(default_factory=dict)
    task: str = "supervised"
    data: str | None = "digits"  # if nothing is said
    sequences: bool = False  # whether inputs of two axes are these, and no grey images
    also: Mapping[str, Usual] = field(default_factory=dict)
    by_size: Callable[[int], Options] | None = None  # settings that depend on how many examples are trained on

    @property
    def tasks(self) -> tuple[str, ...]:
        """All that the model is for."""
        return (self.task, *self.also)

    def suited(self, task: str) -> ModelEntry:
        """The entry as it is for one of its tasks."""
        return self if task == self.task else replace(self, task=task, **vars(self.also[task]))

    def options(self) -> dict[str, Any]:
        """The options and their defaults; those without a default are not the user's, but the data's."""
        parameters = list(inspect.signature(self.build).parameters.values())[2:]
        return {p.name: p.default for p in parameters if p.default is not p.empty}
