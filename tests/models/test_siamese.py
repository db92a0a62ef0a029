"""Siamese networks: shared encoders, three losses, and new classes from one example."""

from __future__ import annotations

import numpy as np
import pytest

import wonderland as wl
from wonderland import nn
from wonderland.errors import InputError, ShapeError
from wonderland.models import Siamese, n_way_accuracy, one_shot_predict


def classes(n=16, per=12, seed=0):
    """Classes differ in 4 of 20 numbers; in the others there is more noise than that."""
    rng = np.random.default_rng(seed)
    y = np.repeat(np.arange(n), per)
    X = np.concatenate([1.5 * rng.normal(size=(n, 4))[y], np.zeros((n * per, 16))], axis=1)
    X[:, 4:] += 1.5 * rng.normal(size=(n * per, 16))
    X[:, :4] += 0.1 * rng.normal(size=(n * per, 4))
    return X.astype(np.float32), y


@pytest.mark.book("A8-17", name="wl.models.Siamese")
def test_both_sides_share_one_encoder():
    encoder = nn.Linear(3, 2, bias=False, dtype=wl.float64, key=wl.random.key(0))
    model = Siamese(encoder)
    a, b = wl.random.normal((2, 4, 3), key=wl.random.key(1), dtype=wl.float64)
    assert [path for path, _ in model.named_parameters()] == ["encoder.weight"]
    both = wl.grad(lambda m: m(a, b).sum())(model)["encoder.weight"]
    one = lambda w, v: wl.cosine_similarity(a @ w, b @ v).sum()
    w = encoder.weight.value
    parts = wl.grad(one, (0, 1))(w, w)
    np.testing.assert_allclose(both, parts[0] + parts[1], rtol=1e-9)
    np.testing.assert_allclose(model(a, b), model(b, a), rtol=1e-12)
    np.testing.assert_allclose(model(a, a), 1.0, rtol=1e-9)


@pytest.mark.book("A8-17", name="wl.nn.functional.info_nce_loss")
@pytest.mark.parametrize("batch", [2, 7])
def test_info_nce_of_equal_logits_is_the_logarithm_of_the_batch(batch):
    same = wl.ones((batch, 3), dtype=wl.float64)
    np.testing.assert_allclose(nn.functional.info_nce_loss(same, same), np.log(batch), rtol=1e-12)


@pytest.mark.book("A8-17", "A8-18", name=("wl.models.Siamese", "wl.models.n_way_accuracy"))
@pytest.mark.parametrize("loss", ["contrastive", "triplet", "info_nce"])
def test_new_classes_are_told_apart_from_one_example_each(loss):
    X, y = classes()
    old = y < 10
    model = Siamese(nn.Linear(20, 4, key=wl.random.key(0)), loss, margin=2.0)
    negatives = 4 if loss == "info_nce" else 1
    settings = {"n_way": 5, "episodes": 20, "key": wl.random.key(2)}
    before = n_way_accuracy(model, X[~old], y[~old], **settings)
    model.fit(X[old], y[old], negatives=negatives, epochs=15, lr=0.02, key=wl.random.key(1))
    after = n_way_accuracy(model, X[~old], y[~old], **settings)
    assert model.history[-1] < model.history[0]
    assert after > max(before + 0.1, 0.6) > 1 / 5


def test_pairs_alone_are_enough():
    X, _ = classes(40, 2)
    model = Siamese(nn.Linear(20, 4, key=wl.random.key(0)))
    model.fit_pairs(X[::2], X[1::2], epochs=60, batch_size=40, lr=0.02)
    new, labels = classes(8, 6, seed=5)
    assert n_way_accuracy(model, new, labels, n_way=4, queries=4, key=wl.random.key(0)) > 0.6


@pytest.mark.book("A8-18", name="wl.models.one_shot_predict")
@pytest.mark.parametrize("metric", ["cosine", "euclidean"])
def test_the_nearest_example_decides(metric):
    support, labels = np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0]]), np.array([5, 7, 5])
    query = np.array([[0.9, 0.1], [0.1, 0.8], [-0.8, 0.1]])
    assert one_shot_predict(lambda x: x, support, labels, query, metric).tolist() == [5, 7, 5]
    identity = Siamese(nn.Linear.from_matrix(np.eye(2)))
    predict = wl.jit(lambda m, q: one_shot_predict(m, wl.asarray(support), labels, q, metric))
    assert predict(identity, wl.asarray(query)).tolist() == [5, 7, 5]


def test_bad_input():
    X, y = classes(3, 4)
    with pytest.raises(InputError, match="loss='quadruplet'"):
        Siamese(nn.Linear(2, 2), "quadruplet")
    with pytest.raises(InputError, match="margin=0"):
        Siamese(nn.Linear(2, 2), margin=0)
    with pytest.raises(InputError, match="1 classes"):
        Siamese(nn.Linear(20, 2)).fit(X, np.zeros(12, int))
    with pytest.raises(InputError, match="the largest with 1"):
        Siamese(nn.Linear(20, 2)).fit(X, np.arange(12))
    with pytest.raises(ShapeError, match="labels of shape"):
        Siamese(nn.Linear(20, 2)).fit(X, y[:5])
    with pytest.raises(ShapeError, match="support of shape"):
        one_shot_predict(lambda x: x, X[:, :3], y, X)
    with pytest.raises(InputError, match="3 classes have"):
        n_way_accuracy(lambda x: x, X, y, n_way=4, queries=2)
