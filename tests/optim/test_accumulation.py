"""Micro-batches add up to the batch."""

from __future__ import annotations

import numpy as np
import pytest

import wonderland as wl
from wonderland import nn, optim
from wonderland.errors import InputError, ModuleError, ShapeError

rng = np.random.default_rng(0)
X, Y = wl.asarray(rng.normal(size=(10, 3))), wl.asarray(rng.normal(size=(10, 2)))


def network():
    wl.random.seed(0)
    return nn.Sequential(nn.Linear(3, 4), wl.tanh, nn.Linear(4, 2)).astype(wl.float64)


def loss_of(model, x, y):
    return nn.functional.mse_loss(model(x), y)


@pytest.mark.book("5.38", name="wl.optim.accumulate")
@pytest.mark.parametrize("pieces", [1, 2, 3, 10])
@pytest.mark.parametrize("compiled", [False, True])
def test_micro_batches_equal_one_batch(pieces, compiled):
    model = network()
    f = optim.accumulate(wl.value_and_grad(loss_of), pieces)  # 3 pieces of 10 examples are uneven
    value, grads = (wl.jit(f) if compiled else f)(model, X, Y)
    whole, expected = wl.value_and_grad(loss_of)(model, X, Y)
    np.testing.assert_allclose(value.item(), whole.item(), rtol=1e-12)
    assert grads.keys() == expected.keys()
    for name, g in grads.items():
        np.testing.assert_allclose(g, expected[name], rtol=1e-10, atol=1e-14)


def test_a_tree_of_inputs_and_grad_alone():
    model = network()

    def loss(model, batch):
        return loss_of(model, batch["x"], batch["y"])

    found = optim.accumulate(wl.grad(loss), 4)(model, {"x": X, "y": Y})
    expected = wl.grad(loss_of)(model, X, Y)
    np.testing.assert_allclose(found["0.weight"], expected["0.weight"], rtol=1e-10)


def test_state_sees_the_pieces_in_turn():
    model = nn.Sequential(nn.BatchNorm1d(3), nn.Linear(3, 2)).astype(wl.float64)
    twin = model.copy()
    optim.accumulate(wl.value_and_grad(loss_of), 2)(model, X, Y)
    for part in (slice(0, 5), slice(5, 10)):
        loss_of(twin, X[part], Y[part])
    for (name, a), (_, b) in zip(model.named_buffers(), twin.named_buffers(), strict=True):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-12, err_msg=name)


@pytest.mark.book("5.38", name="wl.optim.Accumulator")
def test_an_accumulator_over_uneven_batches():
    model = network()
    sums = optim.Accumulator(model)

    @wl.jit
    def add(model, sums, x, y):
        sums.add(wl.grad(loss_of)(model, x, y), weight=x.shape[0])

    expected = wl.grad(loss_of)(model, X, Y)
    for _ in range(2):  # `take` starts again from zero
        for part in (slice(0, 4), slice(4, 8), slice(8, 10)):
            add(model, sums, X[part], Y[part])
        assert sums.weight.item() == 10
        for name, g in sums.take().items():
            np.testing.assert_allclose(g, expected[name], rtol=1e-10, atol=1e-14)
    assert list(sums.state_dict())[-1] == "weight"


def test_bad_input():
    f = optim.accumulate(wl.grad(loss_of), 4)
    with pytest.raises(ShapeError, match="same first axis"):
        f(network(), X, Y[:5])
    with pytest.raises(ShapeError, match="accumulate: the batch has the shapes"):
        f(network(), X, 1.0)
    with pytest.raises(InputError, match="2 examples for 4 micro-batches"):
        f(network(), X[:2], Y[:2])
    with pytest.raises(InputError, match="micro_batches=0"):
        optim.accumulate(wl.grad(loss_of), 0)
    with pytest.raises(ModuleError, match="not the gradients of the model"):
        optim.Accumulator(network()).add({"weight": wl.ones(3)})
    with pytest.raises(InputError, match="no trainable parameters"):
        optim.Accumulator(network().freeze())


@pytest.mark.book("5.38", name="wl.optim.accumulate")
def test_less_is_held_at_one_time():
    model = network()
    x, y = wl.ones((200, 3), dtype=wl.float64), wl.zeros((200, 2), dtype=wl.float64)
    peaks = []
    for pieces in (1, 4, 20):
        f = optim.accumulate(wl.value_and_grad(loss_of), pieces)
        peaks.append(wl.count(f, model, x, y).peak_bytes)
    assert peaks == sorted(peaks, reverse=True)
    assert peaks[0] - peaks[2] > 8 * 190 * 4  # the hidden values of 190 examples
