"""What losses share as modules: a reduction, and constants that are saved with the model."""

from __future__ import annotations

from typing import Any

from ... import arrays
from ...errors import InputError
from ..functional.losses.reduction import REDUCTIONS
from ..module import Module
from ..parameter import Buffer


class Loss(Module):
    """The base of losses: `reduction` is "mean", "sum" or "none"."""

    def __init__(self, reduction: str = "mean") -> None:
        if reduction not in REDUCTIONS:
            raise InputError(f"{type(self).__name__}: reduction={reduction!r}.", '"mean", "sum" or "none"')
        self.reduction = reduction


def constant(weight: Any) -> Any:
    """A weight that belongs to the state and is not trained."""
    return None if weight is None else Buffer(arrays.asarray(weight))
