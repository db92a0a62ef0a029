"""Three ways to a derivative: symbolic, numerical, automatic (the book's section 6.1.2 and Box C.6.1).

    python examples/symbolic_comparison.py

Symbolic differentiation gives a formula, numerical differentiation an approximation from two values,
automatic differentiation the exact number from the program that computes f.
"""

from __future__ import annotations

import wonderland as wl

A, B = 2.0, 3.0


def f(x: wl.Tensor) -> wl.Tensor:
    """f(x) = a sin(x) + b x sin(x)"""
    return A * wl.sin(x) + B * x * wl.sin(x)


def automatic(x: float) -> float:
    return wl.grad(f)(wl.tensor(x, dtype=wl.float64)).item()


def numerical(x: float, h: float = 1e-5) -> float:
    above, below = (f(wl.tensor(x + s * h, dtype=wl.float64)).item() for s in (1, -1))
    return (above - below) / (2 * h)


def main() -> None:
    try:
        import sympy as sp
    except ImportError:
        print("SymPy is not installed; `pip install sympy` shows the symbolic derivative, too.")
        symbolic = None
    else:
        x, a, b = sp.symbols("x a b")
        derivative = sp.diff(a * sp.sin(x) + b * x * sp.sin(x), x)
        print("symbolic: f'(x) =", derivative)
        symbolic = sp.lambdify(x, derivative.subs({a: A, b: B}), "math")

    print(f"\n{'x':>5} {'automatic':>20} {'error of numerical':>20} {'automatic - symbolic':>22}")
    for point in (-2.0, -0.5, 0.0, 1.0, 3.0):
        exact = automatic(point)
        line = f"{point:5.1f} {exact:20.15f} {abs(numerical(point) - exact):20.1e}"
        print(line if symbolic is None else f"{line} {exact - symbolic(point):22.1e}")

    print("\nThe numerical derivative at 1 for different steps: cut too coarse above, rounded away below.")
    for h in (1e-1, 1e-3, 1e-5, 1e-7, 1e-9, 1e-11, 1e-13):
        print(f"  h = {h:5.0e}   error {abs(numerical(1.0, h) - automatic(1.0)):.1e}")


if __name__ == "__main__":
    main()
