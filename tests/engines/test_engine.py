"""Every engine of the table keeps the promises of engines/engine.py."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

import wonderland as wl
from wonderland.core import dtypes
from wonderland.core.primitive import Aval
from wonderland.engines import choosing
from wonderland.engines.engine import TABLE, Row, engine
from wonderland.engines.numpy.evaluate import evaluate
from wonderland.ir import Graph, stage

Array = np.ndarray[Any, Any]
every_engine = pytest.mark.parametrize("name", [name for name, row in TABLE.items() if row.missing is None])


def graph_of(f: Any, *arrays: Array) -> Graph:
    return stage(f, [Aval(a.shape, dtypes.as_dtype(a.dtype)) for a in arrays]).graph


@every_engine
@pytest.mark.parametrize("dtype", dtypes.ALL, ids=str)
def test_every_dtype(name: str, dtype: Any) -> None:
    x = np.arange(6).reshape(2, 3).astype(dtype)
    graph = graph_of(lambda x: [x + x, x.T.reshape(6), wl.where(x == x, x, x[:1])], x)
    for mine, reference in zip(engine(name).program(graph)([x], (), None), evaluate(graph, [x]), strict=True):
        assert mine.dtype == reference.dtype
        np.testing.assert_array_equal(mine, reference)


@every_engine
def test_a_program_is_made_once(name: str) -> None:
    graph = graph_of(lambda x: [x * 2], np.ones(3))
    program = engine(name).program(graph)
    assert engine(name).program(graph) is program is graph.programs[name]


@every_engine
def test_only_owned_inputs_are_overwritten_and_new_state_is_delivered(name: str) -> None:
    graph = graph_of(lambda w, x: [(w * x).sum(), w - x], np.zeros(1000), np.zeros(1000))
    graph.states = {1: 0}
    program = engine(name).program(graph)
    x = np.arange(1000.0)
    for owned in ((), (0,)):
        w, delivered = np.ones(1000), []

        def deliver(outs: list[Array], given: Any, delivered: list[Any] = delivered) -> list[Any]:
            assert set(given.values()) <= {0}
            delivered.append((outs[1], dict(given)))
            return []

        total, new = program([w, x], owned, deliver)
        assert total == x.sum()
        np.testing.assert_array_equal(new, 1 - x)
        (((handed, given)),) = delivered
        assert handed is new
        if given:
            assert owned
            assert new is w
        else:
            np.testing.assert_array_equal(w, 1.0)


@every_engine
def test_errors_tell_the_place_and_leave_state_alone(name: str) -> None:
    @wl.jit
    def step(cell: Any, i: Any) -> Any:
        cell.value = cell + 1.0
        return cell[i]

    model = wl.nn.Module()
    model.w = wl.nn.Parameter(wl.zeros(4))
    with wl.using_backend(name):
        assert float(step(model.w, wl.tensor(1))) == 1.0  # type: ignore[attr-defined]
        with pytest.raises(wl.errors.IndexOutOfRange, match=r"traced at: .*test_engine\.py"):
            step(model.w, wl.tensor(7))  # type: ignore[attr-defined]
    assert model.w.tolist() == [1.0] * 4  # type: ignore[attr-defined]


@every_engine
def test_several_threads_call_one_program(name: str) -> None:
    f = wl.jit(lambda x: wl.sin(x).sum(axis=1))
    inputs = [wl.asarray(np.random.default_rng(i).normal(size=(50, 300))) for i in range(4)]
    found: dict[int, Array] = {}

    def call(i: int) -> None:
        with wl.using_backend(name):
            for _ in range(5):
                found[i] = f(inputs[i]).numpy()

    threads = [threading.Thread(target=call, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for i, x in enumerate(inputs):
        np.testing.assert_allclose(found[i], np.sin(x.numpy()).sum(axis=1), rtol=1e-12)


def test_where_there_is_no_native_code_numpy_runs_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(TABLE, "native", Row("native", package="not_installed_at_all"))
    monkeypatch.delenv("WONDERLAND_BACKEND", raising=False)
    choosing._default.cache_clear()
    try:
        with pytest.warns(choosing.CompileWarning, match="needs not_installed_at_all. NumPy runs graphs"):
            assert choosing._default() == "numpy"
        assert choosing._default() == "numpy"  # once
        with pytest.raises(wl.errors.InputError, match="'native' does not run here: it needs not_installed"):
            wl.set_backend("native")
    finally:
        choosing._default.cache_clear()


def test_a_system_without_posix_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    row = TABLE["native"]
    assert row.missing is None
    monkeypatch.setattr("os.name", "nt")
    assert row.missing == "it runs on Linux and macOS"
