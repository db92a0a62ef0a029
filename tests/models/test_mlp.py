"""Multilayer perceptrons: their shapes, what they can and linear models cannot, heads, and networks given as graphs."""

from __future__ import annotations

import numpy as np
import pytest

import wonderland as wl
from wonderland import nn
from wonderland.errors import InputError, ShapeError
from wonderland.models import MLP, FeedForwardGraph, RectifierNet, layering, make_head

F = nn.functional
CORNERS = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])


def numbers(*shape, seed=0):
    return wl.asarray(np.random.default_rng(seed).normal(size=shape))


def train(model, loss, steps, lr=0.01):
    """The losses of some steps of Adam."""
    optimizer = wl.optim.Adam(model, lr=lr)

    @wl.jit
    def step(model, optimizer):
        value, grads = wl.value_and_grad(loss)(model)
        optimizer.step(grads)
        return value

    return [step(model, optimizer).item() for _ in range(steps)]


# --- the model


@pytest.mark.book("A1-01", "A1-04", "A2-40", name=("wl.models.MLP", "wl.nn.summary"))
def test_layers_depth_width_and_parameters():
    net = MLP(5, [4, 3], 2)
    assert net.depth == 2  # hidden layers: more than one is deep
    assert net.widths == (5, 4, 3, 2)
    assert net.num_parameters() == 5 * 4 + 4 + 4 * 3 + 3 + 3 * 2 + 2 == 47
    summary = net.summary((7, 5))
    assert [row.shape for row in summary.rows if row.kind == "Linear"] == [(7, 4), (7, 3), (7, 2)]
    assert (summary.parameters, summary.multiply_adds) == (47, 7 * (20 + 12 + 6))
    assert MLP(5, 4, 2).widths == MLP([5, 4, 2]).widths == (5, 4, 2)
    assert MLP(5, [], 2).depth == 0


@pytest.mark.book("5.08", "5.09", name="wl.models.MLP")
@pytest.mark.parametrize("widths", [[3, 8, 1], [3, 8, 7, 6, 2]])
def test_a_perceptron_is_a_loop_over_its_layers(widths):
    net = MLP(widths, activation="tanh", dtype=wl.float64, key=wl.random.key(0))
    x = numbers(2, 5, 3)
    h = x.numpy()
    layers = [layer for layer in net.layers if isinstance(layer, nn.Linear)]
    for i, layer in enumerate(layers):
        h = h @ layer.weight.numpy() + layer.bias.numpy()
        h = np.tanh(h) if i < len(layers) - 1 else h  # the last one has no activation
    np.testing.assert_allclose(net(x), h, rtol=1e-12)
    np.testing.assert_allclose(wl.jit(lambda m, x: m(x))(net, x), h, rtol=1e-12)
    again = MLP(widths, activation="tanh", dtype=wl.float64, key=wl.random.key(0))
    np.testing.assert_array_equal(again(x), net(x))
    wl.check_grads(lambda m, x: m(x), (net, x[0]))
    linear = MLP(widths, activation=None, dtype=wl.float64)
    single = nn.collapse(linear.layers)
    assert isinstance(single, nn.Linear)
    np.testing.assert_allclose(single(x), linear(x), rtol=1e-9, atol=1e-12)


def test_norms_dropout_and_lazy_inputs():
    net = MLP(None, [6, 5], 2, activation="gelu", norm="layer", dropout=0.5)
    assert net(wl.ones((3, 4))).shape == (3, 2)
    kinds = [type(layer).__name__ for layer in net.layers]
    assert kinds == ["Linear", "LayerNorm", "GELU", "Dropout"] * 2 + ["Linear"]
    assert net.layers[0].weight.shape == (4, 6)
    np.testing.assert_array_equal(net.eval()(wl.ones((3, 4))), net(wl.ones((3, 4))))
    assert "BatchNorm" in repr(MLP([2, 3, 1], norm="batch"))
    assert isinstance(MLP([2, 3, 1], norm=nn.RMSNorm).layers[1], nn.RMSNorm)
    assert MLP([2, 3, 1], norm="rms", dtype=wl.float64).layers[1].weight.dtype == wl.float64
    plain = MLP([2, 3, 1], bias=False, init="zeros")
    assert plain.num_parameters() == 9
    assert not plain.layers[0].weight.any()
    deep = [type(layer).__name__ for layer in RectifierNet(2, [3], 1).layers]
    assert deep == ["Linear", "ReLU", "Linear", "ReLU"]


def test_save_and_load():
    net, other = MLP([3, 4, 2], activation=nn.PReLU()), MLP([3, 4, 2], activation=nn.PReLU())
    other.load_state_dict(net.state_dict())
    x = wl.random.normal((5, 3))
    np.testing.assert_array_equal(net(x), other(x))


@pytest.mark.parametrize(
    "args, message",
    [
        (([3],), r"the sizes \[3\] make no layer"),
        ((3, [4]), "no out_features"),
        (([3, 4], [5], 2), "a list of all sizes comes alone"),
        ((3, [0], 2), "a width=0"),
        ((3, [2.5], 2), "a width=2.5 is not an integer"),
        ((0, [2], 2), "in_features=0"),
    ],
)
def test_sizes_that_make_no_network(args, message):
    with pytest.raises(InputError, match=message):
        MLP(*args)
    with pytest.raises(InputError, match="norm='btach'"):
        MLP([3, 4, 2], norm="btach")


@pytest.mark.book("A1-02", "A2-04", "A2-05", name=("wl.models.MLP", "wl.models.make_head"))
def test_encoders_and_heads():
    net = MLP(8, [6, 3], 2)
    x = wl.random.normal((5, 8))
    z = net.encode(x)
    assert z.shape == (5, 3)
    assert z.dtype == wl.float32
    np.testing.assert_allclose(net.head(z), net(x), rtol=1e-6)
    before = {path: p.numpy() for path, p in net.named_parameters() if not path.startswith("layers.4")}
    net.head = nn.Linear(3, 7)  # another head leaves the encoder as it is
    assert net(x).shape == (5, 7)
    np.testing.assert_array_equal(net.encode(x), z)
    after = {path: p.numpy() for path, p in net.named_parameters()}
    for path, value in before.items():
        np.testing.assert_array_equal(after[path], value)


@pytest.mark.book("A1-03", "5.23", name=("wl.models.MLP", "wl.optim.Adam"))
def test_all_parameters_of_a_regression_are_trained_together():
    x = wl.linspace(-3.0, 3.0, 40)[:, None]
    y = wl.sin(x)
    net = MLP([1, 20, 20, 1], activation="tanh", key=wl.random.key(0))
    optimizer = wl.optim.Adam(net, lr=0.01)
    loss = F.mse_loss(net(x), y)  # recorded while it is computed
    loss.backward()
    assert all(p.grad is not None and p.grad.any() for p in net.parameters())
    optimizer.step()
    optimizer.zero_grad()
    assert F.mse_loss(net(x), y).item() < loss.item()
    losses = train(net, lambda m: F.mse_loss(m(x), y), 250)
    assert losses[-1] < 0.01 < losses[0]


@pytest.mark.book("5.27", name="wl.models.MLP")
def test_more_parameters_than_data_reach_zero_loss():
    x, y = numbers(20, 5), numbers(20, 1, seed=1)
    net = MLP([5, 100, 1], activation="tanh", dtype=wl.float64, init=nn.init.xavier_normal(2.0), key=wl.random.key(0))
    assert net.num_parameters() > 20
    losses = train(net, lambda m: F.mse_loss(m(x), y), 500, lr=0.02)
    assert losses[-1] < 1e-6


@pytest.mark.book("A1-06", name="wl.models.MLP")
def test_a_wide_net_learns_random_labels_by_heart():
    rng = np.random.default_rng(0)
    x, labels = wl.asarray(rng.normal(size=(120, 10))), rng.integers(0, 2, size=120)
    net = MLP([10, 200, 2], dtype=wl.float64, key=wl.random.key(0))
    train(net, lambda m: F.cross_entropy(m(x[:40]), labels[:40]), 150)
    right = np.asarray(net(x).argmax(axis=-1)) == labels
    assert right[:40].all()
    assert 0.3 < right[40:].mean() < 0.7  # as good as chance


# --- what linear models cannot do


@pytest.mark.book("5.02", "B5-01", name=("wl.data.make_income_rule", "wl.models.MLP"))
def test_a_rule_with_an_exception_needs_a_hidden_layer():
    X, y = wl.data.make_income_rule(300, seed=0)
    X = wl.asarray((X - X.mean(axis=0)) / X.std(axis=0))

    def accuracy(model):
        train(model, lambda m: F.cross_entropy(m(X), y), 250, lr=0.05)
        return np.mean(np.asarray(model(X).argmax(axis=-1)) == np.asarray(y))

    linear = accuracy(nn.Linear(2, 2, key=wl.random.key(0)))
    deep = accuracy(MLP([2, 16, 2], key=wl.random.key(0)))
    assert linear < 0.95 < deep


@pytest.mark.book("5.03", "A2-02", name=("wl.data.make_xor", "wl.linalg.lstsq"))
def test_exclusive_or_is_not_linear():
    X, y = (np.asarray(a, dtype=float) for a in wl.data.make_xor())
    np.testing.assert_array_equal(X, CORNERS)
    assert y.tolist() == [0, 1, 1, 0]
    fit = np.linalg.lstsq(np.c_[X, np.ones(4)], y, rcond=None)[0]
    np.testing.assert_allclose(fit, [0, 0, 0.5], atol=1e-12)
    # of all half planes the best gets three of four
    W = np.random.default_rng(0).normal(size=(2000, 3))
    scores = np.c_[X, np.ones(4)] @ W.T > 0
    assert np.mean(scores == y[:, None].astype(bool), axis=0).max() == 0.75
    # two hidden units are enough: relu(a + b) - 2 relu(a + b - 1)
    net = MLP([2, 2, 1], dtype=wl.float64)
    net.layers[0].weight, net.layers[0].bias = np.ones((2, 2)), np.array([0.0, -1.0])
    net.layers[2].weight, net.layers[2].bias = np.array([[1.0], [-2.0]]), np.zeros(1)
    assert net(X)[:, 0].tolist() == [0.0, 1.0, 1.0, 0.0]


@pytest.mark.book("5.04", name=("wl.models.is_linearly_separable", "wl.viz.decision_boundary"))
def test_lines_that_separate_and_pictures_of_them():
    for labels, separable in (([0, 1, 1, 0], False), ([0, 0, 0, 1], True), ([0, 1, 1, 1], True)):
        assert wl.models.is_linearly_separable(CORNERS, labels) is separable
    picture = wl.viz.decision_boundary(lambda X: (X[:, 0] > X[:, 1]).astype(int), CORNERS, [0, 1, 1, 0])
    assert "<svg" in str(getattr(picture, "svg", picture))


@pytest.mark.book("A2-03", name="wl.models.MLP")
def test_a_feature_made_by_hand_makes_it_linear():
    with_product = np.c_[CORNERS, CORNERS[:, 0] * CORNERS[:, 1]]
    assert wl.models.is_linearly_separable(with_product, [0, 1, 1, 0])
    unit = nn.FullyConnected(3, 1, F.step, dtype=wl.float64)
    unit.linear.weight, unit.linear.bias = np.array([[1.0], [1.0], [-2.0]]), np.array([-0.5])
    assert unit(with_product)[:, 0].tolist() == [0.0, 1.0, 1.0, 0.0]


@pytest.mark.book("5.05", name="wl.data.make_parity")
def test_parity_flips_with_every_bit():
    X, y = (np.asarray(a) for a in wl.data.make_parity(4))
    assert X.shape == (16, 4)
    assert y.mean() == 0.5
    parity = {tuple(bits): label for bits, label in zip(X.astype(int).tolist(), y.tolist(), strict=True)}
    for bits, label in parity.items():
        for i in range(4):
            flipped = (*bits[:i], 1 - bits[i], *bits[i + 1 :])
            assert parity[flipped] == 1 - label


@pytest.mark.book("A2-01", name="wl.nn.FullyConnected")
def test_a_generalised_linear_model_is_a_neuron_with_a_mean_function():
    x = numbers(6, 3)
    for phi, expected in ((None, lambda s: s), ("sigmoid", wl.sigmoid), (wl.exp, wl.exp)):
        model = nn.FullyConnected(3, 1, phi, dtype=wl.float64)
        np.testing.assert_allclose(model(x), expected(x @ model.linear.weight + model.linear.bias), rtol=1e-12)


@pytest.mark.book("A2-06", name="wl.models.autoencoder.mirror")
def test_a_decoder_mirrors_the_widths_of_an_encoder():
    from wonderland.models.networks.autoencoder import mirror

    encoder = MLP([8, 5, 2], activation="tanh").layers
    decoder = mirror(encoder)
    sizes = [(layer.in_features, layer.out_features) for layer in decoder if isinstance(layer, nn.Linear)]
    assert sizes == [(2, 5), (5, 8)]
    assert decoder(encoder(wl.ones((3, 8)))).shape == (3, 8)


@pytest.mark.book("A2-42", name="wl.models.width_for_budget")
def test_depth_and_width_at_equal_cost():
    budget = 50_000
    counts = []
    for depth in (1, 2, 3, 5):
        width = wl.models.width_for_budget(64, 10, depth, budget)
        counts.append(MLP(64, [width] * depth, 10).num_parameters())
        near = [MLP(64, [z] * depth, 10).num_parameters() for z in (width - 1, width + 1)]
        assert all(abs(counts[-1] - budget) <= abs(n - budget) for n in near)
    np.testing.assert_allclose(counts, budget, rtol=0.01)
    with pytest.raises(InputError, match="at least 89"):
        wl.models.width_for_budget(64, 10, 3, 10)


# --- heads


@pytest.mark.book("5.10", "A2-48", name="wl.models.make_head")
@pytest.mark.parametrize("task, outputs", [("regression", 2), ("binary", 1), ("multiclass", 4), ("multilabel", 3)])
def test_each_head_has_the_loss_whose_gradient_is_the_error(task, outputs):
    head = make_head(task, 6, outputs, dtype=wl.float64)
    layer, loss, decode, probabilities = head
    scores = layer(numbers(5, 6))
    assert scores.shape == (5, outputs)
    rng = np.random.default_rng(1)
    if task == "multiclass":
        y = rng.integers(0, outputs, size=5)
        target = np.eye(outputs)[y]
    else:
        target = y = rng.normal(size=(5, outputs)) if task == "regression" else 1.0 * rng.integers(0, 2, (5, outputs))
    found = wl.grad(lambda s: loss(s, wl.asarray(y), reduction="sum"))(scores)
    factor = 2 if task == "regression" else 1
    np.testing.assert_allclose(found, factor * (np.asarray(probabilities(scores)) - target), rtol=1e-9, atol=1e-12)
    if task == "multiclass":
        assert wl.is_simplex(probabilities(scores), strict=True)
        np.testing.assert_array_equal(decode(scores), np.argmax(scores, axis=-1))
        assert decode(scores).shape == (5,)
    elif task == "regression":
        np.testing.assert_array_equal(decode(scores), scores)
    else:
        np.testing.assert_array_equal(decode(scores), probabilities(scores).numpy() > 0.5)
        assert decode(wl.zeros(1)).tolist() == [0]  # a tie


def test_heads_that_make_no_sense():
    with pytest.raises(InputError, match="no task 'ranking'"):
        make_head("ranking", 3)
    with pytest.raises(InputError, match="a binary head has one output, not 2"):
        make_head("binary", 3, 2)
    with pytest.raises(InputError, match="1 class leaves nothing"):
        make_head("multiclass", 3, 1)


# --- graphs


@pytest.mark.book("A2-12", "A2-13", name=("wl.models.layering", "wl.models.FeedForwardGraph"))
def test_the_layer_of_a_node_is_its_longest_path():
    edges = [("x", "a"), ("a", "b"), ("b", "y"), ("x", "y"), ("x", "b")]  # y by paths of length 1, 2 and 3
    assert layering(edges) == {"x": 0, "a": 1, "b": 2, "y": 3}
    assert layering({"y": ["b", "x"], "b": ["a", "x"], "a": ["x"]}) == {"x": 0, "a": 1, "b": 2, "y": 3}
    net = FeedForwardGraph(edges)
    assert net.layers == [["x"], ["a"], ["b"], ["y"]]
    with pytest.raises(wl.models.CycleError, match=r"b -> c -> b is a cycle|c -> b -> c is a cycle"):
        layering([("a", "b"), ("b", "c"), ("c", "b"), ("c", "d")])
    with pytest.raises(ValueError, match="a -> a is a cycle"):
        FeedForwardGraph([("a", "a")])
    with pytest.raises(InputError, match="'xy' is not an edge"):
        layering(["xy"])
    with pytest.raises(InputError, match="from 'a' to 'b' is there twice"):
        layering([("a", "b"), ("a", "b")])
    with pytest.raises(InputError, match="no edges"):
        FeedForwardGraph({"a": []})


@pytest.mark.book("A2-13", name="wl.models.FeedForwardGraph")
def test_a_graph_computes_what_its_neurons_do():
    edges = [
        ("x1", "h1"),
        ("x2", "h1"),
        ("x2", "h2"),
        ("h1", "y1"),
        ("h2", "y1"),
        ("x1", "y2"),
        ("h1", "h3"),
        ("h3", "y1"),
    ]
    net = FeedForwardGraph(edges, activation="tanh", dtype=wl.float64)
    assert (net.inputs, net.outputs) == (["x1", "x2"], ["y1", "y2"])
    assert net.connections == len(edges)
    x = numbers(5, 2)
    value = {"x1": x.numpy()[:, 0], "x2": x.numpy()[:, 1]}
    before = list(net.layers[0])
    for nodes, block in zip(net.layers[1:], net.blocks, strict=True):
        for j, node in enumerate(nodes):
            s = block.bias.numpy()[j] + sum(
                block.weight.numpy()[before.index(a), j] * value[a] for a, b in edges if b == node
            )
            value[node] = s if node in net.outputs else np.tanh(s)
        before += nodes
    expected = np.stack([value["y1"], value["y2"]], axis=-1)
    np.testing.assert_allclose(net(x), expected, rtol=1e-12)
    np.testing.assert_allclose(wl.jit(lambda m, x: m(x))(net, x), expected, rtol=1e-12)
    # what is no edge has no influence: y2 hangs on x1 alone
    J = np.asarray(wl.jacobian(net)(x[0]))
    assert J[1, 1] == 0
    assert (J[0] != 0).all()
    with pytest.raises(ShapeError, match="for the 2 inputs"):
        net(wl.ones((5, 3)))
