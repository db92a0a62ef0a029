"""Element types: their names, and how they combine."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import wonderland as wl
from wonderland.core import dtypes

SIGNED, UNSIGNED = ("int8", "int16", "int32", "int64"), ("uint8", "uint16", "uint32", "uint64")
FLOATS, COMPLEX = ("float16", "bfloat16", "float32", "float64"), ("complex64", "complex128")
ALL = ("bool", *SIGNED, *UNSIGNED, *FLOATS, *COMPLEX)


def test_the_names() -> None:
    for name in ALL:
        dtype = getattr(wl, name)
        assert dtype.name == name
        assert dtypes.as_dtype(name) is dtype
        assert dtypes.as_dtype(dtype) is dtype
        assert dtypes.as_dtype(dtype.type) is dtype
    assert dtypes.as_dtype(float) is wl.float32
    assert dtypes.as_dtype(int) is wl.int64
    assert dtypes.as_dtype(bool) is wl.bool
    assert dtypes.as_dtype(complex) is wl.complex64
    assert dtypes.as_dtype(">f8") is wl.float64


@pytest.mark.parametrize("bad", (None, "float8", "U3", object, [1], "datetime64[s]", np.dtype("V4"), 3.5))
def test_what_is_no_element_type(bad: Any) -> None:
    with pytest.raises(wl.errors.DTypeError, match="one of bool, int8"):
        dtypes.as_dtype(bad)


def expected(a: str, b: str) -> str | None:
    """The table of promotion, written out by kinds."""
    if a == b:
        return a
    kinds = [next(i for i, k in enumerate((("bool",), SIGNED + UNSIGNED, FLOATS, COMPLEX)) if x in k) for x in (a, b)]
    if kinds[0] > kinds[1]:
        a, b, kinds = b, a, kinds[::-1]
    if kinds == [1, 1]:
        size = {x: int(x.strip("uint")) for x in (a, b)}
        if (a in SIGNED) == (b in SIGNED):
            return max(a, b, key=size.__getitem__)
        signed, unsigned = (a, b) if a in SIGNED else (b, a)
        wanted = max(size[signed], 2 * size[unsigned])
        return f"int{wanted}" if wanted <= 64 else None
    if kinds == [2, 2]:
        if {a, b} == {"float16", "bfloat16"}:
            return "float32"
        return max(a, b, key=lambda x: int(x.strip("bfloat")))
    if kinds == [3, 3] or (kinds == [2, 3] and a == "float64"):
        return "complex128"
    return b


@pytest.mark.parametrize(("a", "b"), list(itertools.product(ALL, ALL)))
def test_the_promotion_table(a: str, b: str) -> None:
    wanted = expected(a, b)
    if wanted is None:
        with pytest.raises(wl.errors.DTypeError, match="no common integer type"):
            wl.result_type(a, b)
        with pytest.raises(wl.errors.DTypeError):
            wl.ones(1, dtype=a) * wl.ones(1, dtype=b)
        return
    assert wl.result_type(a, b) == wanted
    assert (wl.ones(1, dtype=a) * wl.ones(1, dtype=b)).dtype == wanted
    assert wl.maximum(wl.ones(1, dtype=a), wl.ones(1, dtype=b)).dtype == wanted if "complex" not in wanted else True


def test_promotion_is_associative_within_floats_and_integers() -> None:
    for kind in (SIGNED, UNSIGNED, FLOATS, COMPLEX, ("bool", *SIGNED), ("bool", *FLOATS)):
        for a, b, c in itertools.product(kind, repeat=3):
            left = wl.result_type(wl.result_type(a, b), c)
            assert left == wl.result_type(a, wl.result_type(b, c))


@pytest.mark.parametrize("dtype", ALL)
def test_python_numbers_only_raise_the_kind(dtype: str) -> None:
    x = wl.ones(1, dtype=dtype)
    rank = 0 if dtype == "bool" else 1 if "int" in dtype else 2 if "float" in dtype else 3
    for number, kind, default in (
        (True, 0, "bool"),
        (1, 1, "int64"),
        (1.0, 2, "float32"),
        (1j, 3, "complex64"),
    ):
        wanted = dtype if kind <= rank else "complex128" if (kind, dtype) == (3, "float64") else default
        assert wl.result_type(x, number) == wanted
        assert wl.result_type(number, x) == wanted
        assert (x + number).dtype == wanted


def test_parts_of_complex_types() -> None:
    assert dtypes.real_of(wl.complex64) == wl.float32
    assert dtypes.real_of(wl.complex128) == wl.float64
    assert dtypes.real_of(wl.int8) == wl.int8
    assert dtypes.complex_of(wl.float64) == wl.complex128
    assert dtypes.complex_of(wl.bfloat16) == wl.complex64
    assert dtypes.floating_of(wl.int64) == wl.float32
    assert dtypes.floating_of(wl.complex64) == wl.complex64


@pytest.mark.parametrize(("source", "target"), list(itertools.product(ALL, ALL)))
def test_conversions(source: str, target: str) -> None:
    x = wl.tensor([0, 1, 1], dtype="int64").astype(source)
    if source in COMPLEX and target not in (*COMPLEX, "bool"):
        with pytest.raises(wl.errors.DTypeError, match="counterpart"):
            x.astype(target)
        return
    y = x.astype(target)
    assert y.dtype == target
    assert y.astype("complex128").tolist() == [0, 1, 1]


def test_conversion_is_differentiable_between_floating_types() -> None:
    for source, target in itertools.product((*FLOATS, *COMPLEX), (*FLOATS, *COMPLEX)):
        if source in COMPLEX and target not in COMPLEX:
            continue
        x = wl.ones(2, dtype=source)
        g = wl.grad(lambda x, t=target: wl.real(x.astype(t) * 3).sum().astype("float64"))(x)
        assert g.dtype == source
        assert g.astype("complex64").tolist() == [3, 3]
