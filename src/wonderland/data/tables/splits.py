"""How the rows of a table are divided into some to learn from and some to be tested on: random, time or group."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .columns import ColumnSchema
from .dates import DateEncoding, read_dates
from .schema import Schema
from .table import Table

ORDERED = 0.98  # the share of neighbours that go the same way in time


@dataclass(frozen=True)
class Split:
    """A way to divide rows: "random", "time" or "group", the column that it needs, and why."""

    kind: str
    column: str | None
    reason: str


def propose_split(table: Table, schema: Schema) -> Split:
    """How to divide the rows of a table, so that a test says what will happen with new rows.

    >>> import numpy as np
    >>> from wonderland.data.tables import infer_schema, read_table
    >>> days = np.arange("2024-01-01", "2024-04-01", dtype="datetime64[D]")
    >>> table = read_table({"day": days.astype("datetime64[us]"), "sales": np.arange(91) * 1.5})
    >>> propose_split(table, infer_schema(table, target="sales"))
    Split(kind='time', column='day', reason="the rows are in the order of 'day', and 'sales' is a number")
    """
    for role in ("group", "time"):
        named = next((column for column in schema.columns if column.role == role), None)
        if named is not None:
            what = "rows of one group stay together" if role == "group" else "the latest rows are the test"
            return Split(role, named.name, f"{named.name!r} was named: {what}")
    if (repeated := next((column for column in schema.columns if column.repeats), None)) is not None:
        return Split("group", repeated.name, f"{repeated.name!r} names several rows each, which stay together")
    if schema.target is not None and schema.target.classes is None:
        for column in schema.columns:
            if column.kind == "date" and column.encoding is not None and _ordered(table, column):
                why = f"the rows are in the order of {column.name!r}, and {schema.target.name!r} is a number"
                return Split("time", column.name, why)
    return Split("random", None, "nothing says that rows depend on each other")


def _ordered(table: Table, column: ColumnSchema) -> bool:
    """Whether almost all rows follow each other in time, forwards or backwards."""
    encoding = column.encoding
    if not isinstance(encoding, DateEncoding) or column.name not in table.columns:
        return False
    moments, _ = read_dates(table[column.name], encoding.source, encoding.day_first)
    there = moments[~np.isnat(moments)]
    if len(there) < 10:
        return False
    steps = np.diff(there).astype(np.int64)
    moving = steps[steps != 0]
    if len(moving) < 5:
        return False
    return max(float((moving > 0).mean()), float((moving < 0).mean())) >= ORDERED
