"""Chapter 6 of the book from section 6.4 on: products with Jacobians, implementation, kinks, exercises."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import wonderland as wl
from tests.transforms.counting import operations, watching
from wonderland import nn
from wonderland.errors import GradientError, TraceError

rng = np.random.default_rng(0)


def f64(x: Any) -> wl.Tensor:
    return wl.asarray(np.asarray(x, np.float64))


def normal(*shape: int) -> wl.Tensor:
    return f64(rng.normal(size=shape))


# --- 6.4.1 vector-Jacobian products


@pytest.mark.book("6-43", "6-48", "A3-31", "B6-14", "B6-15", name="wl.vjp")
def test_rows_of_the_jacobian_are_vjps_of_basis_vectors() -> None:
    f = lambda x: wl.stack([x[0] * x[1], wl.sin(x[2]), x.sum(), x[0] ** 2])
    x, v = normal(3), normal(4)
    J = wl.jacobian(f)(x)
    _, pull = wl.vjp(f, x)
    rows = np.stack([pull(e)[0].numpy() for e in wl.eye(4, dtype=wl.float64)])
    np.testing.assert_allclose(rows, J, rtol=1e-14)
    np.testing.assert_allclose(pull(v)[0], v.numpy() @ J.numpy(), rtol=1e-13)
    np.testing.assert_allclose(pull(v)[0], J.numpy().T @ v.numpy(), rtol=1e-13)  # outputs are rows


@pytest.mark.book("6-47", "B6-14", name="wl.jvp")
def test_jvp_and_vjp_are_transposes() -> None:
    f = lambda x: wl.softmax(x) * x[0]
    x, u, v = normal(5), normal(5), normal(5)
    pushed, (pulled,) = wl.jvp(f, (x,), (u,))[1], wl.vjp(f, x)[1](v)
    assert (v @ pushed).item() == pytest.approx((pulled @ u).item(), rel=1e-13)


@pytest.mark.book("6-49", "6-50", "6-51", "2.57", "2.58", "B6-16", "B6-17", "B2-11", name="wl.vjp")
def test_linear_projection() -> None:
    W, x, v = f64([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]), f64([1.0, -1.0, 2.0]), f64([10.0, 1.0])
    f = lambda x, W: W @ x
    _, pull = wl.vjp(f, x, W)
    x_bar, W_bar = pull(v)
    np.testing.assert_array_equal(x_bar, W.numpy().T @ v.numpy())  # not W v, which does not even fit
    np.testing.assert_array_equal(W_bar, np.outer(v.numpy(), x.numpy()))
    square = f64([[0.0, 1.0], [0.0, 0.0]])  # tells W from its transpose
    np.testing.assert_array_equal(wl.vjp(lambda x: square @ x, f64([1.0, 1.0]))[1](f64([1.0, 0.0]))[0], [0.0, 1.0])
    J = wl.jacobian(f, argnums=1)(x, W)
    assert J.shape == (2, 2, 3)
    np.testing.assert_array_equal(J, np.einsum("ik,j->ikj", np.eye(2), x.numpy()))
    np.testing.assert_array_equal(J.reshape(2, 6), np.kron(np.eye(2), x.numpy()))
    np.testing.assert_array_equal(wl.einsum("i,ikj->kj", v, J), W_bar)
    np.testing.assert_array_equal(wl.jacobian(f)(x, W), W)
    # the recipe: the gradient of <v, f>
    np.testing.assert_array_equal(wl.grad(lambda W: (v * f(x, W)).sum())(W), W_bar)


@pytest.mark.book("6-52", name="wl.vjp")
@pytest.mark.parametrize("phi", [wl.relu, wl.sigmoid, wl.tanh, wl.softplus, wl.exp], ids=lambda f: f.__name__)
def test_elementwise_vjp(phi: Callable[..., Any]) -> None:
    x, v = normal(6), normal(6)
    J = wl.jacobian(phi)(x)
    slopes = wl.vmap(wl.grad(phi))(x)
    np.testing.assert_allclose(J, np.diag(slopes.numpy()), rtol=1e-14)
    sizes: list[int] = []
    with watching(lambda primitive, outs: sizes.extend(o.size for o in outs)):
        (got,) = wl.vjp(phi, x)[1](v)
    np.testing.assert_allclose(got, v.numpy() * slopes.numpy(), rtol=1e-14)
    assert max(sizes) == 6  # no matrix


# --- 6.4.2 implementation


@pytest.mark.book("6-55", "6-56", "6-57", "6-58", name="wl.grad, wl.vjp, wl.jvp")
def test_three_higher_order_functions() -> None:
    f = lambda x: (x**2).sum()
    x = wl.asarray(np.random.default_rng(1).normal(size=10))
    grad_f = wl.grad(f)
    assert grad_f(x).shape == (10,)
    np.testing.assert_allclose(grad_f(x), 2 * x.numpy(), rtol=1e-15)
    np.testing.assert_allclose(grad_f(x.numpy()), 2 * x.numpy(), rtol=1e-15)  # plain arrays, too
    value, pull = wl.vjp(f, x)
    assert value.shape == ()
    np.testing.assert_allclose(pull(f64(3.0))[0], 6 * x.numpy(), rtol=1e-15)
    value, slope = wl.jvp(f, (x,), (wl.ones_like(x),))
    assert slope.item() == pytest.approx(2 * float(x.numpy().sum()))
    with pytest.raises(GradientError, match="only a scalar has a gradient"):
        wl.grad(lambda x: x**2)(x)


@pytest.mark.book("6-61", "6-86", name="wl.hessian")
def test_hessian_numbers() -> None:
    f = lambda x: (x**2).sum()
    x, v = normal(4), normal(4)
    np.testing.assert_array_equal(wl.hessian(f)(x), 2 * np.eye(4))
    np.testing.assert_allclose(wl.hvp(f, x, v), 2 * v.numpy(), rtol=1e-15)
    third = wl.grad(wl.grad(wl.grad(lambda x: x**3)))
    assert third(f64(2.0)).item() == pytest.approx(6.0)
    g = lambda x: wl.logsumexp(wl.sin(x) * x[0])
    H = wl.hessian(g)(x)
    np.testing.assert_allclose(H, H.mT, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(wl.hvp(g, x, v), H @ v, rtol=1e-12)


@pytest.mark.book("6-59", name="wl.jit")
def test_tracing_gives_the_same_with_fewer_operations() -> None:
    def f(x: wl.Tensor) -> wl.Tensor:
        unused = wl.exp(x) * 3  # noqa: F841
        return (wl.sin(x) * wl.cos(x) + wl.sin(x) * wl.cos(x)).sum()

    x = normal(5)
    np.testing.assert_allclose(wl.jit(wl.grad(f))(x), wl.grad(f)(x), rtol=1e-14)
    with operations() as eager:
        f(x)
    compiled = wl.count(wl.jit(f), x).operations
    assert eager["exp"] == 1
    assert compiled["exp"] == 0
    assert (eager["sin"], compiled["sin"]) == (2, 1)
    assert (eager["cos"], compiled["cos"]) == (2, 1)


# --- 6.4.3 vanishing and exploding gradients


def repeated(phi: Callable[..., Any], times: int) -> Callable[..., Any]:
    def f(s: wl.Tensor) -> wl.Tensor:
        for _ in range(times):
            s = phi(s)
        return s

    return f


centred = lambda s: wl.sigmoid(s) - 0.5  # keeps s = 0, where the slope is 1/4


@pytest.mark.book("6-65", "A3-25", name="wl.grad")
def test_vanishing_gradient() -> None:
    slope = lambda n: wl.grad(repeated(centred, n))(wl.tensor(0.0)).item()
    assert slope(10) == pytest.approx(9.536743e-07, rel=1e-6)
    assert slope(74) > 0.0
    assert slope(75) == 0.0


@pytest.mark.book("6-66", "B6-19", name="wl.grad")
def test_exploding_gradient() -> None:
    doubled = lambda s: 2 * s
    with np.errstate(over="ignore"):
        slope = lambda n: wl.grad(repeated(doubled, n))(wl.tensor(0.0)).item()
        assert np.isfinite(slope(127))
        assert slope(128) == np.inf
    halved = lambda s: 0.5 * s  # it is the derivative that counts, not the value
    assert wl.grad(repeated(halved, 100))(wl.tensor(1e30)).item() == pytest.approx(2.0**-100)


@pytest.mark.book("6-67", name="wl.float16")
def test_half_precision_underflows_sooner() -> None:
    slope = lambda n: wl.grad(repeated(centred, n))(wl.tensor(0.0, dtype=wl.float16))
    assert slope(12).item() > 0.0
    assert slope(13).item() == 0.0
    assert slope(13).dtype == wl.float16


@pytest.mark.book("6-68", name="wl.float32")
def test_linear_layers_are_not_linear_in_floating_point() -> None:
    x = wl.tensor(1e-40)
    assert ((x * 1e-10) * 1e10).item() == 0.0
    assert (x * (1e-10 * 1e10)).item() > 0.0


@pytest.mark.book("6-69", "A3-24", name="wl.sigmoid")
def test_sigmoid() -> None:
    s = f64(np.linspace(-20, 20, 4001))
    sigma, slope = wl.sigmoid(s).numpy(), wl.vmap(wl.grad(wl.sigmoid))(s).numpy()
    np.testing.assert_allclose(slope, sigma * (1 - sigma), rtol=1e-15)
    assert slope.max() == 0.25
    assert wl.grad(wl.sigmoid)(0.0).item() == 0.25
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert wl.sigmoid(wl.tensor(-1000.0)).item() == 0.0
        assert wl.sigmoid(wl.tensor(1000.0)).item() == 1.0
        assert wl.grad(wl.sigmoid)(-1000.0).item() == 0.0
    kept = wl.saved(lambda x: wl.sigmoid(x).sum(), wl.ones(100))
    assert kept.bytes <= 400  # the factor made from the output, and nothing else


@pytest.mark.book("6-70", "B6-20", name="wl.relu")
def test_relu_passes_or_stops_adjoints() -> None:
    s, v = normal(1000), normal(1000)
    (adjoint,) = wl.vjp(wl.relu, s)[1](v)
    np.testing.assert_array_equal(adjoint, np.where(s.numpy() > 0, v.numpy(), 0.0))
    assert wl.norm(adjoint).item() <= wl.norm(v).item()
    assert np.mean(adjoint.numpy() == 0) == np.mean(s.numpy() < 0)
    assert 0.4 < np.mean(adjoint.numpy() == 0) < 0.6


@pytest.mark.book("6-72", name="wl.relu")
def test_relu_from_its_output_and_no_writing_into_saved_values() -> None:
    s, v = normal(50), normal(50)
    out = wl.relu(s)
    from_output = np.where(out.numpy() > 0, v.numpy(), 0.0)
    pull_back = wl.vjp(wl.relu, s)[1]
    np.testing.assert_array_equal(pull_back(v)[0], from_output)
    pull_back = wl.vjp(wl.relu, s)[1]
    s[:] = -1.0  # another value for s; what was saved of the old one stays
    np.testing.assert_array_equal(pull_back(v)[0], from_output)
    with pytest.raises(TraceError, match="tensors are immutable"):
        wl.grad(lambda s: s.__setitem__(0, 1.0))(s)
    with pytest.raises(ValueError, match="read-only"):
        s.numpy()[0] = 1.0
    kept = wl.saved(lambda x: wl.relu(x).sum(), wl.ones(1000))
    assert kept.bytes <= 1010  # a mask of one byte per element, not the input


# --- 6.4.4 kinks


@pytest.mark.book("6-73", "B6-21", "C-12", name="wl.relu")
def test_zero_padding_hits_the_kink_exactly() -> None:
    X = wl.concat([normal(2, 3), wl.zeros((2, 3), dtype=wl.float64)])
    W, b = normal(3, 4), wl.zeros(4, dtype=wl.float64)
    g = wl.grad(lambda X, W, b: wl.relu(X @ W + b).sum(), argnums=(0, 1, 2))(X, W, b)
    assert all(np.isfinite(part.numpy()).all() for part in g)
    np.testing.assert_array_equal(g[0].numpy()[2:], 0.0)
    assert wl.grad(wl.relu)(0.0).item() == 0.0


@pytest.mark.book("6-77", "6-74", name="wl.grad")
def test_subgradient_descent() -> None:
    w = f64(-5.0)
    for t in range(1, 3001):
        w = w - wl.grad(lambda w: wl.abs(w - 3))(w) * (2.0 / t)
    assert w.item() == pytest.approx(3.0, abs=2e-3)


@pytest.mark.book("6-79", "6-80", name="wl.relu")
def test_the_same_function_written_three_ways() -> None:
    relu2 = lambda s: wl.relu(-s) + s
    relu3 = lambda s: 0.5 * (wl.relu(s) + relu2(s))
    grid = f64(np.linspace(-2, 2, 81))
    for f in (relu2, relu3):
        np.testing.assert_allclose(f(grid), wl.relu(grid), atol=1e-15)
    assert [wl.grad(f)(0.0).item() for f in (wl.relu, relu2, relu3)] == [0.0, 1.0, 0.5]
    identity = lambda s: wl.relu(s) - wl.relu(-s)
    np.testing.assert_array_equal(identity(grid), grid)
    assert wl.grad(identity)(0.0).item() == 0.0  # the true derivative is 1: not even a subgradient
    assert not wl.is_subgradient(identity, 0.0, 0.0, grid)


# --- exercises


@pytest.mark.book("6-82", "6-83", name="wl.custom_jvp, wl.custom_vjp")
def test_a_trainable_activation_as_primitive_and_as_module() -> None:
    @wl.custom_jvp
    def prelu(x: wl.Tensor, alpha: wl.Tensor) -> wl.Tensor:
        return wl.where(x > 0, x, alpha * x)

    @prelu.defjvp
    def _(primals: Any, tangents: Any) -> Any:
        (x, alpha), (t, u) = primals, tangents
        return prelu(x, alpha), wl.where(x > 0, t, alpha * t + u * x)

    @wl.custom_vjp
    def swish(x: wl.Tensor, beta: wl.Tensor) -> wl.Tensor:
        return x * wl.sigmoid(beta * x)

    def forward(x: wl.Tensor, beta: wl.Tensor) -> Any:
        s = wl.sigmoid(beta * x)
        return x * s, (x, s, beta)

    def backward(kept: Any, v: wl.Tensor) -> Any:
        x, s, beta = kept
        slope = s * (1 - s)
        return v * (s + x * beta * slope), (v * x**2 * slope).sum()

    swish.defvjp(forward, backward)

    class PReLU(nn.Module):
        def __init__(self, alpha: float) -> None:
            super().__init__()
            self.alpha = nn.Parameter(f64(alpha))

        def forward(self, x: wl.Tensor) -> wl.Tensor:
            return wl.where(x > 0, x, self.alpha * x)

    class Swish(nn.Module):
        def __init__(self, beta: float) -> None:
            super().__init__()
            self.beta = nn.Parameter(f64(beta))

        def forward(self, x: wl.Tensor) -> wl.Tensor:
            return x * wl.sigmoid(self.beta * x)

    x = normal(20)
    for primitive, module, name, value in (
        (prelu, PReLU(0.25), "alpha", 0.25),
        (swish, Swish(1.5), "beta", 1.5),
    ):
        wl.check_grads(primitive, (x, f64(value)), modes=("reverse",))
        np.testing.assert_allclose(primitive(x, f64(value)), module(x), rtol=1e-15)
        loss = lambda x, p, f=primitive: (f(x, p) ** 2).sum()
        by_hand = wl.grad(loss, argnums=(0, 1))(x, f64(value))
        composed = wl.grad(lambda x, m: (m(x) ** 2).sum(), argnums=(0, 1))(x, module)
        np.testing.assert_allclose(by_hand[0], composed[0], rtol=1e-13)
        np.testing.assert_allclose(by_hand[1], composed[1][name], rtol=1e-13)
    wl.check_grads(prelu, (x, f64(0.25)), order=2)


@pytest.mark.book("6-85", name="wl.custom_jvp")
def test_a_stable_derivative_for_an_unstable_formula() -> None:
    naive = lambda x: wl.log(1 + wl.exp(x))
    with np.errstate(all="ignore"):
        assert np.isnan(wl.grad(naive)(wl.tensor(100.0)).item())

    @wl.custom_jvp
    def log1pexp(x: wl.Tensor) -> wl.Tensor:
        return naive(x)

    log1pexp.defjvp(lambda p, t: (log1pexp(*p), t[0] * (1 - 1 / (1 + wl.exp(p[0])))))

    @wl.custom_vjp
    def again(x: wl.Tensor) -> wl.Tensor:
        return naive(x)

    again.defvjp(lambda x: (naive(x), x), lambda x, v: (v * (1 - 1 / (1 + wl.exp(x))),))
    with np.errstate(all="ignore"):
        for f in (log1pexp, again):
            assert wl.grad(f)(wl.tensor(100.0)).item() == 1.0
            assert wl.grad(f)(f64(0.5)).item() == pytest.approx(1 / (1 + np.exp(-0.5)))
    assert wl.grad(wl.softplus)(100.0).item() == 1.0
