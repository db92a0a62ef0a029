"""Losses with a margin, as modules."""

from __future__ import annotations

from ...core.tensor import Tensor
from ...core.typing import ArrayLike
from .. import functional as F  # noqa: N812 - as everybody calls it
from .loss import Loss, PairLoss, constant

__all__ = [
    "HingeLoss", "SquaredHingeLoss", "SoftMarginLoss", "HingeEmbeddingLoss", "MarginRankingLoss", "MultiMarginLoss",
    "MultiLabelMarginLoss", "MultiLabelSoftMarginLoss",
]  # fmt: skip


class HingeLoss(PairLoss, function=F.hinge_loss):
    r"""\(\max(0, 1 - y\hat y)\) for labels -1 and 1; see `wl.nn.functional.hinge_loss`. Book, section 3.2.

    >>> import wonderland as wl
    >>> print(wl.nn.HingeLoss()(wl.tensor([0.5]), wl.tensor([1.0])))
    tensor(0.5)
    """


class SquaredHingeLoss(PairLoss, function=F.squared_hinge_loss):
    r"""\(\max(0, 1 - y\hat y)^2\); see `wl.nn.functional.squared_hinge_loss`.

    >>> import wonderland as wl
    >>> print(wl.nn.SquaredHingeLoss()(wl.tensor([0.5]), wl.tensor([1.0])))
    tensor(0.25)
    """


class SoftMarginLoss(PairLoss, function=F.soft_margin_loss):
    r"""\(\ln(1 + e^{-y\hat y})\) for labels -1 and 1; see `wl.nn.functional.soft_margin_loss`.

    >>> import wonderland as wl
    >>> print(wl.nn.SoftMarginLoss()(wl.tensor([0.0]), wl.tensor([1.0])))
    tensor(0.693147)
    """


class HingeEmbeddingLoss(PairLoss, function=F.hinge_embedding_loss):
    r"""Distances of pairs that are alike (1) or not (-1); see `wl.nn.functional.hinge_embedding_loss`.

    >>> import wonderland as wl
    >>> print(wl.nn.HingeEmbeddingLoss()(wl.tensor([0.25]), wl.tensor([-1.0])))
    tensor(0.75)
    """

    def __init__(self, margin: float = 1.0, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.margin = margin


class MarginRankingLoss(Loss, function=F.margin_ranking_loss):
    r"""\(\max(0, m - y(x_1 - x_2))\); see `wl.nn.functional.margin_ranking_loss`.

    >>> import wonderland as wl
    >>> print(wl.nn.MarginRankingLoss()(wl.tensor([1.0]), wl.tensor([0.0]), wl.tensor([-1.0])))
    tensor(1.)
    """

    def __init__(self, margin: float = 0.0, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.margin = margin

    def forward(self, input1: ArrayLike, input2: ArrayLike, target: ArrayLike) -> Tensor:
        return self._applied(input1, input2, target)


class MultiMarginLoss(PairLoss, function=F.multi_margin_loss):
    r"""A hinge loss of classes; see `wl.nn.functional.multi_margin_loss`.

    >>> import wonderland as wl
    >>> print(wl.nn.MultiMarginLoss()(wl.tensor([[0.1, 0.2, 0.4, 0.8]]), wl.tensor([3])))
    tensor(0.325)
    """

    def __init__(
        self, p: int = 1, margin: float = 1.0, weight: ArrayLike | None = None, reduction: str = "mean"
    ) -> None:
        super().__init__(reduction)
        self.p, self.margin, self.weight = p, margin, constant(weight)


class MultiLabelMarginLoss(PairLoss, function=F.multilabel_margin_loss):
    r"""A hinge loss of several classes at once; see `wl.nn.functional.multilabel_margin_loss`.

    >>> import wonderland as wl
    >>> x, y = wl.tensor([[0.1, 0.2, 0.4, 0.8]]), wl.tensor([[3, 0, -1, 1]])
    >>> print(wl.nn.MultiLabelMarginLoss()(x, y))
    tensor(0.85)
    """


class MultiLabelSoftMarginLoss(PairLoss, function=F.multilabel_soft_margin_loss):
    r"""Binary cross-entropy, averaged over classes; see `wl.nn.functional.multilabel_soft_margin_loss`.

    >>> import wonderland as wl
    >>> print(wl.nn.MultiLabelSoftMarginLoss()(wl.zeros((1, 3)), wl.tensor([[1.0, 0.0, 1.0]])))
    tensor(0.693147)
    """

    def __init__(self, weight: ArrayLike | None = None, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.weight = constant(weight)
