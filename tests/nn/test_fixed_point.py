"""Fixed points: values and derivatives against unrolled iterations, closed forms and the numbers of the book."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import pytest

import wonderland as wl
from wonderland import nn
from wonderland.errors import DTypeError, InputError, ShapeError

SOLVERS = ["iteration", "anderson", "newton"]
BACKWARD = ["auto", "iteration", "anderson", "solve"]


class Step(nn.Module):
    """tanh(s A + x B), with ‖A‖ = radius."""

    def __init__(self, size: int = 5, features: int = 3, radius: float = 0.7, seed: int = 0) -> None:
        rng = np.random.default_rng(seed)
        A = rng.normal(size=(size, size))
        self.A = nn.Parameter(radius * A / np.linalg.norm(A, 2))
        self.B = nn.Parameter(rng.normal(size=(features, size)))

    def forward(self, s: Any, x: Any) -> Any:
        return wl.tanh(s @ self.A + x @ self.B)


def numbers(*shape: int, seed: int = 0) -> wl.Tensor:
    return wl.tensor(np.random.default_rng([seed, *shape]).normal(size=shape))


def unrolled(f: Any, start: wl.Tensor, *args: Any, count: int = 150) -> wl.Tensor:
    s = start
    for _ in range(count):
        s = f(s, *args)
    return s


def scalar(s: Any, x: Any, b: Any) -> Any:
    return wl.tanh(0.5 * s + x * b)


@pytest.mark.book("13.18", name=["wl.nn.FixedPoint", "wl.nn.fixed_point"])
@pytest.mark.parametrize("backward", BACKWARD)
@pytest.mark.parametrize("solver", SOLVERS)
def test_the_numbers_of_the_book_in_every_way(solver: str, backward: str) -> None:
    x, b, start = (wl.tensor(v, dtype=wl.float64) for v in (1.2, 0.7, 0.0))

    def found(x: Any, b: Any) -> Any:
        return nn.fixed_point(scalar, start, x, b, solver=solver, backward=backward)

    assert found(x, b).item() == pytest.approx(0.852822, abs=5e-7)
    slope = wl.grad(found)
    assert slope(x, b).item() == pytest.approx(0.2210221, abs=5e-8)
    for compiled in (wl.jit(slope), wl.grad(wl.jit(found))):
        assert compiled(x, b).item() == pytest.approx(0.2210221, abs=5e-8)
    assert wl.jvp(found, (x, b), (wl.ones_like(x), wl.zeros_like(b)))[1].item() == pytest.approx(0.2210221, abs=5e-8)
    wl.check_grads(found, (x, b), order=2)
    # s = tanh(a s + c) has ds/dx = b (1 - s²) / (1 - a (1 - s²))
    many = wl.tensor([1.2, 0.3, -0.5], dtype=wl.float64)
    s = np.asarray(wl.vmap(found, in_axes=(0, None))(many, b))
    wanted = 0.7 * (1 - s**2) / (1 - 0.5 * (1 - s**2))
    for run in (wl.vmap(slope, in_axes=(0, None)), wl.jit(wl.vmap(slope, in_axes=(0, None)))):
        np.testing.assert_allclose(run(many, b), wanted, rtol=1e-8)


@pytest.mark.book("13.18", name="wl.nn.FixedPoint")
@pytest.mark.parametrize("rows_alone", [True, False])
@pytest.mark.parametrize("solver", SOLVERS)
def test_a_layer_has_the_gradients_of_the_unrolled_iteration(solver: str, rows_alone: bool) -> None:
    step, x = Step(), numbers(4, 3)
    layer = nn.FixedPoint(
        step, solver=solver, tol=1e-12, rows_alone=rows_alone, start=lambda x: wl.zeros((4, 5), dtype=wl.float64)
    )
    start = wl.zeros((4, 5), dtype=wl.float64)
    np.testing.assert_allclose(layer(x), unrolled(step, start, x), atol=1e-11)

    def loss(layer: Any, x: Any) -> Any:
        return wl.sum(layer(x) ** 3)

    wanted, wanted_x = wl.grad(lambda step, x: wl.sum(unrolled(step, start, x) ** 3), (0, 1))(step, x)
    for compiled in (False, True):
        run = wl.grad(loss, (0, 1))
        grads, by_x = (wl.jit(run) if compiled else run)(layer, x)
        np.testing.assert_allclose(by_x, wanted_x, atol=1e-9)
        for name in ("A", "B"):
            np.testing.assert_allclose(grads[f"f.{name}"], wanted[name], atol=1e-9)
    layer.zero_grad()
    loss(layer, x).backward()
    assert step.A.grad is not None
    np.testing.assert_allclose(step.A.grad, wanted["A"], atol=1e-9)


@pytest.mark.book("13.18", name="wl.nn.fixed_point")
def test_almeida_and_pineda_iterate_the_adjoint_and_the_theorem_solves_it() -> None:
    """u ← g + Jᵀu from u = g, by hand in NumPy, is what both give."""
    step, x = Step(), numbers(1, 3)
    start = wl.zeros((1, 5), dtype=wl.float64)
    s = np.asarray(unrolled(step, start, x))
    A, B = np.asarray(step.A), np.asarray(step.B)
    J = A * (1 - s**2)  # J[i, j] = d f_j / d s_i
    g = 2 * s
    u = g.copy()
    for _ in range(400):
        u = g + u @ J.T
    np.testing.assert_allclose(u[0], np.linalg.solve(np.eye(5) - J, g[0]), rtol=1e-10)
    by_hand = (u * (1 - s**2)) @ B.T
    for backward in ("iteration", "solve"):
        found = wl.grad(lambda x, way=backward: wl.sum(nn.fixed_point(step, start, x, backward=way, tol=1e-13) ** 2))(x)
        np.testing.assert_allclose(found, by_hand, atol=1e-10)


@pytest.mark.book("13.18", name="wl.nn.FixedPoint")
def test_memory_does_not_depend_on_the_number_of_iterations() -> None:
    x = wl.ones(20_000)

    def kept(slope: float, how: str) -> float:
        """The most memory of a gradient, in units of x; the nearer the slope is to 1, the more iterations there are."""

        def f(s: Any, x: Any) -> Any:
            return wl.tanh(slope * s) + 0.1 * x

        def loss(x: Any) -> Any:
            if how == "unrolled":
                return wl.sum(unrolled(f, wl.zeros_like(x), x, count=counts[slope]))
            return wl.sum(nn.fixed_point(f, wl.zeros_like(x), x, tol=1e-6))

        run = wl.grad(loss)
        run(x)
        tracemalloc.start()
        run(x)
        found = tracemalloc.get_traced_memory()[1] / x.nbytes
        tracemalloc.stop()
        return found

    layers = {a: nn.FixedPoint(lambda s, x, a=a: wl.tanh(a * s) + 0.1 * x, rows_alone=False) for a in (0.1, 0.9)}
    counts = {a: int(layer.solve(x).iterations) for a, layer in layers.items()}
    assert counts[0.9] > 3 * counts[0.1]
    assert kept(0.9, "implicit") <= kept(0.1, "implicit") + 1
    assert kept(0.9, "unrolled") > kept(0.1, "unrolled") + counts[0.9] - counts[0.1] - 2
    saved = {a: wl.saved(lambda x, f=layer: f(x).sum(), x).bytes for a, layer in layers.items()}
    assert saved[0.1] == saved[0.9]


def test_anderson_needs_fewer_evaluations_and_newton_fewer_still() -> None:
    slopes = wl.tensor(np.linspace(-0.5, 0.95, 8))
    layers = {way: nn.FixedPoint(lambda s, x: wl.tanh(slopes * s) + x, way, max_iter=1000) for way in SOLVERS}
    counts = {way: int(layer.solve(0.01 * numbers(2, 8)).iterations) for way, layer in layers.items()}
    assert 2 < counts["newton"] < counts["anderson"] < counts["iteration"] / 4


def test_anderson_takes_rows_that_are_there_already_and_residuals_of_one_direction() -> None:
    f = lambda s, x: 0.9 * s + x  # every residual is a multiple of the first
    for kind in (wl.float32, wl.float64):
        x = wl.tensor([[0.0, 0.0], [1.0, 1.0], [1e-9, 0.0]], dtype=kind)
        found = nn.FixedPoint(f, "anderson", max_iter=50)(x)
        np.testing.assert_allclose(found, 10 * np.asarray(x), rtol=1e-4, atol=1e-5)


def test_newton_finds_a_point_that_repels() -> None:
    x = wl.tensor(0.3, dtype=wl.float64)
    f = lambda s, x: wl.cos(3 * s) + x
    found = nn.fixed_point(f, wl.tensor(0.4, dtype=wl.float64), x, solver="newton")
    s = found.item()
    assert s == pytest.approx(np.cos(3 * s) + 0.3, abs=1e-12)
    assert abs(3 * np.sin(3 * s)) > 1
    slope = wl.grad(lambda x: nn.fixed_point(f, wl.tensor(0.4, dtype=wl.float64), x, solver="newton"))(x)
    assert slope.item() == pytest.approx(1 / (1 + 3 * np.sin(3 * s)), rel=1e-9)


def test_derivatives_of_derivatives_under_jit() -> None:
    step, x = Step(size=3), numbers(1, 3)
    start = wl.zeros((1, 3), dtype=wl.float64)

    def loss(f: Any) -> Any:
        return lambda x: wl.sum(wl.sin(f(x)))

    implicit = loss(lambda x: nn.fixed_point(step, start, x, tol=1e-13))
    plain = loss(lambda x: unrolled(step, start, x))
    twice = lambda f: wl.grad(lambda x: wl.sum(wl.grad(f)(x) ** 2))
    np.testing.assert_allclose(twice(implicit)(x), twice(plain)(x), atol=1e-9)
    np.testing.assert_allclose(wl.jit(wl.hessian(implicit))(x), wl.hessian(plain)(x), atol=1e-9)


@pytest.mark.book("13.18", name="wl.nn.FixedPointWarning")
@pytest.mark.parametrize("factor", [-3.0, 1.5])
def test_what_does_not_converge_says_how_far_away_it_is_and_why(factor: float) -> None:
    """-3 makes a cycle of two around 0; 1.5 without tanh runs away."""
    f = (lambda s, x: wl.tanh(factor * s) + x) if factor < 0 else (lambda s, x: factor * s + x)
    call = lambda x, how: nn.fixed_point(f, wl.tensor([0.5]), x, max_iter=60, on_failure=how)
    with pytest.warns(nn.FixedPointWarning, match=r"after 60 .* residual is .*, more than tol=1e-06.*radius") as seen:
        call(wl.zeros(1), "warn")
    radius = float(str(seen[0].message).rpartition("is about ")[2].partition(". Try")[0])
    assert radius == pytest.approx(abs(factor), rel=0.05)
    with pytest.raises(InputError, match=r"no convergence(.|\n)*spectral radius"):
        call(wl.zeros(1), "raise")
    assert np.isfinite(call(wl.zeros(1), "ignore")).all()
    for how in ("warn", "raise"):  # compiled code cannot speak
        assert np.isnan(wl.jit(lambda x, how=how: call(x, how))(wl.zeros(1))).all()
    assert np.isfinite(wl.jit(lambda x: call(x, "ignore"))(wl.zeros(1))).all()


def test_an_adjoint_that_does_not_converge_is_named() -> None:
    f = lambda s, x: wl.cos(3 * s) + x
    call = lambda x: nn.fixed_point(f, wl.tensor(0.4, dtype=wl.float64), x, solver="newton", backward="iteration")
    with pytest.warns(nn.FixedPointWarning, match="fixed_point's adjoint: no convergence"):
        wl.grad(call)(wl.tensor(0.3, dtype=wl.float64))


def test_one_row_that_does_not_converge_spoils_no_other() -> None:
    f = lambda s, x, a: a * s + x
    a = wl.tensor([[0.5], [2.0]])
    call = wl.jit(lambda x: nn.fixed_point(f, wl.zeros((2, 1)), x, a, rows_alone=True, max_iter=60))
    found = np.asarray(call(wl.ones((2, 1))))
    np.testing.assert_allclose(found[0], 2.0, rtol=1e-5)
    assert np.isnan(found[1])


@pytest.mark.parametrize("kind", [wl.float32, wl.bfloat16])
@pytest.mark.parametrize("solver", ["iteration", "anderson"])
def test_other_dtypes_and_nothing(kind: Any, solver: str) -> None:
    f = lambda s, x: wl.tanh(0.5 * s + x)
    found = nn.fixed_point(f, wl.zeros(3, dtype=kind), wl.full((3,), 0.84, dtype=kind), solver=solver)
    assert found.dtype == kind
    np.testing.assert_allclose(np.asarray(found, np.float64), 0.852822, rtol=1e-2 if kind == wl.bfloat16 else 1e-6)
    assert nn.fixed_point(f, wl.zeros((0,)), wl.zeros((0,))).shape == (0,)
    assert nn.fixed_point(f, wl.zeros((0, 3)), wl.zeros((0, 3)), rows_alone=True).shape == (0, 3)


def test_an_implicit_layer_learns_in_a_model() -> None:
    """A sine, which a linear model cannot follow, by a compiled loop."""
    wl.random.seed(0)
    x = np.random.default_rng(0).normal(size=(256, 3)).astype(np.float32)
    y = np.sin(2 * x[:, :1])
    linear = ((y - x @ np.linalg.lstsq(x, y, rcond=None)[0]) ** 2).mean()

    class Contraction(Step):
        """A norm below 1, which training does not change."""

        def forward(self, s: Any, x: Any) -> Any:
            A = self.A * wl.minimum(0.9 / wl.linalg.matrix_norm(self.A + 0, ord=2), 1.0)
            return wl.tanh(s @ A + x @ self.B)

    step = Contraction(size=16, radius=0.5).astype(wl.float32)
    layer = nn.FixedPoint(step, "anderson", tol=1e-4, start=lambda x: wl.zeros((len(x), 16)))
    model = nn.Sequential(layer, nn.Linear(16, 1))
    history = wl.train.fit(model, "mse_loss", (x, y), epochs=40, lr=0.02, batch_size=64, progress=False)
    assert history["loss"][-1] < 0.1 * linear < linear < history["loss"][0]


def test_errors() -> None:
    f = lambda s, x: 0.5 * s + x
    for what in ({"solver": "guess"}, {"backward": "newton"}, {"on_failure": "shout"}, {"tol": 0.0}, {"max_iter": 0}):
        with pytest.raises(InputError, match=next(iter(what))):
            nn.fixed_point(f, wl.zeros(1), wl.zeros(1), **what)  # type: ignore[arg-type]
    with pytest.raises(ShapeError, match=r"f gave float32\[2\] for s of float32\[1\]"):
        nn.fixed_point(f, wl.zeros(1), wl.zeros(2))
    with pytest.raises(DTypeError, match="a start of int64"):
        nn.fixed_point(f, wl.zeros(1, dtype=wl.int64), wl.zeros(1))
    with pytest.raises(InputError, match="nothing to begin with"):
        nn.FixedPoint(f)()


# --- graphs


def graph(nodes: int = 7, seed: int = 0) -> np.ndarray[Any, Any]:
    rng = np.random.default_rng(seed)
    a = (rng.random((nodes, nodes)) < 0.4) * rng.random((nodes, nodes))
    np.fill_diagonal(a, 0.0)
    a[-1] = a[:, -1] = 0.0  # a node alone
    return a


@pytest.mark.book("13.19", name=["wl.nn.ImplicitGraphLayer", "wl.nn.normalized_adjacency"])
@pytest.mark.parametrize("directed", [False, True])
def test_diffusion_comes_to_the_solution_of_its_linear_system(directed: bool) -> None:
    """Without an activation S = P S W + X U + b is linear: (I - Wᵀ ⊗ P) vec S = vec(X U + b)."""
    a = graph()
    a = a if directed else a + a.T
    P = np.asarray(nn.normalized_adjacency(a))
    assert np.linalg.norm(P, 2) <= 1 + 1e-6
    layer = nn.ImplicitGraphLayer(3, 4, activation="identity", limit=0.8, tol=1e-12, dtype=wl.float64)
    layer.diffusion.weight.weight.assign(10 * numbers(4, 4))  # much too long; the layer makes it shorter
    W = np.asarray(layer.diffusion.matrix())
    assert np.linalg.norm(W, 2) == pytest.approx(0.8)
    x = numbers(7, 3)
    right = np.asarray(layer.diffusion.inputs(x))
    wanted = np.linalg.solve(np.eye(28) - np.kron(W.T, P), right.T.reshape(-1)).reshape(4, 7).T
    np.testing.assert_allclose(layer(x, a), wanted, atol=1e-9)
    np.testing.assert_allclose(wl.jit(lambda layer, x: layer(x, a))(layer, x), wanted, atol=1e-9)


@pytest.mark.book("13.19", name="wl.nn.ImplicitGraphLayer")
def test_diffusion_converges_below_a_spectral_norm_of_one_and_not_above() -> None:
    ring = np.roll(np.eye(6), 1, axis=0) + np.roll(np.eye(6), -1, axis=0)  # normalized, its norm is 1
    x = wl.ones((6, 2), dtype=wl.float64)
    layer = nn.ImplicitGraphLayer(2, 3, activation="identity", limit=None, max_iter=300, dtype=wl.float64)
    for norm, converges in ((0.9, True), (1.1, False)):
        layer.diffusion.weight.weight.assign(norm * wl.eye(3, dtype=wl.float64))
        if converges:
            assert (np.asarray(layer.solve(x, ring).residual) <= 1e-10).all()
        else:
            with pytest.warns(nn.FixedPointWarning, match=r"radius of the Jacobian is about 1\.1"):
                layer(x, ring)
    # every node sees every other one, however far, and its gradient is that of differences
    layer = nn.ImplicitGraphLayer(2, 3, dtype=wl.float64, tol=1e-13)
    x = numbers(6, 2)
    reach = np.asarray(wl.grad(lambda x: layer(x, ring)[0].sum())(x))
    assert (np.abs(reach).max(axis=1) > 0).all()
    wl.check_grads(lambda x, a: wl.sin(layer(x, a)), (x, wl.tensor(ring)), modes=["reverse"])
    assert layer.num_parameters() == (2 + 3 + 1) * 3


def test_errors_of_graphs() -> None:
    with pytest.raises(ShapeError, match=r"nodes of shape \(5, 2\) and a graph of shape \(4, 4\)"):
        nn.ImplicitGraphLayer(2, 3)(wl.ones((5, 2)), wl.ones((4, 4)))
    with pytest.raises(ShapeError, match="a matrix of shape"):
        nn.normalized_adjacency(wl.ones((2, 3)))
    with pytest.raises(InputError, match=r"limit=1\.5"):
        nn.ImplicitGraphLayer(2, 3, limit=1.5)
    with pytest.raises(InputError, match="activation='exp'"):
        nn.ImplicitGraphLayer(2, 3, activation="exp")
