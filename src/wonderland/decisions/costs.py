"""Decisions when mistakes differ in cost. Book, section 4.3.3."""

from __future__ import annotations

import numpy as np

from .. import arrays
from ..core.errors import InputError, ShapeError
from ..core.tensor import Tensor, Tracer
from ..core.typing import ArrayLike
from .thresholds import as_probabilities

ROWS = ("predicted", "true")


def expected_cost(probs: ArrayLike, cost_matrix: ArrayLike, *, rows: str = "predicted") -> Tensor:
    r"""\(\sum_j C_{ij}\,p_j\): what each decision i costs on average, for probabilities (..., m) of the true class j.

    >>> import wonderland as wl
    >>> C = wl.tensor([[0.0, 10.0], [1.0, 0.0]])  # to predict 0 where 1 is true costs 10, the other mistake 1
    >>> expected_cost(wl.tensor([0.75, 0.25]), C)
    tensor([2.5 , 0.75])

    \(C_{ij}\) is the cost of predicting i when j is true: rows are predicted and columns true classes, as in the book's
    table T.4.2 and its formula (its text has them the other way round). `rows="true"` takes the transposed matrix.
    The result is (..., decisions); there may be more decisions than classes, such as not to decide.
    """
    probs = as_probabilities("expected_cost", probs)
    return probs @ _costs("expected_cost", cost_matrix, probs.shape[-1], rows).mT


def decide(probs: ArrayLike, cost_matrix: ArrayLike | None = None, *, rows: str = "predicted") -> Tensor:
    r"""The decision \(\arg\min_i \sum_j C_{ij}\,p_j\) with the least expected cost; of equals the first.

    >>> import wonderland as wl
    >>> C = wl.tensor([[0.0, 10.0], [1.0, 0.0]])
    >>> decide(wl.tensor([[0.92, 0.08], [0.90, 0.10]]), C)  # 1 is predicted from p = 1/11 on
    tensor([0, 1])

    Without a matrix every mistake costs 1, and the most probable class is chosen. For `rows` see `expected_cost`. The
    probabilities have to be calibrated for this to be the best that can be done. Book, section 4.3.3.
    """
    probs = as_probabilities("decide", probs)
    if cost_matrix is None:
        return arrays.argmax(probs, axis=-1)
    return arrays.argmin(probs @ _costs("decide", cost_matrix, probs.shape[-1], rows).mT, axis=-1)


def cost_threshold(cost_matrix: ArrayLike, *, rows: str = "predicted") -> float:
    r"""The probability of class 1 above which predicting 1 is cheaper, of two classes.

    >>> round(cost_threshold([[0.0, 10.0], [1.0, 0.0]]), 4)  # 1/11
    0.0909

    \((C_{10} - C_{00})/(C_{10} - C_{00} + C_{01} - C_{11})\). Each right answer has to be cheaper than the mistake.
    """
    C = np.asarray(_costs("cost_threshold", cost_matrix, 2, rows), np.float64)
    if C.shape != (2, 2):
        raise ShapeError(f"cost_threshold: a matrix of shape {C.shape}.", "two decisions for two classes")
    too_much, too_little = C[1, 0] - C[0, 0], C[0, 1] - C[1, 1]
    if not (too_much > 0 and too_little > 0):
        raise InputError("cost_threshold: a mistake costs no more than the right answer.", "dearer mistakes")
    return float(too_much / (too_much + too_little))


def _costs(name: str, cost_matrix: ArrayLike, classes: int, rows: str) -> Tensor:
    """The costs (decisions, classes) as a floating tensor."""
    if rows not in ROWS:
        raise InputError(f"{name}: rows={rows!r}.", '"predicted" or "true"')
    C = arrays.asarray(cost_matrix)
    C = C if rows == "predicted" or C.ndim != 2 else C.mT
    if C.ndim != 2 or C.shape[1] != classes:
        raise ShapeError(
            f"{name}: costs of shape {C.shape} for {classes} classes.",
            f"a matrix (decisions, {classes}); rows are what is predicted, columns what is true",
        )
    if not isinstance(C, Tracer) and not np.isfinite(np.asarray(C, np.float64)).all():
        raise InputError(f"{name}: some costs are not finite.", "finite costs")
    return C
