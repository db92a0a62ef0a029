"""An image as a graph of its patches, classified by a graph network, beside a transformer without positions.

    python examples/patch_graph.py           # a few seconds
    python examples/patch_graph.py 40        # more epochs, and the same network without links

A patch is a node, and two patches are linked if they share a border (not a corner). The network does not know where a
patch is, only who its neighbours are; a transformer without positions does not even know that. Both end with the mean
over the patches. Digits of 8 x 8 pixels are 4 x 4 patches of 2 x 2 pixels here. All images have the same graph, so
their features stand side by side at its nodes: (nodes, images, channels). Book, practice of chapter 12.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

import numpy as np

import wonderland as wl
from wonderland import nn

SIDE, WIDTH = 2, 32  # pixels of a patch, channels of a node
Part = tuple[np.ndarray, np.ndarray]


class PatchNet(nn.Module):
    """Patches as nodes with an embedding and no positions; layers on their graph; the mean over them; classes."""

    def __init__(self, size: int, classes: int, depth: int = 3, linked: bool = True) -> None:
        count = size // SIDE
        graph = wl.graphs.patch_graph(count, count)
        self.graph = graph if linked else wl.graphs.Graph(graph.n)
        self.embed = nn.Linear(SIDE * SIDE, WIDTH)
        self.layers = [nn.GraphConvSelf(WIDTH, WIDTH, "relu", norm="row") for _ in range(depth)]
        self.norms = [nn.LayerNorm(WIDTH) for _ in range(depth)]
        self.head = nn.Linear(WIDTH, classes)

    def forward(self, images: wl.Tensor) -> wl.Tensor:
        h = self.embed(patches(images))  # (nodes, images, channels)
        for layer, norm in zip(self.layers, self.norms, strict=True):
            h = h + layer(norm(h), self.graph)
        return self.head(h.mean(axis=0))


def patches(images: wl.Tensor) -> wl.Tensor:
    """Images (b, h, w, 1) as patches (nodes, b, pixels), row by row."""
    b, h, w, _ = images.shape
    rows, cols = h // SIDE, w // SIDE
    cut = images.reshape((b, rows, SIDE, cols, SIDE)).transpose((1, 3, 0, 2, 4))
    return cut.reshape((rows * cols, b, SIDE * SIDE))


MODELS: dict[str, Callable[[], nn.Module]] = {
    "patch graph": lambda: PatchNet(8, 10),
    "transformer, no positions": lambda: wl.models.ViT(
        10, (8, 8, 1), patch=SIDE, embed_dim=WIDTH, num_heads=4, depth=2, positions=None, pooling="mean"
    ),
    "patches without links": lambda: PatchNet(8, 10, linked=False),
}


def data() -> tuple[Part, Part]:
    """1,000 small images of digits to train on, the other 797 to test with."""
    digits = wl.data.digits()
    x, y = (np.asarray(digits.features, np.float32) - 0.3) / 0.4, np.asarray(digits.targets, np.int64)
    return (x[:1000], y[:1000]), (x[1000:], y[1000:])


def accuracy(name: str, epochs: int) -> tuple[int, float]:
    """The parameters of a model, and its accuracy on images that it has not seen."""
    train, (x, y) = data()
    wl.random.seed(0)
    model = MODELS[name]()
    wl.train.fit(
        model,
        "cross_entropy",
        train,
        batch_size=50,
        epochs=epochs,
        optimizer=wl.optim.AdamW(model, 1e-2, weight_decay=0.02),
        schedule=wl.optim.schedules.one_cycle(1e-2, epochs * 20),
        progress=False,
    )
    return model.num_parameters(), float((np.asarray(wl.train.predict(model, x)).argmax(-1) == y).mean())


def main(epochs: int = 8, quick: bool = True) -> dict[str, float]:
    graph = wl.graphs.patch_graph(8, 8)
    print(f"8 x 8 patches: {graph.num_undirected_edges} edges, {graph.num_edges} nonzeros of A")
    print(f"{'model':26} {'parameters':>10}  {'accuracy':>8}  {'seconds':>7}")
    rows = {}
    for name in list(MODELS)[: 2 if quick else None]:
        start = time.perf_counter()
        size, rows[name] = accuracy(name, epochs)
        print(f"{name:26} {size:10,d}  {rows[name]:8.3f}  {time.perf_counter() - start:7.1f}", flush=True)
    return rows


if __name__ == "__main__":
    main(*(int(given) for given in sys.argv[1:2]), quick=len(sys.argv) < 2)
