"""What is wrong, or looks wrong, with a table before anything is learned from it: sentences, each with a remedy."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from .categories import CategoryEncoding, OrdinalEncoding
from .columns import ColumnSchema
from .dates import DateEncoding, read_dates
from .distinct import distinct
from .numbers import NumberEncoding, bounded, center_and_scale, read_numbers
from .schema import Schema
from .table import Column, Table
from .targets import missing_in

SAMPLE = 20_000  # rows from which leakage is judged
FEWEST = 40  # rows below which nothing is said about leakage
SAME = 0.995  # rank correlation, or share of right answers, from which one column gives the target away


def findings(table: Table, schema: Schema) -> list[str]:
    """Sentences about duplicates, leakage, imbalance, and columns that say nothing.

    >>> import numpy as np
    >>> from wonderland.data.tables import infer_schema, read_table
    >>> x = np.sin(np.arange(200.0))
    >>> table = read_table({"x": np.cos(np.arange(200.0)), "euro": x, "dollar": 1.1 * x})
    >>> for line in findings(table, infer_schema(table, target="euro")):
    ...     print(line)
    'dollar' is a copy of the target in other units: unless it will be known for new rows, leave it out
    (data.columns.dollar=ignore).
    """
    table = _placed(table, schema)
    return [
        *_about_target(table, schema),
        *_about_rows(table, schema),
        *_about_leakage(table, schema),
        *_about_columns(schema),
    ]


def _placed(table: Table, schema: Schema) -> Table:
    """Without rows that have no target, if there is one."""
    if schema.target is None or schema.target.name not in table.columns:
        return table
    missing = missing_in(table[schema.target.name])
    return table.select(np.flatnonzero(~missing)) if missing.any() else table


def _about_target(table: Table, schema: Schema) -> Iterator[str]:
    target = schema.target
    if target is None:
        return
    if target.missing:
        yield f"{target.missing:,} rows have no target {target.name!r}: nothing can be learned from them."
    if target.classes is None:
        return
    counts, total = np.array(target.counts), sum(target.counts)
    for name, count in zip(target.classes, target.counts, strict=True):
        if count < 2:
            yield (
                f"the class {name!r} of {target.name!r} has {int(count)} example{'s' if count != 1 else ''} to learn"
                " from: collect more, or join it with another class."
            )
    most = int(counts.argmax())
    share = counts[most] / max(total, 1.0)
    if share >= max(0.8, 1.6 / len(counts)):
        yield (
            f"{share:.1%} of the rows are of the class {target.classes[most]!r}: a model that always answers it has"
            " this accuracy. Judge by balanced accuracy, and weigh the classes."
        )


def _about_rows(table: Table, schema: Schema) -> Iterator[str]:
    """Rows that occur twice, and equal features with different classes."""
    used = [column.name for column in schema.features if column.name in table.columns]
    if len(table) < 10 or not used or _room(table, used) < np.log(100 * len(table)):
        return  # with few combinations rows are equal by chance
    features = _hashes([table[name] for name in used])
    target = schema.target
    whole = features
    if target is not None and target.name in table.columns:
        whole = _hashes([table[target.name]], features)
    different = len(np.unique(whole))
    if twice := len(table) - different:
        many = twice > 1
        yield (
            f"{twice:,} row{'s' if many else ''} ({twice / len(table):.1%}) {'are copies' if many else 'is a copy'} of"
            " others: remove them, or rows to learn from come back in the test."
        )
    if target is None or target.classes is None or target.name not in table.columns:
        return
    _, first = np.unique(whole, return_index=True)
    counts = np.unique(features[first], return_counts=True)[1]
    if conflicting := int((counts > 1).sum()):
        groups = np.unique(features, return_inverse=True)[1]
        _, classes = distinct(table[target.name])
        pairs, numbers = np.unique(groups.astype(np.int64) * (classes.max() + 1) + classes, return_counts=True)
        best = np.zeros(groups.max() + 1, np.int64)
        np.maximum.at(best, pairs // (classes.max() + 1), numbers)
        many = conflicting > 1
        yield (
            f"{conflicting:,} set{'s' if many else ''} of equal features {'have' if many else 'has'} different classes:"
            f" no model gets more than {best.sum() / len(table):.1%} right. Check these labels, or add a column that"
            " tells them apart."
        )


def _room(table: Table, names: Sequence[str]) -> float:
    """The logarithm of how many different rows the values of columns could make, judged by some of the rows."""
    some = np.arange(len(table))[:: max(1, len(table) // 2000)]
    return float(np.sum([np.log(len(np.unique(_bits(table[name].select(some))))) for name in names]))


def _bits(column: Column) -> np.ndarray:
    """Whole numbers that are equal where values are."""
    if column.kind == "number":
        return (np.where(column.missing, np.nan, column.values) + 0.0).view(np.uint64)  # one NaN, and no -0
    return column.values.astype(np.int64).view(np.uint64)


def _hashes(columns: Sequence[Column], before: np.ndarray | None = None) -> np.ndarray:
    """One number for each row; rows with equal values have equal ones (the mixing is that of SplitMix64)."""
    mixed = np.zeros(len(columns[0]), np.uint64) if before is None else before
    for column in columns:
        mixed = (mixed ^ _bits(column)) + np.uint64(0x9E3779B97F4A7C15)
        mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        mixed = mixed ^ (mixed >> np.uint64(31))
    return mixed


def _about_leakage(table: Table, schema: Schema) -> Iterator[str]:
    target = schema.target
    if target is None or target.name not in table.columns or len(table) < FEWEST:
        return
    rows = np.random.default_rng(0).permutation(len(table))[:SAMPLE]
    some = table.select(rows)
    y = target.encode(some)
    for column in schema.features:
        if column.name not in table.columns:
            continue
        how = _leak_of_classes(column, some, y) if target.classes is not None else _leak_of_numbers(column, some, y)
        if how:
            yield (
                f"{column.name!r} {how}: unless it will be known for new rows, leave it out"
                f" (data.columns.{column.name}=ignore)."
            )


def _ranked(column: ColumnSchema, table: Table) -> np.ndarray | None:
    """The values of a column that has an order, NaN where missing; None for others."""
    values, encoding = table[column.name], column.encoding
    if isinstance(encoding, NumberEncoding):
        return bounded(read_numbers(values, encoding.decimal, encoding.unit).numbers)
    if isinstance(encoding, DateEncoding):
        moments, _ = read_dates(values, encoding.source, encoding.day_first)
        return np.where(np.isnat(moments), np.nan, moments.astype(np.int64).astype(np.float64))
    return None


def _leak_of_numbers(column: ColumnSchema, table: Table, y: np.ndarray) -> str:
    x = _ranked(column, table)
    if x is None:
        return ""
    there = ~np.isnan(x)
    if there.mean() < 0.5 or there.sum() < FEWEST:
        return ""
    a, b = x[there], y[there].astype(np.float64)
    if a.min() == a.max() or b.min() == b.max():
        return ""
    linear = abs(_correlation(a, b))
    if linear > 1 - 1e-9:
        return "is a copy of the target" if np.allclose(a, b) else "is a copy of the target in other units"
    ranks = abs(_correlation(_ranks(a), _ranks(b)))
    if max(linear, ranks) >= SAME:
        return f"alone almost gives the target away (correlation {max(linear, ranks):.4f})"
    return ""


def _correlation(a: np.ndarray, b: np.ndarray) -> float:
    (a_center, a_scale), (b_center, b_scale) = center_and_scale(a), center_and_scale(b)
    return float(((a - a_center) / a_scale * ((b - b_center) / b_scale)).mean())


def _ranks(x: np.ndarray) -> np.ndarray:
    """Ranks; equal values have the mean of theirs."""
    _, places, counts = np.unique(x, return_inverse=True, return_counts=True)
    return (np.cumsum(counts) - (counts - 1) / 2)[places]


def _leak_of_classes(column: ColumnSchema, table: Table, y: np.ndarray) -> str:
    """How a rule of one half of the rows, the most frequent class of each value or range, does on the other."""
    x, half = _ranked(column, table), len(y) // 2
    if x is not None:
        # ranges end in the middle between neighbours of different classes, as those of a decision tree do
        order = np.argsort(x[:half], kind="stable")
        sorted_x, sorted_y = x[:half][order], y[:half][order]
        change = np.flatnonzero((sorted_y[1:] != sorted_y[:-1]) & (sorted_x[1:] > sorted_x[:-1]))
        edges = (sorted_x[change] + sorted_x[change + 1]) / 2
        codes = np.where(np.isnan(x), len(edges) + 1, np.searchsorted(edges, x, side="right"))
    elif isinstance(column.encoding, CategoryEncoding | OrdinalEncoding):
        values, codes = distinct(table[column.name])
        codes = np.where(codes < 0, len(values), codes)
        if len(values) > len(y) / 4:
            return ""
    else:
        return ""
    classes = int(y.max()) + 1
    counts = np.zeros((int(codes.max()) + 1, classes), np.int64)
    np.add.at(counts, (codes[:half], y[:half]), 1)
    usual = int(counts.sum(axis=0).argmax())
    rule = np.where(counts.sum(axis=1) > 0, counts.argmax(axis=1), usual)
    right = float((rule[codes[half:]] == y[half:]).mean())
    plain = float((y[half:] == usual).mean())
    if right < SAME or 1 - right > 0.05 * (1 - plain):
        return ""
    missing = table[column.name].missing
    if missing.any() and not missing.all() and bool((rule[codes[missing]] != rule[codes[~missing]][0]).all()):
        return f"is missing or not depending on the target ({right:.1%} right by itself)"
    return f"alone predicts the target ({right:.1%} right by itself)"


def _about_columns(schema: Schema) -> Iterator[str]:
    for kind, why in (
        ("identifier", "left out because they tell rows apart and nothing else; data.columns.NAME=category uses one"),
        ("constant", "left out because they never change; the file does not need them"),
    ):
        found = [column.name for column in schema.columns if column.kind == kind and column.role == "left out"]
        if found:
            shown = ", ".join(map(repr, found[:5])) + (f" and {len(found) - 5} more" if len(found) > 5 else "")
            yield f"{shown}: {why}."
    for column in schema.features:
        if column.rows and column.missing > 0.5 * column.rows:
            yield (
                f"{column.name!r} is missing in {column.missing / column.rows:.0%} of the rows: little can be learned"
                f" from it; find out why, or leave it out (data.columns.{column.name}=ignore)."
            )
