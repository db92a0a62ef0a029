"""Derivatives that users define: in both modes, nested, on trees, and with mistakes in them."""

from __future__ import annotations

import functools
import itertools
from typing import Any

import numpy as np
import pytest

import wonderland as wl
from tests.transforms.counting import operations
from wonderland import errors, nn
from wonderland.core.tangents import FEW

F64 = wl.float64


def number(x: float) -> wl.Tensor:
    return wl.tensor(x, dtype=F64)


def vector(*x: float) -> wl.Tensor:
    return wl.tensor(list(x), dtype=F64)


# --- functions whose derivative is known: sin by both kinds of rule, with a wrong value in place of a right one nowhere


@wl.custom_jvp
def sin_jvp(x: Any) -> Any:
    return wl.sin(x)


@sin_jvp.defjvp
def _(primals: Any, tangents: Any) -> Any:
    (x,), (t,) = primals, tangents
    return sin_jvp(x), t * cos_jvp(x)


@wl.custom_jvp
def cos_jvp(x: Any) -> Any:
    return wl.cos(x)


@cos_jvp.defjvp
def _(primals: Any, tangents: Any) -> Any:
    (x,), (t,) = primals, tangents
    return cos_jvp(x), -t * sin_jvp(x)


@wl.custom_vjp
def sin_vjp(x: Any) -> Any:
    return wl.sin(x)


@wl.custom_vjp
def cos_vjp(x: Any) -> Any:
    return wl.cos(x)


sin_vjp.defvjp(lambda x: (sin_vjp(x), x), lambda x, ct: (ct * cos_vjp(x),))
cos_vjp.defvjp(lambda x: (cos_vjp(x), x), lambda x, ct: (-ct * sin_vjp(x),))

SINES = [sin_jvp, sin_vjp]


@pytest.mark.parametrize("sine", SINES, ids=["jvp", "vjp"])
def test_both_modes_and_higher_orders(sine: Any) -> None:
    x = vector(0.3, -1.2, 2.0)
    wl.check_grads(sine, (x,), order=3)
    wl.check_grads(wl.jit(sine), (x,), order=2)
    one = number(1.0)
    assert wl.jvp(sine, (number(0.5),), (one,))[1].item() == pytest.approx(np.cos(0.5))
    f: Any = sine
    for expected in (np.cos(0.5), -np.sin(0.5), -np.cos(0.5), np.sin(0.5)):
        f = wl.grad(f)
        assert f(number(0.5)).item() == pytest.approx(expected)
        assert wl.jit(f)(number(0.5)).item() == pytest.approx(expected)
    mixed = wl.grad(lambda x: wl.jvp(sine, (x,), (one,))[1])
    assert mixed(number(0.5)).item() == pytest.approx(-np.sin(0.5))
    assert wl.jit(mixed)(number(0.5)).item() == pytest.approx(-np.sin(0.5))
    _, push = wl.linearize(sine, x)
    np.testing.assert_allclose(push(x), np.cos(x) * np.asarray(x))


@pytest.mark.parametrize("sine", SINES, ids=["jvp", "vjp"])
def test_inside_every_transformation(sine: Any) -> None:
    x = vector(0.3, -1.2, 2.0)
    cosine = np.cos(np.asarray(x))
    one_gradient = wl.grad(lambda x: sine(x).sum())
    programs = {
        "vmap of grad": wl.vmap(wl.grad(sine)),
        "grad of vmap": wl.grad(lambda x: wl.vmap(sine)(x).sum()),
        "vmap twice": wl.grad(lambda x: wl.vmap(wl.vmap(sine))(x[None]).sum()),
        "jit": wl.jit(one_gradient),
        "grad of jit": wl.grad(lambda x: wl.jit(sine)(x).sum()),
        "checkpoint": wl.grad(lambda x: wl.checkpoint(sine)(x).sum()),
        "map": wl.grad(lambda x: wl.map(sine, x).sum()),
        "jit of map": wl.jit(wl.grad(lambda x: wl.map(sine, x).sum())),
        "cond": wl.jit(wl.grad(lambda x: wl.cond(x[0] > 0, sine, lambda x: x, x).sum())),
        "vmap of jit": wl.vmap(wl.grad(wl.jit(sine))),
        "jvp of vmap": lambda x: wl.jvp(wl.vmap(sine), (x,), (wl.ones_like(x),))[1],
        "vmap of jvp": wl.vmap(lambda x: wl.jvp(sine, (x,), (wl.ones_like(x),))[1]),
        "jit of jvp": wl.jit(lambda x: wl.jvp(sine, (x,), (wl.ones_like(x),))[1]),
        "jvp of jit": lambda x: wl.jvp(wl.jit(sine), (x,), (wl.ones_like(x),))[1],
        "jit of vmap of jvp": wl.jit(wl.vmap(lambda x: wl.jvp(sine, (x,), (wl.ones_like(x),))[1])),
    }
    for name, f in programs.items():
        np.testing.assert_allclose(f(x), cosine, rtol=1e-12, err_msg=name)  # type: ignore[operator]


@pytest.mark.parametrize("sine", SINES, ids=["jvp", "vjp"])
def test_inside_loops(sine: Any) -> None:
    def f(s: Any) -> Any:
        def loss(a: Any, x: Any) -> Any:
            return wl.scan(lambda c, e: (s(c * a) + e, None), x[0], x)[0]

        return loss

    a, x = number(0.8), vector(0.1, 0.5, -0.3)
    expected = wl.grad(f(wl.sin), (0, 1))(a, x)
    for g in (wl.grad(f(sine), (0, 1)), wl.jit(wl.grad(f(sine), (0, 1))), wl.grad(wl.jit(f(sine)), (0, 1))):
        for found, right in zip(g(a, x), expected, strict=True):
            np.testing.assert_allclose(found, right, rtol=1e-12)
    wl.check_grads(wl.jit(f(sine)), (a, x), order=2)


@pytest.mark.parametrize("sine", SINES, ids=["jvp", "vjp"])
def test_the_imperative_style(sine: Any) -> None:
    x = vector(0.3, -1.2).requires_grad_()
    sine(x).sum().backward()
    assert x.grad is not None
    np.testing.assert_allclose(x.grad, np.cos(np.asarray(x)))


@pytest.mark.parametrize("sine", SINES, ids=["jvp", "vjp"])
def test_the_function_is_traced_and_not_called_again(sine: Any) -> None:
    calls = itertools.count()  # an object, so that the trace does not depend on its state

    @wl.custom_jvp
    def f(x: Any) -> Any:
        next(calls)
        return wl.sin(x)

    f.defjvp(lambda primals, tangents: (f(*primals), tangents[0]))
    compiled = wl.jit(f)
    for _ in range(3):
        compiled(1.0)
    assert next(calls) == 1
    with operations() as counted:
        wl.grad(lambda x: sine(x))(1.0)
    assert counted["sin"] == 1  # the rule gives the value; the function itself does not run besides


# --- the rows of the book


@pytest.mark.book("6-85", name="wl.custom_jvp")
def test_the_stable_derivative_of_log1pexp() -> None:
    def naive(x: Any) -> Any:
        return wl.log(1 + wl.exp(x))

    assert np.isnan(wl.grad(naive)(100.0).item())
    by_jvp = wl.custom_jvp(naive)
    by_jvp.defjvp(lambda p, t: (by_jvp(*p), t[0] * (1 - 1 / (1 + wl.exp(p[0])))))
    by_vjp = wl.custom_vjp(naive)
    by_vjp.defvjp(lambda x: (naive(x), x), lambda x, ct: (ct * (1 - 1 / (1 + wl.exp(x))),))
    for f in (by_jvp, by_vjp):
        assert wl.grad(f)(100.0).item() == 1.0
        assert wl.jit(wl.grad(f))(100.0).item() == 1.0
        assert wl.vmap(wl.grad(f))(wl.tensor([100.0, 0.0])).tolist() == [1.0, 0.5]
        assert wl.jvp(f, (wl.tensor(100.0),), (wl.tensor(1.0),))[1].item() == 1.0
        wl.check_grads(f, (vector(0.5, -2.0),), order=2)


@wl.custom_vjp
def prelu(x: Any, alpha: Any) -> Any:
    return wl.where(x >= 0, x, alpha * x)


prelu.defvjp(
    lambda x, alpha: (prelu(x, alpha), (x, alpha)),
    lambda res, ct: (
        wl.where(res[0] >= 0, ct, res[1] * ct),
        wl.where(res[0] >= 0, 0.0, ct * res[0]).sum(),
    ),
)


@wl.custom_jvp
def swish(x: Any, beta: Any) -> Any:
    return x * wl.sigmoid(beta * x)


@swish.defjvp
def _(primals: Any, tangents: Any) -> Any:
    (x, beta), (dx, dbeta) = primals, tangents
    s = wl.sigmoid(beta * x)
    slope = s * (1 - s)
    return x * s, dx * (s + beta * x * slope) + dbeta * x * x * slope


class PReLU(nn.Module):
    def __init__(self) -> None:
        self.parameter = nn.Parameter(wl.tensor(0.25))

    def forward(self, x: Any) -> Any:
        return wl.where(x >= 0, x, self.parameter * x)


class Swish(nn.Module):
    def __init__(self) -> None:
        self.parameter = nn.Parameter(wl.tensor(1.5))

    def forward(self, x: Any) -> Any:
        return x * wl.sigmoid(self.parameter * x)


@pytest.mark.book("6-82", "6-83", name=["wl.custom_jvp", "wl.custom_vjp"])
@pytest.mark.parametrize(("primitive", "module"), [(prelu, PReLU), (swish, Swish)])
def test_a_trainable_activation_as_a_primitive_equals_the_module(primitive: Any, module: Any) -> None:
    model = module()
    x = wl.asarray(np.random.default_rng(0).normal(size=(4, 3)).astype(np.float32))
    weights = wl.asarray(np.random.default_rng(1).normal(size=(4, 3)).astype(np.float32))
    value, (gradient, wrt_x) = wl.value_and_grad(lambda m, x: (m(x) * weights).sum(), (0, 1))(model, x)
    f = wl.value_and_grad(lambda x, p: (primitive(x, p) * weights).sum(), (0, 1))
    for run in (f, wl.jit(f)):
        own_value, (own_x, own_parameter) = run(x, model.parameter.value)
        np.testing.assert_allclose(own_value, value, rtol=1e-6)
        np.testing.assert_allclose(own_x, wrt_x, rtol=1e-5)
        np.testing.assert_allclose(own_parameter, gradient["parameter"], rtol=1e-5)
    wl.check_grads(primitive, (x.astype(F64), number(0.3)), order=1 if primitive is prelu else 2)
    # the parameter is shared by a batch: its adjoints are added up
    batched = wl.grad(lambda p: wl.vmap(primitive, in_axes=(0, None))(x, p).sum())(number(0.3).astype(wl.float32))
    np.testing.assert_allclose(batched, wl.grad(lambda p: primitive(x, p).sum())(wl.tensor(0.3)), rtol=1e-5)


@pytest.mark.book("6-05", name=["wl.custom_vjp", "wl.stop_gradient"])
def test_straight_through_estimators() -> None:
    x = vector(0.2, 0.7, -1.4)
    assert wl.grad(lambda x: wl.round(x).sum())(x).tolist() == [0.0, 0.0, 0.0]  # the documented derivative

    rounded = wl.custom_vjp(wl.round)
    rounded.defvjp(lambda x: (wl.round(x), None), lambda _, ct: (ct,))
    stopped = lambda x: x + wl.stop_gradient(wl.round(x) - x)
    w = vector(2.0, 3.0, 4.0)
    for f in (rounded, stopped):
        np.testing.assert_array_equal(f(x), np.round(np.asarray(x)))
        for g in (wl.grad(lambda x, f=f: (f(x) * w).sum()), wl.jit(wl.grad(lambda x, f=f: (f(x) * w).sum()))):
            np.testing.assert_array_equal(g(x), w)
        assert wl.jvp(f, (x,), (w,))[1].tolist() == w.tolist()


def test_stop_gradient_on_trees_and_in_every_mode() -> None:
    def f(x: Any) -> Any:
        held = wl.stop_gradient({"x": x, "n": 3, "s": "text"})
        assert (held["n"], held["s"]) == (3, "text")
        return x * held["x"]

    assert wl.grad(f)(3.0).item() == 3.0
    assert wl.jit(wl.grad(f))(3.0).item() == 3.0
    assert wl.vmap(wl.grad(f))(wl.tensor([1.0, 2.0])).tolist() == [1.0, 2.0]
    x = wl.tensor(3.0).requires_grad_()
    assert not wl.stop_gradient(x).requires_grad


# --- arguments


def test_arguments_without_derivative() -> None:
    def power(n: int, x: Any, name: str) -> Any:
        assert name == "name"
        return x**n

    by_jvp = wl.custom_jvp(power, nondiff_argnums=(0, 2))

    @by_jvp.defjvp
    def _(n: int, name: str, primals: Any, tangents: Any) -> Any:
        assert (n, name) == (3, "name")
        (x,), (t,) = primals, tangents
        return by_jvp(n, x, name), 10 * n * t

    by_vjp = wl.custom_vjp(power, nondiff_argnums=(0, -1))
    by_vjp.defvjp(
        lambda n, x, name: (by_vjp(n, x, name), {"n": n}),
        lambda n, name, residuals, ct: (10 * residuals["n"] * ct,),
    )
    for f in (by_jvp, by_vjp):
        assert f(3, wl.tensor(2.0), "name").item() == 8.0
        g = wl.grad(f, 1)
        assert g(3, wl.tensor(2.0), "name").item() == 30.0
        assert wl.jit(g, static_argnums=0)(3, wl.tensor(2.0), "name").item() == 30.0
        assert wl.vmap(lambda x, f=f: f(3, x, "name"))(wl.tensor([1.0, 2.0])).tolist() == [1.0, 8.0]
        assert wl.vmap(wl.grad(lambda x, f=f: f(3, x, "name")))(wl.tensor([1.0, 2.0])).tolist() == [30.0, 30.0]


def test_keyword_arguments_and_defaults() -> None:
    @wl.custom_jvp
    def f(x: Any, scale: Any = 2.0) -> Any:
        return x * scale

    f.defjvp(lambda p, t: (f(*p), 100 * t[0]))
    assert f(3.0, scale=4.0).item() == 12.0
    assert f(scale=4.0, x=3.0).item() == 12.0
    assert wl.grad(lambda x: f(x, scale=4.0))(3.0).item() == 100.0
    assert wl.grad(lambda x: f(x))(3.0).item() == 100.0


@pytest.mark.parametrize("kind", ["jvp", "vjp"])
def test_trees_in_and_out(kind: str) -> None:
    def f(params: Any, x: Any) -> Any:
        return {"y": params["w"] * x + params["b"], "n": [wl.tensor(3), x * 2]}

    if kind == "jvp":
        custom: Any = wl.custom_jvp(f)

        @custom.defjvp
        def _(primals: Any, tangents: Any) -> Any:
            (params, x), (dparams, dx) = primals, tangents
            dy = dparams["w"] * x + params["w"] * dx + dparams["b"]
            return f(params, x), {"y": dy, "n": [wl.tensor(0), dx * 2]}

    else:
        custom = wl.custom_vjp(f)

        def backward(residuals: Any, ct: Any) -> Any:
            params, x, extra = residuals["params"], residuals["x"], residuals["extra"]
            assert extra == ("text", 7, None)
            wrt_x = (params["w"] * ct["y"]).sum() + 2 * ct["n"][1]
            return {"w": ct["y"] * x, "b": ct["y"]}, wrt_x

        custom.defvjp(lambda p, x: (f(p, x), {"params": p, "x": x, "extra": ("text", 7, None)}), backward)

    def loss(f: Any) -> Any:
        def run(params: Any, x: Any) -> Any:
            out = f(params, x)
            return wl.sin(out["y"]).sum() + out["n"][1] ** 2 + out["n"][0].astype(F64)

        return run

    params, x = {"w": vector(1.0, -2.0), "b": vector(0.5, 0.0)}, number(0.7)
    expected = wl.grad(loss(f), (0, 1))(params, x)
    for g in (wl.grad(loss(custom), (0, 1)), wl.jit(wl.grad(loss(custom), (0, 1)))):
        found = g(params, x)
        assert wl.tree.structure(found) == wl.tree.structure(expected)
        for a, b in zip(wl.tree.leaves(found), wl.tree.leaves(expected), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-12)
    wl.check_grads(loss(custom), (params, x), order=2)
    xs = vector(0.1, 0.2, 0.3)
    batch = wl.vmap(wl.grad(loss(custom)), in_axes=(None, 0))(params, xs)
    for i in range(3):
        np.testing.assert_allclose(batch["w"][i], wl.grad(loss(f))(params, xs[i])["w"], rtol=1e-12)


def test_integer_arguments_have_no_derivative() -> None:
    @wl.custom_vjp
    def pick(x: Any, i: Any) -> Any:
        return x[i], i + 1

    pick.defvjp(lambda x, i: (pick(x, i), (x, i)), lambda r, ct: (wl.zeros_like(r[0]).at[r[1]].set(2 * ct[0]), None))
    f = lambda x, i: pick(x, i)[0]
    x = vector(1.0, 2.0, 3.0)
    assert wl.grad(f)(x, wl.tensor(1)).tolist() == [0.0, 2.0, 0.0]
    assert wl.jit(wl.grad(f))(x, wl.tensor(1)).tolist() == [0.0, 2.0, 0.0]
    assert wl.jvp(lambda x: f(x, wl.tensor(1)), (x,), (x,))[1].item() == 4.0


def test_adjoints_that_are_none_are_zero() -> None:
    @wl.custom_vjp
    def f(x: Any, y: Any) -> Any:
        return x * y

    f.defvjp(lambda x, y: (x * y, y), lambda y, ct: (ct * y, None))
    assert [g.item() for g in wl.grad(f, (0, 1))(2.0, 3.0)] == [3.0, 0.0]
    assert wl.jvp(f, (wl.tensor(2.0), wl.tensor(3.0)), (wl.tensor(1.0), wl.tensor(1.0)))[1].item() == 3.0
    assert wl.vmap(wl.grad(f, (0, 1)))(wl.ones(2), wl.ones(2))[1].tolist() == [0.0, 0.0]


def test_tangents_that_do_not_depend_on_the_tangents_are_zero_in_reverse_mode() -> None:
    f = wl.custom_jvp(lambda x: x * 2)
    f.defjvp(lambda p, t: (f(*p), wl.zeros_like(p[0])))
    assert wl.grad(f)(3.0).item() == 0.0
    assert wl.grad(lambda x: f(x) + x)(3.0).item() == 1.0
    assert wl.grad(wl.jit(lambda x: f(x) + x))(3.0).item() == 1.0


def test_numbers_are_accepted_as_values_and_derivatives() -> None:
    f = wl.custom_vjp(lambda x: x * 0 + 1)
    f.defvjp(lambda x: (1.0, None), lambda _, ct: (2.5,))
    assert wl.grad(f)(3.0).item() == 2.5


def test_modules_as_arguments() -> None:
    @wl.custom_jvp
    def f(model: Any, x: Any) -> Any:
        return model(x).sum()

    @f.defjvp
    def _(primals: Any, tangents: Any) -> Any:
        model, x = primals
        dmodel, _ = tangents
        return f(model, x), 10 * dmodel.weight.sum()

    model = nn.Linear(2, 1)
    found = wl.grad(f)(model, wl.ones(2))
    assert found["weight"].tolist() == [[10.0], [10.0]]
    assert found["bias"].tolist() == [0.0]


def test_residuals_do_not_hold_arguments_that_nobody_needs() -> None:
    import weakref

    f = wl.custom_vjp(lambda x: x * 2)
    f.defvjp(lambda x: (x * 2, None), lambda _, ct: (ct * 2,))

    def loss(x: Any) -> Any:
        y = x + 1
        reference = weakref.ref(y.primal._data)
        result = f(y).sum()
        del y
        assert reference() is None
        return result

    assert (wl.grad(loss)(wl.ones(FEW + 1)) == 2.0).all()


# --- mistakes


def make(kind: str, rule: Any, backward: Any = None) -> Any:
    f = (wl.custom_jvp if kind == "jvp" else wl.custom_vjp)(lambda x, y: (x * y, x))
    if kind == "jvp":
        f.defjvp(rule)
    else:
        f.defvjp(rule, backward)
    return f


FORWARD = lambda x, y: ((x * y, x), (x, y))


@pytest.mark.parametrize(
    ("f", "error", "words"),
    [
        (make("jvp", lambda p, t: p[0]), errors.GradientError, ["pair"]),
        (make("jvp", lambda p, t: ((p[0], p[1]), t[0])), errors.TreeError, ["structure"]),
        (
            make("jvp", lambda p, t: ((p[0], p[1]), (t[0].sum(), t[1]))),
            errors.GradientError,
            ["float32[]", "float32[2]"],
        ),
        (make("jvp", lambda p, t: ((p[0], p[1]), (t[0].astype(F64), t[1]))), errors.GradientError, ["float64[2]"]),
        (make("vjp", lambda x, y: x * y, lambda r, ct: ct), errors.GradientError, ["pair"]),
        (make("vjp", FORWARD, lambda r, ct: (ct[0],)), errors.GradientError, ["1 adjoints", "2 arguments"]),
        (make("vjp", FORWARD, lambda r, ct: ct[0]), errors.GradientError, ["JVPTracer"]),
        (make("vjp", FORWARD, lambda r, ct: (ct, ct[0])), errors.TreeError, ["structure"]),
        (make("vjp", FORWARD, lambda r, ct: (ct[0].sum(), ct[1])), errors.GradientError, ["float32[]", "float32[2]"]),
    ],
)
def test_rules_that_return_the_wrong_thing(f: Any, error: Any, words: list[str]) -> None:
    def loss(x: Any, y: Any) -> Any:
        return f(x, y)[0].sum()

    for run in (wl.grad(loss), wl.jit(wl.grad(loss)), wl.grad(wl.jit(loss))):
        with pytest.raises(error) as caught:
            run(wl.ones(2), wl.ones(2))
        for word in words:
            if word != "JVPTracer":
                assert word in str(caught.value)


def test_functions_without_a_rule_and_bad_arguments() -> None:
    for decorate in (wl.custom_jvp, wl.custom_vjp):

        @decorate
        def f(x: Any) -> Any:
            return x

        with pytest.raises(errors.GradientError, match="f has no rule"):
            f(1.0)
    g = wl.custom_jvp(lambda x, s: x)
    g.defjvp(lambda p, t: (p[0], t[0]))
    with pytest.raises(errors.TreeError, match="nondiff_argnums"):
        g(1.0, "text")
    h = wl.custom_jvp(lambda x: x, nondiff_argnums=3)
    h.defjvp(lambda n, p, t: (p[0], t[0]))
    with pytest.raises(errors.GradientError, match="nondiff_argnums"):
        h(1.0)


def test_a_rule_that_is_not_linear_is_found_out_by_reverse_mode() -> None:
    f = wl.custom_jvp(lambda x: x)
    f.defjvp(lambda p, t: (p[0], wl.exp(t[0])))
    with pytest.raises(errors.GradientError, match="exp"):
        wl.grad(f)(1.0)


def test_traced_values_from_outside_are_refused() -> None:
    @wl.jit
    def run(x: Any, w: Any) -> Any:
        f = wl.custom_jvp(lambda x: x * w)
        f.defjvp(lambda p, t: (f(*p), t[0]))
        return f(x)

    with pytest.raises(errors.TraceError, match="arguments"):
        run(wl.ones(2), wl.ones(2))


def test_a_custom_function_may_read_state_but_not_change_it() -> None:
    scale = nn.Buffer(wl.tensor(2.0))
    f = wl.custom_jvp(lambda x: x * scale)
    f.defjvp(lambda p, t: (f(*p), t[0] * 10))
    compiled = wl.jit(f)
    assert compiled(3.0).item() == 6.0
    scale.assign(wl.tensor(5.0))
    assert compiled(3.0).item() == 15.0
    assert wl.grad(compiled)(3.0).item() == 10.0

    def bad(x: Any) -> Any:
        scale.assign(x)
        return x

    g = wl.custom_jvp(bad)
    g.defjvp(lambda p, t: (p[0], t[0]))
    with pytest.raises(errors.TraceError, match="changes state"):
        wl.jit(g)(3.0)
    assert scale.item() == 5.0


def test_partial_application_as_a_decorator() -> None:
    @functools.partial(wl.custom_vjp, nondiff_argnums=(1,))
    def scaled(x: Any, n: int) -> Any:
        """Doc."""
        return x * n

    scaled.defvjp(lambda x, n: (x * n, None), lambda n, _, ct: (ct * n * 7,))
    assert wl.grad(scaled)(1.0, 2).item() == 14.0
    assert scaled.__doc__ == "Doc."
    assert scaled.__name__ == "scaled"
