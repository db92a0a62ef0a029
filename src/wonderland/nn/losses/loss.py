"""What losses share as modules: a reduction, and constants that are saved with the model."""

from __future__ import annotations

from ... import arrays
from ...core.tensor import Tensor
from ...core.typing import ArrayLike
from ..functional.losses.reduction import check_reduction
from ..module.applied import Applied
from ..module.parameter import Buffer

__all__ = ["Loss"]


class Loss(Applied):
    """The base of losses: `reduction` is "mean", "sum" or "none"."""

    def __init__(self, reduction: str = "mean") -> None:
        check_reduction(type(self).__name__, reduction)
        self.reduction = reduction


class PairLoss(Loss):
    """The base of losses of predictions and targets."""

    def forward(self, input: ArrayLike, target: ArrayLike) -> Tensor:
        return self._applied(input, target)


def constant(weight: ArrayLike | None) -> Buffer | None:
    """A weight that belongs to the state and is not trained."""
    return None if weight is None else Buffer(arrays.asarray(weight))
