"""Categories and numbers: columns of categories as ordinals or one-hot rows, and vocabularies of tokens."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import Any, Self

import numpy as np

from ..core.arguments import as_int, shown
from ..core.dtypes import as_dtype, default_float
from ..core.errors import InputError, ModuleError, ShapeError
from ..core.typing import Array, ArrayLike, DTypeLike


class OrdinalEncoder:
    """Columns of categories as integers: the place of a category among those of its column.

    >>> encoder = OrdinalEncoder().fit([["red", "s"], ["blue", "m"], ["red", "l"]])
    >>> encoder.transform([["red", "m"]]), encoder.inverse_transform([[0, 1]])
    (array([[1, 1]]), array([['blue', 'm']], dtype=object))

    `categories` (a list per column) fixes the order, else it is sorted. What `fit` has not seen raises, or becomes
    `unknown_value` with `handle_unknown="use_encoded_value"`.
    """

    def __init__(
        self,
        categories: Sequence[Sequence[Hashable]] | None = None,
        *,
        handle_unknown: str = "error",
        unknown_value: int = -1,
    ) -> None:
        self.categories = categories
        self.handle_unknown, self.unknown_value = handle_unknown, unknown_value
        self._check_setting(("error", "use_encoded_value"))

    def _check_setting(self, known: tuple[str, ...]) -> None:
        if self.handle_unknown not in known:
            raise InputError(
                f"{type(self).__name__}: handle_unknown={self.handle_unknown!r} is not known.", f"one of {known}"
            )

    def fit(self, x: ArrayLike, y: ArrayLike | None = None) -> Self:
        """Learn the categories of each column. Returns the encoder."""
        columns = self._columns(x)
        if self.categories is None:
            self.categories_ = [_distinct(column) for column in columns]
        else:
            self.categories_ = [list(column) for column in self.categories]
            if len(self.categories_) != len(columns):
                raise ShapeError(
                    f"{type(self).__name__}: categories for {len(self.categories_)} columns, data with {len(columns)}.",
                    "a list of categories per column",
                )
        self._places = [{category: place for place, category in enumerate(known)} for known in self.categories_]
        self._codes(columns)  # data with other categories than those given is refused here
        return self

    def transform(self, x: ArrayLike) -> Array:
        """The integers (n, columns)."""
        return self._codes(self._columns(x))

    def fit_transform(self, x: ArrayLike, y: ArrayLike | None = None) -> Array:
        """`fit(x).transform(x)`."""
        return self.fit(x).transform(x)

    def inverse_transform(self, codes: ArrayLike) -> Array:
        """The categories (n, columns); None for what was unknown."""
        self._check_fitted()
        found = np.asarray(codes)
        out = np.empty(found.shape, object)
        for place, known in enumerate(self.categories_):
            out[:, place] = [known[c] if 0 <= c < len(known) else None for c in found[:, place].tolist()]
        return out

    def _check_fitted(self) -> None:
        if not hasattr(self, "categories_"):
            name = type(self).__name__
            raise ModuleError(f"{name}: used before fit.", f"{name}().fit(x_train)")

    def _columns(self, x: ArrayLike) -> list[list[Hashable]]:
        rows = np.asarray(x, object) if not isinstance(x, np.ndarray) else x
        if rows.ndim == 1:
            rows = rows[:, None]
        if rows.ndim != 2 or not rows.size:
            raise ShapeError(f"{type(self).__name__}: the data has shape {rows.shape}.", "rows and columns, not empty")
        return [rows[:, place].tolist() for place in range(rows.shape[1])]

    def _codes(self, columns: list[list[Hashable]]) -> Array:
        self._check_fitted()
        if len(columns) != len(self._places):
            raise ShapeError(
                f"{type(self).__name__}: fitted on {len(self._places)} columns, received {len(columns)}.",
                "the columns of fit",
            )
        out = np.empty((len(columns[0]), len(columns)), np.int64)
        for place, (column, known) in enumerate(zip(columns, self._places, strict=True)):
            if self.handle_unknown == "error" and (strange := [value for value in column if value not in known]):
                raise InputError(
                    f"{type(self).__name__}: column {place} has the category {shown(strange[0])}, unknown to fit.",
                    f"one of {shown(list(known))}, or another handle_unknown",
                )
            out[:, place] = [known.get(value, self.unknown_value) for value in column]
        return out


class OneHotEncoder(OrdinalEncoder):
    """Columns of categories as rows of zeros and ones, (n, number of all categories).

    >>> encoder = OneHotEncoder([["red", "green", "blue"]]).fit(["red", "green", "blue"])
    >>> encoder.transform(["green"])
    array([[0., 1., 0.]], dtype=float32)
    >>> encoder.inverse_transform([[0, 1, 0]])
    array([['green']], dtype=object)

    With `handle_unknown="ignore"` an unknown category is a row of zeros.
    """

    def __init__(
        self,
        categories: Sequence[Sequence[Hashable]] | None = None,
        *,
        handle_unknown: str = "error",
        dtype: DTypeLike | None = None,
    ) -> None:
        self.categories, self.handle_unknown, self.unknown_value = categories, handle_unknown, -1
        self.dtype = default_float if dtype is None else as_dtype(dtype)
        self._check_setting(("error", "ignore"))

    def transform(self, x: ArrayLike) -> Array:
        """The rows of zeros and ones."""
        codes = super().transform(x)
        parts = [
            (codes[:, place, None] == np.arange(len(known))).astype(self.dtype)
            for place, known in enumerate(self.categories_)
        ]
        return np.concatenate(parts, axis=1)

    def inverse_transform(self, codes: ArrayLike) -> Array:
        """The categories (n, columns) of the largest entries; None where all are zero."""
        self._check_fitted()
        rows = np.asarray(codes)
        widths = [len(known) for known in self.categories_]
        if rows.ndim != 2 or rows.shape[1] != sum(widths):
            raise ShapeError(f"OneHotEncoder: rows of shape {rows.shape}.", f"(n, {sum(widths)})")
        parts = np.split(rows, np.cumsum(widths)[:-1], axis=1)
        ordinals = [np.where(part.any(axis=1), part.argmax(axis=1), -1) for part in parts]
        return super().inverse_transform(np.stack(ordinals, axis=1))


def _distinct(column: list[Any]) -> list[Any]:
    """The categories of a column, sorted; in the order of their names if they do not compare."""
    found = list(dict.fromkeys(column))
    try:
        return sorted(found)
    except TypeError:
        return sorted(found, key=lambda value: (type(value).__name__, str(value)))


class Vocabulary:
    """Tokens and their ids 0, 1, ...: `vocabulary["cat"]`, `encode`, `decode`.

    >>> words = Vocabulary.build([["the", "cat", "the"], ["a", "cat"]], unknown="<unk>")
    >>> words.tokens
    ['<unk>', 'cat', 'the', 'a']
    >>> words.encode(["the", "dog"]), words.decode([2, 1])
    (array([2, 0]), ['the', 'cat'])

    With `unknown`, a token that is not in the vocabulary has the id of that one; without, it raises.
    """

    def __init__(self, tokens: Iterable[Hashable], *, unknown: Hashable | None = None) -> None:
        self.tokens: list[Any] = list(tokens)
        if unknown is not None and unknown not in self.tokens:
            self.tokens.insert(0, unknown)
        self.unknown = unknown
        self.ids = {token: place for place, token in enumerate(self.tokens)}
        if len(self.ids) < len(self.tokens):
            twice = next(token for token, count in Counter(self.tokens).items() if count > 1)
            raise InputError(f"Vocabulary: the token {shown(twice)} is there twice.", "distinct tokens")

    @classmethod
    def build(
        cls,
        sequences: Iterable[Iterable[Hashable]],
        *,
        unknown: Hashable | None = None,
        specials: Sequence[Hashable] = (),
        min_count: int = 1,
        max_size: int | None = None,
    ) -> Vocabulary:
        """The tokens of some sequences: specials first, then the most frequent (ties in the order of their names)."""
        counts: Counter[Hashable] = Counter()
        for sequence in sequences:
            counts.update(sequence)
        first = list(dict.fromkeys([*([] if unknown is None else [unknown]), *specials]))
        ranked = sorted(counts.items(), key=lambda item: (-item[1], str(item[0])))
        rest = [token for token, count in ranked if count >= min_count and token not in first]
        if max_size is not None:
            rest = rest[: max(0, as_int("Vocabulary", "max_size", max_size, least=1) - len(first))]
        return cls([*first, *rest], unknown=unknown)

    def __getitem__(self, token: Hashable) -> int:
        found = self.ids.get(token)
        if found is not None:
            return found
        if self.unknown is None:
            raise InputError(f"Vocabulary: the token {shown(token)} is not among {len(self)}.", 'unknown="<unk>"')
        return self.ids[self.unknown]

    def __contains__(self, token: object) -> bool:
        return token in self.ids

    def __len__(self) -> int:
        return len(self.tokens)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.tokens)

    def encode(self, tokens: Iterable[Hashable]) -> Array:
        """The ids of some tokens."""
        return np.array([self[token] for token in tokens], np.int64)

    def decode(self, ids: Iterable[int]) -> list[Any]:
        """The tokens of some ids."""
        numbers = [as_int("Vocabulary", "id", number) for number in ids]
        if strange := [number for number in numbers if not 0 <= number < len(self)]:
            raise InputError(f"Vocabulary: there is no token {strange[0]}.", f"ids from 0 to {len(self) - 1}")
        return [self.tokens[number] for number in numbers]

    def __repr__(self) -> str:
        return f"Vocabulary({len(self)} tokens, unknown={self.unknown!r})"
