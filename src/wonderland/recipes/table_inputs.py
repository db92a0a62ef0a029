"""Tables as the data of a run: the target, the plan of the columns, the parts, and other tables by the same plan."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from ..core.errors import InputError
from ..data import DatasetRecord
from ..data.tables.findings import findings
from ..data.tables.reading import is_table_source, read_table
from ..data.tables.schema import Schema, infer_schema
from ..data.tables.splits import propose_split
from ..data.tables.table import Column, Table
from . import media
from .given import as_record
from .inputs import Options, made_with, read, refuse_options, same_source
from .table_parts import check_split, cut_rows
from .tasks.task import Arrays, Whole

OF_FILES = ("header", "delimiter", "encoding", "expect_size", "expect_sha256")
OPTIONS = ("target", "columns", "categorical", "task", "split", "time", "group", *OF_FILES)
INSTEAD = {  # options that tables had before columns had kinds
    "on_missing": "gaps are filled, and a feature says where: --set data.columns.NAME=ignore leaves a column out",
    "encode": "a column is encoded by its kind: --set data.columns.NAME=category, ordinal, number or text",
    "dtype": "features are float32",
}
TARGETS = ("target", "label", "labels", "class", "y", "outcome", "response", "species")  # names that give it away
SAMPLE = 20_000  # rows that show what the columns are, before the rows to train on are chosen


@dataclass(frozen=True)
class TableData:
    """A table that is ready to be learned from: inputs and targets of the parts, and what is said before training."""

    name: str
    train: Arrays
    validation: Arrays | None
    test: Arrays
    schema: Schema
    inputs: dict[str, object]  # what a run keeps
    plan: str
    notes: list[str] = field(default_factory=list)
    test_table: Table | None = None


def is_table(name: object, run: Options | None = None) -> bool:
    """Whether data are read as a table with a schema: by the run's, or by what they are."""
    if run is not None:
        return (run.get("inputs") or {}).get("kind") == "table"
    return is_table_source(name) and not media.are_media(name)


def read_parts(data: Options, validation: float, seed: int, run: Options | None = None) -> TableData:
    """The parts of a table. With what a `run` keeps they are those of its training."""
    table, notes = _read(data), list[str]()
    if run is None:
        refuse_old(data)
        refuse_options("a table", data, OPTIONS)
        target = _target(table, data, notes)
    else:
        kept = schema_of(run)
        target, table = _named_target(kept, table), _named(kept, table)
    table = with_target(table, target, notes)
    if len(table) < 5:
        raise InputError(f"{table.name}: {len(table)} examples are too few to train and to test.", "five or more")
    if run is None:
        infer = _inferring(table, target, data)
        some = _some_rows(len(table), seed)
        rough = infer(some)
        split = _split(table, rough, data, notes)
    else:
        rough, split = kept, (run["inputs"]["split"]["kind"], run["inputs"]["split"]["column"])
    y = rough.encode_target(table)
    classes = rough.target is not None and rough.target.classes is not None
    rows = cut_rows(table, y if classes else None, *split, validation, seed)
    schema = rough if run is not None else infer(rows[0])
    y = y if classes else y[:, None]
    made = [None if chosen is None else (_encoded(schema, table, chosen), y[chosen]) for chosen in rows]
    first, held, test = made
    assert first is not None
    assert test is not None
    if run is None:
        _check_targets(table.name, first[1], schema)
        notes += findings(table, schema)
    inputs: dict[str, object] = {
        "kind": "table",
        "schema": schema.to_dict(),
        "split": dict(zip(("kind", "column"), split, strict=True)),
        "dtype": "float32",
    }
    asked = table.select(rows[2]) if rows[2] is not None else None
    return TableData(table.name, first, held, test, schema, inputs, schema.plan(), notes, asked)


def read_whole(data: Options, run: Options, targets: bool) -> Whole:
    """All rows of a table, encoded as those of a run; with `targets` those that have one."""
    schema = schema_of(run)
    table = _named(schema, _read(data, schema))
    notes: list[str] = []
    y, n = None, len(table)
    if targets:
        table = with_target(table, _named_target(schema, table), [])
        y = schema.encode_target(table)
        y = y if run["class_names"] else y[:, None]
    if not len(table):
        raise InputError(f"{table.name}: there are no examples.", "data that are not empty")
    found = schema.encode(table)
    return Whole(found.features, y, table, (), n - len(table), (*notes, *found.notes))


def row_names(schema: Schema, table: Table) -> tuple[str, list[str] | None]:
    """What tells rows apart, for answers: the column of the first identifier that is there, and its values."""
    for column in schema.columns:
        if column.kind == "identifier" and column.name in table.columns:
            return column.name, table[column.name].strings().tolist()
    return "row", None


def options_like(settings: Options, data: Options, run: Options) -> Options:
    """The options of another table for a run, or of its own: how it is read; what it means is settled."""
    schema = schema_of(run)
    given = {k: v for k, v in data.items() if k not in ("name", *OF_FILES)}
    if given.get("target") is not None and schema.target is not None:
        target = given.pop("target")
        if target not in (schema.target.name, _place(schema)):
            raise InputError(f"the target of the run is {schema.target.name!r}, not {target!r}.", "without target=")
    if given:
        raise InputError(
            f"{next(iter(given))} is settled already, by the table of the training.", f"some of {', '.join(OF_FILES)}"
        )
    same = same_source(data, settings)
    mine = {k: settings[k] for k in OF_FILES if k in settings} if same else {}
    if not same and "header" not in data and isinstance(data.get("name"), str) and not schema.header:
        mine["header"] = False
    return {**mine, **data}


def schema_of(run: Options) -> Schema:
    """The schema that a run keeps."""
    return Schema.of_dict(run["inputs"]["schema"])


def refuse_old(data: Options) -> None:
    """Refuse options that say what kinds of columns say now."""
    for name, remedy in INSTEAD.items():
        if name in data:
            raise InputError(f"data.{name} = {data[name]!r} is not for tables.", remedy)


# --- reading


def _read(data: Options, schema: Schema | None = None) -> Table:
    """The table of a source; for a run also of arrays and records, whose columns have its names or their places."""
    source = data.get("name")
    options = {name: data[name] for name in OF_FILES if name in data}
    if is_table_source(source) or schema is None:
        return made_with(source, lambda **given: read_table(source, **given), options)
    if isinstance(source, str):
        return _of_record(read({k: v for k, v in data.items() if k != "target"}), schema)
    return _of_record(as_record(source), schema)


def _of_record(record: DatasetRecord, schema: Schema) -> Table:
    """The table of a record; the columns of one without names are the features of the schema in their order."""
    x = np.asarray(record.features)
    names = record.feature_names or tuple(column.name for column in schema.features)
    if x.ndim != 2 or len(names) != x.shape[1]:
        raise InputError(
            f"{record.name}: inputs of shape {x.shape} are no table with the columns {', '.join(map(repr, names))}.",
            "a row for each example, and a column for each of these",
        )
    columns = {name: Column(name, x[:, i].astype(np.float64)) for i, name in enumerate(names)}
    target = schema.target
    if target is not None and record.targets is not None and np.ndim(record.targets) == 1:
        y = np.asarray(record.targets)
        texts = record.target_names or None
        columns[target.name] = Column(target.name, y.astype(np.int32 if texts else np.float64), texts)
    return Table(record.name, columns)


def _named(schema: Schema, table: Table) -> Table:
    """The table, which has the names of the schema if neither has names of its own."""
    if schema.header or table.header:
        return table
    names = [column.name for column in schema.columns]
    if len(table.columns) == len(names):
        return Table(
            table.name,
            {n: Column(n, c.values, c.texts) for n, c in zip(names, table.columns.values(), strict=True)},
            False,
            table.lines,
        )
    return table


def _target(table: Table, data: Options, notes: list[str]) -> str:
    """The name of the column to predict: the one that is said, or the one whose name says it."""
    wanted = data.get("target")
    if wanted is not None:
        return _column(table, "data.target", wanted)
    found = [name for name in table.names if name.strip().lower() in TARGETS]
    if len(found) != 1:
        raise InputError(
            f"{table.name}: there is nothing to predict; the columns are {_listed(table.names)}.",
            "--set data.target=COLUMN with one of them",
        )
    notes.append(f"the target is {found[0]!r}, by its name; --set data.target=COLUMN for another")
    return found[0]


def _column(table: Table, option: str, wanted: object) -> str:
    """A column by its name or its number, which may count from the end."""
    if isinstance(wanted, str) and wanted in table.columns:
        return wanted
    if isinstance(wanted, int) and not isinstance(wanted, bool) and -len(table.names) <= wanted < len(table.names):
        return table.names[wanted]
    if str(wanted) in table.columns:  # a name that looks like a number
        return str(wanted)
    raise InputError(f"{option}: {table.name} has no column {wanted!r}.", f"one of {_listed(table.names)}")


def _named_target(schema: Schema, table: Table) -> str:
    if schema.target is None or not schema.has_target(table):
        name = None if schema.target is None else schema.target.name
        raise InputError(f"{table.name}: there is no column {name!r}, the target.", f"one of {_listed(table.names)}")
    return schema.target.name


def _place(schema: Schema) -> int:
    return [column.name for column in schema.columns].index(schema.target.name) if schema.target else -1


def with_target(table: Table, target: str, notes: list[str]) -> Table:
    """The rows whose target is there."""
    missing = table[target].missing
    if not missing.any():
        return table
    if missing.all():
        raise InputError(f"{table.name}: the target {target!r} is missing in every row.", "rows with a target")
    first = table.place(int(np.argmax(missing)))
    notes.append(f"{np.count_nonzero(missing):,} rows without a {target!r} are left out, the first in {first}")
    return table.select(np.flatnonzero(~missing))


# --- what the columns are


def _inferring(table: Table, target: str, data: Options) -> Callable[[np.ndarray | None], Schema]:
    """`infer_schema` of a table, with what the settings say about it; the rows are still to be said."""
    columns = data.get("columns") or {}
    roles = {
        role: _column(table, f"data.{role}", data[role]) for role in ("group", "time") if data.get(role) is not None
    }
    if isinstance(columns, (list, tuple)):
        taken = {_column(table, "data.columns", name) for name in columns} | {target, *roles.values()}
        columns = {name: "ignore" for name in table.names if name not in taken}
    if not isinstance(columns, Mapping):
        raise InputError(
            f"data.columns = {columns!r}.", "names with kinds, as data.columns.age=number, or a list of names"
        )
    texts = data.get("categorical") or ()
    if isinstance(texts, (str, int)):
        texts = [texts]
    kinds = {_column(table, "data.categorical", name): "category" for name in texts}
    task, kinds = str(data.get("task", "auto")), {**kinds, **columns}
    group, time = roles.get("group"), roles.get("time")
    return lambda rows: infer_schema(table, target=target, task=task, columns=kinds, rows=rows, group=group, time=time)


def _split(table: Table, rough: Schema, data: Options, notes: list[str]) -> tuple[str, str | None]:
    """How the table is split: as it is said, or as its columns ask for."""
    wanted = data.get("split")
    roles = {role: data.get(role) for role in ("time", "group")}
    if wanted is None:
        wanted = next((role for role, name in roles.items() if name is not None), None)
        if all(name is not None for name in roles.values()):
            raise InputError("data.time and data.group both say how to split.", "--set data.split=time, or group")
    if wanted is None:
        found = propose_split(table, rough)
        if found.kind != "random":
            notes.append(
                f"split by {found.kind}, column {found.column!r}: {found.reason}; "
                "--set data.split=random for one by chance"
            )
        return found.kind, found.column
    check_split(wanted, table.names)
    if wanted == "random":
        return "random", None
    name = roles[wanted]
    if name is None:
        fitting = [c.name for c in rough.columns if (c.kind == "date" if wanted == "time" else c.repeats)]
        if len(fitting) != 1:
            raise InputError(f"data.split = {wanted!r} needs a column.", f"--set data.{wanted}=COLUMN")
        name = fitting[0]
    return wanted, _column(table, f"data.{wanted}", name)


def _some_rows(n: int, seed: int) -> np.ndarray | None:
    """Some rows, if there are many."""
    if n <= SAMPLE:
        return None
    return np.sort(np.random.default_rng(seed).choice(n, SAMPLE, replace=False))


def _encoded(schema: Schema, table: Table, rows: np.ndarray) -> np.ndarray:
    return schema.encode(table.select(rows)).features


def _check_targets(name: str, y: np.ndarray, schema: Schema) -> None:
    """Refuse training rows from which nothing can be learned."""
    assert schema.target is not None
    if schema.target.classes is None:
        if y.min() == y.max():
            raise InputError(f"{name}: the target of all examples to train on is {y.flat[0]:g}.", "another split")
        return
    if len(seen := np.unique(y)) < 2:
        raise InputError(
            f"{name}: all examples to train on are of one class, {schema.target.classes[int(seen[0])]}.",
            "two classes or more",
        )


def _listed(names: Sequence[str], most: int = 30) -> str:
    return ", ".join(map(repr, names[:most])) + (f" and {len(names) - most} more" if len(names) > most else "")
