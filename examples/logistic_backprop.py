"""Backpropagation through logistic regression with every number on every edge (the notes' section 3.3.7).

    python examples/logistic_backprop.py [graph.svg]

Two examples with two features each: z = X w + b, yhat = sigmoid(z), loss = mean of -(y log yhat + (1-y) log(1-yhat)).
The sign of a delta says whether raising the value raises or lowers the loss, its size by how much.
"""

from __future__ import annotations

import sys
from pathlib import Path

import wonderland as wl
from wonderland import wengert

X = wl.tensor([[1.0, 2.0], [-1.0, 0.5]], dtype=wl.float64)  # (examples, features)
Y = wl.tensor([1.0, 0.0], dtype=wl.float64)
W = wl.tensor([0.5, -0.25], dtype=wl.float64)
B = wl.tensor(0.1, dtype=wl.float64)


def predict(w: wl.Tensor, b: wl.Tensor) -> wl.Tensor:
    return wl.sigmoid(X @ w + b)


def loss(w: wl.Tensor, b: wl.Tensor) -> wl.Tensor:
    yhat = predict(w, b)
    return -(Y * wl.log(yhat) + (1 - Y) * wl.log(1 - yhat)).mean()


def gradient_by_hand(w: wl.Tensor, b: wl.Tensor) -> tuple[wl.Tensor, wl.Tensor]:
    """X^T (yhat - y) / N and its counterpart for the bias, where the input is 1."""
    error = (predict(w, b) - Y) / len(Y)
    return X.T @ error, error.sum()


def numbers(x: wl.Tensor) -> str:
    """The elements of a tensor of any shape in one line."""
    return " ".join(f"{round(element, 4) + 0.0:8.4f}" for element in x.ravel().tolist())  # no -0.0


def main(arguments: list[str]) -> None:
    trace = wengert.trace(loss, w=W, b=B)
    deltas = trace.adjoints()
    expressions = {step.name: step.expression for step in trace.steps}
    print(f"{'edge':5} {'computed as':32} {'value':>18} {'delta':>18}")
    for name, value in trace.values.items():
        made = expressions.get(name, "parameter")
        print(f"{name:5} {made:32} {numbers(value):>18} {numbers(deltas[name]):>18}")

    for name, by_hand in zip("wb", gradient_by_hand(W, B), strict=True):
        agree = wl.abs(by_hand - deltas[name]).max().item() < 1e-12
        print(f"by hand, delta {name} = {numbers(by_hand)}   {'agrees' if agree else 'DIFFERS'}")
    if arguments:
        Path(arguments[0]).write_text(trace.svg(), encoding="utf-8")
        print(f"wrote {arguments[0]}")


if __name__ == "__main__":
    main(sys.argv[1:])
