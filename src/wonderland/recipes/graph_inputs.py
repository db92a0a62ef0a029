"""Graphs for tasks: read from where they are, with features on a common scale, targets, and the parts of a split.

A run keeps what its graphs were (`inputs`), so that others are read to the same numbers or refused.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from ..core.arguments import shown
from ..core.context import user_level
from ..core.errors import InputError
from ..data.formats.schema import TableSchema
from ..graphs import Graph
from ..graphs.builtin import citation_network, karate_club
from ..graphs.datasets import GraphList
from ..graphs.files import load
from ..graphs.tu_format import node_label_kinds, read_tu
from .graph_tables import OF_TABLES, as_targets, read_tables
from .inputs import Options, check_finite, made_with, refuse_options
from .made_graphs import motifs

SCALES = ("auto", "row", "standard", "none")
MADE = ("degree", "identity", "ones")
OF_FEATURES = ("scale", "features")
TABLES = (".csv", ".tsv", ".csv.gz", ".tsv.gz", ".edges")
MOST_DEGREES = 64
SINGLE: Mapping[str, Callable[..., Graph]] = {"citations": citation_network, "karate": karate_club}
SETS: Mapping[str, Callable[..., GraphList]] = {"motifs": motifs}


@dataclass(frozen=True)
class GraphData:
    """Graphs with features, and what is known of them."""

    name: str
    graphs: list[Graph]  # one of them if its nodes or links are asked for
    y: np.ndarray | None  # of nodes or graphs: classes, -1 if unknown, or numbers (n, k), NaN if unknown
    classes: tuple[str, ...] = ()
    masks: dict[str, np.ndarray] = field(default_factory=dict)
    ids: list[str] | None = None  # names of nodes
    inputs: dict[str, object] = field(default_factory=dict)  # what a run keeps

    @property
    def graph(self) -> Graph:
        return self.graphs[0]

    @property
    def width(self) -> int:
        """The number of features of a node."""
        x = self.graph.x
        assert x is not None
        return x.shape[1]

    @property
    def neighbors(self) -> list[int] | None:
        """How many neighbours of a node are drawn at most, step by step; None for all."""
        found = self.inputs.get("neighbors")
        if found is not None and not (isinstance(found, list) and found and all(type(k) is int for k in found)):
            raise InputError(f"data.neighbors = {shown(found)}.", "a number for each layer, such as [10, 5]")
        return found

    def names(self) -> list[str]:
        """What the nodes are called."""
        return self.ids if self.ids is not None else [str(i) for i in range(self.graph.n)]


def read_graphs(data: Options, kind: str, run: Options | None = None, targets: bool = True) -> GraphData:
    """The graphs of the settings `{"name": ..., option: value, ...}` for a kind of task: nodes, links or graphs.

    `run` is what a run keeps `about` its data. The features are not scaled yet, see `scaled`.
    """
    kept = None if run is None else run["inputs"]
    known = None if run is None or "class_names" not in run else run["class_names"]
    found = _read(data, kind, kept, known, targets)
    if not found.graphs or not all(graph.n for graph in found.graphs):
        raise InputError(f"{found.name}: a graph without nodes.", "graphs that are not empty")
    settings = {name: data[name] for name in ("inductive", "neighbors") if name in data}
    found = _featured(found, data, kind, kept, bool(settings.get("inductive")))
    return replace(found, inputs={**found.inputs, **settings})


def scaled(found: GraphData, run: Options | None, data: Options, rows: np.ndarray | None = None) -> GraphData:
    """The graphs with features on the scale of a run, or on one that is found: of `rows` of all nodes, or of all."""
    x = np.concatenate([np.asarray(graph.x) for graph in found.graphs])
    if run is not None:
        inputs = {key: run["inputs"].get(key) for key in ("scale", "mean", "deviation")}
    else:
        if any(graph.edge_attr is not None for graph in found.graphs):
            warnings.warn(
                f"{found.name}: the features of edges are not used; layers that do are nn.GINEConv and nn.GATv2Conv.",
                stacklevel=user_level(),
            )
        seen = x if rows is None else x[rows]
        how = str(data.get("scale", "auto"))
        if how not in SCALES:
            raise InputError(f"data.scale = {shown(data['scale'])}.", f"one of {', '.join(SCALES)}")
        if how == "auto":  # words that a document has, say; what is 0 or 1 stays so
            sparse = bool((seen >= 0).all()) and float(np.mean(seen == 0)) > 0.5
            how = "none" if found.inputs["made"] else "row" if sparse else "standard"
        inputs = {"scale": how, "mean": None, "deviation": None}
        if how == "standard":
            mean, deviation = seen.mean(axis=0, dtype=np.float64), seen.std(axis=0, dtype=np.float64)
            deviation[deviation <= 1e-12 * np.maximum(1.0, np.abs(mean))] = 1.0
            inputs |= {"mean": mean.tolist(), "deviation": deviation.tolist()}
    if inputs["scale"] == "row":
        total = np.abs(x).sum(axis=1, keepdims=True)
        x = x / np.where(total == 0, 1, total)
    elif inputs["scale"] == "standard":
        x = ((x - np.array(inputs["mean"])) / np.array(inputs["deviation"])).astype(np.float32)
    ends = np.cumsum([graph.n for graph in found.graphs])
    graphs = [
        graph.with_(x=x[end - graph.n : end], edge_attr=None, y=None, masks=None, props=None)
        for graph, end in zip(found.graphs, ends.tolist(), strict=True)
    ]
    return replace(found, graphs=graphs, inputs={**found.inputs, **inputs})


def options_like(settings: Options, data: Options, targets: bool) -> Options:
    """The settings of other graphs for a trained model: what is said, and what the run's say about all of them."""
    kept = ("id", "split", "weight", "directed", "delimiter", "inductive", *(("target",) if targets else ()))
    same = data.get("name") == settings["name"] and targets
    return {**{name: value for name, value in settings.items() if same or name in kept}, **data}


def checked_masks(found: GraphData) -> dict[str, np.ndarray]:
    """The masks of nodes; those that share some are refused."""
    names = list(found.masks)
    for i, first in enumerate(names):
        for second in names[i + 1 :]:
            if len(both := np.flatnonzero(found.masks[first] & found.masks[second])):
                some = ", ".join(map(str, both[:5]))
                raise InputError(
                    f"{found.name}: {len(both)} nodes are in both masks, {first!r} and {second!r}, as {some}.",
                    "masks that do not overlap",
                )
    return found.masks


def _featured(found: GraphData, data: Options, kind: str, kept: Options | None, inductive: bool) -> GraphData:
    """The graphs with features (n, c) in float32: their own, or what is made of their structure."""
    own = [graph.x is not None for graph in found.graphs]
    if any(own) and not all(own):
        raise InputError(f"{found.name}: graph {own.index(False)} has no features, others do.", "features for all")
    wanted = data.get("features")
    if kept is not None:
        made = kept["made"]
        if made is None and not own[0]:
            raise InputError(
                f"{found.name}: the nodes have no features, those of the run had.",
                "a graph with features; for a table of edges --set nodes=nodes.csv",
            )
    elif wanted is not None:
        if wanted not in MADE:
            raise InputError(f"data.features = {shown(wanted)}.", f"one of {', '.join(MADE)}")
        made = wanted
    else:
        # a node by its number tells most, but a graph with other nodes has none of these numbers
        made = None if own[0] else "degree" if kind == "graphs" or inductive else "identity"
    if made == "identity" and (kind == "graphs" or inductive):
        raise InputError("data.features = 'identity': other graphs have other nodes.", "--set data.features=degree")
    inputs = {**found.inputs, "made": made}
    degrees = [np.bincount(graph.ends()[0], minlength=graph.n) for graph in found.graphs]
    if made == "degree":
        most = min(int(max(d.max() for d in degrees)), MOST_DEGREES) if kept is None else kept["degrees"]
        rows = [np.eye(most + 1, dtype=np.float32)[np.minimum(d, most)] for d in degrees]
        inputs["degrees"] = most
    elif made == "identity":
        n = found.graph.n
        if kept is not None and n != kept["width"]:
            raise InputError(
                f"{found.name}: {n} nodes, the run had {kept['width']}, and their numbers were its features.",
                "`wonderland train` with --set data.features=degree, or with features of nodes",
            )
        rows = [np.eye(n, dtype=np.float32)]
    elif made == "ones":
        rows = [np.ones((graph.n, 1), np.float32) for graph in found.graphs]
    else:
        rows = [np.asarray(graph.x, np.float32).reshape(graph.n, -1) for graph in found.graphs]
        for x in rows:
            check_finite(found.name, "features of nodes", x)
    width = rows[0].shape[1]
    if not width:
        raise InputError(f"{found.name}: the nodes have no features.", "--set data.features=degree")
    if kept is not None and width != kept["width"]:
        raise InputError(
            f"{found.name}: the nodes have {width} features, those of the run had {kept['width']}.",
            "graphs like those that it was trained on",
        )
    graphs = [graph.with_(x=x) for graph, x in zip(found.graphs, rows, strict=True)]
    return replace(found, graphs=graphs, inputs={**inputs, "width": width})


def known_targets(found: GraphData) -> tuple[np.ndarray, np.ndarray]:
    """The targets, and the numbers of those that are known."""
    if found.y is None:
        raise InputError(
            f"{found.name}: there is nothing to predict.",
            "labels in the file (--set data.target=COLUMN of a table), or --set model.task=links",
        )
    rows = np.flatnonzero(found.y >= 0) if found.classes else np.flatnonzero(np.isfinite(found.y).all(axis=1))
    if len(rows) < 5:
        raise InputError(f"{found.name}: {len(rows)} targets are too few to train and to test.", "five or more")
    return found.y, rows


def is_graph_set(name: str) -> bool:
    """Whether data are many graphs and not one."""
    return name in SETS or os.path.isdir(name)


def _read(data: Options, kind: str, kept: Options | None, known: Sequence[str] | None, targets: bool) -> GraphData:
    """The graphs as they are in a file, with targets and masks."""
    name = str(data["name"])
    lower = name.lower()
    if is_graph_set(name) != (kind == "graphs"):
        raise InputError(
            f"{name}: the task {kind!r} is for {'many graphs' if kind == 'graphs' else 'one graph'}.",
            "a folder with DS_A.txt, DS_graph_indicator.txt and DS_graph_labels.txt, or --set model.task=nodes"
            if kind == "graphs"
            else "--set model.task=graphs",
        )
    own = ("inductive", "neighbors") if kind == "nodes" else ("top",) if kind == "links" else ()
    if lower.endswith(TABLES):
        refuse_options(name, data, (*OF_TABLES, *OF_FEATURES, *own))
        return _of_tables(name, data, kept, known, targets)
    if name in SETS or name in SINGLE:
        options = {key: value for key, value in data.items() if key not in ("name", *OF_FEATURES, *own)}
        if name in SETS:
            return _of_set(name, made_with(name, SETS[name], options), kept, known, targets)
        return _of_one(name, made_with(name, SINGLE[name], options), known)
    refuse_options(name, data, (*OF_FEATURES, *own))
    if os.path.isdir(name):
        return _of_folder(name, kept, known, targets)
    if lower.endswith(".npz"):
        try:
            return _of_one(name, load(name), known)
        except InputError as error:
            if "no edges" not in str(error):
                raise
            remedy = "edge_index (2, m) in the file; for a table or images --model mlp or cnn"
            raise InputError(f"{name}: there are no edges, so it is no graph.", remedy) from None
    if not os.path.exists(name):
        known_names = ", ".join((*SINGLE, *SETS))
        remedy = f"a path, or one of {known_names}; for other data --model mlp or cnn"
        raise InputError(f"{name}: there is no such graph.", remedy)
    raise InputError(
        f"{name}: this is no graph.",
        "an .npz file, a table of edges (.csv) with --set data.nodes=..., or a folder of a set; for others --model mlp",
    )


def _of_tables(name: str, data: Options, kept: Options | None, known: Sequence[str] | None, targets: bool) -> GraphData:
    schema = None if kept is None or kept.get("schema") is None else TableSchema.of_dict(kept["schema"])
    tables = read_tables(data, schema, targets)
    y: np.ndarray | None = None
    classes: tuple[str, ...] = ()
    if tables.targets is not None:
        y, classes = as_targets(str(data.get("nodes", name)), tables.targets, known)
        y = y if classes else y[:, None]
        _check_classes(name, classes, known)
    masks = {key: np.asarray(mask) for key, mask in tables.graph.masks.items()}
    inputs: dict[str, object] = {"schema": None if tables.schema is None else tables.schema.to_dict()}
    return GraphData(name, [tables.graph], y, classes, masks, tables.ids, inputs)


def _of_one(name: str, graph: Graph, known: Sequence[str] | None) -> GraphData:
    masks = {key: np.asarray(mask) for key, mask in graph.masks.items()}
    if graph.y is None or graph.y_of != "nodes":
        return GraphData(name, [graph], None, (), masks)
    y = np.asarray(graph.y)
    if y.dtype.kind == "f" or known == []:
        return GraphData(name, [graph], y.reshape(graph.n, -1).astype(np.float32), (), masks)
    if y.ndim == 2 and ((y == 0) | (y == 1)).all() and (y.sum(axis=1) == 1).all():
        y = y.argmax(axis=1)
    if y.ndim != 1 or y.dtype.kind not in "iub":
        raise InputError(f"{name}: labels of type {y.dtype} and shape {y.shape}.", "classes (n,) or numbers")
    said = graph.props.get("target_names")
    names = tuple(map(str, said)) if isinstance(said, (list, tuple)) else None
    return GraphData(name, [graph], *_numbered(name, y.astype(np.int64), names, known), masks)


def _of_folder(name: str, kept: Options | None, known: Sequence[str] | None, targets: bool) -> GraphData:
    return _of_set(name, read_tu(name, labels=targets), kept, known, targets, node_label_kinds(name))


def _of_set(
    name: str,
    found: GraphList,
    kept: Options | None,
    known: Sequence[str] | None,
    targets: bool,
    kinds: list[list[int]] | None = None,
) -> GraphData:
    graphs = [graph.with_(y=None) for graph in found.graphs]
    if kept is not None and kinds:
        graphs = _recoded(name, graphs, kinds, kept.get("kinds") or [])
    y, classes = found.y if targets else None, ()  # type: tuple[np.ndarray | None, tuple[str, ...]]
    if y is not None and (y.dtype.kind == "f" or known == []):
        y = y.reshape(len(graphs), -1).astype(np.float32)
    elif y is not None:
        y, classes = _numbered(name, y.astype(np.int64), found.target_names or None, known)
    return GraphData(name, graphs, y, classes, inputs={"kinds": kinds})


def _numbered(
    name: str, y: np.ndarray, names: tuple[str, ...] | None, known: Sequence[str] | None
) -> tuple[np.ndarray, tuple[str, ...]]:
    """Classes by the numbers that a run knows them by, and their names; below 0 they are unknown."""
    if known is not None and not known:
        raise InputError(f"{name}: the targets are classes, the run's are numbers.", "numbers")
    names = names or tuple(known or (str(i) for i in range(int(y.max(initial=-1)) + 1)))
    if y.max(initial=-1) >= len(names):
        raise InputError(f"{name}: the class {y.max()} of {len(names)} classes.", f"classes below {len(names)}")
    y = np.maximum(y, -1)
    if known is None:
        _check_classes(name, names, known)
        return y, names
    if strange := [names[i] for i in np.unique(y[y >= 0]) if names[i] not in known]:
        raise InputError(f"{name}: the class {strange[0]!r} is new to the run.", f"one of {shown(list(known))}")
    place = np.array([list(known).index(own) if own in known else -1 for own in names] + [-1])
    return place[y], tuple(known)


def _check_classes(name: str, classes: Sequence[str], known: Sequence[str] | None) -> None:
    if known is None and len(classes) == 1:
        raise InputError(f"{name}: there is one class only, {classes[0]}.", "two classes or more")


def _recoded(name: str, graphs: list[Graph], kinds: list[list[int]], run: list[list[int]]) -> list[Graph]:
    """Graphs whose one-hot codes stand for the labels of the run."""
    if len(kinds) != len(run):
        raise InputError(f"{name}: {len(kinds)} labels per node, the run had {len(run)}.", "a set of the same kind")
    for own, theirs in zip(kinds, run, strict=True):
        if strange := [label for label in own if label not in theirs]:
            raise InputError(f"{name}: the node label {strange[0]} is new to the run.", f"one of {shown(theirs)}")
    many = sum(map(len, kinds))
    recoded = []
    for graph in graphs:
        x = np.asarray(graph.x)
        parts, start = [x[:, : x.shape[1] - many]], x.shape[1] - many
        for own, theirs in zip(kinds, run, strict=True):
            wide = np.zeros((graph.n, len(theirs)), np.float32)
            wide[:, [theirs.index(label) for label in own]] = x[:, start : start + len(own)]
            parts.append(wide)
            start += len(own)
        recoded.append(graph.with_(x=np.concatenate(parts, axis=1)))
    return recoded
