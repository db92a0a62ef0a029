r"""Fewer nodes: those of a cluster become one, \(A' = S^T A S\). Notes, A7."""

from __future__ import annotations

import numpy as np

from ..arrays import asarray
from ..core.errors import ShapeError
from ..core.tensor import Tensor
from ..core.typing import ArrayLike
from ..sparse import Incidence, segment_mean
from .diffusion import Shift, diffuse
from .graph import Graph
from .structure import coalesce, weights_of


def coarsen(A: Shift, S: ArrayLike) -> Tensor:
    r"""\(S^T A S\), (k, k), for an assignment S (n, k) of nodes to clusters, whose rows sum to 1.

    >>> import wonderland as wl
    >>> wl.graphs.coarsen(wl.graphs.path_graph(4), [[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 1.0]]).tolist()
    [[2.0, 1.0], [1.0, 2.0]]

    The total weight stays what it was: edges inside of a cluster lie on the diagonal. It is differentiable in S and in
    the weights; A is a graph, a dense or a sparse matrix. See `cluster_graph` for clusters that are numbers.
    """
    assignment = asarray(S)
    if assignment.ndim != 2:
        raise ShapeError(f"coarsen: an assignment of shape {assignment.shape}.", "(nodes, clusters)")
    return assignment.T @ diffuse(A, assignment)


def cluster_graph(graph: Graph, clusters: ArrayLike, self_loops: bool = True) -> Graph:
    """The graph of the clusters of nodes: weights of edges between two clusters add up, features are averaged.

    >>> import wonderland as wl
    >>> small = wl.graphs.cluster_graph(wl.graphs.path_graph(4), [0, 0, 1, 1])
    >>> small.to_dense().tolist()
    [[2.0, 1.0], [1.0, 2.0]]

    `clusters` are numbers from 0, one per node. Edges inside of a cluster become its self-loop, unless they are not
    wanted.
    """
    labels = np.asarray(clusters)
    if labels.shape != (graph.n,) or labels.dtype.kind not in "iu" or (labels.size and labels.min() < 0):
        raise ShapeError(
            f"cluster_graph: clusters {labels.dtype}{list(labels.shape)} for {graph.n} nodes.",
            "an integer from 0 for each node",
        )
    lines = Incidence.of(labels, int(labels.max(initial=-1)) + 1)
    rows, cols = graph.ends()
    ends = np.stack([labels[rows], labels[cols]], axis=1)
    keep = np.arange(len(ends)) if self_loops else np.flatnonzero(ends[:, 0] != ends[:, 1])
    x = None if graph.x is None else segment_mean(graph.x, lines)
    edge_attr = None if graph.edge_attr is None else graph.edge_attr[keep]
    return coalesce(Graph(lines.lines, ends[keep], weights_of(graph)[keep], x=x, edge_attr=edge_attr, u=graph.u))
