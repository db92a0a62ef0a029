r"""Graph transformers: \(H = \mathrm{Transformer}(X + \mathrm{Embedding}(A))\). Book, section 12.3.3."""

from __future__ import annotations

from ... import arrays
from ...arrays.conversion import as_real
from ...core.arguments import as_int
from ...core.errors import InputError
from ...core.tensor import Tensor
from ...core.typing import ArrayLike, DTypeLike, KeyLike
from ...nn.attention.blocks import TransformerBlock
from ...nn.graphs.encodings import DegreeEmbedding, LaplacianEncoding, RandomWalkEmbedding
from ...nn.graphs.shift import GraphLike
from ...nn.graphs.transformer import GraphTransformerLayer, tokenize_graph
from ...nn.layers.embedding import Embedding
from ...nn.layers.linear import Linear
from ...nn.layers.normalization import LayerNorm
from ...nn.module.module import Module
from ...random.keys import split
from ...random.streams import take_key

__all__ = ["GraphTransformer", "TokenGraphTransformer"]

STRUCTURAL = ("laplacian", "random_walk", "degree", None)


class GraphTransformer(Module):
    r"""\(H = \mathrm{Transformer}(X W + \mathrm{Embedding}(A))\): (n, c) to (n, out). Book, section 12.3.3.

    >>> import wonderland as wl
    >>> model = wl.models.GraphTransformer(4, 16, 3, num_heads=2, structural="random_walk")
    >>> model(wl.ones((5, 4)), wl.graphs.path_graph(5)).shape
    (5, 3)

    Tokens are nodes, which attend to all of their graph (`attend="all"`) or to neighbours ("edges"). The structure
    comes in by `structural`: "laplacian" (eigenvectors, with random signs while training), "random_walk" (return
    probabilities), both of size `k`, "degree", or None, with which a model that attends to all knows nothing of A.
    `model.positions(graph)` computes it once: `model(x, graph, positions)`. `layers` blocks of width `embed_dim`;
    without `out_features` the result is (n, embed_dim), for a head.
    """

    def __init__(
        self,
        in_features: int,
        embed_dim: int,
        out_features: int | None = None,
        layers: int = 2,
        num_heads: int = 4,
        attend: str = "all",
        structural: str | None = "laplacian",
        k: int = 8,
        hidden: int | None = None,
        dropout: float = 0.0,
        dtype: DTypeLike | None = None,
        key: KeyLike = None,
    ) -> None:
        name = "GraphTransformer"
        if structural not in STRUCTURAL:
            raise InputError(f"{name}: structural={structural!r}.", ", ".join(map(repr, STRUCTURAL)))
        count = as_int(name, "layers", layers, 1)
        keys = split(take_key(name, key), count + 3)
        self.inputs = Linear(in_features, embed_dim, True, dtype, keys[0])
        self.embedding: Module | None = None
        if structural == "laplacian":
            self.embedding = LaplacianEncoding(k, embed_dim, dtype=dtype, key=keys[1])
        elif structural == "random_walk":
            self.embedding = RandomWalkEmbedding(k, embed_dim, dtype=dtype, key=keys[1])
        elif structural == "degree":
            self.embedding = DegreeEmbedding(k, embed_dim, dtype=dtype, key=keys[1])
        self.layers = [
            GraphTransformerLayer(
                embed_dim, num_heads, attend, hidden=hidden, dropout=dropout, dtype=dtype, key=keys[i + 2]
            )
            for i in range(count)
        ]
        self.norm = LayerNorm(embed_dim, dtype=dtype)
        self.output = None if out_features is None else Linear(embed_dim, out_features, True, dtype, keys[-1])

    def positions(self, graph: GraphLike) -> Tensor | None:
        """What the embedding of the graph is computed from, (n, k); None if it needs nothing of the kind."""
        if isinstance(self.embedding, LaplacianEncoding | RandomWalkEmbedding):
            return self.embedding.positions(graph)
        return None

    def forward(self, x: ArrayLike, graph: GraphLike, positions: ArrayLike | None = None) -> Tensor:
        h = self.inputs(x)
        if self.embedding is not None:
            h = h + self.embedding(graph if positions is None else arrays.asarray(positions))
        for layer in self.layers:
            h = layer(h, graph)
        h = self.norm(h)
        return h if self.output is None else self.output(h)


class TokenGraphTransformer(Module):
    r"""A plain transformer whose tokens are the nodes and the edges of a graph, in one space. Book, section 12.3.3.

    >>> import wonderland as wl
    >>> model = wl.models.TokenGraphTransformer(4, 2, 16, 3)
    >>> path = wl.graphs.path_graph(5)
    >>> model(wl.ones((5, 4)), path, wl.ones((8, 2))).shape
    (5, 3)

    A token is its features by a linear layer, an embedding of its kind, and those of its two ends: what a node is known
    by is a vector from its return probabilities of `k` steps, since numbers of nodes mean nothing. Results are those of
    the nodes.
    """

    def __init__(
        self,
        in_features: int,
        edge_features: int,
        embed_dim: int,
        out_features: int,
        layers: int = 2,
        num_heads: int = 4,
        k: int = 8,
        dtype: DTypeLike | None = None,
        key: KeyLike = None,
    ) -> None:
        name = "TokenGraphTransformer"
        count = as_int(name, "layers", layers, 1)
        keys = split(take_key(name, key), count + 6)
        self.nodes = Linear(in_features, embed_dim, True, dtype, keys[0])
        self.edges = Linear(edge_features, embed_dim, True, dtype, keys[1])
        self.kinds = Embedding(2, embed_dim, dtype=dtype, key=keys[2])
        self.first = RandomWalkEmbedding(k, embed_dim, dtype=dtype, key=keys[3])
        self.second = Linear(embed_dim, embed_dim, False, dtype, keys[4])
        self.blocks = [TransformerBlock(embed_dim, num_heads, dtype=dtype, key=keys[i + 5]) for i in range(count)]
        self.norm = LayerNorm(embed_dim, dtype=dtype)
        self.output = Linear(embed_dim, out_features, True, dtype, keys[-1])

    def forward(self, x: ArrayLike, graph: GraphLike, edge_attr: ArrayLike) -> Tensor:
        x = as_real("TokenGraphTransformer", x)
        found = tokenize_graph(self.nodes(x), self.edges(edge_attr), graph)
        known = self.first(graph)  # (n, e): what tells a node
        ends = arrays.take(known, found.ends[:, 0], axis=0) + self.second(arrays.take(known, found.ends[:, 1], axis=0))
        h = (found.tokens + self.kinds(found.kinds) + ends)[None]
        for block in self.blocks:
            h = block(h)
        return self.output(self.norm(h[0, : x.shape[0]]))
