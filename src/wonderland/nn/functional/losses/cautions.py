"""Warnings about losses that are used in a way that trains badly."""

from __future__ import annotations

import warnings

import numpy as np

from ....core.context import user_level
from ....core.dtypes import is_floating, is_half, is_integer
from ....core.tensor import Tensor
from ....core.typing import ArrayLike
from ....random.arguments import known, parameter

__all__ = ["ClassTargetWarning", "DoubleSoftmaxWarning", "FlatLossWarning", "looks_like_probabilities"]

_ROWS = 8  # as many rows are looked at in every call of `cross_entropy`


class DoubleSoftmaxWarning(UserWarning):
    """A loss that takes logits received probabilities: softmax is in the model and in the loss. Book, section 4.3.2."""


class ClassTargetWarning(UserWarning):
    """A loss for numbers received integers: numbers of classes have no order. Book, section 4.2."""


class FlatLossWarning(UserWarning):
    """A loss was differentiated whose derivative is zero almost everywhere. Book, section 3.2."""


def looks_like_probabilities(x: ArrayLike) -> bool:
    """Whether all rows (along the last axis, of two or more numbers) are nonnegative and sum to 1.

    >>> import wonderland as wl
    >>> logits = wl.tensor([[2.0, -1.0, 0.5]])
    >>> wl.nn.functional.looks_like_probabilities(logits)
    False
    >>> wl.nn.functional.looks_like_probabilities(wl.softmax(logits))
    True

    Logits of which this holds have most likely been through a softmax already. False for values that are being traced,
    as they have no numbers yet. Book, section 4.3.2.
    """
    value = known(parameter("looks_like_probabilities", x))
    if value is None or value.ndim == 0 or value.shape[-1] < 2 or not value.size or not is_floating(value.dtype):
        return False
    if not 0.0 <= value.flat[0] <= 1.0:  # most logits end here
        return False
    tolerance = 1e-2 if is_half(value.dtype) else 1e-4
    sums = value.sum(axis=-1, dtype=np.float64 if value.dtype == np.float64 else np.float32)
    return bool((abs(sums - 1.0) <= tolerance).all() and (value >= 0).all())


def warn_of_probabilities(name: str, logits: ArrayLike) -> None:
    """Warn if the first rows of logits are probabilities; nothing is looked at while tracing."""
    value = known(parameter(name, logits))
    if value is None:
        return
    rows = value.reshape(-1, value.shape[-1])[:_ROWS]
    # an output of 0 and 1 alone is no softmax, but a table of scores
    if looks_like_probabilities(rows) and bool(((rows > 0) & (rows < 1)).any()):
        warnings.warn(
            f"{name}: the logits are probabilities (every row sums to 1), so softmax is applied twice. "
            f"Remove it from the model, or use cross_entropy_with_probs.",
            DoubleSoftmaxWarning,
            stacklevel=user_level(),
        )


def warn_of_classes(name: str, prediction: ArrayLike, target: ArrayLike) -> None:
    """Warn if floating predictions are compared with integers."""
    if isinstance(target, (Tensor, np.ndarray)) and is_integer(target.dtype):
        kind = getattr(prediction, "dtype", None)
        if kind is not None and is_floating(kind):
            warnings.warn(
                f"{name}: the targets are {target.dtype}. Classes have no order, so they need cross_entropy; "
                f"quantities should be floating: y.astype(wl.{kind}).",
                ClassTargetWarning,
                stacklevel=user_level(),
            )
