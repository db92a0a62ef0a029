"""`jit` and batches of many sizes: when one program serves them, and what the user hears of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import wonderland as wl
from wonderland import nn
from wonderland.engines.native.general import Sized
from wonderland.engines.native.tuning import STEADY


@pytest.fixture(autouse=True)
def native() -> Iterator[None]:
    with wl.using_backend("native"):
        yield


def general(jitted: Any) -> bool:
    return isinstance(jitted.last_trace.graph.programs["native"], Sized)


def test_from_the_second_size_on_one_program_serves_all(capsys: pytest.CaptureFixture[str]) -> None:
    f = wl.jit(lambda x, w: wl.tanh(x[:, :2] * w[0]).mean(axis=0))
    found, told = [], []
    for n in (8, 12, 9, 30, 31, 8):
        assert f(wl.ones((n, 4)), wl.ones((4, 2))).shape == (2,)
        found.append(general(f))
        told.append(capsys.readouterr().err.count("one program serves batches of all sizes"))
    assert found == [False, True, True, True, True, False]
    assert told == [0, 0, 1, 0, 0, 0]  # two sizes are an epoch and its last batch: nothing to hear of


def test_forty_sizes_are_compiled_twice() -> None:
    """Once for the first size, and once for all others; what does not depend on the batch is shared."""
    model = nn.Sequential(nn.Linear(6, 5), nn.ReLU(), nn.Linear(5, 3))
    optimizer = wl.optim.Adam(model)

    @wl.jit
    def step(model: Any, optimizer: Any, x: Any, y: Any) -> Any:
        loss, grads = wl.value_and_grad(lambda model, x, y: nn.functional.cross_entropy(model(x), y))(model, x, y)
        optimizer.step(grads)
        return loss

    programs = set()
    for n in range(20, 60):
        step(model, optimizer, wl.ones((n, 6)), wl.zeros(n, dtype=wl.int64))
        program = step.last_trace.graph.programs["native"]  # type: ignore[union-attr]
        programs.add(program.program if isinstance(program, Sized) else program)
    assert len(programs) == 2


@pytest.mark.parametrize("first", [0, 1])
def test_a_single_row_may_be_a_case_of_its_own(first: int) -> None:
    def f(x: Any) -> Any:
        return 3 * x if x.shape[0] < 2 else x.sum(axis=0)

    g = wl.jit(f)
    found = []
    for n in (first, 5, 6, 7, 1, 8):
        assert g(wl.ones((n, 2))).tolist() == f(wl.ones((n, 2))).tolist()
        found.append(general(g))
    assert found == [False, False, True, True, False, True]


def test_a_size_that_stays_gets_a_program_of_its_own() -> None:
    def calls(f: Any, n: int, times: int) -> list[float]:
        return [float(f(wl.arange(n, dtype=wl.float32))) for _ in range(times)]

    f = wl.jit(lambda x: wl.exp(-x).sum())
    calls(f, 40, 1)
    for _ in range(3):  # in turns, no size is there to stay
        calls(f, 30, STEADY - 1)
        calls(f, 31, 1)
        assert general(f)
    values = calls(f, 30, STEADY + 1)
    assert not general(f)
    assert values == pytest.approx([1.5819767] * (STEADY + 1))
    calls(f, 33, 1)
    assert general(f)
    named = wl.jit(lambda x: wl.exp(-x).sum(), dynamic={"x": {0: "n"}})
    calls(named, 30, STEADY + 2)
    assert general(named)


def test_numbers_that_come_from_the_size_are_those_of_the_trace() -> None:
    """One that is the same at the first sizes alone, and two that are not always the same."""
    f = wl.jit(lambda x: (x.sum(axis=0) / min(x.shape[0], 30), x.mean(axis=0) * (x.shape[0] // 16)))
    for n in (33, 35, 40, 20, 36, 34, 50):
        x = wl.ones((n, 2))
        found = [leaf.tolist()[0] for leaf in f(x)]
        assert found == pytest.approx([n / min(n, 30), n // 16])
        assert general(f) == (33 < n < 48)


def test_filters_that_are_kept_between_calls_are_worth_more() -> None:
    layer = nn.Conv2d(2, 3, 3)
    f = wl.jit(lambda layer, x: layer(x))
    found = []
    for n in (3, 4, 5, 6):
        f(layer, wl.ones((n, 5, 5, 2)))
        found.append(general(f))
    assert not any(found)
    named = wl.jit(lambda layer, x: layer(x), dynamic={"x": {0: "batch"}})
    named(layer, wl.ones((3, 5, 5, 2)))
    assert general(named)


def test_sizes_are_told_apart_from_other_changes() -> None:
    f = wl.jit(lambda x, y: x.sum() + y.sum())
    for n in (8, 9, 10, 11):
        f(wl.ones(n), wl.ones(2 * n + 1))  # not one batch
        assert not general(f)
    for n in (8, 9, 10, 11):
        f(wl.ones((5, n)), wl.ones(3))  # not the first axis
        assert not general(f)


def test_a_function_that_looks_at_the_size_gets_what_it_asks_for() -> None:
    f = wl.jit(lambda x: x.sum(axis=0) if x.shape[0] < 100 else x.max(axis=0), dynamic={"x": {0: "batch"}})
    assert [float(f(wl.ones((n, 1)))[0]) for n in (50, 99, 100, 101, 20)] == [50, 99, 1, 1, 20]
    assert general(f)


def test_a_new_environment_has_constants_of_its_own() -> None:
    scale = [2.0]
    f = wl.jit(lambda x: (x * scale[0]).sum(axis=0), dynamic={"x": {0: "batch"}})
    assert [float(f(wl.ones((n, 1)))[0]) for n in (10, 11)] == [20, 22]
    scale[0] = 3.0
    assert [float(f(wl.ones((n, 1)))[0]) for n in (10, 11, 1, 0)] == [30, 33, 3, 0]


def test_parts_of_an_argument_and_names() -> None:
    f = wl.jit(lambda batch, scale: (batch["x"] * scale).sum(axis=0) + batch["y"].sum(), dynamic={"batch": {0: "n"}})
    for n in (5, 6, 70):
        found = f(batch={"x": wl.ones((n, 2)), "y": wl.ones(n)}, scale=wl.ones(2))
        assert found.tolist() == [2 * n, 2 * n]
        assert general(f)


@pytest.mark.parametrize(
    ("dynamic", "why"),
    [
        ({}, "dynamic="),
        ({"z": {0: "batch"}}, "arguments are"),
        ({"x": {1: "batch"}}, "dynamic="),
        ({"x": 0}, "dynamic="),
        ({"x": {0: "n"}, "y": {0: "m"}}, "several"),
    ],
)
def test_what_dynamic_may_be(dynamic: Any, why: str) -> None:
    with pytest.raises(wl.errors.InputError, match=why):
        wl.jit(lambda x, y: x, dynamic=dynamic)


def test_dynamic_arguments_have_one_size() -> None:
    f = wl.jit(lambda x, y: x.sum() + y.sum(), dynamic={"x": {0: "n"}, "y": {0: "n"}})
    with pytest.raises(wl.errors.InputError, match="rows"):
        f(wl.ones(3), wl.ones(4))
    with pytest.raises(wl.errors.InputError, match="no axis"):
        f(wl.ones(()), wl.ones(()))


def test_many_sizes_are_no_reason_to_warn() -> None:
    f = wl.jit(lambda x: wl.tanh(x).sum(axis=0), dynamic={"x": {0: "batch"}})
    for n in range(2, 30):
        f(wl.ones((n, 3)))
    assert "was float32" in f.why()
