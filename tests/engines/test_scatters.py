"""Scatters in native code: every mode, dtype and layout, repeated and negative indices, chunks, errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import wonderland as wl
from tests.engines.engines import native, raises_alike, same
from wonderland.core.primitive import TABLE

scatter, gather = TABLE["scatter"], TABLE["gather"]
MODES = ["add", "set", "multiply", "min", "max"]
DTYPES = [np.float32, np.float64, np.float16, wl.bfloat16, np.int8, np.int64, np.uint32, np.bool_]


def numbers(rng: Any, shape: Any, dtype: Any) -> Any:
    return (
        (rng.normal(size=shape) * 3)
        .astype(np.float32)
        .astype(np.int64 if np.dtype(dtype).kind in "iu" else np.float32)
        .astype(dtype)
    )


@st.composite
def problems(draw: Any) -> Any:
    shape = tuple(draw(st.lists(st.integers(1, 20), min_size=1, max_size=3)))
    axes = tuple(draw(st.permutations(range(len(shape))))[: draw(st.integers(1, len(shape)))])
    block = tuple(draw(st.lists(st.integers(1, 5), max_size=2)))
    rng = np.random.default_rng(draw(st.integers(0, 1000)))
    dtype = draw(st.sampled_from(DTYPES))
    rest = tuple(n for a, n in enumerate(shape) if a not in axes)
    indices = [rng.integers(-shape[a], shape[a], block) for a in axes]
    return numbers(rng, shape, dtype), numbers(rng, block + rest, dtype), indices, axes


@given(problems(), st.sampled_from(MODES))
def test_scatters_agree(problem: Any, mode: str) -> None:
    x, updates, indices, axes = problem
    same(lambda x, u, *i: scatter(x, u, *i, axes=axes, mode=mode), x, updates, *indices)


@pytest.mark.parametrize(
    "shape, axes, count",
    [
        ((300, 16), (0,), 3000),  # short rows: one piece
        ((96, 1024), (0,), 512),  # long rows are cut
        ((1000, 3), (0, 1), 2000),  # single elements: one piece
        ((3, 2000), (0,), 300),
        ((200, 30), (1,), 900),  # what is selected does not lie together
    ],
    ids=str,
)
@pytest.mark.parametrize("mode", ["add", "set"])
def test_threads_do_not_change_the_sums(shape: Any, axes: Any, count: int, mode: str) -> None:
    rng = np.random.default_rng(0)
    rest = tuple(n for a, n in enumerate(shape) if a not in axes)
    updates = rng.normal(size=(count, *rest)).astype(np.float32)
    indices = [rng.integers(-shape[a], shape[a], count) for a in axes]
    x = np.zeros(shape, np.float32)
    program = same(lambda x, u, *i: scatter(x, u, *i, axes=axes, mode=mode), x, updates, *indices, threads=True)
    assert program.schedule.steps[-1].chunks > 1 or shape in ((300, 16), (1000, 3))


def test_updates_of_different_rows_are_shared_out() -> None:
    rng = np.random.default_rng(0)
    updates, columns = rng.normal(size=(9000, 2)).astype(np.float32), rng.integers(-50, 50, (9000, 2))

    def f(u: Any, i: Any) -> Any:
        rows = wl.broadcast_to(wl.arange(9000)[:, None], (9000, 2))
        return scatter(wl.zeros((9000, 50)), u, rows, i, axes=(0, 1), mode="add")

    program = same(f, updates, columns, threads=True)
    assert program.schedule.steps[-1].chunks > 1


def test_messages_between_nodes_are_gathered_on_the_way() -> None:
    """The sum over the edges of a graph reads its messages where the nodes are."""
    rng = np.random.default_rng(1)
    nodes, weight = rng.normal(size=(50, 24)).astype(np.float32), rng.normal(size=(400, 1)).astype(np.float32)
    source, target = rng.integers(0, 50, 400), rng.integers(0, 50, 400)

    def f(x: Any, w: Any, i: Any, j: Any) -> Any:
        return scatter(wl.zeros((50, 24)), gather(x, i, axes=(0,)) * w, j, axes=(0,), mode="add")

    program = same(f, nodes, weight, source, target)
    assert len(program.schedule.steps) == 2  # zeros, and the rest


def test_half_precision_is_accumulated_in_float32() -> None:
    ones = np.ones(5000, np.float16)
    program, arrays = native(
        lambda u, i: scatter(wl.zeros(1, dtype=wl.float16), u, i, axes=(0,), mode="add"), ones, np.zeros(5000, np.int64)
    )
    assert program(arrays)[0].item() == 5000  # 2048 + 1 is 2048 in float16


@pytest.mark.parametrize("dtype", [wl.bfloat16, np.int8, np.float16], ids=str)
@pytest.mark.parametrize("length", [17, 33, 19])
def test_what_is_beside_a_row_is_left_alone(length: int, dtype: Any) -> None:
    """The last vector of a row has one lane that counts."""
    rng = np.random.default_rng(0)
    x, updates = numbers(rng, (4, length), dtype), numbers(rng, (1, length), dtype)
    for row in range(4):
        same(lambda x, u, i: scatter(x, u, i, axes=(0,), mode="multiply"), x, updates, np.array([row]))
        same(lambda x, u, row=row: x.at[row].set(u[0].astype(wl.int32).astype(x.dtype)), x, updates)


@given(problems(), st.sampled_from(MODES))
def test_scatters_that_drop_agree(problem: Any, mode: str) -> None:
    x, updates, indices, axes = problem
    wild = [i * 2 for i in indices]
    same(lambda x, u, *i: scatter(x, u, *i, axes=axes, mode=mode, drop=True), x, updates, *wild)


@pytest.mark.parametrize("bad", [4, -5, 1000])
def test_an_index_out_of_range_raises(bad: int) -> None:
    def f(x: Any, u: Any, i: Any) -> Any:
        return scatter(x, u, i, axes=(0,), mode="add") * 2

    text = raises_alike(f, np.ones((4, 3)), np.ones((2, 3)), np.array([0, bad]))
    assert f"index {bad} is out of range for axis 0 of size 4" in text
    raises_alike(f, np.ones((4, 0)), np.ones((2, 0)), np.array([0, bad]))


def test_after_an_error_a_program_works_again() -> None:
    program, (x, u, i) = native(
        lambda x, u, i: scatter(x, u, i, axes=(0,), mode="set"), np.ones(4), np.zeros(2), np.array([0, 9])
    )
    assert program.schedule.status in program.schedule.steps[-1].reads  # so it is known that the step can fail
    with pytest.raises(wl.errors.IndexOutOfRange):
        program([x, u, i])
    np.testing.assert_array_equal(program([x, u, i % 4])[0], [0, 0, 1, 1])


@given(problems())
def test_gathers_agree(problem: Any) -> None:
    x, _, indices, axes = problem
    same(lambda x, *i: gather(x, *i, axes=axes), x, *indices)
    same(lambda x, *i: gather(x, *i, axes=axes).T, x, *indices)


def test_state_is_as_before_when_an_index_is_bad() -> None:
    """New parameters may be written in the place of the old ones only when nothing can fail any more."""
    model = wl.nn.Linear(3, 3)

    @wl.jit
    def step(model: Any, i: Any) -> Any:
        model.weight.assign(model.weight * 2)
        return wl.zeros(4).at[i].add(wl.sin(model.weight).sum())

    with wl.using_backend("native"):
        step(model, wl.asarray([1, 2]))
        before = np.asarray(model.weight).copy()
        with pytest.raises(wl.errors.IndexOutOfRange):
            step(model, wl.asarray([1, 9]))
        np.testing.assert_array_equal(np.asarray(model.weight), before)
        step(model, wl.asarray([1, 3]))
        np.testing.assert_array_equal(np.asarray(model.weight), 2 * before)
