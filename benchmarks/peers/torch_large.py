"""The models of `benchmarks/large.py` in PyTorch."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F  # noqa: N812 - as everybody calls it
from torch import Tensor, nn

from ..measuring import Step
from .torch_inference import ViT, pooled
from .torch_workloads import GPT, classify, labels, training

STAGES = ((3, 64, 1), (4, 128, 2), (6, 256, 2), (3, 512, 2))  # blocks, channels inside them, stride of the first


def layer(channels: int, out: int, size: int, stride: int = 1) -> nn.Sequential:
    return nn.Sequential(nn.Conv2d(channels, out, size, stride, size // 2, bias=False), nn.BatchNorm2d(out))


class Bottleneck(nn.Module):
    def __init__(self, channels: int, inside: int, stride: int) -> None:
        super().__init__()
        out = 4 * inside
        self.first, self.middle = layer(channels, inside, 1), layer(inside, inside, 3, stride)
        self.last = layer(inside, out, 1)
        self.short = layer(channels, out, 1, stride) if channels != out else nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        y = F.relu(self.middle(F.relu(self.first(x))))
        return F.relu(self.last(y) + self.short(x))


def resnet50() -> Step:
    layers: list[nn.Module] = [layer(3, 64, 7, 2), nn.ReLU(), nn.MaxPool2d(3, 2, 1)]
    channels = 64
    for count, inside, stride in STAGES:
        for i in range(count):
            layers.append(Bottleneck(channels, inside, stride if i == 0 else 1))
            channels = 4 * inside
    model = nn.Sequential(*layers, *pooled(), nn.Linear(2048, 1000)).to(memory_format=torch.channels_last)
    return training(model, classify, images(2), labels(1000, 2))


def images(batch: int) -> Tensor:
    return torch.randn(batch, 3, 224, 224).to(memory_format=torch.channels_last)


def gpt_512() -> Step:
    ids = labels(96, 16, 129)

    def loss_of(model: nn.Module, x: Tensor, y: Tensor) -> Tensor:
        return F.cross_entropy(model(x).flatten(0, 1), y.flatten())

    return training(GPT(width=512, heads=8), loss_of, ids[:, :-1], ids[:, 1:])


def vit() -> Step:
    return training(ViT(), classify, images(8), labels(1000, 8))


LARGE: dict[str, Callable[[], Step]] = {f.__name__: f for f in (resnet50, gpt_512, vit)}
