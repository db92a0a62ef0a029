"""Losses with a margin, as modules."""

from __future__ import annotations

from typing import Any

from ...tensor import Tensor
from .. import functional as F  # noqa: N812 - as everybody calls it
from .loss import Loss, constant


class HingeLoss(Loss):
    r"""\(\max(0, 1 - y\hat y)\) for labels -1 and 1; see `wl.nn.functional.hinge_loss`. Book, section 3.2.

    >>> import wonderland as wl
    >>> print(wl.nn.HingeLoss()(wl.tensor([0.5]), wl.tensor([1.0])))
    tensor(0.5)
    """

    def forward(self, input: Any, target: Any) -> Tensor:
        return F.hinge_loss(input, target, reduction=self.reduction)


class SquaredHingeLoss(Loss):
    r"""\(\max(0, 1 - y\hat y)^2\); see `wl.nn.functional.squared_hinge_loss`.

    >>> import wonderland as wl
    >>> print(wl.nn.SquaredHingeLoss()(wl.tensor([0.5]), wl.tensor([1.0])))
    tensor(0.25)
    """

    def forward(self, input: Any, target: Any) -> Tensor:
        return F.squared_hinge_loss(input, target, reduction=self.reduction)


class SoftMarginLoss(Loss):
    r"""\(\ln(1 + e^{-y\hat y})\) for labels -1 and 1; see `wl.nn.functional.soft_margin_loss`.

    >>> import wonderland as wl
    >>> print(wl.nn.SoftMarginLoss()(wl.tensor([0.0]), wl.tensor([1.0])))
    tensor(0.693147)
    """

    def forward(self, input: Any, target: Any) -> Tensor:
        return F.soft_margin_loss(input, target, reduction=self.reduction)


class HingeEmbeddingLoss(Loss):
    r"""Distances of pairs that are alike (1) or not (-1); see `wl.nn.functional.hinge_embedding_loss`.

    >>> import wonderland as wl
    >>> print(wl.nn.HingeEmbeddingLoss()(wl.tensor([0.25]), wl.tensor([-1.0])))
    tensor(0.75)
    """

    def __init__(self, margin: float = 1.0, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.margin = margin

    def forward(self, input: Any, target: Any) -> Tensor:
        return F.hinge_embedding_loss(input, target, margin=self.margin, reduction=self.reduction)


class MarginRankingLoss(Loss):
    r"""\(\max(0, m - y(x_1 - x_2))\); see `wl.nn.functional.margin_ranking_loss`.

    >>> import wonderland as wl
    >>> print(wl.nn.MarginRankingLoss()(wl.tensor([1.0]), wl.tensor([0.0]), wl.tensor([-1.0])))
    tensor(1.)
    """

    def __init__(self, margin: float = 0.0, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.margin = margin

    def forward(self, input1: Any, input2: Any, target: Any) -> Tensor:
        return F.margin_ranking_loss(input1, input2, target, margin=self.margin, reduction=self.reduction)


class MultiMarginLoss(Loss):
    r"""A hinge loss of classes; see `wl.nn.functional.multi_margin_loss`.

    >>> import wonderland as wl
    >>> print(wl.nn.MultiMarginLoss()(wl.tensor([[0.1, 0.2, 0.4, 0.8]]), wl.tensor([3])))
    tensor(0.325)
    """

    def __init__(self, p: int = 1, margin: float = 1.0, weight: Any = None, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.p = p
        self.margin = margin
        self.weight = constant(weight)

    def forward(self, input: Any, target: Any) -> Tensor:
        return F.multi_margin_loss(
            input, target, p=self.p, margin=self.margin, weight=self.weight, reduction=self.reduction
        )


class MultiLabelMarginLoss(Loss):
    r"""A hinge loss of several classes at once; see `wl.nn.functional.multilabel_margin_loss`.

    >>> import wonderland as wl
    >>> x, y = wl.tensor([[0.1, 0.2, 0.4, 0.8]]), wl.tensor([[3, 0, -1, 1]])
    >>> print(wl.nn.MultiLabelMarginLoss()(x, y))
    tensor(0.85)
    """

    def forward(self, input: Any, target: Any) -> Tensor:
        return F.multilabel_margin_loss(input, target, reduction=self.reduction)


class MultiLabelSoftMarginLoss(Loss):
    r"""Binary cross-entropy, averaged over classes; see `wl.nn.functional.multilabel_soft_margin_loss`.

    >>> import wonderland as wl
    >>> print(wl.nn.MultiLabelSoftMarginLoss()(wl.zeros((1, 3)), wl.tensor([[1.0, 0.0, 1.0]])))
    tensor(0.693147)
    """

    def __init__(self, weight: Any = None, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.weight = constant(weight)

    def forward(self, input: Any, target: Any) -> Tensor:
        return F.multilabel_soft_margin_loss(input, target, weight=self.weight, reduction=self.reduction)
