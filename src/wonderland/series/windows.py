"""Windows: stretches of a series, each with what comes after it as its target. Book, section 8.3.1."""

from __future__ import annotations

import numpy as np

from ..core.arguments import as_int
from ..core.errors import ShapeError
from ..core.typing import Array, ArrayLike
from ..data.dataset import as_column


def as_series(name: str, series: ArrayLike) -> Array:
    """An array (time, channels); one without channels gets one."""
    found = as_column(series)
    if found.ndim not in (1, 2) or not found.size:
        raise ShapeError(f"{name}: a series of shape {found.shape}.", "(time, channels), or (time,) for one channel")
    return found[:, None] if found.ndim == 1 else found


def sliding_windows(series: ArrayLike, length: int, stride: int = 1) -> Array:
    """All stretches of `length` times, one every `stride`: (time, channels) to (windows, length, channels).

    >>> import numpy as np, wonderland as wl
    >>> wl.series.sliding_windows(np.arange(5), 3, stride=2)[:, :, 0]
    array([[0, 1, 2],
           [2, 3, 4]])
    """
    x = as_series("sliding_windows", series)
    length = as_int("sliding_windows", "length", length, least=1)
    stride = as_int("sliding_windows", "stride", stride, least=1)
    if len(x) < length:
        raise ShapeError(f"sliding_windows: {len(x)} times are too few for a window of {length}.", "a shorter window")
    return np.ascontiguousarray(np.moveaxis(np.lib.stride_tricks.sliding_window_view(x, length, 0)[::stride], -1, 1))


def make_windows(
    series: ArrayLike, context: int, horizon: int | None = None, *, stride: int = 1, gap: int = 0
) -> tuple[Array, Array]:
    r"""The windows \(X_i = (x_i, \dots, x_{i+t-1})\) of a series and their targets \(y_i = x_{i+t}\).

    >>> import numpy as np, wonderland as wl
    >>> X, y = wl.series.make_windows(np.arange(20), context=12)
    >>> X.shape, y.shape, y[0]  # N - t pairs
    ((8, 12, 1), (8, 1), array([12]))

    X is (windows, context, channels) and y (windows, channels); with a `horizon` y is the next so many values,
    (windows, horizon, channels). `gap` values between the window and its target are left out. `ForecastDataset` makes
    the same without copies, from several series and with more settings. Book, section 8.3.1.
    """
    x = as_series("make_windows", series)
    context = as_int("make_windows", "context", context, least=1)
    ahead = 1 if horizon is None else as_int("make_windows", "horizon", horizon, least=1)
    gap = as_int("make_windows", "gap", gap, least=0)
    whole = sliding_windows(x, context + gap + ahead, stride)
    targets = whole[:, context + gap :]
    return np.ascontiguousarray(whole[:, :context]), np.ascontiguousarray(targets[:, 0] if horizon is None else targets)
