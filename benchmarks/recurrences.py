"""Recurrences, forward and backward: the value of a sum of all outputs with weights, and the gradients of all inputs.

| name | what | batch, steps |
|---|---|---|
| lstm_small, lstm_medium, lstm_large | LSTM 32-64, 64-128, 128-256 | 16 x 64, 32 x 100, 64 x 128 |
| gru_small, gru_medium, gru_large | GRU of the same sizes | |
| lru | linear recurrent unit: width 64, 64 complex states, matrices in and out | 4 x 4096 |
| recurrence | its recurrence alone, one complex decay for every state | 4 x 4096 |
| selective_small, selective_large | Mamba's selective scan, 64 and 256 channels of 16 states | 4 x 1024 |
| associative | prefixes of the pairs (a, b) of a linear recurrence by `associative_scan`, 64 channels | 4 x 4096 |

Gradients are those of the parameters and of the inputs, as a layer inside a model has to give them. Arguments make
everything smaller, for tests. The peers may choose: JAX between `lax.scan` and `lax.associative_scan`, PyTorch between
its own layers, loops and formulas over the whole sequence; the faster one is measured (see peers/).
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import wonderland as wl
from wonderland import nn

from . import steps
from .options import Options
from .workloads import Step

F = nn.functional
SIZES = {"small": (16, 64, 32, 64), "medium": (32, 100, 64, 128), "large": (64, 128, 128, 256)}  # batch, steps, in, out


def gradients(outputs_of: Callable[..., Any], *inputs: Any) -> Step:
    """A compiled function: the sum of the outputs with fixed weights, and the gradients of all inputs."""
    weights = wl.random.normal(wl.eval_shape(outputs_of, *inputs).shape, key=wl.random.key(1))

    def value(*given: Any) -> wl.Tensor:
        return (outputs_of(*given) * weights).sum()

    return functools.partial(wl.jit(wl.value_and_grad(value, tuple(range(len(inputs))))), *inputs)


def layer(kind: Callable[..., Any], size: str, batch: int | None = None, steps: int | None = None) -> Step:
    n, t, features, hidden = SIZES[size]
    x = wl.random.normal((batch or n, steps or t, features))
    return gradients(lambda model, x: model(x)[0], kind(features, hidden, batch_first=True), x)


def lru(batch: int = 4, steps: int = 4096, width: int = 64, states: int = 64) -> Step:
    def outputs(p: dict[str, wl.Tensor], u: wl.Tensor) -> wl.Tensor:
        decay = wl.exp(wl.complex(-wl.exp(p["nu"]), wl.exp(p["theta"])))
        scale = wl.exp(p["gamma"])
        inputs = wl.complex(u @ p["b_real"] * scale, u @ p["b_imag"] * scale)
        s = F.linear_recurrence(decay, inputs, axis=1)
        return s.real @ p["c_real"] - s.imag @ p["c_imag"] + u * p["d"]

    params = {name: wl.random.normal((states,)) for name in ("nu", "theta", "gamma")}
    params |= {name: wl.random.normal((width, states)) / width**0.5 for name in ("b_real", "b_imag")}
    params |= {name: wl.random.normal((states, width)) / states**0.5 for name in ("c_real", "c_imag")}
    return gradients(outputs, params | {"d": wl.random.normal((width,))}, wl.random.normal((batch, steps, width)))


def recurrence(batch: int = 4, steps: int = 4096, states: int = 64) -> Step:
    def outputs(nu: wl.Tensor, theta: wl.Tensor, real: wl.Tensor, imag: wl.Tensor) -> wl.Tensor:
        s = F.linear_recurrence(wl.exp(wl.complex(-wl.exp(nu), theta)), wl.complex(real, imag), axis=1)
        return s.real + s.imag

    inputs = [wl.random.normal((batch, steps, states)) for _ in range(2)]
    return gradients(outputs, wl.random.normal((states,)), wl.random.normal((states,)), *inputs)


def selective(channels: int, batch: int = 4, steps: int = 1024, states: int = 16) -> Step:
    def outputs(x: wl.Tensor, delta: wl.Tensor, a: wl.Tensor, b: wl.Tensor, c: wl.Tensor) -> wl.Tensor:
        """Of (batch, steps, channels), with a (channels, states), and b and c (batch, steps, states)."""

        def step(h: wl.Tensor, now: tuple[wl.Tensor, ...]) -> tuple[wl.Tensor, wl.Tensor]:
            x, delta, b, c = now
            h = wl.exp(delta[..., None] * a) * h + (delta * x)[..., None] * b[:, None]
            return h, (h * c[:, None]).sum(-1)

        start = wl.zeros((batch, channels, states))
        sequences = tuple(wl.swapaxes(s, 0, 1) for s in (x, delta, b, c))
        return wl.swapaxes(wl.scan(step, start, sequences)[1], 0, 1)

    x, delta = wl.random.normal((batch, steps, channels)), 0.1 * wl.random.uniform((batch, steps, channels))
    a, b, c = -wl.exp(wl.random.normal((channels, states))), *(wl.random.normal((batch, steps, states)) for _ in "bc")
    return gradients(outputs, x, delta, a, b, c)


def associative(batch: int = 4, steps: int = 4096, channels: int = 64) -> Step:
    def outputs(a: wl.Tensor, b: wl.Tensor) -> wl.Tensor:
        return wl.associative_scan(lambda p, q: (q[0] * p[0], q[0] * p[1] + q[1]), (a, b), axis=1)[1]

    shape = (batch, steps, channels)
    return gradients(outputs, wl.random.uniform(shape), wl.random.normal(shape))


RECURRENCES: dict[str, Callable[..., Step]] = {
    **{f"lstm_{size}": functools.partial(layer, nn.LSTM, size) for size in SIZES},
    **{f"gru_{size}": functools.partial(layer, nn.GRU, size) for size in SIZES},
    "lru": lru,
    "recurrence": recurrence,
    "selective_small": functools.partial(selective, 64),
    "selective_large": functools.partial(selective, 256),
    "associative": associative,
}


def main(options: Options | None = None) -> None:
    steps.main(options, RECURRENCES)


if __name__ == "__main__":
    main()
