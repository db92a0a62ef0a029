"""Trained tokens beside those of the data, and one vector for a sequence."""

from __future__ import annotations

import math

import numpy as np
import pytest

import wonderland as wl
from tests.agreement import close_array
from wonderland import nn
from wonderland.errors import InputError, ShapeError


def numbers(*shape, seed=0):
    return wl.asarray(np.random.default_rng(seed).normal(size=shape))


@pytest.mark.book("10.58", name="wl.nn.AppendTokens")
@pytest.mark.parametrize("prepend", [False, True])
def test_class_token(prepend):
    layer, x = nn.AppendTokens(1, 6, prepend, dtype=wl.float64), numbers(5, 4, 6)
    h = layer(x)
    assert h.shape == (5, 5, 6)  # n + 1
    np.testing.assert_array_equal(h[:, 0 if prepend else -1], np.broadcast_to(layer.weight.detach(), (5, 6)))
    np.testing.assert_array_equal(layer.strip(h), x)
    np.testing.assert_array_equal(layer.own(h)[:, 0], h[:, 0 if prepend else -1])
    # the gradient of the one token is the sum of what each example says
    block = nn.TransformerBlock(6, 2, dtype=wl.float64)
    loss = lambda layer, x: (layer.own(block(layer(x))) ** 3).sum()
    whole = wl.grad(loss)(layer, x)["weight"]
    each = [wl.grad(loss)(layer, x[i : i + 1])["weight"] for i in range(5)]
    close_array(whole, sum(each[1:], each[0]), 1000)


@pytest.mark.book("10.59", name="wl.nn.AppendTokens")
def test_registers_are_thrown_away():
    x = numbers(2, 4, 6)
    block = nn.TransformerBlock(6, 2, dtype=wl.float64)
    results = {}
    for count in (0, 3):
        layer = nn.AppendTokens(count, 6, std=1.0, dtype=wl.float64)
        results[count] = layer.strip(block(layer(x)))
        assert results[count].shape == x.shape
    close_array(results[0], block(x))
    assert not np.allclose(results[3], results[0])  # they are seen by the others


@pytest.mark.book("10.60", name=("wl.nn.AppendTokens", "wl.nn.check_equivariance"))
@pytest.mark.parametrize("prepend", [False, True])
def test_further_tokens_leave_the_others_a_set(prepend):
    layer = nn.AppendTokens(2, 6, prepend, dtype=wl.float64)
    block = nn.TransformerBlock(6, 2, dtype=wl.float64)
    order = np.random.default_rng(0).permutation(7)
    permuted = lambda a: wl.asarray(a)[order]
    assert nn.check_equivariance(lambda x: layer.strip(block(layer(x))), numbers(7, 6), permuted).interior < 1e-12
    assert nn.check_invariance(lambda x: layer.own(block(layer(x))), numbers(7, 6), permuted) < 1e-12


def test_masks_of_longer_sequences():
    real = wl.tensor([[True, False], [True, True]])
    assert nn.AppendTokens(1, 3).mask(real).tolist() == [[True, False, True], [True, True, True]]
    assert nn.AppendTokens(1, 3, prepend=True).mask(real).tolist() == [[True, True, False], [True, True, True]]
    assert nn.AppendTokens(1, 3).mask(None) is None
    with pytest.raises(ShapeError, match=r"AppendTokens\(1, 3\)"):
        nn.AppendTokens(1, 3)(wl.ones((2, 4)))


@pytest.mark.book("A5-51", "10.57", name="wl.nn.TokenPool")
@pytest.mark.parametrize("kind", ["mean", "sum", "max", "attention"])
def test_pooling_of_padded_sequences_is_that_of_the_sequences(kind):
    pool = nn.TokenPool(kind, 6, dtype=wl.float64)
    if pool.query is not None:
        pool.query = numbers(6, seed=3)
    x = numbers(3, 5, 6)
    expected = {"mean": np.mean, "sum": np.sum, "max": np.max}
    if kind in expected:
        np.testing.assert_allclose(pool(x), expected[kind](np.asarray(x), axis=1), atol=1e-12)
    else:
        scores = np.asarray(x) @ np.asarray(pool.query.detach()) / math.sqrt(6)
        weights = np.exp(scores) / np.exp(scores).sum(-1, keepdims=True)
        np.testing.assert_allclose(pool(x), np.einsum("bn,bne->be", weights, x), atol=1e-12)
    mask = np.arange(5) < np.array([[5], [2], [0]])
    padded = wl.asarray(np.where(mask[..., None], x, np.nan))
    for given in ({"lengths": [5, 2, 0]}, {"token_mask": mask}):
        y = pool(padded, **given)
        close_array(y[0], pool(x[:1])[0])
        close_array(y[1], pool(x[1:2, :2])[0])
        np.testing.assert_array_equal(y[2], np.zeros(6))  # nothing to pool
    grad = np.asarray(wl.grad(lambda x: (pool(x, lengths=[5, 2, 0]) ** 2).sum())(padded))
    assert np.isfinite(grad).all()
    assert not grad[~mask].any()
    assert nn.check_invariance(pool, x[0], lambda a: wl.flip(wl.asarray(a), axis=0)) < 1e-12


def test_poolings_that_there_are_not():
    with pytest.raises(InputError, match="'mean', 'sum', 'max', 'attention'"):
        nn.TokenPool("median")
    with pytest.raises(InputError, match="how many features"):
        nn.TokenPool("attention")
