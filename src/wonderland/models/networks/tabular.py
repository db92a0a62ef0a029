"""A network for tables: a linear model beside many small networks that share most of their weights."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ... import arrays, random
from ...core.arguments import as_int
from ...core.dtypes import default_float
from ...core.errors import InputError, ShapeError
from ...core.tensor import Tensor
from ...core.typing import ArrayLike, KeyLike
from ...nn.layers.dropout import Dropout
from ...nn.layers.linear import Linear
from ...nn.layers.piecewise_linear import PiecewiseLinear
from ...nn.module.containers import ModuleList
from ...nn.module.module import Module
from ...nn.module.parameter import Parameter
from ...random.keys import split
from ...random.streams import take_key


class Tabular(Module):
    r"""\(y_k = A e + V_k\,\phi(W_2\,\phi(W_1 (r_k \odot e)))\), and the mean over the members k; e encodes the row x.

    >>> import wonderland as wl
    >>> model = wl.models.Tabular(5, 3, members=4)
    >>> model(wl.ones((7, 5))).shape
    (7, 3)

    Three things make it strong on tables of a few rows to many:

    - The encoding: beside the features themselves, how far each of the `numeric` ones is through its bins
      (`nn.PiecewiseLinear`; `look_at(x)` takes the bins from the training data). So thresholds are cheap, as they are
      for trees.
    - A linear path from the encoding to the outputs, which starts at zero. With it the model is hardly worse than a
      linear one where there is little to learn from.
    - Members: networks that differ in the scales \(r_k\) of their inputs, which begin as random signs, and in their
      last layer. They make different mistakes, and the mean of their predictions is better than each.

    In training every row goes to one member (row i of a batch to member i mod k), which is what keeps members apart: a
    loss of their mean would let them lean on each other. A step costs what one network costs. In evaluation all
    members answer: for `classes` the outputs are the logarithm of the mean of their probabilities, so that softmax
    gives this mean; else the mean of their numbers.

    Gorishniy et al., TabM: advancing tabular deep learning with parameter-efficient ensembling (2024).
    """

    def __init__(
        self,
        in_features: int,
        out_features: int,
        hidden: int | Sequence[int] = (128, 128),
        members: int = 8,
        bins: int = 16,
        dropout: float = 0.4,
        classes: bool = True,
        numeric: Sequence[int] | None = None,
        key: KeyLike = None,
    ) -> None:
        self.in_features = as_int("Tabular", "in_features", in_features, 1)
        self.members = as_int("Tabular", "members", members, 1)
        self.classes = classes
        widths = [hidden] if isinstance(hidden, int) else list(hidden)
        if not widths:
            raise InputError("Tabular: hidden is empty.", "at least one width, as hidden=[128]")
        self.numeric = _numeric(self.in_features, numeric)
        self.bins = PiecewiseLinear(len(self.numeric), bins)
        d = self.in_features + len(self.numeric) * bins
        keys = split(take_key("Tabular", key), len(widths) + 2)
        self.linear = Linear(d, out_features, init="zeros")
        signs = 2.0 * random.bernoulli((self.members, d), key=keys[0], dtype=default_float) - 1.0
        self.scales = Parameter(signs)
        sizes = zip([d, *widths[:-1]], widths, keys[2:], strict=True)
        self.layers = ModuleList([Linear(a, b, key=k) for a, b, k in sizes])
        self.dropout = Dropout(dropout)
        spread = random.normal((self.members, widths[-1], out_features), key=keys[1]) / widths[-1] ** 0.5
        self.heads, self.bias = Parameter(spread), Parameter(arrays.zeros((self.members, out_features)))

    def look_at(self, x: ArrayLike) -> None:
        """Take the bins of the numeric features from training data (examples, features)."""
        self.bins.look_at(np.asarray(x)[:, list(self.numeric)])

    def forward(self, x: Tensor) -> Tensor:
        if x.ndim != 2 or x.shape[1] != self.in_features:
            raise ShapeError(f"Tabular: an input of shape {x.shape}.", f"rows (n, {self.in_features})")
        encoded = self.encode(x)  # (n, d)
        straight = self.linear(encoded)
        if self.training:
            return straight + self._one_each(encoded)
        y = arrays.expand_dims(straight, 1) + self._answers(arrays.expand_dims(encoded, 1))  # (n, members, outputs)
        if not self.classes:
            return arrays.mean(y, axis=1)
        return arrays.logsumexp(arrays.log_softmax(y, axis=-1), axis=1) - float(np.log(self.members))

    def encode(self, x: Tensor) -> Tensor:
        """The features, and the places of the numeric ones in their bins."""
        if not self.numeric:
            return x
        numbers = x if len(self.numeric) == self.in_features else x[:, np.array(self.numeric)]
        return arrays.concatenate([x, self.bins(numbers)], axis=-1)

    def _one_each(self, encoded: Tensor) -> Tensor:
        """The answer of one member for each row, (n, outputs)."""
        n, d = encoded.shape
        if more := -n % self.members:  # so that all members have as many rows
            encoded = arrays.concatenate([encoded, arrays.zeros((more, d), dtype=encoded.dtype)])
        y = self._answers(arrays.reshape(encoded, (-1, self.members, d)))
        return arrays.reshape(y, (n + more, -1))[:n]

    def _answers(self, encoded: Tensor) -> Tensor:
        """The answers of the members, (n, members, outputs), to rows for each of them or for all."""
        h = encoded * self.scales
        for layer in self.layers:
            h = self.dropout(arrays.relu(layer(h)))
        return arrays.einsum("nkh,kho->nko", h, self.heads) + self.bias

    def extra_repr(self) -> str:
        return f"members={self.members}"


def _numeric(features: int, places: Sequence[int] | None) -> tuple[int, ...]:
    """The places of the features that are numbers: all if nothing is said."""
    found = tuple(range(features)) if places is None else tuple(int(i) for i in places)
    if any(not 0 <= i < features for i in found) or len(set(found)) < len(found):
        raise InputError(f"Tabular: numeric={places!r}.", f"different places from 0 to {features - 1}")
    return found
