"""The loss of transcriptions whose alignment is not known, as a module."""

from __future__ import annotations

from ...core.tensor import Tensor
from ...core.typing import ArrayLike
from .. import functional as F  # noqa: N812 - as everybody calls it
from .loss import Loss

__all__ = ["CTCLoss"]


class CTCLoss(Loss, function=F.ctc_loss):
    r"""\(-\ln \sum_{a \to y} \prod_t p_t(a_t)\); see `wl.nn.functional.ctc_loss`. Book, section 11.2.4.

    >>> import wonderland as wl
    >>> log_p = wl.log(wl.full((2, 1, 3), 1 / 3))  # (frames, batch, classes)
    >>> print(wl.exp(-wl.nn.CTCLoss()(log_p, wl.tensor([[1]]), [2], [1])))
    tensor(0.333333)
    """

    def __init__(self, blank: int = 0, reduction: str = "mean", zero_infinity: bool = False) -> None:
        super().__init__(reduction)
        self.blank, self.zero_infinity = blank, zero_infinity

    def forward(
        self, log_probs: ArrayLike, targets: ArrayLike, input_lengths: ArrayLike, target_lengths: ArrayLike
    ) -> Tensor:
        return self._applied(log_probs, targets, input_lengths, target_lengths)
