"""New values into many cells at once: all of them or none, whatever interrupts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, repeat
from typing import Any

import numpy as np

from .cell import Cell
from .context import current
from .tensor import Tensor

# What a run does with its results: it is called with the arrays, which may not have their numbers yet, and what it
# returns is exhausted when they have them.
Delivery = Callable[[list[np.ndarray[Any, Any]]], Iterable[Any]]

_pop: Any = dict.pop


def handing_over(cells: Sequence[Cell], values: Iterable[Tensor]) -> Iterator[Any]:
    """Gives cells new values, outside of all transformations, while `exhaust` goes through it.

    That is one call into C, in which no Python code runs: neither another thread nor the handler of a signal (Ctrl-C)
    comes between the first cell and the last. What is prepared before the numbers are there cannot fail afterwards.
    """
    insides = [cell._inside for cell in cells if cell._inside]
    return chain(
        map(setattr, cells, repeat("_outside"), values),
        map(_pop, insides, repeat(current().scope), repeat(None)),
    )
