"""`affine_grid` and `grid_sample`; PyTorch's numbers for `grid_sample` are in tests/reference."""

from __future__ import annotations

import numpy as np
import pytest

import wonderland as wl
from wonderland.errors import InputError, ShapeError
from wonderland.nn.functional import affine_grid, grid_sample

IDENTITY = np.array([[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]])


@pytest.mark.parametrize("align_corners", [False, True])
@pytest.mark.parametrize("mode", ["bilinear", "nearest", "bicubic"])
def test_the_identity_gives_the_image(mode: str, align_corners: bool) -> None:
    x = np.random.default_rng(0).normal(size=(1, 5, 7, 2))
    grid = affine_grid(IDENTITY, x.shape, align_corners)
    np.testing.assert_allclose(grid_sample(x, grid, mode, align_corners=align_corners), x, atol=1e-12)


def test_a_grid_by_its_formula() -> None:
    theta = np.random.default_rng(0).normal(size=(3, 2, 3))
    grid = np.asarray(affine_grid(theta, (3, 4, 5, 1)))
    for i, j in np.ndindex(4, 5):
        place = np.array([(2 * j + 1) / 5 - 1, (2 * i + 1) / 4 - 1, 1.0])
        np.testing.assert_allclose(grid[:, i, j], theta @ place, rtol=1e-12)


def test_a_mirror_and_a_quarter_turn() -> None:
    x = np.random.default_rng(0).normal(size=(1, 4, 4, 1))
    mirror = affine_grid(np.array([[[-1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]]), x.shape)
    np.testing.assert_allclose(grid_sample(x, mirror), x[:, :, ::-1], atol=1e-12)
    turn = affine_grid(np.array([[[0.0, 1.0, 0.0], [-1.0, 0.0, 0.0]]]), x.shape)
    np.testing.assert_allclose(grid_sample(x, turn), np.rot90(x, -1, axes=(1, 2)), atol=1e-12)


@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
@pytest.mark.parametrize("padding_mode", ["zeros", "border", "reflection"])
def test_derivatives_and_jit(mode: str, padding_mode: str) -> None:
    rng = np.random.default_rng(0)
    x, grid = rng.normal(size=(1, 4, 5, 2)), rng.uniform(-1.3, 1.3, (1, 2, 3, 2))
    wl.check_grads(lambda x, g: grid_sample(x, g, mode, padding_mode), (x, grid))
    compiled = wl.jit(lambda x, g: grid_sample(x, g, mode, padding_mode))(wl.asarray(x), wl.asarray(grid))
    np.testing.assert_allclose(compiled, grid_sample(x, grid, mode, padding_mode), rtol=1e-9, atol=1e-12)


def test_errors() -> None:
    with pytest.raises(InputError, match="mode='cubic'"):
        grid_sample(wl.ones((1, 2, 2, 1)), wl.zeros((1, 1, 1, 2)), "cubic")
    with pytest.raises(ShapeError, match=r"a grid of shape \(2, 1, 1, 2\)"):
        grid_sample(wl.ones((1, 2, 2, 1)), wl.zeros((2, 1, 1, 2)))
    with pytest.raises(ShapeError, match="affine_grid"):
        affine_grid(wl.ones((1, 3, 3)), (1, 2, 2, 1))
    with pytest.raises(ShapeError, match=r"weight.T, a weight \(in, out\)"):
        wl.nn.functional.linear(wl.ones((5, 3)), wl.ones((4, 3)))
    with pytest.raises(ShapeError, match="margins smaller than the image"):
        wl.nn.ReflectionPad1d(3)(wl.ones((1, 3, 1)))
    with pytest.raises(InputError, match="2 spatial axes"):
        wl.nn.ZeroPad2d((1, 2))
