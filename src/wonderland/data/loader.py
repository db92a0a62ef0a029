"""The loader: examples of a dataset in shuffled batches of tensors, made in the background.

Everything random is a function of the seed, the epoch and the index, so the order and the augmentations are the same
whatever the number of workers, and a loader that is told its epoch and position goes on in the middle of an epoch.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from typing import Any, NamedTuple, TypeAlias, TypeVar

import numpy as np

from ..core import trees
from ..core.arguments import as_function, as_int, shown
from ..core.errors import InputError, ModuleError
from ..core.tensor import Tensor
from ..core.typing import ArrayLike
from .collation import PadCollate, as_tensors, collate
from .dataset import Dataset, Examples, TensorDataset, example_at, is_random, name_example, transformed
from .generators import BATCH, EXAMPLE, ORDER, STREAM, as_seed, generator
from .prefetching import Background, Workers, results
from .samplers import BatchSampler, Indices, RandomSampler, Sampler, SequentialSampler
from .streams import IterableDataset, shuffled

Source: TypeAlias = Examples[object] | IterableDataset[object] | tuple[ArrayLike, ...]
BatchSize: TypeAlias = int | Callable[[int], int] | None

Leaf = TypeVar("Leaf")

_BLOCK_BATCHES, _BLOCK_BYTES = 64, 2**21  # of arrays in memory: batches gathered at once


class NoLengthError(InputError, TypeError):
    """A stream was asked for its length; being a TypeError, `list(loader)` goes on without it."""


class Task(NamedTuple):
    """What a batch is made of: its place, and the indices of its examples, or the examples of a stream themselves."""

    epoch: int
    number: int
    indices: Indices
    examples: list[object] | None = None
    part: slice | None = None  # what of the batch is handed out, if not all of it


class DataLoader:
    """Batches of a dataset: trees of tensors with the structure of an example.

    >>> import numpy as np, wonderland as wl
    >>> dataset = wl.data.TensorDataset(np.zeros((1000, 3)), np.zeros((1000, 1)))
    >>> loader = wl.data.DataLoader(dataset, batch_size=32, shuffle=True)
    >>> len(loader), [(xb.shape, yb.shape) for xb, yb in loader][-1]
    (32, ((8, 3), (8, 1)))

    - `batch_size` may be a function of the step (batches handed out so far); None gives single examples.
    - `shuffle` reshuffles every epoch. `sampler` (indices) or `batch_sampler` (lists of indices) decide instead.
    - `transform` is applied to the input of each example, the first part of a tuple, or the whole example if it is
      none; `batch_transform` to whole batches. Those that declare `random = True` are called with a NumPy generator,
      too.
    - `collate_fn(examples)` makes the batch; `pad_value` pads sequences, see `PadCollate`.
    - `prefetch` batches are made ahead by a thread (0: none), or that many for each of `num_workers` processes.
    - `state_dict()` is the epoch and the number of batches handed out; a loader that loads it goes on exactly there.
    - A stream (`IterableDataset`) is shuffled within a buffer of `shuffle_buffer` examples.

    Book, section 5.3 and box C.5.2.
    """

    def __init__(
        self,
        dataset: Source,
        batch_size: BatchSize = 1,
        shuffle: bool = False,
        sampler: Sampler | Iterable[int] | None = None,
        batch_sampler: BatchSampler | Iterable[ArrayLike] | None = None,
        num_workers: int = 0,
        collate_fn: Callable[[list[Any]], object] | None = None,
        drop_last: bool = False,
        *,
        seed: int | None = 0,
        generator: np.random.Generator | None = None,
        prefetch: int = 2,
        transform: Callable[..., object] | None = None,
        batch_transform: Callable[..., object] | None = None,
        pad_value: object = None,
        shuffle_buffer: int = 1000,
        multiprocessing_context: str | None = None,
    ) -> None:
        self.dataset = _as_source(dataset)
        self.batch_size = _as_batch_size(batch_size)
        self.shuffle = shuffle
        self.drop_last = drop_last
        self.num_workers = as_int("DataLoader", "num_workers", num_workers, least=0)
        self.prefetch = as_int("DataLoader", "prefetch", prefetch, least=0)
        self.shuffle_buffer = as_int("DataLoader", "shuffle_buffer", shuffle_buffer, least=1)
        self.seed = as_seed("DataLoader", seed if generator is None else generator)
        self.multiprocessing_context = multiprocessing_context
        for f in (collate_fn, transform, batch_transform):
            if f is not None:
                as_function("DataLoader", f)
        if pad_value is not None and collate_fn is not None:
            raise InputError("DataLoader: both pad_value and collate_fn make the batch.", "one of them")
        if pad_value is not None:
            collate_fn = PadCollate(pad_value)
        self.batch_transform = batch_transform
        self.recipe = Recipe(self.dataset, self.seed, collate_fn, transform, batch_transform, batch_size is None)
        self._streams = isinstance(self.dataset, IterableDataset)
        self.sampler, self.batch_sampler = self._samplers(sampler, batch_sampler)
        self._epoch = self._position = self._step = 0
        self._resuming = False
        self._current: object = None  # the iterator whose progress is ours
        self._share = (0, 1, 1)
        self._parts: dict[tuple[int, int], tuple[int, int]] = {}  # of batches that are being made, see `part`
        self.part = (0, 0)

    def _samplers(self, sampler: Any, batch_sampler: Any) -> tuple[Any, Any]:
        if self._streams:
            if sampler is not None or batch_sampler is not None:
                raise InputError("DataLoader: a stream has no indices to sample.", "shuffle=True, or no sampler")
            return None, None
        if batch_sampler is not None:
            if sampler is not None or self.shuffle or self.drop_last or self.batch_size not in (1, None):
                raise InputError(
                    "DataLoader: batch_sampler decides about batch_size, shuffle, sampler and drop_last.",
                    "the batch_sampler alone",
                )
            return None, batch_sampler
        if sampler is not None and self.shuffle:
            raise InputError("DataLoader: both shuffle and sampler decide the order.", "one of them")
        if sampler is None:
            n = len(self.dataset)
            sampler = RandomSampler(n) if self.shuffle and n else SequentialSampler(n)
        if isinstance(sampler, Iterator):
            raise InputError("DataLoader: the sampler is an iterator, which ends with its first epoch.", "a list")
        if self.drop_last and isinstance(self.batch_size, int) and hasattr(sampler, "__len__"):
            n = len(sampler)
            if n < self.batch_size:
                raise InputError(
                    f"DataLoader: batch_size={self.batch_size} is larger than the data ({n} examples), and drop_last "
                    "leaves none.",
                    f"a batch size up to {n}, or drop_last=False",
                )
        return sampler, None

    # --- what it is

    @property
    def epoch(self) -> int:
        """The epoch under way, or the next one."""
        return self._epoch

    @property
    def position(self) -> int:
        """How many batches of the epoch have been handed out."""
        return self._position

    def set_epoch(self, epoch: int) -> None:
        """Let the next pass be that of an epoch, from its beginning."""
        self._epoch, self._position = as_int("set_epoch", "epoch", epoch, least=0), 0
        self._resuming, self._current = False, None

    def share(self, rank: int, size: int, parts: int = 1) -> None:
        """Hand out one of `size` parts of every batch: all of them together are the batches of a loader without parts.

        >>> import numpy as np, wonderland as wl
        >>> loader = wl.data.DataLoader(wl.data.TensorDataset(np.arange(7)), 4)
        >>> loader.share(1, 2)
        >>> [x.tolist() for (x,) in loader]
        [[2, 3], [5, 6]]

        Positions count whole batches, so a loader with other parts goes on from the same `state_dict()`. A batch with
        fewer rows than there are parts is handed out with its first row in place of none. `part` says how many rows of
        how many the batch that was handed out last has: (2, 4) and then (2, 3) here, (0, ...) in place of none. A batch
        whose rows do not divide into `parts` is handed out whole.
        """
        size = as_int("share", "size", size, least=1)
        rank = as_int("share", "rank", rank, least=0)
        if rank >= size:
            raise InputError(f"share: part {rank} of {size}.", f"0 to {size - 1}")
        if self.batch_size is None and size > 1:
            raise InputError("share: batch_size=None gives single examples, which have no parts.", "a batch size")
        self._share = (rank, size, as_int("share", "parts", parts, least=1))

    def __len__(self) -> int:
        """The number of batches of an epoch (with a batch size that changes: of this epoch)."""
        if self._streams:
            if not hasattr(self.dataset, "__len__"):
                raise NoLengthError("DataLoader: a stream has no length.", "a for loop without len()")
            n = len(self.dataset)
        elif self.batch_sampler is not None:
            return len(self.batch_sampler)
        else:
            n = len(self.sampler)
        if callable(self.batch_size):
            return len(list(self._chunks(np.arange(n), self._step - self._position)))
        size = self.batch_size or 1
        return n // size if self.drop_last else -(-n // size)

    def __repr__(self) -> str:
        size = "by step" if callable(self.batch_size) else self.batch_size
        return f"DataLoader({self.dataset!r}, batch_size={size}, epoch={self._epoch}, position={self._position})"

    # --- where it is

    def state_dict(self) -> dict[str, int]:
        """The seed, the epoch and the batches handed out in it and altogether: plain integers."""
        return {"seed": self.seed, "epoch": self._epoch, "position": self._position, "step": self._step}

    def load_state_dict(self, state: Mapping[str, object]) -> None:
        """Go on where another loader over the same data was: the next pass gives the rest of its epoch.

        >>> import numpy as np, wonderland as wl
        >>> make = lambda: wl.data.DataLoader(wl.data.TensorDataset(np.arange(6)), 2, shuffle=True)
        >>> first, second = make(), make()
        >>> batches = iter(first)
        >>> _ = next(batches)
        >>> second.load_state_dict(first.state_dict())
        >>> [x.tolist() for x, in second] == [x.tolist() for x, in batches]
        True
        """
        wanted = ("seed", "epoch", "position", "step")
        if missing := [key for key in wanted if key not in state]:
            raise ModuleError(f"DataLoader: the state has no {missing[0]!r}.", "the result of state_dict()")
        seed, *rest = (as_int("DataLoader", key, state[key]) for key in wanted)
        if min(rest) < 0:
            raise ModuleError(f"DataLoader: the state {shown(dict(state))} has a negative entry.", "state_dict()")
        self.seed = self.recipe.seed = seed
        self._epoch, self._position, self._step = rest
        self._resuming, self._current = True, None

    # --- iterating

    def __iter__(self) -> Iterator[Any]:
        if self._resuming:
            self._resuming = False
        elif self._position:  # the last pass was not finished: this one is a new epoch
            self._epoch, self._position = self._epoch + 1, 0
        # Empty data and too large batches are found here, not by the thread.
        if (
            not self._streams
            and self.batch_sampler is None
            and hasattr(self.sampler, "__len__")
            and not len(self.sampler)
        ):
            raise InputError("DataLoader: the dataset is empty.", "one example or more")
        return self._batches()

    def _batches(self) -> Iterator[object]:
        me = self._current = object()
        batches = self._made()
        try:
            for batch in batches:
                if self._current is me:
                    self.part = self._parts.pop((self._epoch, self._position), (0, 0))
                    self._position += 1
                    self._step += 1
                yield batch
        finally:
            batches.close()
        if self._current is me:
            self._epoch, self._position = self._epoch + 1, 0

    def _made(self) -> Background[object] | Generator[object]:
        """The batches of the rest of the epoch, made here, by a thread or by processes."""
        tasks = self._tasks(self._epoch, self._position, self._step)
        if self.num_workers:
            # Started here and not by the thread: of all threads this one is known to hold no lock that a fork would
            # copy.
            workers = Workers(self.recipe, self.num_workers, self.multiprocessing_context)
            made = results(workers, tasks, ahead=self.num_workers * max(self.prefetch, 1))
        elif self.recipe.whole and self.batch_transform is None and (count := self._batches_in_a_block()) > 1:
            return self._from_blocks(tasks, count)
        else:
            made = map(self.recipe, tasks)
        items = _tensors(made)
        ahead = self._ahead()
        return Background(items, ahead) if ahead else items

    def _batches_in_a_block(self) -> int:
        """How many batches of arrays in memory are gathered at once; 1 for other data.

        A batch is made faster than it is handed from one thread to another, so many are handed over together.
        """
        if type(self.dataset) is not TensorDataset or not isinstance(self.batch_size, int):
            return 1
        row = sum(a.nbytes for a in self.dataset.arrays) / max(1, len(self.dataset))
        return max(1, min(_BLOCK_BATCHES, int(_BLOCK_BYTES / max(1.0, row * self.batch_size))))

    def _from_blocks(self, tasks: Iterator[Task], count: int) -> Generator[object]:
        blocks: Any = map(self._block, iter(lambda: list(itertools.islice(tasks, count)), []))
        if self._ahead():
            blocks = Background(blocks, 1)
        try:
            for block in blocks:
                yield from block
        finally:
            if hasattr(blocks, "close"):
                blocks.close()

    def _block(self, tasks: list[Task]) -> list[object]:
        """The batches of some tasks, as parts of the same arrays."""
        indices = [task.indices for task in tasks]
        whole = self.recipe(tasks[0]._replace(indices=np.concatenate(indices)))
        ends = np.cumsum([len(part) for part in indices]).tolist()
        return [as_tensors(tuple(a[low:high] for a in whole)) for low, high in itertools.pairwise([0, *ends])]

    def _ahead(self) -> int:
        """How many batches the thread makes ahead; none if there is only one, as when a batch is all the data."""
        source = self.sampler if self.batch_sampler is None else self.batch_sampler
        if self._streams or callable(self.batch_size) or not hasattr(source, "__len__"):
            return self.prefetch
        return self.prefetch if len(self) - self._position > 1 else 0

    def _tasks(self, epoch: int, position: int, step: int) -> Iterator[Task]:
        whole = self._whole_tasks(epoch, position, step)
        return whole if self._share[1] == 1 else map(self._part_of, whole)

    def _part_of(self, task: Task) -> Task:
        part, self._parts[task.epoch, task.number] = share_of(self._share, len(task.indices))
        if self.batch_transform is not None:  # what it draws is for the whole batch
            return task._replace(part=part)
        return task._replace(
            indices=task.indices[part], examples=None if task.examples is None else task.examples[part]
        )

    def _whole_tasks(self, epoch: int, position: int, step: int) -> Iterator[Task]:
        if self._streams:
            yield from self._stream_tasks(epoch, position, step)
            return
        rng = generator(self.seed, epoch, purpose=ORDER)
        if self.batch_sampler is None:
            order = (
                self.sampler.order(rng) if isinstance(self.sampler, Sampler) else np.fromiter(self.sampler, np.int64)
            )
            batches: Iterable[ArrayLike] = self._chunks(order, step - position)
        elif isinstance(self.batch_sampler, BatchSampler):
            batches = self.batch_sampler.batches(rng)
        else:
            batches = self.batch_sampler
        for number, indices in enumerate(itertools.islice(batches, position, None), position):
            yield Task(epoch, number, np.asarray(indices))

    def _chunks(self, order: Indices, step: int) -> Iterator[Indices]:
        start = 0
        for number in itertools.count(step):
            size = self._size(number)
            if start >= len(order) or (self.drop_last and start + size > len(order)):
                return
            yield order[start : start + size]
            start += size

    def _size(self, step: int) -> int:
        if not callable(self.batch_size):
            return self.batch_size or 1
        return as_int("DataLoader", f"batch_size({step})", self.batch_size(step), least=1)

    def _stream_tasks(self, epoch: int, position: int, step: int) -> Iterator[Task]:
        examples = self.dataset.examples(self.seed, epoch)
        if self.shuffle:
            examples = shuffled(examples, self.shuffle_buffer, generator(self.seed, epoch, 1, STREAM))
        index = 0
        for number in itertools.count():
            size = self._size(step - position + number)
            batch = list(itertools.islice(examples, size))
            if not batch or (self.drop_last and len(batch) < size):
                return
            if number >= position:
                yield Task(epoch, number, np.arange(index, index + len(batch)), batch)
            index += len(batch)


class Recipe:
    """How a batch is made of a task: a function of the task alone, so it can run anywhere. Gives NumPy arrays."""

    def __init__(
        self,
        dataset: Any,
        seed: int,
        collate_fn: Callable[[list[Any]], object] | None,
        transform: Callable[..., object] | None,
        batch_transform: Callable[..., object] | None,
        single: bool,
    ) -> None:
        self.dataset, self.seed, self.single = dataset, seed, single
        self.collate_fn, self.transform, self.batch_transform = collate_fn, transform, batch_transform
        plain = transform is None and collate_fn is None and not single
        self.whole = plain and hasattr(dataset, "__getitems__") and getattr(dataset, "random", False) is not True
        self.random = is_random(transform) or getattr(dataset, "random", False) is True

    def __call__(self, task: Task) -> Any:
        try:
            batch = self._whole(task) if self.whole else self._collated(task)
            if self.batch_transform is not None:
                batch = transformed(self.batch_transform, batch, generator(self.seed, task.epoch, task.number, BATCH))
            return batch if task.part is None else trees.map(lambda leaf: rows_of(leaf, task.part), batch)
        except Exception as error:
            error.add_note(f"in batch {task.number} of epoch {task.epoch}, examples {shown(task.indices.tolist())}")
            raise

    def _whole(self, task: Task) -> object:
        if isinstance(self.dataset, Dataset):
            return self.dataset.__getitems__(task.indices)
        batch = self.dataset.__getitems__(task.indices.tolist())
        return collate(batch) if isinstance(batch, list) else batch  # other libraries give a list of examples

    def _collated(self, task: Task) -> object:
        examples = [self._example(task, place) for place in range(len(task.indices))]
        if self.single:
            return examples[0]
        return (self.collate_fn or collate)(examples)

    def _example(self, task: Task, place: int) -> object:
        index = int(task.indices[place])
        rng = generator(self.seed, task.epoch, index, EXAMPLE) if self.random else None
        example = example_at(self.dataset, index, rng) if task.examples is None else task.examples[place]
        if self.transform is None:
            return example
        try:
            if type(example) is tuple:
                return (self._transformed(example[0], rng), *example[1:])
            return self._transformed(example, rng)
        except Exception as error:
            name_example(error, index)
            raise

    def _transformed(self, x: object, rng: np.random.Generator | None) -> object:
        assert self.transform is not None
        return self.transform(x) if rng is None else transformed(self.transform, x, rng)


def share_of(share: tuple[int, int, int], n: int) -> tuple[slice, tuple[int, int]]:
    """The part that (rank, size, parts) has in n rows, or the first row in place of none; how many of how many it has.

    It has all rows if they do not divide into `parts`.
    """
    rank, size, _ = share if n % share[2] == 0 else (0, 1, 1)
    low, high = rank * n // size, (rank + 1) * n // size
    return slice(low, high) if low < high else slice(0, 1), (high - low, n)


def rows_of(leaf: Leaf, part: slice | None) -> Leaf:
    """Some rows of a leaf of a batch; what has no rows is for all of them."""
    return leaf[part] if getattr(leaf, "ndim", 1) else leaf  # type: ignore[index]  # an array, a tensor or a list


def _tensors(batches: Iterator[object]) -> Generator[object]:
    """The batches as tensors; ending early ends the generator behind them as well."""
    try:
        for batch in batches:
            yield as_tensors(batch)
    finally:
        if hasattr(batches, "close"):
            batches.close()


def _as_source(dataset: Source) -> Any:
    if isinstance(dataset, (Dataset, IterableDataset)):
        return dataset
    if isinstance(dataset, tuple) and dataset and all(isinstance(part, (np.ndarray, Tensor)) for part in dataset):
        return TensorDataset(*dataset)  # (x, y), and not two examples
    if isinstance(dataset, Examples) and not isinstance(dataset, Mapping):
        return dataset
    raise InputError(
        f"DataLoader: a {type(dataset).__name__} is no dataset.",
        "an object with __len__ and __getitem__, a wl.data.IterableDataset, or wl.data.as_dataset(source)",
    )


def _as_batch_size(batch_size: BatchSize) -> BatchSize:
    if batch_size is None or callable(batch_size):
        return batch_size
    return as_int("DataLoader", "batch_size", batch_size, least=1)
