"""Rows of chapter 2 up to the gradients, with the numbers of the book (indices counted from 0)."""

from __future__ import annotations

import math
import tracemalloc
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import wonderland as wl
from wonderland.core.primitive import TABLE

RNG = np.random.default_rng(0)


def normal(*shape: int) -> wl.Tensor:
    return wl.asarray(RNG.normal(size=shape))


def close(a: Any, b: Any, **tolerance: float) -> None:
    np.testing.assert_allclose(np.asarray(a), np.asarray(b), **({"rtol": 1e-9, "atol": 1e-12} | tolerance))  # type: ignore[call-overload]


# --- vectors (section 2.1.1)


@pytest.mark.book("2.05", name="wl.grad")
@pytest.mark.parametrize(
    ("f", "low"),
    (
        (lambda x: x + x, -2),
        (lambda x: x * x, -2),
        (wl.exp, -2),
        (wl.sin, -2),
        (wl.cos, -2),
        (wl.sqrt, 0.1),
        (wl.log, 0.1),
        (lambda x: x**3, -2),
        (lambda x: x**1.7, 0.1),
        (lambda x: 2.0**x, -2),
    ),
)
def test_elementary_primitives_have_both_derivatives(f: Any, low: float) -> None:
    x = wl.asarray(RNG.uniform(low, 2, size=5))
    step = 1e-6
    numeric = (f(x + step) - f(x - step)).numpy() / (2 * step)
    backward = wl.grad(lambda x: f(x).sum())(x).numpy()
    _, forward = wl.jvp(f, (x,), (wl.ones_like(x),))
    close(backward, numeric, rtol=1e-6, atol=1e-8)
    close(forward, backward)


@pytest.mark.book("2.05", name="wl.sqrt")
def test_the_slope_of_the_root_at_zero_is_infinite() -> None:
    assert wl.grad(wl.sqrt)(0.0).item() == math.inf
    assert "infinite" in str(wl.sqrt.__doc__)


@pytest.mark.book("2.07", name="wl.grad")
def test_gradients_sum_over_broadcast_axes() -> None:
    x, y = wl.zeros((4, 1)), wl.zeros(4)
    gx, gy = wl.grad(lambda x, y: (x + y).sum(), argnums=(0, 1))(x, y)
    assert gx.tolist() == [[4], [4], [4], [4]]
    assert gy.tolist() == [4, 4, 4, 4]


@pytest.mark.book("2.08", name="wl.add")
def test_accidental_broadcasting_gives_a_matrix() -> None:
    """Box C.2.1; `wl.shape.strict` refuses it."""
    assert (normal(4, 1) + normal(4)).shape == (4, 4)


@pytest.mark.book("2.09", name="wl.Tensor.__mul__")
def test_linear_combinations() -> None:
    a, b = wl.tensor(2.5, wl.float64), wl.tensor(-0.5, wl.float64)
    x, y = normal(4), normal(4)
    close(a * x + b * y, b * y + a * x)
    close(a * (x + y), a * x + a * y)
    ga, gx = wl.grad(lambda a, x: (a * x + b * y).sum(), argnums=(0, 1))(a, x)
    close(gx, np.full(4, 2.5))
    close(ga, x.sum())


@pytest.mark.book("2.12", name="wl.dot")
def test_the_books_inner_product() -> None:
    x, y = wl.tensor([0.1, 0.0, -0.3], wl.float64), wl.tensor([-4.0, 0.05, 0.1], wl.float64)
    assert wl.dot(x, y).shape == ()
    assert wl.dot(x, y).item() == pytest.approx(-0.43)
    assert wl.cosine_similarity(x, y).item() == pytest.approx(-0.339812, abs=5e-7)
    close(wl.dot(x, y), wl.dot(y, x))
    close(wl.dot(2 * x + y, y), 2 * wl.dot(x, y) + wl.dot(y, y))


@pytest.mark.book("2.14", "B2-02", name="wl.normalize")
def test_template_matching() -> None:
    """Over unit vectors, <x, y> is largest at y = x / |x|: gradient ascent on the sphere finds it."""
    x = normal(5)
    y = wl.normalize(normal(5))
    for _ in range(200):
        y = wl.normalize(y + 0.3 * wl.grad(lambda y: wl.dot(x, y))(y))
    close(y, wl.normalize(x), rtol=1e-6)
    v = wl.normalize(normal(5))
    for _ in range(100):
        w = wl.normalize(normal(5))
        assert wl.dot(v, w).item() < 1
    assert wl.dot(v, v).item() == pytest.approx(1)


@pytest.mark.book("2.15", name="wl.max")
def test_the_gradient_of_the_maximum_sums_to_one() -> None:
    assert wl.argmax(wl.tensor([1.0, 3.0, 3.0])).item() == 1  # the first
    for x in (wl.tensor([1.0, 3.0, 2.0]), wl.tensor([1.0, 3.0, 3.0])):
        assert wl.grad(wl.max)(x).sum().item() == 1
        assert wl.grad(wl.min)(x).sum().item() == 1
    with pytest.raises(wl.errors.GradientError):
        wl.grad(wl.argmax)(wl.ones(3))


@pytest.mark.book("2.16", name="wl.ones")
def test_a_sum_is_an_inner_product_with_ones() -> None:
    x = normal(7)
    close(wl.dot(x, wl.ones_like(x)), x.sum())
    close(wl.dot(x, wl.ones(7, dtype="float64")), x.sum())


# --- matrices (section 2.1.2)


@pytest.mark.book("2.19", "B2-03", name="wl.matmul")
def test_matrix_products_and_their_adjoints() -> None:
    X, Y, G = normal(2, 3), normal(3, 4), normal(2, 4)
    loop = [[sum(X[i, k].item() * Y[k, j].item() for k in range(3)) for j in range(4)] for i in range(2)]
    close(X @ Y, loop)
    _, pull = wl.vjp(wl.matmul, X, Y)
    gX, gY = pull(G)
    close(gX, G @ Y.T)
    close(gY, X.T @ G)


@pytest.mark.book("2.20", name="wl.matmul")
def test_matrix_vector_products() -> None:
    W, x, v = normal(4, 3), normal(3), normal(4)
    assert (W @ x).shape == (4,)
    assert (v @ W).shape == (3,)
    gW, gx = wl.grad(lambda W, x: (W @ x).sum(), argnums=(0, 1))(W, x)
    assert gx.shape == (3,)
    close(gx, W.sum(axis=0))
    close(gW, np.tile(x.numpy(), (4, 1)))
    assert wl.grad(lambda v: (v @ W).sum())(v).shape == (4,)


@pytest.mark.book("2.21", name="wl.vmap")
def test_a_batch_of_matrix_vector_products_is_one_matrix_product() -> None:
    W, X = normal(4, 3), normal(5, 3)
    close(X @ W.T, wl.stack([W @ x for x in X]))
    close(X @ W.T, wl.vmap(lambda x: W @ x)(X))


@pytest.mark.book("2.22", name="wl.Tensor.T")
def test_the_gram_matrix() -> None:
    X, G = normal(4, 3), normal(4, 4)
    K = X @ X.T
    close(K, K.T)
    assert (wl.linalg.eigvalsh(K).numpy() > -1e-12).all()
    close(wl.grad(lambda X: ((X @ X.T) * G).sum())(X), (G + G.T) @ X)  # X is used twice


@pytest.mark.book("2.23", "B2-04", name="wl.multiply")
def test_masks_zero_entries_and_their_gradients() -> None:
    X, mask = normal(3, 3), wl.asarray(np.triu(np.ones((3, 3))))
    close(X * mask, np.triu(X.numpy()))
    gradient = wl.grad(lambda X: ((X * mask) ** 2).sum())(X)
    close(gradient, 2 * np.triu(X.numpy()))


@pytest.mark.book("B2-05", name="wl.is_linear")
def test_the_hadamard_product_with_a_fixed_matrix_is_linear() -> None:
    """Against the notes, which say that it is not."""
    M, N, X, Y = normal(3, 3), normal(3, 3), normal(3, 3), normal(3, 3)
    close(M * (2 * X - 3 * Y), 2 * (M * X) - 3 * (M * Y))
    close(M * (N * X), (M * N) * X)
    assert wl.is_linear(lambda X: M * X, X)
    assert not wl.is_linear(lambda X: X * X, X)


@pytest.mark.book("2.24", name="wl.exp")
def test_elementwise_functions_keep_shapes_of_every_rank() -> None:
    for rank in range(6):
        X = normal(*([2] * rank))
        assert wl.exp(X).shape == X.shape
        close(wl.exp(X), np.vectorize(math.exp)(X.numpy()))


@pytest.mark.book("2.26", "B2-06", name="wl.linalg.matrix_exp")
def test_two_exponentials_of_a_matrix() -> None:
    """Box C.2.2: element by element, and of the matrix as a whole."""
    J = wl.tensor([[0.0, -1.0], [1.0, 0.0]], wl.float64)
    close(wl.exp(J), [[1, 0.3679], [2.7183, 1]], atol=5e-5)
    close(wl.linalg.matrix_exp(J), [[0.540302, -0.841471], [0.841471, 0.540302]], atol=5e-7)
    a = normal(3)
    close(wl.linalg.matrix_exp(wl.diag(a)), wl.diag(wl.exp(a)))
    assert not np.allclose(wl.exp(wl.diag(a)).numpy(), wl.diag(wl.exp(a)).numpy())


@pytest.mark.book("2.29", "2.57", "B2-11", name="wl.jacobian")
def test_linear_functions_are_matrices() -> None:
    A, B, x1, x2 = normal(4, 3), normal(3, 5), normal(3), normal(3)
    f = lambda x: A @ x
    assert wl.is_linear(f, x1)
    assert not wl.is_linear(lambda x: A @ x + 1, x1)
    close(f(2 * x1 - 3 * x2), 2 * f(x1) - 3 * f(x2))
    np.testing.assert_array_equal(
        wl.jacobian(f)(x1).numpy(), A.numpy()
    )  # row i: gradient of y_i; column j: effect of x_j
    close(wl.stack([f(e) for e in wl.eye(3, dtype="float64")], axis=1), A)
    x = normal(5)
    close((A @ B) @ x, A @ (B @ x))


def strassen(X: Any, Y: Any) -> tuple[Any, int]:
    """The product of two matrices of size 2^k by seven products of halves, and how many numbers were multiplied."""
    if X.shape == (1, 1):
        return X * Y, 1
    h = X.shape[0] // 2
    a, b, c, d = X[:h, :h], X[:h, h:], X[h:, :h], X[h:, h:]
    e, f, g, i = Y[:h, :h], Y[:h, h:], Y[h:, :h], Y[h:, h:]
    pairs = [(a, f - i), (a + b, i), (c + d, e), (d, g - e), (a + d, e + i), (b - d, g + i), (a - c, e + f)]
    (p1, p2, p3, p4, p5, p6, p7), counts = zip(*(strassen(*pair) for pair in pairs), strict=True)
    top = wl.concat([p5 + p4 - p2 + p6, p1 + p2], axis=1)
    bottom = wl.concat([p3 + p4, p1 + p5 - p3 - p7], axis=1)
    return wl.concat([top, bottom]), sum(counts)


@pytest.mark.book("2.32", name="wl.matmul")
def test_strassen_multiplies_less_often() -> None:
    for k in range(4):
        n = 2**k
        X, Y = normal(n, n), normal(n, n)
        product, multiplications = strassen(X, Y)
        close(product, X @ Y, atol=1e-10)
        assert multiplications == 7**k
        assert k == 0 or multiplications < n**3


@pytest.mark.book("2.33", name="wl.matmul")
def test_the_kernel_behind_an_operation_can_change(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same program calls the kernel that stands in the table: another kernel, the same result."""
    X, Y = normal(2, 3), normal(3, 2)
    usual = (X @ Y).numpy()
    calls: list[Any] = []

    def loops(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        calls.append(x.shape)
        return np.array([[sum(x[i, k] * y[k, j] for k in range(3)) for j in range(2)] for i in range(2)])

    monkeypatch.setattr(TABLE["matmul"], "impl", loops)
    close(X @ Y, usual)
    assert calls == [(2, 3)]


# --- tensors of higher rank (sections 2.1.3 and 2.1.4)


@pytest.mark.book("2.35", "2.36", "B2-07", name="wl.matmul")
def test_batched_products() -> None:
    X, Y = normal(4, 5, 2), normal(4, 2, 3)
    assert (X @ Y).shape == (4, 5, 3)
    assert wl.matmul(X, Y).shape == (4, 5, 3)
    close(X @ Y, wl.stack([x @ y for x, y in zip(X, Y, strict=True)]))
    shared = normal(2, 3)
    gX, gW = wl.grad(lambda X, W: ((X @ W) ** 2).sum(), argnums=(0, 1))(X, shared)
    assert (gX.shape, gW.shape) == (X.shape, shared.shape)  # the batch axis is summed over
    close(gW, sum(x.numpy().T @ (2 * (x @ shared).numpy()) for x in X))


BATCHED = {
    "exp": wl.exp,
    "tanh": wl.tanh,
    "abs": wl.abs,
    "softmax": wl.softmax,
    "logsumexp": lambda X: wl.logsumexp(X, axis=-1),
    "sort": wl.sort,
    "argsort": wl.argsort,
    "argmax": lambda X: wl.argmax(X, axis=-1),
    "cumsum": lambda X: wl.cumsum(X, -1),
    "diff": wl.diff,
    "top_k": lambda X: wl.top_k(X, 2).values,
    "norm": lambda X: wl.norm(X, axis=-1),
    "normalize": wl.normalize,
    "mean": lambda X: wl.mean(X, axis=-1),
    "var": lambda X: wl.var(X, axis=(-2, -1)),
    "matrix_transpose": wl.matrix_transpose,
    "tril": wl.tril,
    "diagonal": wl.diagonal,
    "trace": wl.trace,
    "matmul": lambda X: X @ wl.ones((3, 2), dtype="float64"),
    "vecdot": lambda X: wl.vecdot(X, X),
    "einsum": lambda X: wl.einsum("...ij,...kj->...ik", X, X),
    "pairwise_sq_distances": lambda X: wl.pairwise_sq_distances(X, X),
    "rearrange": lambda X: wl.rearrange(X, "... a b -> ... (a b)"),
    "flip": lambda X: wl.flip(X, axis=-1),
    "take": lambda X: wl.take(X, wl.tensor([0, 0]), axis=-1),
    "where": lambda X: wl.where(X > 0, X, 0.0),
    "solve": lambda X: wl.linalg.solve(X @ X.mT + wl.eye(3, dtype="float64"), X),
    "inv": lambda X: wl.linalg.inv(X @ X.mT + wl.eye(3, dtype="float64")),
    "det": wl.linalg.det,
    "matrix_exp": wl.linalg.matrix_exp,
    "svdvals": wl.linalg.svdvals,
    "eigvalsh": lambda X: wl.linalg.eigvalsh(X @ X.mT),
    "fft": wl.fft.fft,
}


@pytest.mark.book("2.37", name="wl.vmap")
@pytest.mark.parametrize("name", BATCHED)
def test_leading_axes_are_a_batch(name: str) -> None:
    f = BATCHED[name]
    X = normal(2, 4, 3, 3)
    whole = f(X)
    for i in range(2):
        for j in range(4):
            close(whole[i, j], f(X[i, j]), atol=1e-10)
    close(wl.vmap(wl.vmap(f))(X), whole, atol=1e-10)


@pytest.mark.book("2.38", name="wl.tensordot")
def test_the_generalised_dot_product() -> None:
    X, Y = normal(2, 3, 4), normal(2, 3, 4)
    for other in (
        wl.tensordot(X, Y, axes=3),
        wl.dot(X.ravel(), Y.ravel()),
        wl.einsum("ijk,ijk->", X, Y),
        wl.dot(wl.flatten(X), wl.flatten(Y)),
    ):
        assert other.shape == ()
        close(other, (X * Y).sum())


# --- derivatives (sections 2.2.1 and 2.2.2)

parabola = lambda x: x**2 - 1.5 * x


@pytest.mark.book("2.44", name="wl.numerical_grad")
def test_the_error_of_central_differences_is_of_second_order() -> None:
    x = wl.tensor(0.7, wl.float64)
    errors = [abs(wl.numerical_grad(wl.exp, x, eps=h).item() - math.exp(0.7)) for h in (1e-2, 5e-3)]
    assert errors[0] / errors[1] == pytest.approx(4, rel=1e-3)
    forward = [abs(wl.numerical_grad(wl.exp, x, eps=h, method="forward").item() - math.exp(0.7)) for h in (1e-4, 5e-5)]
    assert forward[0] / forward[1] == pytest.approx(2, rel=1e-3)
    best = np.finfo(float).eps ** (1 / 3)
    error = lambda h: abs(wl.numerical_grad(wl.exp, x, eps=h).item() - math.exp(0.7))
    assert error(best) < 1e-9
    assert error(best) < min(error(1e-2), error(1e-12))


@pytest.mark.book("2.45", name="wl.grad")
def test_the_parabola_of_figure_2_1() -> None:
    df = wl.grad(parabola)
    assert df(0.5).item() == -0.5
    assert df(0.75).item() == 0
    assert parabola(0.75) == -0.5625
    assert df(2.0).item() == 2.5


@pytest.mark.book("2.46", name="wl.pow")
def test_basic_derivatives() -> None:
    x = wl.asarray(RNG.uniform(0.2, 3, size=6))
    each = lambda f: wl.grad(lambda x: f(x).sum())(x)
    close(each(wl.log), 1 / x)
    close(each(wl.sin), wl.cos(x))
    for power in (-2, -1, 0, 1, 2, 3, 0.5):
        close(each(lambda x, p=power: x**p), power * x ** (power - 1.0))


@pytest.mark.book("2.46", name="wl.pow")
def test_powers_at_the_edges() -> None:
    for power, slope in ((0, 0), (1, 1), (2, 0), (3, 0)):
        assert wl.grad(lambda x, p=power: x**p)(0.0).item() == slope
        assert wl.grad(lambda x, p=power: x ** wl.tensor(float(p)))(0.0).item() == slope
    for power in (1, 2, 3):
        assert wl.grad(lambda x, p=power: x**p)(-2.0).item() == power * (-2.0) ** (power - 1)
    assert wl.grad(lambda p: wl.tensor(2.0, wl.float64) ** p)(wl.tensor(3.0, wl.float64)).item() == pytest.approx(
        8 * math.log(2)
    )
    assert wl.grad(lambda p: wl.tensor(0.0) ** p)(2.0).item() == 0


SMOOTH = [wl.sin, wl.cos, wl.exp, wl.tanh, lambda x: x**3, lambda x: 1 / (1 + x * x)]


@pytest.mark.book("2.47", name="wl.grad")
@given(st.sampled_from(SMOOTH), st.sampled_from(SMOOTH), st.floats(-1.5, 1.5), st.floats(-3, 3))
def test_linearity_product_rule_chain_rule(f: Any, g: Any, x: float, a: float) -> None:
    at = wl.tensor(x, wl.float64)
    df, dg = wl.grad(f)(at), wl.grad(g)(at)
    close(wl.grad(lambda x: a * f(x) + g(x))(at), a * df + dg, atol=1e-9)
    close(wl.grad(lambda x: f(x) * g(x))(at), df * g(at) + f(at) * dg, atol=1e-9)
    close(wl.grad(lambda x: f(g(x)))(at), wl.grad(f)(g(at)) * dg, atol=1e-9)


@pytest.mark.book("2.48", name="wl.abs")
def test_documented_slopes_at_kinks() -> None:
    assert wl.grad(wl.abs)(0.0).item() == 0
    assert wl.grad(wl.relu)(0.0).item() == 0
    assert "at 0" in str(wl.abs.__doc__)
    assert "at 0" in str(wl.relu.__doc__)


@pytest.mark.book("2.49", name="wl.eye")
def test_partial_derivatives_along_basis_vectors() -> None:
    f = lambda x: wl.sin(x[0]) * x[1] ** 2 + x[2]
    x, h = normal(3), 1e-6
    basis = wl.eye(3, dtype="float64")
    partials = [(f(x + h * e) - f(x - h * e)).item() / (2 * h) for e in basis]
    close(wl.grad(f)(x), partials, rtol=1e-7)
    for i in range(3):
        np.testing.assert_array_equal(wl.one_hot(i, 3).numpy(), basis[i].numpy())


@pytest.mark.book("2.50", name="wl.grad")
def test_gradients_have_the_shape_of_the_argument_and_belong_to_scalars() -> None:
    for shape in ((), (3,), (2, 3), (2, 0)):
        x = wl.ones(shape)
        assert wl.grad(lambda x: (x**2).sum())(x).shape == shape
        value, gradient = wl.value_and_grad(lambda x: (x**2).sum())(x)
        assert value.shape == ()
        assert gradient.shape == shape
    with pytest.raises(wl.errors.GradientError, match=r"\(3,\)"):
        wl.grad(lambda x: x**2)(wl.ones(3))
    x = wl.tensor([1.0, 2.0], requires_grad=True)
    (x**2).sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [2, 4]


@pytest.mark.book("2.51", "B2-09", name="wl.directional_derivative")
def test_directional_derivatives() -> None:
    f = lambda x: (wl.sin(x) * x).sum()
    x, v, h = normal(4), normal(4), 1e-6
    along = wl.jvp(f, (x,), (v,))[1]
    close(along, wl.dot(wl.grad(f)(x), v))
    close(along, (f(x + h * v) - f(x - h * v)).item() / (2 * h), rtol=1e-7)
    close(wl.directional_derivative(f, x, v), along)


# --- Jacobians (section 2.2.3)


@pytest.mark.book("2.52", "B2-10", name="wl.jacobian")
def test_jacobians_in_both_modes() -> None:
    W = normal(4, 3)
    f = lambda x: wl.tanh(W @ x)
    x = normal(3)
    J = wl.jacobian(f)(x)
    assert J.shape == (4, 3)
    close(wl.jacfwd(f)(x), J)
    close(wl.jacrev(f)(x), J)
    close(J, [wl.grad(lambda x, i=i: f(x)[i])(x).numpy() for i in range(4)])  # row i is the gradient of output i
    h = 1e-6
    numeric = [((f(x + h * e) - f(x - h * e)) / (2 * h)).numpy() for e in wl.eye(3, dtype="float64")]
    close(J, np.stack(numeric, axis=1), rtol=1e-6)
    close(wl.jacobian(lambda x: f(x).sum())(x), wl.grad(lambda x: f(x).sum())(x))
    close(wl.jacobian(parabola)(wl.tensor(0.5)), -0.5)


@pytest.mark.book("2.53", "B2-12", name="wl.jacobian")
def test_the_jacobian_of_a_composition_is_a_product() -> None:
    W, V = normal(5, 3), normal(4, 5)
    g = lambda x: wl.tanh(W @ x)
    f = lambda h: wl.sigmoid(V @ h)
    x = normal(3)
    close(wl.jacobian(lambda x: f(g(x)))(x), wl.jacobian(f)(g(x)) @ wl.jacobian(g)(x))


@pytest.mark.book("2.54", "B2-13", name="wl.linearize")
def test_the_error_of_the_linearisation_is_of_second_order() -> None:
    f = lambda x: (wl.sin(x) * wl.exp(x)).sum()
    x0, direction = normal(4), normal(4)
    value, df = wl.linearize(f, x0)
    errors = [abs((f(x0 + h * direction) - value - df(h * direction)).item()) for h in (1e-3, 5e-4)]
    assert errors[0] / errors[1] == pytest.approx(4, rel=1e-2)


@pytest.mark.book("2.55", "2.56", "B2-14", name="wl.linearize")
def test_the_linearisation_of_box_2_6() -> None:
    x = wl.tensor(0.5, wl.float64)
    value, df = wl.linearize(parabola, x)
    f_linearised = lambda at: value + df(wl.tensor(at - 0.5, wl.float64))
    assert parabola(0.51) == pytest.approx(-0.5049)
    assert f_linearised(0.51).item() == pytest.approx(-0.5050)
    assert parabola(0.51) - f_linearised(0.51).item() == pytest.approx(1e-4)  # exactly h^2
    # the curves touch at 0.5 and have one slope there
    assert f_linearised(0.5).item() == parabola(0.5)
    assert wl.grad(parabola)(x).item() == df(wl.tensor(1.0, wl.float64)).item() == -0.5


@pytest.mark.book("2.58", name="wl.jacobian")
def test_the_jacobian_with_respect_to_a_matrix() -> None:
    """dy_i / dW_kj = x_j if i = k, else 0: shape (o, o, d), and (o, o d) with W as a vector."""
    o, d = 3, 4
    W, x = normal(o, d), normal(d)
    J = wl.jacobian(lambda W: W @ x)(W)
    assert J.shape == (o, o, d)
    for i in range(o):
        for k in range(o):
            close(J[i, k], x if i == k else np.zeros(d))
    close(J.reshape(o, o * d), wl.kron(wl.eye(o, dtype="float64"), x[None, :]))
    close(wl.jacobian(lambda w: w.reshape(o, d) @ x)(wl.ravel(W)), J.reshape(o, o * d))


@pytest.mark.book("2.59", name="wl.vjp")
def test_jacobians_are_not_built() -> None:
    """For o = d = 4096 the Jacobian for W has 2^36 entries; its product with a vector needs 2^24."""
    n = 4096
    W, x, u = wl.full((n, n), 0.5), wl.ones(n), wl.ones(n)
    tracemalloc.start()
    _, pull = wl.vjp(lambda W: W @ x, W)
    (gradient,) = pull(u)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert gradient.shape == (n, n)
    assert bool((gradient == 1).all())
    assert peak < 4 * W.nbytes
    small, v = normal(3, 4), normal(3)
    _, pull = wl.vjp(lambda W: W @ wl.ones(4, dtype="float64"), small)
    J = wl.jacobian(lambda W: W @ wl.ones(4, dtype="float64"))(small)
    close(pull(v)[0], wl.einsum("i,ikj->kj", v, J))
