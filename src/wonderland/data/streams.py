"""Streams: datasets that are read from front to end, such as files larger than memory or records that arrive.

A stream holds one example at a time (and its shuffle buffer); its order is a function of the seed and the epoch.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Generic, TypeVar

import numpy as np

from ..core.arguments import as_function, as_int, as_list
from ..core.errors import InputError
from .dataset import Example, Result, is_random, transformed
from .generators import EXAMPLE, ORDER, STREAM, generator

Shard = TypeVar("Shard")


class IterableDataset(Generic[Example]):
    """The base of streams. A subclass defines `__iter__`, which starts a new pass over the examples.

    >>> class Count(IterableDataset):
    ...     def __iter__(self):
    ...         return iter(range(1_000_000_000))
    >>> list(Count().map(lambda x: x * x).filter(lambda x: x % 2 == 0).take(3))
    [0, 4, 16]

    One whose order depends on the epoch defines `examples(seed, epoch)` instead. Book, exercises of chapter 5.
    """

    def examples(self, seed: int = 0, epoch: int = 0) -> Iterator[Example]:
        """The examples of an epoch, in its order."""
        if type(self).__iter__ is IterableDataset.__iter__:
            raise NotImplementedError(f"{type(self).__name__}: def __iter__(self)")
        return iter(self)

    def __iter__(self) -> Iterator[Example]:
        return self.examples()

    def map(self, f: Callable[..., Result]) -> IterableDataset[Result]:
        """The stream of f(example); `f(example, rng)` if f declares `random = True`."""
        return _MappedStream(self, as_function("map", f))

    def filter(self, f: Callable[[Example], bool]) -> IterableDataset[Example]:
        """The examples for which f(example) is true."""
        keep = as_function("filter", f)
        return _DerivedStream(self, lambda examples: (example for example in examples if keep(example)))

    def take(self, n: int) -> IterableDataset[Example]:
        """The first n examples."""
        count = as_int("take", "n", n, least=0)
        return _DerivedStream(self, lambda examples: itertools.islice(examples, count))

    def skip(self, n: int) -> IterableDataset[Example]:
        """All but the first n examples."""
        count = as_int("skip", "n", n, least=0)
        return _DerivedStream(self, lambda examples: itertools.islice(examples, count, None))

    def shuffle(self, buffer_size: int = 1000) -> IterableDataset[Example]:
        """Random order within a buffer: each example that leaves is drawn from the `buffer_size` that wait."""
        return _ShuffledStream(self, as_int("shuffle", "buffer_size", buffer_size, least=1))

    def cache(self) -> IterableDataset[Example]:
        """This stream with its examples kept in memory after the first whole pass."""
        return _CachedStream(self)


class GeneratorDataset(IterableDataset[Example]):
    """The stream of what a function gives, which is called anew for every pass.

    >>> list(GeneratorDataset(lambda: (i * i for i in range(3))))
    [0, 1, 4]
    """

    def __init__(self, make: Callable[[], Iterable[Example]]) -> None:
        self.make = as_function("GeneratorDataset", make)

    def __iter__(self) -> Iterator[Example]:
        return iter(self.make())


class ShardedDataset(IterableDataset[Example]):
    """The examples of many shards, one shard after the other; at most one is open.

    `read(shard)` gives the examples of a shard, such as the rows of a file. With `shuffle`, every epoch reads the
    shards in another order; examples within a shard are mixed by `shuffle(buffer_size)` or by the loader.

    >>> list(ShardedDataset([3, 2], read=range))
    [0, 1, 2, 0, 1]
    """

    def __init__(
        self, shards: Sequence[Shard], read: Callable[[Shard], Iterable[Example]], shuffle: bool = False
    ) -> None:
        self.shards = as_list("ShardedDataset", "shards", shards)
        if not self.shards:
            raise InputError("ShardedDataset: there are no shards.", "a list of paths")
        self.read = as_function("ShardedDataset", read)
        self.shuffled = shuffle

    def examples(self, seed: int = 0, epoch: int = 0) -> Iterator[Example]:
        n = len(self.shards)
        order = generator(seed, epoch, purpose=ORDER).permutation(n) if self.shuffled else range(n)
        for place in order:
            yield from self.read(self.shards[place])


class _DerivedStream(IterableDataset[Example]):
    def __init__(
        self, source: IterableDataset[Example], derive: Callable[[Iterator[Example]], Iterator[Example]]
    ) -> None:
        self.source, self.derive = source, derive

    def examples(self, seed: int = 0, epoch: int = 0) -> Iterator[Example]:
        return self.derive(self.source.examples(seed, epoch))


class _MappedStream(IterableDataset[Result]):
    def __init__(self, source: IterableDataset[Example], f: Callable[..., Result]) -> None:
        self.source, self.f = source, f

    def examples(self, seed: int = 0, epoch: int = 0) -> Iterator[Result]:
        if not is_random(self.f):
            yield from map(self.f, self.source.examples(seed, epoch))
            return
        for index, example in enumerate(self.source.examples(seed, epoch)):
            yield transformed(self.f, example, generator(seed, epoch, index, EXAMPLE))


class _ShuffledStream(IterableDataset[Example]):
    def __init__(self, source: IterableDataset[Example], buffer_size: int) -> None:
        self.source, self.buffer_size = source, buffer_size

    def examples(self, seed: int = 0, epoch: int = 0) -> Iterator[Example]:
        return shuffled(self.source.examples(seed, epoch), self.buffer_size, generator(seed, epoch, purpose=STREAM))


def shuffled(examples: Iterator[Example], buffer_size: int, rng: np.random.Generator) -> Iterator[Example]:
    """The examples in random order, as far as a buffer of some size allows."""
    waiting = list(itertools.islice(examples, buffer_size))
    for example in examples:
        place = int(rng.integers(len(waiting)))
        out, waiting[place] = waiting[place], example
        yield out
    for place in rng.permutation(len(waiting)):
        yield waiting[place]


class _CachedStream(IterableDataset[Example]):
    def __init__(self, source: IterableDataset[Example]) -> None:
        self.source = source
        self.kept: list[Example] | None = None

    def examples(self, seed: int = 0, epoch: int = 0) -> Iterator[Example]:
        if self.kept is not None:
            yield from self.kept
            return
        kept = []
        for example in self.source.examples(seed, epoch):
            kept.append(example)
            yield example
        self.kept = kept
