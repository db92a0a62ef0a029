"""A run from settings: train, measure, and leave everything that is needed later in a folder.

runs/digits-cnn/
    settings.json       what was asked for
    schema.json         of a table: what its columns are, and how they become numbers
    checkpoints/        to go on after a break
    history.jsonl       a line per epoch
    model.safetensors   the weights; its metadata rebuild the model
    results.json        loss and metrics on the test data
    report.html         curves, confusion matrix, mistakes ...
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import shutil
import sys
import textwrap
import zlib
from collections.abc import Iterable
from dataclasses import asdict, replace

import numpy as np

from .. import nn, optim, random, train
from ..core import __version__, trees
from ..core.cell import Cell
from ..core.errors import InputError
from ..core.room import check_room
from ..data import DataLoader, RandomSampler, TensorDataset, transforms
from ..distributed.joining import joined_if_launched
from ..storage import save
from ..storage.atomic import write_atomically
from ..storage.locking import locked
from ..transforms.jit.jit import eval_shape
from .catalogue import build, entry_for
from .evaluating import Run, baselines
from .inputs import Options
from .intervals import of_run
from .kept import read_settings
from .settings import OPTIMIZERS, Settings, TrainSettings, schedule_of
from .targets import named_loss
from .tasks import TASKS, Prepared, Task
from .tasks.task import Arrays
from .transfer import freeze, take, with_source

IN_MEMORY = "in memory:"  # before what is said of data that are no file


def run(
    settings: Settings | None = None,
    folder: str | os.PathLike[str] | None = None,
    *,
    fresh: bool = False,
    progress: str | bool | None = None,
    png: bool = True,
    callbacks: Iterable[train.Callback] = (),
) -> Run:
    """Train the model of the settings on their data, and write checkpoints, weights, results and a report.

    >>> import tempfile
    >>> from wonderland import recipes
    >>> settings = recipes.Settings.of(model="linear", data="iris", changes=["epochs=60"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     done = recipes.run(settings, folder, progress=False, png=False)
    >>> done.results["accuracy"] > 0.8
    True

    A folder with an unfinished run of the same settings goes on where that stopped; one with other settings is refused,
    unless `fresh`, which starts anew. While a run is going on, its folder is locked, and a second one is refused;
    reading from it (`evaluate`, `predict`) needs no lock, for its files appear whole. Without `folder` it is
    `runs/DATA-MODEL`.
    """
    group = joined_if_launched()
    progress = progress if group.rank == 0 else False
    settings = with_source(settings or Settings())
    found = entry_for(settings.model, settings.data)
    task, how = TASKS[found.task], settings.training(found.train)
    data = task.prepare(settings.data, how.validation, how.seed, sequences=found.sequences)
    settings = replace(settings, data={**settings.data, "name": _name(settings.data.get("name"), data)})
    if progress is not False:
        _say(data)
    if found.by_size is not None:
        how = settings.training({**found.train, **found.by_size(len(data.train[0]))})
    how = settings.suited(how, _unsuited(settings.model, how, task, data))
    how = replace(how, batch_size=how.batch_size or usual_batch(len(data.train[0])))
    _check_room(settings, task, how, data)
    random.seed(how.seed)
    model = task.around(_built(settings, task, data), data.train[0], data.about)
    if "from" in settings.model:
        _transfer(model, settings, how, task, data, progress)
    folder = os.fspath(folder) if folder is not None else _folder(settings)
    path = os.path.join(folder, "model.safetensors")

    def begin() -> None:
        held.enter_context(locked(folder))
        _claim(folder, settings, how, fresh)

    def finish() -> tuple[Options, list[str]]:
        results = {**task.measure(model, data.test, data.about), **baselines(data.test, data.about)}
        data.about.update(of_run(task, model, data))
        files = _write_schema(folder, data)
        files.append(_save(path, model, settings, task, data))
        files += _report(folder, settings, how, task, data, model, history, results, png)
        return results, files

    with contextlib.ExitStack() as held:  # of several processes, the first alone writes
        group.by_first("train", begin)
        history = _train(task, model, data, how, folder, progress, callbacks)
        written = group.gather(group.by_first("train", finish))[0]
        assert written is not None  # or an error would have been raised
        results, files = written
    made = (model, task, data.shape, data.about, settings.data, path)
    return Run(*made, history=history, results=results, files=tuple(files))


def _built(settings: Settings, task: Task, data: Prepared) -> nn.Module:
    return build(settings.model, data.shape, data.outputs, {**data.about, "task": task.name})


def _transfer(
    model: nn.Module, settings: Settings, how: TrainSettings, task: Task, data: Prepared, progress: str | bool | None
) -> None:
    """Begin with the layers of another run."""
    taken, notes = take(model, settings.model, data, task.name)
    if how.freeze == "backbone":
        notes += freeze(model, taken)
    if progress is not False:
        _say(replace(data, plan="", notes=tuple(notes)))


def _check_room(settings: Settings, task: Task, how: TrainSettings, data: Prepared) -> None:
    """Refuse a model whose weights, with what the optimizer keeps of each, can never fit: before any are drawn."""

    def state() -> list[object]:
        model = _built(settings, task, data)
        kept = [model, _optimizer(how, model), *([optim.EMA(model, how.average)] if how.average else [])]
        return [
            cell.value for cell in trees.leaves(kept) if isinstance(cell, Cell)
        ]  # each once, though two may hold it

    nbytes = sum(aval.nbytes for aval in eval_shape(state))
    check_room("train", nbytes, "the weights and the state of the optimizer need", "a smaller model")


def _say(data: Prepared) -> None:
    """The plan of a table, and what is odd about the data, before anything is trained."""
    parts = [data.plan] if data.plan else []
    parts += [textwrap.fill(f"note: {note}", 100, subsequent_indent="  ") for note in data.notes]
    if parts:
        print("\n".join(parts), file=sys.stderr, flush=True)


def usual_batch(examples: int) -> int:
    """How many examples are in a batch if nobody says: more if there are many, so that an epoch has enough steps.

    >>> [usual_batch(n) for n in (100, 10_000, 100_000, 1_000_000)]
    [64, 64, 512, 4096]
    """
    return min(max(64, 2 ** round(math.log2(max(examples, 1) / 200))), 4096)


def _loss(task: Task, how: TrainSettings, data: Prepared) -> nn.Module:
    if how.loss != "auto":
        return named_loss(how.loss, data.about)
    found = task.loss(how.label_smoothing, data.about)
    if how.class_weights == "balanced" and isinstance(found, nn.CrossEntropyLoss):
        return nn.CrossEntropyLoss(_weights(data), label_smoothing=how.label_smoothing)
    return found


def _weights(data: Prepared) -> np.ndarray:
    """Weights by which all classes count alike; one without examples counts nothing."""
    counts = np.bincount(np.asarray(data.train[1]), minlength=data.outputs)
    return np.where(counts, counts.sum() / np.maximum(counts * np.count_nonzero(counts), 1), 0.0).astype(np.float32)


def _train(
    task: Task,
    model: nn.Module,
    data: Prepared,
    how: TrainSettings,
    folder: str,
    progress: str | bool | None,
    callbacks: Iterable[train.Callback],
) -> train.History:
    n, size = len(data.train[0]), task.at_once(data.train, how.batch_size)
    per_epoch = how.steps // how.epochs * size if how.steps else n
    loader = DataLoader(
        TensorDataset(*data.train),
        batch_size=size,
        sampler=RandomSampler(n, num_samples=per_epoch),
        drop_last=True,  # one shape of batches, compiled once; what is left out changes each epoch
        seed=how.seed,
        batch_transform=Changes(how, task) if how.augment or how.noise else task.drawn_anew(data.train, data.about),
    )
    extra: list[train.Callback] = [train.JSONLines(os.path.join(folder, "history.jsonl")), *callbacks]
    if how.patience:
        extra.append(train.EarlyStopping(patience=how.patience))
    average = optim.EMA(model, how.average) if how.average else None
    history = train.fit(
        model,
        _loss(task, how, data),
        loader,
        epochs=how.epochs,
        optimizer=_optimizer(how, model),
        schedule=schedule_of(how, how.epochs * len(loader)),
        clip_norm=how.clip_norm or None,
        precision=how.precision,
        average=average,
        validation=None if data.validation is None else task.batches(data.validation, data.about),
        metrics=task.metrics(data.about),
        callbacks=extra,
        checkpoint=os.path.join(folder, "checkpoints"),
        checkpoint_every=how.checkpoint_every or None,
        progress=progress,
    )
    if average is not None and not how.patience:  # early stopping has put the best weights back, averages or not
        average.apply_to(model)
    return history


def _unsuited(model: Options, how: TrainSettings, task: Task, data: Prepared) -> dict[str, str]:
    """The settings that would do nothing with these data, and why."""
    found: dict[str, str] = {} if "from" in model else {"freeze": "there is no model.from"}
    if not task.has_classes(data.about):
        found |= dict.fromkeys(("label_smoothing", "class_weights"), "there are no classes")
    elif how.loss != "auto":
        found |= dict.fromkeys(("label_smoothing", "class_weights"), f"the loss {how.loss} has none")
    elif data.train[1].ndim != 1:
        found["class_weights"] = "the classes are tokens"
    if len(data.shape) != 3:
        found["augment"] = "the inputs are no images"
    if data.train[0].dtype == np.int64:
        found["noise"] = "the inputs are tokens"
    return {**found, **task.unsuited(data)}


class Changes:
    """What is done to every batch, each time in another way: images move, and inputs get noise."""

    random = True

    def __init__(self, how: TrainSettings, task: Task) -> None:
        self.move = transforms.RandomAffine(degrees=10, translate=(0.1, 0.1), scale=(0.9, 1.1)) if how.augment else None
        self.noise = transforms.GaussianNoise(how.noise) if how.noise else None
        self.target_is_input = task.target_is_input

    def __call__(self, batch: Arrays, rng: np.random.Generator) -> Arrays:
        x, y = batch
        if self.move is not None:
            x = self.move(x, rng)
            y = x if self.target_is_input else y
        return x if self.noise is None else self.noise(x, rng), y


def _optimizer(how: TrainSettings, model: nn.Module) -> optim.Optimizer:
    return OPTIMIZERS[how.optimizer](model, how.lr, weight_decay=how.weight_decay)


def _name(source: object, data: Prepared) -> str:
    """What data are called in files: their name or path; of what was in memory what it was, told apart from others."""
    if isinstance(source, (str, os.PathLike)):
        return os.fspath(source)
    found = zlib.crc32(json.dumps(data.about).encode())  # scales, for example: inputs may be equal in their units
    for part in data.train:
        found = zlib.crc32(np.ascontiguousarray(part).data, found)
    return f"{IN_MEMORY} {type(source).__name__} {found:08x}"


def _folder(settings: Settings) -> str:
    given = settings.data["name"]
    name = "data" if given.startswith(IN_MEMORY) else os.path.basename(os.path.normpath(given)).partition(".")[0]
    name = {"-": "input", "": "data"}.get(name, name)
    return os.path.join("runs", f"{name}-{settings.model['name']}")


def _claim(folder: str, settings: Settings, how: TrainSettings, fresh: bool) -> None:
    """Make the folder that of this run; one of another run is refused, or emptied of what a run leaves."""
    path = os.path.join(folder, "settings.json")
    mine = {"model": settings.model, "data": settings.data, "train": asdict(how)}
    if fresh:
        shutil.rmtree(os.path.join(folder, "checkpoints"), ignore_errors=True)
        for name in ("settings.json", "schema.json", "history.jsonl", "results.json", "model.safetensors"):
            if os.path.exists(old := os.path.join(folder, name)):
                os.remove(old)
    elif os.path.exists(path):
        theirs = read_settings(path)
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


def _write_schema(folder: str, data: Prepared) -> list[str]:
    """The schema of a table, for people and other programs; the model has it, too."""
    inputs = data.about.get("inputs") or {}
    if inputs.get("kind") != "table":
        return []
    return [_write_json(os.path.join(folder, "schema.json"), inputs["schema"])]


def _write_json(path: str, values: object) -> str:
    write_atomically(path, json.dumps(values, indent=1) + "\n")
    return path


def _save(path: str, model: nn.Module, settings: Settings, task: Task, data: Prepared) -> str:
    """The weights, with what is needed to build the model again."""
    about = {
        "model": settings.model,
        "data": settings.data,
        "task": task.name,
        "shape": list(data.shape),
        "outputs": data.outputs,
        "about": data.about,
        "wonderland": __version__,
    }
    save(model, path, {"recipe": json.dumps(about)})
    return path


def _report(
    folder: str,
    settings: Settings,
    how: TrainSettings,
    task: Task,
    data: Prepared,
    model: nn.Module,
    history: train.History,
    results: Options,
    png: bool,
) -> list[str]:
    from .. import report  # only now: it has much to load

    examples, data = len(data.test[0]), task.shown(data)
    outcome = task.outcome(model, data)
    evidence = task.evidence(model, data, outcome)
    diagnosis = None if evidence is None else report.examine(**evidence, history=history)
    found = {} if diagnosis is None else diagnosis.to_dict()
    measured = {"test": results, "examples": examples, **found}
    written = _write_json(os.path.join(folder, "results.json"), measured)
    few = {"examples": f"{examples:,}, of which {len(data.test[0]):,} are shown"}
    told = {**results, **(few if len(data.test[0]) < examples else {})}
    batch = task.first(data.train, data.about)
    gradients = train.watching.probe(model, _loss(task, how, data), train.supervised, batch)
    pages = report.write(
        os.path.join(folder, "report.html"),
        title=f"{settings.model['name']} on {os.path.basename(os.path.normpath(data.name))}",
        history=history,
        model=model,
        settings={"model": settings.model, "data": settings.data, "train": asdict(how), "test": told},
        results=results,
        gradients={path: np.asarray(g) for path, g in gradients.items()},
        diagnosis=diagnosis,
        training=None if evidence is None else evidence["training"],
        table=data.test_table,
        png=png,
        **outcome,
    )
    return [written, *pages]
