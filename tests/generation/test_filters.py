"""Filters of logits against NumPy, one setting at a time."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import wonderland as wl
from wonderland.errors import InputError, ShapeError

RNG = np.random.default_rng(0)
LOGITS = RNG.normal(size=(5, 7)) * 2


def softmax(z):
    e = np.exp(z - z.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def kept(filtered):
    return np.isfinite(np.asarray(filtered))


@pytest.mark.book("8-78", name="wl.generation.temperature")
def test_temperature():
    for tau in (0.3, 1.0, 2.0):
        np.testing.assert_allclose(
            wl.softmax(wl.generation.temperature(LOGITS, tau)).numpy(), softmax(LOGITS / tau), rtol=1e-6
        )
    hot = wl.softmax(wl.generation.temperature(LOGITS, 1e6)).numpy()
    np.testing.assert_allclose(hot, 1 / 7, rtol=1e-4)
    one_hot = np.eye(7)[LOGITS.argmax(-1)]
    for tau in (0.0, 1e-8, 1e-300):  # no overflow
        cold = wl.softmax(wl.generation.temperature(LOGITS, tau)).numpy()
        np.testing.assert_array_equal(cold, one_hot)
    tied = wl.softmax(wl.generation.temperature(np.array([1.0, 3.0, 3.0]), 0)).numpy()
    np.testing.assert_array_equal(tied, [0, 1, 0])
    for bad in (-1.0, float("nan"), float("inf")):
        with pytest.raises(InputError, match="tau="):
            wl.generation.temperature(LOGITS, bad)


def test_top_k_keeps_the_k_largest():
    for k in (1, 3, 6):
        result = wl.generation.top_k(LOGITS, k).numpy()
        largest = np.argsort(-LOGITS, axis=-1)[:, :k]
        mask = np.zeros(LOGITS.shape, bool)
        np.put_along_axis(mask, largest, True, axis=-1)
        np.testing.assert_array_equal(kept(result), mask)
        np.testing.assert_array_equal(result[mask], LOGITS[mask])
    np.testing.assert_array_equal(wl.generation.top_k(LOGITS, 7).numpy(), LOGITS)
    np.testing.assert_array_equal(wl.generation.top_k(LOGITS, 100).numpy(), LOGITS)
    with pytest.raises(InputError, match="k=0"):
        wl.generation.top_k(LOGITS, 0)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.floats(0, 1))
def test_top_p_keeps_the_smallest_set_that_reaches_p(seed, p):
    z = np.random.default_rng(seed).normal(size=6) * 3
    mask = kept(wl.generation.top_p(z, p))
    q = softmax(z)
    order = np.argsort(-q)
    assert mask[order].tolist() == sorted(mask[order].tolist(), reverse=True)  # the likeliest ones
    count = int(mask.sum())
    assert count >= 1
    assert p == 1 or q[order[:count]].sum() >= p - 1e-9
    assert count == 1 or q[order[: count - 1]].sum() < p + 1e-9


def test_top_p_of_one_keeps_all():
    z = np.array([0.0, -40.0, -60.0])  # sums that round to 1 before the end
    np.testing.assert_array_equal(wl.generation.top_p(z, 1.0).numpy(), z)
    with pytest.raises(InputError, match="not a probability"):
        wl.generation.top_p(z, 1.5)


def test_min_p_is_relative_to_the_likeliest():
    q = softmax(LOGITS)
    for p in (0.05, 0.3, 1.0):
        np.testing.assert_array_equal(kept(wl.generation.min_p(LOGITS, p)), q >= p * q.max(-1, keepdims=True) - 1e-12)
    np.testing.assert_array_equal(wl.generation.min_p(LOGITS, 0.0).numpy(), LOGITS)
    with pytest.raises(InputError, match="not a probability"):
        wl.generation.min_p(LOGITS, -0.1)


def test_repetition_penalty():
    seen = RNG.random(LOGITS.shape) < 0.5
    result = wl.generation.repetition_penalty(LOGITS, seen, 1.3).numpy()
    expected = np.where(seen, np.where(LOGITS > 0, LOGITS / 1.3, LOGITS * 1.3), LOGITS)
    np.testing.assert_allclose(result, expected, rtol=1e-12)
    assert (result[seen] < LOGITS[seen]).all()
    with pytest.raises(ShapeError, match="the same shape"):
        wl.generation.repetition_penalty(LOGITS, seen[:2], 1.3)
    with pytest.raises(InputError, match="penalty=0"):
        wl.generation.repetition_penalty(LOGITS, seen, 0)


def test_settings_in_their_order_eagerly_and_compiled():
    sampling = wl.generation.Sampling(1.2, 0.7, 5, 0.9, 0.05)
    seen = wl.asarray(RNG.random(LOGITS.shape) < 0.5)
    by_hand = wl.generation.temperature(wl.generation.repetition_penalty(LOGITS, seen, 1.2), 0.7)
    by_hand = wl.generation.min_p(wl.generation.top_p(wl.generation.top_k(by_hand, 5), 0.9), 0.05)
    np.testing.assert_array_equal(sampling(LOGITS, seen).numpy(), by_hand.numpy())
    compiled = wl.jit(lambda z, s: sampling(z, s))(wl.asarray(LOGITS), seen)
    np.testing.assert_allclose(compiled.numpy(), by_hand.numpy(), rtol=1e-12)
    np.testing.assert_array_equal(wl.generation.Sampling()(LOGITS).numpy(), LOGITS)
    for bad in ({"top_k": 0}, {"top_p": 2}, {"min_p": -1}, {"temperature": -1}, {"repetition_penalty": -1}):
        with pytest.raises(InputError):
            wl.generation.Sampling(**bad)
    with pytest.raises(ShapeError, match="vocabulary"):
        sampling(np.zeros((3, 0)))
