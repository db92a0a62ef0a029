"""New values into many cells at once: all of them or none, whatever interrupts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, repeat
from typing import Any

import numpy as np

from .cell import Cell
from .context import current
from .tensor import Tensor

# What a run does with its results: it is called with the arrays, which may not have their numbers yet, and with those
# that take the memory of inputs (output to input); what it returns is exhausted when the numbers are there.
Delivery = Callable[[list[np.ndarray[Any, Any]], Mapping[int, int]], Iterable[Any]]

_pop: Any = dict.pop


def handing_over(cells: Sequence[Cell], values: Iterable[Tensor]) -> Iterator[object]:
    """Gives cells new values, outside of all transformations, while `exhaust` goes through it.

    That is one call into C, in which no Python code runs: neither another thread nor the handler of a signal (Ctrl-C)
    comes between the first cell and the last. What is prepared before the numbers are there cannot fail afterwards.
    """
    outside = map(setattr, cells, repeat("_outside"), values)
    scope = current().scope
    if scope is None:
        return outside
    insides = [cell._inside for cell in cells if cell._inside]
    return chain(outside, map(_pop, insides, repeat(scope), repeat(None)))
