"""The steps of `benchmarks/variety.py` in PyTorch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812 - as everybody calls it
from torch import Tensor, nn

from ..measuring import Step
from .torch_workloads import Block, classify, compiled, images, labels, training


def reconstruct(model: Any, x: Tensor, y: Tensor) -> Tensor:
    return F.mse_loss(model(x), y)


def last(model: nn.Module) -> nn.Module:
    return model.to(memory_format=torch.channels_last)


class Residual(nn.Module):
    def __init__(self, channels: int, out: int, stride: int = 1) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(channels, out, 3, stride=stride, padding=1, bias=False)
        self.conv2 = nn.Conv2d(out, out, 3, padding=1, bias=False)
        self.norm1, self.norm2 = nn.BatchNorm2d(out), nn.BatchNorm2d(out)
        self.short = nn.Conv2d(channels, out, 1, stride=stride, bias=False) if stride > 1 else nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        y = self.norm2(self.conv2(F.relu(self.norm1(self.conv1(x)))))
        return F.relu(y + self.short(x))


def resnet() -> Step:
    model = nn.Sequential(
        nn.Conv2d(3, 32, 3, padding=1),
        Residual(32, 32),
        Residual(32, 64, stride=2),
        Residual(64, 128, stride=2),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(128, 10),
    )
    return training(last(model), classify, images(32), labels(10, 32))


def separable() -> Step:
    def block(channels: int, out: int, stride: int) -> list[nn.Module]:
        depthwise = nn.Conv2d(channels, channels, 3, stride=stride, padding=1, groups=channels, bias=False)
        return [depthwise, nn.Conv2d(channels, out, 1, bias=False), nn.BatchNorm2d(out), nn.ReLU6()]

    layers = [*block(3, 32, 1), *block(32, 64, 2), *block(64, 128, 2)]
    model = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(128, 10))
    return training(last(model), classify, images(32), labels(10, 32))


def signal() -> Step:
    model = nn.Sequential(
        nn.Conv1d(1, 16, 9, stride=2, padding=4),
        nn.ReLU(),
        nn.Conv1d(16, 32, 5, padding=2),
        nn.ReLU(),
        nn.MaxPool1d(4),
        nn.Conv1d(32, 64, 3, padding=2, dilation=2),
        nn.ReLU(),
        nn.AdaptiveAvgPool1d(1),
        nn.Flatten(),
        nn.Linear(64, 5),
    )
    return training(model, classify, torch.randn(32, 1, 1024), labels(5, 32))


def autoencoder() -> Step:
    model = nn.Sequential(
        nn.Conv2d(1, 16, 4, stride=2, padding=1),
        nn.ReLU(),
        nn.Conv2d(16, 32, 4, stride=2, padding=1),
        nn.ReLU(),
        nn.Conv2d(32, 64, 4, stride=2, padding=1),
        nn.ReLU(),
        nn.ConvTranspose2d(64, 32, 4, stride=2, padding=1),
        nn.ReLU(),
        nn.ConvTranspose2d(32, 16, 4, stride=2, padding=1),
        nn.ReLU(),
        nn.ConvTranspose2d(16, 1, 4, stride=2, padding=1),
        nn.Sigmoid(),
    )
    x = torch.sigmoid(images(64, 1))
    return training(last(model), reconstruct, x, x)


class Gated(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.gru, self.out = nn.GRU(64, 128, num_layers=2, batch_first=True), nn.Linear(128, 10)

    def forward(self, x: Tensor) -> Tensor:
        outputs, _ = self.gru(x)
        return self.out(outputs[:, -1])


def gru() -> Step:
    return training(Gated(), classify, torch.randn(32, 50, 64), labels(10, 32))


class Encoder(nn.Module):
    def __init__(self, lengths: Tensor, context: int, width: int = 128) -> None:
        super().__init__()
        self.tokens = nn.Embedding(1000, width)
        self.positions = nn.Parameter(0.02 * torch.randn(context, width))
        self.mask = nn.Buffer(torch.arange(context) < lengths[:, None])  # true where there is a token
        self.blocks = nn.ModuleList([Block(width, 4) for _ in range(2)])
        self.out = nn.Linear(width, 2)

    def forward(self, ids: Tensor) -> Tensor:
        x = self.tokens(ids) + self.positions
        for block in self.blocks:
            x = block(x, self.mask[:, None, None, :])
        kept = torch.where(self.mask[..., None], x, 0.0)
        return self.out(kept.sum(1) / self.mask.sum(1, keepdim=True))


def encoder(context: int = 512) -> Step:
    lengths = torch.randint(context // 2, context + 1, (4,))
    return training(Encoder(lengths, context), classify, labels(1000, 4, context), labels(2, 4))


class Text(nn.Module):
    def __init__(self, vocabulary: int) -> None:
        super().__init__()
        self.tokens, self.out = nn.Embedding(vocabulary, 64), nn.Linear(64, 4)

    def forward(self, ids: Tensor) -> Tensor:
        return self.out(self.tokens(ids).mean(1))


def text() -> Step:
    return training(Text(20000), classify, labels(20000, 128, 64), labels(4, 128))


def regularized() -> Step:
    def block(size: int, out: int) -> list[nn.Module]:
        return [nn.Linear(size, out), nn.BatchNorm1d(out), nn.ReLU(), nn.Dropout(0.5)]

    model = nn.Sequential(*block(100, 256), *block(256, 256), nn.Linear(256, 10))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    return training(model, classify, torch.randn(128, 100), labels(10, 128), optimizer)


def wide(width: int = 1024) -> Step:
    hidden = [layer for _ in range(3) for layer in (nn.Linear(width, width), nn.GELU())]
    model = nn.Sequential(*hidden, nn.Linear(width, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-2, momentum=0.9)
    return training(model, classify, torch.randn(256, width), labels(10, 256), optimizer)


def digits() -> Step:
    model = nn.Linear(64, 10)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    return training(model, classify, torch.randn(32, 64), labels(10, 32), optimizer)


def regression() -> Step:
    model = nn.Sequential(nn.Linear(30, 100), nn.Tanh(), nn.Linear(100, 1)).double()
    x, y = (torch.randn(256, n, dtype=torch.float64) for n in (30, 1))
    return training(model, reconstruct, x, y)


def vocabulary(words: int = 50000) -> Step:
    model = nn.Linear(256, words)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    return training(model, classify, torch.randn(64, 256), labels(words, 64), optimizer)


def jacobian() -> Step:
    model = nn.Sequential(nn.Linear(16, 64), nn.Tanh(), nn.Linear(64, 16)).requires_grad_(False)
    x = torch.randn(32, 16)
    jacobians = compiled(torch.func.vmap(torch.func.jacrev(model)))
    return lambda: jacobians(x)


def hessian() -> Step:
    model = nn.Sequential(nn.Linear(12, 32), nn.Tanh(), nn.Linear(32, 1)).requires_grad_(False)
    x = torch.randn(32, 12)
    hessians = compiled(torch.func.vmap(torch.func.hessian(lambda a: model(a)[0])))
    return lambda: hessians(x)


VARIETY: dict[str, Callable[[], Step]] = {
    f.__name__: f
    for f in (resnet, separable, signal, autoencoder, gru, encoder, text)
    + (regularized, wide, digits, regression, vocabulary, jacobian, hessian)
}
