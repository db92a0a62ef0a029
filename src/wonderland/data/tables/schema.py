"""The schema of a table: what its columns mean, how they become numbers, kept as JSON, asked of every later table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from ...core.errors import InputError
from .columns import ColumnSchema, check_overrides, column_schema, near
from .stored import damaged, mapping, plain, restore, sequence
from .table import Column, Table
from .targets import TargetSchema, infer_target

VERSION = 1
WIDTH = 100


@dataclass(frozen=True)
class Group:
    """The features of one column: those from `start` to `stop`."""

    column: str
    start: int
    stop: int
    kind: str


@dataclass(frozen=True, eq=False)
class Encoded:
    """The features of a table, float32 (rows, features), finite; and what there is to say about the table."""

    features: np.ndarray
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Schema:
    """What the columns of a table mean, and how they become numbers.

    >>> import numpy as np
    >>> from wonderland.data.tables import Column, Table
    >>> age = Column("age", np.array([20.0, np.nan, 40.0, 30.0]))
    >>> city = Column("city", np.array([0, 1, 0, 1], np.int32), ("Rome", "Pisa"))
    >>> paid = Column("paid", np.array([0, 1, 1, 0], np.int32), ("no", "yes"))
    >>> table = Table("people", {"age": age, "city": city, "paid": paid})
    >>> schema = infer_schema(table, target="paid")
    >>> schema.feature_names
    ('age', 'age is missing', 'city=Pisa', 'city=Rome')
    >>> schema.encode(table.without(["paid"])).features[0].round(3).tolist()
    [-1.414, 0.0, 0.0, 1.0]
    >>> schema.encode_target(table).tolist(), schema.target.classes
    ([0, 1, 1, 0], ('no', 'yes'))
    >>> Schema.of_dict(schema.to_dict()) == schema
    True
    >>> print(schema.plan())
    column  kind      missing
    age     number          1  median 30, indicator
    city    category        0  one-hot 2
    paid    target          0  2 classes: no 50%, yes 50%

    - `columns`: all columns of the table in their order, the target among them;
    - `target`: what is predicted, or None;
    - `header`: whether columns are known by their names; without a header they are known by their places.
    """

    columns: tuple[ColumnSchema, ...]
    target: TargetSchema | None = None
    header: bool = True
    version: int = VERSION

    @property
    def features(self) -> tuple[ColumnSchema, ...]:
        """The columns that become features."""
        return tuple(column for column in self.columns if column.encoding is not None)

    @property
    def feature_names(self) -> tuple[str, ...]:
        """The names of the features."""
        return tuple(name for column in self.columns for name in column.feature_names())

    @property
    def groups(self) -> tuple[Group, ...]:
        """Which features belong to which column."""
        found, start = [], 0
        for column in self.features:
            stop = start + len(column.feature_names())
            found.append(Group(column.name, start, stop, column.kind))
            start = stop
        return tuple(found)

    def __getitem__(self, name: str) -> ColumnSchema:
        found = next((column for column in self.columns if column.name == name), None)
        if found is None:
            raise InputError(
                f"the schema has no column {name!r}.", near(name, [column.name for column in self.columns])
            )
        return found

    def encode(self, table: Table) -> Encoded:
        """The features of a table. Its columns are found by their names, in whatever order they stand.

        Columns that training did not have are left out, with a note; those that it needs and that are missing are an
        error. A row has the same features alone and among others.
        """
        found, notes = self._found(table)
        groups = self.groups
        features = np.empty((len(table), groups[-1].stop if groups else 0), np.float32)
        for column, group in zip(self.features, groups, strict=True):
            assert column.encoding is not None
            out = features[:, group.start : group.stop]
            if len(table):
                notes += column.encoding.encode(found[column.name], out, table.place)
        return Encoded(features, notes)

    def encode_target(self, table: Table) -> np.ndarray:
        """The targets of a table: int64 classes, or float32 numbers in the user's units."""
        if self.target is None:
            raise InputError("the schema has no target.", "infer_schema(table, target=...)")
        if not self.header and not table.header:
            return self.target.encode(self._placed(table))
        return self.target.encode(table)

    def has_target(self, table: Table) -> bool:
        """Whether a table has the target of the schema."""
        if self.target is None:
            return False
        if not self.header and not table.header:
            return len(table.columns) == len(self.columns)
        return self.target.name in table.columns

    def _found(self, table: Table) -> tuple[Mapping[str, Column], list[str]]:
        """The columns of a table by the names of the schema, and notes."""
        needed = [column.name for column in self.features]
        if not self.header and not table.header:
            return self._placed(table).columns, []
        if table.header != self.header and (not table.header or not set(needed) <= set(table.names)):
            raise InputError(
                f"{table.name} has {'a' if table.header else 'no'} header,"
                f" and the columns are known by their {'names' if self.header else 'places'}.",
                f"a table with the columns {_listed(needed)}" if self.header else "a table without a header",
            )
        if missing := [name for name in needed if name not in table.columns]:
            there = [name for name in table.names if name not in needed]
            remedy = f"a table with the columns {_listed(needed)}"
            if there:
                remedy += f"; it has {_listed(there)}"
            raise InputError(
                f"{table.name}: the column{'s' if len(missing) > 1 else ''} {_listed(missing)}"
                f" {'are' if len(missing) > 1 else 'is'} missing.",
                remedy,
            )
        known = {column.name for column in self.columns}
        extra = [name for name in table.names if name not in known]
        plural = len(extra) > 1
        notes = [f"{_listed(extra)}: {'columns' if plural else 'a column'} that training did not have, ignored"]
        return table.columns, notes if extra else []

    def _placed(self, table: Table) -> Table:
        """A table without a header, with the names of the schema; the target may be missing."""
        names = [column.name for column in self.columns]
        rest = [name for name in names if self.target is None or name != self.target.name]
        fitting = names if len(table.columns) == len(names) else rest
        if len(table.columns) != len(fitting):
            both = f"{len(rest)} or {len(names)}" if len(rest) < len(names) else f"{len(names)}"
            raise InputError(
                f"{table.name} has {len(table.columns)} columns and no header, where training had {len(names)}.",
                f"a table of {both} columns in the same order",
            )
        pairs = zip(fitting, table.columns.values(), strict=True)
        return Table(table.name, {n: Column(n, c.values, c.texts) for n, c in pairs}, False, table.lines)

    def plan(self, most: int = 200) -> str:
        """The short table: column, kind, missing, and the encoding or the reason why it is left out."""
        lines = []
        for column in self.columns:
            if self.target is not None and column.name == self.target.name:
                lines.append((column.name, "target", self.target.missing, self.target.describe()))
            else:
                lines.append((column.name, column.kind, column.missing, column.describe()))
        rest = len(lines) - most
        lines = lines[:most]
        name = min(max([len(line[0]) for line in lines] + [6]), 28)
        kind = max([len(line[1]) for line in lines] + [4])
        gone = max([len(f"{line[2]:,}") for line in lines] + [7])
        shown = [f"{'column':{name}}  {'kind':{kind}}  {'missing':>{gone}}"]
        for title, what, missing, how in lines:
            row = f"{_cut(title, name):{name}}  {what:{kind}}  {missing:>{gone},}  {how}"
            shown.append(_cut(" ".join(row.splitlines()), WIDTH))
        if rest > 0:
            shown.append(f"... and {rest:,} more columns")
        return "\n".join(shown)

    def to_dict(self) -> dict[str, object]:
        """The schema as plain data, for JSON."""
        return {
            "version": self.version,
            "header": self.header,
            "target": None if self.target is None else plain(self.target),
            "columns": [column.to_dict() for column in self.columns],
        }

    @classmethod
    def of_dict(cls, values: Mapping[str, object]) -> Schema:
        """The schema of such plain data, checked."""
        table = mapping(values, "")
        version = table.get("version")
        if version != VERSION or isinstance(version, bool):
            raise damaged("", f"its version is {version!r}, and this program reads version {VERSION}")
        header = table.get("header")
        if not isinstance(header, bool):
            raise damaged("", f"header is {header!r}, where true or false belongs")
        columns = tuple(ColumnSchema.of_dict(entry) for entry in sequence(table.get("columns"), "columns"))
        names = [column.name for column in columns]
        if len(set(names)) < len(names):
            raise damaged("", "two columns have one name")
        stored = table.get("target")
        target = None if stored is None else restore(TargetSchema, stored, "the target")
        if target is not None and target.name not in names:
            raise damaged("the target", f"there is no column {target.name!r}")
        return cls(columns, target, header)


def infer_schema(
    table: Table,
    *,
    target: str | None = None,
    task: str = "auto",
    columns: Mapping[str, object] | None = None,
    rows: np.ndarray | Sequence[int] | None = None,
    group: str | None = None,
    time: str | None = None,
) -> Schema:
    """What the columns of a table mean.

    - `target`: the name of the column to predict; `task` says whether it is "classification" or "regression".
    - `columns`: what columns are, if they are not what they seem: `{"zip": "category", "note": "ignore",
      "size": {"kind": "ordinal", "order": ["s", "m", "l"]}}`.
    - `rows`: the training rows; fills, scales and categories come from these alone.
    - `group`, `time`: the columns that say which rows belong together and when they were.
    """
    if not len(table):
        raise InputError(f"{table.name}: there are no rows.", "a table with rows")
    said = check_overrides(table, columns or {})
    for what, name in (("target", target), ("group", group), ("time", time)):
        if name is not None and name not in table.columns:
            raise InputError(f"{what}: {table.name} has no column {name!r}.", near(name, table.names))
    if target is not None and target in (group, time):
        raise InputError(
            f"the target {target!r} cannot also be the {'group' if target == group else 'time'}.", "another column"
        )
    chosen = None if rows is None else _rows(table, rows)
    about = None
    if target is not None:
        about = _target(table, target, task, said.get(target), chosen)
    found = []
    for name in table.names:
        if name == target:
            assert about is not None
            kind = "number" if about.classes is None else "category"
            found.append(ColumnSchema(name, kind, "target", "", about.missing, len(table)))
        else:
            role = "group" if name == group else "time" if name == time else "feature"
            found.append(column_schema(table, name, chosen, said.get(name), role))
    if not any(column.encoding is not None for column in found):
        raise InputError(
            f"{table.name}: no column tells anything: {_listed([f'{c.name} ({c.describe()})' for c in found])}.",
            'columns with different values; or say what a column is, as columns={"code": "category"}',
        )
    return Schema(tuple(found), about, table.header)


def _rows(table: Table, rows: np.ndarray | Sequence[int]) -> np.ndarray:
    chosen = np.asarray(rows)
    if chosen.dtype == bool and chosen.shape == (len(table),):
        chosen = np.flatnonzero(chosen)
    if chosen.ndim != 1 or chosen.dtype.kind not in "iu" or not len(chosen):
        raise InputError(f"rows: {chosen.dtype} of shape {chosen.shape}.", "numbers of one row or more")
    if chosen.min() < 0 or chosen.max() >= len(table):
        raise InputError(f"rows: {chosen.min()} to {chosen.max()} for {len(table)} rows.", f"0 to {len(table) - 1}")
    return chosen


def _target(
    table: Table, name: str, task: str, said: Mapping[str, object] | None, rows: np.ndarray | None
) -> TargetSchema:
    if said is None:
        return infer_target(table, name, task, rows)
    kind = said["kind"]
    wanted = {"number": "regression", "count": "regression", "category": "classification", "ordinal": "classification"}
    if kind not in wanted or task not in ("auto", wanted[str(kind)]):
        raise InputError(
            f"columns: the target {name!r} cannot be {kind} for task={task!r}.", "number, category or ordinal"
        )
    order = said.get("order", ())
    return infer_target(
        table, name, wanted[str(kind)], rows, tuple(map(str, order)) if isinstance(order, list | tuple) else ()
    )


def _listed(names: Sequence[str], most: int = 12) -> str:
    return ", ".join(map(repr, names[:most])) + (f" and {len(names) - most} more" if len(names) > most else "")


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 3] + "..."
