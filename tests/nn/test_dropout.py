"""Dropout and its relatives, eagerly and under jit."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import wonderland as wl
from wonderland import nn
from wonderland.errors import InputError, ShapeError

F = nn.functional


@pytest.mark.book("9-35", "9-44", "A8-05", name=("wl.nn.Dropout", "wl.nn.functional.dropout"))
@pytest.mark.parametrize("p", [0.1, 0.5, 0.8])
def test_share_of_zeros_mean_and_variance(p):
    y = F.dropout(wl.full((200, 200), 3.0), p, key=wl.random.key(0)).numpy()
    np.testing.assert_allclose((y == 0).mean(), p, atol=0.01)
    np.testing.assert_allclose(np.unique(y), [0.0, 3.0 / (1 - p)], rtol=1e-6)
    np.testing.assert_allclose(y.mean(), 3.0, rtol=0.03)
    np.testing.assert_allclose(y.var(), 9.0 * p / (1 - p), rtol=0.05)


@pytest.mark.book("9-36", "9-38", "A8-06", "C-10", name="wl.nn.Dropout")
def test_whether_a_probability_is_to_keep_or_to_drop():
    for layer in (nn.Dropout(0.3), nn.Dropout(p=0.3), nn.Dropout(drop=0.3), nn.Dropout(keep_prob=0.7)):
        share = (layer(wl.ones(40_000)) == 0).numpy().mean()
        np.testing.assert_allclose(share, 0.3, atol=0.01)
    assert nn.Dropout().p == 0.5
    with pytest.raises(InputError, match="say the same thing"):
        nn.Dropout(0.3, keep_prob=0.7)
    with pytest.raises(InputError, match="say the same thing"):
        nn.Dropout(drop=0.3, keep_prob=0.3)


@pytest.mark.book("9-41", "9-43", "A8-08", name="wl.nn.Dropout")
def test_without_inversion_inference_has_the_factor():
    x = wl.random.normal((6,), key=wl.random.key(1))
    layer = nn.Dropout(drop=0.2, inverted=False, key=0)
    draws = layer(wl.broadcast_to(x, (20_000, 6))).numpy()
    for column, number in zip(draws.T, x.tolist(), strict=True):
        assert set(np.unique(column)) == {0.0, np.float32(number)}  # nothing is scaled while training
    np.testing.assert_allclose(draws.mean(0), 0.8 * x.numpy(), atol=0.03)
    np.testing.assert_allclose(layer.eval()(x), 0.8 * x.numpy(), rtol=1e-6)
    inverted = nn.Dropout(drop=0.2, key=0)
    np.testing.assert_allclose(inverted(wl.broadcast_to(x, (20_000, 6))).mean(0), x, atol=0.03)
    assert np.shares_memory(inverted.eval()(x), x)


@pytest.mark.book("9-37", name="wl.nn.functional.dropout")
def test_limits():
    x = wl.random.normal((5, 4))
    assert np.shares_memory(F.dropout(x, 0.0), x)
    assert not F.dropout(x, 1.0).numpy().any()
    assert np.shares_memory(F.dropout(x, 0.5, training=False), x)
    assert np.shares_memory(nn.Dropout(0.5).eval()(x), x)
    assert F.dropout(wl.zeros((0, 3)), 0.5).shape == (0, 3)
    assert F.dropout(x.astype(wl.float64), 0.5).dtype == wl.float64
    for layer in (nn.Dropout, nn.Dropout1d, nn.AlphaDropout, nn.FeatureAlphaDropout, nn.DropPath):
        assert np.shares_memory(layer(0.0)(x), x)
        assert not layer(1.0)(x).numpy().any()
        gradient = wl.grad(lambda x, layer=layer: layer(1.0)(x).sum())(x)
        assert not gradient.numpy().any()
    for inverted in (False, True):
        layer = nn.DropConnectLinear(4, 3, 1.0, inverted=inverted)
        np.testing.assert_array_equal(layer(x), np.tile(layer.bias.numpy(), (5, 1)))
        np.testing.assert_array_equal(layer.eval()(x), np.tile(layer.bias.numpy(), (5, 1)))
    with pytest.raises(InputError, match="no finite variance"):
        nn.GaussianDropout(1.0)(x)


@pytest.mark.book("9-35", name="wl.nn.Dropout")
def test_the_gradient_has_the_same_mask():
    layer = nn.Dropout(0.5)
    y, back = wl.vjp(layer, wl.ones(100))
    np.testing.assert_array_equal(back(wl.ones(100))[0], y)


LAYERS = {
    "Dropout": lambda key=None: nn.Dropout(0.5, key=key),
    "Dropout2d": lambda key=None: nn.Dropout2d(0.5, key=key),
    "AlphaDropout": lambda key=None: nn.AlphaDropout(0.5, key=key),
    "FeatureAlphaDropout": lambda key=None: nn.FeatureAlphaDropout(0.5, key=key),
    "GaussianDropout": lambda key=None: nn.GaussianDropout(0.5, key=key),
    "GaussianNoise": lambda key=None: nn.GaussianNoise(0.5, key=key),
    "StochasticDepth": lambda key=None: nn.StochasticDepth(0.5, key=key),
    "Cutout": lambda key=None: nn.Cutout(2, key=key),
    "DropConnectLinear": lambda key=None: nn.DropConnectLinear(4, 4, 0.5, key=key),
}


@pytest.mark.parametrize("name", LAYERS)
@pytest.mark.parametrize("key", [None, 3])
def test_every_call_draws_anew_and_the_seed_repeats(name, key):
    x = wl.ones((8, 4, 4, 4))

    def draws(wrap):
        wl.random.seed(7)
        layer = LAYERS[name](key)
        call = wrap(lambda layer, x: layer(x))
        return [call(layer, x).numpy() for _ in range(3)]

    eager, compiled = draws(lambda f: f), draws(wl.jit)
    np.testing.assert_allclose(eager, compiled, rtol=1e-5, atol=1e-6)
    assert not np.array_equal(eager[0], eager[1])


@pytest.mark.book("9-52", "A8-04", name=("wl.nn.GaussianNoise", "wl.nn.GaussianDropout", "wl.nn.WeightNoise"))
def test_nothing_is_disturbed_at_inference():
    x = wl.random.normal((2, 4, 4, 4))
    for name, make in LAYERS.items():
        if name != "DropConnectLinear":
            assert np.shares_memory(make().eval()(x), x)
    noisy = nn.GaussianNoise(0.5, key=0)(wl.zeros(40_000)).numpy()
    np.testing.assert_allclose([noisy.mean(), noisy.std()], [0.0, 0.5], atol=0.01)
    product = nn.GaussianDropout(0.2, key=0)(wl.full((40_000,), 3.0)).numpy()
    np.testing.assert_allclose([product.mean(), product.var()], [3.0, 9.0 * 0.25], rtol=0.03)
    weights = nn.WeightNoise(nn.Linear.from_matrix(wl.zeros((200, 200))), 0.5, key=0)
    outputs = weights(wl.eye(200)).numpy()
    np.testing.assert_allclose([outputs.mean(), outputs.std()], [0.0, 0.5], atol=0.01)
    assert not weights.eval()(wl.eye(200)).numpy().any()
    logits, classes = wl.random.normal((2, 3)), wl.tensor([0, 2])
    targets = 0.9 * wl.one_hot(classes, 3, dtype=wl.float32) + 0.1 / 3  # the mean of targets that are wrong at times
    np.testing.assert_allclose(targets.sum(-1), 1.0, rtol=1e-6)
    smooth = F.cross_entropy(logits, classes, label_smoothing=0.1)
    np.testing.assert_allclose(smooth, F.cross_entropy(logits, targets), rtol=1e-5)


@pytest.mark.book("9-47", name=("wl.nn.Dropout1d", "wl.nn.Dropout2d", "wl.nn.Dropout3d"))
@pytest.mark.parametrize("layer, axes", [(nn.Dropout1d, 1), (nn.Dropout2d, 2), (nn.Dropout3d, 3)])
def test_channels_are_dropped_as_a_whole(layer, axes):
    x = wl.random.uniform((40, *(3,) * axes, 50), 1.0, 2.0)
    ratio = (layer(0.25, key=0)(x) / x).numpy()
    places = tuple(range(1, axes + 1))
    np.testing.assert_allclose(ratio.min(places), ratio.max(places), rtol=1e-6)
    np.testing.assert_allclose((ratio == 0).mean(), 0.25, atol=0.03)
    np.testing.assert_allclose(np.unique(ratio.round(4)), [0.0, 1.3333])
    assert layer(0.25)(x[0]).shape == x[0].shape
    with pytest.raises(ShapeError, match="an input of shape"):
        layer(0.25)(wl.ones(3))


def test_stochastic_depth_drops_examples_or_all():
    x = wl.random.uniform((400, 3), 1.0, 2.0)
    rows = (nn.StochasticDepth(0.25, key=0)(x) / x).numpy()
    np.testing.assert_allclose(rows.min(1), rows.max(1), rtol=1e-6)
    np.testing.assert_allclose((rows == 0).mean(), 0.25, atol=0.06)
    whole = nn.StochasticDepth(0.5, "batch", key=0)
    found = {float((whole(x) / x).numpy().round(3).max()) for _ in range(20)}
    assert found == {0.0, 2.0}
    with pytest.raises(InputError, match="mode='rows'"):
        nn.StochasticDepth(0.5, "rows")


def test_alpha_dropout_keeps_mean_and_variance():
    x = wl.random.normal((200, 10, 50), key=wl.random.key(0))
    for layer in (nn.AlphaDropout(0.3, key=1), nn.FeatureAlphaDropout(0.3, key=1)):
        y = layer(x).numpy()
        np.testing.assert_allclose([y.mean(), y.std()], [0.0, 1.0], atol=0.02)
    a = (0.7 * (1 + 0.3 * 1.7580993408473766**2)) ** -0.5  # the published formula
    dropped = a * -1.7580993408473766 + a * 1.7580993408473766 * 0.3
    kept = np.isclose(y, dropped, atol=1e-5)
    assert (kept.all(1) | ~kept.any(1)).all()
    np.testing.assert_allclose(kept.mean(), 0.3, atol=0.02)


@pytest.mark.book("9-48", name=("wl.nn.Cutout", "wl.nn.functional.cutout"))
@pytest.mark.parametrize("per_channel", [False, True])
def test_cutout(per_channel):
    size, n = 3, 7
    y = nn.Cutout(size, per_channel, key=0)(wl.ones((200, n, n, 2))).numpy()
    corners = set()
    for image in y:
        for channel in (image[..., 0], image[..., 1]):
            rows, columns = np.nonzero(channel == 0)
            assert len(rows) == (np.ptp(rows) + 1) * (np.ptp(columns) + 1)  # a full rectangle
            top, left = rows.min(), columns.min()
            full = 0 < top < n - size and 0 < left < n - size
            assert len(rows) == size**2 if full else 2 * 2 <= len(rows) <= size**2  # clipped at the border
            corners.add((top, left))
    assert len(corners) > 20
    assert (y[..., 0] == y[..., 1]).all() != per_channel
    assert F.cutout(wl.ones((4, 4, 1)), (1, 9), value=5.0).numpy().max() == 5.0
    with pytest.raises(InputError, match="size"):
        nn.Cutout(0)
    with pytest.raises(ShapeError, match="height, width, channels"):
        F.cutout(wl.ones((4, 4)), 2)


@pytest.mark.book("9-49", "9-50", name="wl.nn.DropConnectLinear")
@pytest.mark.parametrize("inverted", [False, True])
def test_drop_connect_and_its_moments(inverted):
    keep = 0.7
    layer = nn.DropConnectLinear(5, 3, keep_prob=keep, inverted=inverted, per_example=True, key=0)
    x = wl.random.normal((5,), key=wl.random.key(3))
    draws = layer(wl.broadcast_to(x, (20_000, 5))).numpy()
    w, b = layer.weight.numpy(), layer.bias.numpy()
    scale = 1 / keep if inverted else 1.0
    mean = scale * keep * x.numpy() @ w + b  # p W x + b in the book, with p to keep
    variance = scale**2 * keep * (1 - keep) * (x.numpy() ** 2) @ (w**2)
    np.testing.assert_allclose(draws.mean(0), mean, atol=0.02)
    np.testing.assert_allclose(draws.var(0), variance, rtol=0.05)
    for mine, formula in zip(layer.moments(x), (mean, variance), strict=True):
        np.testing.assert_allclose(mine, formula, rtol=1e-5)
    np.testing.assert_allclose(layer.eval()(x), mean, rtol=1e-5)
    layer.inference = "gaussian"
    matched = layer(wl.broadcast_to(x, (20_000, 5))).numpy()
    np.testing.assert_allclose(matched.mean(0), mean, atol=0.02)
    np.testing.assert_allclose(matched.var(0), variance, rtol=0.05)
    shared = nn.DropConnectLinear(5, 3, 0.5, key=0)
    y = shared(wl.broadcast_to(x, (4, 5))).numpy()
    assert (y == y[0]).all()  # one mask for the batch
    with pytest.raises(InputError, match="inference='normal'"):
        nn.DropConnectLinear(5, 3, 0.5, inference="normal")


def test_drop_connect_trains_what_it_keeps():
    layer = nn.DropConnectLinear(5, 3, 0.5, key=0)
    assert nn.DropConnectLinear.from_matrix(wl.ones((2, 1)))(wl.ones(2)).item() in (0.0, 2.0, 4.0)
    grads = wl.grad(lambda layer: layer(wl.ones((2, 5))).sum())(layer)
    assert set(np.unique(grads["weight"].numpy())) == {0.0, 4.0}


@pytest.mark.book("9-39", "9-40", "9-51", name=("wl.nn.Sequential", "wl.nn.Dropout"))
def test_the_books_model():
    model = nn.Sequential(nn.Dropout(0.3), nn.Linear(2, 3), nn.ReLU(), nn.Dropout(0.3), nn.Linear(3, 1))
    assert model.num_parameters() == 13
    x = wl.random.normal((16, 2))
    assert not np.array_equal(model(x), model(x))
    model.eval()
    np.testing.assert_array_equal(model(x), model(x))


@pytest.mark.book("9-45", name=("wl.nn.Module.train", "wl.nn.Module.eval"))
def test_the_books_monte_carlo_by_repetition():
    model = nn.Sequential(nn.Dropout(0.3), nn.Linear(2, 3), nn.ReLU(), nn.Dropout(0.3), nn.Linear(3, 1))
    x, k = wl.random.normal((16, 2)), 10
    model.train()
    assert all(m.training for m in model.modules())
    many = model(wl.tile(x[:, None, :], (1, k, 1)))
    assert many.shape == (16, k, 1)
    assert many.mean(1).shape == (16, 1)
    assert (many.std(1) > 0).any()  # the masks differ across k
    model.eval()
    assert not any(m.training for m in model.modules())


@pytest.mark.book("9-101", name=("wl.nn.Dropout", "wl.nn.functional.dropout"))
def test_dropout_from_elementary_operations():
    x = wl.random.normal((8, 4), key=wl.random.key(5), dtype=wl.float64)
    key = wl.random.key(6)

    def own(x):
        mask = wl.random.bernoulli(x.shape, 0.75, key=key, dtype=x.dtype)
        return mask * x / 0.75

    def builtin(x):
        return F.dropout(x, 0.25, key=key)

    np.testing.assert_allclose(own(x), builtin(x), rtol=1e-12)
    np.testing.assert_allclose(*[wl.grad(lambda x, f=f: (f(x) ** 2).sum())(x) for f in (own, builtin)], rtol=1e-12)


@pytest.mark.book("A8-09", name="wl.nn.Dropout")
def test_dropout_is_bagging_with_shared_weights():
    """All masks of a tiny net: their mean, and the geometric mean that weight scaling is for softmax regression."""
    rng = np.random.default_rng(0)
    x, w, b = rng.normal(size=4), rng.normal(size=(4, 3)), rng.normal(size=3)

    def softmax(s):
        e = np.exp(s - s.max())
        return e / e.sum()

    masks = np.array(list(itertools.product([0, 1], repeat=4)))
    members = np.array([softmax((m * x) @ w + b) for m in masks])
    geometric = softmax(np.log(members).mean(0))
    model = nn.Sequential(nn.Dropout(0.5, inverted=False), nn.Linear.from_matrix(w, b), wl.softmax)
    np.testing.assert_allclose(model.eval()(wl.asarray(x)), geometric, rtol=1e-12)
    drawn = model.train()(wl.asarray(np.tile(x, (20_000, 1)))).numpy()
    np.testing.assert_allclose(drawn.mean(0), members.mean(0), atol=0.01)
    assert len(np.unique(drawn.round(9), axis=0)) == len(masks)


def test_a_stream_of_its_own_is_state():
    layer = nn.Dropout(0.5, key=wl.random.key(1))
    x = wl.ones(64)
    layer(x)
    saved = layer.state_dict()
    assert list(saved) == ["stream"]
    first = layer(x)
    layer.load_state_dict(saved)
    np.testing.assert_array_equal(layer(x), first)
    assert nn.Dropout(0.5).state_dict() == {}


def test_bad_input():
    for p in (-0.1, 1.5, float("nan")):
        with pytest.raises(InputError, match="not a probability"):
            nn.Dropout(p)
        with pytest.raises(InputError, match="not a probability"):
            F.dropout(wl.ones(3), p)
    for std in (-1.0, float("inf"), float("nan")):
        with pytest.raises(InputError, match="not a standard deviation"):
            nn.GaussianNoise(std)
    with pytest.raises(ShapeError, match=r"batch, \.\.\., channels"):
        F.feature_alpha_dropout(wl.ones(3))
