"""A model that takes long to compile: `LARGE[name]()` gives a training step, as in workloads.py.

| name | model | batch |
|---|---|---|
| resnet50 | ResNet-50 for 1000 classes, images of 224 x 224 pixels | 2 |
"""

from __future__ import annotations

from collections.abc import Callable

import wonderland as wl

from .workloads import Step, classify, labels, training


def resnet50(batch: int = 2, size: int = 224) -> Step:
    images = wl.random.normal((batch, size, size, 3))
    return training(wl.models.resnet50(), classify, images, labels(1000, batch))


LARGE: dict[str, Callable[..., Step]] = {"resnet50": resnet50}
