"""All of NumPy's indexing, read with `x[...]` and written with `x.at[...]`, in value and in gradient."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import wonderland as wl


@st.composite
def slices(draw: Any, n: int) -> slice:
    bound = st.none() | st.integers(-n - 2, n + 2)
    return slice(draw(bound), draw(bound), draw(st.none() | st.integers(-3, 3).filter(bool)))


@st.composite
def indexed(draw: Any, advanced: bool = True, max_side: int = 4) -> tuple[np.ndarray, Any]:
    """An array and an index into it: integers, slices, new axes, an ellipsis, arrays and masks, mixed."""
    shape = tuple(draw(st.lists(st.integers(1 if advanced else 0, max_side), max_size=4)))
    x = np.arange(1.0, 1.0 + np.prod(shape, dtype=int)).reshape(shape)
    block = tuple(draw(st.lists(st.integers(0, 3), min_size=1, max_size=2)))
    entries: list[Any] = []
    axis = 0
    end = draw(st.integers(0, len(shape)))
    masked = False
    while axis < end:
        n = shape[axis]
        kinds = ["slice"] + ["int"] * (n > 0) + ["array", "mask"] * advanced
        kind = draw(st.sampled_from(kinds))
        if kind == "slice":
            entries.append(draw(slices(n)))
        elif kind == "int":
            entries.append(draw(st.integers(-n, n - 1)))
        elif kind == "array" and not masked:
            size = draw(st.sampled_from([block, block[-1:], (1,), ()]))
            values = draw(st.lists(st.integers(-n, n - 1), min_size=int(np.prod(size)), max_size=int(np.prod(size))))
            entries.append(np.array(values, dtype=np.int64).reshape(size))
        elif kind == "mask" and not masked and all(not isinstance(e, np.ndarray) for e in entries):
            rank = draw(st.integers(1, end - axis))
            bits = draw(st.lists(st.booleans(), min_size=1, max_size=8))
            mask = np.resize(np.array(bits), shape[axis : axis + rank])
            entries.append(mask)
            masked = True
            axis += rank - 1
        else:
            entries.append(slice(None))
        axis += 1
    for _ in range(draw(st.integers(0, 2))):
        entries.insert(draw(st.integers(0, len(entries))), None)
    if draw(st.booleans()):
        where = draw(st.integers(0, len(entries)))
        entries.insert(where, Ellipsis)
        # the entries after the ellipsis index the last axes: they must fit there, which NumPy decides below
    index = tuple(entries)
    try:
        x[index]
    except IndexError:
        index = tuple(e for e in entries if e is not Ellipsis)
    if len(index) == 1 and draw(st.booleans()):
        index = index[0]
    return x, index


def as_ours(index: Any) -> Any:
    if isinstance(index, tuple):
        return tuple(as_ours(e) for e in index)
    return wl.asarray(index) if isinstance(index, np.ndarray) else index


@pytest.mark.book("2.03", name="wl.Tensor.__getitem__")
@given(indexed(advanced=False))
@settings(max_examples=100)
def test_basic_indexing(case: tuple[np.ndarray, Any]) -> None:
    x, index = case
    np.testing.assert_array_equal(wl.asarray(x)[index].numpy(), x[index])
    primal, _ = wl.jvp(lambda x: x[index], (wl.asarray(x),), (wl.asarray(x),))
    np.testing.assert_array_equal(primal.numpy(), x[index])


@pytest.mark.book("2.03", name="wl.Tensor.__getitem__")
@given(indexed())
@settings(max_examples=300)
def test_all_indexing_and_its_gradient(case: tuple[np.ndarray, Any]) -> None:
    x, index = case
    expected = x[index]
    ours = wl.asarray(x)[as_ours(index)]
    assert ours.shape == expected.shape
    np.testing.assert_array_equal(ours.numpy(), expected)
    # traced values take another way than plain ones, which leave the work to NumPy
    primal, tangent = wl.jvp(lambda x: x[as_ours(index)], (wl.asarray(x),), (wl.asarray(2 * x),))
    assert primal.shape == expected.shape
    np.testing.assert_array_equal(primal.numpy(), expected)
    np.testing.assert_array_equal(tangent.numpy(), 2 * expected)
    # the gradient of <x[index], w> puts w back, adding where an element was read several times
    weights = np.random.default_rng(0).normal(size=expected.shape)
    scattered = np.zeros_like(x)
    np.add.at(scattered, index, weights)
    gradient = wl.grad(lambda x: (x[as_ours(index)] * weights).sum())(wl.asarray(x))
    np.testing.assert_allclose(gradient.numpy(), scattered, atol=1e-12)


@pytest.mark.book("2.03", "2.04", name="wl.Tensor.__getitem__")
def test_the_book_writes_indices_from_1() -> None:
    """X_i ~ (b, c), X_ijk a scalar, X_{i,:,j:k} ~ (b, k - j), here counted from 0."""
    X = wl.arange(2 * 3 * 4).reshape(2, 3, 4)
    assert X[0].shape == (3, 4)
    assert X[1, 2, 3].shape == ()
    assert X[1, 2, 3].item() == 23
    assert X[0, :, 1:3].shape == (3, 2)


def test_repeated_indices_accumulate() -> None:
    gradient = wl.grad(lambda x: x[wl.tensor([0, 0, 2, 0])].sum())(wl.zeros(3))
    np.testing.assert_array_equal(gradient.numpy(), [3, 0, 1])
    twice = wl.grad(lambda x: (x[wl.tensor([1, 1])] * wl.tensor([2.0, 5.0])).sum())(wl.zeros(2))
    np.testing.assert_array_equal(twice.numpy(), [0, 7])


@pytest.mark.parametrize(
    "index",
    (
        4,
        -5,
        (0, 3),
        [0, 4],
        [-5],
        (slice(None), [3]),
        np.array([[0, 1], [2, 9]]),
        (0, 0, 0),
        (..., 3),
    ),
)
def test_out_of_range_raises(index: Any) -> None:
    x = wl.zeros((4, 3))
    with pytest.raises(IndexError):
        _ = x.numpy()[index]
    with pytest.raises(wl.errors.IndexOutOfRange):
        _ = x[as_ours(index)]
    with pytest.raises(wl.errors.IndexOutOfRange):
        x.at[as_ours(index)].set(1.0)
    with pytest.raises(wl.errors.IndexOutOfRange):
        wl.grad(lambda x: x[as_ours(index)].sum())(x)


def test_out_of_range_raises_even_when_nothing_would_be_read() -> None:
    with pytest.raises(wl.errors.IndexOutOfRange):
        _ = wl.zeros((3, 0))[wl.tensor([5])]
    with pytest.raises(wl.errors.IndexOutOfRange):
        _ = wl.zeros((0, 3))[wl.tensor([0])]
    assert wl.zeros((0, 3))[wl.zeros(0, dtype="int64")].shape == (0, 3)


@pytest.mark.parametrize(
    ("index", "error"),
    (
        (1.5, wl.errors.DTypeError),
        ("a", wl.errors.DTypeError),
        (np.array([0.5]), wl.errors.DTypeError),
        (slice(0.5), wl.errors.DTypeError),
        (slice(None, None, 0), wl.errors.DTypeError),
        ((..., ...), wl.errors.AxisError),
        (np.array([True, False]), wl.errors.ShapeError),
        ((np.array([0, 1]), np.array([0, 1, 2])), wl.errors.ShapeError),
    ),
)
def test_bad_indices(index: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        _ = wl.zeros((4, 3))[index]


def test_every_kind_of_integer_and_container() -> None:
    data = np.arange(12).reshape(4, 3)
    x = wl.asarray(data)
    for dtype in ("int8", "int32", "uint8", "uint64"):
        np.testing.assert_array_equal(x[wl.tensor([3, 0], dtype=dtype)].numpy(), data[[3, 0]])
    assert x[np.int32(1), wl.tensor(2)].item() == 5
    np.testing.assert_array_equal(x[[1, 2]].numpy(), data[[1, 2]])
    np.testing.assert_array_equal(x[[[1], [2]], [[0, 1]]].numpy(), data[[[1], [2]], [[0, 1]]])
    np.testing.assert_array_equal(x[(0, 1), :].numpy(), data[(0, 1), :])
    np.testing.assert_array_equal(x[[]].numpy(), data[[]])
    np.testing.assert_array_equal(x[[True, False, True, False]].numpy(), data[[True, False, True, False]])
    np.testing.assert_array_equal(x[range(2)].numpy(), data[range(2)])
    assert x[()].shape == (4, 3)


def test_a_single_bool_is_a_new_axis() -> None:
    data = np.arange(6.0).reshape(2, 3)
    x = wl.asarray(data)
    traced = lambda index: wl.jvp(lambda x: x[index], (x,), (x,))[0]
    for index in (True, False, (True, 0), (0, True), (np.array([0, 1]), True), (..., True), (None, True)):
        assert x[as_ours(index)].shape == data[index].shape
        np.testing.assert_array_equal(x[as_ours(index)].numpy(), data[index])
        np.testing.assert_array_equal(traced(as_ours(index)).numpy(), data[index])


def test_iteration_and_length() -> None:
    x = wl.arange(6).reshape(3, 2)
    assert len(x) == 3
    assert [row.tolist() for row in x] == [[0, 1], [2, 3], [4, 5]]
    with pytest.raises(wl.errors.InputError):
        len(wl.tensor(1.0))
    with pytest.raises(wl.errors.InputError):
        iter(wl.tensor(1.0))


def test_computed_indices_under_transformations() -> None:
    x = wl.asarray(np.random.default_rng(0).normal(size=(5, 3)))
    rows = wl.tensor([4, 0, 4])
    batched = wl.vmap(lambda i: x[i])(rows)
    np.testing.assert_array_equal(batched.numpy(), x.numpy()[[4, 0, 4]])
    both = wl.vmap(lambda row, i: row[i])(x[:3], wl.tensor([2, 1, 0]))
    np.testing.assert_array_equal(both.numpy(), x.numpy()[[0, 1, 2], [2, 1, 0]])
    second = wl.grad(lambda x: wl.grad(lambda x: (x[rows] ** 3).sum())(x).sum())(x)
    np.testing.assert_allclose(second.numpy(), 6 * x.numpy() * np.array([[1], [0], [0], [0], [2]]), atol=1e-12)


# --- updates

MODES = {
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "min": np.minimum,
    "max": np.maximum,
}


@given(indexed())
@settings(max_examples=150)
def test_updates_against_numpy(case: tuple[np.ndarray, Any]) -> None:
    x, index = case
    ours = as_ours(index)
    rng = np.random.default_rng(0)
    values = rng.normal(size=x[index].shape)
    expected = x.copy()
    expected[index] = values
    np.testing.assert_array_equal(wl.asarray(x).at[ours].set(values).numpy(), expected)
    traced, _ = wl.jvp(lambda x: x.at[ours].set(values), (wl.asarray(x),), (wl.asarray(x),))
    np.testing.assert_array_equal(traced.numpy(), expected)
    expected[index] = 7.5
    np.testing.assert_array_equal(wl.asarray(x).at[ours].set(7.5).numpy(), expected)
    for mode, ufunc in MODES.items():
        expected = x.copy()
        ufunc.at(expected, index, values)
        np.testing.assert_allclose(getattr(wl.asarray(x).at[ours], mode)(values).numpy(), expected, atol=1e-12)
    positive = np.abs(values) + 1
    expected = x.copy()
    np.divide.at(expected, index, positive)
    np.testing.assert_allclose(wl.asarray(x).at[ours].divide(positive).numpy(), expected, rtol=1e-12)
    np.testing.assert_array_equal(wl.asarray(x).at[ours].get().numpy(), x[index])


@given(indexed(max_side=3))
@settings(max_examples=40)
def test_gradients_of_set_and_add(case: tuple[np.ndarray, Any]) -> None:
    x, index = case
    ours = as_ours(index)
    rng = np.random.default_rng(1)
    values, weights = rng.normal(size=x[index].shape), rng.normal(size=x.shape)

    def loss(mode: str) -> Any:
        return lambda x, v: (getattr(x.at[ours], mode)(v) * weights).sum()

    gx, gv = wl.grad(loss("add"), argnums=(0, 1))(wl.asarray(x), wl.asarray(values))
    np.testing.assert_allclose(gx.numpy(), weights)
    np.testing.assert_allclose(gv.numpy(), weights[index])
    gx, gv = wl.grad(loss("set"), argnums=(0, 1))(wl.asarray(x), wl.asarray(values))
    kept = weights.copy()
    kept[index] = 0
    np.testing.assert_allclose(gx.numpy(), kept)
    # of several values set at one place only the last counts
    numbers = np.full(x.shape, -1.0)
    numbers[index] = np.arange(values.size).reshape(values.shape)
    stays = numbers[index] == np.arange(values.size).reshape(values.shape)
    np.testing.assert_allclose(gv.numpy(), weights[index] * stays)


def test_python_numbers_keep_the_precision_of_the_tensor() -> None:
    x = wl.zeros(2, dtype="float64").at[0].set(0.1)
    assert x[0].item() == 0.1
    assert wl.zeros(2, dtype="int8").at[1].add(3).dtype == wl.int8


def test_values_that_do_not_fit() -> None:
    with pytest.raises(wl.errors.DTypeError):
        wl.zeros(2, dtype="int64").at[0].set(1.5)
    with pytest.raises(wl.errors.DTypeError):
        wl.zeros(2).at[0].set(1j)
    with pytest.raises(wl.errors.ShapeError, match=r"\(3,\).*\(2,\)"):
        wl.zeros(4).at[:2].set(wl.ones(3))
    with pytest.raises(wl.errors.ShapeError):
        wl.zeros(4).at[wl.tensor([0, 1])].set(wl.ones(3))
    with pytest.raises(wl.errors.InputError, match="index is missing"):
        wl.zeros(4).at.set(1.0)


def test_apply_and_repeated_minimum() -> None:
    x = wl.tensor([1.0, 4.0, 9.0])
    np.testing.assert_array_equal(x.at[1:].apply(wl.sqrt).numpy(), [1, 2, 3])
    lowest = x.at[wl.tensor([0, 0])].min(wl.tensor([0.5, -2.0]))
    np.testing.assert_array_equal(lowest.numpy(), [-2, 4, 9])
    # two equal minima share the gradient
    g = wl.grad(lambda v: wl.ones(1).at[wl.tensor([0, 0])].min(v).sum())(wl.tensor([-2.0, -2.0]))
    np.testing.assert_array_equal(g.numpy(), [0.5, 0.5])


def test_multiply_on_slices_is_differentiable() -> None:
    x, v = wl.tensor([2.0, 3.0, 4.0]), wl.tensor([5.0, 7.0])
    gx, gv = wl.grad(lambda x, v: x.at[1:].multiply(v).sum(), argnums=(0, 1))(x, v)
    np.testing.assert_array_equal(gx.numpy(), [1, 5, 7])
    np.testing.assert_array_equal(gv.numpy(), [3, 4])
    with pytest.raises(wl.errors.GradientError, match="multiply"):
        wl.grad(lambda v: x.at[wl.tensor([0, 0])].multiply(v).sum())(v)


def test_updates_under_vmap() -> None:
    X = wl.asarray(np.arange(6.0).reshape(3, 2))
    rows = wl.vmap(lambda x, i: x.at[i].set(-1.0))(X, wl.tensor([0, 1, 0]))
    np.testing.assert_array_equal(rows.numpy(), [[-1, 1], [2, -1], [-1, 5]])
    shared = wl.vmap(lambda i: X.at[i].add(10.0))(wl.tensor([2, 0]))
    assert shared.shape == (2, 3, 2)
    np.testing.assert_array_equal(shared[0].numpy(), [[0, 1], [2, 3], [14, 15]])


def test_half_precision_sums_are_accumulated_in_float32() -> None:
    ids = wl.zeros(1000, dtype="int64")
    for dtype in ("float16", "bfloat16"):
        total = wl.zeros(1, dtype=dtype).at[ids].add(wl.full((1000,), 0.125, dtype=dtype))
        assert total.dtype == dtype
        assert total[0].item() == 125
