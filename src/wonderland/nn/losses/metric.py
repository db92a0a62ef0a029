"""Losses of vectors that should be near or far, as modules."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...tensor import Tensor
from .. import functional as F  # noqa: N812 - as everybody calls it
from .loss import Loss


class CosineEmbeddingLoss(Loss):
    r"""\(1 - \cos(x_1, x_2)\) for pairs that are alike; see `wl.nn.functional.cosine_embedding_loss`.

    >>> import wonderland as wl
    >>> a, b = wl.tensor([[1.0, 0.0]]), wl.tensor([[0.0, 1.0]])
    >>> print(wl.nn.CosineEmbeddingLoss()(a, b, wl.tensor([1.0])))
    tensor(1.)
    """

    def __init__(self, margin: float = 0.0, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.margin = margin

    def forward(self, input1: Any, input2: Any, target: Any) -> Tensor:
        return F.cosine_embedding_loss(input1, input2, target, margin=self.margin, reduction=self.reduction)


class ContrastiveLoss(Loss):
    r"""Distances of pairs that are alike (1) or not (0); see `wl.nn.functional.contrastive_loss`.

    >>> import wonderland as wl
    >>> a, b = wl.zeros((1, 2)), wl.tensor([[0.0, 0.5]])
    >>> print(wl.nn.ContrastiveLoss()(a, b, wl.tensor([1.0])))
    tensor(0.25)
    """

    def __init__(self, margin: float = 1.0, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.margin = margin

    def forward(self, input1: Any, input2: Any, target: Any) -> Tensor:
        return F.contrastive_loss(input1, input2, target, margin=self.margin, reduction=self.reduction)


class TripletMarginLoss(Loss):
    r"""\(\max(0, d(a, p) - d(a, n) + m)\); see `wl.nn.functional.triplet_margin_loss`.

    >>> import wonderland as wl
    >>> a, near, far = wl.zeros((1, 2)), wl.tensor([[0.0, 1.0]]), wl.tensor([[0.0, 1.5]])
    >>> print(wl.nn.TripletMarginLoss()(a, near, far))
    tensor(0.5)
    """

    def __init__(
        self, margin: float = 1.0, p: float = 2.0, eps: float = 1e-6, swap: bool = False, reduction: str = "mean"
    ) -> None:
        super().__init__(reduction)
        self.margin = margin
        self.p = p
        self.eps = eps
        self.swap = swap

    def forward(self, anchor: Any, positive: Any, negative: Any) -> Tensor:
        return F.triplet_margin_loss(
            anchor,
            positive,
            negative,
            margin=self.margin,
            p=self.p,
            eps=self.eps,
            swap=self.swap,
            reduction=self.reduction,
        )


class TripletMarginWithDistanceLoss(Loss):
    """The loss of triplets with a distance of one's own; see `wl.nn.functional.triplet_margin_with_distance_loss`.

    >>> import wonderland as wl
    >>> a, near, far = wl.zeros((1, 2)), wl.tensor([[0.0, 1.0]]), wl.tensor([[0.0, 1.5]])
    >>> print(wl.nn.TripletMarginWithDistanceLoss()(a, near, far))
    tensor(0.5)
    """

    def __init__(
        self,
        distance_function: Callable[[Any, Any], Any] | None = None,
        margin: float = 1.0,
        swap: bool = False,
        reduction: str = "mean",
    ) -> None:
        super().__init__(reduction)
        self.distance_function, self.margin, self.swap = distance_function, margin, swap

    def forward(self, anchor: Any, positive: Any, negative: Any) -> Tensor:
        return F.triplet_margin_with_distance_loss(
            anchor, positive, negative, self.distance_function, self.margin, self.swap, self.reduction
        )


class InfoNCELoss(Loss):
    r"""Which of many keys belongs to a query; see `wl.nn.functional.info_nce_loss`.

    >>> import wonderland as wl
    >>> print(wl.nn.InfoNCELoss(temperature=1.0)(wl.eye(4), wl.eye(4)))
    tensor(0.743668)
    """

    def __init__(self, temperature: float = 0.1, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.temperature = temperature

    def forward(self, query: Any, positive: Any, negatives: Any = None) -> Tensor:
        return F.info_nce_loss(query, positive, negatives, temperature=self.temperature, reduction=self.reduction)
