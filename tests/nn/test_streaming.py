"""Sequences without an end: what is read piece by piece, in constant memory and work, and what waits for what."""

from __future__ import annotations

import itertools
import math
import tracemalloc
from typing import Any

import numpy as np
import pytest

import wonderland as wl
from benchmarks.streaming import WAYS, diagonal, elman, token_times, training_times
from tests.nn.test_state_layer import Leaky
from wonderland import nn


def numbers(*shape: int, seed: int = 0) -> wl.Tensor:
    return wl.tensor(np.random.default_rng([seed, *shape]).normal(size=shape).astype(np.float32))


def layers() -> dict[str, Any]:
    blocks = [nn.MixingBlock(Leaky(4, 4), 4) for _ in range(2)]
    network = wl.models.EchoStateNetwork(4, 6, 3, leak=0.5, key=wl.random.key(0))
    return {"leaky": Leaky(4, 4), "reservoir": network, "stack": nn.SequenceStack(blocks, nn.LayerNorm(4))}


@pytest.mark.book("13.17", name=["wl.nn.StateLayer", "wl.nn.StateCache"])
@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("name", list(layers()))
def test_pieces_of_any_size_give_what_one_run_gives(name: str, compiled: bool) -> None:
    layer, n = layers()[name], 24
    x = numbers(2, n, 4)
    whole = np.asarray(layer(x))
    rng = np.random.default_rng(1)
    read = wl.jit(lambda layer, x, cache: layer.extend(x, cache)[0]) if compiled else None
    for edges in ([0, n], [0, 1, 2, 3, n], [0, *sorted(rng.choice(np.arange(1, n), 3, replace=False).tolist()), n]):
        cache, parts = layer.new_cache(2), []
        for a, b in itertools.pairwise(edges):
            part = x[:, a:b]
            y = layer.extend(part, cache)[0] if read is None else read(layer, part, cache)
            parts.append(np.asarray(y))
        np.testing.assert_allclose(np.concatenate(parts, axis=1), whole, rtol=1e-4, atol=1e-5)
        assert cache.lengths.tolist() == [n, n]


@pytest.mark.book("13.01", "13.17", "A5-07", name=["wl.nn.StateLayer", "benchmarks/streaming.py"])
def test_a_stream_is_read_in_constant_memory() -> None:
    """No unfolding: four thousand tokens, of which nothing but the state is kept."""
    layer = wl.models.EchoStateNetwork(1, 8, leak=0.3, key=wl.random.key(0))
    step = wl.jit(lambda layer, x, cache: layer.step(x, cache)[0])
    cache = layer.new_cache(1)
    size, x, sums = cache.nbytes, wl.ones((1, 1)), {}
    assert size == 8 * 4
    for _ in range(50):
        step(layer, x, cache)
    tracemalloc.start()
    for i in range(1, 4_001):
        y = step(layer, x, cache)
        if i in (1_000, 4_000):
            sums[i] = tracemalloc.get_traced_memory()[0]
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert cache.nbytes == size
    assert cache.lengths.tolist() == [4_050]
    assert sums[4_000] - sums[1_000] < 5_000  # bytes, for three thousand tokens
    assert most < sums[1_000] + 100_000
    # after a constant input for so long the state is where it was going
    again = step(layer, x, cache)
    np.testing.assert_allclose(y, again, atol=1e-6)


@pytest.mark.book("13.01", "A5-07", name=["wl.count", "benchmarks/streaming.py"])
def test_a_token_costs_a_recurrence_the_same_and_attention_more_and_more() -> None:
    e = 16
    recurrence, attention = Leaky(e, e), nn.MultiHeadAttention(e, 2, causal=True)
    work, memory = {}, {}
    for n in (256, 1024, 4096):
        for name, layer in (("recurrence", recurrence), ("attention", attention)):
            cache = layer.new_cache(1, n)
            step = lambda x, layer=layer, cache=cache: layer.step(x, cache)[0]
            work[name, n] = wl.count(step, wl.ones((1, e))).multiply_adds
            memory[name, n] = cache.nbytes
    assert work["recurrence", 256] == work["recurrence", 4096]
    assert memory["recurrence", 256] == memory["recurrence", 4096] == e * 4
    for a, b in ((256, 1024), (1024, 4096)):
        assert memory["attention", b] == 4 * memory["attention", a]
        assert (work["attention", b] - work["attention", a]) / (b - a) == pytest.approx(2 * e, rel=0.1)  # 2 products
    # attention over the whole is quadratic, a recurrence linear
    whole = {n: [wl.count(f, wl.ones((1, n, e))) for f in (recurrence, attention)] for n in (512, 1024)}
    assert whole[1024][0].multiply_adds == pytest.approx(2 * whole[512][0].multiply_adds, rel=0.01)
    assert whole[1024][1].multiply_adds > 3 * whole[512][1].multiply_adds
    # a convolution is constant too, and blind beyond its kernel
    reach = nn.sensitivity(nn.CausalConv1d(e, e, 3), numbers(8, e))
    assert (reach[7, :5] == 0).all()
    assert (reach[7, 5:] > 0).all()
    past = nn.sensitivity(recurrence, numbers(8, e))
    assert (past[7] > 0).all()
    found = token_times((32, 64), rounds=1)
    assert set(found) == {(name, n) for name in ("recurrence", "attention") for n in (32, 64)}
    assert min(found.values()) > 0


LOOPS = ["nonlinear recurrence", "linear, step by step"]


def depth(graph: Any) -> int:
    """The longest chain of operations that wait for each other; those of a loop count for every turn."""
    level: dict[int, int] = {}
    deepest = 0
    for equation in graph.equations:
        before = max((level.get(id(v), 0) for v in equation.inputs), default=0)
        body = equation.params.get("body") if isinstance(equation.params, dict) else None
        own = 1 if body is None else equation.params["length"] * depth(body)
        for out in equation.outputs:
            level[id(out)] = before + own
        deepest = max(deepest, before + own)
    return deepest


@pytest.mark.book("13.23", name=["benchmarks/streaming.py", "wl.nn.complexity"])
def test_a_nonlinear_recurrence_waits_n_times_and_a_scan_a_logarithm_of_it() -> None:
    weight = wl.random.orthogonal((64, 64), key=wl.random.key(0))
    depths, work = {}, {}
    for n in (64, 256):
        x = wl.ones((n, 8, 64))
        for name in LOOPS:
            depths[name, n] = depth(wl.make_graph(WAYS[name])(weight, x))
        work[n] = wl.count(elman, weight, x).multiply_adds
    assert work[256] == 4 * work[64]
    for name in LOOPS:  # linear in n
        assert depths[name, 256] == pytest.approx(4 * depths[name, 64], rel=0.05)
        assert depths[name, 256] >= 2 * 256
    levels = [nn.scan_trace(n).depth for n in (64, 256)]  # of a linear one, given enough processors
    assert levels[1] - levels[0] == 4  # two more halvings
    assert levels[1] < depths["nonlinear recurrence", 256] / 20
    assert nn.complexity("recurrent", 256, 64).sequential == 256
    x = numbers(20, 8, 64)
    np.testing.assert_allclose(diagonal(weight, x), diagonal(weight, x, "associative"), rtol=1e-4, atol=1e-5)
    found = training_times((16, 32), rounds=1, ways=LOOPS)
    assert min(found.values()) > 0
    assert math.isfinite(sum(found.values()))
