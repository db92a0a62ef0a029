"""Convolutional networks: blocks, backbone and head, what locality and sharing are good for, and larger variants."""

from __future__ import annotations

import functools

import numpy as np
import pytest

import wonderland as wl
from wonderland import nn
from wonderland.errors import InputError, ShapeError
from wonderland.models import CNN, MLP, ImageClassifier

F = nn.functional


def numbers(*shape, seed=0):
    return wl.asarray(np.random.default_rng(seed).normal(size=shape).astype(np.float32))


def train(model, x, y, steps=60, lr=0.02):
    """Steps of Adam on all examples; the model, in evaluation mode."""
    optimizer = wl.optim.Adam(model, lr=lr)

    @wl.jit
    def step(model, optimizer, x, y):
        loss, grads = wl.value_and_grad(lambda model: F.cross_entropy(model(x), y))(model)
        optimizer.step(grads)
        return loss

    x, y = wl.asarray(x), wl.asarray(y)
    for _ in range(steps):
        step(model, optimizer, x, y)
    return model.eval()


def accuracy(model, x, y):
    return float((np.asarray(model(wl.asarray(x))).argmax(-1) == y).mean())


@functools.cache
def strokes(n, places, seed=0):
    """Noisy 9 x 9 images with one of two strokes of three pixels, at one of these places."""
    rng = np.random.default_rng(seed)
    x = 0.1 * rng.normal(size=(n, 9, 9, 1))
    y = rng.integers(0, 2, n)
    for image, label in zip(x, y, strict=True):
        i, j = places[rng.integers(len(places))]
        for step in range(3):
            image[i + step, j + (2 - step if label else step), 0] += 1.0
    return x.astype(np.float32), y


EVERYWHERE = tuple((i, j) for i in range(7) for j in range(7))


# --- blocks


@pytest.mark.book("7-39", name=("wl.nn.Sequential", "wl.nn.ConvBlock"))
def test_a_stack_of_convolutions_keeps_height_and_width():
    stack = nn.ConvBlock(3, 5, convs=3, pool=None)
    assert [row.shape for row in stack.summary((2, 7, 6, 3)).rows if row.kind == "Conv2d"] == [(2, 7, 6, 5)] * 3
    x = numbers(2, 7, 6, 3)
    h = x
    for i in (0, 2, 4):
        h = wl.relu(F.conv2d(h, stack[i].weight, stack[i].bias, padding=1))
    np.testing.assert_allclose(stack(x), h, rtol=1e-5, atol=1e-6)


@pytest.mark.book("7-44", "7-45", name="wl.nn.ConvBlock")
def test_blocks_halve_and_stack():
    assert nn.ConvBlock(3, 8).output_shape((2, 32, 32, 3)) == (2, 16, 16, 8)
    three = nn.Sequential(nn.ConvBlock(3, 4), nn.ConvBlock(4, 8), nn.ConvBlock(8, 16))
    assert three.output_shape((2, 32, 32, 3)) == (2, 4, 4, 16)
    block = nn.ConvBlock(2, 4, convs=1, kernel_size=5, pool=3, activation="tanh")
    x = numbers(2, 9, 9, 2)
    np.testing.assert_allclose(
        block(x), F.max_pool2d(wl.tanh(F.conv2d(x, block[0].weight, block[0].bias, padding=2)), 3), rtol=1e-5, atol=1e-6
    )
    assert [type(m).__name__ for m in nn.ConvBlock(2, 4, 1, norm="batch")] == [
        "Conv2d",
        "BatchNorm2d",
        "ReLU",
        "MaxPool2d",
    ]
    assert nn.ConvBlock(2, 4, 1, norm="batch")[0].bias is None  # the normalization has a shift of its own
    assert nn.ConvBlock(2, 4, 1, norm="layer")[0].bias is not None


def test_residual_blocks_add_before_the_last_activation():
    x = numbers(2, 6, 6, 4)
    same = nn.ConvBlock(4, 4, pool=None, residual=True).eval()
    f = same[0].f
    np.testing.assert_allclose(same(x), wl.relu(x + f(x)), rtol=1e-5, atol=1e-6)
    assert same[0].shortcut is None
    assert nn.ConvBlock(4, 8, norm="group", residual=True)(x).shape == (2, 3, 3, 8)
    assert nn.lint(nn.ConvBlock(4, 4, norm="batch", residual=True)) == []


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda: nn.ConvBlock(3, 4, convs=0), "convs=0"),
        (lambda: nn.ConvBlock(3, 4, norm="btach"), "norm='btach'"),
        (lambda: CNN(channels=[]), "no block"),
        (lambda: CNN(pool="flatten"), "size of the images"),
        (lambda: CNN(pool="mode"), "pool='mode'"),
        (lambda: CNN(pool="flatten", image_size=(28,)), r"\(28,\)"),
        (lambda: CNN(channels=[4, 4, 4], pool="flatten", image_size=(7, 28)), "too small for 3 poolings"),
    ],
)
def test_settings_that_make_no_network(make, message):
    with pytest.raises((InputError, ShapeError), match=message):
        make()


# --- the whole network


@pytest.mark.book("7-52", name=("wl.models.CNN", "wl.nn.summary"))
def test_the_worked_out_network_says_its_shapes():
    model = CNN(10, 3, [4, 8], hidden=[16])
    x = numbers(2, 32, 32, 3)
    summary = model.summary(x.shape)
    actual = {}
    for path, module in model.named_modules():
        module.register_forward_hook(lambda module, args, output, path=path: actual.update({path: output.shape}))
    model(x)
    assert {row.path: row.shape for row in summary.rows} == actual
    assert actual["backbone.1"] == (2, 8, 8, 8)
    assert actual[""] == (2, 10)
    convs = [(3, 4), (4, 4), (4, 8), (8, 8)]
    assert summary.parameters == sum(9 * i * o + o for i, o in convs) + (8 + 1) * 16 + (16 + 1) * 10


@pytest.mark.book("7-55", "7-51", name=("wl.models.ImageClassifier", "wl.models.CNN"))
def test_backbone_embedding_and_head():
    model = CNN(5, 1, [4, 6], norm="batch").eval()
    x = numbers(3, 12, 12, 1)
    assert model.embed(x).shape == (3, 6)
    np.testing.assert_array_equal(model.head(model.embed(x)), model(x))
    np.testing.assert_allclose(model.embed(x), model.backbone(x).numpy().mean((1, 2)), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(wl.jit(model)(x), model(x), rtol=1e-4, atol=1e-5)
    assert model(numbers(2, 3, 16, 9, 1)).shape == (2, 3, 5)  # any resolution, any number of leading axes
    model.freeze("backbone")
    assert {path.split(".")[0] for path, p in model.named_parameters() if p.trainable} == {"head"}
    shaped = {
        pool: ImageClassifier(model.backbone, nn.Identity(), pool).eval()(x) for pool in ("max", "sum", "flatten")
    }
    maps = model.features(x).numpy()
    np.testing.assert_array_equal(shaped["max"], maps.max((1, 2)))
    np.testing.assert_allclose(shaped["sum"], maps.sum((1, 2)), rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(shaped["flatten"], maps.reshape(3, -1))
    with pytest.raises(ShapeError, match=r"CNN: an input of shape \(12, 12\) has fewer than 3 axes"):
        model(wl.ones((12, 12)))
    fixed = CNN(5, 1, [4], pool="flatten", image_size=(12, 12))
    assert fixed(x).shape == (3, 5)
    with pytest.raises(ShapeError, match="head"):  # where the flat head sits
        fixed(numbers(3, 14, 14, 1))


@pytest.mark.book("7-50", name=("wl.models.CNN", "wl.grad"))
def test_places_of_the_last_maps_look_at_regions():
    model = CNN(2, 1, [3, 3], convs=1).astype(wl.float64)
    x = wl.asarray(np.random.default_rng(0).normal(size=(16, 16, 1)))
    for i, j in ((0, 0), (0, 3), (3, 0), (3, 3)):
        seen = np.abs(wl.grad(lambda x, i=i, j=j: model.features(x)[i, j].sum())(x).numpy())[..., 0]
        rows, columns = np.nonzero(seen)
        assert (rows.mean() < 8) == (i == 0)
        assert (columns.mean() < 8) == (j == 0)


@pytest.mark.book("A6-01", name=("wl.models.CNN", "wl.models.MLP"))
def test_a_network_of_convolutions_knows_a_stroke_wherever_it_is():
    x, y = strokes(128, ((3, 3),))
    moved, labels = strokes(128, ((0, 0), (5, 1), (1, 6)), seed=1)
    settings = {"channels": [8], "convs": 1, "pool": "max"}
    cnn = train(CNN(2, 1, **settings, key=wl.random.key(0)), x, y)
    dense = train(nn.Sequential(nn.Flatten(), MLP(81, [32], 2, key=wl.random.key(0))), x, y)
    assert accuracy(cnn, x, y) == accuracy(dense, x, y) == 1.0
    assert accuracy(cnn, moved, labels) > 0.95
    assert accuracy(dense, moved, labels) < 0.75


@pytest.mark.book("A6-08", "7-01", name=("wl.models.CNN", "wl.models.MLP"))
def test_shuffled_pixels_matter_to_convolutions_only():
    order = np.random.default_rng(3).permutation(81)
    (x, y), (new, labels) = strokes(256, EVERYWHERE), strokes(256, EVERYWHERE, seed=1)

    def shuffled(x):
        return x.reshape(-1, 81)[:, order].reshape(-1, 9, 9, 1)

    dense = MLP(81, [8], 2, key=wl.random.key(0))
    other = MLP(81, [8], 2, key=wl.random.key(0))
    other.layers[0].weight = other.layers[0].weight[wl.asarray(order)]  # the same network for the shuffled pixels
    train(dense, x.reshape(-1, 81), y, steps=3, lr=0.01)
    train(other, shuffled(x).reshape(-1, 81), y, steps=3, lr=0.01)
    np.testing.assert_allclose(
        other(wl.asarray(shuffled(new).reshape(-1, 81))), dense(wl.asarray(new.reshape(-1, 81))), rtol=1e-3, atol=1e-4
    )
    settings = {"channels": [8], "convs": 1, "pool": "max"}
    ordered = train(CNN(2, 1, **settings, key=wl.random.key(0)), x, y)
    lost = train(CNN(2, 1, **settings, key=wl.random.key(0)), shuffled(x), y)
    assert accuracy(ordered, new, labels) > 0.95
    assert accuracy(lost, shuffled(new), labels) < 0.8


@pytest.mark.book("7-62", "7-53", name=("wl.models.CNN", "wl.train.fit", "wl.data.digits"))
def test_a_small_network_reads_digits():
    digits = wl.data.digits()
    x, y = digits.features.astype(np.float32), digits.targets.astype(np.int64)
    first = nn.Standardize.of(x[:1400], axis=(0, 1, 2, 3))
    wl.random.seed(0)
    model = nn.Sequential(first, CNN(10, 1, [16, 32], convs=1, norm="batch", pool="flatten", image_size=(8, 8)))
    loader = wl.data.DataLoader(wl.data.TensorDataset(x[:1400], y[:1400]), batch_size=100, shuffle=True)
    wl.train.fit(model, nn.CrossEntropyLoss(), loader, epochs=8, optimizer=wl.optim.Adam(model, 0.01), progress=False)
    assert accuracy(model.eval(), x[1400:], y[1400:]) > 0.95


# --- growing it


@pytest.mark.book("9-102", "9-04", name=("wl.models.CNN", "wl.train.search", "examples/growing_cnn.py"))
def test_every_combination_of_depth_and_technique_is_one_network():
    counts = {}

    def parameters(channels, norm, dropout, residual):
        model = CNN(10, 1, channels, norm=norm, dropout=dropout, residual=residual)
        assert model.output_shape((2, 16, 16, 1)) == (2, 10)
        kinds = {type(m).__name__ for m in model.modules()}
        assert ("BatchNorm2d" in kinds, "Dropout" in kinds, "Residual" in kinds) == (
            norm is not None,
            dropout > 0,
            residual,
        )
        counts[(len(channels), channels[0], norm, dropout, residual)] = model.num_parameters()
        return model.num_parameters()

    space = {"channels": [[4], [8], [4, 8]], "norm": [None, "batch"], "dropout": [0.0, 0.2], "residual": [False, True]}
    result = wl.train.search(parameters, space)
    assert len(result.trials) == len(counts) == 24
    assert result.best["channels"] == [4]
    assert counts[1, 4, None, 0.0, False] == 40 + 148 + 50  # two convolutions and the head
    assert counts[1, 4, None, 0.2, True] == 40 + 148 + 50 + 8  # a projection of one channel to four
