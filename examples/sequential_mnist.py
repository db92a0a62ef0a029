"""Images pixel by pixel: a class after a sequence of 784 steps, by Mamba or by a linear recurrent unit. Book, 13.3.

    python examples/sequential_mnist.py                      # the digits that come along, 64 steps, some epochs
    python examples/sequential_mnist.py FOLDER               # MNIST from its files, 784 steps, less than ten minutes
    python examples/sequential_mnist.py FOLDER lru 5         # another layer, so many epochs

Each step sees one pixel, so what decides about a class lies some hundred steps back. The folder holds the files
`train-images-idx3-ubyte.gz` and so on; of one part alone (`t10k-...`) four fifths are to train and the rest to test.
"""

from __future__ import annotations

import math
import sys
import time

import numpy as np

import wonderland as wl

nn = wl.nn


def lru(e: int, steps: int) -> nn.Module:
    """A linear recurrent unit whose modes begin slow: most remember for about as long as the sequence is."""
    layer = nn.LRU(e, e, e, r_min=1 - 10 / steps, r_max=1 - 0.5 / steps, max_phase=math.pi / 10)
    return nn.SSMBlock(layer, e, norm="layer")


def mamba(e: int, steps: int) -> nn.Module:
    return nn.SSMBlock(nn.MambaBlock(e), e, None, "rms")


LAYERS = {"lru": lru, "mamba": mamba}
SIZES = {"lru": (64, 50, 7), "mamba": (32, 20, 9)}  # features, images of a batch, epochs


def model_of(kind: str, steps: int, e: int, depth: int) -> nn.Module:
    stack = nn.SequenceStack([LAYERS[kind](e, steps) for _ in range(depth)], nn.LayerNorm(e))
    return wl.models.SeriesClassifier(stack, e, 10, embed=nn.Linear(1, e), pooling="mean")


def pixels(record: wl.data.DatasetRecord) -> tuple[np.ndarray, np.ndarray]:
    """Sequences (n, height * width, 1) of pixels from -1 to 1, and classes."""
    x = np.asarray(record.features, np.float32).reshape(len(record), -1, 1)
    return 2 * x / x.max() - 1, np.asarray(record.targets)


def main(
    folder: str | None = None, kind: str = "mamba", epochs: int | None = None, e: int | None = None, depth: int = 2
) -> float:
    """Train, and print the share of test images that are recognised."""
    wl.random.seed(0)
    features, batch, passes = SIZES[kind]
    e, epochs = e or features, epochs or passes
    record = wl.data.digits() if folder is None else wl.data.mnist(folder)
    (x, y), test = pixels(record.train), pixels(record.test)
    model = model_of(kind, x.shape[1], e, depth)
    steps = epochs * (len(x) // batch)
    lr = 4e-3
    loader = wl.data.DataLoader(wl.data.TensorDataset(x, y), batch_size=batch, shuffle=True, drop_last=True)
    start = time.perf_counter()
    wl.train.fit(
        model,
        nn.CrossEntropyLoss(),
        loader,
        epochs=epochs,
        optimizer=wl.optim.AdamW(model, lr, weight_decay=0.01),
        schedule=wl.optim.schedules.one_cycle(lr, steps),
        clip_norm=1.0,
        progress=None if folder else False,
    )
    seconds = time.perf_counter() - start
    found = wl.train.evaluate(model, nn.CrossEntropyLoss(), test, metrics=[wl.metrics.Accuracy()], batch_size=100)
    right = float(found["accuracy"])
    print(f"{kind}: {x.shape[1]} steps, {model.num_parameters():,} parameters, {epochs} epochs of {len(x):,} images")
    print(f"    {seconds:.0f} s; {100 * right:.2f} % of {len(test[0]):,} other images are recognised")
    return right


if __name__ == "__main__":
    if len(sys.argv) < 2:
        main(kind="lru", epochs=6, e=32, depth=1)
    else:
        folder, kind, epochs = (sys.argv[1:] + ["mamba", "0"][len(sys.argv) - 2 :])[:3]
        main(folder, kind, int(epochs))
