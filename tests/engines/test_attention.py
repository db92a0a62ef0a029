"""The native steps of attention against the NumPy rules of its primitives, and on one thread against several."""

from __future__ import annotations

import ctypes
import mmap
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import wonderland as wl
from wonderland.core.primitive import Aval
from wonderland.engines.native import Program
from wonderland.engines.native.attention.few import FewQueries
from wonderland.engines.native.attention.forward import Attention
from wonderland.engines.native.attention.gradients import AttentionGradients
from wonderland.engines.native.machine import machine
from wonderland.engines.numpy.evaluate import evaluate
from wonderland.ir.stage import stage
from wonderland.primitives.attention import attention, attention_backward

Array = np.ndarray[Any, Any]
LANES = machine().cpu.lanes(4)
TOLERANCE = {np.dtype(np.float64): 2e-14, np.dtype(np.float32): 1e-5}


@pytest.fixture(autouse=True)
def same_threads() -> Iterator[None]:
    before = wl.get_threads()
    yield
    wl.set_threads(before)


def compiled(f: Any, arrays: list[Array]) -> Program:
    return Program(stage(lambda *xs: wl.tree.leaves(f(*xs)), [Aval(a.shape, a.dtype) for a in arrays]).graph)


def close(got: Array, want: Array) -> None:
    """Equal up to rounding, relative to the largest element, but for sums that come to little."""
    assert (got.shape, got.dtype) == (want.shape, want.dtype)
    tolerance = TOLERANCE.get(want.dtype, 1e-2)
    got, want = got.astype(np.float64), want.astype(np.float64)
    np.testing.assert_allclose(got, want, rtol=0, atol=tolerance * max(0.05, float(np.abs(want).max(initial=0))))


def agree(f: Any, arrays: list[Array]) -> tuple[Program, list[Array]]:
    """The native program gives what NumPy gives; returns it with what NumPy gives."""
    program = compiled(f, arrays)
    want = evaluate(program.graph, arrays)
    for x, y in zip(program(arrays), want, strict=True):
        close(x, y)
    return program, want


def both(q: Array, k: Array, v: Array, *mask: Array, causal: bool = False, scale: float = 0.3) -> list[Program]:
    """Check both directions."""
    options: dict[str, Any] = {"causal": causal, "scale": scale}
    forward, (out, lse) = agree(lambda *xs: attention(*xs, **options), [q, k, v, *mask])
    rng = np.random.default_rng(1)
    g, h = (np.asarray(rng.normal(size=x.shape)).astype(lse.dtype) for x in (out, lse))
    backward, _ = agree(lambda *xs: attention_backward(*xs, **options), [g, h, q, k, v, lse, *mask])
    assert {type(step) for step in forward.schedule.steps} == {FewQueries if 2 * q.shape[-2] <= LANES else Attention}
    assert {type(step) for step in backward.schedule.steps} == {AttentionGradients}
    return [forward, backward]


def factors(
    lead: tuple[int, ...], t: int, s: int, d: int, e: int, dtype: Any = np.float32, seed: int = 0
) -> list[Array]:
    rng = np.random.default_rng(seed)
    return [rng.normal(size=(*lead, *shape)).astype(dtype) for shape in ((t, d), (s, d), (s, e))]


def mask_of(kind: str, lead: tuple[int, ...], t: int, s: int, dtype: Any = np.float32) -> list[Array]:
    rng = np.random.default_rng(2)
    shape = {"rows": (t, 1), "columns": (s,), "one": (1, 1), "matrix": (t, s), "all": (*lead, t, s)}
    if kind == "none":
        return []
    if kind == "float":
        return [rng.normal(size=(t, s)).astype(dtype)]
    return [rng.random(shape[kind]) < 0.7]


MASKS = ["none", "float", "rows", "columns", "one", "matrix", "all"]


@settings(max_examples=40, deadline=None)
@given(
    lead=st.sampled_from([(), (1,), (3,), (2, 2)]),
    sizes=st.tuples(st.integers(1, 70), st.integers(1, 70)),
    features=st.tuples(st.integers(1, 40), st.integers(1, 70)),
    mask=st.sampled_from(MASKS),
    causal=st.booleans(),
    dtype=st.sampled_from([np.float32, np.float64]),
)
def test_any_shapes(
    lead: tuple[int, ...], sizes: tuple[int, int], features: tuple[int, int], mask: str, causal: bool, dtype: Any
) -> None:
    both(*factors(lead, *sizes, *features, dtype), *mask_of(mask, lead, *sizes, dtype), causal=causal)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("t, s", [(300, 300), (40, 530), (530, 40)])
def test_several_tiles_of_keys(t: int, s: int, causal: bool) -> None:
    for lead in [(), (9,)]:  # few matrices are cut into chunks, many are not
        both(*factors(lead, t, s, 40, 48), causal=causal)


@pytest.mark.parametrize("t", [197, 272, 352])  # an odd number, and groups that end behind the last query of a tile
def test_tiles_that_are_no_power_of_two(t: int) -> None:
    for causal in (False, True):
        both(*factors((9,), t, t, 20, 12), causal=causal)


@pytest.mark.parametrize("dtype", [wl.float16, wl.bfloat16])
def test_half_types(dtype: Any) -> None:
    for lead, t, s in [((2,), 33, 20), ((), 40, 600), ((9,), 17, 300)]:
        both(*factors(lead, t, s, 20, 36, dtype), *mask_of("float", lead, t, s, dtype), causal=t > s)


def test_a_later_tile_with_larger_scores_shrinks_the_sums() -> None:
    q, k, v = factors((2,), 20, 700, 32, 32)
    k *= np.linspace(0, 8, 700, dtype=np.float32)[:, None]  # scores to -40 and beyond
    both(q, k, v)
    both(-np.abs(q), np.abs(k), v)  # the largest come first


def test_a_query_that_sees_nothing_gives_zeros() -> None:
    q, k, v = factors((3,), 40, 300, 16, 24)
    mask = np.ones((3, 40, 300), bool)
    mask[:, 7] = mask[1] = False
    mask[:, 9, :200] = False  # sees nothing in the first tiles
    forward, _ = both(q, k, v, mask)
    out, lse = forward([q, k, v, mask])
    assert not out[:, 7].any()
    assert not out[1].any()
    assert not lse[:, 7].any()
    below = np.where(mask, 0, -np.inf).astype(np.float32)
    both(q, k, v, below)


@pytest.mark.parametrize("causal", [False, True])
def test_views_are_read_where_they_lie(causal: bool) -> None:
    x = np.random.default_rng(0).normal(size=(2, 50, 3, 4, 24)).astype(np.float32)

    def split(x: Any) -> Any:
        y = wl.transpose(x, (2, 0, 3, 1, 4))
        return attention(y[0], y[1], y[2], causal=causal, scale=0.2)

    program, _ = agree(lambda x: wl.swapaxes(split(x)[0], 1, 2).reshape(2, 50, 96), [x])
    assert [type(step) for step in program.schedule.steps] == [Attention]  # and no copies
    agree(split, [x])
    program, _ = agree(wl.grad(lambda x: wl.sum(split(x)[0] ** 2 + wl.sin(split(x)[1])[..., None])), [x])
    assert AttentionGradients in {type(step) for step in program.schedule.steps}

    def turned(q: Any, k: Any, v: Any) -> Any:
        return attention(q, wl.swapaxes(k, -1, -2), v[..., ::2], causal=causal, scale=0.2)

    agree(turned, [x[:, :, 0, 0], x[:, :, 1, 0].swapaxes(1, 2).copy(), x[:, :, 2, 0]])


def test_values_whose_rows_compete_for_the_cache_are_copied() -> None:
    for heads, near in [(5, True), (64, False)]:  # rows are a multiple of 4096 bytes apart
        x = np.random.default_rng(0).normal(size=(1, 20, 3, heads, 16)).astype(np.float32)

        def split(x: Any) -> Any:
            y = wl.transpose(x, (2, 0, 3, 1, 4))
            return attention(y[0], y[1], y[2], causal=True, scale=0.2)

        program, _ = agree(lambda x, split=split: wl.swapaxes(split(x)[0], 1, 2), [x])
        (step,) = program.schedule.steps
        assert isinstance(step, Attention)
        assert step.near == near


@pytest.mark.skipif(sys.platform == "win32", reason="needs mprotect")
@pytest.mark.parametrize("causal", [False, True])
def test_nothing_behind_the_last_row_is_read(causal: bool) -> None:
    page, arrays = mmap.PAGESIZE, factors((2,), 37, 35, 16, 16)
    guarded, held = [], []
    for array in arrays:
        pages = -(-array.nbytes // page)
        memory = mmap.mmap(-1, (pages + 1) * page)
        start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
        assert ctypes.CDLL(None).mprotect(ctypes.c_void_p(start + pages * page), page, 0) == 0
        found = np.frombuffer(memory, array.dtype, array.size, pages * page - array.nbytes).reshape(array.shape)
        found[:] = array
        guarded.append(found)
        held.append(memory)
    program = compiled(lambda *xs: attention(*xs, causal=causal, scale=0.3), arrays)
    for x, y in zip(program(guarded), program(arrays), strict=True):
        np.testing.assert_array_equal(x, y)


def test_a_derivative_of_the_whole() -> None:
    q, k, v = factors((2, 3), 21, 21, 8, 8)

    def loss(q: Any, k: Any, v: Any) -> Any:
        return wl.sum(attention(q, k, v, causal=True, scale=0.4)[0] ** 2)

    agree(wl.grad(loss, argnums=(0, 1, 2)), [q, k, v])


@pytest.mark.parametrize("lead, t, s", [((16,), 64, 64), ((), 400, 700)])
@pytest.mark.parametrize("dtype", [np.float32, wl.bfloat16])
def test_results_do_not_depend_on_the_number_of_threads(lead: tuple[int, ...], t: int, s: int, dtype: Any) -> None:
    q, k, v = factors(lead, t, s, 32, 32, dtype)
    programs = both(q, k, v, causal=True)
    assert all(step.chunks > 1 for program in programs for _, step in program.routines)
    out, lse = programs[0]([q, k, v])
    arguments = [[q, k, v], [out.astype(lse.dtype), lse, q, k, v, lse]]
    found = []
    for threads in (1, 2, 3):
        wl.set_threads(threads)
        found.append([x.tobytes() for program, a in zip(programs, arguments, strict=True) for x in program(a)])
    assert found[0] == found[1] == found[2]


def test_what_is_empty_or_huge_is_left_to_numpy() -> None:
    for shape in [(2, 0, 5, 4, 4), (2, 5, 0, 4, 4), (1, 2, 3, 1200, 4)]:
        lead, *sizes = shape
        q, k, v = factors((lead,), *sizes)
        program, _ = agree(lambda q, k, v: attention(q, k, v, causal=False, scale=1.0), [q, k, v])
        assert Attention not in {type(step) for step in program.schedule.steps}
