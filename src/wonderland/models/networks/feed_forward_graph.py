"""A feed-forward network given as a graph of neurons. Book, section 5.2; any directed graph without cycles will do."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import TypeAlias

import numpy as np

from ... import arrays
from ...arrays.conversion import as_real
from ...core.errors import GraphError, InputError, ShapeError
from ...core.tensor import Tensor
from ...core.typing import ArrayLike, DTypeLike, KeyLike
from ...nn.layers.fully_connected import ActivationLike, MaskedLinear, as_activation
from ...nn.module.module import Module
from ...random.keys import split
from ...random.streams import take_key
from ...viz.layout import levels_and_stuck

Node = Hashable

Edges: TypeAlias = Mapping[Node, Iterable[Node]] | Iterable[Sequence[Node]]


class CycleError(GraphError, ValueError):
    """A graph of neurons that depend on themselves."""


def layering(edges: Edges) -> dict[Node, int]:
    """The layer of each node: the length of the longest path to it from an input, a node without incoming edges.

    >>> import wonderland as wl
    >>> wl.models.layering([("x", "a"), ("a", "b"), ("b", "y"), ("x", "y")])
    {'x': 0, 'a': 1, 'b': 2, 'y': 3}

    `edges` are pairs (from, to), or a dict from each node to those that it depends on. Nodes that depend on themselves
    raise a `CycleError`.
    """
    incoming = _incoming(edges)
    pairs = [(source, node) for node, sources in incoming.items() for source in sources]
    layer, stuck = levels_and_stuck(incoming, pairs)
    if stuck:
        raise CycleError(f"layering: {_cycle(incoming, stuck)} is a cycle.", "edges that all point forwards")
    return layer


class FeedForwardGraph(Module):
    r"""Neurons \(y_j = \phi(\sum_{i \to j} w_{ij} y_i + b_j)\) along the edges of a graph.

    >>> import wonderland as wl
    >>> net = wl.models.FeedForwardGraph([("x1", "h"), ("x2", "h"), ("h", "y"), ("x1", "y")])
    >>> net(wl.ones((5, 2))).shape, net.layers, net.connections
    ((5, 1), [['x1', 'x2'], ['h'], ['y']], 4)

    Inputs are the nodes without incoming edges, outputs those without outgoing ones, both in the order in which the
    edges name them. Edges may skip layers, and layers need not be dense: each is a `MaskedLinear` on everything
    before it. Outputs have no activation unless `output_activation` is given.
    """

    def __init__(
        self,
        edges: Edges,
        activation: ActivationLike = "relu",
        output_activation: ActivationLike = None,
        bias: bool = True,
        dtype: DTypeLike | None = None,
        key: KeyLike = None,
    ) -> None:
        incoming = _incoming(edges)
        place = layering(incoming)
        used = {source for sources in incoming.values() for source in sources}
        self.inputs = [node for node in incoming if not incoming[node]]
        self.outputs = [node for node in incoming if node not in used]
        if not used:
            raise InputError("FeedForwardGraph: there are no edges.", 'pairs such as ("x", "y")')
        self.layers = [[node for node in incoming if place[node] == k] for k in range(max(place.values()) + 1)]
        before: list[Node] = list(self.layers[0])
        blocks = []
        keys = split(take_key("FeedForwardGraph", key), len(self.layers) - 1)
        for nodes, one in zip(self.layers[1:], keys, strict=True):
            mask = np.array([[source in incoming[node] for node in nodes] for source in before], dtype=float)
            blocks.append(MaskedLinear(mask, bias, dtype, one))
            before += nodes
        self.blocks = blocks
        self.activation = as_activation("FeedForwardGraph", activation)
        self.output_activation = as_activation("FeedForwardGraph", output_activation)
        self._chosen = [before.index(node) for node in self.outputs]
        # where the activation of hidden nodes applies in each layer
        self._hidden = [np.array([node in used for node in nodes]) for nodes in self.layers[1:]]

    @property
    def connections(self) -> int:
        """The number of edges."""
        return sum(block.connections for block in self.blocks)

    def forward(self, x: ArrayLike) -> Tensor:
        x = as_real("FeedForwardGraph", x)
        if not x.ndim or x.shape[-1] != len(self.inputs):
            raise ShapeError(
                f"FeedForwardGraph: an input of shape {x.shape} for the {len(self.inputs)} inputs {self.inputs}.",
                f"an input of shape (..., {len(self.inputs)})",
            )
        values = x  # of all nodes so far, (..., nodes)
        for block, hidden in zip(self.blocks, self._hidden, strict=True):
            s = block(values)
            if hidden.all():
                y = self.activation(s)
            elif not hidden.any():
                y = self.output_activation(s)
            else:
                y = arrays.where(arrays.asarray(hidden), self.activation(s), self.output_activation(s))
            values = arrays.concat([values, y], axis=-1)
        return arrays.take(values, arrays.asarray(self._chosen), axis=-1)

    def extra_repr(self) -> str:
        return f"inputs={self.inputs}, outputs={self.outputs}, connections={self.connections}"


def _incoming(edges: Edges) -> dict[Node, list[Node]]:
    """What each node depends on; nodes in the order in which they are named."""
    found: dict[Node, list[Node]] = {}
    if isinstance(edges, Mapping):
        pairs: Iterable[tuple[Node, Node]] = [(s, node) for node, sources in edges.items() for s in sources]
        for node in edges:
            found.setdefault(node, [])
    else:
        pairs = [_pair(edge) for edge in edges]
    for source, node in pairs:
        found.setdefault(source, [])
        if source in found.setdefault(node, []):
            raise InputError(f"layering: the edge from {source!r} to {node!r} is there twice.", "each edge once")
        found[node].append(source)
    return found


def _pair(edge: object) -> tuple[Node, Node]:
    if isinstance(edge, str) or not isinstance(edge, Sequence) or len(edge) != 2:
        raise InputError(f"layering: {edge!r} is not an edge.", 'pairs (from, to) such as ("x", "h")')
    return edge[0], edge[1]


def _cycle(incoming: dict[Node, list[Node]], stuck: list[Node]) -> str:
    """A cycle among nodes that all depend on one of them, in words."""
    path = [stuck[0]]
    while path[-1] not in path[:-1]:
        path.append(next(source for source in incoming[path[-1]] if source in stuck))
    loop = path[path.index(path[-1]) :]
    return " -> ".join(str(node) for node in reversed(loop))
