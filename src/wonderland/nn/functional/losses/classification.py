"""Losses of one class out of several."""

from __future__ import annotations

import numpy as np

from .... import arrays
from ....arrays.conversion import as_tensor
from ....core.dtypes import bool_, float32, is_floating, is_half, is_integer
from ....core.errors import DTypeError, InputError
from ....core.tensor import Tensor
from ....core.typing import ArrayLike
from ....random.arguments import known
from .cautions import warn_of_probabilities
from .labels import as_target, at_class, check_distribution, class_targets
from .reduction import check_setting, class_count, class_weight, counted_mean, log_from, reduced, scores_of

__all__ = ["cross_entropy", "cross_entropy_with_probs", "focal_loss", "nll_loss"]


def cross_entropy(
    input: ArrayLike,
    target: ArrayLike,
    weight: ArrayLike | None = None,
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

    `target` is (...) with integers, the classes, or (..., classes) with probabilities p (one-hot rows among them), for
    which the loss is \(-\sum_c p_c \ln \mathrm{softmax}(x)_c\). `label_smoothing` \(\varepsilon\) replaces p by
    \((1-\varepsilon)\,p + \varepsilon/C\). `weight` (classes,) multiplies the terms of its classes, and the mean over
    integer targets is then a weighted one. Targets equal to `ignore_index` do not count; if none counts, the mean is 0.
    """
    logits, target = _scores_first("cross_entropy", input, target)
    class_count("cross_entropy", logits)
    warn_of_probabilities("cross_entropy", logits)
    if is_half(logits.dtype):  # the sum needs more digits
        wide = arrays.astype(logits, float32)
        loss = _from_logits(wide, target, weight, ignore_index, reduction, label_smoothing)
        return arrays.astype(loss, logits.dtype)
    return _from_logits(logits, target, weight, ignore_index, reduction, label_smoothing)


def _from_logits(
    logits: Tensor, target: Tensor, weight: ArrayLike | None, ignore_index: int, reduction: str, label_smoothing: float
) -> Tensor:
    classes = logits.shape[-1]
    in_range = 0.0 <= label_smoothing <= 1.0
    check_setting("cross_entropy", "label_smoothing", label_smoothing, in_range, "a number from 0 to 1")
    weight = class_weight("cross_entropy", weight, logits)
    top = arrays.stop_gradient(arrays.max(logits, axis=-1, keepdims=True))
    shifted = logits - top
    log_sum = arrays.log(arrays.sum(arrays.exp(shifted), axis=-1))
    if _is_distribution("cross_entropy", target, logits):
        check_distribution("cross_entropy", logits, target)
        target = arrays.astype(target, logits.dtype)
        if label_smoothing:
            target = (1.0 - label_smoothing) * target + label_smoothing / classes
        if weight is not None:
            target = target * weight
        return reduced("cross_entropy", arrays.sum(target * (log_sum[..., None] - shifted), axis=-1), reduction)
    index, counted = class_targets("cross_entropy", logits, target, ignore_index)
    # of the logits one number per example is taken, so nothing of their size is made for the targets
    losses = log_sum - (at_class("cross_entropy", logits, index) - arrays.squeeze(top, -1))
    share = None if weight is None else arrays.take(weight, index)
    if share is not None:
        losses = losses * share
    if label_smoothing:
        if weight is None:
            spread = log_sum - arrays.mean(shifted, axis=-1)
        else:
            spread = arrays.sum(weight * (log_sum[..., None] - shifted), axis=-1) / classes
        losses = (1.0 - label_smoothing) * losses + label_smoothing * spread
    return counted_mean("cross_entropy", losses, counted, share, reduction)


def nll_loss(
    input: ArrayLike,
    target: ArrayLike,
    weight: ArrayLike | None = None,
    ignore_index: int = -100,
    reduction: str = "mean",
) -> Tensor:
    r"""\(-\ell_y\) of log-probabilities \(\ell\) (..., classes) for integer targets (...). Book, section 4.2.2.

    >>> import wonderland as wl
    >>> print(wl.nn.functional.nll_loss(wl.log(wl.tensor([[0.25, 0.75]])), wl.tensor([1])))
    tensor(0.287682)

    With logits, `cross_entropy` does both steps. The other arguments are those of `cross_entropy`.
    """
    return _likelihood("nll_loss", scores_of("nll_loss", input), target, weight, ignore_index, reduction)


def _likelihood(
    name: str, scores: Tensor, target: ArrayLike, weight: ArrayLike | None, ignore_index: int, reduction: str
) -> Tensor:
    target = as_target(name, target)
    class_count(name, scores)
    weight = class_weight(name, weight, scores)
    index, counted = class_targets(name, scores, target, ignore_index)
    losses = -at_class(name, scores, index)
    share = None if weight is None else arrays.take(weight, index)
    return counted_mean(name, losses if share is None else losses * share, counted, share, reduction)


def cross_entropy_with_probs(
    input: ArrayLike,
    target: ArrayLike,
    weight: ArrayLike | None = None,
    ignore_index: int = -100,
    reduction: str = "mean",
) -> Tensor:
    r"""\(-\ln p_y\) of probabilities p (..., classes), what a softmax gives. Book, section 4.2.2.

    >>> import wonderland as wl
    >>> p = wl.tensor([[0.25, 0.75]])
    >>> print(wl.nn.functional.cross_entropy_with_probs(p, wl.tensor([1])))
    tensor(0.287682)
    >>> print(wl.nn.functional.cross_entropy_with_probs(p, wl.tensor([[0.0, 1.0]])))
    tensor(0.287682)

    `target` is as in `cross_entropy`. Logarithms below -100 count as -100. Rows that are not probabilities are refused
    where they can be looked at. From logits, `cross_entropy` has the stable form.
    """
    name = "cross_entropy_with_probs"
    p, target = _scores_first(name, input, target)
    class_count(name, p)
    _check_probabilities(name, p)
    if not _is_distribution(name, target, p):
        return _likelihood(name, log_from(p), target, weight, ignore_index, reduction)
    check_distribution(name, p, target)
    weight = class_weight(name, weight, p)
    terms = arrays.astype(target, p.dtype) * -log_from(p)
    return reduced(name, arrays.sum(terms if weight is None else terms * weight, axis=-1), reduction)


def focal_loss(
    input: ArrayLike,
    target: ArrayLike,
    gamma: float = 2.0,
    alpha: ArrayLike | None = None,
    ignore_index: int = -100,
    reduction: str = "mean",
) -> Tensor:
    r"""\(-\alpha_y\,(1 - p_y)^\gamma \ln p_y\) with p the softmax of logits (..., classes). Book, section 4.3.4.

    >>> import wonderland as wl
    >>> logits = wl.log(wl.tensor([[0.9, 0.1]], wl.float64))
    >>> print(wl.nn.functional.focal_loss(logits, wl.tensor([0])))
    tensor(0.00105361, dtype=float64)

    Examples that are predicted well count less; with `gamma` 0 it is `cross_entropy`. `target` is as there, `alpha` are
    weights of the classes (classes,). The mean is over the examples, whatever their weights.
    """
    name = "focal_loss"
    logits, target = _scores_first(name, input, target)
    class_count(name, logits)
    check_setting(name, "gamma", gamma, gamma >= 0, "gamma >= 0")
    warn_of_probabilities(name, logits)
    alpha = class_weight(name, alpha, logits)
    log_p = arrays.log_softmax(logits)
    if _is_distribution(name, target, logits):
        check_distribution(name, logits, target)
        terms = arrays.astype(target, logits.dtype) * _focused(log_p, gamma)
        return reduced(name, arrays.sum(terms if alpha is None else terms * alpha, axis=-1), reduction)
    index, counted = class_targets(name, logits, target, ignore_index)
    losses = _focused(at_class(name, log_p, index), gamma)
    losses = losses if alpha is None else losses * arrays.take(alpha, index)
    return counted_mean(name, losses, counted, None, reduction)


def _focused(log_p: Tensor, gamma: float) -> Tensor:
    """-(1 - p)^gamma ln p, with 1 - p without cancellation and no infinite derivative at p = 1."""
    if not gamma:
        return -log_p
    return -log_p * arrays.exp(gamma * arrays.log(-arrays.expm1(arrays.minimum(log_p, -1e-30))))


def _scores_first(name: str, input: ArrayLike, target: ArrayLike) -> tuple[Tensor, Tensor]:
    """Scores and targets; refuses classes where the scores should be."""
    input, target = as_tensor(name, input), as_target(name, target)
    if is_integer(input.dtype) and is_floating(target.dtype) and target.ndim > input.ndim:
        raise DTypeError(
            f"{name}: the first argument holds integers {input.shape} and the second numbers {target.shape}.",
            f"the predictions first: {name}(scores, classes)",
        )
    return scores_of(name, input), target


def _is_distribution(name: str, target: Tensor, scores: Tensor) -> bool:
    """Whether targets are probabilities: floating, or one-hot rows of integers of the shape of the scores."""
    if is_floating(target.dtype):
        return True
    if target.shape != scores.shape:
        return False
    value = known(target)
    if value is not None and not (np.isin(value, (0, 1)).all() and (value.sum(-1) == 1).all()):
        kind = "truth values" if target.dtype == bool_ else "integers"
        raise InputError(
            f"{name}: targets of the shape of the scores {scores.shape} are {kind}, but not one-hot rows.",
            f"one 1 in each row, classes of shape {scores.shape[:-1]}, or binary_cross_entropy for many labels at once",
        )
    return True


def _check_probabilities(name: str, p: Tensor) -> None:
    value = known(p)
    if value is None:
        return
    sums = value.sum(-1, dtype=np.float64)
    if not ((value >= 0).all() and (abs(sums - 1.0) <= (2e-2 if is_half(value.dtype) else 1e-3)).all()):
        raise InputError(
            f"{name}: some rows are not probabilities.", "nonnegative rows that sum to 1, or cross_entropy"
        )
