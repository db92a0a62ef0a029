"""Graphs: what they are, their forms, parts, spectra and pictures, batches of them, and where they come from.

    graph = wl.graphs.Graph(4, [(0, 1), (0, 2), (1, 2), (1, 3)], directed=False)
    graph.degree(), graph.to_dense(), graph.add_self_loops().normalize("sym")

Book, chapter 12.
"""

from . import methods as methods  # gives graphs their methods
from .batch import Batch, PaddedGraphs, bucket, pad_graphs
from .builtin import book_graph, citation_network, karate_club
from .coarsening import cluster_graph, coarsen
from .conversion import as_graph, from_networkx, from_pyg, from_scipy, to_networkx, to_pyg, to_scipy
from .datasets import GraphList, GraphLoader, SingleGraph, collate_graphs, masked_targets
from .diffusion import diffuse, heat, laplacian_product, laplacian_quadratic, largest_eigenvalue, rayleigh, smoothness
from .drawing import draw, drawing
from .edge_lists import read_edge_list
from .files import load, save
from .forms import coo, from_dense, incidence, to_dense
from .fourier import circular_convolution, dft_matrix, gft, graph_convolution, igft, spectral_filter
from .generators import barabasi_albert, erdos_renyi, knn_graph, similarity_graph, stochastic_block_model
from .graph import Graph
from .layout import spring_layout
from .normalization import degree, normalize
from .paths import (
    Search,
    anchor_distances,
    bfs,
    connected_components,
    degree_histogram,
    diameter,
    edge_homophily,
    is_connected,
    node_homophily,
    shortest_paths,
)
from .sampling import Neighborhood, NeighborLoader, NeighborSampler
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
from .shifts import adjacency, laplacian, random_walk_matrix, return_probabilities, shift
from .spectral import (
    Fiedler,
    Spectrum,
    fiedler,
    laplacian_pe,
    laplacian_spectrum,
    spectral_bisection,
    spectral_embedding,
)
from .splitting import EdgeExamples, EdgeSplit, negative_edges, split_edges, split_nodes
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
from .tu_format import read_tu
from .walks import random_walk

# fmt: off
__all__ = [
    "Graph", "Batch", "PaddedGraphs", "pad_graphs", "bucket", "add_self_loops", "remove_self_loops", "coalesce",
    "to_undirected", "permute", "subgraph", "neighbors", "k_hop", "degree", "normalize", "to_dense", "from_dense",
    "coo", "incidence", "set_graph", "complete_graph", "path_graph", "ring_graph", "cycle_graph", "star_graph",
    "grid_graph", "patch_graph", "bipartite_graph", "erdos_renyi", "barabasi_albert", "stochastic_block_model",
    "knn_graph", "similarity_graph", "Search", "bfs", "connected_components", "is_connected", "shortest_paths",
    "diameter", "anchor_distances", "degree_histogram", "edge_homophily", "node_homophily", "random_walk", "Spectrum",
    "Fiedler", "laplacian_spectrum", "fiedler", "spectral_bisection", "spectral_embedding", "laplacian_pe", "gft",
    "igft", "spectral_filter", "graph_convolution", "dft_matrix", "circular_convolution", "diffuse",
    "laplacian_product", "laplacian_quadratic", "smoothness", "rayleigh", "heat", "largest_eigenvalue", "coarsen",
    "cluster_graph", "adjacency", "laplacian", "shift", "random_walk_matrix", "return_probabilities", "draw", "drawing",
    "spring_layout", "read_edge_list", "read_tu", "load", "save", "from_networkx", "to_networkx", "from_scipy",
    "to_scipy", "from_pyg", "to_pyg", "as_graph", "karate_club", "citation_network", "book_graph", "SingleGraph",
    "GraphList", "GraphLoader", "collate_graphs", "masked_targets", "NeighborSampler", "NeighborLoader", "Neighborhood",
    "negative_edges", "split_edges", "split_nodes", "EdgeSplit", "EdgeExamples",
]
