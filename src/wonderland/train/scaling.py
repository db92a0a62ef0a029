"""Scaling laws: how the loss falls with parameters, data and compute, and what a run spends. Book, chapter 1."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..core.arguments import as_int, as_number
from ..core.errors import InputError
from ..core.typing import ArrayLike
from ..inspect.counting import count
from ..nn.module.module import Module
from ..transforms.reverse import value_and_grad
from .feeding import size_of
from .step import Loss, Objective, as_loss, supervised


class PowerLaw(NamedTuple):
    r"""\(L(n) = a\,n^{-b}\): a line in logarithms, \(\ln L = \ln a - b \ln n\).

    >>> law = PowerLaw(a=10.0, b=0.5)
    >>> law(100.0)
    1.0
    """

    a: float
    b: float

    def __call__(self, n: Any) -> Any:
        """The loss that the law promises for a size, or for an array of them."""
        return self.a * np.asarray(n, np.float64) ** -self.b if np.ndim(n) else self.a * float(n) ** -self.b


def power_law(sizes: ArrayLike, losses: ArrayLike) -> PowerLaw:
    r"""The law \(L = a\,n^{-b}\) that fits losses best: least squares of their logarithms. Book, F.1.1.

    >>> law = power_law([1e3, 1e4, 1e5], [0.5, 0.25, 0.125])
    >>> round(law.b, 6), round(law(1e6), 6)  # half the loss for ten times the size
    (0.30103, 0.0625)

    `sizes` are numbers of parameters, of examples or of multiply-adds, one for each loss, two different ones or more.
    """
    n, loss = (np.asarray(values, np.float64).reshape(-1) for values in (sizes, losses))
    if n.shape != loss.shape or len(np.unique(n)) < 2:
        raise InputError(
            f"power_law: {len(n)} sizes, {len(np.unique(n))} of them different, and {len(loss)} losses.",
            "a loss for each of two sizes or more",
        )
    if not ((n > 0).all() and (loss > 0).all() and np.isfinite(n).all() and np.isfinite(loss).all()):
        raise InputError("power_law: sizes and losses have logarithms.", "finite numbers above 0")
    design = np.stack([np.ones_like(n), -np.log(n)], axis=1)
    (intercept, slope), *_ = np.linalg.lstsq(design, np.log(loss), rcond=None)
    return PowerLaw(float(np.exp(intercept)), float(slope))


class RunSize(NamedTuple):
    """What a run spent, and what it reached: a point of a scaling law."""

    parameters: int  # N
    examples: int  # D, each as often as it was seen
    multiply_adds: int  # C, of all forward and backward passes
    loss: float


def run_size(
    model: Module, loss: Loss, batch: object, steps: int, reached: float, *, objective: Objective = supervised
) -> RunSize:
    """The size of a run of so many `steps` with batches like this one, which `reached` a loss.

    >>> import wonderland as wl
    >>> model = wl.nn.Linear(3, 1)
    >>> size = run_size(model, wl.nn.MSELoss(), (wl.ones((8, 3)), wl.ones((8, 1))), steps=10, reached=0.5)
    >>> size.parameters, size.examples
    (4, 80)

    Multiply-adds are counted on the graph of one gradient (`wl.count`), without running it; the update is not in them.
    """
    steps, loss = as_int("run_size", "steps", steps, 1), as_loss(loss)
    once = count(value_and_grad(lambda model, batch: objective(model, loss, batch)[0]), model, batch).multiply_adds
    examples, value = steps * size_of(batch), float(as_number("run_size", "reached", reached))
    return RunSize(model.num_parameters(), examples, steps * once, value)
