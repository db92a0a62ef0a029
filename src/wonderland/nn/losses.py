"""Losses as modules; each calls the function of `wl.nn.functional` that says what it computes."""

from __future__ import annotations

from typing import Any

from .. import array
from ..errors import InputError
from ..tensor import Tensor
from . import functional as F  # noqa: N812 - as everybody calls it
from .module import Module
from .parameter import Buffer


class Loss(Module):
    """The base of losses: `reduction` is "mean", "sum" or "none"."""

    def __init__(self, reduction: str = "mean") -> None:
        if reduction not in ("mean", "sum", "none"):
            raise InputError(f"{type(self).__name__}: reduction={reduction!r}.", '"mean", "sum" or "none"')
        self.reduction = reduction


def _constant(weight: Any) -> Any:
    return None if weight is None else Buffer(array.asarray(weight))


class CrossEntropyLoss(Loss):
    r"""\(-\ln \mathrm{softmax}(x)_y\) of logits; see `wl.nn.functional.cross_entropy`. Book, section 4.2.2.

    >>> import wonderland as wl
    >>> print(wl.nn.CrossEntropyLoss()(wl.zeros((3, 4)), wl.tensor([0, 1, 3])))
    tensor(1.386294)
    """

    def __init__(
        self,
        weight: Any = None,
        ignore_index: int = -100,
        reduction: str = "mean",
        label_smoothing: float = 0.0,
    ) -> None:
        super().__init__(reduction)
        self.weight = _constant(weight)
        self.ignore_index, self.label_smoothing = ignore_index, label_smoothing

    def forward(self, input: Any, target: Any) -> Tensor:
        return F.cross_entropy(input, target, self.weight, self.ignore_index, self.reduction, self.label_smoothing)


class NLLLoss(Loss):
    r"""\(-\ell_y\) of log-probabilities; see `wl.nn.functional.nll_loss`. Book, section 4.2.2.

    >>> import wonderland as wl
    >>> print(wl.nn.NLLLoss()(wl.log(wl.tensor([[0.25, 0.75]])), wl.tensor([1])))
    tensor(0.287682)
    """

    def __init__(self, weight: Any = None, ignore_index: int = -100, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.weight = _constant(weight)
        self.ignore_index = ignore_index

    def forward(self, input: Any, target: Any) -> Tensor:
        return F.nll_loss(input, target, self.weight, self.ignore_index, self.reduction)


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


class BCELoss(Loss):
    r"""\(-y\ln p - (1-y)\ln(1-p)\) of probabilities. Book, section 4.3.1.

    >>> import wonderland as wl
    >>> print(wl.nn.BCELoss()(wl.tensor([0.5]), wl.tensor([1.0])))
    tensor(0.693147)
    """

    def __init__(self, weight: Any = None, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.weight = _constant(weight)

    def forward(self, input: Any, target: Any) -> Tensor:
        return F.binary_cross_entropy(input, target, self.weight, self.reduction)


class BCEWithLogitsLoss(Loss):
    r"""\(\ln(1 + e^x) - xy\) of logits; see `wl.nn.functional.binary_cross_entropy_with_logits`. Book, section 4.3.1.

    >>> import wonderland as wl
    >>> print(wl.nn.BCEWithLogitsLoss()(wl.tensor([0.0]), wl.tensor([1.0])))
    tensor(0.693147)
    """

    def __init__(self, weight: Any = None, reduction: str = "mean", pos_weight: Any = None) -> None:
        super().__init__(reduction)
        self.weight, self.pos_weight = _constant(weight), _constant(pos_weight)

    def forward(self, input: Any, target: Any) -> Tensor:
        return F.binary_cross_entropy_with_logits(input, target, self.weight, self.reduction, self.pos_weight)
