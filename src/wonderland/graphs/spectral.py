r"""The spectrum of a graph: eigenvectors of its Laplacian, from the smoothest to the roughest. Notes, A7.

Everything is computed in double precision from the dense Laplacian, which takes \(O(n^2)\) memory and \(O(n^3)\) time.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..arrays import asarray, stop_gradient, where
from ..core.arguments import as_int
from ..core.dtypes import float64
from ..core.errors import InputError, SizeError
from ..core.tensor import Tensor
from ..core.typing import Array
from ..linalg import eigh
from .forms import to_dense
from .graph import Graph
from .normalization import inverse

LARGEST = 20_000  # nodes; a matrix of 3 GB


class Spectrum(NamedTuple):
    """Eigenvalues in rising order (k,), and eigenvectors of length 1 as columns (n, k)."""

    values: Tensor
    vectors: Tensor


def dense_laplacian(graph: Graph, kind: str = "un") -> Tensor:
    """The Laplacian (n, n) in double precision, see `laplacian`."""
    if kind not in ("un", "sym", "rw"):
        raise InputError(f"laplacian: kind={kind!r}.", '"un", "sym" or "rw"')
    A = to_dense(graph, float64)
    degrees = A.sum(axis=1)
    L = asarray(np.eye(graph.n)) * degrees.reshape((-1, 1)) - A
    if kind == "sym":
        scale = inverse(degrees, root=True)
        return L * scale.reshape((-1, 1)) * scale
    return L * inverse(degrees).reshape((-1, 1)) if kind == "rw" else L


def laplacian_spectrum(graph: Graph, kind: str = "un", k: int | None = None) -> Spectrum:
    r"""\(L = Q\Lambda Q^T\) of an undirected graph: the k smallest eigenvalues (all by default) and their eigenvectors.

    >>> import wonderland as wl
    >>> values, vectors = wl.graphs.laplacian_spectrum(wl.graphs.path_graph(3))
    >>> print(values.round(6) + 0.0)
    tensor([0., 1., 3.], dtype=float64)

    - 0 is an eigenvalue as often as there are components, with the indicators of the components as eigenvectors (or
      some orthonormal mixture of them); the sum of all is the sum of the degrees.
    - The sign of a vector is such that its largest entry (the first of several that are as large) is positive.
      Vectors of equal eigenvalues are one basis of their space among many.
    - `kind="sym"` has eigenvalues from 0 to 2; those of "rw" are the same, with eigenvectors \(D^{-1/2}u\).

    Book, section 12.1.3; notes, A7.
    """
    graph.need_undirected("laplacian_spectrum")
    if graph.n > LARGEST:
        raise SizeError(f"laplacian_spectrum: {graph.n:,} nodes.", f"at most {LARGEST:,}, or a part of the graph")
    count = graph.n if k is None else min(as_int("laplacian_spectrum", "k", k, least=0), graph.n)
    if not graph.n:
        return Spectrum(asarray(np.zeros(0)), asarray(np.zeros((0, 0))))
    values, vectors = eigh(dense_laplacian(graph, "un" if kind == "un" else "sym"))
    if kind == "rw":
        degrees = to_dense(graph, float64).sum(axis=1)
        vectors = vectors * where(degrees > 0, inverse(degrees, root=True), 1.0).reshape((-1, 1))
        vectors = vectors / (vectors**2).sum(axis=0) ** 0.5
    elif kind not in ("un", "sym"):
        raise InputError(f"laplacian_spectrum: kind={kind!r}.", '"un", "sym" or "rw"')
    vectors = vectors[:, :count]
    return Spectrum(values[:count], vectors * asarray(signs(np.asarray(stop_gradient(vectors)))))


def signs(vectors: Array) -> Array:
    """By column, the sign of the first entry that is the largest, up to rounding."""
    sizes = np.abs(vectors)
    first = np.argmax(sizes >= (1 - 1e-6) * sizes.max(axis=0, initial=0.0), axis=0)
    return np.where(vectors[first, np.arange(vectors.shape[1])] < 0, -1.0, 1.0)


class Fiedler(NamedTuple):
    """The second eigenvalue, and its eigenvector (n,)."""

    value: Tensor
    vector: Tensor


def fiedler(graph: Graph, kind: str = "un") -> Fiedler:
    r"""\(\lambda_2\), which says how well a graph falls into two parts, and the Fiedler vector \(q_2\), which says how.

    >>> import wonderland as wl
    >>> value, vector = wl.graphs.fiedler(wl.graphs.path_graph(3))
    >>> round(float(value), 6), [round(v, 4) + 0.0 for v in vector.tolist()]
    (1.0, [0.7071, 0.0, -0.7071])

    The graph is connected if and only if \(\lambda_2 > 0\). \(q_2\) is the smoothest signal of length 1 that is
    orthogonal to the constant one (Rayleigh and Ritz).
    """
    if graph.n < 2:
        raise InputError(f"fiedler: a graph with {graph.n} nodes has no second eigenvector.", "two nodes or more")
    values, vectors = laplacian_spectrum(graph, kind, 2)
    return Fiedler(values[1], vectors[:, 1])


def spectral_bisection(graph: Graph, kind: str = "un") -> Array:
    """Two parts with few edges between them, by the signs of the Fiedler vector: 0 and 1, (n,).

    >>> import wonderland as wl
    >>> wl.graphs.spectral_bisection(wl.graphs.path_graph(4))
    array([0, 0, 1, 1])

    Node 0 is in part 0. It relaxes the search for the smallest ratio cut.
    """
    vector = np.asarray(fiedler(graph, kind).vector)
    part = (vector < -1e-12 * np.abs(vector).max()).astype(np.int64)
    return part if not part[0] else 1 - part


def spectral_embedding(graph: Graph, dim: int = 2, drop_first: bool = True, kind: str = "un") -> Tensor:
    """Row v of the first eigenvectors as a point for node v, (n, dim): nodes that are linked lie close.

    >>> import wonderland as wl
    >>> wl.graphs.spectral_embedding(wl.graphs.path_graph(3), 1).shape
    (3, 1)

    The first eigenvector of a connected graph is constant and says nothing, so it is left out unless
    `drop_first=False`. The embedding knows the structure and no features. Columns that a small graph does not have
    are 0.
    """
    width = as_int("spectral_embedding", "dim", dim, least=0)
    first = 1 if drop_first else 0
    vectors = np.asarray(laplacian_spectrum(graph, kind, width + first).vectors)[:, first:]
    found = np.zeros((graph.n, width))
    found[:, : vectors.shape[1]] = vectors
    return asarray(found)


def laplacian_pe(graph: Graph, k: int, kind: str = "sym") -> Tensor:
    r"""Positional encodings (n, k): the first eigenvectors after the constant one, float32. Book, section 12.3.3.

    >>> import wonderland as wl
    >>> wl.graphs.laplacian_pe(wl.graphs.ring_graph(5), 2).shape
    (5, 2)

    \(Lu = \lambda u\) also holds for -u, so signs are arbitrary: training flips them at random. Columns that a small
    graph does not have are 0.
    """
    return spectral_embedding(graph, k, True, kind).astype(np.float32)
