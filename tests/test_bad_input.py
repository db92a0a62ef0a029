"""Bad input: a clear error of one family in every way to run a function; never a wrong number or a hang."""

from __future__ import annotations

import dataclasses
import math
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import wonderland as wl
from wonderland import nn
from wonderland.errors import (
    AxisError,
    ConversionError,
    DTypeError,
    GradientError,
    IndexOutOfRange,
    InputError,
    LinearAlgebraError,
    ShapeError,
    SizeError,
    TreeError,
    WonderlandError,
)

NAN, INF = math.nan, math.inf


def total(tree: Any) -> Any:
    return sum((leaf.sum() for leaf in wl.tree.leaves(tree)), wl.tensor(0.0))


WAYS: dict[str, Callable[[Callable[..., Any]], Callable[..., Any]]] = {
    "eager": lambda f: f,
    "jit": wl.jit,
    "grad": lambda f: wl.grad(lambda *args: total(f(*args))),
    "jit of grad": lambda f: wl.jit(wl.grad(lambda *args: total(f(*args)))),
    "vmap": lambda f: lambda *args: wl.vmap(f, in_axes=(0,) * len(args))(*[a[None] for a in args]),
    "eval_shape": lambda f: lambda *args: wl.eval_shape(f, *args),
}
every_way = pytest.mark.parametrize("way", WAYS.values(), ids=list(WAYS))


def refused(kind: type[WonderlandError], way: Any, f: Callable[..., Any], *args: Any) -> None:
    with pytest.raises(kind):
        way(f)(*args)


# --- wrong shapes, dtypes and axes

x23, x45, v3, v4 = wl.ones((2, 3)), wl.ones((4, 5)), wl.ones(3), wl.ones(4)


@every_way
@pytest.mark.parametrize(
    "f, args",
    [
        (lambda x, y: x + y, (x23, v4)),
        (lambda x, y: x @ y, (x23, x45)),
        (lambda x, y: wl.where(x > 0, x, y), (x23, v4)),
        (lambda x, y: wl.concat([x, y]), (x23, x45)),
        (lambda x, y: wl.stack([x, y]), (v3, v4)),
        (lambda x, y: wl.einsum("ij,jk->ik", x, y), (x23, x45)),
        (lambda x, y: wl.linalg.solve(x, y), (wl.eye(3), v4)),
        (lambda x: x.reshape(5), (x23,)),
        (lambda x: wl.broadcast_to(x, (7, 7)), (x23,)),
        (lambda x: wl.squeeze(x, axis=0), (x23,)),
        (lambda x: wl.linalg.inv(x), (x23,)),
        (lambda x: wl.rearrange(x, "a b c -> c b a"), (x23,)),
        (lambda x: x.at[0].set(wl.ones(7)), (x23,)),
        (lambda x: nn.functional.batch_norm(x, 0), (x23,)),
        (lambda x: nn.functional.instance_norm(x[None], 0, 1), (x23,)),
        (lambda x: nn.functional.layer_norm(x, 3, 2.0), (x23,)),
    ],
)
def test_wrong_shapes(way: Any, f: Any, args: Any) -> None:
    refused(ShapeError, way, f, *args)


@every_way
@pytest.mark.parametrize(
    "f",
    [
        lambda x: wl.bitwise_and(x, x),
        lambda x: wl.floor(x * 1j),
        lambda x: wl.softmax(x * 1j),
        lambda x: (x * 1j).astype(wl.float32),
        lambda x: x + "a",
        lambda x: x[x],
        lambda x: wl.take(x, x),
        lambda x: x.astype("float33"),
        lambda x: wl.maximum(x * 1j, 0),
        lambda x: nn.functional.batch_norm(x, [0.0, 0.0, 0.0], [1.0, 1.0, 1.0]),
    ],
)
def test_wrong_dtypes(way: Any, f: Any) -> None:
    refused(DTypeError, way, f, x23)


@every_way
def test_a_tensor_is_no_distribution(way: Any) -> None:
    refused(InputError, way, lambda x: nn.functional.nll(x, 0), x23)


@every_way
@pytest.mark.parametrize(
    "f",
    [
        lambda x: x.sum(axis=2),
        lambda x: x.mean(axis=(0, -2)),
        lambda x: wl.softmax(x, axis=5),
        lambda x: wl.sort(x, axis=-3),
        lambda x: wl.transpose(x, (0, 0)),
        lambda x: wl.expand_dims(x, axis=9),
        lambda x: wl.flip(x, axis=2),
        lambda x: wl.concat([x, x], axis=2),
        lambda x: wl.fft.fft(x, axis=2),
        lambda x: wl.cumulative_sum(x, axis=2),
    ],
)
def test_wrong_axes(way: Any, f: Any) -> None:
    refused(AxisError, way, f, x23)


@every_way
@pytest.mark.parametrize("f", [lambda x: x[2], lambda x: x[0, -4], lambda x: wl.split(x, [1])[0][5]])
def test_wrong_indices(way: Any, f: Any) -> None:
    refused(IndexOutOfRange, way, f, x23)


@pytest.mark.parametrize("way", [WAYS["eager"], WAYS["jit"], WAYS["grad"], WAYS["vmap"]])
@pytest.mark.parametrize("index", [3, -4, 10**12])
def test_computed_indices_are_checked_when_they_are_known(way: Any, index: int) -> None:
    """Also under `jit`, where the index is not known while tracing; nothing is clipped or wrapped."""
    i = wl.tensor([0, index])
    refused(IndexOutOfRange, way, lambda x: x[wl.stop_gradient(i)], wl.ones((3, 3)))
    with pytest.raises(IndexOutOfRange):
        wl.jit(lambda x, i: wl.take(x, i))(v3, i)
    with pytest.raises(IndexOutOfRange):
        wl.jit(lambda x, i: x.at[i].add(1.0))(v3, i)


# --- empty reductions


@every_way
@pytest.mark.parametrize("name", ["max", "min", "argmax", "argmin"])
def test_empty_reductions_without_a_neutral_element(way: Any, name: str) -> None:
    refused(InputError, way, lambda x: getattr(wl, name)(x, axis=0), wl.ones((0, 3)))


@pytest.mark.filterwarnings("ignore:(mean|var|std).*:RuntimeWarning")  # that is what they say of nothing
@pytest.mark.parametrize("name", ["mean", "var", "std"])
def test_averages_of_nothing_are_nan(name: str) -> None:
    f = lambda x: getattr(wl, name)(x, axis=0)
    for run in (f, wl.jit(f)):
        assert wl.isnan(run(wl.ones((0, 3)))).all()


@pytest.mark.parametrize("name, neutral", [("sum", 0), ("prod", 1), ("any", False), ("all", True), ("logsumexp", -INF)])
def test_empty_reductions_with_one(name: str, neutral: Any) -> None:
    f = lambda x: getattr(wl, name)(x, axis=0)
    for run in (f, wl.jit(f)):
        assert (run(wl.ones((0, 3))) == neutral).all()


# --- singular matrices


@pytest.mark.parametrize("way", [WAYS["eager"], WAYS["jit"], WAYS["grad"], WAYS["jit of grad"], WAYS["vmap"]])
@pytest.mark.parametrize(
    "f",
    [wl.linalg.inv, lambda x: wl.linalg.solve(x, wl.ones(2)), lambda x: wl.linalg.cholesky(-x)],
    ids=["inv", "solve", "cholesky"],
)
def test_singular_matrices(way: Any, f: Any) -> None:
    refused(LinearAlgebraError, way, f, wl.tensor([[1.0, 2.0], [2.0, 4.0]]))


def test_of_a_batch_the_singular_one_is_named() -> None:
    batch = wl.stack([wl.eye(2), wl.zeros((2, 2)), wl.eye(2)])
    with pytest.raises(LinearAlgebraError, match=r"index \[1\]"):
        wl.linalg.inv(batch)


def test_what_has_a_value_at_a_singular_matrix_gives_it() -> None:
    singular = wl.tensor([[1.0, 2.0], [2.0, 4.0]])
    assert float(wl.linalg.det(singular)) == pytest.approx(0.0, abs=1e-6)
    np.testing.assert_allclose(singular @ wl.linalg.pinv(singular) @ singular, singular, rtol=1e-5)


# --- what grad cannot take


@pytest.mark.parametrize("f", [lambda x: 2 * x, lambda x: x[None], lambda x: wl.zeros((0,))])
def test_outputs_that_are_not_scalars(f: Any) -> None:
    for transform in (wl.grad, wl.value_and_grad, lambda f: wl.jit(wl.grad(f))):
        with pytest.raises(GradientError, match="only a scalar has a gradient"):
            transform(f)(v3)
    with pytest.raises(GradientError, match="needs a gradient to start from"):
        (2 * wl.ones(3).requires_grad_()).backward()


@pytest.mark.parametrize("x", [3, True, wl.arange(3), wl.tensor([True]), np.arange(3)], ids=repr)
def test_integer_inputs(x: Any) -> None:
    for transform in (wl.grad, wl.value_and_grad, lambda f: wl.jit(wl.grad(f)), wl.jacobian, wl.hessian):
        with pytest.raises(GradientError, match=r"int64|bool"):
            transform(lambda x: (1.0 * wl.asarray(x)).sum())(x)
    with pytest.raises(GradientError, match=r"int64|bool"):
        wl.asarray(x).requires_grad_()


@pytest.mark.parametrize(
    "out", ["text", None, object(), {1.0}, lambda: 1.0, [1.0, "text"]], ids=lambda v: type(v).__name__
)
def test_functions_that_return_no_tensors(out: Any) -> None:
    for transform in (wl.grad, wl.value_and_grad, lambda f: wl.jit(wl.grad(f))):
        with pytest.raises(GradientError):
            transform(lambda x: out)(1.0)
    if out is not None:
        with pytest.raises(WonderlandError):
            wl.vmap(lambda x: out)(v3)
        with pytest.raises(WonderlandError):
            wl.scan(lambda c, x: (c, out), 0.0, v3)


# --- trees that contain themselves

cyclic_list: list[Any] = [1.0]
cyclic_list.append(cyclic_list)
cyclic_dict: dict[str, Any] = {"a": 1.0}
cyclic_dict["b"] = [cyclic_dict]


@dataclasses.dataclass
class Link:
    value: Any
    next: Any = None


cyclic_link = Link(1.0)
cyclic_link.next = (cyclic_link,)


@pytest.mark.parametrize("tree", [cyclic_list, cyclic_dict, cyclic_link], ids=["list", "dict", "dataclass"])
@pytest.mark.parametrize(
    "use",
    [
        wl.tree.leaves,
        wl.tree.structure,
        wl.tree.ravel,
        lambda t: wl.tree.map(lambda x: x, t),
        lambda t: wl.grad(lambda t: 1.0)(t),
        lambda t: wl.grad(lambda x: t)(1.0),
        lambda t: wl.jit(lambda t: 1.0)(t),
        lambda t: wl.jit(lambda x: t)(1.0),
        lambda t: wl.vmap(lambda t: 1.0)(t),
        lambda t: wl.jvp(lambda t: 1.0, (t,), (t,)),
        lambda t: wl.scan(lambda c, x: (c, x), t, v3),
        lambda t: wl.debug.check_finite(t),
        lambda t: wl.stop_gradient(t),
    ],
)
def test_cyclic_trees(use: Any, tree: Any) -> None:
    with pytest.raises(TreeError, match="contains itself"):
        use(tree)


def test_cyclic_lists_as_data() -> None:
    for use in (wl.tensor, wl.asarray, lambda x: v3[x], lambda x: v3 + x, wl.stack, wl.concat):
        with pytest.raises(WonderlandError):
            use(cyclic_list)


def test_trees_that_are_too_deep() -> None:
    deep: Any = 1.0
    for _ in range(10**5):
        deep = [deep]
    for use in (wl.tree.leaves, wl.jit(lambda t: 1.0), wl.grad(lambda t: 1.0), wl.tensor):
        with pytest.raises(WonderlandError, match="levels deep"):
            use(deep)


def test_a_module_that_contains_itself_is_one_module() -> None:
    class Loop(nn.Module):
        def __init__(self) -> None:
            self.weight = nn.Parameter([2.0])
            self.again = [self]

        def forward(self, x: wl.Tensor) -> wl.Tensor:
            return self.weight * x

    model = Loop()
    assert list(model.state_dict()) == ["weight"]
    gradients = wl.jit(wl.grad(lambda m, x: m(x).sum()))(model, wl.tensor([3.0]))
    assert float(gradients["weight"]) == 3.0


# --- NaN in: NaN out, or an error; never a number


@pytest.mark.parametrize(
    "f",
    [
        wl.sin, wl.exp, wl.log, wl.sqrt, wl.abs, wl.sign, wl.floor, wl.round, wl.relu, wl.sigmoid,
        wl.softplus, wl.erf, wl.erfinv, wl.square, wl.sum, wl.prod, wl.mean, wl.var, wl.std, wl.max, wl.min,
        wl.norm, wl.logsumexp, wl.softmax, wl.log_softmax, wl.normalize, wl.linalg.det, wl.linalg.inv,
        wl.fft.fft,
        lambda x: wl.cumulative_sum(x, axis=0),
        lambda x: wl.clip(x, 0, 1),
        lambda x: wl.maximum(x, 0.0),
        lambda x: wl.minimum(0.0, x),
        lambda x: wl.hypot(x, 0.0),
        lambda x: x @ x,
        lambda x: wl.where(x == x, 0.0, x),
        lambda x: wl.logaddexp(x, -INF),
        lambda x: wl.atan2(x, 1.0),
        lambda x: wl.segment_max(x[0], wl.tensor([0, 0])),
        lambda x: wl.xlogy(0.0, x),
        lambda x: x % 2.0,
        lambda x: wl.scan(lambda c, row: (c + row.sum(), None), 0.0, x)[0],
    ],
)  # fmt: skip
def test_nan_stays_nan(f: Any) -> None:
    x = wl.full((2, 2), NAN)
    for run in (f, wl.jit(f)):
        assert wl.isnan(run(x)).all(), run(x)


@pytest.mark.parametrize(
    "f, kind",
    [
        (lambda x: int(x[0]), ConversionError),
        (lambda x: x.astype(wl.int64), InputError),
        (lambda x: x.astype(wl.uint8), InputError),
        (lambda x: wl.ones(3)[x], DTypeError),
        (lambda x: wl.one_hot(x, 3), DTypeError),
        (lambda x: wl.linspace(0, 1, x[0]), WonderlandError),
        (lambda x: wl.random.bernoulli(p=x), InputError),
        (lambda x: wl.random.categorical(x), InputError),
        (lambda x: wl.random.choice(2, p=x), InputError),
        (lambda x: wl.random.exponential(scale=x), InputError),
        (lambda x: wl.linalg.svd(x[:, None] * x), LinearAlgebraError),
        (lambda x: wl.arange(x[0]), InputError),
    ],
)
def test_nan_where_no_nan_can_come_out(f: Any, kind: Any) -> None:
    with pytest.raises(kind):
        f(wl.tensor([NAN, NAN]))


@pytest.mark.parametrize("value", [NAN, INF, -INF, 128.0, -129.0, 1e30])
def test_numbers_that_an_integer_does_not_hold(value: float) -> None:
    """NumPy would make another number of them."""
    convert = lambda x: x.astype(wl.int8)
    for run in (convert, wl.jit(convert), wl.vmap(convert)):
        with pytest.raises(InputError, match="no int8 counterpart"):
            run(wl.tensor([1.0, value]))
    for dtype in (wl.float16, wl.bfloat16, wl.float64):
        with pytest.raises(InputError, match="no int8 counterpart"):
            convert(wl.tensor([value], dtype=dtype))


@pytest.mark.parametrize("dtype", [wl.int8, wl.uint8, wl.int32, wl.uint32, wl.int64, wl.uint64])
@pytest.mark.parametrize("floating", [wl.float16, wl.bfloat16, wl.float32, wl.float64])
def test_numbers_that_an_integer_holds(dtype: Any, floating: Any) -> None:
    low, high = int(wl.iinfo(dtype).min), int(wl.iinfo(dtype).max)
    values = np.array([0.0, 1.5, 126.9, low / 2, high / 4], np.float64)
    x = wl.tensor(values[np.abs(values) < float(wl.finfo(floating).max)]).astype(floating)
    expected = [math.trunc(v) for v in np.asarray(x.astype(wl.float64)).tolist()]
    assert x.astype(dtype).tolist() == expected


@pytest.mark.parametrize("f", [wl.floor_divide, wl.remainder], ids=lambda f: f.__name__)
def test_integers_divided_by_zero(f: Any) -> None:
    for run in (f, wl.jit(f), wl.vmap(f)):
        with pytest.raises(InputError, match="second argument of 0"):
            run(wl.tensor([1, 2]), wl.tensor([1, 0]))
    assert np.isnan(np.asarray(wl.remainder(wl.ones(1), wl.zeros(1)))).all()
    assert f(wl.arange(0), wl.zeros(0, dtype=wl.int64)).shape == (0,)


def test_shifts_by_negative_numbers() -> None:
    for f in (wl.bitwise_left_shift, wl.bitwise_right_shift):
        with pytest.raises(InputError, match="second argument of -1"):
            f(wl.tensor([1, 2]), wl.tensor([1, -1]))


# --- huge sizes

huge = 10**6
v = wl.ones(huge)
square = wl.broadcast_to(v, (huge, huge))  # a view: it costs nothing until it is copied

HUGE: dict[str, Callable[[], Any]] = {
    "zeros": lambda: wl.zeros((huge, huge)),
    "full": lambda: wl.full((huge, huge), 2.0),
    "overflow of the byte count": lambda: wl.zeros((2**62, 4)),
    "more than an integer holds": lambda: wl.zeros(2**70),
    "eye": lambda: wl.eye(huge),
    "tri": lambda: wl.tri(huge),
    "diag": lambda: wl.diag(v),
    "arange": lambda: wl.arange(10**13),
    "linspace": lambda: wl.linspace(0, 1, 10**13),
    "logspace": lambda: wl.logspace(0, 1, 10**13),
    "add": lambda: v[:, None] + v,
    "compare": lambda: v[:, None] == v,
    "where": lambda: wl.where(v[:, None] > 0, v, 0.0),
    "outer": lambda: wl.outer(v, v),
    "matmul": lambda: v[:, None] @ v[None],
    "einsum": lambda: wl.einsum("i,j->ij", v, v),
    "kron": lambda: wl.kron(v, v),
    "tile": lambda: wl.tile(v, huge),
    "repeat": lambda: wl.repeat(v, huge),
    "pad": lambda: wl.pad(v, 10**13),
    "one_hot": lambda: wl.one_hot(wl.arange(huge), huge),
    "concat": lambda: wl.concat([square, square]),
    "stack": lambda: wl.stack([square]),
    "astype": lambda: square.astype(wl.float64),
    "reshape": lambda: square.reshape(-1),
    "sort": lambda: wl.sort(square),
    "cumulative_sum": lambda: wl.cumulative_sum(square, axis=0),
    "index": lambda: square[wl.arange(huge)],
    "update": lambda: square.at[0].set(1.0),
    "segment_sum": lambda: wl.segment_sum(v, wl.zeros(huge, dtype=wl.int64), 10**13),
    "inv": lambda: wl.linalg.inv(square),
    "fft": lambda: wl.fft.fft(v, n=10**13),
    "fftfreq": lambda: wl.fft.fftfreq(10**13),
    "normal": lambda: wl.random.normal((huge, huge)),
    "randint": lambda: wl.random.randint((huge, huge), 0, 5),
    "permutation": lambda: wl.random.permutation(10**13),
    "jit": lambda: wl.jit(lambda x: x[:, None] * x)(v),
    "grad": lambda: wl.grad(lambda x: (x[:, None] * x).sum())(v),
    "vmap": lambda: wl.vmap(lambda x: x * v)(v),
    "scan": lambda: wl.jit(lambda x: wl.scan(lambda c, _: (c, c), x, length=huge)[1])(v),
    "jacobian": lambda: wl.jacobian(lambda x: x**2)(v),
    "hessian": lambda: wl.hessian(lambda x: (x**3).sum())(v),
    "Linear": lambda: nn.Linear(huge, huge),
}


@pytest.mark.parametrize("name", HUGE)
def test_huge_sizes_are_refused_before_anything_is_allocated(name: str) -> None:
    resource = pytest.importorskip("resource")
    peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    before, begin = peak(), time.perf_counter()
    with pytest.raises(SizeError, match="iB"):
        HUGE[name]()
    assert peak() - before < 100 * 2**20
    assert time.perf_counter() - begin < 10


def test_large_results_that_fit_are_not_refused() -> None:
    assert wl.one_hot(wl.tensor([3]), 10**6).shape == (1, 10**6)
    assert wl.broadcast_to(wl.ones(1), (10**9, 10**9)).shape == (10**9, 10**9)
    assert wl.eval_shape(lambda x: x @ x, wl.ShapeDtype((10**6, 10**6), wl.float32)).shape == (10**6, 10**6)


# --- nothing is left behind


def test_after_any_error_the_next_call_works() -> None:
    model = nn.Sequential(nn.Linear(3, 4), wl.tanh, nn.Linear(4, 1))
    step = wl.jit(wl.value_and_grad(lambda m, x: (m(x) ** 2).mean()))
    expected = step(model, x23)[0]
    for bad in (wl.ones((2, 4)), wl.ones(()), wl.ones((2, 3), dtype=wl.complex64)):
        with pytest.raises(WonderlandError):
            step(model, bad)
        assert step(model, x23)[0] == expected


# --- a traced value is no bad input


def test_traced_values_have_every_method_of_tensors() -> None:
    """An attribute of a tracer must not hide a method: x.var() means the variance everywhere."""
    x = wl.arange(6.0).reshape(2, 3)
    for name in (
        "sum",
        "prod",
        "mean",
        "var",
        "std",
        "max",
        "min",
        "ravel",
        "exp",
        "sqrt",
        "square",
        "abs",
        "conj",
    ):
        f = lambda x, name=name: getattr(x, name)()
        for run in (
            wl.jit(f),
            lambda x, f=f: wl.vmap(f)(x[None])[0],
            lambda x, f=f: wl.jvp(f, (x,), (x,))[0],
        ):
            np.testing.assert_allclose(np.asarray(run(x)), np.asarray(f(x)), rtol=1e-6)
