"""Sparsity counted, and weights that stay 0."""

from __future__ import annotations

import numpy as np
import pytest

import wonderland as wl
from wonderland import nn
from wonderland.errors import InputError


@pytest.mark.book("9-13", "A8-02", name=("wl.nn.sparsity", "wl.nn.prune", "wl.nn.Masked"))
@pytest.mark.parametrize("make", [wl.optim.SGD, wl.optim.AdamW])
def test_pruned_weights_stay_zero(make):
    model = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 2))
    w = model[0].weight.numpy().copy()
    nn.prune(model, 0.75)
    pruned = model[0].weight.numpy()
    assert (pruned == 0).sum() == 36
    np.testing.assert_array_equal(pruned[pruned != 0], w[pruned != 0])
    assert np.abs(w[pruned == 0]).max() <= np.abs(w[pruned != 0]).min()
    x, y = wl.random.normal((16, 6)), wl.random.normal((16, 2))
    optimizer = make(model, lr=0.05, weight_decay=0.1)

    @wl.jit
    def step(model, optimizer):
        optimizer.step(wl.grad(lambda m: ((m(x) - y) ** 2).mean())(model))

    for _ in range(5):
        step(model, optimizer)
    after = model[0].weight.numpy()
    np.testing.assert_array_equal(after == 0, pruned == 0)
    assert not np.array_equal(after, pruned)
    nn.prune(model, 0.9, places="0")  # further
    assert (model[0].weight == 0).sum() == round(0.9 * 48)
    assert not (np.asarray(model[0].weight)[pruned == 0]).any()
    pruned = model[0].weight.numpy()
    np.testing.assert_array_equal(model[0].remove().weight.numpy() == 0, pruned == 0)


@pytest.mark.book("9-13", name="wl.nn.sparsity")
def test_the_report():
    model = nn.Sequential(nn.Linear.from_matrix([[0.0, 1.0], [1e-5, -2.0]], [0.0, 1.0]), nn.Linear(2, 2))
    report = nn.sparsity(model)
    assert report.total == 12
    assert report.zeros == 2
    assert report.fraction == 2 / 12
    assert report.parameters["0.weight"] == 0.25
    assert report.parameters["0.bias"] == 0.5
    assert nn.sparsity(model, tol=1e-4).parameters["0.weight"] == 0.5
    nn.prune(model, 0.5, places="1")
    report = nn.sparsity(model)
    assert report.total == 12
    assert report.parameters["1.weight"] == 0.5
    assert list(report.parameters) == ["1.weight", "0.weight", "0.bias", "1.layer.bias"]


def test_bad_input():
    model = nn.Sequential(nn.Linear(2, 2))
    for fraction in (-0.1, 1.1):
        with pytest.raises(InputError, match="fraction="):
            nn.prune(model, fraction)
    with pytest.raises(InputError, match="no linear or convolutional layer"):
        nn.prune(model, 0.5, places="7")
