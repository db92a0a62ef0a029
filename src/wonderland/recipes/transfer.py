"""Transfer from a run of one's own: a new model begins with the layers of a trained one. Book, section 9.1.

`model.from = "runs/old"` takes what fits but the head, which is for other classes. `train.freeze = "backbone"` keeps
what was taken as it is, so that the rest alone is trained.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from .. import nn
from ..core.arguments import shown
from ..core.errors import InputError
from ..data.formats.images import MODES, ImageForm
from ..data.tables.schema import Schema
from ..storage.safetensors import load
from .inputs import Options
from .kept import model_file, recipe_of
from .media import are_media, form_of, kind_of
from .settings import Settings
from .tasks import Prepared


def with_source(settings: Settings) -> Settings:
    """Settings as they are with `model.from`: its model if none is named, and images or sounds of its form."""
    if "from" not in settings.model:
        return settings
    recipe = _recipe(settings.model)
    theirs = {name: value for name, value in recipe["model"].items() if name != "from"}
    mine = dict(settings.model)
    model = {**theirs, **mine} if mine.get("name", theirs["name"]) == theirs["name"] else mine
    data = dict(settings.data)
    form = form_of(recipe["about"].get("inputs") or {})
    if form is not None and are_media(data.get("name")) and _alike(form, data.get("name")):
        if isinstance(form, ImageForm):
            modes = {channels: mode for mode, channels in MODES.items()}
            data.setdefault("size", list(form.size))
            data.setdefault("mode", modes.get(form.channels, "RGB"))
        else:
            data.setdefault("rate", form.rate)
            data.setdefault("seconds", form.seconds)
    return replace(settings, model=model, data=data)


def take(model: nn.Module, settings: Options, data: Prepared, task: str) -> tuple[frozenset[str], list[str]]:
    """Give a model the tensors of the run `settings["from"]` that fit, but those of the head.

    The paths of what was taken, and notes that say what was, and what was not.
    """
    source, recipe = settings["from"], _recipe(settings)
    if recipe["task"] != task:
        raise InputError(f"{source} is of the task {recipe['task']!r}, this is {task!r}.", "a run of the same task")
    _check_columns(source, recipe["about"], data.about)
    ours, theirs = model.state_dict(), load(model_file(source))
    left = _heads(model)
    common = [path for path in ours if path in theirs and not path.startswith(left)]
    fitting = [path for path in common if ours[path].shape == theirs[path].shape]
    learned = {path for path, _ in model.named_parameters()}
    if not learned.intersection(fitting):
        raise InputError(f"nothing of {source} fits: {_difference(ours, theirs, left, learned)}.", _remedy(recipe))
    model.load_state_dict({**ours, **{path: theirs[path] for path in fitting}})
    count = sum(int(np.prod(ours[path].shape)) for path in fitting)
    notes = [f"{len(fitting)} tensors with {count:,} numbers are taken from {source} ({recipe['model']['name']})."]
    new = [path for path in ours if path not in fitting and path in learned]
    notes.append(f"new, and drawn by chance: {', '.join(new[:4])}{' ...' if len(new) > 4 else '.'}")
    if odd := [path for path in common if path not in fitting]:
        some = ", ".join(f"{p} is {theirs[p].shape} there and {ours[p].shape} here" for p in odd[:3])
        notes.append(f"{len(odd)} do not fit: {some}.")
    return frozenset(learned.intersection(fitting)), notes


def freeze(model: nn.Module, taken: frozenset[str]) -> list[str]:
    """Keep what was taken as it is; a note on what is still trained."""
    for path, parameter in model.named_parameters():
        if path in taken:
            parameter.trainable = False
    return [f"{model.num_parameters(trainable_only=True):,} of {model.num_parameters():,} weights are trained."]


def _recipe(settings: Options) -> Options:
    source = settings["from"]
    if not isinstance(source, str):
        raise InputError(f"model.from = {shown(source)}.", "the folder of a run")
    return recipe_of(model_file(source))


def _alike(form: object, source: object) -> bool:
    """Whether a form is one of what a source has; the files of a table are looked at when they are read."""
    kind = kind_of(source)
    return kind is None or (kind == "image") == isinstance(form, ImageForm)


def _heads(model: nn.Module) -> tuple[str, ...]:
    """Where the tensors are that belong to one's own targets: the last layer with weights, and the targets' units."""
    last = [path for path, _ in model.named_parameters()][-1].rpartition(".")[0]
    return (last + ".", *(f"{path}." for path, part in model.named_modules() if isinstance(part, nn.Restore)))


def _check_columns(source: str, theirs: Mapping[str, object], ours: Mapping[str, object]) -> None:
    """Refuse a table with other features than those of the run: weights would meet other columns than their own."""
    names = []
    for about in (theirs, ours):
        inputs = about.get("inputs")
        schema = inputs.get("schema") if isinstance(inputs, Mapping) and inputs.get("kind") == "table" else None
        names.append(None if schema is None else Schema.of_dict(schema).feature_names)
    if names[0] != names[1]:
        new = next((n for n in names[1] or () if n not in (names[0] or ())), None)
        what = f"{new!r} is new" if new else "some are missing, or in another order"
        raise InputError(f"{source} has other features than these data: {what}.", "a table with the same columns")


def _difference(ours: Options, theirs: Options, left: tuple[str, ...], learned: set[str]) -> str:
    inside = [path for path in ours if path in learned and not path.startswith(left)]
    if not inside:
        return "the model is a head alone"
    path = next((path for path in inside if path in theirs), None)
    if path is None:
        return f"it has no {inside[0]}"
    return f"{path} is {theirs[path].shape} there and {ours[path].shape} here"


def _remedy(recipe: Options) -> str:
    return f"--model {recipe['model']['name']}, inputs of shape {tuple(recipe['shape'])}, or without model.from"
