"""What is wrong with a dataset: missing values, duplicates, imbalance, labels out of range, leaks of the test set.

`data_report` looks for all of it and prints readably; `leakage`, `duplicates`, `class_balance` and `check_labels` are
its parts. Book, sections 3.1 and 3.2.1.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field

import numpy as np

from ..core.arguments import as_int
from ..core.errors import InputError, ShapeError
from ..core.tensor import Tensor
from ..core.typing import Array, ArrayLike


def _rows(name: str, x: ArrayLike) -> Array:
    data = np.asarray(x)
    if data.ndim == 0:
        raise ShapeError(f"{name}: a number has no rows.", "one row per example")
    return data.reshape(len(data), math.prod(data.shape[1:]))


def row_hashes(x: ArrayLike) -> list[bytes]:
    """A 128-bit hash of each row: equal rows have equal hashes, so sets of rows can be compared without keeping them.

    The type of the numbers does not matter (1 and 1.0 are equal, as are 0.0 and -0.0, and NaN with NaN).

    >>> row_hashes([[1, 2], [3, 4]])[0] == row_hashes([[1.0, 2.0]])[0]
    True
    """
    return [hashlib.blake2b(row.tobytes(), digest_size=16).digest() for row in _canonical("row_hashes", x)]


def _canonical(name: str, x: ArrayLike) -> Array:
    """Rows of bytes that are equal exactly if the rows are."""
    rows = _rows(name, x)
    if rows.dtype.kind in "biuf":
        rows = rows.astype(np.float64) + 0.0  # -0.0 becomes 0.0
        rows[np.isnan(rows)] = np.nan
    elif rows.dtype.kind == "O":
        rows = rows.astype(str)
    return np.ascontiguousarray(rows)


def duplicates(x: ArrayLike) -> list[list[int]]:
    """The groups of indices of equal rows, each of two or more.

    >>> duplicates([[1, 2], [3, 4], [1, 2]])
    [[0, 2]]
    """
    seen: dict[bytes, list[int]] = {}
    for index, row in enumerate(_canonical("duplicates", x)):
        seen.setdefault(row.tobytes(), []).append(index)
    return [group for group in seen.values() if len(group) > 1]


def leakage(
    train: ArrayLike, test: ArrayLike, *, method: str = "exact", decimals: int | None = None
) -> list[tuple[int, int]]:
    """Rows of the test data that are also in the training data: pairs (index in train, index in test).

    `method="hash"` compares hashes of the rows, which may be kept in their place: `train` and `test` may be lists of
    `row_hashes`. `decimals` rounds first, to find near copies. Text is compared as text.

    >>> leakage([[1.0, 2.0], [3.0, 4.0]], [[5.0, 6.0], [1.0, 2.0]])
    [(0, 1)]
    """
    if method not in ("exact", "hash"):
        raise InputError(f"leakage: method={method!r} is not known.", '"exact" or "hash"')
    keys = []
    for data in (train, test):
        if method == "hash" and isinstance(data, list) and data and isinstance(data[0], bytes):
            keys.append(data)
            continue
        rounded = data if decimals is None else np.round(np.asarray(data, np.float64), decimals)
        keys.append(row_hashes(rounded) if method == "hash" else [r.tobytes() for r in _canonical("leakage", rounded)])
    if method == "exact" and keys[0] and keys[1] and len(keys[0][0]) != len(keys[1][0]) and decimals is None:
        a, b = _rows("leakage", train), _rows("leakage", test)
        if a.dtype.kind in "biuf" and b.dtype.kind in "biuf":
            raise ShapeError(f"leakage: rows of {a.shape[1]} and {b.shape[1]} numbers.", "the same columns")
        width = np.result_type(a.astype(str), b.astype(str))
        keys = [[row.tobytes() for row in part.astype(width)] for part in (a, b)]
    first: dict[bytes, int] = {}
    for index, key in enumerate(keys[0]):
        first.setdefault(key, index)
    return [(first[key], index) for index, key in enumerate(keys[1]) if key in first]


def class_balance(labels: ArrayLike | Sequence[Hashable]) -> dict[Hashable, int]:
    """How many examples each class (or group) has, the most frequent first.

    >>> class_balance(["cat", "dog", "cat"])
    {'cat': 2, 'dog': 1}
    """
    found = np.asarray(labels)
    if found.ndim != 1:
        raise ShapeError(f"class_balance: the labels have shape {found.shape}.", "one label per example")
    classes, counts = np.unique(found, return_counts=True)
    order = np.argsort(-counts, kind="stable")
    return {classes[k].item() if hasattr(classes[k], "item") else classes[k]: int(counts[k]) for k in order}


def check_labels(labels: ArrayLike, num_classes: int) -> None:
    """Refuse labels that are no integers from 0 to num_classes - 1, or of which there is none.

    >>> check_labels([0, 2, 1], 3)
    """
    found = np.asarray(labels)
    count = as_int("check_labels", "num_classes", num_classes, least=1)
    if not found.size:
        raise InputError("check_labels: there are no labels.", "one example or more")
    whole = found.dtype.kind in "biu" or (found.dtype.kind == "f" and bool((found == np.floor(found)).all()))
    if not whole:
        raise InputError(f"check_labels: labels of type {found.dtype} are no class numbers.", "integers from 0")
    bad = np.flatnonzero((found < 0) | (found >= count))
    if len(bad):
        raise InputError(
            f"check_labels: {len(bad)} labels are not among the {count} classes, first {found.flat[bad[0]]} "
            f"at example {bad[0]}.",
            f"labels from 0 to {count - 1}",
        )


@dataclass
class DataReport:
    """What `data_report` found. `problems` says what is wrong in words; `ok` is True if there is nothing."""

    examples: int
    features: int
    missing: dict[str, int] = field(default_factory=dict)  # NaN by column
    infinite: dict[str, int] = field(default_factory=dict)
    constant: list[str] = field(default_factory=list)
    duplicates: list[list[int]] = field(default_factory=list)
    classes: dict[Hashable, int] = field(default_factory=dict)
    groups: dict[Hashable, int] = field(default_factory=dict)
    leaks: list[tuple[int, int]] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong."""
        return not self.problems

    @property
    def imbalance(self) -> float:
        """The largest class over the smallest; 1 without classes."""
        return max(self.classes.values()) / min(self.classes.values()) if self.classes else 1.0

    def check(self) -> None:
        """Raise if something is wrong."""
        if self.problems:
            raise InputError(f"data_report: {'; '.join(self.problems)}.", "clean the data, or look at the report")

    def __str__(self) -> str:
        lines = [f"{self.examples} examples, {self.features} features"]
        for title, counts in (("classes", self.classes), ("groups", self.groups)):
            if counts:
                lines.append(f"{title}: {len(counts)}")
                width = max(len(str(name)) for name in list(counts)[:12])
                for name, count in list(counts.items())[:12]:
                    share = count / self.examples
                    lines.append(f"  {name!s:<{width}} {count:>8} {share:6.1%} {'#' * round(30 * share)}")
                if len(counts) > 12:
                    lines.append(f"  and {len(counts) - 12} more")
        lines.append("problems:" if self.problems else "no problems found")
        lines.extend(f"  - {problem}" for problem in self.problems)
        return "\n".join(lines)


def data_report(
    x: ArrayLike,
    y: ArrayLike | None = None,
    *,
    test: ArrayLike | None = None,
    groups: Array | Tensor | Sequence[Hashable] | None = None,
    num_classes: int | None = None,
    names: Sequence[str] | None = None,
    most_imbalance: float = 10.0,
) -> DataReport:
    """Look through data for what spoils training: x (n, ...), class labels y (n,) if there are any.

    `test` are the rows of the test set, to find those that are in x, too. `groups` (n,) says to which sub-population an
    example belongs. Imbalance of classes or groups beyond `most_imbalance` is a problem.

    >>> report = data_report([[0.0], [1.0], [1.0], [float("nan")]], [0, 0, 0, 0])
    >>> print(report)
    4 examples, 1 features
    classes: 1
      0        4 100.0% ##############################
    problems:
      - 1 missing values (NaN) in feature 0
      - 1 rows are copies of others, such as example 2 of example 1
      - all examples are of class 0
    """
    data = _rows("data_report", x)
    n, d = data.shape
    known = [f"feature {k}" for k in range(d)] if names is None else list(names)
    if len(known) != d:
        raise ShapeError(f"data_report: {len(known)} names for {d} features.", "a name per feature")
    report = DataReport(n, d)
    if not n:
        report.problems.append("there are no examples")
        return report
    if data.dtype.kind == "f":
        report.missing = _counts(known, np.isnan(data))
        report.infinite = _counts(known, np.isinf(data))
    for kind, found in (("missing values (NaN)", report.missing), ("infinities", report.infinite)):
        if found:
            report.problems.append(f"{sum(found.values())} {kind} in {_some(list(found))}")
    if n > 1 and data.dtype.kind in "biuf":
        report.constant = [name for name, same in zip(known, (data == data[:1]).all(axis=0), strict=True) if same]
        if report.constant:
            report.problems.append(f"constant: {_some(report.constant)}")
    report.duplicates = duplicates(data)
    if report.duplicates:
        copies = sum(len(group) - 1 for group in report.duplicates)
        first = report.duplicates[0]
        report.problems.append(f"{copies} rows are copies of others, such as example {first[1]} of example {first[0]}")
    if y is not None:
        _look_at_labels(report, y, num_classes, most_imbalance)
    if groups is not None:
        if len(groups) != n:
            raise ShapeError(f"data_report: {len(groups)} groups for {n} examples.", "one per example")
        report.groups = class_balance(groups)
        _look_at_balance(report, "group", report.groups, most_imbalance)
    if test is not None:
        report.leaks = leakage(data, _rows("data_report", test))
        if report.leaks:
            train_row, test_row = report.leaks[0]
            report.problems.append(
                f"{len(report.leaks)} rows of the test set are in the training set, such as {test_row} (as {train_row})"
            )
    return report


def _counts(names: list[str], found: Array) -> dict[str, int]:
    return {name: int(count) for name, count in zip(names, found.sum(axis=0), strict=True) if count}


def _some(names: list[str]) -> str:
    return ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")


def _look_at_labels(report: DataReport, y: ArrayLike, num_classes: int | None, most: float) -> None:
    labels = np.asarray(y)
    if labels.ndim == 0 or len(labels) != report.examples:
        raise ShapeError(
            f"data_report: labels of shape {labels.shape} for {report.examples} examples.", "one label per example"
        )
    if labels.dtype.kind == "f" and not np.isfinite(labels).all():
        report.problems.append(f"{int((~np.isfinite(labels)).sum())} targets are NaN or infinite")
        return
    if labels.ndim != 1 or (labels.dtype.kind == "f" and num_classes is None):
        return  # targets of a regression
    if num_classes is not None:
        try:
            check_labels(labels, num_classes)
        except InputError as error:
            report.problems.append(str(error).splitlines()[0].removeprefix("check_labels: ").rstrip("."))
        absent = [k for k in range(num_classes) if not (labels == k).any()]
        if absent:
            report.problems.append(f"no examples of class {_some([str(k) for k in absent])}")
    report.classes = class_balance(labels)
    _look_at_balance(report, "class", report.classes, most)


def _look_at_balance(report: DataReport, what: str, counts: dict[Hashable, int], most: float) -> None:
    if len(counts) == 1:
        report.problems.append(f"all examples are of {what} {next(iter(counts))}")
        return
    largest, smallest = max(counts, key=counts.__getitem__), min(counts, key=counts.__getitem__)
    ratio = counts[largest] / counts[smallest]
    if ratio > most:
        report.problems.append(
            f"{what} {largest} has {counts[largest]} examples, {what} {smallest} only {counts[smallest]} "
            f"({ratio:.1f} to 1)"
        )
