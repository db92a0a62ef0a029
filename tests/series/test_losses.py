"""Losses at every step."""

from __future__ import annotations

import numpy as np
import pytest

import wonderland as wl
from wonderland import series
from wonderland.errors import InputError, ShapeError

F = wl.nn.functional
rng = np.random.default_rng(0)
P, Y = rng.normal(size=(2, 3, 5, 2))


@pytest.mark.book("8-63", name="wl.series.sequence_loss")
def test_there_is_a_term_for_every_step():
    total = sum(np.sum((P[:, i] - Y[:, i]) ** 2) for i in range(5))
    assert float(series.sequence_loss(P, Y, reduction="sum")) == pytest.approx(total)
    assert float(series.sequence_loss(P, Y)) == pytest.approx(np.mean((P - Y) ** 2))
    assert series.sequence_loss(P, Y, reduction="none").shape == (3, 5, 2)
    # the gradient is the sum of those of the terms
    gradient = wl.grad(lambda p: series.sequence_loss(p, Y, reduction="sum"))(wl.asarray(P))
    terms = [wl.grad(lambda p, i=i: wl.sq_norm(p[:, i] - Y[:, i]))(wl.asarray(P)) for i in range(5)]
    np.testing.assert_allclose(np.asarray(gradient), sum(np.asarray(t) for t in terms), rtol=1e-12)
    wl.check_grads(lambda p: series.sequence_loss(p, Y, loss=F.huber_loss), (P,))


@pytest.mark.book("8-62", name="wl.series.shift_targets")
def test_targets_are_one_step_ahead():
    shifted = np.asarray(series.shift_targets(P, Y[:, 0]))
    np.testing.assert_array_equal(shifted[:, :-1], P[:, 1:])
    np.testing.assert_array_equal(shifted[:, -1], Y[:, 0])
    with pytest.raises(ShapeError, match="after windows of shape"):
        series.shift_targets(P, Y)


@pytest.mark.book("8-24", "8-25", "8-74", name="wl.series.sequence_loss")
@pytest.mark.parametrize("reduction", ["mean", "sum"])
def test_a_padded_batch_has_the_loss_of_its_sequences(reduction):
    lengths = [5, 2, 4]
    mask = wl.data.lengths_to_mask(lengths)
    for loss, p, y in (
        (F.mse_loss, P, Y),
        (F.cross_entropy, rng.normal(size=(3, 5, 4)), rng.integers(0, 4, (3, 5))),
    ):
        joined = [np.concatenate([a[i, :n] for i, n in enumerate(lengths)]) for a in (p, y)]
        wanted = loss(*map(wl.asarray, joined), reduction=reduction)
        ours = series.sequence_loss(wl.asarray(p), wl.asarray(y), mask, loss=loss, reduction=reduction)
        assert float(ours) == pytest.approx(float(wanted))
        spoiled = p.copy()
        spoiled[1, 2:] = 1e6
        again = wl.jit(lambda p, y, m, f=loss: series.sequence_loss(p, y, m, loss=f, reduction=reduction))(
            spoiled, wl.asarray(y), mask
        )
        assert float(again) == pytest.approx(float(wanted))
    uniform = series.sequence_loss(wl.zeros((3, 5, 4)), wl.asarray(y), mask, loss=F.cross_entropy)
    assert float(uniform) == pytest.approx(np.log(4), rel=1e-6)
    assert float(series.sequence_loss(P, Y, np.zeros((3, 5)))) == 0


def test_bad_losses_are_refused():
    with pytest.raises(ShapeError, match="differ"):
        series.sequence_loss(P, Y[:, :4])
    with pytest.raises(ShapeError, match=r"a mask of shape \(3, 4\) for steps of shape \(3, 5\)"):
        series.sequence_loss(P, Y, np.ones((3, 4)))
    with pytest.raises(InputError, match="reduction='average'"):
        series.sequence_loss(P, Y, reduction="average")


@pytest.mark.book("8-52", name=("wl.series.sequence_loss", "wl.series.make_ar"))
def test_a_forecaster_reaches_the_variance_of_the_noise():
    train, test = series.forecast_split(
        series.make_ar(3000, [0.8], noise=0.5, seed=1), 8, test_size=0.3, every_step=True
    )
    wl.random.seed(0)
    model = wl.nn.Linear(1, 1)  # at each time, from the value before: what an AR(1) needs
    x, y = train.__getitems__(np.arange(0, len(train), 8))
    loss = wl.jit(wl.value_and_grad(lambda model, x, y: series.sequence_loss(model(x), y)))
    optimizer = wl.optim.SGD(model, lr=0.3)
    for _ in range(60):
        _, gradients = loss(model, x, y)
        optimizer.step(gradients)
    assert float(model.weight[0, 0]) == pytest.approx(0.8, abs=0.04)
    x, y = test.__getitems__(np.arange(0, len(test), 8))
    error = float(series.sequence_loss(model(wl.asarray(x)), wl.asarray(y)))
    assert error == pytest.approx(0.25, rel=0.1)
    repeated = np.mean((np.asarray(x) - np.asarray(y)) ** 2)  # the naive forecast: 2 / (1 + a) of it
    assert repeated == pytest.approx(0.25 * 2 / 1.8, rel=0.15)
