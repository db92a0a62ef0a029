r"""Matrices of few bits: integers with a scale for every row or group, and products that read them as they are.

A matrix W of n rows and k columns is stored by rows, each in one of these forms:

| dtype | stored | element |
|---|---|---|
| int8 | (n, k) | \(s_{ig} q_{ij}\) |
| uint8 | (n, K / 2), two numbers of four bits in a byte | \(s_{ig} (q_{ij} - 8)\) |
| bfloat16 | (n, k) | itself, without scales |

The scales are (n, groups), one for each `group` of columns. Four bits come in blocks of 32 columns, of which K is the
next multiple: byte j of a block has column j below and column j + 16 above, so that both halves are vectors.
"""

from __future__ import annotations

import math

import numpy as np

from ..core import dtypes
from ..core.errors import DTypeError, ShapeError
from ..core.primitive import LINEAR, ZERO, Aval, Primitive
from ..core.tensor import Tensor
from ..core.typing import Array, Shaped
from .contraction import matmul, swap_last
from .structure import broadcast_to, reshape

BLOCK = 32  # columns whose four bits lie together
HALF = BLOCK // 2  # bytes of a block
MIDDLE = 8  # what 0 is stored as in four bits


def packed_size(features: int) -> int:
    """The bytes of a row of four bits."""
    return -(-features // BLOCK) * HALF


def unpacked(packed: Array) -> Array:
    """Integers from -8 to 7, (..., K), from bytes (..., K / 2)."""
    blocks = packed.reshape(*packed.shape[:-1], packed.shape[-1] // HALF, 1, HALF)
    both = np.concatenate([blocks & 15, blocks >> 4], axis=-2)
    return both.reshape(*packed.shape[:-1], 2 * packed.shape[-1]).astype(np.int8) - np.int8(MIDDLE)


def packed(values: Array) -> Array:
    """Bytes (..., K / 2) from integers (..., k) from -8 to 7."""
    wide = [(0, 0)] * (values.ndim - 1) + [(0, 2 * packed_size(values.shape[-1]) - values.shape[-1])]
    whole = (np.pad(values, wide) + MIDDLE).astype(np.uint8)
    blocks = whole.reshape(*values.shape[:-1], -1, 2, HALF)
    return (blocks[..., 0, :] | blocks[..., 1, :] << 4).reshape(*values.shape[:-1], -1)


def groups_of(features: int, group: int) -> int:
    return -(-features // group)


def _check(name: str, values: Shaped, scales: tuple[Shaped, ...], features: int, group: int) -> None:
    """Raise unless the parts of a matrix belong together."""
    four = values.dtype == np.uint8
    if values.dtype not in (np.int8, np.uint8, dtypes.bfloat16):
        raise DTypeError(f"{name}: values of {values.dtype}.", "int8, uint8 (two numbers of four bits) or bfloat16")
    stored = packed_size(features) if four else features
    if not values.shape or values.shape[-1] != stored:
        raise ShapeError(f"{name}: values {values.shape} for {features} features.", f"(..., {stored})")
    if (values.dtype == dtypes.bfloat16) != (not scales) or len(scales) > 1:
        raise DTypeError(f"{name}: {len(scales)} tensors of scales for {values.dtype}.", "one for integers, else none")
    for scale in scales:
        wanted = (*values.shape[:-1], groups_of(features, group))
        if scale.shape != wanted or not dtypes.is_floating(scale.dtype):
            raise ShapeError(f"{name}: scales {scale.dtype}{list(scale.shape)}.", f"floating scales {wanted}")
    if four and group % BLOCK and group < features:
        raise ShapeError(f"{name}: groups of {group} numbers of four bits.", f"a multiple of {BLOCK}")


def wide(dtype: dtypes.DType) -> dtypes.DType:
    """The type in which numbers of a type are computed."""
    return dtypes.float64 if dtype == dtypes.float64 else dtypes.float32


def _dequantize(values: Array, *scales: Array, features: int, group: int, dtype: dtypes.DType) -> Array:
    _check("dequantize", values, scales, features, group)
    if not scales:
        return values.astype(dtype)
    numbers = unpacked(values)[..., :features] if values.dtype == np.uint8 else values
    each = np.repeat(scales[0].astype(wide(dtype)), group, axis=-1)[..., :features]
    return (numbers * each).astype(dtype)


def _dequantize_abstract(values: Shaped, *scales: Shaped, features: int, group: int, dtype: dtypes.DType) -> Aval:
    _check("dequantize", values, scales, features, group)
    if not dtypes.is_floating(dtype):
        raise DTypeError(f"dequantize: to {dtype}.", "a floating dtype")
    return Aval((*values.shape[:-1], features), dtype)


def _together(args: list[Tensor], batched: list[bool]) -> list[Tensor]:
    """All with the batch in front."""
    size = next(a.shape[0] for a, b in zip(args, batched, strict=True) if b)
    return [a if b else broadcast_to(a, shape=(size, *a.shape)) for a, b in zip(args, batched, strict=True)]


def _dequantize_batch(args: list[Tensor], batched: list[bool], **params: object) -> Tensor:
    found: Tensor = dequantize(*_together(args, batched), **params)
    return found


dequantize: Primitive = Primitive(
    "dequantize", _dequantize, _dequantize_abstract, jvp=(ZERO, None), batch=_dequantize_batch
)


def _product(x: Array, values: Array, *scales: Array, features: int, group: int) -> Array:
    _product_abstract(x, values, *scales, features=features, group=group)
    kind = wide(x.dtype)
    weight = _dequantize(values, *scales, features=features, group=group, dtype=kind)
    flat = x.reshape(math.prod(x.shape[:-1]), features).astype(kind)
    return (flat @ weight.T).reshape(*x.shape[:-1], len(weight)).astype(x.dtype)


def _product_abstract(x: Shaped, values: Shaped, *scales: Shaped, features: int, group: int) -> Aval:
    return product_of("quantized_matmul", x, values, scales, features, group)


def product_of(name: str, x: Shaped, values: Shaped, scales: tuple[Shaped, ...], features: int, group: int) -> Aval:
    """What a product of rows with such a matrix is, if they fit."""
    _check(name, values, scales, features, group)
    if not dtypes.is_floating(x.dtype):
        raise DTypeError(f"{name}: x of {x.dtype}.", "x.astype(wl.float32)")
    if not x.shape or x.shape[-1] != features or len(values.shape) != 2:
        raise ShapeError(
            f"{name}: x {x.shape} and values {values.shape} of {features} features.", f"(..., {features}) and (n, ...)"
        )
    return Aval((*x.shape[:-1], values.shape[0]), x.dtype)


def _product_transpose(ct: Tensor, x: Tensor, *matrix: Tensor, features: int, group: int) -> Tensor:
    """The adjoint of x: ct W."""
    flat = reshape(ct, shape=(math.prod(ct.shape[:-1]), ct.shape[-1]))
    weight = dequantize(*matrix, features=features, group=group, dtype=ct.dtype)
    back: Tensor = reshape(matmul(flat, weight), shape=x.shape)
    return back


def _product_batch(args: list[Tensor], batched: list[bool], features: int, group: int) -> Tensor:
    if not any(batched[1:]):
        found: Tensor = quantized_matmul(*args, features=features, group=group)
        return found
    x, *matrix = _together(args, batched)
    flat = reshape(x, shape=(x.shape[0], math.prod(x.shape[1:-1]), features))
    weight = dequantize(*matrix, features=features, group=group, dtype=x.dtype)
    made: Tensor = reshape(matmul(flat, swap_last(weight)), shape=(*x.shape[:-1], weight.shape[-2]))
    return made


quantized_matmul: Primitive = Primitive(
    "quantized_matmul",
    _product,
    _product_abstract,
    jvp=(LINEAR, ZERO, None),
    transpose=(_product_transpose,),
    batch=_product_batch,
    cost=lambda x, values, *scales, features, group: math.prod(x.shape) * values.shape[0],
)
