"""A trained model from the folder of its run: measured on data, and asked."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import nn
from ..errors import FileError, InputError
from ..storage.safetensors import load, metadata
from .catalogue import build
from .inputs import check_alike, own
from .running import read_json
from .tasks import TASKS, Task
from .tasks.language import tokenizer_of


@dataclass(frozen=True)
class Trained:
    """A model, and what it was made for."""

    model: nn.Module
    task: Task
    shape: tuple[int, ...]  # of one input
    about: dict[str, Any]  # what is known of the data, as the names of classes
    data: dict[str, Any]  # the data that it was trained on
    path: str


def open_run(path: str | os.PathLike[str]) -> Trained:
    """The model that a run left: `path` is its folder, or its `model.safetensors`. Nothing in the file is executed."""
    path = os.fspath(path)
    if os.path.isdir(path):
        inside = os.path.join(path, "model.safetensors")
        if not os.path.exists(inside):
            unfinished = os.path.isdir(os.path.join(path, "checkpoints"))
            raise FileError(
                f"{path} has no trained model{': the run is not finished' if unfinished else ''}.",
                "`wonderland train` with the same settings, which goes on" if unfinished else "the folder of a run",
            )
        path = inside
    recipe = _recipe(path)
    task, shape, about = TASKS[recipe["task"]], tuple(recipe["shape"]), recipe["about"]
    model = task.around(build(recipe["model"], shape, recipe["outputs"], about), np.zeros((2, *shape), np.float32))
    model.load_state_dict(load(path))
    return Trained(model.eval(), task, shape, about, recipe["data"], path)


def _recipe(path: str) -> dict[str, Any]:
    try:
        recipe = json.loads(metadata(path)["recipe"])
        sound = {"model", "task", "shape", "outputs", "about", "data"} <= recipe.keys() and recipe["task"] in TASKS
    except (KeyError, ValueError, AttributeError):
        sound = False
    if not sound:
        raise FileError(f"{path} does not say what model it is of.", "a file that `wonderland train` wrote")
    return recipe


def evaluate(path: str | os.PathLike[str], data: Mapping[str, Any] | None = None, part: str = "test") -> dict[str, Any]:
    """The loss and metrics of a run's model on a part of its data, or on other data of the same kind."""
    trained = open_run(path)
    seed, share = 0, 0.1
    settings = os.path.join(os.path.dirname(trained.path), "settings.json")
    if os.path.exists(settings):
        how = read_json(settings)["train"]
        seed, share = how["seed"], how["validation"]
    sequences = len(trained.shape) == 2
    prepared = trained.task.prepare(
        _read_alike(trained, data, True), share, seed, run=trained.about, sequences=sequences
    )
    chosen = prepared.part(part)
    check_alike(chosen[0], trained.shape)
    return {**trained.task.measure(trained.model, chosen, trained.about), "examples": len(chosen[0])}


def _read_alike(trained: Trained, data: Mapping[str, Any] | None, targets: bool) -> dict[str, Any]:
    """The run's own data, or others, with the options that make them be read as those of the training."""
    if trained.task.needs not in trained.about and data is not None:
        raise FileError(
            f"{trained.path} is of an earlier version, which did not keep what its inputs were; "
            f"other data may have another order of columns or other categories.",
            "`wonderland train` with the same settings and --fresh",
        )
    return trained.task.like_those_of(trained.data, own(trained.data) if data is None else data, trained.about, targets)


def predict(path: str | os.PathLike[str], data: Mapping[str, Any]) -> dict[str, Any]:
    """What a run's model says about inputs: classes with their probabilities, or numbers."""
    trained = open_run(path)
    return trained.task.predict(trained.model, _read_alike(trained, data, False), trained.shape, trained.about)


def generate(
    path: str | os.PathLike[str],
    prompt: str = "",
    length: int = 300,
    *,
    temperature: float = 0.8,
    seed: int = 0,
    callback: Callable[[str], Any] | None = None,
) -> str:
    """A text that a run's language model writes after a prompt."""
    from .. import generation, random

    trained = open_run(path)
    if trained.task.name != "language":
        raise InputError(f"{path} is no language model.", "the folder of a run of `--model wavenet`")
    tokenizer = tokenizer_of(trained.about)
    return generation.generate_text(
        trained.model,
        tokenizer,
        prompt or "\n",
        length,
        temperature=temperature,
        key=random.key(seed),
        callback=callback,
    )
