"""Eight training steps written as a user would write them: `WORKLOADS[name]()` gives a step without arguments.

| name | model | batch |
|---|---|---|
| mlp | 784-256-128-10, ReLU | 64 |
| mlp_tiny | 20-32-1, tanh, squared error, SGD | 32 |
| cnn | five convolutions with batch normalization on 32 x 32 images | 64 |
| gpt | a decoder of 4 pre-norm blocks, width 128, 4 heads, context 128 | 16 |
| lstm | LSTM 32-128 over 64 steps | 32 |
| gcn | two graph convolutions 1433-16-7 on 2708 nodes with 10556 edges | all nodes |
| hvp | Hessian-vector product of the mlp's loss | 64 |
| persample | gradients of the mlp for every example | 64 |

Steps are forward pass, backward pass and update by Adam, in float32, on one fixed random batch. `peers/` has the
same in other frameworks; arguments make them smaller, for tests.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import wonderland as wl
from wonderland import nn

F = nn.functional
Step = functools.partial[Any]  # a compiled function and its arguments


def labels(count: int, *shape: int) -> wl.Tensor:
    return wl.random.randint(shape, 0, count)


def classify(model: Any, x: wl.Tensor, y: wl.Tensor) -> wl.Tensor:
    return F.cross_entropy(model(x), y)


def training(model: Any, loss_of: Any, x: wl.Tensor, y: wl.Tensor, optimizer: Any = None) -> Step:
    """A training step of one compiled call."""
    optimizer = wl.optim.Adam(model, lr=1e-3) if optimizer is None else optimizer

    @wl.jit
    def step(model: Any, optimizer: Any, x: wl.Tensor, y: wl.Tensor) -> wl.Tensor:
        loss, grads = wl.value_and_grad(loss_of)(model, x, y)
        optimizer.step(grads)
        return loss

    return functools.partial(step, model, optimizer, x, y)


def perceptron() -> nn.Module:
    return nn.Sequential(nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 128), nn.ReLU(), nn.Linear(128, 10))


def mlp(batch: int = 64) -> Step:
    return training(perceptron(), classify, wl.random.normal((batch, 784)), labels(10, batch))


def mlp_tiny(batch: int = 32) -> Step:
    model = nn.Sequential(nn.Linear(20, 32), nn.Tanh(), nn.Linear(32, 1))

    def loss_of(model: Any, x: wl.Tensor, y: wl.Tensor) -> wl.Tensor:
        return F.mse_loss(model(x), y)

    x, y = wl.random.normal((batch, 20)), wl.random.normal((batch, 1))
    return training(model, loss_of, x, y, wl.optim.SGD(model, lr=1e-2))


def convolution(channels: int, out: int) -> list[nn.Module]:
    return [nn.Conv2d(channels, out, 3, padding=1, bias=False), nn.BatchNorm2d(out), nn.ReLU()]


def convolutional() -> nn.Module:
    return nn.Sequential(
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


def cnn(batch: int = 64) -> Step:
    return training(convolutional(), classify, wl.random.normal((batch, 32, 32, 3)), labels(10, batch))


class Block(nn.Module):
    """Attention and two linear layers, each behind a normalization and added to the input; causal without a mask."""

    def __init__(self, width: int, heads: int) -> None:
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: wl.Tensor, mask: wl.Tensor | None = None) -> wl.Tensor:
        b, t, d = x.shape
        qkv = self.qkv(self.norm1(x)).reshape(b, t, 3, self.heads, d // self.heads)
        q, k, v = wl.transpose(qkv, (2, 0, 3, 1, 4))  # (3, b, heads, t, d / heads)
        a = F.scaled_dot_product_attention(q, k, v, mask, is_causal=mask is None)
        x = x + self.out(wl.swapaxes(a, 1, 2).reshape(b, t, d))
        return x + self.down(F.gelu(self.up(self.norm2(x)), approximate="tanh"))


class GPT(nn.Module):
    def __init__(self, vocabulary: int = 96, width: int = 128, blocks: int = 4, heads: int = 4, context: int = 128):
        self.tokens = nn.Embedding(vocabulary, width)
        self.positions = nn.Parameter(wl.random.normal((context, width), std=0.02))
        self.blocks = nn.Sequential(*[Block(width, heads) for _ in range(blocks)])
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, vocabulary, bias=False)

    def forward(self, ids: wl.Tensor) -> wl.Tensor:
        return self.head(self.norm(self.blocks(self.tokens(ids) + self.positions)))


def gpt(batch: int = 16, blocks: int = 4, context: int = 128) -> Step:
    ids = labels(96, batch, context + 1)
    return training(GPT(blocks=blocks, context=context), classify, ids[:, :-1], ids[:, 1:])


class SequenceClassifier(nn.Module):
    def __init__(self) -> None:
        self.lstm, self.out = nn.LSTM(32, 128, batch_first=True), nn.Linear(128, 10)

    def forward(self, x: wl.Tensor) -> wl.Tensor:
        outputs, _ = self.lstm(x)
        return self.out(outputs[:, -1])


def lstm(batch: int = 32, steps: int = 64) -> Step:
    return training(SequenceClassifier(), classify, wl.random.normal((batch, steps, 32)), labels(10, batch))


class GCN(nn.Module):
    def __init__(self, nodes: int = 2708, edges: int = 10556) -> None:
        self.nodes = nodes
        self.source, self.target = nn.Buffer(labels(nodes, edges)), nn.Buffer(labels(nodes, edges))
        self.weight = nn.Buffer(wl.random.uniform((edges, 1)))
        self.first, self.second = nn.Linear(1433, 16), nn.Linear(16, 7)

    def spread(self, x: wl.Tensor) -> wl.Tensor:
        return wl.segment_sum(x[self.source] * self.weight, self.target, self.nodes)

    def forward(self, x: wl.Tensor) -> wl.Tensor:
        return self.spread(self.second(wl.relu(self.spread(self.first(x)))))


def gcn(nodes: int = 2708, edges: int = 10556) -> Step:
    features = wl.random.bernoulli((nodes, 1433), 0.01, dtype=wl.float32)
    return training(GCN(nodes, edges), classify, features, labels(7, nodes))


def hvp(batch: int = 64) -> Step:
    model, x, y = perceptron(), wl.random.normal((batch, 784)), labels(10, batch)
    params = {path: p.value for path, p in model.named_parameters()}
    direction = {path: wl.random.normal(p.shape) for path, p in params.items()}

    @wl.jit
    def product(params: Any, direction: Any, x: wl.Tensor, y: wl.Tensor) -> Any:
        def loss_of(params: Any) -> wl.Tensor:
            return F.cross_entropy(nn.functional_call(model, params, x), y)

        return wl.jvp(wl.grad(loss_of), (params,), (direction,))

    return functools.partial(product, params, direction, x, y)


def persample(batch: int = 64) -> Step:
    model, x, y = perceptron(), wl.random.normal((batch, 784)), labels(10, batch)

    @wl.jit
    def gradients(model: Any, x: wl.Tensor, y: wl.Tensor) -> Any:
        return wl.vmap(lambda a, b: wl.grad(classify)(model, a, b))(x, y)

    return functools.partial(gradients, model, x, y)


WORKLOADS: dict[str, Callable[..., Step]] = {
    f.__name__: f for f in (mlp, mlp_tiny, cnn, gpt, lstm, gcn, hvp, persample)
}
