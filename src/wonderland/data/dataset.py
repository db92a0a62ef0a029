"""Datasets: things with a length whose i-th example is a tree of NumPy arrays and numbers.

Anything with `__len__` and `__getitem__` will do for a loader. `Dataset` adds what datasets are asked for: `map`,
`filter`, `cache`, `shuffle`, `take`, `split`, `+`. A supervised example is `(x, y)`. Everything is NumPy until a loader
makes tensors.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Generic, Protocol, TypeVar, runtime_checkable

import numpy as np

from ..arrays.conversion import asarray
from ..core.arguments import as_function, as_int, shown
from ..core.errors import IndexOutOfRange, InputError, ShapeError, WonderlandError
from ..core.tensor import Tensor, read_only
from ..core.typing import Array, ArrayLike
from .collation import collate
from .generators import EXAMPLE, SPLIT, as_seed, generator
from .tables.matrix import as_matrix, has_columns

Example = TypeVar("Example")
Example_co = TypeVar("Example_co", covariant=True)
Result = TypeVar("Result")


@runtime_checkable
class Examples(Protocol[Example_co]):
    """What a loader needs of a source: a length, and the example at an index.

    >>> isinstance([1, 2, 3], Examples)
    True
    """

    def __len__(self) -> int: ...

    def __getitem__(self, index: int, /) -> Example_co: ...


class Dataset(Generic[Example]):
    r"""The base of datasets: n examples \(S_n = \{(x_i, y_i)\}\). A subclass defines `__len__` and `__getitem__`.

    >>> class Squares(Dataset):
    ...     def __len__(self):
    ...         return 5
    ...     def __getitem__(self, i):
    ...         return i, i * i
    >>> Squares().map(lambda example: example[1]).filter(lambda y: y > 3).take(2)[1]
    9

    `__getitems__(indices)` gives a whole batch; a subclass that can do this faster than one by one defines it, too. One
    whose examples are random has `random = True` and defines `draw(index, rng)`; `dataset[i]` is then the same draw
    every time, and a loader asks for other draws in every epoch. Book, D.3.1.
    """

    random: bool = False

    def __len__(self) -> int:
        raise NotImplementedError(f"{type(self).__name__}: def __len__(self)")

    def __getitem__(self, index: int) -> Example:
        if type(self).draw is Dataset.draw:
            raise NotImplementedError(f"{type(self).__name__}: def __getitem__(self, index)")
        return self.draw(self._place(index), generator(0, 0, int(index), EXAMPLE))

    def draw(self, index: int, rng: np.random.Generator) -> Example:
        """The example at an index, with randomness from `rng`."""
        return self[index]

    def __getitems__(self, indices: Sequence[int] | Array) -> object:
        """The batch of the examples at some indices."""
        return collate([example_at(self, int(index)) for index in indices])

    def __iter__(self) -> Iterator[Example]:
        return (self[index] for index in range(len(self)))

    def __add__(self, other: Examples[Example]) -> ConcatDataset[Example]:
        return ConcatDataset([self, other])

    def _place(self, index: int) -> int:
        """An index from the front; one that counts from the end is turned, one beyond raises."""
        n, place = len(self), operator.index(index)
        if not -n <= place < n:
            raise IndexOutOfRange(f"{type(self).__name__}: there is no example {place} among {n}.", f"0 to {n - 1}")
        return place % n

    def map(self, f: Callable[..., Result]) -> MappedDataset[Result]:
        """The dataset of the examples f(example); `f(example, rng)` if f declares `random = True`."""
        return MappedDataset(self, f)

    def filter(self, f: Callable[[Example], bool]) -> Subset[Example]:
        """The examples for which f(example) is true. Looks at every example once, at once."""
        as_function("filter", f)
        return Subset(self, [index for index in range(len(self)) if f(self[index])])

    def cache(self) -> CachedDataset[Example]:
        """This dataset with every example kept in memory after it was first made."""
        return CachedDataset(self)

    def shuffle(self, seed: int | np.random.Generator | None = 0) -> Subset[Example]:
        """The examples in one random order, the same for the same seed. (A loader shuffles anew every epoch.)"""
        order = generator(as_seed("shuffle", seed), purpose=SPLIT).permutation(len(self))
        return Subset(self, order)

    def take(self, n: int) -> Subset[Example]:
        """The first n examples, or all if there are fewer."""
        return Subset(self, np.arange(min(as_int("take", "n", n, least=0), len(self))))

    def split(
        self, parts: Sequence[float], *, shuffle: bool = True, seed: int | np.random.Generator | None = 0
    ) -> list[Subset[Example]]:
        """Disjoint parts by their sizes (integers) or fractions, shuffled first.

        >>> import wonderland as wl
        >>> train, validation, test = wl.data.TensorDataset(np.arange(10)).split([0.6, 0.2, 0.2])
        >>> len(train), len(validation), len(test)
        (6, 2, 2)
        """
        n = len(self)
        order = generator(as_seed("split", seed), purpose=SPLIT).permutation(n) if shuffle else np.arange(n)
        return [Subset(self, part) for part in np.split(order, np.cumsum(_sizes(parts, n))[:-1])]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self)} examples)"


def _sizes(parts: Sequence[float], n: int) -> list[int]:
    """Sizes that add up to n, from sizes or fractions; what rounding leaves goes to the largest remainders."""
    given = list(parts)
    if all(isinstance(part, (int, np.integer)) for part in given):
        if sum(given) != n or min(given, default=-1) < 0:
            raise InputError(f"split: the sizes {shown(given)} do not add up to {n} examples.", f"sizes with sum {n}")
        return [int(part) for part in given]
    if min(given) < 0 or abs(sum(given) - 1) > 1e-9:
        raise InputError(f"split: the fractions {shown(given)} do not add up to 1.", "fractions with sum 1")
    exact = np.array(given, np.float64) * n
    sizes = np.floor(exact + 1e-9).astype(int)
    for place in np.argsort(sizes - exact, kind="stable")[: n - sizes.sum()]:
        sizes[place] += 1
    return sizes.tolist()


def example_at(source: Any, index: int, rng: np.random.Generator | None = None) -> Any:
    """The example at an index. An exception on the way gets a note that names it."""
    try:
        if rng is not None and getattr(source, "random", False) is True:
            return source.draw(index, rng)
        return source[index]
    except Exception as error:
        name_example(error, index)
        raise


def name_example(error: BaseException, index: int) -> None:
    """Say once, in a note of the exception, which example it belongs to."""
    if not any("while loading example" in note for note in getattr(error, "__notes__", ())):
        error.add_note(f"while loading example {index}")


def as_column(data: ArrayLike, targets: bool = False) -> Array:
    """Data with one row per example as NumPy, without a copy where possible; tables of numbers, too."""
    if isinstance(data, np.ndarray):
        return data
    if isinstance(data, Tensor):
        return data.numpy()
    if has_columns(data):
        return as_matrix("TensorDataset", data, targets=targets)
    try:
        return asarray(data).numpy()  # Python's numbers take the default types of tensors
    except WonderlandError:
        found = np.asarray(data)  # text
        if found.dtype.kind not in "US":
            raise
        return found


class TensorDataset(Dataset[tuple[Array, ...]]):
    """Arrays in memory (or mapped from disk) with one row per example; example i is the tuple of the rows i.

    >>> import numpy as np, wonderland as wl
    >>> dataset = wl.data.TensorDataset(np.zeros((1000, 3)), np.zeros((1000, 1)))
    >>> len(dataset), [part.shape for part in dataset[0]]
    (1000, [(3,), (1,)])

    `check_finite=True` looks through floating arrays for NaN and infinities once. Book, D.3.1 and box C.5.2.
    """

    def __init__(self, *arrays: ArrayLike, check_finite: bool = False) -> None:
        if not arrays:
            raise InputError("TensorDataset: there are no arrays.", "TensorDataset(x, y)")
        # Read-only: a transform that writes into its input would change the data, but not those of other processes.
        columns = (as_column(data, targets=place > 0) for place, data in enumerate(arrays))
        self.arrays = tuple(read_only(x) if x.flags.writeable else x for x in columns)
        if any(array.ndim == 0 for array in self.arrays):
            raise ShapeError("TensorDataset: an array has no axes.", "arrays with one row per example")
        if len({len(array) for array in self.arrays}) > 1:
            raise ShapeError(
                f"TensorDataset: the arrays have different lengths, {[len(array) for array in self.arrays]}.",
                "arrays with one row per example, in the same order",
            )
        if check_finite:
            for place, array in enumerate(self.arrays):
                check_rows_finite("TensorDataset", array, f"array {place}")

    @property
    def tensors(self) -> tuple[Array, ...]:
        """The arrays."""
        return self.arrays

    def __len__(self) -> int:
        return len(self.arrays[0])

    def __getitem__(self, index: Any) -> tuple[Array, ...]:
        try:
            return tuple(array[index] for array in self.arrays)
        except IndexError:
            self._place(index)  # says which
            raise

    def __getitems__(self, indices: Sequence[int] | Array) -> tuple[Array, ...]:
        try:
            return tuple(array.take(indices, axis=0) for array in self.arrays)
        except IndexError:
            for index in np.asarray(indices).tolist():
                self._place(index)
            raise

    def __getstate__(self) -> dict[str, object]:
        # A worker process opens mapped files again instead of receiving what is in them.
        return {"arrays": tuple(map(_reopened, self.arrays))}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.arrays = tuple(np.memmap(**array) if isinstance(array, dict) else array for array in state["arrays"])


def _reopened(array: Array) -> Array | dict[str, object]:
    whole = isinstance(array, np.memmap) and array.filename is not None and not isinstance(array.base, np.ndarray)
    if not whole or not isinstance(array, np.memmap) or not array.flags.c_contiguous:
        return array
    return {
        "filename": str(array.filename),
        "dtype": array.dtype,
        "mode": "r" if array.mode == "r" else "r+",
        "offset": array.offset,
        "shape": array.shape,
    }


def check_rows_finite(name: str, array: ArrayLike, what: str) -> None:
    """Refuse floating data with NaN or infinities, and name the first row."""
    found = np.asarray(array)
    if found.dtype.kind not in "fc" or np.isfinite(found).all():
        return
    bad = np.flatnonzero(~np.isfinite(found).reshape(len(found), -1).all(axis=1))
    raise InputError(
        f"{name}: {len(bad)} of {len(found)} rows of {what} have NaN or infinities, first row {bad[0]}.",
        "wl.data.data_report(x) to see where; drop or fill them",
    )


class SequenceDataset(Dataset[Example]):
    """Any source with `__len__` and `__getitem__` (a list, another library's dataset) as a `Dataset`.

    >>> SequenceDataset(["a", "bc"]).map(len)[1]
    2
    """

    def __init__(self, source: Examples[Example]) -> None:
        if not isinstance(source, Examples):
            raise InputError(
                f"SequenceDataset: a {type(source).__name__} has no length or no examples by index.",
                "an object with __len__ and __getitem__; wl.data.IterableDataset for a stream",
            )
        self.source = source

    def __len__(self) -> int:
        return len(self.source)

    def __getitem__(self, index: int) -> Example:
        return self.source[self._place(index)]


class _Derived(Dataset[Example]):
    """A dataset made of another one."""

    def __init__(self, dataset: Examples[object]) -> None:
        self.dataset = dataset
        self.random = getattr(dataset, "random", False) is True

    def __len__(self) -> int:
        return len(self.dataset)

    def __getitem__(self, index: int) -> Example:
        place = self._place(index)
        return self.draw(place, generator(0, 0, place, EXAMPLE))


class Subset(_Derived[Example]):
    """The examples of a dataset at some indices, in that order.

    >>> list(Subset([10, 20, 30], [2, 0]))
    [30, 10]
    """

    def __init__(self, dataset: Examples[Example], indices: ArrayLike) -> None:
        super().__init__(dataset)
        found = np.asarray(indices)
        found = found.astype(np.int64) if found.size == 0 else found
        if found.ndim != 1 or found.dtype.kind not in "iu":
            raise InputError(f"Subset: the indices are {found.dtype}{list(found.shape)}.", "a list of integers")
        n = len(dataset)
        if found.size and not (-n <= found.min() and found.max() < n):
            worst = found.max() if found.max() >= n else found.min()
            raise IndexOutOfRange(f"Subset: there is no example {worst} among {n}.", f"indices from 0 to {n - 1}")
        self.indices = found.astype(np.int64) % max(n, 1)

    def __len__(self) -> int:
        return len(self.indices)

    def draw(self, index: int, rng: np.random.Generator) -> Example:
        return example_at(self.dataset, int(self.indices[index]), rng)

    def __getitems__(self, indices: Sequence[int] | Array) -> object:
        if isinstance(self.dataset, Dataset):
            return self.dataset.__getitems__(self.indices[np.asarray(indices)])
        return super().__getitems__(indices)


class ConcatDataset(Dataset[Example]):
    """Datasets one after the other; `a + b` is the same.

    >>> list(ConcatDataset([[1, 2], [3]]))
    [1, 2, 3]
    """

    def __init__(self, datasets: Sequence[Examples[Example]]) -> None:
        self.datasets = list(datasets)
        if not self.datasets:
            raise InputError("ConcatDataset: there are no datasets.", "a list of datasets")
        self.ends = np.cumsum([len(dataset) for dataset in self.datasets])
        self.random = any(getattr(dataset, "random", False) is True for dataset in self.datasets)

    def __len__(self) -> int:
        return int(self.ends[-1])

    def __getitem__(self, index: int) -> Example:
        place = self._place(index)
        return self.draw(place, generator(0, 0, place, EXAMPLE))

    def draw(self, index: int, rng: np.random.Generator) -> Example:
        which = int(np.searchsorted(self.ends, index, side="right"))
        start = int(self.ends[which - 1]) if which else 0
        return example_at(self.datasets[which], index - start, rng)


class MappedDataset(_Derived[Example]):
    """The examples f(example) of another dataset, made when asked for.

    >>> list(MappedDataset([1, 2, 3], lambda x: 10 * x))
    [10, 20, 30]

    An f that declares `random = True` is called as f(example, rng): a loader gives it other numbers in every epoch, the
    same for every number of workers.
    """

    def __init__(self, dataset: Examples[object], f: Callable[..., Example]) -> None:
        super().__init__(dataset)
        self.f = as_function("map", f)
        self.random = self.random or is_random(f)

    def draw(self, index: int, rng: np.random.Generator) -> Example:
        return transformed(self.f, example_at(self.dataset, index, rng), rng)


def is_random(f: object) -> bool:
    """Whether a transform declares that it draws random numbers."""
    return getattr(f, "random", False) is True


def transformed(f: Callable[..., Result], x: object, rng: np.random.Generator) -> Result:
    """f(x, rng) for a random transform, f(x) for another."""
    return f(x, rng) if is_random(f) else f(x)


class CachedDataset(_Derived[Example]):
    """A dataset whose examples are made once and kept in memory. Random examples are frozen at their first draw.

    >>> calls = []
    >>> dataset = SequenceDataset([1, 2]).map(lambda x: calls.append(x) or 10 * x).cache()
    >>> dataset[0], dataset[0], calls
    (10, 10, [1])

    Every worker process has its own cache.
    """

    def __init__(self, dataset: Examples[Example]) -> None:
        super().__init__(dataset)
        self.random = False
        self.examples: dict[int, Example] = {}

    def __getitem__(self, index: int) -> Example:
        place = self._place(index)
        if place not in self.examples:
            self.examples[place] = example_at(self.dataset, place)
        return self.examples[place]
