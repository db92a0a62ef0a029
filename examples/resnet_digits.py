"""A residual network that reads digits, and what it can do without one of its blocks. Book, section 9.4.

    python examples/resnet_digits.py             # 1,797 digits of 8 x 8 pixels that come with the package
    python examples/resnet_digits.py FOLDER      # images in IDX files, such as MNIST's
    python examples/resnet_digits.py FOLDER 12   # more epochs

With 8,000 images of MNIST, 28 x 28 pixels, more than 98.5 % of other images are read correctly after eight epochs,
which two cores do in less than a minute.
"""

from __future__ import annotations

import sys
import time

import numpy as np

import wonderland as wl
from wonderland import nn


def load(source: str) -> tuple[tuple[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]:
    """Images (n, h, w, 1) with their classes (n,), to train on and to test with."""
    record = wl.data.load(source)
    x, y = np.asarray(record.features, np.float32), np.asarray(record.targets, np.int64)
    x = x[..., None] if x.ndim == 3 else x
    if record.parts:
        train, test = record.parts["train"], record.parts["test"]
    else:
        train, test = wl.data.train_test_split(np.arange(len(x)), test_size=0.2, stratify=y, seed=0)
    return (x[train], y[train]), (x[test], y[test])


def build(x: np.ndarray, classes: int) -> nn.Module:
    """A ResNet with 16, 32 and 64 channels, behind a layer that makes the pixels' mean 0 and their variance 1."""
    stem = "half" if x.shape[1] >= 16 else "small"
    body = wl.models.small_resnet(classes, in_channels=x.shape[-1], stem=stem)
    return nn.Sequential(nn.Standardize.of(x, axis=(0, 1, 2, 3)), body)


def fit(model: nn.Module, data: tuple[np.ndarray, np.ndarray], epochs: int, batch_size: int, lr: float = 0.01) -> int:
    """One cycle of the learning rate over images that are shifted, turned and scaled a little; the number of steps."""
    small_turns = wl.data.transforms.RandomAffine(degrees=10, translate=(0.1, 0.1), scale=(0.9, 1.1))
    loader = wl.data.DataLoader(
        wl.data.TensorDataset(*data), batch_size=batch_size, shuffle=True, drop_last=True, batch_transform=small_turns
    )
    steps = epochs * len(loader)
    wl.train.fit(
        model,
        nn.CrossEntropyLoss(),
        loader,
        epochs=epochs,
        optimizer=wl.optim.AdamW(model, lr, weight_decay=0.02),
        schedule=wl.optim.schedules.one_cycle(lr, steps),
        progress=False,
    )
    return steps


def accuracy(model: nn.Module, data: tuple[np.ndarray, np.ndarray]) -> float:
    x, y = data
    return float((np.asarray(wl.train.predict(model, x)).argmax(-1) == y).mean())


def main(source: str = "digits", epochs: int = 8) -> float:
    wl.random.seed(0)
    train, test = load(source)
    model = build(train[0], int(train[1].max()) + 1)
    print(f"{source}: {len(train[0]):,} images of shape {train[0].shape[1:]}, {model.num_parameters():,} parameters")
    start = time.perf_counter()
    steps = fit(model, train, epochs, batch_size=100)
    seconds = time.perf_counter() - start
    whole = accuracy(model, test)
    print(f"{epochs} epochs, {steps} steps in {seconds:.0f} s: accuracy {whole:.4f} on {len(test[0]):,} other images")
    for path, share in wl.models.ablate(model, lambda model: accuracy(model, test)).without.items():
        print(f"without block {path}: {share:.4f}")
    return whole


if __name__ == "__main__":
    given = dict(enumerate(sys.argv))
    main(given.get(1, "digits"), int(given.get(2, 8)))
