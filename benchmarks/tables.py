"""`wonderland train --data file.csv --set data.target=...` with no other setting, on ten public tables and messy ones.

    python -m benchmarks tables --only iris cars --rounds 1

Beside it are scikit-learn's linear model and its histogram gradient boosting, which are told what the columns are. Each
round holds out another fifth of the rows; figures are of all held-out predictions together: accuracy, or R².
"""

from __future__ import annotations

import csv
import os
import sys
import tempfile
import time
import warnings

import numpy as np

import wonderland as wl
from wonderland import recipes
from wonderland.recipes.predictions import Predictions

from .messy import messy, shuffled_columns
from .options import Options
from .printed import Table
from .public_tables import TABLES, NeedsPackageError, PublicTable, Value

FOLDS = 5
FEW = 50  # rows: R² of so few is hardly more than chance, and decides the mean of all
ALONE = 3  # rows that are asked one at a time


def main(options: Options) -> None:
    try:
        from . import table_rivals as rivals
    except ImportError as error:
        sys.exit(f"benchmarks tables: {error}: pip install scikit-learn statsmodels vega_datasets")
    if strange := set(options.only) - set(TABLES):
        sys.exit(f"benchmarks tables: no table {', '.join(sorted(strange))}; one of {', '.join(TABLES)}")
    columns = ["table", "rows", "measure", "linear", "boosting", "ours", "seconds", "round trip"]
    shown = Table("Tables of one's own, with the defaults", columns, options, absolute=["seconds"], widths=(24, 9))
    means: list[list[float]] = []
    sizes: list[int] = []
    for name in options.only or TABLES:
        try:
            whole = TABLES[name]()
        except NeedsPackageError as error:
            sys.exit(f"benchmarks tables: {error}")
        for table, label in ((whole, name), (messy(whole), f"{name}, messy")):
            parts = folds(table, options.rounds)
            truth = np.concatenate([rivals.target(test) for _, test in parts])
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # what scikit-learn says of rare classes and constant columns
                theirs = [
                    np.concatenate([rival(*pair) for pair in parts]) for rival in (rivals.linear, rivals.boosting)
                ]
            start = time.perf_counter()
            found = [ours(*pair) for pair in parts]
            seconds = (time.perf_counter() - start) / len(parts)
            mine = np.concatenate([predictions for predictions, _ in found])
            scores = [score(truth, predictions, table.classes) for predictions in (*theirs, mine)]
            wrong = sorted({problem for _, problems in found for problem in problems})
            means.append(scores)
            sizes.append(len(table))
            shown.row(
                label,
                f"{len(table)}",
                "accuracy" if table.classes else "R²",
                *(f"{100 * value:.1f}" for value in scores),
                f"{seconds:.1f}",
                ", ".join(wrong) or "ok",
            )
    for label, kept in (
        ("mean", means),
        ("mean of larger ones", [m for m, n in zip(means, sizes, strict=True) if n > FEW]),
    ):
        if kept:
            shown.row(label, "", "", *(f"{100 * value:.1f}" for value in np.mean(kept, axis=0)), "", "")


def folds(table: PublicTable, rounds: int) -> list[tuple[PublicTable, PublicTable]]:
    """Pairs of rows to learn from and rows to be asked about, both in no order; classes have their shares in each."""
    rng = np.random.default_rng(0)
    order = rng.permutation(len(table))
    if table.classes:
        order = order[np.argsort([str(table.columns[table.target][i]) for i in order], kind="stable")]
    fold = np.empty(len(table), int)
    fold[order] = np.arange(len(table)) % FOLDS
    mixed = rng.permutation(len(table))
    return [
        (table.select(mixed[fold[mixed] != k]), table.select(mixed[fold[mixed] == k]))
        for k in range(min(rounds, FOLDS))
    ]


def score(truth: np.ndarray, found: np.ndarray, classes: bool) -> float:
    """The accuracy, or R²."""
    if classes:
        return float(np.mean(truth == found))
    return 1 - float(np.sum((truth - found) ** 2) / np.sum((truth - truth.mean()) ** 2))


def ours(train: PublicTable, test: PublicTable) -> tuple[np.ndarray, list[str]]:
    """The predictions of a run with the defaults, through files; and which ways of asking gave others."""
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        path, where = write(train, os.path.join(folder, "train.csv")), os.path.join(folder, "run")
        settings = recipes.Settings.of(data=path, changes=[f"data.target={train.target!r}"])
        recipes.run(settings, where, progress=False, png=False)
        run = wl.runs.open(where)
        asked = without_target(test)
        found = run.predict(write(asked, os.path.join(folder, "test.csv")))
        wrong = differing(run, asked, found, folder)
    return np.array(found.predictions, str if test.classes else float), wrong


def differing(run: recipes.Run, asked: PublicTable, found: Predictions, folder: str) -> list[str]:
    """The ways of asking for the same rows that give other predictions than the whole file."""
    wrong = []
    expected = numbers_of(found)

    def answers(table: PublicTable) -> np.ndarray:
        return numbers_of(run.predict(write(table, os.path.join(folder, "asked.csv"))))

    def same(a: np.ndarray, b: np.ndarray) -> bool:
        return a.shape == b.shape and bool(np.allclose(a, b, rtol=1e-3, atol=1e-4 * (1 + np.abs(b).max())))

    if not same(answers(shuffled_columns(asked, seed=1)), expected):
        wrong.append("columns")
    for i in range(min(ALONE, len(asked))):
        if not same(answers(asked.select(np.array([i]))), expected[i : i + 1]):
            wrong.append("alone")
    odd = with_strange_row(asked, run)
    strange = answers(odd)
    if not same(strange[1:], expected[1:]):  # what is odd about one row is none of the others' business
        wrong.append("unseen")
    if not same(answers(odd.select(np.array([0]))), strange[:1]) or not np.isfinite(strange).all():
        wrong.append("unseen alone")
    return wrong


def with_strange_row(table: PublicTable, run: recipes.Run) -> PublicTable:
    """The table with a first row whose categories were never seen, and with every other column of numbers missing."""
    assert run.schema is not None
    columns = {}
    for i, (name, values) in enumerate(table.columns.items()):
        kind = run.schema[name].kind
        gap = kind in ("number", "count") and i % 2
        first: Value = "never seen" if kind == "category" else None if gap else values[0]
        columns[name] = [first, *values[1:]]
    return PublicTable(table.name, columns, table.target, table.classes)


def numbers_of(found: Predictions) -> np.ndarray:
    """Probabilities of the classes (n, m), or numbers (n, 1)."""
    if found.probabilities is None:
        return np.array(found.predictions, float).reshape(len(found), -1)
    return np.stack([*found.probabilities.values()], axis=-1)


def without_target(table: PublicTable) -> PublicTable:
    """The table as it is when somebody wants to know the target."""
    kept = {name: values for name, values in table.columns.items() if name != table.target}
    return PublicTable(table.name, kept, table.target, table.classes)


def write(table: PublicTable, path: str) -> str:
    """Write a CSV file; missing values are empty."""
    with open(path, "w", newline="", encoding="utf-8") as file:
        lines = csv.writer(file)
        lines.writerow(table.columns)
        lines.writerows(zip(*([_text(v) for v in values] for values in table.columns.values()), strict=True))
    return path


def _text(value: Value) -> str:
    return "" if value is None else repr(value) if isinstance(value, float) else str(value)
