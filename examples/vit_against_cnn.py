"""A vision transformer against a convolutional network on few images, and what its positions bring. Book, chapter 11.

    python examples/vit_against_cnn.py          # half a minute or less
    python examples/vit_against_cnn.py 40       # more epochs: a few minutes
    python examples/vit_against_cnn.py 4 --quick    # one transformer alone

Both see the same 600 digits of 8 x 8 pixels for the same number of epochs, and have about as many parameters. A
convolution knows from the start that pixels have neighbours and that a digit may stand anywhere; a transformer has to
learn it, and with few images it does not catch up. Without positions it sees a bag of patches.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

import numpy as np

import wonderland as wl
from wonderland import nn

Part = tuple[np.ndarray, np.ndarray]


def vit(positions: str | None) -> nn.Module:
    return wl.models.ViT(
        10, (8, 8, 1), patch=2, embed_dim=32, num_heads=4, depth=2, positions=positions, pooling="mean"
    )


MODELS: dict[str, Callable[[], nn.Module]] = {
    "convolutional network": lambda: wl.models.CNN(10, 1, [16, 32], convs=2, norm="batch"),
    "transformer, learned": lambda: vit("learned"),
    "transformer, sinusoidal": lambda: vit("sinusoidal"),
    "transformer, relative": lambda: vit("relative"),
    "transformer, no positions": lambda: vit(None),
}


def data() -> tuple[Part, Part]:
    """600 small images of digits to train on, 600 others to validate with."""
    digits = wl.data.digits()
    x, y = (np.asarray(digits.features, np.float32) - 0.3) / 0.4, np.asarray(digits.targets, np.int64)
    return (x[:600], y[:600]), (x[600:1200], y[600:1200])


def scores(name: str, epochs: int) -> tuple[int, float, float]:
    """The parameters of a model, and its accuracy on the data that it was trained on and on other data."""
    train, validation = data()
    wl.random.seed(0)
    model = MODELS[name]()
    steps = epochs * (len(train[0]) // 50)
    wl.train.fit(
        model,
        "cross_entropy",
        train,
        batch_size=50,
        epochs=epochs,
        optimizer=wl.optim.AdamW(model, 5e-3, weight_decay=0.02),
        schedule=wl.optim.schedules.one_cycle(5e-3, steps),
        progress=False,
    )
    found = [np.asarray(wl.train.predict(model, x)).argmax(-1) for x, _ in (train, validation)]
    shares = [float((guess == y).mean()) for guess, (_, y) in zip(found, (train, validation), strict=True)]
    return model.num_parameters(), shares[0], shares[1]


def main(epochs: int = 6, quick: bool = False) -> dict[str, tuple[int, float, float]]:
    rows = {}
    print(f"{'model':26} {'parameters':>10}  {'training':>8}  {'validation':>10}  {'seconds':>7}")
    for name in list(MODELS)[: 2 if quick else None]:
        start = time.perf_counter()
        rows[name] = size, train, validation = scores(name, epochs)
        print(
            f"{name:26} {size:10,d}  {train:8.3f}  {validation:10.3f}  {time.perf_counter() - start:7.1f}", flush=True
        )
    return rows


if __name__ == "__main__":
    numbers = [int(given) for given in sys.argv[1:] if given.isdigit()]
    main(*numbers[:1], quick="--quick" in sys.argv)
