"""Every layer on graphs, by name, and graphs to try it on."""

from __future__ import annotations

import numpy as np

import wonderland as wl
from wonderland import nn

C, D, E = 3, 4, 2  # features of nodes, of results, of edges


def mlp(*sizes):
    return wl.models.MLP(list(sizes), activation="tanh")


def dot(x_i, x_j, e):
    return wl.sum(x_i * x_j, axis=-1) / np.sqrt(C)


# name: how it is made, how many hops it sees, whether A_ii matters (it sees its own node if not), features of edges
LAYERS = {
    "GraphConv": lambda: nn.GraphConv(C, D, "tanh"),
    "GraphConv-raw": lambda: nn.GraphConv(C, 2, "tanh", norm=None),
    "GraphConv-row": lambda: nn.GraphConv(C, 2, norm="row", self_loops=True),
    "GraphConv-col-outside": lambda: nn.GraphConv(C, D, norm="col", bias_inside=False),
    "GraphConvSelf": lambda: nn.GraphConvSelf(C, D, "tanh"),
    "GCNConv": lambda: nn.GCNConv(C, D),
    "GCNConv-improved": lambda: nn.GCNConv(C, 2, improved=True),
    "PolyGraphConv": lambda: nn.PolyGraphConv(C, D, order=2),
    "PolyGraphConv-horner": lambda: nn.PolyGraphConv(C, 2, order=3, activation="tanh", norm=None),
    "ChebConv": lambda: nn.ChebConv(C, D, K=3, lambda_max=2.0),
    "GraphAttention": lambda: nn.GraphAttention(C, D, dot, "tanh"),
    "GATConv": lambda: nn.GATConv(C, 2, heads=2),
    "GATConv-plain": lambda: nn.GATConv(C, 2, heads=2, concat=False, add_self_loops=False),
    "GATv2Conv": lambda: nn.GATv2Conv(C, 2, heads=2),
    "MessagePassing": lambda: nn.MessagePassing(
        lambda x_i, x_j, e: wl.tanh(x_i - 2 * x_j) * e, "sum", lambda x, m: x + m
    ),
    "MessagePassing-mean": lambda: nn.MessagePassing(lambda x_i, x_j, e: wl.tanh(x_i - 2 * x_j), "mean"),
    "MessagePassing-max": lambda: nn.MessagePassing(lambda x_i, x_j, e: wl.tanh(x_i - 2 * x_j), "max"),
    "SAGEConv": lambda: nn.SAGEConv(C, D),
    "SAGEConv-max": lambda: nn.SAGEConv(C, 2, aggregate="max", project=True),
    "SAGEConv-sum": lambda: nn.SAGEConv(C, 2, aggregate="sum", normalize=True),
    "GINConv": lambda: nn.GINConv(mlp(C, 5, D), train_eps=True),
    "EdgeConv": lambda: nn.EdgeConv(mlp(2 * C, 5, D), "mean"),
    "GatedGraphConv": lambda: nn.GatedGraphConv(D, 2),
    "GatedGNN": lambda: nn.GatedGNN(C, D, T=2),
    "GatedGNN-max": lambda: nn.GatedGNN(C, D, T=2, aggregate="mean"),
    "GRN": lambda: nn.GRN(C, D, limit=0.6),
    "GraphTransformerLayer": lambda: nn.GraphTransformerLayer(C, 1, hidden=4),
    "GraphTransformerLayer-all": lambda: nn.GraphTransformerLayer(C, 1, attend="all", hidden=4),
    "GraphNorm": lambda: nn.GraphNorm(C),
    "PairNorm": lambda: nn.PairNorm(),
}
WITH_EDGES = {
    "GATConv": lambda: nn.GATConv(C, 2, heads=2, edge_dim=E),
    "GATv2Conv": lambda: nn.GATv2Conv(C, 2, heads=2, edge_dim=E),
    "GINEConv": lambda: nn.GINEConv(mlp(C, 5, D), edge_dim=E, in_features=C),
    "MessagePassing": lambda: nn.MessagePassing(
        lambda x_i, x_j, e: wl.tanh(wl.concat([x_i * e[:, :1], x_j - e[:, 1:]], axis=-1)), "sum"
    ),
    "GRN": lambda: nn.GRN(C, D, edge_dim=E, limit=0.6),
}
# hops of a layer whose nodes see those at most so far away, themselves among them
HOPS = {
    "GraphConvSelf": 1, "GCNConv": 1, "GCNConv-improved": 1, "GraphConv-row": 1, "PolyGraphConv": 2,
    "PolyGraphConv-horner": 3, "ChebConv": 2, "GATConv": 1, "GATv2Conv": 1, "MessagePassing": 1,
    "MessagePassing-mean": 1, "SAGEConv": 1, "GINConv": 1, "EdgeConv": 1, "GatedGraphConv": 2, "GatedGNN": 2,
    "GraphTransformerLayer": 1,
}  # fmt: skip
GLOBAL = ("GRN", "GraphTransformerLayer-all", "GraphNorm", "PairNorm")  # whose nodes see more than a few hops


def double(layer):
    return layer.astype(wl.float64).eval()


def random_graph(n=9, m=14, seed=0, weights=False, attr=False, isolated=True):
    """A directed graph with some pairs both ways; the last node is isolated."""
    rng = np.random.default_rng(seed)
    last = n - 1 if isolated else n
    pairs = [(i, j) for i in range(last) for j in range(last) if i != j]
    chosen = [pairs[k] for k in rng.choice(len(pairs), m, replace=False)]
    values = rng.uniform(0.5, 1.5, m) if weights else None
    return wl.graphs.Graph(n, chosen, values, edge_attr=rng.normal(size=(m, E)) if attr else None)


def features(n=9, seed=1, c=C):
    return wl.asarray(np.random.default_rng(seed).normal(size=(n, c)))
