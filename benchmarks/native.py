"""Native code against the NumPy evaluator on the same graphs: what fusion and vector functions bring."""

from __future__ import annotations

import importlib.util
import sys
from typing import Any

import numpy as np

import wonderland as wl

from .interleaved import best_times
from .options import Options
from .printed import compared, comparison


def _numbers(*shape: int) -> wl.Tensor:
    return wl.asarray(np.random.default_rng(0).normal(size=shape).astype(np.float32) * 0.1)


def _mlp(params: Any, x: wl.Tensor, y: wl.Tensor) -> wl.Tensor:
    w1, b1, w2, b2 = params
    return ((wl.tanh(x @ w1 + b1) @ w2 + b2 - y) ** 2).mean()


def _adam(p: Any, g: Any, m: Any, v: Any) -> Any:
    m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
    return p - 0.001 * m / (wl.sqrt(v) + 1e-8), m, v


def main(options: Options | None = None) -> None:
    if importlib.util.find_spec("llvmlite") is None:
        print("llvmlite is not installed (pip install llvmlite): no native code", file=sys.stderr)
        return
    table = comparison("Native code", options or Options())
    million = _numbers(1000, 1000)
    params = [_numbers(64, 128), _numbers(128), _numbers(128, 10), _numbers(10)]
    programs: dict[str, tuple[Any, tuple[Any, ...]]] = {
        "tanh(x) * exp(-x^2), 1000 x 1000": (lambda x: wl.tanh(x) * wl.exp(-x * x), (million,)),
        "softmax, 1000 x 1000": (wl.softmax, (million,)),
        "update of Adam, a million parameters": (_adam, (million, million, million, million**2)),
        "value and gradient of a 2-layer network": (
            wl.value_and_grad(_mlp),
            (params, _numbers(32, 64), _numbers(32, 10)),
        ),
    }
    for title, (f, args) in programs.items():
        compiled = wl.jit(f)

        def run(name: str, compiled: Any = compiled, args: Any = args) -> Any:
            with wl.using_backend(name):
                return compiled(*args)

        times = best_times({"numpy": lambda run=run: run("numpy"), "native": lambda run=run: run("native")})  # type: ignore[misc]
        table.row(title, *compared(times["native"] * 1e6, times["numpy"] * 1e6, "us", "the NumPy evaluator", "below 1"))


if __name__ == "__main__":
    main()
