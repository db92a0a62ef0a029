"""Negative log-likelihoods and divergences, as modules."""

from __future__ import annotations

from typing import Any

from ...tensor import Tensor
from .. import functional as F  # noqa: N812 - as everybody calls it
from .loss import Loss


class GaussianNLLLoss(Loss):
    r"""\(\frac12(\ln v + (\mu - y)^2/v)\); see `wl.nn.functional.gaussian_nll_loss`. Book, section 4.1.1.

    >>> import wonderland as wl
    >>> loss = wl.nn.GaussianNLLLoss(full=True)
    >>> print(loss(wl.tensor([1.0]), wl.tensor([0.0]), wl.tensor([4.0])))
    tensor(1.737086)
    """

    def __init__(self, full: bool = False, eps: float = 1e-6, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.full = full
        self.eps = eps

    def forward(self, input: Any, target: Any, var: Any) -> Tensor:
        return F.gaussian_nll_loss(input, target, var, full=self.full, eps=self.eps, reduction=self.reduction)


class HeteroscedasticNLLLoss(Loss):
    r"""\(-\ln\mathcal N(y; f_1, f_2^2)\); see `wl.nn.functional.heteroscedastic_nll_loss`. Book, section 3.2.2.

    >>> import wonderland as wl
    >>> print(wl.nn.HeteroscedasticNLLLoss()(wl.tensor([[1.0, 2.0]]), wl.tensor([0.0])))
    tensor(1.737086)
    """

    def __init__(self, eps: float = 1e-6, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.eps = eps

    def forward(self, input: Any, target: Any) -> Tensor:
        return F.heteroscedastic_nll_loss(input, target, eps=self.eps, reduction=self.reduction)


class LaplaceNLLLoss(Loss):
    r"""\(\ln s + |\mu - y|/s\); see `wl.nn.functional.laplace_nll_loss`.

    >>> import wonderland as wl
    >>> print(wl.nn.LaplaceNLLLoss()(wl.tensor([3.0]), wl.tensor([1.0]), 1.0))
    tensor(2.)
    """

    def __init__(self, full: bool = False, eps: float = 1e-6, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.full = full
        self.eps = eps

    def forward(self, input: Any, target: Any, scale: Any) -> Tensor:
        return F.laplace_nll_loss(input, target, scale, full=self.full, eps=self.eps, reduction=self.reduction)


class PoissonNLLLoss(Loss):
    r"""\(e^x - yx\) of logarithms of rates; see `wl.nn.functional.poisson_nll_loss`.

    >>> import wonderland as wl
    >>> print(wl.nn.PoissonNLLLoss()(wl.tensor([0.0]), wl.tensor([3.0])))
    tensor(1.)
    """

    def __init__(self, log_input: bool = True, full: bool = False, eps: float = 1e-8, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.log_input = log_input
        self.full = full
        self.eps = eps

    def forward(self, input: Any, target: Any) -> Tensor:
        return F.poisson_nll_loss(
            input, target, log_input=self.log_input, full=self.full, eps=self.eps, reduction=self.reduction
        )


class KLDivLoss(Loss):
    r"""\(p\,(\ln p - \ell)\) of log-probabilities; see `wl.nn.functional.kl_div`. Book, section 4.2.2.

    >>> import wonderland as wl
    >>> p, q = wl.tensor([[0.6, 0.3, 0.1]]), wl.full((1, 3), 1 / 3)
    >>> print(wl.nn.KLDivLoss(reduction="batchmean")(wl.log(q), p))
    tensor(0.200667)
    """

    def __init__(self, reduction: str = "mean", log_target: bool = False) -> None:
        super().__init__("sum" if reduction == "batchmean" else reduction)
        self.reduction = reduction
        self.log_target = log_target

    def forward(self, input: Any, target: Any) -> Tensor:
        return F.kl_div(input, target, self.reduction, self.log_target)
