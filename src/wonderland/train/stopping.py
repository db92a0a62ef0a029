"""When to stop: no progress, convergence, or time that is up. Book, section 9.2.2."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ..core.arguments import as_int, as_number, shown
from ..core.errors import InputError
from ..core.tensor import Tensor
from .callbacks import Callback
from .history import Record, mode_of

if TYPE_CHECKING:
    from .trainer import Trainer


class EarlyStopping(Callback):
    r"""Stop when the validation score has not improved for `patience` epochs, and go back to the best weights.

    >>> import wonderland as wl
    >>> rule = wl.train.EarlyStopping("validation_accuracy", patience=3)
    >>> [rule.observe(score) for score in (0.9, 0.5, 0.51, 0.52)]  # no new best for three epochs
    [False, False, False, True]
    >>> rule.best_epoch
    0

    `rule="best"` counts the epochs since the best one. `rule="book"` is the book's, which compares with the last k
    scores only: stop if \(a_t \le a_i\) for all \(i = t-1, \dots, t-k\). On the scores above it goes on, because each
    epoch beats one of the last three:

    >>> rule = wl.train.EarlyStopping("validation_accuracy", patience=3, rule="book")
    >>> [rule.observe(score) for score in (0.9, 0.5, 0.51, 0.52)]
    [False, False, False, False]

    A score counts as better by more than `min_delta`; ties are no improvement, and NaN stops. Nothing stops before
    `min_epochs`: large models may improve again after a long plateau. `mode` is "min" or "max"; without it the name
    tells. Book, section 9.2.2.
    """

    def __init__(
        self,
        monitor: str | None = None,
        patience: int = 10,
        *,
        mode: str | None = None,
        min_delta: float = 0.0,
        min_epochs: int = 0,
        rule: str = "best",
        restore_best: bool = True,
    ) -> None:
        if rule not in ("best", "book"):
            raise InputError(f"EarlyStopping: rule={rule!r}.", 'rule="best" or rule="book"')
        if patience < 1 or min_delta < 0:
            raise InputError(
                f"EarlyStopping: patience={patience}, min_delta={min_delta}.", "patience >= 1, min_delta >= 0"
            )
        self.monitor, self.patience, self.mode = monitor, patience, mode
        self.min_delta, self.min_epochs, self.rule, self.restore_best = min_delta, min_epochs, rule, restore_best
        self.scores: list[float] = []
        self.best_epoch = -1  # the number of the best score, from 0
        self._best_state: dict[str, Tensor] = {}

    def observe(self, score: float) -> bool:
        """Take the next epoch's score; whether to stop."""
        sign = 1.0 if mode_of(self.monitor or "loss", self.mode) == "max" else -1.0
        self.scores.append(score)
        gains = [sign * value for value in self.scores]
        now = len(gains) - 1
        if math.isnan(score):
            return True
        if self.best_epoch < 0 or gains[now] > gains[self.best_epoch] + self.min_delta:
            self.best_epoch = now
        if now + 1 < self.min_epochs:
            return False
        if self.rule == "best":
            return now - self.best_epoch >= self.patience
        return now >= self.patience and all(gains[now] <= g + self.min_delta for g in gains[-self.patience - 1 : -1])

    def on_fit_start(self, trainer: Trainer) -> None:
        self.monitor = self.monitor or trainer.monitor

    def on_epoch_end(self, trainer: Trainer, record: Record) -> None:
        if self.monitor not in record:
            raise InputError(
                f"EarlyStopping: the epoch has no {self.monitor!r} to watch.",
                f"one of {', '.join(name for name in record if name not in ('epoch', 'step', 'seconds'))}",
            )
        stop = self.observe(float(record[self.monitor]))
        if self.restore_best and self.best_epoch == len(self.scores) - 1:
            with trainer.as_measured():
                self._best_state = dict(trainer.model.state_dict())
        if stop:
            best = self.scores[self.best_epoch]
            trainer.stop(f"{self.monitor} was best at epoch {self.best_epoch + 1}, with {best:.4g}")

    def on_fit_end(self, trainer: Trainer) -> None:
        if self.restore_best and self._best_state:
            trainer.model.load_state_dict(self._best_state)

    def state_dict(self) -> dict[str, object]:
        return {"scores": self.scores, "best_epoch": self.best_epoch}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        scores = [float(as_number("EarlyStopping", "score", score)) for score in state["scores"]]
        best = as_int("EarlyStopping", "best_epoch", state["best_epoch"])
        if not -1 <= best < max(len(scores), 1):
            raise InputError(f"EarlyStopping: the state {shown(dict(state))}.", "the result of state_dict()")
        self.scores, self.best_epoch = scores, best

    def tensors(self) -> dict[str, Tensor]:
        return self._best_state

    def load_tensors(self, tensors: Mapping[str, Tensor]) -> None:
        self._best_state = dict(tensors)


class StopOnConvergence(Callback):
    r"""Stop when the loss of an epoch changes by no more than the tolerance: \((L_t - L_{t-1})^2 \le \varepsilon\).

    >>> import wonderland as wl
    >>> rule = wl.train.StopOnConvergence(1e-4)
    >>> [rule.observe(loss) for loss in (1.0, 0.5, 0.495)]
    [False, False, True]

    On a plateau that the run would leave again the rule is fooled; EarlyStopping with some patience is not.
    Book, section 9.2.2.
    """

    def __init__(self, tolerance: float = 1e-8, monitor: str = "loss") -> None:
        if not tolerance >= 0:
            raise InputError(f"StopOnConvergence: tolerance={tolerance}.", "a number, 0 or more")
        self.tolerance, self.monitor = tolerance, monitor
        self.last: float | None = None

    def observe(self, value: float) -> bool:
        """Take the next epoch's loss; whether to stop."""
        before, self.last = self.last, value
        return before is not None and (value - before) ** 2 <= self.tolerance

    def on_epoch_end(self, trainer: Trainer, record: Record) -> None:
        if self.observe(float(record[self.monitor])):
            trainer.stop(f"{self.monitor} has converged")

    def state_dict(self) -> dict[str, object]:
        return {"last": self.last}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        last = state["last"]
        self.last = None if last is None else float(as_number("StopOnConvergence", "last", last))


class TimeLimit(Callback):
    """Stop after so many seconds, at the end of a step.

    >>> import wonderland as wl
    >>> wl.train.TimeLimit(60).seconds
    60
    """

    def __init__(self, seconds: float) -> None:
        if not seconds > 0:
            raise InputError(f"TimeLimit: seconds={seconds}.", "a number above 0")
        self.seconds = seconds
        self._end = math.inf

    def on_fit_start(self, trainer: Trainer) -> None:
        self._end = time.monotonic() + self.seconds

    def on_step_end(self, trainer: Trainer) -> None:
        if time.monotonic() >= self._end:
            trainer.stop(f"{self.seconds:g} seconds are over")
