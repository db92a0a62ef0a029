"""Which nodes of a graph are linked: link prediction with negative sampling. Book, section 12.2.3."""

from __future__ import annotations

import numpy as np

from ... import metrics, nn, train
from ...arrays import sigmoid
from ...core.arguments import as_int
from ...core.errors import InputError
from ...graphs import Graph
from ...graphs.splitting import negative_edges, split_edges
from ...metrics.metric import Metric
from ..graph_inputs import read_graphs, scaled
from ..inputs import Options
from ..predictions import Predictions
from .graph_outcomes import before_last
from .graph_parts import Asked, GraphPart, GraphTask, InOneGraph, part_of
from .task import Arrays, Known, Prepared

EMBEDDING = 64  # numbers of a node whose products are scores
TEST = 0.1  # the share of the edges
CLASSES = ["no link", "link"]
MOST_NODES = 5000  # among whose pairs the likeliest links are looked for


class Links(GraphTask):
    """Edges are the examples. Those to validate and to test with are taken out of the graph, so that no message passes
    along them; as many pairs without an edge are drawn, in training others each time."""

    name = "links"
    head = "links"

    def has_classes(self, about: Options) -> bool:
        return False

    def prepare(
        self, data: Options, validation: float, seed: int, *, run: Known = None, sequences: bool = False
    ) -> Prepared:
        found = scaled(read_graphs(data, self.name, run, targets=False), run, data)
        graph = found.graph.to_undirected()
        edges, pairs = graph.num_undirected_edges, graph.n * (graph.n - 1) // 2
        if edges < 10 or 2 * edges > pairs:
            raise InputError(
                f"{found.name}: {edges} of {pairs} pairs are linked, which are too {'few' if edges < 10 else 'many'}.",
                "ten edges or more, and at least as many pairs without one",
            )
        cut = split_edges(graph, max(validation, 1e-9), TEST, seed=seed)
        seen = InOneGraph(cut.graph)
        held, test = (GraphPart(np.asarray(part.pairs), np.asarray(part.y), seen) for part in (cut.val, cut.test))
        true = np.asarray(cut.train.pairs)[np.asarray(cut.train.y) == 1]
        first = GraphPart(true, np.ones(len(true), np.float32), WithOthers(cut.graph))
        about = {"inputs": found.inputs}
        return Prepared(found.name, first, held if validation else None, test, (found.width,), EMBEDDING, about)

    def everything(self, data: Options, run: Options, sequences: bool) -> tuple[Arrays, int, list[str]]:
        """Edges that are taken out of the graph, for those in it are no question."""
        found = self.prepare(data, 0.0, 0, run=run)
        return found.test, 0, [f"measured are {TEST:.0%} of the edges, taken out of the graph, and as many other pairs"]

    def at_once(self, part: Arrays, size: int) -> int:
        return len(part[0])

    def loss(self, smoothing: float, about: Options) -> nn.Module:
        return nn.BCEWithLogitsLoss()

    def metrics(self, about: Options) -> list[Metric]:
        return [metrics.AUC(), metrics.AveragePrecision()]

    def measure(self, model: nn.Module, part: Arrays, about: Options) -> dict[str, object]:
        if isinstance(part, GraphPart) and isinstance(part.make, WithOthers):  # edges alone: others are to be drawn
            make = part.make
            (asked, y) = make(part, np.random.default_rng(0))
            part = GraphPart(np.asarray(asked.which), y, InOneGraph(make.graph))
        return super().measure(model, part, about)

    def outcome(self, model: nn.Module, data: Prepared) -> dict[str, object]:
        chances = np.asarray(sigmoid(train.predict(model, self.batches(data.test, data.about))))
        test = part_of(data.test)
        assert isinstance(test.make, InOneGraph)
        told: dict[str, object] = {"graph": test.make.graph}
        hidden = before_last(model, Asked(np.zeros((1, 2), np.int64), test.make.graph))
        if hidden is not None:
            told["embedding"] = hidden
        shown = {"predictions": chances, "targets": test[1].astype(np.int64), "class_names": tuple(CLASSES)}
        return {**shown, "graphs": told}

    def predict(self, model: nn.Module, data: Options, shape: tuple[int, ...], about: Options) -> Predictions:
        """The likeliest links that a graph does not have, and how likely they are: `top` of them."""
        found = scaled(read_graphs(data, self.name, about, targets=False), about, data)
        graph, names = found.graph, found.names()
        top = as_int("predict", "data.top", data.get("top", 100), 1)
        if graph.n > MOST_NODES:
            raise InputError(
                f"{found.name}: the pairs of {graph.n:,} nodes are too many to look at.", f"{MOST_NODES:,} or fewer"
            )
        h = np.asarray(train.predict(_Features(model), [(Asked(np.arange(graph.n), graph), np.zeros(graph.n))]))
        scores = h @ h.T
        scores[graph.ends()] = scores[graph.ends()[::-1]] = -np.inf
        rows, cols = np.tril_indices(graph.n, -1)
        flat = scores[rows, cols]
        best = np.argsort(-flat, kind="stable")[: min(top, int(np.isfinite(flat).sum()))]
        links = [f"{names[c]} - {names[r]}" for r, c in zip(rows[best], cols[best], strict=True)]
        return Predictions(links, confidence=1 / (1 + np.exp(-flat[best].astype(np.float64))))


class _Features(nn.Module):
    """What a model knows of nodes before their products are taken."""

    def __init__(self, model: nn.Module) -> None:
        self.model = model

    def forward(self, asked: Asked):  # type: ignore[no-untyped-def]
        return self.model.get_submodule("net")(asked.graph.x, asked.graph)


class WithOthers:
    """Batches of edges with as many pairs that are none of them, drawn anew each time."""

    random = True

    def __init__(self, graph: Graph) -> None:
        self.graph = graph

    def __call__(self, batch: Arrays, rng: np.random.Generator) -> tuple[Asked, np.ndarray]:
        true = np.asarray(batch[0])
        others = np.asarray(negative_edges(self.graph, len(true), seed=rng))
        y = np.repeat(np.array([1.0, 0.0], np.float32), len(true))
        return Asked(np.concatenate([true, others]), self.graph), y
