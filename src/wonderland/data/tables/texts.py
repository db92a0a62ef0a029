"""Free text of a table: frequent words and word pairs by name, the rest by a stable hash; rare ones weigh more."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

import numpy as np

from ...core.errors import InputError
from .distinct import distinct, used_texts
from .numbers import LIMIT, center_and_scale
from .table import Column

BUCKETS = 256
SAMPLE = 20_000  # texts from which frequencies are counted
BLOCK = 4096  # texts that are encoded at once
REMEMBERED = 200_000  # words whose hash is kept while a column is encoded
_WORD = re.compile(r"\w+")


def tokens(text: str) -> list[str]:
    """The words of a text, in small letters, and pairs of neighbours.

    >>> tokens("Not good, not bad!")
    ['not', 'good', 'not', 'bad', 'not good', 'good not', 'not bad']
    """
    words = _WORD.findall(text.lower())
    return words + [f"{a} {b}" for a, b in pairwise(words)]


class _Hashes(dict[str, int]):
    """The hashes of words, remembered: 64 bits, the same on every machine and in every process."""

    def __missing__(self, word: str) -> int:
        found = int.from_bytes(hashlib.blake2b(word.encode(), digest_size=8).digest(), "little")
        if len(self) < REMEMBERED:
            self[word] = found
        return found


def token_hashes(
    texts: Sequence[str], known: dict[str, int] | None = None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The tokens of many texts as hashes, the number of the text for each, and how many words each text has.

    >>> hashes, of, sizes = token_hashes(["a b", "b"])
    >>> of.tolist(), sizes.tolist(), bool(hashes[1] == hashes[2])
    ([0, 0, 1, 0], [2, 1], True)

    Words come first, then pairs: the hash of a pair is made of those of its words.
    """
    known = _Hashes() if known is None else known
    words = [_WORD.findall(text.lower()) for text in texts]
    sizes = np.fromiter(map(len, words), np.int64, len(words))
    flat = np.fromiter((known[word] for found in words for word in found), np.uint64, int(sizes.sum()))
    of = np.repeat(np.arange(len(texts)), sizes)
    inside = of[1:] == of[:-1] if len(of) else np.zeros(0, bool)
    pairs = _pair(flat[:-1][inside], flat[1:][inside])
    return np.concatenate([flat, pairs]), np.concatenate([of, of[1:][inside]]), sizes


def _pair(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    mixed = first * np.uint64(0x9E3779B97F4A7C15) ^ second
    mixed = (mixed ^ (mixed >> np.uint64(31))) * np.uint64(0xBF58476D1CE4E5B9)
    return mixed ^ (mixed >> np.uint64(29))


@dataclass(frozen=True)
class TextEncoding:
    r"""Free text: how much of each frequent token it has, hashed places for all others, and its length.

    >>> import numpy as np
    >>> notes = Column("note", np.array([0, 1, 0, 2], np.int32), ("good wine", "bad wine", "good beer"))
    >>> encoding = TextEncoding.fit(notes, buckets=8)
    >>> encoding.vocabulary, encoding.names("note")[:2]
    (('good', 'wine', 'good wine'), ['note has good', 'note has wine'])

    A token that occurs n times gets \((1 + \log n) (1 + \log\frac{1 + \text{texts}}{1 + \text{texts with it}})\), as
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
            raise InputError(
                "the weights of tokens do not fit them, or the scale is zero.",
                "a weight for each token, a scale above 0",
            )

    @classmethod
    def fit(cls, column: Column, buckets: int | None = None) -> TextEncoding:
        """The encoding that suits the rows of a column. `buckets` are all places together."""
        values, codes = _different(column)
        counts = np.bincount(codes[codes >= 0], minlength=len(values))
        rows = int(counts.sum())
        if not rows:
            raise InputError(f"column {column.name!r}: there is no text.", "another kind, or 'ignore'")
        if buckets is None:
            # fewer places for few rows, which cannot fill them, and for very many, which would fill the memory
            buckets = min(BUCKETS if rows < 300_000 else 64, max(16, 1 << (rows // 8).bit_length()))
        # an even choice of texts: the same for the same rows
        chosen = np.arange(0, len(values), max(1, len(values) // SAMPLE))
        seen: Counter[str] = Counter()
        for i in chosen.tolist():
            for token in set(tokens(values[i])):
                seen[token] += int(counts[i])
        total = int(counts[chosen].sum())
        least = 2 if total < 500 else 3
        frequent = sorted((t for t, n in seen.items() if n >= least), key=lambda t: (-seen[t], t))
        named = frequent[: max(buckets * 3 // 4, 1)]
        hashed = max(buckets // 4, 1) if len(named) < len(seen) else 0
        encoding = cls(tuple(named), (1.0,) * (len(named) + hashed), 0.0, 1.0, rows < len(column))
        held, sizes = encoding._held([values[i] for i in chosen.tolist()], counts[chosen])
        weights = np.log((1 + total) / (1 + held)) + 1
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
        values, codes = _different(column)
        width, gone = len(self.weights), codes < 0
        weights = np.array(self.weights)
        sizes = np.zeros(len(values) + 1)
        order = np.argsort(codes, kind="stable")
        bounds = np.searchsorted(codes, np.arange(len(values) + 1), sorter=order)
        out[order[: bounds[0]], :width] = 0
        known, names = _Hashes(), self._places()
        for begin in range(0, len(values), BLOCK):
            end = min(begin + BLOCK, len(values))
            counts, sizes[begin:end] = self._counts(values[begin:end], known, names)
            block = np.where(counts > 0, (1 + np.log(np.maximum(counts, 1))) * weights, 0.0)
            block /= np.maximum(np.sqrt((block**2).sum(axis=1, keepdims=True)), 1e-12)
            rows = order[bounds[begin] : bounds[end]]
            out[rows, :width] = block[codes[rows] - begin]
        z = np.clip((np.log1p(sizes[codes]) - self.center) / self.scale, -LIMIT, LIMIT)
        out[:, width] = np.where(gone, 0.0, z)
        if self.indicator:
            out[:, width + 1] = gone
        elif count := int(gone.sum()):
            return [f"{column.name}: {count} missing, none in training; taken as no text"]
        return []

    def _places(self) -> tuple[np.ndarray, np.ndarray]:
        """The hashes of the vocabulary in order, and the place of each."""
        known = _Hashes()
        hashes = np.array(
            [known[t] if " " not in t else token_hashes([t], known)[0][-1] for t in self.vocabulary], np.uint64
        )
        order = np.argsort(hashes)
        return hashes[order], order

    def _counts(
        self, texts: Sequence[str], known: dict[str, int], names: tuple[np.ndarray, np.ndarray]
    ) -> tuple[np.ndarray, np.ndarray]:
        """How often each text has the tokens of each place, and how many words it has."""
        hashes, of, sizes = token_hashes(texts, known)
        named, width = len(self.vocabulary), len(self.weights)
        ranked, places = names
        at = np.full(len(hashes), -1, np.int64)
        if named:
            where = np.minimum(np.searchsorted(ranked, hashes), named - 1)
            at = np.where(ranked[where] == hashes, places[where], -1)
        if width > named:
            at = np.where(at < 0, named + (hashes % np.uint64(width - named)).astype(np.int64), at)
        there = at >= 0
        cells = np.bincount(of[there] * width + at[there], minlength=len(texts) * width)
        return cells.reshape(len(texts), width), sizes

    def _held(self, texts: Sequence[str], numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """In how many rows each place has a token, for texts that stand in so many rows each; and their words."""
        held, sizes = np.zeros(len(self.weights)), np.zeros(len(texts))
        known, names = _Hashes(), self._places()
        for begin in range(0, len(texts), BLOCK):
            part = slice(begin, min(begin + BLOCK, len(texts)))
            counts, sizes[part] = self._counts(texts[part], known, names)
            held += numbers[part] @ (counts > 0)
        return held, sizes

    def describe(self) -> str:
        """How the column is encoded, in a few words."""
        hashed = len(self.weights) - len(self.vocabulary)
        rest = f" and {hashed} hashed places" if hashed else ""
        return f"{len(self.vocabulary)} tokens{rest}, length{', indicator' if self.indicator else ''}"


def _different(column: Column) -> tuple[list[str], np.ndarray]:
    return used_texts(column) if column.kind == "text" else distinct(column)
