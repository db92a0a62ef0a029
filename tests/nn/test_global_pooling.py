"""Pooling over all places, over features, and by norms: closed forms, masks, and derivatives."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import wonderland as wl
from wonderland import nn
from wonderland.errors import InputError, ShapeError

F = nn.functional
POOLS = {"avg": F.global_avg_pool, "max": F.global_max_pool, "sum": F.global_sum_pool}
NUMPY = {"avg": np.mean, "max": np.max, "sum": np.sum}


def normal(*shape: int, seed: int = 0) -> Any:
    return np.random.default_rng([seed, *shape]).normal(size=shape)


@pytest.mark.book("7-41", "7-40", "8-20", name=("wl.nn.GlobalAvgPool", "wl.nn.GlobalMaxPool", "wl.nn.GlobalSumPool"))
@pytest.mark.parametrize("kind", POOLS)
@pytest.mark.parametrize("axes", [1, 2, 3])
def test_over_all_places(kind, axes):
    x = normal(2, *(5, 4, 3)[:axes], 3)
    over = tuple(range(1, axes + 1))
    expected = NUMPY[kind](x, axis=over)
    np.testing.assert_allclose(POOLS[kind](x, axes), expected, rtol=1e-12)
    assert POOLS[kind](x, axes, keepdims=True).shape == (2, *[1] * axes, 3)
    # the order of places does not matter
    flat = x.reshape(2, -1, 3)
    shuffled = flat[:, np.random.default_rng(0).permutation(flat.shape[1])].reshape(x.shape)
    np.testing.assert_allclose(POOLS[kind](shuffled, axes), expected, rtol=1e-12)


@pytest.mark.book("7-41", "8-20", name=("wl.nn.functional.global_avg_pool", "wl.nn.functional.global_sum_pool"))
def test_adjoints_and_repetition():
    x, v = wl.asarray(normal(3, 4, 2)), wl.asarray(normal(2))
    pulled = {kind: np.asarray(wl.vjp(f, x)[1](v)[0]) for kind, f in POOLS.items()}
    np.testing.assert_allclose(pulled["sum"], np.broadcast_to(v, (3, 4, 2)))
    np.testing.assert_allclose(pulled["avg"], np.broadcast_to(v, (3, 4, 2)) / 12)
    hot = np.asarray(x) == np.asarray(x).max((0, 1))
    np.testing.assert_allclose(pulled["max"], hot * np.asarray(v))
    s = normal(5, 2)
    twice = np.concatenate([s, s])
    np.testing.assert_allclose(F.global_avg_pool(twice, 1), F.global_avg_pool(s, 1), rtol=1e-12)
    np.testing.assert_allclose(F.global_sum_pool(twice, 1), 2 * np.asarray(F.global_sum_pool(s, 1)), rtol=1e-12)


@pytest.mark.book("8-25", "8-24", name=("wl.nn.GlobalAvgPool", "wl.nn.GlobalMaxPool"))
@pytest.mark.parametrize("kind", [nn.GlobalAvgPool, nn.GlobalMaxPool, nn.GlobalSumPool])
def test_padding_leaks_unless_masked(kind):
    """Convolutions with a bias fill the padding; zeros between layers and pooling by the mask repair that."""
    lengths = [6, 3]
    sequences = [normal(n, 2, seed=n) - 3.0 for n in lengths]  # below 0, so that the padding has the largest numbers
    padded = np.zeros((2, 6, 2))
    for row, s in zip(padded, sequences, strict=True):
        row[: len(s)] = s
    mask = wl.asarray(np.arange(6) < np.array(lengths)[:, None])
    np.testing.assert_array_equal(np.asarray(mask).astype(int), [[1] * 6, [1, 1, 1, 0, 0, 0]])
    first, second = (nn.Conv1d(2, 2, 3, padding="same", dtype=wl.float64) for _ in range(2))
    pool = kind(axes=1)

    def model(x, mask=None):
        h = wl.tanh(first(x))
        h = second(h if mask is None else wl.where(mask[..., None], h, 0.0))
        return pool(h, mask)

    alone = [np.asarray(model(s)) for s in sequences]
    np.testing.assert_allclose(model(padded, mask), alone, rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(wl.jit(model)(wl.asarray(padded), mask), alone, rtol=1e-12, atol=1e-13)
    assert not np.allclose(np.asarray(model(padded))[1], alone[1])
    # the gradient is that of the sequence alone
    of_batch = wl.grad(lambda x: (model(x, mask)[1] ** 2).sum())(wl.asarray(padded))
    of_one = wl.grad(lambda x: (model(x) ** 2).sum())(wl.asarray(sequences[1]))
    np.testing.assert_allclose(np.asarray(of_batch)[1, :3], of_one, rtol=1e-10, atol=1e-12)


def test_masks_without_places():
    x, none = wl.asarray(normal(3, 2)), wl.zeros(3, dtype=bool)
    np.testing.assert_array_equal(F.global_avg_pool(x, 1, mask=none), [0, 0])
    assert np.isneginf(np.asarray(F.global_max_pool(x, 1, mask=none))).all()
    assert not np.isnan(np.asarray(wl.grad(lambda x: F.global_avg_pool(x, 1, mask=none).sum())(x))).any()


# --- features


@pytest.mark.book("A6-20", name=("wl.nn.FeatureMaxPool", "wl.nn.FeatureAvgPool"))
def test_over_features():
    x = normal(2, 3, 6)
    groups = x.reshape(2, 3, 2, 3)
    np.testing.assert_array_equal(nn.FeatureMaxPool(3)(x), groups.max(-1))
    np.testing.assert_allclose(nn.FeatureAvgPool(3)(x), groups.mean(-1), rtol=1e-12)
    wl.check_grads(nn.FeatureMaxPool(3), (wl.asarray(x),))
    # the whole derivative goes to the largest, to the first of equal ones
    one = wl.grad(lambda x: F.feature_max_pool(x, 2).sum())(wl.tensor([1.0, 4.0, 2.0, 2.0]))
    np.testing.assert_array_equal(one, [0, 1, 1, 0])


@pytest.mark.book("A6-20", "A6-21", name="wl.nn.functional.max_pool1d")
def test_spatial_pooling_ignores_small_shifts():
    x = np.zeros((8, 1))
    x[4] = 1.0
    np.testing.assert_array_equal(F.max_pool1d(np.roll(x, 1, 0), 2), F.max_pool1d(x, 2))  # within a window
    assert not np.array_equal(F.max_pool1d(np.roll(x, 2, 0), 2), F.max_pool1d(x, 2))
    gradient = wl.grad(lambda x: F.max_pool1d(x, 2).sum())(wl.asarray(x + 0.01 * np.arange(8.0)[:, None]))
    np.testing.assert_array_equal(gradient[:, 0], [0, 1, 0, 1, 1, 0, 0, 1])


# --- norms


@pytest.mark.parametrize("p", [1, 2, 3, 2.5])
@pytest.mark.parametrize("layer, axes", [(nn.LPPool1d, 1), (nn.LPPool2d, 2), (nn.LPPool3d, 3)])
def test_norms_of_windows(p, layer, axes):
    x = normal(2, *(4, 6, 2)[:axes], 2)
    y = np.asarray(layer(p, 2)(x))
    patches = np.asarray(F.extract_patches(x, 2, stride=2, axes=axes))
    over = tuple(range(1 + axes, 1 + 2 * axes))
    signed = p in (1, 3)
    sums = ((patches if signed else np.abs(patches)) ** p).sum(over)
    expected = np.sign(sums) * np.abs(sums) ** (1 / p)
    np.testing.assert_allclose(y, expected, rtol=1e-10, atol=1e-12)
    wl.check_grads(lambda x: wl.sin(layer(p, 2)(x)), (wl.asarray(np.abs(x) + 0.3),))


def test_norms_at_the_ends():
    x = normal(1, 4, 4, 2)
    np.testing.assert_array_equal(F.lp_pool2d(x, math.inf, 2), F.max_pool2d(x, 2))
    zero = wl.grad(lambda x: F.lp_pool2d(x, 2, 2).sum())(wl.zeros((4, 4, 1)))
    np.testing.assert_array_equal(zero, 0.0)
    many = F.lp_pool2d(x[None, None], 2, 2)
    np.testing.assert_allclose(many[0, 0], F.lp_pool2d(x, 2, 2))


@pytest.mark.parametrize(
    "call, error, message",
    [
        (lambda: F.global_avg_pool(wl.ones((3, 2))), ShapeError, r"shape \(3, 2\) with 2 spatial axes"),
        (lambda: nn.GlobalMaxPool(axes=1)(wl.ones((2, 0, 3))), ShapeError, r"shape \(2, 0, 3\)"),
        (lambda: F.global_avg_pool(wl.ones((2, 5, 3)), 1, mask=wl.ones((2, 4))), ShapeError, r"mask of shape \(2, 4\)"),
        (lambda: F.feature_max_pool(wl.ones(5), 2), ShapeError, r"shape \(5,\) do not divide into groups of 2"),
        (lambda: nn.LPPool1d(0, 2)(wl.ones((4, 1))), InputError, "norm_type=0"),
        (lambda: nn.LPPool1d(2, 5)(wl.ones((4, 1))), ShapeError, r"LPPool1d\(norm_type=2, kernel_size=5\)"),
    ],
)
def test_errors(call, error, message):
    with pytest.raises(error, match=message):
        call()
