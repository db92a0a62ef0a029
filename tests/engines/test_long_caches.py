"""A few queries over a long cache: chunks share its keys, and what they find is put together."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import wonderland as wl
from tests.engines.engines import same
from wonderland.engines.native.attention import few
from wonderland.engines.native.attention.few import FewQueries, Joined, Sharing
from wonderland.engines.native.program import Program
from wonderland.primitives.attention import attention


@pytest.fixture(autouse=True)
def cut_early(monkeypatch: pytest.MonkeyPatch) -> None:
    """Into parts as of caches of some megabytes."""
    monkeypatch.setattr(few, "LONG_READ", 2)


def cache(rows: int, places: int, heads: int, size: int, dtype: Any = np.float32) -> list[Any]:
    """Queries (rows, heads, 1, size), keys and values as a cache has them, (rows, places, heads, size)."""
    rng = np.random.default_rng(places)
    shapes = (rows, heads, 1, size), (rows, places, heads, size), (rows, places, heads, size)
    return [rng.normal(size=shape).astype(dtype) for shape in shapes]


def attended(*given: str, inside: bool = True, **options: Any) -> Any:
    if given:
        options["given"] = given

    def f(q: Any, k: Any, v: Any, *more: Any) -> Any:
        if inside:
            k, v = wl.swapaxes(k, 1, 2), wl.swapaxes(v, 1, 2)
        return attention(q, k, v, *more, **{"scale": 0.3, "causal": False} | options)

    return f


def sharing(program: Program) -> Sharing:
    steps = program.schedule.steps
    (found,) = [step for step in steps if isinstance(step, FewQueries)]
    assert any(isinstance(step, Joined) for step in steps) == (found.shared.parts > 1)
    return found.shared


@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float32, 1e-5), (np.float64, 1e-12), (wl.bfloat16, 2e-2)])
@pytest.mark.parametrize(("places", "size"), [(300, 16), (521, 20)])
def test_all_heads_of_some_places(places: int, size: int, dtype: Any, tolerance: float) -> None:
    f = attended()
    program = same(f, *cache(2, places, 3, size, dtype), rtol=tolerance, atol=tolerance, threads=True)
    shared = sharing(program)
    assert shared.heads == 3
    assert shared.parts > 1


@pytest.mark.parametrize("offsets", [(5, 290), (0, 31), (-1, 700)])
def test_rows_with_lengths_of_their_own(offsets: tuple[int, int]) -> None:
    """Parts without a key that is seen, and rows that see nothing."""
    given = np.array(offsets)[:, None]
    for window in ({}, {"window": 40}):
        options: dict[str, Any] = {**window}
        f = attended("offsets", causal=True, **options)
        program = same(f, *cache(2, 300, 3, 16), given, rtol=1e-5, atol=1e-5, threads=True)
        assert sharing(program).heads == 3


def test_heads_that_see_different_keys_are_apart() -> None:
    given = np.array([[3, 250, 100]])
    program = same(attended("offsets", causal=True), *cache(1, 300, 3, 16), given, rtol=1e-5, atol=1e-5)
    assert sharing(program).heads == 1


def test_heads_one_after_the_other() -> None:
    q, k, v = cache(1, 400, 2, 24)
    k, v = (np.ascontiguousarray(x.swapaxes(1, 2)) for x in (k, v))
    program = same(attended(inside=False), q, k, v, rtol=1e-5, atol=1e-5, threads=True)
    assert sharing(program).heads == 1
    assert sharing(program).parts > 1


def test_masks_and_what_they_hide() -> None:
    q, k, v = cache(2, 300, 3, 16)
    mask = np.random.default_rng(0).random((2, 1, 1, 300)) < 0.3
    mask[1] = False
    hidden = ~mask[0, 0, 0]
    k[0, hidden], v[0, hidden] = np.nan, np.inf
    program = same(attended(), q, k, v, mask, rtol=1e-5, atol=1e-5, threads=True)
    assert sharing(program).parts > 1


def test_slopes_of_heads() -> None:
    slopes = np.random.default_rng(1).uniform(0.01, 0.1, (2, 3, 1)).astype(np.float32)
    same(attended("slopes", causal=True), *cache(2, 300, 3, 16), slopes, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("t", [1, 3, 7])
@pytest.mark.parametrize("kept", [np.float32, np.float16, wl.bfloat16])
def test_several_queries_and_keys_of_another_type(t: int, kept: Any) -> None:
    """What is kept in half precision is read as it is: nothing as large as the cache is written."""
    _, k, v = cache(2, 521, 3, 20)
    q = np.random.default_rng(t).normal(size=(2, 3, t, 20)).astype(np.float32)
    given = np.array([[400], [17]])

    def f(q: Any, k: Any, v: Any, offsets: Any) -> Any:
        k, v = (wl.astype(x, q.dtype) for x in (k, v))
        return attended("offsets", causal=True)(q, k, v, offsets)

    program = same(f, q, k.astype(kept), v.astype(kept), given, rtol=1e-5, atol=1e-5, threads=True)
    assert sharing(program).heads == 3
    (step,) = [step for step in program.schedule.steps if isinstance(step, FewQueries)]
    assert step.k.dtype == step.v.dtype == np.dtype(kept)


def test_short_caches_are_not_cut() -> None:
    program = same(attended(), *cache(1, 60, 3, 16), rtol=1e-5, atol=1e-5)
    assert sharing(program).parts == 1
