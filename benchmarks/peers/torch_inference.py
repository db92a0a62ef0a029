"""The forward passes of `benchmarks/inference.py` in PyTorch."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812 - as everybody calls it
from torch import Tensor, nn

from ..measuring import Step, faster
from .torch_workloads import compiled

SIDE, TOKENS = 224, 128
Example = tuple[nn.Module, Tensor]


class Basic(nn.Module):
    def __init__(self, channels: int, out: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(channels, out, 3, stride, 1, bias=False)
        self.conv2 = nn.Conv2d(out, out, 3, 1, 1, bias=False)
        self.norm1, self.norm2 = nn.BatchNorm2d(out), nn.BatchNorm2d(out)
        short = nn.Sequential(nn.Conv2d(channels, out, 1, stride, bias=False), nn.BatchNorm2d(out))
        self.short = short if stride > 1 else nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        y = self.norm2(self.conv2(F.relu(self.norm1(self.conv1(x)))))
        return F.relu(y + self.short(x))


def resnet18(batch: int) -> Example:
    layers: list[nn.Module] = [
        nn.Conv2d(3, 64, 7, 2, 3, bias=False),
        nn.BatchNorm2d(64),
        nn.ReLU(),
        nn.MaxPool2d(3, 2, 1),
    ]
    channels = 64
    for out, stride in ((64, 1), (128, 2), (256, 2), (512, 2)):
        layers += [Basic(channels, out, stride), Basic(out, out, 1)]
        channels = out
    return nn.Sequential(*layers, *pooled(), nn.Linear(512, 1000)), images(batch)


def pooled() -> list[nn.Module]:
    return [nn.AdaptiveAvgPool2d(1), nn.Flatten()]


def images(batch: int) -> Tensor:
    return torch.randn(batch, 3, SIDE, SIDE)


class Wide(nn.Module):
    """A block of ConvNeXt."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(channels, channels, 7, padding=3, groups=channels)
        self.norm = nn.LayerNorm(channels, eps=1e-6)
        self.up, self.down = nn.Linear(channels, 4 * channels), nn.Linear(4 * channels, channels)
        self.scale = nn.Parameter(1e-6 * torch.ones(channels))

    def forward(self, x: Tensor) -> Tensor:
        y = self.norm(self.conv(x).permute(0, 2, 3, 1))
        return x + (self.scale * self.down(F.gelu(self.up(y)))).permute(0, 3, 1, 2)


class ChannelNorm(nn.LayerNorm):
    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)


def convnext(batch: int) -> Example:
    layers: list[nn.Module] = [nn.Conv2d(3, 96, 4, 4), ChannelNorm(96, eps=1e-6)]
    widths = (96, 192, 384, 768)
    for i, (depth, width) in enumerate(zip((3, 3, 9, 3), widths, strict=True)):
        if i:
            layers += [ChannelNorm(widths[i - 1], eps=1e-6), nn.Conv2d(widths[i - 1], width, 2, 2)]
        layers += [Wide(width) for _ in range(depth)]
    head = [nn.LayerNorm(768, eps=1e-6), nn.Linear(768, 1000)]
    return nn.Sequential(*layers, *pooled(), *head), images(batch)


class Block(nn.Module):
    """A block of a transformer; `first`: normalization before attention and MLP, else after the sums."""

    def __init__(self, width: int, heads: int, causal: bool, first: bool, eps: float) -> None:
        super().__init__()
        self.heads, self.causal, self.first = heads, causal, first
        self.norm1, self.norm2 = nn.LayerNorm(width, eps), nn.LayerNorm(width, eps)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def attention(self, x: Tensor) -> Tensor:
        b, t, e = x.shape
        q, k, v = self.qkv(x).view(b, t, 3, self.heads, e // self.heads).permute(2, 0, 3, 1, 4)
        return self.out(F.scaled_dot_product_attention(q, k, v, is_causal=self.causal).transpose(1, 2).reshape(b, t, e))

    def mlp(self, x: Tensor) -> Tensor:
        return self.down(F.gelu(self.up(x), approximate="tanh" if self.causal else "none"))

    def forward(self, x: Tensor) -> Tensor:
        if self.first:
            x = x + self.attention(self.norm1(x))
            return x + self.mlp(self.norm2(x))
        x = self.norm1(x + self.attention(x))
        return self.norm2(x + self.mlp(x))


def blocks(width: int, heads: int, causal: bool = False, first: bool = True, eps: float = 1e-6) -> nn.Sequential:
    return nn.Sequential(*[Block(width, heads, causal, first, eps) for _ in range(12)])


class ViT(nn.Module):
    def __init__(self, width: int = 384) -> None:
        super().__init__()
        self.patches, self.blocks = nn.Conv2d(3, width, 16, 16), blocks(width, 6)
        self.token = nn.Parameter(torch.randn(1, 1, width))
        self.positions = nn.Parameter(torch.randn(1 + (SIDE // 16) ** 2, width))
        self.norm, self.head = nn.LayerNorm(width, 1e-6), nn.Linear(width, 1000)

    def forward(self, x: Tensor) -> Tensor:
        x = self.patches(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(x.shape[0], -1, -1), x], 1) + self.positions
        return self.head(self.norm(self.blocks(x))[:, 0])


def vit(batch: int) -> Example:
    return ViT(), images(batch)


class BERT(nn.Module):
    def __init__(self, width: int = 768) -> None:
        super().__init__()
        self.tokens, self.segments = nn.Embedding(30522, width), nn.Embedding(2, width)
        self.positions = nn.Parameter(torch.randn(512, width))
        self.norm, self.blocks = nn.LayerNorm(width, 1e-12), blocks(width, 12, first=False, eps=1e-12)

    def forward(self, ids: Tensor) -> Tensor:
        x = self.tokens(ids) + self.positions[: ids.shape[1]] + self.segments(torch.zeros_like(ids))
        return self.blocks(self.norm(x))


def bert(batch: int) -> Example:
    return BERT(), torch.randint(0, 30522, (batch, TOKENS))


class GPT(nn.Module):
    def __init__(self, width: int = 768) -> None:
        super().__init__()
        self.tokens, self.positions = nn.Embedding(50257, width), nn.Parameter(torch.randn(1024, width))
        self.blocks, self.norm = blocks(width, 12, causal=True, eps=1e-5), nn.LayerNorm(width, 1e-5)

    def forward(self, ids: Tensor) -> Tensor:
        x = self.blocks(self.tokens(ids) + self.positions[: ids.shape[1]])
        return self.norm(x) @ self.tokens.weight.T


def gpt2(batch: int) -> Example:
    return GPT(), torch.randint(0, 50257, (batch, TOKENS))


BATCHES = ((resnet18, 1), (resnet18, 16), (convnext, 1), (convnext, 16), (vit, 1), (bert, 1), (gpt2, 1))
EXAMPLES: dict[str, Callable[[], Example]] = {f"{f.__name__}_{n}": functools.partial(f, n) for f, n in BATCHES}


def answering(example: Callable[[], Example]) -> Step:
    """A forward pass without records; of images, in the layout that is faster."""
    model, x = example()
    forms: list[tuple[Any, Tensor]] = [(model.eval(), x)]
    if x.ndim == 4:
        last, _ = example()
        forms.append((last.eval().to(memory_format=torch.channels_last), x.to(memory_format=torch.channels_last)))

    def step(run: Any, x: Tensor) -> Tensor:
        with torch.inference_mode():
            return run(x)

    found = [functools.partial(step, compiled(model), x) for model, x in forms]
    return found[0] if len(found) == 1 else faster(*found)


INFERENCE: dict[str, Callable[[], Step]] = {name: functools.partial(answering, e) for name, e in EXAMPLES.items()}
