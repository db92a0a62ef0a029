"""What every layer over sequences promises: the checks of nn/analysis/sequences.py, applied to all of them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

import wonderland as wl
from wonderland import nn
from wonderland.nn.sequences.cache import SLACK

YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 8}
LLAMA3 = {
    "rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
    "original_max_position_embeddings": 16,
}  # fmt: skip


def normal(*shape: int, dtype: Any = wl.float64, seed: int = 0) -> Any:
    return wl.asarray(np.random.default_rng([seed, *shape]).normal(size=shape)).astype(dtype)


def drawn(module: Any) -> Any:
    """A module whose parameters are all random, those that start from 0, too."""
    for i, (_, parameter) in enumerate(module.named_parameters()):
        parameter.assign(normal(*parameter.shape, dtype=parameter.dtype, seed=i) * 0.5)
    return module


def attention(dtype: Any, **options: Any) -> Any:
    return drawn(nn.MultiHeadAttention(8, 4, causal=True, dtype=dtype, **options))


class WithMemory(nn.Module):
    """A block with cross-attention as a layer of one input: all rows attend to the same memory."""

    def __init__(self, block: Any, memory: Any) -> None:
        self.block = block
        self.memory = nn.Buffer(memory)  # (1, s, e)

    def _memory(self, rows: int) -> Any:
        return wl.broadcast_to(self.memory, (rows, *self.memory.shape[1:])), wl.asarray([[True, True, False]] * rows)

    def forward(self, x: Any, **masks: Any) -> Any:
        memory, real = self._memory(x.shape[0])
        return self.block(x, memory, memory_mask=real, **masks)

    def new_cache(self, rows: int, capacity: int = 0) -> Any:
        return self.block.new_cache(rows, capacity, *self._memory(rows))

    def extend(self, x: Any, cache: Any, lengths: Any = None) -> Any:
        return self.block.extend(x, cache, lengths)

    def step(self, x: Any, cache: Any) -> Any:
        return self.block.step(x, cache)


class WithPositions(nn.Module):
    """Absolute positions and a block: what a model does with them, for vectors instead of tokens."""

    def __init__(self, positions: Any, e: int, dtype: Any) -> None:
        self.positions, self.block = positions, nn.TransformerBlock(e, 2, causal=True, dtype=dtype)

    def forward(self, x: Any, token_mask: Any = None, lengths: Any = None) -> Any:
        if lengths is not None:
            token_mask = nn.functional.length_mask(lengths, x.shape[1])
        places = wl.arange(x.shape[1])
        if token_mask is not None:
            places = wl.maximum(wl.cumulative_sum(token_mask.astype(wl.int64), axis=-1) - 1, 0)
        return self.block(self.positions(x, places), token_mask=token_mask)

    def new_cache(self, rows: int, capacity: int = 0) -> Any:
        return self.block.new_cache(rows, capacity)

    def extend(self, x: Any, cache: Any, lengths: Any = None) -> Any:
        places = cache.lengths[:, None] + wl.arange(x.shape[1])
        return self.block.extend(self.positions(x, places), cache, lengths)

    def step(self, x: Any, cache: Any) -> Any:
        y, cache = self.extend(x[:, None], cache)
        return y[:, 0], cache


def with_memory(dtype: Any, **options: Any) -> Any:
    block = nn.TransformerBlock(8, 2, causal=True, cross=True, memory_dim=6, dtype=dtype, **options)
    memory = np.concatenate([np.asarray(normal(1, 2, 6)), np.full((1, 1, 6), np.nan)], axis=1)
    return WithMemory(drawn(block), wl.asarray(memory).astype(dtype))


POSITIONS: dict[str, Callable[[Any], Any]] = {
    "none": lambda dtype: None,
    "rotary": lambda dtype: nn.Rotary(2),
    "ALiBi": lambda dtype: nn.ALiBi(4, dtype=dtype),
    "ALiBi trained": lambda dtype: nn.ALiBi(4, trainable=True, dtype=dtype),
    "relative": lambda dtype: nn.RelativeBias(4, 4, dtype=dtype),
    "relative, free": lambda dtype: nn.RelativeBias(4, 9, free=True, dtype=dtype),
    "buckets": lambda dtype: nn.BucketedBias(4, 8, 6, dtype=dtype),
    "buckets, one way": lambda dtype: nn.BucketedBias(4, 8, 6, bidirectional=False, dtype=dtype),
}
ROTARY: dict[str, dict[str, Any]] = {
    "interleaved": {"pairing": "interleaved"},
    "partial": {"size": 2},
    "linear": {"scaling": {"rope_type": "linear", "factor": 2.0}},
    "ntk": {"scaling": {"rope_type": "ntk", "factor": 2.0}},
    "llama3": {"scaling": LLAMA3},
    "yarn": {"scaling": YARN, "pairing": "interleaved"},
}


def at_positions(made: Callable[[Any], Any], dtype: Any) -> Any:
    return attention(dtype, positions=made(dtype))


def rotary(dtype: Any, size: int = 4, **options: Any) -> Any:
    return drawn(nn.MultiHeadAttention(8, 2, causal=True, positions=nn.Rotary(size, **options), dtype=dtype))


LAYERS: dict[str, Callable[[Any], Any]] = {
    **{f"positions: {k}": partial(at_positions, f) for k, f in POSITIONS.items()},
    **{f"rotary: {k}": partial(rotary, **o) for k, o in ROTARY.items()},
    "grouped": lambda dtype: attention(dtype, kv_heads=2, positions=nn.Rotary(2)),
    "multi-query": lambda dtype: attention(dtype, kv_heads=1, bias=False),
    "window": lambda dtype: attention(dtype, window=3),
    "fused": lambda dtype: attention(dtype, fused=True, kv_heads=2),
    "sizes": lambda dtype: attention(dtype, key_size=3, value_size=5, out_features=7),
    "query and key norm": lambda dtype: attention(
        dtype, query_norm=nn.RMSNorm(2, dtype=dtype), key_norm=nn.RMSNorm(2, dtype=dtype), positions=nn.Rotary(2)
    ),
    "score_mod": lambda dtype: attention(dtype, score_mod=lambda scores, i, j: wl.tanh(scores) - 0.1 * wl.abs(i - j)),
    "self-attention": lambda dtype: drawn(nn.SelfAttention(8, 4, 6, causal=True, dtype=dtype)),
    "block": lambda dtype: drawn(nn.TransformerBlock(8, 2, causal=True, dtype=dtype)),
    "post-norm block": lambda dtype: drawn(nn.TransformerBlock(8, 2, causal=True, norm_first=False, dtype=dtype)),
    "parallel block": lambda dtype: drawn(nn.TransformerBlock(8, 2, causal=True, parallel=True, dtype=dtype)),
    "cross block": lambda dtype: with_memory(dtype),
    "post-norm cross block": lambda dtype: with_memory(dtype, norm_first=False),
    "stack": lambda dtype: drawn(
        nn.TransformerStack(
            [
                nn.TransformerBlock(8, 2, causal=True, positions=nn.Rotary(4), window=window, dtype=dtype)
                for window in (None, 3)
            ],
            nn.LayerNorm(8, dtype=dtype),
        )
    ),
    "learned positions": lambda dtype: WithPositions(nn.LearnedPositions(9, 8, 1.0, dtype=dtype), 8, dtype),
    "sinusoidal positions": lambda dtype: WithPositions(nn.SinusoidalPositions(8), 8, dtype),
    "sines in halves": lambda dtype: WithPositions(nn.SinusoidalPositions(8, layout="halves"), 8, dtype),
    "scalar positions": lambda dtype: WithPositions(nn.ScalarPositions(9), 8, dtype),
    "one-hot positions": lambda dtype: WithPositions(nn.OneHotPositions(10), 18, dtype),
}  # fmt: skip
MODELS: dict[str, Callable[[Any], Any]] = {
    "GPT": lambda dtype: drawn(wl.models.GPT(11, 16, 8, 2, 2, dtype=dtype)),
    "Llama": lambda dtype: drawn(wl.models.Llama(11, 8, 4, 2, kv_heads=2, dtype=dtype)),
    "Qwen3-like": lambda dtype: drawn(wl.models.Llama(11, 8, 4, 1, kv_heads=2, qk_norm=True, window=3, dtype=dtype)),
}
TOKENS = np.array([[3, 1, 4, 1, 5, 9, 2, 6], [2, 7, 1, 8, 2, 8, 1, 10], [1, 4, 1, 4, 2, 1, 3, 0]])
COMPILED = ["positions: ALiBi trained", "positions: relative, free", "window", "cross block"]


@pytest.mark.book("11.34", "11.09", "A5-61", name=("wl.nn.assert_reads_on", "wl.nn.assert_causal"))
@pytest.mark.parametrize("layer", LAYERS.values(), ids=LAYERS.keys())
def test_layers(layer: Any) -> None:
    nn.assert_sequence_layer(layer(wl.float64), normal(3, 8, 8), threads=False)


@pytest.mark.parametrize("name", ["rotary: yarn", "positions: buckets", "fused", "query and key norm", "stack"])
def test_layers_in_float32(name: str) -> None:
    nn.assert_sequence_layer(LAYERS[name](wl.float32), normal(3, 8, 8, dtype=wl.float32), threads=False)


@pytest.mark.parametrize("name", COMPILED)
def test_layers_compiled(name: str) -> None:
    layer, x = LAYERS[name](wl.float32), normal(3, 8, 8, dtype=wl.float32)
    nn.assert_reads_on(layer, x, pieces=[4, 4], compiled=True)
    nn.assert_padding_ignored(layer, x, compiled=True)
    nn.assert_threads_agree(layer, x)


def test_padding_may_reach_beyond_the_context() -> None:
    """A row with one token left, beside one with four."""
    model = MODELS["GPT"](wl.float64)
    tokens = np.arange(32).reshape(2, 16) % 11
    whole = np.asarray(model(tokens))
    _, cache = model.extend(np.where(np.arange(15) < [[12], [15]], tokens[:, :15], -1), None, [12, 15])
    last = np.stack([tokens[0, 12:], [tokens[1, 15], -1, -1, -1]])
    y, cache = model.extend(last, cache, [4, 1])
    assert cache.lengths.tolist() == [16, 16]
    np.testing.assert_allclose(y[0], whole[0, 12:], atol=1e-12)
    np.testing.assert_allclose(y[1, 0], whole[1, 15], atol=1e-12)


@pytest.mark.parametrize("dtype", [wl.float64, wl.float32], ids=str)
@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS.keys())
def test_models(model: Any, dtype: Any) -> None:
    nn.assert_sequence_layer(model(dtype), TOKENS, threads=False)


@pytest.mark.parametrize("name", ["GPT", "Llama"])
def test_models_compiled(name: str) -> None:
    made = MODELS[name](wl.float32)
    nn.assert_reads_on(made, TOKENS, pieces=[4, 4], compiled=True)
    nn.assert_cache_reorders(made, TOKENS, compiled=True)
    nn.assert_threads_agree(made, TOKENS)


@pytest.mark.parametrize("positions", [None, nn.Rotary(4), nn.ALiBi(2)], ids=["none", "rotary", "ALiBi"])
def test_a_window_rolls_for_several_rounds(positions: Any) -> None:
    """Past the window new keys take the places of old ones, by single tokens and by many at once."""
    layer = drawn(nn.MultiHeadAttention(8, 2, causal=True, window=5, positions=positions, dtype=wl.float64))
    time = 4 * (5 + SLACK) + 7
    x = normal(2, time, 8)
    whole = np.asarray(layer(x))
    cache = layer.new_cache(2, time)
    assert cache.places == 5 + SLACK
    size = cache.nbytes
    parts, read = [], 0
    for count in [1, 70, 3, *[1] * 70, 130, time]:
        y, cache = layer.extend(x[:, read : read + count], cache)
        parts.append(np.asarray(y))
        read += count
    np.testing.assert_allclose(np.concatenate(parts, axis=1), whole, atol=1e-12)
    assert cache.nbytes == size
    assert cache.lengths.tolist() == [time, time]
    # rows of different lengths, on both sides of the round
    lengths = np.array([3, 150])
    cache = layer.new_cache(2, time)
    spoiled = np.where((np.arange(150) < lengths[:, None])[..., None], np.asarray(x)[:, :150], np.nan)
    _, cache = layer.extend(spoiled, cache, lengths)
    more = np.stack([np.asarray(x)[0, 3:103], np.asarray(x)[1, 150:250]])
    y, cache = layer.extend(more, cache)
    np.testing.assert_allclose(y[0], whole[0, 3:103], atol=1e-12)
    np.testing.assert_allclose(y[1], whole[1, 150:250], atol=1e-12)


SETS: dict[str, Callable[[], Any]] = {
    "attention": lambda: nn.MultiHeadAttention(8, 2, dtype=wl.float64),
    "grouped": lambda: nn.MultiHeadAttention(8, 4, kv_heads=2, fused=True, dtype=wl.float64),
    "self-attention": lambda: nn.SelfAttention(8, 4, 6, dtype=wl.float64),
    "block": lambda: nn.TransformerBlock(8, 2, dtype=wl.float64),
    "post-norm": lambda: nn.TransformerBlock(8, 2, norm_first=False, dtype=wl.float64),
    "parallel": lambda: nn.TransformerBlock(8, 2, parallel=True, dtype=wl.float64),
    "stack": lambda: nn.TransformerStack([nn.TransformerBlock(8, 2, dtype=wl.float64) for _ in range(2)]),
}


@pytest.mark.book("10.33", "10.34", "A5-45", "A5-50", "A5-52", "S-14", name="wl.nn.assert_order_free")
@pytest.mark.parametrize("made", SETS.values(), ids=SETS.keys())
def test_without_positions_tokens_are_a_set(made: Any) -> None:
    layer, x = drawn(made()), normal(3, 6, 8)
    nn.assert_order_free(layer, x, tolerance=1e-13)
    nn.assert_order_free(layer.train(), x, tolerance=1e-13)
    nn.assert_order_free(layer, x, compiled=True)
    nn.assert_padding_ignored(layer, x)
    nn.assert_rows_alone(layer, x)
    # each token is indifferent to the order of the others
    others = np.asarray(layer(x[:, np.array([0, 5, 4, 3, 2, 1])]))
    np.testing.assert_allclose(others[:, 0], layer(x)[:, 0], atol=1e-13)


# --- the checks find what is wrong


class Wrong(nn.Module):
    """A causal mean, with a mistake."""

    def __init__(self, mistake: str) -> None:
        self.mistake = mistake

    def forward(self, x: Any, token_mask: Any = None, lengths: Any = None) -> Any:
        if lengths is not None:
            token_mask = nn.functional.length_mask(lengths, x.shape[1])
        real = wl.ones(x.shape[:2], dtype=wl.bool) if token_mask is None else token_mask
        if self.mistake != "padding":
            x = wl.where(real[..., None], x, 0.0)
        total, count = wl.cumulative_sum(x, axis=1), wl.cumulative_sum(real.astype(x.dtype), axis=1)[..., None]
        y = total / wl.maximum(count, 1.0)
        if self.mistake == "causal":
            y = y + wl.where(wl.arange(x.shape[1])[:, None] == 0, x[:, -1:], 0.0) * 1e-3
        return y + x.mean() if self.mistake == "rows" else y

    def new_cache(self, rows: int, capacity: int = 0) -> Any:
        return nn.StateCache(rows, total=wl.zeros((rows, 8), dtype=wl.float64))

    def extend(self, x: Any, cache: Any, lengths: Any = None) -> Any:
        count = x.shape[1] if lengths is None else lengths
        if lengths is not None:
            x = wl.where(nn.functional.length_mask(lengths, x.shape[1])[..., None], x, 0.0)
        sums = cache.total[:, None] + wl.cumulative_sum(x, axis=1)
        read = cache.lengths[:, None] + wl.arange(1, x.shape[1] + 1)
        cache.total = sums[:, -1]
        if self.mistake != "lengths":
            cache.advance(count)
        return sums / (read[..., None] + (self.mistake == "cache")), cache

    def step(self, x: Any, cache: Any) -> Any:
        y, cache = self.extend(x[:, None], cache)
        return y[:, 0], cache


def test_the_checks_pass_a_layer_of_ones_own() -> None:
    layer: Any = Wrong("none")
    nn.assert_sequence_layer(layer, normal(3, 6, 8))


@pytest.mark.parametrize(
    "mistake, check, message",
    [
        ("cache", nn.assert_reads_on, r"extend by \[6\] tokens differ by 0\.\d+, more than .*e-11, first of all at \("),
        ("lengths", nn.assert_reads_on, "assert_reads_on: .* differ"),
        ("cache", nn.assert_cache_reorders, r"a cache with the rows \[2, 1, 2\] differ"),
        ("padding", nn.assert_padding_ignored, "row 1 alone, and padded on the left differ by nan"),
        ("rows", nn.assert_rows_alone, "row 0 alone and in the batch differ by"),
        ("causal", nn.assert_causal, "results before token 1 change by 0.00.* with what comes later"),
        ("none", nn.assert_order_free, "tokens turned round after and before differ"),
    ],
)
def test_what_they_say(mistake: str, check: Any, message: str) -> None:
    with pytest.raises(AssertionError, match=message):
        check(Wrong(mistake), normal(3, 6, 8))


def test_their_own_bad_input() -> None:
    layer: Any = Wrong("none")
    with pytest.raises(wl.errors.ShapeError, match=r"sequences float64\[6, 8\]\.\s*try: \(batch, time, features\)"):
        nn.assert_causal(layer, normal(6, 8))
    with pytest.raises(wl.errors.InputError, match=r"pieces \[3, 4\] of 6 tokens"):
        nn.assert_reads_on(layer, normal(3, 6, 8), pieces=[3, 4])
    with pytest.raises(wl.errors.InputError, match=r"lengths \[7, 1, 1\] for 3 rows"):
        nn.assert_padding_ignored(layer, normal(3, 6, 8), lengths=[7, 1, 1])
