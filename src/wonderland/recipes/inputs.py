"""What a run keeps of its inputs, so that other data are read to the same numbers or refused."""

from __future__ import annotations

import contextlib
import inspect
import os
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, TypeAlias, TypeVar

import numpy as np

from ..core.errors import InputError, ShapeError
from ..data import DatasetRecord
from ..data.catalogue import reader_of
from ..data.collation import collate
from ..data.formats.schema import TableSchema
from . import media
from .given import as_record

OF_ONE_FILE = ("name", "expect_size", "expect_sha256")  # options that say nothing about another file
SETTLED = ("columns", "categorical", "encode", "task")  # options of tables that a schema answers
TARGETS = ("target", "targets")
GRAPHS = ("citations", "karate", "motifs")  # that come with the package
EDGES = {"edge_index.npy", "edges.npy", "edge_list.npy", "ends.npy", "adj_indptr.npy"}  # arrays that graphs have

Options: TypeAlias = Mapping[str, Any]  # plain data by name: what settings say, and what a run keeps
Made = TypeVar("Made")


def read(settings: Options) -> DatasetRecord:
    """The data by name or path, all in memory."""
    options = {name: value for name, value in settings.items() if name != "name"}
    name = settings.get("name")
    if media.are_media(name):
        return media.read(settings)
    if name is not None and not isinstance(name, str):
        refuse_options("data in memory", options, ())
        return as_record(name)
    if is_graph(name):
        raise InputError(
            f"{name} is a graph, or many.", "--model gcn, or another one for graphs; see `wonderland list`"
        )
    found = made_with(name, _reader(name), options)
    if isinstance(found, DatasetRecord):
        return found
    if not len(found):
        raise InputError(f"{name}: there are no examples.", "data that are not empty")
    x, y = collate([found[i] for i in range(len(found))])  # a folder of images
    return DatasetRecord(np.asarray(x), np.asarray(y), str(name), target_names=tuple(getattr(found, "classes", ())))


def is_graph(name: object) -> bool:
    """Whether data are graphs, which models of examples do not take: by name, or by what is in a file or folder."""
    if not isinstance(name, str):
        return False
    if os.path.isdir(name):
        return any(file.endswith(("_graph_indicator.txt", "_graph_indicator.txt.gz")) for file in os.listdir(name))
    if not name.lower().endswith(".npz") or not zipfile.is_zipfile(name):
        return name in GRAPHS
    with contextlib.suppress(zipfile.BadZipFile, OSError, ValueError), zipfile.ZipFile(name) as archive:
        return not EDGES.isdisjoint(archive.namelist())
    return False


def made_with(name: object, make: Callable[..., Made], options: Options) -> Made:
    """What a reader or generator gives; an option that it does not have is a mistake in the settings."""
    try:
        return make(**options)
    except TypeError as error:
        raise InputError(f"data {name}: {error}.", "options of the reader, as in wl.data.load") from None


def kept(record: DatasetRecord) -> dict[str, object]:
    """What a run keeps of a record, as plain data: the schema of its columns if they have names, and the dtype."""
    schema = record.schema
    if schema is None and record.feature_names:
        schema = TableSchema(dict.fromkeys(record.feature_names), classes=list(record.target_names) or None)
    found: dict[str, object] = {"schema": None if schema is None else schema.to_dict()}
    form = media.form_of_record(record)
    return {
        **found,
        "dtype": str(record.features.dtype),
        **({} if form is None else {"form": form, "files": bool(record.ids)}),
    }


def read_again(settings: Options, run: Options, targets: bool) -> DatasetRecord:
    """Data whose columns, categories and classes have the meaning and the order of those of a run."""
    inputs = run.get("inputs") or {}
    if media.are_media(settings.get("name"), inputs):
        return media.read_again(settings, run, targets)
    if inputs.get("schema") is None:
        return read(settings)
    schema, options = TableSchema.of_dict(inputs["schema"]), dict(settings)
    if "like" in _options(options.get("name")):
        if targets:
            options.setdefault("target", schema.target)
        return read({**options, "like": schema})
    record = read(options)
    if not schema.header:
        return record
    names = schema.feature_names()
    unnamed = not record.feature_names and not isinstance(options.get("name"), str)
    if unnamed and record.features.ndim == 2 and record.features.shape[1] == len(names):
        return replace(record, feature_names=names)  # an array in memory has the order that the program gave it
    if set(record.feature_names) != set(names):
        differing = [
            name for name in (*names, *record.feature_names) if (name in names) != (name in record.feature_names)
        ]
        missing = differing[0] in names
        raise InputError(
            f"{record.name}: the columns have no names, those of the run have."
            if not record.feature_names
            else f"{record.name}: the column {differing[0]!r} is {'missing' if missing else 'new'}.",
            f"a table with a header that names {', '.join(map(repr, schema.features))}",
        )
    order = [record.feature_names.index(name) for name in names]
    return replace(record, features=record.features[:, order], feature_names=names)


def like_those_of(settings: Options, data: Options, run: Options, targets: bool) -> Options:
    """The settings of other data, with those options of the run's own that make sense for them.

    Without `targets` nothing is said of these, and no rows are left out: each has a prediction.
    """
    if media.are_media(data.get("name"), run.get("inputs") or {}):
        return media.like_those_of(settings, data)
    theirs = _options(data.get("name"))
    left = {*OF_ONE_FILE, *(() if targets else (*TARGETS, "on_missing"))}
    if "like" in theirs and (run.get("inputs") or {}).get("schema"):
        left |= {*SETTLED, "target"}  # the schema has the name of the target; a number may be another column's here
    if not same_source(data, settings) and not str(settings["name"]).endswith(".npz"):
        left.add("targets")  # the path of the labels of other inputs, and no array of the same file
    return {**{k: v for k, v in settings.items() if k not in left and k in theirs}, **data}


def same_source(data: Options, settings: Options) -> bool:
    """Whether two settings of data are of the same file or the same data by name."""
    name = data.get("name")
    return isinstance(name, str) and bool(name == settings.get("name"))


def own(settings: Options) -> Options:
    """The run's own data, as other data would be given."""
    return {k: v for k, v in settings.items() if k in OF_ONE_FILE}


def check_alike(x: np.ndarray, shape: tuple[int, ...]) -> None:
    """Refuse inputs that are not like those of a run: of another shape, or not finite."""
    if tuple(x.shape[1:]) != tuple(shape):
        raise ShapeError(
            f"the inputs have the shape {tuple(x.shape[1:])}, the model takes {tuple(shape)}.",
            "data like those that it was trained on",
        )
    if not len(x):
        raise InputError("there are no examples.", "data that are not empty")
    check_finite("predict", "features", x)


def check_type(record: DatasetRecord, run: Options) -> None:
    """Refuse features of another type than those of a run: bytes and fractions have other scales."""
    dtype, known = record.features.dtype, (run.get("inputs") or {}).get("dtype")
    if known is not None and dtype != known and not (dtype.kind == "f" and known.startswith("float")):
        raise InputError(
            f"{record.name}: the features are of type {dtype}, those of the run were {known}; their scales may differ.",
            f"features of type {known}, on the scale of the training",
        )


def check_finite(name: str, what: str, values: np.ndarray) -> None:
    """Refuse numbers that are NaN or infinite."""
    if values.dtype.kind == "f" and not (finite := np.isfinite(values)).all():
        example, count = np.argwhere(~finite)[0][0], np.count_nonzero(~finite)
        raise InputError(
            f"{name}: {count} numbers of the {what} are NaN or infinite, the first in example {example}.",
            "data without them: fill or drop these examples",
        )


def refuse_targets(reason: str, options: Options) -> None:
    """Refuse a target where nobody would look at it."""
    if given := [name for name in TARGETS if name in options]:
        raise InputError(f"data.{given[0]} = {options[given[0]]!r}: {reason}.", f"without data.{given[0]}")


def refuse_options(name: str, options: Options, known: tuple[str, ...]) -> None:
    """Refuse options that nobody would look at."""
    if unknown := [option for option in options if option not in ("name", *known)]:
        raise InputError(f"{name}: there is no option data.{unknown[0]}.", f"some of {', '.join(known)}")


def _reader(name: object) -> Any:
    if not isinstance(name, str):
        raise InputError("the data have no name.", "--data with a name that `wonderland list` shows, or a path")
    return reader_of(name)


def _options(name: object) -> set[str]:
    """The names of the options that the reader of a source has; what is in memory has none."""
    if name is not None and not isinstance(name, str):
        return set()
    return set(inspect.signature(_reader(name)).parameters)
