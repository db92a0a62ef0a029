"""Long sums lose no digits, whatever their shape, and read nothing that was not written."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import wonderland as wl
from wonderland.nn.functional import conv1d, conv2d

# Rows, columns, axes in between, and lengths that are no multiples of anything; at least 100,000 terms along some axis.
SHAPES = [(1000003,), (7, 150001), (150001, 7), (300, 5, 435), (3, 70000, 5), (40, 50, 60, 9), (100003, 2, 3)]


def positive(*shape: int) -> Any:
    """Numbers whose running sum in float32 drifts away from the true one."""
    return np.random.default_rng(sum(shape)).uniform(0.0, 1.0, shape).astype(np.float32)


def error(found: Any, truth: Any) -> float:
    """The largest difference, in units of the largest number."""
    return float(np.max(np.abs(np.asarray(found, np.float64) - truth)) / np.max(np.abs(truth)))


@pytest.mark.parametrize("shape", SHAPES)
def test_sums_over_all_axes_keep_their_digits(shape: tuple[int, ...]) -> None:
    x = positive(*shape)
    tensor = wl.asarray(x)
    for count in range(1, len(shape) + 1):
        for axes in itertools.combinations(range(len(shape)), count):
            with wl.debug.filled_memory():
                found = wl.jit(wl.sum, static_argnames="axis")(tensor, axis=axes)
            assert error(found, x.sum(axis=axes, dtype=np.float64)) < 1e-6


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_sums_beside_stores_of_single_columns(dtype: str) -> None:
    """Its rows have no axis of their own."""
    x, weight = wl.ones((50001, 1), dtype=dtype), wl.arange(50001).reshape(50001, 1).astype(dtype)
    total, slope = wl.jit(wl.value_and_grad(lambda x: (wl.sin(x) * wl.cos(weight)).sum()))(x)
    terms = np.cos(np.asarray(weight, np.float64))
    assert error(slope, np.cos(1.0) * terms) < 4 * float(wl.finfo(dtype).eps)
    assert abs(float(total) - np.sin(1.0) * terms.sum()) < 300 * float(wl.finfo(dtype).eps)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("shape", [(3, 5, 4335), (2000, 3, 37), (5, 700, 64)])
def test_reductions_of_inner_axes_read_only_what_was_written(shape: tuple[int, ...], dtype: str) -> None:
    x = wl.astype(wl.asarray(positive(*shape)), dtype)
    truth = np.asarray(x, np.float64)
    unit = float(wl.finfo(dtype).eps)
    for axis in range(3):
        with wl.debug.filled_memory():
            total, largest, share = wl.jit(lambda z: (wl.sum(z, axis), wl.max(z, axis), wl.softmax(z, axis)))(x)  # noqa: B023
        np.testing.assert_array_equal(np.asarray(largest, np.float64), truth.max(axis))
        assert error(total, truth.sum(axis)) < unit + 1e-6
        weights = np.exp(truth - truth.max(axis, keepdims=True))
        assert error(share, weights / weights.sum(axis, keepdims=True)) < 4 * unit + 1e-6


def test_an_expression_that_cannot_be_flattened_is_summed_in_parts() -> None:
    rng = np.random.default_rng(0)
    u, c = rng.standard_normal((4, 4096, 256)).astype(np.float32), rng.standard_normal(256).astype(np.float32)
    truth = np.mean(np.square(c.astype(np.float64) * u))
    found = wl.jit(lambda u, c: ((c * u) * (c * u)).mean())(wl.asarray(u), wl.asarray(c))
    assert error(found, truth) < 1e-6


@pytest.mark.parametrize("m, k, n", [(1, 1000003, 1), (3, 100001, 5), (17, 50000, 33), (8, 70001, 1), (64, 3001, 40)])
def test_products_keep_their_digits_in_every_orientation(m: int, k: int, n: int) -> None:
    x, y = positive(m, k), positive(k, n)
    truth = x.astype(np.float64) @ y
    for left, right in itertools.product([False, True], repeat=2):
        a, b = x.T.copy() if left else x, y.T.copy() if right else y
        with wl.debug.filled_memory():
            found = wl.jit(lambda a, b, p=left, q=right: (a.T if p else a) @ (b.T if q else b))(
                wl.asarray(a), wl.asarray(b)
            )
        assert error(found, truth) < 2e-6


@pytest.mark.parametrize("channels, taps", [(1, 5000), (3, 2000), (600, 3)])
def test_convolutions_with_long_filters_keep_their_digits(channels: int, taps: int) -> None:
    x, w = positive(1, taps + 20, channels), positive(taps, channels, 4)
    windows = np.lib.stride_tricks.sliding_window_view(x[0].astype(np.float64), taps, axis=0)  # (21, channels, taps)
    found = wl.jit(conv1d)(wl.asarray(x), wl.asarray(w))
    assert error(found[0], np.einsum("pct,tco->po", windows, w.astype(np.float64))) < 2e-6


def test_the_gradient_of_a_filter_keeps_its_digits() -> None:
    x, ct, w = positive(24, 66, 66, 3), positive(24, 64, 64, 4), positive(3, 3, 3, 4)
    found = wl.jit(wl.grad(lambda w: (conv2d(wl.asarray(x), w) * wl.asarray(ct)).sum()))(wl.asarray(w))
    truth = np.zeros(w.shape)
    for i, j in itertools.product(range(3), repeat=2):
        truth[i, j] = np.einsum("bhwc,bhwo->co", x[:, i : i + 64, j : j + 64], ct, dtype=np.float64)
    assert error(found, truth) < 2e-6


@pytest.mark.parametrize("shape, axis", [((1000003,), 0), ((3, 30001), 1), ((30001, 5), 0)])
@pytest.mark.parametrize("reverse", [False, True])
def test_running_sums_keep_their_digits(shape: tuple[int, ...], axis: int, reverse: bool) -> None:
    x = positive(*shape)
    truth = np.cumsum(np.flip(x, axis) if reverse else x, axis=axis, dtype=np.float64)
    run = wl.jit(lambda x: wl.flip(wl.cumsum(wl.flip(x, axis), axis), axis) if reverse else wl.cumsum(x, axis))
    found = np.asarray(run(wl.asarray(x)))
    assert error(np.flip(found, axis) if reverse else found, truth) < 2e-6


def test_many_updates_of_one_place_keep_their_digits() -> None:
    x = positive(200_000)
    found = wl.jit(lambda x: wl.zeros(3).at[wl.zeros(200_000, dtype="int64") + 1].add(x))(wl.asarray(x))
    np.testing.assert_allclose(np.asarray(found), [0.0, x.sum(dtype=np.float64), 0.0], rtol=1e-6)
    assert found.dtype == wl.float32
