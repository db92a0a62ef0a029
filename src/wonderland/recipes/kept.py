"""What a run left in its folder, read again. Files may be damaged, or be no files of a run: then an error says so."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator

from .. import train
from ..core.errors import FileError, WonderlandError
from ..storage.bounds import LEAST_ARRAY, array_bytes
from ..storage.parsing import parse_json
from ..storage.safetensors import metadata
from .inputs import Options
from .tasks import TASKS

REMEDY = "a file that `wonderland train` wrote"


def model_file(path: str | os.PathLike[str]) -> str:
    """The file of the weights of a run: `path` is its folder, or the file itself."""
    path = os.fspath(path)
    if not os.path.isdir(path):
        return path
    inside = os.path.join(path, "model.safetensors")
    if not os.path.exists(inside):
        unfinished = os.path.isdir(os.path.join(path, "checkpoints"))
        raise FileError(
            f"{path} has no trained model{': the run is not finished' if unfinished else ''}.",
            "`wonderland train` with the same settings, which goes on" if unfinished else "the folder of a run",
        )
    return inside


def recipe_of(path: str) -> Options:
    """What a file of weights says about itself: model, task, shape, outputs, about, data."""
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
        raise FileError(f"{path} does not say what model it is of.", REMEDY)
    return recipe


@contextlib.contextmanager
def described(path: str) -> Iterator[None]:
    """Around what follows the description in a file, where odd values may lead to any error: then it is the file's."""
    try:
        yield
    except WonderlandError:
        raise
    except (TypeError, ValueError, LookupError, AttributeError, ArithmeticError, RecursionError, MemoryError) as error:
        reason = f"{type(error).__name__}: {error}".splitlines()[0]
        raise FileError(f"{path}: what it says about itself cannot be used ({reason}).", REMEDY) from error


def read_settings(path: str) -> dict[str, Options]:
    """The settings that a run left: tables by section."""
    found = _read_json(path)
    if not isinstance(found, dict) or not all(isinstance(section, dict) for section in found.values()):
        raise FileError(f"{path} is damaged: it has no settings by section.", "--fresh to start anew")
    return found


def read_results(path: str) -> Options:
    """What was measured on the test data: numbers by name."""
    found = _read_json(path)
    if not isinstance(found, dict) or not isinstance(found.get("test"), dict):
        raise FileError(f"{path} is damaged: it has no results.", REMEDY)
    return dict(found["test"])


def read_findings(path: str) -> list[dict[str, str]]:
    """What a run found out about its model, the worst first: severity, text, remedy and kind."""
    found = _read_json(path)
    listed = found.get("findings", []) if isinstance(found, dict) else None
    if not isinstance(listed, list) or not all(
        isinstance(one, dict) and all(isinstance(value, str) for value in one.values()) for one in listed
    ):
        raise FileError(f"{path} is damaged: its findings are no list of texts.", REMEDY)
    return listed


def read_history(path: str) -> train.History:
    """The records of the epochs."""
    records = []
    for number, line in enumerate(_read(path).splitlines(), 1):
        try:
            record = parse_json(line)
        except ValueError:
            record = None
        if not isinstance(record, dict):
            raise FileError(f"{path} is damaged: line {number} is no record of an epoch.", REMEDY)
        records.append(record)
    return train.History(records)


def _read(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError as error:
        raise FileError(f"cannot read {path}: {error.strerror}.", "the folder of a run") from None


def _read_json(path: str) -> object:
    try:
        return parse_json(_read(path))
    except ValueError as error:
        raise FileError(f"{path} is damaged: it is no JSON ({error}).", "--fresh to start anew") from None
