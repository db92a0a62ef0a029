"""The forms of weight decay, how they translate, and who decays."""

from __future__ import annotations

import numpy as np
import pytest

import wonderland as wl
from wonderland import nn, optim
from wonderland.errors import InputError


def one(value=1.0):
    return nn.Parameter(value, wl.float64)


def rest(optimizer, w, steps=1):
    """Steps without a gradient."""
    for _ in range(steps):
        optimizer.step([wl.tensor(0.0, wl.float64)])
    return w.item()


@pytest.mark.book("9-08", name="wl.optim.SGD")
def test_weights_decay_exponentially():
    w = one(3.0)
    np.testing.assert_allclose(
        rest(optim.SGD([w], lr=0.7, weight_decay=0.01, decay="independent"), w, 10), 3 * 0.99**10
    )
    v = one(3.0)
    optimizer = optim.SGD([v], lr=0.1)
    for _ in range(10):
        optimizer.step(wl.grad(lambda p: optim.l2(p[0], 0.05))([v]))
    np.testing.assert_allclose(v.item(), 3 * (1 - 2 * 0.1 * 0.05) ** 10)


@pytest.mark.book("9-09", name=("wl.optim.Adam", "wl.optim.AdamW"))
def test_adam_rescales_a_penalty_but_not_the_decay_of_the_book():
    a, b = one(), one()
    optimizer = optim.Adam([a], lr=0.1)
    optimizer.step(wl.grad(lambda p: optim.l2(p[0], 0.01))([a]))
    np.testing.assert_allclose(a.item(), 0.9, rtol=1e-5)
    np.testing.assert_allclose(rest(optim.Adam([b], lr=0.1, weight_decay=0.01, decay="independent"), b), 0.99)


@pytest.mark.book("9-10", "9-09", name="wl.optim.convert_weight_decay")
@pytest.mark.parametrize("form", ["penalty", "coupled", "decoupled", "independent"])
def test_one_step_of_sgd_is_the_same_in_every_form(form):
    lr, gradient = 0.2, 0.7
    value = optim.convert_weight_decay(0.05, lr, source="independent", target=form)
    w = one(2.0)
    if form == "penalty":
        grads = wl.grad(lambda p: gradient * p[0] + optim.l2(p[0], value))([w])
        optim.SGD([w], lr=lr).step(grads)
    else:
        optim.SGD([w], lr=lr, weight_decay=value, decay=form).step([wl.tensor(gradient, wl.float64)])
    np.testing.assert_allclose(w.item(), 2.0 - lr * gradient - 0.05 * 2.0)
    np.testing.assert_allclose(optim.convert_weight_decay(value, lr, source=form, target="independent"), 0.05)


@pytest.mark.book("9-09", name="wl.optim.SGD")
@pytest.mark.parametrize("decay", ["coupled", "decoupled", "independent"])
def test_momentum_sees_only_coupled_decay(decay):
    w = one(2.0)
    optimizer = optim.SGD([w], lr=0.5, momentum=0.9, weight_decay=0.1, decay=decay)
    rest(optimizer, w)
    momentum = optimizer.state_dict()["groups.0.momentum.0"].item()
    assert (momentum != 0.0) == (decay == "coupled")
    np.testing.assert_allclose(w.item(), 2.0 * (0.9 if decay == "independent" else 0.95))


@pytest.mark.book("9-10", name="wl.optim.decay_groups")
def test_biases_and_normalisations_do_not_decay():
    class Net(nn.Module):
        def __init__(self):
            self.layers = [nn.Linear(3, 4), nn.Linear(4, 4)]
            self.norm = nn.LayerNorm((4, 4))  # a weight with two axes
            self.scales = [nn.Parameter(wl.ones(4))]

    model = Net()
    before = {name: p.numpy().copy() for name, p in model.named_parameters()}
    optimizer = optim.SGD(optim.decay_groups(model, 0.5), lr=0.1)
    optimizer.step({name: wl.zeros_like(p.value) for name, p in model.named_parameters()})
    for name, p in model.named_parameters():
        kept = 0.95 if name in ("layers.0.weight", "layers.1.weight") else 1.0
        np.testing.assert_allclose(p.numpy(), kept * before[name], rtol=1e-6)
    assert len(optim.decay_groups(nn.Linear(2, 3, bias=False), 0.1)) == 1


def test_bad_input():
    with pytest.raises(InputError, match="decay='both'"):
        optim.SGD([one()], decay="both")
    with pytest.raises(InputError, match="weight_decay=-1"):
        optim.Lion([one()], weight_decay=-1)
    with pytest.raises(InputError, match="weight_decay=-1"):
        optim.decay_groups(nn.Linear(2, 2), -1)
    with pytest.raises(InputError, match="the form 'l2'"):
        optim.convert_weight_decay(0.1, 0.1, source="l2", target="coupled")
    with pytest.raises(InputError, match="lr=0"):
        optim.convert_weight_decay(0.1, 0, source="penalty", target="coupled")
