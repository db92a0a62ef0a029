"""Losses: one number that says how far predictions are from targets. Book, chapter 4.

Predictions and targets must have the same shape: nothing is broadcast. Classes are along the last axis. `reduction` is
"mean", "sum", or "none" for one loss per example.
"""

from __future__ import annotations

from typing import Any

from ... import array
from ...array.conversion import as_real, as_tensor, promote_inexact
from ...dtypes import float32, is_floating, is_half, is_integer
from ...errors import DTypeError, InputError, ShapeError
from ...tensor import Tensor
from .lookup import counted_from_zero

__all__ = [
    "binary_cross_entropy",
    "binary_cross_entropy_with_logits",
    "cross_entropy",
    "huber_loss",
    "l1_loss",
    "mse_loss",
    "nll_loss",
    "smooth_l1_loss",
]


def cross_entropy(
    input: Any,
    target: Any,
    weight: Any = None,
    ignore_index: int = -100,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:
    r"""\(-\ln \mathrm{softmax}(x)_y\) of logits x (..., classes). Book, section 4.2.2.

    >>> import wonderland as wl
    >>> logits = wl.tensor([[0.0, 0.0], [0.0, 1000.0]])
    >>> wl.nn.functional.cross_entropy(logits, wl.tensor([0, 1]), reduction="none")
    tensor([0.693147, 0.      ])
    >>> print(wl.nn.functional.cross_entropy(logits, wl.tensor([[0.5, 0.5], [0.0, 1.0]]), reduction="sum"))
    tensor(0.693147)

    `target` is (...) with integers, the classes, or (..., classes) with probabilities p, for which the loss is
    \(-\sum_c p_c \ln \mathrm{softmax}(x)_c\). `label_smoothing` \(\varepsilon\) replaces p by
    \((1-\varepsilon)\,p + \varepsilon/C\). `weight` (classes,) multiplies the terms of its classes, and the mean over
    integer targets is then a weighted one. Targets equal to `ignore_index` do not count; if none counts, the mean is 0.
    """
    logits, target = as_real("cross_entropy", input), as_tensor("cross_entropy", target)
    if is_half(logits.dtype):  # the sum needs more digits
        wide = array.astype(logits, float32)
        return array.astype(cross_entropy(wide, target, weight, ignore_index, reduction, label_smoothing), logits.dtype)
    classes = _classes("cross_entropy", logits)
    if not 0.0 <= label_smoothing <= 1.0:
        raise InputError(f"cross_entropy: label_smoothing={label_smoothing}.", "a number from 0 to 1")
    weight = _class_weight("cross_entropy", weight, logits)
    top = array.stop_gradient(array.max(logits, axis=-1, keepdims=True))
    shifted = logits - top
    log_sum = array.log(array.sum(array.exp(shifted), axis=-1))
    if is_floating(target.dtype):
        _check_same("cross_entropy", logits, target, "probabilities of the shape of the logits, or integer classes")
        if label_smoothing:
            target = (1.0 - label_smoothing) * target + label_smoothing / classes
        if weight is not None:
            target = target * weight
        return _reduced("cross_entropy", array.sum(target * (log_sum[..., None] - shifted), axis=-1), reduction)
    index, counted = _class_targets("cross_entropy", logits, target, ignore_index)
    # of the logits one number per example is taken, so nothing of their size is made for the targets
    chosen = array.take_along_axis(logits, index[..., None], axis=-1) - top
    losses = log_sum - array.squeeze(chosen, -1)
    share = None if weight is None else array.take(weight, index)
    if share is not None:
        losses = losses * share
    if label_smoothing:
        if weight is None:
            spread = log_sum - array.mean(shifted, axis=-1)
        else:
            spread = array.sum(weight * (log_sum[..., None] - shifted), axis=-1) / classes
        losses = (1.0 - label_smoothing) * losses + label_smoothing * spread
    return _counted("cross_entropy", losses, counted, share, reduction)


def nll_loss(input: Any, target: Any, weight: Any = None, ignore_index: int = -100, reduction: str = "mean") -> Tensor:
    r"""\(-\ell_y\) of log-probabilities \(\ell\) (..., classes) for integer targets (...). Book, section 4.2.2.

    >>> import wonderland as wl
    >>> print(wl.nn.functional.nll_loss(wl.log(wl.tensor([[0.25, 0.75]])), wl.tensor([1])))
    tensor(0.287682)

    With logits, `cross_entropy` does both steps. The other arguments are those of `cross_entropy`.
    """
    scores, target = as_real("nll_loss", input), as_tensor("nll_loss", target)
    _classes("nll_loss", scores)
    weight = _class_weight("nll_loss", weight, scores)
    index, counted = _class_targets("nll_loss", scores, target, ignore_index)
    losses = -array.squeeze(array.take_along_axis(scores, index[..., None], axis=-1), -1)
    share = None if weight is None else array.take(weight, index)
    return _counted("nll_loss", losses if share is None else losses * share, counted, share, reduction)


def mse_loss(input: Any, target: Any, reduction: str = "mean") -> Tensor:
    r"""The squared error \((\hat y - y)^2\). Book, section 4.1.1.

    >>> import wonderland as wl
    >>> print(wl.nn.functional.mse_loss(wl.tensor([1.0, 2.0]), wl.tensor([1.0, 4.0])))
    tensor(2.)
    """
    prediction, target = _pair("mse_loss", input, target)
    return _reduced("mse_loss", array.square(prediction - target), reduction)


def l1_loss(input: Any, target: Any, reduction: str = "mean") -> Tensor:
    r"""The absolute error \(|\hat y - y|\). Book, section 4.1.1.

    >>> import wonderland as wl
    >>> print(wl.nn.functional.l1_loss(wl.tensor([1.0, 2.0]), wl.tensor([1.0, 4.0])))
    tensor(1.)
    """
    prediction, target = _pair("l1_loss", input, target)
    return _reduced("l1_loss", array.abs(prediction - target), reduction)


def huber_loss(input: Any, target: Any, reduction: str = "mean", delta: float = 1.0) -> Tensor:
    r"""\(\frac12 d^2\) for errors \(|d| \le \delta\), and \(\delta(|d| - \frac12\delta)\) for larger ones.

    >>> import wonderland as wl
    >>> wl.nn.functional.huber_loss(wl.tensor([1.0, 4.0]), wl.zeros(2), reduction="none")
    tensor([0.5, 3.5])
    """
    prediction, target = _pair("huber_loss", input, target)
    if delta <= 0:
        raise InputError(f"huber_loss: delta={delta}.", "delta > 0")
    d = array.abs(prediction - target)
    return _reduced("huber_loss", array.where(d <= delta, 0.5 * d * d, delta * (d - 0.5 * delta)), reduction)


def smooth_l1_loss(input: Any, target: Any, reduction: str = "mean", beta: float = 1.0) -> Tensor:
    r"""\(\frac{1}{2\beta} d^2\) for errors \(|d| < \beta\), and \(|d| - \frac12\beta\) for larger ones.

    >>> import wonderland as wl
    >>> wl.nn.functional.smooth_l1_loss(wl.tensor([1.0, 4.0]), wl.zeros(2), reduction="none", beta=2.0)
    tensor([0.25, 3.  ])
    """
    prediction, target = _pair("smooth_l1_loss", input, target)
    if beta < 0:
        raise InputError(f"smooth_l1_loss: beta={beta}.", "beta >= 0")
    d = array.abs(prediction - target)
    if beta:
        d = array.where(d < beta, d * d * (0.5 / beta), d - 0.5 * beta)
    return _reduced("smooth_l1_loss", d, reduction)


def binary_cross_entropy(input: Any, target: Any, weight: Any = None, reduction: str = "mean") -> Tensor:
    r"""\(-y\ln p - (1-y)\ln(1-p)\) of probabilities p. Book, section 4.3.1.

    >>> import wonderland as wl
    >>> print(wl.nn.functional.binary_cross_entropy(wl.tensor([0.5, 0.25]), wl.tensor([1.0, 0.0]), reduction="sum"))
    tensor(0.980829)

    Logarithms below -100 count as -100. With logits, `binary_cross_entropy_with_logits` is the stable form.
    """
    p, y = _pair("binary_cross_entropy", input, target)
    # a probability of 0 has a logarithm with an infinite derivative, so the limit is put on p before it
    hit, miss = (_log_from(q) for q in (p, 1.0 - p))
    losses = _weighted("binary_cross_entropy", -y * hit - (1.0 - y) * miss, weight)
    return _reduced("binary_cross_entropy", losses, reduction)


def binary_cross_entropy_with_logits(
    input: Any, target: Any, weight: Any = None, reduction: str = "mean", pos_weight: Any = None
) -> Tensor:
    r"""\(-y\ln\sigma(x) - (1-y)\ln(1-\sigma(x)) = \ln(1 + e^x) - x y\) of logits x. Book, section 4.3.1.

    >>> import wonderland as wl
    >>> x = wl.tensor([1000.0, 1000.0])
    >>> wl.nn.functional.binary_cross_entropy_with_logits(x, wl.tensor([0.0, 1.0]), reduction="none")
    tensor([1000., 0.])

    `pos_weight` multiplies the term of y, `weight` the whole; both may have fewer axes than x.
    """
    name = "binary_cross_entropy_with_logits"
    x, y = _pair(name, input, target)
    if pos_weight is None:
        losses = array.softplus(x) - x * y
    else:
        losses = (1.0 - y) * array.softplus(x) + _weighted(name, y * array.softplus(-x), pos_weight)
    return _reduced(name, _weighted(name, losses, weight), reduction)


def _log_from(q: Tensor) -> Tensor:
    tiny = q <= 3.7e-44  # exp(-100)
    return array.where(tiny, -100.0, array.log(array.where(tiny, 1.0, q)))


def _pair(name: str, prediction: Any, target: Any) -> list[Any]:
    prediction, target = promote_inexact(name, prediction, target)
    _check_same(name, prediction, target, "reshape one of them; (n, 1) and (n,) would give n x n differences")
    return [prediction, target]


def _check_same(name: str, prediction: Any, target: Any, remedy: str) -> None:
    if prediction.shape != target.shape:
        raise ShapeError(
            f"{name}: predictions of shape {prediction.shape} and targets of shape {target.shape} differ.", remedy
        )


def _classes(name: str, scores: Any) -> int:
    if not scores.ndim or not scores.shape[-1]:
        raise ShapeError(f"{name}: scores of shape {scores.shape} have no classes.", "scores of shape (..., classes)")
    return scores.shape[-1]


def _class_weight(name: str, weight: Any, scores: Any) -> Any:
    if weight is None:
        return None
    weight = array.asarray(weight, dtype=None if hasattr(weight, "dtype") else scores.dtype)
    if weight.shape != scores.shape[-1:]:
        raise ShapeError(f"{name}: weights of shape {weight.shape} for {scores.shape[-1]} classes.", "one per class")
    return weight


def _class_targets(name: str, scores: Any, target: Any, ignore_index: int) -> tuple[Any, Any]:
    """The classes to look up, and which of them count."""
    if not is_integer(target.dtype):
        raise DTypeError(f"{name}: targets of dtype {target.dtype}.", "integer classes")
    if target.shape != scores.shape[:-1]:
        raise ShapeError(
            f"{name}: classes of shape {target.shape} do not belong to scores of shape {scores.shape}.",
            f"classes of shape {scores.shape[:-1]}; the axis of classes is the last one",
        )
    counted = target != ignore_index
    return array.where(counted, counted_from_zero(target, scores.shape[-1]), 0), counted


def _weighted(name: str, losses: Any, weight: Any) -> Any:
    if weight is None:
        return losses
    weight = array.asarray(weight, dtype=None if hasattr(weight, "dtype") else losses.dtype)
    if array.broadcast_shapes(weight.shape, losses.shape) != losses.shape:
        raise ShapeError(f"{name}: weights of shape {weight.shape} for losses of shape {losses.shape}.", "fewer axes")
    return losses * weight


def _counted(name: str, losses: Any, counted: Any, share: Any, reduction: str) -> Tensor:
    """The reduction over the examples that count; `share` are the weights of the mean."""
    losses = array.where(counted, losses, 0.0)
    if reduction != "mean":
        return _reduced(name, losses, reduction)
    total = array.sum(array.astype(counted, losses.dtype) if share is None else array.where(counted, share, 0.0))
    return array.sum(losses) / array.where(total == 0, 1.0, total)


def _reduced(name: str, losses: Any, reduction: str) -> Tensor:
    if reduction == "mean":
        return array.mean(losses)
    if reduction == "sum":
        return array.sum(losses)
    if reduction == "none":
        return losses
    raise InputError(f"{name}: reduction={reduction!r}.", '"mean", "sum" or "none"')
