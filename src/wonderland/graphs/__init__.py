"""Graphs: what they are, their forms, parts, spectra and pictures, batches of them, and where they come from.

    graph = wl.graphs.Graph(4, [(0, 1), (0, 2), (1, 2), (1, 3)], directed=False)
    graph.degree(), graph.to_dense(), graph.add_self_loops().normalize("sym")

Book, chapter 12.
"""

from . import methods as methods  # gives graphs their methods
from .batch import Batch, PaddedGraphs, bucket, pad_graphs
from .forms import coo, from_dense, incidence, to_dense
from .graph import Graph
from .normalization import degree, normalize
from .shapes import (
    bipartite_graph,
    complete_graph,
    cycle_graph,
    grid_graph,
    patch_graph,
    path_graph,
    ring_graph,
    set_graph,
    star_graph,
)
from .structure import (
    add_self_loops,
    coalesce,
    k_hop,
    neighbors,
    permute,
    remove_self_loops,
    subgraph,
    to_undirected,
)

# fmt: off
__all__ = [
    "Graph", "Batch", "PaddedGraphs", "pad_graphs", "bucket", "add_self_loops", "remove_self_loops", "coalesce",
    "to_undirected", "permute", "subgraph", "neighbors", "k_hop", "degree", "normalize", "to_dense", "from_dense",
    "coo", "incidence", "set_graph", "complete_graph", "path_graph", "ring_graph", "cycle_graph", "star_graph",
    "grid_graph", "patch_graph", "bipartite_graph",
]
