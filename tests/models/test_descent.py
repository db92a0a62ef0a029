"""The small loop that models fit themselves with."""

from __future__ import annotations

import numpy as np
import pytest

import wonderland as wl
from wonderland import nn
from wonderland.errors import InputError, NonFiniteError, ShapeError
from wonderland.models.classical.descent import descend

X = np.random.default_rng(0).normal(size=(10, 2))
Y = X @ [[1.0], [-2.0]]
loss = lambda m, x, y: ((m(x) - y) ** 2).mean()


def model():
    return nn.Linear(2, 1, dtype=wl.float64, key=wl.random.key(0))


def test_whole_batches_of_a_new_order_every_epoch():
    seen = []

    class Watched(nn.Module):
        def __init__(self):
            self.shift = nn.Parameter(wl.zeros(()))
            self.seen = nn.Buffer(wl.zeros(10))

    def record(m, i):
        m.seen = m.seen.at[i].add(1.0)
        return (m.shift - 1.0) ** 2

    watched = Watched()
    for epoch in range(4):
        before = watched.seen.numpy().copy()
        descend(watched, record, np.arange(10), epochs=1, batch_size=4, key=wl.random.key(epoch))
        seen.append(tuple(np.flatnonzero(watched.seen.numpy() - before)))
    assert all(len(s) == 8 for s in seen)  # two batches of four, each example at most once
    assert len(set(seen)) > 1


def test_it_is_the_loop_that_one_would_write():
    ours, theirs = model(), model()
    history = descend(ours, loss, X, Y, epochs=5, lr=0.1)
    optimizer = wl.optim.Adam(theirs, lr=0.1)
    values = []
    for _ in range(5):
        value, grads = wl.value_and_grad(loss)(theirs, wl.asarray(X), wl.asarray(Y))
        optimizer.step(grads)
        values.append(float(value))
    np.testing.assert_allclose(history, values, rtol=1e-10)
    np.testing.assert_allclose(ours.weight, theirs.weight, rtol=1e-10)


def test_the_key_decides_the_order_and_frozen_parameters_stay():
    first, second, third = model(), model(), model().freeze("bias")
    settings = {"epochs": 3, "batch_size": 4, "lr": 0.1}
    assert descend(first, loss, X, Y, key=wl.random.key(1), **settings) == descend(
        second, loss, X, Y, key=wl.random.key(1), **settings
    )
    before = third.bias.numpy().copy()
    descend(third, loss, X, Y, **settings)
    np.testing.assert_array_equal(third.bias, before)
    assert (third.weight.numpy() != model().weight.numpy()).all()


def test_callbacks_stop_and_optimizers_are_taken():
    made = model()
    assert len(descend(made, loss, X, Y, epochs=9, callback=lambda epoch, value: epoch == 2)) == 3
    sgd = wl.optim.SGD(made, lr=0.0)
    before = made.weight.numpy().copy()
    descend(made, loss, X, Y, epochs=2, optimizer=sgd)
    np.testing.assert_array_equal(made.weight, before)
    assert int(sgd.count) == 2


def test_bad_input():
    with pytest.raises(ShapeError, match=r"arrays of \[10, 9\]"):
        descend(model(), loss, X, Y[:9], epochs=1)
    with pytest.raises(ShapeError, match=r"arrays of \[0, 0\]"):
        descend(model(), loss, X[:0], Y[:0], epochs=1)
    with pytest.raises(InputError, match="batch_size=0"):
        descend(model(), loss, X, Y, epochs=1, batch_size=0)
    with pytest.raises(NonFiniteError, match="the loss of epoch 0 is nan"):
        descend(model(), loss, X * np.nan, Y, epochs=1)
