"""Branches: eager, traced, differentiated and batched, against Python's own `if`."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import wonderland as wl
from tests.transforms.counting import operations
from wonderland import errors
from wonderland.core.cell import Cell

F64 = wl.float64


def number(x: float) -> wl.Tensor:
    return wl.tensor(x, dtype=F64)


def chosen(i: Any, a: Any, x: Any) -> Any:
    """Three branches with different residuals, one of them constant, and a value from outside."""
    return wl.switch(
        i,
        [
            lambda x, y: {"u": wl.sin(x) * a, "n": wl.tensor(1)},
            lambda x, y: {"u": y * wl.exp(x) * wl.cos(y), "n": wl.tensor(2)},
            lambda x, y: {"u": number(5.0), "n": wl.tensor(3)},
        ],
        x,
        a * x,
    )


def written_out(i: Any, a: Any, x: Any) -> Any:
    i = min(max(int(i), 0), 2)
    y = a * x
    return {"u": [wl.sin(x) * a, y * wl.exp(x) * wl.cos(y), number(5.0)][i], "n": wl.tensor(i + 1)}


A, X = number(1.3), number(0.4)
INDICES = (-3, 0, 1, 2, 7)


def close(a: Any, b: Any) -> None:
    left, right = wl.tree.flatten(a), wl.tree.flatten(b)
    assert left[1] == right[1]
    for x, y in zip(left[0], right[0], strict=True):
        assert (x.dtype, x.shape) == (y.dtype, y.shape)
        np.testing.assert_allclose(x, y, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("i", INDICES)
def test_values_with_the_index_moved_into_range(i: int) -> None:
    close(chosen(i, A, X), written_out(i, A, X))
    compiled = wl.jit(chosen)
    close(compiled(i, A, X), written_out(i, A, X))
    close(compiled(wl.tensor(i, dtype=wl.int8), A, X), written_out(i, A, X))
    close(wl.jit(lambda a, x: chosen(i, a, x))(A, X), written_out(i, A, X))


@pytest.mark.parametrize("i", INDICES)
def test_derivatives_in_both_modes(i: int) -> None:
    def f(g: Any) -> Any:
        return lambda a, x: wl.sin(g(i, a, x)["u"])

    traced = wl.jit(lambda i, a, x: wl.sin(chosen(i, a, x)["u"]))
    expected = wl.grad(f(written_out), (0, 1))(A, X)
    close(wl.grad(f(chosen), (0, 1))(A, X), expected)
    close(wl.grad(traced, (1, 2))(i, A, X), expected)
    close(wl.jit(wl.grad(traced, (1, 2)))(i, A, X), expected)
    close(wl.jit(wl.grad(traced, 1))(i, A, X), expected[0])
    tangents = (number(0.7), number(-0.2))
    expected = wl.jvp(f(written_out), (A, X), tangents)
    close(wl.jvp(lambda a, x: traced(i, a, x), (A, X), tangents), expected)
    close(wl.jit(lambda i, a, x: wl.jvp(lambda a, x: traced(i, a, x), (a, x), tangents))(i, A, X), expected)
    wl.check_grads(lambda a, x: traced(i, a, x), (A, X), order=3 if i == 1 else 2)
    _, push = wl.linearize(lambda a, x: traced(i, a, x), A, X)
    close(push(*tangents), expected[1])
    _, pull = wl.vjp(lambda a, x: traced(i, a, x), A, X)
    close(pull(number(2.0)), wl.vjp(f(written_out), A, X)[1](number(2.0)))


@pytest.mark.parametrize("which", [w for w in itertools.product([False, True], repeat=3) if any(w)])
def test_every_combination_of_batched_operands(which: tuple[bool, ...]) -> None:
    batch = (
        wl.tensor([2, 0, 1, 9, -3]),
        wl.tensor([1.0, -2.0, 0.5, 3.0, 1.5], dtype=F64),
        wl.tensor([0.1, 0.2, 0.3, 0.4, 0.5], dtype=F64),
    )
    args = tuple(b if on else b[1] for b, on in zip(batch, which, strict=True))
    axes = tuple(0 if on else None for on in which)
    examples = [[a[i] if on else a for a, on in zip(args, which, strict=True)] for i in range(5)]
    expected = wl.tree.map(lambda *parts: wl.stack(parts), *[written_out(*e) for e in examples])
    for f in (wl.vmap(chosen, axes), wl.jit(wl.vmap(chosen, axes)), wl.vmap(wl.jit(chosen), axes)):
        close(f(*args), expected)

    def loss(g: Any) -> Any:
        return wl.grad(lambda i, a, x: wl.sin(g(i, a, x)["u"]), (1, 2))

    expected = wl.tree.map(lambda *parts: wl.stack(parts), *[loss(written_out)(*e) for e in examples])
    close(wl.vmap(loss(chosen), axes)(*args), expected)
    close(wl.jit(wl.vmap(loss(chosen), axes))(*args), expected)
    summed = wl.grad(lambda i, a, x: wl.sin(wl.vmap(chosen, axes)(i, a, x)["u"]).sum(), (1, 2))
    totals = tuple(e if on else e.sum() for e, on in zip(expected, which[1:], strict=True))
    close(summed(*args), totals)
    close(wl.jit(summed)(*args), totals)


@pytest.mark.parametrize("pred", [True, False, wl.tensor(True), wl.tensor(0), 1, np.bool_(True), np.int64(0)])
def test_predicates(pred: Any) -> None:
    def f(pred: Any, x: Any) -> Any:
        return wl.cond(pred, lambda x: x, lambda x: -x, x)

    expected = 2.0 if bool(pred) else -2.0
    assert f(pred, 2.0).item() == expected
    assert wl.jit(f)(pred, 2.0).item() == expected
    assert wl.jit(lambda x: f(pred, x))(2.0).item() == expected


def test_only_the_chosen_branch_runs() -> None:
    f = wl.jit(lambda x: wl.cond(x > 0, wl.log, wl.exp, x))
    for x, name, other in ((2.0, "log", "exp"), (-2.0, "exp", "log")):
        with operations() as counted:
            f(x)
        assert counted[name] == 1
        assert counted[other] == 0
    wl.check_grads(f, (number(2.0),), order=2)
    assert wl.grad(wl.jit(lambda x: wl.cond(x > 0, wl.sqrt, lambda x: -x, x)))(-3.0).item() == -1.0


def test_operands_and_results_are_tensors_in_both_styles() -> None:
    x = wl.tensor([1.0], dtype=wl.float16)

    def f(flag: Any, n: Any) -> Any:
        return wl.cond(flag, lambda n: n * x, lambda n: n * x, n), wl.cond(flag, lambda: 1.0, lambda: 2.0)

    eager, compiled = f(wl.tensor(True), 2.0), wl.jit(f)(wl.tensor(True), 2.0)
    assert [e.dtype for e in eager] == [c.dtype for c in compiled]
    assert isinstance(eager[1], wl.Tensor)


def test_no_operands_and_results_without_tensors() -> None:
    f = wl.jit(lambda i: wl.switch(i, [lambda: None, lambda: None]))
    assert f(1) is None
    g = wl.jit(lambda i: wl.switch(i, [dict]))
    assert g(1) == {}


@pytest.mark.parametrize(
    ("f", "error", "words"),
    [
        (lambda x: wl.cond(x > 0, lambda x: x, lambda x: x > 0, x), errors.TreeError, ["float32[]", "bool[]"]),
        (lambda x: wl.cond(x > 0, lambda x: x, lambda x: (x, x), x), errors.TreeError, ["structures"]),
        (lambda x: wl.cond(x > 0, lambda x: x, lambda x: wl.stack([x, x]), x), errors.TreeError, ["float32[2]"]),
    ],
)
def test_branches_that_do_not_match_are_refused_when_traced(f: Any, error: Any, words: list[str]) -> None:
    with pytest.raises(error) as caught:
        wl.jit(f)(wl.tensor(1.0))
    for word in words:
        assert word in str(caught.value)


@pytest.mark.parametrize(
    ("f", "error", "word"),
    [
        (lambda x: wl.cond(x, wl.sin, wl.cos, x), errors.DTypeError, "float32[2]"),
        (lambda x: wl.cond(x > 0, wl.sin, wl.cos, x), errors.DTypeError, "bool[2]"),
        (lambda x: wl.switch(x[0], [wl.sin, wl.cos], x), errors.DTypeError, "float32[]"),
        (lambda x: wl.switch(wl.tensor([0, 1]), [wl.sin, wl.cos], x), errors.DTypeError, "int64[2]"),
        (lambda x: wl.switch(0, [], x), errors.InputError, "no branch"),
        (lambda x: wl.cond(True, wl.sin, wl.cos, wl.nn.Linear(2, 2)), errors.TreeError, "Linear"),
    ],
)
def test_bad_choices_are_refused(f: Any, error: Any, word: str) -> None:
    for run in (f, wl.jit(f)):
        with pytest.raises(error) as caught:
            run(wl.ones(2))
        assert word in str(caught.value)


@pytest.mark.parametrize("compiled", [False, True])
def test_state_that_branches_write(compiled: bool) -> None:
    a, b = Cell(wl.tensor(0.0)), Cell(wl.tensor(10.0))

    def up(x: Any) -> Any:
        a.assign(a + x)
        return a + b

    def down(x: Any) -> Any:
        b.assign(b - x)
        return b + 0

    def f(x: Any) -> Any:
        return wl.cond(x > 0, up, down, x)

    run = wl.jit(f) if compiled else f
    assert run(wl.tensor(1.0)).item() == 11.0
    assert (a.item(), b.item()) == (1.0, 10.0)
    assert run(wl.tensor(-2.0)).item() == 12.0
    assert (a.item(), b.item()) == (1.0, 12.0)
    assert run(wl.tensor(3.0)).item() == 16.0
    assert (a.item(), b.item()) == (4.0, 12.0)


def test_state_written_under_a_batched_choice_is_refused() -> None:
    a = Cell(wl.tensor(0.0))

    def up(x: Any) -> Any:
        a.assign(a + 1)
        return x

    f = wl.vmap(lambda x: wl.cond(x > 0, up, lambda x: x, x))
    with pytest.raises(errors.TraceError, match="differs from example to example"):
        f(wl.tensor([1.0, -1.0]))
    assert a.item() == 0.0


def test_state_written_under_a_shared_choice_is_kept() -> None:
    a = Cell(wl.tensor(0.0))

    def f(flag: Any, x: Any) -> Any:
        def up(x: Any) -> Any:
            a.assign(a + 1)
            return x * a

        return wl.cond(flag, up, lambda x: x, x)

    run = wl.jit(wl.vmap(f, in_axes=(None, 0)))
    assert run(wl.tensor(True), wl.tensor([1.0, 2.0])).tolist() == [1.0, 2.0]
    assert run(wl.tensor(True), wl.tensor([1.0, 2.0])).tolist() == [2.0, 4.0]
    assert run(wl.tensor(False), wl.tensor([1.0, 2.0])).tolist() == [1.0, 2.0]
    assert a.item() == 2.0


def test_gradients_of_module_parameters_through_branches() -> None:
    model = wl.nn.Linear(2, 1)
    x = wl.ones((3, 2))

    def loss(model: Any, flag: Any, x: Any) -> Any:
        return wl.cond(flag, lambda x: model(x).sum(), lambda x: (model(x) ** 2).sum(), x)

    for flag in (True, False):
        eager = wl.grad(loss)(model, flag, x)
        compiled = wl.jit(wl.grad(loss))(model, wl.tensor(flag), x)
        assert list(eager) == list(compiled)
        for path in eager:
            np.testing.assert_allclose(compiled[path], eager[path], rtol=1e-6)
