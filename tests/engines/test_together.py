"""Kernels of long functions compute several vectors together, and nobody sees it but in the time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import wonderland as wl
from wonderland.engines.native.kernels.kernel import Kernel
from wonderland.engines.native.machine import machine
from wonderland.engines.native.schedule import Schedule
from wonderland.engines.native.tuning import INTERLEAVED

gelu = wl.nn.functional.gelu
LANES = machine().cpu.lanes(4)


def normal(*shape: int, dtype: Any = np.float32) -> wl.Tensor:
    return wl.tensor(np.random.default_rng(0).normal(size=shape).astype(dtype))


def widths(f: Callable[..., Any], *args: wl.Tensor) -> list[int]:
    graph = wl.jit(f).graph(*args)
    return [step.width for step in Schedule(graph, machine().cpu).steps if isinstance(step, Kernel)]


def test_long_functions_of_many_elements_are_computed_together() -> None:
    assert widths(gelu, normal(300, 333)) == [INTERLEAVED * LANES]
    assert widths(lambda x: wl.maximum(x, 0.0), normal(300, 333)) == [LANES]  # waits for memory
    assert widths(gelu, normal(30, 33)) == [LANES]  # compiling takes longer than it saves
    assert widths(lambda x: wl.exp(x.T), normal(300, 333)) == [LANES]  # lanes are gathered one by one
    assert set(widths(wl.softmax, normal(300, 333))) == {LANES}  # or sums would have another order


@pytest.mark.parametrize("columns", [8 * LANES, 8 * LANES + 1, 11 * LANES - 1, 13 * LANES + 3, 333])
def test_rows_together_are_the_rows_alone(columns: int) -> None:
    x = normal(40_000 // columns * 2, columns)
    f = wl.jit(lambda x: (gelu(x), wl.tanh(x) * wl.exp(-x * x), wl.sin(x) > 0.5, wl.log(wl.abs(x)).sum(0)))
    *several, total = f(x)
    for i in (0, 1, len(x) - 1):
        for found, alone in zip(several, f(x[i : i + 1])[:-1], strict=True):
            np.testing.assert_array_equal(found[i].numpy(), alone[0].numpy())
    with wl.using_backend("numpy"):
        expected = f(x)
    for found, wanted in zip(several, expected[:-1], strict=True):
        np.testing.assert_allclose(found.numpy(), wanted.numpy(), rtol=2e-6, atol=1e-6)
    np.testing.assert_allclose(total.numpy(), expected[-1].numpy(), rtol=1e-5, atol=1e-3)


@pytest.mark.parametrize("dtype", [wl.float16, wl.bfloat16, wl.float64])
def test_other_types(dtype: Any) -> None:
    x = normal(50_003, dtype=np.float64).astype(dtype)
    found = wl.jit(wl.erf)(x).astype(wl.float64)
    rough = {wl.float16: 1e-3, wl.bfloat16: 8e-3, wl.float64: 1e-14}[dtype]
    with wl.using_backend("numpy"):
        expected = wl.erf(x.astype(wl.float64))
    np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=rough, atol=rough * 1e-3)
