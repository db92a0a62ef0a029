"""Scalers: columns brought to a common size with statistics of the training data alone. Book, section 9.3.2.

A column is an index of the last axis; the statistics run over all other axes. `fit` on the training set, `transform`
everything. NumPy arrays give NumPy arrays, tensors give tensors (and can be differentiated through).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np

from ..arrays import asarray
from ..core.dtypes import default_float
from ..core.errors import InputError, ModuleError, ShapeError
from ..core.tensor import Tensor
from ..core.typing import Array, ArrayLike


class _Scaler:
    r"""The base of scalers: \(z = (x - \text{center}) / \text{scale}\) per column, after `fit`."""

    center_: Array
    scale_: Array

    def statistics(self, x: Array) -> tuple[Array, Array]:
        """The center and scale of the columns of x, (rows, columns)."""
        raise NotImplementedError

    def fit(self, x: ArrayLike, y: ArrayLike | None = None) -> Self:
        """Learn the statistics of the columns of x. Returns the scaler."""
        name = type(self).__name__
        data = np.asarray(x)
        if data.ndim < 2:
            raise ShapeError(f"{name}: the data has shape {data.shape}.", "rows and columns; x[:, None] for one column")
        if not data.size:
            raise InputError(f"{name}: the data of shape {data.shape} is empty.", "one row or more")
        rows = data.reshape(-1, data.shape[-1]).astype(np.float64)
        if not np.isfinite(rows).all():
            column = int(np.flatnonzero(~np.isfinite(rows).all(axis=0))[0])
            raise InputError(f"{name}: column {column} has NaN or infinities.", "fill or drop them first")
        self.center_, scale = self.statistics(rows)
        # A constant column has no scale: it becomes zero (plus the lower end of a range), not NaN. Its spread may be
        # rounding alone.
        tiny = scale <= 10 * np.finfo(np.float64).eps * np.abs(rows).max(axis=0)
        self.scale_ = np.where(tiny, 1.0, scale)
        return self

    def transform(self, x: ArrayLike) -> Any:
        """The scaled columns of x."""
        data, center, scale = self._ready(x)
        return (data - center) / scale

    def inverse_transform(self, z: ArrayLike) -> Any:
        """The columns before scaling."""
        data, center, scale = self._ready(z)
        return data * scale + center

    def fit_transform(self, x: ArrayLike, y: ArrayLike | None = None) -> Any:
        """`fit(x).transform(x)`."""
        return self.fit(x).transform(x)

    __call__ = transform

    def state_dict(self) -> dict[str, Array]:
        """The statistics."""
        self._check_fitted()
        return {"center": self.center_, "scale": self.scale_}

    def load_state_dict(self, state: Mapping[str, ArrayLike]) -> None:
        """Take statistics from elsewhere."""
        self.center_, self.scale_ = (np.asarray(state[key], np.float64) for key in ("center", "scale"))

    def _check_fitted(self) -> None:
        if not hasattr(self, "scale_"):
            name = type(self).__name__
            raise ModuleError(f"{name}: used before fit.", f"{name}().fit(x_train)")

    def _ready(self, x: ArrayLike) -> tuple[Any, Any, Any]:
        """The data in a floating type, and the statistics in the same."""
        self._check_fitted()
        data = x if isinstance(x, Tensor) else np.asarray(x)
        if data.ndim == 0 or data.shape[-1] != len(self.scale_):
            raise ShapeError(
                f"{type(self).__name__}: fitted on {len(self.scale_)} columns, received shape {data.shape}.",
                f"data whose last axis has {len(self.scale_)} columns",
            )
        floating = data.dtype.kind in "fcV"
        data = data if floating else data.astype(default_float)
        center, scale = self.center_.astype(data.dtype), self.scale_.astype(data.dtype)
        return (data, asarray(center), asarray(scale)) if isinstance(data, Tensor) else (data, center, scale)

    def __repr__(self) -> str:
        fitted = f"{len(self.scale_)} columns" if hasattr(self, "scale_") else "not fitted"
        return f"{type(self).__name__}({fitted})"


class StandardScaler(_Scaler):
    r"""Zero mean and unit variance per column: \(z = (x - \mu) / \sigma\).

    >>> import numpy as np
    >>> StandardScaler().fit_transform(np.array([[1.0, 5.0], [3.0, 5.0]]))
    array([[-1.,  0.],
           [ 1.,  0.]])

    Fit it on the training data only: statistics that have seen the test data leak it. Book, section 9.3.2.
    """

    def __init__(self, *, with_mean: bool = True, with_std: bool = True) -> None:
        self.with_mean, self.with_std = with_mean, with_std

    def statistics(self, x: Array) -> tuple[Array, Array]:
        self.mean_, self.var_ = x.mean(axis=0), x.var(axis=0)
        center = self.mean_ if self.with_mean else np.zeros(x.shape[1])
        return center, np.sqrt(self.var_) if self.with_std else np.ones(x.shape[1])


class MinMaxScaler(_Scaler):
    r"""Columns squashed to a range: \(z = a + (b - a)(x - x_{min}) / (x_{max} - x_{min})\).

    >>> import numpy as np
    >>> MinMaxScaler().fit_transform(np.array([[1.0, 5.0], [3.0, 5.0], [2.0, 5.0]]))
    array([[0. , 0. ],
           [1. , 0. ],
           [0.5, 0. ]])

    New data may lie outside the range; `clip=True` cuts it off. Book, section 9.3.2.
    """

    def __init__(self, feature_range: tuple[float, float] = (0.0, 1.0), *, clip: bool = False) -> None:
        low, high = feature_range
        if not low < high:
            raise InputError(f"MinMaxScaler: feature_range={feature_range} is empty.", "(low, high) with low < high")
        self.feature_range, self.clip = (float(low), float(high)), clip

    def statistics(self, x: Array) -> tuple[Array, Array]:
        self.data_min_, self.data_max_ = x.min(axis=0), x.max(axis=0)
        return self.data_min_, self.data_max_ - self.data_min_

    def transform(self, x: ArrayLike) -> Any:
        """The columns of x in the range."""
        low, high = self.feature_range
        z = super().transform(x) * (high - low) + low
        return z.clip(low, high) if self.clip else z

    __call__ = transform

    def inverse_transform(self, z: ArrayLike) -> Any:
        """The columns before scaling."""
        low, high = self.feature_range
        return super().inverse_transform(((z if isinstance(z, Tensor) else np.asarray(z)) - low) / (high - low))


class RobustScaler(_Scaler):
    r"""Median 0 and interquartile range 1 per column; outliers hardly matter: \(z = (x - q_{50}) / (q_{75} - q_{25})\).

    >>> import numpy as np
    >>> RobustScaler().fit_transform(np.array([[1.0], [2.0], [3.0], [4.0], [1000.0]]))[:4, 0]
    array([-1. , -0.5,  0. ,  0.5])
    """

    def __init__(self, quantile_range: tuple[float, float] = (25.0, 75.0)) -> None:
        low, high = quantile_range
        if not 0 <= low < high <= 100:
            raise InputError(f"RobustScaler: quantile_range={quantile_range} is no range of percents.", "(25, 75)")
        self.quantile_range = quantile_range

    def statistics(self, x: Array) -> tuple[Array, Array]:
        low, high = np.percentile(x, self.quantile_range, axis=0)
        return np.median(x, axis=0), high - low
