"""`jit`: the same results as without it, traced as rarely as possible and as often as needed."""

from __future__ import annotations

import dataclasses
import functools
import re
import threading
from collections import OrderedDict, namedtuple
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import wonderland as wl
from tests.agreement import same
from wonderland import errors, nn
from wonderland.core.cell import Cell

# --- arguments and results


Pair = namedtuple("Pair", "first second")


@dataclasses.dataclass
class Point:
    x: Any
    y: Any
    name: str = dataclasses.field(default="p", metadata={"static": True})


@pytest.mark.parametrize(
    "tree",
    [
        {"b": [1.0, (2.0, None)], "a": 3.0},
        Pair(wl.tensor(1.0), [wl.tensor(2.0)]),
        Point(wl.ones(2), {"k": 1.0}, "q"),
        OrderedDict(z=wl.ones(1), a=wl.zeros(1)),
        [],
        None,
        ((), {}),
        {1: wl.ones(1), "x": wl.zeros(1)},
    ],
    ids=lambda t: type(t).__name__,
)
def test_trees_go_in_and_come_out(tree: Any) -> None:
    def double(tree: Any) -> Any:
        return wl.tree.map(lambda leaf: wl.asarray(leaf) * 2, tree)

    same(wl.jit(double)(tree), double(tree))
    assert wl.tree.structure(wl.jit(lambda t: t)(tree)) == wl.tree.structure(tree)


def test_dicts_keep_the_order_of_their_keys() -> None:
    f = wl.jit(lambda x: {"weight": x, "bias": {"z": x, "a": x}})
    result = f(wl.ones(2))
    assert list(result) == ["weight", "bias"]
    assert list(result["bias"]) == ["z", "a"]


def test_arguments_can_be_named_and_have_defaults() -> None:
    @wl.jit
    def f(x: Any, y: Any = 2.0, *rest: Any, scale: Any, **more: Any) -> Any:
        return (x + y * scale + sum(rest)) * more.get("last", 1.0)

    assert f(1.0, scale=3.0).item() == 7.0
    assert f(1.0, 1.0, 10.0, 20.0, scale=3.0, last=2.0).item() == 68.0


def test_results_that_are_not_tensors_pass_through() -> None:
    marker = object()
    result = wl.jit(lambda x: {"x": x, "n": 3, "name": "a", "flag": True, "none": None, "object": marker})(wl.ones(2))
    assert (result["n"], result["name"], result["flag"], result["none"]) == (3, "a", True, None)
    assert result["object"] is marker
    assert wl.jit(lambda: None)() is None
    assert wl.jit(lambda: 3)() == 3
    assert wl.jit(lambda x: np.ones(2))(1.0).tolist() == [1.0, 1.0]


def test_functions_without_arguments_and_empty_tensors() -> None:
    same(wl.jit(lambda: wl.ones((2, 0)))(), wl.ones((2, 0)))
    same(wl.jit(lambda x: (x.sum(), x * 2))(wl.zeros((0, 3))), (wl.tensor(0.0), wl.zeros((0, 3))))


def test_an_argument_that_is_not_used_or_returned_as_it_is() -> None:
    x, y = wl.ones(2), wl.zeros(3)
    same(wl.jit(lambda x, y: y)(x, y), y)
    same(wl.jit(lambda x, y: (y, y, x))(x, y), (y, y, x))


def test_numpy_arrays_are_traced() -> None:
    f = wl.jit(lambda x: x * 2)
    same(f(np.arange(3)), wl.arange(3) * 2)
    same(f(np.ones(2)), wl.ones(2, dtype=wl.float64) * 2)
    assert f.traces == 2


@pytest.mark.parametrize(
    "dtype", ["float16", "bfloat16", "float32", "float64", "int8", "int64", "complex64", "complex128"]
)
@pytest.mark.parametrize("number", [3, 0.1, np.float64(0.1), np.int32(3), np.float32(0.5), 1j, True])
def test_numbers_combine_with_tensors_as_they_do_eagerly(dtype: str, number: Any) -> None:
    x = wl.tensor([1, 2]).astype(dtype)

    def f(x: wl.Tensor, n: Any) -> Any:
        return x + n, n * x, x * (n + n), (n * 2) * x

    same(wl.jit(f)(x, number), f(x, number))


def test_a_number_has_pythons_precision_beside_wide_tensors() -> None:
    x = wl.tensor([1.0, 2.0], dtype=wl.float64)
    step = wl.jit(lambda x, rate: x - rate * x)
    np.testing.assert_array_equal(step(x, 0.1), np.array([1.0, 2.0]) * 1.0 - 0.1 * np.array([1.0, 2.0]))


# --- when a function is traced again


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


# --- errors


@pytest.mark.parametrize(
    ("f", "word", "remedy"),
    [
        (lambda x: 1 if x > 0 else 2, "bool", "wl.cond or wl.where"),
        (lambda x: [0] * int(x), "int", "static_argnums"),
        (lambda x: range(x.astype(wl.int64)), "int", "static_argnums"),
        (lambda x: float(x), "float", "functions of wonderland"),
        (lambda x: x.item(), "a Python number", "functions of wonderland"),
        (lambda x: x.tolist(), "a Python number", "functions of wonderland"),
        (lambda x: np.asarray(x), "a NumPy array", "functions of wonderland"),
    ],
)
def test_python_control_flow_on_traced_values_says_what_to_write(f: Any, word: str, remedy: str) -> None:
    with pytest.raises(errors.TraceError) as caught:
        wl.jit(f)(wl.tensor(1.0))
    message = str(caught.value)
    assert word in message
    assert re.search(r"a value of (float32|int64|bool)\[\]", message)
    assert "traced for jit" in message
    assert remedy in message
    assert "test_jit.py" in message


def test_a_leaked_tracer_says_so_wherever_it_is_used() -> None:
    leaked: list[Any] = []

    @wl.jit
    def f(x: Any) -> Any:
        leaked.append(x * 2)
        return x

    f(wl.ones(3))
    (value,) = leaked
    uses: list[Any] = [
        lambda: value + 1,
        lambda: wl.jit(lambda x: x + value)(wl.ones(3)),
        lambda: wl.grad(lambda x: (x * value).sum())(wl.ones(3)),
        lambda: wl.vmap(lambda x: x * value)(wl.ones(2)),
        lambda: wl.jit(lambda x: wl.scan(lambda c, e: (c + value, None), x, None, length=2))(wl.ones(3)),
        lambda: bool(value.sum()),
    ]
    for use in uses[:-1]:
        with pytest.raises(errors.TraceError, match=r"\(3,\)") as caught:
            use()
        assert "return" in str(caught.value)
        assert "stor" in str(caught.value)
    with pytest.raises(errors.TraceError, match="outside the jit transformation"):
        uses[-1]()
    with pytest.raises(errors.TraceError, match="which has ended"):
        np.asarray(value)
    assert repr(value) == "traced(float32[3])"


def test_shape_errors_inside_name_the_users_line() -> None:
    with pytest.raises(errors.ShapeError) as caught:
        wl.jit(lambda a, b: a @ b)(wl.ones((2, 3)), wl.ones((2, 3)))
    assert "lambda a, b: a @ b" in str(caught.value)


def test_an_exception_while_tracing_leaves_no_trace() -> None:
    fail = [True]
    model = nn.Linear(2, 1)
    before = np.asarray(model.weight).copy()

    @wl.jit
    def f(model: Any, x: Any) -> Any:
        model.weight = model.weight * 2
        if fail[0]:
            raise RuntimeError("boom")
        return model(x)

    with pytest.raises(RuntimeError, match="boom"):
        f(model, wl.ones(2))
    np.testing.assert_array_equal(model.weight, before)
    assert f.traces == 0
    fail[0] = False
    f(model, wl.ones(2))
    np.testing.assert_array_equal(model.weight, 2 * before)


def test_trees_that_contain_themselves_are_refused() -> None:
    loop: list[Any] = []
    loop.append(loop)
    with pytest.raises(errors.TreeError, match="contains itself"):
        wl.jit(lambda t: t)(loop)
    with pytest.raises(errors.TreeError, match="contains itself"):
        wl.jit(lambda x: loop)(1.0)


# --- nesting


def test_jit_inside_jit() -> None:
    inner = wl.jit(lambda x, n: wl.sin(x) * n)
    outer = wl.jit(lambda x: inner(x, 2) + inner(inner(x, 3.0), 2))
    x = wl.tensor([0.1, 0.2], dtype=wl.float64)
    expected = wl.sin(x) * 2 + wl.sin(wl.sin(x) * 3.0) * 2
    np.testing.assert_allclose(outer(x), expected, rtol=1e-15)
    assert inner.traces == 2  # for an int and for a float


def test_a_recursive_function() -> None:
    @functools.partial(wl.jit, static_argnums=1)
    def power(x: Any, n: int) -> Any:
        return wl.ones_like(x) if n == 0 else x * power(x, n - 1)

    assert power(wl.tensor(2.0), 10).item() == 1024.0
    assert power.traces == 11
    assert wl.grad(lambda x: power(x, 3))(2.0).item() == 12.0


def test_every_nesting_with_the_derivatives() -> None:
    def f(x: Any, y: Any) -> Any:
        return (wl.sin(x) * y).sum() + (x @ x) * y[0]

    x, y = wl.tensor([0.3, -1.2], dtype=wl.float64), wl.tensor([2.0, 0.5], dtype=wl.float64)
    gradient = wl.grad(f)(x, y)
    same(wl.jit(wl.grad(f))(x, y), gradient)
    same(wl.grad(wl.jit(f))(x, y), gradient)
    same(wl.jit(wl.grad(wl.jit(f)))(x, y), gradient)
    hessian = wl.hessian(f)(x, y)
    np.testing.assert_allclose(wl.jit(wl.hessian(f))(x, y), hessian, rtol=1e-14)
    np.testing.assert_allclose(wl.hessian(wl.jit(f))(x, y), hessian, rtol=1e-14)
    tangents = (wl.ones(2, dtype=wl.float64), y)
    expected = wl.jvp(f, (x, y), tangents)
    same(wl.jvp(wl.jit(f), (x, y), tangents), expected)
    same(wl.jit(lambda x, y: wl.jvp(f, (x, y), tangents))(x, y), expected)
    xs = wl.stack([x, 2 * x, -x])
    batched = wl.vmap(f, in_axes=(0, None))(xs, y)
    np.testing.assert_allclose(wl.vmap(wl.jit(f), in_axes=(0, None))(xs, y), batched, rtol=1e-15)
    np.testing.assert_allclose(wl.jit(wl.vmap(f, in_axes=(0, None)))(xs, y), batched, rtol=1e-15)
    wl.check_grads(wl.jit(f), (x, y), order=3)


def test_long_programs_do_not_recurse() -> None:
    def f(x: Any) -> Any:
        for _ in range(3000):
            x = wl.sin(x)
        return x

    x = wl.tensor(0.5)
    expected = wl.grad(f)(x)
    for g in (wl.jit(wl.grad(f)), wl.grad(wl.jit(f)), wl.grad(wl.checkpoint(f))):
        same(g(x), expected)

    def doubled(x: Any) -> Any:
        for _ in range(30):
            x = x + x
        return x

    assert wl.grad(wl.jit(doubled))(1.0).item() == 2**30


def test_values_computed_twice_have_the_same_gradient_to_the_bit() -> None:
    rng = np.random.default_rng(0)
    x, a, b, c = (wl.asarray(rng.normal(size=100)) for _ in range(4))

    def f(x: Any) -> Any:
        return (wl.sin(x) * a + wl.sin(x) * b + wl.sin(x) * c).sum()

    expected = wl.grad(f)(x)
    for g in (wl.jit(wl.grad(f)), wl.grad(wl.jit(f)), wl.grad(wl.checkpoint(f)), wl.jit(wl.grad(wl.checkpoint(f)))):
        same(g(x), expected)


def test_jit_in_the_imperative_style() -> None:
    w = wl.tensor([1.0, 2.0]).requires_grad_()
    bias = wl.tensor(0.5).requires_grad_()
    f = wl.jit(lambda x: ((x * w + bias) ** 2).sum())
    x = wl.tensor([3.0, -1.0]).requires_grad_()
    loss = f(x)
    loss.backward()
    again_x, again_w, again_b = (t.detach().requires_grad_() for t in (x, w, bias))
    ((again_x * again_w + again_b) ** 2).sum().backward()
    for found, expected in ((x, again_x), (w, again_w), (bias, again_b)):
        np.testing.assert_allclose(found.grad, expected.grad, rtol=1e-6)  # type: ignore[arg-type]
    with wl.no_grad():
        assert not f(x).requires_grad


def test_a_tensor_that_requires_gradients_later_is_seen() -> None:
    w = wl.tensor(2.0)
    f = wl.jit(lambda x: x * w)
    assert not f(wl.tensor(3.0)).requires_grad
    w.requires_grad_()
    f(wl.tensor(3.0)).backward()
    assert w.grad is not None
    assert w.grad.item() == 3.0


def test_methods_can_be_decorated() -> None:
    class Model:
        def __init__(self, scale: float) -> None:
            self.scale = scale

        @wl.jit
        def plain(self, x: Any) -> Any:
            return x * self.scale

    class Net(nn.Module):
        def __init__(self, scale: float) -> None:
            self.scale = nn.Parameter(wl.tensor(scale))
            self.calls = nn.Buffer(0)

        @wl.jit
        def forward(self, x: Any) -> Any:
            self.calls = self.calls + 1  # type: ignore[assignment]
            return x * self.scale

        @functools.partial(wl.jit, static_argnums=2)
        def power(self, x: Any, n: int) -> Any:
            for _ in range(n):
                x = self(x)
            return x

    one, two = Model(2.0), Model(3.0)
    assert (one.plain(1.0).item(), two.plain(1.0).item()) == (2.0, 3.0)
    a, b = Net(2.0), Net(3.0)
    assert (a(wl.tensor(1.0)).item(), b(wl.tensor(1.0)).item()) == (2.0, 3.0)
    assert a.power(wl.tensor(1.0), 3).item() == 8.0  # type: ignore[call-arg]
    assert a.calls.item() == 4
    assert a.forward.traces == 1  # type: ignore[attr-defined]  # modules of one structure share it
    assert wl.grad(lambda net: net(wl.tensor(5.0)))(a)["scale"].item() == 5.0


# --- state


def test_cells_from_outside_are_read_and_written() -> None:
    count = Cell(wl.tensor(0))
    scale = Cell(wl.tensor(2.0))

    @wl.jit
    def f(x: Any) -> Any:
        count.assign(count + 1)
        return x * scale

    for i in range(3):
        assert f(wl.tensor(1.0)).item() == 2.0 + i
        scale.assign(scale + 1)
    assert count.item() == 3
    assert f.traces == 1
    assert type(count.value) is wl.Tensor


def test_modules_from_outside_that_change_are_traced_again() -> None:
    class Scale(nn.Module):
        def __init__(self) -> None:
            self.factor = 2.0

        def forward(self, x: Any) -> Any:
            return x * self.factor if self.training else x

    model = Scale()
    f = wl.jit(lambda x: model(x))
    assert f(1.0).item() == 2.0
    model.factor = 3.0
    assert f(1.0).item() == 3.0
    model.eval()
    assert f(1.0).item() == 1.0
    assert f.traces == 3
    model.train()
    assert f(1.0).item() == 3.0
    assert f.traces == 3  # the trace for this state of the model is remembered
    model = Scale()
    assert f(1.0).item() == 2.0
    layers = [nn.Linear(2, 2)]
    holder = Holder(layers)
    g = wl.jit(lambda x: holder(x))
    g(wl.ones(2))
    holder.layers.append(nn.Linear(2, 3))  # in place
    assert g(wl.ones(2)).shape == (3,)
    Scale()  # modules that have nothing to do with it
    before = g.traces
    g(wl.ones(2))
    assert g.traces == before


def test_a_layer_from_outside_that_is_replaced_by_one_of_the_same_kind() -> None:
    x = wl.ones(2)
    for reach in (
        lambda model: lambda x: model(x),
        lambda model: model,
        lambda model: model.forward,
        lambda model: functools.partial(lambda model, x: model(x), model),
        lambda model: functools.partial(lambda x, models: models[0](x), models=[model]),
        lambda model: wl.vmap(model.forward, in_axes=None, axis_size=1),
    ):
        model = Holder([nn.Linear(2, 2)])
        f = wl.jit(reach(model))
        f(x)
        model.layers[0] = nn.Linear(2, 2)
        same(f(x).reshape(2), model(x))
        model.layers[0].weight = nn.Parameter(wl.zeros((2, 2)))
        same(f(x).reshape(2), model(x))
        before = f.traces
        model.layers[0].weight.assign(wl.ones((2, 2)))  # another value in the same place
        same(f(x).reshape(2), model(x))
        assert f.traces == before


def test_modules_reached_through_plain_objects_are_traced_again() -> None:
    class Trainer:
        def __init__(self) -> None:
            self.model = Holder([nn.Linear(2, 2)])

        def predict(self, x: Any) -> Any:
            return self.model(x) if self.model.training else -self.model(x)

    trainer = Trainer()
    f = wl.jit(trainer.predict)
    first = f(wl.ones(2))
    trainer.model.eval()
    same(f(wl.ones(2)), -first)


class Holder(nn.Module):
    def __init__(self, layers: list[Any]) -> None:
        self.layers = layers

    def forward(self, x: Any) -> Any:
        for layer in self.layers:
            x = layer(x)
        return x


class Mean(nn.Module):
    """A running mean: state that is written in the forward pass."""

    def __init__(self, size: int) -> None:
        self.gain = nn.Parameter(wl.ones(size))
        self.mean = nn.Buffer(wl.zeros(size))
        self.steps = nn.Buffer(0)

    def forward(self, x: Any) -> Any:
        if self.training:
            self.mean = 0.9 * self.mean + 0.1 * x.mean(axis=0)
            self.steps = self.steps + 1  # type: ignore[assignment]
        return (x - self.mean) * self.gain


def test_the_state_of_a_module_argument_is_written_back() -> None:
    rng = np.random.default_rng(0)
    eager, compiled = Mean(3), Mean(3)
    f = wl.jit(lambda model, x: model(x))
    for _ in range(3):
        x = wl.asarray(rng.normal(size=(4, 3)).astype(np.float32))
        same(f(compiled, x), eager(x))
    same(compiled.state_dict(), eager.state_dict())
    assert f.traces == 1
    compiled.eval()
    f(compiled, x)
    assert f.traces == 2
    assert compiled.steps.item() == 3


def test_another_module_of_the_same_structure_reuses_the_trace() -> None:
    f = wl.jit(lambda model, x: model(x))
    models = [Mean(2) for _ in range(3)]
    for i, model in enumerate(models):
        model.gain = wl.tensor([1.0 + i, 2.0])  # type: ignore[assignment]
        np.testing.assert_array_equal(f(model, wl.zeros((1, 2))), np.zeros((1, 2)))
        f(model, wl.ones((1, 2)))
    assert f.traces == 1
    for model in models:
        assert model.steps.item() == 2
        np.testing.assert_allclose(model.mean, [0.1, 0.1], rtol=1e-6)
    f(Mean(3), wl.ones((1, 3)))
    assert f.traces == 2


def test_a_module_that_is_passed_twice() -> None:
    f = wl.jit(lambda a, b, x: (a(x), b(x)))
    x = wl.ones((1, 2))
    one, two = Mean(2), Mean(2)
    f(one, one, x)
    assert one.steps.item() == 2
    f(one, two, x)
    assert (one.steps.item(), two.steps.item()) == (3, 1)
    f(two, two, x)
    assert two.steps.item() == 3


def test_a_module_that_is_passed_and_closed_over() -> None:
    outside = Mean(2)
    f = wl.jit(lambda model, x: (model(x), outside(x)))
    x = wl.ones((1, 2))
    other = Mean(2)
    f(other, x)
    assert (other.steps.item(), outside.steps.item()) == (1, 1)
    f(outside, x)
    assert outside.steps.item() == 3
    f(other, x)
    assert (other.steps.item(), outside.steps.item()) == (2, 4)


def test_a_part_of_a_module_that_is_passed_and_closed_over() -> None:
    whole = nn.Sequential(Mean(2), Mean(2))
    f = wl.jit(lambda part, x: (part(x), whole(x)))
    x = wl.ones((1, 2))
    other = Mean(2)
    f(other, x)
    f(whole[0], x)
    assert (whole[0].steps.item(), whole[1].steps.item()) == (3, 2)
    f(whole[1], x)
    assert (whole[0].steps.item(), whole[1].steps.item()) == (4, 4)
    f(other, x)
    assert other.steps.item() == 2


def test_a_cell_that_is_passed_and_closed_over() -> None:
    outside = nn.Buffer(wl.tensor(0.0))

    def both(cell: Any) -> Any:
        cell.assign(cell + 1)
        outside.assign(outside + 10)
        return cell + outside

    f = wl.jit(both)
    other = nn.Buffer(wl.tensor(100.0))
    assert f(other).item() == 111.0
    assert f(outside).item() == 42.0
    assert f(other).item() == 133.0
    assert (other.item(), outside.item()) == (102.0, 31.0)


def test_a_module_that_is_returned_is_the_one_that_was_passed() -> None:
    f = wl.jit(lambda model, x: (model, model(x)))
    one, two = Mean(2), Mean(2)
    assert f(one, wl.ones((1, 2)))[0] is one
    assert f(two, wl.ones((1, 2)))[0] is two
    assert f.traces == 1


def test_a_module_made_inside_is_a_new_one_each_time() -> None:
    f = wl.jit(lambda x: Mean(x.shape[-1]))
    one, two = f(wl.ones((1, 2))), f(wl.ones((1, 2)))
    assert one is not two
    one.gain = wl.zeros(2)  # type: ignore[assignment]
    np.testing.assert_array_equal(two.gain, [1.0, 1.0])
    outer = wl.jit(lambda x: f(x)(x))
    np.testing.assert_allclose(outer(wl.ones((1, 2))), [[0.9, 0.9]], rtol=1e-6)


def test_modules_for_temporary_use_do_not_prevent_reuse() -> None:
    f = wl.jit(lambda x: Mean(x.shape[-1])(x))
    for _ in range(3):
        np.testing.assert_allclose(f(wl.ones((1, 2))), [[0.9, 0.9]], rtol=1e-6)
    assert f.traces == 1


def test_lazy_layers_are_completed_while_tracing() -> None:
    model = nn.Sequential(nn.LazyLinear(4), wl.tanh, nn.LazyLinear(1))
    f = wl.jit(lambda model, x: model(x).sum())
    x = wl.ones((2, 3))
    first = f(model, x)
    assert model[0].weight.shape == (3, 4)
    assert type(model[0].weight.value) is wl.Tensor
    same(f(model, x), first)
    np.testing.assert_allclose(model(x).sum(), first, rtol=1e-6)
    gradients = wl.jit(wl.grad(lambda model, x: model(x).sum()))(model, x)
    assert sorted(gradients) == ["0.bias", "0.weight", "2.bias", "2.weight"]
    other = nn.Sequential(nn.LazyLinear(4), wl.tanh, nn.LazyLinear(1))
    f(other, x)
    assert not np.array_equal(other[0].weight, model[0].weight)


def test_gradients_reach_modules_through_jit() -> None:
    model = nn.Sequential(nn.Linear(3, 4), wl.tanh, nn.Linear(4, 1))
    x = wl.ones((2, 3))
    f = wl.jit(lambda model, x: model(x).sum())
    expected = wl.grad(lambda model, x: model(x).sum())(model, x)
    same(wl.grad(f)(model, x), expected)
    same(wl.grad(f)(model, x), expected)
    assert f.traces == 1
    f(model, x).backward()
    same({path: p.grad for path, p in model.named_parameters()}, expected)


def test_random_streams_go_on_inside_jit() -> None:
    def draw() -> Any:
        return wl.random.normal((3,))

    wl.random.seed(0)
    eager = [draw() for _ in range(3)]
    wl.random.seed(0)
    f = wl.jit(draw)
    same([f() for _ in range(3)], eager)
    assert f.traces == 1


class Momentum:
    """An optimizer with state, known to trees by its parts."""

    def __init__(self, model: Any, rate: float) -> None:
        self.model = model
        self.rate = Cell(wl.tensor(rate))
        self.velocity = {path: Cell(wl.zeros_like(p)) for path, p in model.named_parameters()}
        self.steps = Cell(wl.tensor(0))

    def __tree_parts__(self) -> tuple[dict[str, Any], Any]:
        return {"model": self.model, "rate": self.rate, "velocity": self.velocity, "steps": self.steps}, None

    @classmethod
    def __tree_new__(cls) -> Momentum:
        return object.__new__(cls)

    def __tree_fill__(self, children: dict[str, Any], static: Any) -> None:
        self.__dict__.update(children)

    def step(self, gradients: dict[str, Any]) -> None:
        self.steps.assign(self.steps + 1)
        for path, parameter in self.model.named_parameters():
            self.velocity[path].assign(0.9 * self.velocity[path] + gradients[path])
            parameter.assign(parameter - self.rate * self.velocity[path])


def training_step(model: Any, optimizer: Any, x: Any, y: Any) -> Any:
    def loss_of(model: Any, x: Any, y: Any) -> Any:
        return ((model(x) - y) ** 2).mean()

    loss, gradients = wl.value_and_grad(loss_of)(model, x, y)
    optimizer.step(gradients)
    return loss


@pytest.mark.parametrize("style", ["arguments", "closure"])
def test_a_training_step_gives_the_same_bits_with_and_without_jit(style: str) -> None:
    rng = np.random.default_rng(0)
    data = [
        (wl.asarray(rng.normal(size=(8, 3)).astype(np.float32)), wl.asarray(rng.normal(size=(8, 1)).astype(np.float32)))
        for _ in range(5)
    ]

    def train(compiled: bool) -> tuple[list[Any], Any, Any, Any]:
        wl.random.seed(0)
        model = nn.Sequential(nn.Linear(3, 4), wl.tanh, Mean(4), nn.Linear(4, 1))
        optimizer = Momentum(model, 0.1)
        step = functools.partial(training_step, model, optimizer) if style == "closure" else training_step
        run = wl.jit(step) if compiled else step
        args = () if style == "closure" else (model, optimizer)
        return [run(*args, x, y) for x, y in data], model, optimizer, run  # type: ignore[call-arg]

    losses, model, optimizer, _ = train(False)
    losses_, model_, optimizer_, run = train(True)
    same(losses_, losses)
    same(model_.state_dict(), model.state_dict())
    same([c.value for c in optimizer_.velocity.values()], [c.value for c in optimizer.velocity.values()])
    assert optimizer_.steps.item() == 5
    assert model_[2].steps.item() == 5
    assert run.traces == 1


def test_changes_of_a_module_argument_are_seen() -> None:
    class Scales(nn.Module):
        def __init__(self) -> None:
            self.factors = [nn.Parameter(wl.tensor(2.0))]
            self.table = np.ones(2, np.float32)
            self.sign = 1

        def forward(self, x: Any) -> Any:
            for factor in self.factors:
                x = x * factor
            return self.sign * x * self.table

    f = wl.jit(lambda model, x: model(x))
    model = Scales()
    x = wl.ones(2)
    assert f(model, x).tolist() == [2.0, 2.0]
    model.factors.append(nn.Parameter(wl.tensor(3.0)))  # in place, which no attribute shows
    assert f(model, x).tolist() == [6.0, 6.0]
    model.sign = -1
    assert f(model, x).tolist() == [-6.0, -6.0]
    model.table[1] = 10.0
    assert f(model, x).tolist() == [-6.0, -60.0]
    model.factors[0].assign(wl.tensor(0.0))
    assert f(model, x).tolist() == [0.0, 0.0]
    layers = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    g = wl.jit(lambda model, x: model(x))
    g(layers, x)
    layers.append(nn.Linear(2, 3))
    assert g(layers, x).shape == (3,)
    layers[2].freeze()
    g(layers, x)
    layers[0].weight.assign(wl.zeros((2, 2)))
    layers[0].bias.assign(wl.zeros(2))
    np.testing.assert_allclose(g(layers, x), layers(x), rtol=1e-6)


def test_modules_that_are_dataclasses() -> None:
    @dataclasses.dataclass
    class Affine(nn.Module):  # which makes them equal by value, and not hashable
        scale: Any
        shift: float = 1.0

        def forward(self, x: Any) -> Any:
            return x * self.scale + self.shift

    f = wl.jit(lambda model, x: model(x))
    models = [Affine(nn.Parameter(wl.tensor(2.0))), Affine(nn.Parameter(wl.tensor(3.0)))]
    for _ in range(2):
        assert [f(model, 1.0).item() for model in models] == [3.0, 4.0]
    assert f.traces == 1
    g = wl.jit(lambda x: models[0](x))
    assert g(1.0).item() == 3.0
    models[0].shift = 5.0
    assert g(1.0).item() == f(models[0], 1.0).item() == 7.0


def test_modules_that_nobody_needs_are_freed() -> None:
    import gc
    import weakref

    f = wl.jit(lambda model, x: model(x))
    model = Mean(2)
    f(model, wl.ones((1, 2)))
    reference = weakref.ref(model)
    cell = weakref.ref(model.mean)
    del model
    gc.collect()
    assert reference() is None
    assert cell() is None


def test_a_module_that_knows_its_parent() -> None:
    class Node(nn.Module):
        def __init__(self) -> None:
            self.weight = nn.Parameter(wl.tensor(2.0))

        def forward(self, x: Any) -> Any:
            return x * self.weight

    parent, child = Node(), Node()
    parent.child, child.parent = child, parent
    f = wl.jit(lambda model, x: model(x) + model.child(x))
    assert f(parent, 1.0).item() == 4.0
    assert f(parent, 2.0).item() == 8.0


def test_calling_with_many_parameters_is_cheap() -> None:
    model = nn.Sequential(*[nn.Linear(2, 2) for _ in range(50)])
    f = wl.jit(lambda model, x: x)
    f(model, wl.ones(2))
    from wonderland.transforms.jit import constants

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(constants, "_taken_apart", lambda *args: pytest.fail("the module is taken apart again"))
        for _ in range(3):
            f(model, wl.ones(2))
    model[3] = nn.Linear(2, 2)
    f(model, wl.ones(2))
    assert f.traces == 1


def test_plain_values_in_stateful_objects_are_part_of_the_trace() -> None:
    class Holder:
        def __init__(self, value: Any) -> None:
            self.value = value

        def __tree_parts__(self) -> tuple[dict[str, Any], Any]:
            return {"value": self.value}, None

    f = wl.jit(lambda holder, x: x * holder.value)
    holder = Holder(2.0)
    assert f(holder, 1.0).item() == 2.0
    holder.value = 3.0
    assert f(holder, 1.0).item() == 3.0
    holder.value = wl.tensor([1.0, 2.0])
    assert f(holder, 1.0).tolist() == [1.0, 2.0]
    holder.value = wl.tensor([3.0, 4.0])
    assert f(holder, 1.0).tolist() == [3.0, 4.0]


# --- threads


def in_threads(work: Any, count: int = 4) -> list[Any]:
    results: list[Any] = [None] * count
    problems: list[BaseException] = []
    start = threading.Barrier(count)

    def run(i: int) -> None:
        try:
            start.wait()
            results[i] = work(i)
        except BaseException as error:
            problems.append(error)

    threads = [threading.Thread(target=run, args=(i,)) for i in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if problems:
        raise problems[0]
    return results


def test_threads_that_trace_and_call_one_function() -> None:
    model = nn.Linear(3, 2)
    f = wl.jit(lambda x: wl.sin(model(x)).sum())
    inputs = [wl.ones((n % 3 + 1, 3)) * n for n in range(12)]
    expected = [wl.sin(model(x)).sum().item() for x in inputs]

    def work(i: int) -> list[float]:
        return [f(x).item() for x in inputs[i:] + inputs[:i]]

    for i, found in enumerate(in_threads(work)):
        np.testing.assert_allclose(found, expected[i:] + expected[:i], rtol=1e-6)
    assert f.traces == 3
    assert type(model.weight.value) is wl.Tensor


def test_threads_that_write_state_of_their_own() -> None:
    f = wl.jit(lambda model, x: model(x))

    def work(i: int) -> int:
        model = Mean(2)
        for _ in range(20):
            f(model, wl.ones((i % 2 + 1, 2)))
        return model.steps.item()  # type: ignore[no-any-return]

    assert in_threads(work) == [20] * 4


# --- eval_shape and make_graph


def test_eval_shape_computes_nothing() -> None:
    huge = wl.ShapeDtype((10**6, 10**6), wl.float32)
    shapes = wl.eval_shape(lambda x, k: {"y": x @ x, "k": k, "n": None, "m": (x.sum(axis=0), 3)}, huge, "text")
    assert shapes["y"] == wl.ShapeDtype((10**6, 10**6), wl.float32)
    assert shapes["k"] == "text"
    assert shapes["m"] == (wl.ShapeDtype((10**6,), wl.float32), 3)


def test_eval_shape_does_not_change_state() -> None:
    model = Mean(3)
    out = wl.eval_shape(lambda model, x: (model, model(x)), model, wl.ShapeDtype((4, 3), wl.float32))
    assert out[0] is model
    assert out[1].shape == (4, 3)
    assert model.steps.item() == 0


def test_graph_of_a_jitted_function_is_the_one_that_runs() -> None:
    f = wl.jit(lambda x: wl.sin(x) + wl.sin(x))
    graph = f.graph(wl.ones(2))
    assert [e.primitive.name for e in graph.equations] == ["sin", "add"]
    assert f.traces == 1


@pytest.mark.parametrize("transform", ["jvp", "grad", "vmap", "hessian", "linearize"])
def test_graphs_of_transformed_functions_are_verified(transform: str) -> None:
    from wonderland.ir import verify

    def f(x: Any) -> Any:
        y = wl.scan(lambda c, e: (wl.sin(c) * e, c), x[0], x)[1]
        return wl.cond(y.sum() > 0, wl.checkpoint(lambda y: (y**3).sum()), lambda y: wl.exp(y).sum(), y)

    x = wl.tensor([0.5, 1.5, -2.0])
    programs: dict[str, Any] = {
        "jvp": lambda x: wl.jvp(f, (x,), (x,)),
        "grad": wl.grad(f),
        "vmap": lambda x: wl.vmap(f)(wl.stack([x, -x])),
        "hessian": wl.hessian(f),
        "linearize": lambda x: wl.linearize(f, x)[1](x),
    }
    graph = wl.make_graph(programs[transform])(x)
    verify(graph)
    leaves = wl.tree.leaves(programs[transform](x))
    for leaf, out in zip(leaves, graph.outputs, strict=True):
        assert (leaf.shape, leaf.dtype) == (out.shape, out.dtype)
