"""Convolutions by spectra, long ones, and features made of waves: against direct sums, SciPy and closed forms."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import signal

import wonderland as wl
from wonderland import nn
from wonderland.errors import DTypeError, InputError, ShapeError

F = nn.functional
CONV = {1: F.conv1d, 2: F.conv2d, 3: F.conv3d}
SETTINGS = [
    # spatial, kernel, stride, padding, dilation, groups, in, out
    ((11,), (5,), (1,), (2,), (1,), 1, 2, 3),
    ((13,), (4,), (2,), (3,), (2,), 2, 4, 6),
    ((7, 6), (3, 2), (1, 2), (1, 0), (1, 2), 1, 2, 3),
    ((6, 5), (3, 3), (1, 1), (1, 1), (1, 1), 3, 3, 6),
    ((5, 4, 3), (2, 3, 1), (1, 1, 2), (0, 1, 0), (1, 1, 1), 1, 2, 2),
]


def normal(*shape: int, seed: int = 0) -> Any:
    return np.random.default_rng([seed, *shape]).normal(size=shape)


@pytest.mark.book("7-65", "7-66", name="wl.nn.functional.fft_conv")
@pytest.mark.parametrize("spatial, kernel, stride, padding, dilation, groups, inputs, outputs", SETTINGS)
def test_spectra_give_the_convolution(spatial, kernel, stride, padding, dilation, groups, inputs, outputs):
    """Values and gradients, without anything that wraps around the ends."""
    x, w, b = normal(2, *spatial, inputs), normal(*kernel, inputs // groups, outputs), normal(outputs)
    args = (*map(wl.asarray, (x, w, b)), stride, padding, dilation, groups)
    direct, fast = CONV[len(kernel)], F.fft_conv
    np.testing.assert_allclose(fast(*args), direct(*args), rtol=1e-9, atol=1e-11)
    loss = lambda f: wl.grad(lambda x, w, b: wl.sin(f(x, w, b, *args[3:])).sum(), argnums=(0, 1, 2))
    for got, expected in zip(loss(fast)(*args[:3]), loss(direct)(*args[:3]), strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-9, atol=1e-10)


@pytest.mark.book("7-65", name="wl.nn.Conv2d")
def test_a_layer_by_spectra():
    layer = nn.Conv2d(2, 3, 5, padding="same", padding_mode="circular", method="fft", dtype=wl.float64)
    other = nn.Conv2d(2, 3, 5, padding="same", padding_mode="circular", dtype=wl.float64)
    other.load_state_dict(layer.state_dict())
    x = wl.asarray(normal(2, 7, 6, 2))
    np.testing.assert_allclose(layer(x), other(x), rtol=1e-10, atol=1e-11)
    loss = lambda m, x: (m(x) ** 2).sum()
    compiled, eager = wl.jit(wl.grad(loss))(layer, x), wl.grad(loss)(other, x)
    for path, expected in eager.items():
        np.testing.assert_allclose(compiled[path], expected, rtol=1e-9, atol=1e-10)
    assert "method='fft'" in repr(layer)


# --- convolution as signal processing has it


@pytest.mark.book(
    "C-11", "A6-03", "A6-04", "A6-06", "A6-07", "7-29", name=("wl.nn.functional.convolve", "wl.nn.functional.correlate")
)
@pytest.mark.parametrize("mode", ["full", "same", "valid"])
@pytest.mark.parametrize("method", ["direct", "fft"])
@pytest.mark.parametrize("x_shape, w_shape", [((9,), (4,)), ((5, 6), (3, 2)), ((4, 5, 3), (2, 3, 3))])
def test_convolve_and_correlate_are_scipys(mode, method, x_shape, w_shape):
    x, w = normal(*x_shape), normal(*w_shape)
    np.testing.assert_allclose(
        F.convolve(x, w, mode=mode, method=method), signal.convolve(x, w, mode=mode), rtol=1e-9, atol=1e-11
    )
    np.testing.assert_allclose(
        F.correlate(x, w, mode=mode, method=method), signal.correlate(x, w, mode=mode), rtol=1e-9, atol=1e-11
    )


@pytest.mark.book("C-11", "A6-03", "A6-04", "A6-06", "7-29", name=("wl.nn.functional.convolve", "wl.nn.Conv1d"))
def test_the_two_operations():
    """Convolution is commutative, correlation is reversed by an exchange; layers correlate."""
    x, w = normal(7), normal(3)
    np.testing.assert_allclose(F.convolve(x, w), F.convolve(w, x), rtol=1e-12)
    np.testing.assert_allclose(F.convolve(x, w), np.convolve(x, w), rtol=1e-12)
    np.testing.assert_allclose(F.correlate(x, w, mode="full"), F.correlate(w, x, mode="full")[::-1], rtol=1e-12)
    np.testing.assert_allclose(F.convolve(x, w, "valid"), F.correlate(x, w[::-1].copy(), "valid"), rtol=1e-12)
    np.testing.assert_allclose(F.conv1d(x[:, None], w[:, None, None])[:, 0], F.correlate(x, w), rtol=1e-12)
    assert not np.allclose(F.convolve(x, w, "valid"), F.correlate(x, w, "valid"))
    series, w = np.array([1.0, 2.0, 3.0, 4.0]), np.array([1.0, 2.0, 3.0])
    np.testing.assert_allclose(F.correlate(series, w, "same"), [8, 14, 20, 11], rtol=1e-12)
    np.testing.assert_allclose(F.convolve(series, w, "same"), [4, 10, 16, 17], rtol=1e-12)
    complex_x, complex_w = x + 1j * normal(7, seed=1), w + 1j * normal(3, seed=1)
    for method in ("direct", "fft"):
        np.testing.assert_allclose(
            F.correlate(complex_x, complex_w, "full", method), np.correlate(complex_x, complex_w, "full"), rtol=1e-9
        )
    wl.check_grads(lambda x, w: F.convolve(x, w, method="fft") ** 2, (wl.asarray(x), wl.asarray(w)))


@pytest.mark.book("A6-02", name="wl.nn.functional.convolve")
def test_the_integral():
    """Two exponentials: (x * w)(t) = t e^-t, by the trapezoidal rule on a grid."""
    h = 1e-3
    t = np.arange(0, 3, h)
    x = np.exp(-t)
    y = np.asarray(F.convolve(x, x, method="fft"))[: len(t)] * h - h * x  # the two half weights at the ends
    np.testing.assert_allclose(y, t * np.exp(-t), atol=2 * h**2 + 1e-3 * h)


@pytest.mark.parametrize("dtype", [wl.float16, wl.bfloat16])
def test_half_precision(dtype):
    x, w = wl.asarray(normal(9, 2)).astype(dtype), wl.asarray(normal(3, 2, 2)).astype(dtype)
    for got in (F.fft_conv(x, w), F.long_conv(x, x), F.convolve(x[:, 0], x[:, 1], method="fft")):
        assert got.dtype == dtype
    np.testing.assert_allclose(
        F.fft_conv(x, w).astype(wl.float32), F.conv1d(x, w).astype(wl.float32), rtol=0.02, atol=0.03
    )


# --- as long as the sequence


@pytest.mark.parametrize("kernel", [1, 4, 9, 15])
def test_a_long_convolution_is_a_causal_sum(kernel):
    x, k = normal(2, 9, 3), normal(kernel, 3, seed=1)
    expected = np.stack([[np.convolve(row[:, c], k[:, c])[:9] for c in range(3)] for row in x]).transpose(0, 2, 1)
    np.testing.assert_allclose(F.long_conv(x, k), expected, rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(wl.jit(F.long_conv)(wl.asarray(x), wl.asarray(k)), expected, rtol=1e-9, atol=1e-11)
    if kernel <= 9:  # the kernel of a depthwise causal convolution begins with the oldest input
        w = k[::-1][:, None].copy()
        np.testing.assert_allclose(F.long_conv(x, k), F.conv1d(x, w, padding="causal", groups=3), rtol=1e-9, atol=1e-11)
    wl.check_grads(lambda x, k: wl.sin(F.long_conv(x, k)), (wl.asarray(x), wl.asarray(k)))


def test_a_layer_with_a_long_kernel():
    layer = nn.LongConv1d(3, 16, dtype=wl.float64)
    x = normal(2, 20, 3)
    assert layer.num_parameters() == 16 * 3 + 3
    np.testing.assert_allclose(
        layer(x), np.asarray(F.long_conv(x, layer.kernel)) + x * np.asarray(layer.skip), rtol=1e-12
    )
    np.testing.assert_allclose(np.asarray(layer(x))[:, :5], layer(x[:, :5]), rtol=1e-9, atol=1e-11)  # any length
    assert layer(x[0]).shape == (20, 3)
    rows = nn.LongConv1d(4000, 64, skip=False).kernel.numpy()
    np.testing.assert_allclose((rows**2).sum(0).mean(), 1.0, rtol=0.05)
    assert (rows[:8] ** 2).sum() > 100 * (rows[-8:] ** 2).sum()


# --- waves


@pytest.mark.book("13.09", name="wl.nn.FourierFeatures")
def test_features_approach_the_gaussian_kernel():
    layer = nn.FourierFeatures(3, 20000, sigma=0.7, dtype=wl.float64, key=wl.random.key(0))
    x, y = normal(4, 3), normal(4, 3, seed=1)
    inner = np.asarray((layer(x) * layer(y)).sum(-1))
    exact = np.exp(-0.5 * 0.7**2 * ((x - y) ** 2).sum(-1))
    np.testing.assert_allclose(inner, exact, atol=4 / np.sqrt(20000))
    np.testing.assert_allclose((layer(x) ** 2).sum(-1), 1.0, rtol=1e-12)
    shifted = np.asarray((layer(x + 1.0) * layer(y + 1.0)).sum(-1))  # it depends on x - y alone
    np.testing.assert_allclose(shifted, inner, rtol=1e-9, atol=1e-12)
    assert layer.num_parameters() == 0
    assert nn.FourierFeatures(3, 5, trainable=True).num_parameters() == 15


@pytest.mark.parametrize(
    "call, error, message",
    [
        (lambda: F.fft_conv(wl.ones((4, 4, 1)), wl.ones((5, 5, 1, 1))), ShapeError, r"window of shape \(5, 5\)"),
        (lambda: F.fft_conv(wl.ones((4, 1)), wl.ones((2, 1))), ShapeError, "1, 2 or 3 axes"),
        (lambda: F.fft_conv(wl.ones((4, 3)), wl.ones((2, 2, 4)), groups=2), ShapeError, "groups=2 do not fit"),
        (lambda: F.fft_conv(wl.ones((4, 1), dtype=wl.int32), wl.ones((2, 1, 1), dtype=wl.int32)), DTypeError, "int32"),
        (lambda: F.convolve(wl.arange(3), wl.arange(2), method="fft"), DTypeError, "int64 are not exact"),
        (lambda: F.convolve(wl.ones(3), wl.ones(2), mode="half"), InputError, "mode='half'"),
        (lambda: F.convolve(wl.ones(3), wl.ones(2), method="slow"), InputError, "method='slow'"),
        (lambda: F.convolve(wl.ones(3), wl.ones((2, 2))), ShapeError, r"shapes \(3,\) and \(2, 2\)"),
        (lambda: F.convolve(wl.ones(0), wl.ones(2)), ShapeError, "not empty"),
        (lambda: F.correlate(wl.ones(3), wl.ones(4)), ShapeError, r"kernel of shape \(4,\) does not fit"),
        (lambda: F.long_conv(wl.ones((4, 2)), wl.ones((4, 3))), ShapeError, "kernel of shape"),
        (lambda: nn.LongConv1d(2, 8)(wl.ones((0, 2))), ShapeError, r"input of shape \(0, 2\)"),
        (lambda: nn.LongConv1d(2, 8, decay=0), InputError, "decay=0"),
        (lambda: nn.FourierFeatures(2, 8, sigma=-1.0), InputError, "sigma=-1"),
        (lambda: nn.FourierFeatures(2, 8)(wl.ones(3)), ShapeError, r"input of shape \(3,\)"),
    ],
)
def test_errors(call, error, message):
    with pytest.raises(error, match=message):
        call()
