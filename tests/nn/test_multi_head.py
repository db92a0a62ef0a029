"""Multi-head attention against loops over heads and tokens, its masks, its sizes, and what it says to bad input."""

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


def softmax(x: Any) -> Any:
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def close(a: Any, b: Any, tolerance: float = 1e-12) -> None:
    np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=0, atol=tolerance)


def by_loops(layer: Any, x: Any, z: Any | None = None) -> tuple[Any, Any]:
    """Heads one after another, tokens one after another; and the weights."""
    x = np.asarray(x)
    z = x if z is None else np.asarray(z)
    k, v = layer.key_size, layer.value_size
    wq, wk, wv, wo = (np.asarray(part.weight) for part in (layer.query, layer.key, layer.value, layer.output))
    outs, maps = [], []
    for h in range(layer.num_heads):
        q_h, k_h, v_h = wq[:, h * k : (h + 1) * k], wk[:, h * k : (h + 1) * k], wv[:, h * v : (h + 1) * v]
        rows, weights = [], []
        for token in x:
            scores = np.array([(token @ q_h) @ (other @ k_h) for other in z]) / np.sqrt(k)
            weights.append(softmax(scores))
            rows.append(sum(a * (other @ v_h) for a, other in zip(weights[-1], z, strict=True)))
        outs.append(np.array(rows))
        maps.append(np.array(weights))
    return np.concatenate(outs, axis=1) @ wo, np.array(maps)


@pytest.mark.book("10.21", "10.23", "10.16", "10.14", "10.13", "A5-48", name="wl.nn.MultiHeadAttention")
def test_heads_are_those_of_a_loop() -> None:
    layer = nn.MultiHeadAttention(6, 3, key_size=4, value_size=5, out_features=7, bias=False, dtype=wl.float64)
    x = normal(8, 6)
    out, weights = layer(x, return_weights=True)
    wanted, maps = by_loops(layer, x)
    close(out, wanted)
    close(layer(x[None])[0], wanted)
    close(weights, maps)
    close(np.asarray(weights).sum(axis=-1), np.ones((3, 8)))
    # heads that are only reshaped, without the transpose, are not those of the loop
    q, k, v = (np.asarray(part(x)).reshape(3, 8, -1) for part in (layer.query, layer.key, layer.value))
    wrong = np.asarray(F.scaled_dot_product_attention(q, k, v)).reshape(8, -1) @ np.asarray(layer.output.weight)
    assert np.abs(wrong - wanted).max() > 1e-3
    # and the other way round (b, n, h k) -> (b, h, n, k), which is what `rearrange` writes down
    turned = np.swapaxes(np.asarray(layer.query(x)).reshape(8, 3, 4), 0, 1)
    close(turned[1], np.asarray(x) @ np.asarray(layer.query.weight)[:, 4:8])
    close(wl.rearrange(layer.query(x[None]), "b n (h d) -> b h n d", h=3)[0], turned)


@pytest.mark.book("10.14", name="wl.softmax")
def test_one_score_more_is_the_others_less() -> None:
    logits = normal(6)
    p = np.asarray(wl.softmax(logits))
    found = np.asarray(wl.jacobian(wl.softmax)(logits))
    close(found, np.diag(p) - np.outer(p, p), 1e-15)
    assert (found[~np.eye(6, dtype=bool)] < 0).all()


@pytest.mark.book("10.13", name="wl.nn.SelfAttention")
def test_results_are_means_of_values() -> None:
    shifted = normal(5)
    close(wl.softmax(shifted + 100.0), wl.softmax(shifted))
    assert np.isfinite(np.asarray(wl.softmax(wl.tensor([1e4, -1e4, 9999.0])))).all()
    x = normal(7, 1)  # on a line the convex hull is an interval
    h = np.asarray(F.scaled_dot_product_attention(x, x, x))
    assert np.asarray(x).min() <= h.min() <= h.max() <= np.asarray(x).max()


@pytest.mark.book("10.12", "A5-41", name="wl.nn.functional.scaled_dot_product_attention")
def test_products_of_long_vectors_vary_more() -> None:
    rng = np.random.default_rng(0)
    a, b = (2.0 * rng.normal(size=(200_000, 64)) for _ in range(2))
    products = (a * b).sum(axis=1)
    assert products.var() == pytest.approx(64 * 2**4, rel=0.02)  # e sigma^4, not sigma^4
    assert (products / 8).var() == pytest.approx(2**4, rel=0.02)
    unit = (a[:, :16] * b[:, :16]).sum(axis=1) / 4
    assert unit.var() == pytest.approx(16, rel=0.02)
    assert (unit / 4).var() == pytest.approx(1, rel=0.02)


@pytest.mark.book("A5-42", name="wl.nn.SelfAttention")
def test_without_the_divisor_gradients_vanish() -> None:
    q, k, v = normal(1, 512), normal(8, 512), normal(8, 3)

    def slope(scale: float | None) -> float:
        of_q = wl.grad(lambda q: F.scaled_dot_product_attention(q, k, v, scale=scale).sum())(q)
        return float(np.linalg.norm(np.asarray(of_q))) / (1.0 if scale else 1 / np.sqrt(512))

    assert slope(None) > 100 * slope(1.0)  # by the score, whose own slope is q's times the scale


@pytest.mark.book("10.17", name="wl.nn.MultiHeadAttention")
def test_fused_projections_are_three_side_by_side() -> None:
    options: dict[str, Any] = {"key_size": 3, "value_size": 5, "bias": True, "dtype": wl.float64}
    apart, fused = nn.MultiHeadAttention(6, 2, **options), nn.MultiHeadAttention(6, 2, fused=True, **options)
    assert fused.qkv.weight.shape == (6, 2 * (2 * 3 + 5))
    parts: Any = (apart.query, apart.key, apart.value)
    fused.qkv.weight = wl.concat([part.weight for part in parts], axis=1)
    fused.qkv.bias = wl.concat([part.bias for part in parts])
    fused.output = apart.output
    x, z = normal(2, 4, 6), normal(2, 5, 6, seed=1)
    close(fused(x), apart(x))
    close(fused(x, z), apart(x, z))
    loss = lambda layer, x: (layer(x) ** 2).sum()
    one, three = wl.grad(loss)(fused, x), wl.grad(loss)(apart, x)
    close(one["qkv.weight"], wl.concat([three[f"{p}.weight"] for p in ("query", "key", "value")], axis=1), 1e-11)
    # parts of unequal sizes; the adjoint of cutting is putting side by side
    a, b, c = wl.split(x, [1, 4], axis=-1)
    assert [part.shape[-1] for part in (a, b, c)] == [1, 3, 2]
    _, pull = wl.vjp(lambda x: tuple(wl.split(x, [1, 4], axis=-1)), x)
    close(pull((a, b, c))[0], x)


@pytest.mark.book("10.18", "10.19", "10.22", "10.20", "A5-44", "A5-47", name="wl.nn.SelfAttention")
def test_self_attention_is_one_head() -> None:
    layer = nn.SelfAttention(8, key_size=4, value_size=6, dtype=wl.float64)
    assert layer.num_parameters() == 2 * 4 * 8 + 6 * 8 == 112
    x = normal(10, 8)
    wq, wk, wv = (np.asarray(p.weight) for p in (layer.query, layer.key, layer.value))
    scores = np.asarray(x) @ wq @ wk.T @ np.asarray(x).T / 2.0
    assert scores.shape == (10, 10)
    close(layer(x), softmax(scores) @ np.asarray(x) @ wv)
    loop = [sum(a * (t @ wv) for a, t in zip(softmax(row), np.asarray(x), strict=True)) for row in scores]
    close(layer(x), loop)
    _, weights = layer(x, return_weights=True)
    close(np.asarray(weights)[0].sum(axis=1), np.ones(10))
    assert np.abs(softmax(scores.T).T.sum(axis=1) - 1).max() > 1e-3  # the softmax of columns
    whole = nn.MultiHeadAttention(8, 1, 4, 6, 6, bias=False, dtype=wl.float64)
    whole.load_state_dict({**layer.state_dict(), "output.weight": wl.eye(6, dtype=wl.float64)})
    np.testing.assert_array_equal(np.asarray(whole(x)), np.asarray(layer(x)))  # h = 1 and W_o = I
    biased = nn.SelfAttention(8, 4, 6, bias=True)
    assert biased.num_parameters() == 112 + 4 + 4 + 6
    assert biased(wl.ones((3, 12, 8))).shape == (3, 12, 6)
    assert biased(wl.ones((3, 2, 8))).shape == (3, 2, 6)


@pytest.mark.book("10.21", "A5-48", "11.59", name="wl.nn.MultiHeadAttention")
def test_numbers_of_parameters() -> None:
    sizes = lambda **options: nn.MultiHeadAttention(512, 8, bias=False, **options).num_parameters()
    assert sizes() == 8 * (2 * 64 * 512 + 64 * 512) + 8 * 64 * 512 == 4 * 512**2 == 1_048_576
    assert sizes(kv_heads=1) == 8 * 64 * 512 + 2 * 64 * 512 + 8 * 64 * 512 == 589_824
    assert nn.MultiHeadAttention(6, 3, 4, 5, 7, bias=False).num_parameters() == 3 * (2 * 4 * 6 + 5 * 6) + 3 * 5 * 7


@pytest.mark.book("11.59", "11.35", name="wl.nn.MultiHeadAttention")
def test_shared_keys_and_values() -> None:
    shared = nn.MultiHeadAttention(8, 4, kv_heads=1, dtype=wl.float64)
    tied = nn.MultiHeadAttention(8, 4, dtype=wl.float64)
    state = shared.state_dict()
    for path in ("key.weight", "key.bias", "value.weight", "value.bias"):
        state[path] = wl.concat([state[path]] * 4, axis=-1)
    tied.load_state_dict(state)
    x = normal(2, 5, 8)
    close(shared(x), tied(x))
    assert tied.new_cache(2, 100).nbytes == 4 * shared.new_cache(2, 100).nbytes


@pytest.mark.book("11.35", name="wl.nn.KeyValueCache")
def test_memory_of_the_cache() -> None:
    cache = nn.LayerCaches(nn.KeyValueCache(1, 12, 64, 64, 1024) for _ in range(12))
    assert cache.nbytes == 2 * 1024 * 12 * 12 * 64 * 4 == 75_497_472
    layer = nn.MultiHeadAttention(8, 2, causal=True)
    assert layer.new_cache(1, 256).nbytes == 2 * layer.new_cache(1, 128).nbytes


@pytest.mark.book("10.24", name=("wl.nn.MultiHeadAttention.contributions", "wl.nn.without_heads"))
@pytest.mark.parametrize("fused", [False, True])
@pytest.mark.parametrize("kv_heads", [4, 2])
def test_the_result_is_a_sum_over_heads(fused: bool, kv_heads: int) -> None:
    layer = nn.MultiHeadAttention(8, 4, kv_heads=kv_heads, fused=fused, dtype=wl.float64)
    x = normal(2, 5, 8)
    terms, out = layer.contributions(x), np.asarray(layer(x))
    close(np.asarray(terms).sum(axis=1) + np.asarray(layer.output.bias), out, 1e-14)
    for head in range(4):
        with nn.without_heads(layer, [head]):
            close(out - np.asarray(layer(x)), terms[:, head], 1e-14)
    np.testing.assert_array_equal(layer(x), out)
    plain = nn.MultiHeadAttention(8, 4, kv_heads=kv_heads, bias=False, dtype=wl.float64)
    _, weights = plain(x, return_weights=True)
    written = [np.asarray(weights)[:, h] @ np.asarray(x) @ np.asarray(plain.ov_matrices())[h] for h in range(4)]
    close(sum(written), plain(x), 1e-14)
    scores = np.asarray(x) @ np.asarray(plain.qk_matrices())[0] @ np.swapaxes(np.asarray(x), 1, 2) / np.sqrt(2)
    close(softmax(scores), np.asarray(weights)[:, 0], 1e-14)


# --- masks


@pytest.mark.book("11.04", "11.05", "11.09", name="wl.nn.functional.causal_mask")
def test_the_causal_mask() -> None:
    np.testing.assert_array_equal(F.causal_mask(5), np.tri(5, dtype=bool))
    zeros = wl.zeros((3, 4))
    _, weights = F.attention_with_weights(zeros, zeros, wl.eye(3), F.causal_mask(3))
    close(weights, [[1, 0, 0], [0.5, 0.5, 0], [1 / 3, 1 / 3, 1 / 3]], 1e-7)
    # as printed: a product with 0 and -inf, and the wrong triangle
    scores = -np.abs(np.random.default_rng(0).normal(size=(5, 5)))  # times -inf they are inf
    with np.errstate(invalid="ignore"):
        printed = softmax(np.where(np.tri(5, dtype=bool), 0.0, -np.inf) * scores)
    assert np.isnan(printed).sum() == 20  # all rows but the last
    past_hidden = np.where(np.tri(5, k=-1, dtype=bool), -np.inf, 0.0)  # -inf if i > j
    first, *_, last = softmax(past_hidden)
    close(first, np.full(5, 0.2))
    close(last, [0, 0, 0, 0, 1])
    layer = nn.MultiHeadAttention(4, 2, causal=True, dtype=wl.float64)
    by_mask = nn.MultiHeadAttention(4, 2, dtype=wl.float64)
    by_mask.load_state_dict(layer.state_dict())
    x = normal(2, 5, 4)
    close(layer(x), by_mask(x, attn_mask=F.causal_mask(5)))
    close(layer(x), by_mask(x, attn_mask=np.where(np.tri(5, dtype=bool), 0.0, -np.inf)))
    stack = nn.TransformerStack([nn.TransformerBlock(4, 2, causal=True, dtype=wl.float64) for _ in range(2)])
    assert nn.is_causal(lambda x: stack(x[None])[0], x[0])


@pytest.mark.book("11.06", "11.07", name="wl.nn.functional.attention_with_weights")
def test_masks_that_do_not_mask() -> None:
    x = normal(4, 3)
    seen = np.tri(4, dtype=bool)
    after = lambda x: (wl.softmax(x @ x.mT, axis=-1) * seen) @ x  # masked after the softmax
    assert (np.asarray(wl.softmax(x @ x.mT, axis=-1) * seen).sum(axis=1)[:-1] < 1).all()
    assert not nn.is_causal(after, x)
    right = lambda x: F.attention_with_weights(x, x, x, seen)[0]
    close(np.asarray(F.attention_with_weights(x, x, x, seen)[1]).sum(axis=1), np.ones(4))
    assert nn.is_causal(right, x)
    close(wl.softmax(wl.tensor([1.0, 0.0, 0.0])), [0.576, 0.212, 0.212], 1e-3)  # exp(0) is 1


@pytest.mark.book("11.08", "A5-60", name="wl.nn.functional.attention_from_scores")
def test_hidden_scores_and_rows_without_any() -> None:
    scores, mask = wl.tensor([[3.0, 5.0, -1.0, 4.0, 3.0]]), [[True, True, True, False, False]]
    _, weights = F.attention_from_scores(scores, wl.eye(5), mask)
    close(weights, [[0.119, 0.879, 0.002, 0, 0]], 1e-3)
    assert (np.asarray(weights)[0, 3:] == 0).all()
    for dtype in (wl.float16, wl.float32, wl.float64):  # no number that a type could not hold
        x = wl.ones((3, 2), dtype=dtype)
        empty = np.array([[True, True, True], [False, False, False], [True, False, False]])
        f = lambda x, empty=empty: F.scaled_dot_product_attention(x, x, x, empty)
        np.testing.assert_array_equal(np.asarray(f(x), np.float64)[1], [0, 0])
        assert np.isfinite(np.asarray(wl.grad(lambda x, f=f: f(x).sum())(x), np.float64)).all()
    layer = nn.MultiHeadAttention(4, 2, bias=False)
    np.testing.assert_array_equal(layer(wl.ones((2, 3, 4)), lengths=[3, 0])[1], np.zeros((3, 4)))


@pytest.mark.book("A5-62", "11.62", name=("wl.nn.functional.band_mask", "wl.nn.functional.random_mask"))
def test_sparse_patterns_have_few_pairs() -> None:
    count = lambda mask: int(np.asarray(mask).sum())
    n, r = 64, 4
    assert count(F.band_mask(n, r, causal=True)) == r * n - r * (r - 1) // 2
    assert count(F.band_mask(n, r)) == (2 * r - 1) * n - r * (r - 1)
    assert count(F.dilated_mask(n, r, 2, causal=True)) == r * n - 2 * r * (r - 1) // 2
    assert count(F.random_mask(n, r, key=wl.random.key(0))) == r * n
    assert count(F.block_mask(n, r)) == r * n
    assert count(F.global_mask(n, [0, 5])) == 2 * 2 * n - 4
    assert count(F.causal_mask(n)) == n * (n + 1) // 2


# --- other sequences


@pytest.mark.book("11.11", "11.12", "11.13", "A5-63", name="wl.nn.MultiHeadAttention")
def test_cross_attention() -> None:
    layer = nn.MultiHeadAttention(6, 2, key_size=3, value_size=4, bias=False, dtype=wl.float64)
    x, z = normal(5, 6), normal(7, 6, seed=1)
    out, weights = layer(x, z, return_weights=True)
    assert weights.shape == (2, 5, 7)
    close(out, by_loops(layer, x, z)[0])
    close(layer(x, x), layer(x))
    close(layer(x, x, x), layer(x))
    close(layer(x, z, z), out)
    order = np.array([3, 0, 6, 1, 5, 2, 4])
    close(layer(x, z[order]), out, 1e-14)
    close(layer(x[np.array([4, 2, 0, 1, 3])], z), np.asarray(out)[[4, 2, 0, 1, 3]], 1e-14)
    both = wl.concat([x, z])  # all see only the columns of z; the first rows are kept
    np.testing.assert_allclose(layer(both, attn_mask=np.arange(12)[None, :] >= 5)[:5], out, atol=1e-15)
    wide = nn.MultiHeadAttention(6, 2, key_dim=3, value_dim=9)
    assert wide(wl.ones((5, 6)), wl.ones((7, 3)), wl.ones((7, 9))).shape == (5, 6)


@pytest.mark.book("A5-46", name="wl.nn.SelfAttention")
def test_a_word_means_what_its_neighbours_say() -> None:
    layer, (river, money, bank) = nn.SelfAttention(4, dtype=wl.float64), normal(3, 4)
    first, second = (layer(wl.stack([context, bank]))[1] for context in (river, money))
    assert np.abs(np.asarray(first) - np.asarray(second)).max() > 1e-3


@pytest.mark.book("10.49", name="wl.nn.MultiHeadAttention")
def test_attention_mixes_tokens() -> None:
    assert nn.dependence(nn.MultiHeadAttention(4, 2, dtype=wl.float64), normal(5, 4)).all()
    np.testing.assert_array_equal(nn.dependence(nn.FeedForward(4, dtype=wl.float64), normal(5, 4)), np.eye(5))


KEYS: Any = wl.shape.Float["n k"]  # type: ignore[valid-type]  # axes, for the check at run time
VALUES: Any = wl.shape.Float["n v"]  # type: ignore[valid-type]


@pytest.mark.book("11.22", name="wl.shape.checked")
def test_the_core_with_named_axes() -> None:
    q, k, v = normal(5, 4), normal(5, 4, seed=1), normal(5, 3)
    close(wl.softmax(q @ k.mT) @ v, F.scaled_dot_product_attention(q, k, v, scale=1.0))
    with pytest.raises(ShapeError, match="4 features and a key 5"):
        F.scaled_dot_product_attention(q, normal(5, 5), v)

    @wl.shape.checked
    def self_attention(Q: KEYS, K: KEYS, V: VALUES) -> VALUES:
        return wl.softmax(Q @ K.mT) @ V

    close(self_attention(q, k, v), F.scaled_dot_product_attention(q, k, v, scale=1.0))
    with pytest.raises(ShapeError, match="k is 5 here, but 4 before"):
        self_attention(q, normal(5, 5), v)


@pytest.mark.book("11.23", "A5-49", name=("wl.nn.complexity", "wl.count"))
def test_costs_by_the_length() -> None:
    pairs = lambda n: wl.count(F.scaled_dot_product_attention, *[wl.ShapeDtype((n, 16), wl.float32)] * 3).multiply_adds
    assert pairs(128) == 4 * pairs(64) == 2 * 128**2 * 16
    layer = nn.MultiHeadAttention(16, 2, bias=False)
    cost = lambda n: wl.count(layer, wl.ones((n, 16))).multiply_adds
    projections = lambda n: 4 * n * 16 * 16
    assert cost(128) - projections(128) == 4 * (cost(64) - projections(64))
    convolution = nn.Conv1d(4, 4, 3, padding=1, bias=False)
    for n in (64, 128):
        assert wl.count(convolution, wl.ones((n, 4))).multiply_adds == 3 * n * 4 * 4
    n, d = 1024, 64
    assert nn.complexity("self-attention", n, d) == (n * n * d, 1, 1)
    assert nn.complexity("recurrent", n, d) == (n * d * d, n, n)
    assert nn.complexity("convolution", n, d, kernel=2) == (2 * n * d * d, 1, 10)
    assert nn.complexity("restricted", n, d, window=16) == (16 * n * d, 1, 64)
    ratio = nn.complexity("self-attention", 2 * n, d).operations / nn.complexity("self-attention", n, d).operations
    assert ratio == 4
    for bad in ({"layer": "pooling"}, {"layer": "restricted"}, {"layer": "recurrent", "window": 3}):
        with pytest.raises(InputError, match="complexity"):
            nn.complexity(n=4, d=4, **bad)  # type: ignore[arg-type]


# --- bad input

X = wl.ones((2, 5, 8))


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: nn.MultiHeadAttention(8, 3), r"8 features cannot be cut into 3 heads[\s\S]*divides 8"),
        (lambda: nn.MultiHeadAttention(8, 4, kv_heads=3), "4 heads cannot share 3"),
        (lambda: nn.MultiHeadAttention(8, 4, positions=nn.ALiBi(3)), "4 heads, positions for 3"),
        (lambda: nn.MultiHeadAttention(8, 4, positions=nn.Rotary(4)), "keys of 2 features"),
        (lambda: nn.MultiHeadAttention(8, 2, fused=True, key_dim=4), "fused projections of inputs"),
        (lambda: nn.MultiHeadAttention(8, 2)(wl.ones((2, 5, 7))), r"query of shape \(2, 5, 7\)[\s\S]*time, 8\)"),
        (lambda: nn.MultiHeadAttention(8, 2)(X, X[:, :4], X), "one value for each key"),
        (lambda: nn.MultiHeadAttention(8, 2)(X, wl.ones((3, 5, 8))), "the same batch for both"),
        (lambda: nn.MultiHeadAttention(8, 2)(X, attn_mask=np.ones((2, 5), bool)), r"\(2, 5\) for 5[\s\S]*token_mask"),
        (lambda: nn.MultiHeadAttention(8, 2)(X, attn_mask=np.ones(5, bool)), r"attn_mask \(5,\)"),
        (lambda: nn.MultiHeadAttention(8, 2)(X, token_mask=np.ones((2, 4), bool)), r"mask of shape \(2, 4\)"),
        (lambda: nn.MultiHeadAttention(8, 2)(X, token_mask=np.ones((2, 5))), "true where a token is real"),
        (lambda: nn.MultiHeadAttention(8, 2)(X, lengths=[5, 6]), "lengths from 5 to 6 for 5 tokens"),
        (lambda: nn.MultiHeadAttention(8, 2)(X, lengths=[5, 5], token_mask=np.ones((2, 5), bool)), "one of them"),
        (lambda: nn.MultiHeadAttention(8, 2).extend(X), r"its tokens see what comes later[\s\S]*causal=True"),
        (lambda: nn.LearnedPositions(4, 8)(X), r"place 4 in a sequence for 4 places[\s\S]*larger max_length"),
        (lambda: nn.LearnedPositions(9, 4)(X), "positions of 4"),
        (lambda: nn.SinusoidalPositions(7), "7 features cannot be pairs"),
        (lambda: nn.Rotary(3), "3 features cannot be pairs"),
        (lambda: nn.RelativeBias(2, 4, free=True)(wl.arange(5), wl.arange(5)), r"place 4[\s\S]*free=False"),
        (lambda: nn.TransformerBlock(8, 2, cross=True)(X), "no memory"),
        (lambda: nn.TransformerBlock(8, 2)(X, X), r"a memory for a block[\s\S]*cross=True"),
        (lambda: nn.Attention(8, score="cosine"), r"score='cosine'[\s\S]*additive"),
        (lambda: nn.Attention(8, mode="firm"), r"mode='firm'[\s\S]*hard"),
        (lambda: nn.Attention(8)(X, X[:, :3], X), "one value for each key"),
        (lambda: nn.Attention(8, score=lambda q, k: q)(X), r"scores \(2, 5, 8\)"),
        (lambda: nn.NeuralMemory(8, 4, 3, 8, normalize="relu"), "no projection"),
        (lambda: nn.LatentAttention(3, 8, queries="keys"), "queries='keys'"),
        (lambda: nn.ParallelBlock(8, 2, out_features=4), "4 features are added to 8"),
    ],
)  # fmt: skip
def test_bad_input(call: Any, message: str) -> None:
    with pytest.raises((InputError, ShapeError, wl.errors.DTypeError), match=message):
        call()
