"""Datasets for forecasting: the past as input, the future as target, and splits in the order of time.

The future of one example is the past of another, so examples that are split at random have seen the answers. Splits
here put every target of a later part after all targets of the earlier ones. Book, section 8.3.1.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..core.arguments import as_int, as_list
from ..core.errors import InputError, ShapeError
from ..core.typing import Array, ArrayLike
from ..data.dataset import Dataset, check_rows_finite
from .windows import as_series


class ForecastDataset(Dataset):
    r"""Windows of one or more series with their futures: \(x = (s_i, \dots, s_{i+t-1})\) and \(y\) from \(s_{i+t}\) on.

    >>> import numpy as np, wonderland as wl
    >>> x, y = wl.series.ForecastDataset(np.arange(10), context=4, horizon=2)[1]
    >>> x[:, 0], y[:, 0]
    (array([1, 2, 3, 4]), array([5, 6]))

    `series` is (time, channels), (time,), or a list of such with any lengths. An example is (x, y):

    - x is (context, channels). With `exogenous`, series of the same lengths that are known in advance (hour, holiday,
      price), it is the pair of that and (context + gap + horizon, exogenous channels).
    - y is the next value (channels,), or with a `horizon` the next so many, (horizon, channels); `targets` are the
      channels to predict, all by default. `gap` times in between are left out.
    - With `every_step` y is the next value at each time of the window, (context, channels): \(Y = (s_{i+1}, \dots,
      s_{i+t})\), for causal models, which learn from `context` terms per window (`shift_targets`, `sequence_loss`).

    Windows begin every `stride` times. `within=(start, end)` keeps those whose targets all lie at times from start up
    to end. Book, sections 8.3.1 and 8.3.2.
    """

    def __init__(
        self,
        series: ArrayLike,
        context: int,
        horizon: int | None = None,
        *,
        stride: int = 1,
        gap: int = 0,
        targets: Sequence[int] | None = None,
        exogenous: ArrayLike | None = None,
        every_step: bool = False,
        within: tuple[int, int] | None = None,
    ) -> None:
        name = "ForecastDataset"
        self.series = _many(name, "series", series)
        self.context = as_int(name, "context", context, least=1)
        self.horizon = None if horizon is None else as_int(name, "horizon", horizon, least=1)
        self.stride = as_int(name, "stride", stride, least=1)
        self.gap = as_int(name, "gap", gap, least=0)
        self.every_step = bool(every_step)
        if self.every_step and (self.gap or self.horizon not in (None, 1)):
            raise InputError(
                f"{name}: every_step with horizon={horizon}, gap={gap}.", "the next value at each time: neither"
            )
        self.exogenous = None if exogenous is None else _many(name, "exogenous", exogenous)
        if self.exogenous is not None and [*map(len, self.exogenous)] != [*map(len, self.series)]:
            raise ShapeError(
                f"{name}: exogenous series of lengths {[*map(len, self.exogenous)]} for series of lengths "
                f"{[*map(len, self.series)]}.",
                "the same times in both",
            )
        self.targets = None if targets is None else _columns(name, targets, self.series[0].shape[1])
        self.length = self.context + self.gap + (self.horizon or 1)  # times of a window and its targets
        self.first = 1 if self.every_step else self.context + self.gap  # the first target of a window
        # All series stand in one array, so that a batch is one lookup; no window reaches from one into the next.
        self._values = np.concatenate(self.series)
        self._known = None if self.exogenous is None else np.concatenate(self.exogenous)
        self._offsets = np.cumsum([0, *map(len, self.series)])
        self._starts = np.concatenate([self._starts_in(k, within) for k in range(len(self.series))])
        if not len(self._starts):
            raise InputError(
                f"{name}: no window: series of {', '.join(str(len(s)) for s in self.series[:5])} times, windows of "
                f"{self.length} with their targets{'' if within is None else f', targets within {within}'}.",
                "a shorter context or horizon",
            )

    def _starts_in(self, which: int, within: tuple[int, int] | None) -> Array:
        """The places where windows of a series start."""
        starts = np.arange(0, len(self.series[which]) - self.length + 1, self.stride)
        if within is not None:
            starts = starts[(starts + self.first >= within[0]) & (starts + self.length <= within[1])]
        return starts + self._offsets[which]

    def __len__(self) -> int:
        return len(self._starts)

    def target_times(self, index: int) -> tuple[int, Array]:
        """Which series example `index` comes from, and the times of its targets."""
        start = self._starts[self._place(index)]
        which = int(np.searchsorted(self._offsets, start, side="right")) - 1
        return which, np.arange(self.first, self.length) + start - self._offsets[which]

    def __getitem__(self, index: int) -> tuple[Any, Array]:
        x, y = self.__getitems__([index])
        return (x[0] if self._known is None else (x[0][0], x[1][0])), y[0]

    def __getitems__(self, indices: Sequence[int] | Array) -> tuple[Any, Array]:
        places = np.array([self._place(index) for index in np.asarray(indices).tolist()])
        starts = self._starts[places][:, None]
        x: Any = self._values[starts + np.arange(self.context)]  # (windows, context, channels)
        if self._known is not None:
            x = (x, self._known[starts + np.arange(self.length)])
        y = self._values[starts + np.arange(self.first, self.length)]
        y = y if self.targets is None else y[..., self.targets]
        return x, y[:, 0] if self.horizon is None and not self.every_step else y


def forecast_split(
    series: ArrayLike,
    context: int,
    horizon: int | None = None,
    *,
    val_size: float = 0.0,
    test_size: float = 0.25,
    **settings: Any,
) -> tuple[ForecastDataset, ...]:
    """(train, test) or, with a `val_size`, (train, validation, test) datasets, each later than the one before.

    >>> import numpy as np, wonderland as wl
    >>> train, test = wl.series.forecast_split(np.arange(20), context=4, test_size=0.25)
    >>> int(train[-1][1][0]), int(test[0][1][0])  # the last target to learn, the first to be tested on
    (14, 15)

    Sizes are shares of the times of the longest series. Targets lie in their own part alone; the input of a test may
    reach back into the training part, as it will when the model is used. Other arguments are those of
    `ForecastDataset`. Fit scalers on the training part only: `series[:cut]`. Book, section 8.3.1.
    """
    parts = _many("forecast_split", "series", series)
    n = max(map(len, parts))
    for what, size in (("val_size", val_size), ("test_size", test_size)):
        if not 0 <= size < 1:
            raise InputError(f"forecast_split: {what}={size}.", "a share of the times, from 0 to 1")
    last, middle = n - round(n * test_size), n - round(n * test_size) - round(n * val_size)
    bounds = [(0, middle), (middle, last), (last, n)] if val_size else [(0, middle), (last, n)]
    if any(start >= end for start, end in bounds):
        raise InputError(
            f"forecast_split: {n} times in parts up to {[end for _, end in bounds]}.", "sizes that leave some in each"
        )
    return tuple(ForecastDataset(series, context, horizon, within=bound, **settings) for bound in bounds)


def _many(name: str, what: str, series: Any) -> list[Array]:
    """A list of arrays (time, channels), with the same channels and without NaN."""
    several = isinstance(series, (list, tuple)) and len(series) and np.ndim(series[0]) > 0
    found = [as_series(name, one) for one in (series if several else [series])]
    if len({one.shape[1] for one in found}) > 1:
        raise ShapeError(f"{name}: {what} with {sorted({one.shape[1] for one in found})} channels.", "the same in all")
    for one in found:
        check_rows_finite(name, one, what)
    return found


def _columns(name: str, targets: Sequence[int], channels: int) -> list[int]:
    found = [as_int(name, "a target", c) for c in as_list(name, "targets", targets)]
    if not found or not all(-channels <= c < channels for c in found):
        raise InputError(f"{name}: targets={targets} of {channels} channels.", f"channels from 0 to {channels - 1}")
    return found
