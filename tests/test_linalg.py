"""wl.linalg against NumPy, SciPy, finite differences and closed forms."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.linalg

import wonderland as wl
from wonderland.errors import AxisError, DTypeError, GradientError, InputError, LinearAlgebraError, ShapeError

la = wl.linalg
INF = math.inf
REAL, COMPLEX = np.float64, np.complex128


def random(*shape: int, dtype: Any = REAL, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng([seed, *shape])
    x = rng.normal(size=shape)
    if np.dtype(dtype).kind == "c":
        x = x + 1j * rng.normal(size=shape)
    return x.astype(dtype)


def positive(*shape: int, dtype: Any = REAL, seed: int = 0) -> np.ndarray:
    x = random(*shape, dtype=dtype, seed=seed)
    return x @ x.conj().swapaxes(-1, -2) + shape[-1] * np.eye(shape[-1], dtype=dtype)


def hermitian(*shape: int, dtype: Any = REAL, seed: int = 0) -> np.ndarray:
    x = random(*shape, dtype=dtype, seed=seed)
    return x + x.conj().swapaxes(-1, -2)


def as_list(value: Any) -> list[Any]:
    return list(value) if isinstance(value, (tuple, list)) else [value]


def outputs(value: Any) -> list[np.ndarray]:
    return [np.asarray(v) for v in as_list(value)]


def like(x: np.ndarray, seed: int) -> np.ndarray:
    return random(*x.shape, dtype=x.dtype, seed=seed)


def check_derivatives(f: Callable[..., Any], *args: np.ndarray, order: int = 2, tolerance: float = 2e-6) -> None:
    """Forward mode against central differences, reverse mode against it, and the same of the derivative."""
    tangents = [like(a, 10 * order + i) for i, a in enumerate(args)]
    h = 1e-6
    ahead = outputs(f(*[wl.asarray(a + h * t) for a, t in zip(args, tangents, strict=True)]))
    behind = outputs(f(*[wl.asarray(a - h * t) for a, t in zip(args, tangents, strict=True)]))
    primals = tuple(wl.asarray(a) for a in args)
    value, tangent = wl.jvp(f, primals, tuple(wl.asarray(t) for t in tangents))
    moved = outputs(tangent)
    for a, b, t in zip(ahead, behind, moved, strict=True):
        difference = (a - b) / (2 * h)
        scale = 1 + np.max(np.abs(difference), initial=0)
        np.testing.assert_allclose(t / scale, difference / scale, atol=tolerance)

    _, pull = wl.vjp(lambda *xs: as_list(f(*xs)), *primals)
    cts = [like(v, 100 + i) for i, v in enumerate(outputs(value))]
    adjoints = outputs(pull([wl.asarray(ct) for ct in cts]))
    # adjoints pair with tangents without conjugation
    left = sum(np.sum(ct * t).real for ct, t in zip(cts, moved, strict=True))
    right = sum(np.sum(a * t).real for a, t in zip(adjoints, tangents, strict=True))
    assert left == pytest.approx(right, rel=1e-8, abs=1e-8)
    if order > 1:
        directions = tuple(wl.asarray(like(a, 7 + i)) for i, a in enumerate(args))
        check_derivatives(lambda *xs: wl.jvp(f, xs, directions)[1], *args, order=order - 1, tolerance=tolerance * 20)


def check_batches(f: Callable[..., Any], *args: np.ndarray) -> None:
    """f on leading batch axes, and under vmap, against a loop."""
    loop = [outputs(f(*[wl.asarray(a[i]) for a in args])) for i in range(len(args[0]))]
    wanted = [np.stack(parts) for parts in zip(*loop, strict=True)]
    tensors = [wl.asarray(a) for a in args]
    for got in (
        f(*tensors),
        wl.vmap(f)(*tensors),
        wl.vmap(f, in_axes=1)(*[t.swapaxes(0, 1) for t in tensors]),
    ):
        for g, w in zip(outputs(got), wanted, strict=True):
            np.testing.assert_allclose(g, w, rtol=1e-9, atol=1e-11)


# --- the matrix exponential


@pytest.mark.book("2.25", "2.26", name="wl.linalg.matrix_exp")
def test_matrix_exp_of_a_rotation_generator() -> None:
    x = wl.tensor([[0.0, -1.0], [1.0, 0.0]], dtype=wl.float64)
    c, s = math.cos(1), math.sin(1)
    np.testing.assert_allclose(la.matrix_exp(x), [[c, -s], [s, c]], rtol=1e-15)
    np.testing.assert_allclose(la.matrix_exp(x), [[0.540302, -0.841471], [0.841471, 0.540302]], atol=5e-7)
    # the exponential of the elements is another function
    np.testing.assert_allclose(wl.exp(x), [[1, 0.3679], [2.7183, 1]], atol=5e-5)


@pytest.mark.book("2.25", name="wl.linalg.matrix_exp")
def test_matrix_exp_of_zero_and_of_the_negative() -> None:
    np.testing.assert_array_equal(la.matrix_exp(wl.zeros((2, 3, 3))), np.broadcast_to(np.eye(3), (2, 3, 3)))
    x = wl.asarray(random(4, 4))
    np.testing.assert_allclose(la.matrix_exp(x) @ la.matrix_exp(-x), np.eye(4), atol=1e-12)


@pytest.mark.book("B2-06", name="wl.linalg.expm")
def test_matrix_exp_of_a_diagonal_matrix_is_diagonal() -> None:
    a = wl.tensor([0.5, -1.0, 2.0], dtype=wl.float64)
    np.testing.assert_allclose(la.expm(wl.diag(a)), np.diag(np.exp(a.numpy())), rtol=1e-14)
    assert np.all(np.asarray(wl.exp(wl.diag(a)))[~np.eye(3, dtype=bool)] == 1)


@pytest.mark.parametrize("scale", [1e-8, 0.1, 1.0, 5.0, 30.0])
@pytest.mark.parametrize("dtype", [REAL, COMPLEX])
def test_matrix_exp_matches_scipy(scale: float, dtype: Any) -> None:
    x = random(5, 5, dtype=dtype) * scale
    wanted = scipy.linalg.expm(x)
    np.testing.assert_allclose(la.matrix_exp(wl.asarray(x)), wanted, atol=1e-12 * np.abs(wanted).max())


def test_matrix_exp_scales_every_matrix_of_a_batch_on_its_own() -> None:
    x = random(3, 4, 4) * np.array([1e-6, 1.0, 50.0])[:, None, None]
    got = la.matrix_exp(wl.asarray(x)).numpy()
    for i in range(3):
        np.testing.assert_array_equal(got[i], la.matrix_exp(wl.asarray(x[i])).numpy())


@pytest.mark.book("2.25", name="wl.linalg.matrix_exp")
@pytest.mark.parametrize("dtype", [REAL, COMPLEX])
def test_matrix_exp_derivatives(dtype: Any) -> None:
    check_derivatives(la.matrix_exp, random(3, 3, dtype=dtype), order=3)
    check_derivatives(la.matrix_exp, random(2, 2, 2, dtype=dtype) * 4)
    x, e = random(4, 4, dtype=dtype), random(4, 4, dtype=dtype, seed=1)
    _, t = wl.jvp(la.matrix_exp, (wl.asarray(x),), (wl.asarray(e),))
    np.testing.assert_allclose(t, scipy.linalg.expm_frechet(x, e, compute_expm=False), rtol=1e-10, atol=1e-12)
    _, t = wl.jvp(la.matrix_exp, (wl.asarray(x),), (wl.asarray(e * 1e12),))
    np.testing.assert_allclose(t, 1e12 * scipy.linalg.expm_frechet(x, e, compute_expm=False), rtol=1e-10)


@pytest.mark.book("2.25", name="wl.linalg.matrix_exp")
def test_matrix_exp_refuses_matrices_that_are_not_square() -> None:
    with pytest.raises(ShapeError, match=r"matrix_exp: needs square matrices, received shape \(2, 3\)"):
        la.matrix_exp(wl.ones((2, 3)))


# --- inverse, determinant, solve


@pytest.mark.book("2.26", name=["wl.linalg.inv", "wl.linalg.det", "wl.linalg.solve"])
def test_matrix_functions_live_in_their_own_namespace() -> None:
    names = {"matrix_exp", "inv", "det", "solve", "norm", "cond", "pinv"}
    assert names <= set(la.__all__)
    standard = (
        "cholesky cross det diagonal eigh eigvalsh inv matmul matrix_norm matrix_power matrix_rank "
        "matrix_transpose outer pinv qr slogdet solve svd svdvals tensordot trace vecdot vector_norm"
    )
    assert set(standard.split()) <= set(la.__all__)


@pytest.mark.book("2.27", name=["wl.linalg.inv", "wl.linalg.det"])
@pytest.mark.parametrize("dtype", [REAL, COMPLEX])
def test_inverse_and_determinant(dtype: Any) -> None:
    x = random(2, 4, 4, dtype=dtype)
    np.testing.assert_allclose(la.inv(wl.asarray(x)), np.linalg.inv(x), rtol=1e-10)
    np.testing.assert_allclose(la.det(wl.asarray(x)), np.linalg.det(x), rtol=1e-10)
    sign, logabsdet = la.slogdet(wl.asarray(x))
    np.testing.assert_allclose(np.asarray(sign) * np.exp(logabsdet.numpy()), np.linalg.det(x), rtol=1e-10)
    check_derivatives(la.inv, x)
    check_derivatives(la.det, x, order=3)
    check_derivatives(lambda a: tuple(la.slogdet(a)), x)


@pytest.mark.book("2.27", name=["wl.linalg.inv", "wl.linalg.det"])
def test_adjoints_of_inverse_and_determinant_in_closed_form() -> None:
    x, g = random(3, 3), random(3, 3, seed=1)
    inverse = np.linalg.inv(x)
    _, pull = wl.vjp(la.inv, wl.asarray(x))
    np.testing.assert_allclose(pull(wl.asarray(g))[0], -inverse.T @ g @ inverse.T, rtol=1e-9)
    np.testing.assert_allclose(wl.grad(la.det)(wl.asarray(x)), np.linalg.det(x) * inverse.T, rtol=1e-9)
    np.testing.assert_allclose(wl.grad(lambda a: la.slogdet(a).logabsdet)(wl.asarray(x)), inverse.T, rtol=1e-9)


@pytest.mark.book("2.27", name=["wl.linalg.inv", "wl.linalg.solve"])
def test_singular_matrices_raise() -> None:
    singular = wl.tensor([[1.0, 2.0], [2.0, 4.0]])
    with pytest.raises(LinearAlgebraError, match=r"inv: the matrix of shape \(2, 2\) is singular"):
        la.inv(singular)
    with pytest.raises(LinearAlgebraError, match=r"solve: the matrix of shape \(2, 2\) is singular"):
        la.solve(singular, wl.ones(2))
    batch = wl.stack([wl.eye(2), singular, wl.eye(2)])
    with pytest.raises(LinearAlgebraError, match=r"inv: the matrix at index \[1\] of shape \(3, 2, 2\)"):
        la.inv(batch)
    with pytest.raises(LinearAlgebraError, match=r"solve: the matrix at index \[1\]") as caught:
        la.solve(batch, wl.ones((3, 2, 1)))
    assert "try: add a small multiple of wl.eye(n)" in str(caught.value)
    with pytest.raises(LinearAlgebraError):
        la.matrix_power(singular, -1)


@pytest.mark.parametrize("rank", [0, 1, 2, 3])
@pytest.mark.parametrize("dtype", [REAL, COMPLEX])
def test_gradient_of_the_determinant_of_singular_matrices(rank: int, dtype: Any) -> None:
    x = random(4, rank, dtype=dtype) @ random(rank, 4, dtype=dtype, seed=1)
    assert abs(la.det(wl.asarray(x)).item()) < 1e-14
    wanted = np.empty_like(x)
    for i in range(4):
        for j in range(4):
            minor = np.delete(np.delete(x, i, 0), j, 1)
            wanted[i, j] = (-1) ** (i + j) * np.linalg.det(minor)
    _, pull = wl.vjp(la.det, wl.asarray(x))
    np.testing.assert_allclose(pull(wl.asarray(np.ones((), dtype)))[0], wanted, atol=1e-13)


def test_second_derivative_of_the_determinant_of_a_singular_matrix_is_refused() -> None:
    x = wl.tensor([[1.0, 2.0], [2.0, 4.0]])
    with pytest.raises(LinearAlgebraError, match="singular"):
        wl.jvp(wl.grad(la.det), (x,), (x,))
    with pytest.raises(LinearAlgebraError, match="singular"):
        wl.grad(lambda a: la.slogdet(a).logabsdet)(x)
    sign, logabsdet = la.slogdet(x)
    assert (sign.item(), logabsdet.item()) == (0, -INF)


def test_determinant_with_equal_singular_values() -> None:
    check_derivatives(la.det, np.eye(3), order=3)


@pytest.mark.parametrize("dtype", [REAL, COMPLEX])
@pytest.mark.parametrize(
    "a, b",
    [((3, 3), (3,)), ((3, 3), (3, 2)), ((2, 3, 3), (2, 3, 2)), ((2, 3, 3), (3, 2)), ((3, 3), (4, 3, 1))],
)
def test_solve(a: tuple[int, ...], b: tuple[int, ...], dtype: Any) -> None:
    x, y = random(*a, dtype=dtype), random(*b, dtype=dtype, seed=1)
    np.testing.assert_allclose(la.solve(wl.asarray(x), wl.asarray(y)), np.linalg.solve(x, y), rtol=1e-9)
    check_derivatives(la.solve, x, y)


def test_solve_of_one_matrix_under_vmap() -> None:
    a, b = random(3, 3), random(5, 3)
    got = wl.vmap(la.solve, in_axes=(None, 0))(wl.asarray(a), wl.asarray(b))
    np.testing.assert_allclose(got, np.linalg.solve(a, b.T).T, rtol=1e-10)


@pytest.mark.parametrize("n", [0, 1, 4, 65, 200])
@pytest.mark.parametrize("lower", [True, False])
def test_solve_triangular_matches_scipy(n: int, lower: bool) -> None:
    a, b = random(n, n) + 3 * math.sqrt(n) * np.eye(n), random(n, 2)
    got = la.solve_triangular(wl.asarray(a), wl.asarray(b), lower=lower)
    if n:
        np.testing.assert_allclose(got, scipy.linalg.solve_triangular(a, b, lower=lower), rtol=1e-9)
        wanted = scipy.linalg.solve_triangular(a / n, b[:, 0], lower=lower, unit_diagonal=True)
        unit = la.solve_triangular(wl.asarray(a / n), wl.asarray(b[:, 0]), lower=lower, unit_diagonal=True)
        np.testing.assert_allclose(unit, wanted, rtol=1e-9)
    assert got.shape == (n, 2)


@pytest.mark.parametrize("dtype", [REAL, COMPLEX])
def test_solve_triangular_derivatives_and_batches(dtype: Any) -> None:
    a = random(2, 3, 3, dtype=dtype) + 3 * np.eye(3)
    b = random(3, 2, dtype=dtype)
    for lower in (True, False):
        for unit in (True, False):
            check_derivatives(
                lambda x, y, lower=lower, unit=unit: la.solve_triangular(x, y, lower=lower, unit_diagonal=unit),
                a,
                b,
            )
        check_batches(lambda x, lower=lower: la.solve_triangular(x, wl.asarray(b), lower=lower), a)
    gradient = wl.grad(lambda x: la.solve_triangular(x, wl.asarray(b)).sum().real)(wl.asarray(a))
    assert not np.tril(gradient.numpy(), -1).any()  # the other triangle is not read


def test_solve_triangular_with_a_zero_on_the_diagonal() -> None:
    for n in (3, 100):
        a = np.eye(n)
        a[1, 1] = 0
        with pytest.raises(LinearAlgebraError, match="zero on its diagonal"):
            la.solve_triangular(wl.asarray(a), wl.ones(n, dtype=wl.float64), lower=True)


# --- pseudo-inverse and least squares


@pytest.mark.book("4.19", name="wl.linalg.pinv")
@pytest.mark.parametrize("dtype", [REAL, COMPLEX])
@pytest.mark.parametrize("m, n, rank", [(5, 3, 3), (3, 5, 3), (4, 4, 4), (5, 4, 2), (3, 3, 0)])
def test_pseudo_inverse_satisfies_penrose(m: int, n: int, rank: int, dtype: Any) -> None:
    a = random(m, rank, dtype=dtype) @ random(rank, n, dtype=dtype, seed=1)
    p = la.pinv(wl.asarray(a)).numpy()
    for got, wanted in [
        (a @ p @ a, a),
        (p @ a @ p, p),
        ((a @ p).conj().T, a @ p),
        ((p @ a).conj().T, p @ a),
    ]:
        np.testing.assert_allclose(got, wanted, atol=1e-12)
    if rank == n:
        np.testing.assert_allclose(p @ a, np.eye(n), atol=1e-12)


@pytest.mark.parametrize("dtype", [REAL, COMPLEX])
@pytest.mark.parametrize("shape", [(4, 2), (2, 4), (3, 3), (2, 4, 2)])
def test_pseudo_inverse_derivatives(shape: tuple[int, ...], dtype: Any) -> None:
    check_derivatives(la.pinv, random(*shape, dtype=dtype))


def test_pseudo_inverse_derivatives_with_equal_singular_values_and_fixed_rank() -> None:
    check_derivatives(la.pinv, np.eye(4)[:, :3])
    # along matrices of rank 2 the derivative exists also for a 4 x 3 matrix
    check_derivatives(lambda u, v: la.pinv(u @ v, rtol=1e-9), random(4, 2), random(2, 3))


def test_pseudo_inverse_tolerance() -> None:
    a = np.diag([1.0, 1e-3])
    np.testing.assert_allclose(la.pinv(wl.asarray(a), rtol=1e-2), np.diag([1, 0]))
    got = la.pinv(wl.asarray(np.stack([a, a])), rtol=wl.tensor([1e-2, 1e-4]))
    np.testing.assert_allclose(got, [np.diag([1, 0]), np.diag([1, 1e3])])
    mapped = wl.vmap(lambda r: la.pinv(wl.asarray(a), rtol=r))(wl.tensor([1e-2, 1e-4]))
    np.testing.assert_allclose(mapped, got)


@pytest.mark.parametrize("dtype", [REAL, COMPLEX])
def test_least_squares(dtype: Any) -> None:
    a, b = random(6, 3, dtype=dtype), random(6, 2, dtype=dtype, seed=1)
    x, residuals, rank, s = la.lstsq(wl.asarray(a), wl.asarray(b))
    wanted = np.linalg.lstsq(a, b)
    for got, want in zip((x, residuals, rank, s), wanted, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-10)
    one = la.lstsq(wl.asarray(a), wl.asarray(b[:, 0]))
    np.testing.assert_allclose(one.x, wanted[0][:, 0], rtol=1e-10)
    assert one.residuals.shape == ()
    check_derivatives(lambda a, b: tuple(la.lstsq(a, b)[:2]), a, b)
    batch = random(2, 6, 3, dtype=dtype)
    check_batches(lambda a: tuple(la.lstsq(a, wl.asarray(b[:, 0]))), batch)


def test_least_squares_without_full_rank_is_the_shortest_solution() -> None:
    a, b = random(5, 2) @ random(2, 4, seed=1), random(5)
    found = la.lstsq(wl.asarray(a), wl.asarray(b), rcond=1e-10)
    np.testing.assert_allclose(found.x, np.linalg.lstsq(a, b, rcond=1e-10)[0], atol=1e-10)
    assert found.rank.item() == 2
    np.testing.assert_allclose(a.T @ (b - a @ found.x.numpy()), 0, atol=1e-10)
    with pytest.raises(ShapeError, match=r"lstsq: a matrix of shape \(5, 4\) and .* \(4,\)"):
        la.lstsq(wl.asarray(a), wl.ones(4))


# --- factorisations


@pytest.mark.parametrize("dtype", [REAL, COMPLEX])
def test_cholesky(dtype: Any) -> None:
    a = positive(2, 4, 4, dtype=dtype)
    lower = la.cholesky(wl.asarray(a))
    np.testing.assert_allclose(lower, np.linalg.cholesky(a), rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(la.cholesky(wl.asarray(a), upper=True), lower.H)
    check_derivatives(la.cholesky, a)
    check_derivatives(lambda x: la.cholesky(x, upper=True), a[0])
    gradient = wl.grad(lambda x: wl.sum(wl.abs(la.cholesky(x))))(wl.asarray(a)).numpy()
    np.testing.assert_allclose(gradient, gradient.conj().swapaxes(-1, -2), atol=1e-12)


def test_cholesky_refuses_what_is_not_positive_definite() -> None:
    with pytest.raises(LinearAlgebraError, match=r"cholesky: the matrix of shape \(2, 2\) is not positive definite"):
        la.cholesky(wl.tensor([[1.0, 2.0], [2.0, 1.0]]))


@pytest.mark.parametrize("dtype", [REAL, COMPLEX])
@pytest.mark.parametrize("shape", [(4, 4), (5, 3), (3, 5), (2, 4, 3), (2, 3, 4)])
def test_qr(shape: tuple[int, ...], dtype: Any) -> None:
    a = random(*shape, dtype=dtype)
    q, r = la.qr(wl.asarray(a))
    wanted = np.linalg.qr(a)
    np.testing.assert_allclose(q, wanted.Q, atol=1e-12)
    np.testing.assert_allclose(r, wanted.R, atol=1e-12)
    check_derivatives(lambda x: tuple(la.qr(x)), a)


def test_complete_qr() -> None:
    a = random(5, 3)
    q, r = la.qr(wl.asarray(a), mode="complete")
    assert (q.shape, r.shape) == ((5, 5), (5, 3))
    np.testing.assert_allclose(q @ r, a, atol=1e-12)
    np.testing.assert_allclose(q.mT @ q, np.eye(5), atol=1e-12)
    with pytest.raises(GradientError, match='qr: with mode="complete" the last 2 columns'):
        wl.grad(lambda x: la.qr(x, mode="complete").R.sum())(wl.asarray(a))
    check_derivatives(lambda x: tuple(la.qr(x, mode="complete")), random(3, 4))  # nothing is left open
    with pytest.raises(InputError, match="mode='r'"):
        la.qr(wl.asarray(a), mode="r")


@pytest.mark.book("A7-12b", name="wl.linalg.eigh")
@pytest.mark.parametrize("dtype", [REAL, COMPLEX])
def test_eigh(dtype: Any) -> None:
    a = hermitian(2, 5, 5, dtype=dtype)
    w, v = la.eigh(wl.asarray(a))
    np.testing.assert_allclose(w, np.linalg.eigvalsh(a), atol=1e-12)
    assert np.all(np.diff(w.numpy()) >= 0)
    np.testing.assert_allclose(wl.asarray(a) @ v, v * wl.expand_dims(w, axis=-2), atol=1e-12)
    np.testing.assert_allclose(v.H @ v, np.broadcast_to(np.eye(5), a.shape), atol=1e-12)
    vectors = v.numpy()
    largest = np.take_along_axis(vectors, np.argmax(np.abs(vectors), axis=-2)[:, None, :], axis=-2)
    np.testing.assert_allclose(largest, np.abs(largest), atol=1e-12)  # the fixed sign
    np.testing.assert_array_equal(la.eigvalsh(wl.asarray(a)), w)
    check_derivatives(lambda x: tuple(la.eigh(x)), a)
    check_derivatives(la.eigvalsh, a)


@pytest.mark.book("A7-12b", name="wl.linalg.eigh")
def test_signs_of_eigenvectors_do_not_depend_on_rounding() -> None:
    # the components of each eigenvector have the same size, up to rounding
    for scale in np.linspace(0.1, 3, 50):
        _, v = la.eigh(wl.asarray(scale * np.array([[2.0, 1.0], [1.0, 2.0]])))
        assert np.all(v.numpy()[0] > 0)


def test_eigh_with_equal_eigenvalues() -> None:
    rotation = np.linalg.qr(random(4, 4))[0]
    a = rotation @ np.diag([1.0, 1.0, 1.0, 3.0]) @ rotation.T
    gradient = wl.grad(lambda x: la.eigvalsh(x)[:3].sum())(wl.asarray(a))
    projector = rotation[:, :3] @ rotation[:, :3].T
    np.testing.assert_allclose(gradient, projector, atol=1e-12)

    def projection(x: Any) -> Any:
        v = la.eigh(x).eigenvectors[:, :3]
        return v @ v.mT

    check_derivatives(projection, a, order=1)
    identity = wl.grad(lambda x: (la.eigh(x).eigenvectors ** 2).sum())(wl.eye(3, dtype=wl.float64))
    np.testing.assert_array_equal(identity, np.zeros((3, 3)))


@pytest.mark.parametrize("dtype", [REAL, COMPLEX])
@pytest.mark.parametrize("shape", [(4, 4), (5, 3), (3, 5), (2, 4, 3), (2, 3, 4), (1, 3)])
def test_svd(shape: tuple[int, ...], dtype: Any) -> None:
    a = random(*shape, dtype=dtype)
    u, s, vh = la.svd(wl.asarray(a), full_matrices=False)
    np.testing.assert_allclose(s, np.linalg.svd(a, compute_uv=False), rtol=1e-12)
    np.testing.assert_allclose((u * wl.expand_dims(s, axis=-2)) @ vh, a, atol=1e-12)
    np.testing.assert_allclose(la.svdvals(wl.asarray(a)), s)
    check_derivatives(lambda x: tuple(la.svd(x, full_matrices=False)), a)
    check_derivatives(la.svdvals, a)
    u, _, vh = la.svd(wl.asarray(a))
    m, n = shape[-2:]
    assert (u.shape[-2:], vh.shape[-2:]) == ((m, m), (n, n))
    np.testing.assert_allclose(u.H @ u, np.broadcast_to(np.eye(m), u.shape), atol=1e-12)
    np.testing.assert_allclose(vh @ vh.H, np.broadcast_to(np.eye(n), vh.shape), atol=1e-12)
    k = min(m, n)
    np.testing.assert_allclose((u[..., :k] * wl.expand_dims(s, axis=-2)) @ vh[..., :k, :], a, atol=1e-12)


def test_full_svd_has_a_derivative_for_square_matrices_only() -> None:
    check_derivatives(lambda x: tuple(la.svd(x)), random(3, 3))
    with pytest.raises(GradientError, match="svd: with full_matrices=True"):
        wl.grad(lambda x: la.svd(x).S.sum())(wl.ones((3, 2)))


def test_singular_values_at_equal_and_zero_values_have_finite_derivatives() -> None:
    # the sum of the singular values of the identity moves with the trace
    np.testing.assert_allclose(wl.grad(lambda x: la.svdvals(x).sum())(wl.eye(3)), np.eye(3), atol=1e-6)
    for x in (wl.zeros((3, 2)), wl.ones((3, 3)), wl.eye(4)):
        gradient = wl.grad(lambda a: sum(part.sum() for part in la.svd(a, full_matrices=False)))(x)
        assert np.isfinite(gradient.numpy()).all()


# --- norms, condition, rank


@pytest.mark.parametrize("dtype", [REAL, COMPLEX])
@pytest.mark.parametrize("order", [2, 1, INF, -INF, 0, 3, 2.5, 0.5, -1, -2])
@pytest.mark.parametrize("axis, keepdims", [(-1, False), (0, True), (None, True), ((0, 1), False)])
def test_vector_norm(order: float, axis: Any, keepdims: bool, dtype: Any) -> None:
    x = random(3, 4, dtype=dtype)
    got = la.vector_norm(wl.asarray(x), axis=axis, keepdims=keepdims, ord=order)
    wanted = np.linalg.vector_norm(x, axis=axis, keepdims=keepdims, ord=order)
    np.testing.assert_allclose(got, wanted, rtol=1e-12)
    assert got.shape == wanted.shape
    check_derivatives(lambda a: la.vector_norm(a, axis=axis, keepdims=keepdims, ord=order), x)


@pytest.mark.parametrize("order", [2, 1, INF, -INF, 0, 3, 1.5, 0.5, -1])
def test_vector_norm_where_elements_are_zero(order: float) -> None:
    gradient = wl.grad(lambda x: la.vector_norm(x, ord=order))
    assert np.asarray(gradient(wl.zeros(3))).tolist() == [0, 0, 0]
    mixed = wl.tensor([3.0, 0.0, -4.0], dtype=wl.float64)
    with np.errstate(divide="ignore"):
        np.testing.assert_allclose(la.vector_norm(mixed, ord=order), np.linalg.norm(mixed.numpy(), order), rtol=1e-14)
    assert np.isfinite(gradient(mixed).numpy()).all()
    assert gradient(mixed).numpy()[1] == 0


def test_vector_norm_that_overflows_or_is_not_a_number() -> None:
    assert la.vector_norm(wl.tensor([1e30, 1e30]), ord=3).item() == INF
    for order in (3, 0.5, -1):
        assert math.isnan(la.vector_norm(wl.tensor([1.0, math.nan]), ord=order).item())
    assert la.vector_norm(wl.tensor([3.0, 4.0]), ord=np.int64(1)).item() == 7  # type: ignore[arg-type]
    with pytest.raises(InputError, match="ord='fro'"):
        la.vector_norm(wl.ones(3), ord="fro")  # type: ignore[arg-type]


@pytest.mark.parametrize("dtype", [REAL, COMPLEX])
@pytest.mark.parametrize("order", ["fro", "nuc", 1, -1, 2, -2, INF, -INF])
@pytest.mark.parametrize("shape", [(3, 4), (2, 4, 3)])
def test_matrix_norm(order: Any, shape: tuple[int, ...], dtype: Any) -> None:
    x = random(*shape, dtype=dtype)
    for keepdims in (False, True):
        got = la.matrix_norm(wl.asarray(x), ord=order, keepdims=keepdims)
        wanted = np.linalg.matrix_norm(x, ord=order, keepdims=keepdims)
        np.testing.assert_allclose(got, wanted, rtol=1e-12)
        assert got.shape == wanted.shape
    check_derivatives(lambda a: la.matrix_norm(a, ord=order), x)


@pytest.mark.parametrize(
    "order, axis, keepdims",
    [
        (None, None, False),
        (None, 1, True),
        (None, (0, 2), False),
        (1, 2, False),
        ("nuc", (0, 2), True),
        (1, (2, 0), False),
        (INF, (1, 2), True),
    ],
)
def test_norm_as_in_numpy(order: Any, axis: Any, keepdims: bool) -> None:
    x = random(2, 3, 4)
    got = la.norm(wl.asarray(x), order, axis, keepdims)
    np.testing.assert_allclose(got, np.linalg.norm(x, order, axis, keepdims), rtol=1e-12)
    for part in (x[0], x[0, 0]):
        np.testing.assert_allclose(la.norm(wl.asarray(part), 1), np.linalg.norm(part, 1))


def test_norm_refuses() -> None:
    with pytest.raises(ShapeError, match="needs an axis"):
        la.norm(wl.ones((2, 2, 2)), 1)
    with pytest.raises(AxisError):
        la.norm(wl.ones((2, 2, 2)), 1, (0, 3))
    with pytest.raises(AxisError):
        la.norm(wl.ones((2, 2, 2)), 1, (1, 1))
    with pytest.raises(InputError, match="ord=3"):
        la.matrix_norm(wl.ones((2, 2)), ord=3)


@pytest.mark.parametrize("p", [None, 2, -2, "fro", "nuc", 1, -1, INF, -INF])
def test_condition_number(p: Any) -> None:
    x = random(2, 3, 3)
    np.testing.assert_allclose(la.cond(wl.asarray(x), p), np.linalg.cond(x, p), rtol=1e-10)
    check_derivatives(lambda a: la.cond(a, p), x)


def test_condition_and_rank_show_collinear_columns() -> None:
    assert la.cond(wl.tensor([[1.0, 0.0], [0.0, 0.0]])).item() == INF
    x = random(20, 3)
    x = np.concatenate([x, 2 * x[:, :1]], axis=1)
    assert la.matrix_rank(wl.asarray(x)).item() == 3
    gram = wl.asarray(x.T @ x)
    assert la.cond(gram).item() > 1e15
    assert la.cond(gram + 1e-3 * wl.eye(4, dtype=wl.float64)).item() < 1e6


def test_matrix_rank() -> None:
    x = np.stack([random(4, r) @ random(r, 3, seed=1) for r in range(4)])
    got = la.matrix_rank(wl.asarray(x))
    assert got.tolist() == [0, 1, 2, 3]
    assert got.dtype == wl.int64
    scaled = wl.asarray(np.stack([np.diag([1, 1e-3]), np.diag([1, 1e-3])]))
    assert la.matrix_rank(scaled, rtol=wl.tensor([1e-2, 1e-4])).tolist() == [1, 2]


# --- powers and products


@pytest.mark.parametrize("n", [-3, -1, 0, 1, 2, 3, 7])
def test_matrix_power(n: int) -> None:
    x = random(2, 3, 3)
    np.testing.assert_allclose(la.matrix_power(wl.asarray(x), n), np.linalg.matrix_power(x, n), rtol=1e-8, atol=1e-10)
    check_derivatives(lambda a: la.matrix_power(a, n), x / 2 + np.eye(3))


def test_matrix_power_needs_an_integer() -> None:
    with pytest.raises(InputError, match=r"exponent 0\.5"):
        la.matrix_power(wl.eye(2), 0.5)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "shapes",
    [
        [(2, 3), (3, 4)],
        [(10, 2), (2, 30), (30, 4), (4, 7)],
        [(3,), (3, 4), (4,)],
        [(2, 3), (3, 3), (3,)],
        [(5, 2, 3), (3, 4), (5, 4, 2)],
    ],
)
def test_multi_dot(shapes: list[tuple[int, ...]]) -> None:
    xs = [random(*shape, seed=i) for i, shape in enumerate(shapes)]
    wanted = xs[0]
    for x in xs[1:]:
        wanted = wanted @ x
    np.testing.assert_allclose(la.multi_dot([wl.asarray(x) for x in xs]), wanted, rtol=1e-9, atol=1e-12)


def test_multi_dot_takes_the_cheapest_order() -> None:
    from wonderland.linalg.powers import _best_splits

    sizes = [30, 35, 15, 5, 10, 20, 25]

    def cost(i: int, j: int) -> int:
        if i == j:
            return 0
        return min(cost(i, k) + cost(k + 1, j) + sizes[i] * sizes[k + 1] * sizes[j + 1] for k in range(i, j))

    splits = _best_splits(sizes)

    def planned(i: int, j: int) -> int:
        if i == j:
            return 0
        k = splits[i, j]
        return planned(i, k) + planned(k + 1, j) + sizes[i] * sizes[k + 1] * sizes[j + 1]

    assert planned(0, 5) == cost(0, 5) == 15125
    with pytest.raises(InputError, match="received 1 matrices"):
        la.multi_dot([wl.eye(2)])
    with pytest.raises(ShapeError, match="multi_dot"):
        la.multi_dot([wl.eye(2), wl.ones(2), wl.eye(2)])


def test_products_and_parts_match_numpy() -> None:
    x, y = random(2, 3, 3), random(2, 3, 3, seed=1)
    a, b = wl.asarray(x), wl.asarray(y)
    np.testing.assert_allclose(la.matmul(a, b), x @ y)
    np.testing.assert_allclose(la.cross(a, b), np.linalg.cross(x, y))
    np.testing.assert_allclose(la.outer(a[0, 0], b[0, 0]), np.linalg.outer(x[0, 0], y[0, 0]))
    np.testing.assert_allclose(la.vecdot(a, b), np.linalg.vecdot(x, y))
    np.testing.assert_allclose(la.tensordot(a, b, axes=((1, 2), (2, 1))), np.tensordot(x, y, axes=((1, 2), (2, 1))))
    np.testing.assert_array_equal(la.matrix_transpose(a), x.swapaxes(-1, -2))
    for offset in (-1, 0, 2):
        np.testing.assert_array_equal(la.diagonal(a, offset=offset), np.linalg.diagonal(x, offset=offset))
        np.testing.assert_allclose(la.trace(a, offset=offset), np.linalg.trace(x, offset=offset))


# --- what holds of all of them

SQUARE: dict[str, Callable[..., Any]] = {
    "inv": la.inv,
    "det": la.det,
    "slogdet": lambda x: tuple(la.slogdet(x)),
    "pinv": la.pinv,
    "cholesky": la.cholesky,
    "qr": lambda x: tuple(la.qr(x)),
    "eigh": lambda x: tuple(la.eigh(x)),
    "svd": lambda x: tuple(la.svd(x)),
    "svdvals": la.svdvals,
    "matrix_exp": la.matrix_exp,
    "matrix_power": lambda x: la.matrix_power(x, 3),
    "solve": lambda x: la.solve(x, x),
    "solve_triangular": lambda x: la.solve_triangular(x, x),
    "lstsq": lambda x: tuple(la.lstsq(x, x)),
    "matrix_norm": la.matrix_norm,
    "nuclear": lambda x: la.matrix_norm(x, ord="nuc"),
    "cond": la.cond,
    "rank": la.matrix_rank,
}


@pytest.mark.parametrize("name", SQUARE)
def test_batches(name: str) -> None:
    check_batches(SQUARE[name], positive(3, 4, 4))


@pytest.mark.parametrize("name", [n for n in SQUARE if n != "rank"])
def test_gradients_under_vmap(name: str) -> None:
    def total(x: Any) -> Any:
        return sum(part.sum() for part in as_list(SQUARE[name](x)) if part.dtype == x.dtype)

    x = positive(3, 3, 3)
    loop = np.stack([wl.grad(total)(wl.asarray(one)).numpy() for one in x])
    np.testing.assert_allclose(wl.vmap(wl.grad(total))(wl.asarray(x)), loop, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("name", SQUARE)
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128", "float16", "bfloat16"])
def test_dtype_is_kept(name: str, dtype: str) -> None:
    x = wl.asarray(positive(3, 3)).astype(dtype)
    real = dtype.replace("complex64", "float32").replace("complex128", "float64")
    parts = as_list(SQUARE[name](x))
    assert all(str(part.dtype) in (dtype, real, "int64") for part in parts)
    if name != "rank":
        gradient = wl.grad(lambda y: wl.abs(as_list(SQUARE[name](y))[len(parts) // 3]).sum())(x)
        assert gradient.dtype == x.dtype
        assert np.isfinite(np.asarray(gradient).astype(np.complex128)).all()


@pytest.mark.parametrize("name", [n for n in SQUARE if n not in ("cond", "matrix_norm", "nuclear")])
def test_empty_matrices_and_batches(name: str) -> None:
    f = SQUARE[name]
    shapes = [part.shape for part in outputs(f(wl.asarray(positive(3, 3))))]
    assert [part.shape for part in outputs(f(wl.zeros((0, 3, 3))))] == [(0, *shape) for shape in shapes]
    empty = [tuple(0 for _ in shape) for shape in shapes]
    assert [part.shape for part in outputs(f(wl.zeros((0, 0))))] == empty
    gradient = wl.grad(lambda x: sum(wl.sum(part) for part in as_list(f(x))).astype(wl.float32))
    assert gradient(wl.zeros((0, 0))).shape == (0, 0)
    assert gradient(wl.zeros((0, 3, 3))).shape == (0, 3, 3)


def test_determinant_of_an_empty_matrix_is_one() -> None:
    assert la.det(wl.zeros((0, 0))).item() == 1
    assert la.matrix_exp(wl.zeros((0, 0))).shape == (0, 0)
    assert la.svdvals(wl.zeros((0, 3))).shape == (0,)
    assert la.pinv(wl.zeros((0, 3))).shape == (3, 0)
    assert la.matrix_rank(wl.zeros((0, 3))).item() == 0
    q, r = la.qr(wl.zeros((3, 0)))
    assert (q.shape, r.shape) == ((3, 0), (0, 0))


def test_non_contiguous_matrices() -> None:
    x = positive(4, 4)
    view = np.asfortranarray(np.kron(x, np.ones((2, 2))))[::2, ::2]
    for f in SQUARE.values():
        for got, wanted in zip(outputs(f(wl.asarray(view))), outputs(f(wl.asarray(x))), strict=True):
            np.testing.assert_allclose(got, wanted, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("name", [n for n in SQUARE if n not in ("pinv", "qr", "svd", "svdvals", "lstsq", "rank")])
def test_wrong_shapes(name: str) -> None:
    if name not in ("matrix_norm", "nuclear", "cond"):
        with pytest.raises(ShapeError, match=r"square matrices, received shape \(2, 3\)"):
            SQUARE[name](wl.ones((2, 3)))
    with pytest.raises(ShapeError, match=r"shape \(3,\) is not a matrix"):
        SQUARE[name](wl.ones(3))


def test_solve_says_which_sizes_differ() -> None:
    with pytest.raises(
        ShapeError, match=r"solve: a matrix of shape \(3, 3\) .* \(2, 1\) do not fit: the sizes 3 and 2"
    ):
        la.solve(wl.eye(3), wl.ones((2, 1)))
    with pytest.raises(ShapeError, match=r"the sizes 3 and 2"):
        la.solve_triangular(wl.eye(3), wl.ones(2))
    with pytest.raises(ShapeError, match="do not broadcast"):
        la.solve(wl.ones((2, 3, 3)), wl.ones((4, 3, 1)))
    with pytest.raises(ShapeError, match="scalar"):
        la.solve(wl.eye(3), 1.0)


@pytest.mark.parametrize("name", ["svd", "pinv", "cofactor"])
def test_nan_is_refused_where_an_iteration_would_not_end(name: str) -> None:
    x = wl.full((2, 2), math.nan)
    f = {"cofactor": wl.grad(la.det)} | SQUARE
    with pytest.raises(LinearAlgebraError, match=rf"(?s){name}: the matrix of shape \(2, 2\).*NaN and inf"):
        f[name](x)


def test_integers_become_floats() -> None:
    x = wl.tensor([[1, 2], [3, 4]])
    assert la.det(x).item() == pytest.approx(-2)
    assert la.inv(x).dtype == wl.float32
    assert la.solve(x, x).dtype == wl.float32


def test_primitives_refuse_integers() -> None:
    from wonderland.primitives.linear_algebra import inv

    with pytest.raises(DTypeError, match="inv: received int64"):
        inv.abstract(wl.tensor([[1, 2], [3, 4]]))


def test_named_results_survive_transformations() -> None:
    x = wl.asarray(positive(2, 3, 3))
    for f, kind in ((la.eigh, la.EighResult), (la.svd, la.SVDResult), (la.qr, la.QRResult)):
        assert isinstance(f(x), kind)
        assert isinstance(wl.vmap(f)(x), kind)
        assert isinstance(wl.jit(f)(x), kind)


def test_jit_and_the_imperative_style() -> None:
    x = positive(3, 3)

    def f(a: Any) -> Any:
        return la.slogdet(a).logabsdet + la.inv(a).sum() + la.eigvalsh(a)[0] + la.matrix_exp(a / 10).sum()

    wanted = wl.grad(f)(wl.asarray(x)).numpy()
    np.testing.assert_allclose(wl.jit(wl.grad(f))(wl.asarray(x)), wanted, rtol=1e-9)
    leaf = wl.asarray(x.copy()).requires_grad_()
    f(leaf).backward()
    assert leaf.grad is not None
    np.testing.assert_allclose(leaf.grad, wanted, rtol=1e-9)


# --- permutations


@pytest.mark.book("10.29", name=("wl.linalg.permutation_matrix", "wl.linalg.is_permutation"))
@pytest.mark.parametrize("n", [1, 2, 5, 8])
def test_permutation_matrices(n):
    order = np.random.default_rng(n).permutation(n)
    P = wl.linalg.permutation_matrix(order, dtype=wl.float64)
    assert P.dtype == wl.float64
    assert wl.is_binary(P)
    np.testing.assert_array_equal(P.sum(axis=0), np.ones(n))
    np.testing.assert_array_equal(P.sum(axis=1), np.ones(n))
    np.testing.assert_array_equal(P.mT @ P, np.eye(n))
    # the determinant is the sign: -1 to the number of pairs in the wrong order
    pairs = sum(order[i] > order[j] for i in range(n) for j in range(i + 1, n))
    assert wl.linalg.det(P).item() == pytest.approx((-1.0) ** pairs)
    assert wl.linalg.is_permutation(P)
    assert wl.linalg.is_doubly_stochastic(P)


def test_what_is_no_permutation():
    no = [[[0.5, 0.5], [0.5, 0.5]], [[1, 1], [0, 0]], [[1, 0], [1, 0]], [[2, -1], [-1, 2]], [[0, 0], [0, 0]]]
    assert not any(wl.linalg.is_permutation(x) for x in no)
    assert wl.linalg.is_permutation(np.stack([np.eye(3), np.eye(3)[[1, 2, 0]]]))
    assert not wl.linalg.is_permutation(np.stack([np.eye(3), np.ones((3, 3))]))
    with pytest.raises(InputError, match="0 to 2, each once"):
        wl.linalg.permutation_matrix([0, 2, 2])
    with pytest.raises(ShapeError, match="integers"):
        wl.linalg.permutation_matrix([0.0, 1.0])
    with pytest.raises(ShapeError, match="square"):
        wl.linalg.is_permutation(wl.ones((2, 3)))
    with pytest.raises(ShapeError, match="square"):
        wl.linalg.is_doubly_stochastic(wl.ones((2, 3)))


@pytest.mark.book("10.30", name="wl.linalg.is_doubly_stochastic")
def test_attention_is_row_stochastic_only():
    rng = np.random.default_rng(0)
    mean = sum(w * np.eye(4)[rng.permutation(4)] for w in rng.dirichlet(np.ones(6)))
    assert wl.linalg.is_doubly_stochastic(mean)
    assert not wl.linalg.is_doubly_stochastic([[1.5, -0.5], [-0.5, 1.5]])
    x = wl.asarray(rng.normal(size=(5, 3)))
    weights = wl.softmax(x @ x.mT / 3**0.5)
    assert wl.is_simplex(weights, axis=-1)
    assert not wl.is_simplex(weights, axis=-2)
    assert not wl.linalg.is_doubly_stochastic(weights)


@pytest.mark.book("10.31", name="wl.linalg.permutation_matrix")
def test_the_permutation_of_the_book():
    P = wl.linalg.permutation_matrix([0, 2, 1], dtype=wl.float64)
    assert P.tolist() == [[1, 0, 0], [0, 0, 1], [0, 1, 0]]
    rng = np.random.default_rng(0)
    X, v = wl.asarray(rng.normal(size=(3, 4))), wl.asarray(rng.normal(size=(3, 4)))
    np.testing.assert_array_equal(P @ X, X[[0, 2, 1]])
    # the adjoint of gathering rows is scattering them, the transpose of the product
    for f in (lambda a: a[wl.tensor([0, 2, 1])], lambda a: P @ a):
        np.testing.assert_array_equal(wl.vjp(f, X)[1](v)[0], P.mT @ v)


@pytest.mark.book("10.32", name="wl.softmax")
@pytest.mark.parametrize("n", [2, 5, 9])
def test_softmax_commutes_with_reordering_rows_and_columns(n):
    rng = np.random.default_rng(n)
    P, X = wl.linalg.permutation_matrix(rng.permutation(n), dtype=wl.float64), wl.asarray(rng.normal(size=(n, n)))
    np.testing.assert_allclose(wl.softmax(P @ X @ P.mT), P @ wl.softmax(X) @ P.mT, rtol=0, atol=1e-15)
