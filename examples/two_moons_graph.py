"""Two moons of which two points have a label: a graph of the points tells the rest. Book, section 12.1.4.

    python examples/two_moons_graph.py             # a few seconds
    python examples/two_moons_graph.py moons.svg   # with a picture of the regions

A perceptron is trained with

    sum of the losses of the labelled points + lambda f'Lf

where f are its outputs at all points, and f'Lf = sum over edges of A_ij (f_i - f_j)^2 is small if near points have near
outputs. This needs no labels. The graph is for training alone: the model takes a point and nothing else, and new points
need not be nodes of anything.
"""

from __future__ import annotations

import sys

import numpy as np

import wonderland as wl
from wonderland import nn
from wonderland.graphs import Batch, Graph

POINTS, NEAREST, EPOCHS = 200, 8, 300


def data() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Points (n, 2), their classes, and the two whose class is known: the middle of each moon."""
    x, y = wl.data.make_moons(POINTS, noise=0.06, seed=0)
    middles = np.array([[0.0, 1.0], [1.0, -0.5]])
    return (
        x,
        y,
        np.array([int(np.argmin(((x - middle) ** 2).sum(1) + 9.0 * (y != k))) for k, middle in enumerate(middles)]),
    )


def network() -> nn.Module:
    wl.random.seed(1)
    return nn.Sequential(wl.models.MLP(2, [32, 32], 1, activation="tanh"), nn.Flatten(0))


def trained(strength: float, epochs: int = EPOCHS, graph: Graph | None = None) -> nn.Module:
    """The perceptron after training with lambda = `strength`; with 0 the two points alone matter."""
    x, y, known = data()
    near = wl.graphs.knn_graph(x, NEAREST) if graph is None else graph
    model, points = network(), wl.tensor(x)

    def roughness(model: nn.Module) -> wl.Tensor:
        return strength * wl.graphs.laplacian_quadratic(near, wl.tanh(model(points)))

    labelled = wl.tensor(x[known]), wl.tensor(y[known].astype(np.float32))
    settings = {"optimizer": wl.optim.Adam, "lr": 0.01, "batch_size": 2, "progress": False}
    wl.train.fit(
        model,
        "binary_cross_entropy_with_logits",
        labelled,
        epochs,
        regularizer=roughness,
        **settings,
    )
    return model


def trained_in_pieces(strength: float, epochs: int = 200, pieces: int = 4) -> nn.Module:
    """The same with a part of the points in each step: f'Lf of the graph that they induce, filled up to one size."""
    x, y, known = data()
    near, model, rng = wl.graphs.knn_graph(x, NEAREST), network(), np.random.default_rng(0)
    labelled = wl.tensor(x[known]), wl.tensor(y[known].astype(np.float32))
    batches = []
    for _ in range(10):
        for some in np.array_split(rng.permutation(POINTS), pieces):
            batches.append((*labelled, Batch.from_graphs([near.subgraph(np.sort(some))]).padded(nodes=64, edges=512)))

    def objective(model: nn.Module, loss: nn.Module, batch) -> tuple[wl.Tensor, wl.Tensor]:  # type: ignore[no-untyped-def]
        x, y, part = batch
        outputs = model(x)
        rough = wl.graphs.laplacian_quadratic(part, wl.tanh(model(part.x)))  # padding has self-loops alone
        # a part has a share 1 / pieces of the nodes, and the square of it of the edges
        return loss(outputs, y) + strength * pieces**2 * rough, outputs

    wl.train.fit(
        model, "binary_cross_entropy_with_logits", batches, epochs // 10, optimizer=wl.optim.Adam, lr=0.01,
        objective=objective, progress=False,
    )  # fmt: skip
    return model


def scores(model: nn.Module) -> tuple[float, float, float]:
    """The accuracy at the points, at 1,000 new ones, and the roughness f'Lf at the points."""
    x, y, _ = data()
    new, classes = wl.data.make_moons(1000, noise=0.06, seed=9)
    near = wl.graphs.knn_graph(x, NEAREST)
    right = [float(((np.asarray(model(wl.tensor(at))) > 0) == of).mean()) for at, of in ((x, y), (new, classes))]
    return right[0], right[1], float(wl.graphs.laplacian_quadratic(near, wl.tanh(model(wl.tensor(x)))))


def main(picture: str | None = None) -> dict[float, tuple[float, float, float]]:
    print(f"{POINTS} points, 2 of them with a label; a graph of {NEAREST} neighbours")
    print(f"{'lambda':>8}  {'accuracy':>8}  {'new points':>10}  {'fLf':>8}")
    rows = {}
    for strength in (0.0, 0.03, 0.3):
        model = trained(strength)
        rows[strength] = scores(model)
        print(f"{strength:8g}  {rows[strength][0]:8.3f}  {rows[strength][1]:10.3f}  {rows[strength][2]:8.3f}")
    if picture is not None:
        x, y, _ = data()
        with open(picture, "w") as file:
            file.write(wl.viz.decision_boundary(lambda at: model(at) > 0, x, y))
    return rows


if __name__ == "__main__":
    main(*sys.argv[1:2])
