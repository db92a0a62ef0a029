"""Reductions over lines, against a loop over them: values, derivatives, ties, empty lines, what is infinite."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import wonderland as wl
from wonderland import sparse
from wonderland.errors import DTypeError, ShapeError
from wonderland.sparse import Incidence

NAMES = ("sum", "mean", "max", "min", "softmax", "logsumexp")
EMPTY = {"sum": 0.0, "mean": 0.0, "max": -np.inf, "min": np.inf, "logsumexp": -np.inf}


def by_loop(name: str, x: Any, ids: Any, lines: int) -> Any:
    """One line after the other."""
    if name == "softmax":
        out = np.zeros_like(x)
        for i in range(lines):
            terms = np.exp(x[ids == i])
            out[ids == i] = terms / terms.sum(0)
        return out
    f = {"logsumexp": lambda g: np.log(np.exp(g).sum(0))}.get(name) or (lambda g: getattr(g, name)(0))
    groups = [x[ids == i] for i in range(lines)]
    return np.stack([f(g) if len(g) else np.full(x.shape[1:], EMPTY[name]) for g in groups])


def functions(name: str) -> list[Any]:
    """The function of lines, plainly and compiled, and the one of ids."""
    of_lines, of_ids = getattr(sparse, f"segment_{name}"), getattr(wl, f"segment_{name}")
    compiled = wl.jit(of_lines)
    return [
        lambda x, ids, n: of_lines(x, Incidence.of(ids, n)),
        lambda x, ids, n: compiled(wl.asarray(x), Incidence.of(ids, n)),
        lambda x, ids, n: of_ids(x, wl.asarray(ids), n),
    ]


@pytest.mark.book("12.60", "12.61", name="wl.sparse.segment_sum")
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("shape", [(), (7,), (2, 16)])
@pytest.mark.parametrize("in_order", [True, False])
def test_lines_are_reduced_one_by_one(name: str, shape: tuple[int, ...], in_order: bool) -> None:
    rng = np.random.default_rng(1)
    x, ids = rng.normal(size=(60, *shape)), rng.integers(0, 9, 60)
    ids[ids == 4] = 5  # nothing in line 4
    ids = np.sort(ids) if in_order else ids
    wanted = by_loop(name, x, ids, 10)
    for f in functions(name):
        np.testing.assert_allclose(f(x, ids, 10), wanted, rtol=1e-10, atol=1e-12)


@pytest.mark.book("12.60", name="wl.segment_sum")
def test_a_sum_over_the_nodes_of_graphs() -> None:
    """The book's numbers; assigning with `+=` at repeated indices would give the last rows alone."""
    h, graph = np.arange(14.0).reshape(7, 2), np.array([0, 0, 0, 0, 1, 1, 1])
    naive = np.zeros((2, 2))
    naive[graph] += h
    assert naive.tolist() == [[6, 7], [12, 13]]
    for f in functions("sum"):
        assert f(h, graph, 2).tolist() == [[12, 16], [30, 33]]
        assert f(h, graph, 3).tolist() == [[12, 16], [30, 33], [0, 0]]
        ct = wl.asarray(np.array([[1.0, 2.0], [3.0, 4.0]]))
        _, back = wl.vjp(lambda x, f=f: f(x, graph, 2), wl.asarray(h))
        np.testing.assert_array_equal(back(ct)[0], np.asarray(ct)[graph])


@pytest.mark.book("12.61", name="wl.sparse.segment_max")
def test_means_and_extremes_of_empty_lines_and_ties() -> None:
    ids, x = np.array([0, 0, 0, 2]), np.array([3.0, 1.0, 3.0, -5.0])
    for f in functions("mean"):
        assert f(x, ids, 4).tolist() == [7 / 3, 0.0, -5.0, 0.0]
        slope = wl.grad(lambda x, f=f: f(x, ids, 4).sum())(wl.asarray(x))
        np.testing.assert_allclose(slope, [1 / 3] * 3 + [1.0])
    weights = wl.asarray(np.array([2.0, 0.0, 7.0, 0.0]))
    for f in functions("max"):
        assert f(x, ids, 4).tolist() == [3.0, -np.inf, -5.0, -np.inf]
        slope = wl.grad(lambda x, f=f: (wl.where(weights == 0, 0.0, f(x, ids, 4)) * weights).sum())
        assert slope(wl.asarray(x)).tolist() == [1.0, 0.0, 1.0, 7.0]  # equals share it, the others get nothing
        assert slope(wl.asarray(np.array([3.0, 1.0, 2.0, -5.0]))).tolist() == [2.0, 0.0, 0.0, 7.0]
    for f in functions("min"):
        assert f(x, ids, 4).tolist() == [1.0, np.inf, -5.0, np.inf]


@pytest.mark.book("12.69", name="wl.sparse.segment_softmax")
def test_lines_without_entries_have_no_weights_and_no_nan() -> None:
    """An isolated node has no neighbours to weigh; one whose neighbours are all hidden by -inf weighs each 0."""
    ids, x = np.array([0, 0, 2, 3, 3]), np.array([1.0, 2.0, 800.0, -np.inf, -np.inf])
    for f in functions("softmax"):
        weights = f(x, ids, 5)
        np.testing.assert_allclose(weights, [1 / (1 + np.e), np.e / (1 + np.e), 1.0, 0.0, 0.0], atol=1e-12)
        slope = wl.grad(lambda x, f=f: (f(x, ids, 5) * wl.arange(5.0)).sum())(wl.asarray(x))
        assert np.isfinite(np.asarray(slope)).all()
    pattern = sparse.Pattern.of([0, 0, 2], [1, 2, 0], (4, 3))  # rows 1 and 3 have no neighbour
    for g in (lambda f: f, wl.jit):
        f = g(lambda s, x: sparse.matmul(sparse.segment_softmax(s, pattern.rows), pattern, x))
        scores, features = wl.asarray(np.array([0.0, 0.0, 9.0])), wl.asarray(np.arange(6.0).reshape(3, 2))
        assert f(scores, features).tolist() == [[3.0, 4.0], [0.0, 0.0], [0.0, 1.0], [0.0, 0.0]]
        slopes = wl.grad(lambda s, x, f=f: (f(s, x) ** 2).sum(), argnums=(0, 1))(scores, features)
        assert all(np.isfinite(np.asarray(slope)).all() for slope in slopes)


@given(st.lists(st.integers(0, 3), min_size=1, max_size=9), st.floats(-1e4, 1e4))
@settings(deadline=None, max_examples=40)
def test_softmax_is_a_distribution_on_each_line_and_does_not_overflow(ids: list[int], shift: float) -> None:
    x = np.random.default_rng(len(ids)).normal(size=len(ids)) * 3
    lines = Incidence.of(ids, 4)
    weights = sparse.segment_softmax(wl.asarray(x + shift), lines)
    there = np.bincount(ids, minlength=4) > 0
    np.testing.assert_allclose(sparse.segment_sum(weights, lines), there.astype(float), atol=1e-12)
    np.testing.assert_allclose(weights, by_loop("softmax", x, np.array(ids), 4), rtol=1e-8, atol=1e-12)
    total = np.asarray(sparse.segment_logsumexp(wl.asarray(x + shift), lines))
    np.testing.assert_allclose(total[there], by_loop("logsumexp", x, np.array(ids), 4)[there] + shift, rtol=1e-9)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("in_order", [True, False])
def test_derivatives_of_both_orders(name: str, in_order: bool) -> None:
    rng = np.random.default_rng(2)
    ids = np.array([0, 0, 0, 1, 3, 3, 3])
    ids = ids if in_order else rng.permutation(ids)
    lines, x = Incidence.of(ids, 4), wl.asarray(rng.permutation(14).reshape(7, 2) * 0.3)
    f = getattr(sparse, f"segment_{name}")
    there = wl.asarray(np.array([1.0, 1.0, 0.0, 1.0]))[:, None] == 1.0

    def finite(x: wl.Tensor) -> wl.Tensor:
        return f(x, lines) if name == "softmax" else wl.where(there, f(x, lines), 0.0)

    wl.check_grads(finite, (x,), order=2)
    wl.check_grads(wl.jit(finite), (x,), order=2)


def test_gather_and_sum_are_transposes() -> None:
    lines = Incidence.of([3, 0, 3, 1], 5)
    rng = np.random.default_rng(0)
    x, e = rng.normal(size=(5, 2)), rng.normal(size=(4, 2))
    there = (np.asarray(sparse.gather(wl.asarray(x), lines)) * e).sum()
    back = (x * np.asarray(sparse.segment_sum(wl.asarray(e), lines))).sum()
    np.testing.assert_allclose(there, back)
    np.testing.assert_array_equal(sparse.gather(wl.asarray(x), lines), x[[3, 0, 3, 1]])


def test_what_does_not_fit_is_refused() -> None:
    lines = Incidence.of([0, 1, 1], 2)
    with pytest.raises(ShapeError, match=r"shape \(4,\) for 3 entries"):
        sparse.segment_sum(wl.ones(4), lines)
    with pytest.raises(ShapeError, match=r"x of shape \(3, 2\) for 2 lines"):
        sparse.gather(wl.ones((3, 2)), lines)
    with pytest.raises(DTypeError, match="has no order"):
        sparse.segment_max(wl.ones(3, dtype=wl.complex64), lines)
    with pytest.raises(DTypeError, match="takes real tensors"):
        sparse.segment_softmax(wl.ones(3, dtype=wl.complex64), lines)
    assert sparse.segment_sum(wl.tensor([True, True, False]), lines).tolist() == [1, 1]
