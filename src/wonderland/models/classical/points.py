"""Data as points: the rows of a matrix, checked before a model is fitted to them."""

from __future__ import annotations

from typing import TypeVar

import numpy as np

from ... import arrays
from ...arrays.conversion import as_real
from ...core import dtypes
from ...core.cell import Cell
from ...core.errors import DTypeError, InputError, ModuleError, ShapeError
from ...core.tensor import Tensor, Tracer
from ...core.typing import ArrayLike
from ...nn.module.lazy import Lazy


def as_points(name: str, X: ArrayLike, features: int | None = None) -> Tensor:
    """Real points (n, d) as a floating tensor; with `features`, of that many numbers each.

    >>> import wonderland as wl
    >>> as_points("KMeans", [[1, 2], [3, 4]]).dtype
    dtype('float32')

    Points that are NaN or infinite are refused where they are known.
    """
    X = as_real(name, arrays.asarray(X))
    if X.ndim != 2:
        raise ShapeError(f"{name}: the data has shape {X.shape}.", "(points, features); x[:, None] for a vector")
    if features is not None and X.shape[1] != features:
        raise ShapeError(
            f"{name}: points of {X.shape[1]} features for a model of {features}.", f"data of shape (n, {features})"
        )
    if not isinstance(X, Tracer) and not np.isfinite(X.numpy()).all():
        bad = int(np.argmin(np.isfinite(X.numpy()).all(axis=1)))
        raise InputError(f"{name}: row {bad} of the data is not finite.", "data without NaN and infinity")
    return X


def as_training_points(name: str, X: ArrayLike, least: int = 1) -> Tensor:
    """Points to fit a model to: known, and at least so many.

    >>> as_training_points("PCA", [[1.0, 2.0], [3.0, 4.0]], 2).shape
    (2, 2)
    """
    X = as_points(name, X)
    if X.shape[0] < least or not X.shape[1]:
        raise InputError(f"{name}: {X.shape[0]} points of {X.shape[1]} features.", f"at least {least} points")
    return X


def as_labels(name: str, y: ArrayLike, n: int) -> Tensor:
    """Integer labels (n,), one per point.

    >>> as_labels("fit", [0, 2], 2)
    tensor([0, 2])
    """
    labels = arrays.asarray(y)
    if not dtypes.is_integer(labels.dtype):
        raise DTypeError(f"{name}: labels of {labels.dtype}.", "integers, one per point")
    if labels.shape != (n,):
        raise ShapeError(f"{name}: labels of shape {labels.shape} for {n} points.", f"shape ({n},)")
    return labels


C = TypeVar("C", bound=Cell)


def fitted(name: str, cell: C, how: str = "fit(X)") -> C:
    """The parameter or buffer, unless the model still waits for its data."""
    if isinstance(cell, Lazy):
        raise ModuleError(f"{name}: it has not been fitted yet.", f"{how} first")
    return cell
