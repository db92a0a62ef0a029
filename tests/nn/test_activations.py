"""Activation functions of `wl.nn.functional` and their modules."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import optimize, special, stats

import wonderland as wl
from wonderland import nn
from wonderland.errors import DTypeError, InputError, NonFiniteError, ShapeError

F = nn.functional
X = np.linspace(-4.0, 4.0, 24).reshape(4, 6)

FORMULAS = [
    (nn.ReLU(), np.maximum(X, 0)),
    (nn.ReLU6(), np.clip(2 * X, 0, 6)),
    (nn.LeakyReLU(), np.where(X > 0, X, 0.01 * X)),
    (nn.LeakyReLU(0.3), np.where(X > 0, X, 0.3 * X)),
    (nn.RReLU(0.1, 0.3).eval(), np.where(X > 0, X, 0.2 * X)),
    (nn.PReLU(dtype=wl.float64), np.where(X > 0, X, 0.25 * X)),
    (nn.ELU(2.0), np.where(X > 0, X, 2 * np.expm1(X))),
    (nn.CELU(2.0), np.where(X > 0, X, 2 * np.expm1(X / 2))),
    (nn.SELU(), 1.0507009873554805 * np.where(X > 0, X, 1.6732632423543772 * np.expm1(X))),
    (nn.GELU(), X * stats.norm.cdf(X)),
    (nn.GELU("tanh"), 0.5 * X * (1 + np.tanh(np.sqrt(2 / np.pi) * (X + 0.044715 * X**3)))),
    (nn.SiLU(), X * special.expit(X)),
    (nn.Mish(), X * np.tanh(np.log1p(np.exp(X)))),
    (nn.Tanh(), np.tanh(X)),
    (nn.Sigmoid(), special.expit(X)),
    (nn.Sigmoid(slope=3.0), special.expit(3 * X)),
    (nn.Softplus(), np.log1p(np.exp(X))),
    (nn.Softplus(2.0), np.log1p(np.exp(2 * X)) / 2),
    (nn.Softsign(), X / (1 + np.abs(X))),
    (nn.Tanhshrink(), X - np.tanh(X)),
    (nn.PolyActivation(3), X**3),
    (nn.Hardtanh(-2.0, 0.5), np.clip(X, -2, 0.5)),
    (nn.Hardsigmoid(), np.clip(X + 3, 0, 6) / 6),
    (nn.Hardswish(), X * np.clip(X + 3, 0, 6) / 6),
    (nn.Softshrink(0.7), np.sign(X) * np.maximum(np.abs(X) - 0.7, 0)),
    (nn.Hardshrink(0.7), np.where(np.abs(X) > 0.7, X, 0)),
    (nn.Threshold(1.0, -3.0), np.where(X > 1, X, -3)),
    (nn.Step(), np.heaviside(X, 1.0)),
    (nn.Softmax(), special.softmax(X, axis=-1)),
    (nn.Softmax(axis=0), special.softmax(X, axis=0)),
    (nn.Softmax(temperature=0.5), special.softmax(2 * X, axis=-1)),
    (nn.Softmin(temperature=2.0), special.softmax(-X / 2, axis=-1)),
    (nn.LogSoftmax(), special.log_softmax(X, axis=-1)),
    (nn.LogSoftmax(temperature=2.0), special.log_softmax(X / 2, axis=-1)),
    (nn.LogSigmoid(), special.log_expit(X)),
    (nn.Activation(np.exp), np.exp(X)),
    (nn.GatedActivation(F.sigmoid), X * special.expit(X)),
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
    if not isinstance(module, (nn.GLU, nn.Softmax)):
        assert module(wl.zeros((0, 3))).shape == (0, 3)
        assert module(wl.tensor(0.5)).shape == (() if not isinstance(module, nn.PReLU) else (1,))


def test_every_activation_is_found_by_name():
    for name in ("relu", "ReLU", "leaky_relu", "gelu", "swish", "identity", "prelu", "kaf", "softmax"):
        nn.FullyConnected(2, 4, name)(wl.ones((3, 2)))
    with pytest.raises(InputError, match=r"no activation 'rellu'(.|\n)*'relu'"):
        nn.FullyConnected(2, 4, "rellu")
    with pytest.raises(InputError, match="activation=3 is not a function"):
        nn.FullyConnected(2, 4, 3)


@pytest.mark.parametrize("approximate", ["none", "tanh"])
@pytest.mark.parametrize("low", ["bfloat16", "float16"])
def test_gelu_of_half_precision_has_all_its_digits(low: str, approximate: str) -> None:
    """It is that of float64, rounded once, also where the share of x is small; and so is its derivative."""
    x = wl.linspace(-2.5, 3, 200).astype(low)
    wide, eps = x.astype(wl.float64), 2.0**-8 if low == "bfloat16" else 2.0**-11
    for f in (lambda x: F.gelu(x, approximate), wl.vmap(wl.grad(lambda x: F.gelu(x, approximate)))):
        for run in (f, wl.jit(f)):
            found, wanted = np.asarray(run(x).astype(wl.float64)), np.asarray(f(wide))
            assert np.abs(found - wanted).max() <= 1.5 * eps * np.abs(wanted).max()
            assert (np.abs(found - wanted) <= 2 * eps * np.abs(wanted) + 1e-4).all()


@pytest.mark.book("5.52", "5.53", name=("wl.nn.functional.gelu", "wl.nn.functional.silu"))
def test_numbers_of_the_book():
    at = wl.tensor([1.0, -1.0, 2.0], wl.float64)
    np.testing.assert_allclose(F.gelu(at), [0.84134475, -0.15865525, 1.95449974], atol=1e-8)
    np.testing.assert_allclose(F.silu(at[:2]), [0.73105858, -0.26894142], atol=1e-8)
    lowest = optimize.minimize_scalar(lambda s: float(F.silu(wl.asarray(np.float64(s)))), bounds=(-3, 0))
    np.testing.assert_allclose([lowest.x, lowest.fun], [-1.27846, -0.27846454], atol=1e-4)
    lowest = optimize.minimize_scalar(lambda s: float(F.gelu(wl.asarray(np.float64(s)))), bounds=(-2, 0))
    np.testing.assert_allclose([lowest.x, lowest.fun], [-0.7518, -0.16997], atol=1e-4)


@pytest.mark.book("5.11", "A2-43", "A3-62", name="wl.relu")
def test_relu_has_slope_one_or_zero():
    s = wl.tensor([-1.0, 2.0, 0.0])
    assert wl.relu(s).tolist() == [0.0, 2.0, 0.0]
    assert wl.grad(lambda s: wl.relu(s).sum())(s).tolist() == [0.0, 1.0, 0.0]  # at 0 fixed to 0


@pytest.mark.book("5.47", "B5-17", "A3-63", name="wl.nn.functional.leaky_relu")
def test_leaky_relu():
    np.testing.assert_allclose(F.leaky_relu(wl.tensor(-2.0)), -0.02, rtol=1e-6)
    x = wl.asarray(X)
    np.testing.assert_array_equal(F.leaky_relu(x, 0.0), np.maximum(X, 0))
    np.testing.assert_array_equal(F.leaky_relu(x, 1.0), X)
    np.testing.assert_allclose(wl.grad(F.leaky_relu)(-3.0), 0.01, rtol=1e-6)


@pytest.mark.book("5.42", "A2-26", "B5-15", name=("wl.nn.functional.step", "wl.nn.Step"))
def test_a_threshold_unit_is_one_at_zero_and_has_no_gradient():
    s = wl.tensor([-1e-12, 0.0, 1e-12, 5.0])
    assert F.step(s).tolist() == [0.0, 1.0, 1.0, 1.0]
    assert F.heaviside is F.step
    assert wl.grad(lambda s: F.step(s).sum())(s).tolist() == [0.0] * 4
    # a neuron that subtracts its threshold is one with the bias of the other sign
    w, x, b = wl.tensor([1.0, 2.0]), wl.tensor([[1.0, 1.0], [0.0, 1.0]]), 2.5
    unit = nn.Linear.from_matrix(w[:, None], [-b])
    np.testing.assert_array_equal(F.step(x @ w - b), F.step(unit(x))[:, 0])


@pytest.mark.book("5.42", name="wl.nn.Step")
def test_a_straight_through_threshold_passes_gradients_on():
    layer = nn.Step("straight-through")
    x = wl.tensor([-3.0, 0.25, 7.0])
    value, back = wl.vjp(layer, x)
    assert value.tolist() == [0.0, 1.0, 1.0]
    assert back(wl.tensor([1.0, 2.0, 3.0]))[0].tolist() == [1.0, 2.0, 3.0]
    assert wl.jit(layer)(x).tolist() == [0.0, 1.0, 1.0]
    with pytest.raises(InputError, match=r"gradient='ste'(.|\n)*'straight-through'"):
        nn.Step("ste")
    with pytest.raises(InputError, match="gradient='ste'"):
        F.step(x, "ste")


@pytest.mark.book("A2-11", name=("wl.nn.StochasticBinary", "wl.nn.functional.stochastic_binary"))
def test_a_stochastic_neuron_is_one_with_the_probability_of_the_sigmoid():
    n = 4000
    s = wl.asarray(np.repeat([-2.0, 0.0, 1.5], n).reshape(3, n))
    layer = nn.StochasticBinary(key=3)
    drawn = layer(s)
    assert set(np.unique(drawn)) == {0.0, 1.0}
    p = special.expit([-2.0, 0.0, 1.5])
    assert (np.abs(np.mean(drawn, axis=1) - p) < 3 * np.sqrt(p * (1 - p) / n)).all()
    np.testing.assert_array_equal(nn.StochasticBinary(key=3)(s), drawn)
    assert not np.array_equal(layer(s), drawn)  # the stream moves on
    np.testing.assert_array_equal(wl.jit(lambda m, s: m(s))(nn.StochasticBinary(key=3), s), drawn)
    # what its gradient is was chosen: that of the probability, or none
    key = wl.random.key(0)
    through = wl.grad(lambda s: F.stochastic_binary(s, key=key).sum())(s[:, :5])
    np.testing.assert_allclose(through, (special.expit(s) * special.expit(-s.numpy()))[:, :5], rtol=1e-6)
    assert not wl.grad(lambda s: F.stochastic_binary(s, "none", key=key).sum())(s[:, :5]).any()


@pytest.mark.book("5.43", "B5-16", name="wl.nn.functional.sigmoid")
def test_a_steep_sigmoid_is_a_step_except_at_zero():
    s = np.array([-2.0, -0.01, 0.0, 0.01, 2.0])
    steep = np.asarray(F.sigmoid(wl.asarray(s), slope=1e4))
    away = s != 0
    np.testing.assert_allclose(steep[away], np.asarray(F.step(s))[away], atol=1e-12)
    assert (steep[~away].item(), F.step(0.0).item()) == (0.5, 1.0)


@pytest.mark.book("A2-10", "A3-59", "A3-60", name="wl.sigmoid")
def test_the_sigmoid_and_its_slope():
    assert wl.sigmoid(0.0).item() == 0.5
    far = wl.sigmoid(wl.tensor([-1000.0, 1000.0]))
    assert far.tolist() == [0.0, 1.0]
    s = wl.asarray(X)
    np.testing.assert_allclose(wl.sigmoid(-s), 1 - wl.sigmoid(s), atol=1e-15)
    assert (wl.sigmoid(s[s.numpy() < 0]) < 0.5).all()
    slope = wl.vmap(wl.grad(wl.sigmoid))
    np.testing.assert_allclose(slope(wl.tensor([5.0, 0.0], wl.float64)), [0.00665, 0.25], atol=5e-6)
    assert slope(wl.asarray(X.ravel())).max() <= 0.25  # gradients shrink to a quarter at most


@pytest.mark.book("5.44", "A3-61", name="wl.tanh")
def test_tanh_is_a_sigmoid_of_twice_its_argument():
    one = wl.tensor(1.0, wl.float64)
    np.testing.assert_allclose(wl.tanh(one), 0.76159416, atol=1e-8)
    s = wl.asarray(X)
    np.testing.assert_allclose(wl.tanh(s), 2 * wl.sigmoid(2 * s) - 1, atol=1e-15)
    np.testing.assert_allclose(2 * wl.sigmoid(one) - 1, 0.46211716, atol=1e-8)  # as printed, which is another number
    assert wl.tanh(1000.0).item() == 1.0
    slope = wl.grad(wl.tanh)
    np.testing.assert_allclose([slope(one * 0), slope(one * 3)], [1.0, 0.00987], atol=5e-6)


@pytest.mark.book("5.49", "B5-19", name="wl.nn.functional.softplus")
def test_softplus():
    s = wl.tensor([0.0, -1.0, 1000.0], wl.float64)
    np.testing.assert_allclose(F.softplus(s), [0.69314718, 0.31326169, 1000.0], atol=1e-8)
    x = wl.asarray(X.ravel())
    np.testing.assert_allclose(F.softplus(x) - F.softplus(-x), x, atol=1e-14)
    np.testing.assert_allclose(wl.vmap(wl.grad(F.softplus))(x), special.expit(x), atol=1e-14)
    assert (F.softplus(x) > 0).all()
    with pytest.raises(InputError, match="beta=0"):
        F.softplus(1.0, beta=0)


@pytest.mark.book("5.50", "B5-20", name="wl.nn.functional.elu")
def test_elu_is_smooth_at_zero_and_safe_far_out():
    slope = wl.grad(F.elu)
    np.testing.assert_allclose(F.elu(wl.tensor(-1.0, wl.float64)), -0.63212056, atol=1e-8)
    np.testing.assert_allclose([slope(-1e-6), slope(0.0), slope(1e-6)], 1.0, atol=1e-5)
    assert slope(1000.0).item() == 1.0
    assert F.elu(0.0).item() == 0.0
    assert F.elu(-1e4).item() == -1.0


@pytest.mark.book("5.51", name="wl.nn.GatedActivation")
def test_a_step_as_gate_gives_relu():
    np.testing.assert_array_equal(nn.GatedActivation(F.step)(wl.asarray(X)), np.maximum(X, 0))
    np.testing.assert_allclose(nn.GatedActivation(nn.Sigmoid())(wl.asarray(X)), X * special.expit(X), rtol=1e-12)
    with pytest.raises(InputError, match="a float is not a function"):
        nn.GatedActivation(1.0)


@pytest.mark.book("5.54", name=("wl.relu", "wl.nn.functional.leaky_relu", "wl.nn.functional.elu"))
def test_the_figure_of_five_activations():
    at = wl.tensor([-2.0, -1.0, 0.0, 1.0, 2.0], wl.float64)
    table = {
        wl.relu: [0, 0, 0, 1, 2],
        (lambda s: F.leaky_relu(s, 0.1)): [-0.2, -0.1, 0, 1, 2],
        F.softplus: [0.126928, 0.31326169, 0.69314718, 1.31326169, 2.126928],
        F.elu: [-0.864665, -0.63212056, 0, 1, 2],
        F.gelu: [-0.04550026, -0.15865525, 0, 0.84134475, 1.95449974],
    }
    for f, expected in table.items():
        np.testing.assert_allclose(f(at), expected, atol=1e-6)


@pytest.mark.book("5.59", "A2-36", "A2-39", name=("wl.nn.Softmax", "wl.is_simplex"))
def test_softmax_is_an_activation_of_whole_vectors():
    eta = wl.tensor([3.0, 0.0, 1.0], wl.float64)
    table = {1: [0.8438, 0.0420, 0.1142], 10: [0.3907, 0.2894, 0.3199], 0.5: [0.9796, 0.0024, 0.0179], 0.1: [1, 0, 0]}
    for temperature, expected in table.items():
        layer = nn.Softmax(temperature=temperature)
        np.testing.assert_allclose(layer(eta), expected, atol=6e-5)
        assert wl.is_simplex(layer(eta), strict=True)
        np.testing.assert_allclose(layer(eta + 100.0), layer(eta), rtol=1e-10)
    J = np.asarray(wl.jacobian(nn.Softmax())(eta))
    assert (J[~np.eye(3, dtype=bool)] != 0).all()  # every output depends on every input
    for kind in (nn.Softmax, nn.Softmin, nn.LogSoftmax):
        for bad in (0, -1.0, math.nan):
            with pytest.raises(InputError, match=f"{kind.__name__}: temperature="):
                kind(temperature=bad)


@pytest.mark.book("A2-09", name="wl.nn.Identity")
def test_the_identity_has_slope_one():
    assert wl.grad(nn.Identity())(3.0).item() == 1.0


@pytest.mark.book("A2-25", name="wl.nn.FullyConnected")
@pytest.mark.parametrize("module", [nn.ReLU(), nn.GELU(), nn.Hardswish(), nn.KAF(init=wl.tanh)])
def test_elementwise_functions_treat_each_number_alone(module):
    x = wl.asarray(X[0])
    np.testing.assert_allclose(module(x), [module(s) for s in x], atol=1e-6)
    J = np.asarray(wl.jacobian(module)(x))
    np.testing.assert_array_equal(J[~np.eye(6, dtype=bool)], 0)


@pytest.mark.book("5.41", "B5-14", name=("wl.nn.PolyActivation", "wl.debug.nans"))
def test_a_deep_net_of_cubes_overflows_and_the_detector_names_the_layer():
    layers = []
    for _ in range(10):
        layers += [nn.Linear.from_matrix(wl.full((2, 2), 1.0)), nn.PolyActivation(3)]
    model = nn.Sequential(*layers)
    x = wl.full((1, 2), 2.0)  # 4, 64, 128, 2097152, 2^22, 2^66, 2^67, 2^201: the fourth cube is too large
    assert not np.isfinite(model(x).numpy()).all()
    with pytest.raises(NonFiniteError, match=r"in module: 7 \(PolyActivation\)"), wl.debug.nans():
        model(x)
    assert wl.isinf(F.polynomial(wl.tensor(1e3, wl.float64), 200)).item()
    with pytest.raises(InputError, match="p=-1"):
        nn.PolyActivation(-1)


@pytest.mark.book("5.12", name=("wl.models.MLP", "wl.nn.Activation"))
def test_any_function_is_an_activation():
    for phi in (lambda s: s * s, wl.sigmoid, lambda s: wl.sqrt(wl.relu(s) + 1.0)):
        net = wl.models.MLP([2, 3, 1], activation=phi, dtype=wl.float64)
        x = wl.random.normal((4, 2), dtype=wl.float64)
        expected = phi(x @ net.layers[0].weight + net.layers[0].bias) @ net.layers[2].weight + net.layers[2].bias
        np.testing.assert_allclose(net(x), expected, rtol=1e-12)
        wl.check_grads(lambda net, x: net(x), (net, x))


def test_random_slopes_while_training():
    layer = nn.RReLU(0.1, 0.3, key=0)
    slopes = -np.asarray(layer(wl.full((2000,), -1.0)))
    assert slopes.min() >= 0.1
    assert slopes.max() < 0.3
    np.testing.assert_allclose(slopes.mean(), 0.2, atol=0.01)
    assert (-np.asarray(layer(wl.full((2000,), -1.0))) != slopes).mean() > 0.9
    assert nn.RReLU(0.2, 0.2)(wl.tensor(-1.0)).item() == pytest.approx(-0.2)
    for make in (nn.RReLU, lambda low, high: F.rrelu(1.0, low, high)):
        with pytest.raises(InputError, match=r"lower=0\.5 is above upper=0\.1"):
            make(0.5, 0.1)


@pytest.mark.parametrize(
    "f",
    [F.gelu, F.silu, F.mish, F.elu, F.selu, F.celu, F.softsign, F.leaky_relu, F.hardtanh, F.relu6, F.hardswish]
    + [F.hardsigmoid, F.softshrink, F.hardshrink, F.tanhshrink, F.swish, F.softplus, F.log_sigmoid],
)
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
    for f in (F.glu, F.swiglu, F.geglu, F.reglu):
        with pytest.raises(ShapeError, match="axis of size 3"):
            f(wl.ones((2, 3)))
    with pytest.raises(DTypeError, match="complex64"):
        F.gelu(wl.tensor(1j))
    with pytest.raises(InputError, match="alpha=0"):
        F.celu(1.0, 0.0)
    for kind, f in ((nn.Softshrink, F.softshrink), (nn.Hardshrink, None)):
        with pytest.raises(InputError, match="lambd=-1"):
            kind(-1)
        if f:
            with pytest.raises(InputError, match="lambd=-1"):
                f(1.0, -1)
    with pytest.raises(InputError, match="not a function"):
        nn.Activation(3)
