"""The loss that counts mistakes. It says how good a model is, but gradient descent cannot lower it."""

from __future__ import annotations

import warnings

from .... import arrays
from ....core.context import user_level
from ....core.dtypes import is_integer
from ....core.tensor import Tensor
from ....core.typing import ArrayLike
from ....random.arguments import check
from ....transforms.custom import custom_jvp
from .cautions import FlatLossWarning
from .labels import as_target, at_class, class_index
from .reduction import check_same, check_signs, reduced, scores_of

__all__ = ["zero_one_loss"]


def zero_one_loss(
    input: ArrayLike, target: ArrayLike, threshold: float | None = None, reduction: str = "mean"
) -> Tensor:
    r"""1 for a wrong prediction and 0 for a right one; the mean is 1 minus the accuracy. Book, section 3.2.

    >>> import wonderland as wl
    >>> F = wl.nn.functional
    >>> F.zero_one_loss(wl.tensor([2.0, -0.5, 0.0]), wl.ones(3), reduction="none")
    tensor([0., 1., 1.])
    >>> print(F.zero_one_loss(wl.tensor([[0.1, 0.9], [0.8, 0.2]]), wl.tensor([1, 1])))
    tensor(0.5)
    >>> print(F.zero_one_loss(wl.tensor([0.7, 0.2]), wl.tensor([1.0, 0.0]), threshold=0.5))
    tensor(0.)

    Three kinds of targets: classes (...) for scores (..., classes), where the largest score is the prediction; labels
    -1 and 1 for scores, where a score of exactly 0 is wrong for both; and, with a `threshold`, labels 0 and 1 for
    probabilities, where 1 is predicted above it. The derivative is zero wherever it exists, so this is for measuring:
    differentiating it gives zeros and a `FlatLossWarning`.
    """
    name = "zero_one_loss"
    scores, target = scores_of(name, input), as_target(name, target)
    if is_integer(target.dtype) and target.ndim == scores.ndim - 1 and threshold is None:
        index = class_index(name, scores, target)
        # a score of NaN is wrong, and looking it up makes a class out of range raise
        wrong = (arrays.argmax(scores, axis=-1) != index) | arrays.isnan(at_class(name, scores, index))
    else:
        check_same(name, scores, target, "labels of the shape of the scores, or classes with one axis less")
        if threshold is None:
            check_signs(name, target)
            wrong = scores * target <= 0
        else:
            check(name, "a label", target, lambda v: (v == 0) | (v == 1), "labels 0 and 1")
            wrong = (scores > threshold) != (target == 1)
    return reduced(name, _flat(scores, arrays.astype(wrong, scores.dtype)), reduction)


@custom_jvp
def _flat(scores: Tensor, losses: Tensor) -> Tensor:
    """The losses, with a derivative of zero that warns."""
    return losses


@_flat.defjvp
def _flat_jvp(primals: tuple[Tensor, Tensor], tangents: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
    warnings.warn(
        "zero_one_loss: its derivative is zero almost everywhere, so gradient descent will not move. "
        "Train with hinge_loss or cross_entropy and measure with this.",
        FlatLossWarning,
        stacklevel=user_level(),
    )
    return _flat(*primals), tangents[1]
