"""Cases of products with matrices of few bits: of eight and four, with one scale for a row and in groups."""

from __future__ import annotations

from typing import Any

import numpy as np

import wonderland as wl
from tests.primitives.makers import Case, Maker, integers, real
from wonderland.primitives.quantized import groups_of, packed_size


def matrix(kind: str, *shape: int, group: int) -> tuple[Maker, ...]:
    *rows, features = shape
    scales = real(*rows, groups_of(features, group), low=0.5, high=1.5)
    if kind == "bfloat16":
        return (lambda rng: rng.normal(size=shape).astype(wl.bfloat16),)
    if kind == "int4":
        return integers(*rows, packed_size(features), low=0, high=256, dtype=np.uint8), scales
    return integers(*shape, low=-127, high=128, dtype=np.int8), scales


def params(features: int, group: int) -> dict[str, Any]:
    return {"features": features, "group": group}


def products() -> list[Case]:
    return [
        Case("a row each", (real(2, 5), *matrix("int8", 3, 5, group=5)), params(5, 5), wrt=(0,)),
        Case("groups", (real(2, 5), *matrix("int8", 3, 5, group=2)), params(5, 2), wrt=(0,)),
        Case("four bits", (real(2, 2, 40), *matrix("int4", 3, 40, group=40)), params(40, 40), wrt=(0,)),
        Case("groups of four bits", (real(40), *matrix("int4", 3, 40, group=32)), params(40, 32), wrt=(0,)),
        Case("half precision", (real(2, 5), *matrix("bfloat16", 3, 5, group=5)), params(5, 5), wrt=(0,)),
        Case("empty", (real(0, 5), *matrix("int8", 3, 5, group=5)), params(5, 5), wrt=(0,)),
    ]


def roundings() -> list[Case]:
    def case(label: str, *shape: int, features: int = 5) -> Case:
        rows = real(*shape, features)
        return Case(
            label, (rows, *matrix("int8", 3, features, group=features)), {"features": features}, (0,), differences=False
        )

    return [case("rows", 2), case("a batch", 2, 4, features=40), case("one row"), case("empty", 0)]


def numbers() -> list[Case]:
    plain = {"dtype": np.dtype(np.float64)}
    return [
        Case("a row each", matrix("int8", 3, 5, group=5), params(5, 5) | plain, wrt=()),
        Case("groups", matrix("int8", 2, 3, 5, group=2), params(5, 2) | plain, wrt=()),
        Case("four bits", matrix("int4", 3, 40, group=32), params(40, 32) | plain, wrt=()),
        Case("half precision", matrix("bfloat16", 3, 5, group=5), params(5, 5) | plain, wrt=()),
        Case("empty", matrix("int8", 0, 5, group=5), params(5, 5) | plain, wrt=()),
    ]


CASES = {"quantized_matmul": products(), "rounded_matmul": roundings(), "dequantize": numbers()}
