"""Which keys a query of attention sees by its place, and what comes with queries, keys and values. Book, 11.2.

Query row i sits at the place p_i = offset + i // group: `group` rows in a run share one, as do the heads of a query
that share a head of keys. Key j sits at j. The row sees the keys from p_i - window + 1 on, if there is a window, and up
to p_i if attention is causal, else up to p_i + window - 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Generic, NamedTuple, Required, TypedDict, TypeVar

import numpy as np

from ..core.errors import InputError
from ..core.typing import Array

T = TypeVar("T")


class Parameters(TypedDict, total=False):
    """Those of a primitive, by name."""

    causal: Required[bool]
    scale: Required[float]
    window: int | None
    group: int
    given: tuple[str, ...] | None


class Options(NamedTuple):
    """The parameters of the primitives of attention; those with a default are there only if they differ from it."""

    causal: bool
    scale: float
    window: int | None = None
    group: int = 1
    given: tuple[str, ...] | None = None  # names of the operands behind the values; None: a mask, if there is one

    @property
    def ahead(self) -> int | None:
        """A row sees keys below its place plus so many; None: all."""
        return 1 if self.causal else self.window

    @property
    def names(self) -> tuple[str, ...]:
        return ("mask",) if self.given is None else self.given

    @property
    def tilted(self) -> bool:
        """Whether scores change with the distance."""
        return "slopes" in self.names

    @property
    def simple(self) -> bool:
        """Whether queries see keys as they are counted: no window, no group, no offset."""
        return self.window is None and self.group == 1 and "offsets" not in self.names

    def check(self, name: str, rows: int) -> None:
        if self.window is not None and self.window < 1:
            raise InputError(f"{name}: a window of {self.window} keys.", "at least 1, the query's own place, or None")
        if self.group < 1 or rows % self.group:
            raise InputError(f"{name}: {rows} rows of queries in groups of {self.group}.", "a number of whole groups")

    def pairs(self, rows: int, keys: int) -> int:
        """How many queries and keys meet in a matrix, where offsets leave all keys in sight."""
        if self.ahead is None:
            return rows * keys
        if "offsets" in self.names:
            wide = keys if self.window is None else self.window if self.causal else 2 * self.window - 1
            return rows * min(keys, wide)
        places = np.arange(rows // self.group)
        low, high = self.bounds(places, keys)
        return self.group * int((high - low).sum())

    def bounds(self, places: Array, keys: int) -> tuple[Array, Array]:
        """The first key that queries at these places see, and the one after the last."""
        high = np.full_like(places, keys) if self.ahead is None else np.clip(places + self.ahead, 0, keys)
        low = np.zeros_like(places) if self.window is None else np.clip(places - self.window + 1, 0, keys)
        return np.minimum(low, high), high


class Extras(NamedTuple, Generic[T]):
    """The operands behind the values."""

    mask: T | None = None
    offsets: T | None = None  # broadcasts to the leading axes: the place of the first query
    slopes: T | None = None  # for each query: its scores change by -slope |place - j|

    @staticmethod
    def of(operands: Sequence[T], options: Options) -> Extras[T]:
        found: Extras[T] = Extras()
        return found._replace(**dict(zip(options.names, operands, strict=False)))


def distances(places: Array, first: int, last: int) -> Array:
    """-|place - j| for the keys from the first on, up to the last."""
    return -np.abs(places[..., None] - np.arange(first, last))
