"""Patterns with names: by hand, as identities, and against einops where it is installed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import wonderland as wl

RNG = np.random.default_rng(0)
X = RNG.normal(size=(4, 6, 5))


@pytest.mark.book("2.43", name="wl.rearrange")
def test_rearrange_by_hand() -> None:
    np.testing.assert_array_equal(wl.rearrange(X, "a b c -> c a b").numpy(), X.transpose(2, 0, 1))
    np.testing.assert_array_equal(wl.rearrange(X, "a b c -> a (b c)").numpy(), X.reshape(4, 30))
    np.testing.assert_array_equal(wl.rearrange(X, "a (h w) c -> a h w c", h=2).numpy(), X.reshape(4, 2, 3, 5))
    np.testing.assert_array_equal(wl.rearrange(X, "a b c -> (c a) b").numpy(), X.transpose(2, 0, 1).reshape(20, 6))
    np.testing.assert_array_equal(wl.rearrange(X, "a b c -> a 1 b c 1").numpy(), X[:, None, :, :, None])
    np.testing.assert_array_equal(wl.rearrange(X, "a b c -> a () (b c)").numpy(), X.reshape(4, 1, 30))
    np.testing.assert_array_equal(wl.rearrange(X[:, None], "a 1 b c -> a b c").numpy(), X)
    np.testing.assert_array_equal(wl.rearrange(X, "a ... -> ... a").numpy(), np.moveaxis(X, 0, -1))
    np.testing.assert_array_equal(wl.rearrange(X, "a ... -> a (...)").numpy(), X.reshape(4, 30))
    np.testing.assert_array_equal(wl.rearrange(X, "... -> (...)").numpy(), X.ravel())
    np.testing.assert_array_equal(wl.rearrange(list(X), "a b c -> b a c").numpy(), X.transpose(1, 0, 2))
    assert wl.rearrange(wl.tensor(3.0), "-> 1").shape == (1,)
    assert wl.rearrange(wl.zeros((0, 2)), "a b -> (a b)").shape == (0,)


@pytest.mark.book("2.43", name="wl.reduce")
def test_reduce_by_hand() -> None:
    for name, oracle in (
        ("sum", np.sum),
        ("mean", np.mean),
        ("max", np.max),
        ("min", np.min),
        ("prod", np.prod),
    ):
        np.testing.assert_allclose(wl.reduce(X, "a b c -> a", name).numpy(), oracle(X, axis=(1, 2)))
        np.testing.assert_allclose(wl.reduce(X, "a b c -> c b", name).numpy(), oracle(X, axis=0).T)
        pooled = oracle(X.reshape(4, 3, 2, 5), axis=2)
        np.testing.assert_allclose(wl.reduce(X, "a (b 2) c -> a b c", name).numpy(), pooled)
        np.testing.assert_allclose(wl.reduce(X, "a (b k) c -> a b c", name, k=2).numpy(), pooled)
        np.testing.assert_allclose(wl.reduce(X, "... c -> ...", name).numpy(), oracle(X, axis=-1))
        np.testing.assert_allclose(wl.reduce(X, "... c -> c", name).numpy(), oracle(X, axis=(0, 1)))
        np.testing.assert_allclose(wl.reduce(X, "a b c -> a 1 c", name).numpy(), oracle(X, axis=1, keepdims=True))
        np.testing.assert_allclose(wl.reduce(X, "a b c -> ", name).numpy(), oracle(X))
    assert wl.reduce(X > 0, "a b c -> b", "any").dtype == wl.bool
    assert wl.reduce(X > 0, "a b c -> b", "all").tolist() == (X > 0).all((0, 2)).tolist()
    custom = wl.reduce(X, "a b c -> a", lambda x, axis: wl.logsumexp(x, axis=axis))
    np.testing.assert_allclose(custom.numpy(), np.log(np.exp(X).sum((1, 2))))


@pytest.mark.book("2.43", name="wl.repeat")
def test_repeat_by_hand() -> None:
    M = X[0]
    np.testing.assert_array_equal(wl.repeat(M, "h w -> h w c", c=3).numpy(), np.repeat(M[:, :, None], 3, axis=2))
    np.testing.assert_array_equal(wl.repeat(M, "h w -> h w 3").numpy(), np.repeat(M[:, :, None], 3, axis=2))
    np.testing.assert_array_equal(wl.repeat(M, "h w -> (h 2) w").numpy(), np.repeat(M, 2, axis=0))
    np.testing.assert_array_equal(wl.repeat(M, "h w -> (r h) w", r=2).numpy(), np.tile(M, (2, 1)))
    np.testing.assert_array_equal(wl.repeat(M, "... -> 2 ...").numpy(), np.stack([M, M]))
    np.testing.assert_array_equal(wl.repeat(M, "h w -> (h h2) (w w2)", h2=2, w2=3).numpy(), M.repeat(2, 0).repeat(3, 1))
    assert wl.repeat(wl.tensor(2.0), "-> n", n=3).tolist() == [2, 2, 2]
    assert wl.repeat(M, "h w -> h axis w", axis=2).shape == (6, 2, 5)
    # the standard's meaning is untouched
    np.testing.assert_array_equal(wl.repeat(M, 2, axis=1).numpy(), np.repeat(M, 2, axis=1))


@pytest.mark.book("2.43", name="wl.rearrange")
@given(st.permutations("bhwc"), st.integers(1, 3), st.integers(1, 3), st.integers(0, 3))
def test_the_inverse_pattern_is_the_inverse_and_the_gradient(order: list[str], h: int, w: int, c: int) -> None:
    x = RNG.normal(size=(2, h * w, c))
    there, back = f"b (h w) c -> {' '.join(order)}", f"{' '.join(order)} -> b (h w) c"
    y = wl.rearrange(wl.asarray(x), there, h=h)
    np.testing.assert_array_equal(wl.rearrange(y, back).numpy(), x)
    weights = RNG.normal(size=y.shape)
    gradient = wl.grad(lambda x: (wl.rearrange(x, there, h=h) * weights).sum())(wl.asarray(x))
    np.testing.assert_array_equal(gradient.numpy(), wl.rearrange(weights, back).numpy())
    # the adjoint of repeating is summing, and the other way round
    r = wl.grad(lambda x: (wl.repeat(x, "b n c -> b n c k", k=3) * 2.0).sum())(wl.asarray(x))
    np.testing.assert_array_equal(r.numpy(), np.full(x.shape, 6.0))


@st.composite
def patterns(draw: Any) -> tuple[str, tuple[int, ...], dict[str, int]]:
    """A left side made of groups, and its names in any order and grouping on the right."""
    names = draw(st.lists(st.sampled_from(["a", "b1", "c", "dd", "e"]), min_size=1, max_size=5, unique=True))
    sizes = {n: draw(st.integers(1, 3)) for n in names}
    left, shape = grouped(draw, names, sizes)
    right, _ = grouped(draw, draw(st.permutations(names)), sizes)
    return f"{left} -> {right}", shape, sizes


def grouped(draw: Any, names: list[str], sizes: dict[str, int]) -> tuple[str, tuple[int, ...]]:
    parts, shape, i = [], [], 0
    while i < len(names):
        k = draw(st.integers(1, len(names) - i))
        group = names[i : i + k]
        parts.append(group[0] if k == 1 else f"({' '.join(group)})")
        shape.append(int(np.prod([sizes[n] for n in group])))
        if draw(st.booleans()):
            parts.append("1")
            shape.append(1)
        i += k
    return " ".join(parts), tuple(shape)


@given(patterns(), st.data())
def test_against_einops(case: tuple[str, tuple[int, ...], dict[str, int]], data: Any) -> None:
    einops = pytest.importorskip("einops")
    pattern, shape, sizes = case
    x = RNG.normal(size=shape)
    np.testing.assert_array_equal(wl.rearrange(x, pattern, **sizes).numpy(), einops.rearrange(x, pattern, **sizes))
    left, right = pattern.split("->")
    gone = data.draw(st.sampled_from(sorted(sizes)))
    kept = right.replace("(", " ( ").replace(")", " ) ").split()
    fewer = f"{left}->" + " ".join(t for t in kept if t != gone)
    for name in ("sum", "mean", "max", "min", "prod"):
        expected = einops.reduce(x, fewer, name, **sizes)
        np.testing.assert_allclose(wl.reduce(x, fewer, name, **sizes).numpy(), expected, atol=1e-12)
    more = f"{pattern} new 2"
    np.testing.assert_array_equal(wl.repeat(x, more, new=3, **sizes).numpy(), einops.repeat(x, more, new=3, **sizes))


def test_under_transformations() -> None:
    x = wl.asarray(X)
    batched = wl.vmap(lambda row: wl.rearrange(row, "b c -> (c b)"))(x)
    np.testing.assert_array_equal(batched.numpy(), X.transpose(0, 2, 1).reshape(4, 30))
    pooled = wl.jit(lambda x: wl.reduce(x, "a b c -> a", "mean"))(x)
    np.testing.assert_allclose(pooled.numpy(), X.mean((1, 2)))


@pytest.mark.parametrize(
    ("function", "pattern", "sizes", "words"),
    (
        ("rearrange", "a b c", {}, "one arrow"),
        ("rearrange", "a b c -> a b", {}, "'c' of"),
        ("rearrange", "a b -> b a", {}, "(4, 6, 5)"),
        ("rearrange", "a b c d -> d c b a", {}, "(4, 6, 5)"),
        ("rearrange", "a b c -> a b c d", {}, "'d' of"),
        ("rearrange", "a a c -> a c", {}, "stands twice"),
        ("rearrange", "a b c -> a b b c", {}, "stands twice"),
        ("rearrange", "a (b c -> a b c", {}, "not closed"),
        ("rearrange", "a b) c -> a b c", {}, "not opened"),
        ("rearrange", "a ((b d)) c -> a b c d", {}, "inside parentheses"),
        ("rearrange", "a (b d) c -> a b d c", {}, "not determined"),
        ("rearrange", "a (b d) c -> a b d c", {"b": 4}, "size 6"),
        ("rearrange", "a (b d) c -> a b d c", {"b": 2, "d": 4}, "multiply to 8"),
        ("rearrange", "a b c -> a b c", {"z": 2}, "z=2"),
        ("rearrange", "a b c -> a b c", {"a": -1}, "not a size"),
        ("rearrange", "a b c -> a b c", {"a": 3}, "size 4"),
        ("rearrange", "a 6 c -> a 6 c", {}, "no name"),
        ("rearrange", "a 1 c -> a c", {}, "size 6"),
        ("rearrange", "a b? c -> a c b?", {}, "not a name"),
        ("rearrange", "a ... ... -> a", {}, "stands twice"),
        ("rearrange", "a (...) -> a ...", {}, "parentheses on the left"),
        ("rearrange", "a b c -> a b c ...", {}, "missing on the left"),
        ("reduce", "a b c -> a d", {}, "missing on the left"),
        ("repeat", "a b c -> a b c d", {}, "d=..."),
        ("repeat", "a b c -> a b", {}, "missing on the right"),
        ("repeat", "a 6 c -> a c", {}, "no name"),
    ),
)
def test_errors_explain(function: str, pattern: str, sizes: dict[str, int], words: str) -> None:
    arguments = (pattern, "sum") if function == "reduce" else (pattern,)
    with pytest.raises(wl.errors.InputError) as caught:
        getattr(wl, function)(wl.asarray(X), *arguments, **sizes)
    assert str(caught.value).startswith(f"{function}:")
    assert words in str(caught.value)


def test_other_bad_arguments() -> None:
    with pytest.raises(wl.errors.InputError, match="median"):
        wl.reduce(X, "a b c -> a", "median")
    with pytest.raises(wl.errors.InputError, match="pattern"):
        wl.rearrange(X, 3)  # type: ignore[arg-type]
    with pytest.raises(wl.errors.InputError, match="without a pattern"):
        wl.repeat(X, 2, c=3)
