"""A process that meets ever new shapes: traces, programs and routines that were not used for long are given up."""

from __future__ import annotations

import gc
import os
import threading
import weakref
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import wonderland as wl
from wonderland.engines.native import keeping
from wonderland.engines.native import machine as compiling
from wonderland.engines.native.keeping import kept
from wonderland.ir import deriving
from wonderland.transforms.jit import known


@pytest.fixture(autouse=True)
def native() -> Iterator[None]:
    before = wl.get_kept_programs()
    with wl.using_backend("native"):
        yield
    wl.set_kept_programs(before)


def _program(f: Any, x: Any) -> Any:
    """The program of a compiled function for an argument, None if it has been given up."""
    return f._find((x,), {})[0].graph.programs.get("native")


def _right(f: Any, n: int) -> bool:
    x = np.linspace(0, 1, n, dtype=np.float32)
    return np.allclose(f(wl.asarray(x)), np.tanh(x) * 2, rtol=1e-6)


def _doubled() -> Any:
    """Turned around twice, so that no program serves all sizes."""
    return wl.jit(lambda x: wl.flip(wl.flip(wl.tanh(x), axis=0), axis=0) * 2)


def test_the_programs_used_last_stay() -> None:
    f = _doubled()
    wl.set_kept_programs(3)
    for n in (1, 2, 3, 1, 4, 1, 5):
        assert _right(f, n)
    assert [_program(f, wl.zeros(n)) is not None for n in (1, 2, 3, 4, 5)] == [True, False, False, True, True]
    assert len(kept) == 3
    assert _right(f, 2)  # compiled again
    wl.set_kept_programs(1)
    assert len(kept) == 1
    assert _right(f, 5)
    assert _right(f, 2)


def test_what_is_no_number_of_programs_is_refused() -> None:
    for wrong in (0, -3, 2.0, True, None):
        with pytest.raises(wl.errors.InputError, match=r"set_kept_programs: .* is not a number of programs"):
            wl.set_kept_programs(wrong)  # type: ignore[arg-type]


def test_large_programs_share_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keeping, "memory", lambda: 1 << 18)
    f = wl.jit(lambda x: wl.cumsum(wl.cumsum(x, axis=0), axis=0))  # needs memory between its steps
    for n in range(200, 212):
        f(wl.ones((n, n)))
    assert len(kept) == keeping.FEWEST
    small = _doubled()
    for n in range(1, 12):
        assert _right(small, n)
    assert _program(small, wl.zeros(11)) is not None


@pytest.mark.filterwarnings("ignore::wonderland.errors.RetraceWarning")  # that is what it is about
def test_a_program_that_is_given_up_while_it_runs_ends_well() -> None:
    f = wl.jit(lambda x, n: wl.fori_loop(0, n, lambda i, y: wl.sin(y) + i, x))
    x, results = wl.ones(500), []
    want = f(x, 200_000).numpy()

    def runs() -> None:
        with wl.using_backend("native"):
            results.append(f(x, 200_000).numpy())

    wl.set_kept_programs(1)
    thread = threading.Thread(target=runs)
    thread.start()
    g, n = _doubled(), 0
    while thread.is_alive():
        n += 1
        assert _right(g, n)
    np.testing.assert_array_equal(results[0], want)


@pytest.mark.skipif(not os.path.exists("/proc/self/maps"), reason="the mappings are not known")
@pytest.mark.filterwarnings("ignore::wonderland.errors.RetraceWarning")  # that is what it is about
def test_mappings_do_not_grow_with_the_number_of_shapes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiling, "ROUTINES", 10)
    monkeypatch.setattr(known, "TRACES", 15)
    wl.set_kept_programs(10)
    f, counts = _doubled(), []
    for n in range(1, 121):
        assert _right(f, n)
        if n % 20 == 0:
            with open("/proc/self/maps") as file:
                counts.append(sum(1 for _ in file))
    assert f.traces == 15
    assert max(counts[1:]) - min(counts[1:]) <= 6  # a hundred more shapes, with two or three mappings each


def test_a_routine_that_several_programs_use_outlives_each(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiling, "ROUTINES", 1)
    wl.set_kept_programs(2)
    f, g = _doubled(), _doubled()
    for n in (1000, 1, 2):
        assert _right(f, n)
        assert _right(g, n)
    assert _right(g, 1000)
    gc.collect()
    assert _right(g, 1000)
    assert _right(f, 2)


def test_traces_used_last_stay_and_others_are_freed_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(known, "TRACES", 3)
    f = _doubled()
    gc.collect()
    gc.disable()
    try:
        assert _right(f, 1)
        traced = f._find((wl.zeros(1),), {})[0]
        trace, program = weakref.ref(traced), weakref.ref(traced.graph.programs["native"])
        del traced
        for n in (2, 1, 3, 1, 4, 5):
            assert _right(f, n)
        assert trace() is not None
        for n in (6, 7, 8):
            assert _right(f, n)
        assert f.traces == 3
        assert trace() is None
        assert program() is None
    finally:
        gc.enable()


@pytest.mark.filterwarnings("ignore::wonderland.errors.RetraceWarning")  # that is what it is about
def test_large_traces_are_fewer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(known, "EQUATIONS", 50)

    def long(x: Any) -> Any:
        for _ in range(20):
            x = wl.sin(x)
        return x

    f = wl.jit(long)
    with wl.using_backend("numpy"):
        for n in range(1, 20):
            f(wl.ones(n))
    assert f.traces == known.FEWEST


def test_a_graph_forgets_old_answers() -> None:
    """Every batch size is a question of its own to the graph of a compiled function."""
    f = _doubled()
    x = np.linspace(0, 1, 3, dtype=np.float32)
    with wl.using_backend("numpy"):
        for n in range(1, 2 * deriving.ANSWERS):
            many = wl.vmap(f)(wl.asarray(np.tile(x, (n, 1))))
            np.testing.assert_allclose(many, np.tile(np.tanh(x) * 2, (n, 1)), rtol=1e-6)
        graph = f._find((wl.zeros(3),), {})[0].graph
    assert len(graph.answers) <= deriving.ANSWERS + 5
