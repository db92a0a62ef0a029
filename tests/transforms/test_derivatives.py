"""Jacobians, Hessians and products with them."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import wonderland as wl
from tests.transforms.counting import watching
from wonderland.errors import GradientError, InputError, SizeError
from wonderland.transforms import derivatives
from wonderland.transforms.derivatives import LargeJacobianWarning

MODES = (None, "forward", "reverse")
rng = np.random.default_rng(0)


def f64(x: Any) -> wl.Tensor:
    return wl.asarray(np.asarray(x, np.float64))


def numerical_jacobian(f: Any, x: wl.Tensor) -> np.ndarray[Any, Any]:
    """Column by column, by central differences."""
    columns = [wl.numerical_jvp(f, (x,), (f64(e).reshape(x.shape),)).numpy() for e in np.eye(x.size)]
    return np.stack(columns, axis=-1).reshape(columns[0].shape + x.shape)


FUNCTIONS = {
    "more outputs": (lambda x: wl.stack([wl.sin(x), x**2, wl.exp(x)]), rng.normal(size=(2,))),
    "fewer outputs": (lambda x: wl.stack([x.sum(), (x**2).prod()]), rng.normal(size=(2, 3))),
    "square": (lambda x: x @ x.mT, rng.normal(size=(2, 2))),
    "scalar": (lambda x: wl.logsumexp(x), rng.normal(size=(4,))),
    "of a number": (lambda x: wl.stack([x, x**3]), rng.normal(size=())),
    "number of a number": (lambda x: wl.tanh(x), rng.normal(size=())),
    "constant": (lambda x: wl.ones(2, dtype=wl.float64), rng.normal(size=(3,))),
    "partly constant": (lambda x: wl.concat([x[:1], wl.ones(2, dtype=wl.float64)]), rng.normal(size=(3,))),
    "identity": (lambda x: x, rng.normal(size=(2, 2))),
}


@pytest.mark.book("2.52", "2.57", "6-03", "6-48", "6-86", "B2-10", "B6-15", "A3-32", "C-06", name="wl.jacobian")
@pytest.mark.parametrize("mode", MODES, ids=str)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_jacobian_is_outputs_by_inputs(name: str, mode: str | None) -> None:
    f, data = FUNCTIONS[name]
    x = f64(data)
    J = wl.jacobian(f, mode=mode)(x)
    assert J.shape == f(x).shape + x.shape
    assert J.dtype == wl.float64
    np.testing.assert_allclose(J, numerical_jacobian(f, x), rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("mode", MODES, ids=str)
def test_trees(mode: str | None) -> None:
    @dataclass
    class Params:
        W: Any
        b: Any

    f = lambda p, x: {"y": p.W @ x + p.b, "norm": (p.W**2).sum()}
    p, x = Params(f64(rng.normal(size=(2, 3))), f64([1.0, 2.0])), f64([1.0, -1.0, 2.0])
    J = wl.jacobian(f, mode=mode)(p, x)
    assert isinstance(J["y"], Params)
    assert J["y"].W.shape == (2, 2, 3)
    np.testing.assert_array_equal(J["y"].b, np.eye(2))
    np.testing.assert_allclose(J["norm"].W, 2 * p.W.numpy())
    np.testing.assert_array_equal(J["norm"].b, [0.0, 0.0])
    both = wl.jacobian(f, argnums=(1, 0), mode=mode)(p, x)
    np.testing.assert_allclose(both["y"][0], p.W)
    np.testing.assert_array_equal(both["y"][1].W, J["y"].W)
    np.testing.assert_array_equal(wl.jacobian(f, argnums=-1, mode=mode)(p, x)["y"], p.W)


@pytest.mark.parametrize("mode", MODES, ids=str)
def test_aux_and_keyword_arguments(mode: str | None) -> None:
    f = lambda x, scale=1.0: (scale * x**2, {"value": x.sum(), "note": "text"})
    J, aux = wl.jacobian(f, mode=mode, has_aux=True)(f64([1.0, 2.0]), scale=3.0)
    np.testing.assert_array_equal(J, np.diag([6.0, 12.0]))
    assert (aux["value"].item(), aux["note"]) == (3.0, "text")
    assert type(aux["value"]) is wl.Tensor


@pytest.mark.book("6-48", "B6-12", "B6-15", name="wl.jacobian")
@pytest.mark.parametrize("n, m, cheap", [(50, 1, "reverse"), (1, 50, "forward"), (3, 3, "forward")])
def test_the_cheaper_mode_is_taken(n: int, m: int, cheap: str) -> None:
    """A tangent per input, or an adjoint per output, passes through a hidden layer of 100 units."""
    W, V, x = wl.ones((100, n)), wl.ones((m, 100)), wl.ones(n)

    def largest(mode: str | None) -> int:
        sizes: list[int] = []
        with watching(lambda p, outs: sizes.append(outs[0].size if p.name in ("multiply", "matmul") else 0)):
            assert wl.jacobian(lambda x: V @ wl.tanh(W @ x), mode=mode)(x).shape == (m, n)
        return max(sizes)

    assert largest("forward") == 100 * n
    assert largest("reverse") == 100 * m
    assert largest(None) == largest(cheap) == 100 * min(m, n)


@pytest.mark.book("6-48", "6-55", name="wl.jacrev")
def test_the_function_runs_once() -> None:
    for mode in MODES:
        calls = []
        wl.jacobian(lambda x, calls=calls: calls.append(1) or x**2, mode=mode)(wl.ones(5))
        assert calls == [1]


@pytest.mark.parametrize("mode", MODES, ids=str)
@pytest.mark.parametrize("shape_in, shape_out", [((0,), (3,)), ((3,), (0,)), ((0,), (0,)), ((2, 0), ())])
def test_empty(mode: str | None, shape_in: Any, shape_out: Any) -> None:
    f = lambda x: x.sum() * wl.ones(shape_out)
    assert wl.jacobian(f, mode=mode)(wl.ones(shape_in)).shape == shape_out + shape_in


def test_dtype_is_that_of_the_output() -> None:
    f = lambda x: x.astype(wl.float64) ** 2
    for mode in MODES:
        assert wl.jacobian(f, mode=mode)(wl.ones(2)).dtype == wl.float64
        assert wl.jacobian(lambda x: x.astype(wl.float16), mode=mode)(wl.ones(2)).dtype == wl.float16


@pytest.mark.parametrize("mode", MODES, ids=str)
def test_holomorphic_functions(mode: str | None) -> None:
    z = wl.asarray(np.array([1 + 2j, -0.5j, 2.0]))
    J = wl.jacobian(lambda z: wl.exp(z) * z[0], mode=mode, holomorphic=True)(z)
    want = np.diag(np.exp(z.numpy()) * z.numpy()[0])
    want[:, 0] += np.exp(z.numpy())
    np.testing.assert_allclose(J, want, rtol=1e-13)


def test_complex_values_of_real_arguments() -> None:
    f = lambda x: wl.exp(wl.complex(wl.zeros_like(x), x))
    x = f64([0.5, 1.0])
    want = np.diag(1j * np.exp(1j * x.numpy()))
    np.testing.assert_allclose(wl.jacobian(f)(x), want, rtol=1e-14)
    np.testing.assert_allclose(wl.jacobian(lambda x: f(x)[0])(x), want[0], rtol=1e-14)
    with pytest.raises(GradientError, match="reverse mode needs real outputs"):
        wl.jacrev(f)(x)


@pytest.mark.parametrize(
    "call, error, message",
    [
        (lambda: wl.jacobian(wl.sin, mode="sideways"), InputError, "there is no mode 'sideways'"),
        (lambda: wl.jacobian(wl.sin)(wl.arange(3)), GradientError, "int64; derivatives need floating"),
        (lambda: wl.jacobian(wl.argmax)(wl.ones(3)), GradientError, "returned int64"),
        (lambda: wl.jacfwd(wl.argmax)(wl.ones(3)), GradientError, "returned int64"),
        (lambda: wl.jacobian(lambda x: "text")(wl.ones(3)), GradientError, "returned a str"),
        (lambda: wl.jacobian(wl.sin, argnums=1)(wl.ones(3)), GradientError, "received 1 positional"),
        (lambda: wl.jacobian(wl.sin)(wl.tensor(1j)), GradientError, "only a holomorphic function"),
        (lambda: wl.jacobian(wl.sin, holomorphic=True)(wl.ones(2)), GradientError, "an argument is real"),
        (lambda: wl.jacobian(wl.abs, holomorphic=True)(wl.tensor(1j)), GradientError, "returned float32"),
        (lambda: wl.jacfwd(wl.abs, holomorphic=True)(wl.tensor(1j)), GradientError, "returned float32"),
        (lambda: wl.jacobian(lambda x: x, has_aux=True)(1.0), GradientError, "returns a pair"),
        (lambda: wl.jacfwd(lambda x: x, has_aux=True)(1.0), GradientError, "returns a pair"),
        (lambda: wl.derivative(wl.sin)(wl.ones(2)), GradientError, "not one real number"),
        (lambda: wl.derivative(wl.sin)(1j), GradientError, "not one real number"),
    ],
)
def test_bad_calls_explain_themselves(call: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()


@pytest.mark.book("6-11", "6-10", "2.59", name="wl.jacobian")
def test_a_jacobian_that_cannot_fit_is_refused_and_a_large_one_warns(monkeypatch: pytest.MonkeyPatch) -> None:
    x = wl.ones(1 << 24)  # the Jacobian of an elementwise function would take 2^50 bytes
    for mode in MODES:
        with pytest.raises(SizeError, match=r"1,048,576\.0 GiB"):
            wl.jacobian(wl.sin, mode=mode)(x)
    monkeypatch.setattr(derivatives, "LARGE", 400)
    for mode in MODES:
        with pytest.warns(LargeJacobianWarning, match="10 outputs by 10 inputs") as caught:
            wl.jacobian(wl.sin, mode=mode)(wl.ones(10))
        assert caught[0].filename == __file__
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            wl.jacobian(wl.sin, mode=mode)(wl.ones(9))


# --- second order


@pytest.mark.book("6-61", "6-86", "2.67", name="wl.hessian")
def test_hessian() -> None:
    A = rng.normal(size=(4, 4))
    f = lambda x: x @ f64(A) @ x + wl.sin(x).sum()
    x = f64(rng.normal(size=4))
    want = A + A.T - np.diag(np.sin(x.numpy()))
    H = wl.hessian(f)(x)
    np.testing.assert_allclose(H, want, rtol=1e-13, atol=1e-13)
    np.testing.assert_allclose(H, H.mT, rtol=1e-13, atol=1e-13)
    for outer in (wl.jacfwd, wl.jacrev):
        for inner in (wl.jacfwd, wl.jacrev):
            np.testing.assert_allclose(outer(inner(f))(x), want, rtol=1e-13, atol=1e-13)


def test_hessian_of_trees_aux_and_vector_values() -> None:
    f = lambda p: (p["a"] ** 2 * p["b"]).sum()
    H = wl.hessian(f)({"a": f64([1.0, 2.0]), "b": f64([3.0, 4.0])})
    np.testing.assert_array_equal(H["a"]["a"], np.diag([6.0, 8.0]))
    np.testing.assert_array_equal(H["a"]["b"], np.diag([2.0, 4.0]))
    np.testing.assert_array_equal(H["b"]["b"], np.zeros((2, 2)))
    H, aux = wl.hessian(lambda x: ((x**3).sum(), "aux"), has_aux=True)(f64([1.0, 2.0]))
    np.testing.assert_array_equal(H, np.diag([6.0, 12.0]))
    assert aux == "aux"
    assert wl.hessian(lambda x: wl.stack([x.sum(), (x**2).sum(), x.prod()]))(wl.ones(2)).shape == (3, 2, 2)
    mixed = wl.hessian(lambda x, y: x * y**2, argnums=(0, 1))(f64(2.0), f64(3.0))
    assert [[h.item() for h in row] for row in mixed] == [[0.0, 6.0], [6.0, 4.0]]


@pytest.mark.book("6-61", "6-86", name="wl.hvp")
def test_hvp_is_the_product_with_the_hessian() -> None:
    f = lambda x: wl.logsumexp(x) * (x**2).sum()
    x, v = f64(rng.normal(size=5)), f64(rng.normal(size=5))
    np.testing.assert_allclose(wl.hvp(f, x, v), wl.hessian(f)(x) @ v, rtol=1e-12)
    two = wl.hvp(lambda x, y: (x * y**2).sum(), (x, v), (v, x))
    assert isinstance(two, tuple)
    np.testing.assert_allclose(two[0], 2 * v.numpy() * x.numpy(), rtol=1e-13)
    np.testing.assert_allclose(two[1], 2 * v.numpy() * v.numpy() + 2 * x.numpy() * x.numpy(), rtol=1e-13)
    tree = wl.hvp(lambda p: (p["x"] ** 3).sum(), {"x": x}, {"x": v})
    np.testing.assert_allclose(tree["x"], 6 * x.numpy() * v.numpy(), rtol=1e-13)


def test_hvp_does_not_form_the_hessian() -> None:
    """Its cost does not depend on the number of inputs, and nothing of size n x n appears."""
    n = 1 << 14
    x = wl.ones(n)
    sizes: list[int] = []
    with watching(lambda primitive, outs: sizes.extend(o.size for o in outs)):
        product = wl.hvp(lambda x: wl.sin(x).sum() * x[0], x, x)
    assert max(sizes) == n
    assert len(sizes) < 60
    assert product.shape == (n,)


def test_derivative() -> None:
    assert wl.derivative(lambda x: x**3)(2).item() == 12.0
    assert wl.derivative(lambda x, a, *, b: a * x + b)(2.0, 5.0, b=1.0).item() == 5.0
    curve = wl.derivative(lambda t: wl.stack([t, t**2]))
    np.testing.assert_array_equal(curve(3.0), [1.0, 6.0])
    np.testing.assert_allclose(wl.vmap(wl.derivative(wl.sin))(wl.arange(3.0)), np.cos([0, 1, 2]), rtol=1e-6)


@pytest.mark.book("2.29", name="wl.is_linear")
def test_is_linear() -> None:
    W = wl.tensor([[1.0, 2.0], [3.0, 4.0]])
    x = wl.zeros(2)
    assert wl.is_linear(lambda x: W @ x, x)
    assert wl.is_linear(lambda x, y: {"sum": x + y[::-1], "zero": 0 * x}, x, x)
    assert wl.is_linear(lambda p: p["a"].cumsum() - p["b"], {"a": wl.zeros(3), "b": wl.zeros(3)})
    assert not wl.is_linear(lambda x: W @ x + 1, x)
    assert not wl.is_linear(lambda x: x**2, x)
    assert not wl.is_linear(lambda x: wl.relu(x), wl.zeros(20))
    assert not wl.is_linear(lambda x: x[x > 0], wl.zeros(20))  # not even of one shape
    assert not wl.is_linear(lambda x: x * wl.nan if False else x / 0 * 0, x)


# --- composition


def test_jacobians_compose_with_everything() -> None:
    f = lambda x: wl.stack([wl.sin(x[0]) * x[1], x[1] ** 3])
    x = f64([0.4, 1.5])
    batch = f64(rng.normal(size=(3, 2)))
    for mode in MODES:
        J = wl.jacobian(f, mode=mode)
        np.testing.assert_allclose(wl.vmap(J)(batch), np.stack([J(b) for b in batch]), rtol=1e-13)
        want = [np.cos(0.4) * 1.5 + np.sin(0.4), 3 * 1.5**2]
        got = wl.jvp(lambda x, J=J: J(x).sum(), (x,), (wl.zeros_like(x),))
        assert got[0].item() == pytest.approx(want[0] + want[1])
        gradient = wl.grad(lambda x, J=J: J(x).sum())(x)
        np.testing.assert_allclose(gradient, [np.cos(0.4) - np.sin(0.4) * 1.5, np.cos(0.4) + 6 * 1.5], rtol=1e-13)


def test_jacobian_under_jit() -> None:
    f = lambda x: wl.stack([wl.sin(x[0]) * x[1], x[1] ** 3, x.sum()])
    x = f64([0.4, 1.5])
    for transform in (*(lambda f, mode=mode: wl.jacobian(f, mode=mode) for mode in MODES), wl.hessian):
        np.testing.assert_allclose(wl.jit(transform(f))(x), transform(f)(x), rtol=1e-13)
        np.testing.assert_allclose(transform(wl.jit(f))(x), transform(f)(x), rtol=1e-13)
    v = f64([1.0, -2.0])
    g = lambda x: f(x).sum()
    np.testing.assert_allclose(wl.jit(lambda x, v: wl.hvp(g, x, v))(x, v), wl.hvp(g, x, v), rtol=1e-13)
