"""`jit` and batches of many sizes: when one program serves them, and what the user hears of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import wonderland as wl
from wonderland.engines.native.general import Sized


@pytest.fixture(autouse=True)
def native() -> Iterator[None]:
    with wl.using_backend("native"):
        yield


def general(jitted: Any) -> bool:
    return isinstance(jitted.last_trace.graph.programs["native"], Sized)


def test_after_a_few_sizes_one_program_serves_all(capsys: pytest.CaptureFixture[str]) -> None:
    f = wl.jit(lambda x, w: wl.tanh(x[:, :2] * w[0]).mean(axis=0))
    found = []
    for n in (8, 12, 9, 30, 31):
        assert f(wl.ones((n, 4)), wl.ones((4, 2))).shape == (2,)
        found.append(general(f))
    assert found == [False, False, True, True, True]
    assert capsys.readouterr().err.count("one program serves batches of all sizes") == 1


def test_filters_that_are_kept_between_calls_are_worth_more() -> None:
    layer = wl.nn.Conv2d(2, 3, 3)
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
