"""Where a node is in its graph, as a vector: structural encodings. Book, section 12.3.3."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ... import arrays
from ...core import dtypes
from ...core.arguments import as_int
from ...core.errors import InputError, ShapeError
from ...core.tensor import Tensor
from ...core.typing import ArrayLike, DTypeLike, KeyLike
from ...graphs import Batch, Graph, anchor_distances, return_probabilities, spectral_embedding
from ...random.discrete import bernoulli
from ...random.keys import split
from ...random.streams import Source, take_key
from ..layers.dropout import own_stream
from ..layers.embedding import Embedding
from ..layers.linear import Linear
from ..module.module import Module
from .loops import is_known
from .shift import DenseShift, GraphLike, Shift, shift_of

__all__ = ["AnchorEncoding", "DegreeEmbedding", "LaplacianEncoding", "RandomWalkEmbedding"]


def _sparse(name: str, graph: GraphLike) -> Shift:
    found = shift_of(name, graph)
    return found.sparse() if isinstance(found, DenseShift) else found


def _as_graph(name: str, graph: GraphLike, known: bool = True) -> Graph:
    """A graph in any form as a Graph, whose edges can be looked at if they have to be."""
    shift = _sparse(name, graph)
    if known and not is_known(shift.pattern.rows.owner):
        raise InputError(
            f"{name}: the edges of a traced graph cannot be looked at.",
            "layer(positions) with layer.positions(graph), computed before",
        )
    return graph if isinstance(graph, Graph) else Graph.from_pattern(shift.pattern, shift.weight)


class DegreeEmbedding(Module):
    """A trained vector for each degree: graph to (n, e). Book, section 12.3.3.

    >>> import wonderland as wl
    >>> layer = wl.nn.DegreeEmbedding(10, 4)
    >>> layer(wl.graphs.star_graph(5)).shape
    (5, 4)

    Neighbours are counted, whatever their weights are; degrees from `max_degree` on share a vector.
    """

    def __init__(self, max_degree: int, features: int, dtype: DTypeLike | None = None, key: KeyLike = None) -> None:
        self.max_degree = as_int("DegreeEmbedding", "max_degree", max_degree, 0)
        self.table = Embedding(self.max_degree + 1, features, dtype=dtype, key=key)

    def forward(self, graph: GraphLike) -> Tensor:
        counts = _sparse("DegreeEmbedding", graph).pattern.rows.counts
        return self.table(arrays.minimum(counts, self.max_degree))


class AnchorEncoding(Module):
    """The distances to some nodes, and a linear layer: graph to (n, e). Book, section 12.3.3.

    >>> import wonderland as wl
    >>> layer = wl.nn.AnchorEncoding([0, 3], 4)
    >>> layer.positions(wl.graphs.path_graph(4)).tolist()
    [[0.0, 3.0], [1.0, 2.0], [2.0, 1.0], [3.0, 0.0]]

    Distances are steps along edges, at most `cap`, which is also that of nodes that are not reached. They depend on the
    numbers of the anchors: the result is permuted with the nodes if the anchors are, `layer.positions(graph, anchors)`.
    What does not change is computed once: `layer(positions)`.
    """

    def __init__(
        self,
        anchors: Sequence[int],
        features: int,
        cap: int = 16,
        dtype: DTypeLike | None = None,
        key: KeyLike = None,
    ) -> None:
        self.anchors = tuple(as_int("AnchorEncoding", "an anchor", a, 0) for a in anchors)
        self.cap = as_int("AnchorEncoding", "cap", cap, 1)
        self.lin = Linear(len(self.anchors), features, True, dtype, key)

    def positions(self, graph: GraphLike, anchors: Sequence[int] | None = None) -> Tensor:
        """The distances (n, anchors), in steps."""
        made = _as_graph("AnchorEncoding", graph)
        found = anchor_distances(made, np.asarray(self.anchors if anchors is None else anchors, int), self.cap)
        return arrays.astype(found, self.lin.weight.dtype)

    def forward(self, graph: GraphLike) -> Tensor:
        given = _table("AnchorEncoding", graph, len(self.anchors))
        return self.lin((self.positions(graph) if given is None else given) / self.cap)


class RandomWalkEmbedding(Module):
    r"""Return probabilities of random walks up to k steps, times W (k, e): graph to (n, e). Book, section 12.3.3.

    >>> import wonderland as wl
    >>> layer = wl.nn.RandomWalkEmbedding(8, 4)
    >>> layer(wl.graphs.star_graph(5)).shape
    (5, 4)

    The book stacks probabilities as (k, n), which W cannot follow; they are transposed. Nodes that a symmetry of the
    graph exchanges get the same. What does not change is computed once: `layer(positions)` with
    `layer.positions(graph)` (n, k), see `wl.graphs.return_probabilities`.
    """

    def __init__(
        self, k: int, features: int, bias: bool = False, dtype: DTypeLike | None = None, key: KeyLike = None
    ) -> None:
        self.k = as_int("RandomWalkEmbedding", "k", k, 1)
        self.lin = Linear(self.k, features, bias, dtype, key)

    def positions(self, graph: GraphLike) -> Tensor:
        """The probabilities (n, k)."""
        made = _as_graph("RandomWalkEmbedding", graph, known=False)
        return arrays.astype(return_probabilities(made, self.k, self.lin.weight.dtype), self.lin.weight.dtype)

    def forward(self, graph: GraphLike) -> Tensor:
        given = _table("RandomWalkEmbedding", graph, self.k)
        return self.lin(self.positions(graph) if given is None else given)


class LaplacianEncoding(Module):
    r"""The k smoothest eigenvectors of the Laplacian, times W (k, e): graph to (n, e). Book, section 12.3.3.

    >>> import wonderland as wl
    >>> layer = wl.nn.LaplacianEncoding(3, 4).eval()
    >>> layer(wl.graphs.path_graph(6)).shape
    (6, 4)

    They are those of \(I - D^{-1/2} A D^{-1/2}\) but the first, and graphs of a batch have their own. An eigenvector
    may as well have the other sign, so signs are drawn anew in every call while training, from `key` or the global
    stream; the basis for an eigenvalue that comes several times is arbitrary, too. Compute the vectors once:
    `layer(positions)` with `layer.positions(graph)` (n, k).
    """

    def __init__(
        self, k: int, features: int, bias: bool = False, dtype: DTypeLike | None = None, key: Source = None
    ) -> None:
        self.k = as_int("LaplacianEncoding", "k", k, 1)
        self.stream = own_stream(key)
        first = split(take_key("LaplacianEncoding", self.stream), 1)[0]
        self.lin = Linear(self.k, features, bias, dtype, first)

    def positions(self, graph: GraphLike) -> Tensor:
        """The eigenvectors (n, k)."""
        made = _as_graph("LaplacianEncoding", graph)
        parts = made.to_graphs() if isinstance(made, Batch) else [made]
        found = np.concatenate([np.asarray(spectral_embedding(part, self.k, True, "sym")) for part in parts])
        padding = np.zeros((made.n - len(found), self.k))  # nodes behind the real graphs of a padded batch
        return arrays.asarray(np.concatenate([found, padding]), dtype=self.lin.weight.dtype)

    def forward(self, graph: GraphLike) -> Tensor:
        given = _table("LaplacianEncoding", graph, self.k)
        vectors = self.positions(graph) if given is None else given
        if self.training:
            signs = 2.0 * arrays.astype(bernoulli((self.k,), 0.5, key=self.stream), vectors.dtype) - 1.0
            vectors = vectors * signs
        return self.lin(vectors)


def _table(name: str, graph: GraphLike | ArrayLike, k: int) -> Tensor | None:
    """The positions (n, k), if that is what was given and no graph."""
    if not isinstance(graph, Tensor | np.ndarray) or dtypes.is_integer(graph.dtype):
        return None
    if graph.shape == (k, k):
        raise ShapeError(f"{name}: a table of shape {graph.shape} may be positions or a matrix.", "a Graph")
    return arrays.asarray(graph) if graph.ndim == 2 and graph.shape[1] == k else None
