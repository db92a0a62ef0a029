"""Pooling in native code against NumPy: padding, numbers that are not finite, and how often the input is copied."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import wonderland as wl
from wonderland.engines.native.kernels.kernel import Kernel
from wonderland.engines.numpy.evaluate import evaluate
from wonderland.primitives.pooling import window_argmax, window_pick

from .engines import native, same

F = wl.nn.functional
FLOATS = ["float16", "bfloat16", "float32", "float64"]
SETTINGS: list[dict[str, Any]] = [
    {"kernel_size": 3, "stride": 2, "padding": 1},
    {"kernel_size": 3, "stride": 1, "padding": 1},
    {"kernel_size": (2, 3), "stride": (1, 2), "padding": (1, 1), "dilation": (2, 1)},
    {"kernel_size": 3, "stride": 2, "padding": 1, "ceil_mode": True},
    {"kernel_size": 2, "stride": 2, "ceil_mode": True},
    {"kernel_size": 3, "stride": 3, "padding": ((2, 0), (0, 2))},
]


def special(shape: tuple[int, ...], dtype: str, seed: int = 0) -> Any:
    """Numbers with ties, and with many that are infinite or none."""
    rng = np.random.default_rng(seed)
    x = rng.integers(-3, 4, shape).astype(np.float32)
    x[rng.random(shape) < 0.4] = -np.inf
    x[rng.random(shape) < 0.05] = np.inf
    x[rng.random(shape) < 0.05] = np.nan
    x[0] = -np.inf
    return x.astype(wl.tensor(0.0, dtype=dtype).dtype)


def equal(f: Any, *arrays: Any) -> list[Any]:
    """Both engines give the same numbers; these."""
    program, arguments = native(f, *arrays)
    want = evaluate(program.graph, arguments)
    for x, y in zip(program(arguments), want, strict=True):
        np.testing.assert_array_equal(x.astype(np.float64), y.astype(np.float64))
    return want


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("settings", SETTINGS)
def test_the_largest_of_numbers_that_are_not_finite(settings: dict[str, Any], dtype: str) -> None:
    x = special((3, 7, 6, 5), dtype)
    (found,) = equal(lambda x: F.max_pool2d(x, **settings), x)
    assert (found[0] == -np.inf).all()  # padding is never the largest
    ct = np.arange(found.size).reshape(found.shape) % 7 + 1
    ct = ct.astype(x.dtype)
    (adjoint,) = equal(lambda x, ct: wl.vjp(lambda x: F.max_pool2d(x, **settings), x)[1](ct), x, ct)
    assert adjoint.astype(np.float64).sum() == ct.astype(np.float64).sum()  # nothing goes to padding


def test_the_largest_by_hand() -> None:
    x = wl.full((1, 4, 4, 1), -np.inf)
    for f in (F.max_pool2d, wl.jit(F.max_pool2d, static_argnums=(1, 2, 3))):
        assert (np.asarray(f(x, 3, 2, 1)) == -np.inf).all()
    gradient = wl.jit(
        wl.grad(lambda x: wl.where(F.max_pool2d(x, 3, 2, 1) < 0, 1.0, 0.0).sum() + F.max_pool2d(x, 3, 2, 1).sum())
    )
    places = np.asarray(gradient(x))[0, :, :, 0]
    np.testing.assert_array_equal(places, [[1, 1, 0, 0], [1, 1, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0]])


@pytest.mark.parametrize("dtype", ["float32", "int32", "uint8", "bool"])
def test_positions_are_those_of_elements(dtype: str) -> None:
    x = (special((2, 5, 6, 3), "float32") > 0).astype(dtype) if dtype != "float32" else special((2, 5, 6, 3), dtype)
    windows: Any = {"window": (3, 2), "stride": (2, 1), "padding": ((2, 1), (1, 0)), "dilation": (1, 2)}

    def f(x: Any) -> Any:
        index = window_argmax(x, **windows)
        return index, window_pick(x, index, **windows)

    index, _ = equal(f, x)
    rows, columns = np.divmod(index.astype(int), 2)
    down, across = np.arange(index.shape[1]) * 2 - 2, np.arange(index.shape[2]) - 1
    assert ((rows + down[:, None, None] >= 0) & (rows + down[:, None, None] < 5)).all()
    assert ((columns * 2 + across[:, None] >= 0) & (columns * 2 + across[:, None] < 6)).all()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("include", [False, True])
def test_means_of_numbers_that_are_not_finite(dtype: str, include: bool) -> None:
    x = special((2, 6, 5, 4), dtype)
    f = lambda x: F.avg_pool2d(x, 3, 2, 1, ceil_mode=True, count_include_pad=include)
    program, arguments = native(f, x)
    for got, want in zip(program(arguments), evaluate(program.graph, arguments), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-6)
    ct = np.ones(want.shape, dtype)
    same(lambda x, ct: wl.vjp(f, x)[1](ct), x, ct, rtol=1e-6)


@pytest.mark.parametrize("axes", [1, 3])
def test_forward_mode_and_batches(axes: int) -> None:
    shape = (2, *(5,) * axes, 3)
    pool = {1: F.max_pool1d, 3: F.max_pool3d}[axes]
    x, t = special((4, *shape), "float32"), np.ones((4, *shape), np.float32)
    f = lambda x: pool(x, 2, 2, 1)
    equal(wl.vmap(f), x)
    equal(lambda x, t: wl.vmap(lambda x, t: wl.jvp(f, (x,), (t,)))(x, t), x, t)


def kernels(f: Any, *arrays: Any) -> list[Kernel]:
    return [step for step in native(f, *arrays)[0].schedule.steps if isinstance(step, Kernel)]


def test_the_input_is_padded_once() -> None:
    x = np.ones((2, 8, 8, 3), np.float32)
    f = lambda x: F.max_pool2d(x, 3, stride=2, padding=1)
    assert [k.space for k in kernels(f, x)] == [(2, 10, 10, 3), (2, 8, 8, 3), (2, 4, 4, 3)]
    both = kernels(lambda x: wl.value_and_grad(lambda x: (f(x) ** 2).sum())(x), x)
    assert sum(k.space == (2, 10, 10, 3) for k in both) == 1


def test_what_is_given_back_is_computed_once() -> None:
    """Each of the 27 places of a window reads the adjoint: what is dear to compute is stored before."""
    x = np.linspace(-1, 1, 2 * 9 * 9 * 9 * 2, dtype=np.float32).reshape(2, 9, 9, 9, 2)
    f = wl.grad(lambda x: wl.tanh(wl.sin(F.avg_pool3d(x, 3))).sum())
    counted = [k.work[0] for k in kernels(f, x)]
    assert sum("sin" in text or "cos" in text for text in counted) <= 2
    same(f, x, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize(("k", "stride"), [*itertools.product((11, 32), (1, 11))])
def test_long_windows(k: int, stride: int) -> None:
    x = special((2, 70, 3), "float32")
    equal(lambda x: F.max_pool1d(wl.relu(x), k, stride), x)
    equal(wl.grad(lambda x: F.max_pool1d(x, k, stride).sum()), x)
