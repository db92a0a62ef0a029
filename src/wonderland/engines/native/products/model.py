"""What the block of a product takes on a processor: the model by which its size is chosen, and where rows fall in the
first-level cache."""

from __future__ import annotations

import functools
import math

from ..processor import Processor
from ..text.builder import computed
from ..values import View
from .ahead import LINE

SETS = 64  # of the first-level cache


def lanes(cpu: Processor, view: View) -> int:
    """How many elements a vector register holds."""
    return cpu.lanes(8 if computed(view.dtype) == "double" else 4)


@functools.lru_cache(maxsize=4096)  # there may be ever new sizes
def block(
    registers: int, m: int, vectors: int, k: int, multiple: int = 1, wide: int = 0, most: int = 32
) -> tuple[float, int, int]:
    """Cycles for a whole product, and the rows and vectors of a block that take the fewest, or rows for given ones.

    A block has at most so many accumulators, if it has more than one row.
    """
    best = (math.inf, 1, 1)
    for c in [wide] if wide else range(1, min(vectors, 4 if registers == 32 else 3) + 1):
        for rows in range(multiple, min(m, (registers - c - 1) // c, max(1, most // c), 24) + 1, multiple):
            cost, kinds = 0.0, 0
            for height, down in ((rows, m // rows), (m % rows, 1)):
                for width, across in ((c, vectors // c), (vectors % c, 1)):
                    if height and width and across:
                        kinds += 1
                        # two multiply-adds or not quite as many loads in a cycle; one result takes five
                        waits = 5 / max(1, 8 // (rows * c))
                        once = max(height * width / 2, 0.72 * (height + width), waits)
                        cost += down * across * (k * once + height * width + 10)
            cost *= 1 + 0.02 * kinds
            best = min(best, (cost, rows, c))
    return best


def places_of(step: int) -> int:
    """On how many sets of the first-level cache rows fall that begin so many bytes after each other."""
    return SETS if step % LINE else SETS // math.gcd(step // LINE, SETS)
