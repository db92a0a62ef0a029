"""Losses of regions: how little a predicted mask and a true one overlap."""

from __future__ import annotations

from .... import arrays
from ....core.errors import ShapeError
from ....core.tensor import Tensor
from ....core.typing import ArrayLike, Axes
from ....random.arguments import check
from .reduction import check_setting, pair, reduced

__all__ = ["dice_loss"]


def dice_loss(
    input: ArrayLike, target: ArrayLike, smooth: float = 1.0, axis: Axes = None, reduction: str = "mean"
) -> Tensor:
    r"""\(1 - \frac{2\sum p y + s}{\sum p + \sum y + s}\) of probabilities p for masks y of 0 and 1.

    >>> import wonderland as wl
    >>> p, y = wl.tensor([[1.0, 1.0, 0.0]]), wl.tensor([[1.0, 0.0, 0.0]])
    >>> print(wl.nn.functional.dice_loss(p, y))
    tensor(0.25)

    The sums are over all axes but the first, or over `axis`: for masks (batch, h, w, classes) use `axis=(1, 2)` to get
    one term per class. `smooth` s keeps empty masks defined: an empty prediction of an empty mask has loss 0.
    """
    p, y = pair("dice_loss", input, target)
    if not p.ndim:
        raise ShapeError("dice_loss: a mask without axes.", "shape (batch, ...)")
    check("dice_loss", "a probability", p, lambda v: (v >= 0) & (v <= 1), "from 0 to 1; wl.sigmoid of logits")
    check_setting("dice_loss", "smooth", smooth, smooth >= 0, "smooth >= 0")
    over = tuple(range(1, p.ndim)) if axis is None else axis
    both = arrays.sum(p * y, axis=over)
    either = arrays.sum(p, axis=over) + arrays.sum(y, axis=over)
    return reduced("dice_loss", 1.0 - (2.0 * both + smooth) / (either + smooth), reduction)
