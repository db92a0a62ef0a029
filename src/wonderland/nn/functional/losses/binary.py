"""Losses of yes and no, one or many at once: targets are 0 and 1, or probabilities."""

from __future__ import annotations

from .... import arrays
from ....core.tensor import Tensor
from ....core.typing import ArrayLike
from ....random.arguments import check
from .labels import check_yes_or_no
from .reduction import check_setting, log_from, pair, reduced, weighted

__all__ = ["binary_cross_entropy", "binary_cross_entropy_with_logits", "sigmoid_focal_loss"]


def binary_cross_entropy(
    input: ArrayLike, target: ArrayLike, weight: ArrayLike | None = None, reduction: str = "mean"
) -> Tensor:
    r"""\(-y\ln p - (1-y)\ln(1-p)\) of probabilities p. Book, section 4.3.1.

    >>> import wonderland as wl
    >>> print(wl.nn.functional.binary_cross_entropy(wl.tensor([0.5, 0.25]), wl.tensor([1.0, 0.0]), reduction="sum"))
    tensor(0.980829)

    Logarithms below -100 count as -100. With logits, `binary_cross_entropy_with_logits` is the stable form.
    """
    p, y = pair("binary_cross_entropy", input, target)
    check_yes_or_no("binary_cross_entropy", y)
    check(
        "binary_cross_entropy",
        "a probability",
        p,
        lambda v: (v >= 0) & (v <= 1),
        "from 0 to 1; for logits ..._with_logits",
    )
    hit, miss = (log_from(q) for q in (p, 1.0 - p))
    losses = weighted("binary_cross_entropy", -y * hit - (1.0 - y) * miss, weight)
    return reduced("binary_cross_entropy", losses, reduction)


def binary_cross_entropy_with_logits(
    input: ArrayLike,
    target: ArrayLike,
    weight: ArrayLike | None = None,
    reduction: str = "mean",
    pos_weight: ArrayLike | None = None,
) -> Tensor:
    r"""\(-y\ln\sigma(x) - (1-y)\ln(1-\sigma(x)) = \ln(1 + e^x) - x y\) of logits x. Book, section 4.3.1.

    >>> import wonderland as wl
    >>> x = wl.tensor([1000.0, 1000.0])
    >>> wl.nn.functional.binary_cross_entropy_with_logits(x, wl.tensor([0.0, 1.0]), reduction="none")
    tensor([1000., 0.])

    `pos_weight` multiplies the term of y, `weight` the whole; both may have fewer axes than x.
    """
    name = "binary_cross_entropy_with_logits"
    x, y = pair(name, input, target)
    check_yes_or_no(name, y)
    if pos_weight is None:
        losses = arrays.softplus(x) - x * y
    else:
        losses = (1.0 - y) * arrays.softplus(x) + weighted(name, y * arrays.softplus(-x), pos_weight)
    return reduced(name, weighted(name, losses, weight), reduction)


def sigmoid_focal_loss(
    input: ArrayLike, target: ArrayLike, alpha: float | None = 0.25, gamma: float = 2.0, reduction: str = "mean"
) -> Tensor:
    r"""\(-\alpha_t\,(1 - p_t)^\gamma \ln p_t\) of logits, \(p_t\) the probability of what is true. Book, section 4.3.4.

    >>> import wonderland as wl
    >>> print(wl.nn.functional.sigmoid_focal_loss(wl.tensor([0.0]), wl.tensor([1.0]), alpha=None))
    tensor(0.173287)

    \(\alpha_t\) is `alpha` for targets 1 and 1 - `alpha` for targets 0; None leaves it out. With `gamma` 0 and no
    `alpha` it is `binary_cross_entropy_with_logits`.
    """
    name = "sigmoid_focal_loss"
    x, y = pair(name, input, target)
    check_yes_or_no(name, y)
    check_setting(name, "gamma", gamma, gamma >= 0, "gamma >= 0")
    hit, miss = arrays.softplus(-x), arrays.softplus(x)  # -ln p and -ln(1 - p)
    if gamma:  # (1 - p)^gamma = e^(-gamma miss)
        hit, miss = hit * arrays.exp(-gamma * miss), miss * arrays.exp(-gamma * hit)
    if alpha is not None:
        check_setting(name, "alpha", alpha, 0.0 <= alpha <= 1.0, "a number from 0 to 1, or None")
        hit, miss = alpha * hit, (1.0 - alpha) * miss
    return reduced(name, y * hit + (1.0 - y) * miss, reduction)
