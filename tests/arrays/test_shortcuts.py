"""The short way of functions and operators: it gives what the long one gives, and is taken by nothing unusual."""

from __future__ import annotations

import inspect
import itertools
import operator
import pickle
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import wonderland as wl
from wonderland import arrays
from wonderland.arrays.methods import SHORT
from wonderland.core import dtypes, evaluation
from wonderland.core.evaluation import SMALL
from wonderland.core.primitive import TABLE
from wonderland.core.shortcuts import of_axes, of_one, of_two
from wonderland.core.tensor import wrap

Function = Callable[..., Any]
METHODS = {maker: [getattr(wl.Tensor, name) for name in table] for maker, table in SHORT.items()}
VIEWS = [wl.reshape, wl.transpose, wl.swapaxes, wl.squeeze, wl.expand_dims]
SHORTENED = [f for name in vars(arrays)["__all__"] if hasattr(f := getattr(arrays, name), "__wrapped__")]
FUNCTIONS = [f for f in SHORTENED if f not in VIEWS]


def arity(f: Function) -> int:
    return len([p for p in inspect.signature(f).parameters.values() if p.default is p.empty])


OVER_AXES = [f for f in FUNCTIONS if "axis" in inspect.signature(f).parameters] + METHODS[of_axes]
OF_ONE = [f for f in FUNCTIONS if arity(f) == 1 and f not in OVER_AXES] + METHODS[of_one]
OF_TWO = [f for f in FUNCTIONS if arity(f) == 2] + METHODS[of_two]
NUMBERS: list[Any] = [
    *(True, False, 0, 1, -1, 2, 127, 128, 255, 300, -129, 65504, 2**31, 2**63, 2**64, 10**400),
    *(0.0, -0.0, 1.0, 0.1, -2.5, 1e-50, 65503.9, 65504.0, 1e39, 1e300, float("nan"), float("inf"), -float("inf")),
    *(1 + 2j, np.float32(2), np.float64(0.1), np.int8(3), np.bool_(True), np.array(3.0), np.ones(2, np.float32)),
]


def name(f: Function) -> str:
    return f.__qualname__


def sample(dtype: np.dtype[Any], shape: tuple[int, ...] = (2, 3), seed: int = 0) -> wl.Tensor:
    numbers = np.random.default_rng(seed).integers(0 if dtype.kind in "bu" else -4, 5, shape)
    step = 1j if dtype.kind == "c" else 1 if dtype.kind in "biu" else 0.5
    return wrap(np.asarray(numbers * step).astype(dtype))


def outcome(f: Function, *args: object, **settings: object) -> object:
    """All that can be seen of a call: the bits, shape and type of the result, or the error."""
    try:
        with np.errstate(all="ignore"):
            found = f(*args, **settings)
    except Exception as error:
        return type(error), str(error).splitlines()[0]
    if not isinstance(found, wl.Tensor):
        return found
    data = found._data
    assert type(data) is np.ndarray
    assert found._node is None
    real = data == data
    return data.dtype, data.shape, real.tobytes(), np.where(real, data, np.array(0, data.dtype)).tobytes()


def same(f: Function, *args: object, **settings: object) -> None:
    assert outcome(f, *args, **settings) == outcome(f.__wrapped__, *args, **settings)  # type: ignore[attr-defined]


# --- the same results


def test_what_has_a_short_way() -> None:
    found = {f.__name__ for f in FUNCTIONS}
    assert {"add", "divide", "maximum", "less", "exp", "tanh", "sigmoid", "relu", "sum", "max", "any"} <= found
    assert all(f is getattr(wl, f.__name__) for f in FUNCTIONS)


@pytest.mark.parametrize("f", OF_ONE, ids=name)
def test_one(f: Function) -> None:
    for dtype, shape in itertools.product(dtypes.ALL, [(2, 3), (), (0,), (3, 0)]):
        same(f, sample(dtype, shape))
    same(f, sample(dtypes.float32, (4, 6))[::2, ::-3].T)


@pytest.mark.parametrize("f", OF_TWO, ids=name)
def test_two(f: Function) -> None:
    for first, second in itertools.product(dtypes.ALL, dtypes.ALL):
        same(f, sample(first), sample(second, seed=1))
    for dtype in dtypes.ALL:
        for left, right in itertools.permutations([(2, 3), (), (0,), (1,), (3,), (2, 1), (4,)], 2):
            same(f, sample(dtype, left), sample(dtype, right, seed=1))


@pytest.mark.parametrize("f", OF_TWO, ids=name)
def test_beside_numbers(f: Function) -> None:
    for dtype, number in itertools.product(dtypes.ALL, NUMBERS):
        same(f, sample(dtype), number)
        same(f, sample(dtype, ()), number)
        if f in FUNCTIONS:
            same(f, number, sample(dtype))


@pytest.mark.parametrize("f", OVER_AXES, ids=name)
def test_over_axes(f: Function) -> None:
    for dtype, shape in itertools.product(dtypes.ALL, [(2, 3), (), (0,), (3, 0), (2, 3, 4)]):
        x = sample(dtype, shape)
        for axis in (None, 0, 1, -1, -2, 7, (0,), (0, 1), (), "0", 1.0, True, np.int64(0)):
            same(f, x, axis)
            same(f, x, axis=axis, keepdims=True)
    same(f, sample(dtypes.float32, (4, 6))[::2, ::-3].T, 0)


def test_sums_have_the_same_bits() -> None:
    numbers = wl.random.normal((40, 50), key=wl.random.key(0))
    for x in (numbers, numbers.T, numbers[::2, ::-3]):
        for axis in (None, 0, -1):
            same(wl.sum, x, axis)
            same(wl.Tensor.sum, x, axis)


@pytest.mark.parametrize("word", ["no", None, [1.0], object()])
def test_what_is_no_operand(word: object) -> None:
    x = wl.ones(3)
    for f in OF_TWO:
        same(f, x, word)
    for right in (operator.add, operator.truediv):
        with pytest.raises(wl.errors.WonderlandError):
            right(word, x)


SHAPES: list[Any] = [
    *((6,), (-1,), (2, -1), (3, 2), (-1, -1), (-2, 3), (0, -1), (), (7,), (True, 6), (1, 6, 1), (2.0, 3), ("2", 3)),
    *(None, (None,), 6, -1, -2, [2, 3], np.array([2, 3]), (np.int64(2), 3), (wl.tensor(2), 3), "6", 6.0),
]
INDICES: list[Any] = [0, -1, 1, 2, -3, True, None, ..., slice(1), slice(None, None, -1), slice(5, 9), slice(0, 2, 0)]

PLACES: list[Any] = [
    0,
    1,
    2,
    3,
    -1,
    -2,
    -3,
    -4,
    True,
    None,
    1.0,
    "0",
    (0,),
    (0, 1),
    (0, 0),
    [1],
    np.int64(1),
    wl.tensor(0),
]
ORDERS: list[Any] = [
    (0, 1),
    (1, 0),
    [1, 0],
    (-1, 0),
    (0, 0),
    (0,),
    (),
    (0, 1, 2),
    1,
    (1.0, 0),
    (True, False),
    "10",
    None,
]


def test_views() -> None:
    """A strict check of shapes sends them the long way."""
    for data in (
        sample(dtypes.float32),
        sample(dtypes.float32, (3, 2)).T,
        sample(dtypes.int8, (0, 3)),
        wl.tensor(1.0),
        wl.ones((1, 2, 1)),
    ):
        calls: list[Function] = [
            lambda x: x.T,
            lambda x: x.transpose(),
            lambda x: x.reshape(),
            lambda x: x.reshape(2, 3),
        ]
        calls += [lambda x, shape=shape: wl.reshape(x, shape) for shape in SHAPES]
        calls += [lambda x, shape=shape: x.reshape(shape) for shape in SHAPES]
        calls += [lambda x, f=f, axis=axis: f(x, axis) for f in (wl.squeeze, wl.expand_dims) for axis in PLACES]
        calls += [lambda x, f=f, axis=axis: f(x, axis=axis) for f in (wl.squeeze, wl.expand_dims) for axis in PLACES]
        calls += [lambda x, i=i, j=j: wl.swapaxes(x, i, j) for i in PLACES for j in (0, 1)]
        calls += [lambda x, order=order: wl.transpose(x, order) for order in ORDERS]
        calls += [lambda x, order=order: x.transpose(order) for order in ORDERS]
        calls += [lambda x: x.transpose(1, 0), lambda x: x.transpose(0, 1), lambda x: x.reshape(-1, 2)]
        calls += [lambda x, index=index: x[index] for index in [*INDICES, np.int64(1), wl.tensor(0), (0, 1), "0", 1.0]]
        for f in calls:
            found = outcome(f, data)
            with wl.shape.strict():
                assert found == outcome(f, data)


def test_types_stay() -> None:
    for dtype in dtypes.ALL:
        x = sample(dtype)
        assert (x + x).dtype is dtype
        assert (x == x).dtype is dtypes.bool_
    assert (wl.arange(3) / 2).dtype is (wl.arange(3) / wl.arange(3, 6)).dtype is dtypes.float32
    assert (wl.ones(3, dtype="float16") * 2.5).dtype is dtypes.float16
    assert (sample(dtypes.bfloat16) * 2.5).dtype is dtypes.bfloat16
    assert (sample(dtypes.bool_) + sample(dtypes.bool_)).dtype is dtypes.bool_


def test_exchanged_operands() -> None:
    x = wl.tensor([1.0, 2.0, 4.0])
    assert (2 - x).tolist() == [1, 0, -2]
    assert (2 / x).tolist() == [2, 1, 0.5]
    assert (2**x).tolist() == [2, 4, 16]
    assert (np.float32(2) - x).tolist() == (np.full(3, 2, np.float32) - x).tolist() == [1, 0, -2]
    assert (x == np.ones(3)).tolist() == (np.ones(3) == x).tolist() == [True, False, False]


def test_results_are_their_own() -> None:
    x = wl.ones(3)
    for f in OF_ONE:
        if "invert" not in f.__name__:
            out = f(x)
            assert out is not x
            assert not np.shares_memory(out._data, x._data)


# --- what goes the long way


def went(*args: object, **settings: object) -> Any:
    return "the long way"


def ways(*args: object) -> Iterator[object]:
    """What functions with a short and no long way give."""
    if len(args) == 2:
        yield of_two(TABLE["add"])(went)(*args)
        return
    yield of_one(TABLE["exp"])(went)(*args)
    yield of_axes(TABLE["sum"])(went)(*args)
    yield of_axes(TABLE["sum"])(went)(*args, 0)


def long(*args: object) -> bool:
    found = [isinstance(out, str) for out in ways(*args)]
    assert len(set(found)) == 1
    return found[0]


X, Y = wl.ones((2, 2)), wl.zeros((2, 2))


def test_plain_tensors_go_the_short_way() -> None:
    assert not long(X)
    for other in (Y, X, 2, 2.5, wl.ones(2), wl.tensor(1.0)):
        assert not long(X, other)
        assert not long(other, X)
    with wl.no_grad(), wl.autocast("bfloat16"), wl.using_backend("numpy"):
        assert not long(X)
        assert not long(X, Y)
    assert not any(map(long, [wl.ones(SMALL)]))


def test_cells_and_recorded_tensors_go_the_long_way() -> None:
    parameter = wl.nn.Parameter(X)
    recorded = wl.ones((2, 2)).requires_grad_()
    for special in (parameter, wl.nn.Buffer(X), recorded, recorded * 2):
        assert long(special)
        assert long(special, Y)
        assert long(Y, special)
        assert long(2.0, special)
        assert long(special, 2.0)


def test_large_ones_go_the_long_way_or_where_kernels_are(monkeypatch: pytest.MonkeyPatch) -> None:
    large = wl.zeros((SMALL + 1,))
    assert long(large, 1.0)
    assert long(1.0, large)
    asked: list[str] = []
    monkeypatch.setattr(evaluation, "_kernel", lambda primitive, data, params: asked.append(primitive.name))
    for operand in (wl.ones(1), large):
        wl.add(large, operand), wl.add(operand, large)
    wl.tanh(large), large.sum(), wl.max(large, axis=0)
    assert asked == ["add"] * 4 + ["tanh", "sum", "max"]


def test_traced_values_go_the_long_way() -> None:
    found = []

    def f(x: wl.Tensor) -> wl.Tensor:
        found.append(long(x) and long(x, Y) and long(Y, x) and long(x, 2.0) and long(2.0, x))
        return (x * 2).sum()

    wl.grad(f)(X)
    wl.jvp(f, (X,), (X,))
    wl.vmap(f)(wl.ones((3, 2, 2)))
    wl.make_graph(f)(X)
    wl.jit(f)(X)
    wl.grad(lambda x: wl.grad(f)(x).sum())(X)
    assert found
    assert all(found)


def test_constants_are_traced_in_graphs() -> None:
    def f(x: wl.Tensor) -> wl.Tensor:
        assert long(X)
        assert long(X, Y)
        return x + (X + Y)

    wl.make_graph(f)(X)


def test_checks_and_debuggers_see_everything() -> None:
    with wl.shape.strict(), pytest.raises(wl.errors.BroadcastError):
        wl.ones((3, 1)) + wl.ones(3)
    with wl.shape.strict():
        assert long(X)
        assert long(X, Y)
    with wl.debug.nans():
        assert long(X)
        assert long(X, 2.0)
        with pytest.raises(wl.errors.WonderlandError, match="divide"):
            Y / Y


def test_what_numpy_refuses_goes_the_long_way() -> None:
    assert long(wl.ones(2), wl.ones(3))
    with np.errstate(all="raise"):
        assert isinstance(of_two(TABLE["divide"])(went)(X, Y), str)
    assert isinstance(of_axes(TABLE["max"])(went)(wl.ones(0)), str)
    with pytest.raises(wl.errors.ShapeError, match="add: shapes") as info:
        wl.ones(2) + wl.ones(3)
    error: BaseException | None = info.value
    seen = []
    while error is not None:
        seen.append(error)
        error = error.__cause__ or error.__context__
    assert len(seen) <= 2  # what NumPy said is told once


def test_interrupts_are_not_swallowed() -> None:
    def interrupted(x: object) -> object:
        raise KeyboardInterrupt

    class Interrupting:
        impl = staticmethod(interrupted)
        takes = frozenset(dtypes.ALL)

    with pytest.raises(KeyboardInterrupt):
        of_one(Interrupting)(went)(X)  # type: ignore[arg-type]


# --- functions are known as they were written


@pytest.mark.parametrize("f", FUNCTIONS, ids=name)
def test_functions_keep_their_names(f: Function) -> None:
    written = f.__wrapped__  # type: ignore[attr-defined]
    assert f.__code__.co_name == f.__code__.co_qualname == f.__name__ == written.__name__
    assert (f.__module__, f.__doc__, f.__globals__) == (written.__module__, written.__doc__, written.__globals__)
    assert inspect.signature(f) == inspect.signature(written)
    assert pickle.loads(pickle.dumps(f)) is f


def test_methods_keep_their_names() -> None:
    assert wl.Tensor.__add__.__qualname__ == "Tensor.__add__"
    assert wl.Tensor.sum.__qualname__ == "Tensor.sum"
    assert wl.add.__qualname__ == "add"
    assert list(inspect.signature(wl.ones(2).sum).parameters) == ["axis", "dtype", "keepdims"]


def test_large_ones_are_handed_to_the_primitive() -> None:
    """With the results and the errors of the long way, whatever is going on."""
    shape = (SMALL // 64 + 1, 64)
    for dtype in (dtypes.float32, dtypes.float16, dtypes.int8, dtypes.bool_, dtypes.complex64):
        x, y = sample(dtype, shape), sample(dtype, shape, seed=1)
        for f in OF_ONE:
            same(f, x)
        for f in OF_TWO:
            for other in (y, y[0], y[:, :1], y[1:], sample(dtypes.float64, shape), 2):
                same(f, x, other)
            same(f, y[0], x)
        for f in OVER_AXES:
            for axis in (None, 0, -1, -2, 2, (0, 1), True):
                same(f, x, axis)
    x = sample(dtypes.float32, shape)
    with wl.shape.strict():
        same(wl.add, x, x[0])
        same(wl.add, x[:, 0], x[:, :1])
    for f in (wl.tanh, lambda x: x + x, lambda x: x.sum(axis=-1)):
        value, gradient = wl.value_and_grad(lambda x, f=f: f(x).mean())(x)
        np.testing.assert_allclose(value, f(x).numpy().mean(), rtol=1e-4, atol=1e-6)
        leaf = wl.tensor(x.numpy(), requires_grad=True)
        f(leaf).mean().backward()
        np.testing.assert_allclose(leaf.grad, gradient, rtol=1e-6)  # type: ignore[arg-type]  # there is one
        np.testing.assert_allclose(wl.jit(f)(x), f(x), rtol=1e-4, atol=1e-4)
        np.testing.assert_allclose(wl.vmap(f)(x[None])[0], f(x), rtol=1e-5, atol=1e-5)
