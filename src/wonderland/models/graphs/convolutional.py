"""Graph networks whose layers are convolutions, attention, means or sums over neighbours. Book, chapter 12."""

from __future__ import annotations

from collections.abc import Sequence

from ...core.arguments import as_int
from ...core.typing import DTypeLike, KeyLike
from ...nn.graphs.convolution import GCNConv
from ...nn.graphs.gat import GATConv, GATv2Conv
from ...nn.graphs.isomorphism import GINConv
from ...nn.graphs.layer import GraphLayer
from ...nn.graphs.sage import SAGEConv
from ...nn.graphs.shift import DenseShift, GraphLike, Shift, as_shift
from ...nn.layers.fully_connected import ActivationLike
from ...random.keys import split
from ...random.streams import take_key
from ..networks.mlp import MLP
from .backbone import GraphBackbone, NormLike, as_widths

__all__ = ["GAT", "GCN", "GIN", "GraphSAGE"]


class GCN(GraphBackbone):
    r"""\(\hat A\,\phi(\hat A X W_1)\,W_2\) and deeper, \(\hat A = D^{-1/2}(A + I)D^{-1/2}\). Book, E.12.5.

    >>> import wonderland as wl
    >>> model = wl.models.GCN([4, 16, 3], dropout=0.5)
    >>> model(wl.ones((5, 4)), wl.graphs.path_graph(5)).shape, model.num_parameters()
    ((5, 3), 131)

    `widths` are those of the features, hidden layers and results, which are logits. \(c h + h c'\) parameters and a
    bias for each column. The operator is computed once for all layers, with `prepare` once for many calls: `graph =
    model.prepare(graph)`. Settings are those of `GraphBackbone`.
    """

    def __init__(
        self,
        widths: Sequence[int],
        activation: ActivationLike = "relu",
        dropout: float = 0.0,
        norm: NormLike = None,
        residual: bool = False,
        jump: bool = False,
        bias: bool = True,
        dtype: DTypeLike | None = None,
        key: KeyLike = None,
    ) -> None:
        sizes = as_widths("GCN", widths)
        keys = split(take_key("GCN", key), len(sizes) - 1)
        layers = [
            GCNConv(c, d, bias=bias, dtype=dtype, key=k) for c, d, k in zip(sizes[:-1], sizes[1:], keys, strict=True)
        ]
        super().__init__(layers, sizes[1:], activation, dropout, norm, residual, jump, dtype=dtype)

    def prepare(self, graph: GraphLike, nodes: int | None = None, dtype: DTypeLike | None = None) -> Shift | DenseShift:
        """The graph with self-loops, its weights normalised."""
        return as_shift(graph, "sym", self_loops=True, nodes=nodes, dtype=dtype)


class GAT(GraphBackbone):
    r"""Graph attention: heads side by side in hidden layers, averaged in the last. Book, section 12.3.1.

    >>> import wonderland as wl
    >>> model = wl.models.GAT([4, 8, 3], heads=2)
    >>> model(wl.ones((5, 4)), wl.graphs.path_graph(5)).shape
    (5, 3)

    Hidden widths are those of one head, of which there are `heads`; the last layer has `out_heads`. `dropout` acts on
    features and `attention_dropout` on weights of attention. `dynamic` is GATv2, whose ranking of neighbours depends on
    the node; `edge_dim` is the number of features of edges. Settings are those of `GraphBackbone`. `prepare` adds the
    self-loops.
    """

    def __init__(
        self,
        widths: Sequence[int],
        heads: int = 8,
        out_heads: int = 1,
        activation: ActivationLike = "elu",
        dropout: float = 0.0,
        attention_dropout: float = 0.0,
        norm: NormLike = None,
        residual: bool = False,
        dynamic: bool = False,
        edge_dim: int | None = None,
        dtype: DTypeLike | None = None,
        key: KeyLike = None,
    ) -> None:
        sizes, many = as_widths("GAT", widths), as_int("GAT", "heads", heads, 1)
        kind: type[GATConv] | type[GATv2Conv] = GATv2Conv if dynamic else GATConv
        layers: list[GraphLayer] = []
        given, found = sizes[0], []
        for i, k in enumerate(split(take_key("GAT", key), len(sizes) - 1)):
            last = i == len(sizes) - 2
            count = as_int("GAT", "out_heads", out_heads, 1) if last else many
            layers.append(
                kind(given, sizes[i + 1], count, concat=not last, dropout=attention_dropout, edge_dim=edge_dim,
                     dtype=dtype, key=k)
            )  # fmt: skip
            given = sizes[i + 1] if last else count * sizes[i + 1]
            found.append(given)
        super().__init__(layers, found, activation, dropout, norm, residual, dtype=dtype)
        self.edge_dim = edge_dim

    def prepare(self, graph: GraphLike, nodes: int | None = None, dtype: DTypeLike | None = None) -> Shift | DenseShift:
        """The graph with a self-loop at every node; with features of edges, as it is."""
        shift = super().prepare(graph, nodes, dtype)
        return shift if self.edge_dim is not None or isinstance(shift, DenseShift) else shift.with_own_loops()


class GraphSAGE(GraphBackbone):
    """Means of neighbours beside the node itself, as by Hamilton et al. Book, section 12.3.2.

    >>> import wonderland as wl
    >>> model = wl.models.GraphSAGE([4, 16, 3])
    >>> model(wl.ones((5, 4)), wl.graphs.path_graph(5)).shape
    (5, 3)

    `aggregate` is "mean", "sum" or "max". Settings are those of `GraphBackbone`.
    """

    def __init__(
        self,
        widths: Sequence[int],
        aggregate: str = "mean",
        activation: ActivationLike = "relu",
        dropout: float = 0.0,
        norm: NormLike = None,
        residual: bool = False,
        jump: bool = False,
        dtype: DTypeLike | None = None,
        key: KeyLike = None,
    ) -> None:
        sizes = as_widths("GraphSAGE", widths)
        keys = split(take_key("GraphSAGE", key), len(sizes) - 1)
        layers = [
            SAGEConv(c, d, aggregate, dtype=dtype, key=k) for c, d, k in zip(sizes[:-1], sizes[1:], keys, strict=True)
        ]
        super().__init__(layers, sizes[1:], activation, dropout, norm, residual, jump, dtype=dtype)
        self.aggregate = aggregate

    def prepare(self, graph: GraphLike, nodes: int | None = None, dtype: DTypeLike | None = None) -> Shift | DenseShift:
        """The graph with weights 1/degree, for means."""
        shift = super().prepare(graph, nodes, dtype)
        if isinstance(shift, DenseShift) or self.aggregate != "mean":
            return shift
        return shift.as_mean(dtype)


class GIN(GraphBackbone):
    r"""Sums over neighbours, each followed by an MLP, as by Xu et al. Book, section 12.3.2.

    >>> import wonderland as wl
    >>> model = wl.models.GIN([4, 16, 16], jump=True)
    >>> model(wl.ones((5, 4)), wl.graphs.path_graph(5)).shape
    (5, 32)

    Every layer is \(\mathrm{MLP}((1 + \varepsilon) x_i + \sum_j x_j)\) with one hidden layer of the width that comes
    out, `mlp_norm` in it and `train_eps`. With `jump` the result is all layers side by side, which together with a sum
    over nodes tells apart what the Weisfeiler-Lehman test does. Norm and activation follow the last layer, too: it is
    meant for a head. Settings are those of `GraphBackbone`.
    """

    def __init__(
        self,
        widths: Sequence[int],
        activation: ActivationLike = "relu",
        dropout: float = 0.0,
        norm: NormLike = None,
        mlp_norm: str | None = None,
        train_eps: bool = True,
        residual: bool = False,
        jump: bool = False,
        dtype: DTypeLike | None = None,
        key: KeyLike = None,
    ) -> None:
        sizes = as_widths("GIN", widths)
        keys = split(take_key("GIN", key), len(sizes) - 1)
        layers = [
            GINConv(
                MLP([c, d, d], activation=activation, norm=mlp_norm, dtype=dtype, key=k).layers, train_eps=train_eps
            )
            for c, d, k in zip(sizes[:-1], sizes[1:], keys, strict=True)
        ]
        super().__init__(layers, sizes[1:], activation, dropout, norm, residual, jump, last=True, dtype=dtype)
