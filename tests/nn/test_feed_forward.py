"""The MLP on every token, plain and gated, and gated units in general."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import wonderland as wl
from tests.agreement import close_array
from wonderland import nn
from wonderland.errors import InputError, ShapeError

F = nn.functional


def normal(*shape: int, seed: int = 0) -> Any:
    return wl.asarray(np.random.default_rng([seed, *shape]).normal(size=shape))


@pytest.mark.book("10.50", name="wl.nn.FeedForward")
def test_the_mlp_of_a_transformer():
    assert wl.eval_shape(lambda: nn.FeedForward(512)).num_parameters() == 2_097_152
    for e, mult in ((6, 3), (6, 4), (4, 2.5)):
        p = round(mult * e)
        assert nn.FeedForward(e, mult).num_parameters() == 2 * p * e
        assert nn.FeedForward(e, mult, bias=True).num_parameters() == 2 * p * e + p + e
    layer = nn.FeedForward(4, bias=True, dtype=wl.float64)
    x = normal(2, 3, 4)
    hidden = F.gelu(x @ layer.up.weight + layer.up.bias)
    close_array(layer(x), hidden @ layer.down.weight + layer.down.bias)
    close_array(wl.jit(lambda m, a: m(a))(layer, x), layer(x))
    assert layer.output_shape((2, 3, 4)) == (2, 3, 4)
    wl.check_grads(lambda m, a: m(a), (layer, x), order=2)
    assert nn.FeedForward(4)(wl.ones((3, 4))).dtype == wl.float32
    for activation in ("relu", wl.tanh, nn.SiLU()):
        assert nn.FeedForward(4, 3, activation)(x).shape == x.shape


@pytest.mark.book("10.49", name="wl.nn.FeedForward")
def test_it_mixes_channels_and_no_tokens():
    x = normal(5, 4)
    for layer in (nn.FeedForward(4, activation="tanh"), nn.GatedFeedForward(4)):
        np.testing.assert_array_equal(nn.dependence(layer, x), np.eye(5, dtype=bool))
        assert (np.asarray(wl.jacobian(layer)(x))[2, :, 2] != 0).all()  # all channels of a token
        nn.assert_equivariant(layer, x, lambda a: wl.asarray(a)[[3, 0, 4, 1, 2]], rtol=1e-6)


def test_settings_of_the_mlp():
    layer = nn.FeedForward(4, hidden=7, dropout=0.5)
    assert layer.up.weight.shape == (4, 7)
    assert float((layer(wl.ones((50, 4))) == layer.eval()(wl.ones((50, 4)))).mean()) < 0.5  # dropout in training only
    close_array(layer(wl.ones((2, 4))), layer(wl.ones((2, 4))))
    one, two = (nn.FeedForward(4, key=wl.random.key(3)) for _ in range(2))
    close_array(one(wl.ones(4)), two(wl.ones(4)))
    with pytest.raises(InputError, match="no hidden units"):
        nn.FeedForward(4, 0)
    with pytest.raises(InputError, match="there is no activation 'glue'"):
        nn.FeedForward(4, activation="glue")
    with pytest.raises(ShapeError, match="5 features"):
        nn.FeedForward(4)(wl.ones((2, 5)))


@pytest.mark.book("11.65", name="wl.nn.GatedFeedForward")
@pytest.mark.parametrize(
    "activation, phi",
    [("silu", F.silu), ("gelu", F.gelu), ("relu", wl.relu), ("sigmoid", wl.sigmoid), (None, lambda a: a)],
)
def test_the_gated_mlp_of_llama(activation, phi):
    layer = nn.GatedFeedForward(6, 10, activation, dtype=wl.float64)
    x = normal(2, 3, 6)
    gate, value = layer.gated.gate.weight, layer.gated.value.weight
    close_array(layer(x), (phi(x @ gate) * (x @ value)) @ layer.down.weight)
    assert layer.num_parameters() == 3 * 6 * 10
    assert nn.GatedFeedForward(6, 10, activation, bias=True).num_parameters() == 3 * 6 * 10 + 2 * 10 + 6
    wl.check_grads(lambda m, a: m(a), (layer, x))
    close_array(wl.jit(lambda m, a: m(a))(layer, x), layer(x))


@pytest.mark.book("11.65", name="wl.nn.GatedFeedForward")
def test_hidden_sizes_of_llama():
    """8/3 of the width, rounded up to a multiple: the published models of 4096 to 8192 features."""
    widths = {4096: 11008, 5120: 13824, 6656: 17920, 8192: 22016}
    for e, hidden in widths.items():
        made = wl.eval_shape(lambda e=e: nn.GatedFeedForward(e, multiple_of=256))
        assert made.down.weight.shape == (hidden, e)
    assert nn.GatedFeedForward(9, multiple_of=1).down.in_features == 24
    assert nn.GatedFeedForward(10, multiple_of=1).down.in_features == 27


@pytest.mark.book("11.63", name="wl.nn.Gated")
def test_the_product_rule_of_gated_units():
    one, two = nn.Linear(4, 3, dtype=wl.float64), nn.FullyConnected(4, 3, "tanh", dtype=wl.float64)
    layer, x = nn.Gated(one, two), normal(4)
    np.testing.assert_array_equal(layer(x), one(x) * two(x))
    rule = wl.jacobian(one)(x) * two(x)[:, None] + one(x)[:, None] * wl.jacobian(two)(x)
    close_array(wl.jacobian(layer)(x), rule)
    assert layer.num_parameters() == 30
    wl.check_grads(lambda m, a: m(a), (layer, x), order=2)
    close_array(nn.Gated(wl.sigmoid, lambda a: a)(x), F.silu(x))
    with pytest.raises(ShapeError, match=r"phi1 gives \(4,\), phi2 gives \(3,\)"):
        nn.Gated(wl.sigmoid, one)(x)


@pytest.mark.book("11.64", name="wl.nn.GatedLinear")
def test_glu_with_nothing_at_the_gate_passes_one_half():
    layer = nn.GatedLinear(4, 6, dtype=wl.float64)  # sigma(X A) * X B
    x = normal(5, 4)
    close_array(layer(x), wl.sigmoid(x @ layer.gate.weight) * (x @ layer.value.weight))
    layer.gate.weight = wl.zeros((4, 6), dtype=wl.float64)
    np.testing.assert_array_equal(layer(x), 0.5 * (x @ layer.value.weight))
    kinds = {nn.SwiGLU: F.silu, nn.GEGLU: F.gelu, nn.ReGLU: wl.relu}
    for kind, phi in kinds.items():
        made = kind(4, 6, dtype=wl.float64)
        close_array(made(x), phi(x @ made.gate.weight) * (x @ made.value.weight))
        named = nn.GatedLinear(4, 6, activation=phi, dtype=wl.float64)
        assert named(x).shape == (5, 6)
