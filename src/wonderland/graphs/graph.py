"""The graph: nodes, pairs of nodes, and what is known of them. A value: it never changes, and changed copies are made.

A pair (i, j) is row i and column j of the adjacency matrix A: node i reads from its neighbour j, and
\\((Ax)_i = \\sum_{j \\in N(i)} A_{ij} x_j\\). Book, section 12.1.1.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from ..arrays import asarray, stack, zeros
from ..core import trees
from ..core.arguments import as_int
from ..core.errors import InputError, ShapeError, TraceError
from ..core.tensor import Tensor, Tracer
from ..core.typing import Array, ArrayLike
from ..sparse import Incidence, Pattern
from .checking import (
    Ends,
    as_ends,
    as_labels,
    as_masks,
    as_nodes,
    as_rows,
    as_weight,
    is_symmetric,
    need_symmetric,
)

if TYPE_CHECKING:
    from .methods import Methods

    class Given(Methods):
        """What is given to the class below from methods.py, see core/giving.py."""
else:
    Given = object

Self = TypeVar("Self", bound="Graph")

_TENSORS = ("weight", "x", "edge_attr", "u", "y", "edge_y")


class Graph(Given):
    r"""A graph \(G = (V, E)\) with n nodes and m stored pairs (i, j).

    >>> import wonderland as wl
    >>> graph = wl.graphs.Graph(4, [(0, 1), (0, 2), (1, 2), (1, 3)], directed=False)
    >>> graph
    Graph(4 nodes, 4 undirected edges)
    >>> graph.to_dense().tolist()[1], graph.degree().tolist()
    ([1.0, 0.0, 1.0, 1.0], [2.0, 3.0, 2.0, 1.0])

    - `n`: the number of nodes, which may be more than edges mention (isolated nodes).
    - `edges`: pairs (m, 2). With `directed=False` each edge is given once or in both directions, and both are stored
      (an edge that is given both ways with different weights is refused); otherwise pairs are stored as they are,
      and `is_undirected` tells whether A is symmetric. `num_edges` counts stored pairs, as the coordinate list of A
      does, and `num_undirected_edges` each edge once.
    - A pair that comes several times is kept: its weights add up in A, see `coalesce`.
    - `weights` (m,): the entries \(A_{ij}\), 1 without them.
    - `x` (n, ...), `edge_attr` (m, ...) and `u`: features of nodes, of edges, and of the whole graph.
    - `y`: labels of nodes (n, ...), or of the graph, () or (1, ...); `edge_y` (m, ...) labels of edges.
    - `masks`: truth values (n,) by name, such as "train"; `props`: anything else by name.

    A graph is a tree whose leaves are tensors, so it is an argument of jitted functions; n and m are static there.
    Features with `directed=False`: a mirrored edge has the features of the one that was given. Book, section 12.1.
    """

    n: int
    weight: Tensor | None
    x: Tensor | None
    edge_attr: Tensor | None
    u: Tensor | None  # (1, d); (number of graphs, d) of a batch
    y: Tensor | None
    edge_y: Tensor | None
    y_of: str | None  # "nodes" or "graph"
    masks: dict[str, Tensor]
    props: dict[str, object]
    _ends: Ends | None  # computed, and not traced
    _pattern: Pattern | None
    _undirected: bool | None

    def __init__(
        self,
        n: int,
        edges: ArrayLike | Iterable[Sequence[int]] = (),
        weights: ArrayLike | None = None,
        *,
        x: ArrayLike | None = None,
        edge_attr: ArrayLike | None = None,
        u: ArrayLike | None = None,
        y: ArrayLike | None = None,
        edge_y: ArrayLike | None = None,
        masks: Mapping[str, ArrayLike] | None = None,
        props: Mapping[str, object] | None = None,
        directed: bool | None = None,
    ) -> None:
        n = as_int("Graph", "n", n, least=0)
        rows, cols = as_ends("Graph", edges, n)
        m = len(rows)
        labels, y_of = as_labels("Graph", y, n)
        fields: dict[str, object] = {
            "weight": as_weight("Graph", weights, m),
            "edge_attr": as_rows("Graph", "edge_attr", edge_attr, m, "edges"),
            "edge_y": as_rows("Graph", "edge_y", edge_y, m, "edges"),
        }
        undirected: bool | None = None
        if directed is False:
            lone = np.flatnonzero(~np.isin(cols * n + rows, rows * n + cols))
            if len(lone):
                rows, cols = np.concatenate([rows, cols[lone]]), np.concatenate([cols, rows[lone]])
                every = np.concatenate([np.arange(m), lone])
                fields = {key: value[every] if isinstance(value, Tensor) else None for key, value in fields.items()}
            weight = fields["weight"]
            need_symmetric("Graph(directed=False)", rows, cols, _numbers(weight), n)
            undirected = True
        self._set(
            n=n,
            **fields,
            x=as_rows("Graph", "x", x, n, "nodes"),
            u=None if u is None else _one_row(asarray(u)),
            y=labels,
            y_of=y_of,
            masks=as_masks("Graph", masks, n),
            props=dict(props or {}),
            _ends=(rows, cols),
            _pattern=None,
            _undirected=undirected,
        )

    def _set(self, **fields: object) -> None:
        self.__dict__.update(fields)

    def __setattr__(self, name: str, value: object) -> None:
        raise InputError(f"Graph: a graph does not change, and {name} was to be set.", f"graph.with_({name}=...)")

    @classmethod
    def from_pattern(cls, pattern: Pattern, weights: ArrayLike | None = None) -> Graph:
        """The graph of a pattern of a square matrix (n, n), and of its values."""
        if pattern.shape[0] != pattern.shape[1]:
            raise ShapeError(f"Graph.from_pattern: a pattern of shape {pattern.shape}.", "a square one, (n, n)")
        empty = Graph(pattern.shape[0])
        weight = as_weight("Graph.from_pattern", weights, pattern.nnz)
        return empty._copy(_pattern=pattern, _ends=None, weight=weight, _undirected=None)

    @classmethod
    def from_edge_index(
        cls, edge_index: ArrayLike, n: int | None = None, weights: ArrayLike | None = None, **fields: ArrayLike | None
    ) -> Graph:
        """The graph of an `edge_index` (2, m) as PyTorch Geometric has it: senders in the first row, then receivers.

        >>> import wonderland as wl
        >>> wl.graphs.Graph.from_edge_index([[0, 1], [1, 2]]).edges.tolist()  # 1 reads from 0, and 2 from 1
        [[1, 0], [2, 1]]

        Without n it is one more than the largest node. `fields` are those of the class.
        """
        index = np.asarray(edge_index)
        if index.ndim != 2 or index.shape[0] != 2:
            raise ShapeError(f"from_edge_index: an edge_index of shape {index.shape}.", "senders and receivers: (2, m)")
        nodes = (int(index.max()) + 1 if index.size else 0) if n is None else n
        return cls(nodes, index[::-1].T, weights, **fields)  # type: ignore[arg-type]

    # --- what it is

    @property
    def num_nodes(self) -> int:
        """The number of nodes n."""
        return self.n

    @property
    def num_edges(self) -> int:
        """The number m of stored pairs: an undirected edge counts twice, a self-loop once."""
        if self._ends is not None:
            return len(self._ends[0])
        assert self._pattern is not None
        return self._pattern.nnz

    @property
    def num_undirected_edges(self) -> int:
        """The number of edges of an undirected graph, each counted once."""
        self.need_undirected("num_undirected_edges")
        rows, cols = self.ends()
        loops = int((rows == cols).sum())
        return (len(rows) - loops) // 2 + loops

    @property
    def is_undirected(self) -> bool:
        """Whether A is symmetric, weights included."""
        if self._undirected is None:
            self._set(_undirected=is_symmetric(*self.ends(), _numbers(self.weight), self.n))
        assert self._undirected is not None
        return self._undirected

    def need_undirected(self, name: str) -> None:
        """Raise the error of an operation that needs a symmetric A, with some of the entries that are not."""
        if not self.is_undirected:
            need_symmetric(name, *self.ends(), _numbers(self.weight), self.n)

    @property
    def pattern(self) -> Pattern:
        """The places of the pairs in A: rows are receivers i, columns senders j."""
        if self._pattern is None:
            self._set(_pattern=Pattern.of(*self.ends(), (self.n, self.n)))
        assert self._pattern is not None
        return self._pattern

    @property
    def edges(self) -> Tensor:
        """The pairs (i, j), (m, 2)."""
        return stack([self.pattern.rows.owner, self.pattern.cols.owner], axis=1)

    @property
    def edge_index(self) -> Tensor:
        """Senders j and receivers i, (2, m), as PyTorch Geometric has them."""
        return stack([self.pattern.cols.owner, self.pattern.rows.owner], axis=0)

    def ends(self) -> Ends:
        """The receivers and the senders of all pairs as NumPy arrays, for what cannot be traced."""
        if self._ends is None:
            assert self._pattern is not None
            owners = self._pattern.rows.owner, self._pattern.cols.owner
            if isinstance(owners[0], Tracer):
                raise TraceError(
                    "Graph: the edges of a traced graph cannot be looked at.",
                    "add self-loops, take subgraphs and so on before wl.jit, or close over the graph",
                )
            self._set(_ends=tuple(np.asarray(owner).astype(np.int64) for owner in owners))
        assert self._ends is not None
        return self._ends

    @property
    def num_graphs(self) -> int:
        """How many graphs this is: 1, or those of a `Batch`."""
        return 1

    @property
    def real_graphs(self) -> int:
        """Those of them that are not padding."""
        return self.num_graphs

    @property
    def nodes(self) -> Incidence:
        """Which nodes belong to which graph, for sums over the nodes of each."""
        return Incidence.of(np.zeros(self.n, np.int32), 1)

    @property
    def graph_index(self) -> Tensor:
        """The number of each node's graph, (n,). Book, section 12.2.4."""
        return zeros((self.n,), dtype=np.int32)

    @property
    def node_mask(self) -> Tensor | None:
        """Which nodes are real, (n,); None if all are, see `Batch.padded`."""
        return None

    @property
    def edge_mask(self) -> Tensor | None:
        """Which edges are real, (m,); None if all are."""
        return None

    @property
    def graph_mask(self) -> Tensor | None:
        """Which graphs are real; None if all are."""
        return None

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(self._parts())})"

    def _parts(self) -> list[str]:
        m = self.num_edges
        traced = self._ends is None and isinstance(self.pattern.rows.owner, Tracer)
        if not traced and self.is_undirected:
            edges = _counted(self.num_undirected_edges, "undirected edge")
        else:
            edges = _counted(m, "edge")
        parts = [_counted(self.n, "node"), edges + (", weighted" if self.weight is not None else "")]
        for name in ("x", "edge_attr", "u", "edge_y"):
            if (value := getattr(self, name)) is not None:
                parts.append(f"{name} {value.shape}")
        if self.y is not None:
            parts.append(f"y {self.y.shape} of {'the graph' if self.y_of == 'graph' else 'nodes'}")
        for name, mask in self.masks.items():
            parts.append(name if isinstance(mask, Tracer) else f"{name} {int(np.asarray(mask).sum()):,}")
        return parts + ([f"props {', '.join(map(str, self.props))}"] if self.props else [])

    # --- changed copies

    def _copy(self: Self, **changes: object) -> Self:
        """This graph with other fields, which are not looked at."""
        made = object.__new__(type(self))
        made._set(**{**self.__dict__, **changes})
        return made

    def with_(
        self: Self,
        *,
        weight: ArrayLike | bool | None = False,
        x: ArrayLike | bool | None = False,
        edge_attr: ArrayLike | bool | None = False,
        u: ArrayLike | bool | None = False,
        y: ArrayLike | bool | None = False,
        edge_y: ArrayLike | bool | None = False,
        masks: Mapping[str, ArrayLike] | bool | None = False,
        props: Mapping[str, object] | bool | None = False,
    ) -> Self:
        """A copy with other weights, features, labels, masks or props; None takes them away.

        >>> import wonderland as wl
        >>> wl.graphs.Graph(2, [(0, 1)]).with_(x=wl.ones((2, 3)), weight=[0.5])
        Graph(2 nodes, 1 edge, weighted, x (2, 3))
        """
        m, n = self.num_edges, self.n
        changes: dict[str, object] = {}
        if weight is not False:
            changes |= {"weight": as_weight("with_", weight, m), "_undirected": None}
        if x is not False:
            changes["x"] = as_rows("with_", "x", x, n, "nodes")
        if edge_attr is not False:
            changes["edge_attr"] = as_rows("with_", "edge_attr", edge_attr, m, "edges")
        if edge_y is not False:
            changes["edge_y"] = as_rows("with_", "edge_y", edge_y, m, "edges")
        if u is not False:
            changes["u"] = None if u is None else self._global(asarray(u))
        if y is not False:
            changes["y"], changes["y_of"] = self._labels(y)
        if masks is not False:
            changes["masks"] = as_masks("with_", masks, n)  # type: ignore[arg-type]
        if props is not False:
            changes["props"] = dict(props or {})  # type: ignore[arg-type]
        return self._copy(**changes)

    def _global(self, u: Tensor) -> Tensor:
        return _one_row(u)

    def _labels(self, y: ArrayLike | None) -> tuple[Tensor | None, str | None]:
        return as_labels("with_", y, self.n)

    def _at_nodes(self, nodes: Array) -> dict[str, object]:
        """The fields that have a row per node, at some nodes."""
        return {
            "x": None if self.x is None else self.x[nodes],
            "y": self.y[nodes] if self.y is not None and self.y_of == "nodes" else self.y,
            "masks": {name: mask[nodes] for name, mask in self.masks.items()},
        }

    def mask(self, name: str) -> Tensor:
        """A mask by name."""
        if name not in self.masks:
            found = ", ".join(map(repr, self.masks)) or "none"
            raise InputError(f"Graph: there is no mask {name!r}; masks: {found}.", "graph.with_(masks={...})")
        return self.masks[name]

    def select_nodes(self, nodes: ArrayLike) -> Array:
        """Nodes as integers, from integers or from a mask (n,)."""
        chosen = np.asarray(nodes)
        if chosen.dtype == np.bool_:
            if chosen.shape != (self.n,):
                raise ShapeError(f"Graph: a mask of shape {chosen.shape} for {self.n} nodes.", f"({self.n},)")
            return np.flatnonzero(chosen)
        return as_nodes("Graph", chosen.reshape(-1), self.n)


def _one_row(u: Tensor) -> Tensor:
    if u.ndim > 1 and u.shape[0] == 1:
        return u
    if u.ndim > 1:
        raise ShapeError(f"Graph: global features u of shape {u.shape}.", "(d,) or (1, d)")
    return u.reshape((1, -1))


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def _numbers(weight: object) -> Array | None:
    """The weights as an array; those that are traced count as given."""
    return None if weight is None or isinstance(weight, Tracer) else np.asarray(weight)


# --- a graph is a tree


def children_of(graph: Graph) -> list[object]:
    """What changes without another trace: the pattern, the tensors, masks, and arrays among the props."""
    arrays = {key: value for key, value in graph.props.items() if isinstance(value, (np.ndarray, Tensor))}
    return [graph.pattern, *(getattr(graph, name) for name in _TENSORS), graph.masks, arrays]


def rest_of(graph: Graph) -> tuple[object, ...]:
    """What is static."""
    others = tuple((key, trees.Static(value)) for key, value in graph.props.items() if not _is_array(value))
    undirected = graph._undirected if isinstance(graph.pattern.rows.owner, Tracer) else graph.is_undirected
    return graph.n, undirected, graph.y_of, others, tuple(graph.props)


def fields_of(rest: Sequence[object], children: Sequence[object]) -> dict[str, object]:
    """The fields of a graph from what the two functions above gave."""
    n, undirected, y_of, others, names = rest
    pattern, *tensors, masks, arrays = children
    props = {**arrays, **{key: value.value for key, value in others}}  # type: ignore[dict-item,attr-defined]
    return {
        **dict(zip(_TENSORS, tensors, strict=True)),
        "n": n,
        "y_of": y_of,
        "masks": masks,
        "props": {name: props[name] for name in names},  # type: ignore[attr-defined]
        "_ends": None,
        "_pattern": pattern,
        "_undirected": undirected,
    }


def _is_array(value: object) -> bool:
    return isinstance(value, (np.ndarray, Tensor))


def _restore(rest: Sequence[object], children: Sequence[object]) -> Graph:
    made = object.__new__(Graph)
    made._set(**fields_of(rest, children))
    return made


trees.register(Graph, lambda graph: (children_of(graph), rest_of(graph)), _restore)
