r"""Graph networks: edges, nodes and the whole graph change together, \((E, V, u) \to (E', V', u')\). Book, 12.3.2."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import numpy as np

from ... import arrays, sparse
from ...arrays.conversion import as_real
from ...core.arguments import as_function
from ...core.errors import InputError, ShapeError
from ...core.tensor import Tensor
from ...core.typing import ArrayLike
from ...sparse import Incidence
from .layer import GraphLayer, with_edges
from .message_passing import Aggregation, as_aggregation
from .shift import GraphLike

__all__ = ["GraphNetwork", "GraphState"]

Network: TypeAlias = Callable[[Tensor], Tensor]


class GraphState(NamedTuple):
    """Features of edges (m, d), of nodes (n, c) and of graphs (g, k); None where there are none."""

    edges: Tensor | None
    nodes: Tensor
    globals: Tensor | None


class GraphNetwork(GraphLayer):
    r"""\(e' = f_e([e; v_i; v_j; u]),\ v' = f_v([\bar e'; v; u]),\ u' = f_u([\bar e'; \bar v'; u])\). Book, 12.3.2.

    >>> import wonderland as wl
    >>> MLP = wl.models.MLP
    >>> block = wl.nn.GraphNetwork(edge=MLP([3 + 2 * 4 + 5, 8]), node=MLP([8 + 4 + 5, 6]), globals=MLP([8 + 6 + 5, 2]))
    >>> graph = wl.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
    >>> after = block(wl.ones((3, 4)), graph, wl.ones((4, 3)), wl.ones(5))
    >>> after.edges.shape, after.nodes.shape, after.globals.shape
    ((4, 8), (3, 6), (2,))

    Every part looks at its neighbours, is put through a network and is aggregated: edges see their ends, nodes the
    edges that come in (\(\bar e'\), aggregated by `edges_to_nodes`), and u all edges and nodes (`edges_to_globals`,
    `nodes_to_globals`), each "sum", "mean" or "max". Any of the three networks can be left out: its part stays as it
    is, and what there is none of is not seen. A node without incoming edges sees 0. u is (k,), or for a batch of graphs
    (graphs, k); permuted nodes are permuted afterwards, and u is the same.
    """

    def __init__(
        self,
        edge: Network | None = None,
        node: Network | None = None,
        globals: Network | None = None,
        edges_to_nodes: Aggregation = "sum",
        edges_to_globals: Aggregation = "mean",
        nodes_to_globals: Aggregation = "mean",
    ) -> None:
        name = type(self).__name__
        self.edge, self.node, self.globals = (
            None if f is None else as_function(name, f) for f in (edge, node, globals)
        )
        self.edges_to_nodes, self.edges_to_globals = edges_to_nodes, edges_to_globals
        self.nodes_to_globals = nodes_to_globals
        for how in (edges_to_nodes, edges_to_globals, nodes_to_globals):
            as_aggregation(name, how)

    def forward(  # type: ignore[override]  # it changes edges and globals, too
        self, x: ArrayLike, graph: GraphLike, edge_attr: ArrayLike | None = None, u: ArrayLike | None = None
    ) -> GraphState:
        name = type(self).__name__
        if getattr(graph, "ndim", 0) == 3:
            raise InputError(f"{name}: a batch of dense graphs.", "wl.graphs.Batch")
        v, shift, _ = self.arranged(x, graph)
        shift = with_edges(self._describe(), shift, edge_attr, None)
        e, rows, cols = shift.edge_attr, shift.pattern.rows, shift.pattern.cols
        whose = shift.nodes or Incidence.of(np.zeros(shift.n, int), 1)
        u = getattr(graph, "u", None) if u is None else u
        alone = False
        if u is not None:
            u = as_real(name, u)
            alone = u.ndim == 1
            u = u[None] if alone else u
            if u.shape[0] != whose.lines:
                raise ShapeError(
                    f"{self._describe()}: u of shape {u.shape} for {whose.lines} graphs.", "a row for each"
                )
        of_nodes = None if u is None else sparse.gather(u, whose)
        if self.edge is not None:
            of_edges = None if of_nodes is None else sparse.gather(of_nodes, rows)
            e = self.edge(_joined(e, sparse.gather(v, rows), sparse.gather(v, cols), of_edges))
        if self.node is not None:
            heard = None if e is None else as_aggregation(name, self.edges_to_nodes)(e, rows)
            v = self.node(_joined(heard, v, of_nodes))
        if self.globals is not None:
            of_all = None if e is None else self._all_edges(e, rows, whose)
            u = self.globals(_joined(of_all, as_aggregation(name, self.nodes_to_globals)(v, whose), u))
            alone = alone or shift.nodes is None
        return GraphState(e, v, u[0] if alone and u is not None else u)

    def _all_edges(self, e: Tensor, rows: Incidence, whose: Incidence) -> Tensor:
        """The edges of each graph as one: an edge is of the graph that its receiver is of."""
        how = self.edges_to_globals
        if not isinstance(how, str):
            raise InputError(f"{self._describe()}: edges_to_globals is a function.", '"sum", "mean", "max" or "min"')
        if how in ("max", "min"):
            some = arrays.reshape(rows.counts > 0, (-1, *(1 for _ in e.shape[1:])))
            low = -arrays.inf if how == "max" else arrays.inf
            found = as_aggregation("GraphNetwork", how)(e, rows)
            found = arrays.where(some, found, arrays.full_like(found, low))  # nodes without edges have no say
            found = as_aggregation("GraphNetwork", how)(found, whose)
            return arrays.where(arrays.isfinite(found), found, arrays.zeros_like(found))
        total = sparse.segment_sum(sparse.segment_sum(e, rows), whose)
        if how != "mean":
            return total
        count = sparse.segment_sum(arrays.astype(rows.counts, e.dtype), whose)
        return total / arrays.maximum(arrays.reshape(count, (-1, *(1 for _ in e.shape[1:]))), 1.0)

    def extra_repr(self) -> str:
        usual = {"edges_to_nodes": "sum", "edges_to_globals": "mean", "nodes_to_globals": "mean"}
        return ", ".join(self._changed(**usual))


def _joined(*parts: Tensor | None) -> Tensor:
    return arrays.concat([part for part in parts if part is not None], axis=-1)
