"""Convolutional classifiers of sequences and of videos: shapes, parameters, padding, learning from order and motion."""

from __future__ import annotations

import numpy as np
import pytest

import wonderland as wl
from wonderland import nn
from wonderland.errors import InputError, ShapeError
from wonderland.models import MLP, ConvClassifier1d, ConvClassifier3d

F = nn.functional
F64 = wl.float64


def numbers(*shape, seed=0):
    return wl.asarray(np.random.default_rng(seed).normal(size=shape))


def sequences(**settings):
    return ConvClassifier1d(2, 3, **({"channels": (4, 6), "dtype": F64, "key": wl.random.key(0)} | settings))


def videos(**settings):
    return ConvClassifier3d(2, 3, **({"channels": (4, 6), "dtype": F64, "key": wl.random.key(0)} | settings))


def train(model, x, y, steps, lr=0.02, compiled=True):
    optimizer = wl.optim.Adam(model, lr=lr)

    def step(model, optimizer, x, y):
        value, grads = wl.value_and_grad(lambda m: F.cross_entropy(m(x), y))(model)
        optimizer.step(grads)
        return value

    step = wl.jit(step) if compiled else step
    return [step(model, optimizer, x, y).item() for _ in range(steps)]


def motifs(n=300):
    """Sequences (n, 24, 1) of noise with a motif or its mirror image somewhere, and which of the two (n,)."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, n)
    shapes = np.array([[1.0, 2.0, -3.0], [-3.0, 2.0, 1.0]])
    x = 0.3 * rng.normal(size=(n, 24, 1))
    for i, start in enumerate(rng.integers(0, 21, n)):
        x[i, start : start + 3, 0] += shapes[y[i]]
    return x, y


def accuracy(model, x, y):
    return float(np.mean(np.argmax(model(x).numpy(), axis=-1) == y))


@pytest.mark.book("8-01", "8-04", "8-19", name=("wl.models.ConvClassifier1d", "wl.models.ConvClassifier3d"))
def test_shapes_and_parameters():
    model = sequences()
    assert model(numbers(5, 20, 2)).shape == model(numbers(5, 33, 2)).shape == (5, 3)
    assert model.encode(numbers(20, 2)).shape == (6,)
    assert model(numbers(2, 5, 9, 2)).shape == (2, 5, 3)  # any leading axes
    assert model.num_parameters() == (3 * 2 + 1) * 4 + 8 + (3 * 4 + 1) * 6 + 12 + 7 * 3
    model = videos()
    assert model(numbers(5, 4, 8, 9, 2)).shape == (5, 3)
    assert model.num_parameters() == (27 * 2 + 1) * 4 + 8 + (27 * 4 + 1) * 6 + 12 + 7 * 3
    wl.check_grads(lambda m, x: m(x), (sequences(channels=(4,)), numbers(6, 2)))


@pytest.mark.book("8-25", "8-19", name=("wl.models.ConvClassifier1d", "wl.models.ConvClassifier3d"))
@pytest.mark.parametrize("model, frame", [(sequences(), ()), (videos(), (4, 5))])
def test_a_padded_sequence_gives_what_it_gives_alone(model, frame):
    lengths = (4, 11, 7)
    xs = [numbers(n, *frame, 2, seed=n) for n in lengths]
    padded = wl.stack([wl.concat([x, 9 * numbers(11 - len(x), *frame, 2, seed=1)]) for x in xs])
    mask = wl.stack([wl.arange(11) < n for n in lengths])
    alone = wl.stack([model(x) for x in xs])
    np.testing.assert_allclose(model(padded, mask), alone, rtol=1e-9)
    if not frame:
        np.testing.assert_allclose(wl.jit(lambda m, x, k: m(x, k))(model, padded, mask), alone, rtol=1e-9)
    assert np.abs(model(padded)[0] - alone[0]).max() > 1e-3


@pytest.mark.book("A6-08", name=("wl.models.ConvClassifier1d", "wl.models.MLP"))
def test_permuted_places_are_nothing_to_a_perceptron_and_much_to_a_convolution():
    x, y = motifs()
    shuffled = x[:, np.random.default_rng(1).permutation(24)]
    found = {}
    for name, data in {"in order": x, "shuffled": shuffled}.items():
        conv = ConvClassifier1d(1, 2, channels=(8,), key=wl.random.key(0))
        train(conv, data[:200], y[:200], 80)
        dense = nn.Sequential(nn.Flatten(), MLP(24, [16], 2, key=wl.random.key(0)))
        train(dense, data[:200], y[:200], 80)
        found[name] = accuracy(conv, data[200:], y[200:]), accuracy(dense, data[200:], y[200:])
    assert found["in order"][0] > 0.95
    assert found["shuffled"][0] < 0.8
    assert abs(found["in order"][1] - found["shuffled"][1]) < 0.15


@pytest.mark.book("8-44", name=("wl.models.ConvClassifier1d.encode", "wl.models.retrieve"))
def test_neighbours_of_the_last_features_are_of_the_same_class():
    x, y = motifs(200)
    model = ConvClassifier1d(1, 2, channels=(8,), key=wl.random.key(0))

    def same_class(features):
        """The share of the 5 nearest known sequences that are of the class of a new one."""
        found = wl.models.retrieve(features[120:], features[:120], k=5, metric="euclidean")[1]
        return float(np.mean(y[:120][found.numpy()] == y[120:, None]))

    train(model, x[:120], y[:120], 60)
    assert same_class(model.encode(x)) > 0.95
    assert same_class(wl.asarray(x[..., 0])) < 0.75  # the sequences themselves: the motif is anywhere


@pytest.mark.book("8-04", name="wl.models.ConvClassifier3d")
def test_a_video_network_sees_motion():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 80)
    x = np.zeros((80, 4, 6, 6, 1))
    for i, right in enumerate(y):  # a dot that moves to the right or to the left; no frame alone tells which
        row, column = rng.integers(0, 6, 2)
        for t in range(4):
            x[i, t, row, (column + (t if right else -t)) % 6, 0] = 1.0
    model = ConvClassifier3d(1, 2, channels=(8,), key=wl.random.key(0))
    losses = train(model, x[:60], y[:60], 60, compiled=False)
    assert losses[-1] < 0.2
    assert accuracy(model, x[60:], y[60:]) > 0.85


@pytest.mark.parametrize(
    "call, kind, message",
    [
        (lambda: sequences()(numbers(3, 2)), ShapeError, r"4 or more along every axis"),
        (lambda: sequences()(numbers(8, 1)), ShapeError, r"\(..., time, channels\) with 2 channels"),
        (lambda: videos()(numbers(8, 8, 2)), ShapeError, "time, height, width, channels"),
        (lambda: videos()(numbers(8, 3, 8, 2)), ShapeError, "4 or more"),
        (lambda: sequences()(numbers(2, 8, 2), wl.ones((2, 7))), ShapeError, "mask of shape"),
        (lambda: sequences()(numbers(8, 2), wl.arange(8) < 3), InputError, "has 3 elements"),
        (lambda: sequences(channels=()), InputError, "no channels"),
        (lambda: sequences(channels=(0,)), InputError, "a number of channels=0"),
    ],
)
def test_bad_input(call, kind, message):
    with pytest.raises(kind, match=message):
        call()
