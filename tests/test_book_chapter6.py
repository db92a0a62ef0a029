"""Chapter 6 of the book, automatic differentiation, with its numbers; and the notes on backpropagation.

The two modes are written out as the book states them, with explicit Jacobians, and compared with `wl.grad`.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from itertools import pairwise
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
    gradients = [
        wl.grad(lambda *a, f=f: (f(*a) ** 2).sum(), argnums=(0, 1, 2))(*args) for f in (fused, composed)
    ]
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
    x, back = wl.tree.ravel(X)
    np.testing.assert_array_equal(x, X.numpy().reshape(-1))  # row by row
    np.testing.assert_array_equal(back(x), X)


@pytest.mark.book("6-05", "6-58", name="wl.stop_gradient")
def test_an_operation_without_a_derivative_and_the_way_around_it() -> None:
    np.testing.assert_array_equal(
        wl.grad(lambda x: wl.round(x).sum())(f64([0.3, 1.7])), [0.0, 0.0]
    )  # documented
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
        assert (cost.operations["sin"], cost.operations["cos"]) == (0, 1) or cost.operations["sin"] == 1
        assert cost.operations["cos"] == 1
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
    adjoint = wl.ones(SIZES[-1], dtype=wl.float64)
    gradients: list[Any] = [None] * len(PROGRAM)
    visited = []
    for i in reversed(range(len(PROGRAM))):
        visited.append(i)
        # the adjoint of h_i is the gradient of the rest of the program
        rest = lambda h, i=i: _rest(h, i)
        np.testing.assert_allclose(adjoint, wl.numerical_grad(rest, hidden[i + 1]), rtol=1e-7, atol=1e-9)
        input_jacobian, weight_jacobian = (
            wl.jacobian(PROGRAM[i], argnums=k)(hidden[i], WEIGHTS[i]) for k in (0, 1)
        )
        assert (adjoint.shape, weight_jacobian.shape) == ((SIZES[i + 1],), (SIZES[i + 1], WEIGHTS[i].size))
        gradients[i] = adjoint @ weight_jacobian  # before the adjoint moves on
        adjoint = adjoint @ input_jacobian
        assert adjoint.shape == (SIZES[i],)
        # E.6.7 and E.6.8: the same by one VJP per argument
        _, pull = wl.vjp(PROGRAM[i], hidden[i], WEIGHTS[i])
        by_vjp = pull(wl.ones(SIZES[-1], dtype=wl.float64) if i == len(PROGRAM) - 1 else previous)  # noqa: F821
        np.testing.assert_allclose(by_vjp[1], gradients[i], rtol=1e-12)
        previous = by_vjp[0]  # noqa: F841 - read in the next round
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
        np.testing.assert_allclose(value.grad, wl.numerical_grad(rest, value.detach()), rtol=1e-7, atol=1e-9)


BLOCKS = [normal(3, 3) for _ in range(4)]


def block(i: int) -> Callable[[wl.Tensor], wl.Tensor]:
    return lambda h: wl.tanh(h @ BLOCKS[i])


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
    bytes_ = [
        wl.saved(lambda x, f=f: f(x).sum(), x).bytes for f in (all_kept, third_again, wl.checkpoint(all_kept))
    ]
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
    np.testing.assert_array_equal(results[0][0], results[1][0])
    np.testing.assert_array_equal(results[0][1], results[1][1])
    assert results[0][2] == results[1][2] == 1
    assert np.any(results[0][1] != 0)


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
    np.testing.assert_array_equal(
        wl.vjp(lambda x: square @ x, f64([1.0, 1.0]))[1](f64([1.0, 0.0]))[0], [0.0, 1.0]
    )
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
    np.testing.assert_array_equal(wl.vjp(wl.relu, s)[1](v)[0], from_output)
    with pytest.raises(TraceError, match="tensors are immutable"):
        s[0] = 1.0
    with pytest.raises(ValueError, match="read-only"):
        s.numpy()[0] = 1.0
    kept = wl.saved(lambda x: wl.relu(x).sum(), wl.ones(1000))
    assert kept.bytes <= 1000  # a mask of one byte per element, not the input


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


# --- the notes on backpropagation


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
