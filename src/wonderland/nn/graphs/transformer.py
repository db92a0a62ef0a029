r"""Transformers on graphs: nodes as tokens, which attend to their neighbours or to all. Book, 12.3.3; notes, 7.10."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ... import arrays, sparse
from ...arrays.conversion import as_real
from ...core.arguments import as_int
from ...core.errors import InputError, ShapeError
from ...core.tensor import Tensor
from ...core.typing import ArrayLike, DTypeLike, KeyLike
from ...random.streams import take_key
from .. import functional as F  # noqa: N812 - as everybody calls it
from ..attention.blocks import TransformerBlock
from ..attention.multi_head import MultiHeadAttention
from ..layers.fully_connected import ActivationLike
from .layer import GraphLayer
from .loops import is_known, known
from .shift import GraphLike, Shift

__all__ = ["GraphTokens", "GraphTransformerLayer", "tokenize_graph"]


class GraphTransformerLayer(GraphLayer):
    r"""A transformer block whose tokens are the nodes of a graph: (n, e) to (n, e). Book, 12.3.3; notes, section 7.10.

    >>> import wonderland as wl
    >>> layer = wl.nn.GraphTransformerLayer(8, 2)
    >>> layer(wl.ones((5, 8)), wl.graphs.path_graph(5)).shape
    (5, 8)

    With `attend="edges"` a node attends to its neighbours and, with `self_loops`, to itself: the mask of attention is
    A, and scores are computed for edges alone. With "all" it attends to all nodes of its graph, and the structure has
    to come with the features, see `LaplacianEncoding` and `RandomWalkEmbedding`. `block` is a `TransformerBlock`, with
    its settings.
    """

    def __init__(
        self,
        embed_dim: int,
        num_heads: int = 1,
        attend: str = "edges",
        self_loops: bool = True,
        hidden: int | None = None,
        activation: ActivationLike = "gelu",
        dropout: float = 0.0,
        attention_dropout: float = 0.0,
        norm_first: bool = True,
        dtype: DTypeLike | None = None,
        key: KeyLike = None,
    ) -> None:
        name = type(self).__name__
        if attend not in ("edges", "all"):
            raise InputError(f"{name}: attend={attend!r}.", '"edges" or "all"')
        self.attend, self.self_loops = attend, bool(self_loops)
        self.embed_dim = as_int(name, "embed_dim", embed_dim, 1)
        self.block = TransformerBlock(
            self.embed_dim, num_heads, hidden=hidden, activation=activation, dropout=dropout, norm_first=norm_first,
            attention_dropout=attention_dropout, dtype=dtype, key=take_key(name, key),
        )  # fmt: skip

    def channels(self) -> int:
        return self.embed_dim

    def compute(self, x: Tensor, shift: Shift) -> Tensor:
        if self.attend == "edges":
            near = shift.with_loops() if self.self_loops else shift
            return self.block._run(x, lambda h: self.attended(h, near), lambda h: h)
        if shift.nodes is None:
            return self.block(x[None])[0]
        if not is_known(shift.nodes.ptr):
            owner = shift.nodes.owner
            return self.block(x[None], attn_mask=owner[:, None] == owner[None, :])[0]
        return self._padded(x, shift)

    def attended(self, x: Tensor, shift: Shift) -> Tensor:
        """Attention of nodes to their neighbours with the weights of the block's attention, at the edges alone."""
        attention = self.block.attention
        assert isinstance(attention, MultiHeadAttention)
        h, k = attention.num_heads, attention.key_size
        query, key, value = (
            arrays.reshape(part(x), (shift.n, h, k)) for part in (attention.query, attention.key, attention.value)
        )
        scores = sparse.sampled_matmul(query, key, shift.pattern) / math.sqrt(k)  # (m, heads)
        weights = sparse.segment_softmax(scores, shift.pattern.rows)
        if attention.dropout:
            weights = F.dropout(weights, attention.dropout, self.training)
        mixed = sparse.matmul(weights, shift.pattern, value)
        return attention.output(arrays.reshape(mixed, (shift.n, h * k)))

    def _padded(self, x: Tensor, shift: Shift) -> Tensor:
        """All nodes of each graph, as rows of a padded batch."""
        assert shift.nodes is not None
        owner = known(shift.nodes.owner)
        sizes = np.bincount(owner, minlength=shift.nodes.lines)
        order = np.argsort(owner, kind="stable")
        place = np.empty(shift.n, np.int64)
        place[order] = np.arange(shift.n) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        longest = int(sizes.max(initial=0))
        tokens = arrays.zeros((len(sizes), longest, self.embed_dim), dtype=x.dtype).at[owner, place].set(x)
        return self.block(tokens, lengths=sizes)[owner, place]

    def extra_repr(self) -> str:
        return ", ".join([f"{self.embed_dim}, attend={self.attend!r}", *self._changed(self_loops=True)])


class GraphTokens(NamedTuple):
    """Nodes and edges as one sequence of tokens (n + m, e), what each is (0: node, 1: edge), and its two ends."""

    tokens: Tensor
    kinds: Tensor
    ends: Tensor


def tokenize_graph(nodes: ArrayLike, edges: ArrayLike, graph: GraphLike | None = None) -> GraphTokens:
    r"""Features of nodes (n, e) and of edges (m, e) in a shared space, as the tokens of a transformer. Book, 12.3.3.

    >>> import wonderland as wl
    >>> path = wl.graphs.path_graph(3)
    >>> found = wl.nn.tokenize_graph(wl.ones((3, 8)), wl.zeros((4, 8)), path)
    >>> found.tokens.shape, found.kinds.tolist(), found.ends.tolist()[:4]
    ((7, 8), [0, 0, 0, 1, 1, 1, 1], [[0, 0], [1, 1], [2, 2], [0, 1]])

    The ends of a node are itself, twice; those of an edge (i, j), which come from the graph and are -1 without one. Add
    what tells kinds and ends apart, such as embeddings of both, before a transformer without positions.
    """
    x, e = as_real("tokenize_graph", nodes), as_real("tokenize_graph", edges)
    if x.ndim != 2 or e.ndim != 2 or x.shape[1] != e.shape[1]:
        raise ShapeError(
            f"tokenize_graph: nodes of shape {x.shape} and edges of shape {e.shape}.",
            "(n, e) and (m, e), by linear layers",
        )
    n, m = x.shape[0], e.shape[0]
    kinds = arrays.asarray(np.repeat([0, 1], [n, m]))
    own = arrays.asarray(np.stack([np.arange(n)] * 2, axis=1))
    if graph is None:
        others = arrays.full((m, 2), -1, dtype=own.dtype)
    else:
        _, shift, _ = _Nodes().arranged(x, graph)
        if shift.pattern.nnz != m:
            raise ShapeError(f"tokenize_graph: {m} edges for a graph of {shift.pattern.nnz}.", "a row for each edge")
        others = arrays.stack([shift.pattern.rows.owner, shift.pattern.cols.owner], axis=1)
    return GraphTokens(arrays.concat([x, e]), kinds, arrays.concat([own, arrays.astype(others, own.dtype)]))


class _Nodes(GraphLayer):
    """What arranges features and graphs for a function."""
