"""The recurrences of `benchmarks/recurrences.py` in PyTorch: its layers, or a loop or doubling, whichever is faster."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from ..measuring import Step, faster
from .torch_workloads import compiled

SIZES = {"small": (16, 64, 32, 64), "medium": (32, 100, 64, 128), "large": (64, 128, 128, 256)}


def gradients(outputs_of: Callable[..., Tensor], leaves: Sequence[Tensor], *inputs: Any) -> Step:
    """The sum of the outputs with fixed weights, and the gradients of the leaves."""
    with torch.no_grad():
        weights = torch.randn_like(outputs_of(*inputs))
    run = compiled(outputs_of)

    def step() -> Any:
        value = (run(*inputs) * weights).sum()
        return value, torch.autograd.grad(value, leaves)

    return step


def leaf(x: Tensor) -> Tensor:
    return x.requires_grad_()


def layer(kind: Callable[..., Any], size: str) -> Step:
    batch, steps, features, hidden = SIZES[size]
    model, x = kind(features, hidden, batch_first=True), leaf(torch.randn(batch, steps, features))
    return gradients(lambda x: model(x)[0], [*model.parameters(), x], x)


def by_loop(decay: Tensor, inputs: Tensor) -> Tensor:
    """s = decay * s + input along the second axis, step by step; a decay of every step has that axis, too."""
    decays = decay.unbind(1) if decay.ndim == inputs.ndim else [decay] * inputs.shape[1]
    s, states = torch.zeros_like(inputs[:, 0]), []
    for a, now in zip(decays, inputs.unbind(1), strict=True):
        s = torch.addcmul(now, a, s)
        states.append(s)
    return torch.stack(states, 1)


def by_doubling(decay: Tensor, inputs: Tensor) -> Tensor:
    """Prefixes in log2(n) passes, each of which reaches twice as far back."""
    a, s = decay.expand_as(inputs), inputs
    reach = 1
    while reach < inputs.shape[1]:
        s = torch.cat([s[:, :reach], torch.addcmul(s[:, reach:], a[:, reach:], s[:, :-reach])], 1)
        a = torch.cat([a[:, :reach], a[:, reach:] * a[:, :-reach]], 1)
        reach *= 2
    return s


def lru(batch: int = 4, steps: int = 4096, width: int = 64, states: int = 64) -> Step:
    p = {name: leaf(torch.randn(states)) for name in ("nu", "theta", "gamma")} | {"d": leaf(torch.randn(width))}
    p |= {name: leaf(torch.randn(width, states) / width**0.5) for name in ("b_real", "b_imag")}
    p |= {name: leaf(torch.randn(states, width) / states**0.5) for name in ("c_real", "c_imag")}
    u = leaf(torch.randn(batch, steps, width))

    def outputs(recur: Callable[[Tensor, Tensor], Tensor], u: Tensor) -> Tensor:
        decay = torch.exp(torch.complex(-torch.exp(p["nu"]), torch.exp(p["theta"])))
        scale = torch.exp(p["gamma"])
        s = recur(decay, torch.complex(u @ p["b_real"] * scale, u @ p["b_imag"] * scale))
        return s.real @ p["c_real"] - s.imag @ p["c_imag"] + u * p["d"]

    leaves = [*p.values(), u]
    return faster(*(gradients(functools.partial(outputs, recur), leaves, u) for recur in (by_loop, by_doubling)))


def recurrence(batch: int = 4, steps: int = 4096, states: int = 64) -> Step:
    leaves = [leaf(torch.randn(states)) for _ in range(2)]
    leaves += [leaf(torch.randn(batch, steps, states)) for _ in range(2)]

    def outputs(recur: Callable[[Tensor, Tensor], Tensor], nu: Tensor, theta: Tensor, x: Tensor, y: Tensor) -> Tensor:
        s = recur(torch.exp(torch.complex(-torch.exp(nu), theta)), torch.complex(x, y))
        return s.real + s.imag

    return faster(*(gradients(functools.partial(outputs, recur), leaves, *leaves) for recur in (by_loop, by_doubling)))


def selective(channels: int, batch: int = 4, steps: int = 1024, states: int = 16) -> Step:
    x, delta = torch.randn(batch, steps, channels), 0.1 * torch.rand(batch, steps, channels)
    a, (b, c) = -torch.exp(torch.randn(channels, states)), torch.randn(2, batch, steps, states)
    leaves = [leaf(t) for t in (x, delta, a, b, c)]

    def outputs(recur: Callable[[Tensor, Tensor], Tensor], *given: Tensor) -> Tensor:
        x, delta, a, b, c = given
        decay, inputs = torch.exp(delta[..., None] * a), (delta * x)[..., None] * b[:, :, None]
        return torch.einsum("btdn,btn->btd", recur(decay, inputs), c)

    return faster(*(gradients(functools.partial(outputs, recur), leaves, *leaves) for recur in (by_loop, by_doubling)))


def associative(batch: int = 4, steps: int = 4096, channels: int = 64) -> Step:
    leaves = [leaf(torch.rand(batch, steps, channels)), leaf(torch.randn(batch, steps, channels))]
    return gradients(by_doubling, leaves, *leaves)


RECURRENCES: dict[str, Callable[[], Step]] = {
    "lstm_small": functools.partial(layer, nn.LSTM, "small"),
    "lstm_medium": functools.partial(layer, nn.LSTM, "medium"),
    "lstm_large": functools.partial(layer, nn.LSTM, "large"),
    "gru_small": functools.partial(layer, nn.GRU, "small"),
    "gru_medium": functools.partial(layer, nn.GRU, "medium"),
    "gru_large": functools.partial(layer, nn.GRU, "large"),
    "lru": lru,
    "recurrence": recurrence,
    "selective_small": functools.partial(selective, 64),
    "selective_large": functools.partial(selective, 256),
    "associative": associative,
}
