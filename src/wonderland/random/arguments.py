"""The arguments that all draws share: shape, dtype, key, and parameters that are numbers or tensors."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..arrays import asarray
from ..arrays.conversion import as_operand, as_shape, convert, scalar_kind
from ..core import dtypes
from ..core.broadcasting import broadcast_shapes
from ..core.cell import Cell
from ..core.dtypes import DType, as_dtype, is_complex, is_floating, promote_types
from ..core.errors import DTypeError, InputError, ShapeError
from ..core.interpreter import read
from ..core.tensor import Tensor, Tracer
from ..core.typing import Array, ArrayLike, DTypeLike, KeyLike, ShapeLike
from ..primitives.creation import check_size
from .streams import lead_of, take_key

Shape = tuple[int, ...]
Parameter = Tensor | float  # a number costs less


def parameter(name: str, x: ArrayLike) -> Parameter:
    """A parameter as a Python number or a tensor with a value of its own."""
    x = asarray(x) if isinstance(x, (list, tuple)) else as_operand(name, x)
    x = read(x) if isinstance(x, Cell) else x
    if isinstance(x, complex) or (isinstance(x, Tensor) and is_complex(x.dtype)):
        raise DTypeError(f"{name}: a parameter is complex.", "real parameters")
    return x


def as_parameter_tensor(name: str, x: ArrayLike) -> Tensor:
    x = parameter(name, x)
    return x if isinstance(x, Tensor) else asarray(x)


def floating_type(name: str, dtype: DTypeLike | None, *parameters: Parameter) -> DType:
    """The dtype asked for, else that of the floating parameters, else the default."""
    if dtype is None:
        found = None
        for x in parameters:
            if isinstance(x, Tensor) and scalar_kind(x) is None and is_floating(x.dtype):
                found = x.dtype if found is None else promote_types(found, x.dtype)
        return dtypes.default_float if found is None else found
    wanted = as_dtype(dtype)
    if not is_floating(wanted):
        raise DTypeError(f"{name}: draws floating-point numbers, not {wanted}.", "dtype=wl.float32")
    return wanted


def working_type(dtype: DType) -> DType:
    """The dtype to compute in: noise for 16-bit types is made in float32 and rounded once."""
    return dtypes.float32 if dtypes.is_half(dtype) else dtype


def prepare(
    name: str, shape: ShapeLike | None, key: KeyLike, dtype: DTypeLike | None, *parameters: ArrayLike
) -> tuple[Tensor, Shape, DType, list[Parameter]]:
    """The key, shape and dtype of a floating draw, and its parameters in the dtype to compute in."""
    check_shape_first(name, shape, *parameters)
    target, values = floating_parameters(name, dtype, *parameters)
    taken, sizes = key_and_shape(name, shape, key, target, *values)
    return taken, sizes, target, values


def check_shape_first(name: str, shape: object, *parameters: object) -> None:
    """Refuse the orders of arguments in JAX (the key first) and NumPy (the shape last)."""
    if isinstance(shape, Tensor) and shape.dtype == dtypes.uint32:
        raise ShapeError(f"{name}: the shape is a key, {shape.dtype}{list(shape.shape)}.", f"{name}(shape, key=key)")
    if isinstance(shape, int) and (last := [p for p in parameters if isinstance(p, tuple)]):
        raise ShapeError(
            f"{name}: the shape is {shape} and a parameter {last[-1]}.",
            f"the shape first, as in {name}({last[-1]}, ...); a list or a tensor for parameters that are many",
        )


def floating_parameters(name: str, dtype: DTypeLike | None, *parameters: ArrayLike) -> tuple[DType, list[Parameter]]:
    """The dtype of a floating draw, and its parameters: numbers, or tensors in the dtype to compute in."""
    values = [parameter(name, x) for x in parameters]
    target = floating_type(name, dtype, *values)
    return target, [convert(x, working_type(target)) if isinstance(x, Tensor) else x for x in values]


def key_and_shape(
    name: str, shape: ShapeLike | None, key: KeyLike, dtype: DType, *parameters: Parameter
) -> tuple[Tensor, Shape]:
    """The key of a draw and its shape: the one given, or that of the parameters broadcast together.

    This comes after all checks, so that a call that is refused leaves the stream where it was.
    """
    shapes = [x.shape for x in parameters if isinstance(x, Tensor)]
    sizes = broadcast_shapes(name, (), *shapes) if shape is None else as_shape(name, shape)
    check_size(name, sizes, dtype)
    full = lead_of(name, key) + sizes
    if shapes and broadcast_shapes(name, full, *shapes) != full:
        listed = " and ".join(map(str, shapes))
        raise ShapeError(f"{name}: parameters of shape {listed} for a draw of shape {full}.", "a shape that holds them")
    return take_key(name, key), sizes


def known(x: Parameter) -> Array | None:
    """The numbers of a parameter if they can be looked at, None if they are traced."""
    if isinstance(x, Tracer):
        return x._concrete("bool") if x.trace.concrete else None
    if isinstance(x, Tensor):
        return x._data
    value = np.asarray(x)
    return value.astype(np.float64) if value.dtype == object else value  # an integer of more than 64 bits


def exactly(x: Parameter) -> Array | None:
    """`known`, with Python's integers as they are: those of more than 64 bits keep all their digits."""
    return np.asarray(x, object) if isinstance(x, int) else known(x)


def check(name: str, what: str, x: ArrayLike, good: Callable[[Array], Array], wanted: str) -> None:
    """Refuse a parameter with a value that is known and not good."""
    value = known(parameter(name, x))
    if value is not None and not np.all(good(value)):
        bad = value[~np.broadcast_to(good(value), value.shape)].ravel()[0]
        raise InputError(f"{name}: {what} is {bad}.", wanted)


def check_scale(name: str, what: str, x: ArrayLike) -> None:
    check(name, what, x, lambda v: v >= 0, f"{what} >= 0")


def check_order(name: str, low: ArrayLike, high: ArrayLike, dtype: DType | None = None) -> None:
    """Refuse known bounds with low >= high somewhere, also after rounding to a dtype."""
    a, b = exactly(parameter(name, low)), exactly(parameter(name, high))
    if a is None or b is None:
        return
    note = ""
    if dtype is not None:
        a, b, note = a.astype(dtype), b.astype(dtype), f" in {dtype}"
    if not np.all(a < b):
        raise InputError(f"{name}: low={_shown(a)} is not below high={_shown(b)}{note}.", "low < high")


def _shown(x: Array) -> str:
    return str(x) if x.size == 1 else f"tensor of shape {x.shape}"
