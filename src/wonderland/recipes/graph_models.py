"""How networks on graphs become models for the catalogue: of nodes, of links, of whole graphs. Book, chapter 12."""

from __future__ import annotations

from collections.abc import Mapping

from .. import nn
from ..models import GAT, GCN, GIN, GraphHead, GraphModel, GraphSAGE, GraphTransformer, NodeHead
from .entries import ModelEntry, Usual
from .inputs import Options


def gcn(
    shape: tuple[int, ...], outputs: int, hidden: int = 0, depth: int = 2, dropout: float = 0.5, *, task: str
) -> nn.Module:
    """Graph convolutions; `hidden=0` is 16 channels for nodes, else 64. Book, section 12.2.2."""
    width = hidden or (16 if task == "nodes" else 64)
    if task == "graphs":
        backbone = GCN([shape[0], *[width] * depth], jump=True)
        return GraphModel(backbone, GraphHead(backbone.out_features, outputs, "mean", [width], dropout=dropout))
    return GCN([shape[0], *[width] * (depth - 1), outputs], dropout=dropout)


def gat(
    shape: tuple[int, ...],
    outputs: int,
    hidden: int = 8,
    heads: int = 8,
    depth: int = 2,
    dropout: float = 0.6,
    dynamic: bool = False,
    *,
    task: str,
) -> nn.Module:
    """Attention to neighbours, with `heads` heads of `hidden` channels; `dynamic` is GATv2. Book, section 12.3.1."""
    if task == "graphs":
        backbone = GAT([shape[0], *[hidden] * depth, hidden * heads], heads, dynamic=dynamic)
        return GraphModel(backbone, GraphHead(hidden * heads, outputs, "mean", [hidden * heads], dropout=dropout))
    widths = [shape[0], *[hidden] * (depth - 1), outputs]
    return GAT(widths, heads, dropout=dropout, attention_dropout=dropout, dynamic=dynamic)


def sage(
    shape: tuple[int, ...],
    outputs: int,
    hidden: int = 64,
    depth: int = 2,
    aggregate: str = "mean",
    dropout: float = 0.5,
    *,
    task: str,
) -> nn.Module:
    """GraphSAGE: a node beside the mean, sum or maximum of its neighbours. Book, section 12.3.2."""
    if task == "graphs":
        backbone = GraphSAGE([shape[0], *[hidden] * depth], aggregate, jump=True)
        return GraphModel(backbone, GraphHead(backbone.out_features, outputs, "mean", [hidden], dropout=dropout))
    return GraphSAGE([shape[0], *[hidden] * (depth - 1), outputs], aggregate, dropout=dropout)


def gin(
    shape: tuple[int, ...],
    outputs: int,
    hidden: int = 32,
    depth: int = 4,
    norm: str | None = "batch",
    dropout: float = 0.5,
    *,
    task: str,
) -> nn.Module:
    """Sums over neighbours and an MLP after each, which tell most graphs apart. Book, section 12.3.2."""
    backbone = GIN([shape[0], *[hidden] * depth], norm=norm or None, jump=True)
    if task == "graphs":
        return GraphModel(backbone, GraphHead(backbone.out_features, outputs, "mean", [hidden], dropout=dropout))
    return GraphModel(backbone, NodeHead(backbone.out_features, outputs, [hidden], dropout=dropout))


def graph_transformer(
    shape: tuple[int, ...],
    outputs: int,
    embed_dim: int = 64,
    depth: int = 2,
    num_heads: int = 4,
    attend: str = "edges",
    structural: str | None = "random_walk",
    dropout: float = 0.3,
    *,
    task: str,
) -> nn.Module:
    """Nodes as tokens that attend to neighbours ("edges"), or to all of a graph ("all", which takes time in proportion
    to the square of the nodes of a batch), with return probabilities of random walks as positions. Book, 12.3.3."""
    given = attend, structural or None
    if task == "graphs":
        backbone = GraphTransformer(shape[0], embed_dim, None, depth, num_heads, *given, dropout=dropout)
        return GraphModel(backbone, GraphHead(embed_dim, outputs, "mean", dropout=dropout))
    return GraphTransformer(shape[0], embed_dim, outputs, depth, num_heads, *given, dropout=dropout)


OF_NODES: Options = {"epochs": 200, "lr": 0.01, "optimizer": "adam", "weight_decay": 5e-4, "schedule": "constant"}
OF_ATTENTION: Options = {**OF_NODES, "epochs": 500, "lr": 5e-3, "patience": 100}
OF_SETS: Options = {
    "epochs": 100,
    "batch_size": 64,
    "lr": 1e-2,
    "optimizer": "adamw",
    "weight_decay": 0.01,
    "schedule": "cosine",
}
OF_LINKS: Options = {**OF_NODES, "epochs": 100, "weight_decay": 0.0, "validation": 0.05, "patience": 50}
OF_TOKENS: Options = {"epochs": 100, "lr": 2e-3, "weight_decay": 0.05, "clip_norm": 1.0, "patience": 50}

NODES, SETS, LINKS = "citations", "motifs", "citations"
ALSO: Mapping[str, Usual] = {"graphs": Usual(OF_SETS, SETS), "links": Usual(OF_LINKS, LINKS)}
GRAPH_TASKS = ("nodes", "graphs", "links")
GRAPH_MODELS: dict[str, ModelEntry] = {
    "gcn": ModelEntry(
        gcn,
        "graph convolutions: classes of nodes of a graph (.npz, or .csv with data.nodes), of graphs, or links",
        OF_NODES,
        task="nodes",
        data=NODES,
        also=ALSO,
    ),
    "gat": ModelEntry(
        gat, "graph attention: nodes weigh their neighbours, for the same", OF_ATTENTION, "nodes", NODES, also=ALSO
    ),
    "sage": ModelEntry(sage, "GraphSAGE: means of neighbours, for the same", OF_NODES, "nodes", NODES, also=ALSO),
    "gin": ModelEntry(
        gin,
        "graph isomorphism network: classes of graphs (a folder with DS_A.txt), of nodes, or links",
        OF_SETS,
        task="graphs",
        data=SETS,
        also={"nodes": Usual(OF_NODES, NODES), "links": ALSO["links"]},
    ),
    "graph_transformer": ModelEntry(
        graph_transformer,
        "nodes as tokens that attend to each other, for the same",
        OF_TOKENS,
        task="nodes",
        data=NODES,
        also={**ALSO, "graphs": Usual({**OF_SETS, "lr": 1e-3}, SETS)},
    ),
}
