"""Convolutions and their transposes: against explicit sums, SciPy, their own matrices, and finite differences."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from scipy import signal

import wonderland as wl
from tests.agreement import same_array
from wonderland import nn
from wonderland.errors import DTypeError, InputError, ModuleError, ShapeError
from wonderland.primitives.convolution import convolution, convolution_input, convolution_weight

F = nn.functional
CONV = {1: F.conv1d, 2: F.conv2d, 3: F.conv3d}
TRANSPOSE = {1: F.conv_transpose1d, 2: F.conv_transpose2d, 3: F.conv_transpose3d}


def normal(*shape: int, seed: int = 0) -> Any:
    return np.random.default_rng([seed, *shape]).normal(size=shape)


def explicit_sum(x: Any, w: Any, stride: Any, padding: Any, dilation: Any, groups: int) -> Any:
    """The book's sum, element by element: x (batch, *spatial, in), w (*kernel, in / groups, out)."""
    axes = x.ndim - 2
    kernel, (inner, channels) = w.shape[:-2], w.shape[-2:]
    sizes = [
        (x.shape[1 + a] + 2 * padding[a] - dilation[a] * (kernel[a] - 1) - 1) // stride[a] + 1 for a in range(axes)
    ]
    y = np.zeros((x.shape[0], *sizes, channels))
    for place in np.ndindex(*sizes):
        for tap in np.ndindex(*kernel):
            at = tuple(place[a] * stride[a] + tap[a] * dilation[a] - padding[a] for a in range(axes))
            if not all(0 <= i < n for i, n in zip(at, x.shape[1:-1], strict=True)):
                continue
            for o in range(channels):
                first = o // (channels // groups) * inner
                y[(slice(None), *place, o)] += (
                    x[(slice(None), *at, slice(first, first + inner))] @ w[(*tap, slice(None), o)]
                )
    return y


SETTINGS = [
    # kernel, stride, padding, dilation, groups, in, out
    ((3,), (1,), (0,), (1,), 1, 2, 3),
    ((4,), (2,), (3,), (2,), 2, 4, 6),
    ((3, 2), (1, 1), (0, 0), (1, 1), 1, 3, 2),
    ((2, 3), (2, 1), (1, 2), (1, 2), 1, 2, 3),
    ((3, 3), (1, 2), (1, 1), (2, 1), 2, 4, 2),
    ((3, 3), (1, 1), (1, 1), (1, 1), 3, 3, 6),
    ((1, 1), (1, 1), (0, 0), (1, 1), 1, 3, 4),
    ((2, 1, 3), (1, 2, 1), (1, 0, 1), (1, 1, 2), 1, 2, 2),
]


@pytest.mark.book("7-31", "7-32", "7-30", "8-14", "8-15", "8-16", "8-17", name="wl.nn.functional.conv2d")
@pytest.mark.parametrize("kernel, stride, padding, dilation, groups, inputs, outputs", SETTINGS)
def test_the_explicit_sum(kernel, stride, padding, dilation, groups, inputs, outputs):
    axes = len(kernel)
    x, w, b = normal(2, *range(7, 7 - axes, -1), inputs), normal(*kernel, inputs // groups, outputs), normal(outputs)
    y = CONV[axes](x, w, b, stride, padding, dilation, groups)
    expected = explicit_sum(x, w, stride, padding, dilation, groups) + b
    assert y.shape == expected.shape
    np.testing.assert_allclose(y, expected, rtol=1e-10, atol=1e-12)
    one = CONV[axes](x[0], w, b, stride, padding, dilation, groups)  # without an axis of examples
    np.testing.assert_allclose(one, expected[0], rtol=1e-10, atol=1e-12)
    many = CONV[axes](x.reshape(1, 2, 1, *x.shape[1:]), w, b, stride, padding, dilation, groups)
    np.testing.assert_allclose(many, expected.reshape(1, 2, 1, *expected.shape[1:]), rtol=1e-10, atol=1e-12)


@pytest.mark.book("7-47", name="wl.nn.functional.conv2d")
def test_a_stride_leaves_places_out():
    x, w = normal(2, 9, 8, 3), normal(3, 3, 3, 4)
    np.testing.assert_allclose(F.conv2d(x, w, stride=(2, 3)), np.asarray(F.conv2d(x, w))[:, ::2, ::3], rtol=1e-12)


@pytest.mark.book("7-29", name="wl.nn.functional.conv2d")
@pytest.mark.parametrize("mode, padding", [("valid", "valid"), ("same", "same"), ("full", ((2, 2), (1, 1)))])
def test_it_is_a_correlation(mode, padding):
    x, w = normal(6, 5), normal(3, 2)
    y = F.conv2d(x[..., None], w[..., None, None], padding=padding)[..., 0]
    flipped = signal.convolve2d(x, w[::-1, ::-1], mode=mode)
    if mode == "same":  # SciPy puts the odd zero of an even kernel first
        flipped = signal.convolve2d(np.pad(x, ((1, 1), (0, 1))), w[::-1, ::-1], mode="valid")
    np.testing.assert_allclose(y, flipped, rtol=1e-12, atol=1e-12)


@pytest.mark.book("7-25", "7-26", "7-17", name="wl.nn.functional.conv2d")
def test_shapes_of_the_box():
    x, w = wl.ones((16, 32, 32, 3)), wl.ones((5, 5, 3, 64))
    assert w.size == 4800
    assert F.conv2d(x, w, padding="same").shape == (16, 32, 32, 64)
    assert F.conv2d(x, w).shape == F.conv2d(x, w, padding="valid").shape == (16, 28, 28, 64)
    assert F.conv2d(x, w, padding=1).shape == (16, 30, 30, 64)
    assert F.conv2d(x, w, padding=((0, 1), (2, 2))).shape == (16, 29, 32, 64)


@pytest.mark.book("7-19", name="wl.nn.functional.conv1d")
def test_an_even_kernel_sees_one_more_at_the_end():
    x = wl.arange(1.0, 6.0)[:, None]
    y = F.conv1d(x, wl.ones((4, 1, 1)), padding="same")
    np.testing.assert_array_equal(y[:, 0], [1 + 2 + 3, 1 + 2 + 3 + 4, 2 + 3 + 4 + 5, 3 + 4 + 5, 4 + 5])


@pytest.mark.book("7-28", "7-11", "7-16", "7-18", name="wl.nn.functional.conv1d")
def test_the_toeplitz_matrix():
    """A convolution is linear; its matrix has constant diagonals, and the adjoint is the transposed matrix."""
    w = wl.tensor([1.0, 2.0, 3.0], dtype=wl.float64)[:, None, None]
    f = lambda x: F.conv1d(x[:, None], w, padding=1)[:, 0]
    x = wl.arange(1.0, 5.0, dtype=wl.float64)
    matrix = np.asarray(wl.jacobian(f)(x))
    np.testing.assert_array_equal(matrix, [[2, 3, 0, 0], [1, 2, 3, 0], [0, 1, 2, 3], [0, 0, 1, 2]])
    np.testing.assert_array_equal(f(x), [8, 14, 20, 11])
    v = normal(4)
    np.testing.assert_allclose(wl.vjp(f, x)[1](wl.asarray(v))[0], matrix.T @ v, rtol=1e-12)
    np.testing.assert_allclose(F.conv_transpose1d(v[:, None], w, padding=1)[:, 0], matrix.T @ v, rtol=1e-12)


@pytest.mark.book("7-33", name="wl.nn.functional.conv2d")
def test_a_filter_for_ridges():
    ridge = -np.ones((3, 3))
    ridge[1, 1] = 8
    w = ridge[..., None, None]
    flat = np.asarray(F.conv2d(np.ones((5, 5, 1)), w, padding=1))[..., 0]
    expected = np.zeros((5, 5))
    expected[[0, -1]] = expected[:, [0, -1]] = 3
    expected[np.ix_([0, -1], [0, -1])] = 5
    np.testing.assert_array_equal(flat, expected)
    impulse = np.zeros((5, 5, 1))
    impulse[2, 2] = 1
    np.testing.assert_array_equal(np.asarray(F.conv2d(impulse, w, padding=1))[1:4, 1:4, 0], ridge)


@pytest.mark.book("7-04", name="wl.nn.functional.conv2d")
def test_channels_have_no_order():
    x, w, order = normal(5, 5, 3), normal(3, 3, 3, 2), [2, 0, 1]
    np.testing.assert_allclose(F.conv2d(x[..., order], w[:, :, order]), F.conv2d(x, w), rtol=1e-12)


@pytest.mark.book("7-56", name="wl.nn.Conv2d")
def test_a_kernel_of_one_place_is_a_linear_layer():
    x, w = normal(2, 4, 5, 3), normal(1, 1, 3, 6)
    np.testing.assert_allclose(F.conv2d(x, w), x @ w[0, 0], rtol=1e-12)


@pytest.mark.book("7-57", "7-58", "7-59", name="wl.nn.functional.conv2d")
def test_groups_are_a_block_diagonal_filter():
    x, w = normal(2, 5, 5, 4), normal(3, 3, 2, 6)
    full = np.zeros((3, 3, 4, 6))
    full[:, :, :2, :3], full[:, :, 2:, 3:] = w[..., :3], w[..., 3:]
    np.testing.assert_allclose(F.conv2d(x, w, groups=2), F.conv2d(x, full), rtol=1e-12, atol=1e-14)
    depthwise = normal(3, 3, 1, 4)
    y = np.asarray(F.conv2d(x, depthwise, groups=4))
    for c in range(4):
        alone = F.conv2d(x[..., c : c + 1], depthwise[..., c : c + 1])
        np.testing.assert_allclose(y[..., c : c + 1], alone, rtol=1e-12, atol=1e-14)


@pytest.mark.book("7-38", name=("wl.nn.functional.merged_kernel", "wl.nn.functional.conv2d"))
@pytest.mark.parametrize("axes", [1, 2, 3])
def test_two_convolutions_are_one(axes):
    conv = {1: F.conv1d, 2: F.conv2d, 3: F.conv3d}[axes]
    x, first, second = normal(*[7] * axes, 2), normal(*[3] * axes, 2, 4), normal(*[3] * axes, 4, 5, seed=1)
    merged = F.merged_kernel(first, second)
    assert merged.shape == (*[5] * axes, 2, 5)
    np.testing.assert_allclose(conv(conv(x, first), second), conv(x, merged), rtol=1e-11, atol=1e-11)
    # with zeros around, the border differs and nothing else does
    same = [np.asarray(conv(conv(x, first, padding=1), second, padding=1)), np.asarray(conv(x, merged, padding=2))]
    inside = (slice(1, -1),) * axes
    np.testing.assert_allclose(same[0][inside], same[1][inside], rtol=1e-11, atol=1e-11)
    border = np.ones(same[0].shape[:axes], bool)
    border[inside] = False
    assert (np.abs(same[0] - same[1])[border].max(axis=-1) > 1e-3).all()
    # and a nonlinearity in between is no convolution
    bent = conv(wl.relu(conv(x, first)), second)
    assert np.abs(np.asarray(bent - conv(x, merged))).max() > 0.1


def test_the_merged_kernel_is_a_full_convolution():
    first, second = normal(3, 4), normal(2, 3, seed=1)
    merged = F.merged_kernel(first[..., None, None], second[..., None, None])
    np.testing.assert_allclose(merged[..., 0, 0], signal.convolve2d(first, second), rtol=1e-12)
    with pytest.raises(ShapeError, match=r"shapes \(3, 3, 1, 4\) and \(3, 3, 5, 1\)"):
        F.merged_kernel(wl.ones((3, 3, 1, 4)), wl.ones((3, 3, 5, 1)))


# --- derivatives and transformations


@pytest.mark.book("7-24", name="wl.nn.functional.conv2d")
@pytest.mark.parametrize("kernel, stride, padding, dilation, groups, inputs, outputs", SETTINGS)
def test_the_three_primitives_are_one_form(kernel, stride, padding, dilation, groups, inputs, outputs):
    """<conv(x, w), y> = <x, conv_input(y, w)> = <w, conv_weight(x, y)>."""
    axes = len(kernel)
    params: dict[str, Any] = {
        "stride": stride,
        "padding": tuple((p, p) for p in padding),
        "dilation": dilation,
        "groups": groups,
    }
    x, w = normal(2, *range(7, 7 - axes, -1), inputs), normal(*kernel, inputs // groups, outputs)
    out = convolution(wl.asarray(x), wl.asarray(w), **params)
    y = normal(*out.shape, seed=2)
    back = convolution_input(wl.asarray(y), wl.asarray(w), spatial=x.shape[1:-1], **params)
    filters = convolution_weight(wl.asarray(x), wl.asarray(y), kernel=kernel, **params)
    form = np.sum(np.asarray(out) * y)
    np.testing.assert_allclose(np.sum(x * np.asarray(back)), form, rtol=1e-11)
    np.testing.assert_allclose(np.sum(w * np.asarray(filters)), form, rtol=1e-11)


@pytest.mark.book("7-23", "8-13", name="wl.nn.Conv2d")
@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("kernel, stride, padding, dilation, groups, inputs, outputs", SETTINGS)
def test_derivatives(transposed, kernel, stride, padding, dilation, groups, inputs, outputs):
    axes = len(kernel)
    x, b = normal(1, *range(5, 5 - axes, -1), inputs), normal(outputs)
    options = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}
    if transposed:
        w = normal(*kernel, outputs // groups, inputs)
        f = lambda x, w, b: wl.sin(TRANSPOSE[axes](x, w, b, **options))
    else:
        x = normal(1, *range(7, 7 - axes, -1), inputs)
        w = normal(*kernel, inputs // groups, outputs)
        f = lambda x, w, b: wl.sin(CONV[axes](x, w, b, **options))
    wl.check_grads(f, (wl.asarray(x), wl.asarray(w), wl.asarray(b)), order=2)


def test_third_derivative():
    w = wl.asarray(normal(2, 1, 1))
    f = lambda x: (F.conv1d(x[:, None], w) ** 3).sum()
    x = wl.asarray(normal(4))
    third = wl.jacobian(wl.hessian(f))(x)
    v = np.asarray(w)[:, 0, 0]
    expected = np.zeros((4, 4, 4))
    for p in range(3):
        for i, j, k in itertools.product(range(2), repeat=3):
            expected[p + i, p + j, p + k] += 6 * v[i] * v[j] * v[k]
    np.testing.assert_allclose(third, expected, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("in_axes", [(0, None), (None, 0), (0, 0), (1, 3)])
def test_vmap_of_the_gradient(in_axes, groups):
    shapes = [(2, 6, 4), (3, 4 // groups, 6)]
    x, w = (
        normal(*shape) if axis is None else normal(*shape[:axis], 3, *shape[axis:])
        for shape, axis in zip(shapes, in_axes, strict=True)
    )
    f = wl.grad(lambda x, w: (F.conv1d(x, w, padding=1, groups=groups) ** 2).sum(), argnums=(0, 1))
    got = wl.vmap(f, in_axes=in_axes)(wl.asarray(x), wl.asarray(w))
    for i in range(3):
        one = [a if axis is None else np.take(a, i, axis) for a, axis in zip((x, w), in_axes, strict=True)]
        for batched, alone in zip(got, f(*map(wl.asarray, one)), strict=True):
            np.testing.assert_allclose(batched[i], alone, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("in_axes", [(0, None), (None, 0), (0, 0)])
def test_vmap_over_nothing(in_axes):
    x, w = (wl.zeros(s if axis is None else (0, *s)) for s, axis in zip([(2, 6, 4), (3, 4, 5)], in_axes, strict=True))
    f = lambda x, w: F.conv1d(x, w).sum()
    assert wl.vmap(F.conv1d, in_axes=in_axes)(x, w).shape == (0, 2, 4, 5)
    assert [g.shape for g in wl.vmap(wl.grad(f, (0, 1)), in_axes=in_axes)(x, w)] == [(0, 2, 6, 4), (0, 3, 4, 5)]


def test_under_jit():
    x, w, b = (wl.asarray(normal(*shape)) for shape in [(2, 6, 6, 3), (3, 3, 3, 4), (4,)])
    f = lambda x, w, b: (F.conv2d(x, w, b, stride=2, padding=1) ** 2).sum()
    for got, expected in zip(wl.jit(wl.grad(f, (0, 1, 2)))(x, w, b), wl.grad(f, (0, 1, 2))(x, w, b), strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-12)


def test_the_batch_is_laid_out_in_parts(monkeypatch):
    from wonderland.primitives import convolution as module

    x, w = normal(5, 4, 4, 2), normal(2, 2, 2, 3)
    f = wl.value_and_grad(lambda w: (F.conv2d(x, w) ** 2).sum())
    whole = f(wl.asarray(w))
    monkeypatch.setattr(module, "CHUNK", 2 * 9 * 8 * 8 + 1)  # two examples at a time, and one at the end
    for got, expected in zip(f(wl.asarray(w)), whole, strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-12)


@pytest.mark.parametrize("dtype", [wl.float16, wl.bfloat16])
def test_half_precision_is_rounded_once(dtype):
    """A sum in half precision would stop growing at 2048 (float16) or 256 (bfloat16)."""
    x = wl.ones((1, 4000, 1), dtype=dtype)
    y = F.conv1d(x, wl.ones((4000, 1, 1), dtype=dtype))
    assert y.dtype == dtype
    assert float(y.item()) == 4000


def test_dtypes():
    assert F.conv1d(wl.ones((4, 1)), wl.ones((2, 1, 1), dtype=wl.float64)).dtype == wl.float64
    assert F.conv1d(wl.ones((4, 1), dtype=wl.int32), wl.ones((2, 1, 1), dtype=wl.int32)).dtype == wl.int32
    z = F.conv1d(wl.tensor([[1j], [2.0]]), wl.tensor([[[1.0]], [[1j]]]))
    assert z.tolist() == [[3j]]


# --- the transposes


@pytest.mark.parametrize(
    "stride, padding, output_padding, dilation", [(1, 0, 0, 1), (3, 1, 2, 2), (2, 2, 1, 1), (2, 0, 3, 1)]
)
def test_transposed_convolution_is_the_transposed_map(stride, padding, output_padding, dilation):
    w = normal(3, 2, 4)  # from 4 channels to 2
    y = normal(5, 4)
    options = {"stride": stride, "padding": padding, "dilation": dilation}
    out = np.asarray(F.conv_transpose1d(y, w, output_padding=output_padding, **options))
    assert out.shape == ((5 - 1) * stride - 2 * padding + dilation * 2 + 1 + output_padding, 2)
    # the convolution of a tensor of that shape may have further places after the five
    x = normal(*out.shape)
    forward = np.asarray(F.conv1d(x, w, **options))[:5]
    np.testing.assert_allclose(np.sum(forward * y), np.sum(x * out), rtol=1e-11)


def test_a_transposed_convolution_without_overlap_paints_kernels():
    w = normal(2, 2, 1, 1)
    x = normal(3, 3)
    out = F.conv_transpose2d(x[..., None], w, stride=2)[..., 0]
    np.testing.assert_allclose(out, np.kron(x, w[..., 0, 0]), rtol=1e-12)


# --- layers


@pytest.mark.book("7-23", "7-22", name="wl.nn.Conv2d")
def test_a_layer_has_the_parameters_of_the_book():
    layer = nn.Conv2d(3, 8, 5, padding=2)
    assert layer.num_parameters() == 8 * (5 * 5 * 3) + 8
    x = wl.random.normal((2, 32, 32, 3))
    np.testing.assert_allclose(layer(x), F.conv2d(x, layer.weight, layer.bias, padding=2), rtol=1e-6)
    assert layer(wl.ones((64, 64, 3))).shape == (64, 64, 8)
    assert layer.output_shape((2, 32, 32, 3)) == (2, 32, 32, 8)
    assert nn.Conv2d(3, 64, 5, bias=False).bias is None
    assert nn.Conv1d(8, 32, 5).num_parameters() == 32 * 5 * 8 + 32
    row = layer.summary((2, 16, 16, 3)).rows[0]
    assert row.multiply_adds == 2 * 16 * 16 * 8 * 75
    assert (
        wl.count(lambda x: F.conv2d(x, layer.weight, padding=2), wl.ones((2, 16, 16, 3))).multiply_adds
        == row.multiply_adds
    )


@pytest.mark.book("7-60", "7-61", name="wl.nn.Conv2d")
def test_depthwise_separable_layers_are_small():
    separable = nn.Sequential(nn.Conv2d(3, 3, 5, groups=3, bias=False), nn.Conv2d(3, 64, 1, bias=False))
    assert separable.num_parameters() == 267
    assert nn.Conv2d(3, 64, 5, bias=False).num_parameters() == 4800


@pytest.mark.book("8-13", "8-16", name=("wl.nn.Conv1d", "wl.nn.Conv3d"))
def test_fewer_axes_are_axes_of_size_one():
    x, w = normal(2, 6, 3), normal(3, 3, 4)
    np.testing.assert_allclose(F.conv2d(x[:, None], w[None])[:, 0], F.conv1d(x, w), rtol=1e-12)
    x, w = normal(2, 6, 5, 3), normal(3, 3, 3, 4)
    np.testing.assert_allclose(F.conv3d(x[:, None], w[None])[:, 0], F.conv2d(x, w), rtol=1e-12)


@pytest.mark.book("7-20", name="wl.nn.Conv2d")
def test_circular_padding_commutes_with_shifts():
    layer = nn.Conv2d(2, 3, 3, padding="same", padding_mode="circular", dtype=wl.float64)
    x = normal(6, 5, 2)
    shifted = layer(np.roll(x, (2, 1), (0, 1)))
    np.testing.assert_allclose(shifted, np.roll(np.asarray(layer(x)), (2, 1), (0, 1)), rtol=1e-12)


@pytest.mark.parametrize(
    "mode, numpy_mode", [("zeros", "constant"), ("reflect", "reflect"), ("circular", "wrap"), ("replicate", "edge")]
)
def test_padding_modes(mode, numpy_mode):
    layer = nn.Conv2d(2, 3, 3, stride=2, padding=(1, 2), padding_mode=mode, dtype=wl.float64)
    x = normal(4, 6, 5, 2)
    padded = np.pad(x, ((0, 0), (1, 1), (2, 2), (0, 0)), mode=numpy_mode)
    np.testing.assert_allclose(layer(x), F.conv2d(padded, layer.weight, layer.bias, stride=2), rtol=1e-12)
    wl.check_grads(layer, (wl.asarray(x),))


@pytest.mark.book("6-13", name=("wl.nn.Conv2d", "wl.nn.ConvTranspose1d"))
def test_the_first_input_decides_the_channels():
    lazy, given = nn.Conv2d(None, 4, 3, key=wl.random.key(1)), nn.Conv2d(2, 4, 3, key=wl.random.key(1))
    with pytest.raises(ModuleError, match=r"Conv2d\(None, 4, kernel_size=3\) has no weight"):
        lazy.parameters()
    x = wl.random.normal((5, 5, 2))
    same_array(wl.jit(lambda m, x: m(x))(lazy, x), given(x))
    assert lazy.weight.shape == (3, 3, 2, 4)
    back = nn.ConvTranspose1d(None, 4, 3)
    assert back(wl.ones((5, 2))).shape == (7, 4)
    assert back.weight.shape == (3, 4, 2)
    with pytest.raises(InputError, match="in_channels=3 does not divide into groups=2"):
        nn.Conv1d(None, 4, 1, groups=2)(wl.ones((5, 3)))


def test_parameters_start_uniform():
    for layer, fan in ((nn.Conv2d(16, 64, 3, groups=2), 72), (nn.ConvTranspose2d(16, 64, 3), 144)):
        for values in (layer.weight.numpy(), layer.bias.numpy()):
            assert np.abs(values).max() <= 1 / np.sqrt(fan)
        np.testing.assert_allclose(layer.weight.numpy().std(), 1 / np.sqrt(3 * fan), rtol=0.05)


@pytest.mark.book("7-51", "7-53", name="wl.nn.Conv2d")
def test_gradients_of_a_small_network():
    model = nn.Sequential(
        nn.Conv2d(1, 4, 3, padding=1, dtype=wl.float64),
        wl.tanh,
        nn.MaxPool2d(2),
        nn.Conv2d(4, 3, 3, dtype=wl.float64),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
    )
    x = wl.asarray(normal(2, 8, 8, 1))
    assert model(x).shape == model(wl.asarray(normal(2, 10, 9, 1))).shape == (2, 3)
    loss = lambda m, x: (m(x) ** 2).sum()
    gradients = wl.grad(loss)(model, x)
    for path, compiled in wl.jit(wl.grad(loss))(model, x).items():
        np.testing.assert_allclose(compiled, gradients[path], rtol=1e-10, atol=1e-13)
    for path, parameter in model.named_parameters():
        direction = normal(*parameter.shape, seed=3)
        before = parameter.numpy().copy()
        values = []
        for step in (1e-6, -1e-6):
            parameter.assign(wl.asarray(before + step * direction))
            values.append(float(loss(model, x)))
        parameter.assign(wl.asarray(before))
        slope = np.sum(np.asarray(gradients[path]) * direction)
        np.testing.assert_allclose((values[0] - values[1]) / 2e-6, slope, rtol=1e-5, atol=1e-9)
    per_example = wl.vmap(wl.grad(loss), in_axes=(None, 0))(model, x[:, None])
    for path, parts in per_example.items():
        np.testing.assert_allclose(parts.sum(axis=0), gradients[path], rtol=1e-10, atol=1e-12)


def test_repr():
    assert repr(nn.Conv2d(3, 8, (3, 1), stride=2, padding="valid", dtype=wl.float64)) == (
        "Conv2d(3, 8, kernel_size=(3, 1), stride=2, padding='valid', dtype=float64)"
    )
    assert repr(nn.ConvTranspose1d(3, 8, 3, stride=2, output_padding=1, bias=False)) == (
        "ConvTranspose1d(3, 8, kernel_size=3, stride=2, output_padding=1, bias=False)"
    )


def ones(*shape: int) -> Any:
    return wl.ones(shape)


@pytest.mark.book("7-03", name="wl.nn.Conv2d")
@pytest.mark.parametrize(
    "call, error, message",
    [
        (lambda: F.conv2d(ones(2, 4, 4, 3), ones(5, 3, 3, 1)), ShapeError, r"window of shape \(5, 3\)"),
        (lambda: F.conv2d(ones(2, 4, 4, 3), ones(3, 3, 4, 1)), ShapeError, "has 3 channels.*takes 4"),
        (lambda: F.conv2d(ones(4, 4, 4), ones(3, 3, 1, 3), groups=3), ShapeError, "4 input channels do not"),
        (lambda: F.conv2d(ones(4, 4, 4), ones(3, 3, 2, 3), groups=2), ShapeError, "3 output channels do not"),
        (lambda: F.conv2d(ones(4, 4, 1), ones(3, 1, 3)), ShapeError, r"weight of shape \(3, 1, 3\)"),
        (lambda: F.conv2d(ones(4, 4), ones(3, 3, 1, 3)), ShapeError, r"shape \(4, 4\) has fewer than 3 axes"),
        (lambda: F.conv2d(ones(4, 4, 1), ones(3, 3, 1, 3), wl.ones(2)), ShapeError, r"bias of shape \(2,\)"),
        (lambda: F.conv1d(ones(4, 1), ones(3, 1, 3), stride=0), InputError, "stride=0 is too small"),
        (lambda: F.conv1d(ones(4, 1), ones(3, 1, 3), padding=-1), InputError, "padding=-1 is too small"),
        (lambda: F.conv1d(ones(4, 1), ones(3, 1, 3), padding="full"), InputError, "padding='full'"),
        (lambda: F.conv2d(ones(4, 4, 1), ones(3, 3, 1, 3), dilation=(1, 2, 3)), InputError, "for 2 spatial axes"),
        (lambda: F.conv1d(ones(4, 1), ones(3, 1, 3), stride=2, padding="same"), InputError, "only for stride 1"),
        (lambda: F.conv1d(ones(4, 1), ones(3, 1, 3), groups=0), InputError, "groups=0 is too small"),
        (lambda: F.conv1d(ones(4, 1) > 0, ones(3, 1, 3) > 0), DTypeError, "dtypes bool and bool"),
        (lambda: F.conv_transpose1d(ones(1, 2), ones(2, 3, 2), padding=1), ShapeError, r"an output of \(0,\)"),
        (lambda: F.conv_transpose1d(ones(4, 2), ones(2, 2, 3)), ShapeError, "has 2 channels.*makes 3"),
        (lambda: nn.Conv2d(3, 4, 3)(ones(2, 3, 8, 8)), ShapeError, "has 8 channels along its last axis"),
        (lambda: nn.Conv2d(3, 4, 3)(ones(8, 3)), ShapeError, "has too few axes"),
        (lambda: nn.Conv2d(3, 4, 3)(ones(2, 2, 3)), ShapeError, r"window of shape \(3, 3\)"),
        (lambda: nn.Conv2d(3, 4, 3, groups=2), InputError, "out_channels=4|in_channels=3 does not divide"),
        (lambda: nn.Conv2d(3, 4, 0), InputError, "kernel_size=0 is too small"),
        (lambda: nn.Conv2d(-1, 4, 1), InputError, "in_channels=-1 is too small"),
        (lambda: nn.Conv2d(3, 4, 3, padding_mode="mirror"), InputError, "padding_mode='mirror'"),
        (lambda: nn.Conv2d(3, 4, 3, dtype=wl.int32), DTypeError, "int32"),
        (lambda: nn.ConvTranspose2d(3, 4, 3, output_padding=-1), InputError, "output_padding=-1 is too small"),
    ],
)
def test_errors(call, error, message):
    with pytest.raises(error, match=message):
        call()
    with pytest.raises(error, match=message):
        wl.jit(call)()
