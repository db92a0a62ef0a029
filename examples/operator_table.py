"""How adjoints pass through common operators: the table of the notes' section 3.3.8, every row checked.

    python examples/operator_table.py

For an operator Z = f(A, B) and the adjoint dZ of its result, the table gives the adjoints dA and dB. Each row is the
rule in words, the operator, its arguments, and the rule as code; the check compares the code with `wl.vjp`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import wonderland as wl


class Row(NamedTuple):
    operator: str
    rule: str
    f: Callable[..., wl.Tensor]
    args: tuple[wl.Tensor, ...]
    backward: Callable[..., tuple[Any, ...]]  # (dZ, *args) -> adjoints of the arguments


def table(seed: int = 0) -> list[Row]:
    rng = np.random.default_rng(seed)

    def m(*shape: int) -> wl.Tensor:
        return wl.asarray(rng.uniform(0.5, 2.0, shape) * rng.choice([-1.0, 1.0], shape))

    a, b, positive = m(3, 4), m(3, 4), wl.asarray(rng.uniform(0.5, 2.0, (3, 4)))
    target = wl.one_hot(wl.asarray(rng.integers(0, 4, 3)), 4, dtype=wl.float64)
    return [
        Row("A + B", "copy to both", lambda a, b: a + b, (a, b), lambda d, a, b: (d, d)),
        Row("A - B", "copy, and negate for B", lambda a, b: a - b, (a, b), lambda d, a, b: (d, -d)),
        Row("A * B", "swap: times the other one", lambda a, b: a * b, (a, b), lambda d, a, b: (d * b, d * a)),
        Row("A / B", "dZ / B,  -dZ Z / B", lambda a, b: a / b, (a, b), lambda d, a, b: (d / b, -d * a / b**2)),
        Row("A @ B", "dZ B^T,  A^T dZ", lambda a, b: a @ b, (a, m(4, 2)), lambda d, a, b: (d @ b.T, a.T @ d)),
        Row("A^T", "transpose", lambda a: a.T, (a,), lambda d, a: (d.T,)),
        Row("sum(A)", "broadcast", lambda a: a.sum(), (a,), lambda d, a: (wl.broadcast_to(d, a.shape),)),
        Row("sum over rows", "broadcast along them", lambda a: a.sum(axis=0), (a,), lambda d, a: (d + 0 * a,)),
        Row(
            "mean(A)",
            "broadcast, divide by the count",
            lambda a: a.mean(),
            (a,),
            lambda d, a: (d / a.size + 0 * a,),
        ),
        Row(
            "broadcast a row",
            "sum over the copies",
            lambda a: wl.broadcast_to(a, (3, 4)),
            (m(4),),
            lambda d, a: (d.sum(axis=0),),
        ),
        Row(
            "concatenate A, B",
            "split",
            lambda a, b: wl.concat([a, b]),
            (a, m(2, 4)),
            lambda d, a, b: (d[:3], d[3:]),
        ),
        Row(
            "A[1:3]",
            "put back, zeros elsewhere",
            lambda a: a[1:3],
            (a,),
            lambda d, a: (wl.zeros_like(a).at[1:3].add(d),),
        ),
        Row(
            "A[[0, 0, 2]]",
            "add at the indices",
            lambda a: a[wl.tensor([0, 0, 2])],
            (a,),
            lambda d, a: (wl.stack([d[0] + d[1], wl.zeros(4, dtype=wl.float64), d[2]]),),
        ),
        Row(
            "max over rows",
            "to the winner only",
            lambda a: a.max(axis=0),
            (a,),
            lambda d, a: (wl.where(a == a.max(axis=0), d, 0.0),),
        ),
        Row("max(A, B)", "to the winner only", wl.maximum, (a, b), lambda d, a, b: (d * (a > b), d * (a < b))),
        Row("exp(A)", "dZ * Z", wl.exp, (a,), lambda d, a: (d * wl.exp(a),)),
        Row("log(A)", "dZ / A", wl.log, (positive,), lambda d, a: (d / a,)),
        Row("sqrt(A)", "dZ / (2 Z)", wl.sqrt, (positive,), lambda d, a: (d / (2 * wl.sqrt(a)),)),
        Row("A^2", "2 A dZ", wl.square, (a,), lambda d, a: (2 * a * d,)),
        Row(
            "sigmoid(A)",
            "dZ * Z (1 - Z)",
            wl.sigmoid,
            (a,),
            lambda d, a: (d * wl.sigmoid(a) * (1 - wl.sigmoid(a)),),
        ),
        Row("tanh(A)", "dZ * (1 - Z^2)", wl.tanh, (a,), lambda d, a: (d * (1 - wl.tanh(a) ** 2),)),
        Row("relu(A)", "dZ where A > 0", wl.relu, (a,), lambda d, a: (wl.where(a > 0, d, 0.0),)),
        Row(
            "softmax(A)",
            "Z * (dZ - sum(dZ Z))",
            wl.softmax,
            (a,),
            lambda d, a: (wl.softmax(a) * (d - (d * wl.softmax(a)).sum(axis=-1, keepdims=True)),),
        ),
        Row(
            "softmax, cross-entropy",
            "dZ * (softmax(A) - Y)",
            lambda a: -(target * wl.log_softmax(a)).sum(),
            (a,),
            lambda d, a: (d * (wl.softmax(a) - target),),
        ),
    ]


def largest_error(row: Row, seed: int = 1) -> float:
    """The largest difference between the row's rule and reverse mode, for a random adjoint."""
    value, pull = wl.vjp(row.f, *row.args)
    adjoint = wl.asarray(np.random.default_rng(seed).normal(size=value.shape))
    pairs = zip(pull(adjoint), row.backward(adjoint, *row.args), strict=True)
    return max(wl.abs(found - expected).max().item() for found, expected in pairs)


def main() -> None:
    print(f"{'Z':24} {'adjoints of the arguments':34} {'difference from wl.vjp'}")
    for row in table():
        print(f"{row.operator:24} {row.rule:34} {largest_error(row):.1e}")


if __name__ == "__main__":
    main()
