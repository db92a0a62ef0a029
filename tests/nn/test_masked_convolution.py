"""Convolutions with masks: what a pixel sees, gradients of masked weights, and optimizers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import wonderland as wl
from wonderland import nn
from wonderland.errors import InputError


def normal(*shape: int, seed: int = 0) -> Any:
    return np.random.default_rng([seed, *shape]).normal(size=shape)


@pytest.mark.book("8-57", name="wl.nn.MaskedConv2d")
@pytest.mark.parametrize("kernel", [3, (3, 5), 4])
@pytest.mark.parametrize("mask_type", ["A", "B"])
def test_a_pixel_sees_those_before_it(mask_type, kernel):
    """By the Jacobian: nothing at a later place in raster order, and the place itself with B alone."""
    layer = nn.MaskedConv2d(mask_type, 1, 2, kernel, dtype=wl.float64)
    matters = nn.dependence(layer, normal(4, 5, 1)).reshape(20, 20)
    assert not np.triu(matters, 1).any()
    assert np.diag(matters).all() == (mask_type == "B")
    assert np.diag(matters).any() == (mask_type == "B")
    stack = nn.Sequential(
        nn.MaskedConv2d("A", 1, 3, 3, dtype=wl.float64), wl.tanh, nn.MaskedConv2d("B", 3, 1, 3, dtype=wl.float64)
    )
    assert not np.triu(nn.dependence(stack, normal(4, 5, 1)).reshape(20, 20)).any()


@pytest.mark.parametrize("mask_type", ["A", "B"])
def test_colors(mask_type):
    """A colour of a pixel sees the colours before it."""
    layer = nn.MaskedConv2d(mask_type, 6, 3, 3, colors=3, dtype=wl.float64)
    jacobian = np.asarray(wl.jacobian(layer)(wl.asarray(normal(3, 3, 6))))
    here = jacobian[1, 1, :, 1, 1] != 0  # (3 outputs, 6 inputs): r r g g b b
    expected = np.array([[1, 1, 0, 0, 0, 0], [1, 1, 1, 1, 0, 0], [1, 1, 1, 1, 1, 1]], bool)
    if mask_type == "A":
        expected = np.array([[0] * 6, [1, 1, 0, 0, 0, 0], [1, 1, 1, 1, 0, 0]], bool)
    np.testing.assert_array_equal(here, expected)
    assert (jacobian[1, 1, :, 0, 2] != 0).all()


@pytest.mark.book("8-57", name="wl.nn.MaskedConv1d")
def test_masked_weights_never_matter():
    layer = nn.MaskedConv1d("B", 2, 2, 5, dtype=wl.float64)
    x = wl.asarray(normal(2, 8, 2))
    optimizer = wl.optim.AdamW(layer, lr=0.1, weight_decay=0.1)
    step = wl.jit(wl.grad(lambda m, x: (m(x) ** 2).sum()))
    for _ in range(3):
        gradients = step(layer, x)
        np.testing.assert_array_equal(np.asarray(gradients["weight"])[~layer.mask], 0.0)
        assert (np.asarray(gradients["weight"])[layer.mask] != 0).all()
        optimizer.step(gradients)
    kept = np.where(layer.mask, layer.weight.numpy(), 0.0)
    np.testing.assert_allclose(
        layer(x), nn.functional.conv1d(x, kept, layer.bias, padding="same"), rtol=1e-12, atol=1e-13
    )
    assert nn.is_causal(layer, x[0])


def test_volumes_and_lazy_layers():
    lazy = nn.MaskedConv3d("A", None, 2, 3)
    assert lazy(wl.ones((2, 3, 3, 3, 1))).shape == (2, 3, 3, 3, 2)
    assert lazy.mask.sum() == 13 * 2
    assert repr(lazy) == "MaskedConv3d('A', 1, 2, kernel_size=3)"


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: nn.MaskedConv2d("C", 1, 1, 3), "mask_type='C'"),
        (lambda: nn.MaskedConv2d("A", 4, 3, 3, colors=3), "in_channels=4 is not a multiple of colors=3"),
        (lambda: nn.MaskedConv2d("A", 3, 4, 3, colors=3), "out_channels=4 is not a multiple"),
    ],
)
def test_errors(call, message):
    with pytest.raises(InputError, match=message):
        call()
