"""What targets may look like, and errors for those that do not: the loss, what it got, and what to do."""

from __future__ import annotations

import numpy as np

from .... import arrays
from ....arrays.conversion import as_tensor
from ....arrays.gathering import take_labels
from ....core.arguments import shown
from ....core.dtypes import bool_, is_integer
from ....core.errors import DTypeError, InputError, ShapeError
from ....core.tensor import Tensor
from ....core.typing import ArrayLike
from ....primitives.indexing import wrong_label
from ....random.arguments import check, known
from ..lookup import counted_from_zero

_NUMBERED = "numbers of classes: `classes, y = np.unique(labels, return_inverse=True)`"


def as_target(name: str, target: ArrayLike) -> Tensor:
    """Targets as a tensor; texts and nothing at all are refused by what they are."""
    refuse_texts(name, target)
    return as_tensor(name, target)


def refuse_texts(name: str, target: object) -> None:
    """Refuse targets that are texts, or None."""
    if isinstance(target, Tensor):
        return
    if target is None:
        raise InputError(f"{name}: the targets are None.", "a tensor of targets as the second argument")
    kind = getattr(getattr(target, "dtype", None), "kind", "O" if isinstance(target, (list, tuple, str)) else "")
    if kind and kind in "USO":
        flat = np.asarray(target, dtype=object).ravel().tolist()
        texts = [value for value in flat if isinstance(value, str)]
        if texts:
            raise DTypeError(f"{name}: the labels are texts, such as {shown(texts[0])}.", _NUMBERED)


def class_index(name: str, scores: Tensor, target: Tensor, ignore_index: int | None = None) -> Tensor:
    """The classes to look up: integers of the shape of the scores without their last axis."""
    classes, wanted = scores.shape[-1], scores.shape[:-1]
    if not is_integer(target.dtype):
        if target.shape == scores.shape:
            remedy = "the classes themselves: y.argmax(-1) of rows that are one-hot or probabilities"
        elif target.dtype == bool_:
            remedy = "integers, y.astype(wl.int64), for two classes; a binary loss for one score per example"
        else:
            remedy = "integer classes: y.astype(wl.int64) if they are whole; a loss such as mse_loss for quantities"
        raise DTypeError(f"{name}: labels of dtype {target.dtype} and shape {target.shape} are no classes.", remedy)
    if target.shape != wanted:
        if target.shape == (*wanted, 1):
            remedy = "y[..., 0], one class for each example"
        elif target.ndim == scores.ndim and target.shape[:-1] == wanted:
            remedy = f"y.argmax(-1) of one-hot rows, of which there would be {classes} columns"
        else:
            remedy = f"classes of shape {wanted}; the axis of classes is the last one"
        raise ShapeError(
            f"{name}: classes of shape {target.shape} do not belong to scores of shape {scores.shape}.", remedy
        )
    value = known(target)
    if value is not None and value.size and not 0 <= value.min() <= value.max() < classes:
        bad = value[(value < 0) | (value >= classes)]
        bad = bad if ignore_index is None else bad[bad != ignore_index]
        if bad.size:
            raise wrong_label(name, str(bad[0]), classes)
    return counted_from_zero(target, classes)


def class_targets(name: str, scores: Tensor, target: Tensor, ignore_index: int) -> tuple[Tensor, Tensor]:
    """The classes to look up, and which of them count: all but those of a number that stands for an ignored one."""
    index = class_index(name, scores, target, ignore_index)
    counted = target != ignore_index
    return arrays.where(counted, index, 0), counted


def at_class(name: str, scores: Tensor, index: Tensor) -> Tensor:
    """The score of a class of each example."""
    return take_labels(name, scores, index)


def check_distribution(name: str, scores: Tensor, target: Tensor) -> None:
    """Refuse floating targets that are not of the shape of the scores."""
    if target.shape == scores.shape:
        return
    if target.shape in (scores.shape[:-1], (*scores.shape[:-1], 1)):
        whole = "y.astype(wl.int64)" if target.ndim < scores.ndim else "y[..., 0].astype(wl.int64)"
        raise DTypeError(
            f"{name}: labels of dtype {target.dtype} and shape {target.shape} are no classes.",
            f"integer classes, {whole}; a loss such as mse_loss for quantities",
        )
    raise ShapeError(
        f"{name}: predictions of shape {scores.shape} and targets of shape {target.shape} differ.",
        "probabilities of the shape of the predictions, or integer classes",
    )


def check_yes_or_no(name: str, target: Tensor) -> None:
    """Refuse targets outside of [0, 1], where they can be looked at."""
    remedy = "targets from 0 to 1; (y + 1) / 2 turns -1 and 1 into them, cross_entropy is for more than two classes"
    check(name, "a target", target, lambda v: (v >= 0) & (v <= 1), remedy)


def shapes_remedy(prediction: Tensor, target: Tensor) -> str:
    """What to do about predictions and targets of different shapes."""
    one_each = "reshape one of them; (n, 1) and (n,) would give n x n differences"
    if prediction.shape == (*target.shape, 1):
        return f"targets[..., None], or predictions[..., 0]: {one_each}"
    if target.shape == (*prediction.shape, 1):
        return f"targets[..., 0]: {one_each}"
    if prediction.ndim == target.ndim + 1 and prediction.shape[:-1] == target.shape:
        columns = prediction.shape[-1]
        return f"cross_entropy for classes, wl.one_hot(y, {columns}) for a target in each of the {columns} columns"
    return one_each
