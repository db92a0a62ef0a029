"""Sequences to sequences, drawn from a seed: copy, reverse, sort, add. Book, section 11.1.

What has to be learned is known exactly, so whole outputs can be right or wrong. Tokens are 0 for padding, 1 for the
beginning, 2 for the end, then the symbols. An example is (source, target), both int64; targets end with the end token,
and a decoder is fed `wl.series.shift_right(target, start=1)`.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np

from ...core.arguments import as_int, shown
from ...core.errors import InputError
from ...core.typing import Array
from ..dataset import SequenceDataset
from ..generators import Seed
from ..randomness import as_generator

PAD, BOS, EOS = range(3)
SPECIAL = ("<pad>", "<s>", "</s>")
_ROUNDS = 100  # of draws without a single one for the split: then it has none


class _Task(NamedTuple):
    """A problem as text; two of the same identity are the same problem."""

    source: str
    target: str
    identity: str


class SequencePairs(SequenceDataset[tuple[Array, Array]]):
    """Examples (source, target) of tokens, and the symbols that they stand for.

    >>> pairs = SequencePairs("abc", [("abb", "c")])
    >>> pairs[0], pairs.decode(pairs[0][0])
    ((array([3, 4, 4]), array([5, 2])), 'abb')

    `pad`, `bos` and `eos` are tokens; `vocabulary` has the names of all `vocab_size` of them.
    """

    pad, bos, eos = PAD, BOS, EOS

    def __init__(self, symbols: str, pairs: Iterable[tuple[str, str]]) -> None:
        self.vocabulary = [*SPECIAL, *symbols]
        self._numbers = {symbol: number for number, symbol in enumerate(self.vocabulary)}
        super().__init__([(self.encode(source), np.append(self.encode(target), EOS)) for source, target in pairs])

    @property
    def vocab_size(self) -> int:
        """How many tokens there are, with the special ones."""
        return len(self.vocabulary)

    def encode(self, text: str) -> Array:
        """The tokens of some symbols, without beginning and end."""
        unknown = sorted(set(text) - self._numbers.keys())
        if unknown:
            known = "".join(self.vocabulary[len(SPECIAL) :])
            raise InputError(f"SequencePairs: there is no symbol {unknown[0]!r}.", f"symbols among {shown(known)}")
        return np.array([self._numbers[symbol] for symbol in text], np.int64)

    def decode(self, tokens: Sequence[int] | Array) -> str:
        """The symbols up to the first end token; padding and beginnings are left out."""
        found = np.asarray(tokens).tolist()
        found = found[: found.index(EOS)] if EOS in found else found
        return "".join(self.vocabulary[token] for token in found if token not in (PAD, BOS))


def make_copy_task(
    n_samples: int = 1000,
    length: int | tuple[int, int] = 20,
    *,
    digits: int = 10,
    split: str | None = None,
    seed: Seed = 0,
) -> SequencePairs:
    """Digits, and the same digits. Book, section 11.1.

    >>> import wonderland as wl
    >>> pairs = wl.data.make_copy_task(100, 5)
    >>> source, target = map(pairs.decode, pairs[0])
    >>> len(source), target == source
    (5, True)

    `length` is the number of digits, or the least and the largest number, and `digits` how many there are of them. The
    inputs of `split="train"` and `split="test"` (a tenth of all that are possible) have none in common, whatever the
    seeds; None draws from all. The same problem may come again.
    """
    return _digits_task("make_copy_task", n_samples, length, digits, split, seed, lambda text: text)


def make_reverse_task(
    n_samples: int = 1000,
    length: int | tuple[int, int] = 20,
    *,
    digits: int = 10,
    split: str | None = None,
    seed: Seed = 0,
) -> SequencePairs:
    """Digits, and the same digits from the last to the first; see `make_copy_task`. Book, section 11.1.

    >>> import wonderland as wl
    >>> pairs = wl.data.make_reverse_task(100, 5)
    >>> source, target = map(pairs.decode, pairs[0])
    >>> target == source[::-1]
    True
    """
    return _digits_task("make_reverse_task", n_samples, length, digits, split, seed, lambda text: text[::-1])


def make_sort_task(
    n_samples: int = 1000,
    length: int | tuple[int, int] = 20,
    *,
    digits: int = 10,
    split: str | None = None,
    seed: Seed = 0,
) -> SequencePairs:
    """Digits, and the same digits in rising order; see `make_copy_task`. Book, section 11.1.

    >>> import wonderland as wl
    >>> pairs = wl.data.make_sort_task(100, 5)
    >>> source, target = map(pairs.decode, pairs[0])
    >>> target == "".join(sorted(source))
    True
    """
    return _digits_task("make_sort_task", n_samples, length, digits, split, seed, lambda text: "".join(sorted(text)))


def make_addition_task(
    n_samples: int = 1000,
    digits: int = 3,
    *,
    reverse: bool = False,
    zero_fill: bool = True,
    split: str | None = None,
    seed: Seed = 0,
) -> SequencePairs:
    """Sums of two numbers of up to `digits` digits, and what they are. Book, section 11.1.

    >>> import wonderland as wl
    >>> pairs = wl.data.make_addition_task(100)
    >>> source, target = map(pairs.decode, pairs[0])
    >>> a, b = source.split("+")
    >>> int(a) + int(b) == int(target), len(source), len(target)
    (True, 7, 4)

    Numbers are filled with zeros to one length, `digits` for terms and one more for the sum, unless `zero_fill=False`.
    With `reverse` the sum begins with its last digit, as one writes it: no digit then depends on a later one. `split`
    is that of `make_copy_task`; a + b and b + a are in the same one.
    """
    name = "make_addition_task"
    n, size = as_int(name, "n_samples", n_samples, least=1), as_int(name, "digits", digits, least=1)
    rng = as_generator(name, seed)
    if size > 18:
        raise InputError(f"{name}: digits={size}.", "up to 18")
    width = (size, size + 1) if zero_fill else (0, 0)

    def draw(count: int) -> list[_Task]:
        tasks = []
        for a, b in rng.integers(0, 10**size, (count, 2)).tolist():
            total = f"{a + b:0{width[1]}d}"
            source = f"{a:0{width[0]}d}+{b:0{width[0]}d}"
            tasks.append(_Task(source, total[::-1] if reverse else total, f"{min(a, b)}+{max(a, b)}"))
        return tasks

    return _pairs(name, "0123456789+", draw, n, split)


def _digits_task(
    name: str,
    n_samples: int,
    length: int | tuple[int, int],
    digits: int,
    split: str | None,
    seed: Seed,
    answer: Callable[[str], str],
) -> SequencePairs:
    """Rows of digits, each with its answer."""
    n, kinds = as_int(name, "n_samples", n_samples, least=1), as_int(name, "digits", digits, least=1)
    bounds = length if isinstance(length, (tuple, list)) else (length, length)
    if len(bounds) != 2:
        raise InputError(f"{name}: length={shown(length)}.", "a number, or the least and the largest")
    least, largest = (as_int(name, "length", bound, least=1) for bound in bounds)
    if kinds > 10 or least > largest:
        raise InputError(f"{name}: digits={kinds}, length={shown(length)}.", "up to 10 digits, and a rising pair")
    rng = as_generator(name, seed)

    def draw(count: int) -> list[_Task]:
        sizes = rng.integers(least, largest + 1, count).tolist()
        rows = (rng.integers(0, kinds, (count, largest)) + ord("0")).astype(np.uint8)
        texts = [row.tobytes()[:size].decode() for row, size in zip(rows, sizes, strict=True)]
        return [_Task(text, answer(text), text) for text in texts]

    return _pairs(name, "0123456789"[:kinds], draw, n, split)


def _pairs(name: str, symbols: str, draw: Callable[[int], list[_Task]], count: int, split: str | None) -> SequencePairs:
    """As many tasks of a split as asked for. A hash of the task says which split it is in: no list has to be kept."""
    if split not in (None, "train", "test"):
        raise InputError(f"{name}: split={shown(split)}.", '"train", "test", or None for both')
    found: list[tuple[str, str]] = []
    fruitless = 0
    while len(found) < count:
        before = len(found)
        for task in draw(count):
            part = "test" if zlib.crc32(task.identity.encode()) % 10 == 0 else "train"
            if split in (None, part) and len(found) < count:
                found.append((task.source, task.target))
        fruitless = fruitless + 1 if len(found) == before else 0
        if fruitless * count >= _ROUNDS:
            raise InputError(f"{name}: no problem of this size is in the split {split!r}.", "a larger size")
    return SequencePairs(symbols, found)
