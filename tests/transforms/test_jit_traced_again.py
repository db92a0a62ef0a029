"""When `jit` traces a function again: what it refers to has changed, or the call is of another kind."""

from __future__ import annotations

import functools
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import wonderland as wl
from wonderland import errors


class Counter:
    """Counts how often a function is traced, without being a value that the trace depends on (it has no attributes)."""

    __slots__ = ("count",)

    def __init__(self) -> None:
        self.count = 0

    def __call__(self) -> None:
        self.count += 1


class Scaled:
    """An object of the user's own making, neither a module nor a tree."""

    def __init__(self) -> None:
        self.factor = wl.tensor(2.0)
        self.options = SimpleNamespace(shift=1.0)

    @wl.jit
    def method(self, x: Any) -> Any:
        return x * self.factor + self.options.shift


@pytest.mark.parametrize("how", ["method", "bound", "closure", "argument"])
def test_changed_attributes_of_plain_objects_are_seen(how: str) -> None:
    scaled = Scaled()
    passed = wl.jit(lambda s, x: x * s.factor + s.options.shift)
    f = {
        "method": scaled.method,
        "bound": wl.jit(lambda x: scaled.method(x)),
        "closure": wl.jit(lambda x: x * scaled.factor + scaled.options.shift),
        "argument": lambda x: passed(scaled, x),
    }[how]
    assert f(wl.tensor(3.0)).item() == 7.0  # type: ignore[operator]
    scaled.factor = wl.tensor(5.0)
    assert f(wl.tensor(3.0)).item() == 16.0  # type: ignore[operator]
    scaled.options.shift = 0.0
    assert f(wl.tensor(3.0)).item() == 15.0  # type: ignore[operator]


def test_a_changed_array_is_seen() -> None:
    array = np.ones(2, np.float32)
    f = wl.jit(lambda x: x * array)
    assert f(wl.ones(2)).tolist() == [1.0, 1.0]
    array[0] = 4.0
    assert f(wl.ones(2)).tolist() == [4.0, 1.0]


def test_one_trace_per_shape_dtype_and_structure() -> None:
    traced = Counter()

    @wl.jit
    def f(x: Any) -> Any:
        traced()
        return wl.tree.map(lambda leaf: leaf * 2, x)

    for _ in range(2):
        for x in (wl.ones(2), wl.ones(3), wl.ones((2, 1)), wl.ones(2, dtype=wl.float64), [wl.ones(2)], (wl.ones(2),)):
            f(x)
    assert traced.count == 6
    assert f.traces == 6
    f.clear()
    assert f.traces == 0
    f(wl.ones(2))
    assert traced.count == 7


def test_numbers_share_a_trace_and_flags_and_texts_do_not() -> None:
    traced = Counter()

    @wl.jit
    def f(x: Any, flag: Any = None) -> Any:
        traced()
        return x if flag in (None, True, "yes") else -x

    assert [f(n).item() for n in (1, 2, 300)] == [1, 2, 300]
    assert traced.count == 1
    assert f(1.5).item() == 1.5
    assert traced.count == 2
    assert [f(2, flag).item() for flag in (True, False, "yes", "no")] == [2, -2, 2, -2]
    assert traced.count == 6


def test_static_arguments_by_position_and_name() -> None:
    traced = Counter()

    def power(x: Any, n: int, *, times: int = 1) -> Any:
        traced()
        for _ in range(n * times):
            x = x * 2
        return x

    for options in ({"static_argnums": 1, "static_argnames": "times"}, {"static_argnames": ("n", "times")}):
        f = wl.jit(power, **options)
        before = traced.count
        assert f(1.0, 3).item() == 8
        assert f(2.0, n=3).item() == 16
        assert f(1.0, 2, times=2).item() == 16
        assert f(3.0, 2, times=2).item() == 48
        assert traced.count - before == 3  # by position, by name, and with two keywords
    last = wl.jit(power, static_argnums=-1, static_argnames="times")
    assert last(1.0, 2).item() == 4


def test_static_values_are_compared_by_type_and_sign() -> None:
    f = wl.jit(lambda x, n: x * n, static_argnums=1)
    x = wl.tensor([1, 2])
    assert [f(x, n).dtype for n in (1, 1.0, True)] == [wl.int64, wl.float32, wl.int64]
    g = wl.jit(lambda x, n: x * n[0], static_argnums=1)
    assert [g(x, n).dtype for n in ((1,), (1.0,))] == [wl.int64, wl.float32]
    sign = wl.jit(lambda x, zero: 1 / (x * zero), static_argnums=1)
    assert [sign(wl.tensor(1.0), zero).item() for zero in (0.0, -0.0)] == [np.inf, -np.inf]


def test_bad_static_arguments_are_refused() -> None:
    def f(x: Any, n: Any) -> Any:
        return x

    with pytest.raises(errors.InputError, match="static_argnums"):
        wl.jit(f, static_argnums=2)
    with pytest.raises(errors.InputError, match="static_argnames"):
        wl.jit(f, static_argnames="m")
    with pytest.raises(errors.InputError, match="set"):
        wl.jit(f)(1.0, {1, 2})
    with pytest.raises(errors.InputError, match="list"):
        wl.jit(f, static_argnums=1)(1.0, [1, 2])
    with pytest.raises(errors.TraceError, match="static argument is a traced value"):
        wl.jit(lambda n: wl.jit(f, static_argnums=1)(1.0, n))(3)
    with pytest.raises(errors.InputError, match="not a function"):
        wl.jit(3)  # type: ignore[call-overload]


def test_functions_are_static_arguments() -> None:
    f = wl.jit(lambda g, x: g(x))
    assert f(wl.sin, 0.5).item() == wl.sin(0.5).item()
    assert f(wl.cos, 0.5).item() == wl.cos(0.5).item()


SCALE = 2.0
TABLE = {"w": wl.ones(2)}


def scaled(x: Any) -> Any:
    return x * SCALE


def test_values_from_outside_are_seen_when_they_change(monkeypatch: pytest.MonkeyPatch) -> None:
    offset = wl.zeros(2)
    weight = 1.0

    def inner(x: Any) -> Any:
        return scaled(x) * weight

    functions: list[Any] = [
        wl.jit(lambda x: inner(x) + offset + TABLE["w"]),
        wl.jit(functools.partial(lambda extra, x: inner(x) + offset + TABLE["w"] + extra, 0.0)),
        wl.jit(wl.vmap(lambda e, o, w: inner(e) + o + w)),
    ]
    x = wl.tensor([1.0, 2.0])

    def results() -> list[Any]:
        last = functions[2](x, offset, TABLE["w"])
        return [functions[0](x).tolist(), functions[1](x).tolist(), last.tolist()]

    assert results() == [[3.0, 5.0]] * 3
    weight = 10.0
    assert results() == [[21.0, 41.0]] * 3
    monkeypatch.setitem(globals(), "SCALE", 3.0)
    assert results() == [[31.0, 61.0]] * 3
    offset = wl.tensor([0.0, 100.0])
    assert results() == [[31.0, 161.0]] * 3
    monkeypatch.setitem(TABLE, "w", wl.zeros(2))
    assert results() == [[30.0, 160.0]] * 3
    monkeypatch.setitem(globals(), "scaled", lambda x: x)
    assert results() == [[10.0, 120.0]] * 3


def test_functions_inside_the_function_see_globals_change(monkeypatch: pytest.MonkeyPatch) -> None:
    @wl.jit
    def f(x: Any) -> Any:
        def inner(e: Any) -> Any:
            return (lambda y: y * SCALE)(e)

        return wl.vmap(inner)(x)

    assert f(wl.ones(2)).tolist() == [2.0, 2.0]
    monkeypatch.setitem(globals(), "SCALE", 7.0)
    assert f(wl.ones(2)).tolist() == [7.0, 7.0]


def test_every_transformed_function_inside_sees_its_closure_change() -> None:
    a = b = c = 1.0
    first = wl.jit(lambda x: a * x)
    second = wl.jit(lambda x: b * x)
    third = wl.custom_vjp(lambda x: c * x)
    third.defvjp(lambda x: (c * x, None), lambda _, g: (c * g,))
    f = wl.jit(lambda x: first(x) + second(x) + third(x))
    assert f(1.0).item() == 3
    c = 100.0
    assert f(1.0).item() == 102
    b = 10.0
    assert f(1.0).item() == 111
    a = 2.0
    assert f(1.0).item() == 112


def test_the_derivative_of_a_function_sees_its_globals_change(monkeypatch: pytest.MonkeyPatch) -> None:
    slope = wl.jit(wl.grad(scaled))
    assert slope(1.0).item() == 2.0
    monkeypatch.setitem(globals(), "SCALE", 5.0)
    assert slope(1.0).item() == 5.0


@pytest.mark.filterwarnings("ignore::wonderland.errors.RetraceWarning")  # that is what it is about
def test_traces_for_old_environments_are_forgotten() -> None:
    w = wl.zeros(2)
    f = wl.jit(lambda x: x * w)
    for i in range(30):
        w = wl.ones(2) * i
        assert f(wl.ones(2)).tolist() == [i, i]
    assert f.traces <= 8


def test_a_flag_that_goes_back_and_forth_is_traced_twice() -> None:
    traced = Counter()
    training = True

    @wl.jit
    def f(x: Any) -> Any:
        traced()
        return x if training else -x

    for _ in range(3):
        training = True
        assert f(1.0).item() == 1.0
        training = False
        assert f(1.0).item() == -1.0
    assert traced.count == 2


def test_a_function_that_changes_what_it_refers_to_does_so_in_every_call() -> None:
    seen: list[int] = []

    @wl.jit
    def f(x: Any) -> Any:
        seen.append(len(seen))
        return x * len(seen)

    assert [f(1.0).item() for _ in range(3)] == [1.0, 2.0, 3.0]
