"""Series made stationary, and back again: windows scaled by their own statistics, and differences.

`wl.data.StandardScaler` scales by statistics of the training data; these need no data but the window itself. Book,
section 8.3.1.
"""

from __future__ import annotations

from typing import NamedTuple

from .. import arrays
from ..arrays.conversion import as_inexact, as_real, as_tensor, promote_inexact
from ..core.arguments import as_int
from ..core.broadcasting import normalize_axis
from ..core.errors import ShapeError
from ..core.tensor import Tensor
from ..core.typing import ArrayLike


class Normalized(NamedTuple):
    """A series with mean 0 and deviation 1, and the mean and deviation that it had."""

    values: Tensor
    center: Tensor
    scale: Tensor

    def restore(self, y: Tensor) -> Tensor:
        """A forecast (..., horizon, channels) in the units of the series."""
        return y * self.scale + self.center


def normalize(x: ArrayLike, mask: ArrayLike | None = None, eps: float = 1e-5) -> Normalized:
    r"""\((x - \mu) / \sqrt{\sigma^2 + \epsilon}\) with the statistics of each series over its own time.

    >>> import wonderland as wl
    >>> series = wl.tensor([[1.0], [3.0]])
    >>> values, center, scale = wl.series.normalize(series, eps=0.0)
    >>> values[:, 0], center, scale
    (tensor([-1.,  1.]), tensor([[2.]]), tensor([[1.]]))

    x is (..., time, channels). `mask` (..., time) is False at padding, which has no part in the statistics and becomes
    0. `.restore(forecast)` gives the units back, so a model `lambda x: n.restore(f(n.values))` with `n = normalize(x)`
    follows the level and the scale of each series (reversible instance normalisation). Book, section 8.3.1.
    """
    x = as_real("normalize", x)
    if x.ndim < 2:
        raise ShapeError(f"normalize: a series of shape {x.shape}.", "(..., time, channels)")
    if mask is None:
        center = arrays.mean(x, axis=-2, keepdims=True)
        scale = arrays.sqrt(arrays.mean(arrays.square(x - center), axis=-2, keepdims=True) + eps)
        return Normalized((x - center) / scale, center, scale)
    counted = as_time_mask("normalize", mask, x.shape[:-1])[..., None]
    count = arrays.maximum(arrays.sum(arrays.astype(counted, x.dtype), axis=-2, keepdims=True), 1.0)
    center = arrays.sum(arrays.where(counted, x, 0.0), axis=-2, keepdims=True) / count
    apart = arrays.where(counted, x - center, 0.0)
    scale = arrays.sqrt(arrays.sum(arrays.square(apart), axis=-2, keepdims=True) / count + eps)
    return Normalized(apart / scale, center, scale)


def as_time_mask(name: str, mask: ArrayLike, shape: tuple[int, ...]) -> Tensor:
    """A mask of booleans for steps of a shape (..., time)."""
    mask = as_tensor(name, arrays.asarray(mask))
    if mask.shape != shape:
        raise ShapeError(f"{name}: a mask of shape {mask.shape} for steps of shape {shape}.", f"a mask of {shape}")
    return mask != 0


def difference(x: ArrayLike, lag: int = 1, axis: int = -2) -> Tensor:
    r"""\(d_t = x_t - x_{t-l}\): steps instead of levels, or with the period as lag what a season does not explain.

    >>> import wonderland as wl
    >>> wl.series.difference(wl.tensor([[1.0], [4.0], [9.0]]))[:, 0]
    tensor([3., 5.])

    It is shorter by `lag`. `integrate` undoes it; both twice for differences of second order.
    """
    x = as_inexact("difference", x)
    lag, axis = as_int("difference", "lag", lag, least=1), normalize_axis("difference", axis, x.ndim)
    if x.shape[axis] <= lag:
        raise ShapeError(f"difference: {x.shape[axis]} times and lag={lag}.", "a series longer than the lag")
    x = arrays.moveaxis(x, axis, 0)
    return arrays.moveaxis(x[lag:] - x[:-lag], 0, axis)


def integrate(d: ArrayLike, start: ArrayLike, axis: int = -2) -> Tensor:
    r"""\(x_t = x_{t-l} + d_t\), the inverse of `difference`: `start` are the l values before the first difference.

    >>> import wonderland as wl
    >>> x = wl.tensor([[1.0], [4.0], [9.0]])
    >>> wl.series.integrate(wl.series.difference(x), x[:1])[:, 0]
    tensor([1., 4., 9.])

    The result begins with `start`. For forecasts of differences, `start` are the last values that were observed.
    """
    d, start = promote_inexact("integrate", d, start)
    axis = normalize_axis("integrate", axis, d.ndim)
    if start.ndim != d.ndim or start.shape[:axis] != d.shape[:axis] or start.shape[axis + 1 :] != d.shape[axis + 1 :]:
        raise ShapeError(
            f"integrate: a start of shape {start.shape} for differences of shape {d.shape}.",
            f"the same but for axis {axis}, where it has as many values as the lag",
        )
    if not start.shape[axis]:
        raise ShapeError(f"integrate: a start of shape {start.shape} is empty.", "as many values as the lag")
    x = arrays.concat([arrays.moveaxis(start, axis, 0), arrays.moveaxis(d, axis, 0)])
    lag, n = start.shape[axis], x.shape[0]
    rows = -(-n // lag)
    x = arrays.pad(x, ((0, rows * lag - n),) + ((0, 0),) * (x.ndim - 1))
    sums = arrays.cumsum(arrays.reshape(x, (rows, lag, *x.shape[1:])), axis=0)  # each place of the season by itself
    return arrays.moveaxis(arrays.reshape(sums, x.shape)[:n], 0, axis)
