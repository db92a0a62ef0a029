"""Classes as numbers, as bits and as one-hot vectors."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.spatial.distance import cdist

import wonderland as wl
from wonderland import decisions, models
from wonderland.errors import IndexOutOfRange, InputError, ShapeError

rng = np.random.default_rng(0)


@pytest.mark.book("4.38", name="wl.one_hot")
def test_one_hot():
    y = wl.tensor([2, 0, 1])
    hot = wl.one_hot(y, 3)
    np.testing.assert_array_equal(hot, np.eye(3)[[2, 0, 1]])
    np.testing.assert_array_equal(hot.argmax(-1), y)
    with pytest.raises(IndexOutOfRange):
        wl.one_hot(wl.tensor([3]), 3)


@pytest.mark.book("4.39", "B4-20", name=("wl.one_hot", "wl.decisions.Codebook"))
def test_all_one_hot_words_are_equally_far_apart():
    words = decisions.Codebook.one_hot(5).words.numpy()
    np.testing.assert_array_equal(words, wl.one_hot(wl.arange(5), 5))
    distances = cdist(words, words)
    np.testing.assert_allclose(distances, 1.41421356 * (1 - np.eye(5)), atol=1e-8)
    dense = decisions.Codebook.binary(5).words.numpy()
    assert len(np.unique(cdist(dense, dense).round(6))) > 2, "a binary code prefers some neighbours"


@pytest.mark.book("A2-29", name="wl.decisions.Codebook")
def test_the_assignment_of_binary_words_matters():
    """Four groups along a line: with some codebooks both bits are linear in x, with others not."""
    x = np.repeat([0.0, 1.0, 2.0, 3.0], 3)[:, None] + 0.1 * rng.normal(size=(12, 1))
    y = np.repeat([0, 1, 2, 3], 3)
    separable = {}
    for order in itertools.permutations(range(4)):
        words = decisions.Codebook.binary(4, order).encode(y).numpy()
        separable[order] = sum(models.is_linearly_separable(x, words[:, bit].astype(int)) for bit in range(2))
    assert set(separable.values()) == {0, 1}, "one threshold on a line cannot make both bits"
    square = np.array([[0, 0], [0, 1], [1, 0], [1, 1]], float)
    both = {
        order: all(
            models.is_linearly_separable(square, decisions.Codebook.binary(4, order).words.numpy()[:, bit].astype(int))
            for bit in range(2)
        )
        for order in itertools.permutations(range(4))
    }
    assert set(both.values()) == {True, False}
    assert both[(0, 1, 2, 3)]
    for order in ((0, 1, 2, 3), (3, 1, 0, 2)):
        book = decisions.Codebook.binary(4, order)
        np.testing.assert_array_equal(book.decode(book.encode(y)), y)
        noisy = book.encode(y).numpy() + 0.3 * rng.uniform(-1, 1, size=(12, 2))
        np.testing.assert_array_equal(book.decode(noisy.reshape(3, 4, 2)), y.reshape(3, 4))


@pytest.mark.book("A2-30", name="wl.decisions.ambiguous")
def test_threshold_units_may_name_no_class_or_several():
    outputs = np.array([[1, 0, 0], [0, 0, 0], [1, 1, 0], [1, 1, 1], [0, 0, 0], [0, 0, 1]])
    assert decisions.ambiguous(outputs) == (2, 2)
    # three units trained one by one on three clusters leave gaps; a softmax does not
    X = rng.normal(size=(300, 2)) * 3
    units = wl.asarray(X) @ wl.asarray(rng.normal(size=(2, 3))) - 1.0
    none, several = decisions.ambiguous(units.numpy() >= 0)
    assert none + several > 0
    assert none + several == sum(row.sum() != 1 for row in units.numpy() >= 0)
    chosen = wl.one_hot(wl.softmax(units).argmax(-1), 3)
    assert decisions.ambiguous(chosen) == (0, 0)


@pytest.mark.book("4.36", name=("wl.round", "wl.clip"))
def test_regression_on_the_number_of_a_class():
    classes = lambda s, m: wl.clip(wl.round(s), 1, m)
    assert classes(wl.tensor([1.3, 3.7, -2.0, 9.0]), 5).tolist() == [1, 4, 1, 5]
    assert wl.round(wl.tensor([0.5, 1.5, 2.5])).tolist() == [0, 2, 2], "halves go to the even number"
    assert wl.grad(lambda s: wl.round(s).sum())(wl.tensor([1.3, 3.7])).tolist() == [0, 0], "nothing to train by"
    # a spurious order: exchanging the names of two classes makes the same data unlearnable by a line
    x = np.linspace(0, 1, 30)[:, None]
    y = np.repeat([1, 2, 3], 10)

    def accuracy(y):
        model = models.LinearRegression().fit(x, y)
        return np.mean(classes(model.predict(x), 3).numpy() == y)

    assert accuracy(y) > 0.8
    assert accuracy(np.array([0, 2, 1, 3])[y]) < 0.6


@pytest.mark.book("4.37", name="wl.decisions.bounded")
def test_bounded_outputs():
    s = np.r_[rng.normal(size=50) * 10, -1e4, 0.0, 1e4]
    out = decisions.bounded(wl.asarray(s), 1.0, 5.0).numpy()
    assert ((out >= 1) & (out <= 5)).all()
    assert (out[-3], out[-2], out[-1]) == (1.0, 3.0, 5.0)
    np.testing.assert_allclose(out, 1 + 4 / (1 + np.exp(-np.clip(s, -700, 700))), rtol=1e-12)
    assert np.all(np.diff(decisions.bounded(wl.asarray(np.sort(s)), -2, 3).numpy()) >= 0)
    wl.check_grads(lambda s: decisions.bounded(s, 1.0, 5.0), (wl.asarray(s[:4] / 10),))
    np.testing.assert_allclose(wl.jit(lambda s: decisions.bounded(s, 1.0, 5.0))(wl.asarray(s)), out, rtol=1e-12)


def test_bad_input():
    with pytest.raises(InputError, match="lo="):
        decisions.bounded(0.0, 2.0, 1.0)
    with pytest.raises(InputError, match="same word"):
        decisions.Codebook([[0, 1], [0, 1]])
    with pytest.raises(ShapeError):
        decisions.Codebook([0, 1])
    with pytest.raises(InputError, match="order"):
        decisions.Codebook.binary(3, [0, 0, 1])
    with pytest.raises(InputError, match="order"):
        decisions.Codebook.binary(3, [0, 1, 7])
    with pytest.raises(InputError, match="without a word"):
        decisions.Codebook.one_hot(3).encode([3])
    with pytest.raises(ShapeError):
        decisions.Codebook.one_hot(3).decode([[1.0, 0.0]])
    with pytest.raises(ShapeError):
        decisions.ambiguous(1.0)
