"""What graphs can do: functions of the other files as methods, which are given to the class from here."""

from __future__ import annotations

from typing import cast

from ..core.giving import given_to
from ..core.tensor import Tensor
from ..core.typing import Array, ArrayLike, DTypeLike
from ..sparse import COO, CSR
from . import forms, normalization, shapes, shifts, structure
from .graph import Graph


@given_to(Graph)
class Methods:
    """The methods of a graph."""

    # --- other graphs

    def add_self_loops(self, weight: float = 1.0, fill: float = 0.0) -> Graph:
        """Every node has an edge to itself; see `wl.graphs.add_self_loops`."""
        return structure.add_self_loops(_graph(self), weight, fill)

    def remove_self_loops(self) -> Graph:
        """No node has an edge to itself."""
        return structure.remove_self_loops(_graph(self))

    def coalesce(self) -> Graph:
        """Each pair once, sorted, with the weights of equal pairs summed; see `wl.graphs.coalesce`."""
        return structure.coalesce(_graph(self))

    def to_undirected(self, how: str = "max") -> Graph:
        """Both directions of each edge with one weight; see `wl.graphs.to_undirected`."""
        return structure.to_undirected(_graph(self), how)

    def permute(self, perm: ArrayLike) -> Graph:
        """The nodes in another order; see `wl.graphs.permute`."""
        return structure.permute(_graph(self), perm)

    def subgraph(self, nodes: ArrayLike) -> Graph:
        """Some nodes and the edges among them; see `wl.graphs.subgraph`."""
        return structure.subgraph(_graph(self), nodes)

    def normalize(self, kind: str | None = "sym", dtype: DTypeLike | None = None) -> Graph:
        """Weights divided by degrees: "row", "col", "sym" or None; see `wl.graphs.normalize`."""
        return normalization.normalize(_graph(self), kind, dtype)

    # --- other forms

    def to_dense(self, dtype: DTypeLike | None = None) -> Tensor:
        """The adjacency matrix A (n, n); see `wl.graphs.to_dense`."""
        return forms.to_dense(_graph(self), dtype)

    @staticmethod
    def from_dense(A: ArrayLike, x: ArrayLike | None = None, y: ArrayLike | None = None) -> Graph:
        """The graph of a matrix (n, n); see `wl.graphs.from_dense`."""
        return forms.from_dense(A, x, y)

    def adjacency(self, dtype: DTypeLike | None = None) -> CSR | COO:
        """A as a sparse matrix; see `wl.graphs.adjacency`."""
        return shifts.adjacency(_graph(self), dtype)

    def laplacian(self, kind: str = "un", dtype: DTypeLike | None = None) -> CSR:
        """D - A ("un"), or normalised ("sym", "rw"), as a sparse matrix; see `wl.graphs.laplacian`."""
        return shifts.laplacian(_graph(self), kind, dtype)

    def shift(self, kind: str = "adjacency", dtype: DTypeLike | None = None) -> CSR | COO:
        """A graph-shift matrix by name; see `wl.graphs.shift`."""
        return shifts.shift(_graph(self), kind, dtype)

    def coo(self) -> list[list[int]]:
        """The pairs [i, j] in rising order; see `wl.graphs.coo`."""
        return forms.coo(_graph(self))

    def incidence(self, oriented: bool = False) -> Tensor:
        """The incidence matrix (n, edges); see `wl.graphs.incidence`."""
        return forms.incidence(_graph(self), oriented)

    # --- shapes

    @staticmethod
    def set(n: int) -> Graph:
        """n nodes that see nobody but themselves; see `wl.graphs.set_graph`."""
        return shapes.set_graph(n)

    @staticmethod
    def complete(n: int, self_loops: bool = False) -> Graph:
        """Every node sees every other one; see `wl.graphs.complete_graph`."""
        return shapes.complete_graph(n, self_loops)

    @staticmethod
    def path(n: int) -> Graph:
        """A sequence; see `wl.graphs.path_graph`."""
        return shapes.path_graph(n)

    @staticmethod
    def grid(height: int, width: int, diagonals: bool = False) -> Graph:
        """The pixels of an image; see `wl.graphs.grid_graph`."""
        return shapes.grid_graph(height, width, diagonals)

    # --- what is known of it

    def degree(self, axis: int = 1, dtype: DTypeLike | None = None) -> Tensor:
        """The sums of the rows of A (or of the columns, with axis=0), (n,); see `wl.graphs.degree`."""
        return normalization.degree(_graph(self), axis, dtype)

    def neighbors(self, i: int) -> Array:
        """The nodes that node i reads from, in rising order; see `wl.graphs.neighbors`."""
        return structure.neighbors(_graph(self), i)

    def k_hop(self, i: int | ArrayLike, k: int) -> Array:
        """The nodes at distance at most k; see `wl.graphs.k_hop`."""
        return structure.k_hop(_graph(self), i, k)


def _graph(methods: Methods) -> Graph:
    return cast(Graph, methods)
