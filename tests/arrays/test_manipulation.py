"""Shapes, axes, joining, cutting, repeating and padding against NumPy, and their adjoints."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import wonderland as wl

arrays = hnp.arrays(
    np.float64, hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=3), elements=st.floats(-9, 9)
)


def check(ours: Callable[..., Any], theirs: Callable[..., Any], *data: np.ndarray) -> None:
    """The same values as NumPy, and the adjoint of a linear map: <f(x), w> = <x, f^T(w)>."""
    out, expected = ours(*[wl.asarray(d) for d in data]), theirs(*data)
    assert out.shape == expected.shape
    np.testing.assert_array_equal(out.numpy(), expected)
    weights = np.random.default_rng(0).normal(size=expected.shape)
    gradients = wl.grad(lambda *xs: (ours(*xs) * weights).sum(), argnums=tuple(range(len(data))))(
        *[wl.asarray(d) for d in data]
    )
    assert [g.shape for g in gradients] == [d.shape for d in data]
    paired = sum(float((g.numpy() * d).sum()) for g, d in zip(gradients, data, strict=True))
    assert paired == pytest.approx(float((expected * weights).sum()), rel=1e-9, abs=1e-9)


@pytest.mark.book("2.06", name="wl.reshape")
@given(arrays, st.data())
def test_shapes(x: np.ndarray, data: Any) -> None:
    check(wl.ravel, np.ravel, x)
    check(wl.flatten, lambda x: x.reshape(-1) if x.size else np.zeros(x.size), x)
    check(lambda x: x.reshape(x.size), np.ravel, x)
    check(wl.squeeze, np.squeeze, x)
    check(wl.atleast_1d, np.atleast_1d, x)
    check(wl.atleast_2d, np.atleast_2d, x)
    place = data.draw(st.integers(-x.ndim - 1, x.ndim))
    check(lambda x: wl.expand_dims(x, axis=place), lambda x: np.expand_dims(x, place), x)
    check(lambda x: wl.squeeze(wl.expand_dims(x, axis=place), place), lambda x: x, x)
    check(lambda x: wl.expand_dims(x, axis=(0, -1)), lambda x: np.expand_dims(x, (0, -1)), x)
    if x.size:
        check(lambda x: wl.reshape(x, (-1, 1)), lambda x: x.reshape(-1, 1), x)


@given(arrays, st.data())
def test_axes(x: np.ndarray, data: Any) -> None:
    order = data.draw(st.permutations(range(x.ndim)))
    check(lambda x: wl.permute_dims(x, order), lambda x: np.transpose(x, order), x)
    check(lambda x: x.T, lambda x: x.T, x)
    check(lambda x: x.transpose(), np.transpose, x)
    if x.ndim:
        axes = st.integers(-x.ndim, x.ndim - 1)
        a, b = data.draw(axes), data.draw(axes)
        check(lambda x: wl.swapaxes(x, a, b), lambda x: np.swapaxes(x, a, b), x)
        check(lambda x: wl.moveaxis(x, a, b), lambda x: np.moveaxis(x, a, b), x)
        check(lambda x: wl.flip(x, axis=a), lambda x: np.flip(x, a), x)
        shift = data.draw(st.integers(-5, 5))
        check(lambda x: wl.roll(x, shift, axis=a), lambda x: np.roll(x, shift, a), x)
        pieces = np.array_split(x, 1, axis=a)
        np.testing.assert_array_equal(wl.split(wl.asarray(x), 1, axis=a)[0].numpy(), pieces[0])
        rest = wl.unstack(wl.asarray(x), axis=a)
        assert len(rest) == x.shape[a]
        for i, part in enumerate(rest):
            np.testing.assert_array_equal(part.numpy(), np.take(x, i, axis=a))
    if x.ndim > 1:
        check(wl.matrix_transpose, lambda x: np.swapaxes(x, -1, -2), x)
        check(lambda x: wl.moveaxis(x, (0, 1), (-1, 0)), lambda x: np.moveaxis(x, (0, 1), (-1, 0)), x)
        check(lambda x: wl.roll(x, (1, 2), axis=(0, 1)), lambda x: np.roll(x, (1, 2), (0, 1)), x)
    check(wl.flip, np.flip, x)
    check(lambda x: wl.roll(x, 2), lambda x: np.roll(x, 2), x)


@pytest.mark.book("2.07", name="wl.broadcast_to")
@given(hnp.mutually_broadcastable_shapes(num_shapes=2, max_dims=3, max_side=3))
def test_broadcasting(shapes: Any) -> None:
    a, b = (np.random.default_rng(1).normal(size=shape) for shape in shapes.input_shapes)
    check(
        lambda a: wl.broadcast_to(a, shapes.result_shape),
        lambda a: np.broadcast_to(a, shapes.result_shape),
        a,
    )
    for ours, theirs in zip(wl.broadcast_arrays(a, b), np.broadcast_arrays(a, b), strict=True):
        np.testing.assert_array_equal(ours.numpy(), theirs)
    assert wl.broadcast_shapes(a.shape, b.shape) == shapes.result_shape
    check(lambda a, b: a + b, lambda a, b: a + b, a, b)


@given(arrays, st.data())
def test_repeating(x: np.ndarray, data: Any) -> None:
    count = data.draw(st.integers(0, 3))
    check(lambda x: wl.repeat(x, count), lambda x: np.repeat(x, count), x)
    times = tuple(data.draw(st.lists(st.integers(0, 3), max_size=3)))
    check(lambda x: wl.tile(x, times), lambda x: np.tile(x, times), x)
    if x.ndim:
        axis = data.draw(st.integers(-x.ndim, x.ndim - 1))
        n = x.shape[axis]
        counts = data.draw(st.lists(st.integers(0, 3), min_size=n, max_size=n))
        check(
            lambda x: wl.repeat(x, wl.asarray(np.array(counts, int)), axis=axis),
            lambda x: np.repeat(x, np.array(counts, int), axis=axis),
            x,
        )


@pytest.mark.parametrize("mode", ("constant", "edge", "reflect", "symmetric", "wrap"))
@given(
    hnp.arrays(
        np.float64,
        hnp.array_shapes(min_dims=1, max_dims=3, min_side=1, max_side=4),
        elements=st.floats(-9, 9),
    ),
    st.data(),
)
def test_padding(mode: str, x: np.ndarray, data: Any) -> None:
    pair = st.tuples(st.integers(0, 5), st.integers(0, 5))
    widths = data.draw(st.integers(0, 3) | pair | st.lists(pair, min_size=x.ndim, max_size=x.ndim))
    check(lambda x: wl.pad(x, widths, mode=mode), lambda x: np.pad(x, widths, mode=mode), x)  # type: ignore[call-overload]


def test_padding_with_a_value() -> None:
    x = np.arange(4.0).reshape(2, 2)
    for value in (2, 0.1, -1.5, 0, float("inf")):
        ours = wl.pad(wl.asarray(x), ((1, 0), (0, 2)), constant_values=value)
        np.testing.assert_array_equal(ours.numpy(), np.pad(x, ((1, 0), (0, 2)), constant_values=value))
    gx, gv = wl.grad(lambda x, v: (wl.pad(x, 1, constant_values=v) ** 2).sum(), argnums=(0, 1))(
        wl.asarray(x), wl.tensor(3.0, wl.float64)
    )
    np.testing.assert_array_equal(gx.numpy(), 2 * x)
    assert gv.item() == 2 * 3.0 * 12
    assert wl.pad(wl.ones(2, dtype="bool"), 1).dtype == wl.bool
    assert wl.pad(wl.zeros((0,)), 2).shape == (4,)
    with pytest.raises(wl.errors.ShapeError):
        wl.pad(wl.zeros((0,)), 2, mode="edge")
    with pytest.raises(wl.errors.ShapeError):
        wl.pad(wl.zeros((2, 2)), ((1, 2), (3, 4), (5, 6)))
    with pytest.raises(wl.errors.InputError, match="mode"):
        wl.pad(wl.zeros(2), 1, mode="mirror")
    with pytest.raises(wl.errors.InputError, match="negative"):
        wl.pad(wl.zeros(2), -1)


@pytest.mark.book("2.18", name="wl.stack")
@given(arrays, st.integers(1, 3), st.data())
def test_joining(x: np.ndarray, count: int, data: Any) -> None:
    rng = np.random.default_rng(2)
    parts = [rng.normal(size=x.shape) for _ in range(count)]
    place = data.draw(st.integers(-x.ndim - 1, x.ndim))
    check(lambda *xs: wl.stack(xs, axis=place), lambda *xs: np.stack(xs, axis=place), *parts)
    check(lambda *xs: wl.concat(xs, axis=None), lambda *xs: np.concatenate(xs, axis=None), *parts)
    check(lambda *xs: wl.vstack(xs), lambda *xs: np.vstack(xs), *parts)
    check(lambda *xs: wl.hstack(xs), lambda *xs: np.hstack(xs), *parts)
    if x.ndim:
        axis = data.draw(st.integers(-x.ndim, x.ndim - 1))
        shape = list(x.shape)
        for i in range(count):
            shape[axis] = i
            parts[i] = rng.normal(size=shape)
        check(lambda *xs: wl.concat(xs, axis=axis), lambda *xs: np.concatenate(xs, axis=axis), *parts)


@pytest.mark.book("2.18", name="wl.unstack")
def test_the_gradient_of_stack_is_unstack() -> None:
    rows = [wl.zeros(3) for _ in range(4)]
    G = wl.asarray(np.arange(12.0, dtype=np.float32).reshape(4, 3))
    _, pull = wl.vjp(lambda *rows: wl.stack(rows), *rows)
    for gradient, row in zip(pull(G), wl.unstack(G), strict=True):
        np.testing.assert_array_equal(gradient.numpy(), row.numpy())


@given(st.integers(0, 12), st.data())
def test_splitting(n: int, data: Any) -> None:
    x = np.arange(n * 2.0).reshape(n, 2)
    cuts = data.draw(st.lists(st.integers(-n - 1, n + 2), max_size=4))
    ours, theirs = wl.split(wl.asarray(x), cuts), np.split(x, cuts)
    assert [o.shape for o in ours] == [t.shape for t in theirs]
    for o, t in zip(ours, theirs, strict=True):
        np.testing.assert_array_equal(o.numpy(), t)
    if n % 3 == 0:
        assert [o.tolist() for o in wl.split(wl.asarray(x), 3)] == [t.tolist() for t in np.split(x, 3)]
    else:
        with pytest.raises(wl.errors.ShapeError, match="does not divide"):
            wl.split(wl.asarray(x), 3)


def test_joining_promotes() -> None:
    assert wl.concat([wl.ones(1, dtype="int8"), wl.ones(1)]).dtype == wl.float32
    assert wl.stack([wl.ones((), dtype="float64"), 2.5]).dtype == wl.float64


def bad(f: Callable[[], Any], error: type[Exception], *words: str) -> None:
    with pytest.raises(error) as caught:
        f()
    assert all(word in str(caught.value) for word in words)


def test_errors_name_the_shapes() -> None:
    x = wl.zeros((2, 3))
    bad(lambda: x.reshape(4, 2), wl.errors.ShapeError, "(2, 3)", "(4, 2)", "6")
    bad(lambda: x.reshape(-1, -1), wl.errors.ShapeError, "(-1, -1)")
    bad(lambda: x.reshape(-1, 0), wl.errors.ShapeError)
    bad(lambda: x.reshape("ab"), wl.errors.ShapeError)  # type: ignore[arg-type]
    bad(lambda: wl.broadcast_to(x, (3, 3)), wl.errors.ShapeError, "(2, 3)", "(3, 3)")
    bad(lambda: x + wl.zeros((3, 2)), wl.errors.ShapeError, "add", "(2, 3)", "(3, 2)")
    bad(lambda: wl.squeeze(x, 0), wl.errors.ShapeError, "(2, 3)")
    bad(lambda: wl.concat([]), wl.errors.InputError)
    bad(lambda: wl.concat([x, wl.zeros((2, 4))]), wl.errors.ShapeError, "(2, 3)", "(2, 4)")
    bad(lambda: wl.concat([wl.tensor(1.0)]), wl.errors.ShapeError, "wl.stack")
    bad(lambda: wl.stack([x, wl.zeros(3)]), wl.errors.ShapeError, "(2, 3)", "(3,)")
    bad(lambda: wl.transpose(x, (0, 0)), wl.errors.AxisError)
    bad(lambda: wl.transpose(x, (0,)), wl.errors.AxisError)
    bad(lambda: wl.matrix_transpose(wl.zeros(3)), wl.errors.ShapeError)
    bad(lambda: wl.moveaxis(x, (0, 0), (1, 0)), wl.errors.AxisError)
    bad(lambda: wl.flatten(x, 1, 0), wl.errors.AxisError)
    bad(lambda: wl.repeat(x, 1.5), wl.errors.InputError)
    bad(lambda: wl.repeat(x, -1), wl.errors.InputError)
    bad(lambda: wl.repeat(x, [1, 2, 3, 4], axis=0), wl.errors.InputError)
    bad(lambda: wl.roll(x, (1, 2), axis=0), wl.errors.AxisError)
    bad(lambda: wl.tile(wl.zeros(1 << 20), (1 << 30, 1 << 10)), wl.errors.SizeError, "GiB")


@pytest.mark.book("1.13", "2.06", name="wl.Tensor.T")
def test_a_vector_has_no_orientation() -> None:
    x = wl.zeros(3)
    assert x.T.shape == (3,)
    assert "orientation" in str(wl.transpose.__doc__)
    assert x[:, None].shape == (3, 1)
    assert x[None, :].shape == (1, 3)
    assert x[:, None].T.shape == (1, 3)
    for f in (lambda x: x[:, None], lambda x: x.unsqueeze(0), lambda x: x.reshape(3, 1).T):
        gradient = wl.grad(lambda x, f=f: (f(x) ** 2).sum())(wl.ones(3))
        assert gradient.shape == (3,)
