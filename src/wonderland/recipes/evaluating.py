"""A trained model from the folder of its run: measured on data, and asked."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import nn
from ..errors import FileError, InputError, ShapeError
from ..storage.safetensors import load, metadata
from .catalogue import build
from .preparing import checked, prepare, read
from .running import measured, probabilities_of


@dataclass(frozen=True)
class Trained:
    """A model, and what it was made for."""

    model: nn.Module
    shape: tuple[int, ...]  # of one input
    class_names: tuple[str, ...]  # empty for a regression
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
    about = _about(path)
    shape, names = tuple(about["shape"]), tuple(about["class_names"])
    blank = np.zeros((2, *shape), np.float32)
    first = nn.Standardize.of(blank, axis=tuple(range(blank.ndim)) if len(shape) == 3 else None)
    model = nn.Sequential(first, build(about["model"], shape, about["outputs"]))
    model.load_state_dict(load(path))
    return Trained(model.eval(), shape, names, about["data"], path)


def _about(path: str) -> dict[str, Any]:
    try:
        about = json.loads(metadata(path)["recipe"])
        assert {"model", "shape", "outputs", "class_names", "data"} <= about.keys()
    except (KeyError, ValueError, AssertionError):
        raise FileError(f"{path} does not say what model it is of.", "a file that `wonderland train` wrote") from None
    return about


def evaluate(path: str | os.PathLike[str], data: Mapping[str, Any] | None = None, part: str = "test") -> dict[str, Any]:
    """The loss and metrics of a run's model on the test part of its data, or on other data, all of them."""
    trained = open_run(path)
    if data is None:
        from .running import read_json

        settings = os.path.join(os.path.dirname(trained.path), "settings.json")
        seed, share = 0, 0.1
        if os.path.exists(settings):
            how = read_json(settings)["train"]
            seed, share = how["seed"], how["validation"]
        prepared = prepare(trained.data, share, seed)
        chosen = {"train": prepared.train, "validation": prepared.validation, "test": prepared.test}.get(part)
        if chosen is None:
            raise InputError(f"evaluate: the data have no part {part!r}.", "train, validation or test")
    else:
        x, y, names = checked(read(data))
        if len(names) > len(trained.class_names) or bool(names) != bool(trained.class_names):
            raise InputError(
                f"evaluate: the data have {len(names)} classes, the model {len(trained.class_names)}.",
                "data of the same kind as the model was trained on",
            )
        chosen = (x, y)
    _fits(trained, chosen[0])
    return {**measured(trained.model, chosen, trained.class_names), "examples": len(chosen[0])}


def predict(path: str | os.PathLike[str], data: Mapping[str, Any]) -> dict[str, Any]:
    """What a run's model says about inputs: classes with their probabilities, or numbers."""
    trained = open_run(path)
    record = read(data)
    x = np.asarray(record.features)
    x = x[..., None] if x.ndim == len(trained.shape) and len(trained.shape) == 3 else x
    _fits(trained, x)
    found = probabilities_of(trained.model, x.astype(np.float32) if x.dtype.kind == "f" else x, trained.class_names)
    if not trained.class_names:
        return {"predictions": found.tolist()}
    classes = found.argmax(-1)
    return {
        "predictions": [trained.class_names[i] for i in classes],
        "confidence": found.max(-1).tolist(),
        "probabilities": found.tolist(),
    }


def _fits(trained: Trained, x: Any) -> None:
    if tuple(x.shape[1:]) != trained.shape:
        raise ShapeError(
            f"the inputs have the shape {tuple(x.shape[1:])}, the model takes {trained.shape}.",
            "data like those that it was trained on",
        )
    if not len(x):
        raise InputError("there are no examples.", "data that are not empty")
