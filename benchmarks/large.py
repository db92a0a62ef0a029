"""Training steps of larger models, which take long to compile or to run: `LARGE[name]()` gives one, as in workloads.py.

| name | model | batch |
|---|---|---|
| resnet50 | ResNet-50 for 1000 classes, images of 224 x 224 pixels | 2 |
| gpt_512 | the decoder of workloads.py with width 512 and 8 heads, context 128 | 16 |
| vit | ViT-S/16 for 1000 classes: 12 blocks of width 384, images of 224 x 224 pixels | 8 |
"""

from __future__ import annotations

from collections.abc import Callable

import wonderland as wl

from . import steps
from .options import Options
from .workloads import GPT, Step, classify, labels, training

SIDE = 224


def images(batch: int) -> wl.Tensor:
    return wl.random.normal((batch, SIDE, SIDE, 3))


def resnet50(batch: int = 2) -> Step:
    return training(wl.models.resnet50(), classify, images(batch), labels(1000, batch))


def gpt_512(batch: int = 16, width: int = 512, context: int = 128) -> Step:
    ids = labels(96, batch, context + 1)
    return training(GPT(width=width, heads=8, context=context), classify, ids[:, :-1], ids[:, 1:])


def vit(batch: int = 8) -> Step:
    model = wl.models.ViT(1000, (SIDE, SIDE, 3), 16, 384, 6, 12)
    return training(model, classify, images(batch), labels(1000, batch))


LARGE: dict[str, Callable[..., Step]] = {f.__name__: f for f in (resnet50, gpt_512, vit)}


def main(options: Options | None = None) -> None:
    steps.main(options, LARGE)


if __name__ == "__main__":
    main()
