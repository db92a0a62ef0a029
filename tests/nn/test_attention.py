"""Attention: the same as the plain formula in values and gradients, and never the matrix of scores in memory."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import wonderland as wl
from wonderland.nn.functional import dot_product_attention, scaled_dot_product_attention
from wonderland.primitives import attention_tiles
from wonderland.primitives.attention import attention

Array = np.ndarray[Any, Any]


def draw(*shapes: tuple[int, ...], dtype: Any = wl.float64, seed: int = 0) -> list[wl.Tensor]:
    rng = np.random.default_rng(seed)
    return [wl.asarray(rng.normal(size=shape)).astype(dtype) for shape in shapes]


def qkv(lead: tuple[int, ...] = (2, 3), t: int = 5, s: int = 7, d: int = 4, e: int = 6, **options: Any) -> Any:
    return draw((*lead, t, d), (*lead, s, d), (*lead, s, e), **options)


def reference(q: Array, k: Array, v: Array, allowed: Array | None = None, bias: Any = 0.0, scale: Any = None) -> Array:
    """The formula in float64, with zeros for a query that may attend to nothing."""
    q, k, v = (np.asarray(x, np.float64) for x in (q, k, v))
    scores = np.einsum("...td,...sd->...ts", q, k) * (q.shape[-1] ** -0.5 if scale is None else scale) + bias
    if allowed is not None:
        scores = np.where(allowed, scores, -np.inf)
    top = scores.max(axis=-1, keepdims=True, initial=-np.inf)
    weights = np.exp(scores - np.where(np.isfinite(top), top, 0))
    total = weights.sum(axis=-1, keepdims=True)
    return np.einsum("...ts,...se->...te", weights / np.where(total == 0, 1, total), v)


def plain(q: Any, k: Any, v: Any, allowed: Any = None, bias: Any = 0.0) -> Any:
    """The same of wonderland's own functions, to be differentiated."""
    scores = (q @ k.mT) * q.shape[-1] ** -0.5 + bias
    return wl.softmax(scores, axis=-1, where=allowed) @ v


def squared(f: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    return lambda q, k, v: (f(q, k, v, **options).astype(wl.float64) ** 2).sum()


def close(got: Any, want: Any, tolerance: float = 1e-12) -> None:
    got, want = np.asarray(got, np.float64), np.asarray(want, np.float64)
    assert got.shape == want.shape
    scale = max(1.0, float(np.abs(want).max(initial=0)))
    np.testing.assert_allclose(got, want, rtol=0, atol=tolerance * scale)


@pytest.fixture(params=[(1, 1), (2, 3), (256, 1024)], ids=str)
def tile(request: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Tiles that do not divide the sequences, and one that holds everything."""
    monkeypatch.setattr(attention_tiles, "ROWS", request.param[0])
    monkeypatch.setattr(attention_tiles, "COLUMNS", request.param[1])
    return request.param


RNG = np.random.default_rng(7)
MASKS: dict[str, Any] = {
    "none": None,
    "all": RNG.random((2, 3, 5, 7)) < 0.5,
    "heads share it": RNG.random((2, 1, 5, 7)) < 0.5,
    "padding": np.arange(7) < np.array([7, 3]).reshape(2, 1, 1, 1),
    "keys": RNG.random(7) < 0.5,
    "one": RNG.random((5, 7)) < 0.5,
    "nothing": np.zeros((5, 1), bool),
}


@pytest.mark.book("10.18", "11.28", "11.29", "11.31", name="wl.nn.functional.scaled_dot_product_attention")
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("mask", MASKS.values(), ids=MASKS.keys())
def test_values_and_gradients_are_those_of_the_plain_formula(mask: Any, causal: bool, tile: Any) -> None:
    args = qkv()
    allowed = np.ones((5, 7), bool) if mask is None else mask
    allowed = allowed & np.tri(5, 7, dtype=bool) if causal else allowed
    f = lambda *xs: scaled_dot_product_attention(*xs, attn_mask=mask, is_causal=causal)
    close(f(*args), reference(*args, allowed))
    got = wl.grad(squared(f), (0, 1, 2))(*args)
    want = wl.grad(squared(plain, allowed=wl.asarray(allowed)), (0, 1, 2))(*args)
    for a, b in zip(got, want, strict=True):
        close(a, b)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("lead, t, s", [((), 3, 3), ((4,), 6, 2), ((1, 2, 3), 2, 6), ((2,), 1, 9)])
def test_any_leading_axes_and_lengths(lead: tuple[int, ...], t: int, s: int, causal: bool) -> None:
    args = qkv(lead, t, s)
    out = scaled_dot_product_attention(*args, is_causal=causal)
    close(out, reference(*args, np.tri(t, s, dtype=bool) if causal else None))


@pytest.mark.parametrize(
    "dtype, tolerance", [(wl.float32, 2e-6), (wl.float16, 4e-3), (wl.bfloat16, 3e-2)], ids=lambda x: str(x)
)
def test_narrow_types(dtype: Any, tolerance: float, tile: Any) -> None:
    args = qkv(dtype=dtype)
    exact = [x.astype(wl.float64) for x in args]
    out = scaled_dot_product_attention(*args, is_causal=True)
    assert out.dtype == dtype
    seen = np.tri(5, 7, dtype=bool)
    close(out, reference(*exact, seen), tolerance)
    got = wl.grad(squared(scaled_dot_product_attention, is_causal=True), (0, 1, 2))(*args)
    want = wl.grad(squared(plain, allowed=wl.asarray(seen)), (0, 1, 2))(*exact)
    for a, b in zip(got, want, strict=True):
        assert a.dtype == dtype
        close(a, b, 4 * tolerance)
    pushed = wl.jvp(scaled_dot_product_attention, tuple(args), tuple(args))[1]
    assert pushed.dtype == dtype


def test_half_types_are_summed_in_float32() -> None:
    q, k = wl.zeros((1, 2), dtype=wl.bfloat16), wl.zeros((4000, 2), dtype=wl.bfloat16)
    out = scaled_dot_product_attention(q, k, wl.ones((4000, 1), dtype=wl.bfloat16))
    np.testing.assert_array_equal(np.asarray(out, np.float32), [[1.0]])  # a bfloat16 count ends at 256


# --- the decomposition of section 11.2.2


@pytest.mark.book("11.28", "11.32")
@pytest.mark.parametrize("cuts", [[3], [1, 2, 6]])
def test_chunks_of_keys_and_values_combine_by_their_sums(cuts: list[int]) -> None:
    """sum_i h_i / sum_i L_i, each chunk as another worker would give it."""
    q, k, v = qkv()
    parts = []
    for keys, values in zip(np.split(k.numpy(), cuts, axis=-2), np.split(v.numpy(), cuts, axis=-2), strict=True):
        out, lse = attention(q, wl.asarray(keys), wl.asarray(values), causal=False, scale=0.5)
        parts.append((np.asarray(out), np.exp(np.asarray(lse))[..., None]))
    combined = sum(out * total for out, total in parts) / sum(total for _, total in parts)
    close(combined, reference(q, k, v, scale=0.5))


@pytest.mark.book("11.30", name="wl.nn.functional.scaled_dot_product_attention")
def test_large_scores_do_not_overflow(tile: Any) -> None:
    q, k, v = qkv(t=7)
    close(scaled_dot_product_attention(q * 1000, k, v), reference(q * 1000, k, v))
    got = wl.grad(squared(scaled_dot_product_attention))(q * 1000, k, v)
    assert np.all(np.isfinite(np.asarray(got)))


@pytest.mark.book("10.27")
def test_the_limit_of_a_large_scale_is_the_nearest_key() -> None:
    keys, (values,) = wl.eye(4, dtype=wl.float64), draw((4, 3))
    close(scaled_dot_product_attention(keys, keys, values, scale=1e3), values)


def test_scores_that_are_all_alike_give_the_mean() -> None:
    v = draw((6, 3))[0]
    close(scaled_dot_product_attention(wl.zeros((2, 4)), wl.zeros((6, 4)), v), np.tile(np.asarray(v).mean(0), (2, 1)))


def test_a_query_that_sees_nothing_gives_zeros_and_zero_gradients() -> None:
    q, k, v = qkv((2,), 3, 3)
    mask = wl.asarray(np.array([[True, False, True], [False, False, False], [False, True, False]]))
    for m in (mask, wl.where(mask, 0.0, -np.inf)):
        with wl.debug.nans():  # nor is there an infinity on the way
            scaled_dot_product_attention(q, k, v, m)
        f = lambda q, k, v, m=m: scaled_dot_product_attention(q, k, v, m)
        np.testing.assert_array_equal(f(q, k, v)[:, 1], 0)
        dq, dk, dv = wl.grad(squared(f), (0, 1, 2))(q, k, v)
        np.testing.assert_array_equal(dq[:, 1], 0)
        assert all(np.all(np.isfinite(np.asarray(x))) for x in (dq, dk, dv))
        _, lse = attention(q, k, v, m.astype(q.dtype) if m.dtype != wl.bool else m, causal=False, scale=1.0)
        np.testing.assert_array_equal(lse[:, 1], 0)
        hessian = wl.hvp(lambda q, f=f: squared(f)(q, k, v), (q,), (q,))
        assert np.all(np.isfinite(np.asarray(hessian)))
    none = wl.zeros((2, 0, 4), dtype=wl.float64), wl.zeros((2, 0, 6), dtype=wl.float64)
    np.testing.assert_array_equal(scaled_dot_product_attention(q, *none), np.zeros((2, 3, 6)))


def test_the_future_has_no_influence() -> None:
    q, k, v = qkv((), 6, 6)
    at = 3
    dk, dv = wl.grad(lambda k, v: scaled_dot_product_attention(q, k, v, is_causal=True)[at].sum(), (0, 1))(k, v)
    np.testing.assert_array_equal(dk[at + 1 :], 0)
    np.testing.assert_array_equal(dv[at + 1 :], 0)
    assert np.all(np.asarray(dv[: at + 1]) != 0)


# --- transformations


@pytest.mark.parametrize("causal", [False, True])
def test_derivatives_of_first_and_second_order(causal: bool, tile: Any) -> None:
    q, k, v = qkv((2,), 3, 4, 2, 2)
    bias = draw((3, 4), seed=1)[0]
    mask = wl.asarray(np.array([True, True, False, True]))
    wl.check_grads(lambda *xs: scaled_dot_product_attention(*xs, is_causal=causal), (q, k, v), order=2)
    wl.check_grads(lambda *xs: scaled_dot_product_attention(*xs, attn_mask=mask), (q, k, v), order=2)
    wl.check_grads(lambda *xs: scaled_dot_product_attention(*xs, is_causal=causal), (q, k, v, bias), order=2)
    wl.check_grads(lambda *xs: attention(*xs, causal=causal, scale=0.3)[1], (q, k, v, bias), order=2)


def test_third_order() -> None:
    q, k, v = qkv((), 2, 3, 2, 2)
    wl.check_grads(scaled_dot_product_attention, (q, k, v), order=3)


def test_forward_over_reverse_is_the_plain_one() -> None:
    args = tuple(qkv((2,), 4, 4))
    directions = tuple(draw(*[x.shape for x in args], seed=3))
    allowed = wl.tril(wl.ones((4, 4), dtype=wl.bool))
    f = wl.grad(squared(scaled_dot_product_attention, is_causal=True), (0, 1, 2))
    g = wl.grad(squared(plain, allowed=allowed), (0, 1, 2))
    for a, b in zip(wl.jvp(f, args, directions)[1], wl.jvp(g, args, directions)[1], strict=True):
        close(a, b)


def test_only_some_arguments_are_differentiated() -> None:
    args = qkv()
    for i in range(3):
        close(wl.grad(squared(scaled_dot_product_attention), i)(*args), wl.grad(squared(plain), i)(*args))


def test_vmap_is_a_loop() -> None:
    q, k, v = qkv()
    masks = wl.asarray(RNG.random((2, 5, 7)) < 0.7)
    f = lambda q, k, v, m: scaled_dot_product_attention(q, k, v, m, is_causal=True)
    loop = wl.stack([f(q[i], k[0], v[i], masks[i]) for i in range(2)])
    close(wl.vmap(f, in_axes=(0, None, 0, 0))(q, k[0], v, masks), loop)
    per_example = wl.vmap(wl.grad(squared(scaled_dot_product_attention)), in_axes=(0, 0, None))(q, k, v[0])
    close(per_example[1], wl.grad(squared(scaled_dot_product_attention))(q[1], k[1], v[0]))


def test_jit_and_checkpoint() -> None:
    args = qkv()
    f = squared(scaled_dot_product_attention, is_causal=True)
    value, want = wl.value_and_grad(f, (0, 1, 2))(*args)
    for g in (wl.jit(wl.value_and_grad(f, (0, 1, 2))), wl.value_and_grad(wl.checkpoint(f), (0, 1, 2))):
        got_value, got = g(*args)
        close(got_value, value)
        for a, b in zip(got, want, strict=True):
            close(a, b)


def test_backward() -> None:
    args = [x.numpy() for x in qkv()]
    leaves = [wl.tensor(x, requires_grad=True) for x in args]
    squared(scaled_dot_product_attention)(*leaves).backward()
    for leaf, want in zip(leaves, wl.grad(squared(plain), (0, 1, 2))(*map(wl.asarray, args)), strict=True):
        close(leaf.grad, want)


# --- memory and cost


def peak(f: Callable[[], Any]) -> int:
    """Bytes in use at most while f runs."""
    tracemalloc.start()
    try:
        f()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.book("11.27", "11.31", name="wl.nn.functional.scaled_dot_product_attention")
def test_memory_is_linear_in_the_sequence() -> None:
    def gradient(f: Callable[..., Any], n: int) -> Callable[[], Any]:
        args = qkv((2, 2), n, n, 8, 8, dtype=wl.float32)
        return lambda: wl.grad(lambda *xs: f(*xs).sum(), (0, 1, 2))(*args)

    ours = lambda *xs: scaled_dot_product_attention(*xs, is_causal=True)
    long = 2048
    scores = 4 * long * long * 4  # bytes of all scores
    used = peak(gradient(ours, long))
    assert used < scores / 8
    assert peak(gradient(plain, long // 2)) > scores / 4
    assert used < 2.5 * peak(gradient(ours, long // 2))
    mask = wl.ones((1, 1, long), dtype=wl.bool)
    assert peak(lambda: scaled_dot_product_attention(*qkv((2, 2), long, long, 8, 8), attn_mask=mask)) < scores / 4


@pytest.mark.book("11.31")
def test_what_is_kept_for_the_backward_pass_is_linear() -> None:
    kept = lambda n: wl.saved(lambda *xs: scaled_dot_product_attention(*xs).sum(), *qkv((2,), n, n)).bytes
    assert kept(64) == 2 * kept(32) == 2 * 64 * (6 + 1) * 8  # the result and the log-sum-exp


@pytest.mark.book("11.23")
def test_cost_counts_the_pairs_that_may_attend() -> None:
    def cost(t: int, s: int, causal: bool) -> int:
        args = [wl.ShapeDtype(x.shape, x.dtype) for x in qkv((3,), t, s, 5, 2)]
        return attention.cost(*args, causal=causal, scale=1.0)  # type: ignore[misc]

    assert cost(4, 6, False) == 3 * 4 * 6 * (5 + 2)
    assert cost(4, 6, True) == 3 * (1 + 2 + 3 + 4) * (5 + 2)
    assert cost(5, 2, True) == 3 * (1 + 2 + 2 + 2 + 2) * (5 + 2)


# --- the options of the functions


def test_leading_axes_broadcast() -> None:
    q, k, v = draw((4, 1, 5, 2), (3, 7, 2), (7, 6))
    out = scaled_dot_product_attention(q, k, v)
    close(out, reference(q, k, np.broadcast_to(v.numpy(), (4, 3, 7, 6))))
    got = wl.grad(squared(scaled_dot_product_attention), (0, 1, 2))(q, k, v)
    for a, b in zip(got, wl.grad(squared(plain), (0, 1, 2))(q, k, v), strict=True):
        close(a, b)


@pytest.mark.book("11.59", name="wl.nn.functional.scaled_dot_product_attention")
def test_heads_of_the_query_share_those_of_key_and_value() -> None:
    q, k, v = draw((2, 6, 4, 3), (2, 2, 5, 3), (2, 2, 5, 3))
    out = scaled_dot_product_attention(q, k, v, enable_gqa=True)
    close(out, reference(q, np.repeat(k.numpy(), 3, axis=1), np.repeat(v.numpy(), 3, axis=1)))
    with pytest.raises(wl.errors.ShapeError, match="cannot be shared"):
        scaled_dot_product_attention(q[:, :5], k, v, enable_gqa=True)


def test_a_floating_mask_is_added_and_differentiated() -> None:
    q, k, v = qkv()
    bias = draw((3, 1, 7), seed=4)[0]
    close(scaled_dot_product_attention(q, k, v, bias), reference(q, k, v, bias=np.asarray(bias)))
    close(
        scaled_dot_product_attention(q, k, v, bias.astype(wl.float32)), reference(q, k, v, bias=np.asarray(bias)), 1e-6
    )
    got = wl.grad(lambda b: (scaled_dot_product_attention(q, k, v, b) ** 2).sum())(bias)
    close(got, wl.grad(lambda b: (plain(q, k, v, bias=b) ** 2).sum())(bias))


def test_scale() -> None:
    q, k, v = qkv()
    close(scaled_dot_product_attention(q, k, v, scale=0.3), reference(q, k, v, scale=0.3))


@pytest.mark.book("11.22", name="wl.nn.functional.scaled_dot_product_attention")
def test_scale_one_is_the_core_of_the_box() -> None:
    q, k, v = qkv(())
    close(scaled_dot_product_attention(q, k, v, scale=1.0), wl.softmax(q @ k.mT) @ v)


def test_dropout_leaves_weights_out_and_keeps_the_mean() -> None:
    n = 4000
    q, k, v = wl.zeros((1, 2)), wl.zeros((n, 2)), wl.ones((n, 1))
    f = lambda v, seed: scaled_dot_product_attention(q, k, v, dropout_p=0.25, random_key=wl.random.key(seed))
    np.testing.assert_allclose(f(v, 0), [[1.0]], atol=0.05)
    weights = np.asarray(wl.grad(lambda v: f(v, 0).sum())(v)) * n
    np.testing.assert_allclose(np.unique(weights), [0, 4 / 3], rtol=1e-5)
    np.testing.assert_array_equal(f(v, 1), f(v, 1))
    assert np.any(np.asarray(f(v, 1)) != np.asarray(f(v, 2)))
    np.testing.assert_array_equal(scaled_dot_product_attention(q, k, v, dropout_p=1.0), [[0.0]])
    causal = scaled_dot_product_attention(*qkv(()), is_causal=True, dropout_p=0.5)
    assert np.all(np.isfinite(np.asarray(causal)))
    with pytest.raises(wl.errors.InputError, match="not a probability"):
        scaled_dot_product_attention(q, k, v, dropout_p=1.5)


def test_heads_after_positions() -> None:
    q, k, v = draw((2, 5, 6, 4), (2, 7, 3, 4), (2, 7, 3, 8))
    heads_first = [np.moveaxis(x.numpy(), -2, -3) for x in (q, k, v)]
    heads_first[1:] = [np.repeat(x, 2, axis=1) for x in heads_first[1:]]
    bias, mask = draw((6, 5, 7), seed=5)[0], RNG.random((2, 1, 1, 7)) < 0.6
    for b, m in ((None, None), (bias, None), (None, mask), (bias, mask)):
        want = reference(*heads_first, m, 0.0 if b is None else np.asarray(b))
        close(dot_product_attention(q, k, v, b, m), np.moveaxis(want, -3, -2))
    with pytest.raises(wl.errors.ShapeError, match="no axis for heads"):
        dot_product_attention(q[0, 0], k[0, 0], v[0, 0])


# --- errors


@pytest.mark.book("10.15", name="wl.nn.functional.scaled_dot_product_attention")
@pytest.mark.parametrize(
    "shapes, message",
    [
        (((5, 4), (7, 3), (7, 6)), "a query has 4 features and a key 3"),
        (((5, 4), (7, 4), (8, 6)), "7 keys and 8 values"),
        (((2, 5, 4), (3, 7, 4), (7, 6)), r"leading axes of query \(2, 5, 4\), key \(3, 7, 4\)"),
        (((4,), (7, 4), (7, 6)), "at least two axes"),
    ],
)
@pytest.mark.parametrize("way", ["eager", "jit", "vmap", "dropout"])
def test_shapes_that_do_not_fit(shapes: Any, message: str, way: str) -> None:
    args = draw(*shapes)
    f: Any = scaled_dot_product_attention
    if way == "jit":
        f = wl.jit(f)
    elif way == "vmap":
        args, f = [wl.stack([x, x]) for x in args], wl.vmap(f)
    elif way == "dropout":
        f = lambda *xs: scaled_dot_product_attention(*xs, dropout_p=0.5)
    with pytest.raises(wl.errors.ShapeError, match=message):
        f(*args)


def test_other_wrong_arguments() -> None:
    q, k, v = qkv()
    with pytest.raises(wl.errors.ShapeError, match=r"mask of shape \(7, 5\) does not broadcast"):
        scaled_dot_product_attention(q, k, v, np.ones((7, 5), bool))
    with pytest.raises(wl.errors.DTypeError, match="a mask of int64"):
        scaled_dot_product_attention(q, k, v, np.ones((5, 7), np.int64))
    with pytest.raises(wl.errors.DTypeError, match="floating"):
        scaled_dot_product_attention(q.astype(wl.complex128), k, v)
    with pytest.raises(wl.errors.DTypeError, match="one dtype for all"):
        attention(q, k, v.astype(wl.float32), causal=False, scale=1.0)
    with pytest.raises(wl.errors.ShapeError, match="leading axes"):  # as many matrices, in another order
        attention(q, wl.moveaxis(k, 0, 1), wl.moveaxis(v, 0, 1), causal=False, scale=1.0)
