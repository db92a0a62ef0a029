"""A network with one hidden layer, trained with nothing but `value_and_grad` and a subtraction.

    python examples/two_layer_network.py

The data are two interleaved half-moons. Parameters are a plain dict; the gradient has the same structure.
"""

from __future__ import annotations

import numpy as np

import wonderland as wl

Parameters = dict[str, wl.Tensor]


def moons(count: int, rng: np.random.Generator) -> tuple[wl.Tensor, wl.Tensor]:
    """Points (count, 2) on two half-circles with noise, and their classes (count,)."""
    label = rng.integers(0, 2, count)
    angle = rng.uniform(0, np.pi, count)
    x = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    x[label == 1] = [1.0, 0.5] - x[label == 1]
    x += rng.normal(scale=0.1, size=x.shape)
    return wl.asarray(x.astype(np.float32)), wl.asarray(label.astype(np.float32))


def initial(hidden: int, rng: np.random.Generator) -> Parameters:
    def weights(*shape: int) -> wl.Tensor:
        return wl.asarray(rng.normal(scale=shape[0] ** -0.5, size=shape).astype(np.float32))

    return {"W1": weights(2, hidden), "b1": wl.zeros(hidden), "w2": weights(hidden), "b2": wl.zeros(())}


def logits(p: Parameters, x: wl.Tensor) -> wl.Tensor:
    """Log-odds of class 1 for points (n, 2): shape (n,)."""
    return wl.tanh(x @ p["W1"] + p["b1"]) @ p["w2"] + p["b2"]


def loss(p: Parameters, x: wl.Tensor, y: wl.Tensor) -> wl.Tensor:
    """The mean of -log p(y | x), written with softplus so that nothing overflows."""
    z = logits(p, x)
    return (wl.softplus(z) - y * z).mean()


def accuracy(p: Parameters, x: wl.Tensor, y: wl.Tensor) -> float:
    return ((logits(p, x) > 0) == (y > 0.5)).astype(wl.float32).mean().item()


def train(steps: int = 600, rate: float = 0.5, seed: int = 0, report: bool = False) -> tuple[Parameters, float]:
    """Plain stochastic gradient descent; returns the parameters and the accuracy on fresh data."""
    rng = np.random.default_rng(seed)
    x, y = moons(1000, rng)
    p = initial(16, rng)
    loss_and_grad = wl.value_and_grad(loss)
    for step in range(steps + 1):
        batch = wl.asarray(rng.integers(0, len(x), 64))
        value, gradient = loss_and_grad(p, x[batch], y[batch])
        p = wl.tree.map(lambda w, g: w - rate * g, p, gradient)
        if report and step % 100 == 0:
            print(f"step {step:4d}   loss {value:.4f}   accuracy {accuracy(p, x, y):.3f}")
    return p, accuracy(p, *moons(1000, rng))


if __name__ == "__main__":
    _, fresh = train(report=True)
    print(f"accuracy on fresh data {fresh:.3f}")
