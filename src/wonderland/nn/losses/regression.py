"""Losses of numbers, as modules."""

from __future__ import annotations

from typing import Any

from ...tensor import Tensor
from .. import functional as F  # noqa: N812 - as everybody calls it
from .loss import Loss


class MSELoss(Loss):
    r"""\((\hat y - y)^2\). Book, section 4.1.1.

    >>> import wonderland as wl
    >>> print(wl.nn.MSELoss()(wl.tensor([1.0, 2.0]), wl.tensor([1.0, 4.0])))
    tensor(2.)
    """

    def forward(self, input: Any, target: Any) -> Tensor:
        return F.mse_loss(input, target, self.reduction)


class L1Loss(Loss):
    r"""\(|\hat y - y|\). Book, section 4.1.1.

    >>> import wonderland as wl
    >>> print(wl.nn.L1Loss()(wl.tensor([1.0, 2.0]), wl.tensor([1.0, 4.0])))
    tensor(1.)
    """

    def forward(self, input: Any, target: Any) -> Tensor:
        return F.l1_loss(input, target, self.reduction)


class HuberLoss(Loss):
    """Squared for small errors, linear for large ones; see `wl.nn.functional.huber_loss`.

    >>> import wonderland as wl
    >>> wl.nn.HuberLoss(reduction="none")(wl.tensor([1.0, 4.0]), wl.zeros(2))
    tensor([0.5, 3.5])
    """

    def __init__(self, reduction: str = "mean", delta: float = 1.0) -> None:
        super().__init__(reduction)
        self.delta = delta

    def forward(self, input: Any, target: Any) -> Tensor:
        return F.huber_loss(input, target, self.reduction, self.delta)


class SmoothL1Loss(Loss):
    """The Huber loss over `beta`; see `wl.nn.functional.smooth_l1_loss`.

    >>> import wonderland as wl
    >>> wl.nn.SmoothL1Loss(reduction="none", beta=2.0)(wl.tensor([1.0, 4.0]), wl.zeros(2))
    tensor([0.25, 3.  ])
    """

    def __init__(self, reduction: str = "mean", beta: float = 1.0) -> None:
        super().__init__(reduction)
        self.beta = beta

    def forward(self, input: Any, target: Any) -> Tensor:
        return F.smooth_l1_loss(input, target, self.reduction, self.beta)


class LogCoshLoss(Loss):
    r"""\(\ln\cosh(\hat y - y)\); see `wl.nn.functional.log_cosh_loss`.

    >>> import wonderland as wl
    >>> print(wl.nn.LogCoshLoss()(wl.tensor([0.5]), wl.zeros(1)))
    tensor(0.120115)
    """

    def forward(self, input: Any, target: Any) -> Tensor:
        return F.log_cosh_loss(input, target, reduction=self.reduction)


class QuantileLoss(Loss):
    r"""The pinball loss, whose minimiser is a quantile; see `wl.nn.functional.quantile_loss`.

    >>> import wonderland as wl
    >>> print(wl.nn.QuantileLoss(0.9)(wl.tensor([0.0]), wl.tensor([1.0])))
    tensor(0.9)
    """

    def __init__(self, quantile: float = 0.5, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.quantile = quantile

    def forward(self, input: Any, target: Any) -> Tensor:
        return F.quantile_loss(input, target, quantile=self.quantile, reduction=self.reduction)
