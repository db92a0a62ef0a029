"""Classes of whole graphs by a graph isomorphism network, measured by cross-validation. Book, section 12.2.3.

    python examples/graph_classification.py                      # a made set: trees with a ring or a house in them
    python examples/graph_classification.py MUTAG                # a folder in the TU format: ten folds
    python examples/graph_classification.py MUTAG --epochs 100 --seeds 3

The graphs of a batch are blocks of one large graph, filled up to a few sizes, so that few programs are compiled.
Layers are sums over neighbours with an MLP behind each; means over the nodes of a graph, all layers side by side,
go to a head. A fold's network is taken as it is after the last epoch: nothing is chosen by the test part.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

import wonderland as wl
from wonderland.graphs import Graph, GraphList

SHAPES = {"ring": [(0, 1), (1, 2), (2, 3), (3, 4), (4, 0)], "house": [(0, 1), (1, 2), (2, 3), (3, 0), (0, 4), (1, 4)]}


def made(count: int = 120) -> GraphList:
    """Random trees of 10 to 20 nodes with a ring or a house of five nodes hung on; features are degrees."""
    rng, graphs = np.random.default_rng(0), []
    for k in range(count):
        n = int(rng.integers(10, 21))
        tree = [(i, int(rng.integers(max(0, i - 6), i))) for i in range(1, n)]
        shape = [(n + i, n + j) for i, j in list(SHAPES.values())[k % 2]]
        graphs.append(Graph(n + 5, [*tree, *shape, (int(rng.integers(n)), n)], y=k % 2, directed=False))
    return GraphList(graphs, target_names=tuple(SHAPES), name="trees with a ring or a house")


def with_features(data: GraphList) -> list[Graph]:
    """The graphs with features: their own, or one-hot codes of degrees."""
    if all(graph.x is not None for graph in data.graphs):
        return data.graphs
    degrees = [np.minimum(np.bincount(graph.ends()[0], minlength=graph.n), 8) for graph in data.graphs]
    return [graph.with_(x=np.eye(9, dtype=np.float32)[d]) for graph, d in zip(data.graphs, degrees, strict=True)]


class Net(wl.nn.Module):
    """A model of batches of graphs: the classes of the real ones, not of padding."""

    def __init__(self, features: int, classes: int, hidden: int, depth: int, dropout: float) -> None:
        self.backbone = wl.models.GIN([features, *[hidden] * depth], norm="batch", jump=True)
        self.head = wl.models.GraphHead(self.backbone.out_features, classes, "mean", [hidden], dropout=dropout)

    def forward(self, batch):  # type: ignore[no-untyped-def]
        return self.head(self.backbone(batch.x, batch), batch)[: batch.real_graphs]


def accuracy(graphs: list[Graph], y: np.ndarray, train: np.ndarray, test: np.ndarray, settings) -> float:  # type: ignore[no-untyped-def]
    """The share of the test graphs that is right after the last epoch."""
    net = Net(graphs[0].x.shape[1], int(y.max()) + 1, settings.hidden, settings.depth, settings.dropout)
    loader = wl.graphs.GraphLoader([graphs[i] for i in train], settings.batch, drop_last=True)
    steps = settings.epochs * len(loader)
    wl.train.fit(
        net,
        "cross_entropy",
        loader,
        settings.epochs,
        optimizer=wl.optim.AdamW(net, settings.lr, weight_decay=0.01),
        schedule=wl.optim.schedules.cosine(settings.lr, steps),
        progress=False,
        check=False,
    )
    guess = wl.train.predict(net, wl.graphs.GraphLoader([graphs[i] for i in test], len(test), shuffle=False))
    return float((np.asarray(guess).argmax(-1) == y[test]).mean())


def main(arguments: list[str] | None = None) -> list[float]:
    parser = argparse.ArgumentParser(description="classes of whole graphs by a GIN")
    parser.add_argument("folder", nargs="?", help="a set of graphs in the TU format, such as MUTAG")
    parser.add_argument("--folds", type=int, default=0)
    parser.add_argument("--epochs", type=int, default=0)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--hidden", type=int, default=32)
    parser.add_argument("--depth", type=int, default=4)
    parser.add_argument("--batch", type=int, default=0)
    parser.add_argument("--lr", type=float, default=0.01)
    parser.add_argument("--dropout", type=float, default=0.5)
    settings = parser.parse_args(arguments)
    data = made() if settings.folder is None else wl.graphs.read_tu(settings.folder)
    settings.folds = settings.folds or (2 if settings.folder is None else 10)
    settings.epochs = settings.epochs or (20 if settings.folder is None else 100)
    settings.batch = settings.batch or (20 if settings.folder is None else 80)
    graphs, y = with_features(data), np.asarray(data.y)
    print(
        f"{data.name}: {len(graphs)} graphs of {np.mean([g.n for g in graphs]):.1f} nodes, {data.num_classes} classes"
    )
    found = []
    for seed in range(settings.seeds):
        start, scores = time.perf_counter(), []
        for train, test in wl.data.StratifiedKFold(settings.folds, shuffle=True, seed=seed).split(y, y):
            wl.random.seed(seed)
            scores.append(accuracy(graphs, y, np.asarray(train), np.asarray(test), settings))
        found.append(float(np.mean(scores)))
        spread = f"{np.mean(scores):.4f} +- {np.std(scores):.4f}"
        print(
            f"seed {seed}: accuracy of {settings.folds} folds {spread}, {time.perf_counter() - start:.0f} s", flush=True
        )
    if settings.seeds > 1:
        print(f"mean of {settings.seeds} seeds {np.mean(found):.4f}")
    return found


if __name__ == "__main__":
    main()
