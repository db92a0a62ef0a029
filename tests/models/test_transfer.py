"""Fine-tuning an image model: a new head on a trained backbone."""

from __future__ import annotations

import functools

import numpy as np
import pytest

import wonderland as wl
from wonderland import nn
from wonderland.models import CNN

F = nn.functional


STROKES = [[(0, 0), (1, 1), (2, 2)], [(0, 2), (1, 1), (2, 0)], [(1, 0), (1, 1), (1, 2)], [(0, 1), (1, 1), (2, 1)]]


def strokes(n, seed):
    """Noisy 9 x 9 images with a stroke of three pixels somewhere, and which of the four it is."""
    rng = np.random.default_rng(seed)
    x, y = 0.4 * rng.normal(size=(n, 9, 9, 1)), np.arange(n) % 4
    for image, kind in zip(x, y, strict=True):
        top, left = rng.integers(0, 7, 2)
        for i, j in STROKES[kind]:
            image[top + i, left + j] += 1.0
    return wl.asarray(x.astype(np.float32)), wl.asarray(y)


@wl.jit
def step(model, optimizer, x, y):
    loss, grads = wl.value_and_grad(lambda model: F.cross_entropy(model(x), y))(model)
    optimizer.step(grads)
    return loss


def accuracy(model, x, y):
    return float((wl.argmax(model.eval()(x), axis=-1) == y).numpy().mean())


def network(classes, seed):
    return CNN(classes, 1, [12], convs=1, norm="batch", pool="max", key=wl.random.key(seed))


@functools.cache
def pretrained():
    """The state of a model that tells all four strokes."""
    model = network(4, 0)
    optimizer = wl.optim.Adam(model, lr=0.02)
    x, y = strokes(256, 0)
    for _ in range(100):
        step(model, optimizer, x, y)
    assert accuracy(model, *strokes(400, 1)) > 0.8
    return {path: value.numpy() for path, value in model.state_dict().items()}


@pytest.mark.book("9-104", name=("wl.nn.replace_head", "wl.nn.Module.freeze", "wl.models.CNN"))
def test_a_frozen_backbone_with_a_new_head():
    new, kinds = strokes(400, 3)
    truth = 1 * ((kinds == 0) | (kinds == 2))  # another question about the strokes
    scores = []
    for seed in (2, 12, 22):
        few, kinds = strokes(12, seed)
        labels = 1 * ((kinds == 0) | (kinds == 2))
        tuned = network(4, 1)
        tuned.load_state_dict(pretrained())
        nn.replace_head(tuned, 2, key=wl.random.key(2))
        tuned.freeze("backbone")
        optimizer = wl.optim.Adam(tuned, lr=0.02)
        tuned.train()
        tuned.backbone.eval()  # normalization uses, and keeps, its statistics
        for _ in range(60):
            step(tuned, optimizer, few, labels)
        kept = [path for path in tuned.state_dict() if path.startswith("backbone")]
        assert any("running_mean" in path for path in kept)
        for path in kept:
            np.testing.assert_array_equal(tuned.state_dict()[path], pretrained()[path], err_msg=path)

        scratch = network(2, 1)
        optimizer = wl.optim.Adam(scratch, lr=0.02)
        for _ in range(60):
            step(scratch, optimizer, few, labels)
        scores.append((accuracy(tuned, new, truth), accuracy(scratch, new, truth)))
    with_transfer, without = np.mean(scores, axis=0)
    assert with_transfer > without + 0.05


@pytest.mark.book("9-104", name=("wl.nn.load_partial", "wl.optim.Adam"))
def test_partial_loading_and_rates_by_layer():
    other = network(3, 1)
    loaded = nn.load_partial(other, pretrained())
    assert loaded.mismatched == ["head.layers.0.weight", "head.layers.0.bias"]
    assert loaded.missing == loaded.unexpected == []
    np.testing.assert_array_equal(other.backbone[0][0].weight, pretrained()["backbone.0.0.weight"])
    named = other.named_parameters()
    groups = [
        {"params": [(path, p) for path, p in named if path.startswith("backbone")], "lr": 1e-4},
        {"params": [(path, p) for path, p in named if path.startswith("head")], "lr": 1e-1},
    ]
    before = {path: value.numpy() for path, value in named}
    x, kinds = strokes(12, 4)
    step(other, wl.optim.Adam(groups), x, kinds % 3)
    moved = {path: np.abs(value.numpy() - before[path]).max() for path, value in other.named_parameters()}
    assert moved["head.layers.0.weight"] == pytest.approx(0.1, rel=0.01)  # the first step of Adam is the rate
    assert 0 < moved["backbone.0.0.weight"] < 1.1e-4
