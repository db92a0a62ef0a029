"""What attention layers share: which keys a query sees, masks of two kinds as one, features by heads."""

from __future__ import annotations

import math
from typing import NamedTuple

from ... import arrays
from ...core import dtypes
from ...core.tensor import Tensor


class Sight(NamedTuple):
    """Which keys queries see by their places: query i is at the offset + i, and key j at j."""

    causal: bool = False
    window: int | None = None
    offset: Tensor | int = 0  # a number, or one for each row
    straight: bool = False  # whether distances of places are those of i and j, too

    def mask(self, t: int, s: int) -> Tensor | None:
        """The same as a matrix (t, s), or (b, 1, t, s) where rows have their own offsets; None: all keys."""
        if not self.causal and self.window is None:
            return None
        start = self.offset if isinstance(self.offset, int) else arrays.reshape(self.offset, (-1, 1, 1, 1))
        ahead = arrays.arange(s) - (start + arrays.arange(t)[:, None])
        seen = ahead <= 0 if self.causal else ahead < self.window  # type: ignore[operator]  # one of the two is there
        return seen if self.window is None else seen & (ahead > -self.window)


def by_heads(x: Tensor, heads: int) -> Tensor:
    """(..., t, heads size) as (..., heads, t, size)."""
    return arrays.swapaxes(arrays.reshape(x, (*x.shape[:-1], heads, x.shape[-1] // heads)), -2, -3)


def both_masks(mask: Tensor | None, other: Tensor) -> Tensor:
    """A mask that says what two say: bool ones, floating ones, or one of each."""
    if mask is None:
        return other
    if mask.dtype == dtypes.bool_ and other.dtype == dtypes.bool_:
        return mask & other
    if mask.dtype == dtypes.bool_:
        return arrays.where(mask, other, -math.inf)
    return arrays.where(other, mask, -math.inf) if other.dtype == dtypes.bool_ else mask + other
