"""Native code against the NumPy evaluator: every primitive, random programs, and the shapes of fusion."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import wonderland as wl
import wonderland.fft
import wonderland.linalg
import wonderland.random
import wonderland.special  # these declare primitives of their own
from tests.primitives.cases import CASES
from tests.primitives.makers import Case
from tests.transforms.test_random_programs import program as random_program
from wonderland.core.primitive import TABLE, Aval
from wonderland.engines.native import Program
from wonderland.engines.native.steps import Fallback
from wonderland.engines.numpy.evaluate import evaluate
from wonderland.ir.stage import stage

PAIRS = [(name, case) for name in sorted(CASES) for case in CASES[name]]


def compiled(f: Any, *args: Any) -> tuple[Program, list[Any]]:
    """The program of a function, and the arrays to call it with."""
    arrays = [np.asarray(a) for a in args]
    staged = stage(lambda *xs: wl.tree.leaves(f(*xs)), [Aval(a.shape, a.dtype) for a in arrays])
    return Program(staged.graph), [np.asarray(c) for c in staged.captured] + arrays


def agree(f: Any, *args: Any, rtol: float = 2e-6, atol: float = 1e-6) -> Program:
    """Both engines give the same; returns the program."""
    program, arrays = compiled(f, *args)
    got, want = program(arrays), evaluate(program.graph, arrays)
    for x, y in zip(got, want, strict=True):
        assert (x.shape, x.dtype) == (y.shape, y.dtype)
        if x.dtype == wl.bfloat16:
            x, y = x.astype(np.float32), y.astype(np.float32)
        np.testing.assert_allclose(x, y, rtol=rtol, atol=atol)
    return program


def kinds(program: Program) -> list[str]:
    return [type(step).__name__ for step in program.schedule.steps]


def numbers(*shape: int, dtype: Any = np.float32, seed: int = 0) -> Any:
    return np.random.default_rng(seed).normal(size=shape).astype(dtype)


# --- every primitive


@pytest.mark.parametrize("name, case", [pytest.param(n, c, id=f"{n}-{c.label}") for n, c in PAIRS])
def test_every_primitive_agrees(name: str, case: Case) -> None:
    args = case.build(name)

    def f(*xs: Any) -> Any:
        out = TABLE[name](*xs, **case.params)
        return list(out) if TABLE[name].multiple else [out]

    agree(f, *args, rtol=1e-12, atol=1e-12)


FLOATS = [np.float32, np.float64, np.float16, wl.bfloat16]


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("name", ["exp", "log", "tanh", "sigmoid", "sqrt", "sin", "erf", "square", "negative", "floor"])
def test_functions_in_every_float(name: str, dtype: Any) -> None:
    x = np.abs(numbers(3, 37)).astype(dtype) + np.asarray(0.1, dtype)
    narrow = dtype in (np.float16, wl.bfloat16)
    agree(getattr(wl, name), x, rtol=1e-2 if narrow else 2e-6, atol=1e-3 if narrow else 1e-7)


@pytest.mark.parametrize(
    "name, ulps, low, high",
    [("exp", 2, -103.0, 88.0), ("log", 3, 1e-38, 1e38), ("tanh", 4, -9.0, 9.0), ("sigmoid", 4, -80.0, 80.0)],
)
def test_errors_of_vector_functions_are_bounded(name: str, ulps: int, low: float, high: float) -> None:
    x = np.linspace(low, high, 200_003) if name != "log" else np.logspace(-44, 38, 200_003)
    x = x.astype(np.float32)
    program, arrays = compiled(getattr(wl, name), x)
    exact = np.asarray(getattr(wl, name)(wl.asarray(x.astype(np.float64))))
    spacing = np.maximum(np.spacing(np.abs(exact).astype(np.float32)), np.float32(1.5e-45))
    assert np.max(np.abs(program(arrays)[0] - exact) / spacing) <= ulps


def test_functions_at_the_ends() -> None:
    x = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e-45, -1.0, 200.0, -200.0, 1e38] * 5, np.float32)
    agree(lambda x: [wl.exp(x), wl.log(x), wl.tanh(x), wl.sigmoid(x), wl.maximum(x, 1.0), wl.sign(x)], x)


# --- fusion, views, memory


def test_a_chain_of_elementwise_operations_is_one_kernel() -> None:
    program = agree(lambda x: wl.tanh(x * 2 + 1) * wl.exp(-x), numbers(33, 47))
    assert kinds(program) == ["Kernel"]
    assert program.arena_bytes == 0


def test_several_results_over_one_shape_are_one_kernel() -> None:
    """The update of an optimizer with two moments reads and writes everything once."""

    def adam(p: Any, g: Any, m: Any, v: Any) -> Any:
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
        return [p - 0.001 * m / (wl.sqrt(v) + 1e-8), m, v]

    program = agree(adam, numbers(100), numbers(100, seed=1), numbers(100, seed=2), abs(numbers(100, seed=3)))
    assert kinds(program) == ["Kernel"]


def test_views_cost_nothing() -> None:
    def f(x: Any) -> Any:
        return (x.T[::2, ::-1] + x.reshape(3, 2, 5)[:, 1]).reshape(3, 1, 5)

    program = agree(f, numbers(5, 6))
    assert kinds(program) == ["Kernel"]


def test_a_reduction_takes_its_argument_in() -> None:
    # a sum over a row and over axes before it takes a second, small kernel
    for axis, kernels in [(0, 1), (1, 1), (2, 1), ((0, 2), 2), ((0, 1, 2), 1)]:
        program = agree(lambda x, axis=axis: (x * x + 1).sum(axis=axis), numbers(5, 18, 33), rtol=1e-5)
        assert kinds(program) == ["Kernel"] * kernels


@pytest.mark.parametrize("reduce", ["sum", "prod", "max", "min", "any", "all"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32, np.uint8, np.bool_])
def test_reductions(reduce: str, dtype: Any) -> None:
    x = (np.abs(numbers(7, 65)) * 2).astype(dtype)
    agree(lambda x: [getattr(wl, reduce)(x, axis=a) for a in (0, 1, None)], x, rtol=1e-4)


def test_sums_and_products_of_bools_stay_bools() -> None:
    x = np.array([[True, True], [True, False], [False, False]])
    agree(lambda x: [TABLE[name](x, axes=(1,)) for name in ("sum", "prod", "max", "min")], x)


def test_matrix_products_of_every_layout() -> None:
    x, y = numbers(6, 10), numbers(10, 8, seed=1)
    program = agree(lambda x, y: [x @ y, y.T @ x.T, x.T @ x, x[::2] @ y[:, 1:5], x[:, ::2] @ y[::2]], x, y, rtol=1e-4)
    assert Fallback.__name__ not in kinds(program)
    batch = numbers(3, 4, 5, 10)
    agree(lambda b, y: [b @ y, b @ b.mT, b.mT @ b, b[:, :1] @ y], batch, y, rtol=1e-4, atol=1e-4)
    assert "Product" in kinds(agree(lambda x, y: x @ y, x.astype(np.float64), y.astype(np.float64)))


def test_what_has_no_kernel_is_computed_by_numpy_in_between() -> None:
    program = agree(lambda x: wl.linalg.inv(x * 2) + 1, numbers(3, 3) + 4 * np.eye(3, dtype=np.float32))
    assert kinds(program)[0] == kinds(program)[-1] == "Kernel"
    assert "Fallback" in kinds(program)


def test_errors_come_out_as_they_do_with_numpy() -> None:
    program, arrays = compiled(lambda x, i: x[i] * 2, numbers(3), np.array([0, 7]))
    with pytest.raises(wl.errors.IndexOutOfRange, match=r"index 7 .* size 3"):
        program(arrays)
    program, arrays = compiled(lambda x, i, j: x[i, j], numbers(16, 10), np.array([0, 3]), np.array([2, 108]))
    with pytest.raises(wl.errors.IndexOutOfRange, match=r"index 108 is out of range for axis 1 of size 10"):
        program(arrays)


def test_memory_is_shared_by_values_that_do_not_meet() -> None:
    """A chain whose steps cannot fuse needs two buffers, whatever its length."""

    def chain(n: int) -> Any:
        def f(x: Any) -> Any:
            for _ in range(n):
                x = wl.sin(x) @ x
            return x

        return f

    short, long = (compiled(chain(n), numbers(16, 16))[0].arena_bytes for n in (4, 16))
    assert short == long


@pytest.mark.parametrize("shape", [(), (0,), (1,), (3, 0), (15,), (16,), (17,), (2, 3, 5, 7)], ids=str)
def test_any_shape(shape: tuple[int, ...]) -> None:
    agree(lambda x: [wl.exp(x) + 1, x.sum(), wl.stack([x, x]), x.reshape(-1), x.T], numbers(*shape))


def test_inputs_may_be_strided_and_results_may_be_inputs() -> None:
    x = numbers(10, 10)
    program, _ = compiled(lambda x: [x, x, x + 1, wl.ones(3)], x)
    for given_ in (x.T, x[::-1], np.asfortranarray(x)):
        got = program([given_])
        np.testing.assert_array_equal(got[0], given_)
        np.testing.assert_array_equal(got[2], given_ + 1)


def test_calls_do_not_disturb_each_other() -> None:
    program, (x,) = compiled(lambda x: wl.sin(x) @ x, numbers(8, 8))
    first = program([x])[0]
    kept = first.copy()
    program([x + 1])
    np.testing.assert_array_equal(first, kept)


# --- whole programs


@settings(max_examples=25)
@given(
    st.lists(
        st.sampled_from(["sin", "square", "softmax", "logsumexp", "prod", "flip", "relu", "where", "concat"]),
        min_size=1,
        max_size=4,
    )
)
def test_random_programs_and_their_gradients_agree(names: list[str]) -> None:
    f = random_program(names)
    x = numbers(3, 5, dtype=np.float64)
    agree(f, x, rtol=1e-9, atol=1e-9)
    agree(wl.grad(lambda x: wl.sin(f(x)).sum()), x, rtol=1e-9, atol=1e-9)


@pytest.mark.book("2.02", "2.33", name="wl.using_backend")
def test_a_training_run_is_the_same_on_both_backends() -> None:
    """Dispatching to another engine changes the kernels and not the result."""

    def train() -> list[float]:
        wl.random.seed(0)
        model = wl.nn.Sequential(wl.nn.Linear(4, 16), wl.tanh, wl.nn.Linear(16, 1))
        x = wl.random.normal((64, 4))
        y = wl.sin(x.sum(axis=1, keepdims=True))

        @wl.jit
        def step(model: Any, x: Any, y: Any) -> Any:
            loss, grads = wl.value_and_grad(lambda m: ((m(x) - y) ** 2).mean())(model)
            for path, parameter in model.named_parameters():
                parameter.assign(parameter - 0.1 * grads[path])
            return loss

        return [step(model, x, y).item() for _ in range(30)]

    reference = train()
    with wl.using_backend("native"):
        native = train()
    np.testing.assert_allclose(native, reference, rtol=1e-4)
    assert native[-1] < 0.6 * native[0]


def test_loops_and_branches_run_natively_inside() -> None:
    f = wl.jit(wl.grad(lambda w, xs: wl.scan(lambda h, x: (wl.tanh(h @ w + x), None), xs[0], xs)[0].sum()))
    w, xs = wl.asarray(numbers(4, 4)), wl.asarray(numbers(6, 4))
    want = f(w, xs)
    with wl.using_backend("native"):
        np.testing.assert_allclose(np.asarray(f(w, xs)), np.asarray(want), rtol=1e-4, atol=1e-5)


def test_backends_are_named() -> None:
    for name in ("numpy", "native"):
        with wl.using_backend(name):
            assert wl.get_backend() == name
    with pytest.raises(wl.errors.InputError, match="'numpy' or 'native'"):
        wl.set_backend("gpu")


def test_conversions_to_half_precision_round_once() -> None:
    """A float64 just beside the middle of two float16, and integers that float16 and bfloat16 do not have."""
    middle = np.float64(1 + 2**-11)
    ends = [1e300, -1e300, np.inf, -np.inf, np.nan, 65519.999999, 65520.0, 0.0, -0.0, 1e-300, 2**-25, 2**-25 + 1e-12]
    x = np.array([middle, middle + 1e-12, middle - 1e-12, -middle - 1e-12, 3e-8, 6.1e-5, *ends], np.float64)
    x = np.concatenate([x, np.random.default_rng(0).normal(size=50_000) ** 9])
    back = lambda x: x.astype(wl.float16).astype(wl.float64)  # in one kernel
    with np.errstate(over="ignore", under="ignore"):
        agree(lambda x: [x.astype(wl.float16), back(x), x.astype(wl.bfloat16)], x, rtol=0, atol=0)
    n = np.array([2049, 2051, 4099, -2049, 257, 511, 7], np.int32)
    agree(lambda n: [n.astype(t).astype(wl.float32) for t in (wl.float16, wl.bfloat16)], n, rtol=0, atol=0)
    agree(lambda n: [n.astype(t) * 1.0 for t in (wl.float16, wl.bfloat16)], n, rtol=0, atol=0)
