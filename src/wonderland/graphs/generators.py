"""Random graphs, and graphs of data points. The same seed gives the same graph. Book, sections 12.1.2 and 12.1.4."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..core.arguments import as_int, as_number
from ..core.errors import InputError, ShapeError
from ..core.typing import Array, ArrayLike
from ..data.generators import Seed
from ..data.randomness import as_generator
from .graph import Graph
from .shapes import undirected

_BLOCK = 1 << 22  # distances computed at once


def erdos_renyi(n: int, p: float | None = None, *, edges: int | None = None, seed: Seed = 0) -> Graph:
    """n nodes, of which each pair is linked with probability p; or with exactly so many edges, all sets equally likely.

    >>> import wonderland as wl
    >>> graph = wl.graphs.erdos_renyi(1000, 0.01)
    >>> 9 < float(graph.degree().mean()) < 11
    True

    Degrees are binomial: about normal, with mean (n - 1) p and variance (n - 1) p (1 - p). It takes time in proportion
    to the number of edges. Book, section 12.1.2 (figure 12.3).
    """
    n = as_int("erdos_renyi", "n", n, least=0)
    if (p is None) == (edges is None):
        raise InputError("erdos_renyi: either p or edges says how many edges there are.", "erdos_renyi(n, p)")
    rng, pairs = as_generator("erdos_renyi", seed), n * (n - 1) // 2
    if p is not None:
        count = int(rng.binomial(pairs, _share("erdos_renyi", "p", p)))
    else:
        count = as_int("erdos_renyi", "edges", edges, least=0)
        if count > pairs:
            raise InputError(f"erdos_renyi: {count:,} edges of {pairs:,} possible ones.", "fewer edges")
    return undirected(n, *_triangle(_distinct(rng, pairs, count)))


def _share(name: str, what: str, value: float) -> float:
    if not 0 <= as_number(name, what, value) <= 1:
        raise InputError(f"{name}: {what}={value!r} is not a probability.", "a number from 0 to 1")
    return float(value)


def _distinct(rng: np.random.Generator, total: int, count: int) -> Array:
    """So many different numbers below a total, sorted; all sets are equally likely."""
    if 3 * count > total:
        return np.sort(rng.permutation(total)[:count])
    found = np.unique(rng.integers(0, total, count))
    while len(found) < count:
        found = np.union1d(found, rng.integers(0, total, count - len(found)))
    return found


def _triangle(places: Array) -> tuple[Array, Array]:
    """The pairs (i, j), i > j, by their number in the order (1, 0), (2, 0), (2, 1), (3, 0), ..."""
    i = ((1 + np.sqrt(1.0 + 8.0 * places)) / 2).astype(np.int64)
    i -= places < i * (i - 1) // 2  # where the root was rounded up
    i += places >= i * (i + 1) // 2
    return i, places - i * (i - 1) // 2


def barabasi_albert(n: int, m: int = 3, *, seed: Seed = 0) -> Graph:
    """Nodes come one at a time and link to m others, each with a probability in proportion to its degree.

    >>> import wonderland as wl
    >>> graph = wl.graphs.barabasi_albert(1000)
    >>> graph.num_undirected_edges  # m (n - m - 1) and those among the first m + 1 nodes
    2994
    >>> float(graph.degree().max()) > 40
    True

    The first m + 1 nodes all see each other, and no two links of a node are the same. Who has many links gets more of
    them: hubs, and degrees that fall as a power. Book, section 12.1.2 (figure 12.3).
    """
    m = as_int("barabasi_albert", "m", m, least=1)
    n = as_int("barabasi_albert", "n", n, least=m + 1)
    rng = as_generator("barabasi_albert", seed)
    first = [(i, j) for i in range(m + 1) for j in range(i)]
    # both ends of all edges so far: a node is in it as often as its degree says
    ends = np.empty(2 * (len(first) + m * (n - m - 1)), np.int64)
    filled = 2 * len(first)
    ends[:filled] = np.asarray(first).reshape(-1)
    numbers = rng.random((n - m - 1, 2 * m)) if n > m + 1 else np.zeros((0, 2 * m))
    for node, draws in zip(range(m + 1, n), numbers, strict=True):
        chosen: list[int] = []
        for draw in draws:
            pick = int(ends[int(draw * filled)])
            if pick not in chosen:
                chosen.append(pick)
                if len(chosen) == m:
                    break
        while len(chosen) < m:  # the draws made ahead were not enough
            pick = int(ends[rng.integers(filled)])
            if pick not in chosen:
                chosen.append(pick)
        ends[filled : filled + 2 * m : 2] = node
        ends[filled + 1 : filled + 2 * m : 2] = chosen
        filled += 2 * m
    return undirected(n, ends[0::2], ends[1::2])


def stochastic_block_model(
    sizes: Sequence[int], p: float | ArrayLike, p_out: float | None = None, *, seed: Seed = 0
) -> Graph:
    """Blocks of nodes; two nodes are linked with a probability that depends on their blocks. `y` is a node's block.

    >>> import wonderland as wl
    >>> graph = wl.graphs.stochastic_block_model([50, 50], 0.2, 0.01)
    >>> graph.y.tolist() == [0] * 50 + [1] * 50, wl.graphs.edge_homophily(graph) > 0.9
    (True, True)

    `p` is a symmetric matrix (blocks, blocks) of probabilities, or the probability inside of a block, with `p_out` that
    between two blocks.
    """
    counts = np.array([as_int("stochastic_block_model", "sizes", size, least=0) for size in sizes], np.int64)
    k = len(counts)
    chances = np.asarray(p, np.float64)
    if not chances.ndim:
        between = 0.0 if p_out is None else _share("stochastic_block_model", "p_out", p_out)
        chances = np.where(np.eye(k, dtype=bool), float(chances), between)
    elif p_out is not None:
        raise InputError("stochastic_block_model: p is a matrix, and p_out is given, too.", "one of them")
    if chances.shape != (k, k) or not np.array_equal(chances, chances.T) or ((chances < 0) | (chances > 1)).any():
        raise InputError(
            f"stochastic_block_model: p of shape {chances.shape} for {k} blocks.",
            "a symmetric matrix (blocks, blocks) of probabilities",
        )
    rng = as_generator("stochastic_block_model", seed)
    starts = np.cumsum(counts) - counts
    first, second = [], []
    for a in range(k):
        for b in range(a + 1):
            pairs = int(counts[a] * (counts[a] - 1) // 2 if a == b else counts[a] * counts[b])
            places = _distinct(rng, pairs, int(rng.binomial(pairs, chances[a, b])))
            i, j = _triangle(places) if a == b else np.divmod(places, counts[b])
            first.append(starts[a] + i)
            second.append(starts[b] + j)
    labels = np.repeat(np.arange(k), counts)
    n = int(counts.sum())
    if not first:
        return Graph(0)
    return undirected(n, np.concatenate(first), np.concatenate(second), y=labels)


def _points(name: str, X: ArrayLike) -> Array:
    points = np.asarray(X)
    if points.ndim != 2:
        raise ShapeError(f"{name}: points of shape {points.shape}.", "(points, features)")
    return points.astype(np.float64) if points.dtype.kind != "f" else points


def _squares(points: Array, rows: slice) -> Array:
    """Squared distances of some points to all, (k, n), to rounding exactly as differences give them."""
    part = points[rows]
    if points.shape[1] <= 16:
        return sum(((part[:, d, None] - points[None, :, d]) ** 2 for d in range(points.shape[1])), np.zeros(1))
    sizes = (points**2).sum(axis=1)
    return np.maximum(sizes[rows, None] + sizes[None] - 2 * part @ points.T, 0)


def knn_graph(X: ArrayLike, k: int = 10, *, weight: str | None = None, symmetrize: str | None = "max") -> Graph:
    r"""Points (n, d) as nodes that see their k nearest ones, not themselves. Notes, A7-15.

    >>> import wonderland as wl
    >>> wl.graphs.knn_graph([[0.0], [1.0], [3.0]], 1)
    Graph(3 nodes, 2 undirected edges, x (3, 1))

    To be near is not mutual, so A is made symmetric: "max" (one sees the other), "mutual" (both do), or None for the
    directed graph. `weight` is None (1), "distance", or "gaussian", \(e^{-\|x_i - x_j\|^2}\).
    """
    points = _points("knn_graph", X)
    n, k = len(points), as_int("knn_graph", "k", k, least=1)
    if k >= n:
        raise InputError(f"knn_graph: k={k} neighbours of {n} points.", f"k up to {n - 1}")
    if weight not in (None, "distance", "gaussian"):
        raise InputError(f"knn_graph: weight={weight!r}.", 'None, "distance" or "gaussian"')
    if symmetrize not in (None, "max", "mutual"):
        raise InputError(f"knn_graph: symmetrize={symmetrize!r}.", '"max", "mutual" or None')
    step = max(1, _BLOCK // n)
    nearest = []
    for start in range(0, n, step):
        squares = _squares(points, slice(start, start + step))
        squares[np.arange(len(squares)), np.arange(start, start + len(squares))] = np.inf
        nearest.append(np.argpartition(squares, k - 1, axis=1)[:, :k])
    rows, cols = np.repeat(np.arange(n), k), np.concatenate(nearest).reshape(-1)
    keys, there = rows * n + cols, cols * n + rows
    both = np.isin(keys, there)
    if symmetrize == "mutual":
        rows, cols = rows[both], cols[both]
    elif symmetrize == "max":
        rows, cols = np.concatenate([rows, cols[~both]]), np.concatenate([cols, rows[~both]])
    weights = None
    if weight is not None:
        values = ((points[rows] - points[cols]) ** 2).sum(axis=1)  # the same in both directions
        weights = (np.sqrt(values) if weight == "distance" else np.exp(-values)).astype(points.dtype)
    graph = Graph(n, np.stack([rows, cols], axis=1), weights, x=np.asarray(X))
    return graph._copy(_undirected=None if symmetrize is None else True)


def similarity_graph(X: ArrayLike, tau: float = np.inf, *, scale: float = 1.0, self_loops: bool = True) -> Graph:
    r"""Points (n, d) as nodes: \(A_{ij} = e^{-s\|x_i - x_j\|^2}\) where \(\|x_i - x_j\|^2 < \tau\). Book, E.12.3.

    >>> import wonderland as wl
    >>> graph = wl.graphs.similarity_graph([[0.0], [0.5], [9.0]], tau=1.0)
    >>> round(float(graph.to_dense()[0, 1]), 6), graph.num_edges
    (0.778801, 5)

    The diagonal is 1, which no Laplacian sees; with a small tau only the self-loops are left. Book, section 12.1.4.
    """
    points = _points("similarity_graph", X)
    limit, factor = as_number("similarity_graph", "tau", tau), as_number("similarity_graph", "scale", scale)
    if not (limit > 0 and factor > 0):
        raise InputError(f"similarity_graph: tau={tau!r} and scale={scale!r}.", "numbers above 0")
    step = max(1, _BLOCK // max(len(points), 1))
    parts = []
    for start in range(0, len(points), step):
        squares = _squares(points, slice(start, start + step))
        own = np.arange(len(squares)), np.arange(start, start + len(squares))
        squares[own] = 0 if self_loops else np.inf
        rows, cols = np.nonzero(squares < limit)
        half = cols >= rows + start  # the other one is its mirror, to the last bit
        rows, cols = rows[half], cols[half]
        parts.append((rows + start, cols, squares[rows, cols]))
    rows, cols, values = (np.concatenate([part[i] for part in parts] or [np.zeros(0, int)]) for i in range(3))
    mirrored = rows != cols
    pairs = np.concatenate([rows, cols[mirrored]]), np.concatenate([cols, rows[mirrored]])
    weights = np.exp(-factor * np.concatenate([values, values[mirrored]])).astype(points.dtype)
    return Graph(len(points), np.stack(pairs, axis=1), weights, x=np.asarray(X))._copy(_undirected=True)
