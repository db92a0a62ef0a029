"""Graphs of other packages: networkx, SciPy, PyTorch Geometric. None of them is needed unless its graphs are used."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Mapping
from types import ModuleType
from typing import TYPE_CHECKING, Protocol, TypeAlias

import numpy as np

from ..arrays import asarray
from ..core.errors import InputError
from ..core.tensor import Tensor
from ..core.typing import Array, ArrayLike
from ..sparse import COO, CSR
from .forms import from_dense
from .graph import Graph
from .structure import weights_of

if TYPE_CHECKING:
    from scipy.sparse import csr_array, sparray, spmatrix  # type: ignore[import-untyped]

    ScipyMatrix: TypeAlias = sparray | spmatrix


class NetworkxGraph(Protocol):
    """What is needed of a graph of networkx."""

    def is_directed(self) -> bool: ...

    def nodes(self, data: bool = False) -> Iterable[tuple[object, Mapping[str, object]]]: ...

    def edges(self, data: bool = False) -> Iterable[tuple[object, object, Mapping[str, object]]]: ...


class PygData(Protocol):
    """What is needed of a `Data` of PyTorch Geometric."""

    edge_index: object


def _package(name: str, package: str) -> ModuleType:
    try:
        return importlib.import_module(package)
    except ImportError:
        library = package.partition(".")[0]
        raise InputError(f"{name}: {library} is not installed.", f"pip install {library}") from None


# --- networkx


def from_networkx(
    graph: NetworkxGraph,
    *,
    weight: str = "weight",
    features: str = "x",
    label: str = "y",
    edge_features: str = "edge_attr",
) -> Graph:
    """The graph of a networkx graph: nodes in its order, (u, v) as row u and column v of A, as its own matrix has it.

    Attributes of nodes (`features`, `label`) and edges (`weight`, `edge_features`) that all of them have are taken. If
    nodes are not called 0, 1, ... their names are `props["names"]`. Undirected edges are stored in both directions.
    """
    nodes = list(graph.nodes(data=True))
    index = {name: i for i, (name, _) in enumerate(nodes)}
    edges = list(graph.edges(data=True))
    pairs = np.array([(index[u], index[v]) for u, v, _ in edges], np.int64).reshape(-1, 2)
    names = tuple(name for name, _ in nodes)
    attributes, of_edges = [data for _, data in nodes], [data for _, _, data in edges]
    weights, edge_attr = _common(of_edges, weight), _common(of_edges, edge_features)
    directed = graph.is_directed()
    if not directed:
        again = np.flatnonzero(pairs[:, 0] != pairs[:, 1])
        pairs = np.concatenate([pairs, pairs[again][:, ::-1]])
        weights, edge_attr = (None if a is None else np.concatenate([a, a[again]]) for a in (weights, edge_attr))
    return Graph(
        len(nodes),
        pairs,
        weights,
        x=_common(attributes, features),
        y=_common(attributes, label),
        edge_attr=edge_attr,
        props={} if names == tuple(range(len(nodes))) else {"names": names},
    )


def _common(rows: list[Mapping[str, object]], name: str) -> Array | None:
    if not rows or not all(name in row for row in rows):
        return None
    found = np.array([np.asarray(row[name]) for row in rows])
    return found.astype(np.float32) if found.dtype == np.float64 else found


def to_networkx(graph: Graph) -> object:
    """A networkx graph (`Graph`, or `DiGraph` if directed) with weights, features and labels as attributes.

    Duplicate edges are one, with the sum of their weights. Nodes have the names of `props["names"]`, if they are there.
    """
    networkx = _package("to_networkx", "networkx")
    graph = graph.coalesce()
    made = networkx.Graph() if graph.is_undirected else networkx.DiGraph()
    names = graph.props.get("names")
    called = list(names) if isinstance(names, (tuple, list)) and len(names) == graph.n else list(range(graph.n))
    features, labels = (
        None if v is None else np.asarray(v) for v in (graph.x, graph.y if graph.y_of == "nodes" else None)
    )
    for i, name in enumerate(called):
        found = {} if features is None else {"x": features[i]}
        made.add_node(name, **found, **({} if labels is None else {"y": labels[i].tolist()}))
    rows, cols = graph.ends()
    weight = None if graph.weight is None else np.asarray(graph.weight).tolist()
    edge_attr = None if graph.edge_attr is None else np.asarray(graph.edge_attr)
    for e, (i, j) in enumerate(zip(rows.tolist(), cols.tolist(), strict=True)):
        found = {} if weight is None else {"weight": weight[e]}
        made.add_edge(called[i], called[j], **found, **({} if edge_attr is None else {"edge_attr": edge_attr[e]}))
    return made


# --- SciPy


def from_scipy(matrix: ScipyMatrix, *, x: ArrayLike | None = None, y: ArrayLike | None = None) -> Graph:
    """The graph of a sparse matrix (n, n) of SciPy; stored entries are edges, with weights unless all are 1."""
    found = matrix.tocoo()
    if found.shape[0] != found.shape[1]:
        raise InputError(f"from_scipy: a matrix of shape {found.shape}.", "a square one, (n, n)")
    weights = None if bool((found.data == 1).all()) else found.data
    return Graph(int(found.shape[0]), np.stack([found.row, found.col], axis=1), weights, x=x, y=y)


def to_scipy(graph: Graph) -> csr_array:
    """The adjacency matrix A as a `csr_array` of SciPy."""
    scipy = _package("to_scipy", "scipy.sparse")
    weights = np.asarray(weights_of(graph))
    return scipy.csr_array((weights, graph.ends()), shape=(graph.n, graph.n))


# --- PyTorch Geometric


def _numpy(value: object) -> Array | None:
    """A tensor of PyTorch, or anything else, as an array."""
    if value is None:
        return None
    for step in ("detach", "cpu"):
        value = getattr(value, step)() if hasattr(value, step) else value
    return np.asarray(value)


def from_pyg(data: PygData) -> Graph:
    """The graph of a `Data` of PyTorch Geometric (or of anything with its fields): x, edge_index, edge_attr, y, masks.

    Row 0 of its `edge_index` are senders j and row 1 receivers i, so that it is the pair (i, j) here, and layers give
    the same. `edge_weight`, or an `edge_attr` of one axis, are weights; `train_mask` and so on become masks.
    """
    get = lambda name: _numpy(getattr(data, name, None))  # noqa: E731
    edge_index = get("edge_index")
    edge_index = np.zeros((2, 0), np.int64) if edge_index is None else edge_index
    x, weights, edge_attr = get("x"), get("edge_weight"), get("edge_attr")
    if weights is None and edge_attr is not None and edge_attr.ndim == 1:
        weights, edge_attr = edge_attr, None
    count = getattr(data, "num_nodes", None)
    n = int(count) if count is not None else len(x) if x is not None else int(edge_index.max(initial=-1)) + 1
    masks = {name: mask for name in ("train", "val", "test") if (mask := get(f"{name}_mask")) is not None}
    masks = {name: mask.astype(bool) for name, mask in masks.items() if mask.ndim == 1}
    return Graph(n, edge_index[::-1].T, weights, x=x, edge_attr=edge_attr, y=get("y"), u=get("u"), masks=masks)


def to_pyg(graph: Graph) -> object:
    """A `Data` of PyTorch Geometric with the same fields."""
    torch = _package("to_pyg", "torch")
    kind = _package("to_pyg", "torch_geometric.data").Data
    names = {"x": graph.x, "edge_attr": graph.edge_attr, "edge_weight": graph.weight, "u": graph.u, "y": graph.y}
    fields = {name: torch.tensor(np.asarray(value)) for name, value in names.items() if value is not None}
    masks = {f"{name}_mask": torch.tensor(np.asarray(mask)) for name, mask in graph.masks.items()}
    edge_index = torch.tensor(np.asarray(graph.edge_index).astype(np.int64))
    return kind(edge_index=edge_index, num_nodes=graph.n, **fields, **masks)


# --- whatever there is


def as_graph(source: object) -> Graph:
    """A graph from what looks like one: an integer `edge_index` (2, m), a dense or sparse A, a graph of others.

    >>> import wonderland as wl
    >>> as_graph([[0, 1], [1, 0]])
    Graph(2 nodes, 1 undirected edge)
    >>> as_graph([[0.0, 0.5], [0.5, 0.0]])
    Graph(2 nodes, 1 undirected edge, weighted)
    """
    if isinstance(source, Graph):
        return source
    if isinstance(source, (CSR, COO)):
        return Graph.from_pattern(source.pattern, source.data)
    if hasattr(source, "is_directed") and hasattr(source, "edges"):
        return from_networkx(source)  # type: ignore[arg-type]
    if hasattr(source, "edge_index"):
        return from_pyg(source)
    if hasattr(source, "tocoo"):
        return from_scipy(source)
    if isinstance(source, (np.ndarray, Tensor, list, tuple)):
        found = asarray(source)
        if found.ndim == 2 and found.shape[0] == 2 and found.dtype.kind in "iu":
            return Graph.from_edge_index(found)
        if found.ndim == 2 and found.shape[0] == found.shape[1]:
            return from_dense(found)
    raise InputError(
        f"as_graph: a {type(source).__name__} is no graph.",
        "a wl.graphs.Graph, an edge_index (2, m), or an adjacency matrix (n, n)",
    )
