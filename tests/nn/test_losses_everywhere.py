"""What holds for every loss: one meaning compiled, batched and in both precisions, right slopes, no broadcasting."""

from __future__ import annotations

import inspect

import numpy as np
import pytest
from scipy import special

import wonderland as wl
from wonderland.errors import InputError, ShapeError

F = wl.nn.functional
rng = np.random.default_rng(5)
X, Y = rng.normal(size=(2, 4, 3))
P = special.softmax(X, axis=-1)
SIGNS = np.where(rng.random((4, 3)) < 0.5, -1.0, 1.0)
HITS = (SIGNS + 1) / 2
CLASSES = np.array([0, 2, 1, 1])
EACH = np.array([1.0, -1.0, 1.0, -1.0])

LOSSES = [
    (F.cross_entropy, (X, CLASSES)),
    (F.cross_entropy, (X, P)),
    (F.cross_entropy_with_probs, (P, CLASSES)),
    (F.nll_loss, (np.log(P), CLASSES)),
    (F.focal_loss, (X, CLASSES)),
    (F.binary_cross_entropy, (P, HITS)),
    (F.binary_cross_entropy_with_logits, (X, HITS)),
    (F.sigmoid_focal_loss, (X, HITS)),
    (F.mse_loss, (X, Y)),
    (F.l1_loss, (X, Y)),
    (F.huber_loss, (X, Y)),
    (F.smooth_l1_loss, (X, Y)),
    (F.log_cosh_loss, (X, Y)),
    (F.quantile_loss, (X, Y)),
    (F.gaussian_nll_loss, (X, Y, P)),
    (F.laplace_nll_loss, (X, Y, P)),
    (F.heteroscedastic_nll_loss, (X[:, :2], Y[:, 0])),
    (F.poisson_nll_loss, (X, HITS)),
    (F.kl_div, (np.log(P), P[::-1])),
    (F.hinge_loss, (X, SIGNS)),
    (F.squared_hinge_loss, (X, SIGNS)),
    (F.soft_margin_loss, (X, SIGNS)),
    (F.hinge_embedding_loss, (X, SIGNS)),
    (F.margin_ranking_loss, (X, Y, SIGNS)),
    (F.multi_margin_loss, (X, CLASSES)),
    (F.multilabel_margin_loss, (X, np.array([[0, 2, -1]] * 4))),
    (F.multilabel_soft_margin_loss, (X, HITS)),
    (F.cosine_embedding_loss, (X, Y, EACH)),
    (F.contrastive_loss, (X, Y, (EACH + 1) / 2)),
    (F.triplet_margin_loss, (X, Y, SIGNS)),
    (F.triplet_margin_with_distance_loss, (X, Y, SIGNS)),
    (F.info_nce_loss, (X, Y)),
    (F.dice_loss, (P, HITS)),
]
IDS = [loss.__name__ for loss, _ in LOSSES]


def tensors(args, dtype=np.float64):
    return [wl.asarray(a.astype(dtype) if a.dtype.kind == "f" else a) for a in args]


@pytest.mark.book("3.14", "B3-08", "C-07", name="wl.nn.functional.mse_loss")
@pytest.mark.parametrize("loss, args", LOSSES, ids=IDS)
def test_one_meaning_everywhere(loss, args):
    args = tensors(args)
    value = loss(*args)
    assert value.shape == ()
    each = loss(*args, reduction="none")
    np.testing.assert_allclose(value, np.mean(each), rtol=1e-12)
    np.testing.assert_allclose(loss(*args, reduction="sum"), np.sum(each), rtol=1e-12)
    x, rest = args[0], args[1:]
    both = wl.value_and_grad(lambda x: loss(x, *rest))
    slope = both(x)[1]
    compiled = wl.jit(lambda x, *rest: wl.value_and_grad(lambda x: loss(x, *rest))(x))(x, *rest)
    np.testing.assert_allclose(compiled[0], value, rtol=1e-10)
    np.testing.assert_allclose(compiled[1], slope, rtol=1e-9, atol=1e-12)
    if loss not in (F.cross_entropy_with_probs, F.info_nce_loss):  # a step would leave the simplex
        wl.check_grads(lambda x: loss(x, *rest), (x,))
    narrow = loss(*tensors([np.asarray(a) for a in args], np.float32))
    assert narrow.dtype == wl.float32
    np.testing.assert_allclose(narrow, value, rtol=1e-4, atol=1e-5)
    stacked = [wl.stack([a, a[::-1]]) for a in args]
    np.testing.assert_allclose(wl.vmap(loss)(*stacked), [value, loss(*(a[::-1] for a in args))], rtol=1e-10)


@pytest.mark.parametrize("loss, args", LOSSES, ids=IDS)
def test_nothing_is_broadcast(loss, args):
    args = tensors(args)
    with pytest.raises(ShapeError):
        loss(args[0], *(a[:1] for a in args[1:]))
    with pytest.raises(ShapeError):
        loss(args[0][:1], *args[1:])
    with pytest.raises(InputError, match="reduction='median'"):
        loss(*args, reduction="median")


def test_every_loss_is_here():
    found = {name for name in F.losses.__all__ if name.endswith(("_loss", "cross_entropy", "kl_div"))}
    # zero_one_loss has no slope; ctc_loss takes lengths, see test_losses_alignment.py
    assert found - {loss.__name__ for loss, _ in LOSSES} == {"zero_one_loss", "ctc_loss"}
    for name in found:
        assert "reduction" in inspect.signature(getattr(F, name)).parameters
