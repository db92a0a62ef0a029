"""The base of layers that carry a state, and blocks and stacks that read on with whatever they mix tokens by."""

from __future__ import annotations

import numpy as np
import pytest

import wonderland as wl
from wonderland import nn
from wonderland.errors import InputError, ShapeError


class Leaky(nn.StateLayer):
    """s_i = s_{i-1}/2 + x_i w, which a loop in NumPy can follow."""

    def __init__(self, features: int = 4, out: int = 3) -> None:
        self.weight = nn.Parameter(wl.random.normal((features, out), key=wl.random.key(3)))

    def features(self) -> int:
        return self.weight.shape[0]

    def state_shapes(self) -> dict[str, tuple[int, ...]]:
        return {"s": (self.weight.shape[1],)}

    def run(self, x, state, real):
        ones = wl.ones(x.shape[:2], dtype=bool) if real is None else real

        def step(s, now):
            u, is_real = now
            s = wl.where(is_real[:, None], 0.5 * s + u, s)
            return s, s

        s, y = wl.scan(step, state["s"], (wl.swapaxes(x @ self.weight, 0, 1), wl.swapaxes(ones, 0, 1)))
        return wl.swapaxes(y, 0, 1), {"s": s}


def numbers(*shape: int, seed: int = 0) -> wl.Tensor:
    return wl.tensor(np.random.default_rng(seed).normal(size=shape).astype(np.float32))


def test_it_computes_what_a_loop_computes() -> None:
    layer, x = Leaky(), numbers(2, 6, 4)
    s, wanted = np.zeros((2, 3)), []
    for i in range(6):
        s = s / 2 + np.asarray(x)[:, i] @ np.asarray(layer.weight)
        wanted.append(s)
    np.testing.assert_allclose(layer(x), np.stack(wanted, axis=1), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("compiled", [False, True])
def test_a_state_layer_keeps_every_promise(compiled: bool) -> None:
    nn.assert_sequence_layer(Leaky(), numbers(3, 6, 4), compiled=compiled)


@pytest.mark.parametrize("compiled", [False, True])
def test_blocks_and_stacks_of_it_do(compiled: bool) -> None:
    blocks = [nn.MixingBlock(Leaky(4, 4), 4, first=first) for first in ("tokens", "channels")]
    nn.assert_sequence_layer(nn.SequenceStack(blocks, nn.LayerNorm(4)), numbers(3, 6, 4), compiled=compiled)


def test_a_channel_mixer_may_have_a_cache_too() -> None:
    block = nn.MixingBlock(nn.MultiHeadAttention(4, 2, causal=True), 4, channel_mixer=Leaky(4, 4))
    nn.assert_sequence_layer(block, numbers(3, 6, 4))
    assert [type(part).__name__ for part in block.new_cache(2, 5).layers] == ["KeyValueCache", "StateCache"]


def test_axes_in_front_are_rows() -> None:
    layer, x = Leaky(), numbers(2, 3, 6, 4)
    mask = np.random.default_rng(1).random((2, 3, 6)) > 0.3
    found = np.asarray(layer(x, token_mask=mask))
    for i in np.ndindex(2, 3):
        np.testing.assert_allclose(found[i], layer(x[i][None], token_mask=mask[i][None])[0], rtol=1e-6)
    assert layer(x[0, 0]).shape == (6, 3)


def test_nothing_leaves_the_state_as_it_is() -> None:
    layer = Leaky()
    _, cache = layer.extend(numbers(2, 3, 4))
    before = np.asarray(cache.state["s"])
    y, cache = layer.extend(wl.zeros((2, 0, 4)), cache)
    assert y.shape == (2, 0, 3)
    assert cache.lengths.tolist() == [3, 3]
    np.testing.assert_array_equal(cache.state["s"], before)


def test_a_wider_input_widens_the_result_and_not_the_cache() -> None:
    layer = Leaky()
    y, cache = layer.extend(wl.astype(numbers(2, 3, 4), wl.float64))
    assert y.dtype == wl.float64
    assert cache.state["s"].dtype == wl.float32


def test_errors() -> None:
    layer = Leaky()
    with pytest.raises(ShapeError, match=r"Leaky.*\(2, 5, 3\)"):
        layer(numbers(2, 5, 3))
    with pytest.raises(ShapeError, match=r"a cache of .* for 2 rows"):
        layer.extend(numbers(2, 5, 4), layer.new_cache(3))
    with pytest.raises(InputError, match="KeyValueCache as cache"):
        layer.extend(numbers(2, 5, 4), nn.KeyValueCache(2, 1, 4, 4))  # type: ignore[arg-type]
    with pytest.raises(InputError, match="lengths from 0 to 6 for 5 tokens"):
        layer.extend(numbers(2, 5, 4), lengths=[0, 6])
    with pytest.raises(InputError, match="a PoolMixer does not read on"):
        nn.MixingBlock(nn.PoolMixer(), 4).new_cache(2)
    with pytest.raises(InputError, match="a Linear does not read on"):
        nn.SequenceStack([nn.Linear(4, 4)]).new_cache(2)
    cache = nn.SequenceStack([nn.MixingBlock(Leaky(4, 4), 4)] * 2).new_cache(2)
    with pytest.raises(InputError, match="2 caches for 1 blocks"):
        nn.SequenceStack([nn.MixingBlock(Leaky(4, 4), 4)]).extend(numbers(2, 3, 4), cache)
