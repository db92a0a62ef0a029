"""The compiler's elementary functions against NumPy and SciPy in a wider type: errors in ulp, and the special cases."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.special

from wonderland.engines.native.machine import machine
from wonderland.engines.native.text import functions
from wonderland.engines.native.text.builder import Builder, typed

SCALAR = {np.float32: "float", np.float64: "double"}
BINARY = ("power", "hypot", "atan2")
PAIRS = [(name, dtype) for name, bounds in functions.BOUNDS.items() for _, dtype in zip(bounds, SCALAR, strict=False)]
# where long double is no longer than double the reference is wrong by an ulp itself
SLACK = 0.0 if np.finfo(np.longdouble).nmant > 52 else 1.0


def compiled(emit: Any, dtype: Any, width: int, count: int = 1) -> Callable[..., Any]:
    """The function over arrays whose size is a multiple of the width."""
    scalar = SCALAR[dtype]
    kind, align = typed(scalar, width), np.dtype(dtype).itemsize
    b = Builder(set(), machine().cpu)

    def body(i: str) -> None:
        args = []
        for k in range(count):
            place = b.emit(f"getelementptr {scalar}, ptr %x{k}, i64 {i}")
            args.append(b.emit(f"load {kind}, ptr {place}, align {align}"))
        value = emit(b, args, scalar, width)
        place = b.emit(f"getelementptr {scalar}, ptr %out, i64 {i}")
        b.do(f"store {kind} {value}, ptr {place}, align {align}")

    b.loop("%n", width, body)
    parameters = ", ".join([*(f"ptr %x{k}" for k in range(count)), "ptr %out", "i64 %n"])

    def text(name: str) -> str:
        head = f"define void @{name}({parameters}) {{"
        return "\n".join([*sorted(b.declarations), head, "entry:", *b.lines, "  ret void", "}"])

    kinds = [ctypes.c_void_p] * (count + 1)
    code = ctypes.CFUNCTYPE(None, *kinds, ctypes.c_int64)(machine().function(text("f"), text))

    def run(*args: Any) -> Any:
        size = args[0].size
        padded = [np.pad(a, (0, -size % width), constant_values=1) for a in args]
        out = np.empty_like(padded[0])
        code(*(p.ctypes.data for p in padded), out.ctypes.data, out.size)
        return out[:size]

    return run


# --- references


def sigmoid(x: Any) -> Any:
    small = np.exp(-np.abs(x))
    return np.where(x < 0, small, 1) / (1 + small)


def erf(x: Any) -> Any:
    """2 / sqrt(pi) exp(-x^2) sum of 2^k x^(2 k + 1) / (1 3 5 ... (2 k + 1)): no term is negative."""
    size = np.minimum(np.abs(x), 7)
    term = total = size
    for k in range(1, 250):
        term = term * 2 * size * size / (2 * k + 1)
        total = total + term
    value = total * np.exp(-size * size) * 2 / np.sqrt(np.arccos(x.dtype.type(-1)))
    return np.copysign(value, x)


NAMES = {"asin": "arcsin", "acos": "arccos", "atan": "arctan", "atan2": "arctan2"}
NAMES |= {"asinh": "arcsinh", "acosh": "arccosh", "atanh": "arctanh"}
OWN = {"sigmoid": sigmoid, "erf": erf, "erfc": scipy.special.erfc}


def reference(name: str, args: list[Any]) -> Any:
    wide = [a.astype(np.float64 if a.dtype == np.float32 else np.longdouble) for a in args]
    with np.errstate(all="ignore"):
        return OWN.get(name, getattr(np, NAMES.get(name, name), None))(*wide)  # type: ignore[misc]


# --- arguments

SPECIAL = [0.0, np.inf, np.nan, 1e-45, 1e-40, 1.2e-38, 1e-30, 3e-8, 0.5, 0.7, 1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 9.0]
SPECIAL += [17.0, 88.7, 88.8, 89.4, 89.5, 103.9, 104.0, 200.0, 710.0, 745.2, 1e4, 1e5, 1.1e5, 1e6, 1e9, 1e22, 3.4e38]


def numbers(dtype: Any, scale: int = 3000) -> Any:
    """Of every size, dense where functions bend, near 1 and near multiples of pi / 2; then the special ones."""
    random = np.random.default_rng(0)
    ends = (-45, 38.5) if dtype == np.float32 else (-323, 308)
    near_one = np.logspace(-16, -1, scale)
    parts = [10 ** random.uniform(*ends, 4 * scale), np.arange(scale) * (np.pi / 2), 1 + near_one, 1 - near_one]  # type: ignore[call-overload]
    parts += [random.uniform(0, top, 4 * scale) for top in (1, 4, 10, 110, 750)]
    positive = np.concatenate([*parts, SPECIAL]).astype(dtype)
    return np.concatenate([positive, -positive])


def arguments(name: str, dtype: Any) -> list[Any]:
    x = numbers(dtype)
    if name not in BINARY:
        return [x]
    random = np.random.default_rng(1)
    y = random.permutation(x)
    if name == "power":
        pieces = [y[: x.size // 4], random.uniform(-40, 40, x.size // 4), np.rint(random.uniform(-9, 9, x.size))]
        y = np.concatenate(pieces)[: x.size].astype(dtype)
        near = (1 + 1e-3 * random.normal(size=5000)).astype(dtype)  # to large powers
        x, y = np.concatenate([x, near]), np.concatenate([y, random.uniform(-1e5, 1e5, 5000).astype(dtype)])
    signed = np.array(SPECIAL + [-s for s in SPECIAL]).astype(dtype)
    a, b = np.meshgrid(signed, signed)
    return [np.concatenate([a.ravel(), x]), np.concatenate([b.ravel(), y])]


def errors(got: Any, exact: Any) -> Any:
    """In ulp of the exact result; 0 where both are the same special value, infinite where only one is."""
    rounded = exact.astype(got.dtype)
    largest = np.finfo(got.dtype).max
    same = (got == rounded) | (np.isnan(got) & np.isnan(rounded))
    # rounding may go past the largest number or not
    edge = np.abs(np.clip(exact, -largest, largest)) >= largest * (1 - 2.0 ** -(20 if got.dtype == np.float32 else 49))
    spacing = np.spacing(np.minimum(np.abs(rounded), largest)).astype(exact.dtype)
    distance = np.abs(got.astype(exact.dtype) - exact) / spacing
    usual = np.where(np.isfinite(got) & np.isfinite(rounded), distance, np.inf)
    return np.where(same & ~np.isfinite(rounded), 0, np.where(edge & (np.sign(got) == np.sign(exact)), 0, usual))


@pytest.mark.parametrize("name, dtype", PAIRS)
@np.errstate(all="ignore")
def test_errors_stay_within_the_bounds(name: str, dtype: Any) -> None:
    args = arguments(name, dtype)
    exact = reference(name, args)
    bound = functions.BOUNDS[name][dtype is np.float64] + (SLACK if dtype is np.float64 else 0.0)
    got = compiled(getattr(functions, name), dtype, 16, len(args))(*args)
    found = errors(got, exact)
    worst = int(np.argmax(found))
    assert found[worst] <= bound, f"{[a[worst] for a in args]}: {got[worst]!r}, exactly {exact[worst]!r}"
    zero = exact.astype(dtype) == 0
    np.testing.assert_array_equal(np.signbit(got[zero]), np.signbit(exact[zero]))


@pytest.mark.parametrize("name", functions.BOUNDS)
@pytest.mark.parametrize("dtype", SCALAR)
def test_the_width_does_not_matter(name: str, dtype: Any) -> None:
    args = [a[:: a.size // 500] for a in arguments(name, dtype)]
    one, *others = (compiled(getattr(functions, name), dtype, w, len(args))(*args) for w in (1, 4, 8))
    for other in others:
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("dtype", SCALAR)
@pytest.mark.parametrize("name", ["tanh", "erf", "sigmoid", "sin", "cos"])
def test_what_is_bounded_by_one_is_never_above(name: str, dtype: Any) -> None:
    assert np.nanmax(np.abs(compiled(getattr(functions, name), dtype, 8)(numbers(dtype, 10_000)))) <= 1


def test_powers_of_two_and_their_logarithms_are_exact() -> None:
    for dtype, low, high in ((np.float32, -149, 128), (np.float64, -1074, 1024)):
        n = np.arange(low, high).astype(dtype)
        powers = compiled(functions.exp2, dtype, 4)(n)
        np.testing.assert_array_equal(powers, np.ldexp(dtype(1), n.astype(int)))
        np.testing.assert_array_equal(compiled(functions.log2, dtype, 4)(powers), n)


def test_a_huge_angle_in_one_lane_leaves_the_others_alone() -> None:
    x = np.linspace(-7, 7, 16, dtype=np.float32)
    huge = np.where(np.arange(16) == 5, np.float32(1e20), x)
    sin = compiled(functions.sin, np.float32, 16)
    np.testing.assert_array_equal(np.delete(sin(huge), 5), np.delete(sin(x), 5))
    np.testing.assert_allclose(sin(huge)[5], np.sin(np.float64(np.float32(1e20))), rtol=1e-7)


@pytest.mark.parametrize("dtype", SCALAR)
def test_a_flushed_exponential_is_never_subnormal(dtype: Any) -> None:
    smallest = np.finfo(dtype).tiny
    x = np.linspace(1.1 * np.log(smallest), 5, 10_000).astype(dtype)
    found, exact = compiled(functions.exp_flushed, dtype, 4)(x), np.exp(x.astype(np.longdouble))
    normal = exact > 1.5 * smallest
    beyond = 0.05 if dtype == np.float32 else 0.33  # of x, where a rounding of x may lose 0.5
    ulps = 1.0 + SLACK + beyond * np.abs(x[normal])
    assert np.all(np.abs(found - exact)[normal] <= ulps * np.spacing(exact[normal].astype(dtype)))
    assert np.all((found[~normal] == 0) | (found[~normal] >= smallest))
    special = np.array([-np.inf, np.nan, 0.0, -1e5], dtype)
    np.testing.assert_array_equal(compiled(functions.exp_flushed, dtype, 4)(special), [0.0, np.nan, 1.0, 0.0])
