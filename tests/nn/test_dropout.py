"""Dropout, eagerly and under jit."""

from __future__ import annotations

import numpy as np
import pytest

import wonderland as wl
from wonderland import nn
from wonderland.errors import InputError

F = nn.functional


@pytest.mark.book("9-35", "9-44", "A8-05", name=("wl.nn.Dropout", "wl.nn.functional.dropout"))
@pytest.mark.parametrize("p", [0.1, 0.5, 0.8])
def test_share_of_zeros_mean_and_variance(p):
    y = F.dropout(wl.full((200, 200), 3.0), p, key=wl.random.key(0)).numpy()
    np.testing.assert_allclose((y == 0).mean(), p, atol=0.01)
    np.testing.assert_allclose(np.unique(y), [0.0, 3.0 / (1 - p)], rtol=1e-6)
    np.testing.assert_allclose(y.mean(), 3.0, rtol=0.03)
    np.testing.assert_allclose(y.var(), 9.0 * p / (1 - p), rtol=0.05)


def test_limits():
    x = wl.random.normal((5, 4))
    assert F.dropout(x, 0.0) is x
    assert not F.dropout(x, 1.0).numpy().any()
    assert F.dropout(x, 0.5, training=False) is x
    assert nn.Dropout(0.5).eval()(x) is x
    assert F.dropout(wl.zeros((0, 3)), 0.5).shape == (0, 3)
    assert F.dropout(x.astype(wl.float64), 0.5).dtype == wl.float64


def test_the_gradient_has_the_same_mask():
    layer = nn.Dropout(0.5)
    y, back = wl.vjp(layer, wl.ones(100))
    np.testing.assert_array_equal(back(wl.ones(100))[0], y)


@pytest.mark.parametrize("make", [lambda: nn.Dropout(0.5), lambda: nn.Dropout(0.5, key=3)])
def test_every_call_draws_anew_and_the_seed_repeats(make):
    x = wl.ones(64)

    def draws(wrap):
        wl.random.seed(7)
        layer = make()
        call = wrap(lambda layer, x: layer(x))
        return [call(layer, x).numpy() for _ in range(3)]

    eager, compiled = draws(lambda f: f), draws(wl.jit)
    np.testing.assert_array_equal(eager, compiled)
    assert not np.array_equal(eager[0], eager[1])


def test_a_stream_of_its_own_is_state():
    layer = nn.Dropout(0.5, key=wl.random.key(1))
    x = wl.ones(64)
    layer(x)
    saved = layer.state_dict()
    assert list(saved) == ["stream"]
    first = layer(x)
    layer.load_state_dict(saved)
    np.testing.assert_array_equal(layer(x), first)
    assert nn.Dropout(0.5).state_dict() == {}


def test_bad_input():
    for p in (-0.1, 1.5):
        with pytest.raises(InputError, match="not a probability"):
            nn.Dropout(p)
        with pytest.raises(InputError, match="not a probability"):
            F.dropout(wl.ones(3), p)
