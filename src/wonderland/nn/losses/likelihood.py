"""Negative log-likelihoods and divergences, as modules."""

from __future__ import annotations

from ...core.tensor import Tensor
from ...core.typing import ArrayLike
from .. import functional as F  # noqa: N812 - as everybody calls it
from .loss import Loss, PairLoss

__all__ = ["GaussianNLLLoss", "HeteroscedasticNLLLoss", "LaplaceNLLLoss", "PoissonNLLLoss", "KLDivLoss"]


class GaussianNLLLoss(Loss, function=F.gaussian_nll_loss):
    r"""\(\frac12(\ln v + (\mu - y)^2/v)\); see `wl.nn.functional.gaussian_nll_loss`. Book, section 4.1.1.

    >>> import wonderland as wl
    >>> loss = wl.nn.GaussianNLLLoss(full=True)
    >>> print(loss(wl.tensor([1.0]), wl.tensor([0.0]), wl.tensor([4.0])))
    tensor(1.737086)
    """

    def __init__(self, full: bool = False, eps: float = 1e-6, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.full, self.eps = full, eps

    def forward(self, input: ArrayLike, target: ArrayLike, var: ArrayLike) -> Tensor:
        return self._applied(input, target, var)


class HeteroscedasticNLLLoss(PairLoss, function=F.heteroscedastic_nll_loss):
    r"""\(-\ln\mathcal N(y; f_1, f_2^2)\); see `wl.nn.functional.heteroscedastic_nll_loss`. Book, section 3.2.2.

    >>> import wonderland as wl
    >>> print(wl.nn.HeteroscedasticNLLLoss()(wl.tensor([[1.0, 2.0]]), wl.tensor([0.0])))
    tensor(1.737086)
    """

    def __init__(self, eps: float = 1e-6, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.eps = eps


class LaplaceNLLLoss(Loss, function=F.laplace_nll_loss):
    r"""\(\ln s + |\mu - y|/s\); see `wl.nn.functional.laplace_nll_loss`.

    >>> import wonderland as wl
    >>> print(wl.nn.LaplaceNLLLoss()(wl.tensor([3.0]), wl.tensor([1.0]), 1.0))
    tensor(2.)
    """

    def __init__(self, full: bool = False, eps: float = 1e-6, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.full, self.eps = full, eps

    def forward(self, input: ArrayLike, target: ArrayLike, scale: ArrayLike) -> Tensor:
        return self._applied(input, target, scale)


class PoissonNLLLoss(PairLoss, function=F.poisson_nll_loss):
    r"""\(e^x - yx\) of logarithms of rates; see `wl.nn.functional.poisson_nll_loss`.

    >>> import wonderland as wl
    >>> print(wl.nn.PoissonNLLLoss()(wl.tensor([0.0]), wl.tensor([3.0])))
    tensor(1.)
    """

    def __init__(self, log_input: bool = True, full: bool = False, eps: float = 1e-8, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.log_input, self.full, self.eps = log_input, full, eps


class KLDivLoss(PairLoss, function=F.kl_div):
    r"""\(p\,(\ln p - \ell)\) of log-probabilities; see `wl.nn.functional.kl_div`. Book, section 4.2.2.

    >>> import wonderland as wl
    >>> p, q = wl.tensor([[0.6, 0.3, 0.1]]), wl.full((1, 3), 1 / 3)
    >>> print(wl.nn.KLDivLoss(reduction="batchmean")(wl.log(q), p))
    tensor(0.200667)
    """

    def __init__(self, reduction: str = "mean", log_target: bool = False) -> None:
        super().__init__("sum" if reduction == "batchmean" else reduction)
        self.reduction, self.log_target = reduction, log_target
