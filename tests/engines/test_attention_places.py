"""Attention whose queries have places: windows, groups that share a place, offsets, slopes. Native steps against NumPy.

What the options mean is compared with sums over pairs in test_attention_masks.py's way, and with masks in tests/nn.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import wonderland as wl
from tests.engines.engines import native, on_threads, same
from tests.engines.test_attention_masks import over_pairs
from wonderland.engines.native.attention.forward import Attention
from wonderland.engines.native.attention.gradients import AttentionGradients
from wonderland.primitives.attention import attention, attention_backward
from wonderland.primitives.sight import Options

Array = np.ndarray[Any, Any]
SCALE = 0.3
TOLERANCE = {2: 2e-2, 4: 3e-5, 8: 1e-12}
KINDS: list[dict[str, Any]] = [
    {"causal": True, "window": 7},
    {"causal": False, "window": 50},
    {"causal": True, "group": 2},
    {"causal": True, "group": 5, "window": 33},
    {"causal": True},
    {"causal": False, "group": 2},
]
SHAPES = [((), 300, 300, 40, 48), ((9,), 70, 70, 20, 12), ((2,), 40, 530, 64, 64), ((3, 2), 270, 40, 8, 16)]


class Problem:
    """Arguments of attention and of its gradients."""

    def __init__(self, shape: Any, kind: dict[str, Any], dtype: Any, offsets: str, slopes: bool, seed: int = 0) -> None:
        lead, t, s, d, e = shape
        rng = np.random.default_rng(seed)
        wide = np.float32 if np.dtype(dtype).itemsize < 4 else dtype
        self.qkv = [rng.normal(size=(*lead, n, m)).astype(dtype) for n, m in ((t, d), (s, d), (s, e))]
        self.adjoints = [rng.normal(size=(*lead, t, *more)).astype(wide) for more in ((e,), ())]
        given: dict[str, Array] = {}
        if offsets != "none":
            each = np.arange(np.prod(lead, dtype=int)).reshape(lead) * 31 - 5
            given["offsets"] = each if offsets == "each" else np.array(int(offsets))
        if slopes:
            given["slopes"] = rng.uniform(0.1, 0.5, (*lead, t)).astype(wide)
        self.operands = list(given.values())
        self.params: Any = {"scale": SCALE, **kind} | ({"given": tuple(given)} if given else {})

    def forward(self, *args: Any) -> Any:
        return attention(*args, **self.params)

    def backward(self, *args: Any) -> Any:
        return attention_backward(*args, **self.params)

    def arguments(self) -> list[list[Array]]:
        """Of the one and of the other."""
        lse = attention.impl(*self.qkv, *self.operands, **self.params)[1]
        return [[*self.qkv, *self.operands], [*self.adjoints, *self.qkv, lse, *self.operands]]


def agree(problem: Problem, threads: bool = False) -> None:
    tolerance = TOLERANCE[problem.qkv[0].dtype.itemsize]
    for f, arrays in zip((problem.forward, problem.backward), problem.arguments(), strict=True):
        same(f, *arrays, rtol=tolerance, atol=20 * tolerance, threads=threads)


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_places(kind: dict[str, Any]) -> None:
    ways = [("none", False), ("each", True), ("37", False), ("each", False)]
    for shape, (offsets, slopes) in zip(SHAPES, np.roll(ways, len(str(kind)), axis=0).tolist(), strict=True):
        agree(Problem(shape, kind, np.float32, offsets, slopes == "True"))


@pytest.mark.parametrize("dtype", [np.float64, wl.float16, wl.bfloat16])
def test_places_in_all_types(dtype: Any) -> None:
    for kind, offsets in ((KINDS[1], "each"), (KINDS[3], "none")):
        agree(Problem(SHAPES[1], kind, dtype, offsets, slopes=True))
    agree(Problem(SHAPES[2], KINDS[0], dtype, "480", slopes=True))


def test_threads_change_nothing() -> None:
    for lead, t, s, kind in (((), 400, 400, KINDS[0]), ((16,), 60, 300, KINDS[3]), ((16,), 1, 700, KINDS[4])):
        shape = lead, t, s, 32, 32
        problem = Problem(shape, kind, np.float32, "each", slopes=True)
        agree(problem, threads=True)


def test_few_queries_of_a_cache() -> None:
    for rows, dtype in itertools.product((1, 2, 4), (np.float32, wl.bfloat16)):
        for seed, offset in enumerate(("99", "2000", "-3")):
            kind = {"causal": True, "group": rows}
            agree(Problem(((3,), rows, 600, 64, 64), kind, dtype, offset, slopes=False, seed=seed))


# --- what is out of sight may be anything


@pytest.mark.parametrize("kind", KINDS[:5], ids=str)
@pytest.mark.parametrize("sizes", [(40, 45), (290, 290), (5, 300)], ids=str)
def test_only_what_is_seen_contributes(sizes: tuple[int, int], kind: dict[str, Any]) -> None:
    t, s = sizes
    for seed, bad in enumerate((np.nan, np.inf)):
        problem = Problem(((), t // 5 * 5, s, 9, 20), kind | {"group": 5 if "group" in kind else 1}, np.float32,
                          "none" if t == s else "7", slopes=False, seed=seed)  # fmt: skip
        q, k, v = problem.qkv
        for x in ((k, v), (q, problem.adjoints[0]))[seed]:
            x[len(x) // 2] = bad
        options = Options(**problem.params)
        low, high = options.bounds(np.arange(len(q)) // options.group + (0 if t == s else 7), s)
        seen = (np.arange(s) >= low[:, None]) & (np.arange(s) < high[:, None])
        with np.errstate(all="ignore"):
            wide = [x.astype(np.float64) for x in (*problem.qkv, *problem.adjoints)]
            want = over_pairs(wide[0], wide[1], wide[2], np.zeros((len(q), s)), seen, wide[3], wide[4])
            first, second = problem.arguments()
            found = []
            for f, arrays in ((problem.forward, first), (problem.backward, second)):
                program, arguments = native(f, *arrays)
                found += program(arguments)
            meant = [*problem.forward(*map(wl.tensor, first)), *problem.backward(*map(wl.tensor, second))]
        for x, y, z in zip(found, map(np.asarray, meant), want, strict=True):
            for mine in (x, y):
                np.testing.assert_array_equal(np.isfinite(mine), np.isfinite(z))
                fine = np.isfinite(z)
                np.testing.assert_allclose(mine[fine], z[fine], rtol=1e-3, atol=1e-4)


# --- work in proportion to the window


def test_a_window_takes_linear_work() -> None:
    def work(t: int) -> list[int]:
        problem = Problem(((), t, t, 8, 8), {"causal": True, "window": 64}, np.float32, "none", slopes=False)
        found = [
            native(f, *a)[0] for f, a in zip((problem.forward, problem.backward), problem.arguments(), strict=True)
        ]
        return [step.work[1] for program in found for _, step in program.routines]

    assert all(b < 2.2 * a for a, b in zip(work(2048), work(4096), strict=True))


def test_tiles_out_of_the_window_are_not_touched() -> None:
    """Keys far from a query are not even read: the memory before and behind the cache's window may be anything."""
    problem = Problem(((), 8, 2048, 16, 16), {"causal": True, "window": 20}, np.float32, "1000", slopes=False)
    first, second = problem.arguments()
    _, k, v, _ = first
    out, lse = on_threads(*native(problem.forward, *first))
    k[:900] = v[:900] = k[1100:] = v[1100:] = np.nan
    again = on_threads(*native(problem.forward, *first))
    assert [x.tobytes() for x in again] == [out.tobytes(), lse.tobytes()]
    program, arguments = native(problem.backward, *second)
    dq, dk, dv = program(arguments)
    assert not dk[:900].any()
    assert not dv[1100:].any()
    assert np.isfinite(dq).all()


def test_gradients_of_the_whole() -> None:
    """The steps that a user's function becomes, with the gradient of slopes."""
    problem = Problem(((2, 2), 30, 30, 8, 8), {"causal": True, "window": 9}, np.float64, "none", slopes=True)

    def loss(*args: Any) -> Any:
        return wl.sum(attention(*args, **problem.params)[0] ** 2)

    program = same(wl.grad(loss, argnums=(0, 1, 2, 3)), *problem.arguments()[0], rtol=1e-9, atol=1e-10)
    kinds = {type(step) for step in program.schedule.steps}
    assert {Attention, AttentionGradients} <= kinds
