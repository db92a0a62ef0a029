"""Reverse mode: `grad`, `value_and_grad`, `vjp`, `linearize`; and transformations of transformations."""

from __future__ import annotations

import gc
import sys
import tracemalloc
import weakref
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pytest

import wonderland as wl
from tests.transforms.counting import operations, values_alive
from wonderland.core.tangents import FEW
from wonderland.errors import GradientError, TraceError, TreeError

rng = np.random.default_rng(0)


def f64(x: Any) -> wl.Tensor:
    return wl.asarray(np.asarray(x, np.float64))


class Pair(NamedTuple):
    first: Any
    second: Any


@dataclass
class Layer:
    W: Any
    b: Any
    name: str = field(default="layer", metadata={"static": True})


# --- grad and value_and_grad


@pytest.mark.book("6-56", "6-57", "6-30", name="wl.grad")
def test_gradient_has_the_shape_and_dtype_of_the_argument() -> None:
    for dtype in (wl.float16, wl.bfloat16, wl.float32, wl.float64):
        for shape in ((), (3,), (1, 3), (3, 1), (2, 0), (2, 1, 4)):
            g = wl.grad(lambda x: (x**2 + wl.ones((4, 1, 1, 1), dtype=x.dtype)).sum())(wl.ones(shape, dtype=dtype))
            assert (g.shape, g.dtype) == (shape, dtype)
            np.testing.assert_array_equal(g.astype(wl.float64), np.full(shape, 8.0))


def test_argnums() -> None:
    f = lambda x, y, z: x * y**2 * z**3
    args = f64(2.0), f64(3.0), f64(5.0)
    assert wl.grad(f)(*args).item() == 9 * 125
    assert wl.grad(f, argnums=1)(*args).item() == 2 * 2 * 3 * 125
    assert wl.grad(f, argnums=-1)(*args).item() == 2 * 9 * 3 * 25
    pair = wl.grad(f, argnums=(2, 0))(*args)
    assert isinstance(pair, tuple)
    assert [g.item() for g in pair] == [2 * 9 * 3 * 25, 9 * 125]
    (only,) = wl.grad(f, argnums=(1,))(*args)
    assert only.item() == 2 * 2 * 3 * 125
    for bad, message in (
        (3, "argnums=3, but the function received 3"),
        ("x", "argnums='x'"),
        ((0, -3), "twice"),
    ):
        for transform in (wl.grad, wl.value_and_grad, wl.jacobian, wl.hessian):
            with pytest.raises(GradientError, match=message):
                transform(f, argnums=bad)(*args)  # type: ignore[arg-type]


def test_only_functions_can_be_transformed() -> None:
    loss = wl.tensor(2.0)
    for transform in (wl.grad, wl.value_and_grad, wl.jacobian, wl.jacfwd, wl.hessian):
        with pytest.raises(GradientError, match=r"takes a function, received a Tensor.\n.*loss.backward\(\)"):
            transform(loss)  # type: ignore[arg-type, call-overload]
    with pytest.raises(GradientError, match="vjp: takes a function, received a int"):
        wl.vjp(3, 1.0)  # type: ignore[call-overload]
    with pytest.raises(GradientError, match="jvp: takes a function"):
        wl.jvp(None, (1.0,), (1.0,))  # type: ignore[call-overload]
    with pytest.raises(GradientError, match="linearize: takes a function"):
        wl.linearize([], 1.0)  # type: ignore[arg-type]


def test_other_arguments_may_be_anything() -> None:
    f = lambda x, kind, index, *, power: (x[index] ** power).sum() if kind == "power" else None
    g = wl.grad(f)(f64([1.0, 2.0, 3.0]), "power", np.array([0, 2]), power=3)
    np.testing.assert_array_equal(g, [3.0, 0.0, 27.0])


def test_value_and_grad_and_aux() -> None:
    f = lambda x: (x**2).sum()
    value, g = wl.value_and_grad(f)(f64([1.0, 2.0]))
    assert value.item() == 5.0
    np.testing.assert_array_equal(g, [2.0, 4.0])

    with_aux = lambda x: (f(x), {"x": x * 2, "text": "yes", "none": None})
    (value, aux), g = wl.value_and_grad(with_aux, has_aux=True)(f64([1.0, 2.0]))
    assert value.item() == 5.0
    assert type(aux["x"]) is wl.Tensor
    assert aux["text"] == "yes"
    g, aux = wl.grad(with_aux, has_aux=True)(f64([1.0, 2.0]))
    np.testing.assert_array_equal(g, [2.0, 4.0])
    np.testing.assert_array_equal(aux["x"], [2.0, 4.0])


def test_python_and_numpy_numbers_are_arguments_too() -> None:
    assert wl.grad(lambda x: x**2)(3.0).item() == 6.0
    assert wl.grad(lambda x: x**2)(np.float64(3.0)).dtype == wl.float64
    assert wl.grad(lambda x: (x**2).sum())(np.ones(2)).dtype == wl.float64


TREES: dict[str, Any] = {
    "dict": {"b": f64([1.0, 2.0]), "a": f64(3.0)},
    "ordered dict": OrderedDict(z=f64([1.0]), a=f64(2.0)),
    "dict with numbers as keys": {2: f64([1.0]), 1: f64(2.0)},
    "list": [f64([1.0, 2.0]), f64(3.0)],
    "tuple": (f64([1.0, 2.0]), f64(3.0)),
    "namedtuple": Pair(f64([1.0, 2.0]), f64(3.0)),
    "dataclass": Layer(f64([[1.0, 2.0]]), f64(3.0), "first"),
    "nested": {
        "layers": [Layer(f64([1.0]), None), (f64(2.0), {"x": f64([[3.0]])})],
        "empty": [],
        "none": None,
    },
    "python numbers": {"a": 1.0, "b": [2.0]},
}


@pytest.mark.parametrize("name", TREES)
def test_trees(name: str) -> None:
    tree = TREES[name]
    g = wl.grad(lambda t: sum((leaf**2).sum() for leaf in wl.tree.leaves(t)))(tree)
    assert type(g) is type(tree) or isinstance(tree, dict)
    assert wl.tree.structure(g) == wl.tree.structure(tree)
    for leaf, slope in zip(wl.tree.leaves(tree), wl.tree.leaves(g), strict=True):
        np.testing.assert_array_equal(slope, 2 * np.asarray(leaf))
    if name == "dataclass":
        assert g.name == "first"


def test_a_tree_that_contains_itself_is_refused() -> None:
    tree: list[Any] = [1.0]
    tree.append(tree)
    with pytest.raises(TreeError, match="contains itself"):
        wl.grad(lambda t: t[0])(tree)


@pytest.mark.parametrize(
    "f, argument, message",
    [
        (lambda x: x, wl.ones(3), r"shape \(3,\); only a scalar has a gradient"),
        (lambda x: x, wl.ones((1,)), r"shape \(1,\)"),
        (lambda x: (x, x), 1.0, "not one scalar"),
        (lambda x: {"loss": x}, 1.0, "not one scalar"),
        (lambda x: "text", 1.0, "returned a str, not a tensor"),
        (lambda x: None, 1.0, "not one scalar"),
        (lambda x: wl.argmax(x), wl.ones(3), "returned int64, which has no gradient"),
        (lambda x: x > 0, 1.0, "returned bool, which has no gradient"),
        (lambda x: wl.complex(x, x), 1.0, "returned complex64, which has no gradient"),
        (lambda x: x.sum(), wl.arange(3), "int64; derivatives need floating or complex inputs"),
        (lambda x: x, 1, "int64; derivatives need floating"),
        (lambda x: x, True, "bool; derivatives need floating"),
        (lambda x: x["a"], {"a": 1.0, "b": 2}, "int64; derivatives need floating"),
        (lambda x: x, "text", "leaf of type str"),
    ],
)
def test_bad_calls_explain_themselves(f: Callable[..., Any], argument: Any, message: str) -> None:
    with pytest.raises(GradientError, match=message):
        wl.grad(f)(argument)


def test_unused_and_constant() -> None:
    assert wl.grad(lambda x: wl.tensor(3.0))(2.0).item() == 0.0
    assert wl.grad(lambda x: 3.0)(2.0).item() == 0.0
    np.testing.assert_array_equal(
        wl.grad(lambda p: (p["used"] ** 2).sum())({"used": f64([1.0]), "not": f64([1.0, 2.0])})["not"], 0
    )
    assert wl.grad(lambda x: x)(2.0).item() == 1.0


def test_complex_gradient_is_the_direction_of_steepest_ascent() -> None:
    """df/dx + i df/dy for z = x + iy."""
    z = wl.asarray(np.array([1 + 2j, -3 + 0.5j]))
    np.testing.assert_allclose(wl.grad(lambda z: (wl.abs(z) ** 2).sum())(z), 2 * z.numpy(), rtol=1e-14)
    np.testing.assert_allclose(wl.grad(lambda z: wl.real(z).sum())(z), [1, 1])
    np.testing.assert_allclose(wl.grad(lambda z: wl.imag(z).sum())(z), [1j, 1j])
    f = lambda z: wl.real(wl.exp(z) * wl.conj(z)).sum()
    np.testing.assert_allclose(wl.grad(f)(z), wl.numerical_grad(f, z), rtol=1e-8)


# --- fan-out, depth, memory


@pytest.mark.book("6-19", "6-20", "A3-30", name="wl.grad")
def test_uses_of_a_value_add_up() -> None:
    assert wl.grad(lambda x: x * x + x)(3.0).item() == 7.0
    assert wl.grad(lambda x: (x**2) * (x**2))(2.0).item() == 32.0

    def diamond(x: wl.Tensor) -> wl.Tensor:
        a = x + 1
        b = a * a
        return b + a * b

    want = wl.numerical_grad(diamond, f64(1.5)).item()
    assert wl.grad(diamond)(f64(1.5)).item() == pytest.approx(want, rel=1e-8)


@pytest.mark.book("6-81", "6-46", name="wl.grad")
def test_doubling_thirty_times_costs_thirty_steps() -> None:
    def doubled(x: wl.Tensor, times: int) -> wl.Tensor:
        for _ in range(times):
            x = x + x
        return x

    with operations() as counted:
        slope = wl.grad(lambda x: doubled(x, 30))(f64(1.0))
    assert slope.item() == 2.0**30
    assert counted["add"] <= 60  # thirty forwards, thirty sums of two adjoints
    with operations() as counted:
        slope = wl.jvp(lambda x: doubled(x, 30), (f64(1.0),), (f64(1.0),))[1]
    assert slope.item() == 2.0**30
    assert counted["add"] <= 60


@pytest.mark.book("6-81", "6-38", name="wl.grad")
def test_deep_chains_are_linear_and_do_not_recurse() -> None:
    def deep(x: wl.Tensor, depth: int) -> wl.Tensor:
        for _ in range(depth):
            x = wl.sin(x)
        return x

    def cost(depth: int) -> int:
        with operations() as counted:
            wl.grad(lambda x: deep(x, depth))(f64(1.0))
        return counted.total()

    limit = sys.getrecursionlimit()
    frames = 0
    frame: Any = sys._getframe()
    while frame is not None:
        frames, frame = frames + 1, frame.f_back
    sys.setrecursionlimit(frames + 80)
    try:
        slope = wl.grad(lambda x: deep(x, 10_000))(f64(1.0))
        x = f64(1.0).requires_grad_()
        deep(x, 10_000).backward()
        gc.collect()
    finally:
        sys.setrecursionlimit(limit)
    want, value = 1.0, 1.0
    for _ in range(10_000):
        want, value = want * np.cos(value), np.sin(value)
    assert slope.item() == pytest.approx(want, rel=1e-9)
    assert x.grad is not None
    assert x.grad.item() == pytest.approx(want, rel=1e-9)
    assert cost(400) - cost(200) == 2 * (cost(200) - cost(100))  # a straight line


@pytest.mark.book("6-35", "6-39", "A3-19", name="wl.grad")
def test_values_are_kept_for_the_backward_pass_and_released_as_it_walks() -> None:
    depth = 40

    def deep(x: wl.Tensor) -> wl.Tensor:
        for _ in range(depth):
            x = wl.tanh(x)
        return x.sum()

    x = wl.ones(5)
    with values_alive() as alive:
        wl.grad(deep)(x)
        after = alive.now()
    top = alive.history.index(max(alive.history))
    walk = alive.history[top:]
    assert max(alive.history) >= depth  # one residual per step
    assert walk[-1] <= 6
    assert all(b <= a + 2 for a, b in pairwise(walk)), "memory grows while walking back"
    assert walk[len(walk) // 2] <= 0.7 * max(alive.history)
    assert after <= 1
    with values_alive() as alive:
        deep(x)
    assert max(alive.history) <= 3  # without a derivative nothing is kept


@pytest.mark.parametrize("few", [True, False])
def test_what_holds_its_arguments_until_the_backward_pass(few: bool) -> None:
    """A linear operation needs no numbers for its derivative; only few of them are kept, as that is quicker."""
    held = []

    def f(x: Any) -> wl.Tensor:
        y = x + 1
        reference = weakref.ref(y.primal._data)
        total = y.sum() + y[:3].sum()
        del y
        held.append(reference() is not None)
        return total

    x = wl.zeros(10 if few else FEW + 1)
    gradient = wl.grad(f)(x)
    assert held == [few]
    assert gradient[:4].tolist() == [2, 2, 2, 1]


def test_peak_memory_of_the_backward_pass() -> None:
    n, depth = 200_000, 20

    def deep(x: wl.Tensor) -> wl.Tensor:
        for _ in range(depth):
            x = wl.sin(x)  # keeps cos(x)
        return x.sum()

    x = wl.ones(n)
    wl.grad(deep)(x)  # loads what it needs
    tracemalloc.start()
    try:
        wl.grad(deep)(x)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak <= (depth + 6) * 4 * n


# --- vjp and linearize


@pytest.mark.book("6-43", "6-55", "6-58", "B6-18", name="wl.vjp")
def test_the_pullback_is_reusable_and_linear() -> None:
    calls = []

    def f(x: wl.Tensor) -> wl.Tensor:
        calls.append(1)
        return wl.sin(x) * x

    x = f64([0.5, 1.0, 2.0])
    value, pull = wl.vjp(f, x)
    rows = [pull(e)[0].numpy() for e in wl.eye(3, dtype=wl.float64)]
    np.testing.assert_allclose(rows, np.diag(np.cos(x.numpy()) * x.numpy() + np.sin(x.numpy())), rtol=1e-14)
    u, v = f64([1.0, -2.0, 0.5]), f64([0.1, 0.2, 0.3])
    np.testing.assert_allclose(pull(2 * u + v)[0], 2 * pull(u)[0] + pull(v)[0], rtol=1e-13)
    assert calls == [1]
    np.testing.assert_array_equal(value, f(x))


@pytest.mark.book("6-44", "B6-14", name="wl.vjp")
def test_one_adjoint_per_argument_and_trees_of_results() -> None:
    f = lambda x, y: {"product": x * y, "count": wl.arange(2), "sum": x + y}
    value, pull = wl.vjp(f, f64(2.0), f64(3.0))
    x_bar, y_bar = pull({"product": f64(10.0), "count": wl.arange(2), "sum": f64(1.0)})
    assert (x_bar.item(), y_bar.item()) == (31.0, 21.0)
    assert value["count"].dtype == wl.int64
    value, pull, aux = wl.vjp(lambda x: (x**2, "aux"), f64(3.0), has_aux=True)
    assert (value.item(), pull(f64(1.0))[0].item(), aux) == (9.0, 6.0, "aux")  # type: ignore[arg-type, attr-defined]


def test_wrong_adjoints_are_refused() -> None:
    _, pull = wl.vjp(lambda x: x * 2, wl.ones(3))
    with pytest.raises(GradientError, match=r"adjoint of float32\[2\] belongs to a value of float32\[3\]"):
        pull(wl.ones(2))
    with pytest.raises(GradientError, match="float64"):
        pull(f64([1.0, 1.0, 1.0]))
    with pytest.raises(GradientError, match="structure"):
        pull((wl.ones(3),))


@pytest.mark.book("2.54", "B2-13", "B2-14", name="wl.linearize")
def test_linearize() -> None:
    f = lambda x: x**2 - 1.5 * x
    value, push = wl.linearize(f, f64(0.5))
    assert value.item() == pytest.approx(-0.5)
    assert f(f64(0.51)).item() == pytest.approx(-0.5049)
    assert (value + push(f64(0.01))).item() == pytest.approx(-0.5050)
    errors = [abs(f(f64(0.5 + h)) - (value + push(f64(h)))).item() for h in (0.1, 0.05)]
    assert errors[0] / errors[1] == pytest.approx(4.0)
    calls = []
    _, push = wl.linearize(lambda x, y: calls.append(1) or {"p": x * y}, f64([1.0, 2.0]), f64(3.0))
    np.testing.assert_array_equal(push(f64([1.0, 0.0]), f64(1.0))["p"], [4.0, 2.0])
    np.testing.assert_array_equal(push(f64([0.0, 1.0]), f64(0.0))["p"], [0.0, 3.0])
    assert calls == [1]
    with pytest.raises(TreeError, match="structure"):
        push(f64([1.0, 0.0]))


# --- transformations of transformations

# f(x) = sum_i sin(x_i) x_i^2 and its derivatives, element by element
VALUE = lambda x: np.sin(x) * x**2
FIRST = lambda x: np.cos(x) * x**2 + 2 * x * np.sin(x)
SECOND = lambda x: -np.sin(x) * x**2 + 4 * x * np.cos(x) + 2 * np.sin(x)
THIRD = lambda x: -np.cos(x) * x**2 - 6 * x * np.sin(x) + 6 * np.cos(x)

element = lambda x: wl.sin(x) * x**2
total = lambda x: element(x).sum()


def push(f: Callable[..., Any]) -> Callable[..., Any]:
    """The derivative along the direction of all ones."""
    return lambda x: wl.jvp(f, (x,), (wl.ones_like(x),))[1]


def pull(f: Callable[..., Any]) -> Callable[..., Any]:
    """The adjoint of all ones."""

    def pulled(x: wl.Tensor) -> wl.Tensor:
        value, back = wl.vjp(f, x)
        return back(wl.ones_like(value))[0]

    return pulled


def linear(f: Callable[..., Any]) -> Callable[..., Any]:
    return lambda x: wl.linearize(f, x)[1](wl.ones_like(x))


STEPS: dict[str, Callable[..., Any]] = {"push": push, "pull": pull, "linear": linear}
BY_ORDER = {0: VALUE, 1: FIRST, 2: SECOND, 3: THIRD}


@pytest.mark.book("6-61", "6-84", "6-86", name="wl.grad")
@pytest.mark.parametrize("third", [*STEPS, "vmap", "jit", ""])
@pytest.mark.parametrize("second", [*STEPS, "vmap", "jit", "checkpoint"])
@pytest.mark.parametrize("first", [*STEPS, "vmap", "checkpoint"])
def test_any_nesting(first: str, second: str, third: str) -> None:
    """On an elementwise function every derivative is elementwise, in whatever order it is taken."""
    f: Callable[..., Any] = element
    order = 0
    for step in (first, second, third):
        if step in STEPS:
            f, order = STEPS[step](f), order + 1
        elif step == "vmap":
            f = wl.vmap(f)
        elif step:
            f = wl.jit(f) if step == "jit" else wl.checkpoint(f)
    x = f64(rng.normal(size=(2, 3, 4)))
    np.testing.assert_allclose(f(x), BY_ORDER[order](x.numpy()), rtol=1e-10, atol=1e-12)


def test_nested_gradients() -> None:
    x = f64(0.8)
    f: Callable[..., Any] = element
    for order in range(4):
        assert f(x).item() == pytest.approx(BY_ORDER[order](0.8), rel=1e-12)
        f = wl.grad(f)


def test_closures_over_outer_values() -> None:
    # d/dx of d/dy (x y^2) at y = 3 is 6
    assert wl.grad(lambda x: wl.grad(lambda y: x * y * y)(3.0))(2.0).item() == 6.0
    # the inner function does not depend on its own argument
    assert wl.grad(lambda x: wl.grad(lambda y: x * x)(3.0) + x)(2.0).item() == 1.0
    # mixed with forward mode and a batch
    f = lambda x: wl.vmap(lambda y: wl.jvp(lambda z: x * y * z**2, (f64(2.0),), (f64(1.0),))[1])(f64([1.0, 2.0])).sum()
    assert wl.grad(f)(f64(5.0)).item() == 12.0


def test_nested_derivatives_do_not_confuse_their_perturbations() -> None:
    inner = lambda x: wl.grad(lambda y: x + y)(f64(1.0))
    assert wl.grad(lambda x: x * inner(x))(f64(1.0)).item() == 1.0
    assert wl.jvp(lambda x: x * inner(x), (f64(1.0),), (f64(1.0),))[1].item() == 1.0
    inner = lambda x: wl.jvp(lambda y: x * y, (f64(2.0),), (f64(1.0),))[1]
    assert wl.grad(lambda x: x * inner(x))(f64(5.0)).item() == 10.0


def test_a_pullback_can_be_differentiated() -> None:
    x, v = f64([0.5, 1.0]), f64([1.0, 2.0])
    g = lambda x, v: wl.vjp(lambda x: wl.sin(x) * x, x)[1](v)[0].sum()
    want_x = (-np.sin(x.numpy()) * x.numpy() + 2 * np.cos(x.numpy())) * v.numpy()
    np.testing.assert_allclose(wl.grad(g)(x, v), want_x, rtol=1e-13)
    np.testing.assert_allclose(
        wl.grad(g, argnums=1)(x, v), np.cos(x.numpy()) * x.numpy() + np.sin(x.numpy()), rtol=1e-13
    )


def test_a_pullback_made_inside_and_used_outside_is_reported() -> None:
    kept: list[Any] = []

    def f(x: wl.Tensor) -> wl.Tensor:
        _, back = wl.vjp(lambda y: y * x, x)
        kept.append(back)
        return back(wl.ones_like(x))[0]

    assert wl.grad(f)(2.0).item() == 1.0
    with pytest.raises(TraceError, match="outside the JVP transformation"):
        kept[0](wl.tensor(1.0))[0] + 1


def test_exceptions_leave_no_trace_behind() -> None:
    def fails(x: wl.Tensor) -> wl.Tensor:
        raise RuntimeError("on purpose")

    for transform in (wl.grad, wl.jacobian, wl.vmap, wl.hessian):
        with pytest.raises(RuntimeError, match="on purpose"):
            transform(fails)(wl.ones(2))
    assert (wl.ones(1) + 1).item() == 2.0


@pytest.mark.book("S-07", name="wl.grad")
def test_python_inside_a_differentiated_function(capsys: pytest.CaptureFixture[str]) -> None:
    def f(x: wl.Tensor) -> wl.Tensor:
        print(x)
        for i in range(int(x)):
            x = x * (i + 1) if x > 0 else x
        return x

    assert wl.grad(f)(3.0).item() == 6.0
    assert "3." in capsys.readouterr().out


def test_tensors_of_the_imperative_style_are_constants_or_arguments() -> None:
    w = f64(3.0).requires_grad_()
    assert wl.grad(lambda x: x * w)(2.0).item() == 3.0
    assert wl.grad(lambda w: w**2)(w).item() == 6.0
    assert w.grad is None
