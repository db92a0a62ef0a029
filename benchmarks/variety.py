"""More steps, of other shapes and operations than the eight: what makes those fast must make these fast too.

| name | model | batch |
|---|---|---|
| resnet | residual blocks, two of them with stride 2, on 32 x 32 images | 32 |
| separable | depthwise and pointwise convolutions on 32 x 32 images | 32 |
| signal | convolutions along a line of 1024 samples | 32 |
| autoencoder | strided convolutions to 4 x 4 and transposed ones back, squared error | 64 |
| gru | two layers of GRU 64-128 over 50 steps | 32 |
| encoder | two encoder blocks with a padding mask, width 128, context 512 | 4 |
| text | the mean of 64 embedded tokens, 20000 of them, and a linear layer | 128 |
| regularized | 100-256-256-10 with batch normalization and dropout, AdamW | 128 |
| wide | 1024-1024-1024-1024-10, GELU, SGD with momentum | 256 |
| digits | logistic regression 64-10, SGD | 32 |
| regression | 30-100-1 in float64 | 256 |
| vocabulary | 256-50000 and the cross-entropy of the softmax, SGD | 64 |
| jacobian | the Jacobian of 16-64-16, tanh, for every example | 32 |
| hessian | the Hessian of a 12-32-1 network in its input, for every example | 32 |

Training steps as in `workloads.py`, with Adam unless said; Jacobian and Hessian are functions without an optimizer.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import wonderland as wl
from wonderland import nn

from . import steps
from .options import Options
from .workloads import Block, Step, classify, labels, training

F = nn.functional


def reconstruct(model: Any, x: wl.Tensor, y: wl.Tensor) -> wl.Tensor:
    return F.mse_loss(model(x), y)


class Residual(nn.Module):
    def __init__(self, channels: int, out: int, stride: int = 1) -> None:
        self.conv1 = nn.Conv2d(channels, out, 3, stride=stride, padding=1, bias=False)
        self.conv2 = nn.Conv2d(out, out, 3, padding=1, bias=False)
        self.norm1, self.norm2 = nn.BatchNorm2d(out), nn.BatchNorm2d(out)
        self.short = nn.Conv2d(channels, out, 1, stride=stride, bias=False) if stride > 1 else nn.Identity()

    def forward(self, x: wl.Tensor) -> wl.Tensor:
        y = self.norm2(self.conv2(wl.relu(self.norm1(self.conv1(x)))))
        return wl.relu(y + self.short(x))


def resnet(batch: int = 32) -> Step:
    model = nn.Sequential(
        nn.Conv2d(3, 32, 3, padding=1),
        Residual(32, 32),
        Residual(32, 64, stride=2),
        Residual(64, 128, stride=2),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(128, 10),
    )
    return training(model, classify, wl.random.normal((batch, 32, 32, 3)), labels(10, batch))


def separable(batch: int = 32) -> Step:
    def block(channels: int, out: int, stride: int) -> list[nn.Module]:
        depthwise = nn.Conv2d(channels, channels, 3, stride=stride, padding=1, groups=channels, bias=False)
        return [depthwise, nn.Conv2d(channels, out, 1, bias=False), nn.BatchNorm2d(out), nn.ReLU6()]

    layers = [*block(3, 32, 1), *block(32, 64, 2), *block(64, 128, 2)]
    model = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(128, 10))
    return training(model, classify, wl.random.normal((batch, 32, 32, 3)), labels(10, batch))


def signal(batch: int = 32) -> Step:
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
    return training(model, classify, wl.random.normal((batch, 1024, 1)), labels(5, batch))


def autoencoder(batch: int = 64) -> Step:
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
    x = wl.random.uniform((batch, 32, 32, 1))
    return training(model, reconstruct, x, x)


class Gated(nn.Module):
    def __init__(self) -> None:
        self.gru, self.out = nn.GRU(64, 128, num_layers=2, batch_first=True), nn.Linear(128, 10)

    def forward(self, x: wl.Tensor) -> wl.Tensor:
        outputs, _ = self.gru(x)
        return self.out(outputs[:, -1])


def gru(batch: int = 32, steps: int = 50) -> Step:
    return training(Gated(), classify, wl.random.normal((batch, steps, 64)), labels(10, batch))


class Encoder(nn.Module):
    def __init__(self, lengths: wl.Tensor, context: int, width: int = 128) -> None:
        self.tokens = nn.Embedding(1000, width)
        self.positions = nn.Parameter(wl.random.normal((context, width), std=0.02))
        self.mask = nn.Buffer(wl.arange(context) < lengths[:, None])  # true where there is a token
        self.blocks = nn.ModuleList([Block(width, 4) for _ in range(2)])
        self.out = nn.Linear(width, 2)

    def forward(self, ids: wl.Tensor) -> wl.Tensor:
        x = self.tokens(ids) + self.positions
        for block in self.blocks:
            x = block(x, self.mask[:, None, None, :])
        kept = wl.where(self.mask[..., None], x, 0.0)
        return self.out(kept.sum(1) / self.mask.sum(1, keepdims=True))


def encoder(batch: int = 4, context: int = 512) -> Step:
    lengths = wl.random.randint((batch,), context // 2, context + 1)
    return training(Encoder(lengths, context), classify, labels(1000, batch, context), labels(2, batch))


class Text(nn.Module):
    def __init__(self, vocabulary: int) -> None:
        self.tokens, self.out = nn.Embedding(vocabulary, 64), nn.Linear(64, 4)

    def forward(self, ids: wl.Tensor) -> wl.Tensor:
        return self.out(self.tokens(ids).mean(1))


def text(batch: int = 128, vocabulary: int = 20000) -> Step:
    return training(Text(vocabulary), classify, labels(vocabulary, batch, 64), labels(4, batch))


def regularized(batch: int = 128) -> Step:
    def block(size: int, out: int) -> list[nn.Module]:
        return [nn.Linear(size, out), nn.BatchNorm1d(out), nn.ReLU(), nn.Dropout(0.5)]

    model = nn.Sequential(*block(100, 256), *block(256, 256), nn.Linear(256, 10))
    optimizer = wl.optim.AdamW(model, lr=1e-3)
    return training(model, classify, wl.random.normal((batch, 100)), labels(10, batch), optimizer)


def wide(batch: int = 256, width: int = 1024) -> Step:
    hidden = [layer for _ in range(3) for layer in (nn.Linear(width, width), nn.GELU())]
    model = nn.Sequential(*hidden, nn.Linear(width, 10))
    optimizer = wl.optim.SGD(model, lr=1e-2, momentum=0.9)
    return training(model, classify, wl.random.normal((batch, width)), labels(10, batch), optimizer)


def digits(batch: int = 32) -> Step:
    model = nn.Linear(64, 10)
    return training(model, classify, wl.random.normal((batch, 64)), labels(10, batch), wl.optim.SGD(model, lr=0.1))


def regression(batch: int = 256) -> Step:
    model = nn.Sequential(nn.Linear(30, 100), nn.Tanh(), nn.Linear(100, 1)).astype(wl.float64)
    x, y = (wl.random.normal((batch, n), dtype=wl.float64) for n in (30, 1))
    return training(model, reconstruct, x, y)


def vocabulary(batch: int = 64, words: int = 50000) -> Step:
    model = nn.Linear(256, words)
    x, y = wl.random.normal((batch, 256)), labels(words, batch)
    return training(model, classify, x, y, wl.optim.SGD(model, lr=0.1))


def jacobian(batch: int = 32) -> Step:
    model = nn.Sequential(nn.Linear(16, 64), nn.Tanh(), nn.Linear(64, 16))

    @wl.jit
    def jacobians(model: Any, x: wl.Tensor) -> Any:
        return wl.vmap(wl.jacrev(model))(x)

    return functools.partial(jacobians, model, wl.random.normal((batch, 16)))


def hessian(batch: int = 32) -> Step:
    model = nn.Sequential(nn.Linear(12, 32), nn.Tanh(), nn.Linear(32, 1))

    @wl.jit
    def hessians(model: Any, x: wl.Tensor) -> Any:
        return wl.vmap(wl.hessian(lambda a: model(a)[0]))(x)

    return functools.partial(hessians, model, wl.random.normal((batch, 12)))


VARIETY: dict[str, Callable[..., Step]] = {
    f.__name__: f
    for f in (resnet, separable, signal, autoencoder, gru, encoder, text)
    + (regularized, wide, digits, regression, vocabulary, jacobian, hessian)
}


def main(options: Options | None = None) -> None:
    steps.main(options, VARIETY)


if __name__ == "__main__":
    main()
