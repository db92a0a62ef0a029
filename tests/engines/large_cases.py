"""Cases of primitives that need several chunks: for every primitive, arguments of a given dtype on every axis.

An entry makes the cases of one primitive. Elementwise ones take their arguments from the small cases, whose values lie
in the domain, repeated to fill a large shape.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

import wonderland as wl
import wonderland.sparse
import wonderland.special  # these declare primitives of their own
from tests.primitives import quantized_cases
from tests.primitives.cases import CARRY_GRAPHS, CASES
from tests.primitives.segment_cases import incidence
from wonderland.core.primitive import TABLE

Array = np.ndarray[Any, Any]
Call = tuple[list[Array], dict[str, Any]]  # arguments and parameters

SHAPE = (9, 517, 23)  # odd sizes; some hundred thousand elements are several chunks of cheap work
DTYPES = [
    *(wl.float32, wl.float64, wl.float16, wl.bfloat16, wl.complex64, wl.complex128, wl.bool),
    *(wl.int8, wl.int16, wl.int32, wl.int64, wl.uint8, wl.uint16, wl.uint32, wl.uint64),
]

NEAR_ONE = {"low": 0.98, "high": 1.02}  # products of many such numbers stay away from 0 and infinity
# What NumPy computes in the native engine, too: no kernel of ours is behind it.
BY_NUMPY = frozenset(
    {
        *(
            "cholesky",
            "cofactor",
            "det",
            "eig",
            "eigh",
            "inv",
            "lu",
            "matrix_exp",
            "matrix_exp_derivative",
            "pinv",
        ),
        *("qr", "slogdet", "solve", "solve_triangular", "svd", "attention_tangent"),
    }
)
# Values without arguments, and calls of others.
APART = CARRY_GRAPHS | {"constant"}


def numbers(shape: tuple[int, ...], dtype: Any, seed: int = 0, low: float = 0.2, high: float = 1.0) -> Array:
    """Numbers of a dtype of which sums and products stay small: of both signs where there are signs."""
    rng = np.random.default_rng([seed, *shape])
    kind = "f" if dtype == wl.bfloat16 else dtype.kind
    if kind == "b":
        return rng.random(shape) < 0.5
    if kind in "iu":
        return rng.integers(0 if kind == "u" else -4, 5, shape).astype(dtype)
    made = rng.uniform(low, high, shape) * rng.choice([-1.0, 1.0], shape)
    if kind == "c":
        made = made + 1j * rng.uniform(low, 1.0, shape)
        made /= np.abs(made)
    return made.astype(dtype)


def elementwise(name: str, dtype: Any) -> Iterator[Call]:
    """All arguments in full, and one of them broadcast along the last axis, and along the first."""
    kind = "f" if dtype == wl.bfloat16 else dtype.kind
    for case in CASES[name]:
        if case.label in ("0-d", "empty", "to empty"):
            continue
        small = case.build(name)
        if not all(_same_kind(a, kind) for a in small if a.dtype.kind != "b" or name != "where"):
            continue
        args = [a if a.dtype.kind == "b" else a.astype(dtype) for a in small]
        yield [np.resize(a, SHAPE) for a in args], case.params
        if len(args) > 1:
            yield [np.resize(args[0], SHAPE), *[np.resize(a, (*SHAPE[:2], 1)) for a in args[1:]]], case.params
            yield [np.resize(args[0], SHAPE[1:]), *[np.resize(a, SHAPE) for a in args[1:]]], case.params
        return


def integrals(name: str, dtype: Any) -> Iterator[Call]:
    """Every element is a sum of many terms, so fewer of them are several chunks."""
    if dtype.kind == "f" or dtype == wl.bfloat16:
        yield [np.resize(a, (3, 701)).astype(dtype) for a in CASES[name][0].build(name)], {}


def _same_kind(a: Array, kind: str) -> bool:
    return a.dtype.kind == kind or (a.dtype.kind == "i" and kind == "u" and bool((a >= 0).all()))


def reductions(name: str, dtype: Any) -> Iterator[Call]:
    bounds = NEAR_ONE if name == "prod" else {}
    if name in ("any", "all") and dtype not in (wl.bool, wl.float16, wl.int32):
        return  # the others are compared with 0 first, as these
    for shape in (SHAPE, (3, 5, 4335), (70001,)):
        x = numbers(shape, dtype, **bounds)  # type: ignore[arg-type]
        if name == "prod" and dtype.kind in "iuf" and dtype.itemsize < 4:
            x = np.where(x > 0, 1, x).astype(dtype)
        for count in range(1, len(shape) + 1 if shape is SHAPE else 2):
            for axes in itertools.combinations(range(len(shape)), count):
                yield [x], {"axes": axes}


def along(**params: Any) -> Callable[[str, Any], Iterator[Call]]:
    def make(name: str, dtype: Any) -> Iterator[Call]:
        x = numbers(SHAPE, dtype, **(NEAR_ONE if name == "cumprod" else {}))  # type: ignore[arg-type]
        for axis in range(3):
            yield [x], {"axis": axis, **params}

    return make


def running(name: str, dtype: Any) -> Iterator[Call]:
    for reverse in (False, True):
        yield from along(reverse=reverse)(name, dtype)


def transforms(name: str, dtype: Any) -> Iterator[Call]:
    """Transforms of every radix, of a prime, and of one that is cut in two, along every axis."""
    for norm, shape, axis in [("backward", (300, 150), 1), ("ortho", (9, 112, 23), 1), ("forward", (26, 517), 0)]:
        x, n = numbers(shape, dtype), shape[axis]
        if name == "fft":
            yield [x], {"axes": (axis,), "inverse": axis == 0, "norm": norm}
        elif name == "rfft":
            yield [x], {"axis": axis, "norm": norm}
        else:
            yield [np.take(x, range(n // 2 + 1), axis)], {"n": n, "axis": axis, "norm": norm}
    if name == "fft":
        yield [numbers((2, 34, 6000), dtype)], {"axes": (2, 1), "inverse": False, "norm": "backward"}


def moving(*params: dict[str, Any]) -> Callable[[str, Any], Iterator[Call]]:
    """Primitives of one argument that only move elements."""

    def make(name: str, dtype: Any) -> Iterator[Call]:
        for one in params:
            yield [numbers(SHAPE, dtype)], one

    return make


def concatenations(name: str, dtype: Any) -> Iterator[Call]:
    for axis in range(3):
        other = tuple(3 if i == axis else n for i, n in enumerate(SHAPE))
        yield [numbers(SHAPE, dtype), numbers(other, dtype, 1), numbers(SHAPE, dtype, 2)], {"axis": axis}


def places(name: str, dtype: Any) -> Iterator[Call]:
    x = numbers(SHAPE, dtype)
    yield [x], {"shape": (11, 520, 25), "index": ((1, 10, 1), (2, 519, 1), (2, 25, 1))}
    yield [x], {"shape": (20, 517, 46), "index": ((0, 18, 2), (516, None, -1), (1, 46, 2))}


def gathers(name: str, dtype: Any) -> Iterator[Call]:
    x, rng = numbers(SHAPE, dtype), np.random.default_rng(0)
    for axis, n in enumerate(SHAPE):
        yield [x, rng.integers(-n, n, (61,))], {"axes": (axis,)}
    yield [x, rng.integers(0, 9, (4000,)), rng.integers(0, 23, (4000,))], {"axes": (0, 2)}


def _pattern(entries: int, rows: int, columns: int, in_order: bool, seed: int) -> tuple[list[Array], list[Array]]:
    """The lines of a random pattern: empty ones, one with many entries, places that occur twice."""
    rng = np.random.default_rng(seed)
    owner, other = rng.integers(0, rows, entries), rng.integers(0, columns, entries)
    owner[rng.random(entries) < 0.3] = rows // 2
    owner = np.sort(owner) if in_order else owner
    return incidence(owner.tolist(), other.tolist(), rows), incidence(other.tolist(), owner.tolist(), columns)


def segments(name: str, dtype: Any) -> Iterator[Call]:
    if dtype.kind == "c" and name in ("segment_max", "segment_min"):
        return
    for i, rest in enumerate([(), (1,), (7,), (3, 16), (100,), (300,)]):
        in_order = bool(i % 2)
        rows, _ = _pattern(6000, 700, 500, in_order, i)
        x = numbers(((700 if name == "take_lines" else 6000), *rest), dtype)
        yield [x, *rows[:3]], {"in_order": in_order}


def sparse_products(name: str, dtype: Any) -> Iterator[Call]:
    for i, (heads, rest) in enumerate([((), ()), ((), (1,)), ((), (64,)), ((5,), (8,)), ((), (100,)), ((), (300,))]):
        in_order = bool(i % 2)
        rows, columns = _pattern(6000, 700, 500, in_order, i)
        flags: dict[str, Any] = {"in_order": (in_order, False)}
        if name == "sparse_matmul":
            args = [numbers((6000, *heads), dtype), numbers((500, *heads, *rest), dtype)]
        else:
            args = [numbers((700, *heads, *rest), dtype), numbers((500, *heads, *rest), dtype)]
            flags["heads"] = len(heads)
        yield [*args, *rows, *columns], flags


def scatters(name: str, dtype: Any) -> Iterator[Call]:
    x, rng = numbers(SHAPE, dtype), np.random.default_rng(0)
    # the order of complex numbers is NumPy's business; products of many numbers leave every range
    modes = ["set", "add"] if dtype.kind in "cb" else ["set", "add", "min", "max"]
    for mode, (axis, n) in itertools.product(modes, enumerate(SHAPE)):
        rest = [m for i, m in enumerate(SHAPE) if i != axis]
        yield [x, numbers((61, *rest), dtype, 1), rng.integers(-n, n, (61,))], {"axes": (axis,), "mode": mode}


def products(name: str, dtype: Any) -> Iterator[Call]:
    # sums of many products of small integers wrap around in both engines alike
    for left, right in [((70, 301), (301, 90)), ((5, 33, 130), (5, 130, 47)), ((3, 1, 20, 65), (7, 65, 20))]:
        yield [numbers(left, dtype), numbers(right, dtype, 1)], {}
    yield [np.swapaxes(numbers((301, 70), dtype), 0, 1), numbers((301, 9), dtype, 1)], {}


def searches(name: str, dtype: Any) -> Iterator[Call]:
    if dtype.kind == "c":
        return
    for side in ("left", "right"):
        yield [np.sort(numbers((1000,), dtype)), numbers((70001,), dtype, 1)], {"side": side}


def attentions(name: str, dtype: Any) -> Iterator[Call]:
    if dtype.kind not in "f" and dtype != wl.bfloat16:
        return
    lead, t, s, d, e = (2, 3), 130, 117, 20, 12
    q, k, v = numbers((*lead, t, d), dtype), numbers((*lead, s, d), dtype, 1), numbers((*lead, s, e), dtype, 2)
    mask = np.random.default_rng(0).random((t, s)) < 0.8
    mask[:, 0] = True
    for causal, masks in itertools.product((False, True), ([], [mask])):
        params = {"causal": causal, "scale": 0.3}
        if name == "attention":
            yield [q, k, v, *masks], params
        else:
            # as the forward pass leaves it: the logarithm of the sums
            _, sums = TABLE["attention"].impl(q, k, v, *masks, **params)
            yield [numbers((*lead, t, e), dtype, 3), numbers((*lead, t), sums.dtype, 4), q, k, v, sums, *masks], params


def convolutions(name: str, dtype: Any) -> Iterator[Call]:
    for stride, padding, dilation, groups in [
        ((1, 1), ((1, 1), (1, 1)), (1, 1), 1),
        ((2, 3), ((0, 2), (1, 0)), (2, 1), 2),
        ((1, 1), ((1, 1), (0, 0)), (1, 1), 12),
    ]:
        x, kernel, out = (6, 33, 29, 12), (3, 3), 24
        sizes = [
            (n + low + high - step * (k - 1) - 1) // jump + 1
            for n, (low, high), step, k, jump in zip(x[1:3], padding, dilation, kernel, stride, strict=True)
        ]
        shapes = {"x": x, "w": (*kernel, 12 // groups, out), "y": (x[0], *sizes, out)}
        settings = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}
        left, right, more = {
            "convolution": ("x", "w", {}),
            "convolution_input": ("y", "w", {"spatial": x[1:3]}),
            "convolution_weight": ("x", "y", {"kernel": kernel}),
        }[name]
        yield [numbers(shapes[left], dtype), numbers(shapes[right], dtype, 1)], {**settings, **more}


def windows(name: str, dtype: Any) -> Iterator[Call]:
    x = (7, 61, 30, 17)
    for window, stride, padding, dilation in [
        ((2, 2), (2, 2), ((0, 0), (0, 0)), (1, 1)),
        ((3, 2), (2, 1), ((1, 1), (0, 1)), (1, 2)),
    ]:
        sizes = [
            (n + low + high - step * (k - 1) - 1) // jump + 1
            for n, (low, high), step, k, jump in zip(x[1:3], padding, dilation, window, stride, strict=True)
        ]
        settings = {"window": window, "stride": stride, "padding": padding, "dilation": dilation}
        pooled = (x[0], *sizes, x[-1])
        chosen = np.random.default_rng(0).integers(0, math.prod(window), pooled).astype(np.uint8)
        if name == "window_pick":
            yield [numbers(x, dtype), chosen], settings
        elif name == "window_put":
            yield [numbers(pooled, dtype), chosen], {"spatial": x[1:3], **settings}
        elif name == "window_spread":
            yield [numbers(pooled, dtype)], {"spatial": x[1:3], **settings}
        else:
            yield [numbers(x, dtype)], settings


def quantized(name: str, dtype: Any) -> Iterator[Call]:
    """Matrices of eight and four bits and of half precision, for a few rows and for many."""
    if dtype == wl.bfloat16 or dtype.kind == "f":
        rng = np.random.default_rng(0)
        for kind, features, group in (
            ("int8", 517, 517),
            ("int4", 512, 512),
            ("int4", 544, 32),
            ("bfloat16", 517, 517),
        ):
            matrix = [make(rng) for make in quantized_cases.matrix(kind, 1030, features, group=group)]
            params = quantized_cases.params(features, group)
            if name == "dequantize":
                yield matrix, params | {"dtype": dtype}
            else:
                for rows in (1, 3, 40):
                    yield [numbers((rows, features), dtype), *matrix], params


def roundings(name: str, dtype: Any) -> Iterator[Call]:
    """A few rows and many, with and without whole vectors of features and of columns."""
    if dtype == wl.bfloat16 or dtype.kind == "f":
        rng = np.random.default_rng(0)
        for rows, columns, features in ((3, 1030, 517), (40, 300, 512), (1, 70, 3000)):
            made = [make(rng) for make in quantized_cases.matrix("int8", columns, features, group=features)]
            yield [numbers((rows, features), dtype), *made], {"features": features}


LARGE: dict[str, Callable[[str, Any], Iterator[Call]]] = {
    **dict.fromkeys(["quantized_matmul", "dequantize"], quantized),
    "rounded_matmul": roundings,
    **dict.fromkeys([n for n, p in TABLE.items() if p.elementwise], elementwise),
    "astype": lambda name, dtype: (
        ([np.abs(numbers(SHAPE, dtype)).astype(dtype)], {"dtype": to}) for to in _targets(dtype)
    ),
    **dict.fromkeys(["sum", "prod", "max", "min", "any", "all"], reductions),
    **dict.fromkeys(["argmax", "argmin"], along()),
    **dict.fromkeys(["cumsum", "cumprod", "cummax", "cummin", "logcumsumexp"], running),
    **dict.fromkeys(["fft", "rfft", "irfft"], transforms),
    **dict.fromkeys(["betainc", "gammainc", "gammaincc", "zeta"], integrals),
    "argsort": lambda name, dtype: itertools.chain(
        along(descending=False)(name, dtype), along(descending=True)(name, dtype)
    ),
    "full": lambda name, dtype: iter([([], {"shape": SHAPE, "value": 1, "dtype": dtype})]),
    "iota": lambda name, dtype: iter([([], {"size": 100 if dtype.itemsize == 1 else 300, "dtype": dtype})]),
    "random_bits": lambda name, dtype: iter(
        [([np.array([1, 2], np.uint32)], {"shape": SHAPE, "domain": 3})] if dtype == wl.uint32 else []
    ),
    "reshape": moving({"shape": (517, 207)}, {"shape": (9 * 517 * 23,)}),
    "transpose": moving(*[{"axes": axes} for axes in itertools.permutations(range(3))]),
    "broadcast_to": moving({"shape": (3, *SHAPE)}),
    "slice": moving(
        {"index": ((1, 8, 2), (0, None, 1), (3, 20, 1))}, {"index": ((8, None, -1), (500, 2, -3), (0, 23, 2))}
    ),
    "stop_gradient": moving({}),
    "concatenate": concatenations,
    "place": places,
    "gather": gathers,
    "scatter": scatters,
    **dict.fromkeys(["segment_sum", "segment_max", "segment_min", "take_lines"], segments),
    **dict.fromkeys(["sparse_matmul", "sampled_matmul"], sparse_products),
    "searchsorted": searches,
    "matmul": products,
    **dict.fromkeys(["attention", "attention_backward"], attentions),
    **dict.fromkeys(["convolution", "convolution_input", "convolution_weight"], convolutions),
    **dict.fromkeys(["window_argmax", "window_pick", "window_put", "window_sum", "window_spread"], windows),
}


def _targets(dtype: Any) -> list[Any]:
    """The dtypes that numbers can be converted to."""
    return [to for to in DTYPES if to != dtype and (dtype.kind != "c" or to.kind == "c")]


def calls(name: str, dtypes: Sequence[Any] = DTYPES) -> Iterator[tuple[Any, Call]]:
    """Every large call of a primitive, by dtype: those that its own rule accepts."""
    from wonderland.core.primitive import aval_of
    from wonderland.errors import WonderlandError

    for dtype in dtypes:
        for args, params in LARGE[name](name, dtype):
            try:
                TABLE[name].abstract(*[aval_of(a) for a in args], **params)
            except WonderlandError:
                continue
            yield dtype, (args, params)


def agree(found: Any, wanted: Any, what: str, roundings: float = 64) -> None:
    assert (found.shape, found.dtype) == (wanted.shape, wanted.dtype), what
    if found.dtype.kind in "biu":
        np.testing.assert_array_equal(found, wanted, err_msg=what)
        return
    unit = float(wl.finfo(found.dtype).eps)
    wide = np.complex128 if found.dtype.kind == "c" else np.float64
    found, wanted = found.astype(wide), wanted.astype(wide)
    scale = np.max(np.abs(wanted), initial=0.0, where=np.isfinite(wanted))
    # a sum of n terms in another order differs by some roundings of its largest parts
    np.testing.assert_allclose(found, wanted, rtol=roundings * unit, atol=roundings * unit * scale, err_msg=what)
