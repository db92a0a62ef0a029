"""The fully-connected layer and its relatives, fused linear layers, and what a module is in the book's box."""

from __future__ import annotations

import numpy as np
import pytest

import wonderland as wl
from wonderland import nn
from wonderland.errors import InputError, ModuleError, ShapeError


def numbers(*shape, seed=0):
    return wl.asarray(np.random.default_rng(seed).normal(size=shape))


class FullyConnectedLayer(nn.Module):
    """The box of the book: unscaled random numbers, and ReLU after every layer."""

    def __init__(self, c, cprime):
        self.W = nn.Parameter(wl.random.randn(c, cprime))
        self.b = nn.Parameter(wl.random.randn(1, cprime))
        self.note = wl.ones(3)  # neither parameter nor buffer: a constant

    def forward(self, x):
        return wl.relu(x @ self.W + self.b)


@pytest.mark.book("5.14", "B5-05", "A2-25", name="wl.nn.FullyConnected")
def test_a_fully_connected_layer_adds_its_bias_to_every_row():
    layer = nn.FullyConnected(3, 5, "tanh", dtype=wl.float64)
    X = numbers(7, 3)
    W, b = np.asarray(layer.linear.weight), np.asarray(layer.linear.bias)
    Y = layer(X)
    assert Y.shape == (7, 5)
    np.testing.assert_allclose(Y, np.tanh(X.numpy() @ W + b), rtol=1e-12)
    np.testing.assert_allclose(wl.jit(lambda m, x: m(x))(layer, X), Y, rtol=1e-12)
    upstream = numbers(7, 5, seed=1)
    found = wl.grad(lambda m: (m(X) * upstream).sum())(layer)
    back = upstream.numpy() * (1 - Y.numpy() ** 2)
    np.testing.assert_allclose(found["linear.bias"], back.sum(axis=0), rtol=1e-10)  # the sum over the rows
    np.testing.assert_allclose(found["linear.weight"], X.numpy().T @ back, rtol=1e-10)
    assert layer(wl.ones((2, 4, 3))).shape == (2, 4, 5)


@pytest.mark.book("5.15", "B5-04", name="wl.nn.Module.num_parameters")
def test_a_layer_has_inputs_plus_one_times_outputs_parameters():
    assert nn.FullyConnected(3, 5).num_parameters() == (3 + 1) * 5 == 20
    assert nn.FullyConnected(5, 4).num_parameters() == 24
    assert nn.FullyConnected(5, 3).num_parameters() == 18  # the printed (c' + 1) c would be 20
    model = nn.Sequential(FullyConnectedLayer(3, 5), FullyConnectedLayer(5, 4))
    assert model.num_parameters() == nn.summary(model, (2, 3)).parameters == 44


@pytest.mark.book("5.13", "B5-06", name="wl.nn.Module.register_forward_hook")
def test_hooks_see_pre_and_post_activations():
    model = nn.Sequential(nn.FullyConnected(3, 5), nn.FullyConnected(5, 2))
    seen = {}
    hidden = model[0]
    with (
        hidden.linear.register_forward_hook(lambda m, args, out: seen.update(pre=out)),
        hidden.activation.register_forward_hook(lambda m, args, out: seen.update(post=out)),
    ):
        model(wl.ones((4, 3)))
    np.testing.assert_array_equal(seen["post"], np.maximum(seen["pre"], 0))
    assert seen["pre"].shape == (4, 5)  # the width of the hidden layer
    assert "0.linear" in [path for path, _ in model.named_modules()]


@pytest.mark.book("5.16", "B5-07", name=("wl.nn.Module", "wl.nn.Parameter"))
def test_the_layer_of_the_box():
    layer = FullyConnectedLayer(3, 5)
    assert [(path, p.shape) for path, p in layer.named_parameters()] == [("W", (3, 5)), ("b", (1, 5))]
    assert list(layer.state_dict()) == ["W", "b"]
    x = numbers(4, 3).astype(wl.float32)
    expected = np.maximum(x.numpy() @ layer.W.numpy() + layer.b.numpy(), 0)
    np.testing.assert_allclose(layer(x), expected, rtol=1e-5, atol=1e-6)
    assert set(wl.grad(lambda m: m(x).sum())(layer)) == {"W", "b"}

    class WithSuper(FullyConnectedLayer):  # calling the base's __init__ is not needed, and does no harm
        def __init__(self):
            nn.Module.__init__(self)
            super().__init__(3, 5)

    assert WithSuper()(x).shape == (4, 5)

    class NoForward(nn.Module):
        pass

    with pytest.raises(ModuleError, match="no forward pass"):
        NoForward()(x)


@pytest.mark.book("5.17", "5.21", "5.06", "B5-03", name="wl.nn.Sequential")
def test_models_are_layers_of_larger_models():
    one, two = FullyConnectedLayer(3, 5), FullyConnectedLayer(5, 4)
    model = nn.Sequential(one, two)
    x = numbers(7, 3).astype(wl.float32)
    np.testing.assert_array_equal(model(x), two(one(x)))  # a composition, not a product of entries
    assert [path for path, _ in model.named_parameters()] == ["0.W", "0.b", "1.W", "1.b"]
    assert model[1] is two
    assert [type(layer) for layer in model] == [FullyConnectedLayer] * 2
    nested = nn.Sequential(model, nn.Dropout(0.5), nn.Linear(4, 2))
    assert nested(x).shape == (7, 2)
    assert len(nested.parameters()) == len(one.parameters()) + len(two.parameters()) + 2
    assert [m.training for m in nested.eval().modules()] == [False] * len(nested.modules())
    other = nn.Sequential(
        nn.Sequential(FullyConnectedLayer(3, 5), FullyConnectedLayer(5, 4)), nn.Dropout(), nn.Linear(4, 2)
    ).eval()
    other.load_state_dict(nested.state_dict())
    np.testing.assert_array_equal(other(x), nested(x))


@pytest.mark.book("5.18", name="wl.nn.FullyConnected")
def test_a_model_of_the_box_has_no_negative_outputs():
    x = wl.random.normal((200, 3))
    assert (nn.Sequential(FullyConnectedLayer(3, 5), FullyConnectedLayer(5, 4))(x) >= 0).all()
    assert (wl.models.MLP([3, 5, 4])(x) < 0).any()


@pytest.mark.book("5.22", "A2-15", "A2-16", name="wl.nn.Linear")
def test_linear_layers_are_rows_times_a_matrix_of_columns():
    W = np.arange(8.0).reshape(4, 2)
    layer = nn.Linear.from_matrix(W)
    x = np.array([1.0, -1.0, 2.0, 0.5])
    np.testing.assert_array_equal(layer(x), [W[:, 0] @ x, W[:, 1] @ x])  # a column for each output
    assert layer.num_parameters() == 8
    assert nn.Linear(3, 5)(wl.ones((2, 3))).shape == (2, 5)  # more outputs than inputs
    assert nn.Linear(5, 3)(wl.ones((2, 5))).shape == (2, 3)  # fewer


@pytest.mark.book("A2-07", "A2-08", name=("wl.nn.FullyConnected", "wl.nn.Linear"))
def test_a_neuron_and_the_constant_neuron_of_its_bias():
    neuron = nn.FullyConnected(3, 1, "sigmoid", dtype=wl.float64)
    x = numbers(5, 3)
    w, b = neuron.linear.weight, neuron.linear.bias
    np.testing.assert_allclose(neuron(x), wl.sigmoid(x @ w + b), rtol=1e-12)
    # the bias is a weight on a neuron that is always 1 and that nothing trains
    constant = wl.ones((5, 1), dtype=wl.float64)
    without = nn.Linear.from_matrix(wl.concat([w, b[None]], axis=0))
    np.testing.assert_allclose(wl.sigmoid(without(wl.concat([x, constant], axis=1))), neuron(x), rtol=1e-12)
    assert len(without.parameters()) == 1


@pytest.mark.book("A2-37", "A2-38", "A2-39", name=("wl.nn.SoftmaxLayer", "wl.is_simplex"))
def test_the_softmax_layer():
    layer = nn.SoftmaxLayer(4, 3, temperature=2.0, dtype=wl.float64)
    x = numbers(6, 4)
    p = layer(x)
    assert wl.is_simplex(p, strict=True)
    logits = layer.linear(x)
    np.testing.assert_allclose(p, wl.softmax(logits / 2), rtol=1e-12)
    # with the log loss it is multinomial logistic regression: the gradient of the logits is (p - one hot) / n
    y = np.array([0, 2, 1, 1, 0, 2])
    loss = lambda eta: -wl.log(nn.SoftmaxLayer.forward(_Only(), eta))[np.arange(6), y].mean()
    expected = (np.asarray(wl.softmax(logits)) - np.eye(3)[y]) / 6
    np.testing.assert_allclose(wl.grad(loss)(logits), expected, atol=1e-12)
    np.testing.assert_allclose(wl.grad(lambda s: nn.functional.cross_entropy(s, y))(logits), expected, atol=1e-12)
    with pytest.raises(InputError, match="temperature=0"):
        nn.SoftmaxLayer(4, 3, 0)


class _Only:
    """A softmax layer whose linear part does nothing."""

    linear = nn.Identity()
    activation = nn.Softmax()


def test_a_masked_layer_uses_only_some_weights():
    mask = np.array([[1, 0], [1, 1], [0, 1]])
    layer = nn.MaskedLinear(mask, dtype=wl.float64)
    x = numbers(5, 3)
    np.testing.assert_allclose(layer(x), x.numpy() @ (layer.weight.numpy() * mask) + layer.bias.numpy(), rtol=1e-12)
    gradient = wl.grad(lambda m: (m(x) ** 2).sum())(layer)["weight"]
    assert (np.asarray(gradient) != 0).astype(int).tolist() == mask.tolist()
    assert not layer.weight.numpy()[mask == 0].any()
    assert layer.connections == 4
    for bad in (np.ones(3), [[0.5, 1.0]]):
        with pytest.raises(ShapeError, match="not a matrix of zeros and ones"):
            nn.MaskedLinear(bad)
    with pytest.raises(ShapeError, match="does not have 3 features"):
        layer(wl.ones((2, 4)))


# --- fusing


@pytest.mark.book("5.07", "B5-02", "A2-18", "S-10", name=("wl.nn.fuse_linear", "wl.nn.collapse"))
@pytest.mark.parametrize("biases", [(True, True), (True, False), (False, True), (False, False)])
def test_linear_layers_collapse(biases):
    one = nn.Linear(3, 4, bias=biases[0], dtype=wl.float64)
    two = nn.Linear(4, 2, bias=biases[1], dtype=wl.float64)
    fused = nn.fuse_linear(one, two)
    x = numbers(5, 3)
    np.testing.assert_allclose(fused(x), two(one(x)), rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(fused.weight, one.weight.numpy() @ two.weight.numpy(), rtol=1e-12)
    if all(biases):
        np.testing.assert_allclose(fused.bias, one.bias.numpy() @ two.weight.numpy() + two.bias.numpy(), rtol=1e-12)
    assert (fused.bias is None) == (not any(biases))
    deep = nn.Sequential(one, nn.Sequential(two, nn.Identity()), nn.Linear(2, 2, bias=False, dtype=wl.float64))
    single = nn.collapse(deep)
    assert isinstance(single, nn.Linear)
    np.testing.assert_allclose(single(x), deep(x), rtol=1e-10, atol=1e-12)
    # what is linear with hidden layers stays linear
    u, v, zero = numbers(3, seed=1), numbers(3, seed=2), wl.zeros(3, dtype=wl.float64)
    f = lambda x: deep(x) - deep(zero)
    np.testing.assert_allclose(f(2 * u - 3 * v), 2 * f(u) - 3 * f(v), rtol=1e-9)


@pytest.mark.book("5.07", name=("wl.nn.lint", "wl.nn.stacked_linear"))
def test_consecutive_linear_layers_are_reported():
    model = nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 3), wl.relu, nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 1)))
    assert nn.stacked_linear(model) == [("0", "1"), ("3.0", "3.1")]
    assert [f.path for f in nn.lint(model) if f.rule == "stacked-linear"] == ["1", "3.1"]
    assert nn.stacked_linear(wl.models.MLP([2, 3, 1])) == []
    kept = nn.collapse(model)
    assert [type(layer).__name__ for layer in kept] == ["Linear", "function", "Linear"]
    x = wl.random.normal((5, 2))
    np.testing.assert_allclose(kept(x), model(x), rtol=1e-5, atol=1e-6)


def test_layers_that_do_not_fuse():
    with pytest.raises(ShapeError, match="4 outputs do not fit 3 inputs"):
        nn.fuse_linear(nn.Linear(3, 4), nn.Linear(3, 2))
    with pytest.raises(ModuleError, match="received a ReLU"):
        nn.fuse_linear(nn.ReLU(), nn.Linear(3, 2))
    with pytest.raises(ModuleError, match="received a Linear"):
        nn.fuse_linear(nn.Linear(None, 3), nn.Linear(3, 2))
    with pytest.raises(ModuleError, match="a ReLU does not list its layers"):
        nn.collapse(nn.ReLU())
