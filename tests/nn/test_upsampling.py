"""Interpolation and shuffled pixels: against SciPy, closed forms and inverses (PyTorch's numbers: tests/reference)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import ndimage

import wonderland as wl
from wonderland import nn
from wonderland.errors import InputError, ShapeError

F = nn.functional


def normal(*shape: int, seed: int = 0) -> Any:
    return np.random.default_rng([seed, *shape]).normal(size=shape)


@pytest.mark.parametrize("axes", [1, 2, 3])
def test_nearest_repeats(axes):
    x = normal(2, *(4, 3, 2)[:axes], 2)
    expected = x
    for axis in range(1, axes + 1):
        expected = expected.repeat(3, axis)
    np.testing.assert_array_equal(F.interpolate(x, scale_factor=3), expected)
    np.testing.assert_array_equal(nn.Upsample(scale_factor=3, axes=axes)(x[0]), expected[0])
    wl.check_grads(lambda x: F.interpolate(x, scale_factor=2) ** 2, (wl.asarray(x),))


@pytest.mark.parametrize("n, m", [(5, 8), (5, 3), (4, 6)])
def test_nearest_of_any_size(n, m):
    x = normal(1, n, 2)
    np.testing.assert_array_equal(F.interpolate(x, size=m), x[:, np.floor(np.arange(m) * n / m).astype(int)])
    centres = np.floor((np.arange(m) + 0.5) * n / m).astype(int)
    np.testing.assert_array_equal(F.interpolate(x, size=m, mode="nearest-exact"), x[:, centres])


@pytest.mark.parametrize("aligned", [False, True])
def test_linear_interpolation_is_scipys(aligned):
    x = normal(5, 7)
    y = F.interpolate(x[..., None], size=(9, 4), mode="bilinear", align_corners=aligned)[..., 0]
    places = [
        np.linspace(0, n - 1, m) if aligned else np.clip((np.arange(m) + 0.5) * n / m - 0.5, 0, n - 1)
        for n, m in zip(x.shape, (9, 4), strict=True)
    ]
    expected = ndimage.map_coordinates(x, np.meshgrid(*places, indexing="ij"), order=1, mode="nearest")
    np.testing.assert_allclose(y, expected, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("mode, axes", [("linear", 1), ("bilinear", 2), ("trilinear", 3), ("bicubic", 2), ("area", 2)])
def test_constants_and_the_same_size(mode, axes):
    x = normal(2, *(5, 4, 3)[:axes], 1)
    size = x.shape[1:-1]
    np.testing.assert_allclose(F.interpolate(x, size=size, mode=mode), x, rtol=1e-12, atol=1e-14)
    ones = F.interpolate(np.ones_like(x), size=tuple(n + 3 for n in size), mode=mode)
    np.testing.assert_allclose(ones, 1.0, rtol=1e-12)
    f = lambda x: wl.sin(F.interpolate(x, size=tuple(n + 2 for n in size), mode=mode))
    wl.check_grads(f, (wl.asarray(x),))
    np.testing.assert_allclose(wl.jit(f)(wl.asarray(x)), f(wl.asarray(x)), rtol=1e-12, atol=1e-13)


def test_a_line_stays_a_line():
    x = np.arange(6.0)[None, :, None]
    np.testing.assert_allclose(
        F.interpolate(x, size=11, mode="linear", align_corners=True)[0, :, 0], np.arange(11) / 2, rtol=1e-12
    )


@pytest.mark.parametrize("axes", [1, 2, 3])
def test_shuffled_pixels(axes):
    r = 2
    x = normal(2, *(3, 2, 2)[:axes], 2 * r**axes)
    y = np.asarray(F.pixel_shuffle(x, r, axes=axes))
    assert y.shape == (2, *[n * r for n in x.shape[1:-1]], 2)
    for place in np.ndindex(*y.shape[1:-1]):
        within = np.ravel_multi_index([p % r for p in place], (r,) * axes)
        at = (slice(None), *[p // r for p in place])
        np.testing.assert_array_equal(y[(slice(None), *place)], x[at].reshape(2, 2, r**axes)[..., within])
    np.testing.assert_array_equal(nn.PixelUnshuffle(r, axes=axes)(y), x)


def test_a_transposed_convolution_is_a_shuffled_one():
    """The sub-pixel view: stride r without overlap is a 1 x 1 convolution and a shuffle."""
    x, w = normal(1, 3, 4, 2), normal(2, 2, 3, 2)  # (*kernel, out, in)
    mixed = F.conv2d(x, w.transpose(3, 2, 0, 1).reshape(1, 1, 2, 12))
    np.testing.assert_allclose(F.pixel_shuffle(mixed, 2), F.conv_transpose2d(x, w, stride=2), rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize(
    "call, error, message",
    [
        (lambda: F.interpolate(wl.ones((2, 4, 4, 1))), InputError, "size=None and scale_factor=None"),
        (lambda: F.interpolate(wl.ones((2, 4, 4, 1)), size=3, mode="spline"), InputError, "mode='spline'"),
        (lambda: F.interpolate(wl.ones((2, 4, 4, 1)), size=(3, 3), mode="linear"), InputError, "mode='linear'"),
        (lambda: F.interpolate(wl.ones((2, 4, 4, 1)), scale_factor=0), InputError, "scale_factor=0"),
        (lambda: F.interpolate(wl.ones((2, 4, 4, 1)), scale_factor=0.1), ShapeError, r"is \(0, 0\)"),
        (lambda: F.pixel_shuffle(wl.ones((2, 2, 6)), 2), ShapeError, r"6 channels of shape \(2, 2, 6\)"),
        (lambda: F.pixel_unshuffle(wl.ones((3, 4, 1)), 2), ShapeError, r"\(3, 4\) is not a multiple of 2"),
        (lambda: nn.Upsample(), InputError, "size=None"),
        (lambda: nn.Upsample(size=2, mode="x"), InputError, "mode='x'"),
    ],
)
def test_errors(call, error, message):
    with pytest.raises(error, match=message):
        call()
