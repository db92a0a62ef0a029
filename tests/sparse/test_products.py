"""Sparse times dense and sampled products, against dense matrices: values, derivatives of both orders, cost, memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import wonderland as wl
from wonderland.errors import ShapeError
from wonderland.sparse import Pattern, matmul, sampled_matmul

RNG = np.random.default_rng(0)
RESTS = st.sampled_from([(), (1,), (3,), (2, 5)])


def drawn(m: int, n: int, s: int, in_order: bool = False) -> tuple[Pattern, Any, Any]:
    rows, cols = RNG.integers(0, n, m), RNG.integers(0, s, m)
    rows = np.sort(rows) if in_order else rows
    return Pattern.of(rows, cols, (n, s)), rows, cols


def dense(values: Any, rows: Any, cols: Any, shape: tuple[int, int]) -> Any:
    made = np.zeros(shape)
    np.add.at(made, (rows, cols), np.asarray(values))
    return made


@pytest.mark.book("12.21", name="wl.sparse.matmul")
@given(st.integers(0, 30), st.integers(1, 6), st.integers(1, 7), RESTS, st.booleans())
@settings(deadline=None, max_examples=40)
def test_a_product_is_that_of_the_dense_matrix(m: int, n: int, s: int, rest: tuple[int, ...], in_order: bool) -> None:
    pattern, rows, cols = drawn(m, n, s, in_order)
    v, x = RNG.normal(size=m), RNG.normal(size=(s, *rest))
    full = dense(v, rows, cols, (n, s))
    np.testing.assert_allclose(matmul(v, pattern, x), np.tensordot(full, x, 1), atol=1e-12)
    y = RNG.normal(size=(n, *rest))
    np.testing.assert_allclose(matmul(v, pattern.T, y), np.tensordot(full.T, y, 1), atol=1e-12)
    ones = dense(np.ones(m), rows, cols, (n, s))
    np.testing.assert_allclose(matmul(None, pattern, x), np.tensordot(ones, x, 1), atol=1e-12)


@pytest.mark.book("12.21", "12.55", name="wl.sparse.matmul")
@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("heads", [(), (3,)])
def test_derivatives_are_those_of_the_dense_product(compiled: bool, heads: tuple[int, ...]) -> None:
    pattern, rows, cols = drawn(40, 6, 5)
    v, x = wl.asarray(RNG.normal(size=(40, *heads))), wl.asarray(RNG.normal(size=(5, *heads, 4)))
    weights = wl.asarray(RNG.normal(size=(6, *heads, 4)))
    r, c = wl.asarray(rows), wl.asarray(cols)

    def sparse(v: wl.Tensor, x: wl.Tensor) -> wl.Tensor:
        return (wl.sin(matmul(v, pattern, x)) * weights).sum()

    def plain(v: wl.Tensor, x: wl.Tensor) -> wl.Tensor:
        full = wl.zeros((6, 5, *heads), dtype=v.dtype).at[r, c].add(v)
        return (wl.sin(wl.einsum("ijh,jhc->ihc" if heads else "ij,jc->ic", full, x)) * weights).sum()

    wanted = wl.grad(plain, argnums=(0, 1))(v, x)
    found = wl.grad(sparse, argnums=(0, 1))
    for got, want in zip((wl.jit(found) if compiled else found)(v, x), wanted, strict=True):
        np.testing.assert_allclose(got, want, atol=1e-10)
    second = wl.grad(lambda v: (wl.grad(sparse, argnums=1)(v, x) ** 2).sum())
    same = wl.grad(lambda v: (wl.grad(plain, argnums=1)(v, x) ** 2).sum())(v)
    np.testing.assert_allclose((wl.jit(second) if compiled else second)(v), same, atol=1e-9)


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("features", [1, 2, 5, 8, 33, 64])
def test_sampled_products_are_entries_of_the_dense_product(features: int, compiled: bool) -> None:
    pattern, rows, cols = drawn(50, 6, 5)
    a, b = RNG.normal(size=(6, 3, features)), RNG.normal(size=(5, 3, features))
    f = wl.jit(sampled_matmul) if compiled else sampled_matmul
    wanted = np.einsum("ihc,jhc->ijh", a, b)[rows, cols]
    np.testing.assert_allclose(f(wl.asarray(a), wl.asarray(b), pattern), wanted, atol=1e-12)
    one = f(wl.asarray(a[:, 0]), wl.asarray(b[:, 0]), pattern)
    np.testing.assert_allclose(one, wanted[:, 0], atol=1e-12)
    weights = wl.asarray(RNG.normal(size=50))
    g = wl.grad(lambda a, b: (sampled_matmul(a, b, pattern) * weights).sum(), argnums=(0, 1))
    left, right = (wl.jit(g) if compiled else g)(wl.asarray(a[:, 0]), wl.asarray(b[:, 0]))
    full = dense(weights, rows, cols, (6, 5))
    np.testing.assert_allclose(left, full @ b[:, 0], atol=1e-12)
    np.testing.assert_allclose(right, full.T @ a[:, 0], atol=1e-12)


@pytest.mark.book("12.21", name="wl.sparse.matmul")
@pytest.mark.parametrize("n", [100, 10_000])
def test_cost_is_that_of_the_entries(n: int) -> None:
    """Whatever the size of the matrix, m entries and c features take m * c multiply-adds."""
    pattern, _, _ = drawn(200, n, n)
    assert wl.count(lambda v, x: matmul(v, pattern, x), wl.ones(200), wl.ones((n, 8))).multiply_adds == 200 * 8


def test_integers_and_mixed_types() -> None:
    pattern = Pattern.of([0, 0, 1], [0, 1, 1], (2, 2))
    found = matmul(wl.tensor([1, 2, 3]), pattern, wl.tensor([[1, 10], [2, 20]]))
    assert found.tolist() == [[5, 50], [6, 60]]
    assert matmul(wl.tensor([1.0, 2.0, 3.0]), pattern, wl.tensor([1, 2])).dtype == wl.float32


def test_nothing_at_all() -> None:
    for f in (matmul, wl.jit(matmul)):
        assert f(wl.zeros(0), Pattern.of([], [], (3, 4)), wl.ones((4, 2))).tolist() == [[0, 0]] * 3
        assert f(wl.zeros(0), Pattern.of([], [], (0, 4)), wl.ones((4, 2))).shape == (0, 2)
        assert f(wl.zeros(0), Pattern.of([], [], (3, 0)), wl.ones((0, 2))).tolist() == [[0, 0]] * 3
        assert f(wl.ones(1), Pattern.of([0], [0], (3, 4)), wl.ones((4, 0))).shape == (3, 0)
        assert f(wl.ones(1), Pattern.of([2], [3], (3, 4)), wl.ones((4, 1))).tolist() == [[0], [0], [1]]
    assert sampled_matmul(wl.ones((3, 2)), wl.ones((4, 2)), Pattern.of([], [], (3, 4))).shape == (0,)


def test_what_does_not_fit_is_refused() -> None:
    pattern = Pattern.of([0, 1], [1, 2], (2, 3))
    with pytest.raises(ShapeError, match=r"values of shape \(3,\) for 2 entries"):
        matmul(wl.ones(3), pattern, wl.ones(3))
    with pytest.raises(ShapeError, match=r"x of shape \(2, 4\) for a matrix of shape \(2, 3\)"):
        matmul(wl.ones(2), pattern, wl.ones((2, 4)))
    with pytest.raises(ShapeError, match=r"values of shape \(2, 4\) with x of shape \(3, 5\)"):
        matmul(wl.ones((2, 4)), pattern, wl.ones((3, 5)))
    with pytest.raises(ShapeError, match=r"shapes \(2, 4\) and \(3, 5\)"):
        sampled_matmul(wl.ones((2, 4)), wl.ones((3, 5)), pattern)
    with pytest.raises(ShapeError, match=r"3 and 2 lines for a pattern of shape \(2, 3\)"):
        sampled_matmul(wl.ones((3, 4)), wl.ones((2, 4)), pattern)
