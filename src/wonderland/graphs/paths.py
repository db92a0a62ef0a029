"""Ways through a graph: breadth-first search, components, shortest paths, diameter. Book, sections 12.2.1 and 12.2.3.

A step leads from i to j where (i, j) is an edge, from a node to one that it reads from.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..arrays import asarray
from ..core.arguments import as_int
from ..core.errors import InputError
from ..core.tensor import Tensor
from ..core.typing import Array, ArrayLike
from .checking import examples
from .graph import Graph
from .structure import lines_of, neighbors_of

BLOCK = 1024  # sources of one search, a bit each


class Search(NamedTuple):
    """What a search finds: nodes in the order of their distance, their distances and predecessors (-1: none)."""

    order: Array
    distance: Array
    parent: Array


def bfs(graph: Graph, source: int) -> Search:
    """The nodes that can be reached from one, nearest first, with their distances in steps. Book, section 12.2.1.

    >>> import wonderland as wl
    >>> order, distance, parent = wl.graphs.bfs(wl.graphs.path_graph(4), 1)
    >>> order, distance, parent
    (array([1, 0, 2, 3]), array([1, 0, 1, 2]), array([ 1, -1,  1,  2]))
    """
    front = graph.select_nodes([source])
    starts, others = lines_of(graph)
    distance, parent = np.full(graph.n, -1), np.full(graph.n, -1)
    distance[front] = 0
    order, steps = [front], 0
    while len(front):
        steps += 1
        places, owner = neighbors_of(starts, others, front)
        reached, first = np.unique(others[places], return_index=True)
        new = distance[reached] < 0
        parent[reached[new]] = front[owner[first[new]]]
        front = reached[new]
        distance[front] = steps
        order.append(front)
    return Search(np.concatenate(order), distance, parent)


def connected_components(graph: Graph) -> tuple[int, Array]:
    """How many components there are, and the number of each node's, (n,); directions of edges do not count.

    >>> import wonderland as wl
    >>> wl.graphs.connected_components(wl.graphs.Graph(5, [(0, 1), (3, 2)]))
    (3, array([0, 0, 1, 1, 2]))

    They are numbered by their first node. Every root hangs itself below a smaller one that it sees, and paths to roots
    are halved until nothing moves, so it takes few rounds of whole-array operations, however long paths are.
    """
    rows, cols = graph.ends()
    root = np.arange(graph.n)
    while True:
        a, b = root[rows], root[cols]
        apart = a != b
        if not apart.any():
            break
        rows, cols = rows[apart], cols[apart]
        np.minimum.at(root, np.maximum(a, b)[apart], np.minimum(a, b)[apart])
        while not np.array_equal(above := root[root], root):
            root = above
    firsts, labels = np.unique(root, return_inverse=True)
    return len(firsts), labels


def is_connected(graph: Graph) -> bool:
    r"""Whether every node can be reached from every other, directions aside.

    >>> import wonderland as wl
    >>> wl.graphs.is_connected(wl.graphs.path_graph(3)), wl.graphs.is_connected(wl.graphs.Graph(2))
    (True, False)

    It is so if and only if \(\lambda_2 > 0\), see `wl.graphs.fiedler`. A graph without nodes counts as connected.
    """
    return connected_components(graph)[0] <= 1


def shortest_paths(graph: Graph, sources: ArrayLike | None = None, weighted: bool = False) -> Array:
    """The lengths of shortest paths from some nodes (all by default) to every node, (k, n); inf where there is none.

    >>> import wonderland as wl
    >>> wl.graphs.shortest_paths(wl.graphs.path_graph(3), [0])
    array([[0., 1., 2.]])

    A length counts the steps, or with `weighted=True` sums the weights, which are 0 or more. Many sources are searched
    from at once, a bit for each. Book, section 12.2.3.
    """
    nodes = np.arange(graph.n) if sources is None else graph.select_nodes(sources)
    if weighted:
        return _weighted(graph, nodes)
    found = np.full((len(nodes), graph.n), np.inf)
    for start in range(0, len(nodes), BLOCK):
        _search(graph, nodes[start : start + BLOCK], found[start : start + BLOCK])
    return found


def _search(graph: Graph, sources: Array, found: Array) -> None:
    """Distances from up to `BLOCK` sources: bit s of a node's words says whether source s has reached it."""
    lines = graph.pattern.cols  # a node is reached when one that has an edge to it is
    starts, others = np.asarray(lines.ptr).astype(np.int64), np.asarray(lines.other).astype(np.int64)
    some = np.flatnonzero(starts[1:] > starts[:-1])  # reduceat has no empty sums
    bits = np.zeros((graph.n, len(sources)), bool)
    bits[sources, np.arange(len(sources))] = True
    found[np.arange(len(sources)), sources] = 0
    reached = np.packbits(bits, axis=1)
    front, steps = reached.copy(), 0
    while len(some):
        steps += 1
        new = np.zeros_like(reached)
        new[some] = np.bitwise_or.reduceat(front[others], starts[some], axis=0)
        new &= ~reached
        where = np.flatnonzero(new.any(axis=1))
        if not len(where):
            return
        node, source = np.nonzero(np.unpackbits(new[where], axis=1, count=len(sources)))
        found[source, where[node]] = steps
        reached |= new
        front = new


def _weighted(graph: Graph, sources: Array) -> Array:
    """Bellman and Ford: edges are relaxed all at once until no path becomes shorter."""
    rows, cols = graph.ends()
    weight = np.ones(len(rows)) if graph.weight is None else np.asarray(graph.weight).astype(np.float64)
    if len(wrong := np.flatnonzero(weight < 0)):
        raise InputError(
            f"shortest_paths: {len(wrong)} weights are negative: {examples(wrong, weight)}.", "lengths of 0 or more"
        )
    found = np.full((len(sources), graph.n), np.inf)
    for line, source in zip(found, sources, strict=True):
        line[source] = 0
        moved = np.array([True])
        while moved.any():
            lengths = line[rows] + weight
            moved = lengths < line[cols]
            np.minimum.at(line, cols[moved], lengths[moved])
    return found


def diameter(graph: Graph) -> float:
    """The longest of all shortest paths, in steps; inf if some node cannot be reached from another.

    >>> import wonderland as wl
    >>> wl.graphs.diameter(wl.graphs.path_graph(5)), wl.graphs.diameter(wl.graphs.Graph(2))
    (4.0, inf)

    So many layers it takes until every node depends on every other one. Book, section 12.2.3.
    """
    longest = 0.0
    for start in range(0, graph.n, BLOCK):
        paths = shortest_paths(graph, np.arange(start, min(start + BLOCK, graph.n)))
        longest = max(longest, float(paths.max(initial=0.0)))
    return longest


def anchor_distances(graph: Graph, anchors: ArrayLike, cap: int | None = None) -> Tensor:
    """The steps from each node to some anchors, (n, k), as features that say where a node is. Book, section 12.3.3.

    >>> import wonderland as wl
    >>> wl.graphs.anchor_distances(wl.graphs.path_graph(4), [0]).tolist()
    [[0.0], [1.0], [2.0], [3.0]]

    Longer ways, and those to nodes that cannot be reached, count as `cap`, which is n by default.
    """
    most = graph.n if cap is None else as_int("anchor_distances", "cap", cap, least=0)
    rows, cols = graph.ends()
    turned = graph._copy(_ends=(cols, rows), _pattern=graph.pattern.T)  # from anchors, against the edges
    paths = shortest_paths(turned, anchors)
    return asarray(np.minimum(paths, most).T.astype(np.float32))


def degree_histogram(graph: Graph) -> Array:
    """How many nodes have 0, 1, 2, ... neighbours (weights aside). Book, section 12.1.2.

    >>> import wonderland as wl
    >>> wl.graphs.degree_histogram(wl.graphs.star_graph(5))
    array([0, 4, 0, 0, 1])
    """
    starts, _ = lines_of(graph)
    return np.bincount(np.diff(starts), minlength=1)


def edge_homophily(graph: Graph, y: ArrayLike | None = None) -> float:
    """The share of the edges whose ends have the same label, self-loops aside; NaN without edges. Book, section 12.3.1.

    >>> import wonderland as wl
    >>> wl.graphs.edge_homophily(wl.graphs.path_graph(4), [0, 0, 1, 1])
    0.6666666666666666

    Nodes that like their like are what a graph convolution counts on. Without y the labels are those of the graph.
    """
    labels = node_labels("edge_homophily", graph, y)
    rows, cols = graph.ends()
    other = rows != cols
    same = labels[rows[other]] == labels[cols[other]]
    return float(same.mean()) if len(same) else float("nan")


def node_homophily(graph: Graph, y: ArrayLike | None = None) -> float:
    """The mean, over nodes with neighbours, of the share of neighbours with the node's label.

    >>> import wonderland as wl
    >>> wl.graphs.node_homophily(wl.graphs.path_graph(4), [0, 0, 1, 1])
    0.75
    """
    labels = node_labels("node_homophily", graph, y)
    rows, cols = graph.ends()
    rows, cols = rows[rows != cols], cols[rows != cols]
    counts = np.bincount(rows, minlength=graph.n)
    same = np.bincount(rows, labels[rows] == labels[cols], graph.n)
    return float((same[counts > 0] / counts[counts > 0]).mean()) if len(rows) else float("nan")


def node_labels(name: str, graph: Graph, y: ArrayLike | None) -> Array:
    """Labels (n,): those given, or those of the graph."""
    if y is None and (graph.y is None or graph.y_of != "nodes"):
        raise InputError(f"{name}: the nodes have no labels.", f"{name}(graph, y)")
    labels = np.asarray(graph.y if y is None else y)
    if labels.shape != (graph.n,):
        raise InputError(f"{name}: labels of shape {labels.shape} for {graph.n} nodes.", f"({graph.n},)")
    return labels
