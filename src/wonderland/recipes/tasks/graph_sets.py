"""Classes or numbers of whole graphs, such as molecules. Book, section 12.2.3; notes, section 7.6."""

from __future__ import annotations

import numpy as np

from ... import nn
from ...core.errors import InputError
from ...data import DatasetRecord
from ..graph_inputs import known_targets, read_graphs, scaled
from ..inputs import Options
from ..predictions import Predictions
from ..targets import units_of
from .graph_outcomes import before_last
from .graph_parts import GraphPart, OfManyGraphs, part_of
from .nodes import OfGraphs
from .supervised import parts
from .task import Arrays, Known, Prepared


class GraphSets(OfGraphs):
    """Many graphs, each with a target; the ones of a batch are blocks of one graph, filled up to few sizes."""

    name = "graphs"
    head = "graphs"

    def prepare(
        self, data: Options, validation: float, seed: int, *, run: Known = None, sequences: bool = False
    ) -> Prepared:
        found = read_graphs(data, self.name, run)
        y, rows = known_targets(found)
        record = DatasetRecord(np.zeros((len(rows), 1)), y[rows], found.name)
        cut = [None if part is None else rows[part] for part in parts(record, y[rows], found.classes, validation, seed)]
        first, held, last = cut
        assert first is not None
        assert last is not None
        if run is None and found.classes and len(seen := np.unique(y[first])) < 2:
            raise InputError(
                f"{found.name}: all graphs to train on are of one class, {found.classes[int(seen[0])]}.",
                "two classes or more",
            )
        whose = np.repeat(np.arange(len(found.graphs)), [graph.n for graph in found.graphs])
        found = scaled(found, run, data, np.flatnonzero(np.isin(whose, first)))
        make = OfManyGraphs(found.graphs)
        made = [None if part is None else GraphPart(part, y[part], make) for part in (first, held, last)]
        assert made[0] is not None
        assert made[2] is not None
        outputs = len(found.classes) or y.shape[1]
        about: dict[str, object] = {"class_names": list(found.classes), "inputs": found.inputs}
        if not found.classes:
            about["units"] = units_of(y[first])
        return Prepared(found.name, made[0], made[1], made[2], (found.width,), outputs, about)

    def everything(self, data: Options, run: Options, sequences: bool) -> tuple[Arrays, int, list[str]]:
        found = read_graphs(data, self.name, run)
        y, rows = known_targets(found)
        graphs = scaled(found, run, data).graphs
        return GraphPart(rows, y[rows], OfManyGraphs(graphs)), len(graphs) - len(rows), []

    def outcome(self, model: nn.Module, data: Prepared) -> dict[str, object]:
        names, test = data.about["class_names"], part_of(data.test)
        assert isinstance(test.make, OfManyGraphs)
        found = self.answers(model, test, data.about)
        told: dict[str, object] = {"graphs": [test.make.graphs[i] for i in test[0]], "names": names}
        if names:
            told |= {"true": test[1], "predicted": found.argmax(-1), "confidence": found.max(-1)}
        asked, _ = test.make(test)
        hidden = before_last(model, asked)
        if hidden is not None and len(hidden) >= len(test[0]):
            told["embedding"] = hidden[: len(test[0])]  # without the padding
        shown = {"predictions": found, "targets": test[1], "class_names": tuple(names)}
        return {**shown, "graphs": told}

    def predict(self, model: nn.Module, data: Options, shape: tuple[int, ...], about: Options) -> Predictions:
        """What the model says about every graph of a folder."""
        found = scaled(read_graphs(data, self.name, about, targets=False), about, data)
        n = len(found.graphs)
        part = GraphPart(np.arange(n), np.zeros(n, np.int64), OfManyGraphs(found.graphs))
        return Predictions.of(self.answers(model, part, about), about["class_names"])
