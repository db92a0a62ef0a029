"""What a report shows of a model on graphs: features before the last layer, and attention along edges."""

from __future__ import annotations

import contextlib

import numpy as np

from ... import nn
from ...core.tensor import Tensor
from ...graphs import Graph
from ...train.evaluation import evaluating
from ...transforms.imperative import no_grad
from .graph_parts import Asked


def before_last(model: nn.Module, asked: Asked) -> np.ndarray | None:
    """The features that go into the last layer of a model: rows of nodes, or of graphs. None if there is no such."""
    layers = [part for part in model.modules() if isinstance(part, nn.GraphLayer)]
    inside = {id(part) for layer in layers for part in layer.modules() if part is not layer}
    watched = [
        part
        for part in model.modules()
        if isinstance(part, (nn.GraphLayer, nn.Linear)) and not isinstance(part, nn.Readout) and id(part) not in inside
    ]
    seen: list[Tensor] = []

    def look(module: nn.Module, args: tuple[object, ...]) -> None:
        if isinstance(args[0], Tensor) and args[0].ndim == 2:
            seen.append(args[0])

    with contextlib.ExitStack() as stack:
        for part in watched:
            stack.enter_context(part.register_forward_pre_hook(look))
        stack.enter_context(evaluating(model))
        stack.enter_context(no_grad())
        model(asked)
    return np.asarray(seen[-1]) if len(seen) > 1 else None


def attention(model: nn.Module, graph: Graph) -> np.ndarray | None:
    """What each edge gets of the attention of the node that reads, the mean over heads of the first layer that attends.

    None if no layer does.
    """
    first = next((part for part in model.modules() if isinstance(part, (nn.GATConv, nn.GATv2Conv))), None)
    if first is None:
        return None
    seen: list[tuple[Tensor, Graph]] = []
    with (
        first.register_forward_pre_hook(lambda module, args: seen.append((args[0], args[1]))),
        evaluating(model),
        no_grad(),
    ):
        model(Asked(np.zeros(1, np.int64), graph))
        found = first.attended(*seen[0])
    pairs, weights = np.asarray(found.edges, np.int64), np.asarray(found.weights).mean(axis=-1)
    table = dict(zip((pairs[:, 0] * graph.n + pairs[:, 1]).tolist(), weights.tolist(), strict=True))
    rows, cols = graph.ends()
    return np.array([table.get(code, 0.0) for code in (rows * graph.n + cols).tolist()])
