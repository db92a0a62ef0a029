"""Windows, pairs and bags."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

import wonderland as wl
from wonderland.errors import DTypeError, IndexOutOfRange, InputError
from wonderland.models import bag_of_words, context_windows, skip_gram_pairs, word_counts

SENTENCES = [[3, 1, 4, 1, 5, 9], [2, 6], [5, 3, 5]]


@pytest.mark.book("A4-18", name="wl.models.context_windows")
def test_windows_are_whole():
    contexts, centers = context_windows([[10, 11, 12, 13, 14]], 2)
    assert (contexts.tolist(), centers.tolist()) == ([[10, 11, 13, 14]], [12])  # one example of five words
    contexts, centers = context_windows(SENTENCES, 1)
    expected = [([s[i - 1], s[i + 1]], s[i]) for s in SENTENCES for i in range(1, len(s) - 1)]
    assert list(zip(contexts.tolist(), centers.tolist(), strict=True)) == expected


def test_pairs_are_all_neighbours():
    centers, contexts = skip_gram_pairs(SENTENCES, 2)
    expected = [(s[i], s[j]) for s in SENTENCES for i in range(len(s)) for j in range(len(s)) if 0 < abs(i - j) <= 2]
    assert Counter(zip(centers.tolist(), contexts.tolist(), strict=True)) == Counter(expected)


@pytest.mark.book("A4-19", name="wl.models.bag_of_words")
def test_a_bag_is_the_sum_of_one_hot_vectors():
    words = wl.data.Vocabulary(["a", "This", "is", "test"])
    assert bag_of_words(words.encode(["This", "is"]), 4).tolist() == [0.0, 1.0, 1.0, 0.0]
    ids = np.array([[[0, 2, 2], [1, 3, 0]]])
    expected = np.eye(4)[ids].sum(axis=-2)
    np.testing.assert_array_equal(bag_of_words(ids, 4), expected)
    np.testing.assert_array_equal(wl.jit(lambda i: bag_of_words(i, 4))(wl.asarray(ids)), expected)
    np.testing.assert_array_equal(wl.one_hot(wl.asarray(ids), 4).sum(axis=-2), expected)
    assert bag_of_words(np.zeros((2, 0), int), 3).tolist() == [[0.0] * 3] * 2
    assert word_counts(SENTENCES, 10).tolist() == [0, 2, 1, 2, 1, 3, 1, 0, 0, 1]


def test_bad_input():
    with pytest.raises(InputError, match="no sentence has 13 words"):
        context_windows(SENTENCES, 6)
    with pytest.raises(InputError, match="no sentence has two words"):
        skip_gram_pairs([[1]], 2)
    with pytest.raises(InputError, match="window=0"):
        context_windows(SENTENCES, 0)
    with pytest.raises(InputError, match="a sentence is"):
        context_windows([["a", "b", "c"]], 1)
    with pytest.raises(InputError, match="the word -1"):
        word_counts([[-1]], 3)
    with pytest.raises(InputError, match="the word 9 of 5"):
        word_counts(SENTENCES, 5)
    with pytest.raises(DTypeError, match="words of float"):
        bag_of_words([0.5], 3)
    with pytest.raises(IndexOutOfRange):
        bag_of_words([3], 3)
