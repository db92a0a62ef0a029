"""Losses with a margin, of vectors, and of masks."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import special
from scipy.spatial import distance

import wonderland as wl
from wonderland import nn
from wonderland.errors import DTypeError, IndexOutOfRange, InputError, ShapeError

F = nn.functional
rng = np.random.default_rng(2)
SCORES = rng.normal(size=12)
SIGNS = np.where(rng.random(12) < 0.5, -1.0, 1.0)


@pytest.mark.book("3.17", "B3-10", name="wl.nn.functional.margin")
def test_margin_is_positive_where_the_sign_is_right():
    m = F.margin(SCORES, SIGNS).numpy()
    assert ((m > 0) == (np.sign(SCORES) == SIGNS)).all()
    wrong = F.zero_one_loss(SCORES, SIGNS, reduction="none").numpy()
    assert ((m > 0) == (wrong == 0)).all()


@pytest.mark.book("3.18", "A3-06", "B3-11", name=("wl.nn.functional.hinge_loss", "wl.nn.HingeLoss"))
def test_hinge_loss():
    one = wl.tensor(1.0)
    for score, loss, slope in ((2.0, 0.0, 0.0), (0.5, 0.5, -1.0), (-1.0, 2.0, -1.0), (1.0, 0.0, 0.0)):
        found = wl.value_and_grad(lambda x: F.hinge_loss(x, one))(wl.tensor(score))
        assert [v.item() for v in found] == [loss, slope]
    gap = np.maximum(0, 1 - SIGNS * SCORES)
    np.testing.assert_allclose(F.hinge_loss(SCORES, SIGNS, reduction="none"), gap, rtol=1e-12)
    np.testing.assert_allclose(nn.SquaredHingeLoss()(SCORES, SIGNS), (gap**2).mean(), rtol=1e-12)
    slope = wl.grad(lambda x: F.hinge_loss(x, SIGNS, reduction="sum"))(wl.asarray(SCORES))
    np.testing.assert_array_equal(slope, np.where(gap > 0, -SIGNS, 0.0))
    wl.check_grads(lambda x: F.squared_hinge_loss(x, SIGNS), (wl.asarray(SCORES),))


LABELLED = [F.margin, F.hinge_loss, F.squared_hinge_loss, F.soft_margin_loss, F.hinge_embedding_loss]


@pytest.mark.book("3.18", name="wl.nn.functional.hinge_loss")
@pytest.mark.parametrize("loss", LABELLED)
def test_labels_are_minus_one_and_one(loss):
    for bad in ([0.0, 1.0], [1.0, 2.0], [np.nan, 1.0]):
        with pytest.raises(InputError, match="labels -1 and 1"):
            loss(wl.tensor([0.5, 0.5]), wl.tensor(bad))
    with pytest.raises(ShapeError, match="differ"):
        loss(wl.ones((2, 1)), wl.ones(2))


def test_soft_margin_is_binary_cross_entropy():
    np.testing.assert_allclose(
        F.soft_margin_loss(SCORES, SIGNS), F.binary_cross_entropy_with_logits(SCORES, (SIGNS + 1) / 2), rtol=1e-12
    )


def test_margins_of_classes_that_do_not_fit():
    with pytest.raises(IndexOutOfRange):
        F.multi_margin_loss(wl.ones((2, 3)), wl.tensor([0, 3]))
    with pytest.raises(InputError, match="p=3"):
        F.multi_margin_loss(wl.ones((2, 3)), wl.tensor([0, 1]), p=3)
    with pytest.raises(InputError, match="a class is 5"):
        F.multilabel_margin_loss(wl.ones((1, 3)), wl.tensor([[5, -1, -1]]))
    with pytest.raises(DTypeError):
        F.multilabel_margin_loss(wl.ones((1, 3)), wl.ones((1, 3)))
    with pytest.raises(ShapeError):
        F.margin_ranking_loss(wl.ones(3), wl.ones((3, 1)), wl.ones(3))
    with pytest.raises(ShapeError):
        F.margin_ranking_loss(wl.ones(3), wl.ones(3), wl.ones(1))


def test_contrastive_loss():
    a, b = rng.normal(size=(6, 3)), rng.normal(size=(6, 3))
    y = np.array([1.0, 0, 1, 0, 1, 0])
    d = np.linalg.norm(a - b, axis=-1)
    expected = y * d**2 + (1 - y) * np.maximum(0, 2.5 - d) ** 2
    np.testing.assert_allclose(F.contrastive_loss(a, b, y, 2.5, "none"), expected, rtol=1e-12)
    np.testing.assert_allclose(nn.ContrastiveLoss(2.5)(a, b, y), expected.mean(), rtol=1e-12)
    wl.check_grads(lambda a, b: F.contrastive_loss(a, b, y, 2.5), (wl.asarray(a), wl.asarray(b)))
    same = wl.grad(lambda a: F.contrastive_loss(a, a * 1.0, wl.zeros(6)))(wl.asarray(a))
    assert np.isfinite(same.numpy()).all()
    with pytest.raises(InputError, match="labels 1"):
        F.contrastive_loss(a, b, 2 * y)
    with pytest.raises(ShapeError, match="labels of shape"):
        F.contrastive_loss(a, b, y[:, None])


def test_info_nce_loss():
    q, k, wrong = rng.normal(size=(5, 3)), rng.normal(size=(5, 3)), rng.normal(size=(5, 7, 3))
    cosine = 1 - distance.cdist(q, k, "cosine")
    expected = -special.log_softmax(cosine / 0.2, axis=-1).diagonal()
    np.testing.assert_allclose(F.info_nce_loss(q, k, temperature=0.2, reduction="none"), expected, rtol=1e-10)
    right = cosine.diagonal()[:, None]
    each = np.stack([1 - distance.cdist(q[i : i + 1], wrong[i], "cosine")[0] for i in range(5)])
    expected = -special.log_softmax(np.concatenate([right, each], -1) / 0.1, axis=-1)[:, 0]
    np.testing.assert_allclose(nn.InfoNCELoss()(q, k, wrong), expected.mean(), rtol=1e-10)
    shared = 1 - distance.cdist(q, wrong[0], "cosine")
    expected = -special.log_softmax(np.concatenate([right, shared], -1) / 0.1, axis=-1)[:, 0]
    np.testing.assert_allclose(F.info_nce_loss(q, k, wrong[0]), expected.mean(), rtol=1e-10)
    with pytest.raises(ShapeError):
        F.info_nce_loss(q, k[:4])
    with pytest.raises(ShapeError):
        F.info_nce_loss(q, k, wrong[:4])
    with pytest.raises(InputError, match="temperature=0"):
        F.info_nce_loss(q, k, temperature=0.0)


def test_triplets_with_a_distance_of_ones_own():
    a, b, c = (wl.asarray(v) for v in rng.normal(size=(3, 5, 2)))
    module = nn.TripletMarginWithDistanceLoss(lambda x, y: wl.sum(wl.abs(x - y), axis=-1), margin=0.5)
    near, far = (np.abs(a.numpy() - v.numpy()).sum(-1) for v in (b, c))
    np.testing.assert_allclose(module(a, b, c), np.maximum(0, near - far + 0.5).mean(), rtol=1e-12)
    np.testing.assert_allclose(wl.jit(module)(a, b, c), module(a, b, c), rtol=1e-12)


def test_triplets_and_cosines_that_do_not_fit():
    a = wl.ones((4, 3))
    with pytest.raises(ShapeError):
        F.triplet_margin_loss(a, a, wl.ones((1, 3)))
    with pytest.raises(InputError, match="margin=0"):
        F.triplet_margin_loss(a, a, a, margin=0.0)
    with pytest.raises(ShapeError, match="no vectors"):
        F.triplet_margin_loss(wl.tensor(1.0), wl.tensor(1.0), wl.tensor(1.0))
    with pytest.raises(InputError, match="margin=2"):
        F.cosine_embedding_loss(a, a, wl.ones(4), margin=2.0)


def test_dice_loss():
    p, y = rng.random((2, 4, 4, 3)), (rng.random((2, 4, 4, 3)) < 0.4).astype(float)
    both, either = (p * y).sum((1, 2, 3)), p.sum((1, 2, 3)) + y.sum((1, 2, 3))
    np.testing.assert_allclose(F.dice_loss(p, y, reduction="none"), 1 - (2 * both + 1) / (either + 1), rtol=1e-12)
    both, either = (p * y).sum((1, 2)), p.sum((1, 2)) + y.sum((1, 2))
    per_class = 1 - (2 * both + 0.5) / (either + 0.5)
    np.testing.assert_allclose(nn.DiceLoss(0.5, axis=(1, 2))(p, y), per_class.mean(), rtol=1e-12)
    assert F.dice_loss(y, y).item() == 0.0
    assert F.dice_loss(wl.zeros((1, 3)), wl.zeros((1, 3))).item() == 0.0
    wl.check_grads(lambda p: F.dice_loss(p, y), (wl.asarray(p),))
    with pytest.raises(InputError, match="a probability is"):
        F.dice_loss(p - 1, y)
