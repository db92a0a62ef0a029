"""Equivariance, invariance, locality and causality, and functions averaged over a group."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import wonderland as wl
from wonderland import nn
from wonderland.errors import InputError, ShapeError

F = nn.functional


def normal(*shape: int, seed: int = 0) -> Any:
    return np.random.default_rng([seed, *shape]).normal(size=shape)


def shift(*offsets: int) -> Any:
    return lambda x: wl.roll(wl.asarray(x), offsets, axis=tuple(range(len(offsets))))


@pytest.mark.book("7-20", "7-48", "A6-16", name=("wl.nn.check_equivariance", "wl.nn.assert_equivariant"))
@pytest.mark.parametrize("axes", [1, 2, 3])
def test_convolutions_commute_with_shifts(axes):
    layer = {1: nn.Conv1d, 2: nn.Conv2d, 3: nn.Conv3d}[axes]
    x, move = normal(*(9, 8, 8)[:axes], 2), shift(*(2, -1, 1)[:axes])
    circular = layer(2, 3, 3, padding=1, padding_mode="circular", dtype=wl.float64)
    nn.assert_equivariant(circular, x, move, rtol=1e-12, atol=1e-12)
    zeros = layer(2, 3, 3, padding=1, dtype=wl.float64)
    found = nn.check_equivariance(zeros, x, move, margin=3)
    assert found.interior < 1e-12
    assert found.border > 1e-3
    with pytest.raises(AssertionError, match="differ by"):
        nn.assert_equivariant(zeros, x, move)
    # it is not invariant, and a flattened layer is not even equivariant
    assert nn.check_invariance(circular, x, move) > 1e-3
    dense = wl.asarray(normal(x.size, x.size)) / x.size
    assert nn.check_equivariance(lambda a: (wl.reshape(a, (-1,)) @ dense).reshape(x.shape), x, move).interior > 1e-3


@pytest.mark.book("7-21", name="wl.nn.check_equivariance")
def test_strides_and_pooling_commute_with_some_shifts():
    x = np.array([0.0, 0, 1, 2, 0, 0, 0, 0])[:, None]
    pool = lambda a: F.max_pool1d(a, 2)
    np.testing.assert_array_equal(pool(shift(2)(x)), shift(1)(pool(x)))
    assert nn.check_equivariance(pool, x, shift(2), shift(1)).interior == 0
    assert nn.check_equivariance(pool, x, shift(1), lambda y: y).interior > 0
    layer = nn.Conv1d(1, 2, 3, stride=2, padding=1, padding_mode="circular", dtype=wl.float64)
    assert nn.check_equivariance(layer, normal(8, 1), shift(4), shift(2)).interior < 1e-12
    assert nn.check_equivariance(layer, normal(8, 1), shift(1), shift(1)).interior > 1e-3


@pytest.mark.book("7-40", "7-48", "7-41", name="wl.nn.check_invariance")
def test_global_pooling_is_invariant():
    features = nn.Conv2d(1, 3, 3, padding=1, padding_mode="circular", dtype=wl.float64)
    model = nn.Sequential(features, wl.tanh, nn.GlobalAvgPool())
    x = normal(6, 5, 1)
    assert nn.check_invariance(model, x, shift(3, 2)) < 1e-12
    assert nn.check_invariance(model, x, lambda a: 2.0 * wl.asarray(a)) > 1e-3
    nn.assert_equivariant(model, x, shift(1, 4), lambda y: y)
    # a linear map that is not a shift: channels permuted
    turn = lambda a: wl.asarray(a)[..., ::-1]
    nn.assert_equivariant(nn.MaxPool2d(2), normal(4, 4, 3), turn)


@pytest.mark.book("7-12", "7-14", name="wl.nn.is_local")
@pytest.mark.parametrize("k", [0, 1, 2])
def test_local_layers(k):
    """The pixels at distance max(|i - i'|, |j - j'|) <= k make a square of 2k + 1."""
    layer, x = nn.Conv2d(1, 2, 2 * k + 1, padding=k, dtype=wl.float64), normal(6, 6, 1)
    assert nn.is_local(layer, x, k)
    assert not k or not nn.is_local(layer, x, k - 1)
    seen = nn.dependence(layer, x)[3, 3]
    i, j = np.indices((6, 6))
    distance = np.maximum(abs(i - 3), abs(j - 3))
    np.testing.assert_array_equal(seen, distance <= k)
    assert (distance <= k).sum() == (2 * k + 1) ** 2
    assert not nn.is_local(lambda a: a - a.mean(), x, 2)


@pytest.mark.book("8-56", name="wl.nn.is_causal")
def test_causal_layers():
    x = normal(7, 2)
    assert nn.is_causal(nn.Conv1d(2, 2, 1, dtype=wl.float64), x)
    assert not nn.is_causal(nn.Conv1d(2, 2, 3, padding=1, dtype=wl.float64), x)
    layers = [nn.CausalConv1d(2, 2, 3, dilation=d, dtype=wl.float64) for d in (1, 2)]
    assert nn.is_causal(nn.Sequential(layers[0], wl.tanh, layers[1]), x)
    # spectra round, so a long convolution is causal up to rounding
    long = nn.LongConv1d(2, 4, dtype=wl.float64)
    later = np.array(x)
    later[4:] += 1.0
    np.testing.assert_allclose(long(wl.asarray(later))[:4].numpy(), long(wl.asarray(x))[:4].numpy(), atol=1e-12)
    assert nn.is_causal(lambda a: wl.cumulative_sum(a, axis=0), x)


@pytest.mark.book("7-49", name="wl.nn.group_average")
def test_averages_over_rotations():
    turns = [lambda a, n=n: _turned(a, n) for n in range(4)]
    back = [lambda a, n=n: _turned(a, -n % 4) for n in range(4)]
    layer = nn.Conv2d(1, 2, 3, padding=1, dtype=wl.float64)
    x = normal(5, 5, 1)
    scores = lambda a: F.global_max_pool(wl.tanh(layer(a)))
    assert nn.check_invariance(scores, x, turns[1]) > 1e-4
    assert nn.check_invariance(nn.group_average(scores, turns), x, turns[1]) < 1e-12
    equivariant = nn.group_average(layer, turns, back)
    nn.assert_equivariant(equivariant, x, turns[1], rtol=1e-12, atol=1e-12)
    assert nn.check_equivariance(layer, x, turns[1]).interior > 1e-4


def _turned(x: Any, quarter_turns: int) -> Any:
    x = wl.asarray(x)
    for _ in range(quarter_turns):
        x = wl.flip(wl.swapaxes(x, 0, 1), axis=0)
    return x


@pytest.mark.parametrize(
    "call, error, message",
    [
        (lambda: nn.check_equivariance(nn.MaxPool1d(2), normal(6, 1), lambda a: a[:4]), ShapeError, r"f\(Tx\) has"),
        (lambda: nn.check_equivariance(wl.tanh, normal(6, 1), wl.abs, margin=(1, 1)), InputError, "margin="),
        (lambda: nn.is_local(nn.Conv1d(1, 1, 3), normal(6, 1), 1), ShapeError, "is_local"),
        (lambda: nn.is_causal(nn.Conv2d(1, 1, 1), normal(3, 3, 1)), ShapeError, "a sequence"),
        (lambda: nn.group_average(wl.tanh, []), InputError, "0 transformations"),
    ],
)
def test_errors(call, error, message):
    with pytest.raises(error, match=message):
        call()
