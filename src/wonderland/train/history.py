"""What happened in a run: a record for every epoch."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, TypeAlias

from ..core.arguments import shown
from ..core.errors import InputError
from ..core.showing import as_html
from ..storage.svg import SVG
from ..viz.plot import Curve, plot

Record: TypeAlias = dict[str, Any]  # of an epoch: "epoch", "step", "loss" and all that was measured, by name


class History:
    """The records of a run's epochs, dicts such as `{"epoch": 1, "step": 32, "loss": 0.7, "validation_loss": 0.8}`.

    >>> import wonderland as wl
    >>> history = wl.train.History([{"epoch": 1, "loss": 0.5, "validation_loss": 0.6}, {"epoch": 2, "loss": 0.2}])
    >>> history["loss"], history.names(), len(history)
    ([0.5, 0.2], ['loss', 'validation_loss'], 2)
    >>> history.best("loss")
    {'epoch': 2, 'loss': 0.2}

    `history[name]` are the values of the epochs that have one. `events` are notes such as a reduced learning rate, with
    the step at which they happened; `stopped` says why the run ended before its last epoch, if it did.
    """

    def __init__(self, records: list[Record] | None = None) -> None:
        self.records: list[Record] = records or []
        self.events: list[Record] = []
        self.stopped: str | None = None

    def __len__(self) -> int:
        return len(self.records)

    def __iter__(self) -> Iterator[Record]:
        return iter(self.records)

    def names(self) -> list[str]:
        """The names of everything measured, in the order in which they came up."""
        seen = {name: None for record in self.records for name in record}
        return [name for name in seen if name not in ("epoch", "step", "seconds")]

    def __getitem__(self, name: str) -> list[Any]:
        values = [record[name] for record in self.records if name in record]
        if not values and self.records:
            raise InputError(f"history: nothing is called {name!r}.", f"one of {', '.join(self.names())}")
        return values

    def best(self, name: str, mode: str | None = None) -> Record:
        """The record with the best value: the smallest for losses and errors, or as `mode`, "min" or "max", says."""
        sign = -1.0 if mode_of(name, mode) == "max" else 1.0
        ranked = [(sign * record[name], i) for i, record in enumerate(self.records) if name in record]
        finite = [pair for pair in ranked if not math.isnan(pair[0])]
        if not finite:
            raise InputError(f"history: there is no value of {name!r} yet.", f"one of {', '.join(self.names())}")
        return self.records[min(finite)[1]]

    def gaps(self) -> list[float]:
        """Validation loss minus training loss, epoch by epoch: an estimate of the generalization gap.

        >>> import wonderland as wl
        >>> wl.train.History([{"epoch": 1, "loss": 0.5, "validation_loss": 0.75}]).gaps()
        [0.25]

        Book, section 3.2.1.
        """
        return [r["validation_loss"] - r["loss"] for r in self.records if "loss" in r and "validation_loss" in r]

    def state_dict(self) -> dict[str, object]:
        """All of it as plain data."""
        return {"records": self.records, "events": self.events, "stopped": self.stopped}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take up what `state_dict` gave."""
        records, events, stopped = (state.get(key) for key in ("records", "events", "stopped"))
        for rows in (records, events):
            if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
                raise InputError(f"history: {shown(rows)} are no records of epochs.", "the result of state_dict()")
        if not isinstance(stopped, str | None):
            raise InputError(f"history: stopped={shown(stopped)}.", "a reason, or None")
        self.records, self.events, self.stopped = list(records or []), list(events or []), stopped

    def svg(self, *names: str, title: str = "") -> SVG:
        """Curves over the epochs as an SVG picture; without names, all losses."""
        chosen = names or tuple(name for name in self.names() if name.endswith("loss"))
        curves = []
        for name in chosen:
            points = [(r["epoch"], r[name]) for r in self.records if name in r and math.isfinite(r[name])]
            curves.append(Curve([x for x, _ in points], [y for _, y in points], name))
        return plot(curves, title=title or "training", x_label="epoch")

    def _repr_html_(self) -> str | None:
        return as_html("history", self)

    def __repr__(self) -> str:
        if not self.records:
            return "History(no epochs yet)"
        last = ", ".join(f"{k}={v:.4g}" if isinstance(v, float) else f"{k}={v}" for k, v in self.records[-1].items())
        return f"History({len(self)} epochs; {last})"


# words in the names of measures: of errors, of forecasts, of probabilities
LOWER_IS_BETTER = ("loss", "error", "mse", "mae", "rmse", "gap", "mase", "mape", "smape") + (
    "ece", "mce", "brier", "perplexity", "bits", "nll", "negative",
)  # fmt: skip


def mode_of(name: str, mode: str | None = None) -> str:
    """Whether a smaller ("min") or a larger ("max") value is better: as given, or by the name.

    >>> mode_of("validation_loss"), mode_of("accuracy")
    ('min', 'max')
    """
    if mode not in (None, "min", "max"):
        raise InputError(f"mode={mode!r}.", 'mode="min" or mode="max"')
    words = name.lower().split("_")
    return mode or ("min" if any(word in LOWER_IS_BETTER for word in words) else "max")
