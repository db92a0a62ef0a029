"""Transformer blocks: where they normalize, what stays the same through them, and how gradients go down a stack."""

from __future__ import annotations

import numpy as np
import pytest

import wonderland as wl
from tests.agreement import close_array
from wonderland import nn


def numbers(*shape, seed=0):
    return wl.asarray(np.random.default_rng(seed).normal(size=shape))


def block(**settings):
    return nn.TransformerBlock(12, 3, dtype=wl.float64, key=wl.random.key(0), **settings)


def without_parts(layer):
    """The block with zeros in the last matrices of attention and MLP."""
    for last in (layer.attention.output, layer.feed_forward.down):
        last.weight, last.bias = wl.zeros_like(last.weight), wl.zeros_like(last.bias)
    return layer


def normal(x):
    x = np.asarray(x)
    return (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5)


@pytest.mark.book("10.51", name="wl.nn.TransformerBlock")
def test_pre_norm():
    layer, x = block(), numbers(2, 7, 12)
    h = x + layer.attention(layer.norm1(x))
    close_array(layer(x), h + layer.feed_forward(layer.norm2(h)))
    np.testing.assert_array_equal(without_parts(layer)(x), x)  # the identity
    last = nn.TransformerStack([layer], nn.LayerNorm(12, dtype=wl.float64))
    np.testing.assert_allclose(last(x), normal(x), atol=1e-12)


@pytest.mark.book("10.52", name="wl.nn.TransformerBlock")
def test_post_norm():
    layer, x = block(norm_first=False), 3 * numbers(2, 7, 12) + 1
    h = layer.norm1(x + layer.attention(x))
    y = layer(x).detach()
    close_array(y, layer.norm2(h + layer.feed_forward(h)))
    np.testing.assert_allclose(np.mean(y, axis=-1), 0, atol=1e-12)
    np.testing.assert_allclose(np.var(y, axis=-1), 1, atol=1e-3)
    np.testing.assert_allclose(without_parts(layer)(x), normal(normal(x)), atol=1e-12)
    assert not np.allclose(layer(x), x)


def gradient_norms_by_block(norm_first, depth=16, e=32, steps=12):
    """Norms (steps, depth) of the gradients of each block, at the start and after steps of Adam with a large rate."""
    keys = wl.random.split(wl.random.key(0), depth + 1)
    blocks = [nn.TransformerBlock(e, 4, norm_first=norm_first, key=k) for k in keys[1:]]
    stack = nn.TransformerStack(blocks, nn.LayerNorm(e) if norm_first else None)
    model = nn.Sequential(stack, nn.Linear(e, 5, key=keys[0]))
    optimizer = wl.optim.Adam(model, lr=1e-2)  # from the first step on: no warm-up
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(16, 8, e)).astype(np.float32), rng.integers(0, 5, (16, 8))

    def step(model, optimizer, x, y):
        grads = wl.grad(lambda m: nn.functional.cross_entropy(m(x), y))(model)
        optimizer.step(grads)
        return nn.diagnostics.gradient_norms(grads)

    found = np.zeros((steps, depth))
    for squares in found:
        for path, norm in step(model, optimizer, wl.asarray(x), wl.asarray(y)).items():
            if path.startswith("0.blocks."):
                squares[int(path.split(".")[2])] += norm.item() ** 2
    return np.sqrt(found)


@pytest.mark.book("10.53", name=("wl.nn.TransformerBlock", "wl.nn.diagnostics.gradient_norms"))
def test_gradients_of_a_deep_stack_are_even_with_pre_norm_and_not_with_post_norm():
    """Sixteen blocks without warm-up: with post-norm the gradients of the lower blocks die within a few steps."""
    before, after = gradient_norms_by_block(True), gradient_norms_by_block(False)
    spread = lambda norms: norms.max(axis=1) / norms.min(axis=1)
    assert spread(before)[0] < 2  # flat over depth
    assert spread(before).max() < 30
    assert spread(after)[-1] > 100 * spread(before)[-1]
    assert after[-1, -1] > 100 * after[-1, 0]  # the lower blocks get nothing any more


@pytest.mark.book("10.54", name="wl.nn.LayerNorm")
def test_normalization_is_of_each_token():
    layer, x = nn.LayerNorm(12, dtype=wl.float64), 5 * numbers(3, 7, 12) + 2
    np.testing.assert_allclose(layer(x), normal(x), atol=1e-12)  # with the biased variance
    np.testing.assert_array_equal(layer(x)[1:2, 2:3], layer(x[1:2, 2:3]))  # whatever else is in the batch
    whole = block()
    assert sum(isinstance(part, nn.LayerNorm) for part in whole.modules()) == 2
    wl.check_grads(lambda x: (layer(x) ** 3).sum(), (x[:1, :3],))
    wl.check_grads(lambda x: (whole(x) ** 2).sum(), (x[:1, :3],))


@pytest.mark.book("10.56", name="wl.nn.TransformerBlock")
@pytest.mark.parametrize("n", [1, 2, 7, 33])
@pytest.mark.parametrize("settings", [{}, {"norm_first": False}, {"parallel": True}])
def test_tokens_and_features_stay_as_many(n, settings):
    assert block(**settings)(numbers(2, n, 12)).shape == (2, n, 12)
