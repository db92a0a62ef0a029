"""Random walks: where one gets to by stepping from neighbour to neighbour. Book, sections 12.1.2 and 12.3.3."""

from __future__ import annotations

import numpy as np

from ..arrays import asarray
from ..core.arguments import as_int
from ..core.errors import InputError
from ..core.tensor import Tensor
from ..core.typing import ArrayLike, KeyLike
from ..random import split, uniform
from ..random.streams import take_key
from .checking import examples
from .graph import Graph
from .structure import lines_of


def random_walk(graph: Graph, steps: int, start: ArrayLike | None = None, *, key: KeyLike = None) -> Tensor:
    r"""Walks from some nodes (all by default), (walks, steps + 1): a step from i leads to j with \((D^{-1}A)_{ij}\).

    >>> import wonderland as wl
    >>> wl.graphs.random_walk(wl.graphs.path_graph(2), 3, [0, 1], key=wl.random.key(0)).tolist()
    [[0, 1, 0, 1], [1, 0, 1, 0]]

    Weights, which are 0 or more, are in proportion to probabilities. A walk ends, and stays, where it sees nobody.
    The same key gives the same walks. Book, section 12.1.2.
    """
    count = as_int("random_walk", "steps", steps, least=0)
    nodes = np.arange(graph.n) if start is None else graph.select_nodes(np.atleast_1d(np.asarray(start)))
    starts, others = lines_of(graph)
    heights = None  # of the weights, summed along the order of the rows
    if graph.weight is not None:
        weight = np.asarray(graph.weight).astype(np.float64)
        if len(wrong := np.flatnonzero(weight < 0)):
            raise InputError(
                f"random_walk: {len(wrong)} weights are negative: {examples(wrong, weight)}.", "weights of 0 or more"
            )
        heights = np.concatenate([[0.0], np.cumsum(weight[np.asarray(graph.pattern.rows.order)])])
    path = np.empty((count + 1, len(nodes)), np.int64)
    path[0] = nodes
    keys = split(take_key("random_walk", key), count) if count else None
    for t in range(count):
        assert keys is not None
        draw = np.asarray(uniform((len(nodes),), key=keys[t], dtype=np.float64))
        low, high = starts[nodes], starts[nodes + 1]
        if heights is None:
            place = low + (draw * (high - low)).astype(np.int64)
            some = high > low
        else:
            floor, top = heights[low], heights[high]
            place = np.searchsorted(heights, floor + draw * (top - floor), side="right") - 1
            some = top > floor
        place = np.clip(place, low, np.maximum(high - 1, low))  # rounding of a sum may lead one too far
        nodes = np.where(some, others[np.minimum(place, len(others) - 1)] if len(others) else nodes, nodes)
        path[t + 1] = nodes
    return asarray(path.T.copy())
