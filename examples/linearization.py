"""A function and its linearization (the book's section 2.2.3 and Box C.2.6).

    python examples/linearization.py [picture.svg]

Near x0 a differentiable function is almost its tangent: f(x0 + h) = f(x0) + f'(x0) h + O(h²). For this
parabola the error is exactly h².
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import wonderland as wl
from wonderland import viz


def f(x: wl.Tensor) -> wl.Tensor:
    return x**2 - 1.5 * x


def linearized(x0: float) -> Callable[[wl.Tensor], wl.Tensor]:
    """The tangent of f at x0 as a function of x. One run of f serves all its values."""
    at = wl.tensor(x0, dtype=wl.float64)
    value, slope = wl.linearize(f, at)
    return lambda x: value + slope(x - at)


def picture() -> str:
    """f with the tangents at 0.5 and 1.25 (the book's figures F.2.1 and F.2.2)."""
    x = wl.linspace(-0.5, 2.2, 200, dtype=wl.float64)
    curves = [viz.Curve(x, f(x), "f(x) = x² − 1.5x")]
    touching = [0.5, 1.25]
    for x0 in touching:
        tangent = wl.vmap(linearized(x0))
        curves.append(viz.Curve(x, tangent(x), f"tangent at {x0}", dashed=True))
    curves.append(viz.Curve(touching, f(wl.tensor(touching)), dots=True))
    return viz.plot(curves, title="A function and its linearizations", y_label="y", y_range=(-1.0, 1.2))


def main(arguments: list[str]) -> None:
    tangent = linearized(0.5)
    print(f"f'(0.5) = {wl.grad(f)(0.5):.4f}")
    print(f"{'h':>8} {'f(0.5 + h)':>14} {'linearization':>14} {'error':>10}")
    for h in (0.1, 0.01, 0.001):
        x = wl.tensor(0.5 + h, dtype=wl.float64)
        print(f"{h:8g} {f(x):14.6f} {tangent(x):14.6f} {(f(x) - tangent(x)).item():10.1e}")
    if arguments:
        Path(arguments[0]).write_text(picture(), encoding="utf-8")
        print(f"wrote {arguments[0]}")


if __name__ == "__main__":
    main(sys.argv[1:])
