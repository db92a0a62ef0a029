"""Ctrl-C at any moment of a call: state is all old or all new, nobody waits for ever, and the next call is right.

CPython lets a signal's handler run when a function written in Python begins, when a call into C has returned, and when
a loop goes back. A profiler is told of the first two; here it raises the interrupt, at one such place after the other.
"""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import wonderland as wl
from tools.interrupts import Counters, advance, counted, numbers, with_inner, with_numpy, with_scan
from wonderland.core.cell import rest
from wonderland.core.context import current
from wonderland.engines.native import bound
from wonderland.transforms.jit import traced as jitting


@pytest.fixture(autouse=True, params=["native", "numpy"])
def backend(request: Any) -> Iterator[str]:
    with wl.using_backend(request.param):
        yield request.param


# what is raised while an object is being freed is lost, as always in Python
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
THROUGH, INTERRUPTED, LOST = "through", "interrupted", "lost"


def _interrupted(f: Callable[[], Any], place: int) -> str:
    """How f ended that was to be interrupted at the place of that number: THROUGH, if it has not so many."""
    left = [place]

    def profile(frame: Any, event: str, argument: Any) -> None:
        if event in ("call", "c_return"):
            left[0] -= 1
            if left[0] == 0:
                raise KeyboardInterrupt

    def attempt() -> None:
        sys.setprofile(profile)
        f()
        sys.setprofile(None)

    try:
        attempt()
    except KeyboardInterrupt:
        return INTERRUPTED
    finally:
        sys.setprofile(None)
    return THROUGH if left[0] > 0 else LOST


def _in_time(f: Callable[[], Any], backend: str) -> Any:
    """What f gives in another thread, which does not wait for anything that is over."""
    results: list[Any] = []

    def work() -> None:
        with wl.using_backend(backend):
            results.append(f())

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(60)
    assert results, "waits for ever, or has failed"
    return results[0]


def _sweep(make: Callable[[], Any], backend: str, distance: int = 1, hold: bool = False) -> int:
    """Interrupt a step at one place after the other; how many of them there are."""
    model, x, place, end = Counters(), numbers(12, 12), 1, ""
    while end != THROUGH:
        step = make()
        held = model.b.value if hold else None
        before = model.check()
        end = _interrupted(lambda step=step: step(model, x), place)  # type: ignore[misc]
        after = model.check()
        assert after in ((before, before + 1) if end == INTERRUPTED else (before + 1,)), place
        assert current().trace is None
        _in_time(lambda step=step: step(model, x), backend)  # type: ignore[misc]
        assert model.check() == after + 1
        step(model, x)
        assert model.check() == after + 2
        del held
        place += distance
    assert not jitting.runs
    return place


@pytest.mark.parametrize("hold", [False, True], ids=["in place", "held"])
def test_a_compiled_step(backend: str, hold: bool) -> None:
    step = wl.jit(advance)
    step(Counters(), numbers(12, 12))
    assert _sweep(lambda: step, backend, hold=hold) > 30


@pytest.mark.parametrize("native", [True, False], ids=["native", "Python"])
def test_a_step_that_is_repeated_at_once(backend: str, native: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bound, "is_possible", lambda: native)
    step, model, x, place, end = wl.jit(counted), Counters(), numbers(12, 12), 1, ""
    while end != THROUGH:
        for _ in range(2):
            step(model, x)  # and nobody looks into the model
        end = _interrupted(lambda: step(model, x), place)
        between = model.check()
        step(model, x)
        assert model.check() == between + 1
        assert _in_time(lambda: step(model, x), backend) is not None
        assert not jitting.runs
        assert not rest.runs
        place += 1
    assert place > (3 if native and backend == "native" else 30)


@pytest.mark.parametrize("body", [with_scan, with_numpy, with_inner(wl.jit(wl.sin))], ids=["scan", "inverse", "nested"])
def test_other_steps(backend: str, body: Callable[..., Any]) -> None:
    step = wl.jit(body)
    step(Counters(), numbers(12, 12))
    assert _sweep(lambda: step, backend, distance=3) > 30


def test_a_first_call(backend: str) -> None:
    """Tracing and compiling; some of the thousands of places."""
    make = lambda: wl.jit(lambda model, x: advance(model, x))
    make()(Counters(), numbers(12, 12))
    assert _sweep(make, backend, distance=397) > 3000


def test_a_gradient_and_a_batch() -> None:
    model, x = Counters(5), numbers(4, 5)

    def compute() -> Any:
        f = lambda x: (wl.sin(x) * 2 + 0 * (x @ model.b)).sum()
        return wl.vmap(wl.grad(f))(x), wl.grad(lambda m: f(x) + m.b.sum())(model)["b"]

    place, end = 1, ""
    while end != THROUGH:
        end = _interrupted(compute, place)
        assert current().trace is None
        rows, b = compute()
        np.testing.assert_allclose(rows, 2 * np.cos(x), rtol=1e-5)
        np.testing.assert_array_equal(b, np.ones((5, 5)))
        place += 37
    assert place > 500
    model.check()


LAZY = {
    "Linear": (lambda key: wl.nn.Linear(None, 4, key=key), (6, 5)),
    "Conv1d": (lambda key: wl.nn.Conv1d(None, 2, 3, key=key), (1, 6, 3)),
    "LocallyConnected1d": (lambda key: wl.nn.LocallyConnected1d(3, 2, 2, key=key), (1, 4, 3)),
}


@pytest.mark.parametrize("kind", LAZY)
def test_a_lazy_layer_is_made_whole_or_not_at_all(kind: str) -> None:
    make, shape = LAZY[kind]
    key, x = wl.random.key(3), numbers(*shape)
    want, place, end = make(key)(x), 1, ""
    while end != THROUGH:
        layer = make(key)
        end = _interrupted(lambda layer=layer: layer(x), place)  # type: ignore[misc]
        assert isinstance(layer.weight, wl.nn.Lazy) == isinstance(layer.bias, wl.nn.Lazy), place
        np.testing.assert_array_equal(layer(x), want)  # the numbers that an undisturbed call makes
        place += 1
    assert place > 100


class Turning(wl.nn.Module):
    """Another sign in each mode."""

    def forward(self, x: Any) -> Any:
        return x if self.training else -x


def test_a_mode_that_was_changed_is_known_to_compiled_functions() -> None:
    f, x, place, end = wl.jit(lambda model, x: model(x)), wl.ones(2), 1, ""
    while end != THROUGH:
        model = Turning()
        for _ in range(3):  # so that a call like the last one does not look at the module
            f(model, x)
        end = _interrupted(model.eval, place)
        np.testing.assert_array_equal(f(model, x), x if model.training else -x)
        place += 1
    assert place > 10


@pytest.mark.filterwarnings("ignore::wonderland.errors.RetraceWarning")  # that is what it is about
def test_a_function_whose_globals_have_changed() -> None:
    """The traces for what was and those for what is are not mixed up."""
    factor = 1.0
    f = wl.jit(lambda x: x * factor)
    for place in range(1, 200, 3):
        factor += 1
        _interrupted(lambda: f(wl.ones(2)), place)
        np.testing.assert_array_equal(f(wl.ones(2)), [factor, factor])


def test_what_a_debugger_leaves_behind_is_not_waited_for(backend: str) -> None:
    """A run that could not take itself out of the list, because its thread was stopped where no signal can."""
    model, step, x = Counters(), wl.jit(advance), numbers(12, 12)
    step(model, x)
    operands = [model.a._outside, model.b._outside]
    jitting.runs[id(operands)] = (operands, [0, 1], threading.get_ident())
    _in_time(lambda: step(model, x), backend)
    assert model.check() == 2
    assert id(operands) not in jitting.runs


def test_a_step_in_place_replaces_whole_what_another_thread_put_in_meanwhile(
    monkeypatch: pytest.MonkeyPatch, backend: str
) -> None:
    model, step, x = Counters(), wl.jit(advance), numbers(12, 12)
    step(model, x)
    model.check()  # who looks sees to it that the next call looks, too
    real = jitting.run

    def meanwhile(graph: Any, arrays: Any, owned: Any, deliver: Any) -> Any:
        def delivering(outs: Any, given: Any) -> Any:
            mine = deliver(outs, given)
            for cell in (model.steps, model.a, model.b, model.c):
                cell.settle(wl.full_like(cell.value, 77))
            return mine

        return real(graph, arrays, owned, delivering)

    monkeypatch.setattr(jitting, "run", meanwhile)
    step(model, x)
    assert model.check() == 2


def test_who_holds_state_that_another_thread_replaces_keeps_it(monkeypatch: pytest.MonkeyPatch, backend: str) -> None:
    """Its cell and the call hold it alone, then the cell no longer does and somebody else does."""
    model, step, x = Counters(), wl.jit(advance), numbers(12, 12)
    step(model, x)
    model.check()
    real, held = jitting.unshared, []

    def late(operands: Any, places: Any) -> Any:
        held.append(model.a.value)
        model.a.settle(wl.full_like(model.a.value, 77))
        return real(operands, places)

    monkeypatch.setattr(jitting, "unshared", late)
    step(model, x)
    assert model.check() == 2
    np.testing.assert_array_equal(held[0], np.ones(12))


def test_a_step_that_ends_while_another_thread_reads_is_seen_whole(
    monkeypatch: pytest.MonkeyPatch, backend: str
) -> None:
    model, step, x = Counters(), wl.jit(advance), numbers(12, 12)
    step(model, x)
    model.check()
    theirs, real = [model.a._outside], jitting.Traced._read
    jitting.runs[id(theirs)] = (theirs, [0], threading.get_ident() + 1)

    def reading(self: Any, *args: Any) -> bool:
        whole = real(self, *args)
        if jitting.runs.pop(id(theirs), None) is not None:
            model.a._outside._data[...] += 1
            for cell in (model.steps, model.b, model.c):
                cell.settle(cell.value + 1)
        return whole

    monkeypatch.setattr(jitting.Traced, "_read", reading)
    _in_time(lambda: step(model, x), backend)
    assert model.check() == 3


def test_two_threads_never_see_half_of_a_step(backend: str) -> None:
    model, step, x = Counters(), wl.jit(advance), numbers(12, 12)
    step(model, x)
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)

    def steps() -> None:
        with wl.using_backend(backend):
            for _ in range(100):
                step(model, x)

    try:
        threads = [threading.Thread(target=steps) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
            assert not thread.is_alive()
    finally:
        sys.setswitchinterval(interval)
    model.check()


def test_signals_at_random_moments(backend: str) -> None:
    if backend == "numpy":
        pytest.skip("the program has steps for both")
    command = [sys.executable, "-m", "tools.interrupts", "--seconds", "3", "--seed", "1"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert "no hang, no half-new state, every next call right" in done.stdout
