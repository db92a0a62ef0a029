"""MLP-Mixer: what it computes, what it refuses, and that it learns digits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import wonderland as wl
from tests.agreement import close_array
from wonderland import nn
from wonderland.errors import ShapeError
from wonderland.recipes import build


def test_the_published_sizes():
    """Mixer-S/16 and Mixer-B/16 on images of 224 x 224 pixels with 1000 classes."""
    for e, depth, parameters in ((512, 8, 18_528_264), (768, 12, 59_880_472)):
        model = wl.eval_shape(lambda e=e, d=depth: wl.models.MLPMixer(1000, (224, 224, 3), 16, e, d))
        assert model.num_parameters() == parameters


@pytest.mark.book("11.61", name="wl.models.MLPMixer")
def test_it_is_a_stack_of_blocks_over_patches():
    model = wl.models.MLPMixer(3, (4, 6, 2), patch=2, e=5, depth=2)
    x = np.random.default_rng(0).normal(size=(2, 4, 6, 2)).astype(np.float32)
    patches = x.reshape(2, 2, 2, 3, 2, 2).transpose(0, 1, 3, 2, 4, 5).reshape(2, 6, 8)  # side by side, row by row
    h = patches @ model.patches.weight.detach().reshape(8, 5) + model.patches.bias.detach()
    for block in model.blocks:
        h = block(h)
    close_array(model(x), model.head(nn.functional.layer_norm(h, (5,)).mean(axis=1)))
    close_array(wl.jit(lambda m, a: m(a))(model, wl.asarray(x)), model(x))
    assert model.output_shape((7, 4, 6, 2)) == (7, 3)
    close_array(model(x[0]), model(x)[0])


def test_images_of_other_sizes_are_refused():
    with pytest.raises(ShapeError, match="patches of 4 x 4"):
        wl.models.MLPMixer(3, (8, 6), patch=4)
    with pytest.raises(ShapeError, match=r"\(\.\.\., 8, 8, 1\)"):
        wl.models.MLPMixer(3, (8, 8), patch=4)(wl.ones((2, 8, 4, 1)))


@pytest.mark.book("11.70", name=("wl.models.MLPMixer", "wl.recipes.build"))
def test_a_mixer_learns_digits():
    """In a few seconds far above chance, which is one in ten."""
    digits = wl.data.load("digits")
    images, labels = (wl.asarray(a) for a in split(digits.train))
    wl.random.seed(0)
    model = build({"name": "mixer", "e": 32, "depth": 2, "dropout": 0.0}, (8, 8, 1), 10)
    optimizer = wl.optim.AdamW(model, lr=4e-3)
    loss_of = lambda m, x, y: nn.functional.cross_entropy(m(x), y)

    @wl.jit
    def step(model, optimizer, x, y):
        loss, grads = wl.value_and_grad(loss_of)(model, x, y)
        optimizer.step(grads)
        return loss

    for i in range(60):
        rows = slice(100 * (i % 10), 100 * (i % 10) + 100)
        step(model, optimizer, images[rows], labels[rows])
    x, y = split(digits.test)
    assert (np.asarray(model.eval()(x)).argmax(-1) == y).mean() > 0.7


def split(part: Any) -> tuple[Any, Any]:
    pairs = [part[i] for i in range(len(part))]
    return np.stack([np.asarray(x) for x, _ in pairs]).astype(np.float32), np.array([int(y) for _, y in pairs])
