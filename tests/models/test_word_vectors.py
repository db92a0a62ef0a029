"""Word vectors from a toy language in which words of a kind are interchangeable."""

from __future__ import annotations

import numpy as np
import pytest

import wonderland as wl
from wonderland import nn
from wonderland.errors import InputError, ModuleError, ShapeError
from wonderland.models import CBOW, SkipGram

KINDS = [["cat", "dog", "cow"], ["runs", "sleeps", "eats"], ["red", "big", "old"], ["now", "here", "often"]]


def sentences(n=100, seed=0):
    """the <adjective> <animal> <verb> <adverb>, three times"""
    rng = np.random.default_rng(seed)
    return [["the" if k is None else str(rng.choice(KINDS[k])) for k in (None, 2, 0, 1, 3) * 3] for _ in range(n)]


VOCABULARY = wl.data.Vocabulary.build(sentences())


def share_of_own_kind(model):
    hits = []
    for kind in KINDS:
        for word in kind:
            hits += [other in kind for other, _ in model.nearest(word, k=2)]
    return np.mean(hits)


@pytest.mark.book("A4-18", "A4-17", name="wl.models.CBOW")
@pytest.mark.parametrize("head", ["softmax", "hierarchical", "sampled"])
def test_words_of_similar_contexts_get_similar_vectors(head):
    heads = {
        "softmax": lambda: None,
        "hierarchical": lambda: nn.HierarchicalSoftmax(8, len(VOCABULARY), key=wl.random.key(5)),
        "sampled": lambda: nn.SampledSoftmax(8, len(VOCABULARY), 5, key=wl.random.key(5)),
    }
    model = CBOW(VOCABULARY, 8, window=1, head=heads[head](), key=wl.random.key(0))
    losses = []
    model.fit(
        sentences(), epochs=12, batch_size=100, lr=0.03, callback=lambda e, v: losses.append(v), key=wl.random.key(1)
    )
    assert losses[-1] < 0.8 * losses[0]
    assert share_of_own_kind(model) > 0.8
    assert model(wl.tensor([[0, 1], [2, 3]])).shape == (2, len(VOCABULARY))


@pytest.mark.book("A4-17", "A4-27", name="wl.models.SkipGram")
def test_skip_grams():
    model = SkipGram(VOCABULARY, 8, window=1, key=wl.random.key(0))
    model.fit(sentences(), epochs=15, batch_size=200, lr=0.03, key=wl.random.key(1))
    assert share_of_own_kind(model) > 0.8
    counts = np.bincount(VOCABULARY.encode([w for s in sentences() for w in s]))
    np.testing.assert_allclose(wl.exp(model.head.log_q), counts**0.75 / (counts**0.75).sum(), rtol=1e-5)


@pytest.mark.book("A4-18", name="wl.models.CBOW")
def test_the_order_of_the_context_does_not_matter_and_only_its_rows_get_gradients():
    model = CBOW(20, 4, window=2, key=wl.random.key(0))
    contexts, centers = wl.tensor([[3, 7, 7, 9]]), wl.tensor([5])
    np.testing.assert_allclose(model(contexts), model(contexts[:, wl.tensor([2, 3, 0, 1])]), rtol=1e-5)
    table = model.vectors().numpy()
    z = table[3] + 2 * table[7] + table[9]
    np.testing.assert_allclose(
        model(contexts)[0], z @ model.head.weight.numpy() + model.head.bias.numpy(), rtol=1e-4, atol=1e-5
    )
    gradient = wl.grad(lambda m: m.loss(contexts, centers))(model)["embedding.weight"].numpy()
    assert np.flatnonzero(np.abs(gradient).sum(1)).tolist() == [3, 7, 9]
    np.testing.assert_allclose(gradient[7], 2 * gradient[3], rtol=1e-5)
    compiled = wl.jit(lambda m, a, b: m.loss(a, b))(model, contexts, centers)
    np.testing.assert_allclose(compiled, model.loss(contexts, centers), rtol=1e-5)


def test_analogies_and_export():
    words = wl.data.Vocabulary(["man", "woman", "king", "queen", "apple"])
    model = CBOW(words, 3, key=wl.random.key(0))
    model.embedding.weight = wl.tensor([[1.0, 0, 0.1], [0, 1.0, 0.1], [1, 0, 1.0], [0, 1, 1.0], [-1, -1, 0.5]])
    assert model.analogy("man", "woman", "king")[0][0] == "queen"
    assert model.nearest("king", k=1)[0][0] in ("man", "queen")
    layer = model.export()
    assert not layer.weight.trainable
    assert model.export(freeze=False).weight.trainable
    np.testing.assert_array_equal(layer(wl.tensor(2)), model.vectors()[2])
    assert [n for n, _ in CBOW(5, 3, key=wl.random.key(0)).nearest(1, k=4)].count(1) == 0


def test_bad_input():
    model = CBOW(VOCABULARY, 4, window=2)
    with pytest.raises(ShapeError, match="contexts of shape"):
        model(wl.tensor([1, 2]))
    with pytest.raises(InputError, match="'unicorn' is not in the vocabulary"):
        model.nearest("unicorn")
    with pytest.raises(ModuleError, match="by number only"):
        CBOW(10, 4).nearest("cat")
    with pytest.raises(InputError, match="the word 10 of 10"):
        CBOW(10, 4).nearest(10)
    with pytest.raises(InputError, match="size=0"):
        CBOW(10, 0)
