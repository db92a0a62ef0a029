r"""Losses of predicted numbers: functions of the error \(d = \hat y - y\)."""

from __future__ import annotations

import math

import numpy as np

from .... import arrays
from ....core.fused import fused
from ....core.tensor import Tensor
from ....core.typing import Array, ArrayLike
from ....primitives.structure import sum_
from .cautions import warn_of_classes
from .labels import refuse_texts
from .reduction import check_setting, pair, reduced

__all__ = ["huber_loss", "l1_loss", "log_cosh_loss", "mse_loss", "quantile_loss", "smooth_l1_loss"]


def mse_loss(input: ArrayLike, target: ArrayLike, reduction: str = "mean") -> Tensor:
    r"""The squared error \((\hat y - y)^2\), with derivative \(2(\hat y - y)\). Book, section 4.1.1.

    >>> import wonderland as wl
    >>> print(wl.nn.functional.mse_loss(wl.tensor([1.0, 2.0]), wl.tensor([1.0, 4.0])))
    tensor(2.)
    """
    prediction, target = _numbers("mse_loss", input, target)
    if reduction == "mean" and prediction.shape and prediction.size:
        return _mean_square(prediction, target)
    return reduced("mse_loss", arrays.square(prediction - target), reduction)


@fused(
    single=1 << 17,
    jvp=(
        lambda t, out, prediction, target: arrays.mean(2 * (prediction - target) * t),
        lambda t, out, prediction, target: arrays.mean(2 * (target - prediction) * t),
    ),
    of_arrays=lambda prediction, target: _mean_of(np.square(prediction - target)),
)
def _mean_square(prediction: Tensor, target: Tensor) -> Tensor:
    return arrays.mean(arrays.square(prediction - target))


def _mean_of(x: Array) -> Array:
    total: Array = sum_.impl(x, tuple(range(x.ndim)))
    return total / x.dtype.type(x.size)


def l1_loss(input: ArrayLike, target: ArrayLike, reduction: str = "mean") -> Tensor:
    r"""The absolute error \(|\hat y - y|\). Book, section 4.1.1.

    >>> import wonderland as wl
    >>> print(wl.nn.functional.l1_loss(wl.tensor([1.0, 2.0]), wl.tensor([1.0, 4.0])))
    tensor(1.)
    """
    prediction, target = _numbers("l1_loss", input, target)
    return reduced("l1_loss", arrays.abs(prediction - target), reduction)


def huber_loss(input: ArrayLike, target: ArrayLike, reduction: str = "mean", delta: float = 1.0) -> Tensor:
    r"""\(\frac12 d^2\) for errors \(|d| \le \delta\), and \(\delta(|d| - \frac12\delta)\) for larger ones.

    >>> import wonderland as wl
    >>> wl.nn.functional.huber_loss(wl.tensor([1.0, 4.0]), wl.zeros(2), reduction="none")
    tensor([0.5, 3.5])
    """
    prediction, target = _numbers("huber_loss", input, target)
    check_setting("huber_loss", "delta", delta, delta > 0, "delta > 0")
    d = arrays.abs(prediction - target)
    return reduced("huber_loss", arrays.where(d <= delta, 0.5 * d * d, delta * (d - 0.5 * delta)), reduction)


def smooth_l1_loss(input: ArrayLike, target: ArrayLike, reduction: str = "mean", beta: float = 1.0) -> Tensor:
    r"""\(\frac{1}{2\beta} d^2\) for errors \(|d| < \beta\), and \(|d| - \frac12\beta\) for larger ones.

    >>> import wonderland as wl
    >>> wl.nn.functional.smooth_l1_loss(wl.tensor([1.0, 4.0]), wl.zeros(2), reduction="none", beta=2.0)
    tensor([0.25, 3.  ])
    """
    prediction, target = _numbers("smooth_l1_loss", input, target)
    check_setting("smooth_l1_loss", "beta", beta, beta >= 0, "beta >= 0")
    d = arrays.abs(prediction - target)
    if beta:
        d = arrays.where(d < beta, d * d * (0.5 / beta), d - 0.5 * beta)
    return reduced("smooth_l1_loss", d, reduction)


def log_cosh_loss(input: ArrayLike, target: ArrayLike, reduction: str = "mean") -> Tensor:
    r"""\(\ln\cosh d\): about \(\frac12 d^2\) for small errors, \(|d| - \ln 2\) for large ones, smooth everywhere.

    >>> import wonderland as wl
    >>> wl.nn.functional.log_cosh_loss(wl.tensor([0.0, 0.5]), wl.zeros(2), reduction="none")
    tensor([0.        , 0.12011451])
    """
    prediction, target = _numbers("log_cosh_loss", input, target)
    d = prediction - target
    small = arrays.abs(d) < 1  # where cosh d = 1 + 2 sinh(d/2)^2 keeps the digits
    near = arrays.log1p(2.0 * arrays.square(arrays.sinh(0.5 * arrays.where(small, d, 0.0))))
    far = arrays.abs(d) + arrays.softplus(-2.0 * arrays.abs(d)) - math.log(2.0)
    return reduced("log_cosh_loss", arrays.where(small, near, far), reduction)


def quantile_loss(input: ArrayLike, target: ArrayLike, quantile: float = 0.5, reduction: str = "mean") -> Tensor:
    r"""The pinball loss \(\max(q\,(y - \hat y),\ (q - 1)(y - \hat y))\): its minimiser is the q-quantile of y.

    >>> import wonderland as wl
    >>> wl.nn.functional.quantile_loss(wl.tensor([0.0, 2.0]), wl.ones(2), quantile=0.9, reduction="none")
    tensor([0.9, 0.1])

    Half the absolute error for q = 0.5, whose minimiser is the median. Book, section 4.1.1.
    """
    check_setting("quantile_loss", "quantile", quantile, 0.0 < quantile < 1.0, "a number between 0 and 1")
    prediction, target = _numbers("quantile_loss", input, target)
    d = target - prediction
    return reduced("quantile_loss", arrays.maximum(quantile * d, (quantile - 1.0) * d), reduction)


def _numbers(name: str, prediction: ArrayLike, target: ArrayLike) -> list[Tensor]:
    refuse_texts(name, target)
    warn_of_classes(name, prediction, target)
    return pair(name, prediction, target)
