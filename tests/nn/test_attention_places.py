"""Windows, offsets of cached decoding, shared heads and ALiBi in attention: the same as the formula with a matrix."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import wonderland as wl
from tests.engines.engines import native
from tests.nn import test_attention
from tests.nn.test_attention import close, draw, peak
from wonderland.engines.native.attention.few import FewQueries
from wonderland.nn.functional import dot_product_attention, scaled_dot_product_attention

plain: Any = test_attention.plain
reference: Any = test_attention.reference


def seen(t: int, s: int, causal: bool, window: int | None = None, offset: Any = 0) -> Any:
    """Which keys queries see: (.., t, s)."""
    ahead = np.arange(s) - (np.asarray(offset)[..., None] + np.arange(t))[..., None]
    found = ahead <= 0 if causal else np.ones_like(ahead, bool)
    return found if window is None else found & (np.abs(ahead) < window)


def bias(t: int, s: int, slopes: Any, offset: Any = 0) -> Any:
    away = np.abs((np.asarray(offset)[..., None] + np.arange(t))[..., None] - np.arange(s))
    return -np.asarray(slopes)[:, None, None] * away[..., None, :, :]


@pytest.mark.parametrize("engine", ["eager", "compiled"])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("window", [1, 3, 100])
def test_a_window_is_a_band_of_the_mask(window: int, causal: bool, engine: str) -> None:
    q, k, v = draw((2, 3, 9, 4), (2, 3, 11, 4), (2, 3, 11, 5))
    band = seen(9, 11, causal, window)

    def f(q: Any, k: Any, v: Any) -> Any:
        return scaled_dot_product_attention(q, k, v, is_causal=causal, window=window)

    run = wl.jit(f) if engine == "compiled" else f
    close(run(q, k, v), reference(q, k, v, band))
    got = wl.grad(lambda *xs: (run(*xs) ** 2).sum(), argnums=(0, 1, 2))(q, k, v)
    want = wl.grad(lambda *xs: (plain(*xs, allowed=wl.tensor(band)) ** 2).sum(), argnums=(0, 1, 2))(q, k, v)
    for x, y in zip(got, want, strict=True):
        close(x, y)


@pytest.mark.parametrize("engine", ["eager", "compiled"])
def test_rows_of_a_cache_have_their_own_lengths(engine: str) -> None:
    q, k, v = draw((3, 2, 4, 8), (3, 2, 20, 8), (3, 2, 20, 8))
    lengths = np.array([0, 7, 16])
    for row, length in enumerate(lengths):  # what is not written yet may be anything
        for x in (k, v):
            x._data[row, :, length + 4 :] = np.nan

    def f(q: Any, k: Any, v: Any, lengths: Any) -> Any:
        return scaled_dot_product_attention(q, k, v, is_causal=True, offset=lengths)

    got = (wl.jit(f) if engine == "compiled" else f)(q, k, v, wl.tensor(lengths))
    for row, length in enumerate(lengths):
        end = length + 4
        want = reference(q[row], k[row, :, :end], v[row, :, :end], seen(4, end, True, offset=length))
        close(got[row], want)
    one = scaled_dot_product_attention(q[1], k[1], v[1], is_causal=True, offset=7)
    close(one, got[1])


@pytest.mark.parametrize("engine", ["eager", "compiled"])
@pytest.mark.parametrize("causal", [False, True])
def test_shared_heads_are_rows_of_one(causal: bool, engine: str) -> None:
    q, k, v = draw((2, 6, 5, 4), (2, 2, 7, 4), (2, 2, 7, 3))
    slopes, (mask,) = draw((6,))[0] ** 2, draw((2, 1, 5, 7))

    def f(q: Any, k: Any, v: Any, slopes: Any, mask: Any) -> Any:
        options: Any = {"is_causal": causal, "window": 4, "offset": wl.tensor([1, 2]), "alibi": slopes}
        return scaled_dot_product_attention(q, k, v, mask, enable_gqa=True, **options)

    run = wl.jit(f) if engine == "compiled" else f
    args = (q, k, v, slopes, mask)

    def want(q: Any, k: Any, v: Any, slopes: Any, mask: Any) -> Any:
        k, v = (wl.repeat(x, 3, axis=1) for x in (k, v))
        band = seen(5, 7, causal, 4, np.array([1, 2]))[:, None]
        away = wl.abs(wl.tensor([1, 2])[:, None, None, None] + wl.arange(5)[:, None] - wl.arange(7))
        return plain(q, k, v, wl.tensor(np.broadcast_to(band, (2, 6, 5, 7))), mask - slopes[:, None, None] * away)

    close(run(*args), want(*args))
    mine, others = (wl.grad(lambda *xs, f=f: (f(*xs) ** 2).sum(), argnums=(0, 1, 2, 3, 4))(*args) for f in (run, want))
    for x, y in zip(mine, others, strict=True):
        close(x, y)


def test_no_head_is_repeated_in_memory() -> None:
    """One token of 8 heads that share 2: attention, and nothing that is copied for it."""
    q, k, v = (np.ones(shape, np.float32) for shape in ((1, 8, 1, 16), (1, 100, 2, 16), (1, 100, 2, 16)))

    def f(q: Any, k: Any, v: Any, lengths: Any) -> Any:
        k, v = (wl.swapaxes(x, 1, 2) for x in (k, v))
        return scaled_dot_product_attention(q, k, v, is_causal=True, offset=lengths, enable_gqa=True)

    program, _ = native(f, q, k, v, np.array([60]))
    assert [type(step) for step in program.schedule.steps if hasattr(step, "emit")] == [FewQueries]


@pytest.mark.parametrize("causal", [False, True])
def test_alibi_lowers_scores_by_the_distance(causal: bool) -> None:
    q, k, v = draw((2, 3, 9, 4), (2, 3, 9, 4), (2, 3, 9, 4))
    slopes = wl.tensor([0.5, 0.25, 0.125])
    got = scaled_dot_product_attention(q, k, v, is_causal=causal, alibi=slopes)
    close(got, reference(q, k, v, seen(9, 9, causal), bias(9, 9, slopes)))
    if causal:  # the place of the query itself does not matter then: slope (j - i) and slope j are one
        close(got, reference(q, k, v, seen(9, 9, causal), np.asarray(slopes)[:, None, None] * np.arange(9)), 1e-6)


def test_alibi_is_exact_for_long_sequences() -> None:
    """4096 tokens in float32: a slope times the place of a key would have lost the digits that count."""
    t, (q, k, v) = 4096, draw((1, 2, 4096, 8), (1, 2, 4096, 8), (1, 2, 4096, 8), dtype=wl.float32)
    slopes = wl.tensor([0.7, 0.05])
    run = wl.jit(lambda q: scaled_dot_product_attention(q, k, v, is_causal=True, alibi=slopes))
    got, last = np.asarray(run(q)), slice(t - 64, t)
    allowed = seen(64, t, True, offset=t - 64)
    want = reference(q[:, :, last], k, v, allowed, bias(64, t, slopes, t - 64))
    np.testing.assert_allclose(got[:, :, last], want, rtol=0, atol=5e-6)


def test_slopes_are_learned() -> None:
    q, k, v = draw((2, 2, 6, 4), (2, 2, 6, 4), (2, 2, 6, 4))

    def loss(slopes: Any) -> Any:
        return (scaled_dot_product_attention(q, k, v, is_causal=True, alibi=slopes) ** 2).sum()

    start, step = np.array([0.3, 0.6]), 1e-6
    for f in (wl.grad(loss), wl.jit(wl.grad(loss))):
        got = np.asarray(f(wl.tensor(start)))
        for i in range(2):
            moved = np.eye(2)[i] * step
            slope = (loss(wl.tensor(start + moved)) - loss(wl.tensor(start - moved))) / (2 * step)
            np.testing.assert_allclose(got[i], slope.item(), rtol=1e-6)
    curve = wl.hessian(loss)(wl.tensor(start))
    np.testing.assert_allclose(curve, np.asarray(curve).T, rtol=1e-8)


def test_memory_of_a_window_is_linear() -> None:
    def used(t: int) -> int:
        q, k, v = draw((1, t, 8), (1, t, 8), (1, t, 8), dtype=wl.float32)
        f = wl.grad(lambda q: scaled_dot_product_attention(q, k, v, is_causal=True, window=32, alibi=0.1).sum())
        return peak(lambda: f(q))

    assert used(4096) < 2.5 * used(2048)


def test_dropout_and_vmap_see_the_same() -> None:
    q, k, v = draw((2, 3, 5, 4), (2, 3, 9, 4), (2, 3, 9, 4))
    options: Any = {"is_causal": True, "offset": 3, "window": 4, "alibi": wl.tensor([0.1, 0.2, 0.3])}
    want = scaled_dot_product_attention(q, k, v, **options)
    found = wl.vmap(lambda q, k, v: scaled_dot_product_attention(q, k, v, **options))(q, k, v)
    close(found, want)
    each = wl.vmap(lambda q, k, v, n: scaled_dot_product_attention(q, k, v, is_causal=True, offset=n))
    close(each(q, k, v, wl.tensor([1, 4])), scaled_dot_product_attention(
        q, k, v, is_causal=True, offset=wl.tensor([1, 4])))  # fmt: skip
    many = [scaled_dot_product_attention(q, k, v, dropout_p=0.2, random_key=wl.random.key(i), **options)
            for i in range(300)]  # fmt: skip
    np.testing.assert_allclose(np.mean([np.asarray(x) for x in many], axis=0), want, atol=0.25)


def test_the_other_layout() -> None:
    q, k, v = draw((2, 4, 6, 8), (2, 12, 3, 8), (2, 12, 3, 8))
    options: Any = {"is_causal": True, "offset": wl.tensor([2, 8]), "window": 5, "alibi": wl.tensor([0.1] * 6)}
    got = dot_product_attention(q, k, v, **options)
    q, k, v = (wl.swapaxes(x, 1, 2) for x in (q, k, v))
    want = scaled_dot_product_attention(q, k, v, enable_gqa=True, **options)
    close(got, wl.swapaxes(want, 1, 2))


@pytest.mark.parametrize(
    "options, message",
    [
        ({"window": 0}, "window"),
        ({"window": 2.5}, "window"),
        ({"offset": 1.5}, "offset"),
        ({"offset": wl.tensor([1, 2, 3])}, r"offsets of shape \(3,\)"),
        ({"alibi": wl.ones(4)}, r"a slope for each of 3 heads"),
        ({"alibi": wl.tensor([1, 2, 3])}, "alibi is int64"),
    ],
)
def test_wrong_arguments(options: Any, message: str) -> None:
    q, k, v = draw((2, 3, 5, 4), (2, 3, 9, 4), (2, 3, 9, 4))
    with pytest.raises(wl.errors.WonderlandError, match=message):
        scaled_dot_product_attention(q, k, v, **options)
