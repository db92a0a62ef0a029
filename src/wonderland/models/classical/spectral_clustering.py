"""Clusters of the nodes of a graph, by k-means on the eigenvectors of its Laplacian. Notes, A7-20."""

from __future__ import annotations

import numpy as np

from ...arrays import asarray
from ...core.arguments import as_int
from ...core.errors import InputError
from ...core.typing import Array, KeyLike
from ...graphs.graph import Graph
from ...graphs.spectral import spectral_embedding
from .kmeans import KMeans


def spectral_clustering(graph: Graph, k: int = 2, *, kind: str = "sym", n_init: int = 10, key: KeyLike = None) -> Array:
    """k clusters with few edges between them: the cluster of each node, (n,) numbers from 0.

    >>> import wonderland as wl
    >>> graph = wl.graphs.Graph(6, [(0, 1), (0, 2), (1, 2), (2, 3), (3, 4), (3, 5), (4, 5)], directed=False)
    >>> wl.models.spectral_clustering(graph, 2, key=wl.random.key(0))
    array([0, 0, 0, 1, 1, 1])

    Nodes are points of the space of the first k eigenvectors, where those of a cluster lie close: "un" relaxes the
    ratio cut, "sym" (rows of length 1) the normalised cut. Clusters are numbered in the order of their first nodes.
    """
    k = as_int("spectral_clustering", "k", k, least=1)
    if k > graph.n:
        raise InputError(f"spectral_clustering: {k} clusters of {graph.n} nodes.", f"k up to {graph.n}")
    points = spectral_embedding(graph, k, drop_first=False, kind=kind).numpy()
    if kind == "sym":
        lengths = np.linalg.norm(points, axis=1, keepdims=True)
        points = points / np.where(lengths > 0, lengths, 1)
    model = KMeans(k, n_init=n_init, key=key).fit(asarray(points.astype(np.float32)))
    labels = np.asarray(model.labels_)
    _, first, numbers = np.unique(labels, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[numbers]
