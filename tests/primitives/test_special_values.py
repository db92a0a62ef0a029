"""Every elementwise function at NaN, infinities, both zeros, subnormal and huge numbers: native code against NumPy."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

import wonderland as wl
from tests.engines.engines import native
from wonderland.core.primitive import TABLE, Aval
from wonderland.engines.native.steps import Fallback
from wonderland.engines.numpy.evaluate import evaluate

REAL = ["float16", "bfloat16", "float32", "float64"]
COMPLEX = ["complex64", "complex128"]
CASES = {
    name: primitive for name, primitive in TABLE.items() if primitive.elementwise and name not in ("astype", "where")
}
# the sign of a zero is part of the result; of the others NumPy's own choice depends on the processor
SIGNED = {"negative", "abs", "copysign", "floor", "ceil", "trunc", "round", "sqrt", "multiply", "divide", "square"}
SIGNED |= {"sin", "tan", "asin", "atan", "sinh", "tanh", "asinh", "atanh", "expm1", "log1p", "add", "subtract"}


def numbers(dtype):
    """Special values and a few ordinary ones."""
    dtype = np.dtype(getattr(wl, dtype))
    if dtype.kind == "c":
        part = numbers("float32" if dtype == np.complex64 else "float64")
        real, imag = (grid.ravel() for grid in np.meshgrid(part, part))
        out = np.empty(real.size, dtype)
        out.real, out.imag = real, imag
        return out
    info = wl.finfo(dtype)
    tiny, largest = float(info.smallest_normal), float(info.max)
    special = [np.nan, np.inf, -np.inf, 0.0, -0.0, 3 * tiny * float(info.eps), -tiny, largest, -largest]
    return np.array([*special, 1.0, -1.0, 0.5, 2.0, -2.0, 3.0, -3.7]).astype(dtype)


def takes(primitive, count, dtype):
    """Whether a primitive has results for so many arguments of a dtype."""
    parameters = inspect.signature(primitive.impl).parameters if not isinstance(primitive.impl, np.ufunc) else None
    wanted = primitive.impl.nin if parameters is None else len([p for p in parameters.values() if p.default is p.empty])
    try:
        primitive.abstract(*[Aval((2,), np.dtype(getattr(wl, dtype)))] * count)
    except (TypeError, wl.errors.WonderlandError):
        return False
    return wanted == count


def differ(got, expected, tolerance, signed):
    """Where two results are not the same: kinds of numbers, signs of zeros, and values to a tolerance."""
    if got.dtype.kind in "biu":
        return got != expected
    wide = np.complex128 if got.dtype.kind == "c" else np.float64
    unit, small = (float(x) for x in (wl.finfo(got.dtype).eps, wl.finfo(got.dtype).smallest_normal))
    got, expected = got.astype(wide), expected.astype(wide)
    parts = [(got.real, expected.real), (got.imag, expected.imag)] if wide is np.complex128 else [(got, expected)]
    other = np.zeros(got.shape, bool)
    for a, b in parts:
        other |= (np.isnan(a) != np.isnan(b)) | ((np.isinf(a) | np.isinf(b)) & (a != b) & ~np.isnan(a))
        if signed:
            other |= (a == 0) & (b == 0) & (np.signbit(a) != np.signbit(b))
    finite = np.isfinite(got) & np.isfinite(expected)
    far = np.abs(np.where(finite, got - expected, 0)) > tolerance * unit * np.maximum(np.abs(expected), small)
    return other | (finite & far)


def compare(names, args, tolerance):
    program, arrays = native(lambda *xs: [CASES[name](*xs) for name in names], *args)
    assert not any(isinstance(step, Fallback) for step in program.schedule.steps)
    wrong = []
    for name, got, expected in zip(names, program(arrays), evaluate(program.graph, arrays), strict=True):
        assert (got.shape, got.dtype) == (expected.shape, expected.dtype)
        signed = name in SIGNED and args[0].dtype.kind != "c"
        for i in np.flatnonzero(differ(got, expected, tolerance, signed))[:3]:
            wrong.append(f"{name}{tuple(a[i] for a in args)}: native {got[i]}, NumPy {expected[i]}")
    assert not wrong, "\n".join(wrong)


# Formulas over other primitives, with special values of their own: tests/test_special.py.
FORMULAS = frozenset(name for name, p in TABLE.items() if p.impl.__module__.endswith(".composed"))


@pytest.mark.parametrize("dtype", [*REAL, *COMPLEX])
@np.errstate(all="ignore")
def test_functions_of_one_argument(dtype):
    names = [name for name, primitive in CASES.items() if takes(primitive, 1, dtype) and name not in FORMULAS]
    assert len(names) > (25 if dtype in REAL else 20)
    args = numbers(dtype)
    if dtype in COMPLEX:
        names.remove("square")  # whether the largest squares overflow depends on fused operations
        names.remove("log1p")  # NumPy's loses small arguments
    # NumPy's engine has 1e-13 for the error function and its relatives
    compare(names, [args], 600 if dtype == "float64" else 64)


@pytest.mark.parametrize("dtype", REAL)
@np.errstate(all="ignore")
def test_functions_of_two_arguments(dtype):
    names = [name for name, primitive in CASES.items() if takes(primitive, 2, dtype) and name not in FORMULAS]
    assert {"add", "power", "remainder", "maximum", "less", "hypot"} <= set(names)
    compare(names, [grid.ravel() for grid in np.meshgrid(numbers(dtype), numbers(dtype))], 64)


@pytest.mark.parametrize("dtype", COMPLEX)
@np.errstate(all="ignore")
def test_complex_functions_of_two_arguments(dtype):
    names = [name for name, primitive in CASES.items() if takes(primitive, 2, dtype)]
    assert {"add", "multiply", "divide", "power", "equal"} <= set(names)
    # products of the largest numbers overflow or not, as fused operations have it; C says nothing of general powers
    # at infinities
    values = numbers(dtype)
    parts = np.abs(np.stack([values.real, values.imag]))
    extreme = ((parts > 4) & np.isfinite(parts)) | ((parts > 0) & (parts < 0.1))
    values = values[~extreme.any(axis=0)]
    names.remove("power")
    compare(names, [grid.ravel() for grid in np.meshgrid(values, values)], 64)
    ordinary = values[np.isfinite(values)]
    compare(["power"], [grid.ravel() for grid in np.meshgrid(ordinary, ordinary)], 200)


# --- powers of complex numbers

WHOLE = [0, 1, 2, 3, 4, 7, 99, -1, -2, -5]


@pytest.mark.parametrize("dtype", COMPLEX)
@np.errstate(all="ignore")
def test_whole_powers_of_special_complex_numbers_are_products(dtype):
    """As NumPy multiplies them: (inf + 0i)^2 is inf + nan i, i^2 is -1 to the bit, 0^0 is 1, 0^-1 is no number."""
    dtype = np.dtype(dtype)
    base = np.array([complex(a, b) for a in (0.0, -0.0, 1, -1, 2, np.inf, -np.inf, np.nan) for b in (0.0, 1, -np.inf)])
    base = np.concatenate([base, [1j, -1j, 1 + 1j, 0.5 - 2j, complex(0, np.inf)]]).astype(dtype)
    expected = [np.power(base, dtype.type(n)) for n in WHOLE]
    z = wl.asarray(base)
    exponents = wl.asarray(np.array(WHOLE, dtype)[:, None])
    with wl.using_backend("native"):
        known = wl.jit(lambda z: [z**n for n in WHOLE])(z)
        given = wl.jit(wl.pow)(z, exponents)
    for n, right, *found in zip(WHOLE, expected, known, np.asarray(given), strict=True):
        for got in found:
            bad = differ(np.asarray(got), right, 64, False)
            assert not bad.any(), (n, base[bad], np.asarray(got)[bad], right[bad])
    np.testing.assert_array_equal(np.asarray(z**exponents), expected)  # eagerly


@pytest.mark.parametrize("backend", ["numpy", "native"])
def test_powers_that_are_exact(backend):
    z = wl.asarray(np.array([1j, -1j, 1 + 1j, -1, 2, 0, 0, 0]))
    p = wl.asarray(np.array([2, 3, 2, -1, 10, 0, 1, 2 + 1j]))
    with wl.using_backend(backend):
        found = np.asarray(wl.jit(wl.pow)(z, p))
    np.testing.assert_array_equal(found, [-1, 1j, 2j, -1, 1024, 1, 0, 0])


@pytest.mark.parametrize("backend", ["numpy", "native"])
def test_derivatives_of_complex_powers(backend):
    """d z^p = p z^(p - 1) dz + log(z) z^p dp, also at 0 for whole exponents from 1 on."""
    z = np.array([1j, 2 - 1j, -1 + 0j, 0, 0, 0.3 + 0.1j])
    p = np.array([2, 3, -2, 1, 2, 0.5 + 0.25j])
    ones, nothing = np.ones(6, complex), np.zeros(6, complex)
    with wl.using_backend(backend):
        tangent = wl.jit(lambda z, p, dz, dp: wl.jvp(wl.pow, (z, p), (dz, dp))[1])
        by_base, by_exponent = (
            np.asarray(tangent(*map(wl.asarray, (z, p, dz, dp)))) for dz, dp in ((ones, nothing), (nothing, ones))
        )
    np.testing.assert_allclose(by_base, p * np.power(z, p - 1), rtol=1e-12, atol=1e-15)
    safe = np.where(z == 0, 1, z)
    np.testing.assert_allclose(by_exponent, np.where(z == 0, 0, np.log(safe) * np.power(z, p)), rtol=1e-12, atol=1e-15)


# --- composed functions: NaN stays NaN

F = wl.nn.functional
ACTIVATIONS = {
    name: getattr(F, name)
    for module in (F.activations, F.piecewise)
    for name in module.__all__
    if name not in ("stochastic_binary", "softmax", "softmin", "log_softmax")
}
ACTIVATIONS |= {"threshold": lambda x: F.threshold(x, 0.0, 0.0), "prelu": lambda x: F.prelu(x, wl.asarray([0.25]))}
LIMITS = {  # at inf and -inf, as PyTorch has them: x times something that is 0 is NaN
    "relu": (np.inf, 0.0),
    "leaky_relu": (np.inf, -np.inf),
    "hardtanh": (1.0, -1.0),
    "relu6": (6.0, 0.0),
    "hardsigmoid": (1.0, 0.0),
    "softshrink": (np.inf, -np.inf),
    "hardshrink": (np.inf, -np.inf),
    "threshold": (np.inf, 0.0),
    "elu": (np.inf, -1.0),
    "celu": (np.inf, -1.0),
    "softplus": (np.inf, 0.0),
    "log_sigmoid": (0.0, -np.inf),
    "sigmoid": (1.0, 0.0),
    "step": (1.0, 0.0),
    "heaviside": (1.0, 0.0),
    "tanh": (1.0, -1.0),
    "tanhshrink": (np.inf, -np.inf),
}


@pytest.mark.parametrize("backend", ["numpy", "native"])
@pytest.mark.parametrize("dtype", REAL)
@np.errstate(all="ignore")
def test_activations_give_nan_for_nan(backend, dtype):
    x = wl.asarray([np.nan, np.inf, -np.inf, 1.0], dtype=getattr(wl, dtype))
    with wl.using_backend(backend):
        found = wl.jit(lambda x: {name: f(x) for name, f in ACTIVATIONS.items()})(x)
    for name, values in found.items():
        values = np.asarray(values).astype(np.float64)
        assert np.isnan(values[0]), name
        assert np.isfinite(values[3]), name
        if name in LIMITS:
            np.testing.assert_array_equal(values[1:3], LIMITS[name], err_msg=name)


ONE_TENSOR = [name for name in wl.arrays.__all__ if name not in ("nan_to_num", "real", "imag", "associative_scan")]  # type: ignore[attr-defined]
NOT_OF_VALUES = (
    "empty_like",
    "ones_like",
    "zeros_like",
    "flip",
    "fliplr",
    "flipud",
    "nancumprod",
    "nancumsum",
    "partition",
    "rot90",
    "sort",
    "argsort",
    "tril",
    "triu",
    "diag",
    "nan_to_num",
)


def test_functions_of_a_tensor_give_nan_for_nan():
    """All top-level functions that take one tensor to one of its shape and type."""
    x = np.linspace(0.1, 0.9, 6, dtype=np.float32).reshape(2, 3)
    bad = x.copy()
    bad[0, 1] = np.nan
    seen = []
    for name in ONE_TENSOR:
        f = getattr(wl, name)
        if name in NOT_OF_VALUES or not callable(f) or inspect.isclass(f):
            continue
        try:
            ordinary, special = np.asarray(f(wl.asarray(x))), np.asarray(f(wl.asarray(bad)))
        except Exception:  # it takes something else
            continue
        if ordinary.shape == x.shape and ordinary.dtype == x.dtype:
            seen.append(name)
            assert np.isnan(special[0, 1]), name
    assert len(seen) > 40


@pytest.mark.parametrize("p", [1.0, 1.5, 2.0, 3.0, np.inf])
def test_distances_to_nan_are_nan(p):
    x = wl.asarray([[0.0, np.nan], [1.0, 2.0]])
    found = np.asarray(wl.cdist(x, x, p=p))
    np.testing.assert_array_equal(np.isnan(found), [[True, True], [True, False]])
    assert found[1, 1] == 0
    assert np.isnan(np.asarray(wl.pairwise_sq_distances(x, x))).tolist() == [[True, True], [True, False]]
