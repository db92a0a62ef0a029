"""Free text of a table: frequent words and word pairs by name, the rest by a stable hash; rare ones weigh more."""

from __future__ import annotations

import math
import re
import zlib
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

import numpy as np

from ...core.errors import InputError
from .distinct import distinct
from .numbers import LIMIT, center_and_scale
from .table import Column

BUCKETS = 256
SAMPLE = 20_000  # texts from which frequencies are counted
REMEMBERED = 200_000  # tokens whose hash is kept while a column is encoded
_WORD = re.compile(r"\w+")


def tokens(text: str) -> list[str]:
    """The words of a text, in small letters, and pairs of neighbours.

    >>> tokens("Not good, not bad!")
    ['not', 'good', 'not', 'bad', 'not good', 'good not', 'not bad']
    """
    words = _WORD.findall(text.lower())
    return words + [f"{a} {b}" for a, b in pairwise(words)]


def bucket(token: str, buckets: int) -> int:
    """The place of a token among so many: the same on every machine and in every process.

    >>> bucket("wonderland", 64)
    31
    """
    return zlib.crc32(token.encode()) % buckets


@dataclass(frozen=True)
class TextEncoding:
    r"""Free text: how much of each frequent token it has, hashed places for all others, and its length.

    >>> import numpy as np
    >>> notes = Column("note", np.array([0, 1, 0, 2], np.int32), ("good wine", "bad wine", "good beer"))
    >>> encoding = TextEncoding.fit(notes, buckets=8)
    >>> encoding.vocabulary, encoding.names("note")[:2]
    (('good', 'wine', 'good wine'), ['note has good', 'note has wine'])

    A token that occurs n times gets \((1 + \log n) \log\frac{1 + \text{texts}}{1 + \text{texts with it}} + 1\), as
    tf-idf does; the numbers of a text have length 1. Three quarters of the places belong to tokens by name.
    """

    form: ClassVar[str] = "text"

    vocabulary: tuple[str, ...]
    weights: tuple[float, ...]  # of the vocabulary, then of the hashed places
    center: float  # of log(1 + words)
    scale: float
    indicator: bool = False

    def __post_init__(self) -> None:
        if len(self.weights) < len(self.vocabulary) or self.scale <= 0:
            raise InputError("the weights of tokens do not fit them, or the scale is zero.")

    @classmethod
    def fit(cls, column: Column, buckets: int | None = None) -> TextEncoding:
        """The encoding that suits the rows of a column. `buckets` are all places together."""
        values, codes = distinct(column)
        counts = np.bincount(codes[codes >= 0], minlength=len(values))
        rows = int(counts.sum())
        if not rows:
            raise InputError(f"column {column.name!r}: there is no text.", "another kind, or 'ignore'")
        if buckets is None:
            # fewer places for few rows, which cannot fill them, and for very many, which would fill the memory
            buckets = min(BUCKETS if rows < 300_000 else 64, max(16, 1 << (rows // 8).bit_length()))
        # an even choice of texts: the same for the same rows
        chosen = np.flatnonzero(counts)[:: max(1, len(values) // SAMPLE)]
        seen: Counter[str] = Counter()
        for i in chosen.tolist():
            seen.update(dict.fromkeys(tokens(values[i]), int(counts[i])))
        total = int(counts[chosen].sum())
        least = 2 if total < 500 else 3
        frequent = sorted((t for t, n in seen.items() if n >= least), key=lambda t: (-seen[t], t))
        named = frequent[: buckets * 3 // 4]
        hashed = buckets - len(named) if len(frequent) < len(seen) else 0
        hashed = min(hashed, max(buckets // 4, 1))
        known = set(named)
        others = np.zeros(hashed)
        for token, n in seen.items():
            if hashed and token not in known:
                others[bucket(token, hashed)] += n  # texts with two of them count twice: an upper bound
        held = np.minimum(np.array([*(seen[t] for t in named), *others]), total)
        weights = np.log((1 + total) / (1 + held)) + 1
        sizes = np.array([len(_WORD.findall(values[i])) for i in chosen.tolist()], np.float64)
        center, scale = center_and_scale(np.repeat(np.log1p(sizes), counts[chosen]))
        return cls(tuple(named), tuple(weights.tolist()), center, scale, rows < len(column))

    def names(self, column: str) -> list[str]:
        """The names of the features."""
        hashed = len(self.weights) - len(self.vocabulary)
        names = [f"{column} has {token}" for token in self.vocabulary]
        names += [f"{column} has tokens {i}" for i in range(hashed)]
        return [*names, f"{column} length"] + [f"{column} is missing"] * self.indicator

    def encode(self, column: Column, out: np.ndarray, place: Callable[[int], str]) -> list[str]:
        """Write the features of a column to `out`; returns notes."""
        values, codes = distinct(column)
        width, gone = len(self.weights), codes < 0
        lengths = np.zeros(len(values) + 1)
        out[:, : width + 1] = 0
        order = np.argsort(codes, kind="stable")
        bounds = np.searchsorted(codes[order], np.arange(len(values) + 1))
        places = {token: i for i, token in enumerate(self.vocabulary)}
        for begin in range(0, len(values), 4096):
            end = min(begin + 4096, len(values))
            block = np.zeros((end - begin, width), np.float32)
            self._fill(values[begin:end], block, lengths[begin:end], places)
            rows = order[bounds[begin] : bounds[end]]
            out[rows, :width] = block[codes[rows] - begin]
        z = np.clip((np.log1p(lengths[codes]) - self.center) / self.scale, -LIMIT, LIMIT)
        out[:, width] = np.where(gone, 0.0, z)
        if self.indicator:
            out[:, width + 1] = gone
        elif count := int(gone.sum()):
            return [f"{column.name}: {count} missing, none in training; taken as no text"]
        return []

    def _fill(self, texts: Sequence[str], block: np.ndarray, lengths: np.ndarray, places: dict[str, int]) -> None:
        named = len(self.vocabulary)
        hashed = len(self.weights) - named
        for i, text in enumerate(texts):
            found = tokens(text)
            lengths[i] = (len(found) + 1) // 2  # n words have n - 1 pairs
            counts: dict[int, int] = {}
            for token in found:
                at = places.get(token, -1)
                if at < 0:
                    if not hashed:
                        continue
                    at = named + bucket(token, hashed)
                    if len(places) < REMEMBERED:
                        places[token] = at
                counts[at] = counts.get(at, 0) + 1
            if counts:
                weighted = {at: (1 + math.log(n)) * self.weights[at] for at, n in counts.items()}
                size = math.sqrt(sum(v * v for v in weighted.values()))
                for at, value in weighted.items():
                    block[i, at] = value / size

    def describe(self) -> str:
        """How the column is encoded, in a few words."""
        hashed = len(self.weights) - len(self.vocabulary)
        rest = f" and {hashed} hashed places" if hashed else ""
        return f"{len(self.vocabulary)} tokens{rest}, length{', indicator' if self.indicator else ''}"
