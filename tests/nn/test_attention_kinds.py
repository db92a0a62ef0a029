"""Scores of other kinds, memories, latents, chunks, rings, and the fused parallel block."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import wonderland as wl
from wonderland import nn
from wonderland.errors import InputError, ShapeError

F = nn.functional


def normal(*shape: int, seed: int = 0) -> Any:
    return wl.asarray(np.random.default_rng([seed, *shape]).normal(size=shape))


def close(a: Any, b: Any, tolerance: float = 1e-12) -> None:
    np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=0, atol=tolerance)


# --- scores


@pytest.mark.book("10.15", "10.16", name="wl.nn.Attention")
def test_queries_keys_and_values() -> None:
    layer = nn.Attention(6, key_size=3, value_size=5, dtype=wl.float64)
    x = normal(7, 6)
    w = {
        name: np.asarray(getattr(layer, name).weight).T for name in ("query", "key", "value")
    }  # (k, e), (k, e), (v, e)
    q, k, v = (np.array([w[name] @ token for token in np.asarray(x)]) for name in ("query", "key", "value"))
    assert len(q) + len(k) + len(v) == 3 * 7
    close(layer(x), F.scaled_dot_product_attention(q, k, v))
    assert layer(x).shape == (7, 5)
    close(layer(x), nn.SelfAttention.forward(same_weights(layer), x))
    with pytest.raises(ShapeError, match="a query has 3 features and a key 4"):
        F.scaled_dot_product_attention(q, normal(7, 4), v)


def same_weights(layer: Any) -> Any:
    other = nn.SelfAttention(6, 3, 5, dtype=wl.float64)
    other.load_state_dict(layer.state_dict())
    return other


@pytest.mark.book("10.11", "A5-38", name=("wl.nn.Attention", "wl.nn.AdditiveScore"))
def test_scores_of_all_kinds() -> None:
    x = normal(2, 5, 4)
    kernel = lambda q, k: -((q[..., :, None, :] - k[..., None, :, :]) ** 2).sum(axis=-1)
    for score in ("dot", "scaled", "additive", kernel):
        layer = nn.Attention(4, 3, score=score, dtype=wl.float64)
        q, k, v = (np.asarray(part(x)) for part in (layer.query, layer.key, layer.value))
        products = np.einsum("btd,bsd->bts", q, k)
        if score == "additive":
            a: Any = layer.score
            hidden = np.tanh(np.asarray(a.query(q))[:, :, None] + np.asarray(a.key(k))[:, None])
            scores = hidden @ np.asarray(a.output.weight)[:, 0]
        else:
            wanted = {"dot": products, "scaled": products / np.sqrt(3), kernel: kernel(q, k)}
            scores = wanted[score]
        weights = np.asarray(wl.softmax(wl.asarray(scores), axis=-1))
        out, found = layer(x, return_weights=True)
        close(found, weights)
        close(out, weights @ v)
        close(layer(x), out)
        nn.assert_order_free(layer, x)
        nn.assert_padding_ignored(layer, x)
    # without projections: the entries of X X'
    tokens = normal(4, 3)
    close(F.attention_with_weights(tokens, tokens, tokens, scale=1.0, mode="linear")[1], tokens @ tokens.mT)


@pytest.mark.book("A5-36", name="wl.nn.Attention")
def test_any_number_of_inputs_in_any_order() -> None:
    layer, q = nn.Attention(4, 3, 5, dtype=wl.float64), normal(1, 4)
    for n in (1, 6, 30):
        z = normal(n, 4)
        assert layer(q, z).shape == (1, 5)
        close(layer(q, z), layer(q, z[np.random.default_rng(0).permutation(n)]))


@pytest.mark.book("A5-39", name="wl.nn.Attention")
def test_soft_hard_and_linear() -> None:
    x = normal(6, 4)
    for mode in ("soft", "hard", "linear"):
        layer = nn.Attention(4, mode=mode, dtype=wl.float64)
        out, weights = (np.asarray(y) for y in layer(x, return_weights=True))
        scores = np.asarray(layer.query(x)) @ np.asarray(layer.key(x)).T / 2
        if mode == "hard":
            close(weights, np.eye(6)[scores.argmax(axis=1)])
            close(out, np.asarray(layer.value(x))[scores.argmax(axis=1)])
        elif mode == "linear":
            close(weights, scores)
            assert np.abs(weights.sum(axis=1) - 1).max() > 1e-3
        else:
            close(weights.sum(axis=1), np.ones(6))


@pytest.mark.book("A5-40", "A5-41", name="wl.nn.functional.attention_with_weights")
@pytest.mark.parametrize(
    "query, scores, weights",
    [
        ((5, 0, 0), (0.5, 25, -20, -1, 25), (0, 0.5, 0, 0, 0.5)),
        ((-5, 0, 0), (-0.5, -25, 20, 1, -25), (0, 0, 1, 0, 0)),
        ((5, 4, 0), (0.5, 41, -20, -1, 13), (0, 1, 0, 0, 0)),
        ((0, 0, 0), (0, 0, 0, 0, 0), (0.2, 0.2, 0.2, 0.2, 0.2)),
    ],
)
def test_the_dog_ate_the_cake(query: Any, scores: Any, weights: Any) -> None:
    keys = np.array([[0.1, 0, 2], [5, 4, 3], [-4, 0, -3], [-0.2, 0, 1], [5, -3, -4]])
    q = np.array([query], float)
    close(F.attention_with_weights(q, keys, keys, scale=1.0, mode="linear")[1], [scores])
    close(F.attention_with_weights(q, keys, keys, scale=1.0)[1], [weights], 1e-7)


@pytest.mark.book("10.27", "10.28", name=("wl.nn.Attention", "wl.nn.SoftDictionary"))
def test_hard_attention() -> None:
    keys, values = wl.eye(4, dtype=wl.float64), normal(4, 3)
    found, _ = F.attention_with_weights(keys, keys, values, scale=1.0, mode="hard")
    np.testing.assert_array_equal(found, values)
    close(F.scaled_dot_product_attention(keys, keys, values, scale=1e3), values, 1e-6)
    layer, x = nn.Attention(4, mode="hard", dtype=wl.float64), normal(5, 4)
    ways: list[Any] = [wl.grad, lambda f: wl.jit(wl.grad(f))]
    for run in ways:
        grads = run(lambda layer, x: (layer(x) ** 2).sum())(layer, x)
        np.testing.assert_array_equal(grads["query.weight"], np.zeros((4, 4)))
        np.testing.assert_array_equal(grads["key.weight"], np.zeros((4, 4)))
        assert np.abs(np.asarray(grads["value.weight"])).max() > 1e-3


@pytest.mark.book("10.26", "A5-37", name="wl.nn.SoftDictionary")
def test_dictionaries() -> None:
    d = {"Alice": 2}
    assert d["Alice"] == 2
    with pytest.raises(KeyError, match="Alce"):
        d["Alce"]
    words = ["The", "dog", "ate", "the", "cake"]
    soft = nn.SoftDictionary(1000.0 * np.eye(5), np.eye(5))
    assert words[int(np.argmax(np.asarray(soft[np.eye(5)[2]])))] == "ate"
    np.testing.assert_array_equal(soft[np.eye(5)], np.eye(5))
    near = nn.SoftDictionary(np.eye(2), np.array([[2.0], [7.0]]), temperature=0)
    assert near[[0.9, 0.2]].item() == 2.0  # "Alce" finds Alice
    warm = nn.SoftDictionary(np.eye(2), np.array([2.0, 7.0]), temperature=1e6)
    assert float(warm[np.array([1.0, 0.0])]) == pytest.approx(4.5, abs=1e-3)
    assert warm.weights(np.ones((3, 2))).shape == (3, 2)
    assert len(warm) == 2
    with pytest.raises(ShapeError, match=r"keys \(2, 2\) and values \(3,\)"):
        nn.SoftDictionary(np.eye(2), np.ones(3))
    with pytest.raises(InputError, match="temperature=-1"):
        nn.SoftDictionary(np.eye(2), np.ones(2), -1)
    with pytest.raises(ShapeError, match=r"a query of shape \(3,\)"):
        warm[np.ones(3)]


# --- memories and latents


@pytest.mark.book("11.14", "11.15", name="wl.nn.NeuralMemory")
def test_neural_memory() -> None:
    layer, x = nn.NeuralMemory(6, 4, 10, 5, dtype=wl.float64), normal(7, 6)
    assert layer.num_parameters() == 6 * 4 + 4 * 10 + 10 * 5
    assert layer.query is not None
    scores = np.asarray(x) @ np.asarray(layer.query.weight) @ np.asarray(layer.keys) / 2
    close(layer(x), np.asarray(wl.softmax(wl.asarray(scores))) @ np.asarray(layer.values))
    cost = lambda n: wl.count(layer, wl.ones((n, 6), dtype=wl.float64)).multiply_adds
    assert cost(20) == 2 * cost(10) > 20 * layer.num_parameters()  # the softmax is counted, too
    mlp = nn.FeedForward(6, hidden=10, activation="relu", dtype=wl.float64)
    same = nn.NeuralMemory(6, 6, 10, 6, normalize="relu", dtype=wl.float64)
    same.keys.assign(mlp.up.weight)
    same.values.assign(mlp.down.weight)
    close(same(x), mlp(x))
    assert same.num_parameters() == mlp.num_parameters()


@pytest.mark.book("11.16", name="wl.nn.top_activations")
def test_top_activations() -> None:
    memory, tokens = nn.NeuralMemory(4, 4, 6, 4, dtype=wl.float64), normal(20, 7, 4)
    whole = np.asarray(memory.scores(tokens))  # (20, 7, 6)
    batches = (tokens[i : i + 3] for i in range(0, 20, 3))
    for found in (
        nn.top_activations(memory.scores, tokens, 5, batch_size=6),
        nn.top_activations(memory.scores, batches, 5),
    ):
        for unit in range(6):
            close(found.values[unit], np.sort(whole[..., unit].ravel())[::-1][:5])
            places = tuple(found.places[unit].T)
            close(whole[..., unit][places], found.values[unit])
    with pytest.raises(InputError, match="140 inputs, and k=141"):
        nn.top_activations(memory.scores, tokens, 141)


@pytest.mark.book("11.25", name="wl.nn.LatentAttention")
def test_latents() -> None:
    x = normal(2, 9, 8)
    asking, asked = (nn.LatentAttention(3, 8, 2, queries=q, dtype=wl.float64) for q in ("latents", "inputs"))
    assert (asking(x).shape, asked(x).shape) == ((2, 3, 8), (2, 9, 8))
    close(asking(x)[0], asking.attention(asking.latents, x[0]))
    close(asked(x)[0], asked.attention(x[0], asked.latents))
    close(asking(x), asking(x[:, np.random.default_rng(0).permutation(9)]))  # inputs are a set
    spoiled = np.where((np.arange(9) < np.array([[9], [4]]))[..., None], np.asarray(x), np.nan)
    close(asking(spoiled, lengths=[9, 4])[1], asking(x[1:, :4])[0])
    for layer in (asking, asked):
        cost = [wl.count(layer, wl.ones((n, 8), dtype=wl.float64)).multiply_adds for n in (100, 200, 300)]
        assert cost[2] - cost[1] == cost[1] - cost[0]  # linear
        assert layer.num_parameters() == 3 * 8 + 4 * (64 + 8)


# --- by chunks


@pytest.mark.book("11.28", "11.29", name="wl.nn.functional.online_attention")
@pytest.mark.parametrize("chunk", [1, 3, 5, 7, 100])
@pytest.mark.parametrize("stable", [False, True])
@pytest.mark.parametrize("causal", [False, True])
def test_chunks(chunk: int, stable: bool, causal: bool) -> None:
    q, k, v = normal(2, 6, 4), normal(2, 7, 4), normal(2, 7, 3)
    f = lambda q, k, v: F.online_attention(q, k, v, chunk, causal=causal, stable=stable)
    whole = lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=causal)
    close(f(q, k, v), whole(q, k, v), 1e-15 * 8)
    found, wanted = (wl.grad(lambda *a, g=g: (g(*a) ** 2).sum(), (0, 1, 2))(q, k, v) for g in (f, whole))
    for a, b in zip(found, wanted, strict=True):
        close(a, b)


@pytest.mark.book("11.30", name="wl.nn.functional.online_attention")
def test_the_largest_score_is_needed() -> None:
    q, k, v = 1000 * normal(5, 4), normal(7, 4), normal(7, 3)
    with np.errstate(over="ignore", invalid="ignore"):
        assert np.isnan(np.asarray(F.online_attention(q, k, v, 3, stable=False))).any()
    close(F.online_attention(q, k, v, 3), F.scaled_dot_product_attention(q, k, v))


@pytest.mark.book("11.32", name="wl.nn.functional.ring_attention")
@pytest.mark.parametrize("causal", [False, True])
def test_a_ring_of_workers(causal: bool) -> None:
    q, k, v = normal(2, 9, 4), normal(2, 9, 4, seed=1), normal(2, 9, 3)
    cut = lambda x: [x[:, :2], x[:, 2:5], x[:, 5:]]
    found = F.ring_attention(cut(q), cut(k), cut(v), causal=causal)
    close(wl.concat(found, axis=1), F.scaled_dot_product_attention(q, k, v, is_causal=causal))
    with pytest.raises(InputError, match="3 queries, 2 keys"):
        F.ring_attention(cut(q), cut(k)[:2], cut(v))


@pytest.mark.book("11.27", "11.31", name=("wl.nn.functional.scaled_dot_product_attention", "wl.saved"))
def test_gradients_by_chunks_keep_little() -> None:
    plain = lambda q, k, v: wl.softmax(q @ k.mT * 0.5) @ v
    native = lambda q, k, v: F.scaled_dot_product_attention(q, k, v)
    args = [normal(40, 4, seed=i) for i in range(3)]
    found, wanted = (wl.grad(lambda *a, g=g: (g(*a) ** 2).sum(), (0, 1, 2))(*args) for g in (native, plain))
    for a, b in zip(found, wanted, strict=True):
        close(a, b, 1e-10)
    kept = lambda f, n: wl.saved(lambda *a: f(*a).sum(), *[normal(n, 4, seed=i) for i in range(3)]).bytes
    assert kept(native, 128) == 2 * kept(native, 64)
    assert kept(plain, 128) > 3.5 * kept(plain, 64)


# --- the parallel block


@pytest.mark.book("11.57", name="wl.nn.TransformerBlock")
def test_parallel_blocks() -> None:
    x = normal(2, 5, 8)
    block = nn.TransformerBlock(8, 2, parallel=True, dtype=wl.float64)
    h: Any = block.norm1(x)
    close(block(x), x + block.attention(h) + block.feed_forward(h))
    one_after_another = nn.TransformerBlock(8, 2, dtype=wl.float64)
    state = block.state_dict()
    one_after_another.load_state_dict({**one_after_another.state_dict(), **state})
    assert np.abs(np.asarray(one_after_another(x)) - np.asarray(block(x))).max() > 1e-4
    mlp: Any = block.feed_forward
    for cell in (mlp.down.weight, mlp.down.bias):
        cell.assign(wl.zeros(cell.shape, dtype=wl.float64))
    close(block(x), x + block.attention(h))


@pytest.mark.book("11.58", name="wl.nn.ParallelBlock")
@pytest.mark.parametrize(
    "options", [{}, {"bias": False}, {"causal": True, "kv_heads": 1, "positions": nn.Rotary(4)}], ids=str
)
def test_fused_is_not_fused(options: Any) -> None:
    block = nn.TransformerBlock(8, 2, parallel=True, dtype=wl.float64, **options)
    fused, x = nn.ParallelBlock.from_block(block), normal(3, 6, 8)
    close(fused(x), block(x), 1e-12)
    close(fused(x, lengths=[6, 4, 1])[1, :4], block(x, lengths=[6, 4, 1])[1, :4], 1e-12)
    graph: Any = wl.make_graph
    products = lambda layer: str(graph(lambda x: layer(x))(x)).count(" = matmul ")
    assert products(fused) == 2
    assert products(block) == 6
    nn.assert_padding_ignored(fused, x)
    if options.get("causal"):
        nn.assert_sequence_layer(fused, x, threads=False)  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"parallel=True\) with MultiHeadAttention"):
        nn.ParallelBlock.from_block(nn.TransformerBlock(8, 2))
