"""Images as tokens: patches, and positions on their grid."""

from __future__ import annotations

import numpy as np
import pytest

import wonderland as wl
from tests.agreement import close_array
from wonderland import nn
from wonderland.errors import InputError, ShapeError

F = nn.functional


def numbers(*shape, seed=0):
    return wl.asarray(np.random.default_rng(seed).normal(size=shape))


@pytest.mark.book("11.44", name=("wl.nn.functional.patchify", "wl.nn.functional.unpatchify", "wl.nn.PatchEmbed"))
def test_patches_and_back():
    x = numbers(2, 6, 8, 3)
    patches = F.patchify(x, 2)
    assert patches.shape == (2, 3 * 4, 2 * 2 * 3)
    np.testing.assert_array_equal(patches[1, 5], np.asarray(x)[1, 2:4, 2:4].ravel())  # second row, second column
    np.testing.assert_array_equal(F.unpatchify(patches, 6, 8, 2), x)
    close_array(F.patchify(x[0], 2), patches[0])
    layer = nn.PatchEmbed(2, 3, 5, dtype=wl.float64)
    close_array(layer(x), patches @ layer.projection.weight.detach() + layer.projection.bias.detach())
    assert layer.num_parameters() == (2 * 2 * 3 + 1) * 5


@pytest.mark.book("11.44", name="wl.nn.PatchEmbed")
@pytest.mark.parametrize("size", [(6, 7), (7, 6)])
@pytest.mark.parametrize("impl", ["linear", "conv"])
def test_sizes_that_do_not_divide_are_refused(size, impl):
    with pytest.raises(ShapeError, match="do not divide into patches of 2 x 2"):
        nn.PatchEmbed(2, 1, 5, impl)(wl.ones((1, *size, 1)))
    with pytest.raises(ShapeError, match="do not divide"):
        F.unpatchify(wl.ones((12, 4)), *size, 2)
    with pytest.raises(ShapeError, match=r"\(\.\.\., 9, 4 channels\)"):
        F.unpatchify(wl.ones((8, 4)), 6, 6, 2)
    with pytest.raises(ShapeError, match=r"\(\.\.\., h, w, 1\)"):
        nn.PatchEmbed(2, 1, 5, impl)(wl.ones((1, 4, 4, 3)))


@pytest.mark.book("11.45", "A6-24", "11.71", name="wl.nn.PatchEmbed")
@pytest.mark.parametrize("patch, image", [(8, (32, 32, 3)), (1, (4, 5, 2)), (3, (6, 9, 1))])
def test_patches_are_a_convolution_with_a_large_stride(patch, image):
    x, channels = numbers(2, *image), image[-1]
    linear = nn.PatchEmbed(patch, channels, 7, dtype=wl.float64, key=wl.random.key(0))
    conv = nn.PatchEmbed(patch, channels, 7, "conv", dtype=wl.float64, key=wl.random.key(0))
    n = (image[0] // patch) * (image[1] // patch)
    assert linear(x).shape == conv(x).shape == (2, n, 7)
    np.testing.assert_allclose(conv(x), linear(x), rtol=1e-12, atol=1e-13)
    layer = nn.Conv2d(channels, 7, patch, stride=patch, dtype=wl.float64)
    layer.weight = linear.projection.weight.detach().reshape(patch, patch, channels, 7)
    layer.bias = linear.projection.bias.detach()
    np.testing.assert_allclose(layer(x).reshape(2, n, 7), linear(x), rtol=1e-12, atol=1e-13)
    loss = lambda m: (m(x) ** 2).sum()
    for path, g in wl.grad(loss)(linear).items():
        close_array(g, wl.grad(loss)(conv)[path], 1000)
    if patch == 8:  # the numbers of the notes
        assert F.patchify(x, 8).shape == (2, 16, 192)


@pytest.mark.book("11.46", name="wl.rearrange")
def test_the_box_of_the_book():
    xb = numbers(32, 3, 64, 64)
    op = "b c (h ph) (w pw) \
        -> b (h w) (ph pw c)"
    y = wl.rearrange(xb, op, ph=8, pw=8)
    assert y.shape == (32, 64, 192)
    by_hand = np.asarray(xb).reshape(32, 3, 8, 8, 8, 8).transpose(0, 2, 4, 3, 5, 1).reshape(32, 64, 192)
    np.testing.assert_array_equal(y, by_hand)
    channels_last = wl.rearrange(xb, "b c h w -> b h w c")
    np.testing.assert_array_equal(F.patchify(channels_last, 8), y)
    adjoint = numbers(32, 64, 192, seed=1)
    (back,) = wl.vjp(lambda x: wl.rearrange(x, op, ph=8, pw=8), xb)[1](adjoint)
    inverse = "b (h w) (ph pw c) -> b c (h ph) (w pw)"
    np.testing.assert_array_equal(back, wl.rearrange(adjoint, inverse, h=8, ph=8, pw=8))
    with pytest.raises(ShapeError, match="7"):
        wl.rearrange(xb, op, ph=7, pw=8)
    with pytest.raises(InputError):
        wl.rearrange(xb, "b c h w -> b c h")


@pytest.mark.book("11.47", name=("wl.rearrange", "wl.einsum"))
def test_blocks_by_einsum_and_by_rearrange():
    """Grouping an axis in blocks, then contracting: in one pattern, or as a product with the blocks' weights."""
    x, weight = numbers(2, 6, 8, 3), numbers(2, 2, 3, 5, seed=1)
    blocks = wl.rearrange(x, "b (h p) (w q) c -> b h w p q c", p=2, q=2)
    by_einsum = wl.einsum("bhwpqc,pqce->bhwe", blocks, weight)
    by_product = wl.rearrange(x, "b (h p) (w q) c -> b h w (p q c)", p=2, q=2) @ weight.reshape(12, 5)
    close_array(by_einsum, by_product, 1000)
    means = wl.reduce(x, "b (h 2) (w 2) c -> b h w c", "mean")
    close_array(means, wl.einsum("bhwpqc->bhwc", blocks) / 4)
    close_array(wl.repeat(means, "b h w c -> b (h 2) (w 2) c")[:, ::2, ::2], means)


def test_positions_on_a_grid():
    bias = nn.GridBias(2, 3, 4, first=1, dtype=wl.float64)
    bias.weight = wl.asarray(np.random.default_rng(0).normal(size=bias.weight.shape))
    places = wl.arange(15)  # a class token, twelve patches, two registers
    b, table = np.asarray(bias(places, places)), np.asarray(bias.weight.detach())
    for i in range(12):
        for j in range(12):
            down, right = j // 4 - i // 4, j % 4 - i % 4
            np.testing.assert_array_equal(b[:, 1 + i, 1 + j], table[:, (down + 2) * 7 + right + 3])
    for nowhere in (0, 13, 14):
        np.testing.assert_array_equal(b[:, nowhere], np.repeat(table[:, -1:], 15, axis=1))
        np.testing.assert_array_equal(b[:, :, nowhere], np.repeat(table[:, -1:], 15, axis=1))
    assert bias.weight.shape == (2, 5 * 7 + 1)
