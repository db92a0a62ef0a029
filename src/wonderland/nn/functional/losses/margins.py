"""Losses of scores whose sign or order matters: they are zero from a margin on. Labels are -1 and 1."""

from __future__ import annotations

from .... import arrays
from ....arrays.conversion import as_tensor
from ....core.dtypes import is_integer
from ....core.errors import DTypeError
from ....core.tensor import Tensor
from ....core.typing import ArrayLike
from ....random.arguments import check
from .labels import as_target, at_class, class_index
from .reduction import (
    check_same,
    check_setting,
    check_signs,
    class_count,
    class_weight,
    pair,
    reduced,
    scores_of,
    together,
    weighted,
)

__all__ = [
    "hinge_embedding_loss", "hinge_loss", "margin", "margin_ranking_loss", "multi_margin_loss",
    "multilabel_margin_loss", "multilabel_soft_margin_loss", "soft_margin_loss", "squared_hinge_loss",
]  # fmt: skip


def margin(input: ArrayLike, target: ArrayLike) -> Tensor:
    r"""\(y\,\hat y\) for labels y of -1 and 1: positive where the sign of the score is that of the label.

    >>> import wonderland as wl
    >>> wl.nn.functional.margin(wl.tensor([2.0, -0.5]), wl.tensor([1.0, 1.0]))
    tensor([ 2. , -0.5])

    To be large, so it is no loss itself. Book, section 3.2.
    """
    score, label = pair("margin", input, target)
    check_signs("margin", label)
    return label * score


def hinge_loss(input: ArrayLike, target: ArrayLike, reduction: str = "mean") -> Tensor:
    r"""\(\max(0, 1 - y\,\hat y)\) of scores for labels y of -1 and 1. Book, section 3.2.

    >>> import wonderland as wl
    >>> wl.nn.functional.hinge_loss(wl.tensor([2.0, 0.5, -1.0]), wl.ones(3), reduction="none")
    tensor([0. , 0.5, 2. ])

    The derivative is -y inside the margin and 0 outside; at the kink \(y\,\hat y = 1\) it is 0.
    """
    return reduced("hinge_loss", arrays.relu(1.0 - _margin("hinge_loss", input, target)), reduction)


def squared_hinge_loss(input: ArrayLike, target: ArrayLike, reduction: str = "mean") -> Tensor:
    r"""\(\max(0, 1 - y\,\hat y)^2\): a hinge loss without a kink.

    >>> import wonderland as wl
    >>> wl.nn.functional.squared_hinge_loss(wl.tensor([2.0, 0.5, -1.0]), wl.ones(3), reduction="none")
    tensor([0.  , 0.25, 4.  ])
    """
    gap = arrays.relu(1.0 - _margin("squared_hinge_loss", input, target))
    return reduced("squared_hinge_loss", gap * gap, reduction)


def soft_margin_loss(input: ArrayLike, target: ArrayLike, reduction: str = "mean") -> Tensor:
    r"""\(\ln(1 + e^{-y\hat y})\): binary cross-entropy for labels -1 and 1. Book, section 4.3.1.

    >>> import wonderland as wl
    >>> print(wl.nn.functional.soft_margin_loss(wl.tensor([0.0]), wl.tensor([-1.0])))
    tensor(0.693147)
    """
    return reduced("soft_margin_loss", arrays.softplus(-_margin("soft_margin_loss", input, target)), reduction)


def hinge_embedding_loss(input: ArrayLike, target: ArrayLike, margin: float = 1.0, reduction: str = "mean") -> Tensor:
    r"""Distances d of pairs: d where the label is 1 (alike), \(\max(0, m - d)\) where it is -1.

    >>> import wonderland as wl
    >>> d = wl.tensor([0.3, 0.3])
    >>> wl.nn.functional.hinge_embedding_loss(d, wl.tensor([1.0, -1.0]), reduction="none")
    tensor([0.3, 0.7])
    """
    distance, label = pair("hinge_embedding_loss", input, target)
    check_signs("hinge_embedding_loss", label)
    return reduced("hinge_embedding_loss", arrays.where(label > 0, distance, arrays.relu(margin - distance)), reduction)


def margin_ranking_loss(
    input1: ArrayLike, input2: ArrayLike, target: ArrayLike, margin: float = 0.0, reduction: str = "mean"
) -> Tensor:
    r"""\(\max(0, m - y\,(x_1 - x_2))\): the first score should be the larger one if y is 1, the smaller if -1.

    >>> import wonderland as wl
    >>> first, second = wl.tensor([1.0, 1.0]), wl.tensor([0.0, 0.0])
    >>> wl.nn.functional.margin_ranking_loss(first, second, wl.tensor([1.0, -1.0]), margin=0.5, reduction="none")
    tensor([0. , 1.5])
    """
    name = "margin_ranking_loss"
    first, second, label = together(name, input1, input2, target)
    check_same(name, first, second, "two scores for every pair")
    check_same(name, first, label, "one label for every pair")
    check_signs(name, label)
    # not relu, whose slope 0 would leave equal scores as they are without a margin
    return reduced(name, arrays.clip(margin - label * (first - second), 0.0), reduction)


def multi_margin_loss(
    input: ArrayLike,
    target: ArrayLike,
    p: int = 1,
    margin: float = 1.0,
    weight: ArrayLike | None = None,
    reduction: str = "mean",
) -> Tensor:
    r"""\(\frac1C\sum_{c \ne y} w_y \max(0, m - x_y + x_c)^p\) of scores (..., classes) for classes y (...).

    >>> import wonderland as wl
    >>> print(wl.nn.functional.multi_margin_loss(wl.tensor([[0.1, 0.2, 0.4, 0.8]]), wl.tensor([3])))
    tensor(0.325)
    """
    name = "multi_margin_loss"
    scores, target = scores_of(name, input), as_target(name, target)
    classes = class_count(name, scores)
    check_setting(name, "p", p, p in (1, 2), "1 or 2")
    weight = class_weight(name, weight, scores)
    index = class_index(name, scores, target)
    gap = arrays.relu(margin - at_class(name, scores, index)[..., None] + scores)
    gap = gap * gap if p == 2 else gap
    others = arrays.where(arrays.arange(classes) == index[..., None], 0.0, gap)
    losses = arrays.sum(others, axis=-1) / classes
    return reduced(name, losses if weight is None else losses * arrays.take(weight, index), reduction)


def multilabel_margin_loss(input: ArrayLike, target: ArrayLike, reduction: str = "mean") -> Tensor:
    r"""\(\frac1C\sum_{j \in Y}\sum_{i \notin Y} \max(0, 1 - x_j + x_i)\) for several classes per example.

    >>> import wonderland as wl
    >>> x = wl.tensor([[0.1, 0.2, 0.4, 0.8]])
    >>> print(wl.nn.functional.multilabel_margin_loss(x, wl.tensor([[3, 0, -1, 1]])))
    tensor(0.85)

    `target` (..., classes) lists the classes of Y in front; the first -1 ends the list.
    """
    name = "multilabel_margin_loss"
    scores, target = scores_of(name, input), as_tensor(name, target)
    classes = class_count(name, scores)
    if not is_integer(target.dtype):
        raise DTypeError(f"{name}: targets of dtype {target.dtype}.", "integer classes, ended by -1")
    check_same(name, scores, target, "a list of classes for every example, filled up with -1")
    check(name, "a class", target, lambda v: (v >= -1) & (v < classes), f"from 0 to {classes - 1}, or -1")
    listed = arrays.cumsum(arrays.astype(target < 0, target.dtype), axis=-1) == 0
    # (..., position, class): which class a position of the list names
    named = listed[..., None] & (target[..., None] == arrays.arange(classes))
    member = arrays.any(named, axis=-2)
    both = member[..., :, None] & ~member[..., None, :]
    gaps = arrays.relu(1.0 - scores[..., :, None] + scores[..., None, :])
    return reduced(name, arrays.sum(arrays.where(both, gaps, 0.0), axis=(-2, -1)) / classes, reduction)


def multilabel_soft_margin_loss(
    input: ArrayLike, target: ArrayLike, weight: ArrayLike | None = None, reduction: str = "mean"
) -> Tensor:
    r"""The mean over the classes of the binary cross-entropy of logits (..., classes), for targets 0 and 1.

    >>> import wonderland as wl
    >>> print(wl.nn.functional.multilabel_soft_margin_loss(wl.zeros((1, 3)), wl.tensor([[1.0, 0.0, 1.0]])))
    tensor(0.693147)
    """
    name = "multilabel_soft_margin_loss"
    x, y = pair(name, input, target)
    class_count(name, x)
    return reduced(name, arrays.mean(weighted(name, arrays.softplus(x) - x * y, weight), axis=-1), reduction)


def _margin(name: str, input: ArrayLike, target: ArrayLike) -> Tensor:
    score, label = pair(name, input, target)
    check_signs(name, label)
    return label * score
