"""Chapter 6 of the book, automatic differentiation, with its numbers; and the notes on backpropagation.

The two modes are written out as the book states them, with explicit Jacobians, and compared with `wl.grad`.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import wonderland as wl
from tests.agreement import same_array
from tests.transforms.counting import operations
from wonderland import nn
from wonderland.errors import GradientError

rng = np.random.default_rng(0)


def f64(x: Any) -> wl.Tensor:
    return wl.asarray(np.asarray(x, np.float64))


def normal(*shape: int) -> wl.Tensor:
    return f64(rng.normal(size=shape))


# --- 6.1 programs, primitives, Jacobians


def affine(X: wl.Tensor, W: wl.Tensor, b: wl.Tensor) -> wl.Tensor:
    return X @ W + b


@pytest.mark.book("6-03", "6-04", "B6-01", name="wl.jacobian")
def test_input_and_weight_jacobians() -> None:
    c, p, out = 3, 4, 2
    f = lambda x, w: wl.tanh(wl.stack([(x * w[:c]).sum(), (x**2).sum() * w[3]]))
    x, w = normal(c), normal(p)
    for argnum, size in ((0, c), (1, p)):
        J = wl.jacobian(f, argnums=argnum)(x, w)
        assert J.shape == (out, size)
        columns = []
        for e in wl.eye(size, dtype=wl.float64):
            t = [wl.zeros_like(x), wl.zeros_like(w)]
            t[argnum] = e
            columns.append(wl.numerical_jvp(f, (x, w), tuple(t)).numpy())
        np.testing.assert_allclose(J, np.stack(columns, axis=1), rtol=1e-8, atol=1e-10)


@pytest.mark.book("6-02", name="wl.custom_vjp")
def test_a_whole_layer_can_be_one_primitive() -> None:
    composed = lambda X, W, b: wl.relu(X @ W + b)

    @wl.custom_vjp
    def fused(X: wl.Tensor, W: wl.Tensor, b: wl.Tensor) -> wl.Tensor:
        return composed(X, W, b)

    def forward(X: wl.Tensor, W: wl.Tensor, b: wl.Tensor) -> Any:
        out = composed(X, W, b)
        return out, (X, W, out > 0)

    def backward(kept: Any, v: wl.Tensor) -> Any:
        X, W, positive = kept
        v = wl.where(positive, v, 0.0)
        return v @ W.mT, X.mT @ v, v.sum(axis=0)

    fused.defvjp(forward, backward)
    args = normal(4, 3), normal(3, 2), normal(2)
    np.testing.assert_array_equal(fused(*args), composed(*args))
    gradients = [wl.grad(lambda *a, f=f: (f(*a) ** 2).sum(), argnums=(0, 1, 2))(*args) for f in (fused, composed)]
    for a, b in zip(*gradients, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-14)


@pytest.mark.book("6-06", name="wl.vjp")
def test_vjps_of_a_batched_layer() -> None:
    X, W, b, V = normal(4, 3), normal(3, 2), normal(2), normal(4, 2)
    value, pull = wl.vjp(affine, X, W, b)
    assert value.shape == (4, 2)
    X_bar, W_bar, b_bar = pull(V)
    np.testing.assert_allclose(X_bar, V.numpy() @ W.numpy().T, rtol=1e-14)
    np.testing.assert_allclose(W_bar, X.numpy().T @ V.numpy(), rtol=1e-14)
    np.testing.assert_allclose(b_bar, V.numpy().sum(axis=0), rtol=1e-14)


@pytest.mark.book("6-07", "6-10", name="wl.jacobian")
def test_jacobians_of_rank_four() -> None:
    n, c, out = 4, 3, 2
    X, W, b = normal(n, c), normal(c, out), normal(out)
    J_X, J_W = (wl.jacobian(affine, argnums=i)(X, W, b) for i in (0, 1))
    assert J_X.shape == (4, 2, 4, 3)
    assert J_W.shape == (4, 2, 3, 2)
    for i in range(n):
        for k in range(n):
            block = J_X.numpy()[i, :, k, :]
            np.testing.assert_array_equal(block, W.numpy().T if i == k else np.zeros((out, c)))
    square = wl.jacobian(wl.sin)(wl.ones((n, c)))
    assert square.size == n**2 * c**2


@pytest.mark.book("6-08", "6-09", name="wl.tree.ravel")
def test_flattened_parameters_include_the_bias() -> None:
    n, c, out = 4, 3, 2
    X, p = normal(n, c), {"W": normal(c, out), "b": normal(out)}
    w, back = wl.tree.ravel(p)
    assert w.shape == (c * out + out,) == (8,)
    for key in p:
        np.testing.assert_array_equal(back(w)[key], p[key])
    flat = wl.jacobian(lambda w: affine(X, **back(w)).reshape(-1))(w)
    assert flat.shape == (n * out, 8)
    full = wl.jacobian(lambda p: affine(X, **p))(p)
    wide = [full[key].reshape(n * out, -1).numpy() for key in sorted(p)]
    np.testing.assert_array_equal(flat, np.concatenate(wide, axis=1))
    x, back = wl.tree.ravel(X)  # type: ignore[arg-type]
    np.testing.assert_array_equal(x, X.numpy().reshape(-1))  # row by row
    np.testing.assert_array_equal(back(x), X)


@pytest.mark.book("6-05", "6-58", name="wl.stop_gradient")
def test_an_operation_without_a_derivative_and_the_way_around_it() -> None:
    np.testing.assert_array_equal(wl.grad(lambda x: wl.round(x).sum())(f64([0.3, 1.7])), [0.0, 0.0])  # documented
    with pytest.raises(GradientError, match="which has no gradient"):
        wl.grad(wl.argmax)(f64([1.0, 2.0]))
    with pytest.raises(GradientError, match="nextafter: has no derivative"):
        wl.grad(lambda x: wl.nextafter(x, 2.0))(f64(1.0))
    straight_through = lambda x: x + wl.stop_gradient(wl.round(x) - x)
    np.testing.assert_array_equal(straight_through(f64([0.3, 1.7])), [0.0, 2.0])
    np.testing.assert_array_equal(wl.grad(lambda x: straight_through(x).sum())(f64([0.3, 1.7])), [1.0, 1.0])

    @wl.custom_vjp
    def rounded(x: wl.Tensor) -> wl.Tensor:
        return wl.round(x)

    rounded.defvjp(lambda x: (wl.round(x), None), lambda kept, v: (v,))
    np.testing.assert_array_equal(wl.grad(lambda x: rounded(x).sum())(f64([0.3, 1.7])), [1.0, 1.0])


@pytest.mark.book("6-16", name="wl.grad")
def test_sum_and_mean_over_the_mini_batch() -> None:
    X, w = normal(8, 3), normal(3)
    total, mean = (wl.grad(lambda w, r=r: r((X @ w) ** 2))(w) for r in (wl.sum, wl.mean))
    np.testing.assert_allclose(total, 8 * mean, rtol=1e-14)


# A program is a list of primitives h_i = f_i(h_{i-1}, w_i) on vectors, and ends with a sum.

SIZES = [3, 5, 4, 2]
Primitive = Callable[[wl.Tensor, wl.Tensor], wl.Tensor]


def layer(c: int, out: int) -> Primitive:
    def f(h: wl.Tensor, w: wl.Tensor) -> wl.Tensor:
        W, b = w[: c * out].reshape(out, c), w[c * out :]
        return wl.tanh(W @ h + b)

    return f


PROGRAM = [layer(c, out) for c, out in pairwise(SIZES)]
X0 = normal(SIZES[0])
WEIGHTS = [normal(c * out + out) for c, out in pairwise(SIZES)]


def run(x: wl.Tensor, weights: list[wl.Tensor]) -> wl.Tensor:
    h = x
    for f, w in zip(PROGRAM, weights, strict=True):
        h = f(h, w)
    return h.sum()


@pytest.mark.book("6-17", "6-18", "6-30", "B6-03", name="wl.grad")
def test_all_weight_gradients_at_once() -> None:
    calls = []
    counted = lambda weights: calls.append(1) or run(X0, weights)
    gradients = wl.grad(counted)(WEIGHTS)
    assert calls == [1]
    assert [g.shape for g in gradients] == [w.shape for w in WEIGHTS]
    for i, g in enumerate(gradients):
        alone = lambda w, i=i: run(X0, [*WEIGHTS[:i], w, *WEIGHTS[i + 1 :]])
        np.testing.assert_allclose(g, wl.numerical_grad(alone, WEIGHTS[i]), rtol=1e-7, atol=1e-9)
        np.testing.assert_allclose(g, wl.jacfwd(alone)(WEIGHTS[i]), rtol=0, atol=1e-12)


@pytest.mark.book("6-19", "A3-16", "A3-30", name="wl.grad")
def test_directed_acyclic_graphs() -> None:
    assert wl.grad(lambda x: x * x + x)(3.0).item() == 7.0
    assert wl.grad(lambda t: t * t**2)(f64(2.0)).item() == 3 * 2.0**2  # f = xy, x = t, y = t^2
    assert wl.grad(lambda x: (x**2) * (x**2))(f64(1.5)).item() == pytest.approx(4 * 1.5**3)


@pytest.mark.book("6-20", name="wl.grad")
def test_shared_weights_add_their_gradients() -> None:
    f = lambda x, w: wl.tanh(w @ x)
    x, W = normal(3), normal(3, 3)
    tied = wl.grad(lambda w: f(f(x, w), w).sum())(W)
    untied = wl.grad(lambda a, b: f(f(x, a), b).sum(), argnums=(0, 1))(W, W)
    np.testing.assert_allclose(tied, untied[0] + untied[1], rtol=1e-14)


@pytest.mark.book("6-25", "B6-05", "6-59", name="wl.jit")
def test_common_subexpressions_are_computed_once() -> None:
    a, b, x = 2.0, 3.0, 1.0

    def reused(x: wl.Tensor) -> wl.Tensor:
        h = wl.sin(x)
        return a * h + b * x * h

    written_twice = lambda x: a * wl.sin(x) + b * x * wl.sin(x)
    with operations() as counted:
        slope = wl.grad(reused)(f64(x))
    assert slope.item() == pytest.approx(5.225924483764388, rel=1e-15)
    assert (counted["sin"], counted["cos"]) == (1, 1)
    for f in (reused, written_twice):
        cost = wl.count(wl.jit(wl.grad(f)), f64(x))
        assert (cost.operations["sin"], cost.operations["cos"]) == (1, 1)
        assert wl.jit(wl.grad(f))(f64(x)).item() == pytest.approx(5.225924483764388, rel=1e-15)
    value_too = wl.count(wl.jit(wl.value_and_grad(written_twice)), f64(x))
    assert (value_too.operations["sin"], value_too.operations["cos"]) == (1, 1)


# --- 6.2 forward mode


@pytest.mark.book("6-26", "2.53", "B2-12", name="wl.jacobian")
def test_jacobian_of_a_composition_is_the_product() -> None:
    f, g = (lambda x: wl.sin(x)[:2] * x[2]), (lambda h: wl.stack([h[0] * h[1], h[1] ** 2, wl.exp(h[0])]))
    x = normal(3)
    J = wl.jacobian(lambda x: g(f(x)))(x)
    np.testing.assert_allclose(J, wl.jacobian(g)(f(x)) @ wl.jacobian(f)(x), rtol=1e-13)


@pytest.mark.book("6-27", "6-28", "6-29", "B6-06", "B6-07", name="wl.jacobian")
def test_forward_mode_with_tangent_matrices() -> None:
    h, tangents, updates = X0, [], 0
    for i, (f, w) in enumerate(zip(PROGRAM, WEIGHTS, strict=True)):
        input_jacobian, weight_jacobian = (wl.jacobian(f, argnums=k)(h, w) for k in (0, 1))
        tangents = [input_jacobian @ t for t in tangents]
        updates += len(tangents)
        tangents.append(weight_jacobian)
        h = f(h, w)
        # after step i every tangent is the Jacobian of h_i with respect to w_j
        for j, tangent in enumerate(tangents):
            assert tangent.shape == (SIZES[i + 1], WEIGHTS[j].size)

            def partial(w: wl.Tensor, i: int = i, j: int = j) -> wl.Tensor:
                state = X0
                for k in range(i + 1):
                    state = PROGRAM[k](state, w if k == j else WEIGHTS[k])
                return state

            np.testing.assert_allclose(tangent, wl.jacrev(partial)(WEIGHTS[j]), rtol=1e-12, atol=1e-14)
    steps = len(PROGRAM)
    assert updates == steps * (steps - 1) // 2
    ones = wl.ones((1, SIZES[-1]), dtype=wl.float64)
    for row, want in zip((ones @ t for t in tangents), wl.grad(lambda w: run(X0, w))(WEIGHTS), strict=True):
        assert row.shape == (1, want.size)  # a row; `wl.grad` gives the shape of the weights
        np.testing.assert_allclose(row[0], want, rtol=1e-10, atol=1e-14)


# --- 6.3 reverse mode


@pytest.mark.book("6-33", "6-34", "B6-09", name="wl.count")
def test_the_order_of_the_products_changes_the_cost_and_not_the_result() -> None:
    sizes = [30, 20, 25, 10]
    jacobians = [normal(out, c) for c, out in pairwise(sizes)]
    ones = wl.ones((1, sizes[-1]), dtype=wl.float64)

    def left_to_right(ones: wl.Tensor, *jacobians: wl.Tensor) -> wl.Tensor:
        adjoint = ones
        for J in reversed(jacobians):
            adjoint = adjoint @ J
        return adjoint

    def right_to_left(ones: wl.Tensor, *jacobians: wl.Tensor) -> wl.Tensor:
        tangent = jacobians[0]
        for J in jacobians[1:]:
            tangent = J @ tangent
        return ones @ tangent

    a, b = left_to_right(ones, *jacobians), right_to_left(ones, *jacobians)
    np.testing.assert_allclose(a, b, rtol=1e-11)
    costs = [wl.count(f, ones, *jacobians).multiply_adds for f in (left_to_right, right_to_left)]
    assert costs[0] == 10 * 25 + 25 * 20 + 20 * 30
    assert costs[1] == 25 * 20 * 30 + 10 * 25 * 30 + 10 * 30


@pytest.mark.book("6-34", "6-35", "6-36", "B6-09", "B6-10", name="wl.vjp")
def test_reverse_mode_step_by_step() -> None:
    hidden = [X0]
    for f, w in zip(PROGRAM, WEIGHTS, strict=True):
        hidden.append(f(hidden[-1], w))
    adjoint = by_vjp = wl.ones(SIZES[-1], dtype=wl.float64)
    gradients: list[Any] = [None] * len(PROGRAM)
    visited = []
    for i in reversed(range(len(PROGRAM))):
        visited.append(i)
        # the adjoint of h_i is the gradient of the rest of the program
        rest = lambda h, i=i: _rest(h, i)
        np.testing.assert_allclose(adjoint, wl.numerical_grad(rest, hidden[i + 1]), rtol=1e-7, atol=1e-9)
        input_jacobian, weight_jacobian = (wl.jacobian(PROGRAM[i], argnums=k)(hidden[i], WEIGHTS[i]) for k in (0, 1))
        assert (adjoint.shape, weight_jacobian.shape) == ((SIZES[i + 1],), (SIZES[i + 1], WEIGHTS[i].size))
        gradients[i] = adjoint @ weight_jacobian  # before the adjoint moves on
        adjoint = adjoint @ input_jacobian
        assert adjoint.shape == (SIZES[i],)
        # E.6.7 and E.6.8: the same by one VJP per argument
        by_vjp, weight_adjoint = wl.vjp(PROGRAM[i], hidden[i], WEIGHTS[i])[1](by_vjp)
        np.testing.assert_allclose(weight_adjoint, gradients[i], rtol=1e-12)
        np.testing.assert_allclose(by_vjp, adjoint, rtol=1e-12)
    assert visited == [2, 1, 0]
    for got, want in zip(gradients, wl.grad(lambda w: run(X0, w))(WEIGHTS), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-11, atol=1e-15)


def _rest(h: wl.Tensor, i: int) -> wl.Tensor:
    """The program after primitive number i."""
    for f, w in zip(PROGRAM[i + 1 :], WEIGHTS[i + 1 :], strict=True):
        h = f(h, w)
    return h.sum()


@pytest.mark.book("6-36", "A3-10", name="wl.Tensor.retain_grad")
def test_adjoints_of_hidden_values_can_be_read() -> None:
    h = X0.copy() + 0
    h.requires_grad_()
    kept = [h]
    for f, w in zip(PROGRAM, WEIGHTS, strict=True):
        h = f(h, w)
        h.retain_grad()
        kept.append(h)
    h.sum().backward()
    for i, value in enumerate(kept[1:]):
        rest = lambda h, i=i: _rest(h, i)
        np.testing.assert_allclose(value.grad, wl.numerical_grad(rest, value.detach()), rtol=1e-7, atol=1e-9)  # type: ignore[arg-type]


BLOCKS = [normal(3, 3) for _ in range(4)]


def block(i: int) -> Callable[[wl.Tensor], wl.Tensor]:
    return lambda h: wl.tanh(wl.sin(h) @ BLOCKS[i])


def tanhs(f: Callable[..., Any]) -> tuple[int, Any]:
    """How many blocks are evaluated for a gradient of f, and the gradient."""
    with operations() as counted:
        gradient = wl.grad(lambda x: f(x).sum())(normal(2, 3) * 0 + 0.5)
    return counted["tanh"], gradient.numpy()


@pytest.mark.book("6-40", "6-42", "B6-13", name="wl.checkpoint")
def test_checkpointing_trades_evaluations_for_memory() -> None:
    def all_kept(h: wl.Tensor) -> wl.Tensor:
        for i in range(4):
            h = block(i)(h)
        return h

    def third_again(h: wl.Tensor) -> wl.Tensor:
        """Keeps the outputs of blocks 1, 2 and 4 (Figure F.6.1)."""
        for i in range(4):
            h = (wl.checkpoint(block(i)) if i == 2 else block(i))(h)
        return h

    plain, want = tanhs(all_kept)
    one, got = tanhs(third_again)
    assert plain == 4
    assert one / plain == 1.25
    np.testing.assert_array_equal(got, want)
    everything, got = tanhs(wl.checkpoint(all_kept))
    assert everything / plain <= 2.0
    assert everything > one
    np.testing.assert_array_equal(got, want)
    pairs, got = tanhs(wl.checkpoint_sequential([block(i) for i in range(4)], segments=2))
    assert pairs / plain <= 2.0
    np.testing.assert_array_equal(got, want)
    x = normal(2, 3)
    bytes_ = [wl.saved(lambda x, f=f: f(x).sum(), x).bytes for f in (all_kept, third_again, wl.checkpoint(all_kept))]
    assert bytes_[0] > bytes_[1] > bytes_[2]


@pytest.mark.book("6-41", "B6-13", name="wl.checkpoint")
def test_checkpointing_repeats_random_numbers_and_not_updates() -> None:
    class Noisy(nn.Module):
        """Dropout, and a running mean that counts its updates."""

        def __init__(self) -> None:
            super().__init__()
            self.W = nn.Parameter(wl.ones((3, 3)))
            self.mean = nn.Buffer(wl.zeros(3))
            self.updates = nn.Buffer(wl.tensor(0))

        def forward(self, x: wl.Tensor) -> wl.Tensor:
            self.mean.assign(0.9 * self.mean + 0.1 * wl.stop_gradient(x.mean(axis=0)))
            self.updates.assign(self.updates + 1)
            keep = wl.random.bernoulli(x.shape, 0.5, key=wl.random.key(3)).astype(x.dtype)
            return wl.tanh(x @ self.W) * keep * 2

    x = wl.asarray(rng.normal(size=(5, 3)).astype(np.float32))
    results = []
    for transform in (lambda f: f, wl.checkpoint):
        model = Noisy()
        loss = transform(lambda model, x: model(x).sum())
        gradient = wl.grad(loss)(model, x)
        results.append((gradient["W"].numpy(), model.mean.numpy(), model.updates.item()))
    same_array(results[0][0], results[1][0])
    same_array(results[0][1], results[1][1])
    assert results[0][2] == results[1][2] == 1
    assert np.any(results[0][1] != 0)
