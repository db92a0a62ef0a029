"""`jit`: the same results as without it, traced as rarely as possible and as often as needed."""

from __future__ import annotations

import dataclasses
import functools
import re
from collections import OrderedDict, namedtuple
from typing import Any

import numpy as np
import pytest

import wonderland as wl
from tests.agreement import same
from tests.transforms.running_mean import Mean
from wonderland import errors, nn

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
