"""Sparse matrices, against SciPy and dense ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import wonderland as wl
from wonderland.errors import DTypeError, IndexOutOfRange, InputError, ShapeError
from wonderland.sparse import COO, CSR

RNG = np.random.default_rng(0)


def drawn(m: int, n: int, s: int) -> tuple[COO, Any]:
    """A matrix and SciPy's; places may repeat."""
    rows, cols, data = RNG.integers(0, n, m), RNG.integers(0, s, m), RNG.normal(size=m)
    return COO.of(rows, cols, data, (n, s)), sp.coo_array((data, (rows, cols)), (n, s))


@given(st.integers(0, 25), st.integers(1, 6), st.integers(1, 6))
@settings(deadline=None, max_examples=40)
def test_everything_is_as_with_scipy(m: int, n: int, s: int) -> None:
    (a, theirs), (b, others) = drawn(m, n, s), drawn(2 * m, s, 4)
    c, third = drawn(m, n, s)
    full = theirs.toarray()
    same = lambda x, y: np.testing.assert_allclose(np.asarray(x), y, atol=1e-12)
    for form in (a, a.coalesce()):
        same(form.todense(), full)
        same(form.T.todense(), full.T)
        same(form @ np.ones(s), full @ np.ones(s))
        same(form @ np.ones((s, 3)), full @ np.ones((s, 3)))
        same(np.ones((2, n)) @ form, np.ones((2, n)) @ full)
        same(wl.ones(n, dtype=wl.float64) @ form, np.ones(n) @ full)
        same((form @ b).todense(), full @ others.toarray())
        same((form + c).todense(), full + third.toarray())
        same((form - c.coalesce()).todense(), full - third.toarray())
        same((-form * 2.0 / 4.0).todense(), -full / 2)
        same((3 * form).todense(), 3 * full)
        same(form.sum(), full.sum())
        same(form.sum(axis=0), full.sum(0))
        same(form.sum(axis=-1), full.sum(1))
        same(form.diagonal(), np.diagonal(full))
        same(form.scale(np.arange(n), np.arange(s)).todense(), np.arange(n)[:, None] * full * np.arange(s))
        same(form.to_scipy().toarray(), full)
    for kind in (COO, CSR):
        same(kind.from_scipy(theirs).todense(), full)
        same(kind.from_dense(full).todense(), full)


def test_compressed_rows_are_those_of_scipy() -> None:
    a, theirs = drawn(30, 5, 6)
    mine, csr = a.coalesce(), theirs.tocsr()
    csr.sum_duplicates()
    np.testing.assert_array_equal(mine.ptr, csr.indptr)
    np.testing.assert_array_equal(mine.indices, csr.indices)
    np.testing.assert_allclose(mine.data, csr.data)
    again = CSR.of(csr.indptr, csr.indices, csr.data, csr.shape)
    np.testing.assert_allclose(again.todense(), mine.todense(), rtol=1e-14)
    assert mine.tocsr() is mine
    assert mine.nnz < a.nnz  # of 30 entries in 30 places some meet
    assert mine.tocoo().nnz == mine.nnz
    assert repr(mine) == f"CSR(shape=(5, 6), nnz={mine.nnz}, dtype=float64)"


@pytest.mark.book("12.55", name="wl.sparse.CSR")
@pytest.mark.parametrize("compiled", [False, True])
def test_transposes_and_products_have_the_derivatives_of_dense_ones(compiled: bool) -> None:
    a, _ = drawn(14, 5, 4)
    b, _ = drawn(11, 4, 6)
    x = wl.asarray(RNG.normal(size=(6, 3)))

    def sparse(v: wl.Tensor, w: wl.Tensor, x: wl.Tensor) -> wl.Tensor:
        left, right = a.with_data(v), b.with_data(w)
        return (wl.sin((left @ right) @ x)).sum() + ((left.T @ left).todense() ** 2).sum() + (left @ (right @ x)).sum()

    def dense(v: wl.Tensor, w: wl.Tensor, x: wl.Tensor) -> wl.Tensor:
        left, right = a.with_data(v).todense(), b.with_data(w).todense()
        return wl.sin((left @ right) @ x).sum() + ((left.T @ left) ** 2).sum() + (left @ (right @ x)).sum()

    found = wl.value_and_grad(sparse, argnums=(0, 1, 2))
    value, slopes = (wl.jit(found) if compiled else found)(a.data, b.data, x)
    wanted, others = wl.value_and_grad(dense, argnums=(0, 1, 2))(a.data, b.data, x)
    np.testing.assert_allclose(value, wanted, rtol=1e-12)
    for got, want in zip(slopes, others, strict=True):
        np.testing.assert_allclose(got, want, atol=1e-10)


def test_entries_at_one_place_share_its_derivative() -> None:
    a = COO.of([0, 0, 1], [1, 1, 0], np.array([1.0, 2.0, 3.0]), (2, 2))
    slope = wl.grad(lambda v: (a.with_data(v).coalesce().data * np.array([5.0, 7.0])).sum())(a.data)
    assert slope.tolist() == [5.0, 5.0, 7.0]


def test_matrices_are_arguments_of_compiled_functions() -> None:
    a, theirs = drawn(9, 4, 4)
    f = wl.jit(lambda a, x: (a @ x, a.T @ x, a.sum(axis=1), a.diagonal(), a.todense()))
    x = RNG.normal(size=4)
    full = theirs.toarray()
    wanted = (full @ x, full.T @ x, full.sum(1), full.diagonal(), full)
    for got, want in zip(f(a, wl.asarray(x)), wanted, strict=True):
        np.testing.assert_allclose(got, want, atol=1e-12)
    slope = wl.jit(wl.grad(lambda v, a: (a.with_data(v) @ x).sum()))(a.data, a)
    np.testing.assert_allclose(slope, x[np.asarray(a.cols)])


@pytest.mark.parametrize(
    "make, error, message",
    [
        (lambda: COO.of([0, 9], [0, 0], [1.0, 2.0], (2, 2)), IndexOutOfRange, "of 2 rows, 1 is out of range"),
        (lambda: COO.of([0, 1], [0, 0], [1.0], (2, 2)), ShapeError, r"data of shape \(1,\) for 2 entries"),
        (lambda: CSR.of([0, 2, 1, 3], [0, 0, 0], None, (3, 3)), InputError, "it falls after row 1"),
        (lambda: CSR.of([0, 1, 2], [0, 0, 0], None, (2, 3)), InputError, "it goes from 0 to 2"),
        (lambda: CSR.of([0, 1], [0], None, (2, 3)), ShapeError, "3 integers"),
        (lambda: CSR.of([0, 1, 1], [3], None, (2, 3)), IndexOutOfRange, "of 1 columns, 1 is out of range"),
        (lambda: CSR.from_dense(wl.ones(3)), ShapeError, "a matrix"),
        (lambda: COO.of([0], [0], None, (2, 3)) @ wl.ones(2), ShapeError, "do not fit"),
        (lambda: wl.ones(3) @ COO.of([0], [0], None, (2, 3)), ShapeError, "do not fit"),
        (lambda: COO.of([0], [0], None, (2, 3)) @ COO.of([0], [0], None, (2, 3)), ShapeError, "inner sizes"),
        (lambda: COO.of([0], [0], None, (2, 3)) + COO.of([0], [0], None, (3, 3)), ShapeError, "differ"),
        (lambda: COO.of([0], [0], None, (2, 3)) * wl.ones(3), DTypeError, "only a single number"),
        (lambda: COO.of([0], [0], None, (2, 3)).sum(axis=2), InputError, "axis=2"),
        (lambda: COO.of([0], [0], None, (2, 3)).with_data(wl.ones(2)), ShapeError, "for 1 entries"),
    ],
)
def test_what_is_wrong_is_told(make: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        make()
