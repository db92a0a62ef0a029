"""The table of cases: primitive name -> cases. A new primitive gets a line here, or the suite fails.

Every primitive has a case with an empty axis and one with a 0-d value, or the end of this file says why not.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import wonderland as wl
from tests.primitives import matrix_cases, quantized_cases, segment_cases, window_cases
from tests.primitives.makers import (
    Case,
    Maker,
    away,
    between_integers,
    booleans,
    complexes,
    distinct,
    fixed,
    integers,
    real,
)
from wonderland.ir.deriving import Constant

# --- elementwise


def unary(maker: Any = real, *, complex_: bool = False, integer: bool = False, **options: Any) -> list[Case]:
    cases = [
        Case("matrix", (maker(2, 3, **options),)),
        Case("0-d", (maker(**options),)),
        Case("empty", (maker(0, 3, **options),)),
    ]
    if complex_:
        cases.append(Case("complex", (complexes(2, 2),)))
    if integer:
        cases.append(Case("integer", (integers(4),)))
    return cases


def binary(
    x: Any = real, y: Any = real, *, complex_: bool = False, integer: bool = False, wrt: Any = None
) -> list[Case]:
    cases = [
        Case("matrices", (x(2, 3), y(2, 3)), wrt=wrt),
        Case("broadcast", (x(3, 1), y(4)), wrt=wrt),
        Case("more axes", (x(), y(2, 1, 3)), wrt=wrt),
        Case("0-d", (x(), y()), wrt=wrt),
        Case("empty", (x(0, 3), y(1, 3)), wrt=wrt),
    ]
    if complex_:
        cases.append(Case("complex", (complexes(2, 2), complexes(2)), wrt=wrt))
    if integer:
        cases.append(Case("integer", (integers(2, 3), integers(3, low=1)), wrt=wrt))
    return cases


def within(low: float, high: float) -> Any:
    return lambda *shape: real(*shape, low=low, high=high)


def apart(offset: float) -> Any:
    return lambda *shape: distinct(*shape, offset=offset)


positive, inside = within(0.3, 3.0), within(-0.8, 0.8)

CASES: dict[str, list[Case]] = {
    "add": binary(complex_=True, integer=True),
    "subtract": binary(complex_=True, integer=True),
    "multiply": binary(complex_=True, integer=True),
    "divide": binary(real, away, complex_=True),
    "negative": unary(complex_=True, integer=True),
    "conj": [
        Case("matrix", (complexes(2, 3),)),
        Case("0-d", (complexes(),)),
        Case("empty", (complexes(0),)),
    ],
    "real": [
        Case("matrix", (complexes(2, 3),)),
        Case("0-d", (complexes(),)),
        Case("empty", (complexes(0),)),
    ],
    "imag": [
        Case("matrix", (complexes(2, 3),)),
        Case("0-d", (complexes(),)),
        Case("empty", (complexes(0),)),
    ],
    "complex": binary(),
    "exp": unary(complex_=True),
    "expm1": unary(complex_=True),
    "log": unary(positive, complex_=True),
    "log1p": unary(within(-0.6, 2.0), complex_=True),
    "log2": unary(positive, complex_=True),
    "log10": unary(positive, complex_=True),
    "sqrt": unary(positive, complex_=True),
    "square": unary(complex_=True, integer=True),
    "power": [
        *binary(positive, real, complex_=True),
        Case("integer", (integers(2, 3), integers(3, low=0))),
        Case("negative base", (away(4), fixed([2.0, 3.0, 1.0, 0.0])), wrt=(0,)),
    ],
    "sin": unary(complex_=True),
    "cos": unary(complex_=True),
    "tan": unary(within(-1.2, 1.2), complex_=True),
    "asin": unary(inside, complex_=True),
    "acos": unary(inside, complex_=True),
    "atan": unary(complex_=True),
    "sinh": unary(complex_=True),
    "cosh": unary(complex_=True),
    "tanh": unary(complex_=True),
    "asinh": unary(complex_=True),
    "acosh": unary(within(1.3, 3.0), complex_=True),
    "atanh": unary(inside, complex_=True),
    "atan2": binary(away, away),
    "hypot": binary(away, away),
    "sigmoid": unary(within(-6.0, 6.0)),
    "logaddexp": [*binary(), Case("equal", (fixed([1.0, -2.0]), fixed([1.0, -2.0])))],
    "erf": unary(),
    "erfc": unary(),
    "erfinv": unary(inside),
    "relu": unary(away, integer=True),
    "abs": unary(away, complex_=True, integer=True),
    "sign": unary(away, complex_=True, integer=True),
    "floor": unary(between_integers, integer=True),
    "ceil": unary(between_integers, integer=True),
    "trunc": unary(between_integers, integer=True),
    "round": unary(between_integers, complex_=False, integer=True),
    "maximum": binary(apart(0.0), apart(0.17), integer=True),
    "minimum": binary(apart(0.0), apart(0.17), integer=True),
    "remainder": [
        *binary(within(2.4, 2.6), within(1.0, 1.1), integer=True),
        Case("negative", (real(3, low=-2.6, high=-2.4), real(3, low=1.0, high=1.1))),
        Case("negative divisor", (real(3, low=2.4, high=2.6), real(3, low=-1.1, high=-1.0))),
    ],
    "floor_divide": binary(within(2.4, 2.6), within(1.0, 1.1), integer=True),
    "copysign": binary(away, away),
    "nextafter": binary(wrt=()),
    "where": [
        Case("matrices", (booleans(2, 3), real(2, 3), real(2, 3))),
        Case("broadcast", (booleans(2, 1), real(3), real())),
        Case("0-d", (booleans(), real(), real())),
        Case("wide condition", (booleans(4, 2), real(2), real(2))),
        Case("empty", (booleans(0, 1), real(3), real())),
        Case("complex", (booleans(3), complexes(3), complexes())),
        Case("integer", (booleans(3), integers(3), integers())),
    ],
    "equal": binary(complex_=True, integer=True),
    "not_equal": binary(complex_=True, integer=True),
    "less": binary(integer=True),
    "less_equal": binary(integer=True),
    "greater": binary(integer=True),
    "greater_equal": binary(integer=True),
    "isfinite": unary(complex_=True, integer=True),
    "isinf": unary(complex_=True, integer=True),
    "isnan": unary(complex_=True, integer=True),
    "signbit": unary(),
    "astype": [
        Case("to complex", (real(2, 3),), {"dtype": wl.complex128}),
        Case("0-d", (real(),), {"dtype": wl.float64}),
        Case("empty", (real(0, 2),), {"dtype": wl.float32}),
        Case("to float32", (real(3),), {"dtype": wl.float32}, differences=False),
        Case("to bfloat16", (real(3),), {"dtype": wl.bfloat16}, differences=False),
        Case("to integer", (between_integers(3),), {"dtype": wl.int32}),
        Case("to bool", (away(3),), {"dtype": wl.bool}),
        Case("from integer", (integers(3),), {"dtype": wl.float64}),
        Case("from bool", (booleans(3),), {"dtype": wl.int8}),
    ],
    "stop_gradient": [
        Case("matrix", (real(2, 3),), differences=False),
        Case("0-d", (real(),), differences=False),
        Case("empty", (real(0),), differences=False),
        Case("integer", (integers(3),)),
    ],
}

# --- formulas over others


def below_zero(*shape: int) -> Maker:
    """Negative numbers away from the integers, where the gamma function has its poles."""
    return lambda rng: rng.integers(-4, 0, shape) + rng.uniform(0.3, 0.7, shape)


def of_three(x: Any, y: Any, z: Any) -> list[Case]:
    return [
        Case("matrices", (x(2, 3), y(2, 3), z(2, 3))),
        Case("broadcast", (x(3, 1), y(2), z())),
        Case("0-d", (x(), y(), z())),
        Case("empty", (x(0, 3), y(3), z(1, 1))),
    ]


CASES |= {
    "lgamma": [*unary(positive), Case("negative", (below_zero(5),)), Case("large", (real(5, low=3, high=40),))],
    "digamma": [*unary(positive), Case("negative", (below_zero(5),)), Case("large", (real(5, low=3, high=40),))],
    "polygamma": [
        *[Case(c.label, c.args, {"n": 1}) for c in unary(positive)],
        Case("third", (real(4, low=0.5, high=9),), {"n": 3}),
        Case("negative", (below_zero(4),), {"n": 2}),
    ],
    "zeta": binary(within(1.5, 4.0), positive),
    "gammainc": [*binary(positive, positive), Case("large", (real(3, low=20, high=30), real(3, low=20, high=30)))],
    "gammaincc": binary(positive, positive),
    "betainc": [
        *of_three(positive, positive, within(0.1, 0.9)),
        Case("large", (real(3, low=11, high=13), real(3, low=11, high=13), real(3, low=0.3, high=0.7))),
    ],
    "i0": [*unary(), Case("large", (real(4, low=7, high=12),))],
    "i1": [*unary(), Case("large", (real(4, low=7, high=12),)), Case("at 0", (fixed([0.0, 1e-9]),))],
    "i0e": unary(away),
    "i1e": [*unary(away), Case("large", (real(4, low=7, high=12),))],
    "cbrt": unary(away),
    "erfcinv": [*unary(within(0.2, 1.8)), Case("tail", (real(3, low=1e-3, high=0.02),))],
}

for _name in ("bitwise_and", "bitwise_or", "bitwise_xor"):
    CASES[_name] = [
        Case("integer", (integers(2, 3), integers(3))),
        Case("bool", (booleans(2, 1), booleans(3))),
        Case("0-d", (integers(), integers())),
        Case("empty", (integers(0, 3), integers(3))),
    ]
CASES["bitwise_invert"] = [
    Case("integer", (integers(2, 3),)),
    Case("bool", (booleans(3),)),
    Case("0-d", (integers(),)),
    Case("empty", (integers(0),)),
]
for _name in ("bitwise_left_shift", "bitwise_right_shift"):
    CASES[_name] = [
        Case("integer", (integers(2, 3), integers(3, low=0, high=4))),
        Case(
            "unsigned",
            (integers(3, low=0, high=9, dtype=np.uint8), integers(3, low=0, high=4, dtype=np.uint8)),
        ),
        Case("0-d", (integers(), integers(low=0))),
        Case("empty", (integers(0, 3), integers(3, low=0))),
    ]

# --- creation

CASES |= {
    "full": [
        Case("matrix", (), {"shape": (2, 3), "value": 2.5, "dtype": wl.float64}),
        Case("0-d", (), {"shape": (), "value": 1 + 2j, "dtype": wl.complex64}),
        Case("empty", (), {"shape": (0, 2), "value": True, "dtype": wl.bool}),
    ],
    "iota": [
        Case("vector", (), {"size": 5, "dtype": wl.int32}),
        Case("floating", (), {"size": 3, "dtype": wl.bfloat16}),
        Case("empty", (), {"size": 0, "dtype": wl.int64}),
    ],
    "constant": [
        Case("matrix", (), {"value": Constant(wl.ones((2, 3)))}),
        Case("0-d", (), {"value": Constant(wl.tensor(1))}),
        Case("empty", (), {"value": Constant(wl.zeros((0, 2)))}),
    ],
    # --- structure
    "reshape": [
        Case("matrix", (real(2, 6),), {"shape": (3, 4)}),
        Case("to 0-d", (real(1, 1),), {"shape": ()}),
        Case("0-d", (real(),), {"shape": (1, 1)}),
        Case("empty", (real(0, 3),), {"shape": (2, 0)}),
        Case("complex", (complexes(4),), {"shape": (2, 2)}),
    ],
    "transpose": [
        Case("three axes", (real(2, 3, 4),), {"axes": (2, 0, 1)}),
        Case("0-d", (real(),), {"axes": ()}),
        Case("empty", (real(0, 3),), {"axes": (1, 0)}),
        Case("complex", (complexes(2, 3),), {"axes": (1, 0)}),
    ],
    "broadcast_to": [
        Case("new axes", (real(3),), {"shape": (2, 4, 3)}),
        Case("stretched", (real(2, 1, 3),), {"shape": (2, 4, 3)}),
        Case("0-d", (real(),), {"shape": (2, 3)}),
        Case("to empty", (real(1, 3),), {"shape": (0, 3)}),
        Case("empty", (real(0, 1),), {"shape": (2, 0, 3)}),
        Case("complex", (complexes(2, 1),), {"shape": (2, 3)}),
    ],
    "concatenate": [
        Case("rows", (real(2, 3), real(1, 3), real(4, 3)), {"axis": 0}),
        Case("columns", (real(2, 3), real(2, 1)), {"axis": 1}),
        Case("one", (real(2),), {"axis": 0}),
        Case("some fixed", (real(2), real(3)), {"axis": 0}, wrt=(1,)),
        Case("empty", (real(2, 0), real(2, 3), real(2, 0)), {"axis": 1}),
        Case("complex", (complexes(2), complexes(3)), {"axis": 0}),
    ],
    "slice": [
        Case("block", (real(5, 6),), {"index": ((1, 4, 1), (0, None, 1))}),
        Case("steps", (real(5, 6),), {"index": ((0, 5, 2), (1, 6, 3))}),
        Case("backwards", (real(5, 6),), {"index": ((4, None, -1), (4, 0, -2))}),
        Case("to empty", (real(3),), {"index": ((1, 1, 1),)}),
        Case("empty", (real(0, 2),), {"index": ((0, None, 1), (0, 1, 1))}),
        Case("0-d", (real(),), {"index": ()}),
        Case("complex", (complexes(4),), {"index": ((1, 3, 1),)}),
    ],
    "place": [
        Case("block", (real(3, 6),), {"shape": (5, 6), "index": ((1, 4, 1), (0, None, 1))}),
        Case("steps", (real(3, 2),), {"shape": (5, 6), "index": ((0, 5, 2), (1, 6, 3))}),
        Case("backwards", (real(5, 2),), {"shape": (5, 6), "index": ((4, None, -1), (4, 0, -2))}),
        Case("empty", (real(0),), {"shape": (3,), "index": ((1, 1, 1),)}),
        Case("0-d", (real(),), {"shape": (), "index": ()}),
        Case("complex", (complexes(2),), {"shape": (4,), "index": ((1, 3, 1),)}),
    ],
}

# --- reductions


def reductions(maker: Any, *, complex_: bool = False, integer: bool = False, empty: bool = True) -> list[Case]:
    cases = [
        Case("one axis", (maker(2, 3, 4),), {"axes": (1,)}),
        Case("two axes", (maker(2, 3, 4),), {"axes": (0, 2)}),
        Case("all", (maker(2, 3),), {"axes": (0, 1)}),
        Case("no axis", (maker(2, 3),), {"axes": ()}),
        Case("0-d", (maker(),), {"axes": ()}),
        Case("empty", (maker(0, 3),), {"axes": (1,)}),
    ]
    if empty:
        cases.append(Case("empty sum", (maker(0, 3),), {"axes": (0,)}))
    if complex_:
        cases.append(Case("complex", (complexes(2, 3),), {"axes": (1,)}))
    if integer:
        cases.append(Case("integer", (integers(2, 3),), {"axes": (0,)}))
    return cases


def running(maker: Any = real) -> list[Case]:
    return [
        Case("rows", (maker(3, 5),), {"axis": 1, "reverse": False}),
        Case("columns", (maker(3, 5),), {"axis": 0, "reverse": False}),
        Case("reverse", (maker(3, 4),), {"axis": 1, "reverse": True}),
        Case("with zeros", (fixed([0.0, 2.0, 0.0, 3.0, -1.0]),), {"axis": 0, "reverse": False}),
        Case("single", (maker(1),), {"axis": 0, "reverse": False}),
        Case("empty", (maker(0, 2),), {"axis": 0, "reverse": False}),
        Case("empty rows", (maker(0, 2),), {"axis": 1, "reverse": True}),
        Case("complex", (complexes(4),), {"axis": 0, "reverse": True}),
    ]


FORWARDS = {"axis": 0, "reverse": False}

CASES |= {
    "sum": reductions(real, complex_=True, integer=True),
    "prod": [
        *reductions(away, complex_=True, integer=True),
        Case("one zero", (fixed([[2.0, 0.0, 3.0], [1.0, -1.0, 4.0]]),), {"axes": (1,)}),
        Case("two zeros", (fixed([0.0, 5.0, 0.0]),), {"axes": (0,)}),
    ],
    "max": reductions(distinct, integer=True, empty=False),
    "min": reductions(distinct, integer=True, empty=False),
    "any": reductions(booleans),
    "all": reductions(booleans),
    "cumsum": running(),
    "cumprod": running(),
    "cummax": [*running(distinct)[:3], *running(distinct)[4:-1], Case("integer", (integers(4),), FORWARDS)],
    "cummin": [*running(distinct)[:3], *running(distinct)[4:-1], Case("bool", (booleans(4),), FORWARDS)],
    "logcumsumexp": running()[:-1],
}
for _name in ("argmax", "argmin"):
    CASES[_name] = [
        Case("rows", (distinct(3, 4),), {"axis": 1}),
        Case("columns", (distinct(3, 4),), {"axis": 0}),
        Case("ties", (fixed([[1.0, 2.0, 2.0], [0.0, 0.0, 0.0]]),), {"axis": 1}, wrt=()),
        Case("integer", (integers(3, 4),), {"axis": 0}),
        Case("empty", (distinct(0, 4),), {"axis": 1}),
    ]

# --- indexing


def positions(*shape: int, size: int) -> Maker:
    """Indices with repetitions, some of them counted from the end."""
    return integers(*shape, low=-size, high=size)


def different(count: int, size: int) -> Maker:
    """Indices without repetition."""
    return lambda rng: rng.permutation(size)[:count]


CASES |= {
    "gather": [
        Case("rows", (real(4, 3), positions(5, size=4)), {"axes": (0,)}),
        Case("columns", (real(4, 3), positions(2, 2, size=3)), {"axes": (1,)}),
        Case("pairs", (real(4, 3, 2), positions(5, size=4), positions(5, size=2)), {"axes": (0, 2)}),
        Case("axes in any order", (real(4, 3), positions(5, size=3), positions(5, size=4)), {"axes": (1, 0)}),
        Case("one", (real(4, 3), positions(size=4)), {"axes": (0,)}),
        Case("small indices", (real(4), integers(3, low=0, high=4, dtype=np.uint8)), {"axes": (0,)}),
        Case("no index", (real(4, 3), integers(0)), {"axes": (0,)}),
        Case("empty", (real(2, 0), positions(3, size=2)), {"axes": (0,)}),
        Case("complex", (complexes(4), positions(6, size=4)), {"axes": (0,)}),
        Case("integer", (integers(4), positions(6, size=4)), {"axes": (0,)}),
    ],
    "scatter": [
        Case("add", (real(4, 3), real(5, 3), positions(5, size=4)), {"axes": (0,), "mode": "add"}),
        Case(
            "add pairs",
            (real(4, 3), real(5), positions(5, size=4), positions(5, size=3)),
            {"axes": (0, 1), "mode": "add"},
        ),
        Case("add columns", (real(4, 3), real(2, 4), positions(2, size=3)), {"axes": (1,), "mode": "add"}),
        Case("set", (real(4, 3), real(2, 3), different(2, 4)), {"axes": (0,), "mode": "set"}),
        Case("set repeatedly", (real(4), real(6), positions(6, size=4)), {"axes": (0,), "mode": "set"}),
        Case("multiply", (real(4), real(6), positions(6, size=4)), {"axes": (0,), "mode": "multiply"}, wrt=(0,)),
        Case(
            "max",
            (distinct(4), distinct(5, offset=0.17), positions(5, size=4)),
            {"axes": (0,), "mode": "max"},
        ),
        Case(
            "min",
            (distinct(4), distinct(5, offset=0.17), positions(5, size=4)),
            {"axes": (0,), "mode": "min"},
        ),
        Case(
            "set or drop",
            (real(4, 3), real(3, 2, 3), fixed([[3, 1], [4, -5], [0, -1]])),
            {"axes": (0,), "mode": "set", "drop": True},
        ),
        Case("add or drop", (real(4), real(5), fixed([4, 1, -9, 1, 3])), {"axes": (0,), "mode": "add", "drop": True}),
        Case(
            "max or drop",
            (distinct(4, 2), distinct(3, offset=0.17), fixed([5, 1, 3]), fixed([0, 1, 2])),
            {"axes": (0, 1), "mode": "max", "drop": True},
        ),
        Case(
            "multiply or drop",
            (real(4), real(4), fixed([4, 1, -5, 3])),
            {"axes": (0,), "mode": "multiply", "drop": True},
            wrt=(0,),
        ),
        Case("no index", (real(4), real(0), integers(0)), {"axes": (0,), "mode": "add"}),
        Case("empty", (real(2, 0), real(3, 0), positions(3, size=2)), {"axes": (0,), "mode": "set"}),
        Case("one", (real(4), real(), positions(size=4)), {"axes": (0,), "mode": "set"}),
        Case("complex", (complexes(4), complexes(6), positions(6, size=4)), {"axes": (0,), "mode": "add"}),
        Case("integer", (integers(4), integers(6), positions(6, size=4)), {"axes": (0,), "mode": "max"}),
    ],
    # --- contraction
    "matmul": [
        Case("matrices", (real(2, 3), real(3, 4))),
        Case("batched", (real(2, 2, 3), real(2, 3, 4))),
        Case("broadcast", (real(2, 1, 2, 3), real(5, 3, 2))),
        Case("one matrix on the right", (real(2, 4, 3), real(3, 2))),
        Case("one matrix on the left", (real(2, 3), real(4, 3, 2))),
        Case("empty", (real(0, 3), real(3, 2))),
        Case("empty sum", (real(2, 0), real(0, 3))),
        Case("empty batch", (real(0, 2, 3), real(3, 2))),
        Case("complex", (complexes(2, 3), complexes(3, 2))),
        Case("integer", (integers(2, 3), integers(3, 2))),
    ],
    # --- sorting
    "argsort": [
        Case("rows", (distinct(3, 4),), {"axis": 1, "descending": False}),
        Case("descending", (distinct(3, 4),), {"axis": 0, "descending": True}),
        Case("ties", (fixed([2, 1, 2, 1, 1]),), {"axis": 0, "descending": True}),
        Case("empty", (distinct(0, 4),), {"axis": 0, "descending": False}),
    ],
    "searchsorted": [
        Case("left", (fixed([0.0, 1.0, 1.0, 2.0]), fixed([[1.0, -1.0], [3.0, 0.5]])), {"side": "left"}, wrt=()),
        Case("right", (fixed([0.0, 1.0, 1.0, 2.0]), real(3)), {"side": "right"}, wrt=()),
        Case("batched", (fixed([[0.0, 1.0], [2.0, 3.0]]), real(2, 3)), {"side": "left"}, wrt=()),
        Case("empty", (real(0), real(3)), {"side": "left"}, wrt=()),
        Case("0-d", (fixed([0.0, 1.0]), real()), {"side": "left"}, wrt=()),
    ],
}


def attentions(make: Any) -> list[Case]:
    """Cases of an attention primitive; `make(lead, t, s, d, e)` makes its arguments before the mask."""
    plain: dict[str, Any] = {"causal": False, "scale": 0.7}
    causal: dict[str, Any] = {"causal": True, "scale": 0.7}
    return [
        Case("matrices", make((), 3, 4, 2, 5), plain),
        Case("batched", make((2, 1), 2, 3, 2, 1), plain),
        Case("causal", make((2,), 4, 3, 2, 2), causal),
        Case("causal, more keys", make((2,), 2, 4, 2, 2), causal),
        Case("bool mask", (*make((2, 2), 2, 3, 2, 2), fixed([[[True, False, True]], [[True, True, False]]])), plain),
        Case("mask per matrix", (*make((2,), 3, 3, 2, 2), booleans(2, 3, 3)), causal),
        Case("mask of keys", (*make((2,), 2, 3, 2, 2), booleans(3)), plain),
        Case("floating mask", (*make((2,), 2, 3, 2, 2), real(2, 1, 3)), causal),
        Case("window", make((2,), 5, 6, 2, 2), plain | {"window": 2}),
        Case("causal window", make((2,), 6, 5, 2, 2), causal | {"window": 2}),
        Case("groups", make((2,), 6, 4, 2, 2), causal | {"group": 2}),
        Case("offsets", (*make((2, 2), 3, 5, 2, 2), fixed([[2], [-1]])), causal | {"given": ("offsets",)}),
        Case(
            "groups in a window from an offset, with a mask",
            (*make((2,), 4, 6, 2, 2), booleans(4, 6), fixed(2)),
            causal | {"window": 2, "group": 2, "given": ("mask", "offsets")},
        ),
        Case("no keys", make((2,), 2, 0, 2, 2), plain),
        Case("no queries", make((2,), 0, 3, 2, 2), causal),
        Case("no features", make((), 2, 3, 0, 2), plain),
        Case("empty batch", make((0,), 2, 3, 2, 2), plain),
    ]


def tilted(make: Any) -> list[Case]:
    """The same with slopes; `make` makes the arguments up to v, and the one behind it."""

    def case(name: str, sizes: Any, more: tuple[Maker, ...], params: dict[str, Any]) -> Case:
        before, behind = make(*sizes)
        return Case(name, (*before, *behind, *more), params)

    slopes = real(2, 4, low=0.1, high=0.6)
    both: dict[str, Any] = {"causal": False, "scale": 0.7, "given": ("slopes",)}
    cached: dict[str, Any] = {"causal": True, "scale": 0.7, "group": 2, "given": ("offsets", "slopes")}
    return [
        case("slopes", ((2,), 4, 5, 2, 3), (slopes,), both),
        case("slopes of groups from an offset", ((2,), 4, 5, 2, 3), (fixed([2, 0]), slopes), cached),
    ]


def _vectors(lead: tuple[int, ...], t: int, s: int, d: int, e: int) -> tuple[Maker, ...]:
    return real(*lead, t, d), real(*lead, s, d), real(*lead, s, e)


def _sums(lead: tuple[int, ...], t: int) -> Maker:
    return real(*lead, t, low=0.5, high=2.0)


CASES |= {
    "attention": [*attentions(_vectors), *tilted(lambda *sizes: (_vectors(*sizes), ()))],
    "attention_tangent": [
        *attentions(lambda lead, t, *sizes: (*_vectors(lead, t, *sizes), *_vectors(lead, t, *sizes), _sums(lead, t))),
        *tilted(
            lambda lead, t, *sizes: (
                (*_vectors(lead, t, *sizes), real(*lead, t), *_vectors(lead, t, *sizes)),
                (_sums(lead, t),),
            )
        ),
    ],
    "attention_backward": [
        *attentions(
            lambda lead, t, s, d, e: (real(*lead, t, e), real(*lead, t), *_vectors(lead, t, s, d, e), _sums(lead, t))
        ),
        *tilted(
            lambda lead, t, s, d, e: (
                (real(*lead, t, e), real(*lead, t), *_vectors(lead, t, s, d, e)),
                (_sums(lead, t),),
            )
        ),
    ],
}

CASES |= matrix_cases.CASES
CASES |= window_cases.CASES
CASES |= segment_cases.CASES
CASES |= quantized_cases.CASES

# They carry graphs or the user's functions; tests/transforms tests them.
CARRY_GRAPHS = frozenset(
    {
        "all_sum",  # it meets other processes: tests/distributed
        "branch",
        "call",
        "checkpoint",
        "custom_jvp",
        "custom_linear",
        "custom_vjp",
        "linear_scan",
        "observe",  # it carries a function, as does the next: tests/test_callbacks.py
        "pure_callback",
        "scan",
        "while",
    }
)

# They need at least one axis, so there is no 0-d argument.
NEED_AXES = frozenset(
    {
        *("attention", "attention_backward", "attention_tangent"),
        *("argmax", "argmin", "argsort", "concatenate", "cummax", "cummin", "cumprod", "cumsum", "gather", "iota"),
        *(
            "cholesky",
            "cofactor",
            "det",
            "eig",
            "eigh",
            "inv",
            "lu",
            "matmul",
            "matrix_exp",
            "matrix_exp_derivative",
            "pinv",
        ),
        *("fft", "irfft", "logcumsumexp", "qr", "rfft", "slogdet", "solve", "solve_triangular", "svd"),
        *window_cases.CASES,
        *segment_cases.CASES,
        *quantized_cases.CASES,
    }
)
