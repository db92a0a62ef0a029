"""Bags of rows: sums, means, maxima, with padding and weights."""

from __future__ import annotations

import numpy as np
import pytest

import wonderland as wl
from wonderland import nn
from wonderland.errors import InputError, ShapeError

IDS = np.array([[[0, 3, 3], [1, 4, 4]], [[2, 0, 4], [4, 4, 4]]])


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_bags(mode):
    layer = nn.EmbeddingBag(5, 2, mode=mode, dtype=wl.float64, key=wl.random.key(0))
    expected = getattr(layer.weight.numpy()[IDS], mode)(axis=-2)
    np.testing.assert_allclose(layer(wl.asarray(IDS)), expected, rtol=1e-12)
    np.testing.assert_allclose(wl.jit(layer)(wl.asarray(IDS)), expected, rtol=1e-12)


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_padding_does_not_count(mode):
    layer = nn.EmbeddingBag(5, 2, mode=mode, padding_idx=4, dtype=wl.float64, key=wl.random.key(0))
    layer.weight = wl.random.normal((5, 2), key=wl.random.key(1), dtype=wl.float64) - 3.0
    w, out = layer.weight.numpy(), layer(wl.asarray(IDS)).numpy()
    np.testing.assert_allclose(out[0, 1], w[1])
    np.testing.assert_allclose(out[1, 0], getattr(w[[2, 0]], mode)(axis=0))
    np.testing.assert_array_equal(out[1, 1], 0.0)  # nothing in it
    gradient = wl.grad(lambda m: m(wl.asarray(IDS)).sum())(layer)["weight"].numpy()
    assert np.isfinite(gradient).all()
    assert not gradient[4].any()


def test_weights_and_bad_input():
    layer = nn.EmbeddingBag(5, 2, mode="sum", dtype=wl.float64)
    weights = np.random.default_rng(0).normal(size=IDS.shape)
    expected = (layer.weight.numpy()[IDS] * weights[..., None]).sum(-2)
    np.testing.assert_allclose(layer(wl.asarray(IDS), weights), expected)
    with pytest.raises(ShapeError, match="weights of shape"):
        layer(wl.asarray(IDS), weights[0])
    with pytest.raises(ShapeError, match="no bag"):
        layer(wl.tensor(1))
    with pytest.raises(InputError, match="mode='median'"):
        nn.EmbeddingBag(5, 2, mode="median")
