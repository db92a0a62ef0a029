"""From probabilities and scores to classes and labels. Book, sections 4.2 and 4.3.1."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import arrays
from ..core import dtypes
from ..core.arguments import as_number
from ..core.errors import InputError, ShapeError
from ..core.tensor import Tensor, Tracer
from ..core.typing import ArrayLike


def predict_binary(p: ArrayLike, threshold: float = 0.5, tie: int = 0) -> Tensor:
    r"""1 where p > threshold, 0 where p < threshold, and `tie` where they are equal. Book, section 4.3.1.

    >>> import wonderland as wl
    >>> p = wl.tensor([0.4, 0.5, 0.6])
    >>> predict_binary(p), predict_binary(p, tie=1)
    (tensor([0, 0, 1]), tensor([0, 1, 1]))

    The book rounds .5 down to 0; a threshold unit \(\mathbb 1(s \ge 0)\) says 1 there.
    """
    if not 0 <= as_number("predict_binary", "threshold", threshold) <= 1 or tie not in (0, 1):
        raise InputError(f"predict_binary: threshold={threshold}, tie={tie!r}.", "a threshold in [0, 1]; tie 0 or 1")
    p = as_unit_interval("predict_binary", p)
    return arrays.astype(p >= threshold if tie else p > threshold, dtypes.int64)


def predict_class(probs: ArrayLike, names: Sequence[str] | None = None) -> Any:
    """The class with the largest probability (or score) along the last axis; of equals the first. Book, D.4.3.

    >>> import wonderland as wl
    >>> print(predict_class(wl.tensor([0.2, 0.05, 0.75])), predict_class([0.2, 0.05, 0.75], ["cat", "dog", "bird"]))
    tensor(2) bird

    On the simplex it is the nearest vertex, the mode. With `names` the answer is a name, or an array of them.
    """
    scores = arrays.asarray(probs)
    if not scores.ndim or not scores.shape[-1]:
        raise ShapeError(f"predict_class: scores of shape {scores.shape} have no classes.", "shape (..., classes)")
    if not isinstance(scores, Tracer) and np.isnan(scores.numpy()).any():
        raise InputError("predict_class: some scores are NaN.", "scores that can be compared")
    best = arrays.argmax(scores, axis=-1)
    if names is None:
        return best
    if len(names) != scores.shape[-1]:
        raise InputError(f"predict_class: {len(names)} names for {scores.shape[-1]} classes.", "one name per class")
    chosen = np.array(list(names))[best.numpy()]
    return chosen if chosen.ndim else str(chosen)


def predict_labels(p: ArrayLike, threshold: float = 0.5, tie: int = 0) -> Tensor:
    """Several labels at once: each of the m outputs (..., m) decides on its own, so all 2^m answers are possible.

    >>> import wonderland as wl
    >>> predict_labels(wl.tensor([0.9, 0.2, 0.7]))
    tensor([1, 0, 1])

    The outputs are m independent sigmoids or threshold units. Notes, section 2.4.3.
    """
    if not arrays.asarray(p).ndim:
        raise ShapeError("predict_labels: a single number has no axis of labels.", "shape (..., labels)")
    return predict_binary(p, threshold, tie)


def as_unit_interval(name: str, p: ArrayLike) -> Tensor:
    """Probabilities of any shape, from 0 to 1; NaN and others are refused where they are known.

    >>> as_unit_interval("f", [0.0, 1.0])
    tensor([0., 1.])
    """
    p = arrays.asarray(p)
    if not isinstance(p, Tracer):
        values = p.numpy()
        if not ((values >= 0) & (values <= 1)).all():
            raise InputError(f"{name}: some probabilities are NaN or outside [0, 1].", "probabilities, not logits")
    return p


def as_probabilities(name: str, probs: ArrayLike, tolerance: float = 1e-4) -> Tensor:
    """Points of the simplex along the last axis; others are refused where they are known.

    >>> as_probabilities("f", [[0.25, 0.75]]).shape
    (1, 2)
    """
    probs = arrays.asarray(probs)
    if not probs.ndim or not probs.shape[-1]:
        raise ShapeError(f"{name}: probabilities of shape {probs.shape} have no classes.", "shape (..., classes)")
    if not isinstance(probs, Tracer):
        values = np.asarray(probs, np.float64)
        on = (values >= 0).all(axis=-1) & (np.abs(values.sum(axis=-1) - 1) <= tolerance)
        if not on.all():
            place = tuple(int(i[0]) for i in np.nonzero(~np.atleast_1d(on)))
            row = values[place] if values.ndim > 1 else values
            raise InputError(
                f"{name}: {np.array2string(row, precision=4, threshold=6)} is not on the simplex: numbers of 0 or more "
                "that add up to 1.",
                "wl.softmax(logits)",
            )
    return probs
