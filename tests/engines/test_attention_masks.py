"""What a mask keeps apart does not contribute to attention, whatever is there: both engines against sums over pairs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import wonderland as wl
from wonderland.core.primitive import Aval
from wonderland.engines.native import Program
from wonderland.engines.native.attention.forward import Attention
from wonderland.engines.native.machine import machine
from wonderland.engines.native.program import text_of
from wonderland.engines.numpy.evaluate import evaluate
from wonderland.ir.stage import stage
from wonderland.primitives.attention import attention, attention_backward, attention_tangent

Array = np.ndarray[Any, Any]
SCALE = 0.3
TOLERANCE = {2: 3e-2, 4: 1e-4, 8: 1e-9}


def engines(f: Any, *arrays: Array) -> dict[str, list[Array]]:
    graph = stage(lambda *xs: wl.tree.leaves(f(*xs)), [Aval(a.shape, a.dtype) for a in arrays]).graph
    found = {"native": Program(graph)(list(arrays)), "NumPy": evaluate(graph, list(arrays))}
    return {engine: [x.astype(np.float64) for x in results] for engine, results in found.items()}


def over_pairs(q: Array, k: Array, v: Array, bias: Array, seen: Array, g: Array, h: Array) -> list[Array]:
    """attention and attention_backward, query by query, of the keys that each sees and of nothing else."""
    out, lse = np.zeros((len(q), v.shape[1])), np.zeros(len(q))
    dq, dk, dv = np.zeros_like(q), np.zeros_like(k), np.zeros_like(v)
    for i, keys in enumerate(seen):
        scores = (k[keys] @ q[i]) * SCALE + bias[i, keys]
        if not (scores > -np.inf).any() and not np.isnan(scores).any():
            continue  # it sees nothing
        lse[i] = scores.max() + np.log(np.exp(scores - scores.max()).sum())
        p = np.exp(scores - lse[i])
        out[i] = p @ v[keys]
        change = p * (v[keys] @ g[i] + h[i]) * SCALE
        dq[i] = change @ k[keys]
        dk[keys] += change[:, None] * q[i]
        dv[keys] += p[:, None] * g[i]
    return [out, lse, dq, dk, dv]


class Case:
    """Factors with some rows that are not finite, and a mask."""

    def __init__(self, t: int, s: int, mask: str, causal: bool, dtype: Any, bad: float, seed: int = 0) -> None:
        rng = np.random.default_rng(seed)
        wide = np.float32 if np.dtype(dtype).itemsize < 4 else dtype
        e = (20, 32)[seed % 2]  # values that are copied to a tile, and such that are read where they lie
        shapes = [((t, 9), dtype), ((s, 9), dtype), ((s, e), dtype), ((t, e), wide), ((t,), wide)]
        self.q, self.k, self.v, self.g, self.h = (rng.normal(size=shape).astype(kind) for shape, kind in shapes)
        self.seen, self.bias, self.mask = np.ones((t, s), bool), np.zeros((t, s)), []
        if mask != "none":
            self.seen = rng.random((t, s)) < 0.6
            self.seen[t // 2] = self.seen[:, s // 2] = False
            self.mask = [self.seen.copy()]
        if mask == "added":
            self.mask = [np.where(self.seen, rng.normal(size=(t, s)), -np.inf).astype(dtype)]
            self.bias = np.where(self.seen, self.mask[0].astype(np.float64), 0)
        self.causal = causal
        if causal:
            self.seen = self.seen & (np.arange(s) <= np.arange(t)[:, None])
        for x in [(self.k, self.v), (self.q, self.g)][seed % 2]:
            x[len(x) // 2] = bad
            x[rng.integers(len(x) // 2, len(x))] = rng.choice([bad, 1.0], x.shape[1])

    def results(self) -> tuple[dict[str, list[Array]], list[Array]]:
        """By engine, and of the sums over pairs."""
        options: Any = {"causal": self.causal, "scale": SCALE}
        q, k, v, g, h = (x.astype(np.float64) for x in (self.q, self.k, self.v, self.g, self.h))
        with np.errstate(all="ignore"):
            want = over_pairs(q, k, v, self.bias, self.seen, g, h)
            found = engines(lambda *xs: attention(*xs, **options), self.q, self.k, self.v, *self.mask)
            lse = found["NumPy"][1].astype(self.g.dtype)
            arrays = [self.g, self.h, self.q, self.k, self.v, lse, *self.mask]
            back = engines(lambda *xs: attention_backward(*xs, **options), *arrays)
        return {engine: found[engine] + back[engine] for engine in found}, want


def check(case: Case) -> None:
    found, want = case.results()
    tolerance = TOLERANCE[case.q.dtype.itemsize]
    assert np.isfinite(want[0]).any()
    for got in found.values():
        for x, y in zip(got, want, strict=True):
            np.testing.assert_array_equal(np.isfinite(x), np.isfinite(y))
            finite = np.isfinite(y)
            largest = np.abs(y[finite]).max(initial=1)
            np.testing.assert_allclose(x[finite], y[finite], rtol=0, atol=tolerance * largest)
    for x, y in zip(found["native"], found["NumPy"], strict=True):
        np.testing.assert_array_equal(np.isnan(x), np.isnan(y))
        np.testing.assert_array_equal(x[np.isinf(x)], y[np.isinf(y)])


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("mask", ["none", "bool", "added"])
@pytest.mark.parametrize("sizes", [(17, 17), (64, 64), (100, 37), (5, 300), (290, 40)])
def test_only_what_is_seen_contributes(sizes: tuple[int, int], mask: str, causal: bool) -> None:
    if mask == "none" and not causal:
        return  # all would be seen
    for seed, bad in enumerate((np.nan, np.nan, np.inf, -np.inf)):
        check(Case(*sizes, mask, causal, np.float32, bad, seed))


@pytest.mark.parametrize("mask, causal", [("none", True), ("bool", False), ("added", True)])
@pytest.mark.parametrize("dtype", [np.float64, wl.float16, wl.bfloat16])
def test_only_what_is_seen_contributes_in_all_types(dtype: Any, mask: str, causal: bool) -> None:
    for seed in (0, 1):
        check(Case(40, 33, mask, causal, dtype, np.nan, seed))


def test_several_tiles_of_keys() -> None:
    for mask, causal in (("none", True), ("bool", True)):
        for seed in (0, 1):
            check(Case(290, 290, mask, causal, np.float32, np.nan, seed))


def test_adjoints_that_overflow_where_nothing_is_seen() -> None:
    case = Case(33, 33, "bool", False, np.float32, 1.0)
    case.v[16], case.g[:] = 3e38, np.where(case.g > 0, 30, 20)
    found, _ = case.results()
    for got in found.values():
        assert all(np.isfinite(x).all() for x in got)


# --- other modes: what is kept apart may be anything


def padded(kind: str) -> tuple[list[Array], list[Array], Any]:
    """q, k, v with finite numbers, then with NaN where no query and no key meets another; a mask that says so."""
    rng = np.random.default_rng(3)
    clean = [rng.normal(size=(2, 19, 6)).astype(np.float32) for _ in range(3)]
    dirty = [x.copy() for x in clean]
    for x in dirty:
        x[:, 12:] = np.nan
    inside = np.arange(19) < 12
    seen = inside[:, None] & inside
    return clean, dirty, seen if kind == "bool" else np.where(seen, 0.5, -np.inf).astype(np.float32)


def modes(mask: Any, causal: bool) -> dict[str, Any]:
    def f(q: Any, k: Any, v: Any) -> Any:
        return attention(q, k, v, mask, causal=causal, scale=SCALE)[0]

    def loss(*xs: Any) -> Any:
        return (f(*xs) ** 2).sum()

    def forward(*xs: Any) -> Any:
        return wl.jvp(f, xs, tuple(wl.where(x == x, wl.cos(x), x) for x in xs))

    gradient = wl.grad(loss, argnums=(0, 1, 2))
    return {
        "value": f,
        "gradient": gradient,
        "forward mode": forward,
        "vmap": wl.vmap(lambda *xs: wl.nn.functional.scaled_dot_product_attention(*xs, mask, is_causal=causal)),
        "gradient of vmap": wl.grad(lambda *xs: (wl.vmap(f)(*xs) ** 2).sum(), argnums=(0, 1, 2)),
        "second derivative": lambda *xs: wl.jvp(gradient, xs, xs)[1],
        "reverse twice": wl.grad(lambda *xs: sum(wl.where(x == x, x, 0.0).sum() for x in gradient(*xs)), (0, 1, 2)),
    }


@pytest.mark.parametrize("engine", ["NumPy", "native"])
@pytest.mark.parametrize("kind", ["bool", "added"])
@pytest.mark.parametrize("mode", modes(None, False))
def test_padding_may_be_anything(mode: str, kind: str, engine: str) -> None:
    clean, dirty, mask = padded(kind)
    for causal in (False, True):
        f = modes(wl.tensor(mask), causal)[mode]
        f = wl.jit(f) if engine == "native" else f
        want, got = (wl.tree.leaves(f(*map(wl.tensor, xs))) for xs in (clean, dirty))
        for x, y in zip(got, want, strict=True):
            np.testing.assert_allclose(np.asarray(x)[:, :12], np.asarray(y)[:, :12], rtol=1e-4, atol=1e-5)


def test_the_adjoint_of_an_added_mask() -> None:
    clean, dirty, mask = padded("added")
    f = wl.grad(lambda m, q, k, v: (attention(q, k, v, m, causal=False, scale=SCALE)[0][:, :12] ** 2).sum())
    want, got = (np.asarray(f(wl.tensor(mask), *map(wl.tensor, xs))) for xs in (clean, dirty))
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)
    assert not got[12:].any()


def test_dropout_of_weights_leaves_padding_out() -> None:
    _, dirty, mask = padded("bool")
    out = wl.nn.functional.scaled_dot_product_attention(
        *map(wl.tensor, dirty), wl.tensor(mask), dropout_p=0.5, random_key=wl.random.key(0)
    )
    assert np.isfinite(np.asarray(out)).all()
    assert not np.asarray(out)[:, 12:].any()


def test_the_tangent_of_what_is_not_seen() -> None:
    """Forward mode, query by query: tangents of keys behind the diagonal may be anything."""
    rng = np.random.default_rng(5)
    q, k, v, tq, tk, tv = (rng.normal(size=(21, 5)) for _ in range(6))
    for x in (tk, tv, k, v):
        x[13] = np.nan
    _, lse = attention(*map(wl.tensor, (q, k, v)), causal=True, scale=SCALE)
    found = attention_tangent(*map(wl.tensor, (tq, tk, tv, q, k, v)), lse, causal=True, scale=SCALE)
    for x in map(np.asarray, found):
        assert np.isfinite(x[:13]).all()
        assert np.isnan(x[13:]).all()


def test_steps_that_see_everything_have_no_second_way() -> None:
    """Without a mask, products are what they were: there is nothing to leave out."""

    def text(causal: bool) -> str:
        avals = [Aval((64, 32), np.dtype(np.float32))] * 3
        graph = stage(lambda *xs: attention(*xs, causal=causal, scale=SCALE), avals).graph
        (step,) = (step for _, step in Program(graph).routines)
        assert isinstance(step, Attention)
        return text_of(step, machine().cpu, "step")

    assert "select i1" not in text(causal=False)
    assert "select i1" in text(causal=True)
