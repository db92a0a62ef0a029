"""Losses of vectors that should be near or far, as modules."""

from __future__ import annotations

from collections.abc import Callable

from ...core.tensor import Tensor
from ...core.typing import ArrayLike
from .. import functional as F  # noqa: N812 - as everybody calls it
from .loss import Loss

__all__ = [
    "CosineEmbeddingLoss", "ContrastiveLoss", "TripletMarginLoss", "TripletMarginWithDistanceLoss", "InfoNCELoss",
]  # fmt: skip


class CosineEmbeddingLoss(Loss, function=F.cosine_embedding_loss):
    r"""\(1 - \cos(x_1, x_2)\) for pairs that are alike; see `wl.nn.functional.cosine_embedding_loss`.

    >>> import wonderland as wl
    >>> a, b = wl.tensor([[1.0, 0.0]]), wl.tensor([[0.0, 1.0]])
    >>> print(wl.nn.CosineEmbeddingLoss()(a, b, wl.tensor([1.0])))
    tensor(1.)
    """

    def __init__(self, margin: float = 0.0, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.margin = margin

    def forward(self, input1: ArrayLike, input2: ArrayLike, target: ArrayLike) -> Tensor:
        return self._applied(input1, input2, target)


class ContrastiveLoss(Loss, function=F.contrastive_loss):
    r"""Distances of pairs that are alike (1) or not (0); see `wl.nn.functional.contrastive_loss`.

    >>> import wonderland as wl
    >>> a, b = wl.zeros((1, 2)), wl.tensor([[0.0, 0.5]])
    >>> print(wl.nn.ContrastiveLoss()(a, b, wl.tensor([1.0])))
    tensor(0.25)
    """

    def __init__(self, margin: float = 1.0, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.margin = margin

    def forward(self, input1: ArrayLike, input2: ArrayLike, target: ArrayLike) -> Tensor:
        return self._applied(input1, input2, target)


class TripletMarginLoss(Loss, function=F.triplet_margin_loss):
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
        self.margin, self.p, self.eps, self.swap = margin, p, eps, swap

    def forward(self, anchor: ArrayLike, positive: ArrayLike, negative: ArrayLike) -> Tensor:
        return self._applied(anchor, positive, negative)


class TripletMarginWithDistanceLoss(Loss, function=F.triplet_margin_with_distance_loss):
    """The loss of triplets with a distance of one's own; see `wl.nn.functional.triplet_margin_with_distance_loss`.

    >>> import wonderland as wl
    >>> a, near, far = wl.zeros((1, 2)), wl.tensor([[0.0, 1.0]]), wl.tensor([[0.0, 1.5]])
    >>> print(wl.nn.TripletMarginWithDistanceLoss()(a, near, far))
    tensor(0.5)
    """

    def __init__(
        self,
        distance_function: Callable[[Tensor, Tensor], Tensor] | None = None,
        margin: float = 1.0,
        swap: bool = False,
        reduction: str = "mean",
    ) -> None:
        super().__init__(reduction)
        self.distance_function, self.margin, self.swap = distance_function, margin, swap

    def forward(self, anchor: ArrayLike, positive: ArrayLike, negative: ArrayLike) -> Tensor:
        return self._applied(anchor, positive, negative)


class InfoNCELoss(Loss, function=F.info_nce_loss):
    r"""Which of many keys belongs to a query; see `wl.nn.functional.info_nce_loss`.

    >>> import wonderland as wl
    >>> print(wl.nn.InfoNCELoss(temperature=1.0)(wl.eye(4), wl.eye(4)))
    tensor(0.743668)
    """

    def __init__(self, temperature: float = 0.1, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.temperature = temperature

    def forward(self, query: ArrayLike, positive: ArrayLike, negatives: ArrayLike | None = None) -> Tensor:
        return self._applied(query, positive, negatives)
