"""Classes or numbers of the nodes of a graph, of which few may be known. Book, section 12.2.3; notes, section 7.6."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ... import metrics, nn, train
from ...arrays import softmax
from ...core.errors import InputError
from ...data import DatasetRecord
from ...graphs import Graph
from ...metrics.metric import Metric
from ..graph_inputs import GraphData, checked_masks, known_targets, read_graphs, scaled
from ..inputs import Options
from ..predictions import Predictions
from ..targets import number_loss, units_of
from .graph_outcomes import attention, before_last
from .graph_parts import Asked, GraphPart, GraphTask, InOneGraph, Neighborhoods, part_of
from .supervised import parts
from .task import Arrays, Known, Prepared


@dataclass(frozen=True)
class PreparedNodes(Prepared):
    """Nodes of a graph, with the classes of all of them, -1 if they are not known."""

    every: np.ndarray | None = None


class OfGraphs(GraphTask):
    """What nodes and whole graphs have in common: they have classes, or numbers."""

    def has_classes(self, about: Options) -> bool:
        return bool(about["class_names"])

    def loss(self, smoothing: float, about: Options) -> nn.Module:
        return nn.CrossEntropyLoss(label_smoothing=smoothing) if about["class_names"] else number_loss(about)

    def metrics(self, about: Options) -> list[Metric]:
        return [metrics.Accuracy()] if about["class_names"] else [metrics.MeanAbsoluteError(), metrics.R2()]

    def answers(self, model: nn.Module, part: Arrays, about: Options) -> np.ndarray:
        """Probabilities of the classes, or numbers, of the examples of a part."""
        outputs = train.predict(model, self.batches(part, about))
        return np.asarray(softmax(outputs) if about["class_names"] else outputs)

    def measure(self, model: nn.Module, part: Arrays, about: Options) -> dict[str, object]:
        found = super().measure(model, part, about)
        if names := about["class_names"]:
            probabilities = self.answers(model, part, about)
            found["f1"] = metrics.F1(len(names), "macro")(probabilities, part[1])
            found["ece"] = metrics.CalibrationError()(probabilities, part[1])
        return found


class Nodes(OfGraphs):
    """One graph, and targets of some of its nodes: all nodes are seen, and those of the training part have a loss.

    With `data.inductive` a model is trained on the graph of the nodes of the training part alone, validated on that of
    these and the ones to validate with, and tested on the whole. With `data.neighbors`, such as [10, 5], a batch of
    training has the neighbourhoods of some nodes, with at most so many neighbours of each node in every step away.
    """

    name = "nodes"
    head = "nodes"

    def prepare(
        self, data: Options, validation: float, seed: int, *, run: Known = None, sequences: bool = False
    ) -> Prepared:
        found = read_graphs(data, self.name, run)
        y, rows = known_targets(found)
        first, held, test = node_parts(found, y, rows, validation, seed)
        if run is None and found.classes and len(seen := np.unique(y[first])) < 2:
            raise InputError(
                f"{found.name}: all nodes to train on are of one class, {found.classes[int(seen[0])]}.",
                "two classes or more",
            )
        inductive, neighbors = bool(found.inputs.get("inductive")), found.neighbors
        found = scaled(found, run, data, first if inductive else None)
        known = {"train": first, "validation": first if held is None else np.union1d(first, held)}
        made: list[GraphPart | None] = []
        for part, chosen in (("train", first), ("validation", held), ("test", test)):
            if chosen is None:
                made.append(None)
                continue
            view, places = found.graph, chosen
            if inductive and part != "test":
                view, places = view.subgraph(known[part]), np.searchsorted(known[part], chosen)
            make = Neighborhoods(view, neighbors) if neighbors and part == "train" else InOneGraph(view)
            made.append(GraphPart(places, y[chosen], make))
        assert made[0] is not None
        assert made[2] is not None
        outputs = len(found.classes) or y.shape[1]
        about: dict[str, object] = {"class_names": list(found.classes), "inputs": found.inputs}
        if not found.classes:
            about["units"] = units_of(y[first])
        every = np.where(np.isin(np.arange(len(y)), rows), y, -1) if found.classes else None
        return PreparedNodes(found.name, made[0], made[1], made[2], (found.width,), outputs, about, every)

    def everything(self, data: Options, run: Options, sequences: bool) -> tuple[Arrays, int, list[str]]:
        found = read_graphs(data, self.name, run)
        y, rows = known_targets(found)
        graph = scaled(found, run, data).graph
        return GraphPart(rows, y[rows], InOneGraph(graph)), graph.n - len(rows), []

    def at_once(self, part: Arrays, size: int) -> int:
        sampled = isinstance(part, GraphPart) and isinstance(part.make, Neighborhoods)
        return min(size, len(part[0])) if sampled else len(part[0])

    def unsuited(self, data: Prepared) -> dict[str, str]:
        found = super().unsuited(data)
        if not data.about["inputs"].get("neighbors"):
            found["batch_size"] = "a batch is the whole graph; data.neighbors=[10, 5] draws neighbourhoods"
        return found

    def outcome(self, model: nn.Module, data: Prepared) -> dict[str, object]:
        names, test = data.about["class_names"], part_of(data.test)
        assert isinstance(test.make, InOneGraph)
        graph = test.make.graph  # the whole one
        found = self.answers(model, whole(graph), data.about)
        told: dict[str, object] = {"graph": graph, "names": names}
        if names:
            assert isinstance(data, PreparedNodes)
            told |= {"true": data.every, "predicted": found.argmax(-1), "confidence": found.max(-1)}
            told["asked"] = np.isin(np.arange(graph.n), test[0])
        if (hidden := before_last(model, Asked(np.arange(graph.n), graph))) is not None:
            told["embedding"] = hidden
        if (weights := attention(model, graph)) is not None:
            told["attention"] = weights
        shown = {"predictions": found[test[0]], "targets": test[1], "class_names": tuple(names)}
        return {**shown, "graphs": told}

    def predict(self, model: nn.Module, data: Options, shape: tuple[int, ...], about: Options) -> Predictions:
        """What the model says about every node of a graph."""
        found = scaled(read_graphs(data, self.name, about, targets=False), about, data)
        part = whole(found.graph)
        outputs = self.answers(model, part, about)
        return Predictions.of(outputs, about["class_names"], ids=found.names(), id_name="node")


def whole(graph: Graph) -> GraphPart:
    """All nodes of a graph as a part, without targets."""
    return GraphPart(np.arange(graph.n), np.zeros(graph.n, np.int64), InOneGraph(graph))


def node_parts(
    found: GraphData, y: np.ndarray, rows: np.ndarray, validation: float, seed: int
) -> tuple[np.ndarray, np.ndarray | None, np.ndarray]:
    """The nodes to train on, to validate with and to test with: by the masks that came with the graph, or a split."""
    masks = checked_masks(found)
    known = np.zeros(found.graph.n, bool)
    known[rows] = True
    if "train" not in masks:
        record = DatasetRecord(np.zeros((len(rows), 1)), y[rows], found.name)
        cut = parts(record, y[rows], found.classes, validation, seed)
        return rows[cut[0]], None if cut[1] is None else rows[cut[1]], rows[cut[2]]
    first = np.flatnonzero(masks["train"] & known)
    others = [np.flatnonzero(masks[name] & known) for name in ("val", "test") if name in masks]
    rest = np.flatnonzero(known & ~masks["train"] & ~masks.get("val", np.zeros_like(known)))
    test = others[-1] if "test" in masks else rest
    if not len(first) or not len(test):
        raise InputError(
            f"{found.name}: no node with a target is in the mask {'train' if not len(first) else 'test'!r}.",
            "masks with labelled nodes, or a file without masks, which is split",
        )
    if "val" in masks:
        return first, (others[0] if validation and len(others[0]) else None), test
    few = found.classes and np.bincount(y[first])[np.unique(y[first])].min() * validation < 1
    if not validation or few:
        return first, None, test  # too precious to be held out
    record = DatasetRecord(
        np.zeros((len(first), 1)), y[first], found.name, parts={"train": np.arange(len(first)), "test": np.arange(0)}
    )
    cut = parts(record, y[first], found.classes, validation, seed)
    assert cut[1] is not None
    return first[cut[0]], first[cut[1]], test
