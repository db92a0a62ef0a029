"""Patches taken apart and added up: against convolutions, sliding windows, and as transposes of each other."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import wonderland as wl
from wonderland import nn
from wonderland.errors import InputError, ShapeError

F = nn.functional
CONV = {1: F.conv1d, 2: F.conv2d, 3: F.conv3d}
SETTINGS = [
    # spatial, kernel, stride, padding, dilation
    ((7,), (3,), (2,), (1,), (2,)),
    ((6, 5), (3, 2), (1, 2), (1, 0), (1, 1)),
    ((5, 6), (2, 2), (2, 2), (0, 0), (1, 1)),
    ((4, 3, 5), (2, 1, 3), (1, 2, 1), (1, 0, 1), (2, 1, 1)),
]


def normal(*shape: int, seed: int = 0) -> Any:
    return np.random.default_rng([seed, *shape]).normal(size=shape)


@pytest.mark.book("7-63", "7-31", "7-64", name="wl.nn.functional.unfold")
@pytest.mark.parametrize("spatial, kernel, stride, padding, dilation", SETTINGS)
def test_a_product_with_patches_is_a_convolution(spatial, kernel, stride, padding, dilation):
    x, w = normal(2, *spatial, 3), normal(*kernel, 3, 4)
    patches = F.unfold(x, kernel, stride, padding, dilation)
    expected = CONV[len(kernel)](x, w, None, stride, padding, dilation)
    np.testing.assert_allclose(patches @ w.reshape(-1, 4), expected, rtol=1e-11, atol=1e-12)
    many = F.unfold(x[:, None], kernel, stride, padding, dilation)
    np.testing.assert_array_equal(many[:, 0], patches)


@pytest.mark.book("7-13", "7-63", name=("wl.nn.functional.fold", "wl.nn.functional.unfold"))
@pytest.mark.parametrize("spatial, kernel, stride, padding, dilation", SETTINGS)
def test_fold_is_the_transpose(spatial, kernel, stride, padding, dilation):
    """<unfold(x), y> = <x, fold(y)>, and fold is the adjoint that differentiation finds."""
    options = {"stride": stride, "padding": padding, "dilation": dilation}
    x = normal(2, *spatial, 3)
    patches = F.unfold(x, kernel, **options)
    y = normal(*patches.shape, seed=1)
    back = F.fold(y, spatial, kernel, **options)
    np.testing.assert_allclose(np.sum(np.asarray(patches) * y), np.sum(x * np.asarray(back)), rtol=1e-11)
    (adjoint,) = wl.vjp(lambda x: F.unfold(x, kernel, **options), wl.asarray(x))[1](wl.asarray(y))
    np.testing.assert_allclose(back, adjoint, rtol=1e-12, atol=1e-13)
    compiled = wl.jit(lambda y: F.fold(y, spatial, kernel, **options))(wl.asarray(y))
    np.testing.assert_allclose(compiled, back, rtol=1e-12, atol=1e-13)
    wl.check_grads(lambda y: wl.sin(F.fold(y, spatial, kernel, **options)), (wl.asarray(y),))


@pytest.mark.book("7-13", "8-12", "7-30", name="wl.nn.functional.extract_patches")
def test_patches_are_slices():
    x = normal(6, 5, 2)
    patches = np.asarray(F.extract_patches(x, 3))
    assert patches.shape == (4, 3, 3, 3, 2)
    for i in range(4):
        for j in range(3):
            np.testing.assert_array_equal(patches[i, j], x[i : i + 3, j : j + 3])
    windows = np.lib.stride_tricks.sliding_window_view(x[:, 0], 3, axis=0)  # (t, c, s)
    sequence = F.extract_patches(x[:, 0], 3, axes=1)
    assert sequence.shape == (4, 3, 2)  # (t, s, c)
    np.testing.assert_array_equal(sequence, windows.transpose(0, 2, 1))


@pytest.mark.book("7-13", name=("wl.nn.Fold", "wl.nn.Unfold"))
def test_patches_that_overlap_are_counted():
    x = normal(1, 5, 6, 2)
    unfold, fold = nn.Unfold(3, padding=1), nn.Fold((5, 6), 3, padding=1)
    count = np.multiply.outer([2, 3, 3, 3, 2], [2, 3, 3, 3, 3, 2])[..., None]
    np.testing.assert_allclose(fold(unfold(x)), x * count, rtol=1e-12)
    side = nn.Fold((5, 6), (5, 2), stride=(5, 2))(nn.Unfold((5, 2), stride=(5, 2))(x))
    np.testing.assert_array_equal(side, x)


def test_infinities_stay_where_they_are():
    x = np.ones((4, 1))
    x[1] = np.inf
    assert np.isinf(np.asarray(F.unfold(x, (2,)))).sum() == 2
    assert not np.isnan(np.asarray(F.unfold(x, (2,)))).any()


def test_patch_tokens_are_a_strided_convolution():
    x, w = normal(2, 32, 32, 3), normal(8, 8, 3, 5)
    tokens = F.unfold(x, 8, stride=8)
    assert tokens.shape == (2, 4, 4, 192)  # 16 tokens of 192 numbers
    np.testing.assert_allclose(tokens @ w.reshape(192, 5), F.conv2d(x, w, stride=8), rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize(
    "call, error, message",
    [
        (lambda: F.unfold(wl.ones((4, 4, 1)), 5), ShapeError, r"window of shape \(5, 5\)"),
        (lambda: F.unfold(wl.ones((4, 1)), 2), ShapeError, "fewer than 3 axes"),
        (lambda: F.unfold(wl.ones((4, 4, 1)), (2, 2), stride=(1, 1, 1)), InputError, "settings for"),
        (lambda: F.unfold(wl.ones((4, 4, 1)), 2, axes=4), InputError, "spatial axes"),
        (lambda: F.fold(wl.ones((3, 3, 4)), (4, 4), 3), ShapeError, r"patches of shape \(3, 3, 4\)"),
        (lambda: F.fold(wl.ones((3, 3, 5)), (4, 4), 2), ShapeError, r"patches of shape \(3, 3, 5\)"),
        (lambda: nn.Fold((4, 4), 0), InputError, "kernel_size=0"),
    ],
)
def test_errors(call, error, message):
    with pytest.raises(error, match=message):
        call()
