"""Losses of classes, of yes and no, and of masks, as modules."""

from __future__ import annotations

from typing import Any

from ...tensor import Tensor
from .. import functional as F  # noqa: N812 - as everybody calls it
from .loss import Loss, constant


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
        self.weight = constant(weight)
        self.ignore_index, self.label_smoothing = ignore_index, label_smoothing

    def forward(self, input: Any, target: Any) -> Tensor:
        return F.cross_entropy(input, target, self.weight, self.ignore_index, self.reduction, self.label_smoothing)


class CrossEntropyWithProbsLoss(Loss):
    r"""\(-\ln p_y\) of probabilities; see `wl.nn.functional.cross_entropy_with_probs`. Book, section 4.3.2.

    >>> import wonderland as wl
    >>> print(wl.nn.CrossEntropyWithProbsLoss()(wl.tensor([[0.25, 0.75]]), wl.tensor([1])))
    tensor(0.287682)
    """

    def __init__(self, weight: Any = None, ignore_index: int = -100, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.weight = constant(weight)
        self.ignore_index = ignore_index

    def forward(self, input: Any, target: Any) -> Tensor:
        return F.cross_entropy_with_probs(input, target, self.weight, self.ignore_index, self.reduction)


class NLLLoss(Loss):
    r"""\(-\ell_y\) of log-probabilities; see `wl.nn.functional.nll_loss`. Book, section 4.2.2.

    >>> import wonderland as wl
    >>> print(wl.nn.NLLLoss()(wl.log(wl.tensor([[0.25, 0.75]])), wl.tensor([1])))
    tensor(0.287682)
    """

    def __init__(self, weight: Any = None, ignore_index: int = -100, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.weight = constant(weight)
        self.ignore_index = ignore_index

    def forward(self, input: Any, target: Any) -> Tensor:
        return F.nll_loss(input, target, self.weight, self.ignore_index, self.reduction)


class FocalLoss(Loss):
    r"""\(-(1 - p_y)^\gamma \ln p_y\) of logits; see `wl.nn.functional.focal_loss`. Book, section 4.3.4.

    >>> import wonderland as wl
    >>> print(wl.nn.FocalLoss(gamma=0.0)(wl.zeros((3, 4)), wl.tensor([0, 1, 3])))
    tensor(1.386294)
    """

    def __init__(
        self, gamma: float = 2.0, alpha: Any = None, ignore_index: int = -100, reduction: str = "mean"
    ) -> None:
        super().__init__(reduction)
        self.gamma = gamma
        self.alpha = constant(alpha)
        self.ignore_index = ignore_index

    def forward(self, input: Any, target: Any) -> Tensor:
        return F.focal_loss(
            input, target, gamma=self.gamma, alpha=self.alpha, ignore_index=self.ignore_index, reduction=self.reduction
        )


class BCELoss(Loss):
    r"""\(-y\ln p - (1-y)\ln(1-p)\) of probabilities. Book, section 4.3.1.

    >>> import wonderland as wl
    >>> print(wl.nn.BCELoss()(wl.tensor([0.5]), wl.tensor([1.0])))
    tensor(0.693147)
    """

    def __init__(self, weight: Any = None, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.weight = constant(weight)

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
        self.weight, self.pos_weight = constant(weight), constant(pos_weight)

    def forward(self, input: Any, target: Any) -> Tensor:
        return F.binary_cross_entropy_with_logits(input, target, self.weight, self.reduction, self.pos_weight)


class SigmoidFocalLoss(Loss):
    r"""\(-\alpha_t(1 - p_t)^\gamma \ln p_t\) of logits; see `wl.nn.functional.sigmoid_focal_loss`. Book, section 4.3.4.

    >>> import wonderland as wl
    >>> print(wl.nn.SigmoidFocalLoss(alpha=None)(wl.tensor([0.0]), wl.tensor([1.0])))
    tensor(0.173287)
    """

    def __init__(self, alpha: float | None = 0.25, gamma: float = 2.0, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.alpha = alpha
        self.gamma = gamma

    def forward(self, input: Any, target: Any) -> Tensor:
        return F.sigmoid_focal_loss(input, target, alpha=self.alpha, gamma=self.gamma, reduction=self.reduction)


class DiceLoss(Loss):
    r"""\(1 - 2\sum py / (\sum p + \sum y)\) of probabilities of masks; see `wl.nn.functional.dice_loss`.

    >>> import wonderland as wl
    >>> print(wl.nn.DiceLoss()(wl.tensor([[1.0, 1.0, 0.0]]), wl.tensor([[1.0, 0.0, 0.0]])))
    tensor(0.25)
    """

    def __init__(self, smooth: float = 1.0, axis: Any = None, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.smooth = smooth
        self.axis = axis

    def forward(self, input: Any, target: Any) -> Tensor:
        return F.dice_loss(input, target, smooth=self.smooth, axis=self.axis, reduction=self.reduction)
