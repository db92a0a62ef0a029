"""Products of vectors, matrices and tensors, and einsum on random notations, against NumPy."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import wonderland as wl

RNG = np.random.default_rng(0)
MATMUL = hnp.mutually_broadcastable_shapes(signature=np.matmul.signature, max_dims=2, max_side=4, min_side=0)


def gradients_match(ours: Any, operands: list[np.ndarray]) -> None:
    """The gradients of a function that is linear in each operand: <g_i, x_i> = <f, w> for every i."""
    out = ours(*[wl.asarray(x) for x in operands])
    weights = RNG.normal(size=out.shape)
    found = wl.grad(lambda *xs: (ours(*xs) * weights).sum(), argnums=tuple(range(len(operands))))(
        *[wl.asarray(x) for x in operands]
    )
    total = float((out.numpy() * weights).sum())
    for gradient, x in zip(found, operands, strict=True):
        assert gradient.shape == x.shape
        assert float((gradient.numpy() * x).sum()) == pytest.approx(total, rel=1e-8, abs=1e-8)


@pytest.mark.book("2.19", "2.20", "2.35", "B2-03", "B2-07", name="wl.matmul")
@given(MATMUL)
@settings(max_examples=100)
def test_matmul(shapes: Any) -> None:
    a, b = (RNG.normal(size=shape) for shape in shapes.input_shapes)
    out = wl.asarray(a) @ wl.asarray(b)
    assert out.shape == shapes.result_shape
    np.testing.assert_allclose(out.numpy(), a @ b, atol=1e-12)
    np.testing.assert_allclose((a @ wl.asarray(b)).numpy(), a @ b, atol=1e-12)
    gradients_match(wl.matmul, [a, b])


@pytest.mark.parametrize("dtype", ("int64", "float16", "bfloat16", "float32", "complex64"))
def test_matmul_dtypes(dtype: str) -> None:
    a, b = RNG.integers(-3, 4, (2, 3)), RNG.integers(-3, 4, (3, 4))
    out = wl.asarray(a, dtype=dtype) @ wl.asarray(b, dtype=dtype)
    assert out.dtype == dtype
    np.testing.assert_array_equal(out.numpy().astype(complex), a @ b)


@pytest.mark.book("2.19", name="wl.matmul")
@pytest.mark.parametrize(
    ("left", "right"),
    (((2, 3), (4, 5)), ((3,), (4,)), ((2, 3), (2,)), ((3,), (2, 3)), ((2, 2, 3), (3, 3, 4))),
)
def test_matmul_errors_name_both_shapes(left: tuple[int, ...], right: tuple[int, ...]) -> None:
    with pytest.raises(wl.errors.ShapeError) as caught:
        wl.zeros(left) @ wl.zeros(right)
    if len(left) < 3:
        assert str(left) in str(caught.value)
        assert str(right) in str(caught.value)
    with pytest.raises(wl.errors.ShapeError, match="scalar"):
        wl.tensor(1.0) @ wl.zeros(3)


@pytest.mark.book("2.11", "2.38", name="wl.dot")
@given(hnp.array_shapes(min_dims=1, max_dims=3, min_side=0, max_side=3), st.data())
def test_dot_inner_tensordot_vecdot(shape: tuple[int, ...], data: Any) -> None:
    a = RNG.normal(size=shape)
    b = RNG.normal(size=shape)
    np.testing.assert_allclose(wl.inner(a, b).numpy(), np.inner(a, b), atol=1e-12)
    np.testing.assert_allclose(wl.vecdot(a, b).numpy(), np.vecdot(a, b), atol=1e-12)
    axis = data.draw(st.integers(-a.ndim, a.ndim - 1))
    np.testing.assert_allclose(wl.vecdot(a, b, axis=axis).numpy(), (a * b).sum(axis), atol=1e-12)
    for axes in range(a.ndim + 1):
        other = np.moveaxis(b, range(a.ndim - axes, a.ndim), range(axes)) if axes else b
        expected = np.tensordot(a, other, axes=axes)
        np.testing.assert_allclose(wl.tensordot(a, other, axes=axes).numpy(), expected, atol=1e-12)
    pairs = data.draw(st.permutations(range(a.ndim)))
    expected = np.tensordot(a, b.transpose(pairs), axes=(pairs, range(a.ndim)))
    ours = wl.tensordot(a, b.transpose(pairs), axes=(list(pairs), list(range(a.ndim))))
    np.testing.assert_allclose(ours.numpy(), expected, atol=1e-12)
    c = np.swapaxes(b, -1, -2) if a.ndim > 1 else b
    np.testing.assert_allclose(wl.dot(a, c).numpy(), np.dot(a, c), atol=1e-12)
    assert wl.dot(a.ravel(), b.ravel()).shape == ()
    assert wl.dot(2.0, a).shape == a.shape


def test_outer_kron_cross_trace() -> None:
    x, y = RNG.normal(size=3), RNG.normal(size=4)
    np.testing.assert_allclose(wl.outer(x, y).numpy(), np.outer(x, y))
    for left, right in (((2, 3), (4, 1)), ((2,), (3,)), ((2,), (3, 2)), ((), (2, 2))):
        a, b = RNG.normal(size=left), RNG.normal(size=right)
        np.testing.assert_allclose(wl.kron(a, b).numpy(), np.kron(a, b))
    a, b = RNG.normal(size=(4, 3)), RNG.normal(size=(3,))
    np.testing.assert_allclose(wl.cross(a, b).numpy(), np.cross(a, b))
    a, b = RNG.normal(size=(3, 4)), RNG.normal(size=(3, 4))
    np.testing.assert_allclose(wl.cross(a, b, axis=0).numpy(), np.cross(a, b, axis=0))
    a = RNG.normal(size=(2, 3, 4))
    for offset in (-3, -1, 0, 2, 5):
        np.testing.assert_allclose(
            wl.trace(a, offset=offset).numpy(), np.trace(a, offset=offset, axis1=-2, axis2=-1), atol=1e-15
        )
    z = np.array([1 + 2j, 3j])
    np.testing.assert_allclose(wl.vecdot(z, z).numpy(), np.vecdot(z, z))
    for f in (
        lambda: wl.outer(a, x),
        lambda: wl.cross(x, y),
        lambda: wl.vecdot(x, y),
        lambda: wl.tensordot(x, y, axes=1),
    ):
        with pytest.raises(wl.errors.ShapeError):
            f()


# --- einsum


@st.composite
def notations(draw: Any) -> tuple[str, list[np.ndarray]]:
    """A random notation with one to four operands: repeated, summed, batched and broadcast indices."""
    letters = "abcde"
    sizes = {c: draw(st.integers(1, 3)) for c in letters}
    count = draw(st.integers(1, 4))
    terms = [draw(st.lists(st.sampled_from(letters), max_size=3)) for _ in range(count)]
    dots = draw(st.booleans())
    batch = tuple(draw(st.lists(st.integers(1, 3), max_size=2))) if dots else ()
    operands, parts = [], []
    for term in terms:
        has_dots = dots and draw(st.booleans())
        lead = (
            tuple(draw(st.sampled_from([1, n])) for n in batch)[draw(st.integers(0, len(batch))) :] if has_dots else ()
        )
        at = draw(st.integers(0, len(term)))
        shape = tuple(sizes[c] for c in term[:at]) + lead + tuple(sizes[c] for c in term[at:])
        parts.append("".join(term[:at]) + ("..." if has_dots else "") + "".join(term[at:]))
        operands.append(RNG.normal(size=shape))
    used = sorted({c for term in terms for c in term})
    text = ",".join(parts)
    if draw(st.booleans()):
        kept = draw(st.permutations(used))[: draw(st.integers(0, len(used)))]
        text += "->" + ("..." if "..." in text else "") + "".join(kept)
    return text, operands


@pytest.mark.book("2.39", "2.41", name="wl.einsum")
@given(notations())
@settings(max_examples=300)
def test_einsum_on_random_notations(case: tuple[str, list[np.ndarray]]) -> None:
    text, operands = case
    expected = np.einsum(text, *operands)
    ours = wl.einsum(text, *operands)
    assert ours.shape == expected.shape
    np.testing.assert_allclose(ours.numpy(), expected, atol=1e-10)
    gradients_match(lambda *xs: wl.einsum(text, *xs), operands)


@pytest.mark.book("2.40", "2.42", name="wl.einsum")
def test_einsum_of_the_book() -> None:
    A, B, C = (RNG.normal(size=s) for s in ((4, 5, 2), (4, 2, 3), (4, 3, 2)))
    np.testing.assert_allclose(wl.einsum("ijz,izk->ijk", A, B).numpy(), A @ B)
    np.testing.assert_allclose(wl.einsum("ijk,ijk->", A, A).numpy(), (A * A).sum())
    np.testing.assert_allclose(wl.einsum("ijz,ikz->ijk", A, C).numpy(), A @ np.swapaxes(C, 1, 2))


def test_einsum_spaces_capitals_and_dtypes() -> None:
    A = RNG.normal(size=(2, 3))
    np.testing.assert_allclose(wl.einsum(" iJ , kJ -> ik ", A, A).numpy(), A @ A.T)
    assert wl.einsum("i,i->", wl.ones(3, dtype="int8"), wl.ones(3, dtype="int8")).dtype == wl.int8
    assert wl.einsum("i,i->", wl.ones(3, dtype="int8"), wl.ones(3)).dtype == wl.float32
    assert wl.einsum("ij,jk", wl.zeros((0, 2)), wl.zeros((2, 3))).shape == (0, 3)
    assert wl.einsum("ij,jk", wl.zeros((2, 0)), wl.zeros((0, 3))).tolist() == [[0, 0, 0]] * 2
    assert wl.einsum(",->", wl.tensor(2.0), wl.tensor(3.0)).item() == 6


@pytest.mark.parametrize(
    ("text", "shapes", "error"),
    (
        ("ij,jk->ik", [(2, 3)], wl.errors.ShapeError),
        ("ij,jk->ik", [(2, 3), (4, 5)], wl.errors.ShapeError),
        ("ij->i", [(2,)], wl.errors.ShapeError),
        ("i->i", [(2, 3)], wl.errors.ShapeError),
        ("ii->i", [(2, 3)], wl.errors.ShapeError),
        ("ii->i", [(1, 3)], wl.errors.ShapeError),
        ("i->ii", [(2,)], wl.errors.InputError),
        ("i->j", [(2,)], wl.errors.InputError),
        ("i1->i", [(2, 3)], wl.errors.InputError),
        ("i.->i", [(2, 3)], wl.errors.InputError),
        ("i->...i->", [(2,)], wl.errors.InputError),
        ("i->i...", [(2,)], None),
    ),
)
def test_einsum_errors(text: str, shapes: list[tuple[int, ...]], error: type[Exception] | None) -> None:
    operands = [np.zeros(s) for s in shapes]
    if error is None:
        assert wl.einsum(text, *operands).shape == np.einsum(text, *operands).shape
        return
    with pytest.raises(error, match="einsum"):
        wl.einsum(text, *operands)
    with pytest.raises(wl.errors.InputError):
        wl.einsum(np.zeros(2), [0])  # type: ignore[arg-type]


def multiply_adds(text: str, shapes: list[tuple[int, ...]], pairs: Any) -> int:
    """What an order of pairwise products costs, counted here from scratch."""
    left, right = text.split("->")
    terms = [set(t) for t in left.split(",")]
    sizes = {c: n for t, s in zip(left.split(","), shapes, strict=True) for c, n in zip(t, s, strict=True)}
    total = 0
    for i, j in pairs:
        a, b = terms.pop(j), terms.pop(i)
        total += math.prod(sizes[c] for c in a | b)
        terms.append({c for c in a | b if c in right or any(c in t for t in terms)})
    assert len(terms) == 1
    return total


def left_to_right(n: int) -> list[tuple[int, int]]:
    return [(0, 1)] + [(0, n - 1 - i) for i in range(1, n - 1)]


@pytest.mark.book("2.39", name="wl.einsum_path")
@pytest.mark.parametrize(
    ("text", "shapes"),
    (
        ("ab,bc,cd->ad", [(100, 2), (2, 100), (100, 2)]),
        ("ab,bc,cd,de->ae", [(50, 50), (50, 50), (50, 50), (50, 1)]),
        ("ia,jb,kc,abc->ijk", [(20, 3), (20, 3), (20, 3), (3, 3, 3)]),
        ("bhqd,bhkd,bhkv->bhqv", [(2, 4, 30, 8), (2, 4, 30, 8), (2, 4, 30, 8)]),
    ),
)
def test_the_order_of_products_is_not_naive(text: str, shapes: list[tuple[int, ...]]) -> None:
    operands = [RNG.normal(size=s) for s in shapes]
    path = wl.einsum_path(text, *operands)
    assert path.multiply_adds == multiply_adds(text, shapes, path.pairs)
    naive = multiply_adds(text, shapes, left_to_right(len(shapes)))
    assert path.multiply_adds <= naive
    # no pair first gives less (all orders of up to four operands)
    for other in all_orders(len(shapes)):
        assert path.multiply_adds <= multiply_adds(text, shapes, other)
    np.testing.assert_allclose(wl.einsum(text, *operands).numpy(), np.einsum(text, *operands, optimize=True), rtol=1e-9)


def all_orders(n: int) -> list[list[tuple[int, int]]]:
    if n == 1:
        return [[]]
    return [[(i, j), *rest] for i in range(n) for j in range(i + 1, n) for rest in all_orders(n - 1)]


def test_a_long_chain_costs_what_the_best_order_costs() -> None:
    """Ten matrices and a vector: from the vector's end every step is a matrix-vector product."""
    n = 40
    letters = "abcdefghijk"
    text = ",".join(letters[i : i + 2] for i in range(10)) + ",k->a"
    operands = [RNG.normal(size=(n, n)) / n for _ in range(10)] + [RNG.normal(size=n)]
    path = wl.einsum_path(text, *operands)
    assert path.multiply_adds == 10 * n * n
    expected = operands[-1]
    for M in reversed(operands[:-1]):
        expected = M @ expected
    np.testing.assert_allclose(wl.einsum(text, *operands).numpy(), expected, rtol=1e-9)
