"""Forecasts without a model, which a model has to beat: the last value, the last season, the trend, the mean.

Each takes a series (..., time, channels) and gives (..., horizon, channels).
"""

from __future__ import annotations

from .. import arrays
from ..arrays.conversion import as_real, as_tensor
from ..core.arguments import as_int
from ..core.errors import ShapeError
from ..core.tensor import Tensor
from ..core.typing import ArrayLike


def naive(x: ArrayLike, horizon: int = 1) -> Tensor:
    r"""\(\hat x_{n+h} = x_n\): nothing changes. No forecast of a random walk has a smaller error.

    >>> import wonderland as wl
    >>> wl.series.naive(wl.tensor([[1.0], [4.0], [2.0]]), horizon=3)[:, 0]
    tensor([2., 2., 2.])
    """
    return seasonal_naive(x, horizon, 1)


def seasonal_naive(x: ArrayLike, horizon: int, period: int) -> Tensor:
    r"""\(\hat x_{n+h} = x_{n+h-p}\): the last season again and again.

    >>> import wonderland as wl
    >>> wl.series.seasonal_naive(wl.tensor([[0.0], [1.0], [2.0], [3.0]]), horizon=5, period=2)[:, 0]
    tensor([2., 3., 2., 3., 2.])
    """
    period = as_int("seasonal_naive", "period", period, least=1)
    x, horizon = _series("seasonal_naive", as_tensor("seasonal_naive", x), horizon, period)
    season = x[..., x.shape[-2] - period :, :]
    return arrays.concat([season] * -(-horizon // period), axis=-2)[..., :horizon, :]


def drift(x: ArrayLike, horizon: int = 1) -> Tensor:
    r"""\(\hat x_{n+h} = x_n + h\,\frac{x_n - x_1}{n - 1}\): on along the line from the first to the last value.

    >>> import wonderland as wl
    >>> wl.series.drift(wl.tensor([[1.0], [0.0], [3.0]]), horizon=2)[:, 0]
    tensor([4., 5.])
    """
    x, horizon = _series("drift", as_real("drift", x), horizon, 2)
    last = x[..., -1:, :]
    slope = (last - x[..., :1, :]) / (x.shape[-2] - 1)
    return last + slope * arrays.arange(1, horizon + 1, dtype=x.dtype)[:, None]


def historical_mean(x: ArrayLike, horizon: int = 1) -> Tensor:
    r"""\(\hat x_{n+h} = \frac1n \sum_i x_i\).

    >>> import wonderland as wl
    >>> wl.series.historical_mean(wl.tensor([[1.0], [3.0]]), horizon=2)[:, 0]
    tensor([2., 2.])
    """
    x, horizon = _series("historical_mean", as_real("historical_mean", x), horizon, 1)
    mean = arrays.mean(x, axis=-2, keepdims=True)
    return arrays.broadcast_to(mean, (*x.shape[:-2], horizon, x.shape[-1]))


def _series(name: str, x: Tensor, horizon: int, least: int) -> tuple[Tensor, int]:
    if x.ndim < 2 or x.shape[-2] < least:
        raise ShapeError(f"{name}: a series of shape {x.shape}.", f"(..., time, channels) with {least} times or more")
    return x, as_int(name, "horizon", horizon, least=1)
