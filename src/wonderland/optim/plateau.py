"""A learning rate that falls when a metric stops improving."""

from __future__ import annotations

import math
from collections.abc import Mapping

from ..core.arguments import as_int, as_number
from ..core.errors import InputError


class Plateau:
    r"""\(\eta \leftarrow \gamma\eta\) after more than `patience` steps without a better metric; `ReduceLROnPlateau`.

    >>> rate = Plateau(0.1, factor=0.5, patience=1)
    >>> [rate.step(loss) for loss in (3.0, 2.0, 2.0, 2.0, 1.0)]
    [0.1, 0.1, 0.1, 0.05, 0.05]

    The metric improves if it is below (`mode="max"`: above) the best by more than `threshold`: a part of the best, or
    with `threshold_mode="abs"` an amount. After a fall, `cooldown` steps do not count; the rate stays above `min_lr`,
    and changes smaller than `eps` are left out. A metric that is not a number is never better.

    As a schedule, `rate(step)` is the rate of now; in the first `warmup_steps` steps it rises to it in a straight line:

    >>> rate = Plateau(0.1, warmup_steps=2)
    >>> [rate(step) for step in range(4)]
    [0.0, 0.05, 0.1, 0.1]
    """

    def __init__(
        self,
        lr: float,
        mode: str = "min",
        factor: float = 0.1,
        patience: int = 10,
        threshold: float = 1e-4,
        threshold_mode: str = "rel",
        cooldown: int = 0,
        min_lr: float = 0.0,
        eps: float = 1e-8,
        *,
        warmup_steps: int = 0,
    ) -> None:
        if mode not in ("min", "max") or threshold_mode not in ("rel", "abs"):
            raise InputError(
                f"Plateau: mode={mode!r} and threshold_mode={threshold_mode!r}.", '"min" or "max"; "rel" or "abs"'
            )
        if not 0 < as_number("Plateau", "factor", factor) < 1:
            raise InputError(f"Plateau: factor={factor}.", "a factor between 0 and 1")
        if not as_number("Plateau", "lr", lr) >= 0:
            raise InputError(f"Plateau: lr={lr}.", "a learning rate, 0 or more")
        self.lr, self.mode, self.factor, self.threshold = float(lr), mode, factor, threshold
        self.patience, self.cooldown = (
            as_int("Plateau", "patience", patience, 0),
            as_int("Plateau", "cooldown", cooldown, 0),
        )
        self.threshold_mode, self.min_lr, self.eps = threshold_mode, min_lr, eps
        self.warmup_steps = as_int("Plateau", "warmup_steps", warmup_steps, 0)
        self.best: float | None = None
        self.bad_steps = 0
        self.resting = 0

    def __call__(self, step: int | None = None) -> float:
        if step is None or step >= self.warmup_steps:
            return self.lr
        return self.lr * step / self.warmup_steps

    def step(self, metric: float) -> float:
        """Take the metric of an epoch; the rate from now on."""
        value = float(as_number("Plateau", "metric", metric))
        if self._is_better(value):
            self.best, self.bad_steps = value, 0
        else:
            self.bad_steps += 1
        if self.resting:
            self.resting -= 1
            self.bad_steps = 0
        if self.bad_steps > self.patience:
            lower = max(self.lr * self.factor, self.min_lr)
            if self.lr - lower > self.eps:
                self.lr = lower
            self.resting, self.bad_steps = self.cooldown, 0
        return self.lr

    def _is_better(self, value: float) -> bool:
        if self.best is None:
            return not math.isnan(value)
        sign = 1.0 if self.mode == "min" else -1.0
        if self.threshold_mode == "abs":
            return value * sign < self.best * sign - self.threshold
        return value * sign < self.best * sign * (1.0 - sign * self.threshold)

    def state_dict(self) -> dict[str, float | None]:
        """What changes, as plain numbers.

        >>> Plateau(0.1).state_dict()
        {'lr': 0.1, 'best': None, 'bad_steps': 0, 'resting': 0}
        """
        return {"lr": self.lr, "best": self.best, "bad_steps": self.bad_steps, "resting": self.resting}

    def load_state_dict(self, state: Mapping[str, object]) -> None:
        """Put a saved state back."""
        if set(state) != set(self.state_dict()):
            raise InputError(f"Plateau: a state with {sorted(state)}.", f"the keys {sorted(self.state_dict())}")
        for name, value in state.items():
            if not (name == "best" and value is None):
                float(as_number("Plateau", name, value))  # which fails for integers beyond all numbers
        for name, value in state.items():
            setattr(self, name, value)
