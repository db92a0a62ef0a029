"""A trained model from the folder of its run: measured on data, and asked."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import nn
from ..core.arguments import shown
from ..core.errors import FileError, WonderlandError
from ..primitives.creation import at_most
from ..storage.bounds import LEAST_ARRAY, array_bytes
from ..storage.parsing import parse_json
from ..storage.safetensors import load, metadata
from .catalogue import build
from .inputs import Options, own
from .running import read_settings
from .tasks import TASKS, Task


@dataclass(frozen=True)
class Trained:
    """A model, and what it was made for."""

    model: nn.Module
    task: Task
    shape: tuple[int, ...]  # of one input
    about: Options  # what is known of the data, as the names of classes
    data: Options  # the data that it was trained on
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
    state = load(path)
    # what is drawn at first is of the size of what is there; some of it is made in several steps
    most = 16 * sum(np.asarray(value).nbytes for value in state.values()) + LEAST_ARRAY
    with described(path), at_most(most, 16 * len(state) + 1000):
        built = build(recipe["model"], shape, recipe["outputs"], {**about, "task": task.name})
        model = task.around(built, np.zeros((2, *shape), np.float32), about)
    model.load_state_dict(state)
    return Trained(model.eval(), task, shape, about, recipe["data"], path)


_REMEDY = "a file that `wonderland train` wrote"


@contextlib.contextmanager
def described(path: str) -> Iterator[None]:
    """Around what follows the description in a file, where odd values may lead to any error: then it is the file's."""
    try:
        yield
    except WonderlandError:
        raise
    except (TypeError, ValueError, LookupError, AttributeError, ArithmeticError, RecursionError, MemoryError) as error:
        reason = f"{type(error).__name__}: {error}".splitlines()[0]
        raise FileError(f"{path}: what it says about itself cannot be used ({reason}).", _REMEDY) from error


def _recipe(path: str) -> Options:
    try:
        recipe = parse_json(metadata(path)["recipe"])
        kinds = {"model": dict, "task": str, "shape": list, "outputs": int, "about": dict, "data": dict}
        sound = (
            isinstance(recipe, dict)
            and all(type(recipe.get(name)) is kind for name, kind in kinds.items())
            and recipe["task"] in TASKS
            and isinstance(recipe["model"].get("name"), str)
            and all(type(size) is int and size > 0 for size in recipe["shape"])
            and array_bytes(recipe["shape"], 8) <= LEAST_ARRAY
            and recipe["outputs"] > 0
        )
    except (KeyError, ValueError):
        sound = False
    if not sound:
        raise FileError(f"{path} does not say what model it is of.", _REMEDY)
    return recipe


def evaluate(path: str | os.PathLike[str], data: Options | None = None, part: str = "test") -> dict[str, Any]:
    """The loss and metrics of a run's model on a part of its data, or on other data of the same kind."""
    trained = open_run(path)
    seed, share = 0, 0.1
    settings = os.path.join(os.path.dirname(trained.path), "settings.json")
    if os.path.exists(settings):
        how = read_settings(settings).get("train", {})
        seed, share = how.get("seed"), how.get("validation")  # type: ignore[assignment]
        if type(seed) is not int or type(share) is not float or not 0 <= share < 1:
            raise FileError(f"{settings} has seed={shown(seed)}, validation={shown(share)}.", "the file of a run")
    with described(trained.path):
        return _evaluated(trained, data, part, seed, share)


def _evaluated(trained: Trained, data: Options | None, part: str, seed: int, share: float) -> dict[str, Any]:
    sequences = len(trained.shape) == 2
    prepared = trained.task.prepare(
        _read_alike(trained, data, True), share, seed, run=trained.about, sequences=sequences
    )
    chosen = prepared.part(part)
    trained.task.check_alike(chosen, trained.shape)
    return {**trained.task.measure(trained.model, chosen, trained.about), "examples": len(chosen[0])}


def _read_alike(trained: Trained, data: Options | None, targets: bool) -> Options:
    """The run's own data, or others, with the options that make them be read as those of the training."""
    if trained.task.needs not in trained.about and data is not None:
        raise FileError(
            f"{trained.path} is of an earlier version, which did not keep what its inputs were; "
            f"other data may have another order of columns or other categories.",
            "`wonderland train` with the same settings and --fresh",
        )
    return trained.task.like_those_of(trained.data, own(trained.data) if data is None else data, trained.about, targets)


def predict(path: str | os.PathLike[str], data: Options) -> dict[str, Any]:
    """What a run's model says about inputs: classes with their probabilities, or numbers."""
    trained = open_run(path)
    with described(trained.path):
        return trained.task.predict(trained.model, _read_alike(trained, data, False), trained.shape, trained.about)
