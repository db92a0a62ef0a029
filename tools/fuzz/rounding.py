"""How far rounding may take a result: the reference is computed again with other roundings.

NumPy's evaluation of a graph is repeated with a random relative change of some units in the last place of every result
that is rounded, and of the terms of everything that is summed. How much the final results move tells how much rounding
matters there: a sum that cancels, a comparison that is nearly a tie, a number that nearly overflows move a lot, and
what follows from the inputs without rounding does not move at all. So there is one bound for everything,

    |native - reference| <= FACTOR * (largest movement) + UNITS * eps * |reference|,

and where the movements disagree about what is a number, nothing is asked. Sums of this reference are made in a wider
type: NumPy adds up some of them one term after the other, which is less accurate than native code may be.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import wonderland as wl
from wonderland.engines.native.tuning import LONGEST
from wonderland.ir.graph import Equation, Var

Array = np.ndarray[Any, Any]
engine: Any = importlib.import_module("wonderland.engines.numpy.evaluate")  # the function of this name hides the module

FACTOR = 16.0
UNITS = 16.0
CHANCE = 0.75  # that what is not promised is otherwise in one computation: in twelve, it is in one at least
RUNNING = 8.0  # units by which a long sum may be wrong, of the sum of what it has gone through

# Results that are among the arguments, or that no rounding touches.
EXACT = frozenset(
    [
        *[
            "max",
            "min",
            "cummax",
            "cummin",
            "any",
            "all",
            "argmax",
            "argmin",
            "negative",
            "conj",
            "real",
            "imag",
            "complex",
            "abs",
            "sign",
        ],
        *[
            "floor",
            "ceil",
            "trunc",
            "round",
            "maximum",
            "minimum",
            "remainder",
            "copysign",
            "nextafter",
            "where",
            "relu",
        ],
        *["equal", "not_equal", "less", "less_equal", "greater", "greater_equal", "isfinite", "isinf", "isnan"],
        *["signbit", "bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_invert", "bitwise_left_shift"],
        *[
            "bitwise_right_shift",
            "full",
            "iota",
            "reshape",
            "transpose",
            "broadcast_to",
            "concatenate",
            "slice",
            "place",
        ],
        *["stop_gradient", "gather", "argsort", "searchsorted", "random_bits", "constant", "window_argmax"],
        *["window_pick", "take_lines", "segment_max", "segment_min"],
    ]
)
# They carry graphs, whose equations are changed one by one.
CARRIERS = frozenset(
    ["custom_jvp", "custom_linear", "custom_vjp", "call", "checkpoint", "scan", "linear_scan", "while", "branch"]
)
# They add or multiply many terms, in an order of their own.
SUMS = frozenset(
    [
        *[
            "sum",
            "prod",
            "cumsum",
            "cumprod",
            "logcumsumexp",
            "scatter",
            "segment_sum",
            "sparse_matmul",
            "sampled_matmul",
            "matmul",
            "attention",
            "attention_tangent",
            "convolution",
        ],
        *["attention_backward", "convolution_input", "convolution_weight", "fft", "rfft", "irfft", "window_put"],
        *["window_sum", "window_spread", "solve", "solve_triangular", "inv", "pinv", "det", "cofactor", "slogdet"],
        *["cholesky", "qr", "eigh", "svd", "matrix_exp", "matrix_exp_derivative"],
    ]
)
# Their parts may cancel, or they are steep.
CANCELLING = frozenset(["logaddexp", "lgamma", "digamma", "erfinv", "erfcinv"])
# Those that NumPy can compute in a wider type, so that its own sums, which run over many terms, do not count.
WIDER = {wl.float32: np.dtype(np.float64), wl.complex64: np.dtype(np.complex128)}
WIDEST = WIDER | {wl.float64: np.dtype(np.longdouble), wl.complex128: np.dtype(np.clongdouble)}
WIDENED: dict[str, dict[Any, Any]] = {
    **dict.fromkeys(["sum", "prod", "cumsum", "cumprod"], WIDEST),
    **dict.fromkeys(["scatter", "matmul", "convolution", "convolution_input", "convolution_weight"], WIDER),
    **dict.fromkeys(["window_sum", "window_spread", "window_put"], WIDER),
    **dict.fromkeys(["segment_sum", "sparse_matmul", "sampled_matmul"], WIDER),
}
ARITHMETIC = (EXACT - {"sign"}) | {"add", "subtract", "multiply", "divide", "log", "astype"}
EXTREMES = frozenset(["max", "min", "maximum", "minimum", "relu", "window_pick", "segment_max", "segment_min"])
CHECKED = frozenset(["sum", "cumsum", "matmul", "scatter", "convolution", "window_sum"])
VIEWS = frozenset(["reshape", "transpose", "broadcast_to", "slice", "negative"])


def eps_of(dtype: Any) -> float:
    return float(wl.finfo(dtype).eps)


def is_rounded(dtype: Any) -> bool:
    return wl.isdtype(dtype, ("real floating", "complex floating"))


class Roundings:
    """A way to compute every equation with another rounding."""

    def __init__(self, seed: int, units: float) -> None:
        """`units`: the largest change, in units of the last place; 0 for the reference itself."""
        self.pick = np.random.default_rng(seed)
        self.units = units
        # what an addition may be fused with, so that it is not rounded before; whether it is too large for its type
        self.products: dict[Var, bool] = {}
        self.original = engine.run_equation

    def moved(self, x: Array) -> Array:
        """The array with every number a little larger or smaller; NaN has either sign."""
        if not is_rounded(x.dtype) or not self.units:
            return x
        if x.dtype.kind == "c":
            return self.moved_pairs(x)
        change = self.units * eps_of(x.dtype) * self.pick.uniform(-1, 1, x.shape)
        made = np.asarray((x.astype(np.float64) * (1 + change)).astype(x.dtype))
        return self.signed(np.where(np.isfinite(x), made, x), np.isnan(x))

    def moved_by(self, x: Array, size: Any) -> Array:
        """The array with every number moved by some units of the last place of a number of another size."""
        if x.dtype.kind == "c":
            return x
        change = self.units * eps_of(x.dtype) * self.pick.uniform(-1, 1, x.shape) * np.asarray(size, np.float64)
        return np.where(np.isfinite(x) & np.isfinite(change), x + change, x).astype(x.dtype)

    def moved_pairs(self, x: Array) -> Array:
        """Complex numbers move in any direction, or each part by itself where the other is not finite."""
        change = self.pick.uniform(-1, 1, x.shape) + 1j * self.pick.uniform(-1, 1, x.shape)
        made = (x.astype(np.complex128) * (1 + self.units * eps_of(x.dtype) * change)).astype(x.dtype)
        apart = np.empty_like(x)
        apart.real, apart.imag = self.moved(x.real), self.moved(x.imag)
        return np.where(np.isfinite(x), made, apart)

    def __call__(self, equation: Equation, args: list[Array]) -> Any:
        name = equation.primitive.name
        if name in CARRIERS:
            return self.original(equation, args)
        terms = [np.asarray(a) for a in args]
        if name in SUMS or name in CANCELLING:
            terms = [self.moved(a) for a in terms]
        elif name in ("add", "subtract"):
            for i, v in enumerate(equation.inputs):
                if isinstance(v, Var) and v in self.products and self.units:
                    terms[i] = self.moved(saturated(terms[i]) if self.products[v] else terms[i])
        made = [np.asarray(y) for y in self.widened(equation, terms)]
        if self.units and is_rounded(made[0].dtype):
            if name == "cumsum" or (name == "sum" and terms[0].size > LONGEST * max(made[0].size, 1)):
                # where numbers repeat, the errors of the parts of a long sum have one sign
                made = [self.moved_by(y, RUNNING * self.original(equation, [np.abs(terms[0])])[0]) for y in made]
            elif name.startswith("attention"):  # weights below the smallest normal number may be 0
                made = [self.moved_by(y, vanishing(terms) / eps_of(y.dtype)) for y in made]
        if self.units and equation.primitive.elementwise and name not in ARITHMETIC:
            made = [self.contrary(made[0], np.broadcast_to(unpromised(terms), made[0].shape))]
        if self.units and (name in SUMS or name in EXTREMES or any(v in self.products for v in equation.inputs)):
            # neither zero is larger, and the sign of a sum of zeros is not promised
            made = [self.signed(y, y == 0) if is_rounded(y.dtype) else y for y in made]
        if name in ("multiply", "square") and is_rounded(made[0].dtype):
            over = too_large(terms[0], terms[-1])
            self.products[equation.outputs[0]] = bool(over.any())
            if over.any() and self.units and made[0].dtype.kind == "c":
                made = [self.contrary(made[0], over)]
        elif name in VIEWS and equation.inputs[0] in self.products:
            self.products[equation.outputs[0]] = self.products[equation.inputs[0]]
        if name == "astype" and (not is_rounded(args[0].dtype) or made[0].dtype.itemsize >= args[0].dtype.itemsize):
            return made
        if name in SUMS and self.units:
            made = [self.doubtful(name, equation, args, y) for y in made]
        if name in EXACT and not (name in ("abs", "sign") and terms[0].dtype.kind == "c"):
            return made
        return [self.moved(y) for y in made]

    def signed(self, x: Array, where: Array) -> Array:
        """The array with another sign in some places: that of zeros and of NaN is often not told."""
        if x.dtype.kind == "c" or not where.any():
            return x
        return np.where(where & (self.pick.random(x.shape) < CHANCE), -x, x)

    def contrary(self, x: Array, where: Array) -> Array:
        """Something else, in some of the places where it is not known what the result is."""
        unknown = complex(np.nan, np.nan) if x.dtype.kind == "c" else np.nan
        where = where & (self.pick.random(x.shape) < CHANCE)
        return np.where(where, np.where(np.isnan(x), 0, unknown), x).astype(x.dtype)

    def widened(self, equation: Equation, args: list[Array]) -> list[Array]:
        """The results of an equation, with sums in a wider type if there is one."""
        if equation.primitive.name == "log1p" and args[0].dtype.kind == "c":
            return [log1p(args[0])]
        wider = WIDENED.get(equation.primitive.name, {})
        dtypes = [a.dtype for a in args if a.dtype in wider]
        if not dtypes:
            return self.original(equation, args)
        made = self.original(equation, [a.astype(wider[a.dtype]) if a.dtype in wider else a for a in args])
        return [np.asarray(y).astype(dtypes[0]) for y in made]

    def doubtful(self, name: str, equation: Equation, args: list[Array], made: Array) -> Array:
        """Something else where the order of a sum decides whether it overflows, or where 0 meets what is not finite.

        Outside its shape an argument of a convolution is 0; whether the transposes multiply by that is not promised.
        """
        asked = args[1:] if name in ("convolution_input", "convolution_weight") else []
        if name in ("matmul", "convolution") and made.dtype.kind == "c":
            asked = args  # for these, libraries have rules of their own
        if not all(np.isfinite(a).all() for a in asked):
            return self.contrary(made, np.ones(made.shape, bool))
        if name in ("prod", "cumprod") and is_rounded(made.dtype):
            return self.contrary(made, out_of_reach(args[0], made.shape, **equation.params))
        if name not in CHECKED or not is_rounded(made.dtype):
            return made
        largest = [np.max(np.abs(a), initial=0, where=np.isfinite(a)) for a in args if is_rounded(a.dtype)]
        limit = float(wl.finfo(made.dtype).max)
        if np.prod([float(a) for a in largest]) * max(a.size for a in args) < limit:
            return made
        sizes = [np.where(np.isfinite(a), np.abs(a), 0).astype(a.dtype) if is_rounded(a.dtype) else a for a in args]
        reach = np.asarray(self.original(equation, sizes)[0])
        return self.contrary(made, ~np.isfinite(reach))


def log1p(z: Array) -> Array:
    """log(1 + z); NumPy adds the 1 first, so that small numbers lose their digits."""
    x, y = z.real.astype(np.longdouble), z.imag.astype(np.longdouble)
    near = np.maximum(np.abs(x), np.abs(y)) < 0.5
    inner = np.where(near, x * (2 + x) + y * y, 0)
    size = np.where(near, np.log1p(inner) / 2, np.log(np.hypot(1 + x, y)))
    beyond = np.isinf(np.hypot(1 + z.real, z.imag))  # in its own type, as NumPy has it
    made = np.empty(z.shape, z.dtype)
    made.real, made.imag = np.where(beyond, np.inf, size), np.arctan2(y, 1 + x)
    return made


def vanishing(terms: list[Array]) -> float:
    """What all weights of an attention that are below the smallest normal number may come to."""
    numbers = [t for t in terms if is_rounded(t.dtype)]
    largest = max(float(np.max(np.abs(t), initial=1, where=np.isfinite(t))) for t in numbers)
    least = max(float(wl.finfo(t.dtype if t.dtype.itemsize > 2 else wl.float32).smallest_normal) for t in numbers)
    return largest * least * max(t.shape[-2] for t in numbers if t.ndim > 1)


def unpromised(args: list[Array]) -> Array:
    """Where complex functions get something that is not finite: C's many rules for that are not promised."""
    return functools.reduce(np.logical_or, [~np.isfinite(a) for a in args if a.dtype.kind == "c"], np.array(False))


def too_large(x: Array, y: Array) -> Array:
    """Where a product of finite parts is not finite."""
    over = np.zeros(np.broadcast_shapes(x.shape, y.shape), bool)
    for a in (x.real, x.imag) if x.dtype.kind == "c" else (x,):
        for b in (y.real, y.imag) if y.dtype.kind == "c" else (y,):
            over |= ~np.isfinite(a * b) & np.isfinite(a) & np.isfinite(b)
    return over


def out_of_reach(x: Array, shape: tuple[int, ...], **params: Any) -> Array:
    """Where the order of a product may decide whether it becomes 0 or infinite on the way."""
    axes = params.get("axes", (params.get("axis"),))
    size = np.abs(x).astype(np.float64)
    logs = np.log(np.where(np.isfinite(size) & (size > 0), size, 1.0))
    limits = wl.finfo(x.dtype)
    over = np.maximum(logs, 0).sum(axis=axes, keepdims=True) > np.log(float(limits.max)) - 2
    under = np.minimum(logs, 0).sum(axis=axes, keepdims=True) < np.log(float(limits.smallest_normal)) + 2
    found = over | under
    if x.dtype.kind == "c":  # a part that is not finite meets others in an order that is not promised
        found |= (~np.isfinite(x)).any(axis=axes, keepdims=True)
    if "axes" in params:
        found = found.reshape(shape)
    return np.broadcast_to(found, shape)


def saturated(x: Array) -> Array:
    """The largest number in place of infinity."""
    return np.where(np.isinf(x), np.sign(x) * np.array(wl.finfo(x.dtype).max, x.dtype), x)


@contextlib.contextmanager
def other_roundings(seed: int, units: float = 1.0) -> Iterator[None]:
    """Within, the reference rounds otherwise."""
    before = engine.run_equation
    engine.run_equation = Roundings(seed, units)
    try:
        yield
    finally:
        engine.run_equation = before


def as_parts(x: Array) -> Array:
    """Numbers as float64, complex ones as pairs."""
    if x.dtype.kind == "c":
        x = np.ascontiguousarray(x).reshape(x.shape)
        return np.stack([x.real, x.imag], axis=-1).astype(np.float64)
    return x.astype(np.float64)


def class_of(x: Array) -> Array:
    """0 finite, 1 infinite, -1 negative infinite, 2 NaN."""
    return np.where(np.isnan(x), 2.0, np.where(np.isinf(x), np.sign(x), 0.0))


class Bound:
    """What is known of one result from several computations of it."""

    def __init__(self, reference: Array) -> None:
        self.dtype = reference.dtype
        self.reference = reference
        self.rounded = is_rounded(reference.dtype)
        self.stable = np.ones(reference.shape, bool)
        if self.rounded:
            self.parts = as_parts(reference)
            self.stable = np.ones(self.parts.shape, bool)
            self.movement = np.zeros(self.parts.shape)

    def sees(self, other: Array) -> None:
        """Another computation of the same."""
        if not self.rounded:
            self.stable &= self.reference == other
            return
        parts = as_parts(other)
        alike = class_of(parts) == class_of(self.parts)
        self.stable &= alike.all(axis=-1, keepdims=True) if self.dtype.kind == "c" else alike
        with np.errstate(all="ignore"):
            moved = np.abs(parts - self.parts)
            moved = np.where(np.isfinite(moved), moved, 0)
            if self.dtype.kind == "c":
                moved = np.broadcast_to(np.max(moved, axis=-1, keepdims=True), moved.shape)
            self.movement = np.maximum(self.movement, moved)

    def violations(self, native: Array, factor: float = FACTOR, units: float = UNITS) -> Array:
        """Where the native result is not what it should be."""
        if not self.rounded:
            return self.stable & (native != self.reference)
        found = as_parts(native)
        eps, tiny = eps_of(self.dtype), float(wl.finfo(self.dtype).smallest_normal)
        with np.errstate(all="ignore"):
            size = np.where(np.isfinite(self.parts), np.abs(self.parts), 0)
            if self.dtype.kind == "c":
                size = np.broadcast_to(np.max(size, axis=-1, keepdims=True), size.shape)
            allowed = factor * self.movement + units * eps * np.maximum(size, tiny)
            far = np.abs(found - self.parts) > allowed
        other = class_of(found) != class_of(self.parts)
        finite = np.isfinite(self.parts) & np.isfinite(found)
        return self.stable & (other | (finite & far))


Run = Callable[[], list[Array]]


def bounds(again: Run, times: int, seed: int = 0, units: float = 1.0) -> list[Bound]:
    """The bounds of several results; `again` computes them with the reference."""
    with other_roundings(seed, 0.0):
        made = [Bound(y) for y in again()]
    for k in range(times):
        with other_roundings(seed + k, units):
            try:
                found = again()
            except wl.errors.WonderlandError:  # whether it raises depends on rounding
                for bound in made:
                    bound.stable &= False
                return made
        for bound, y in zip(made, found, strict=True):
            bound.sees(y)
    return made
