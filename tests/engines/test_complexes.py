"""Complex numbers in native code are pairs of real ones: results are NumPy's, and nothing is left to it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import wonderland as wl
import wonderland.fft
import wonderland.linalg
from tests.engines.engines import native, raises_alike, same
from wonderland.core.primitive import TABLE
from wonderland.engines.native.complexes.rules import without_complex
from wonderland.engines.native.steps import Fallback
from wonderland.engines.numpy.evaluate import evaluate

F64, C64, C128 = np.float64, np.complex64, np.complex128


def numbers(*shape: int, dtype: Any = C128, seed: int = 0) -> Any:
    rng = np.random.default_rng(seed)
    return (rng.normal(size=shape) + 1j * rng.normal(size=shape)).astype(dtype)


def close(f: Any, *args: Any) -> Any:
    return same(f, *args, rtol=1e-10, atol=1e-11)


# --- single operations

FUNCTIONS = ["exp", "expm1", "log", "log1p", "log2", "log10", "sqrt", "square", "sin", "cos", "tan", "sinh", "cosh"]
FUNCTIONS += ["tanh", "asin", "acos", "atan", "asinh", "acosh", "atanh", "abs", "sign"]


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("dtype", [C64, C128], ids=["complex64", "complex128"])
def test_functions_over_the_plane(name: str, dtype: Any) -> None:
    """To some units of the last place of the larger part, in all quadrants and over ten orders of magnitude."""
    rng = np.random.default_rng(0)
    sizes = 10 ** rng.uniform(-3, 1, (2, 997))
    z = (rng.normal(size=997) * sizes[0] + 1j * rng.normal(size=997) * sizes[1]).astype(dtype)
    program, arrays = native(TABLE[name], z)
    assert not any(isinstance(step, Fallback) for step in program.schedule.steps)
    (got,), (exact,) = program(arrays), evaluate(native(TABLE[name], z.astype(C128))[0].graph, [z.astype(C128)])
    if name == "log1p":  # NumPy adds the 1 and loses the digits of small numbers
        x, y = z.real.astype(np.longdouble), z.imag.astype(np.longdouble)
        exact = 0.5 * np.log1p(x * (2 + x) + y * y) + 1j * np.arctan2(y, 1 + x)
    ulps = np.abs(got - exact) / np.abs(exact) / np.finfo(dtype).eps
    assert ulps.max() < 5


@pytest.mark.parametrize("name", ["exp", "log", "sqrt", "asin", "acos", "atan", "asinh", "acosh", "atanh"])
def test_values_at_infinity_and_on_branch_cuts(name: str) -> None:
    """The sign of zero decides on which side of a cut an argument lies."""
    parts = [0.0, -0.0, 0.5, -0.5, 2.0, -2.0, 1e200, -1e200]
    z = np.array([complex(a, b) for a in parts for b in parts if name != "exp" or abs(a) < 9 > abs(b)], C128)
    ends = [complex(a, b) for a in (np.inf, -np.inf) for b in (0.0, -0.0, 1.5, -1.5)]
    ends += [complex(b, a) for a in (np.inf, -np.inf) for b in (0.0, -0.0, 1.5, -1.5) if name not in ("exp", "acosh")]
    close(TABLE[name], np.concatenate([z, ends]))


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
def test_the_pole_of_the_area_tangent_from_near(dtype: Any) -> None:
    tiny = np.finfo(dtype).smallest_subnormal
    steps = np.array([1e-3, 1e-5, 1e-8, 1e-19, 1e-25, 1e-30, tiny, 0.0])
    x = np.concatenate([1 + 1j * steps, -1 - 1j * steps, 1 - steps + 1j * steps]).astype(dtype)
    same(wl.atanh, x, rtol=20 * float(np.finfo(dtype).eps))
    same(wl.atan, 1j * x, rtol=20 * float(np.finfo(dtype).eps))


def test_quotients_of_large_and_small_numbers() -> None:
    parts = [0.0, -1.5, 1e-200, 1e200, 3.0, np.inf]
    z = np.array([complex(a, b) for a in parts[:-1] for b in parts[:-1]])
    with np.errstate(all="ignore"):
        same(lambda x, y: x[:, None] / y, z, z[1:], rtol=1e-12)
        same(lambda x, y: x / y, np.array([1 + 1j, 0j, np.inf + 1j]), np.zeros(3, C128))
    close(lambda x, y: [x / y, 1 / y, x / 2.0, abs(x / y)], numbers(5, 7), numbers(7, seed=1))


def test_powers() -> None:
    x, p = numbers(4, 5), numbers(5, seed=1)
    close(lambda x, p: [x**p, x**2, x**3, x**-2, x**0, x**0.5, x ** (1 + 2j), 2.0**p, x**17], x, p)
    close(TABLE["power"], np.zeros(4, C128), np.array([0j, 1 + 1j, -1 + 0j, 2 + 0j]))


def test_parts_tests_and_conversions() -> None:
    z = numbers(3, 4)
    z[0, 0], z[1, 1], z[2, 2] = np.nan, complex(1, np.inf), 0

    def f(z: Any, x: Any) -> Any:
        return [wl.real(z), wl.imag(z), wl.conj(z), z == z, z != 0, wl.isnan(z), wl.isinf(z), wl.isfinite(z)] + [
            z.astype(bool),
            z.astype(wl.complex64),
            x.astype(wl.complex128),
            TABLE["complex"](x, x[0]),
            TABLE["complex"](x.astype(wl.float16), x.astype(wl.float16)),
            wl.any(z, axis=1),
            wl.all(z),
            z + x,
            wl.where(x > 0, z, 1j),
        ]

    same(f, z, numbers(3, 4, dtype=C128, seed=2).real.copy())


def test_what_is_made_of_nothing() -> None:
    made = lambda: [wl.full((2, 3), 1 + 2j), wl.zeros(4, dtype=wl.complex128), wl.arange(5).astype(wl.complex64)]
    same(made)
    fixed = wl.asarray(numbers(3, 3))
    close(lambda z: z @ fixed + fixed, numbers(3, 3, seed=1))


# --- layouts, reductions, products

MOVES: dict[str, Any] = {
    "T": lambda z: z.T,
    "reversed": lambda z: z[::-1],
    "every other": lambda z: z[:, ::2],
    "reshape": lambda z: z.reshape(-1, 3),
    "flat": lambda z: z.reshape(1, -1),
    "twice": lambda z: wl.concatenate([z, wl.conj(z)], axis=1),
    "padded": lambda z: wl.pad(z, ((1, 0), (0, 2))),
    "rolled": lambda z: wl.roll(z, 1, axis=0),
    "rows": lambda z: z[wl.asarray([0, -1, 0])],
    "set": lambda z: z.at[0].set(2j),
    "added": lambda z: z.at[wl.asarray([0, 0])].add(z[:1]),
    "exp": lambda z: wl.exp(0.3 * z),
    "product": lambda z: z * wl.conj(z[:1]) + 1j,
    "quotient": lambda z: z / (2 + z * wl.conj(z)),
    "scaled": lambda z: z / (1 + wl.abs(z).sum(axis=1, keepdims=True)),
    "sum": lambda z: z - z.mean(axis=0),
    "matmul": lambda z: z @ wl.conj(z).T,
    "left": lambda z: z.T @ z,
    "cumsum": lambda z: wl.cumsum(z, axis=1),
    "where": lambda z: wl.where(wl.real(z) > 0, z, wl.sin(z)),
}


def chain(names: list[str]) -> Any:
    def f(z: Any) -> Any:
        for name in names:
            z = MOVES[name](z)
        return z

    return f


@settings(max_examples=60)
@given(
    st.lists(st.sampled_from(list(MOVES)), min_size=1, max_size=5), st.sampled_from([(3, 6), (6, 3), (12, 1), (9, 34)])
)
def test_random_expressions_and_their_gradients(names: list[str], shape: tuple[int, int]) -> None:
    f = chain(names)
    z = 0.5 * numbers(*shape)

    def size(z: Any) -> Any:
        out = f(z)
        return wl.real(out * wl.conj(out)).mean() + wl.cos(wl.imag(out)).sum()

    for g in (f, wl.grad(size)):
        try:
            program, arrays = native(g, z)
        except wl.errors.ShapeError:
            return  # it cannot be reshaped to rows of 3
        assert not any(isinstance(step, Fallback) for step in program.schedule.steps)
        for x, y in zip(program(arrays), evaluate(program.graph, arrays), strict=True):
            assert (x.shape, x.dtype) == (y.shape, y.dtype)
            large = float(np.abs(y).max(initial=0.0))
            assume(large < 1e100)  # beyond, infinities are a matter of taste
            np.testing.assert_allclose(x, y, rtol=1e-8, atol=1e-9 * max(1.0, large))


@pytest.mark.parametrize("n", [1, 2, 3, 7, 16, 33])
def test_reductions_and_running_forms(n: int) -> None:
    z = numbers(3, n, 5)
    close(lambda z: [f(z, axis=a) for f in (wl.sum, wl.prod, wl.mean) for a in (0, 1, 2, (0, 2), None)], z)
    close(lambda z: [f(z, axis=a) for f in (wl.cumsum, wl.cumprod) for a in (0, 1, 2)], z)
    close(wl.grad(lambda z: wl.real(wl.prod(z, axis=1)).sum()), z)


@pytest.mark.parametrize("dtype", [C64, C128], ids=["complex64", "complex128"])
def test_matrix_products_of_every_layout(dtype: Any) -> None:
    x, y, b = numbers(6, 10, dtype=dtype), numbers(10, 8, dtype=dtype, seed=1), numbers(3, 5, 10, dtype=dtype, seed=2)
    f = lambda x, y, b: [x @ y, y.T @ x.T, x[::2] @ y[:, 1:5], x[:, ::-1] @ y, b @ y, b @ b.mT, wl.conj(b) @ y + 1j]
    tolerance = 1e-4 if dtype == C64 else 1e-12
    same(f, x, y, b, rtol=tolerance, atol=tolerance)
    same(lambda x, y: [x[:, :0] @ y[:0], x[:0] @ y, x[:1] @ y[:, :1]], x, y, rtol=tolerance, atol=tolerance)
    large = numbers(130, 140, dtype=dtype)
    same(lambda x: x @ wl.conj(x).T, large, rtol=tolerance, atol=100 * tolerance)


@pytest.mark.parametrize("shape", [(), (0,), (1,), (3, 0), (17,), (2, 3, 5)], ids=str)
def test_any_shape(shape: tuple[int, ...]) -> None:
    close(lambda z: [z, z, wl.exp(z) + 1, z.sum(), wl.stack([z, z]), z.reshape(-1), z.T, wl.real(z)], numbers(*shape))


def test_inputs_may_be_strided() -> None:
    z = numbers(10, 10)
    program, _ = native(lambda z: [z, z + 1], z)
    for given_ in (z.T, z[::-1], np.asfortranarray(z)):
        np.testing.assert_array_equal(program([given_])[0], given_)
        np.testing.assert_array_equal(program([given_])[1], given_ + 1)


def test_elementwise_work_is_one_kernel_and_needs_no_memory() -> None:
    program = close(lambda z, w: (z * w + 1j) * wl.conj(z) / 2.0, numbers(33, 47), numbers(33, 47, seed=1))
    assert [type(step).__name__ for step in program.schedule.steps] == ["Kernel"]
    assert program.arena_bytes == 0


# --- loops, branches, calls


def test_loops_carry_complex_state() -> None:
    w, zs = 0.4 * numbers(4, 4), numbers(6, 4, seed=1)

    def run(w: Any, zs: Any) -> Any:
        return wl.scan(lambda h, z: ((h @ w + z) / 2, wl.abs(h)), zs[0], zs)

    close(run, w, zs)
    close(wl.grad(lambda w, zs: wl.abs(run(w, zs)[0]).sum() + run(w, zs)[1].sum(), (0, 1)), w, zs)

    def escape(c: Any) -> Any:
        """How many steps z^2 + c takes to leave the circle of radius 2."""
        inside = lambda s: wl.any(wl.abs(s[0]) < 2) & (s[2] < 50)
        step = lambda s: (wl.where(wl.abs(s[0]) < 2, s[0] ** 2 + c, s[0]), s[1] + (wl.abs(s[0]) < 2), s[2] + 1)
        return wl.while_loop(inside, step, (c * 0, wl.zeros(c.shape, dtype=wl.int64), wl.asarray(0)))

    close(escape, numbers(5, 7))


def test_branches_and_calls_on_complex_values() -> None:
    @wl.jit
    def inner(z: Any) -> Any:
        return z * 1j, wl.abs(z)

    def f(i: Any, z: Any) -> Any:
        return [
            wl.switch(i, [lambda z: z * 2, wl.conj, lambda z: z * z], z),
            inner(z),
            wl.checkpoint(lambda z: wl.sin(z) * z)(z),
            wl.grad(wl.checkpoint(lambda z: wl.abs(wl.sin(z) * z).sum()))(z),
        ]

    for i in range(3):
        close(f, np.asarray(i), numbers(3, 4))


def test_complex_values_inside_of_a_real_function() -> None:
    """Nothing outside tells that a call computes with complex numbers."""

    @wl.custom_jvp
    def rotated(x: Any) -> Any:
        return wl.real(wl.exp(1j * x) * x)

    rotated.defjvp(lambda primals, tangents: (rotated(*primals), tangents[0]))
    x = numbers(5).real.copy()
    close(lambda x: [rotated(x), wl.jit(lambda x: wl.abs(1j * x + 1))(x)], x)
    close(wl.grad(lambda x: wl.scan(lambda h, t: (wl.abs(h + 1j * t), None), x, x[:3])[0].sum()), x)


# --- what NumPy computes


def test_numpy_gets_complex_arrays() -> None:
    m = numbers(4, 4) + 4 * np.eye(4)
    f = lambda m: [
        wl.linalg.inv(m * 1j) + 1,
        *wl.linalg.slogdet(m),
        wl.fft.fft(m.T),
        wl.fft.irfft(wl.fft.rfft(wl.real(m))),
    ]
    program, arrays = native(f, m)
    assert any(isinstance(step, Fallback) for step in program.schedule.steps)
    for x, y in zip(program(arrays), evaluate(program.graph, arrays), strict=True):
        assert (x.shape, x.dtype) == (y.shape, y.dtype)
        np.testing.assert_allclose(x, y, rtol=1e-12, atol=1e-12)
    assert "complex_inv" in str(wl.explain(wl.jit(f), wl.asarray(m)))


def test_errors_are_those_of_numpy() -> None:
    assert "index 7" in raises_alike(lambda z, i: z[i] * 2, numbers(3), np.array([0, 7]))
    assert "inv" in raises_alike(wl.linalg.inv, np.zeros((2, 2), C128))


def test_graphs_without_complex_numbers_stay_as_they_are() -> None:
    graph = native(lambda x: x + 1, np.ones(3))[0].graph
    assert without_complex(graph) is graph


def test_the_real_graph_computes_the_same_with_numpy() -> None:
    """The formulas by themselves, without native code."""
    z = numbers(3, 4)
    graph = native(lambda z: [wl.sin(z) @ z.T, wl.abs(z), wl.cumprod(z, axis=1)], z)[0].graph
    for x, y in zip(
        evaluate(without_complex(graph), [z.view(F64).reshape(3, 4, 2)]), evaluate(graph, [z]), strict=True
    ):
        x = x if x.shape == y.shape else x[..., 0] + 1j * x[..., 1]
        np.testing.assert_allclose(x, y, rtol=1e-12)


def test_training_on_complex_parameters() -> None:
    """A unitary-like linear map is found by gradient descent, the same on both backends."""
    target, z = numbers(4, 4, dtype=C64), wl.asarray(numbers(32, 4, dtype=C64, seed=1))

    def train() -> Any:
        @wl.jit
        def step(w: Any) -> Any:
            loss = lambda w: (wl.abs(z @ (w - target)) ** 2).mean()
            return w - 0.5 * wl.grad(loss)(w)

        w = wl.zeros((4, 4), dtype=wl.complex64)
        for _ in range(200):
            w = step(w)
        return np.asarray(w)

    reference = train()
    with wl.using_backend("native"):
        np.testing.assert_allclose(train(), reference, rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(reference, target, rtol=0.05, atol=0.05)
