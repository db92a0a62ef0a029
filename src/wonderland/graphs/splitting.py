"""Nodes and edges to learn from and to be tested on, such that nothing of the test is seen before. Notes, A7-02."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..arrays import asarray
from ..core.arguments import as_int, as_number
from ..core.errors import InputError
from ..core.tensor import Tensor
from ..core.typing import Array
from ..data.generators import Seed
from ..data.randomness import as_generator
from .graph import Graph
from .paths import node_labels
from .structure import edge_subset


def negative_edges(graph: Graph, count: int | None = None, *, seed: Seed = 0, avoid: Array | None = None) -> Tensor:
    """Different pairs (count, 2) of different nodes that are no edges; by default as many as there are edges.

    >>> import wonderland as wl
    >>> wl.graphs.negative_edges(wl.graphs.complete_graph(3).subgraph([0, 1]).to_undirected(), 0).shape
    (0, 2)
    >>> pairs = wl.graphs.negative_edges(wl.graphs.path_graph(4), 3)
    >>> sorted(sorted(pair) for pair in pairs.tolist())
    [[0, 2], [0, 3], [1, 3]]

    Of an undirected graph each pair is there in one direction, i < j. `avoid` (k, 2) are more pairs not to take.
    """
    rng, n = as_generator("negative_edges", seed), graph.n
    rows, cols = graph.ends()
    if avoid is not None and len(avoid):
        rows, cols = np.concatenate([rows, avoid[:, 0]]), np.concatenate([cols, avoid[:, 1]])
    both = graph.is_undirected
    if both:
        rows, cols = np.minimum(rows, cols), np.maximum(rows, cols)
    taken = np.unique((rows * n + cols)[rows != cols])
    free = n * (n - 1) // (2 if both else 1) - len(taken)
    edges = len(graph.ends()[0]) // (2 if both else 1)
    wanted = min(edges, free) if count is None else as_int("negative_edges", "count", count, least=0)
    if wanted > free:
        raise InputError(f"negative_edges: {wanted:,} pairs, and only {free:,} are no edges.", f"at most {free}")
    found = np.zeros(0, np.int64)
    while len(found) < wanted:
        if 4 * wanted > free and n <= 5000:  # most of them are wanted: list them all
            i, j = np.divmod(np.arange(n * n), n)
            every = np.flatnonzero(i < j if both else i != j)
            found = rng.permutation(np.setdiff1d(every, taken, assume_unique=True))[:wanted]
            break
        i, j = rng.integers(0, n, (2, 2 * (wanted - len(found)) + 8))
        i, j = (np.minimum(i, j), np.maximum(i, j)) if both else (i, j)
        fresh = (i * n + j)[i != j]
        fresh = fresh[~np.isin(fresh, taken)]
        merged = np.concatenate([found, fresh])
        found = merged[np.sort(np.unique(merged, return_index=True)[1])][:wanted]  # in the order of the draws
    return asarray(np.stack([found // max(n, 1), found % max(n, 1)], axis=1))


class EdgeExamples(NamedTuple):
    """Pairs (k, 2), and whether they are edges: 1.0 or 0.0, (k,)."""

    pairs: Tensor
    y: Tensor


class EdgeSplit(NamedTuple):
    """A graph to pass messages on, with the training edges alone, and pairs to learn from and to be tested on."""

    graph: Graph
    train: EdgeExamples
    val: EdgeExamples
    test: EdgeExamples


def split_edges(
    graph: Graph, val: float = 0.05, test: float = 0.1, *, negatives: float = 1.0, seed: Seed = 0
) -> EdgeSplit:
    """Edges for link prediction: the edges of val and test are taken out of the graph, in both directions.

    >>> import wonderland as wl
    >>> split = wl.graphs.split_edges(wl.graphs.erdos_renyi(50, 0.2), val=0.1, test=0.2)
    >>> split.graph.num_undirected_edges == int(split.train.y.sum())
    True

    `val` and `test` are shares of the edges. Each part has `negatives` times as many pairs that are no edges of the
    whole graph, and no such pair is in two parts. Self-loops stay in the graph and are no examples. Book, section
    12.2.3 (edge heads).
    """
    shares = [float(as_number("split_edges", "val", val)), float(as_number("split_edges", "test", test))]
    if min(shares) < 0 or sum(shares) >= 1:
        raise InputError(f"split_edges: val={val!r} and test={test!r}.", "shares of 0 or more that leave something")
    rng, n = as_generator("split_edges", seed), graph.n
    rows, cols = graph.ends()
    low, high = (np.minimum(rows, cols), np.maximum(rows, cols)) if graph.is_undirected else (rows, cols)
    keys = low * n + high
    edges = np.unique(keys[rows != cols])
    order = rng.permutation(edges)
    sizes = [round(share * len(edges)) for share in shares]
    held, tested, kept = np.split(order, [sizes[0], sizes[0] + sizes[1]])
    inside = np.isin(keys, kept) | (rows == cols)
    messages = edge_subset(graph, inside)._copy(_undirected=graph._undirected)
    parts, used = [], np.zeros((0, 2), np.int64)
    for part in (kept, held, tested):
        pairs = np.stack([part // max(n, 1), part % max(n, 1)], axis=1)
        wrong = np.asarray(negative_edges(graph, round(negatives * len(part)), seed=rng, avoid=used))
        used = np.concatenate([used, wrong])
        y = np.concatenate([np.ones(len(pairs)), np.zeros(len(wrong))]).astype(np.float32)
        parts.append(EdgeExamples(asarray(np.concatenate([pairs, wrong])), asarray(y)))
    return EdgeSplit(messages, *parts)


def split_nodes(
    graph: Graph,
    train: float | None = None,
    val: float = 500,
    test: float = 1000,
    *,
    per_class: int | None = None,
    seed: Seed = 0,
) -> Graph:
    """The graph with the masks "train", "val" and "test", which share no node.

    >>> import wonderland as wl
    >>> graph = wl.graphs.stochastic_block_model([50, 50], 0.1, 0.01)
    >>> wl.graphs.split_nodes(graph, per_class=5, val=20, test=0.5)
    Graph(100 nodes, 275 undirected edges, y (100,) of nodes, train 10, val 20, test 50)

    Sizes are numbers of nodes, or shares of all if they are below 1. `per_class` takes so many nodes of each class to
    learn from, 20 if nothing is said, as for citation networks.
    """
    n, rng = graph.n, as_generator("split_nodes", seed)
    sizes = {}
    for name, size in (("train", train), ("val", val), ("test", test)):
        if size is not None:
            number = as_number("split_nodes", name, size)
            sizes[name] = round(number * n) if isinstance(number, float) and number < 1 else int(number)
    order = rng.permutation(n)
    if train is None:
        each = 20 if per_class is None else as_int("split_nodes", "per_class", per_class, least=1)
        labels = node_labels("split_nodes", graph, None)[order]
        first = np.concatenate([np.flatnonzero(labels == kind)[:each] for kind in np.unique(labels)])
        chosen = np.zeros(n, bool)
        chosen[first] = True
        order = np.concatenate([order[chosen], order[~chosen]])
        sizes["train"] = int(chosen.sum())
    elif per_class is not None:
        raise InputError("split_nodes: both train and per_class say how many nodes to learn from.", "one of them")
    if min(sizes.values()) < 0 or sum(sizes.values()) > n:
        wanted = ", ".join(f"{name} {size}" for name, size in sizes.items())
        raise InputError(f"split_nodes: {wanted} of {n} nodes.", "smaller parts")
    masks, start = {}, 0
    for name in ("train", "val", "test"):
        masks[name] = np.zeros(n, bool)
        masks[name][order[start : start + sizes[name]]] = True
        start += sizes[name]
    return graph.with_(masks={**graph.masks, **masks})
