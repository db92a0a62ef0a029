"""The lecture notes and slides on backpropagation, and where the sources contradict each other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import wonderland as wl
from wonderland import nn

rng = np.random.default_rng(0)


def f64(x: Any) -> wl.Tensor:
    return wl.asarray(np.asarray(x, np.float64))


def normal(*shape: int) -> wl.Tensor:
    return f64(rng.normal(size=shape))


def repeated(phi: Callable[..., Any], times: int) -> Callable[..., Any]:
    def f(s: wl.Tensor) -> wl.Tensor:
        for _ in range(times):
            s = phi(s)
        return s

    return f


@pytest.mark.book("A3-11", "A3-14", name="wl.derivative")
def test_ordinary_derivatives_and_the_chain_rule() -> None:
    assert wl.derivative(lambda v: wl.cos(v**2))(f64(1.0)).item() == pytest.approx(-1.682942, abs=5e-7)
    f, g, h = wl.sin, wl.exp, lambda x: x**3
    x = 0.3
    composed = wl.derivative(lambda x: f(g(h(x))))(f64(x)).item()
    assert composed == pytest.approx(np.cos(np.exp(x**3)) * np.exp(x**3) * 3 * x**2, rel=1e-14)


@pytest.mark.book("A3-12", "A3-13", name="wl.grad")
def test_partial_derivatives_gradient_and_jacobian() -> None:
    f = lambda x: x[0] ** 2 + 5 * x[0] * x[1]
    x = f64([1.0, 2.0])
    value, g = wl.value_and_grad(f)(x)
    assert value.item() == 11.0
    np.testing.assert_array_equal(g, [12.0, 5.0])
    assert g.shape == (2,)
    assert wl.jacobian(lambda x: f(x).reshape(1))(x).shape == (1, 2)


@pytest.mark.book("A3-15", name="wl.derivative")
def test_product_rule() -> None:
    u, v, w = wl.sin, wl.exp, lambda x: x**2
    x, d = f64(0.7), wl.derivative
    pair = d(lambda x: u(x) * v(x))(x)
    assert pair.item() == pytest.approx((d(u)(x) * v(x) + u(x) * d(v)(x)).item(), rel=1e-14)
    three = d(lambda x: u(x) * v(x) * w(x))(x)
    parts = d(u)(x) * v(x) * w(x) + u(x) * d(v)(x) * w(x) + u(x) * v(x) * d(w)(x)
    assert three.item() == pytest.approx(parts.item(), rel=1e-14)


@pytest.mark.book("A3-18", name="wl.matmul")
def test_evaluation_is_deterministic_and_tensor_valued() -> None:
    f = lambda X, W: wl.softmax(wl.tanh(X @ W) @ W.mT)
    X, W = normal(4, 3), normal(3, 5)
    np.testing.assert_array_equal(f(X, W), f(X, W))
    assert (X @ W).ndim == 2
    g = wl.grad(lambda X: (f(X, W) ** 2).sum())
    np.testing.assert_array_equal(g(X), g(X))


@pytest.mark.book("A3-22", "6-30", name="wl.grad")
@pytest.mark.parametrize("shape", [(), (1,), (3,), (1, 3), (2, 1), (2, 3), (4, 2, 3), (4, 1, 1)])
def test_a_gradient_has_the_shape_of_its_value_through_broadcasting(shape: tuple[int, ...]) -> None:
    w, X = normal(*shape), normal(4, 2, 3)
    g = wl.grad(lambda w: (X * w + w).sum())(w)
    assert g.shape == shape
    np.testing.assert_allclose(g, wl.numerical_grad(lambda w: (X * w + w).sum(), w), rtol=1e-7, atol=1e-8)


@pytest.mark.book("A3-25", "A3-26", name="wl.grad")
def test_chains_multiply_local_gradients() -> None:
    z = [0.8]
    for _ in range(3):
        z.append(1 / (1 + np.exp(-z[-1])))
    local = [s * (1 - s) for s in z[1:]]  # f_i'(z_{i-1}), with the subscripts put right
    assert wl.grad(repeated(wl.sigmoid, 3))(f64(0.8)).item() == pytest.approx(np.prod(local), rel=1e-14)


@pytest.mark.book("A3-27", "A3-28", name="wl.grad")
def test_linear_unit() -> None:
    gradients = wl.grad(lambda x, w, b: w * x + b, argnums=(0, 1, 2))(f64(3.0), f64(2.0), f64(1.0))
    assert [g.item() for g in gradients] == [2.0, 3.0, 1.0]  # delta_x = w, delta_w = x


@pytest.mark.book("A3-29", name="wl.unstack")
def test_multiple_outputs() -> None:
    def f(x: wl.Tensor) -> wl.Tensor:
        first, second = wl.unstack(wl.stack([x**2, 3 * x]))
        return first + second

    assert wl.grad(f)(f64(5.0)).item() == 2 * 5.0 + 3


@pytest.mark.book("A3-21", name="wl.grad")
def test_the_sign_of_a_gradient_says_where_to_go() -> None:
    y = lambda z: 0.8 * z[0] - 0.6 * z[1]
    z = normal(2)
    np.testing.assert_allclose(wl.grad(y)(z), [0.8, -0.6])
    h = 1e-3
    assert (y(z + f64([h, 0])) - y(z)).item() == pytest.approx(0.8 * h)
    assert (y(z + f64([0, h])) - y(z)).item() == pytest.approx(-0.6 * h)


ROWS: dict[str, tuple[Callable[..., Any], tuple[Any, ...], Callable[..., Any]]] = {
    "add copies": (lambda a, b: a + b, (normal(2, 3), normal(2, 3)), lambda v, a, b: (v, v)),
    "subtract": (lambda a, b: a - b, (normal(2, 3), normal(2, 3)), lambda v, a, b: (v, -v)),
    "multiply swaps": (lambda a, b: a * b, (normal(2, 3), normal(2, 3)), lambda v, a, b: (v * b, v * a)),
    "matmul": (lambda a, b: a @ b, (normal(2, 3), normal(3, 4)), lambda v, a, b: (v @ b.T, a.T @ v)),
    "sum broadcasts": (wl.sum, (normal(2, 3),), lambda v, a: (np.full((2, 3), v),)),
    "broadcast sums": (lambda a: wl.broadcast_to(a, (4, 3)), (normal(3),), lambda v, a: (v.sum(axis=0),)),
    "concat splits": (
        lambda a, b: wl.concat([a, b]),
        (normal(2), normal(3)),
        lambda v, a, b: (v[:2], v[2:]),
    ),
    "slice scatters": (lambda a: a[1:3], (normal(4),), lambda v, a: (np.r_[0, v, 0],)),
    "max routes": (wl.max, (f64([1.0, 5.0, 2.0]),), lambda v, a: (np.array([0, v.item(), 0]),)),
    "exp": (wl.exp, (normal(3),), lambda v, a: (v * np.exp(a),)),
    "log": (wl.log, (f64([0.5, 2.0]),), lambda v, a: (v / a,)),
    "sigmoid": (wl.sigmoid, (normal(3),), lambda v, a: (v * np.exp(-a) / (1 + np.exp(-a)) ** 2,)),
    "tanh": (wl.tanh, (normal(3),), lambda v, a: (v * (1 - np.tanh(a) ** 2),)),
    "relu": (wl.relu, (normal(5),), lambda v, a: (v * (a > 0),)),
    "softmax and cross-entropy": (
        lambda a: -wl.log_softmax(a)[1],
        (normal(4),),
        lambda v, a: (v * (np.exp(a) / np.exp(a).sum() - np.eye(4)[1]),),
    ),
}


@pytest.mark.book("A3-34", "A3-23", "A3-31", name="wl.vjp")
@pytest.mark.parametrize("name", ROWS)
def test_table_of_backward_operations(name: str) -> None:
    f, args, backward = ROWS[name]
    value, pull = wl.vjp(f, *args)
    v = normal(*value.shape)
    want = backward(v.numpy(), *[a.numpy() for a in args])
    for got, expected in zip(pull(v), want, strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-13, atol=1e-15)
    wl.check_grads(f, args)


@pytest.mark.book("S-02", "S-04", name="wl.grad")
def test_backward_pass_of_a_network_by_hand() -> None:
    a0, target = normal(3), f64(0.4)
    X, mu = [normal(4, 3), normal(1, 4)], [normal(4), normal(1)]
    s, slope = np.tanh, lambda u: 1 - np.tanh(u) ** 2

    def loss(X: Any, mu: Any) -> wl.Tensor:
        a = a0
        for M, m in zip(X, mu, strict=True):
            a = wl.tanh(M @ a + m)
        return ((a - target) ** 2).sum()

    got_X, got_mu = wl.grad(loss, argnums=(0, 1))(X, mu)
    a, u = [a0.numpy()], []
    for M, m in zip(X, mu, strict=True):
        u.append(M.numpy() @ a[-1] + m.numpy())
        a.append(s(u[-1]))
    a_bar = 2 * (a[-1] - target.numpy())
    for i in (1, 0):
        u_bar = a_bar * slope(u[i])
        np.testing.assert_allclose(got_X[i], np.outer(u_bar, a[i]), rtol=1e-13)
        np.testing.assert_allclose(got_mu[i], u_bar, rtol=1e-13)
        a_bar = X[i].numpy().T @ u_bar
    # the naive formulas for one hidden layer and a linear output
    X1, X2 = normal(4, 3), normal(4)
    g1, g2 = wl.grad(lambda X1, X2: (target - X2 @ wl.tanh(X1 @ a0)) ** 2, argnums=(0, 1))(X1, X2)
    hidden = X1.numpy() @ a0.numpy()
    e = target.numpy() - X2.numpy() @ s(hidden)
    np.testing.assert_allclose(g2, -2 * e * s(hidden), rtol=1e-13)
    np.testing.assert_allclose(g1, -2 * e * np.outer(X2.numpy() * slope(hidden), a0.numpy()), rtol=1e-12)


# --- where the sources contradict each other


@pytest.mark.book("C-04", name="wl.is_simplex")
def test_simplex_with_and_without_zeros() -> None:
    assert wl.is_simplex(wl.tensor([0.0, 0.25, 0.75]))
    assert not wl.is_simplex(wl.tensor([0.0, 0.25, 0.75]), strict=True)
    assert wl.is_simplex(wl.tensor([0.1, 0.2, 0.7]), strict=True)
    assert not wl.is_simplex(wl.tensor([-0.1, 0.4, 0.7]))


@pytest.mark.book("C-01", "C-03", name="wl.nn.Linear")
def test_weights_are_in_by_out_and_the_bias_is_added() -> None:
    layer = nn.Linear(3, 2)
    parameters = dict(layer.named_parameters())
    W, b = parameters["weight"].numpy(), parameters["bias"].numpy()
    assert W.shape == (3, 2)
    x = rng.normal(size=(5, 3)).astype(np.float32)
    np.testing.assert_allclose(layer(wl.asarray(x)), x @ W + b, rtol=1e-6, atol=1e-7)


@pytest.mark.book("C-02", name="wl.round")
def test_a_tie_at_one_half_goes_to_class_zero() -> None:
    """The one decision rule: class 1 above one half; rounding, halves to even, says the same."""
    probabilities = wl.tensor([0.4, 0.5, 0.6])
    assert (probabilities > 0.5).tolist() == [False, False, True]
    assert wl.round(probabilities).tolist() == [0.0, 0.0, 1.0]
