"""Losses of numbers, as modules."""

from __future__ import annotations

from .. import functional as F  # noqa: N812 - as everybody calls it
from .loss import PairLoss

__all__ = ["MSELoss", "L1Loss", "HuberLoss", "SmoothL1Loss", "LogCoshLoss", "QuantileLoss"]


class MSELoss(PairLoss, function=F.mse_loss):
    r"""\((\hat y - y)^2\). Book, section 4.1.1.

    >>> import wonderland as wl
    >>> print(wl.nn.MSELoss()(wl.tensor([1.0, 2.0]), wl.tensor([1.0, 4.0])))
    tensor(2.)
    """


class L1Loss(PairLoss, function=F.l1_loss):
    r"""\(|\hat y - y|\). Book, section 4.1.1.

    >>> import wonderland as wl
    >>> print(wl.nn.L1Loss()(wl.tensor([1.0, 2.0]), wl.tensor([1.0, 4.0])))
    tensor(1.)
    """


class HuberLoss(PairLoss, function=F.huber_loss):
    """Squared for small errors, linear for large ones; see `wl.nn.functional.huber_loss`.

    >>> import wonderland as wl
    >>> wl.nn.HuberLoss(reduction="none")(wl.tensor([1.0, 4.0]), wl.zeros(2))
    tensor([0.5, 3.5])
    """

    def __init__(self, reduction: str = "mean", delta: float = 1.0) -> None:
        super().__init__(reduction)
        self.delta = delta


class SmoothL1Loss(PairLoss, function=F.smooth_l1_loss):
    """The Huber loss over `beta`; see `wl.nn.functional.smooth_l1_loss`.

    >>> import wonderland as wl
    >>> wl.nn.SmoothL1Loss(reduction="none", beta=2.0)(wl.tensor([1.0, 4.0]), wl.zeros(2))
    tensor([0.25, 3.  ])
    """

    def __init__(self, reduction: str = "mean", beta: float = 1.0) -> None:
        super().__init__(reduction)
        self.beta = beta


class LogCoshLoss(PairLoss, function=F.log_cosh_loss):
    r"""\(\ln\cosh(\hat y - y)\); see `wl.nn.functional.log_cosh_loss`.

    >>> import wonderland as wl
    >>> print(wl.nn.LogCoshLoss()(wl.tensor([0.5]), wl.zeros(1)))
    tensor(0.120115)
    """


class QuantileLoss(PairLoss, function=F.quantile_loss):
    r"""The pinball loss, whose minimiser is a quantile; see `wl.nn.functional.quantile_loss`.

    >>> import wonderland as wl
    >>> print(wl.nn.QuantileLoss(0.9)(wl.tensor([0.0]), wl.tensor([1.0])))
    tensor(0.9)
    """

    def __init__(self, quantile: float = 0.5, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.quantile = quantile
