"""A gradient by hand and by machine, for many points at once (the book's exercises of chapter 2).

    python examples/gradient_by_hand.py

f(x) = sin(x1) cos(x2) + sin(x1 / 2) cos(x2 / 2), and gradient ascent on it.
"""

from __future__ import annotations

import wonderland as wl


def f(x: wl.Tensor) -> wl.Tensor:
    """The function for points x of shape (..., 2); the result has shape (...)."""
    x1, x2 = x[..., 0], x[..., 1]
    return wl.sin(x1) * wl.cos(x2) + wl.sin(0.5 * x1) * wl.cos(0.5 * x2)


def gradient_by_hand(x: wl.Tensor) -> wl.Tensor:
    """Both partial derivatives, of shape (..., 2)."""
    x1, x2 = x[..., 0], x[..., 1]
    return wl.stack(
        [
            wl.cos(x1) * wl.cos(x2) + 0.5 * wl.cos(0.5 * x1) * wl.cos(0.5 * x2),
            -wl.sin(x1) * wl.sin(x2) - 0.5 * wl.sin(0.5 * x1) * wl.sin(0.5 * x2),
        ],
        axis=-1,
    )


def gradient_by_machine(x: wl.Tensor) -> wl.Tensor:
    """The gradient of f at one point, applied to all rows of x, shape (n, 2)."""
    return wl.vmap(wl.grad(f))(x)


def main() -> None:
    grid = wl.linspace(0.0, 10.0, 40, dtype=wl.float64)
    points = wl.stack(wl.meshgrid(grid, grid, indexing="ij"), axis=-1).reshape(-1, 2)  # (1600, 2)
    difference = wl.abs(gradient_by_hand(points) - gradient_by_machine(points)).max()
    print(f"largest difference at {len(points)} points: {difference.item():.1e}")
    for point in ([1.0, 1.0], [5.0, 5.0]):
        x = wl.tensor([point], dtype=wl.float64)
        by_hand = ", ".join(f"{d:.6f}" for d in gradient_by_hand(x)[0].tolist())
        print(f"at {point}: f = {f(x)[0]:.6f}, gradient ({by_hand})")

    x = wl.tensor([[4.0, 5.0]], dtype=wl.float64)
    for _ in range(200):
        x = x + 0.1 * gradient_by_machine(x)
    place = ", ".join(f"{c:.4f}" for c in x[0].tolist())
    print(f"climbing from (4, 5) ends at ({place}) with f = {f(x)[0]:.4f}")


if __name__ == "__main__":
    main()
