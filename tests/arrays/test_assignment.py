"""`x[i] = v`: the numbers of x are those that NumPy gives, and nothing else in the program changes."""

from __future__ import annotations

import copy
import functools
import inspect
import operator
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import wonderland as wl
from wonderland import nn

from .standard_calls import CALLS


@st.composite
def assignments(draw: Any) -> tuple[np.ndarray, Any, np.ndarray]:
    """An array, an index without repetitions, and a value that broadcasts into it."""
    shape = draw(hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4))
    x = np.arange(np.prod(shape, dtype=int), dtype=np.float64).reshape(shape)
    kind = draw(st.sampled_from(["basic", "mask", "integers"]))
    if kind == "mask":
        index: Any = np.random.default_rng(draw(st.integers(0, 9))).random(shape) < 0.5
    elif kind == "integers" and shape and shape[0]:
        index = np.random.default_rng(draw(st.integers(0, 9))).permutation(shape[0])[: draw(st.integers(0, shape[0]))]
    else:
        index = draw(hnp.basic_indices(shape, allow_newaxis=False, allow_ellipsis=True))
    target = x[index].shape
    value = -1.0 - np.arange(np.prod(target, dtype=int), dtype=np.float64).reshape(target)
    return x, index, value if draw(st.booleans()) else np.asarray(-7.0)


@given(assignments(), st.booleans())
def test_as_numpy(case: tuple[np.ndarray, Any, np.ndarray], shared: bool) -> None:
    x, index, value = case
    ours, before = wl.array(x), x.copy()
    other = ours.copy() if shared else None
    ours[wl.asarray(index) if isinstance(index, np.ndarray) else index] = wl.asarray(value)
    x[index] = value
    np.testing.assert_array_equal(ours.numpy(), x)
    if other is not None:
        np.testing.assert_array_equal(other.numpy(), before)


@given(assignments())
def test_augmented_as_numpy(case: tuple[np.ndarray, Any, np.ndarray]) -> None:
    x, index, value = case
    ours = wl.array(x)
    place = wl.asarray(index) if isinstance(index, np.ndarray) else index
    ours[place] += wl.asarray(value)
    ours[place] *= 2
    x[index] += value
    x[index] *= 2
    np.testing.assert_array_equal(ours.numpy(), x)


def test_lists_arrays_and_nested_places() -> None:
    x, rows = wl.zeros((3, 2)), [wl.zeros(2)]
    x[[0, 2]] = 1
    x[np.array([1])] = wl.tensor([2.0, 3.0])
    rows[0][1] = 4.0
    assert x.tolist() == [[1.0, 1.0], [2.0, 3.0], [1.0, 1.0]]
    assert rows[0].tolist() == [0.0, 4.0]


def test_a_tensor_that_is_alone_is_changed_in_its_own_memory() -> None:
    x = wl.zeros(4)
    address = x._data.ctypes.data
    for i in range(4):
        x[i] = float(i)
    assert x._data.ctypes.data == address
    y = +x  # shares the memory
    x[0] = 9.0
    assert x._data.ctypes.data != address
    assert y._data.ctypes.data == address
    assert (x[0].item(), y[0].item()) == (9.0, 0.0)


@pytest.mark.parametrize(
    "share",
    [
        lambda x: x.copy(),
        lambda x: x.clone(),
        lambda x: +x,
        lambda x: x.astype(x.dtype),
        lambda x: wl.array(x),
        lambda x: wl.asarray(x, copy=True),
        lambda x: x.detach(),
        lambda x: x.numpy(),
        lambda x: np.asarray(x),
        lambda x: np.from_dlpack(x),
        lambda x: wl.reshape(x, (2, 2)),
        lambda x: x[1:],
        lambda x: x.reshape(4),
        lambda x: nn.Buffer(x),
        lambda x: nn.Parameter(x),
        lambda x: copy.copy(x),
        lambda x: copy.deepcopy([x, x])[1],
        lambda x: wl.jit(lambda x: x)(x),
        lambda x: wl.vmap(lambda x: x)(x),
        lambda x: wl.jvp(lambda x: x, (x,), (x,)),
        lambda x: wl.vjp(lambda x: x, x)[0],
        lambda x: wl.vjp(lambda x: x, wl.ones(4))[1](x),
        lambda x: wl.linearize(lambda x: x, wl.ones(4))[1](x),
        lambda x: wl.grad(lambda y: (x * y).sum())(wl.ones(4)),
        lambda x: wl.broadcast_arrays(x, wl.ones((2, 4))),
    ],
)
def test_what_shares_the_value_keeps_it(share: Any) -> None:
    def numbers(tree: Any) -> Any:
        leaves = wl.tree.leaves(tree) if not isinstance(tree, np.ndarray) else [tree]
        return [np.array(leaf).tolist() for leaf in leaves]

    x = wl.arange(4, dtype=wl.float32)
    shared = share(x)
    before = numbers(shared)
    x[:] = -1.0
    assert numbers(shared) == before
    assert x.tolist() == [-1.0] * 4


def test_a_cell_does_not_follow_the_tensor_that_was_assigned() -> None:
    buffer, x = nn.Buffer(wl.zeros(2)), wl.ones(2)
    buffer.assign(x)
    model = nn.Linear(1, 2, bias=False)
    state = {"weight": wl.ones((1, 2))}
    model.load_state_dict(state)
    x[0] = 5.0
    state["weight"][0] = 5.0
    assert buffer.tolist() == [1.0, 1.0]
    assert model.weight.tolist() == [[1.0, 1.0]]
    got = model.state_dict()["weight"]
    got[0] = 7.0
    assert model.weight.tolist() == [[1.0, 1.0]]


@pytest.mark.parametrize("transform", [lambda f: f, wl.jit])
def test_cells_are_places_and_take_assignments_anywhere(transform: Any) -> None:
    model = nn.Module()
    model.table = nn.Buffer(wl.zeros(3))

    def step(model: Any, value: Any) -> Any:
        model.table[1] = value
        model.table[0] += 1
        return model.table.sum()

    step = transform(step)
    assert step(model, wl.tensor(2.0)).item() == 3.0
    assert step(model, wl.tensor(5.0)).item() == 7.0
    assert model.table.tolist() == [2.0, 5.0, 0.0]  # type: ignore[attr-defined]


# --- derivatives


def test_records_keep_their_operands() -> None:
    x, y = wl.ones(2).requires_grad_(), wl.tensor([2.0, 3.0])
    z = (x * y).exp()
    y[0] = 100.0
    value = z.detach()
    value[:] = 0.0
    z.sum().backward()
    np.testing.assert_allclose(x.grad, [2 * np.exp(2), 3 * np.exp(3)], rtol=1e-6)  # type: ignore[arg-type]


@pytest.mark.parametrize("which", ["constant", "argument", "value"])
def test_pull_backs_and_linear_maps_keep_their_residuals(which: str) -> None:
    x, y = wl.ones(2), wl.tensor([2.0, 3.0])
    value, pull = wl.vjp(lambda x: wl.exp(x * y) * x, x)
    _, push = wl.linearize(lambda x: wl.exp(x * y) * x, x)
    want = [pull(wl.ones(2))[0].tolist(), push(wl.ones(2)).tolist()]
    {"constant": y, "argument": x, "value": value}[which][:] = 50.0
    assert [pull(wl.ones(2))[0].tolist(), push(wl.ones(2)).tolist()] == want


def test_gradients_of_several_arguments_are_tensors_of_their_own() -> None:
    a, b = wl.grad(lambda a, b: (a + b).sum(), argnums=(0, 1))(wl.ones(2), wl.ones(2))
    a[0] = 5.0
    assert b.tolist() == [1.0, 1.0]
    x, y = wl.ones(2).requires_grad_(), wl.ones(2).requires_grad_()
    (x + y).sum().backward()
    x.grad[0] = 5.0  # type: ignore[index]
    assert (x.grad.tolist(), y.grad.tolist()) == ([5.0, 1.0], [1.0, 1.0])


def test_a_leaf_may_be_changed_where_nothing_is_recorded() -> None:
    x = wl.ones(2).requires_grad_()
    y = x * x
    with wl.no_grad():
        x[0] = 3.0
    y.sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]  # where y was computed
    assert x.tolist() == [3.0, 1.0]


# --- traces


def test_a_jitted_function_notices() -> None:
    vector, number, inside = wl.ones(2), wl.tensor(2.0), [wl.tensor(3.0)]
    module = nn.Module()
    module.scale = wl.tensor(1.0)
    f = wl.jit(lambda x: (x * vector * number * inside[0]).sum())
    g = wl.jit(lambda module, x: (module.scale * x).sum())
    h = wl.jit(lambda x, n: x * n.item(), static_argnums=1)
    x = wl.ones(2)
    assert (f(x).item(), g(module, x).item(), h(x, number).tolist()) == (12.0, 2.0, [2.0, 2.0])
    vector[0] = 0.0
    assert f(x).item() == 6.0
    number[()] = 5.0
    assert (f(x).item(), h(x, number).tolist()) == (15.0, [5.0, 5.0])
    inside[0][...] = 1.0
    assert f(x).item() == 5.0
    module.scale[()] = 4.0  # type: ignore[attr-defined]
    assert g(module, x).item() == 8.0


# --- what is refused


@pytest.mark.parametrize(
    "f",
    [
        lambda x: operator.setitem(x, 0, 1.0) or x.sum(),
        lambda x: operator.setitem(wl.zeros(2), 0, 1.0) or x.sum(),  # type: ignore[call-overload]
        lambda x: operator.setitem(wl.zeros(2), 0, x[0]) or x.sum(),  # type: ignore[call-overload]
    ],
)
@pytest.mark.parametrize("transform", [wl.grad, wl.jit, wl.vmap, lambda f: lambda x: wl.jvp(f, (x,), (x,))])
def test_nothing_is_assigned_inside_transformations(transform: Any, f: Any) -> None:
    with pytest.raises(wl.errors.TraceError, match=r"(?s)setitem.*x = x\.at\[i\]\.set\(v\)"):
        transform(f)(wl.ones((2, 2)) if transform is wl.vmap else wl.ones(2))


def test_recorded_tensors_and_values() -> None:
    leaf = wl.ones(2).requires_grad_()
    made, plain = leaf * 2, wl.zeros(2)
    for x, value in ((leaf, 1.0), (made, 1.0), (plain, leaf[0])):
        with pytest.raises(wl.errors.GradientError, match=r"(?s)setitem.*\.at\[i\]\.set\(v\)"):
            x[0] = value
    with wl.no_grad(), pytest.raises(wl.errors.GradientError):
        made[0] = 1.0
    with wl.no_grad():
        plain[0] = leaf[0]
    assert plain.tolist() == [1.0, 0.0]


def test_views_of_what_is_in_use() -> None:
    """NumPy would write through them; the standard leaves it open."""
    whole, array = wl.zeros((2, 2)), np.zeros(4)
    for part in (whole[0], whole.T, whole.reshape(4), wl.asarray(array), wl.asarray(array[1:]), wl.from_dlpack(array)):
        with pytest.raises(wl.errors.InputError, match=r"(?s)view of memory.*copy\(\)"):
            part[0] = 1.0
        own = part.copy()
        own[0] = 1.0
        assert own.sum().item() in (1.0, 2.0)
    assert whole.tolist() == [[0.0, 0.0], [0.0, 0.0]]
    assert array.tolist() == [0.0] * 4
    row = whole[0]
    whole[0] = 5.0  # the whole is no view
    assert row.tolist() == [0.0, 0.0]
    del part, whole
    row[1] = 1.0  # now nobody else uses the memory
    assert row.tolist() == [0.0, 1.0]


def test_overlapping_parts() -> None:
    x = wl.arange(5)
    x[1:] = x[:-1]
    assert x.tolist() == [0, 0, 1, 2, 3]
    x[::-1] = x
    assert x.tolist() == [3, 2, 1, 0, 0]
    x[:] = x[::-1]
    assert x.tolist() == [0, 0, 1, 2, 3]


def test_an_assignment_that_would_be_lost() -> None:
    x = wl.zeros((2, 2))
    with pytest.raises(wl.errors.InputError, match="lost"):
        x[0][1] = 1.0
    with pytest.raises(wl.errors.InputError, match="lost"):
        x[wl.tensor([0])][0] += 1.0


@pytest.mark.parametrize(
    ("index", "value", "error"),
    [
        (0, 0.5, wl.errors.DTypeError),
        (0, wl.tensor(0.5), wl.errors.DTypeError),
        (0, 1j, wl.errors.DTypeError),
        (5, 1, wl.errors.IndexOutOfRange),
        (wl.tensor([0, 9]), 1, wl.errors.IndexOutOfRange),
        (slice(None), wl.tensor([1, 2]), wl.errors.ShapeError),
        (wl.tensor([True, False]), 1, wl.errors.ShapeError),
        ("a", 1, wl.errors.DTypeError),
    ],
)
def test_errors_leave_the_tensor_as_it_was(index: Any, value: Any, error: Any) -> None:
    x = wl.tensor([1, 2, 3])
    with pytest.raises(error):
        x[index] = value
    assert x.tolist() == [1, 2, 3]


# --- functions that have nothing to do


def tensors(tree: Any) -> list[int]:
    """The identities of the tensors in a tree of arguments or results."""
    return [id(leaf) for leaf in wl.tree.leaves([tree]) if isinstance(leaf, wl.Tensor)]


def check_fresh(f: Any, *args: Any, **kwargs: Any) -> None:
    try:
        results = tensors(f(*args, **kwargs))
    except (wl.errors.WonderlandError, TypeError, AttributeError):
        return
    assert set(results).isdisjoint(tensors((args, kwargs))), args
    assert len(set(results)) == len(results), args


@pytest.mark.parametrize("name", sorted(set(CALLS) - {"result_type", "isdtype"}))
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_no_function_of_the_standard_returns_its_argument(name: str) -> None:
    """Else an assignment to the result would change the argument, too."""
    f = functools.reduce(getattr, name.split("."), wl)
    for call in CALLS[name]():
        call(wl, functools.partial(check_fresh, f))


ALWAYS_THE_SAME = {"asarray", "from_dlpack"}  # they say so
SHAPES = [(), (3,), (3, 3), (1, 3, 4)]
MORE: list[tuple[Any, ...]] = [(), (0,), (1,), ((),)]


@pytest.mark.parametrize(
    "space",
    [wl.arrays, wl.linalg, wl.fft, nn.functional, wl.Tensor],
    ids=["arrays", "linalg", "fft", "functional", "methods"],
)
@pytest.mark.filterwarnings("ignore")
def test_no_other_function_returns_its_argument(space: Any) -> None:
    public = getattr(space, "__all__", None) or [name for name in dir(space) if not name.startswith("_")]
    # names known from elsewhere are there for their hints alone
    functions = {n: getattr(space, n) for n in public if inspect.isfunction(getattr(space, n, None))}
    xs = [wl.ones(shape, dtype=dtype) for shape in SHAPES for dtype in ("float32", "int64")]
    for name in sorted(set(functions) - ALWAYS_THE_SAME - {"requires_grad_", "to", "to_device", "backward"}):
        f = functions[name]
        for x in xs:
            for more in MORE:
                check_fresh(f, x, *more)
            check_fresh(f, x, x)
            if space is not wl.Tensor:
                check_fresh(f, [x, x])
            check_fresh(f, x, axis=())
            check_fresh(f, x, training=False)
