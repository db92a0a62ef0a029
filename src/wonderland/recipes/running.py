"""A run from settings: train, measure, and leave everything that is needed later in a folder.

runs/digits-cnn/
    settings.json       what was asked for
    checkpoints/        to go on after a break
    history.jsonl       a line per epoch
    model.safetensors   the weights; its metadata rebuild the model
    results.json        loss and metrics on the test data
    report.html         curves, confusion matrix, mistakes ...
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from .. import __version__, metrics, nn, optim, random, train
from ..data import DataLoader, TensorDataset, transforms
from ..errors import FileError, InputError
from ..storage import save
from ..storage.atomic import write_atomically
from ..train.evaluation import plain
from .catalogue import build, entry
from .preparing import Prepared, prepare
from .settings import Settings, TrainSettings, schedule_of


@dataclass(frozen=True)
class Run:
    """What a run left: its folder, the history, the results on the test data, and the model."""

    folder: str
    history: train.History
    results: dict[str, Any]
    model: nn.Module
    files: tuple[str, ...]


def run(
    settings: Settings | None = None,
    folder: str | os.PathLike[str] | None = None,
    *,
    fresh: bool = False,
    progress: Any = None,
    png: bool = True,
    callbacks: Iterable[train.Callback] = (),
) -> Run:
    """Train the model of the settings on their data, and write checkpoints, weights, results and a report.

    >>> import tempfile
    >>> from wonderland import recipes
    >>> settings = recipes.Settings.of(model="linear", data="iris", changes=["epochs=20"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     done = recipes.run(settings, folder, progress=False, png=False)
    >>> done.results["accuracy"] > 0.8
    True

    A folder with an unfinished run of the same settings goes on where that stopped; one with other settings is refused,
    unless `fresh`, which starts anew. Without `folder` it is `runs/DATA-MODEL`.
    """
    settings = settings or Settings()
    how = settings.training(entry(settings.model["name"]).train)
    data = prepare(settings.data, how.validation, how.seed)
    random.seed(how.seed)
    model = _model(settings, data)
    folder = os.fspath(folder) if folder is not None else _folder(settings)
    _claim(folder, settings, how, fresh)

    history = _train(model, data, how, folder, progress, callbacks)
    results = measured(model, data.test, data.class_names)
    files = [
        _write_json(os.path.join(folder, "results.json"), {"test": results, "examples": len(data.test[0])}),
        _save(os.path.join(folder, "model.safetensors"), model, settings, data),
    ]
    files += _report(folder, settings, how, data, model, history, results, png)
    return Run(folder, history, results, model, tuple(files))


def _model(settings: Settings, data: Prepared) -> nn.Module:
    """The model, behind a layer that standardizes the inputs."""
    x = data.train[0]
    # the pixels of an image share their mean and scale; columns of a table have their own
    first = nn.Standardize.of(x, axis=tuple(range(x.ndim)) if data.is_image else None)
    return nn.Sequential(first, build(settings.model, data.shape, data.outputs))


def measured(model: Any, part: Any, class_names: tuple[str, ...]) -> dict[str, Any]:
    """The loss and the usual metrics of a model on a part of the data."""
    loss = _loss("auto", 0.0, class_names)
    chosen: list[Any] = [metrics.Accuracy()] if class_names else [metrics.MeanAbsoluteError(), metrics.R2()]
    found = {k: plain(v) for k, v in train.evaluate(model, loss, part, metrics=chosen).items()}
    if class_names and len(part[0]):
        probabilities = probabilities_of(model, part[0], class_names)
        found["f1"] = metrics.F1(len(class_names), "macro")(probabilities, part[1])
        found["ece"] = metrics.CalibrationError()(probabilities, part[1])
    return found


def probabilities_of(model: Any, x: Any, class_names: tuple[str, ...]) -> Any:
    """Probabilities of the classes, or predicted numbers, as an array."""
    from ..array import softmax

    outputs = train.predict(model, x)
    return np.asarray(softmax(outputs) if class_names else outputs)


def _loss(name: str, smoothing: float, class_names: tuple[str, ...]) -> nn.Module:
    if name != "auto":
        return train.as_loss(name)
    return nn.CrossEntropyLoss(label_smoothing=smoothing) if class_names else nn.MSELoss()


def _train(
    model: nn.Module, data: Prepared, how: TrainSettings, folder: str, progress: Any, callbacks: Iterable[Any]
) -> train.History:
    size = min(how.batch_size, len(data.train[0]))
    small_turns = transforms.RandomAffine(degrees=10, translate=(0.1, 0.1), scale=(0.9, 1.1))
    loader = DataLoader(
        TensorDataset(*data.train),
        batch_size=size,
        shuffle=True,
        drop_last=True,  # one shape of batches, compiled once; what is left out changes each epoch
        seed=how.seed,
        batch_transform=small_turns if how.augment and data.is_image else None,
    )
    extra: list[train.Callback] = [train.JSONLines(os.path.join(folder, "history.jsonl")), *callbacks]
    if how.patience:
        extra.append(train.EarlyStopping(patience=how.patience))
    return train.fit(
        model,
        _loss(how.loss, how.label_smoothing, data.class_names),
        loader,
        epochs=how.epochs,
        optimizer=_optimizer(how, model),
        schedule=schedule_of(how, how.epochs * len(loader)),
        clip_norm=how.clip_norm or None,
        average=optim.EMA(model, how.average) if how.average else None,
        validation=data.validation,
        metrics=[metrics.Accuracy()] if data.class_names else [metrics.MeanAbsoluteError()],
        callbacks=extra,
        checkpoint=os.path.join(folder, "checkpoints"),
        checkpoint_every=how.checkpoint_every or None,
        progress=progress,
    )


def _optimizer(how: TrainSettings, model: nn.Module) -> optim.Optimizer:
    decay = how.weight_decay
    kinds: dict[str, Any] = {
        "sgd": lambda: optim.SGD(model, how.lr, weight_decay=decay),
        "momentum": lambda: optim.SGD(model, how.lr, momentum=0.9, weight_decay=decay),
        "rmsprop": lambda: optim.RMSprop(model, how.lr, weight_decay=decay),
        "adagrad": lambda: optim.Adagrad(model, how.lr, weight_decay=decay),
        "adam": lambda: optim.Adam(model, how.lr),
        "adamw": lambda: optim.AdamW(model, how.lr, weight_decay=decay),
        "nadam": lambda: optim.NAdam(model, how.lr),
        "lion": lambda: optim.Lion(model, how.lr, weight_decay=decay),
        "muon": lambda: optim.Muon(model, how.lr, weight_decay=decay),
    }
    return kinds[how.optimizer]()


def _folder(settings: Settings) -> str:
    name = os.path.splitext(os.path.basename(os.path.normpath(str(settings.data["name"]))))[0]
    return os.path.join("runs", f"{name}-{settings.model['name']}")


def _claim(folder: str, settings: Settings, how: TrainSettings, fresh: bool) -> None:
    """Make the folder that of this run; one of another run is refused, or emptied of what a run leaves."""
    path = os.path.join(folder, "settings.json")
    mine = {"model": settings.model, "data": settings.data, "train": asdict(how)}
    if fresh:
        shutil.rmtree(os.path.join(folder, "checkpoints"), ignore_errors=True)
        for name in ("settings.json", "history.jsonl", "results.json", "model.safetensors"):
            if os.path.exists(old := os.path.join(folder, name)):
                os.remove(old)
    elif os.path.exists(path):
        theirs = read_json(path)
        differing = [
            f"{section}.{key}: {theirs.get(section, {}).get(key)!r} there, {mine[section].get(key)!r} now"
            for section in mine
            for key in sorted({*mine[section], *theirs.get(section, {})})
            if json.loads(json.dumps(mine[section].get(key))) != theirs.get(section, {}).get(key)
        ]
        if differing:
            raise InputError(
                f"{folder} has a run with other settings ({'; '.join(differing[:3])}).",
                "--out with another folder, or --fresh to start anew",
            )
    _write_json(path, mine)


def read_json(path: str) -> dict[str, Any]:
    """A JSON file that a run left."""
    try:
        with open(path, encoding="utf-8") as file:
            return json.load(file)
    except OSError as error:
        raise FileError(f"cannot read {path}: {error.strerror}.", "the folder of a run") from None
    except ValueError:
        raise FileError(f"{path} is damaged: it is no JSON.", "--fresh to start anew") from None


def _write_json(path: str, values: Any) -> str:
    write_atomically(path, json.dumps(values, indent=1) + "\n")
    return path


def _save(path: str, model: nn.Module, settings: Settings, data: Prepared) -> str:
    """The weights, with what is needed to build the model again."""
    about = {
        "model": settings.model,
        "data": settings.data,
        "shape": list(data.shape),
        "outputs": data.outputs,
        "class_names": list(data.class_names),
        "wonderland": __version__,
    }
    save(model, path, {"recipe": json.dumps(about)})
    return path


def _report(
    folder: str,
    settings: Settings,
    how: TrainSettings,
    data: Prepared,
    model: nn.Module,
    history: train.History,
    results: dict[str, Any],
    png: bool,
) -> list[str]:
    from .. import report  # only now: it has much to load

    x, y = data.test
    batch = (data.train[0][:256], data.train[1][:256])
    gradients = train.watching.probe(model, _loss("auto", 0.0, data.class_names), train.supervised, batch)
    return report.write(
        os.path.join(folder, "report.html"),
        title=f"{settings.model['name']} on {os.path.basename(os.path.normpath(data.name))}",
        history=history,
        model=model,
        settings={"model": settings.model, "data": settings.data, "train": asdict(how), "test": results},
        predictions=probabilities_of(model, x, data.class_names),
        targets=y,
        class_names=data.class_names,
        examples=x,
        gradients={path: np.asarray(g) for path, g in gradients.items()},
        png=png,
    )
