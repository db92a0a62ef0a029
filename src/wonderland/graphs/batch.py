"""Many graphs as one: side by side on the diagonal of A, or padded to one size. Book, section 12.2.4."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from ..arrays import arange, asarray
from ..core import trees
from ..core.arguments import as_int, as_list
from ..core.errors import InputError, ShapeError
from ..core.tensor import Tensor
from ..core.typing import Array, ArrayLike
from ..sparse import Incidence, Pattern, gather
from .checking import as_labels
from .graph import Graph, children_of, fields_of, rest_of


class Batch(Graph):
    r"""Several graphs as one with \(A = \mathrm{blockdiag}(A_1, \dots, A_b)\) and the nodes stacked.

    >>> import wonderland as wl
    >>> batch = wl.graphs.Batch.from_graphs([wl.graphs.path_graph(4), wl.graphs.path_graph(3)])
    >>> batch
    Batch(2 graphs, 7 nodes, 5 undirected edges)
    >>> batch.graph_index.tolist()
    [0, 0, 0, 0, 1, 1, 1]

    It is a graph, so every layer takes it, and no message passes between two graphs. `nodes` has the nodes of each
    graph, for readouts; `u` and labels of graphs have a row per graph. `padded()` makes sizes round, so that batches of
    many sizes need few compiled programs. Book, section 12.2.4.
    """

    _nodes: Incidence
    _num_graphs: int
    _real_graphs: int

    def __init__(self) -> None:
        raise InputError("Batch: a batch is made of graphs.", "wl.graphs.Batch.from_graphs([graph, ...])")

    @classmethod
    def from_graphs(cls, graphs: Sequence[Graph]) -> Batch:
        """The batch of some graphs, in this order. All of them have the same kinds of features."""
        parts: list[Graph] = as_list("Batch.from_graphs", "graphs", graphs)
        if not parts or not all(isinstance(part, Graph) and part.num_graphs == 1 for part in parts):
            raise InputError("Batch.from_graphs: not a list of single graphs.", "one graph or more")
        sizes = np.array([part.n for part in parts])
        offsets = np.cumsum(sizes) - sizes
        ends = [part.ends() for part in parts]
        rows, cols = (np.concatenate([pair[k] + o for pair, o in zip(ends, offsets, strict=True)]) for k in (0, 1))
        weights: list[Tensor | None] = [part.weight for part in parts]
        if any(weight is not None for weight in weights):
            counts = [len(pair[0]) for pair in ends]
            weights = [
                asarray(np.ones(m, np.float32)) if w is None else w for w, m in zip(weights, counts, strict=True)
            ]
        y, y_of = _labels_of(parts)
        made = object.__new__(cls)
        made._set(
            n=int(sizes.sum()),
            weight=_joined("weight", weights),
            x=_joined("x", [part.x for part in parts]),
            edge_attr=_joined("edge_attr", [part.edge_attr for part in parts]),
            edge_y=_joined("edge_y", [part.edge_y for part in parts]),
            u=_joined("u", [part.u for part in parts]),
            y=y,
            y_of=y_of,
            masks=_masks_of(parts),
            props={},
            _ends=(rows, cols),
            _pattern=None,
            _undirected=all(part.is_undirected for part in parts),
            _nodes=Incidence.of(np.repeat(np.arange(len(parts)), sizes), len(parts)),
            _num_graphs=len(parts),
            _real_graphs=len(parts),
        )
        return made

    @property
    def num_graphs(self) -> int:
        """The number of graphs, with those that are padding."""
        return self._num_graphs

    @property
    def real_graphs(self) -> int:
        """The number of graphs that are not padding: the first ones. It is static."""
        return self._real_graphs

    @property
    def nodes(self) -> Incidence:
        """Which nodes belong to which graph."""
        return self._nodes

    @property
    def graph_index(self) -> Tensor:
        """The number of each node's graph, (n,)."""
        return self._nodes.owner

    @property
    def is_padded(self) -> bool:
        """Whether the last graphs are padding."""
        return self._real_graphs < self._num_graphs

    @property
    def graph_mask(self) -> Tensor | None:
        """Which graphs are real, (num_graphs,); None if all are."""
        return arange(self._num_graphs) < self._real_graphs if self.is_padded else None

    @property
    def node_mask(self) -> Tensor | None:
        """Which nodes are real, (n,); None if all are."""
        return self.graph_index < self._real_graphs if self.is_padded else None

    @property
    def edge_mask(self) -> Tensor | None:
        """Which edges are real, (m,); None if all are."""
        mask = self.node_mask
        return None if mask is None else mask[self.pattern.rows.owner]

    def _parts(self) -> list[str]:
        padding = f" and {self._num_graphs - self._real_graphs} of padding" if self.is_padded else ""
        return [f"{self._real_graphs:,} graphs{padding}", *super()._parts()]

    def _global(self, u: Tensor) -> Tensor:
        if u.ndim < 2 or u.shape[0] != self._num_graphs:
            raise ShapeError(f"Batch: u of shape {u.shape} for {self._num_graphs} graphs.", "a row per graph")
        return u

    def _labels(self, y: ArrayLike | None) -> tuple[Tensor | None, str | None]:
        labels = None if y is None else asarray(y)
        if labels is not None and labels.ndim and labels.shape[0] == self._num_graphs != self.n:
            return labels, "graph"
        return as_labels("with_", labels, self.n)

    def _at_nodes(self, nodes: Array) -> dict[str, object]:
        index = np.asarray(self.graph_index)[nodes]
        return {**super()._at_nodes(nodes), "_nodes": Incidence.of(index, self._num_graphs)}

    def to_graphs(self) -> list[Graph]:
        """The real graphs one by one: what `from_graphs` was given (without their props)."""
        index = np.asarray(self.graph_index).astype(np.int64)
        rows, cols = self.ends()
        order, which = np.argsort(index, kind="stable"), np.argsort(index[rows], kind="stable")
        every = np.arange(self._num_graphs + 1)
        bounds, edge_bounds = np.searchsorted(index[order], every), np.searchsorted(index[rows][which], every)
        place = np.empty(self.n, np.int64)
        place[order] = np.arange(self.n)
        found = []
        for k in range(self._real_graphs):
            nodes, pairs = order[bounds[k] : bounds[k + 1]], which[edge_bounds[k] : edge_bounds[k + 1]]
            made = object.__new__(Graph)
            fields = {key: value for key, value in self.__dict__.items() if key not in _OWN}
            made._set(
                **{
                    **fields,
                    **Graph._at_nodes(self, nodes),
                    "n": len(nodes),
                    "weight": None if self.weight is None else self.weight[pairs],
                    "edge_attr": None if self.edge_attr is None else self.edge_attr[pairs],
                    "edge_y": None if self.edge_y is None else self.edge_y[pairs],
                    "u": None if self.u is None else self.u[k : k + 1],
                    "_ends": (place[rows[pairs]] - bounds[k], place[cols[pairs]] - bounds[k]),
                    "_pattern": None,
                    "_undirected": True if self._undirected else None,
                }
            )
            if self.y is not None and self.y_of == "graph":
                made._set(y=self.y[k] if self.y.ndim == 1 else self.y[k : k + 1])
            found.append(made)
        return found

    def padded(self, nodes: int | None = None, edges: int | None = None, graphs: int | None = None) -> Batch:
        """This batch with padding behind it: nodes, edges and graphs up to given numbers, or to the next bucket.

        >>> import wonderland as wl
        >>> batch = wl.graphs.Batch.from_graphs([wl.graphs.path_graph(4), wl.graphs.path_graph(3)]).padded()
        >>> batch.n, batch.num_edges, batch.num_graphs, batch.real_graphs
        (8, 10, 3, 2)
        >>> batch.node_mask.tolist()
        [True, True, True, True, True, True, True, False]

        All padding belongs to one graph, the last, and its edges are self-loops of its nodes (of weight 0, if there are
        weights), so nothing of it reaches the real graphs. Features and labels there are 0, masks False. Edges are
        sorted by the node that reads, which is what compiled code likes best. See `bucket` for the sizes.
        """
        if self.is_padded:
            raise InputError("Batch.padded: the batch is padded already.", "pad once")
        n, m, b = self.n, self.num_edges, self._num_graphs
        to_n = bucket(n + 1) if nodes is None else as_int("Batch.padded", "nodes", nodes)
        to_m = bucket(m) if edges is None else as_int("Batch.padded", "edges", edges)
        to_b = b + 1 if graphs is None else as_int("Batch.padded", "graphs", graphs)
        if to_n <= n or to_m < m or to_b <= b:
            raise InputError(
                f"Batch.padded: {n} nodes, {m} edges and {b} graphs do not fit into {to_n}, {to_m} and {to_b}.",
                f"at least {n + 1}, {m} and {b + 1}: one node and one graph are padding",
            )
        rows, cols = self.ends()
        order = np.argsort(rows, kind="stable")
        extra = np.sort(n + np.arange(to_m - m) % (to_n - n))  # spread over the padding nodes
        ends = np.concatenate([rows[order], extra]), np.concatenate([cols[order], extra])
        pattern = Pattern.of(*ends, (to_n, to_n))
        # by chance the columns of a small batch may be sorted, too, and it would need a program of its own
        pattern = replace(pattern, cols=replace(pattern.cols, sorted=False))
        index = np.concatenate([np.asarray(self.graph_index), np.full(to_n - n, to_b - 1)])
        lines = replace(Incidence.of(index, to_b), sorted=True) if _rising(index) else Incidence.of(index, to_b)
        of_edges = {"weight": self.weight, "edge_attr": self.edge_attr, "edge_y": self.edge_y}
        count = to_n if self.y_of == "nodes" else to_b
        return self._copy(
            **{name: _filled(None if t is None else t[order], to_m) for name, t in of_edges.items()},
            n=to_n,
            x=_filled(self.x, to_n),
            u=_filled(self.u, to_b),
            y=_filled(self.y, count),
            masks={name: _filled(mask, to_n) for name, mask in self.masks.items()},
            _ends=ends,
            _pattern=pattern,
            _nodes=lines,
            _num_graphs=to_b,
        )

    def per_node(self, values: ArrayLike) -> Tensor:
        """Rows of graphs (num_graphs, ...) at the nodes of each, (n, ...)."""
        return gather(asarray(values), self._nodes)


_OWN = ("_nodes", "_num_graphs", "_real_graphs")


def _rising(index: Array) -> bool:
    return bool((index[1:] >= index[:-1]).all())


def _filled(values: Tensor | None, count: int) -> Tensor | None:
    if values is None:
        return None
    rows = np.asarray(values)
    made = np.zeros((count, *rows.shape[1:]), rows.dtype)
    made[: len(rows)] = rows
    return asarray(made)


def _joined(what: str, values: Sequence[Tensor | None]) -> Tensor | None:
    """Rows behind each other; all graphs have them, or none."""
    there = [value for value in values if value is not None]
    if not there:
        return None
    if len(there) < len(values):
        odd = next(i for i, value in enumerate(values) if value is None)
        raise InputError(
            f"Batch.from_graphs: {len(values) - len(there)} of {len(values)} graphs have no {what}, as graph {odd}.",
            "the same features for all graphs",
        )
    arrays = [np.asarray(value) for value in there]
    for i, array in enumerate(arrays):
        if array.shape[1:] != arrays[0].shape[1:]:
            raise ShapeError(
                f"Batch.from_graphs: {what} of graph {i} has shape {array.shape}, that of graph 0 {arrays[0].shape}.",
                "features of one width",
            )
    return asarray(np.concatenate(arrays))


def _labels_of(parts: Sequence[Graph]) -> tuple[Tensor | None, str | None]:
    labels = [part.y for part in parts]
    if all(y is None for y in labels):
        return None, None
    # a single label of a graph with one node may be either
    if all(y is not None and y.ndim and y.shape[0] == part.n for y, part in zip(labels, parts, strict=True)):
        return _joined("y", labels), "nodes"
    for i, y in enumerate(labels):
        if y is not None and y.ndim and y.shape[0] != 1:
            raise InputError(
                f"Batch.from_graphs: y of graph {i} belongs to its nodes, and that of others to the graph.", "one kind"
            )
    return _joined("y", [y if y is None or y.ndim else y.reshape((1,)) for y in labels]), "graph"


def _masks_of(parts: Sequence[Graph]) -> dict[str, Tensor]:
    found = {}
    for name in parts[0].masks:
        if all(name in part.masks for part in parts):
            found[name] = _joined(name, [part.masks[name] for part in parts])
    return {name: mask for name, mask in found.items() if mask is not None}


def bucket(count: int, least: int = 8) -> int:
    """The smallest of 1, 1.25, 1.5 and 1.75 times a power of two that is not below a count.

    >>> [bucket(count) for count in (3, 9, 11, 17, 100, 1000)]
    [8, 10, 12, 20, 112, 1024]

    Sizes between n and 2n fall into four buckets, and at most a fifth of a padded size is padding.
    """
    count = max(count, least)
    power = 1 << (count.bit_length() - 1)
    return next(size for size in (power * k // 4 for k in range(4, 9)) if size >= count)


class PaddedGraphs(NamedTuple):
    """Graphs of one size: features X (b, n, c), adjacency matrices A (b, n, n), and which nodes are real (b, n)."""

    x: Tensor | None
    A: Tensor
    mask: Tensor


def pad_graphs(graphs: Sequence[Graph], pad_to: int | Callable[[int], int] | None = None) -> PaddedGraphs:
    """Graphs as dense arrays with zeros behind: X (b, n, c), A (b, n, n), and a mask (b, n) of the real nodes.

    >>> import wonderland as wl
    >>> padded = wl.graphs.pad_graphs([wl.graphs.path_graph(3), wl.graphs.path_graph(2)])
    >>> padded.A.shape, padded.mask.tolist()
    ((2, 3, 3), [[True, True, True], [True, True, False]])

    n is the size of the largest graph, the number `pad_to`, or what that function makes of the size (such as
    `wl.graphs.bucket`). Means over nodes divide by the number of real ones, and self-loops are added before padding:
    a node that is not real has none. Book, section 12.2.4.
    """
    parts: list[Graph] = as_list("pad_graphs", "graphs", graphs)
    if not parts:
        raise InputError("pad_graphs: there are no graphs.", "one graph or more")
    largest = max(part.n for part in parts)
    n = largest if pad_to is None else pad_to(largest) if callable(pad_to) else as_int("pad_graphs", "pad_to", pad_to)
    if n < largest:
        raise InputError(f"pad_graphs: pad_to={n}, and a graph has {largest} nodes.", f"{largest} or more")
    weights = [part.weight for part in parts if part.weight is not None]
    A = np.zeros((len(parts), n, n), weights[0].dtype if weights else np.float32)
    mask = np.zeros((len(parts), n), bool)
    for k, part in enumerate(parts):
        rows, cols = part.ends()
        np.add.at(A[k], (rows, cols), 1.0 if part.weight is None else np.asarray(part.weight))
        mask[k, : part.n] = True
    stacked = _joined("x", [part.x for part in parts])
    x = None
    if stacked is not None:
        features = np.zeros((len(parts), n, *stacked.shape[1:]), stacked.dtype)
        features[mask] = np.asarray(stacked)
        x = asarray(features)
    return PaddedGraphs(x, asarray(A), asarray(mask))


def _children(batch: Batch) -> tuple[list[object], tuple[object, ...]]:
    return [*children_of(batch), batch._nodes], (*rest_of(batch), batch._num_graphs, batch._real_graphs)


def _restore(rest: tuple[object, ...], children: list[object]) -> Batch:
    made = object.__new__(Batch)
    *plain, num_graphs, real_graphs = rest
    made._set(**fields_of(plain, children[:-1]), _nodes=children[-1], _num_graphs=num_graphs, _real_graphs=real_graphs)
    return made


trees.register(Batch, _children, _restore)
