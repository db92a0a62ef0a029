"""Calls of every function of the Array API standard, with arguments of every type, as NumPy arrays."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from itertools import chain
from typing import Any

import numpy as np

INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
REALS, COMPLEXES = ("float32", "float64"), ("complex64", "complex128")
INEXACT = REALS + COMPLEXES
ALL = ("bool", *INTEGERS, *INEXACT)
ORDINARY = np.array([0.0, 1.0, -1.0, 0.5, 2.0, -3.0])
SPECIAL = np.array([0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 3.0, np.inf, -np.inf, np.nan, 1e-3])


class Named:
    """A dtype by name: each namespace has its own object for it."""

    def __init__(self, name: str) -> None:
        self.name = name


class Call:
    """Arguments of a call."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.args, self.kwargs = args, kwargs

    def __call__(self, space: Any, f: Any) -> Any:
        """The result of the function of a namespace."""

        def into(value: Any) -> Any:
            if isinstance(value, np.ndarray):
                return space.asarray(value)
            if isinstance(value, Named):
                return getattr(space, value.name)
            return type(value)(map(into, value)) if type(value) in (list, tuple) else value

        return f(*map(into, self.args), **{k: into(v) for k, v in self.kwargs.items()})


Calls = Iterator[Call]


def data(dtype: str, shape: tuple[int, ...], values: Any = ORDINARY, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng([seed, len(dtype), *shape])
    if dtype == "bool" or dtype in INTEGERS:
        return rng.integers(0 if dtype[0] in "bu" else -5, 2 if dtype == "bool" else 6, shape).astype(dtype)
    drawn = rng.choice(values, shape)
    return np.asarray(drawn + 1j * rng.choice(ORDINARY, shape) if dtype in COMPLEXES else drawn).astype(dtype)


def of(*shapes: tuple[int, ...], dtypes: tuple[str, ...] = ALL, more: tuple[Any, ...] = (), **kwargs: Any) -> Calls:
    """Arrays of these shapes, then `more`, once for every type."""
    for dtype in dtypes:
        yield Call(*[data(dtype, shape, seed=i) for i, shape in enumerate(shapes)], *more, **kwargs)


def unary() -> Calls:
    for dtype in ALL:
        for shape in [(), (0, 2), (2, 40)]:
            yield Call(data(dtype, shape, SPECIAL if dtype in REALS else ORDINARY))


def binary(second: Callable[[np.ndarray], np.ndarray] = lambda b: b) -> Calls:
    for dtype in ALL:
        values = SPECIAL if dtype in REALS else ORDINARY
        for one, two in [((), ()), ((2, 40), (2, 40)), ((2, 1, 3), (4, 1)), ((0,), (1,))]:
            yield Call(data(dtype, one, values), second(data(dtype, two, values, 1)))
        for other in ALL:
            yield Call(data(dtype, (3,)), second(data(other, (3,), seed=1)))
        for number in (True, 2, 1.5):
            yield Call(data(dtype, (3,)), number)


def positive(b: np.ndarray) -> np.ndarray:
    return np.where(b > 0, b, 1).astype(b.dtype) if b.dtype.kind in "iu" else b


def reductions(*settings: dict[str, Any]) -> Calls:
    for shape in [(), (3,), (2, 3, 4), (0,), (2, 0, 3)]:
        axes: list[Any] = [None, ()] + ([0, -1] if shape else []) + ([(0, 1)] if len(shape) > 1 else [])
        for axis in axes:
            for more in settings or ({}, {"keepdims": True}):
                yield from of(shape, axis=axis, **more)


def running() -> Calls:
    for shape, axis in [((3,), None), ((2, 3), 0), ((2, 3), -1), ((0,), None), ((2, 0), 1)]:
        for initial in (False, True):
            yield from of(shape, axis=axis, include_initial=initial)
    yield from (Call(data("bool", (3,)), dtype=Named(dtype)) for dtype in ALL)


def sorts() -> Calls:
    for shape in [(5,), (0,), (1, 4, 3)]:
        for axis in (0, -1):
            yield from of(shape, axis=axis, descending=False)
            yield from of(shape, axis=axis, descending=True)


def square(dtype: str) -> np.ndarray:
    return data(dtype, (2, 3, 3)) + 7 * np.eye(3).astype(dtype)


def matrices(*more: Any, **kwargs: Any) -> Calls:
    for dtype in INEXACT:
        yield Call(square(dtype), *more, **kwargs)
        yield Call(square(dtype)[0], *more, **kwargs)
        yield Call(data(dtype, (0, 0)), *more, **kwargs)


def definite(**kwargs: Any) -> Calls:
    for dtype in INEXACT:
        a = square(dtype)
        yield Call((a @ a.conj().swapaxes(1, 2) + 60 * np.eye(3)).astype(dtype), **kwargs)


def lists(**kwargs: Any) -> Calls:
    yield from (Call([data(d, (2, 3)), data(d, (2, 3), seed=1)], **kwargs) for d in ALL)


def conversions() -> Calls:
    for dtype in ALL:
        x = data(dtype, (3,))
        for target in ALL:
            if dtype not in COMPLEXES or target in COMPLEXES:
                yield Call(x if dtype == "bool" else np.abs(x).astype(dtype), Named(target))


def shapes(*more: Any) -> Calls:
    yield from (Call(shape, *more, dtype=Named(d)) for d in ALL for shape in (3, (2, 0), ()))


def spectra() -> Calls:
    for norm in ("backward", "ortho", "forward"):
        for n in (None, 3, 8):
            yield from of((2, 6), n=n, norm=norm)
            yield from of((2, 6), n=n, axis=0, norm=norm)


def spectra_n() -> Calls:
    for s, axes in ((None, None), ((4,), (0,)), ((3, 8), (0, 1))):
        yield from of((4, 6), s=s, axes=axes)


def frequencies() -> Calls:
    yield from (Call(n, d=0.5, dtype=Named(d)) for n in (1, 4, 5) for d in REALS)


def each(make: Callable[..., Calls], name: str, *values: Any) -> Calls:
    """What `make` gives for every value of one of its arguments."""
    return chain.from_iterable(make(**{name: value}) for value in values)


UNARY = """abs acos acosh asin asinh atan atanh bitwise_invert ceil conj cos cosh exp expm1 floor imag isfinite isinf
isnan log log1p log2 log10 logical_not negative positive real reciprocal round sign signbit sin sinh sqrt square tan
tanh trunc"""
BINARY = """add atan2 bitwise_and bitwise_or bitwise_xor copysign divide equal greater greater_equal hypot less
less_equal logaddexp logical_and logical_or logical_xor maximum minimum multiply nextafter not_equal subtract"""
POSITIVE = "bitwise_left_shift bitwise_right_shift floor_divide remainder pow"
UNIQUE = "unique_all unique_counts unique_inverse unique_values"
KINDS = ("bool", "integral", "real floating", "numeric", ("bool", "complex floating"))


def join(*calls: Calls) -> Callable[[], Calls]:
    kept = list(chain(*calls))
    return lambda: iter(kept)


CALLS: dict[str, Callable[[], Calls]] = {
    **dict.fromkeys(UNARY.split(), unary),
    **dict.fromkeys(BINARY.split(), binary),
    **dict.fromkeys(POSITIVE.split(), lambda: binary(positive)),
    **dict.fromkeys(["sum", "prod", "mean", "max", "min", "any", "all", "count_nonzero"], reductions),
    **dict.fromkeys(["var", "std"], lambda: reductions({}, {"correction": 0.5}, {"correction": -1, "keepdims": True})),
    **dict.fromkeys(["cumulative_sum", "cumulative_prod"], running),
    **dict.fromkeys(["argmax", "argmin"], join(of((2, 3)), of((2, 3), axis=0), of((2, 3), axis=-1, keepdims=True))),
    **dict.fromkeys(["sort", "argsort"], sorts),
    **dict.fromkeys(UNIQUE.split(), join(of(()), of((2, 5)), of((0,)))),
    "nonzero": join(of((2, 5)), of((0, 2))),
    "diff": join(of((4, 3)), of((4, 3), axis=0, n=2), of((4, 3), n=5), of((4, 3), n=0)),
    "clip": join(of((2, 5), min=0, max=2), of((5,), max=1), of((0,)), of((2, 5), (5,), (2, 1))),
    "searchsorted": join(*[of((4,), (5,), dtypes=("uint8",), side=s) for s in ("left", "right")]),
    # shapes
    "broadcast_arrays": join(of((3, 1), (4,), ()), of((2, 3))),
    "broadcast_to": join(of((3, 1), more=((2, 3, 4),))),
    "concat": lambda: each(lists, "axis", 0, 1, -1, None),
    "stack": lambda: each(lists, "axis", 0, 1, -1, -3),
    "expand_dims": join(of((2, 3), axis=0), of((2, 3), axis=-3), of((), axis=0)),
    "flip": join(of((2, 3)), of((2, 3), axis=1), of((2, 3, 2), axis=(0, -1)), of((0,))),
    "matrix_transpose": join(of((2, 3, 4))),
    "meshgrid": join(of((2,), (3,), (4,)), of((2,), (3,), indexing="ij"), of((2,)), of((2,), (0,))),
    "moveaxis": join(of((2, 3, 4), more=(0, 2)), of((2, 3, 4), more=((0, 1), (-1, -2)))),
    "permute_dims": join(of((2, 3, 4), more=((2, 0, 1),))),
    "repeat": join(of((2, 3), more=(2,)), of((2, 3), more=(0,), axis=1), of((2, 3), more=(np.array([2, 1]),), axis=0)),
    "reshape": join(of((2, 6), more=((3, -1),)), of((2, 6), more=((12,),), copy=True), of((2, 0), more=((0, 7),))),
    "roll": join(of((2, 3), more=(-7,)), of((2, 3), more=(1,), axis=1), of((0,), more=(1,))),
    "squeeze": join(of((1, 2, 1), axis=0), of((1, 2, 1), axis=(0, -1))),
    "tile": join(*[of((2, 3), more=(repetitions,)) for repetitions in ((2,), (1, 2, 3), (0,), ())]),
    "tril": join(of((2, 3, 4)), of((2, 3, 4), k=-1), of((2, 3, 4), k=5)),
    "triu": join(of((2, 3, 4)), of((2, 3, 4), k=-1), of((2, 3, 4), k=5)),
    "unstack": join(of((2, 3), axis=0), of((2, 3), axis=-1)),
    "take": join(*[of((4, 3), more=(np.array([2, 0, -1]),), axis=axis) for axis in (0, 1)]),
    "take_along_axis": join(of((2, 3), more=(np.array([[2, 0], [1, 1]]),), axis=1)),
    "where": lambda: (
        Call(data("bool", (3, 1)), data(d, (4,)), other) for d in ALL for other in (data(d, ()), True, 2, 1.5)
    ),
    # creation and types
    "arange": lambda: (
        Call(*ends, dtype=Named(d)) for d in INTEGERS + REALS for ends in ((5,), (0, 10, 3), (5, 0, -1), (5, 1))
    ),
    "astype": conversions,
    "eye": lambda: (Call(3, n, k=k, dtype=Named(d)) for d in ALL for n in (None, 4) for k in (-4, 0, 1)),
    "full": lambda: shapes(1),
    "full_like": join(of((2, 3), more=(1,))),
    "isdtype": lambda: (Call(Named(d), kind) for d in ALL for kind in KINDS),
    "linspace": lambda: (
        Call(*ends, dtype=Named(d), endpoint=endpoint)
        for d in INEXACT
        for ends in [(0, 1, 5), (1, -1, 4), (0, 0, 3), (0, 10, 0), (2, 3, 1)]
        for endpoint in (True, False)
    ),
    "ones": shapes,
    "ones_like": join(of((2, 3)), of((2, 3), dtype=Named("int8"))),
    "result_type": lambda: (Call(data(d, (2,)), data(e, (2,))) for d in ALL for e in ALL),
    "zeros": shapes,
    "zeros_like": join(of((2, 3)), of((2, 3), dtype=Named("int8"))),
    # products and matrices
    "matmul": join(of((3,), (3,)), of((2, 3), (3,)), of((5, 2, 3), (3, 4)), of((0, 3), (3, 2)), of((2, 0), (0, 3))),
    "tensordot": join(of((3, 4), (3, 4)), of((3, 4), (4, 3), axes=1), of((3, 4), (3, 4), axes=((0,), (0,)))),
    "vecdot": join(of((3,), (3,)), of((2, 3), (1, 3)), of((2, 3, 4), (3, 1), axis=-2)),
    "linalg.cholesky": lambda: each(definite, "upper", False, True),
    "linalg.cross": join(of((3,), (3,)), of((2, 3), (1, 3)), of((3, 2), (3, 2), axis=0)),
    "linalg.det": matrices,
    "linalg.diagonal": join(of((2, 3, 4)), of((2, 3, 4), offset=-1), of((2, 3, 4), offset=5)),
    "linalg.eigvalsh": definite,
    "linalg.inv": matrices,
    "linalg.matrix_norm": join(
        matrices(),
        *[of((2, 0, 3), dtypes=INEXACT, ord=o) for o in (1, 2, math.inf)],
        *[matrices(ord=o, keepdims=True) for o in ("nuc", 1, -1, 2, -2, math.inf, -math.inf)],
    ),
    "linalg.matrix_power": lambda: chain(matrices(0), matrices(1), matrices(3), matrices(-1)),
    "linalg.matrix_rank": matrices,
    "linalg.outer": join(of((2,), (3,)), of((0,), (3,))),
    "linalg.pinv": lambda: each(definite, "rtol", None, 0.01),
    "linalg.slogdet": matrices,
    "linalg.solve": lambda: (Call(square(d), data(d, (2, 3, 2))) for d in INEXACT),
    "linalg.svdvals": matrices,
    "linalg.trace": join(of((2, 3, 4)), of((2, 3, 4), offset=1), of((0, 0))),
    "linalg.vector_norm": join(
        *[
            of((2, 3), dtypes=INEXACT, ord=o, axis=a)
            for o in (0, 1, 2, 3, math.inf, -math.inf)
            for a in (None, 0, (0, 1))
        ]
    ),
    # spectra
    **dict.fromkeys([f"fft.{name}" for name in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")], spectra),
    **dict.fromkeys([f"fft.{name}" for name in ("fftn", "ifftn", "rfftn", "irfftn")], spectra_n),
    **dict.fromkeys(["fft.fftfreq", "fft.rfftfreq"], frequencies),
    **dict.fromkeys(["fft.fftshift", "fft.ifftshift"], join(of((4, 5)), of((4, 5), axes=1))),
}
