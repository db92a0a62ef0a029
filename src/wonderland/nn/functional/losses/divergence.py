"""Divergences between distributions given as tables."""

from __future__ import annotations

from .... import arrays
from ....core.errors import ShapeError
from ....core.tensor import Tensor
from ....core.typing import ArrayLike
from ....random.arguments import check
from .reduction import pair, reduced

__all__ = ["kl_div"]


def kl_div(input: ArrayLike, target: ArrayLike, reduction: str = "mean", log_target: bool = False) -> Tensor:
    r"""The terms \(p\,(\ln p - \ell)\) of the divergence KL(p, q) of p from \(q = e^\ell\). Book, section 4.2.2.

    >>> import wonderland as wl
    >>> p, q = wl.tensor([[0.6, 0.3, 0.1]]), wl.full((1, 3), 1 / 3)
    >>> print(wl.nn.functional.kl_div(wl.log(q), p, reduction="batchmean"))
    tensor(0.200667)

    As in PyTorch, `input` are log-probabilities and `target` probabilities (log-probabilities if `log_target`), and
    "mean" is over all numbers; "batchmean" divides the sum by the length of the first axis: the divergence per example.
    Cross-entropy is this plus the entropy of the target. For distributions there is `wl.distributions.kl`.
    """
    log_q, target = pair("kl_div", input, target)
    if log_target:
        p = arrays.exp(target)
        losses = arrays.where(p == 0, 0.0, p * (arrays.where(p == 0, 0.0, target) - log_q))
    else:
        check(
            "kl_div", "a probability", target, lambda v: (v >= 0) & (v <= 1 + 1e-4), "from 0 to 1, or log_target=True"
        )
        losses = arrays.xlogy(target, target) - arrays.where(target == 0, 0.0, target * log_q)
    if reduction != "batchmean":
        return reduced("kl_div", losses, reduction)
    if not losses.ndim or not losses.shape[0]:
        raise ShapeError(f"kl_div: a mean over the batch of shape {losses.shape}.", 'reduction="sum"')
    return arrays.sum(losses) / losses.shape[0]
