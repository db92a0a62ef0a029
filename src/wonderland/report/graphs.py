"""Graphs in a report: what kind of graph it is, where a model goes wrong in it, how it sees the nodes, and pictures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ..core.typing import Array
from ..graphs import Batch, Graph, connected_components
from ..viz.axes import span
from ..viz.plot import PALETTE, Bars, Curve
from .page import facts, figures, paragraph, table
from .pictures import SQUARE, Network, Picture, Plot, Section, histogram_of

MOST_CLASSES = 10  # with a colour of their own
MOST_POINTS = 3000
AXES = ("first", "second")
MOST_BARS = 40  # one for each degree
MOST_DRAWN = 150  # nodes of a graph that is drawn as a whole
MOST_NEAR = 24  # nodes of a neighbourhood
MOST_MISTAKES = 6
BIN_SHARE = 0.02  # of the nodes, which a bin of degrees has at least


@dataclass(frozen=True)
class Findings:
    """What there is to show: of the nodes of a graph, or of many graphs."""

    graph: Graph | None = None
    graphs: Sequence[Graph] | None = None
    names: Sequence[str] = ()  # of classes
    true: Array | None = None  # classes, -1 if they are not known
    predicted: Array | None = None
    confidence: Array | None = None
    asked: Array | None = None  # which nodes are a test; all without it
    attention: Array | None = None  # a weight for each edge
    embedding: Array | None = None  # rows of features

    def name(self, k: int) -> str:
        return self.names[k] if 0 <= k < len(self.names) else str(k)


def graph_sections(told: Mapping[str, object]) -> list[Section]:
    """The sections that what was found gives; see `write`."""
    found = Findings(**told)  # type: ignore[arg-type]  # it comes as plain data
    sections = []
    if found.graph is not None:
        sections.append(_structure(found.graph, found))
    if found.graphs is not None:
        sections.append(_sizes(found.graphs))
    if found.embedding is not None:
        sections.append(_embedding(found.embedding, found))
    if found.true is not None and found.predicted is not None:
        if found.graph is not None:
            sections.append(_drawn(found.graph, found.true, found.predicted, found))
        if found.graphs is not None:
            sections.append(_examples(found.graphs, found.true, found.predicted, found))
    return sections


def _structure(graph: Graph, found: Findings) -> Section:
    degrees = degrees_of(graph)
    told: list[tuple[str, object]] = [
        ("nodes", graph.n),
        ("edges", graph.num_undirected_edges if graph.is_undirected else graph.num_edges),
        ("mean degree", float(degrees.mean())),
        ("components", connected_components(graph)[0]),
        ("isolated nodes", int(np.count_nonzero(degrees == 0))),
    ]
    notes = ""
    if found.true is not None and (share := homophily(graph, found.true)) is not None:
        told.append(("homophily", share))
        counts = np.bincount(found.true[found.true >= 0])
        chance = float(((counts / counts.sum()) ** 2).sum())
        notes = paragraph(
            f"Of the edges between labelled nodes the share {share:.3f} joins two of one class (homophily); "
            f"if classes did not matter it would be about {chance:.3f}."
        )
    pictures: list[Picture] = [_degrees(degrees)]
    listing = ""
    if found.true is not None and found.predicted is not None:
        asked = found.true >= 0 if found.asked is None else found.asked & (found.true >= 0)
        rows = by_degree(degrees[asked], (found.true == found.predicted)[asked])
        bars = Bars(np.arange(len(rows) + 1), [share for _, _, share in rows])
        names = ", ".join(name for name, _, _ in rows)
        size = SQUARE
        title = f"Accuracy by degree: {names}"
        pictures.append(Plot(title, [bars], "range of degrees", "accuracy", size, y_range=(0, 1)))
        listing = table(["degree", "nodes", "accuracy"], rows, caption="Test nodes by their number of neighbours")
    return Section("The graph", facts(told) + notes + figures(pictures) + listing, {"graph": pictures})


def degrees_of(graph: Graph) -> Array:
    """How many neighbours each node reads from."""
    return np.bincount(graph.ends()[0], minlength=graph.n)


def homophily(graph: Graph, true: Array) -> float | None:
    """The share of edges between labelled nodes that join two of one class; None if there are no such edges.

    >>> homophily(Graph(4, [(0, 1), (1, 2), (2, 3)], directed=False), np.array([0, 0, 1, -1]))
    0.5
    """
    rows, cols = graph.ends()
    labelled = (true[rows] >= 0) & (true[cols] >= 0) & (rows != cols)
    return float((true[rows] == true[cols])[labelled].mean()) if labelled.any() else None


def _degrees(degrees: Array) -> Plot:
    """The distribution: bars if degrees are alike, dots on logarithmic axes if a few are much larger."""
    if degrees.max() <= 8 * max(degrees.mean(), 1.0):
        if degrees.max() > MOST_BARS:
            return histogram_of("Degrees of the nodes", degrees, size=SQUARE, x_label="degree")
        bars = Bars(np.arange(degrees.max() + 2) - 0.5, np.bincount(degrees))
        return Plot("Degrees of the nodes", [bars], "degree", "nodes", SQUARE)
    counts = np.bincount(degrees)
    there = np.flatnonzero(counts[1:]) + 1
    dots = Curve(there, counts[there], dots=True)
    ends = (0.8, 1.25 * float(there.max())), (0.7, 1.4 * float(counts[there].max()))
    return Plot("Degrees of the nodes", [dots], "degree", "nodes", SQUARE, *ends, "log", "log")


def by_degree(of: Array, right: Array) -> list[tuple[str, int, float]]:
    """Degrees in ranges with enough nodes in each: what they are, how many nodes, and the share that is right.

    >>> by_degree(np.array([1, 1, 2, 5]), np.array([True, False, True, True]))
    [('1', 2, 0.5), ('2', 1, 1.0), ('5', 1, 1.0)]
    """
    key = np.where(of <= 1, of, np.ceil(np.log2(np.maximum(of, 1))) + 1)  # 0, 1, 2, 3 to 4, 5 to 8, ...
    groups: list[Array] = []
    for kind in np.unique(key):
        if groups and groups[-1].sum() < BIN_SHARE * len(of):
            groups[-1] = groups[-1] | (key == kind)
        else:
            groups.append(key == kind)
    if len(groups) > 1 and groups[-1].sum() < BIN_SHARE * len(of):
        groups[-2:] = [groups[-2] | groups[-1]]
    ends = [(int(of[group].min()), int(of[group].max())) for group in groups]
    names = [str(low) if low == high else f"{low} to {high}" for low, high in ends]
    return [(name, int(g.sum()), float(right[g].mean())) for name, g in zip(names, groups, strict=True)]


def _embedding(features: Array, found: Findings) -> Section:
    """What the model makes of nodes or graphs before its last layer, in the two directions that vary most."""
    points, shares = principal(features)
    some = np.linspace(0, len(points) - 1, min(len(points), MOST_POINTS)).astype(np.int64)
    points = points[some]
    curves = [Curve(points[:, 0], points[:, 1], dots=True)]
    note = f"What the model makes of the {'nodes' if found.graphs is None else 'graphs'} before its last layer"
    if found.true is not None and found.names:
        kinds = found.true[some]
        order = np.argsort(-np.bincount(kinds[kinds >= 0], minlength=len(found.names)), kind="stable")[:MOST_CLASSES]
        rest = points[~np.isin(kinds, order)]
        curves = [Curve(rest[:, 0], rest[:, 1], "others", dots=True, colour="#cbd5e1")] if len(rest) else []
        for k in sorted(order.tolist()):
            own = points[kinds == k]
            if len(own):
                curves.append(Curve(own[:, 0], own[:, 1], found.name(k), dots=True, colour=PALETTE[k % len(PALETTE)]))
        note += ", coloured by the true classes"
    first, second = (f"{axis} component, {100 * share:.0f} %" for axis, share in zip(AXES, shares, strict=True))
    ends = span(points[:, 0], 0.04), span(points[:, 1], 0.04)
    picture = Plot("Principal components, with the share of the variance", curves, first, second, (560, 460), *ends)
    return Section("Embedding", paragraph(note + ".") + figures([picture]), {"embedding": [picture]})


def principal(features: Array) -> tuple[Array, Array]:
    """Rows in the plane of their two first principal components, and the shares of the variance of these."""
    centred = np.nan_to_num(features.astype(np.float64) - features.mean(axis=0))
    if centred.shape[1] < 2:
        centred = np.concatenate([centred, np.zeros((len(centred), 2 - centred.shape[1]))], axis=1)
    values, vectors = np.linalg.eigh(centred.T @ centred)
    total = max(float(values.sum()), 1e-300)
    return centred @ vectors[:, [-1, -2]], np.clip(values[[-1, -2]] / total, 0, 1)


def _sizes(graphs: Sequence[Graph]) -> Section:
    nodes, edges = np.array([g.n for g in graphs]), np.array([g.num_edges for g in graphs])
    told = [
        ("graphs", len(graphs)),
        ("mean nodes", float(nodes.mean())),
        ("most nodes", int(nodes.max())),
        ("mean degree", float(edges.sum() / nodes.sum())),
    ]
    every = np.concatenate([degrees_of(graph) for graph in graphs])
    pictures: list[Picture] = [
        histogram_of("Nodes of the graphs", nodes, size=SQUARE, x_label="nodes"),
        _degrees(every),
    ]
    return Section("The graphs", facts(told) + figures(pictures), {"graphs": pictures})


def _drawn(graph: Graph, true: Array, predicted: Array, found: Findings) -> Section:
    """The whole graph if it is small, else the neighbourhoods of some mistakes, side by side."""
    text = "Colours are predicted classes; a red ring is a mistake, and the true class stands below it."
    asked = np.ones(graph.n, bool) if found.asked is None else found.asked
    sure = np.zeros(graph.n) if found.confidence is None else found.confidence
    small, centres = graph.n <= MOST_DRAWN, []
    chosen = [np.arange(graph.n)]
    if not small:
        wrong = np.flatnonzero(asked & (true >= 0) & (true != predicted))
        if not len(wrong):
            return Section("Mistakes in the graph", paragraph("Every prediction is right."))
        centres = wrong[np.argsort(-sure[wrong], kind="stable")][:MOST_MISTAKES].tolist()
        chosen = [neighbourhood(graph, i) for i in centres]
        text = f"The neighbourhoods of the {len(centres)} most confident of {len(wrong):,} mistakes. {text}"
    plain = graph.with_(x=None, y=None, masks=None, props=None)
    parts = [plain.subgraph(nodes) for nodes in chosen]
    nodes = np.concatenate(chosen)
    truth = np.where(true[nodes] >= 0, true[nodes], predicted[nodes])
    words = [
        f"{i}: " * (i in centres) + found.name(int(true[i])) if true[i] >= 0 and true[i] != predicted[i] else ""
        for i in nodes.tolist()
    ]
    weights = None
    if found.attention is not None:
        weights = np.concatenate([edge_values(graph, found.attention, nodes) for nodes in chosen])
        text += " The darker an edge, the more attention a node pays to its neighbour there."
    kinds = np.unique(np.concatenate([truth, predicted[nodes]]))
    title = "The graph" if small else "Neighbourhoods of mistakes"
    joined = parts[0] if len(parts) == 1 else Batch.from_graphs(parts)
    picture = Network(title, joined, truth, predicted[nodes], words, weights, [found.name(int(k)) for k in kinds])
    html = paragraph(text) + figures(
        [picture],
    )
    if centres:
        degrees = degrees_of(graph)
        rows = [
            [i, found.name(int(true[i])), found.name(int(predicted[i])), float(sure[i]), int(degrees[i])]
            for i in centres
        ]
        html += table(["node", "true", "predicted", "confidence", "degree"], rows)
    return Section("The graph drawn" if small else "Mistakes in the graph", html, {"drawing": [picture]})


def neighbourhood(graph: Graph, i: int) -> Array:
    """A node, its neighbours and theirs, as far as there is room, the node first."""
    found = [i]
    for hops in (1, 2):
        near = graph.k_hop(i, hops)
        found += [int(j) for j in near if j not in found][: MOST_NEAR - len(found)]
    return np.array(found)


def edge_values(graph: Graph, values: Array, nodes: Array) -> Array:
    """The values of the edges among some nodes, in the order of `graph.subgraph(nodes)`."""
    rows, cols = graph.ends()
    inside = np.zeros(graph.n, bool)
    inside[nodes] = True
    return values[inside[rows] & inside[cols]]


def _examples(graphs: Sequence[Graph], true: Array, predicted: Array, found: Findings) -> Section:
    """Some graphs that went wrong, and some that went right."""
    sure = np.zeros(len(graphs)) if found.confidence is None else found.confidence
    small = np.array([graph.n <= MOST_DRAWN for graph in graphs])
    parts, every = [], []
    for title, kind, which in (("Wrong", "wrong", true != predicted), ("Right", "right", true == predicted)):
        places = np.flatnonzero(which & small)
        places = places[np.argsort(-sure[places], kind="stable")][:MOST_MISTAKES]
        if not len(places):
            continue
        pictures: list[Picture] = []
        for k in places.tolist():
            said = f"{found.name(int(predicted[k]))} ({sure[k]:.2f})"
            said += "" if true[k] == predicted[k] else f", is {found.name(int(true[k]))}"
            pictures.append(Network(f"Graph {k}: {said}", graphs[k], kinds_of(graphs[k]), size=(320, 260)))
        parts.append(f'<h3 class="{kind}">{title}</h3>' + figures(pictures, "small"))
        every += pictures
    note = paragraph("Graphs of the test part with the predicted class and its probability, the most confident first.")
    return Section("Examples", note + "".join(parts), {"examples": every} if every else {})


def kinds_of(graph: Graph) -> Array | None:
    """The kind of each node, if its features say one: a single 1 among zeros.

    >>> kinds_of(Graph(2, x=np.eye(2))).tolist()
    [0, 1]
    """
    if graph.x is None:
        return None
    x = np.asarray(graph.x)
    one = x.ndim == 2 and x.shape[1] > 1 and bool(((x == 0) | (x == 1)).all() and (x.sum(axis=1) == 1).all())
    return x.argmax(axis=1) if one else None
