"""Cases of the primitives of linear algebra, Fourier transforms and random bits, for cases.py."""

from __future__ import annotations

from typing import Any

import numpy as np

import wonderland as wl
from tests.primitives.makers import (
    Case,
    Maker,
    complexes,
    definite,
    fixed,
    integers,
    matrices,
    real,
    spread_matrices,
)

# --- linear algebra: eigenvectors and singular vectors are compared where they are determined


def squares(maker: Any, complex_maker: Any) -> list[Case]:
    return [
        Case("matrix", (maker(3, 3),)),
        Case("batched", (maker(2, 3, 3),)),
        Case("1 x 1", (maker(1, 1),)),
        Case("empty", (maker(0, 3, 3),)),
        Case("0 x 0", (maker(0, 0),)),
        Case("complex", (complex_maker,)),
    ]


def solutions(params: dict[str, Any]) -> list[Case]:
    complex_matrix = spread_matrices(3, 3, complex_=True)
    return [
        Case("matrix", (matrices(3, 3), real(3, 2)), params),
        Case("broadcast", (matrices(2, 3, 3), real(3, 1)), params),
        Case("one matrix", (matrices(3, 3), real(2, 3, 2)), params),
        Case("empty", (matrices(3, 3), real(3, 0)), params),
        Case("complex", (complex_matrix, complexes(3, 2)), params),
    ]


def spread(*shape: int) -> Maker:
    return spread_matrices(*shape)


def phases(u: Any, s: Any, vh: Any) -> list[Any]:
    """What does not change when a singular vector is turned by a phase."""
    return [s, wl.abs(u), wl.abs(vh), (u * s) @ vh]


def without_phases(w: Any, v: Any) -> list[Any]:
    """What does not change when an eigenvector is turned by a phase."""
    return [w, wl.abs(v)]


CASES: dict[str, list[Case]] = {
    "solve": solutions({}),
    "solve_triangular": [
        *solutions({"lower": True}),
        Case("upper", (matrices(3, 3), real(3, 2)), {"lower": False}),
        Case("large", (matrices(70, 70), real(70, 1)), {"lower": False}, wrt=(1,)),
    ],
    "inv": squares(matrices, spread_matrices(3, 3, complex_=True)),
    "pinv": [
        Case("tall", (spread(4, 3), fixed([[1e-8]])), wrt=(0,)),
        Case("wide", (spread(2, 3), fixed([[1e-8]])), wrt=(0,)),
        Case("batched", (spread(2, 3, 2), fixed([[1e-8]])), wrt=(0,)),
        Case("complex", (spread_matrices(3, 2, complex_=True), fixed([[1e-8]])), wrt=(0,)),
        Case("empty", (spread(0, 3, 2), fixed([[1e-8]])), wrt=(0,)),
    ],
    "lu": [
        Case("square", (spread(3, 3),)),
        Case("tall", (spread(4, 3),)),
        Case("wide", (spread(2, 4),)),
        Case("batched", (spread(2, 3, 3),)),
        Case("empty", (spread(0, 3, 3),)),
        Case("no columns", (spread(3, 0),)),
        Case("complex", (spread_matrices(3, 3, complex_=True),)),
    ],
    "eig": [
        Case(label, (maker,), observe=without_phases)
        for label, maker in (
            ("matrix", spread(3, 3)),
            ("a turn", fixed([[0.3, -1.0], [2.0, 0.5]])),
            ("batched", spread(2, 3, 3)),
            ("empty", spread(0, 3, 3)),
            ("complex", spread_matrices(3, 3, complex_=True)),
        )
    ],
    "det": squares(matrices, spread_matrices(3, 3, complex_=True)),
    "cofactor": squares(matrices, spread_matrices(3, 3, complex_=True)),
    "slogdet": squares(matrices, spread_matrices(3, 3, complex_=True)),
    "cholesky": squares(definite, definite(3, 3, complex_=True)),
    "matrix_exp": squares(real, complexes(3, 3)),
    "matrix_exp_derivative": [
        Case("matrix", (real(3, 3), real(3, 3))),
        Case("broadcast", (real(2, 3, 3), real(3, 3))),
        Case("empty", (real(0, 2, 2), real(2, 2))),
        Case("complex", (complexes(2, 2), complexes(2, 2))),
    ],
    "qr": [
        Case("square", (matrices(3, 3),), {"complete": False}),
        Case("tall", (matrices(4, 2),), {"complete": False}),
        Case("wide", (matrices(2, 4),), {"complete": False}),
        Case("batched", (matrices(2, 3, 2),), {"complete": False}),
        Case("complete", (matrices(4, 2),), {"complete": True}, wrt=()),
        Case("empty", (matrices(0, 3, 2),), {"complete": False}),
        Case("complex", (spread_matrices(3, 3, complex_=True),), {"complete": False}),
    ],
    "eigh": [
        Case("matrix", (spread(3, 3),)),
        Case("batched", (spread(2, 3, 3),)),
        Case("empty", (spread(0, 2, 2),)),
        Case("complex", (spread_matrices(3, 3, complex_=True),), observe=lambda w, v: [w, wl.abs(v)]),
    ],
    "svd": [
        Case("square", (spread(3, 3),), {"full": False}),
        Case("tall", (spread(4, 2),), {"full": False}),
        Case("wide", (spread(2, 4),), {"full": False}),
        Case("batched", (spread(2, 3, 2),), {"full": False}),
        Case("full", (spread(4, 2),), {"full": True}, wrt=()),
        Case("empty", (spread(0, 3, 2),), {"full": False}),
        Case("complex", (spread_matrices(3, 3, complex_=True),), {"full": False}, observe=phases),
        Case("complex tall", (spread_matrices(4, 2, complex_=True),), {"full": False}, observe=phases),
    ],
}

# --- Fourier transforms and random bits

CASES |= {
    "fft": [
        Case("one axis", (complexes(3, 4),), {"axes": (1,), "inverse": False, "norm": "backward"}),
        Case("two axes", (complexes(3, 4),), {"axes": (0, 1), "inverse": True, "norm": "forward"}),
        Case("ortho", (complexes(5),), {"axes": (0,), "inverse": True, "norm": "ortho"}),
        Case("empty", (complexes(0, 4),), {"axes": (1,), "inverse": False, "norm": "backward"}),
    ],
    "rfft": [
        Case("even", (real(2, 6),), {"axis": 1, "norm": "backward"}),
        Case("odd", (real(5, 2),), {"axis": 0, "norm": "ortho"}),
        Case("one", (real(1),), {"axis": 0, "norm": "forward"}),
        Case("empty", (real(0, 4),), {"axis": 1, "norm": "backward"}),
    ],
    "irfft": [
        Case("even", (complexes(2, 4),), {"n": 6, "axis": 1, "norm": "backward"}),
        Case("odd", (complexes(3, 2),), {"n": 5, "axis": 0, "norm": "ortho"}),
        Case("one", (complexes(1),), {"n": 1, "axis": 0, "norm": "forward"}),
        Case("empty", (complexes(0, 3),), {"n": 4, "axis": 1, "norm": "backward"}),
    ],
    "random_bits": [
        Case("few", (integers(2, low=0, high=99, dtype=np.uint32),), {"shape": (3, 2), "domain": 0}),
        Case("many", (integers(2, low=0, high=99, dtype=np.uint32),), {"shape": (301,), "domain": 1}),
        Case("keys", (integers(3, 2, low=0, high=99, dtype=np.uint32),), {"shape": (2,), "domain": 0}),
        Case("no draw", (integers(2, low=0, high=99, dtype=np.uint32),), {"shape": (0, 2), "domain": 0}),
        Case("empty", (integers(0, 2, low=0, high=99, dtype=np.uint32),), {"shape": (2,), "domain": 0}),
        Case("0-d", (integers(2, low=0, high=99, dtype=np.uint32),), {"shape": (), "domain": 0}),
    ],
}
