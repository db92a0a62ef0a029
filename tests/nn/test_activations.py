"""Activation functions of `wl.nn.functional` and their modules."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import special, stats

import wonderland as wl
from wonderland import nn
from wonderland.errors import DTypeError, InputError, ShapeError

F = nn.functional
X = np.linspace(-4.0, 4.0, 24).reshape(4, 6)

FORMULAS = [
    (nn.ReLU(), np.maximum(X, 0)),
    (nn.ReLU6(), np.clip(2 * X, 0, 6)),
    (nn.LeakyReLU(), np.where(X > 0, X, 0.01 * X)),
    (nn.LeakyReLU(0.3), np.where(X > 0, X, 0.3 * X)),
    (nn.PReLU(dtype=wl.float64), np.where(X > 0, X, 0.25 * X)),
    (nn.ELU(2.0), np.where(X > 0, X, 2 * np.expm1(X))),
    (nn.SELU(), 1.0507009873554805 * np.where(X > 0, X, 1.6732632423543772 * np.expm1(X))),
    (nn.GELU(), X * stats.norm.cdf(X)),
    (nn.GELU("tanh"), 0.5 * X * (1 + np.tanh(np.sqrt(2 / np.pi) * (X + 0.044715 * X**3)))),
    (nn.SiLU(), X * special.expit(X)),
    (nn.Mish(), X * np.tanh(np.log1p(np.exp(X)))),
    (nn.Tanh(), np.tanh(X)),
    (nn.Sigmoid(), special.expit(X)),
    (nn.Softplus(), np.log1p(np.exp(X))),
    (nn.Softsign(), X / (1 + np.abs(X))),
    (nn.Hardtanh(-2.0, 0.5), np.clip(X, -2, 0.5)),
    (nn.Softmax(), special.softmax(X, axis=-1)),
    (nn.Softmax(axis=0), special.softmax(X, axis=0)),
    (nn.LogSoftmax(), special.log_softmax(X, axis=-1)),
    (nn.LogSigmoid(), special.log_expit(X)),
    (nn.GLU(), X[:, :3] * special.expit(X[:, 3:])),
    (nn.GLU(0), X[:2] * special.expit(X[2:])),
    (nn.Identity(3, some="thing"), X),
]


@pytest.mark.book("5.47", "5.52", "5.53", "A3-63", name=("wl.nn.LeakyReLU", "wl.nn.GELU", "wl.nn.SiLU"))
@pytest.mark.parametrize("module, expected", FORMULAS, ids=lambda v: type(v).__name__)
def test_formulas(module, expected):
    x = wl.asarray(2 * X if isinstance(module, nn.ReLU6) else X)
    np.testing.assert_allclose(module(x), expected, rtol=1e-10, atol=1e-13)
    np.testing.assert_allclose(wl.jit(lambda m, x: m(x))(module, x), expected, rtol=1e-10, atol=1e-13)
    assert module.output_shape(X.shape, wl.float64) == expected.shape
    single = module(x.astype(wl.float32))
    assert single.dtype == (wl.float64 if isinstance(module, nn.PReLU) else wl.float32)
    np.testing.assert_allclose(single, expected, rtol=1e-4, atol=1e-5)
    wl.check_grads(lambda x: module(x), (x + 1e-3,))
    if not isinstance(module, (nn.GLU, nn.Softmax, nn.LogSoftmax)):
        assert module(wl.zeros((0, 3))).shape == (0, 3)
        assert module(wl.tensor(0.5)).shape == (() if not isinstance(module, nn.PReLU) else (1,))


@pytest.mark.book("5.52", "5.53", name=("wl.nn.functional.gelu", "wl.nn.functional.silu"))
def test_numbers_of_the_book():
    at = wl.tensor([1.0, -1.0, 2.0], wl.float64)
    np.testing.assert_allclose(F.gelu(at), [0.84134475, -0.15865525, 1.95449974], atol=1e-8)
    np.testing.assert_allclose(F.silu(at[:2]), [0.73105858, -0.26894142], atol=1e-8)
    np.testing.assert_allclose(F.leaky_relu(wl.tensor(-2.0)), -0.02, rtol=1e-6)


@pytest.mark.parametrize("f", [F.gelu, F.silu, F.mish, F.elu, F.selu, F.softsign, F.leaky_relu, F.hardtanh, F.relu6])
def test_far_out_they_and_their_slopes_are_finite(f):
    x = wl.tensor([-1e4, -100.0, 0.0, 100.0, 1e4])
    value, back = wl.vjp(f, x)
    (slope,) = back(wl.ones(5))
    assert np.isfinite(value.numpy()).all()
    assert np.isfinite(slope.numpy()).all()
    assert np.abs(slope.numpy()).max() <= 1.8


def test_bad_input():
    with pytest.raises(InputError, match="approximate='sigmoid'"):
        F.gelu(1.0, "sigmoid")
    with pytest.raises(InputError, match="approximate='sigmoid'"):
        nn.GELU("sigmoid")
    with pytest.raises(ShapeError, match="axis of size 3"):
        F.glu(wl.ones((2, 3)))
    with pytest.raises(DTypeError, match="complex64"):
        F.gelu(wl.tensor(1j))


def test_the_slope_of_prelu_is_trained():
    module = nn.PReLU(3, init=0.5)
    assert module.num_parameters() == 3
    x = wl.tensor([[-2.0, 3.0, -4.0]])
    np.testing.assert_allclose(wl.grad(lambda m: m(x).sum())(module)["weight"], [-2.0, 0.0, -4.0])
