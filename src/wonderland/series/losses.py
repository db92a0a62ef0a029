"""Losses at every step of a sequence, and the targets they compare with. Book, section 8.3.2."""

from __future__ import annotations

from collections.abc import Callable

from .. import arrays
from ..arrays.conversion import as_tensor, promote
from ..core.arguments import as_function
from ..core.errors import InputError, ShapeError
from ..core.tensor import Tensor
from ..core.typing import ArrayLike
from ..nn.functional.losses.reduction import REDUCTIONS, counted_mean, reduced
from ..nn.functional.losses.regression import mse_loss
from .normalization import as_time_mask


def shift_targets(x: ArrayLike, y: ArrayLike) -> Tensor:
    r"""\(Y = (X_2, \dots, X_t, y)\): the next value at each time. Book, section 8.3.2.

    >>> import wonderland as wl
    >>> wl.series.shift_targets(wl.tensor([[1.0], [2.0], [3.0]]), wl.tensor([4.0]))[:, 0]
    tensor([2., 3., 4.])

    x is (..., time, channels) and y (..., channels).
    """
    x, y = promote("shift_targets", as_tensor("shift_targets", x), as_tensor("shift_targets", y))
    if x.ndim < 2 or y.shape != (*x.shape[:-2], x.shape[-1]):
        raise ShapeError(
            f"shift_targets: the value of shape {y.shape} after windows of shape {x.shape}.",
            "(..., time, channels) and (..., channels)",
        )
    return arrays.concat([x[..., 1:, :], y[..., None, :]], axis=-2)


def sequence_loss(
    predictions: ArrayLike,
    targets: ArrayLike,
    mask: ArrayLike | None = None,
    *,
    loss: Callable[..., Tensor] = mse_loss,
    reduction: str = "mean",
) -> Tensor:
    r"""A loss at every step, \(\sum_{i=1}^{t} \|\hat Y_i - Y_i\|^2\) with `reduction="sum"`: t terms per sequence.

    >>> import wonderland as wl
    >>> Y = wl.zeros((2, 3, 1))
    >>> mask = wl.tensor([[True, True, True], [True, False, False]])
    >>> print(wl.series.sequence_loss(Y + 2.0, Y, mask, reduction="sum"))
    tensor(16.)

    `predictions` are those of a causal model, whose output at step i has seen inputs up to i; `targets` are one step
    ahead (`shift_targets`). `mask` (batch, time) is False at steps that do not count: padding, or a prompt. The mean is
    over what counts. `loss` is any of `wl.nn.functional` that has `reduction="none"`: `cross_entropy` for logits
    (batch, time, classes) and classes (batch, time). Book, E.8.6.
    """
    if reduction not in REDUCTIONS:
        raise InputError(f"sequence_loss: reduction={reduction!r}.", '"mean", "sum" or "none"')
    losses = as_function("sequence_loss", loss)(predictions, targets, reduction="none")
    if mask is None:
        return reduced("sequence_loss", losses, reduction)
    steps = arrays.asarray(mask).shape
    counted = as_time_mask("sequence_loss", mask, losses.shape[: len(steps)])
    counted = arrays.reshape(counted, (*steps, *[1] * (losses.ndim - len(steps))))
    return counted_mean("sequence_loss", losses, arrays.broadcast_to(counted, losses.shape), None, reduction)
