"""What all losses share: pairs of one shape, labels, weights, and the reduction to one number."""

from __future__ import annotations

from .... import arrays
from ....arrays.conversion import as_real, for_sums, promote_inexact
from ....core.errors import InputError, ShapeError
from ....core.tensor import Tensor
from ....core.typing import ArrayLike
from ....random.arguments import check
from .labels import refuse_texts, shapes_remedy

REDUCTIONS = ("mean", "sum", "none")


def scores_of(name: str, x: ArrayLike) -> Tensor:
    """Scores or logits as a floating tensor; inside `wl.autocast`, losses are computed in float32."""
    return for_sums(as_real(name, x))


def together(name: str, *xs: ArrayLike) -> list[Tensor]:
    """What a loss compares as floating tensors of one dtype; inside `wl.autocast`, float32."""
    return [for_sums(x) for x in promote_inexact(name, *xs)]


def pair(name: str, prediction: ArrayLike, target: ArrayLike) -> list[Tensor]:
    """Predictions and targets as floating tensors of one shape."""
    refuse_texts(name, target)
    prediction, target = together(name, prediction, target)
    if prediction.shape != target.shape:
        check_same(name, prediction, target, shapes_remedy(prediction, target))
    return [prediction, target]


def check_same(name: str, prediction: Tensor, target: Tensor, remedy: str) -> None:
    if prediction.shape != target.shape:
        raise ShapeError(
            f"{name}: predictions of shape {prediction.shape} and targets of shape {target.shape} differ.", remedy
        )


def check_signs(name: str, labels: ArrayLike) -> None:
    """Refuse labels other than -1 and 1, where they can be looked at."""
    check(name, "a label", labels, lambda v: abs(v) == 1, "labels -1 and 1; 2 * y - 1 turns labels 0 and 1 into them")


def check_setting(name: str, what: str, value: float, good: bool, wanted: str) -> None:
    if not good:
        raise InputError(f"{name}: {what}={value}.", wanted)


def class_count(name: str, scores: Tensor) -> int:
    if not scores.ndim or not scores.shape[-1]:
        raise ShapeError(f"{name}: scores of shape {scores.shape} have no classes.", "scores of shape (..., classes)")
    return scores.shape[-1]


def class_weight(name: str, weight: ArrayLike | None, scores: Tensor) -> Tensor | None:
    if weight is None:
        return None
    weight = arrays.asarray(weight, dtype=None if hasattr(weight, "dtype") else scores.dtype)
    if weight.shape != scores.shape[-1:]:
        raise ShapeError(f"{name}: weights of shape {weight.shape} for {scores.shape[-1]} classes.", "one per class")
    return weight


def log_from(q: Tensor) -> Tensor:
    """The logarithm of probabilities; below -100 it counts as -100, and the derivative of 0 stays finite."""
    # a probability of 0 has a logarithm with an infinite derivative, so the limit is put on q before it
    tiny = q <= 3.7e-44  # exp(-100)
    return arrays.where(tiny, -100.0, arrays.log(arrays.where(tiny, 1.0, q)))


def weighted(name: str, losses: Tensor, weight: ArrayLike | None) -> Tensor:
    if weight is None:
        return losses
    weight = arrays.asarray(weight, dtype=None if hasattr(weight, "dtype") else losses.dtype)
    if arrays.broadcast_shapes(weight.shape, losses.shape) != losses.shape:
        raise ShapeError(f"{name}: weights of shape {weight.shape} for losses of shape {losses.shape}.", "fewer axes")
    return losses * weight


def counted_mean(name: str, losses: Tensor, counted: Tensor, share: Tensor | None, reduction: str) -> Tensor:
    """The reduction over the examples that count; `share` are the weights of the mean."""
    losses = arrays.where(counted, losses, 0.0)
    if reduction != "mean":
        return reduced(name, losses, reduction)
    total = arrays.sum(arrays.astype(counted, losses.dtype) if share is None else arrays.where(counted, share, 0.0))
    return arrays.sum(losses) / arrays.where(total == 0, 1.0, total)


def check_reduction(name: str, reduction: str) -> None:
    if reduction not in REDUCTIONS:
        raise InputError(f"{name}: reduction={reduction!r}.", '"mean", "sum" or "none"')


def reduced(name: str, losses: Tensor, reduction: str) -> Tensor:
    check_reduction(name, reduction)
    return losses if reduction == "none" else arrays.mean(losses) if reduction == "mean" else arrays.sum(losses)
