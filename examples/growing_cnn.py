"""The convolutional network of chapter 7 made larger step by step: what depth and techniques bring. Book, chapter 9.

python examples/growing_cnn.py          # some seconds
python examples/growing_cnn.py 40       # more epochs
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

import wonderland as wl

TECHNIQUES: dict[str, dict[str, Any]] = {
    "plain": {},
    "dropout": {"dropout": 0.2},
    "normalization": {"norm": "batch"},
    "normalization, residual": {"norm": "batch", "residual": True},
}
DEPTHS = (1, 2)  # convolutions in each of two blocks


def data() -> tuple[tuple[Any, Any], tuple[Any, Any]]:
    """400 small images of digits to train on, 400 others to validate with."""
    digits = wl.data.digits()
    x, y = (np.asarray(digits.features, np.float32) - 0.3) / 0.4, np.asarray(digits.targets, np.int64)
    return (x[:400], y[:400]), (x[400:800], y[400:800])


def scores(depth: int, technique: str, epochs: int) -> tuple[int, float, float]:
    """The parameters of a network, and its accuracy on the data that it was trained on and on other data."""
    train, validation = data()
    wl.random.seed(0)
    model = wl.models.CNN(10, 1, [8, 16], convs=depth, **TECHNIQUES[technique])
    wl.train.fit(
        model,
        "cross_entropy",
        train,
        batch_size=50,
        epochs=epochs,
        optimizer=wl.optim.Adam(model, 0.01),
        progress=False,
    )
    found = [np.asarray(wl.train.predict(model, x)).argmax(-1) for x, _ in (train, validation)]
    shares = [float((guess == y).mean()) for guess, (_, y) in zip(found, (train, validation), strict=True)]
    return model.num_parameters(), shares[0], shares[1]


def main(epochs: int = 6) -> list[tuple[int, str, int, float, float]]:
    rows = []
    print(f"{'convolutions':>12}  {'technique':24} {'parameters':>10}  {'training':>8}  {'validation':>10}")
    for settings in wl.train.grid_settings({"depth": DEPTHS, "technique": list(TECHNIQUES)}):
        depth, technique = settings["depth"], settings["technique"]
        size, train, validation = scores(depth, technique, epochs)
        rows.append((depth, technique, size, train, validation))
        print(f"{2 * depth:12d}  {technique:24} {size:10,d}  {train:8.3f}  {validation:10.3f}")
    return rows


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]))
