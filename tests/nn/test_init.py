"""Initialisers, and what signals and gradients make of them."""

from __future__ import annotations

import copy
import math
import pickle

import numpy as np
import pytest

import wonderland as wl
from wonderland import nn
from wonderland.errors import DTypeError, InputError, ModuleError, ShapeError

init = nn.init


def key(n=0):
    return wl.random.key(n)


def deep(width, depth, activation="relu", **settings):
    return wl.models.MLP([width] * (depth + 1), activation=activation, key=key(1), **settings)


# --- the schemes


@pytest.mark.parametrize(
    "made, mean, std",
    [
        (init.zeros(), 0, 0),
        (init.ones(), 1, 0),
        (init.constant(0.3), 0.3, 0),
        (init.normal(2.0, 0.5), 2, 0.5),
        (init.uniform(-1.0, 3.0), 1, 4 / math.sqrt(12)),
        (init.trunc_normal(std=1.0, a=-2.0, b=2.0), 0, 0.8796),
        (init.variance_scaling(2.0, "fan_in", "truncated_normal"), 0, 2 / math.sqrt(300)),
        (init.xavier_normal(), 0, 1 / math.sqrt(200)),
        (init.xavier_uniform(2.0), 0, 2 / math.sqrt(200)),
        (init.kaiming_normal(), 0, math.sqrt(2 / 300)),
        (init.kaiming_uniform(mode="fan_out"), 0, math.sqrt(2 / 100)),
        (init.kaiming_normal(mode="mean", nonlinearity="linear"), 0, 1 / math.sqrt(200)),
        (init.kaiming_normal(a=1.0), 0, 1 / math.sqrt(300)),
        (init.lecun_normal(), 0, 1 / math.sqrt(300)),
        (init.lecun_uniform(), 0, 1 / math.sqrt(300)),
        (init.orthogonal(3.0), 0, 3 / math.sqrt(300)),
        (init.sparse(0.25, 1.0), 0, math.sqrt(0.75)),
    ],
    ids=repr,
)
def test_mean_and_deviation(made, mean, std):
    shape = (300, 100)
    x = np.asarray(made(shape, key(), wl.float64))
    assert x.shape == shape
    np.testing.assert_allclose(x.mean(), mean, atol=4 * std / math.sqrt(x.size) + 1e-12)
    np.testing.assert_allclose(x.std(), std, rtol=0.02, atol=1e-12)
    np.testing.assert_array_equal(made(shape, key(), wl.float64), x)  # the same key, the same numbers
    assert made(shape, key()).dtype == wl.float32
    assert made(shape, key=wl.random.Stream(0)).shape == shape
    assert pickle.loads(pickle.dumps(made)) == made == copy.deepcopy(made)
    assert hash(made) == hash(copy.deepcopy(made))


@pytest.mark.book("A3-82", name=("wl.nn.init.xavier_normal", "wl.nn.init.xavier_uniform"))
def test_xavier():
    normal, even = (np.asarray(f()((300, 100), key())) for f in (init.xavier_normal, init.xavier_uniform))
    np.testing.assert_allclose(normal.std(), 0.0707, rtol=0.02)
    assert 0.1215 < np.abs(even).max() <= 0.1225
    np.testing.assert_allclose(even.var(), 1 / 200, rtol=0.02)
    assert init.glorot_normal is init.xavier_normal


@pytest.mark.book("A3-83", name=("wl.nn.init.kaiming_normal", "wl.nn.init.calculate_gain"))
def test_kaiming_and_the_gains():
    mean = np.asarray(init.kaiming_normal(mode="mean")((300, 100), key()))
    np.testing.assert_allclose(mean.std(), 0.1, rtol=0.02)  # D = 200, as the notes have it
    classic = np.asarray(init.kaiming_normal()((300, 100), key()))
    np.testing.assert_allclose(classic.std(), math.sqrt(2 / 300), rtol=0.02)  # by the inputs alone
    gains = {"relu": math.sqrt(2), "linear": 1, "conv2d": 1, "sigmoid": 1, "tanh": 5 / 3, "selu": 0.75}
    for name, gain in gains.items():
        assert init.calculate_gain(name) == pytest.approx(gain)
    assert init.calculate_gain("leaky_relu", 0.2) == pytest.approx(math.sqrt(2 / 1.04))
    assert init.calculate_gain("leaky_relu") == pytest.approx(math.sqrt(2 / 1.0001))
    with pytest.raises(InputError, match="nothing is known of 'softmax'"):
        init.calculate_gain("softmax")


def test_kernels_of_convolutions_have_places():
    assert init.fans((3, 3, 16, 32)) == (144, 288)
    np.testing.assert_allclose(np.std(init.lecun_normal()((3, 3, 16, 32), key())), 1 / 12, rtol=0.05)
    q = np.asarray(init.orthogonal()((3, 3, 4, 8), key(), wl.float64)).reshape(36, 8)
    np.testing.assert_allclose(q.T @ q, np.eye(8), atol=1e-12)
    wide = np.asarray(init.orthogonal(2.0)((3, 7), key(), wl.float64))
    np.testing.assert_allclose(wide @ wide.T, 4 * np.eye(3), atol=1e-12)


def test_sparse_eye_dirac():
    s = np.asarray(init.sparse(0.55)((10, 4), key()))
    assert ((s == 0).sum(axis=0) == 6).all()  # rounded up, in every column
    assert len({tuple(column) for column in (s == 0).T}) > 1
    np.testing.assert_array_equal(init.eye()((2, 3)), np.eye(2, 3))
    d = np.asarray(init.dirac(groups=2)((3, 5, 2, 4)))
    assert d.sum() == 4
    assert (d[1, 2, 0, 0], d[1, 2, 1, 1], d[1, 2, 0, 2], d[1, 2, 1, 3]) == (1, 1, 1, 1)
    layer = nn.Conv1d(4, 4, 3, padding="same", groups=2, bias=False, init=init.dirac(groups=2))
    x = wl.random.normal((2, 7, 4))
    np.testing.assert_array_equal(layer(x), x)


def test_bad_settings():
    with pytest.raises(ShapeError, match=r"fans: a tensor of shape \(3,\)(.|\n)*zeros"):
        init.kaiming_normal()((3,))
    for make in (init.eye(), init.sparse(0.1), init.orthogonal()):
        with pytest.raises(ShapeError, match="not that of a matrix"):
            make((3,))
    with pytest.raises(ShapeError, match="convolution with 3 groups"):
        init.dirac(3)((3, 2, 4))
    with pytest.raises(InputError, match="mode='in'"):
        init.kaiming_uniform(mode="in")
    with pytest.raises(InputError, match="distribution='flat'"):
        init.variance_scaling(distribution="flat")
    with pytest.raises(InputError, match="sparsity=2"):
        init.sparse(2)
    with pytest.raises(DTypeError, match="int64"):
        init.zeros()((2,), dtype=wl.int64)
    with pytest.raises(InputError, match=r"no initialiser 'kaming_normal'(.|\n)*'kaiming_normal'"):
        nn.Linear(2, 3, init="kaming_normal")
    with pytest.raises(InputError, match="a float is no initialiser"):
        nn.Linear(2, 3, init=1.0)


# --- in place, and in layers


def test_in_place():
    layer = nn.Linear(300, 100)
    same = init.kaiming_uniform_(layer.weight, mode="fan_out", key=key(3))
    assert same is layer.weight
    np.testing.assert_array_equal(layer.weight, init.kaiming_uniform(mode="fan_out")((300, 100), key(3)))
    init.constant_(layer.bias, 0.5)
    assert layer.bias.tolist() == [0.5] * 100
    assert layer.weight.requires_grad
    for scheme in (init.zeros_, init.ones_, init.normal_, init.uniform_, init.trunc_normal_, init.variance_scaling_):
        scheme(layer.weight)
    for scheme in (init.xavier_normal_, init.xavier_uniform_, init.kaiming_normal_, init.lecun_normal_):
        scheme(layer.weight)
    for scheme in (init.lecun_uniform_, init.orthogonal_, init.eye_):
        scheme(layer.weight)
    init.sparse_(layer.weight, 0.5)
    init.dirac_(nn.Conv2d(2, 2, 3).weight)
    assert init.xavier_normal_.__name__ == "xavier_normal_"
    with pytest.raises(InputError, match=r"zeros_: a Tensor cannot be changed in place(.|\n)*without the underscore"):
        init.zeros_(wl.ones(3))
    half = nn.Linear(3, 2, dtype=wl.float64)
    assert init.normal_(half.weight).dtype == wl.float64


@pytest.mark.parametrize(
    "make",
    [
        lambda **s: nn.Linear(3, 4, **s),
        lambda **s: nn.Conv2d(3, 4, 3, **s),
        lambda **s: nn.ConvTranspose1d(3, 4, 3, **s),
        lambda **s: nn.FullyConnected(3, 4, **s),
    ],
)
def test_layers_take_initialisers(make):
    layer = make(init=init.constant(0.5), bias_init="ones")
    assert [set(np.unique(p.numpy())) for p in layer.parameters()] == [{0.5}, {1.0}]
    plain, again = make(key=key(2)), make(key=key(2))
    for p, q in zip(plain.parameters(), again.parameters(), strict=True):
        np.testing.assert_array_equal(p, q)
        assert len(np.unique(p.numpy())) > 1


def test_lazy_layers_keep_their_initialiser_until_they_need_it():
    layer = nn.LazyLinear(4, init=init.kaiming_normal(), bias_init=init.zeros(), key=key(1))
    layer = pickle.loads(pickle.dumps(layer))
    given = nn.Linear(3, 4, init=init.kaiming_normal(), bias_init=init.zeros(), key=key(1))
    x = wl.ones((2, 3))
    np.testing.assert_array_equal(layer(x), given(x))
    assert not layer.bias.any()
    own = nn.Linear(3, 4, init=lambda shape, key, dtype: wl.full(shape, 7.0, dtype=dtype))  # any function will do
    assert (own.weight == 7).all()


# --- models


@pytest.mark.book("A3-79b", name=("wl.nn.init.apply", "wl.nn.init.initialize"))
def test_models_start_again_by_name_and_by_kind():
    model = nn.Sequential(nn.Embedding(9, 4), nn.Linear(4, 6), nn.LayerNorm(6), nn.ReLU(), nn.Linear(6, 2))
    before = {path: np.asarray(p) for path, p in model.named_parameters()}
    init.apply(model, "4", "zeros")
    assert not model[4].weight.any()
    init.apply(model, "*.bias", init.constant(3.0))
    assert (model[1].bias == 3).all()
    np.testing.assert_array_equal(model[1].weight, before["1.weight"])

    a = init.initialize(model, "kaiming_normal", key=5)[4].weight.numpy()
    np.testing.assert_array_equal(model[0].weight, before["0.weight"])  # not a linear layer
    assert (model[2].weight == 1).all()
    assert not model[1].bias.any()
    b = init.initialize(model, "kaiming_normal", key=5)[4].weight.numpy()
    c = init.initialize(model, "kaiming_normal", key=6)[4].weight.numpy()
    np.testing.assert_array_equal(a, b)  # the same seed, the same parameters
    assert not np.array_equal(a, c)

    init.initialize(model, {nn.Embedding: init.constant(0.25), nn.Linear: init.ones()}, biases=None)
    assert (model[0].weight == 0.25).all()
    assert (model[4].weight == 1).all()
    assert not model[4].bias.any()  # as before
    with pytest.raises(ModuleError, match=r"no parameter of this Sequential matches '9\.weight'"):
        init.apply(model, "9.weight", "zeros")
    with pytest.raises(InputError, match="has no layer of Conv2d"):
        init.initialize(model, {nn.Conv2d: "zeros"})


@pytest.mark.book("A3-79b", "5.24", "B5-10", name="wl.models.MLP")
def test_the_start_decides_which_solution_is_found():
    x = wl.asarray(np.linspace(-2, 2, 20)[:, None])
    y = wl.sin(3 * x)

    def trained(seed):
        net = wl.models.MLP([1, 4, 1], activation="tanh", dtype=wl.float64, key=key(seed))
        optimizer = wl.optim.Adam(net, lr=0.05)
        for _ in range(100):
            value, grads = step(net)
            optimizer.step(grads)
        return value.item(), np.asarray(net.layers[0].weight)

    step = wl.jit(wl.value_and_grad(lambda net: ((net(x) - y) ** 2).mean()))
    runs = [trained(seed) for seed in (0, 0, 1, 2)]
    np.testing.assert_array_equal(runs[0][1], runs[1][1])  # the same seed ends at the same place
    assert not np.allclose(runs[0][1], runs[2][1], atol=0.1)
    losses = [loss for loss, _ in runs[1:]]
    assert max(losses) - min(losses) > 1e-4  # a spread of final losses
    # units can change places without changing the function: there are many equal minima
    net = wl.models.MLP([1, 4, 1], activation="tanh", dtype=wl.float64)
    before = net(x)
    order = np.array([2, 0, 3, 1])
    net.layers[0].weight = net.layers[0].weight[:, order]
    net.layers[0].bias = net.layers[0].bias[order]
    net.layers[2].weight = net.layers[2].weight[order]
    np.testing.assert_allclose(net(x), before, rtol=1e-12)


@pytest.mark.book("A3-80", name=("wl.nn.init.check", "wl.nn.init.zeros"))
@pytest.mark.parametrize("value", [0.0, 0.3])
def test_units_that_start_equal_stay_equal(value):
    model = wl.models.MLP([3, 5, 1], activation="tanh", init=init.constant(value), bias_init="zeros")
    x, y = wl.random.normal((20, 3)), wl.random.normal((20, 1))
    with pytest.warns(init.InitializationWarning, match=r"layers\.[02]\.weight is (zero|constant)") as caught:
        found = init.check(model)
    assert len(caught) == len(found) == 2
    gradient = wl.grad(lambda m: ((m(x) - y) ** 2).mean())(model)
    if value == 0:
        assert not gradient["layers.0.weight"].any()  # no adjoint passes a matrix of zeros
    optimizer = wl.optim.SGD(model, lr=0.1)
    for _ in range(5):
        optimizer.step(wl.grad(lambda m: ((m(x) - y) ** 2).mean())(model))
    W = np.asarray(model.layers[0].weight)
    np.testing.assert_allclose(W, np.broadcast_to(W[:, :1], W.shape), atol=1e-6)  # columns stay equal
    assert init.check(wl.models.MLP([3, 5, 1])) == []


def test_what_the_check_finds():
    problems = {
        init.normal(): "is unscaled: its outputs have about",
        init.normal(std=1e-5): "is small",
        init.constant(math.nan): "not finite",
        init.kaiming_normal(): None,
        init.orthogonal(): None,
        init.xavier_uniform(): None,
    }
    for made, problem in problems.items():
        found = init.check(nn.Linear(100, 50, init=made), warn=False)
        assert [f.path for f in found] == ([] if problem is None else ["weight"])
        assert problem is None or problem in found[0].problem
    # tables, weights of activations and zeros that are meant to be there are no weights of a layer
    others = nn.Sequential(nn.Embedding(500, 4), nn.Linear(4, 3), nn.APL(2, units=3), nn.KAF(sharing="neuron", units=3))
    assert init.check(others) == []

    class Own(nn.Module):
        def __init__(self):
            self.W = nn.Parameter(wl.random.randn(400, 5))
            self.inner = nn.Linear(3, 2, init="zeros")

    assert [f.path for f in init.check(Own(), warn=False)] == ["W", "inner.weight"]
    twins = nn.Linear.from_matrix(np.repeat([[1.0], [0.5]], 3, axis=1))
    assert "equal columns" in init.check(twins, warn=False)[0].problem


# --- the variances of signals and gradients


@pytest.mark.book("A3-81", name=("wl.nn.init.variance_scaling", "wl.nn.init.variance_report"))
def test_variance_is_retained_forwards_or_backwards():
    x = wl.random.normal((1000, 300), key=key(2), dtype=wl.float64)
    for mode in ("fan_in", "fan_out"):
        layer = nn.Linear(300, 100, bias=False, init=init.variance_scaling(mode=mode), key=key(3), dtype=wl.float64)
        y, back = wl.vjp(layer, x)
        (gradient,) = back(wl.random.normal(y.shape, key=key(4), dtype=wl.float64))
        forwards, backwards = float(y.var() / x.var()), float(gradient.var())
        assert (forwards if mode == "fan_in" else backwards) == pytest.approx(1.0, rel=0.05)
        assert (backwards if mode == "fan_in" else forwards) == pytest.approx(
            1 / 3 if mode == "fan_in" else 3, rel=0.05
        )


@pytest.mark.book("5.19", "B5-08", name=("wl.nn.init.kaiming_normal", "wl.nn.init.variance_report"))
def test_activations_keep_their_size_through_twenty_layers_or_explode():
    width, x = 100, wl.random.normal((40, 100), key=key(0))
    kept = init.variance_report(deep(width, 20, init="kaiming_normal", bias_init="zeros"), x)
    linear = [row for row in kept if row.kind == "Linear"]
    assert len(linear) == 20
    for row in linear:
        assert 0.3 < row.activation_std < 4
        assert 0.1 < row.gradient_std < 10
    assert all(0.3 < row.zeros < 0.7 for row in kept if row.kind == "ReLU")

    grown = init.variance_report(deep(width, 20, init=init.normal(), bias_init="zeros", dtype=wl.float64), x)
    sizes = [row.activation_std for row in grown if row.kind == "Linear"]
    ratios = np.array(sizes[1:]) / np.array(sizes[:-1])
    np.testing.assert_allclose(np.median(ratios), math.sqrt(width / 2), rtol=0.15)  # by half the width in each layer
    assert sizes[-1] > 1e15
    gradients = [row.gradient_std for row in grown]
    assert gradients[0] > 1e14 * gradients[-1]


@pytest.mark.book("B5-08", name="wl.random.randn")
def test_outputs_of_unscaled_layers_grow_with_the_root_of_the_inputs():
    x = wl.random.normal((500, 99), key=key(0))
    y = x @ wl.random.randn(99, 400, key=key(1)) + wl.random.randn(1, 400, key=key(2))
    np.testing.assert_allclose(y.std(), math.sqrt(100), rtol=0.05)


@pytest.mark.book("A3-84", name=("wl.nn.init.variance_scaling", "wl.nn.Residual"))
def test_residual_layers_need_small_weights():
    x = wl.random.normal((200, 50), key=key(0), dtype=wl.float64)

    def output(gain, depth=20):
        y = x
        for i in range(depth):
            scheme = init.variance_scaling(gain)
            layer = nn.Linear(50, 50, bias=False, init=scheme, key=key(i), dtype=wl.float64)
            y = nn.Residual(layer)(y)
        return float(y.std())

    assert output(1.0) > 300  # the variance doubles in every layer
    assert output(1 / math.sqrt(20)) < 3  # and stays within a factor e
