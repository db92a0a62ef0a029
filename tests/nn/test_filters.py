"""Filters by hand, layouts of axes, and the worked examples of convolution: printed numbers and explicit sums."""

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


@pytest.mark.book("A6-14", "7-33", name=("wl.nn.functional.apply_filter", "wl.nn.functional.FILTERS"))
def test_filters():
    filters = F.FILTERS
    sums = {name: kernel.sum() for name, kernel in filters.items()}
    assert [round(sums[n], 12) for n in ("identity", "edge", "box_blur", "sharpen", "ridge")] == [1, 0, 1, 1, 0]
    np.testing.assert_array_equal(filters["sharpen"], filters["identity"] + filters["edge"])
    constant = np.full((6, 5, 2), 3.0)
    for name, total in sums.items():
        inside = np.asarray(F.apply_filter(constant, name, padding="valid"))
        np.testing.assert_allclose(inside, 3.0 * total, atol=1e-12)
    x = normal(2, 6, 5, 2)
    for name, kernel in filters.items():
        expected = ndimage.correlate(x, kernel[None, :, :, None], mode="constant")
        np.testing.assert_allclose(F.apply_filter(x, name), expected, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(F.apply_filter(x, filters["edge"]), F.apply_filter(x, "edge"))
    impulse = np.zeros((5, 5, 1))
    impulse[2, 2] = 1.0
    np.testing.assert_array_equal(np.asarray(F.apply_filter(impulse, "ridge"))[1:4, 1:4, 0], filters["ridge"])
    with pytest.raises(InputError, match="no filter 'blur'"):
        F.apply_filter(x, "blur")
    with pytest.raises(ShapeError, match=r"kernel of shape \(3,\)"):
        F.apply_filter(x, np.ones(3))


@pytest.mark.book("7-34", name="wl.nn.Conv2d")
def test_a_filter_is_learned():
    """From random images and what the ridge filter makes of them."""
    x = wl.asarray(normal(16, 8, 8, 1))
    target = F.apply_filter(x, "ridge", padding="valid")
    layer = nn.Conv2d(1, 1, 3, bias=False, dtype=wl.float64)
    optimizer = wl.optim.SGD(layer, lr=0.3)

    @wl.jit
    def step(layer, optimizer, x, y):
        optimizer.step(wl.grad(lambda m: ((m(x) - y) ** 2).mean())(layer))

    for _ in range(60):
        step(layer, optimizer, x, target)
    assert np.abs(layer.weight.numpy()[..., 0, 0] - F.FILTERS["ridge"]).max() < 1e-3


# --- layouts


@pytest.mark.book("7-02", "7-03", name=("wl.nn.functional.channels_last", "wl.nn.functional.channels_first"))
def test_round_trips_of_images():
    x = normal(4, 5, 6, 3)
    np.testing.assert_array_equal(F.channels_last(F.channels_first(x)), x)
    np.testing.assert_array_equal(F.channels_first(x), x.transpose(0, 3, 1, 2))
    assert F.channels_first(x[0], axes=2).shape == (3, 5, 6)
    assert F.channels_last(normal(2, 3, 7)).shape == (2, 7, 3)
    with pytest.raises(ShapeError, match=r"shape \(3,\)"):
        F.channels_last(normal(3))


@pytest.mark.book("7-27", "7-03", "7-32", name="wl.nn.functional.filter_layout")
def test_layouts_of_filters():
    """Each computes the same in its own way: not square, and with several channels, so that a wrong order shows."""
    w, x = normal(2, 3, 4, 5), normal(6, 7, 4)
    torch = np.asarray(F.filter_layout(w, "ours", "torch"))
    book = np.asarray(F.filter_layout(w, "ours", "book"))
    assert (torch.shape, book.shape) == ((5, 4, 2, 3), (5, 24))
    expected = np.asarray(F.conv2d(x, w))
    patches = np.asarray(F.unfold(x, (2, 3)))
    np.testing.assert_allclose(patches @ book.T, expected, rtol=1e-11, atol=1e-12)
    by_torch = np.zeros_like(expected)
    for o, c, i, j in np.ndindex(*torch.shape):
        by_torch[..., o] += torch[o, c, i, j] * x[i : i + 5, j : j + 5, c]
    np.testing.assert_allclose(by_torch, expected, rtol=1e-11, atol=1e-12)
    np.testing.assert_array_equal(F.filter_layout(torch, "torch", "ours"), w)
    np.testing.assert_array_equal(F.filter_layout(book, "book", "ours", (2, 3)), w)
    np.testing.assert_array_equal(F.filter_layout(book, "book", "torch", (2, 3)), torch)
    with pytest.raises(InputError, match="no layout 'keras'"):
        F.filter_layout(w, "keras", "ours")
    with pytest.raises(ShapeError, match="kernel_size=None"):
        F.filter_layout(book, "book", "ours")


@pytest.mark.book("7-09", "7-10", name="wl.reshape")
def test_memory_is_walked_row_by_row():
    image = wl.ones((32, 32, 3))
    steps = tuple(n // image.dtype.itemsize for n in np.asarray(image).strides)  # NumPy counts bytes
    assert steps == (96, 3, 1)
    x = normal(2, 3, 4)
    turned = wl.permute_dims(wl.asarray(x), (2, 0, 1))
    np.testing.assert_array_equal(wl.reshape(turned, (-1,)), x.transpose(2, 0, 1).ravel())
    assert not np.array_equal(wl.reshape(turned, (-1,)), x.ravel())
    v = wl.asarray(normal(24))
    (pulled,) = wl.vjp(lambda x: wl.reshape(wl.permute_dims(x, (2, 0, 1)), (-1,)), wl.asarray(x))[1](v)
    np.testing.assert_array_equal(pulled, np.asarray(v).reshape(4, 2, 3).transpose(1, 2, 0))


# --- worked examples

SERIES = np.array([0.0, 1, 2, 4, 8, 4, 2, 1, 0])
KERNEL = np.array([1.0, 0, -1])


@pytest.mark.book("A6-09", "A6-11", "A6-12", "A6-10", name=("wl.nn.functional.conv1d", "wl.nn.conv_output_size"))
def test_the_series():
    """x[t-1] - x[t+1]: seven numbers without padding, nine with zeros; true convolution changes the sign."""
    x, w = SERIES[:, None], KERNEL[:, None, None]
    valid, same = ([-2, -3, -6, 0, 6, 3, 2], [-1, -2, -3, -6, 0, 6, 3, 2, 1])
    np.testing.assert_array_equal(F.conv1d(x, w)[:, 0], valid)
    np.testing.assert_array_equal(F.conv1d(x, w, padding="same")[:, 0], same)
    np.testing.assert_array_equal(SERIES[:-2] - SERIES[2:], valid)
    np.testing.assert_array_equal(F.convolve(SERIES, KERNEL, "valid"), np.negative(valid))
    assert (nn.conv_output_size(9, 3), nn.conv_output_size(9, 3, padding="same")) == (7, 9)


@pytest.mark.book("A6-10", "S-12", "7-47", name="wl.nn.conv_output_size")
def test_sizes_by_counting():
    for n, k, s, p, d in np.ndindex(9, 4, 3, 3, 3):
        n, k, s, d = n + 1, k + 1, s + 1, d + 1
        places = [start for start in range(-p, n + p, s) if start + d * (k - 1) < n + p]
        if not places:
            with pytest.raises(ShapeError, match="does not fit"):
                nn.conv_output_size(n, k, s, p, d)
            continue
        assert nn.conv_output_size(n, k, s, p, d) == len(places)
    assert nn.conv_output_size(7, 3, 2, padding=(2, 0)) == 4
    assert nn.conv_output_size(7, 3, 2, padding="causal") == 4


@pytest.mark.book("S-13", name="wl.nn.conv_transpose_output_size")
@pytest.mark.parametrize("axes", [1, 2, 3])
def test_a_transpose_makes_h_plus_k_minus_1(axes):
    """And <conv(x), y> = <x, conv_T(y)> with the same filter."""
    conv = {1: F.conv1d, 2: F.conv2d, 3: F.conv3d}[axes]
    transposed = {1: F.conv_transpose1d, 2: F.conv_transpose2d, 3: F.conv_transpose3d}[axes]
    w = normal(*(3, 2, 2)[:axes], 2, 4)
    y = normal(2, *(4, 5, 3)[:axes], 4)
    out = transposed(y, w)
    assert out.shape == (2, *[n + k - 1 for n, k in zip(y.shape[1:-1], w.shape, strict=False)], 2)
    assert out.shape[1] == nn.conv_transpose_output_size(4, 3) == 6
    for stride, dilation in ((1, 1), (2, 1), (2, 3)):
        options = {"stride": stride, "dilation": dilation}
        out = transposed(y, w, **options)
        x = normal(*out.shape, seed=1)
        np.testing.assert_allclose(
            np.sum(np.asarray(conv(x, w, **options)) * y), np.sum(x * np.asarray(out)), rtol=1e-10
        )
        assert out.shape[1] == nn.conv_transpose_output_size(4, 3, stride, dilation=dilation)
    with pytest.raises(ShapeError, match="output of 0"):
        nn.conv_transpose_output_size(1, 2, padding=1)


@pytest.mark.book("A6-13", name="wl.nn.functional.conv1d")
def test_border_inputs_influence_fewer_outputs():
    w = wl.ones((3, 1, 1))
    influence = wl.grad(lambda x: F.conv1d(x, w, padding=1).sum())(wl.ones((6, 1)))
    np.testing.assert_array_equal(influence[:, 0], [2, 3, 3, 3, 3, 2])


@pytest.mark.book("A6-05", "7-17", name=("wl.pad", "wl.nn.Conv1d", "wl.nn.Conv3d"))
@pytest.mark.parametrize("axes", [1, 2, 3])
def test_padding_modes_along_one_axis(axes):
    reflected = wl.pad(wl.arange(4.0), (1, 1), mode="reflect")
    np.testing.assert_array_equal(reflected, [1, 0, 1, 2, 3, 2])
    layer = {1: nn.Conv1d, 2: nn.Conv2d, 3: nn.Conv3d}[axes]
    x = normal(*(5, 4, 3)[:axes], 1)
    for mode, numpy_mode in (
        ("zeros", "constant"),
        ("reflect", "reflect"),
        ("circular", "wrap"),
        ("replicate", "edge"),
    ):
        made = layer(1, 2, 3, padding=1, padding_mode=mode, dtype=wl.float64)
        padded = np.pad(x, (*[(1, 1)] * axes, (0, 0)), mode=numpy_mode)
        valid = layer(1, 2, 3, dtype=wl.float64)
        valid.load_state_dict(made.state_dict())
        np.testing.assert_allclose(made(x), valid(padded), rtol=1e-12, atol=1e-13)


@pytest.mark.book("A6-19", "7-56", name="wl.nn.Conv2d")
def test_one_by_one():
    layer, linear = nn.Conv2d(3, 5, 1, dtype=wl.float64), nn.Linear(3, 5, dtype=wl.float64)
    linear.load_state_dict({"weight": layer.weight.value[0, 0], "bias": layer.bias.value})
    x = normal(2, 4, 4, 3)
    np.testing.assert_allclose(layer(x), linear(x), rtol=1e-12)
    assert layer.num_parameters() == linear.num_parameters() == 3 * 5 + 5


@pytest.mark.book("A6-01", "A6-08", name=("wl.nn.Conv2d", "wl.nn.GlobalMaxPool"))
def test_shifts_and_permutations():
    """A flattened layer can undo a fixed permutation of the pixels by one of its weights; a shared kernel cannot."""
    x, order = normal(3, 36), np.random.default_rng(0).permutation(36)
    w = normal(36, 4)
    np.testing.assert_allclose(x[:, order] @ w[order], x @ w, rtol=1e-12)
    ridge = lambda a: np.asarray(F.global_max_pool(F.apply_filter(a.reshape(3, 6, 6, 1), "ridge")))
    assert not np.allclose(ridge(x[:, order]), ridge(x))
    # a pattern that moves: convolution with global pooling does not notice, a flattened layer does
    image = np.zeros((1, 8, 8, 1))
    image[0, 2:4, 2:4] = 1.0
    moved = np.roll(image, (2, 1), (1, 2))
    model = nn.Sequential(nn.Conv2d(1, 4, 3, dtype=wl.float64), wl.tanh, nn.GlobalMaxPool())
    np.testing.assert_allclose(model(moved), model(image), rtol=1e-12)
    assert np.abs((moved - image).reshape(1, -1) @ normal(64, 4)).max() > 0.1
