"""The eight steps of `benchmarks/workloads.py` in PyTorch. Images are stored channels last, which is faster."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812 - as everybody calls it
from torch import Tensor, nn

from ..measuring import Step

compiling = False  # torch_step.py sets it


def compiled(f: Any) -> Any:
    """A model or a function as it will run: by `torch.compile`, if that was asked for."""
    return torch.compile(f) if compiling else f


def labels(count: int, *shape: int) -> Tensor:
    return torch.randint(0, count, shape)


def images(batch: int, channels: int = 3) -> Tensor:
    return torch.randn(batch, channels, 32, 32).to(memory_format=torch.channels_last)


def classify(model: Any, x: Tensor, y: Tensor) -> Tensor:
    return F.cross_entropy(model(x), y)


def training(model: nn.Module, loss_of: Any, x: Tensor, y: Tensor, optimizer: Any = None) -> Step:
    """A training step: the gradients are forgotten, computed anew, and used."""
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3) if optimizer is None else optimizer
    run = compiled(model)

    def step() -> Tensor:
        optimizer.zero_grad()
        loss = loss_of(run, x, y)
        loss.backward()
        optimizer.step()
        return loss

    return step


def perceptron() -> nn.Module:
    return nn.Sequential(nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 128), nn.ReLU(), nn.Linear(128, 10))


def mlp() -> Step:
    return training(perceptron(), classify, torch.randn(64, 784), labels(10, 64))


def mlp_tiny() -> Step:
    model = nn.Sequential(nn.Linear(20, 32), nn.Tanh(), nn.Linear(32, 1))

    def loss_of(model: Any, x: Tensor, y: Tensor) -> Tensor:
        return F.mse_loss(model(x), y)

    optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
    return training(model, loss_of, torch.randn(32, 20), torch.randn(32, 1), optimizer)


def convolution(channels: int, out: int) -> list[nn.Module]:
    return [nn.Conv2d(channels, out, 3, padding=1, bias=False), nn.BatchNorm2d(out), nn.ReLU()]


def cnn() -> Step:
    model = nn.Sequential(
        *convolution(3, 32),
        *convolution(32, 32),
        nn.MaxPool2d(2),
        *convolution(32, 64),
        *convolution(64, 64),
        nn.MaxPool2d(2),
        *convolution(64, 128),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(128, 10),
    )
    return training(model.to(memory_format=torch.channels_last), classify, images(64), labels(10, 64))


class Block(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        b, t, d = x.shape
        qkv = self.qkv(self.norm1(x)).view(b, t, 3, self.heads, d // self.heads)
        q, k, v = qkv.permute(2, 0, 3, 1, 4)  # (3, b, heads, t, d / heads)
        a = F.scaled_dot_product_attention(q, k, v, mask, is_causal=mask is None)
        x = x + self.out(a.transpose(1, 2).reshape(b, t, d))
        return x + self.down(F.gelu(self.up(self.norm2(x)), approximate="tanh"))


class GPT(nn.Module):
    def __init__(self, vocabulary: int = 96, width: int = 128, blocks: int = 4, heads: int = 4, context: int = 128):
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, width)
        self.positions = nn.Parameter(0.02 * torch.randn(context, width))
        self.blocks = nn.Sequential(*[Block(width, heads) for _ in range(blocks)])
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, vocabulary, bias=False)

    def forward(self, ids: Tensor) -> Tensor:
        return self.head(self.norm(self.blocks(self.tokens(ids) + self.positions)))


def gpt() -> Step:
    ids = labels(96, 16, 129)

    def loss_of(model: Any, x: Tensor, y: Tensor) -> Tensor:
        return F.cross_entropy(model(x).flatten(0, 1), y.flatten())

    return training(GPT(), loss_of, ids[:, :-1], ids[:, 1:])


class SequenceClassifier(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lstm, self.out = nn.LSTM(32, 128, batch_first=True), nn.Linear(128, 10)

    def forward(self, x: Tensor) -> Tensor:
        outputs, _ = self.lstm(x)
        return self.out(outputs[:, -1])


def lstm() -> Step:
    return training(SequenceClassifier(), classify, torch.randn(32, 64, 32), labels(10, 32))


class GCN(nn.Module):
    def __init__(self, nodes: int = 2708, edges: int = 10556) -> None:
        super().__init__()
        self.source, self.target = labels(nodes, edges), labels(nodes, edges)
        self.weight = torch.rand(edges, 1)
        self.first, self.second = nn.Linear(1433, 16), nn.Linear(16, 7)

    def spread(self, x: Tensor) -> Tensor:
        return torch.zeros_like(x).index_add(0, self.target, x[self.source] * self.weight)

    def forward(self, x: Tensor) -> Tensor:
        return self.spread(self.second(F.relu(self.spread(self.first(x)))))


def gcn() -> Step:
    features = (torch.rand(2708, 1433) < 0.01).float()
    return training(GCN(), classify, features, labels(7, 2708))


def parameters(model: nn.Module) -> dict[str, Tensor]:
    return {path: p.detach() for path, p in model.named_parameters()}


def hvp() -> Step:
    model, x, y = perceptron(), torch.randn(64, 784), labels(10, 64)
    params = parameters(model)
    direction = {path: torch.randn_like(p) for path, p in params.items()}

    def loss_of(params: Any) -> Tensor:
        return F.cross_entropy(torch.func.functional_call(model, params, (x,)), y)

    @compiled
    def product(params: Any, direction: Any) -> Any:
        return torch.func.jvp(torch.func.grad(loss_of), (params,), (direction,))

    return lambda: product(params, direction)


def persample() -> Step:
    model, x, y = perceptron(), torch.randn(64, 784), labels(10, 64)
    params = parameters(model)

    def loss_of(params: Any, x: Tensor, y: Tensor) -> Tensor:
        return F.cross_entropy(torch.func.functional_call(model, params, (x[None],)), y[None])

    gradients = compiled(torch.func.vmap(torch.func.grad(loss_of), in_dims=(None, 0, 0)))
    return lambda: gradients(params, x, y)


WORKLOADS: dict[str, Callable[[], Step]] = {f.__name__: f for f in (mlp, mlp_tiny, cnn, gpt, lstm, gcn, hvp, persample)}
