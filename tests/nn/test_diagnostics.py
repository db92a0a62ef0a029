"""What happens inside a model: sizes of signals and gradients, dead and saturated units, and reports."""

from __future__ import annotations

import math

import numpy as np
import pytest

import wonderland as wl
from wonderland import nn
from wonderland.errors import InputError, ModuleError

D = nn.diagnostics


def key(n=0):
    return wl.random.key(n)


def test_signals_hold_what_layers_receive_and_what_comes_back():
    model = nn.Sequential(nn.Linear(3, 4, dtype=wl.float64), nn.Tanh(), nn.Linear(4, 2, dtype=wl.float64))
    x = wl.random.normal((5, 3), key=key(), dtype=wl.float64)
    found = D.signals(model, x, loss=lambda y: (y**2).sum())
    assert [(s.path, s.kind) for s in found] == [("0", "Linear"), ("1", "Tanh"), ("2", "Linear")]
    first, tanh, last = found
    np.testing.assert_allclose(first.input, x)
    np.testing.assert_allclose(tanh.output, np.tanh(first.output), rtol=1e-12)
    y = model(x)
    np.testing.assert_allclose(last.gradient, 2 * y, rtol=1e-12)
    back = 2 * y.numpy() @ model[2].weight.numpy().T
    np.testing.assert_allclose(tanh.gradient, back, rtol=1e-10)
    np.testing.assert_allclose(first.gradient, back * (1 - tanh.output.numpy() ** 2), rtol=1e-10)
    noise = [s.gradient for s in D.signals(model, x)]
    np.testing.assert_array_equal(noise[0], D.signals(model, x)[0].gradient)  # the same noise every time
    assert not any(module._hooks for module in model.modules())
    with pytest.raises(ModuleError, match="no layers to look at"):
        D.signals(nn.Sequential(wl.relu), x)


def test_looking_changes_nothing():
    model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Dropout(0.5, key=1), nn.Dropout(0.5), nn.Linear(4, 1))
    x = wl.random.normal((8, 3))
    before, stream = model.state_dict(), wl.random.default_stream.value.tolist()
    found = D.signals(model, x)
    for path, value in model.state_dict().items():
        np.testing.assert_array_equal(value, before[path])
    assert wl.random.default_stream.value.tolist() == stream
    # forward and backward pass saw the same units dropped
    dropped = found[3].output.numpy() == 0
    assert not found[2].gradient.numpy()[dropped & (found[2].output.numpy() != 0)].any()
    assert found[2].gradient.numpy()[~dropped].all()


def test_a_layer_that_is_called_twice_is_seen_twice():
    layer = nn.Linear(3, 3)
    model = nn.Sequential(layer, wl.tanh, layer)
    assert [s.path for s in D.signals(model, wl.ones((2, 3)))] == ["0", "0"]


# --- gradients


@pytest.mark.book("A3-57", name=("wl.nn.diagnostics.gradient_norms", "wl.nn.diagnostics.gradient_report"))
def test_gradients_vanish_in_a_deep_net_of_sigmoids():
    # a chain of numbers: every layer multiplies the gradient by its weight and a slope of a quarter at most
    depth, w = 11, 0.9
    layers = []
    for _ in range(depth):
        layers += [nn.Linear.from_matrix(wl.full((1, 1), w, dtype=wl.float64)), nn.Sigmoid()]
    model = nn.Sequential(*layers)
    x = wl.asarray(np.full((1, 1), 0.3))
    norms = [float(wl.norm(s.gradient)) for s in D.signals(model, x, loss=lambda y: y.sum()) if s.kind == "Linear"]
    ratios = np.array(norms[:-1]) / np.array(norms[1:])
    assert (ratios <= 0.25 * w + 1e-12).all()
    assert norms[0] <= norms[-1] * (0.25 * w) ** 10 < 0.25**10
    assert pytest.approx(9.5e-7, rel=0.01) == 0.25**10

    grads = wl.grad(lambda m: m(x).sum())(model)
    report = D.gradient_report(D.gradient_norms(grads))
    assert report.verdict == "vanishing"
    assert not report.healthy
    assert report.parameters["0.weight"] == "vanishing"
    assert report.parameters["20.weight"] == "healthy"


@pytest.mark.book("A3-57", name="wl.nn.diagnostics.gradient_report")
def test_verdicts():
    def verdict(**norms):
        return D.gradient_report(norms).verdict

    assert verdict(a=1.0, b=0.01) == "healthy"
    assert verdict(a=1.0, b=0.0) == "zero"
    assert verdict(a=0.0) == "zero"
    assert verdict(a=1.0, b=1e-9) == "vanishing"
    assert verdict(a=1e9, b=1.0) == "exploding"
    assert verdict(a=1.0, b=math.nan) == verdict(a=math.inf) == "not finite"
    assert D.gradient_report({"a": 5.0}, exploding=1.0).verdict == "exploding"
    assert D.gradient_report({"a": wl.tensor([3.0, 4.0])}).healthy  # gradients themselves
    with pytest.raises(InputError, match="no gradients"):
        D.gradient_report({})


def test_norms_may_be_part_of_a_compiled_step():
    model = wl.models.MLP([3, 4, 1])
    x = wl.random.normal((5, 3))
    norms = lambda m: D.gradient_norms(wl.grad(lambda m: (m(x) ** 2).sum())(m))
    compiled, eager = wl.jit(norms)(model), norms(model)
    assert set(compiled) == {path for path, _ in model.named_parameters()}
    for path, norm in eager.items():
        np.testing.assert_allclose(compiled[path], norm, rtol=1e-4)
        expected = np.linalg.norm(wl.grad(lambda m: (m(x) ** 2).sum())(model)[path].numpy())
        np.testing.assert_allclose(norm, expected, rtol=1e-5)


@pytest.mark.book("A3-57", "A3-58", "A3-59", name="wl.nn.diagnostics.factors")
def test_factors_tell_weights_from_slopes():
    x = wl.random.normal((50, 20), key=key(), dtype=wl.float64)
    for activation in ("sigmoid", "tanh", "relu"):
        big = wl.models.MLP([20] * 6, activation=activation, init=nn.init.orthogonal(8.0), dtype=wl.float64)
        found = D.factors(big, x)
        weights = [f.weight_norm for f in found if f.kind == "Linear"]
        slopes = [f.max_slope for f in found if f.kind != "Linear"]
        np.testing.assert_allclose(weights, 8.0, rtol=1e-10)  # the spectral norm of each matrix
        assert len(slopes) == 4
        assert max(slopes) <= (0.25 if activation == "sigmoid" else 1.0)  # explosions come from weights
    sizes = [float(wl.norm(s.gradient)) for s in D.signals(big, x) if s.kind == "Linear"]
    assert sizes[0] > 100 * sizes[-1]


@pytest.mark.book("A3-57", "A3-59", "A3-61", name="wl.nn.diagnostics.saturation")
def test_saturated_units():
    v = wl.asarray(np.array([[-6.0, -3.5, -1.0, 0.0, 2.0, 3.5, 5.5, 100.0]]))
    model = nn.Sequential(nn.Sigmoid(), nn.Identity())
    assert D.saturation(model, v) == {"0": 3 / 8}  # beyond 5
    assert D.saturation(nn.Sequential(nn.Tanh()), v) == {"0": 5 / 8}  # beyond 3
    assert D.saturation(nn.Sequential(nn.ReLU()), v) == {"0": 4 / 8}  # where nothing passes
    assert D.saturation(nn.Sequential(nn.Tanh()), v, threshold=0.5) == {"0": 7 / 8}


# --- units


@pytest.mark.book("5.45", name="wl.nn.diagnostics.sparsity")
def test_half_of_the_outputs_of_relu_are_zero():
    x = wl.random.normal((200, 100), key=key())
    assert D.sparsity(wl.relu(x)) == pytest.approx(0.5, abs=0.02)
    assert D.sparsity(wl.tanh(x)) == 0.0
    assert D.sparsity(wl.zeros((0, 2))) == 0.0
    # and it has a kink at 0
    assert [wl.grad(wl.relu)(s).item() for s in (-1e-9, 1e-9)] == [0.0, 1.0]


@pytest.mark.book("5.46", name="wl.nn.diagnostics.dead_units")
@pytest.mark.parametrize("relu", [wl.relu, nn.ReLU()])
def test_dead_units_get_no_gradient_and_leaky_ones_do(relu):
    model = nn.Sequential(nn.Linear(4, 6), relu, nn.Linear(6, 2))
    bias = np.zeros(6, np.float32)
    bias[[1, 4]] = -100.0
    model[0].bias = bias
    x = wl.random.normal((200, 4), key=key())
    assert D.dead_units(model, x) == {"0": [1, 4]}
    assert D.dead_units(model, [(x[:100], "targets"), (x[100:], "targets")]) == {"0": [1, 4]}  # batches of a loader
    gradient = np.asarray(wl.grad(lambda m: (m(x) ** 2).sum())(model)["0.weight"])
    assert not gradient[:, [1, 4]].any()
    assert gradient[:, [0, 2, 3, 5]].any(axis=0).all()
    leaky = nn.Sequential(model[0], nn.LeakyReLU(), model[2])
    assert D.dead_units(leaky, x) == {}
    # a unit is alive if one example reaches it
    bias[4] = 0.0
    model[0].bias = bias
    assert D.dead_units(model, x) == {"0": [1]}
    with pytest.raises(InputError, match="no layer with weights"):
        D.dead_units(model, [])


@pytest.mark.book("5.01", "B5-01", name="wl.nn.diagnostics.delta_feature")
def test_a_linear_model_reacts_linearly_to_one_feature():
    linear = nn.Linear(3, 1, dtype=wl.float64)
    x = wl.random.normal((5, 3), key=key(), dtype=wl.float64)
    for j in range(3):
        found = D.delta_feature(linear, x, j)
        np.testing.assert_allclose(found[:, 0], linear.weight[j, 0] * x[:, j], rtol=1e-9)
        # whatever the other features are
        other = x + wl.asarray(np.where(np.arange(3) == j, 0.0, 10.0))
        np.testing.assert_allclose(D.delta_feature(linear, other, j), found, rtol=1e-9)
    net = wl.models.MLP([3, 8, 1], activation="tanh", dtype=wl.float64, key=key(1))
    other = x + wl.asarray([0.0, 2.0, 2.0])
    assert not np.allclose(D.delta_feature(net, other, 0), D.delta_feature(net, x, 0), atol=1e-3)
    np.testing.assert_allclose(D.delta_feature(linear, x, 0, factor=4.0), 3 * D.delta_feature(linear, x, 0), rtol=1e-9)
    with pytest.raises(InputError, match="no feature 3"):
        D.delta_feature(linear, x, 3)


# --- activation functions


@pytest.mark.book("A3-64", name="wl.nn.diagnostics.activation_report")
@pytest.mark.parametrize(
    "phi, fails",
    [
        (wl.sigmoid, {"zero_at_zero"}),
        (wl.tanh, set()),
        (wl.relu, {"differentiable", "linear_near_zero"}),
        (nn.functional.leaky_relu, {"differentiable", "linear_near_zero"}),
        (lambda s: 1.0 * s, {"nonlinear"}),
        (lambda s: s**3, {"linear_near_zero", "bounded_gradient"}),
        (nn.functional.softplus, {"zero_at_zero"}),
        (nn.functional.softsign, set()),
        (nn.functional.gelu, {"cheap"}),
        (nn.functional.step, {"differentiable", "zero_at_zero", "linear_near_zero"}),
        (wl.exp, {"zero_at_zero", "bounded_gradient"}),
    ],
)
def test_six_properties(phi, fails):
    report = D.activation_report(phi)
    properties = {name: value for name, value in report._asdict().items() if isinstance(value, bool)}
    assert len(properties) == 6
    assert {name for name, holds in properties.items() if not holds} == fails
    if phi is wl.sigmoid:
        assert report.max_slope == 0.25
    assert D.activation_report(nn.Activation(phi)) == report
