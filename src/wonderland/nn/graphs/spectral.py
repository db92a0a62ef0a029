"""Convolution in the eigenvectors of one graph's Laplacian. Notes, sections 7.8.2 to 7.8.4."""

from __future__ import annotations

import hashlib

import numpy as np

from ... import arrays
from ...core import dtypes
from ...core.arguments import as_int
from ...core.errors import InputError
from ...core.tensor import Tensor
from ...core.typing import Array, ArrayLike, DTypeLike, KeyLike
from ...random.streams import take_key
from ..init.schemes import normal
from ..layers.fully_connected import ActivationLike, as_activation
from ..layers.weighted import as_weight_dtype
from ..module.parameter import Buffer, Parameter
from .layer import GraphLayer
from .loops import is_known, known
from .shift import DenseShift, GraphLike, Shift, shift_of

__all__ = ["SpectralConv"]


class SpectralConv(GraphLayer):
    r"""\(H'_{h'} = \sum_h Q\,(\theta^{(h', h)} \odot Q^\top H_h)\): (n, c) to (n, c'), on one graph. Notes, 7.8.3.

    >>> import wonderland as wl
    >>> ring = wl.graphs.ring_graph(6)
    >>> layer = wl.nn.SpectralConv(ring, 4, 2, k_eigs=3)
    >>> layer(wl.ones((6, 4)), ring).shape, layer.num_parameters()
    ((6, 2), 24)

    Q has the eigenvectors of the Laplacian D - A, the smoothest first, `k_eigs` of them or all n; `weight` (k, c, c')
    has as many numbers. Nothing is local, and filters belong to their eigenvectors: another graph is refused.
    `ChebConv` has filters for any graph. A has to be symmetric. Eigenvectors are found once, when the layer is made,
    which takes \(n^3\) steps and \(n^2\) numbers.
    """

    takes_dense = True

    def __init__(
        self,
        graph: GraphLike,
        in_features: int,
        out_features: int,
        k_eigs: int | None = None,
        activation: ActivationLike = None,
        dtype: DTypeLike | None = None,
        key: KeyLike = None,
    ) -> None:
        name = "SpectralConv"
        self.in_features = as_int(name, "in_features", in_features, 1)
        self.out_features = as_int(name, "out_features", out_features, 1)
        shift = shift_of(name, graph)
        if isinstance(shift, DenseShift) and shift.matrix.ndim == 3:
            raise InputError(f"{name}: graphs of shape {shift.matrix.shape}.", "one graph")
        a = _matrix(shift)
        if not np.allclose(a, a.T):
            i, j = np.argwhere(~np.isclose(a, a.T))[0]
            raise InputError(
                f"{name}: A is not symmetric: A[{i}, {j}] = {a[i, j]:.3g} and A[{j}, {i}] = {a[j, i]:.3g}.",
                "an undirected graph, graph.to_undirected()",
            )
        n = a.shape[0]
        k = n if k_eigs is None else as_int(name, "k_eigs", k_eigs, 1)
        if k > n:
            raise InputError(f"{name}: k_eigs={k} for a graph of {n} nodes.", f"up to {n}")
        values, vectors = np.linalg.eigh(np.diag(a.sum(axis=1)) - a)
        kind = as_weight_dtype(name, dtype)
        self.k_eigs, self.mark = k, _mark(a)
        self.eigenvalues = Buffer(arrays.asarray(values[:k], dtype=kind))
        self.basis = Buffer(arrays.asarray(vectors[:, :k], dtype=kind))
        spread = normal(0.0, 1 / np.sqrt(self.in_features))
        shape = (k, self.in_features, self.out_features)
        self.weight = Parameter(spread(shape, key=take_key(name, key), dtype=kind))
        self.activation = as_activation(name, activation)

    def channels(self) -> int:
        return self.in_features

    def forward(  # type: ignore[override]  # the graph is known
        self, x: ArrayLike, graph: GraphLike | None = None
    ) -> Tensor:
        n = self.basis.shape[0]
        if graph is None:
            graph = DenseShift(arrays.zeros((n, n), dtype=dtypes.default_float))
        else:
            self._check(shift_of(self._describe(), graph))
        x, _, _ = self.arranged(x, graph)
        basis = arrays.astype(self.basis, x.dtype)
        seen = arrays.matmul(basis.mT, x)  # (k, c)
        filtered = arrays.matmul(seen[:, None, :], self.weight)[:, 0, :]
        return self.activation(arrays.matmul(basis, filtered))

    def _check(self, shift: Shift | DenseShift) -> None:
        """Refuse another graph; of a traced one only the number of nodes is known."""
        n = self.basis.shape[0]
        places = shift.matrix if isinstance(shift, DenseShift) else shift.pattern.rows.owner
        traced = not is_known(places) or (
            isinstance(shift, Shift) and shift.weight is not None and not is_known(shift.weight)
        )
        if shift.n != n or (not traced and _mark(_matrix(shift)) != self.mark):
            raise InputError(
                f"{self._describe()}: another graph, of {shift.n} nodes; the filters belong to the eigenvectors of "
                f"the graph of {n} nodes that the layer was made for.",
                "that graph, or ChebConv, whose filters fit every graph",
            )

    def extra_repr(self) -> str:
        return f"{self.in_features}, {self.out_features}, k_eigs={self.k_eigs}"


def _matrix(shift: Shift | DenseShift) -> Array:
    if isinstance(shift, DenseShift):
        return known(shift.matrix).astype(np.float64)
    a = np.zeros((shift.n, shift.n))
    weight = 1.0 if shift.weight is None else known(shift.weight)
    np.add.at(a, (known(shift.pattern.rows.owner), known(shift.pattern.cols.owner)), weight)
    return a


def _mark(a: Array) -> str:
    return hashlib.sha256(np.ascontiguousarray(a).astype(np.float32).tobytes()).hexdigest()
