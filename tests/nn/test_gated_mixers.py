"""gMLP, the gated attention unit, and MONet's polynomial blocks."""

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


@pytest.mark.book("11.65", name=("wl.nn.GMLPBlock", "wl.nn.SpatialGatingUnit"))
def test_gmlp_is_its_formula():
    n, e, h = 5, 4, 6
    block = nn.GMLPBlock(n, e, h, dtype=wl.float64)
    block.gate.spatial.weight = normal(n, n)
    block.gate.spatial.bias = normal(n)
    x = normal(2, n, e)
    z = F.gelu(F.layer_norm(x, (e,)) @ block.up.weight + block.up.bias)
    kept, gate = z[..., : h // 2], F.layer_norm(z[..., h // 2 :], (h // 2,))
    # the matrix over tokens is applied from the left, and its bias is one number per token
    mixed = wl.einsum("ij,bjc->bic", block.gate.spatial.weight.mT, gate) + block.gate.spatial.bias[:, None]
    close_array(block(x), x + (kept * mixed) @ block.down.weight + block.down.bias)
    assert block(x).shape == x.shape


def test_the_spatial_gate_starts_open():
    x = normal(7, 8).astype("float32")
    np.testing.assert_allclose(nn.SpatialGatingUnit(7, 8)(x), x[:, :4], atol=0.02)
    with pytest.raises(InputError, match="no halves"):
        nn.SpatialGatingUnit(7, 5)
    with pytest.raises(InputError, match="no halves"):
        nn.GMLPBlock(7, 4, 5)


@pytest.mark.book("11.65", name="wl.nn.GatedAttentionUnit")
def test_the_gated_attention_unit_is_attention_times_a_projection():
    layer = nn.GatedAttentionUnit(4, key_size=3, dtype=wl.float64)
    x = normal(2, 5, 4)
    scores = (x @ layer.query.weight) @ (x @ layer.key.weight).mT / 3**0.5
    attended = wl.softmax(scores) @ (x @ layer.value.weight)
    close_array(layer(x), attended * (x @ layer.gate.weight))
    close_array(layer.attend(x), attended)
    assert layer(x).shape == x.shape
    wide = nn.GatedAttentionUnit(4, 3, hidden=7, activation="silu", dtype=wl.float64)
    assert wide.out is not None
    close_array(wide(x), (wide.attend(x) * F.silu(x @ wide.gate.weight)) @ wide.out.weight)
    assert wide(x).shape == x.shape
    assert nn.is_causal(nn.GatedAttentionUnit(4, is_causal=True), x[0])
    assert nn.dependence(layer, x[0]).all()
    nn.assert_equivariant(layer, x[0], lambda a: wl.asarray(a)[wl.asarray([2, 0, 1, 4, 3])], rtol=1e-12)
    with pytest.raises(ShapeError, match=r"GatedAttentionUnit\(4\)"):
        layer(wl.ones((2, 5, 3)))


@pytest.mark.book("11.66", name="wl.nn.MONetBlock")
def test_monet_is_a_polynomial():
    block = nn.MONetBlock(6, rank=2, hidden=10, dtype=wl.float64)
    x = normal(2, 5, 6)
    a, b, d, out = block.a.weight, block.b[0].weight @ block.b[1].weight, block.d.weight, block.out.weight
    second, first = ((x @ a) * (x @ b)) @ out, (x @ d) @ out
    close_array(block(x), second + first)
    assert block.b.num_parameters() == 2 * (6 + 10)
    assert np.linalg.matrix_rank(np.asarray(b.detach())) == 2
    assert nn.MONetBlock(6, 2).b.num_parameters() == 2 * (6 + 24)
    for made in (block, nn.MONetBlock(6, rank=2, hidden=10, index=1, dtype=wl.float64)):
        # in whole numbers, which floats compute exactly, f(tX) = t^2 E(AX * BX) + t EDX has no rounding
        for p in made.parameters():
            p.assign(wl.round(3 * normal(*p.shape)))
        whole = wl.round(3 * x)
        shifted = whole if made.shift is None else made.shift(whole)
        second = (made.a(shifted) * made.b(shifted)) @ made.out.weight
        for t in (-3.0, 0.0, 2.0, 7.0):
            np.testing.assert_array_equal(made(t * whole), t**2 * second + t * made.out(made.d(shifted)))
        # only linear maps and one product: nothing else is on the tape
        found = wl.count(made, x).operations
        moves = {"slice", "concatenate", "full", "reshape", "broadcast_to"}
        assert set(found) - moves <= {"matmul", "multiply", "add"}, found


@pytest.mark.book("11.67", name=("wl.nn.MONetBlock", "wl.nn.TokenShift"))
def test_tokens_meet_in_odd_blocks_of_monet():
    x = normal(5, 6)
    stack = lambda indices: nn.Sequential(*(nn.MONetBlock(6, 2, index=i) for i in indices))
    np.testing.assert_array_equal(nn.dependence(stack([0, 2, 4]), x), np.eye(5, dtype=bool))
    assert all((block.shift is None) == (i % 2 == 0) for i, block in enumerate(stack(range(4))))
    near = np.abs(np.subtract.outer(np.arange(5), np.arange(5)))
    one = nn.dependence(stack([0, 1]), x)
    np.testing.assert_array_equal(one, near == 1)  # neighbours on both sides, and not the token itself
    np.testing.assert_array_equal(nn.dependence(stack([0, 1, 2, 3]), x), np.linalg.matrix_power(one.astype(int), 2) > 0)
