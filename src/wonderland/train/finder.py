"""The learning-rate finder: try rates from small to large on a copy of the model, and see where the loss falls."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ..core.errors import InputError
from ..nn.module.module import Module
from ..optim.adam import Adam
from ..optim.optimizer import Optimizer
from ..storage.svg import SVG
from ..viz.plot import Curve, plot
from .feeding import Data, as_loader
from .step import Loss, Objective, as_loss, supervised, training_step
from .watching import same_stream


@dataclass(frozen=True)
class RateSearch:
    """Rates, the smoothed losses at each, and the rate to start from: a tenth of the one with the lowest loss."""

    rates: list[float]
    losses: list[float]
    suggestion: float

    def svg(self) -> SVG:
        """The losses over the rates, on an axis of powers of ten, as an SVG picture."""
        chosen = np.interp(math.log10(self.suggestion), np.log10(self.rates), self.losses)
        dot = Curve([self.suggestion], [chosen], f"suggestion {self.suggestion:.1e}", dots=True)
        shapes = [Curve(self.rates, self.losses, "loss"), dot]
        return plot(shapes, title="learning rates", x_label="learning rate", x_scale="log")

    def _repr_svg_(self) -> str:
        return self.svg()


def find_lr(
    model: Module,
    loss: Loss,
    data: Data,
    *,
    low: float = 1e-6,
    high: float = 1.0,
    steps: int = 80,
    batch_size: int = 32,
    optimizer: Callable[..., Optimizer] = Adam,
    smoothing: float = 0.9,
    seed: int = 0,
    objective: Objective = supervised,
) -> RateSearch:
    r"""Try learning rates from `low` to `high`, one step each; the model, its state and the random stream stay.

    >>> import wonderland as wl
    >>> wl.random.seed(0)
    >>> x = wl.random.normal((128, 2))
    >>> found = wl.train.find_lr(wl.models.MLP(2, [8], 1), "mse_loss", (x, x.sum(axis=1, keepdims=True)), steps=40)
    >>> 1e-5 < found.suggestion < 1.0
    True

    The rates grow by a constant factor; the loss is smoothed, \(s \leftarrow \beta s + (1-\beta)\ell\), and the search
    ends when it is four times the best. The lowest loss comes shortly before the steps are too long, so the suggestion
    is a tenth of its rate.
    """
    if not 0 < low < high or steps < 5:
        raise InputError(f"find_lr: low={low}, high={high}, steps={steps}.", "0 < low < high, and 5 steps or more")
    loss = as_loss(loss)
    with same_stream():
        model = model.copy().train()
        tried = optimizer(model, lr=low)
        step = training_step(objective)
        loader = as_loader(data, batch_size, shuffle=True, seed=seed)
        position = loader.state_dict()
        batches = itertools.chain.from_iterable(itertools.repeat(loader))
        rates: list[float] = []
        losses: list[float] = []
        smooth = 0.0
        for i, batch in zip(range(steps), batches, strict=False):
            rate = low * (high / low) ** (i / (steps - 1))
            tried.lr = rate
            value, _ = step(model, loss, tried, None, batch)
            smooth = smoothing * smooth + (1.0 - smoothing) * float(value)
            now = smooth / (1.0 - smoothing ** (i + 1))
            if not math.isfinite(now) or (losses and now > 4.0 * min(losses)):
                break
            rates.append(rate)
            losses.append(now)
        loader.load_state_dict(position)
    if len(losses) < 3:
        raise InputError(
            f"find_lr: the loss was not finite or grew from the rate {rates[-1] if rates else low:.1e} on.",
            "a smaller `low`",
        )
    return RateSearch(rates, losses, rates[int(np.argmin(losses))] / 10.0)
