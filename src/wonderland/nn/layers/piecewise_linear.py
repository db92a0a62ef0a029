"""Numbers as positions in bins, so that what follows is bent where the data are. Book, section 5.2."""

from __future__ import annotations

import numpy as np

from ... import arrays
from ...core.arguments import as_int
from ...core.dtypes import default_float
from ...core.errors import InputError
from ...core.tensor import Tensor
from ...core.typing import ArrayLike
from ..module.module import Module
from ..module.parameter import Buffer

__all__ = ["PiecewiseLinear"]

LEAST = 20  # examples in a bin: with fewer it would be fitted to chance
MOST = 100_000  # examples that are looked at, about: more would not move a quantile


class PiecewiseLinear(Module):
    r"""\(\mathrm{clip}((x_j - a_{jb}) / (a_{j,b+1} - a_{jb}), 0, 1)\): how far each number is through each of its bins.

    >>> import wonderland as wl
    >>> layer = wl.nn.PiecewiseLinear.of([[0.0], [2.0], [10.0]], bins=2)
    >>> layer(wl.tensor([[1.0], [6.0], [99.0]]))
    tensor([[0.5, 0. ],
            [1. , 0.5],
            [1. , 1. ]])

    (..., c) becomes (..., c * bins). Bins end at quantiles of the training data, so each has as many examples as any
    other, whatever the tail of a distribution looks like; they belong to the model's state. A linear layer behind it is
    a sum of functions of one number each, straight between the quantiles and constant outside. A bin has 20 examples
    or more where there are two bins at least. Quantiles that fall together make fewer bins, too; those left over give
    zeros, as all do before `look_at` has seen data.

    Gorishniy et al., On embeddings for numerical features in tabular deep learning (2022).
    """

    def __init__(self, features: int, bins: int = 16) -> None:
        shape = as_int("PiecewiseLinear", "features", features, 0), as_int("PiecewiseLinear", "bins", bins, 1)
        self.lows, self.rates = (Buffer(arrays.zeros(shape)) for _ in range(2))

    @classmethod
    def of(cls, x: ArrayLike, bins: int = 16) -> PiecewiseLinear:
        """With the quantiles of x, of shape (examples, features)."""
        layer = cls(np.shape(x)[-1] if np.ndim(x) else 0, bins)
        layer.look_at(x)
        return layer

    def look_at(self, x: ArrayLike) -> None:
        """Set the bins by the quantiles of x, of shape (examples, features)."""
        data = np.asarray(x)
        features, bins = self.lows.shape
        if data.ndim != 2 or not len(data) or data.shape[1] != features:
            raise InputError(f"PiecewiseLinear: data of shape {data.shape}.", f"some examples of shape ({features},)")
        if not np.isfinite(data).all():
            raise InputError("PiecewiseLinear: the data have NaN or infinities.", "data without them")
        data = data[:: max(len(data) // MOST, 1)]
        levels = np.linspace(0, 1, min(bins, max(len(data) // LEAST, 2)) + 1)
        lows, rates = np.zeros((2, features, bins))
        for j, column in enumerate(data.T.astype(np.float64)):
            edges = np.unique(np.quantile(column, levels))
            lows[j, : len(edges) - 1] = edges[:-1]
            rates[j, : len(edges) - 1] = 1 / np.diff(edges)
        self.lows.value, self.rates.value = (arrays.asarray(a.astype(default_float)) for a in (lows, rates))

    def forward(self, x: Tensor) -> Tensor:
        places = (arrays.expand_dims(x, -1) - self.lows) * self.rates  # (..., c, bins)
        return arrays.reshape(arrays.clip(places, 0.0, 1.0), (*x.shape[:-1], -1))

    def extra_repr(self) -> str:
        return f"features={self.lows.shape[0]}, bins={self.lows.shape[1]}"
