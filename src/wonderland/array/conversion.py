"""From Python values and NumPy arrays to tensors, and to a common dtype."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import dtypes
from ..dtypes import DType, as_dtype, is_complex, is_inexact, promote_types, with_scalar
from ..errors import DTypeError, InputError, ShapeError
from ..primitives import elementwise as p
from ..tensor import Cell, Tensor, Tracer, wrap

SCALAR_KIND = {bool: 0, int: 1, float: 2, complex: 3}


def is_operand(x: Any) -> bool:
    """Whether operators accept x: a tensor, an array or a number."""
    return isinstance(x, (Tensor, np.ndarray, np.generic, bool, int, float, complex))


def tensor(data: Any, dtype: Any = None, *, requires_grad: bool = False) -> Tensor:
    """A new tensor with a copy of `data`: a number, nested lists, a NumPy array or another tensor.

    >>> import wonderland as wl
    >>> wl.tensor([[1, 2], [3, 4]]).dtype, wl.tensor([1.0]).dtype
    (dtype('int64'), dtype('float32'))

    Python floats become float32, integers int64; NumPy arrays keep their type. Tensors inside lists are stacked, and
    derivatives flow through them. Elements of different kinds are promoted; ragged lists are refused. Book, D.2.1.
    """
    made = asarray(data, dtype=dtype, copy=True)
    return made.requires_grad_() if requires_grad else made


def asarray(obj: Any, /, *, dtype: Any = None, device: Any = None, copy: bool | None = None) -> Tensor:
    """A tensor with the value of `obj`, sharing its memory where possible (`copy=True` never shares).

    >>> import numpy as np, wonderland as wl
    >>> wl.asarray(np.zeros(2)).dtype
    dtype('float64')
    """
    wanted = None if dtype is None else as_dtype(dtype)
    if isinstance(obj, Tensor):
        value: Any = obj.value if isinstance(obj, Cell) else obj
        return value if wanted is None or value.dtype == wanted else p.astype(value, dtype=wanted)
    if isinstance(obj, (np.ndarray, np.generic)):
        data = np.asarray(obj)
        target = as_dtype(data.dtype) if wanted is None else wanted
        if copy is False and data.dtype != target:
            raise InputError(f"asarray: {data.dtype} cannot become {target} without a copy.", "copy=None")
        if copy or data.dtype != target:
            data = data.astype(target, copy=True)
        return wrap(data)
    if isinstance(obj, (bool, int, float, complex)):
        return from_scalar(obj, wanted or _scalar_dtype(obj))
    if isinstance(obj, (list, tuple, range)):
        return _from_sequence(obj, wanted)
    if hasattr(obj, "__array__") or hasattr(obj, "__dlpack__") or isinstance(obj, memoryview | bytearray):
        data = np.asarray(obj) if hasattr(obj, "__array__") or not hasattr(obj, "__dlpack__") else np.from_dlpack(obj)
        return asarray(data, dtype=dtype, copy=copy)
    raise DTypeError(
        f"tensor: a {type(obj).__name__} is not a number, an array or a nested list of them.",
        "numbers; text becomes numbers with a tokenizer",
    )


def _scalar_dtype(value: Any) -> DType:
    if isinstance(value, bool):
        return dtypes.bool_
    if isinstance(value, int):
        return dtypes.default_int
    return dtypes.default_float if isinstance(value, float) else dtypes.default_complex


def from_scalar(value: Any, dtype: DType) -> Tensor:
    """A 0-d tensor from a Python number that the dtype can hold."""
    try:
        return wrap(np.array(value, dtype))
    except (OverflowError, TypeError) as error:
        raise DTypeError(f"tensor: the number {value!r} does not fit into {dtype}.", "a wider dtype") from error


def _from_sequence(obj: Any, dtype: DType | None) -> Tensor:
    if _has_tensor(obj):
        parts = [asarray(part) for part in obj]
        shapes = {part.shape for part in parts}
        if len(shapes) > 1:
            raise ShapeError(f"tensor: the parts of a list have different shapes {sorted(shapes)}.", "parts of one shape")
        stacked = manipulation.stack(parts)
        return stacked if dtype is None else p.astype(stacked, dtype=dtype)
    try:
        data = np.array(obj)
    except ValueError as error:
        raise ShapeError(f"tensor: the nested lists are ragged ({error}).", "rows of one length; pad or mask") from error
    if data.dtype.kind in "OUSV":
        raise DTypeError(
            f"tensor: the list holds elements of type {data.dtype}, which are not all numbers.", "numbers of one kind"
        )
    if dtype is None:
        explicit = _explicit_dtype(obj)
        if explicit is None and data.dtype == np.float64:
            dtype = dtypes.default_float
        elif explicit is None and data.dtype == np.complex128:
            dtype = dtypes.default_complex
        elif data.size == 0 and explicit is None:
            dtype = dtypes.default_float
        else:
            dtype = as_dtype(data.dtype)
    if dtype.kind in "iu" and data.dtype.kind in "fc":
        raise DTypeError(f"tensor: fractions do not fit into {dtype}.", "a floating dtype, or rounding first")
    return wrap(data.astype(dtype))


def _explicit_dtype(obj: Any) -> Any:
    """The dtype of the first element if it comes from NumPy, else None."""
    while isinstance(obj, (list, tuple)):
        if not obj:
            return None
        obj = obj[0]
    return obj.dtype if isinstance(obj, np.ndarray) else None


def _has_tensor(obj: Any) -> bool:
    return isinstance(obj, (list, tuple)) and any(isinstance(o, Tensor) or _has_tensor(o) for o in obj)


def scalar_kind(x: Any) -> int | None:
    """The kind of a Python number (or of a traced one), None for tensors."""
    kind = SCALAR_KIND.get(type(x))
    if kind is None and isinstance(x, Tracer):
        return getattr(x, "weak", None)
    return kind


def as_operand(name: str, x: Any) -> Any:
    """x as a tensor or a plain Python number."""
    if isinstance(x, Tensor) or type(x) in SCALAR_KIND:
        return x
    if isinstance(x, np.generic):
        return x.item()  # NumPy's scalars behave as Python's
    if isinstance(x, np.ndarray):
        return asarray(x)
    for kind in SCALAR_KIND:
        if isinstance(x, kind):  # a subclass, such as an IntEnum
            return kind(x)
    raise DTypeError(
        f"{name}: an operand of type {type(x).__name__} is not a tensor or a number.",
        "wl.asarray(x) for lists and other sequences",
    )


def promote(name: str, *xs: Any) -> list[Any]:
    """The operands as tensors of one dtype. Python numbers take the dtype of the tensors."""
    xs_ = [as_operand(name, x) for x in xs]
    common: DType | None = None
    kind = -1
    for x in xs_:
        scalar = scalar_kind(x)
        if scalar is None:
            common = x.dtype if common is None else promote_types(common, x.dtype)
        else:
            kind = max(kind, scalar)
    if common is None:
        common = (dtypes.bool_, dtypes.default_int, dtypes.default_float, dtypes.default_complex)[kind]
    elif kind >= 0:
        common = with_scalar(common, kind)
    return [convert(x, common) for x in xs_]


def convert(x: Any, dtype: DType) -> Any:
    if isinstance(x, Tensor):
        return x if x.dtype == dtype else p.astype(x, dtype=dtype)
    return from_scalar(x, dtype)


def promote_inexact(name: str, *xs: Any) -> list[Any]:
    """Like `promote`, with integers turned into the default floating type."""
    xs_ = promote(name, *xs)
    if is_inexact(xs_[0].dtype):
        return xs_
    return [p.astype(x, dtype=dtypes.default_float) for x in xs_]


def as_tensor(name: str, x: Any) -> Any:
    """One operand as a tensor."""
    if isinstance(x, Tensor):
        return x
    x = as_operand(name, x)
    return x if isinstance(x, Tensor) else from_scalar(x, _scalar_dtype(x))


def as_inexact(name: str, x: Any) -> Any:
    """One operand as a floating or complex tensor."""
    x = as_tensor(name, x)
    return x if is_inexact(x.dtype) else p.astype(x, dtype=dtypes.default_float)


def as_real(name: str, x: Any) -> Any:
    x = as_inexact(name, x)
    if is_complex(x.dtype):
        raise DTypeError(f"{name}: takes real tensors, received {x.dtype}.", "wl.real(x) or wl.abs(x)")
    return x


def as_shape(name: str, shape: Any) -> tuple[int, ...]:
    """A shape as a tuple of Python integers."""
    if isinstance(shape, (int, np.integer)):
        return (int(shape),)
    try:
        sizes = tuple(n if type(n) is int else n.__index__() for n in shape)
    except (TypeError, AttributeError) as error:
        raise ShapeError(f"{name}: {shape!r} is not a shape.", "a tuple of integers") from error
    return sizes


from . import manipulation  # noqa: E402 - stacking needs the conversions above
