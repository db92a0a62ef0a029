"""Activation functions with parameters, gated layers, maxout and Kolmogorov-Arnold layers."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import special
from scipy.interpolate import BSpline

import wonderland as wl
from wonderland import nn
from wonderland.errors import InputError, ShapeError

F = nn.functional
RNG = np.random.default_rng(0)


def numbers(*shape):
    return wl.asarray(RNG.normal(size=shape))


# --- a few parameters


@pytest.mark.book("5.48", "B5-18", name="wl.nn.PReLU")
@pytest.mark.parametrize("units", [1, 3])
def test_the_slope_of_prelu_is_trained(units):
    layer = nn.PReLU(units, init=0.5, dtype=wl.float64)
    assert layer.num_parameters() == units
    x, upstream = numbers(5, 3), numbers(5, 3)
    found = wl.grad(lambda m: (m(x) * upstream).sum())(layer)["weight"]
    each = (np.minimum(x, 0) * upstream.numpy()).sum(axis=0)
    np.testing.assert_allclose(found, each if units == 3 else [each.sum()], rtol=1e-12)
    wl.check_grads(lambda m, x: m(x), (layer, x))
    with pytest.raises(ShapeError, match=r"PReLU: .*\(5, 1\) does not have 3 units"):
        nn.PReLU(3)(wl.ones((5, 1)))
    with pytest.raises(InputError, match="num_parameters=0"):
        nn.PReLU(0)


@pytest.mark.book("5.55", name="wl.nn.TrainableSwish")
def test_trainable_swish_starts_as_silu():
    layer = nn.TrainableSwish(3, dtype=wl.float64)
    x = numbers(4, 3)
    np.testing.assert_allclose(layer(x), F.silu(x), rtol=1e-12)
    assert sorted(path for path, _ in layer.named_parameters()) == ["a", "b", "c", "d"]
    for name, parameter in layer.named_parameters():
        parameter.assign(numbers(3))
        assert np.any(wl.grad(lambda m: m(x).sum())(layer)[name])
    a, b, c, d = (np.asarray(getattr(layer, name)) for name in "abcd")
    np.testing.assert_allclose(layer(x), special.expit(a * x + b) * (c * x + d), rtol=1e-12)
    wl.check_grads(lambda m, x: m(x), (layer, x))


@pytest.mark.book("5.60", name="wl.nn.Module.num_parameters")
def test_what_an_activation_costs_in_parameters():
    def count(activation):
        return wl.models.MLP([3, 10, 1], activation=activation).num_parameters()

    plain = count("relu")
    assert count(nn.PReLU(10)) - plain == 10  # one per neuron
    assert count(nn.TrainableSwish(10)) - plain == 4 * 10
    cheap, dear = (nn.diagnostics.activation_report(f).operations for f in (wl.relu, F.gelu))
    assert cheap < dear


def test_each_layer_of_a_model_has_an_activation_of_its_own():
    net = wl.models.MLP([2, 3, 3, 1], activation=nn.PReLU())
    assert [path for path, p in net.named_parameters() if p.shape == (1,)][:2] == ["layers.1.weight", "layers.3.weight"]


# --- sums of fixed functions


@pytest.mark.book("5.56", name="wl.nn.BasisActivation")
@pytest.mark.parametrize("sharing, units, shape", [("layer", None, (3,)), ("neuron", 4, (4, 3))])
def test_a_sum_of_functions_is_linear_in_its_weights(sharing, units, shape):
    layer = nn.BasisActivation([wl.relu, wl.tanh, wl.sin], sharing, units, dtype=wl.float64)
    assert layer.alpha.shape == shape
    assert [path for path, _ in layer.named_parameters()] == ["alpha"]  # nothing in the functions is trained
    x = numbers(5, 4)
    one, two = numbers(*shape), numbers(*shape)

    def at(alpha):
        layer.alpha = alpha
        return layer(x)

    np.testing.assert_allclose(at(2.0 * one - two), 2.0 * at(one) - at(two), rtol=1e-9, atol=1e-12)
    values = np.stack([np.maximum(x, 0), np.tanh(x), np.sin(x)], axis=-1)
    np.testing.assert_allclose(at(one), (values * one.numpy()).sum(-1), rtol=1e-12)
    wl.check_grads(lambda m, x: m(x), (layer, x))


def test_bad_sums_of_functions():
    with pytest.raises(InputError, match=r"sharing='neuron' with units=None"):
        nn.BasisActivation([wl.relu], sharing="neuron")
    with pytest.raises(InputError, match=r"sharing='layer' with units=3"):
        nn.BasisActivation([wl.relu], units=3)
    with pytest.raises(InputError, match="there are no functions"):
        nn.BasisActivation([])
    with pytest.raises(InputError, match="a function is not a basis"):
        nn.BasisActivation(wl.relu)
    with pytest.raises(ShapeError, match=r"alpha of shape \(2,\) for 1 functions"):
        nn.BasisActivation([wl.relu], alpha=[1.0, 2.0])
    with pytest.raises(ShapeError, match="does not have 3 units"):
        nn.BasisActivation([wl.relu], "neuron", 3)(wl.ones((2, 1)))
    with pytest.raises(InputError, match="boundary=0"):
        nn.KAF(boundary=0)
    with pytest.raises(InputError, match="size=1"):
        nn.KAF(1)
    with pytest.raises(InputError, match="gamma=-1"):
        nn.KAF(gamma=-1)
    with pytest.raises(InputError, match="low=1 is not below"):
        nn.BSplineBasis(low=1)


@pytest.mark.book("5.57", name="wl.nn.APL")
def test_adaptive_piecewise_linear():
    layer = nn.APL(3, dtype=wl.float64)
    s = wl.asarray(np.linspace(-3, 3, 601))
    np.testing.assert_array_equal(layer(s), np.maximum(s, 0))  # a = 0 at the start
    a, b = np.array([0.5, -1.0, 2.0]), np.array([-1.5, 0.75, 1.5])
    layer.a, layer.b = a[None], b[None]
    expected = np.maximum(s, 0) + sum(ai * np.maximum(0, -s.numpy() + bi) for ai, bi in zip(a, b, strict=True))
    np.testing.assert_allclose(layer(s), expected, rtol=1e-12, atol=1e-12)
    bends = np.abs(np.diff(layer(s).numpy(), 2)) > 1e-9
    np.testing.assert_allclose(s.numpy()[1:-1][bends], [-1.5, 0.0, 0.75, 1.5], atol=1e-9)  # n + 1 kinks
    wl.check_grads(lambda m, s: m(s), (layer, s[3:9] + 0.003))
    per_unit = nn.APL(2, units=4)
    assert per_unit.num_parameters() == 2 * 2 * 4
    assert per_unit(wl.ones((3, 4))).shape == (3, 4)
    with pytest.raises(ShapeError, match="4 units"):
        per_unit(wl.ones(3))


@pytest.mark.book("5.58", name=("wl.nn.KAF", "wl.nn.GaussianBasis"))
def test_kernel_activation():
    layer = nn.KAF(15, boundary=2.0, gamma=500.0, key=wl.random.key(0), dtype=wl.float64)
    places = layer.basis.places
    # narrow kernels: at a place of the dictionary only its own weight counts
    np.testing.assert_allclose(layer(wl.asarray(places)), layer.alpha, atol=1e-8)
    fitted = nn.KAF(30, boundary=4.0, init=wl.tanh, dtype=wl.float64)
    s = np.linspace(-3, 3, 50)
    np.testing.assert_allclose(fitted(wl.asarray(s)), np.tanh(s), atol=2e-2)
    K = np.exp(-fitted.basis.gamma * (fitted.basis.places[:, None] - fitted.basis.places) ** 2)
    ridge = np.linalg.solve(K + 1e-4 * np.eye(30), np.tanh(fitted.basis.places))
    np.testing.assert_allclose(fitted.alpha, ridge, rtol=1e-6)
    spacing = fitted.basis.places[1] - fitted.basis.places[0]
    assert fitted.basis.gamma == pytest.approx(1 / (6 * spacing**2))
    per_unit = nn.KAF(15, sharing="neuron", units=3)
    assert per_unit.alpha.shape == (3, 15)
    assert per_unit(wl.ones((2, 3))).shape == (2, 3)
    wl.check_grads(lambda m, x: m(x), (fitted, numbers(4)))


@pytest.mark.parametrize("degree", [0, 1, 2, 3])
def test_b_splines_are_those_of_scipy(degree):
    basis = nn.BSplineBasis(4, degree, -1.0, 2.0)
    x = np.linspace(-1.0, 2.0, 41)
    expected = np.stack(
        [BSpline(basis.knots, np.eye(basis.size)[i], degree, extrapolate=False)(x) for i in range(basis.size)], axis=-1
    )
    found = np.asarray(basis(wl.asarray(x)))
    np.testing.assert_allclose(found[:-1], np.nan_to_num(expected)[:-1], atol=1e-12)
    np.testing.assert_allclose(found.sum(axis=-1), 1.0, rtol=1e-12)  # at both ends, too
    assert not np.asarray(basis(wl.tensor([-1.5, 2.5]))).any()


def test_equal_bases_are_equal():
    for make in (lambda: nn.Basis([wl.relu]), lambda: nn.GaussianBasis(5), nn.BSplineBasis):
        assert make() == make()
        assert hash(make()) == hash(make())
    assert nn.GaussianBasis(5) != nn.GaussianBasis(5, gamma=1.0)


# --- gated layers


@pytest.mark.book("5.61", "5.62", name=("wl.nn.GatedLinear", "wl.nn.SwiGLU"))
@pytest.mark.parametrize(
    "kind, phi, at_zero",
    [
        (nn.GatedLinear, special.expit, 0.5),
        (nn.SwiGLU, lambda s: s * special.expit(s), 0.0),
        (nn.GEGLU, lambda s: s * special.ndtr(s), 0.0),
        (nn.ReGLU, lambda s: np.maximum(s, 0), 0.0),
    ],
)
def test_one_projection_gates_another(kind, phi, at_zero):
    layer = kind(3, 5, dtype=wl.float64)
    assert layer.num_parameters() == 2 * 3 * 5  # no biases
    x = numbers(2, 4, 3)
    W1, W2 = np.asarray(layer.gate.weight), np.asarray(layer.value.weight)
    np.testing.assert_allclose(layer(x), phi(x.numpy() @ W1) * (x.numpy() @ W2), rtol=1e-11, atol=1e-14)
    np.testing.assert_allclose(wl.jit(lambda m, x: m(x))(layer, x), layer(x), rtol=1e-11, atol=1e-14)
    wl.check_grads(lambda m, x: m(x), (layer, x[0]))
    nn.init.zeros_(layer.gate.weight)
    np.testing.assert_allclose(layer(x), at_zero * (x.numpy() @ W2), rtol=1e-11, atol=1e-14)
    assert kind(None, 5)(x.astype(wl.float32)).shape == (2, 4, 5)


@pytest.mark.parametrize(
    "f, phi",
    [
        (F.glu, special.expit),
        (F.swiglu, lambda s: s * special.expit(s)),
        (F.geglu, lambda s: s * special.ndtr(s)),
        (F.reglu, lambda s: np.maximum(s, 0)),
    ],
)
def test_gates_of_halves(f, phi):
    x = numbers(3, 8)
    np.testing.assert_allclose(f(x), x.numpy()[:, :4] * phi(x.numpy()[:, 4:]), rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(f(x.T, axis=0), f(x).T, rtol=1e-12)


# --- maxout


@pytest.mark.book("5.63", name="wl.nn.Maxout")
def test_maxout():
    c, out, k = 3, 4, 5
    layer = nn.Maxout(c, out, k, dtype=wl.float64)
    assert layer.num_parameters() == k * (c + 1) * out
    x = numbers(7, c)
    W, b = np.asarray(layer.linear.weight), np.asarray(layer.linear.bias)
    np.testing.assert_allclose(layer(x), (x.numpy() @ W + b).reshape(7, out, k).max(-1), rtol=1e-12)
    u, v = numbers(50, c), numbers(50, c)
    assert (layer(0.3 * u + 0.7 * v) <= 0.3 * layer(u) + 0.7 * layer(v) + 1e-12).all()  # convex
    assert nn.Maxout(c, out, 1)(wl.ones(c)).shape == (out,)
    linear = nn.Maxout(c, out, 1, dtype=wl.float64)
    np.testing.assert_allclose(linear(u + v) + linear(wl.zeros(c)), linear(u) + linear(v), atol=1e-6)
    # two projections, one of them zero: ReLU
    w = numbers(c, 1)
    rectifier = nn.Maxout(c, 1, 2, bias=False, dtype=wl.float64)
    rectifier.linear.weight = wl.concat([w, wl.zeros_like(w)], axis=1)
    np.testing.assert_allclose(rectifier(x), wl.relu(x @ w), rtol=1e-12)
    with pytest.raises(InputError, match="k=0"):
        nn.Maxout(3, 4, 0)


# --- Kolmogorov and Arnold


@pytest.mark.book("5.64", name="wl.nn.KANLayer")
def test_a_kolmogorov_arnold_layer_is_a_sum_of_functions_of_single_inputs():
    bases = [wl.relu, wl.tanh, wl.cos, lambda x: x]
    layer = nn.KANLayer(3, 5, bases, dtype=wl.float64)
    assert layer.num_parameters() == 3 * 5 * 4
    x = numbers(2, 6, 3)
    W = np.asarray(layer.weight)  # (in, n, out)
    values = np.stack([np.maximum(x, 0), np.tanh(x), np.cos(x), x], axis=-1)
    np.testing.assert_allclose(layer(x), np.einsum("btjk,jki->bti", values, W), rtol=1e-11, atol=1e-13)
    np.testing.assert_allclose(wl.jit(lambda m, x: m(x))(layer, x), layer(x), rtol=1e-11, atol=1e-13)
    mixed = wl.hessian(lambda x: layer(x)[0])(x[0, 0])
    assert not np.asarray(mixed)[~np.eye(3, dtype=bool)].any()
    linear = nn.KANLayer(3, 5, [lambda x: x], dtype=wl.float64)
    np.testing.assert_allclose(linear(x), x @ linear.weight[:, 0], rtol=1e-12)
    wl.check_grads(lambda m, x: m(x), (layer, x[0]))
    with pytest.raises(ShapeError, match=r"\(2, 4\) does not have 3 features"):
        layer(wl.ones((2, 4)))


def test_a_kolmogorov_arnold_network_of_splines_learns():
    wl.random.seed(1)
    model = nn.Sequential(nn.KANLayer(2, 2), nn.KANLayer(2, 1))
    x = wl.random.uniform((64, 2), -1.0, 1.0)
    y = wl.exp(wl.sin(3.0 * x[:, :1]) + x[:, 1:] ** 2) / 5.0
    optimizer = wl.optim.Adam(model, lr=0.03)

    @wl.jit
    def step(model, optimizer):
        loss, grads = wl.value_and_grad(lambda m: ((m(x) - y) ** 2).mean())(model)
        optimizer.step(grads)
        return loss

    losses = [step(model, optimizer).item() for _ in range(300)]
    assert losses[-1] < 0.02 * losses[0]
