"""State in compiled functions: updated in its own memory when nobody else holds it, and untouched when a call fails."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import wonderland as wl
from tests.engines.test_program import numbers
from wonderland.engines.choosing import CompileWarning
from wonderland.engines.native.kernels.text import Emitter
from wonderland.engines.native.program import Program


@pytest.fixture(autouse=True)
def native() -> Iterator[None]:
    with wl.using_backend("native"):
        yield


class Model(wl.nn.Module):
    """Two parameters, and a count of the steps."""

    def __init__(self, size: int = 10) -> None:
        self.weight = wl.nn.Parameter(wl.asarray(numbers(size, size)))
        self.bias = wl.nn.Parameter(wl.zeros(size))
        self.steps = wl.nn.Buffer(0)

    def __call__(self, x: Any) -> Any:
        return wl.tanh(x @ self.weight + self.bias)


def _update(model: Model, x: Any) -> Any:
    loss, grads = wl.value_and_grad(lambda m: (m(x) ** 2).mean())(model)
    for path, parameter in model.named_parameters():
        parameter.assign(parameter - 0.1 * grads[path])
    model.steps.assign(model.steps + 1)
    return loss


def arrays(model: Any) -> dict[str, Any]:
    """The arrays themselves; nothing else in a test may hold them while a step runs."""
    return {name: cell._outside._data for name, cell in model.named_parameters()} | {
        name: cell._outside._data for name, cell in model.named_buffers()
    }


def places(model: Any) -> dict[str, int]:
    return {name: array.ctypes.data for name, array in arrays(model).items()}


def values(model: Any) -> dict[str, Any]:
    return {name: array.copy() for name, array in arrays(model).items()}


def same(one: dict[str, Any], other: dict[str, Any]) -> bool:
    return all((one[name] == other[name]).all() for name in one)


SIZES = pytest.mark.parametrize("size", [10, 200], ids=["small", "large"])


@SIZES
def test_state_that_nobody_holds_is_updated_in_place(size: int) -> None:
    model, step, x = Model(size), wl.jit(_update), wl.ones((4, size))
    step(model, x)
    before, old = places(model), values(model)
    for _ in range(3):
        step(model, x)
    assert places(model) == before
    assert not any((new == old[name]).all() for name, new in values(model).items())


@SIZES
def test_arguments_that_are_copied_keep_no_state_from_its_place(size: int) -> None:
    """`ids[:, :-1]` is not in one piece, as programs want their arguments."""
    model, twin, step, wide = Model(size), Model(size), wl.jit(_update), wl.asarray(numbers(4, size + 1))
    before = places(model)
    for _ in range(4):
        step(model, wide[:, :-1])
        assert not wide[:, :-1]._data.flags.c_contiguous
        step(twin, wl.asarray(np.ascontiguousarray(wide[:, :-1])))
    assert {**places(model), "weight": before["weight"]} == before  # the first weight was made from an array
    assert same(values(model), values(twin))


@SIZES
@pytest.mark.parametrize(
    "hold",
    [
        lambda model: model.weight.value,
        lambda model: model.weight.numpy(),
        lambda model: np.asarray(model.weight)[:1],
        lambda model: memoryview(model.weight.numpy()),
        lambda model: model.weight.value.T,
        lambda model: np.from_dlpack(model.weight.value),
    ],
    ids=["tensor", "array", "view", "buffer", "transposed", "dlpack"],
)
def test_state_that_somebody_holds_is_copied(hold: Callable[[Model], Any], size: int) -> None:
    model, step, x = Model(size), wl.jit(_update), wl.ones((4, size))
    step(model, x)
    before, place = values(model), places(model)
    held = hold(model)
    seen = np.array(held)
    step(model, x)
    np.testing.assert_array_equal(np.array(held), seen)
    assert places(model)["weight"] != place["weight"]
    assert places(model)["bias"] == place["bias"]
    assert not same(values(model), before)
    del held
    step(model, x)  # the new array has nobody but the model
    place = places(model)
    step(model, x)
    assert places(model) == place


def test_memory_of_somebody_else_is_not_written() -> None:
    """A parameter over an array of the user's, over a part of one, and over one that cannot be written."""
    mine = numbers(10, 20)
    fixed = numbers(10, 10)
    fixed.flags.writeable = False
    for array in (mine[:, :10], mine[:, ::2], np.frombuffer(mine.tobytes(), np.float32)[:100].reshape(10, 10), fixed):
        kept = array.copy()
        model = Model()
        model.weight.value = wl.asarray(array)
        step = wl.jit(_update)
        for _ in range(3):
            step(model, wl.ones((4, 10)))
        np.testing.assert_array_equal(array, kept)


def test_a_shared_cell_is_one_state() -> None:
    model, other = Model(), Model()
    other.weight = model.weight

    @wl.jit
    def step(one: Any, two: Any) -> Any:
        one.weight.assign(one.weight + 1)
        two.weight.assign(two.weight * 2)

    before = model.weight.numpy().copy()
    for _ in range(3):
        step(model, other)
    want = before
    for _ in range(3):
        want = (want + 1) * 2
    np.testing.assert_allclose(model.weight.numpy(), want, rtol=1e-6)
    assert model.weight is other.weight


def test_states_may_change_places() -> None:
    one, two = (wl.nn.Parameter(wl.asarray(numbers(50, seed=i))) for i in range(2))
    want = one.numpy().copy(), two.numpy().copy()

    @wl.jit
    def swap(one: Any, two: Any) -> None:
        first, second = one + 0, two + 0
        one.assign(second)
        two.assign(first)

    for _ in range(3):
        swap(one, two)
    np.testing.assert_array_equal(one.numpy(), want[1])
    np.testing.assert_array_equal(two.numpy(), want[0])


@pytest.mark.parametrize(
    "change",
    [
        lambda p: p[::-1],
        lambda p: p.T,
        lambda p: wl.roll(p, 1, axis=0),
        lambda p: p[wl.tensor([3, 1, 2, 0, 4])],
        lambda p: wl.cumsum(p, axis=0),
        lambda p: p - p.mean(),
        lambda p: p - p.sum(axis=0),
        lambda p: wl.softmax(p) + p,
        lambda p: p @ p,
        lambda p: wl.tanh(p @ p + p) + p[::-1],
        lambda p: p.at[1].add(p[0]),
        lambda p: wl.scan(lambda c, row: (c + row, c), p[0], p)[1],
        lambda p: wl.fori_loop(0, 3, lambda i, q: q + p[::-1], p),
        lambda p: wl.cond(p.sum() > 0, lambda p: p + 1, lambda p: p.T, p),
        lambda p: wl.sort(p, axis=0),
    ],
)
def test_new_state_that_depends_on_other_places_of_the_old(change: Callable[[Any], Any]) -> None:
    start = numbers(5, 5)
    cell, other = wl.nn.Parameter(wl.asarray(start)), wl.nn.Parameter(wl.asarray(start))

    @wl.jit
    def step(one: Any, two: Any) -> None:
        new = change(one)
        two.assign(two * 0.5 + one.T)
        one.assign(new)

    want, second = wl.asarray(start), wl.asarray(start)
    for _ in range(3):
        step(cell, other)
        with wl.using_backend("numpy"):
            want, second = change(want), second * 0.5 + want.T
    np.testing.assert_allclose(cell.numpy(), want, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(other.numpy(), second, rtol=1e-4, atol=1e-4)


# --- failures


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("wrong", ["index", "fallback"])
def test_a_failing_call_leaves_all_state_untouched(wrong: str, when: str) -> None:
    model, x = Model(), wl.ones((4, 10))

    def risk(i: Any, matrix: Any) -> Any:
        return x[i].sum() if wrong == "index" else wl.linalg.inv(matrix).sum()

    @wl.jit
    def step(model: Model, i: Any, matrix: Any) -> Any:
        early = risk(i, matrix) if when == "before" else 0
        _update(model, x)
        late = risk(i, matrix) if when == "after" else 0
        model.bias.assign(model.bias + early + late)

    good, bad = (wl.tensor([0]), wl.eye(3)), (wl.tensor([9]), wl.zeros((3, 3)))
    step(model, *good)
    before = values(model)
    with pytest.raises((wl.errors.IndexOutOfRange, wl.errors.LinearAlgebraError)):
        step(model, *bad)
    assert same(values(model), before)
    step(model, *good)  # nothing of the failure is left
    assert values(model)["steps"] == before["steps"] + 1


def test_the_first_error_is_told_when_it_makes_others() -> None:
    """The index is wrong, and what is read instead is a matrix that cannot be inverted."""
    f = wl.jit(lambda x, i: wl.linalg.inv(wl.sin(x[i])))
    x = wl.asarray(np.stack([np.zeros((2, 2)), np.eye(2)]).astype(np.float32))
    with pytest.raises(wl.errors.IndexOutOfRange, match="index 5"):
        f(x, wl.tensor(5))
    np.testing.assert_allclose(f(x, wl.tensor(1)), np.eye(2) / np.sin(1), rtol=1e-5)
    with pytest.raises(wl.errors.LinearAlgebraError):
        f(x, wl.tensor(0))


def test_an_index_error_in_a_loop_leaves_state_untouched() -> None:
    model = Model()

    @wl.jit
    def step(model: Model, i: Any) -> None:
        total = wl.scan(lambda c, k: (c + model.bias[k + i], None), wl.zeros(()), wl.arange(5))[0]
        model.bias.assign(model.bias + 1 + total)
        model.steps.assign(model.steps + 1)

    step(model, 0)
    before = values(model)
    with pytest.raises(wl.errors.IndexOutOfRange):
        step(model, 8)
    assert same(values(model), before)
    step(model, 2)
    assert values(model)["steps"] == before["steps"] + 1


# --- memory


def _resident() -> int:
    """Bytes of memory in use."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="the memory in use is not known")
def test_memory_does_not_grow_over_many_steps() -> None:
    model, x = Model(), wl.ones((4, 10))
    optimizer = wl.optim.Adam(model.parameters(), lr=1e-3)

    @wl.jit
    def step(model: Any, optimizer: Any, x: Any) -> Any:
        loss, grads = wl.value_and_grad(lambda m: (m(x) ** 2).mean())(model)
        optimizer.step(grads)
        return loss

    for _ in range(2000):
        step(model, optimizer, x)
    before = _resident()
    for _ in range(18_000):
        step(model, optimizer, x)
    assert _resident() - before < 1 << 20


# --- failed compilation


def test_a_failed_compilation_is_told_once_and_numpy_computes(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(self: Any) -> None:
        raise RuntimeError("no such instruction")

    def doubled_sine(x: Any) -> Any:
        return 2 * wl.sin(x) + 0.123

    monkeypatch.setattr(Emitter, "emit", fails)
    f, x = wl.jit(doubled_sine), wl.asarray(numbers(7))
    with pytest.warns(CompileWarning, match=r"doubled_sine.*no such instruction.*NumPy") as told:
        first = f(x)
    assert len(told) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        second = f(x)
    with wl.using_backend("numpy"):
        want = wl.jit(doubled_sine)(x)
    np.testing.assert_array_equal(first, want)
    np.testing.assert_array_equal(second, want)


def test_training_goes_on_when_compilation_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(self: Program) -> None:
        raise RuntimeError("no machine")

    model, step, x = Model(), wl.jit(_update), wl.ones((4, 10))
    monkeypatch.setattr(Program, "_lay_out", fails)
    with pytest.warns(CompileWarning, match="_update"):
        losses = [step(model, x).item() for _ in range(4)]
    assert losses == sorted(losses, reverse=True)
    assert model.steps.item() == 4
