"""Operations on complex numbers as operations on their parts, with the results that NumPy has."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ....core import dtypes
from ....core.primitive import TABLE
from ....primitives import elementwise as el
from ....primitives.creation import full, iota, zeros_like
from ....primitives.structure import broadcast_to, concatenate, reshape, take_slice, transpose
from ..fourier import chirps
from . import functions
from .pairs import Pair, Tensor, apart, together

Formula = Callable[..., Any]  # from pairs (or tensors, for what is real) to a pair or tensor; None: there is none


# --- the same for both parts


def _of_parts(name: str) -> Formula:
    def formula(*args: Any, **params: Any) -> Pair:
        real = [x.real if isinstance(x, Pair) else x for x in args]
        imag = [x.imag if isinstance(x, Pair) else x for x in args]
        return Pair(TABLE[name](*real, **params), TABLE[name](*imag, **params))

    return formula


def _scatter(x: Pair, updates: Pair, *indices: Tensor, axes: tuple[int, ...], mode: str) -> Pair | None:
    if mode not in ("set", "add"):
        return None
    return _of_parts("scatter")(x, updates, *indices, axes=axes, mode=mode)


def _product(name: str) -> Formula:
    """What is linear in both of its arguments."""

    def formula(x: Pair, y: Pair, *indices: Tensor, **params: Any) -> Pair:
        def f(left: Tensor, right: Tensor) -> Tensor:
            return TABLE[name](left, right, *indices, **params)

        return Pair(f(x.real, y.real) - f(x.imag, y.imag), f(x.real, y.imag) + f(x.imag, y.real))

    return formula


def _matmul(x: Pair, y: Pair) -> Pair:
    """One product of real matrices: rows of x as they are in memory, with the matrix of multiplication by y.

    The result is in the form of memory, too: (m, 2 k) by (2 k, 2 n) is (m, 2 n), with real and imaginary parts in turn.
    """
    (*lead, m, k), (*front, _, n) = x.real.shape, y.real.shape
    turned = together(functions.times_i(y))
    rows = [reshape(part, shape=(*front, k, 1, n, 2)) for part in (together(y), turned)]
    right = reshape(concatenate(*rows, axis=len(front) + 1), shape=(*front, 2 * k, 2 * n))
    out = TABLE["matmul"](reshape(together(x), shape=(*lead, m, 2 * k)), right)
    return apart(reshape(out, shape=(*out.shape[:-1], n, 2)))


_multiply = _product("multiply")


# --- construction, parts, conversion


def _full(shape: tuple[int, ...], value: complex, dtype: dtypes.DType) -> Pair:
    part = dtypes.real_of(dtype)
    return Pair(full(shape, complex(value).real, part), full(shape, complex(value).imag, part))


def _of_real(x: Tensor) -> Pair:
    return Pair(x, zeros_like(x))


def _complex(re: Tensor, im: Tensor) -> Pair:
    dtype = dtypes.real_of(dtypes.complex_of(re.dtype))
    return Pair(*(_as(part, dtype) for part in _spread(re, im)))


def _spread(*xs: Tensor) -> list[Tensor]:
    """Tensors in their common shape."""
    shape = el.broadcast_shapes("complex", *[x.shape for x in xs])
    return [x if x.shape == shape else broadcast_to(x, shape=shape) for x in xs]


def _as(x: Tensor, dtype: dtypes.DType) -> Tensor:
    return x if x.dtype == dtype else el.astype(x, dtype=dtype)


def _astype(x: Tensor | Pair, dtype: dtypes.DType) -> Tensor | Pair:
    if not isinstance(x, Pair):
        return _of_real(_as(x, dtypes.real_of(dtype)))
    if dtype == dtypes.bool_:
        return _nonzero(x)
    return Pair(_as(x.real, dtypes.real_of(dtype)), _as(x.imag, dtypes.real_of(dtype)))


def _conj(x: Pair) -> Pair:
    return Pair(x.real, -x.imag)


# --- tests


def _either(name: str) -> Formula:
    return lambda x: el.bitwise_or(TABLE[name](x.real), TABLE[name](x.imag))


def _nonzero(x: Pair) -> Tensor:
    return el.bitwise_or(x.real != 0, x.imag != 0)


def _equal(x: Pair, y: Pair) -> Tensor:
    return el.bitwise_and(x.real == y.real, x.imag == y.imag)


def _not_equal(x: Pair, y: Pair) -> Tensor:
    return el.bitwise_or(x.real != y.real, x.imag != y.imag)


# --- reductions and running products, by halves


def _any_or_all(name: str) -> Formula:
    return lambda x, axes: TABLE[name](_nonzero(x), axes=axes)


def _prod(x: Pair, axes: tuple[int, ...]) -> Pair:
    shape = x.real.shape
    rest = tuple(i for i in range(len(shape)) if i not in axes)
    kept, axis = tuple(shape[i] for i in rest), len(rest)

    def flat(part: Tensor) -> Tensor:
        return reshape(transpose(part, axes=rest + axes), shape=(*kept, math.prod(shape[i] for i in axes)))

    n = math.prod(shape[i] for i in axes)
    if n == 0:
        return Pair(full(kept, 1.0, x.real.dtype), full(kept, 0.0, x.real.dtype))
    found = Pair(flat(x.real), flat(x.imag))
    while n > 1:
        half = n // 2
        first, second, last = (_cut(found, axis, *ends) for ends in ((0, half), (half, 2 * half), (2 * half, n)))
        found, n = _multiply(first, second), n - half
        if n > half:
            found = _joined(found, last, axis)
    return Pair(reshape(found.real, shape=kept), reshape(found.imag, shape=kept))


def _cumprod(x: Pair, axis: int, reverse: bool) -> Pair:
    """After each pass an element is the product of twice as many."""
    n, shift = x.real.shape[axis], 1
    while shift < n:
        if reverse:
            ends = _cut(x, axis, n - shift, n)
            x = _joined(_multiply(_cut(x, axis, 0, n - shift), _cut(x, axis, shift, n)), ends, axis)
        else:
            ends = _cut(x, axis, 0, shift)
            x = _joined(ends, _multiply(_cut(x, axis, 0, n - shift), _cut(x, axis, shift, n)), axis)
        shift *= 2
    return x


def _cut(x: Pair, axis: int, start: int, stop: int) -> Pair:
    return Pair(take_slice(x.real, axis, start, stop), take_slice(x.imag, axis, start, stop))


def _joined(x: Pair, y: Pair, axis: int) -> Pair:
    return Pair(concatenate(x.real, y.real, axis=axis), concatenate(x.imag, y.imag, axis=axis))


PARTWISE = [
    "reshape",
    "transpose",
    "broadcast_to",
    "slice",
    "place",
    "concatenate",
    "where",
    "gather",
    "stop_gradient",
] + ["add", "subtract", "negative", "round", "sum", "cumsum", "window_sum", "window_spread"]
PARTWISE += ["segment_sum", "take_lines"]
PRODUCTS = ["multiply", "convolution", "convolution_input", "convolution_weight", "sparse_matmul", "sampled_matmul"]

FORMULAS: dict[str, Formula] = {
    **{name: _of_parts(name) for name in PARTWISE},
    **{name: _product(name) for name in PRODUCTS},
    "matmul": _matmul,
    "scatter": _scatter,
    "full": _full,
    "iota": lambda size, dtype: _of_real(iota(size=size, dtype=dtypes.real_of(dtype))),
    "complex": _complex,
    "astype": _astype,
    "real": lambda x: x.real,
    "imag": lambda x: x.imag,
    "conj": _conj,
    "isnan": _either("isnan"),
    "isinf": _either("isinf"),
    "isfinite": lambda x: el.bitwise_and(el.isfinite(x.real), el.isfinite(x.imag)),
    "equal": _equal,
    "not_equal": _not_equal,
    "abs": functions.absolute,
    "sign": functions.sign,
    "divide": functions.divide,
    "exp": functions.exp,
    "expm1": functions.expm1,
    "log": functions.log,
    "log1p": functions.log1p,
    "log2": functions.log_of(2.0),
    "log10": functions.log_of(10.0),
    "sqrt": functions.sqrt,
    "square": functions.square,
    "power": functions.power,
    "sinh": functions.sinh,
    "cosh": functions.cosh,
    "tanh": functions.tanh,
    "sin": functions.sin,
    "cos": lambda x: functions.cosh(functions.times_i(x)),
    "tan": functions.turned(functions.tanh),
    "asin": functions.asin,
    "acos": functions.acos,
    "acosh": functions.acosh,
    "atanh": functions.atanh,
    "asinh": functions.turned(functions.asin),
    "atan": functions.turned(functions.atanh),
    "prod": _prod,
    "cumprod": _cumprod,
    "any": _any_or_all("any"),
    "all": _any_or_all("all"),
    "fft": chirps.fft,
    "rfft": chirps.rfft,
    "irfft": chirps.irfft,
}
