"""Depthwise, separable and causal convolutions: against full convolutions, Toeplitz matrices and perturbations."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import wonderland as wl
from wonderland import nn
from wonderland.errors import InputError, ShapeError

F = nn.functional
LAYERS = {1: nn.SeparableConv1d, 2: nn.SeparableConv2d, 3: nn.SeparableConv3d}
DEPTHWISE = {1: nn.DepthwiseConv1d, 2: nn.DepthwiseConv2d, 3: nn.DepthwiseConv3d}
CONV = {1: F.conv1d, 2: F.conv2d, 3: F.conv3d}


def normal(*shape: int, seed: int = 0) -> Any:
    return np.random.default_rng([seed, *shape]).normal(size=shape)


@pytest.mark.book("7-57", "7-58", "A6-18", name=("wl.nn.DepthwiseConv1d", "wl.nn.DepthwiseConv2d"))
@pytest.mark.parametrize("axes", [1, 2, 3])
def test_a_kernel_for_each_channel(axes):
    x = normal(2, *(5, 4, 3)[:axes], 3)
    layer = DEPTHWISE[axes](3, 3, padding=1, depth_multiplier=2, dtype=wl.float64)
    y = np.asarray(layer(x))
    assert layer.num_parameters() == 3**axes * 6 + 6
    for c in range(6):
        w = np.asarray(layer.weight)[..., c : c + 1]
        alone = CONV[axes](x[..., c // 2 : c // 2 + 1], w, layer.bias[c : c + 1], padding=1)
        np.testing.assert_allclose(y[..., c : c + 1], alone, rtol=1e-12, atol=1e-13)


@pytest.mark.book("7-60", "7-61", "A6-17", "A6-18", name=("wl.nn.SeparableConv2d", "wl.nn.Conv2d"))
def test_separable_layers_are_small():
    assert nn.SeparableConv2d(3, 64, 5, bias=False).num_parameters() == 267
    assert nn.Conv2d(3, 64, 5, bias=False).num_parameters() == 4800
    assert nn.SeparableConv2d(3, 5, 7, bias=False).num_parameters() == 7 * 7 * 3 + 5 * 3 == 162
    layer = nn.Conv2d(3, 5, 7, padding="same")
    assert (layer.weight.size, layer.num_parameters()) == (735, 740)
    assert layer.output_shape((32, 32, 3)) == (32, 32, 5)


@pytest.mark.book("7-60", "A6-18", name=("wl.nn.SeparableConv1d", "wl.nn.SeparableConv2d", "wl.nn.SeparableConv3d"))
@pytest.mark.parametrize("axes", [1, 2, 3])
def test_separable_is_a_convolution_with_a_product_of_filters(axes):
    layer = LAYERS[axes](2, 3, 3, stride=2, padding=1, depth_multiplier=2, dtype=wl.float64)
    depthwise, pointwise = np.asarray(layer.depthwise.weight), np.asarray(layer.pointwise.weight)
    depthwise = depthwise.reshape(*depthwise.shape[:axes], 2, 2)  # (*kernel, in, multiplier)
    full = np.einsum("...im,imo->...io", depthwise, pointwise.reshape(2, 2, 3))
    x = normal(2, *(5, 6, 3)[:axes], 2)
    expected = CONV[axes](x, full, layer.pointwise.bias, stride=2, padding=1)
    np.testing.assert_allclose(layer(x), expected, rtol=1e-11, atol=1e-12)
    loss = lambda m, x: (m(x) ** 2).sum()
    for path, got in wl.jit(wl.grad(loss))(layer, wl.asarray(x)).items():
        np.testing.assert_allclose(got, wl.grad(loss)(layer, wl.asarray(x))[path], rtol=1e-9, atol=1e-11)


# --- causal


@pytest.mark.book("8-58", "8-56", "8-88", "8-55", name="wl.nn.CausalConv1d")
@pytest.mark.parametrize("kernel, dilation, stride", [(1, 1, 1), (3, 1, 1), (2, 4, 1), (3, 2, 2)])
def test_the_future_does_not_matter(kernel, dilation, stride):
    layer = nn.CausalConv1d(2, 3, kernel, stride=stride, dilation=dilation, dtype=wl.float64)
    x = normal(9, 2)
    y = np.asarray(layer(x))
    assert y.shape == ((9 - 1) // stride + 1, 3)
    for j in range(9):
        changed = x.copy()
        changed[j] += 1.0
        same = np.arange(len(y)) * stride < j
        np.testing.assert_array_equal(np.asarray(layer(changed))[same], y[same])
    # what is put before is read as data by a centred kernel
    centred = nn.Sequential(nn.Conv1d(2, 3, 3, padding="same", dtype=wl.float64), nn.GlobalAvgPool(axes=1))
    assert not np.allclose(centred(np.pad(x, ((2, 0), (0, 0)))), centred(np.pad(x, ((5, 0), (0, 0)))))
    # what is appended behind, as padding is, does not matter either
    longer = np.concatenate([x, np.zeros((4, 2))])
    np.testing.assert_allclose(np.asarray(layer(longer))[: len(y)], y, rtol=1e-12, atol=1e-14)


@pytest.mark.book("8-57", "8-59", name=("wl.nn.MaskedConv1d", "wl.nn.CausalConv1d"))
def test_a_masked_kernel_is_a_shorter_causal_one():
    masked = nn.MaskedConv1d("B", 2, 3, 5, dtype=wl.float64)
    causal = nn.CausalConv1d(2, 3, 3, dtype=wl.float64)
    causal.load_state_dict({"weight": masked.weight.value[:3], "bias": masked.bias.value})
    x = normal(2, 7, 2)
    np.testing.assert_allclose(masked(x), causal(x), rtol=1e-12)
    assert masked.mask.sum() == causal.weight.size == 3 * 2 * 3  # (k + 1) c c' of (2k + 1) c c'
    one = nn.MaskedConv1d("B", 1, 1, 3, bias=False, dtype=wl.float64)
    assert (one.weight.size, int(one.mask.sum())) == (3, 2)
    matrix = np.asarray(nn.conv_matrix(one, (5, 1)))
    np.testing.assert_array_equal(np.triu(matrix, 1), 0)
    assert (np.diag(matrix) != 0).all()


def test_causal_in_time_and_centred_in_space():
    layer = nn.Conv3d(1, 1, 3, padding="causal", dtype=wl.float64)
    x = normal(4, 5, 5, 1)
    assert layer.output_shape(x.shape) == (4, 5, 5, 1)
    changed = x.copy()
    changed[2:] = 0.0
    np.testing.assert_array_equal(np.asarray(layer(changed))[:2], np.asarray(layer(x))[:2])
    expected = F.conv3d(np.pad(x, ((2, 0), (1, 1), (1, 1), (0, 0))), layer.weight, layer.bias)
    np.testing.assert_allclose(layer(x), expected, rtol=1e-12)
    mode = nn.Conv1d(1, 1, 3, padding="causal", padding_mode="replicate", dtype=wl.float64)
    padded = np.pad(x[:, 0, 0], ((2, 0), (0, 0)), mode="edge")
    np.testing.assert_allclose(mode(x[:, 0, 0]), F.conv1d(padded, mode.weight, mode.bias), rtol=1e-12)


@pytest.mark.book("8-45", "8-47", name="wl.nn.functional.conv1d")
@pytest.mark.parametrize("rate", [1, 2, 4])
def test_dilation_is_a_kernel_with_zeros(rate):
    x, w = normal(2, 11, 2), normal(3, 2, 3)
    spread = np.zeros(((3 - 1) * rate + 1, 2, 3))
    spread[::rate] = w
    y = F.conv1d(x, w, padding="same", dilation=rate)
    assert y.shape == (2, 11, 3)
    np.testing.assert_allclose(y, F.conv1d(x, spread, padding="same"), rtol=1e-12, atol=1e-13)
    assert nn.Conv1d(2, 3, 3, dilation=rate).num_parameters() == nn.Conv1d(2, 3, 3).num_parameters()


@pytest.mark.book("8-01", "8-04", "8-19", name=("wl.nn.Conv1d", "wl.nn.Conv3d"))
def test_series_and_videos_of_any_length():
    layer = nn.Sequential(nn.Conv1d(3, 8, 5, padding="same"), wl.relu, nn.GlobalAvgPool(axes=1))
    assert layer(wl.ones((4, 20, 3))).shape == layer(wl.ones((4, 7, 3))).shape == (4, 8)
    video = nn.Sequential(nn.Conv3d(3, 8, 3, padding="same"), wl.relu, nn.GlobalAvgPool(axes=3))
    assert video(wl.ones((2, 4, 6, 6, 3))).shape == video(wl.ones((2, 5, 6, 7, 3))).shape == (2, 8)


@pytest.mark.parametrize(
    "call, error, message",
    [
        (lambda: nn.DepthwiseConv2d(0, 3), InputError, "in_channels=0 is too small"),
        (lambda: nn.DepthwiseConv2d(3, 3, depth_multiplier=0), InputError, "depth_multiplier=0"),
        (lambda: nn.SeparableConv1d(2, 3, 9)(wl.ones((5, 2))), ShapeError, r"DepthwiseConv1d\(2, 2, kernel_size=9"),
        (lambda: nn.CausalConv1d(2, 3, 3)(wl.ones((0, 2))), ShapeError, r"shape \(0, 2\) is empty"),
        (lambda: nn.CausalConv1d(2, 3, 3, groups=2), InputError, "out_channels=3"),
        (lambda: nn.Conv2d(1, 1, 3, stride=2, padding="causal")(wl.ones((5, 5, 1))), InputError, "only for stride 1"),
        (lambda: nn.Conv1d(1, 1, 3, method="winograd"), InputError, "method='winograd'"),
    ],
)
def test_errors(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_an_error_names_layer_settings_and_shape():
    model = nn.Sequential(nn.Conv2d(3, 4, 3, stride=2), nn.Conv2d(4, 4, 5, dilation=2, padding=1))
    with pytest.raises(ShapeError) as caught:
        model(wl.ones((7, 9, 9, 3)))
    text = str(caught.value)
    assert "Conv2d(4, 4, kernel_size=5, padding=1, dilation=2): a window of shape (5, 5)" in text
    assert "an input of shape (7, 4, 4, 4)" in text
    assert "in module: 1 (Conv2d)" in text
    with pytest.raises(ShapeError, match=r"MaxPool2d\(kernel_size=5\).*input of shape \(7, 4, 4, 3\)"):
        nn.MaxPool2d(5)(wl.ones((7, 4, 4, 3)))


def test_repr():
    assert repr(nn.CausalConv1d(2, 3, 3, dilation=2)) == "CausalConv1d(2, 3, kernel_size=3, dilation=2)"
    assert repr(nn.Conv1d(2, 3, 3, padding="causal")) == "Conv1d(2, 3, kernel_size=3, padding='causal')"
    assert repr(nn.DepthwiseConv2d(4, 3, bias=False)) == "DepthwiseConv2d(4, 4, kernel_size=3, groups=4, bias=False)"
