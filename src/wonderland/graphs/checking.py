"""What a graph is made of, checked: ends of edges, weights, features, masks. Errors count and show what is wrong."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ..arrays import asarray
from ..core.arguments import shown
from ..core.dtypes import float32, is_complex, is_floating
from ..core.errors import DTypeError, IndexOutOfRange, InputError, ShapeError
from ..core.tensor import Tensor, Tracer
from ..core.typing import Array, ArrayLike

Ends = tuple[Array, Array]  # of edges: the receivers i (m,), and the senders j (m,)
SHOWN = 3  # offending rows in a message


def as_ends(name: str, edges: object, n: int) -> Ends:
    """The two ends of edges (m, 2), each a node from 0 to n - 1.

    >>> as_ends("demo", [(0, 2), (1, 0)], 3)
    (array([0, 1]), array([2, 0]))
    """
    pairs = np.asarray(edges if hasattr(edges, "__array__") else list(edges))  # type: ignore[call-overload]
    if not pairs.size:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    if pairs.ndim != 2 or pairs.shape[1] != 2:
        raise ShapeError(
            f"{name}: edges of shape {pairs.shape}.",
            "pairs (m, 2); wl.graphs.Graph.from_edge_index(edge_index, n) for two rows (2, m)"
            if pairs.ndim == 2 and pairs.shape[0] == 2
            else "pairs (m, 2): [(i, j), ...]",
        )
    nodes = as_nodes(name, pairs, n)
    return nodes[:, 0].copy(), nodes[:, 1].copy()


def as_nodes(name: str, values: ArrayLike, n: int) -> Array:
    """Nodes (k,), or pairs of them (k, 2), as integers from 0 to n - 1."""
    nodes = np.asarray(values)
    if nodes.dtype.kind not in "iu":
        if nodes.size:
            raise DTypeError(f"{name}: nodes are {nodes.dtype}.", "integers from 0; wl.graphs.read_edge_list for names")
        nodes = nodes.astype(np.int64)
    outside = (nodes < 0) | (nodes >= n)
    if outside.any():
        wrong = np.flatnonzero(outside.reshape(len(nodes), -1).any(axis=1))
        what = f"{len(wrong):,} of {len(nodes):,} {'edges' if nodes.ndim == 2 else 'nodes'}"
        raise IndexOutOfRange(
            f"{name}: {what} are outside a graph with {n:,} nodes: {examples(wrong, nodes)}.",
            f"nodes from 0 to {n - 1}" if n else "a number of nodes above 0",
        )
    return nodes.astype(np.int64, copy=True)


def examples(places: Array, rows: Array) -> str:
    """Some rows with their numbers.

    >>> examples(np.array([1]), np.array([[0, 1], [7, 2]]))
    'row 1: (7, 2)'
    """
    few = [f"row {i}: {_shown(rows[i].tolist())}" for i in places[:SHOWN]]
    return ", ".join(few) + (", ..." if len(places) > SHOWN else "")


def _shown(value: object) -> str:
    return str(tuple(value)) if isinstance(value, list) else str(value)


def as_weight(name: str, weights: ArrayLike | None, m: int) -> Tensor | None:
    """Finite real weights (m,), one per edge."""
    if weights is None:
        return None
    weight = asarray(weights)
    if weight.shape != (m,):
        raise ShapeError(f"{name}: weights of shape {weight.shape} for {m:,} edges.", f"one per edge: ({m},)")
    if is_complex(weight.dtype):
        raise DTypeError(f"{name}: the weights are {weight.dtype}.", "real weights")
    if not is_floating(weight.dtype):
        weight = weight.astype(float32)
    if not isinstance(weight, Tracer):
        values = np.asarray(weight)
        if len(wrong := np.flatnonzero(~np.isfinite(values))):
            raise InputError(
                f"{name}: {len(wrong):,} of {m:,} weights are not finite: {examples(wrong, values)}.",
                "finite weights; leave an edge out that is not there",
            )
    return weight


def as_rows(name: str, what: str, values: ArrayLike | None, count: int, of: str) -> Tensor | None:
    """Features (count, ...)."""
    if values is None:
        return None
    rows = asarray(values)
    if not rows.ndim or rows.shape[0] != count:
        raise ShapeError(
            f"{name}: {what} has shape {rows.shape}, and there are {count:,} {of}.",
            f"one row per {of[:-1]}: ({count}, ...)",
        )
    return rows


def as_labels(name: str, y: ArrayLike | None, n: int) -> tuple[Tensor | None, str | None]:
    """Labels, and what they belong to: "nodes" (n, ...), or the "graph": () or (1, ...)."""
    if y is None:
        return None, None
    labels = asarray(y)
    if not labels.ndim:
        return labels, "graph"
    if labels.shape[0] == n:
        return labels, "nodes"
    if labels.shape[0] == 1:
        return labels, "graph"
    raise ShapeError(
        f"{name}: labels y of shape {labels.shape}, and there are {n:,} nodes.",
        f"({n}, ...) for nodes; () or (1, ...) for the graph",
    )


def as_masks(name: str, masks: Mapping[str, ArrayLike] | None, n: int) -> dict[str, Tensor]:
    """Masks of nodes by name: truth values (n,)."""
    if masks is None:
        return {}
    if not isinstance(masks, Mapping):
        raise DTypeError(f"{name}: masks={shown(masks)}.", 'by name: {"train": mask}')
    found = {}
    for key, mask in masks.items():
        tensor = asarray(mask)
        if tensor.dtype != np.bool_ or tensor.shape != (n,):
            raise ShapeError(
                f"{name}: the mask {key!r} is {tensor.dtype}{list(tensor.shape)}.", f"{n} truth values, one per node"
            )
        found[str(key)] = tensor
    return found


def is_symmetric(rows: Array, cols: Array, weight: Array | None, n: int) -> bool:
    """Whether \\(A^T = A\\), where entries that are given several times are summed."""
    return not len(asymmetric(rows, cols, weight, n))


def asymmetric(rows: Array, cols: Array, weight: Array | None, n: int) -> Array:
    """The pairs (k, 2) with \\(A_{ij} \\ne A_{ji}\\), in rising order."""
    there, forth = _summed(rows, cols, weight, n)
    back, reverse = _summed(cols, rows, weight, n)
    if len(there) == len(back) and np.array_equal(there, back):
        wrong = there[~_close(forth, reverse)]
    else:
        both, a, b = np.intersect1d(there, back, assume_unique=True, return_indices=True)
        wrong = np.union1d(np.setxor1d(there, back, assume_unique=True), both[~_close(forth[a], reverse[b])])
    return np.stack([wrong // n, wrong % n], axis=1) if n else np.zeros((0, 2), np.int64)


def _close(a: Array, b: Array) -> Array:
    # sums of weights that were given several times may differ by their order
    return np.abs(a - b) <= 8 * np.finfo(a.dtype).eps * np.maximum(np.abs(a), np.abs(b))


def _summed(rows: Array, cols: Array, weight: Array | None, n: int) -> tuple[Array, Array]:
    keys = rows.astype(np.int64) * n + cols
    if weight is None:
        places, counts = np.unique(keys, return_counts=True)
        return places, counts.astype(np.float64)
    places, of = np.unique(keys, return_inverse=True)
    wide = weight if weight.dtype == np.float64 else weight.astype(np.float32)
    return places, np.bincount(of, wide, len(places)).astype(wide.dtype)


def need_symmetric(name: str, rows: Array, cols: Array, weight: Array | None, n: int) -> None:
    """Refuse an A that is not symmetric, with the first pairs that show it."""
    if len(wrong := asymmetric(rows, cols, weight, n)):
        few = ", ".join(f"({i}, {j})" for i, j in wrong[:SHOWN].tolist())
        raise InputError(
            f"{name}: the graph is directed: {len(wrong):,} entries of A differ from those of its transpose: "
            f"{few}{', ...' if len(wrong) > SHOWN else ''}.",
            "graph.to_undirected()",
        )


def as_permutation(name: str, perm: ArrayLike | Sequence[int], n: int) -> Array:
    """The numbers 0 to n - 1, each once."""
    order = np.asarray(perm)
    order = order if order.size else order.astype(np.int64)
    if order.shape != (n,) or order.dtype.kind not in "iu" or not np.array_equal(np.sort(order), np.arange(n)):
        raise InputError(
            f"{name}: {shown(perm)} is no permutation of {n} nodes.", f"each number from 0 to {n - 1} once"
        )
    return order.astype(np.int64)
