"""Losses of classes, of yes and no, and of masks, as modules."""

from __future__ import annotations

from ...core.typing import ArrayLike, Axes
from .. import functional as F  # noqa: N812 - as everybody calls it
from .loss import PairLoss, constant

__all__ = [
    "CrossEntropyLoss", "CrossEntropyWithProbsLoss", "NLLLoss", "FocalLoss", "BCELoss", "BCEWithLogitsLoss",
    "SigmoidFocalLoss", "DiceLoss",
]  # fmt: skip


class CrossEntropyLoss(PairLoss, function=F.cross_entropy):
    r"""\(-\ln \mathrm{softmax}(x)_y\) of logits; see `wl.nn.functional.cross_entropy`. Book, section 4.2.2.

    >>> import wonderland as wl
    >>> print(wl.nn.CrossEntropyLoss()(wl.zeros((3, 4)), wl.tensor([0, 1, 3])))
    tensor(1.386294)
    """

    def __init__(
        self,
        weight: ArrayLike | None = None,
        ignore_index: int = -100,
        reduction: str = "mean",
        label_smoothing: float = 0.0,
    ) -> None:
        super().__init__(reduction)
        self.weight = constant(weight)
        self.ignore_index, self.label_smoothing = ignore_index, label_smoothing


class CrossEntropyWithProbsLoss(PairLoss, function=F.cross_entropy_with_probs):
    r"""\(-\ln p_y\) of probabilities; see `wl.nn.functional.cross_entropy_with_probs`. Book, section 4.3.2.

    >>> import wonderland as wl
    >>> print(wl.nn.CrossEntropyWithProbsLoss()(wl.tensor([[0.25, 0.75]]), wl.tensor([1])))
    tensor(0.287682)
    """

    def __init__(self, weight: ArrayLike | None = None, ignore_index: int = -100, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.weight, self.ignore_index = constant(weight), ignore_index


class NLLLoss(PairLoss, function=F.nll_loss):
    r"""\(-\ell_y\) of log-probabilities; see `wl.nn.functional.nll_loss`. Book, section 4.2.2.

    >>> import wonderland as wl
    >>> print(wl.nn.NLLLoss()(wl.log(wl.tensor([[0.25, 0.75]])), wl.tensor([1])))
    tensor(0.287682)
    """

    def __init__(self, weight: ArrayLike | None = None, ignore_index: int = -100, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.weight, self.ignore_index = constant(weight), ignore_index


class FocalLoss(PairLoss, function=F.focal_loss):
    r"""\(-(1 - p_y)^\gamma \ln p_y\) of logits; see `wl.nn.functional.focal_loss`. Book, section 4.3.4.

    >>> import wonderland as wl
    >>> print(wl.nn.FocalLoss(gamma=0.0)(wl.zeros((3, 4)), wl.tensor([0, 1, 3])))
    tensor(1.386294)
    """

    def __init__(
        self, gamma: float = 2.0, alpha: ArrayLike | None = None, ignore_index: int = -100, reduction: str = "mean"
    ) -> None:
        super().__init__(reduction)
        self.gamma, self.alpha, self.ignore_index = gamma, constant(alpha), ignore_index


class BCELoss(PairLoss, function=F.binary_cross_entropy):
    r"""\(-y\ln p - (1-y)\ln(1-p)\) of probabilities. Book, section 4.3.1.

    >>> import wonderland as wl
    >>> print(wl.nn.BCELoss()(wl.tensor([0.5]), wl.tensor([1.0])))
    tensor(0.693147)
    """

    def __init__(self, weight: ArrayLike | None = None, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.weight = constant(weight)


class BCEWithLogitsLoss(PairLoss, function=F.binary_cross_entropy_with_logits):
    r"""\(\ln(1 + e^x) - xy\) of logits; see `wl.nn.functional.binary_cross_entropy_with_logits`. Book, section 4.3.1.

    >>> import wonderland as wl
    >>> print(wl.nn.BCEWithLogitsLoss()(wl.tensor([0.0]), wl.tensor([1.0])))
    tensor(0.693147)
    """

    def __init__(
        self, weight: ArrayLike | None = None, reduction: str = "mean", pos_weight: ArrayLike | None = None
    ) -> None:
        super().__init__(reduction)
        self.weight, self.pos_weight = constant(weight), constant(pos_weight)


class SigmoidFocalLoss(PairLoss, function=F.sigmoid_focal_loss):
    r"""\(-\alpha_t(1 - p_t)^\gamma \ln p_t\) of logits; see `wl.nn.functional.sigmoid_focal_loss`. Book, section 4.3.4.

    >>> import wonderland as wl
    >>> print(wl.nn.SigmoidFocalLoss(alpha=None)(wl.tensor([0.0]), wl.tensor([1.0])))
    tensor(0.173287)
    """

    def __init__(self, alpha: float | None = 0.25, gamma: float = 2.0, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.alpha, self.gamma = alpha, gamma


class DiceLoss(PairLoss, function=F.dice_loss):
    r"""\(1 - 2\sum py / (\sum p + \sum y)\) of probabilities of masks; see `wl.nn.functional.dice_loss`.

    >>> import wonderland as wl
    >>> print(wl.nn.DiceLoss()(wl.tensor([[1.0, 1.0, 0.0]]), wl.tensor([[1.0, 0.0, 0.0]])))
    tensor(0.25)
    """

    def __init__(self, smooth: float = 1.0, axis: Axes = None, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.smooth, self.axis = smooth, axis
