"""Targets that are numbers: models give them in the user's units, and losses are in units of their deviation."""

from __future__ import annotations

import numpy as np

from .. import arrays, nn, train
from ..core.tensor import Tensor
from ..core.typing import ArrayLike
from ..nn.functional.losses import regression
from .inputs import Options

OF_ERRORS = frozenset(regression.__all__)  # losses of the difference alone, which has a scale


def units_of(y: np.ndarray) -> dict[str, list[float]]:
    """What a run keeps of its training targets: the mean and the standard deviation of each number.

    >>> units_of(np.array([[300_000.0], [500_000.0]]))
    {'center': [400000.0], 'scale': [100000.0]}
    """
    found = nn.Standardize.of(y)
    return {"center": np.asarray(found.mean).tolist(), "scale": np.asarray(found.scale).tolist()}


def restored(model: nn.Module, about: Options) -> tuple[nn.Module, ...]:
    """The layers of a model that ends in the units of the targets; one of a run that did not know them as it was."""
    if (units := about.get("units")) is None:
        return (model,)
    return model, nn.Restore(np.asarray(units["center"], np.float32), np.asarray(units["scale"], np.float32))


class InUnits(nn.Module):
    """A loss of errors in units of the targets' deviation: a squared error of 1 is as good as the mean.

    >>> import wonderland as wl
    >>> loss = InUnits(nn.MSELoss(), [100_000.0])
    >>> print(loss(wl.tensor([[350_000.0]]), wl.tensor([[400_000.0]])))
    tensor(0.25)
    """

    def __init__(self, loss: nn.Module, scale: ArrayLike) -> None:
        self.loss, self.scale = loss, nn.Buffer(arrays.asarray(np.asarray(scale, np.float32)))

    def forward(self, outputs: Tensor, targets: Tensor) -> Tensor:
        # the difference first: a mean that is large beside the deviation would eat the digits of both
        error = (outputs - targets) / self.scale
        return self.loss(error, arrays.zeros_like(error))


def number_loss(about: Options, loss: nn.Module | None = None) -> nn.Module:
    """The loss of numbers, the squared error by default, in units of the targets if the run knows them."""
    chosen = nn.MSELoss() if loss is None else loss
    return chosen if about.get("units") is None else InUnits(chosen, about["units"]["scale"])


def named_loss(name: str, about: Options) -> nn.Module:
    """A loss by name; one that compares numbers is in units of the targets."""
    found = train.as_loss(name)
    return number_loss(about, found) if name in OF_ERRORS else found
