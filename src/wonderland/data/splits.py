"""Splits: parts for training, validation and testing that share no example. Book, sections 3.2.1 and 9.2.2."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence, Sized
from typing import Any, TypeAlias

import numpy as np

from ..core.arguments import as_int, shown
from ..core.errors import InputError, ShapeError
from ..core.tensor import Tensor, wrap
from ..core.typing import ArrayLike
from .dataset import Dataset, Example, Examples, Subset, _sizes
from .generators import SPLIT, Seed, as_seed, generator

Indices = np.ndarray[Any, np.dtype[np.int64]]

Splittable: TypeAlias = Examples[object] | Tensor


def train_test_split(
    *data: Splittable,
    test_size: float | int | None = None,
    train_size: float | int | None = None,
    seed: Seed = 0,
    shuffle: bool = True,
    stratify: Splittable | None = None,
) -> list[Any]:
    """Arrays or datasets, each cut into a part for training and one for testing: `[x_train, x_test, y_train, ...]`.

    Sizes are fractions or numbers of examples; by default a quarter is for testing. `stratify` (labels) keeps the
    shares of the classes. Without `shuffle` the last examples are for testing.

    >>> import numpy as np
    >>> x_train, x_test, y_train, y_test = train_test_split(np.zeros((8, 2)), np.arange(8), test_size=0.25)
    >>> x_train.shape, x_test.shape, sorted([*y_train.tolist(), *y_test.tolist()])
    ((6, 2), (2, 2), [0, 1, 2, 3, 4, 5, 6, 7])
    """
    n = _common_length("train_test_split", data)
    train, test = _two_sizes("train_test_split", n, train_size, test_size)
    order = _order("train_test_split", n, [train, test], seed, shuffle, stratify)
    return [_take(one, part) for one in data for part in order]


def train_val_test_split(
    *data: Splittable,
    val_size: float = 0.1,
    test_size: float = 0.2,
    seed: Seed = 0,
    shuffle: bool = True,
    stratify: Splittable | None = None,
) -> list[Any]:
    """As `train_test_split`, in three: `[x_train, x_val, x_test, y_train, y_val, y_test]`. Book, section 9.2.2.

    >>> [len(part) for part in train_val_test_split(np.arange(10))]
    [7, 1, 2]
    """
    n = _common_length("train_val_test_split", data)
    val = _as_count("train_val_test_split", "val_size", val_size, n)
    test = _as_count("train_val_test_split", "test_size", test_size, n)
    if val + test >= n or min(val, test) < 1:
        raise InputError(
            f"train_val_test_split: {n} examples give parts of {n - val - test}, {val} and {test}.",
            "sizes that leave something in each part",
        )
    order = _order("train_val_test_split", n, [n - val - test, val, test], seed, shuffle, stratify)
    return [_take(one, part) for one in data for part in order]


def random_split(dataset: Examples[Example], lengths: Sequence[float], seed: Seed = 0) -> list[Subset]:
    """Disjoint random parts of a dataset, by their sizes or fractions.

    >>> [len(part) for part in random_split(list("abcdefgh"), [0.5, 0.5])]
    [4, 4]
    """
    n = len(dataset)
    parts = np.split(
        generator(as_seed("random_split", seed), purpose=SPLIT).permutation(n), np.cumsum(_sizes(lengths, n))[:-1]
    )
    return [Subset(dataset, part) for part in parts]


def time_split(times: ArrayLike, test_size: float | int = 0.25, *, at: object = None) -> tuple[Indices, Indices]:
    """(train, test) indices so that everything in test is later than everything in train.

    The cut is at a time `at`, or where the latest `test_size` begin; equal times stay on one side, that of the test.

    >>> time_split([2020, 2024, 2021, 2023], test_size=0.5)
    (array([0, 2]), array([1, 3]))
    """
    found = np.asarray(times)
    if found.ndim != 1 or len(found) < 2:
        raise ShapeError(f"time_split: the times have shape {found.shape}.", "one time per example, two or more")
    if (np.isnan(found) if found.dtype.kind == "f" else found != found).any():  # NaT is not itself, either
        raise InputError("time_split: a time is missing.", "a time for every example")
    if at is None:
        count = _as_count("time_split", "test_size", test_size, len(found))
        at = np.sort(found)[len(found) - max(count, 1)]
        late = found >= at if count else np.zeros(len(found), bool)
    else:
        late = found >= at
    if late.all() or not late.any():
        raise InputError(f"time_split: the cut at {at} leaves nothing on one side.", "another test_size or time")
    return np.flatnonzero(~late), np.flatnonzero(late)


# --- folds


class _Folds:
    """The base of cross-validators: every example is tested once; `split` gives (train, test) indices."""

    def __init__(self, n_splits: int = 5, *, shuffle: bool = False, seed: Seed = 0) -> None:
        self.n_splits = as_int(type(self).__name__, "n_splits", n_splits, least=2)
        self.shuffle = shuffle
        self.seed = as_seed(type(self).__name__, seed)

    def get_n_splits(self, X: object = None, y: object = None, groups: object = None) -> int:
        """The number of folds."""
        return self.n_splits

    def folds(self, n: int, y: Splittable | None, groups: Splittable | None) -> Indices:
        """The number of the fold in which each example is tested."""
        raise NotImplementedError

    def split(
        self, X: Splittable, y: Splittable | None = None, groups: Splittable | None = None
    ) -> Iterator[tuple[Indices, Indices]]:
        """(train, test) indices of each fold."""
        n = _common_length(type(self).__name__, [X] if y is None else [X, y])
        if n < self.n_splits:
            raise InputError(
                f"{type(self).__name__}: {n} examples are too few for {self.n_splits} folds.", f"n_splits up to {n}"
            )
        fold = self.folds(n, y, groups)
        for k in range(self.n_splits):
            yield np.flatnonzero(fold != k), np.flatnonzero(fold == k)

    def _places(self, n: int) -> Indices:
        """The order in which examples are dealt out."""
        return generator(self.seed, purpose=SPLIT).permutation(n) if self.shuffle else np.arange(n)


class KFold(_Folds):
    """k folds of equal size (up to one example); without `shuffle`, of neighbours.

    >>> [test.tolist() for train, test in KFold(3).split(np.zeros(7))]
    [[0, 1, 2], [3, 4], [5, 6]]
    """

    def folds(self, n: int, y: Splittable | None, groups: Splittable | None) -> Indices:
        fold = np.empty(n, np.int64)
        for k, part in enumerate(np.array_split(self._places(n), self.n_splits)):
            fold[part] = k
        return fold


class StratifiedKFold(_Folds):
    """k folds in which every class has its share, up to one example.

    >>> y = np.array([0, 0, 0, 0, 1, 1])
    >>> [np.bincount(y[test]).tolist() for train, test in StratifiedKFold(2).split(y, y)]
    [[2, 1], [2, 1]]
    """

    def folds(self, n: int, y: Splittable | None, groups: Splittable | None) -> Indices:
        classes = _classes("StratifiedKFold", y, n)
        smallest = np.bincount(classes).min()
        if smallest < self.n_splits:
            raise InputError(
                f"StratifiedKFold: a class has {smallest} examples, fewer than {self.n_splits} folds.",
                f"n_splits up to {smallest}, or KFold",
            )
        fold = np.empty(n, np.int64)
        places = self._places(n)
        # Dealing out class by class, without starting again at the first fold, keeps the folds of equal size as well.
        grouped = places[np.argsort(classes[places], kind="stable")]
        fold[grouped] = np.arange(n) % self.n_splits
        return fold


class GroupKFold(_Folds):
    """k folds in which no group (a patient, a speaker, a document) is both trained on and tested.

    >>> groups = np.array(["a", "a", "b", "c", "c", "b"])
    >>> [sorted(set(groups[test].tolist())) for train, test in GroupKFold(3).split(groups, groups=groups)]
    [['a'], ['b'], ['c']]
    """

    def folds(self, n: int, y: Splittable | None, groups: Splittable | None) -> Indices:
        if groups is None:
            raise InputError("GroupKFold: there are no groups.", "split(X, groups=...)")
        members = _classes("GroupKFold", groups, n)
        counts = np.bincount(members)
        if len(counts) < self.n_splits:
            raise InputError(
                f"GroupKFold: {len(counts)} groups are too few for {self.n_splits} folds.",
                f"n_splits up to {len(counts)}",
            )
        places = self._places(len(counts))
        home, sizes = np.empty(len(counts), np.int64), np.zeros(self.n_splits)
        for group in places[np.argsort(-counts[places], kind="stable")]:  # the largest first, each to the smallest fold
            home[group] = np.argmin(sizes)
            sizes[home[group]] += counts[group]
        return home[members]


class LeaveOneOut:
    """n folds of one example.

    >>> [(train.tolist(), test.tolist()) for train, test in LeaveOneOut().split([7, 8])]
    [([1], [0]), ([0], [1])]
    """

    def get_n_splits(self, X: Sized, y: object = None, groups: object = None) -> int:
        """The number of examples."""
        return len(X)

    def split(self, X: Sized, y: object = None, groups: object = None) -> Iterator[tuple[Indices, Indices]]:
        """(train, test) indices of each fold."""
        n = len(X)
        if n < 2:
            raise InputError(f"LeaveOneOut: {n} examples leave nothing to train on.", "two or more")
        for k in range(n):
            yield np.delete(np.arange(n), k), np.array([k])


class TimeSeriesSplit:
    """Folds for data in the order of time: test on a stretch, train on what is before it, less a `gap`.

    >>> [(train.tolist(), test.tolist()) for train, test in TimeSeriesSplit(2).split(range(6))]
    [([0, 1], [2, 3]), ([0, 1, 2, 3], [4, 5])]
    """

    def __init__(
        self, n_splits: int = 5, *, gap: int = 0, test_size: int | None = None, max_train_size: int | None = None
    ) -> None:
        self.n_splits = as_int("TimeSeriesSplit", "n_splits", n_splits, least=1)
        self.gap = as_int("TimeSeriesSplit", "gap", gap, least=0)
        self.test_size, self.max_train_size = test_size, max_train_size

    def get_n_splits(self, X: object = None, y: object = None, groups: object = None) -> int:
        """The number of folds."""
        return self.n_splits

    def split(self, X: Sized, y: object = None, groups: object = None) -> Iterator[tuple[Indices, Indices]]:
        """(train, test) indices of each fold, earliest first."""
        n = len(X)
        size = self.test_size or n // (self.n_splits + 1)
        first = n - self.n_splits * size
        if size < 1 or first - self.gap < 1:
            raise InputError(
                f"TimeSeriesSplit: {n} examples are too few for {self.n_splits} tests of {size}, gap {self.gap}.",
                "fewer splits, or a smaller test_size or gap",
            )
        for start in range(first, n, size):
            end = start - self.gap
            begin = 0 if self.max_train_size is None else max(0, end - self.max_train_size)
            yield np.arange(begin, end), np.arange(start, start + size)


# --- the pieces


def _common_length(name: str, data: Sequence[Splittable]) -> int:
    if not data:
        raise InputError(f"{name}: there is nothing to split.", "arrays or datasets")
    for one in data:
        if not isinstance(one, Tensor) and not isinstance(one, Examples):
            raise InputError(f"{name}: a {type(one).__name__} has no examples to split.", "arrays or datasets")
    lengths = [one.shape[0] if hasattr(one, "shape") else len(one) for one in data]
    if len(set(lengths)) > 1:
        raise ShapeError(f"{name}: the lengths {lengths} differ.", "one row per example, in the same order")
    return lengths[0]


def _classes(name: str, labels: Splittable | None, n: int) -> Indices:
    if labels is None:
        raise InputError(f"{name}: there are no labels.", "split(X, y)")
    found = np.asarray(labels)
    if found.shape != (n,):
        raise ShapeError(f"{name}: the labels have shape {found.shape} for {n} examples.", "one label per example")
    return np.unique(found, return_inverse=True)[1]


def _as_count(name: str, what: str, size: float, n: int) -> int:
    if isinstance(size, (int, np.integer)) and not isinstance(size, bool):
        if not 0 <= size <= n:
            raise InputError(f"{name}: {what}={size} with {n} examples.", f"a number from 0 to {n}")
        return int(size)
    if not 0 <= size <= 1:
        raise InputError(f"{name}: {what}={shown(size)} is no share.", "a fraction below 1, or a number of examples")
    return math.ceil(size * n)


def _two_sizes(name: str, n: int, train: float | None, test: float | None) -> tuple[int, int]:
    if test is None:
        test_count = math.ceil(0.25 * n) if train is None else n - _as_count(name, "train_size", train, n)
    else:
        test_count = _as_count(name, "test_size", test, n)
    train_count = n - test_count if train is None else _as_count(name, "train_size", train, n)
    if train_count + test_count > n or min(train_count, test_count) < 1:
        raise InputError(
            f"{name}: {n} examples give {train_count} for training and {test_count} for testing.",
            "sizes that leave something in each part and add up to no more than all",
        )
    return train_count, test_count


def _order(
    name: str, n: int, sizes: list[int], seed: Seed, shuffle: bool, stratify: Splittable | None
) -> list[Indices]:
    """Disjoint parts of the given sizes."""
    rng = generator(as_seed(name, seed), purpose=SPLIT)
    if stratify is None:
        order = rng.permutation(n) if shuffle else np.arange(n)
        return np.split(order[: sum(sizes)], np.cumsum(sizes)[:-1])
    if not shuffle:
        raise InputError(f"{name}: stratify needs to pick examples at random.", "shuffle=True")
    classes = _classes(name, stratify, n)
    counts = np.bincount(classes)
    if counts.min() < len(sizes) or len(counts) > min(sizes):
        raise InputError(
            f"{name}: {len(counts)} classes, the smallest with {counts.min()} examples, in parts of {sizes}.",
            f"{len(sizes)} or more examples of each class, and parts as large as the number of classes",
        )
    waiting = [rng.permutation(np.flatnonzero(classes == label)).tolist() for label in range(len(counts))]
    parts = []
    left = n
    for size in sizes:
        # Of what is left, each class gives its share; what rounding leaves goes to the largest remainders.
        exact = np.array([len(w) for w in waiting]) * (size / left)
        shares = np.floor(exact + 1e-9).astype(int)
        for label in np.argsort(shares - exact, kind="stable")[: size - shares.sum()]:
            shares[label] += 1
        part = [waiting[label].pop() for label, share in enumerate(shares) for _ in range(share)]
        parts.append(rng.permutation(np.array(part, np.int64)))
        left -= size
    return parts


def _take(data: Splittable, indices: Indices) -> Any:
    if isinstance(data, np.ndarray):
        return data[indices]
    if isinstance(data, Tensor):
        return wrap(data.numpy()[indices])
    if isinstance(data, (list, tuple)) and not isinstance(data, Dataset):
        return type(data)([data[i] for i in indices.tolist()])
    return Subset(data, indices)
