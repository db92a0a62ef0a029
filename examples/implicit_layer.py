"""A layer that solves a problem: its derivative without differentiating the solver.

    python examples/implicit_layer.py

The layer returns y*(theta) = argmin_y g(y, theta). However it was found, at the minimum the gradient by y
is zero for every theta:  g_y(y*(theta), theta) = 0.  Differentiating this equation gives  H y*' = -g_yt
with the Hessian H = g_yy, so an adjoint v of y* becomes the adjoint  -(H^-1 v)^T g_yt  of theta: one linear
solve, however many iterations the solver took. The same works for a fixed point y = f(y, theta).
"""

from __future__ import annotations

from collections.abc import Callable

import wonderland as wl

Function = Callable[[wl.Tensor, wl.Tensor], wl.Tensor]


def argmin_layer(g: Function, start: wl.Tensor, iterations: int = 20) -> Callable[[wl.Tensor], wl.Tensor]:
    """theta -> argmin_y g(y, theta) for a strictly convex g, by Newton's method from `start`."""
    slope = wl.grad(g)  # g_y
    curvature = wl.hessian(g)  # g_yy

    @wl.custom_vjp
    def solve(theta: wl.Tensor) -> wl.Tensor:
        y = start
        for _ in range(iterations):
            y = y - wl.linalg.solve(curvature(y, theta), slope(y, theta))
        return y

    def forward(theta: wl.Tensor) -> tuple[wl.Tensor, tuple[wl.Tensor, wl.Tensor]]:
        y = solve(theta)
        return y, (y, theta)

    def backward(residuals: tuple[wl.Tensor, wl.Tensor], v: wl.Tensor) -> tuple[wl.Tensor]:
        y, theta = residuals
        u = wl.linalg.solve(curvature(y, theta), v)  # H is symmetric
        _, pull = wl.vjp(lambda t: slope(y, t), theta)
        return (-pull(u)[0],)

    solve.defvjp(forward, backward)
    return solve


def fixed_point_layer(f: Function, start: wl.Tensor, iterations: int = 100) -> Callable[[wl.Tensor], wl.Tensor]:
    """theta -> the y with y = f(y, theta), for a contraction f, by iterating.

    Backwards another fixed point is found: u = v + u^T f_y; then u^T f_t is the adjoint of theta.
    """

    @wl.custom_vjp
    def solve(theta: wl.Tensor) -> wl.Tensor:
        y = start
        for _ in range(iterations):
            y = f(y, theta)
        return y

    def forward(theta: wl.Tensor) -> tuple[wl.Tensor, tuple[wl.Tensor, wl.Tensor]]:
        y = solve(theta)
        return y, (y, theta)

    def backward(residuals: tuple[wl.Tensor, wl.Tensor], v: wl.Tensor) -> tuple[wl.Tensor]:
        y, theta = residuals
        _, pull = wl.vjp(f, y, theta)
        u = v
        for _ in range(iterations):
            u = v + pull(u)[0]
        return (pull(u)[1],)

    solve.defvjp(forward, backward)
    return solve


A = wl.tensor([[2.0, 0.5], [0.5, 1.0]], dtype=wl.float64)


def energy(y: wl.Tensor, theta: wl.Tensor) -> wl.Tensor:
    """A strictly convex function without a closed form for its minimum."""
    return 0.5 * y @ (A @ y) - theta @ y + wl.softplus(3 * y).sum()


def contraction(y: wl.Tensor, theta: wl.Tensor) -> wl.Tensor:
    """One layer of a network that is applied until nothing changes."""
    return 0.5 * wl.tanh(A @ y * 0.4 + theta)


def differences(f: Callable[[wl.Tensor], wl.Tensor], theta: wl.Tensor, h: float = 1e-5) -> wl.Tensor:
    """The gradient of f by central differences."""
    steps = wl.eye(len(theta), dtype=wl.float64) * h
    return wl.stack([(f(theta + e) - f(theta - e)) / (2 * h) for e in steps])


def main() -> None:
    theta = wl.tensor([0.7, -0.3], dtype=wl.float64)
    start = wl.zeros(2, dtype=wl.float64)
    layers = {"argmin": argmin_layer(energy, start), "fixed point": fixed_point_layer(contraction, start)}
    for name, layer in layers.items():

        def loss(theta: wl.Tensor, layer: Callable[[wl.Tensor], wl.Tensor] = layer) -> wl.Tensor:
            return (layer(theta) ** 2).sum()

        gradient, numerical = wl.grad(loss)(theta), differences(loss, theta)
        print(f"{name}: y* = {layer(theta).tolist()}")
        print(f"  gradient by the implicit function theorem {gradient.tolist()}")
        print(f"  largest difference from finite differences {wl.abs(gradient - numerical).max().item():.1e}")


if __name__ == "__main__":
    main()
