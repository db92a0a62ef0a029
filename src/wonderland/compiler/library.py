"""Matrix products by the BLAS library that NumPy's wheels bring along, called from native code by address."""

from __future__ import annotations

import ctypes
import functools
import glob
import math
import os
from typing import Any

import numpy as np

from .. import dtypes
from .builder import Builder
from .schedule import MatMul
from .values import View, reshaped, whole

ROW_MAJOR, PLAIN, TRANSPOSED = 101, 111, 112  # CBLAS' names for them are numbers


@functools.cache
def products() -> dict[Any, int]:
    """The addresses of the matrix products in the BLAS library that NumPy brings along; empty if there is none."""
    folder = os.path.join(os.path.dirname(np.__file__), "..", "numpy.libs")
    for path in glob.glob(os.path.join(folder, "*openblas*")):
        try:
            library = ctypes.CDLL(path)
            return {
                dtypes.float32: _address(library.scipy_cblas_sgemm64_),
                dtypes.float64: _address(library.scipy_cblas_dgemm64_),
            }
        except (OSError, AttributeError):
            continue
    return {}


def _address(function: Any) -> int:
    return ctypes.cast(function, ctypes.c_void_p).value or 0


def emit_product(b: Builder, step: MatMul, function: str, pointers: list[str]) -> None:
    """Loops over the batch axes around gemm(order, trans, trans, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc)."""
    x, y, out = _folded(step)
    scalar = "float" if out.dtype == dtypes.float32 else "double"
    (m, n), k = out.shape[-2:], x.shape[-1]
    (trans_x, lead_x), (trans_y, lead_y) = _orientation(x), _orientation(y)
    one, zero = "0x3FF0000000000000", "0x0000000000000000"

    def at(start: str, view: View, index: list[str]) -> str:
        total = str(view.offset)
        for stride, i in zip(view.strides[:-2], index, strict=True):
            if stride:
                total = b.emit(f"add i64 {total}, {b.emit(f'mul i64 {i}, {stride}')}")
        return b.emit(f"getelementptr inbounds {scalar}, ptr {start}, i64 {total}")

    def product(index: list[str]) -> None:
        px, py, pout = (at(p, v, index) for p, v in zip(pointers, (x, y, out), strict=True))
        b.do(
            f"call void {function}(i32 {ROW_MAJOR}, i32 {trans_x}, i32 {trans_y}, i64 {m}, i64 {n}, i64 {k}, "
            f"{scalar} {one}, ptr {px}, i64 {lead_x}, ptr {py}, i64 {lead_y}, "
            f"{scalar} {zero}, ptr {pout}, i64 {max(n, 1)})"
        )

    def outer(axis: int, index: list[str]) -> None:
        if axis == len(out.shape) - 2:
            product(index)
        else:
            b.loop(out.shape[axis], 1, lambda i: outer(axis + 1, [*index, i]))

    outer(0, [])


def _folded(step: MatMul) -> tuple[View, View, View]:
    """One large product in place of a batch of products with the same right matrix."""
    x, y, out = step.x, step.y, step.out
    lead = out.shape[:-2]
    if lead and all(s == 0 or n == 1 for s, n in zip(y.strides[:-2], lead, strict=True)):
        rows = math.prod(lead) * x.shape[-2]
        flat = reshaped(x, (rows, x.shape[-1]))
        if isinstance(flat, View) and (flat.strides[1] == 1 or flat.shape[1] == 1):
            right = View(y.buffer, y.shape[-2:], y.strides[-2:], y.offset)
            return flat, right, whole(out.buffer, (rows, out.shape[-1]))
    return x, y, out


def _orientation(view: View) -> tuple[int, int]:
    """Plain or transposed, and the leading dimension, of the last two axes."""
    (n, m), (a, b) = view.shape[-2:], view.strides[-2:]
    if (b == 1 or m == 1) and (a >= m or n == 1):
        return PLAIN, max(a, m, 1)
    return TRANSPOSED, max(b, n, 1)
