"""Which examples come when: orders of single examples, and batches of them.

A sampler gives the order of an epoch, a batch sampler its batches; both are asked with the generator of the epoch, so
an order is a function of the seed and the epoch alone. A loader also takes any iterable of indices (or lists of
indices).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Sized
from typing import Any

import numpy as np

from ..core.arguments import as_int
from ..core.errors import InputError, ShapeError
from ..core.typing import ArrayLike
from .generators import generator

Indices = np.ndarray[Any, np.dtype[np.int64]]


def _count(name: str, source: int | Sized) -> int:
    """The number of examples of a dataset, or the number itself."""
    return len(source) if hasattr(source, "__len__") else as_int(name, "the number of examples", source, least=0)


class Sampler:
    """The base of samplers: `order(rng)` is the order of an epoch, `len` how many indices it has.

    >>> class EveryOther(Sampler):
    ...     def __init__(self, n):
    ...         self.n = n
    ...     def order(self, rng):
    ...         return np.arange(0, self.n, 2)
    ...     def __len__(self):
    ...         return (self.n + 1) // 2
    >>> list(EveryOther(5))
    [0, 2, 4]
    """

    def order(self, rng: np.random.Generator) -> Indices:
        """The indices of one epoch."""
        raise NotImplementedError(f"{type(self).__name__}: def order(self, rng)")

    def __len__(self) -> int:
        raise NotImplementedError(f"{type(self).__name__}: def __len__(self)")

    def __iter__(self) -> Iterator[int]:
        return iter(self.order(generator(0)).tolist())


class SequentialSampler(Sampler):
    """0, 1, ..., n - 1 in every epoch.

    >>> list(SequentialSampler(3))
    [0, 1, 2]
    """

    def __init__(self, data_source: int | Sized) -> None:
        self.count = _count("SequentialSampler", data_source)

    def order(self, rng: np.random.Generator) -> Indices:
        return np.arange(self.count)

    def __len__(self) -> int:
        return self.count


class RandomSampler(Sampler):
    """A new random order every epoch; with `replacement`, independent uniform draws, as the theory of SGD assumes.

    >>> sorted(RandomSampler(4))
    [0, 1, 2, 3]
    >>> len(RandomSampler(4, replacement=True, num_samples=10))
    10

    With replacement the mini-batch gradient has variance sigma^2 / r; without, (n - r) / (n - 1) times that.
    Book, section 5.3.
    """

    def __init__(self, data_source: int | Sized, replacement: bool = False, num_samples: int | None = None) -> None:
        self.count = _count("RandomSampler", data_source)
        self.replacement = replacement
        self.num_samples = (
            self.count if num_samples is None else as_int("RandomSampler", "num_samples", num_samples, least=1)
        )
        if not self.count and self.num_samples:
            raise InputError("RandomSampler: there is nothing to draw from.", "one example or more")

    def order(self, rng: np.random.Generator) -> Indices:
        if self.replacement:
            return rng.integers(self.count, size=self.num_samples)
        if self.num_samples <= self.count:
            return rng.permutation(self.count)[: self.num_samples]
        rounds = -(-self.num_samples // self.count)  # several passes, each of them a permutation
        return np.concatenate([rng.permutation(self.count) for _ in range(rounds)])[: self.num_samples]

    def __len__(self) -> int:
        return self.num_samples


class ShuffleSampler(RandomSampler):
    """Every index once per epoch, in a new random order: the sampler of `shuffle=True`. Book, section 5.3.

    >>> sorted(ShuffleSampler(3))
    [0, 1, 2]
    """

    def __init__(self, data_source: int | Sized) -> None:
        super().__init__(data_source)


class WeightedRandomSampler(Sampler):
    r"""Draws index i with probability \(w_i / \sum_j w_j\), as for classes that are rare.

    >>> set(WeightedRandomSampler([0.0, 1.0, 3.0], num_samples=100))
    {1, 2}
    """

    def __init__(self, weights: ArrayLike, num_samples: int | None = None, replacement: bool = True) -> None:
        found = np.asarray(weights, np.float64)
        if found.ndim != 1 or not len(found):
            raise ShapeError(f"WeightedRandomSampler: the weights have shape {found.shape}.", "one weight per example")
        if not np.isfinite(found).all() or (found < 0).any() or not found.sum() > 0:
            raise InputError(
                "WeightedRandomSampler: the weights are not finite, negative or all zero.",
                "finite weights >= 0, one of them positive",
            )
        self.probabilities = found / found.sum()
        self.num_samples = (
            len(found) if num_samples is None else as_int("WeightedRandomSampler", "num_samples", num_samples, least=1)
        )
        self.replacement = replacement
        if not replacement and self.num_samples > (available := int((found > 0).sum())):
            raise InputError(
                f"WeightedRandomSampler: {self.num_samples} draws without replacement from {available} indices "
                "with a positive weight.",
                "replacement=True, or fewer draws",
            )

    @classmethod
    def balanced(cls, labels: ArrayLike, num_samples: int | None = None) -> WeightedRandomSampler:
        """Weights that make all classes equally likely.

        >>> WeightedRandomSampler.balanced([0, 0, 0, 1]).probabilities.tolist()
        [0.167, 0.167, 0.167, 0.5]
        """
        _, inverse, counts = np.unique(np.asarray(labels), return_inverse=True, return_counts=True)
        return cls(1.0 / counts[inverse], num_samples)

    def order(self, rng: np.random.Generator) -> Indices:
        return rng.choice(
            len(self.probabilities), self.num_samples, replace=self.replacement, p=self.probabilities
        ).astype(np.int64)

    def __len__(self) -> int:
        return self.num_samples


class SubsetRandomSampler(Sampler):
    """Some indices in a new random order every epoch.

    >>> sorted(SubsetRandomSampler([5, 2, 9]))
    [2, 5, 9]
    """

    def __init__(self, indices: ArrayLike) -> None:
        self.indices = np.asarray(indices, np.int64)

    def order(self, rng: np.random.Generator) -> Indices:
        return rng.permutation(self.indices)

    def __len__(self) -> int:
        return len(self.indices)


# --- batches


class BatchSampler:
    """Consecutive chunks of a sampler's order; the base of batch samplers, which define `batches(rng)` and `len`.

    >>> [batch.tolist() for batch in BatchSampler(SequentialSampler(5), 2)]
    [[0, 1], [2, 3], [4]]
    """

    def __init__(self, sampler: Sampler | Sequence[int], batch_size: int, drop_last: bool = False) -> None:
        self.sampler = sampler
        self.batch_size = as_int(type(self).__name__, "batch_size", batch_size, least=1)
        self.drop_last = drop_last

    def batches(self, rng: np.random.Generator) -> list[Indices]:
        """The batches of one epoch, as arrays of indices."""
        order = self.sampler.order(rng) if isinstance(self.sampler, Sampler) else np.fromiter(self.sampler, np.int64)
        return self.chunks(order)

    def chunks(self, order: Indices) -> list[Indices]:
        end = len(order) - len(order) % self.batch_size if self.drop_last else len(order)
        return [order[start : start + self.batch_size] for start in range(0, end, self.batch_size)]

    def __len__(self) -> int:
        n = len(self.sampler)
        return n // self.batch_size if self.drop_last else -(-n // self.batch_size)

    def __iter__(self) -> Iterator[Indices]:
        return iter(self.batches(generator(0)))


class StratifiedBatchSampler(BatchSampler):
    """Shuffled batches in which every class has its share of the whole, up to rounding.

    Each index comes once per epoch.

    >>> labels = np.array([0] * 8 + [1] * 4)
    >>> [np.bincount(labels[batch]).tolist() for batch in StratifiedBatchSampler(labels, 3)]
    [[2, 1], [2, 1], [2, 1], [2, 1]]
    """

    def __init__(self, labels: ArrayLike, batch_size: int, drop_last: bool = False) -> None:
        found = np.asarray(labels)
        if found.ndim != 1:
            raise ShapeError(f"StratifiedBatchSampler: the labels have shape {found.shape}.", "one label per example")
        self.classes = np.unique(found, return_inverse=True)[1]
        super().__init__(range(len(found)), batch_size, drop_last)

    def batches(self, rng: np.random.Generator) -> list[Indices]:
        # The k-th of the c examples of a class stands at the fraction (k + 1/2) / c of the epoch, so each stretch has
        # its share.
        place = np.empty(len(self.classes))
        for label in range(self.classes.max(initial=-1) + 1):
            members = rng.permutation(np.flatnonzero(self.classes == label))
            place[members] = (np.arange(len(members)) + 0.5) / len(members)
        order = np.lexsort((rng.random(len(place)), place))  # classes that tie do so in random order
        chunks = self.chunks(order)
        return [rng.permutation(chunk) for chunk in chunks]


class BucketBatchSampler(BatchSampler):
    """Batches of examples of similar length, so that little is padded; which ones come together is random.

    The epoch's random order is cut into pools of `pool` batches, each pool is sorted by length and cut into batches,
    and the batches are shuffled. Each index comes once per epoch.

    >>> lengths = np.array([1, 9, 2, 8, 1, 9, 2, 8])
    >>> sorted(sorted(lengths[b].tolist()) for b in BucketBatchSampler(lengths, 2))
    [[1, 1], [2, 2], [8, 8], [9, 9]]
    """

    def __init__(
        self, lengths: ArrayLike, batch_size: int, drop_last: bool = False, *, pool: int = 100, shuffle: bool = True
    ) -> None:
        self.lengths = np.asarray(lengths)
        if self.lengths.ndim != 1:
            raise ShapeError(
                f"BucketBatchSampler: the lengths have shape {self.lengths.shape}.", "one length per example"
            )
        super().__init__(range(len(self.lengths)), batch_size, drop_last)
        self.pool = as_int("BucketBatchSampler", "pool", pool, least=1)
        self.shuffle = shuffle

    def batches(self, rng: np.random.Generator) -> list[Indices]:
        n, size = len(self.lengths), self.pool * self.batch_size
        order = rng.permutation(n) if self.shuffle else np.arange(n)
        pools = [order[start : start + size] for start in range(0, n, size)]
        chunks = self.chunks(np.concatenate([p[np.argsort(self.lengths[p], kind="stable")] for p in pools or [order]]))
        return [chunks[i] for i in rng.permutation(len(chunks))] if self.shuffle else chunks
