"""Vectors of tokens that are near each other."""

from __future__ import annotations

import numpy as np
import pytest

import wonderland as wl


@pytest.mark.book("8-43", name=("wl.models.nearest_neighbors", "wl.nn.Embedding"))
def test_neighbours_of_a_word_mean_the_like():
    groups = [["cat", "dog", "horse"], ["red", "green", "blue"], ["one", "two", "three"]]
    tokenizer = wl.text.WordTokenizer.train(" ".join(word for group in groups for word in group))
    rng = np.random.default_rng(0)
    table = np.empty((tokenizer.vocab_size, 4))
    for group, center in zip(groups, rng.normal(size=(3, 4)) * 5, strict=True):
        for word in group:
            table[tokenizer.token_to_id(word)] = center + 0.1 * rng.normal(size=4)
    layer = wl.nn.Embedding.from_pretrained(table)
    for group in groups:
        for word in group:
            number = tokenizer.token_to_id(word)
            _, found = wl.models.nearest_neighbors(layer.weight, number, k=2, metric="euclidean")
            assert {tokenizer.id_to_token(other) for other in found.tolist()} == {*group} - {word}
            nearest, itself = wl.models.nearest_neighbors(
                layer.weight, number, k=1, metric="euclidean", exclude_self=False
            )
            assert itself.tolist() == [number]
            assert abs(float(nearest[0])) < 1e-6
