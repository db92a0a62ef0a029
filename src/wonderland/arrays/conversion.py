"""From Python values and other libraries' arrays to tensors, and to a common dtype."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeGuard

import numpy as np

from ..core import dtypes, interpreter
from ..core.arguments import as_int
from ..core.cell import Cell
from ..core.context import current
from ..core.dtypes import (
    KIND,
    SHORT,
    DType,
    as_dtype,
    is_complex,
    is_half,
    is_inexact,
    is_integer,
    promote_types,
    with_scalar,
)
from ..core.errors import DTypeError, InputError, ShapeError
from ..core.room import GIBIBYTE
from ..core.tensor import Tensor, Tracer, alias, unrecorded, wrap
from ..core.typing import Array, ArrayLike, DTypeLike, Number, ShapeLike, SupportsDLPack
from ..primitives import elementwise as p
from ..primitives.creation import check_size
from ..primitives.structure import concatenate, reshape

if TYPE_CHECKING:
    from typing_extensions import Buffer  # that of collections.abc, from Python 3.12 on

__all__ = ["array", "asarray", "from_dlpack", "tensor"]

SCALAR_KIND = {bool: 0, int: 1, float: 2, complex: 3}
SCALAR_DTYPE = (dtypes.bool_, dtypes.default_int, dtypes.default_float, dtypes.default_complex)


def tensor(
    data: ArrayLike | SupportsDLPack | Buffer,
    dtype: DTypeLike | None = None,
    *,
    device: str | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """A new tensor with a copy of `data`: a number, nested lists, a NumPy array or another tensor.

    >>> import wonderland as wl
    >>> wl.tensor([[1, 2], [3, 4]]).dtype, wl.tensor([1.0]).dtype
    (dtype('int64'), dtype('float32'))

    Python floats become float32, integers int64; NumPy arrays keep their type. Tensors inside lists are
    stacked, and derivatives flow through them. Elements of different kinds are promoted; ragged lists are
    refused. Book, D.2.1.
    """
    made = asarray(data, dtype=dtype, copy=True, device=device)
    if not requires_grad:
        return made
    return unrecorded(made).requires_grad_()


def array(
    object: ArrayLike | SupportsDLPack | Buffer,
    dtype: DTypeLike | None = None,
    *,
    copy: bool | None = True,
    ndmin: int = 0,
    device: str | None = None,
) -> Tensor:
    """A tensor of `object`, under the name that users of NumPy and JAX type first; it copies unless told not to.

    >>> import wonderland as wl
    >>> wl.array([1, 2]), wl.array(3.0, ndmin=2).shape
    (tensor([1, 2]), (1, 1))

    `copy=None` (or False, which refuses what cannot be shared) is `asarray`. `ndmin` puts axes of size 1 in front.
    """
    made = asarray(object, dtype=dtype, copy=copy, device=device)
    lacking = as_int("array", "ndmin", ndmin, 0) - made.ndim
    return made if lacking <= 0 else made[(None,) * lacking]


def asarray(
    obj: ArrayLike | SupportsDLPack | Buffer,
    /,
    *,
    dtype: DTypeLike | None = None,
    device: str | None = None,
    copy: bool | None = None,
) -> Tensor:
    """A tensor with the value of `obj`, sharing its memory where possible (`copy=True` never shares).

    >>> import numpy as np, wonderland as wl
    >>> wl.asarray(np.zeros(2)).dtype, wl.asarray([1, 2], dtype=wl.float32)
    (dtype('float64'), tensor([1., 2.]))

    A NumPy array that is written to afterwards changes the tensors that share its memory.
    """
    check_device("asarray", device)
    wanted = None if dtype is None else as_dtype(dtype)
    if isinstance(obj, Tensor):
        return _from_tensor(obj, wanted, copy)
    if isinstance(obj, (np.ndarray, np.generic)):
        return _from_numpy(np.asarray(obj), wanted, copy)
    if isinstance(obj, (bool, int, float, complex)):
        return from_scalar(obj, wanted or _scalar_dtype(obj))
    if isinstance(obj, (list, tuple, range)):
        return _from_sequence(obj, wanted)
    if hasattr(obj, "__array__"):
        return _from_numpy(np.asarray(obj), wanted, copy)
    if hasattr(obj, "__dlpack__"):
        return asarray(from_dlpack(obj), dtype=dtype, copy=copy)  # type: ignore[arg-type]  # it has what is asked for
    try:
        return _from_numpy(np.asarray(memoryview(obj)), wanted, copy)
    except TypeError:
        raise DTypeError(
            f"tensor: a {type(obj).__name__} is not a number, an array or a nested list of them.",
            "numbers; text becomes numbers with a tokenizer",
        ) from None


def from_dlpack(x: SupportsDLPack, /, *, device: str | None = None, copy: bool | None = None) -> Tensor:
    """A tensor over the memory of another library's array that speaks DLPack.

    >>> import numpy as np, wonderland as wl
    >>> wl.from_dlpack(np.arange(3.0))
    tensor([0., 1., 2.], dtype=float64)
    """
    check_device("from_dlpack", device)
    if isinstance(x, Tensor):
        return asarray(x, copy=copy)
    try:
        data = np.from_dlpack(x)
    except (AttributeError, BufferError, RuntimeError, TypeError) as error:
        raise InputError(
            f"from_dlpack: a {type(x).__name__} does not share its memory ({error}).", "wl.asarray(x)"
        ) from error
    return asarray(data, copy=copy)


# --- the kinds of input


def _from_tensor(x: Tensor, dtype: DType | None, copy: bool | None) -> Tensor:
    value = interpreter.read(x) if isinstance(x, Cell) else x
    target = value.dtype if dtype is None else dtype
    if copy is False and value.dtype != target:
        raise _needs_copy(value.dtype, target)
    if value.dtype == target and (not copy or isinstance(value, Tracer)) and scalar_kind(value) is None:
        return value
    return p.astype(value, dtype=target)


def _from_numpy(data: Array, dtype: DType | None, copy: bool | None) -> Tensor:
    target = as_dtype(data.dtype) if dtype is None else dtype
    if copy is False and data.dtype != target:
        raise _needs_copy(data.dtype, target)
    if is_complex_data(data) and not is_complex(target):
        raise DTypeError(
            f"tensor: {data.dtype} has no {target} counterpart.",
            "the real part, the imaginary part or the modulus",
        )
    if copy or data.dtype != target:
        if data.size > GIBIBYTE // 16:  # the copy may be too large, should this be a broadcast view
            check_size("tensor", data.shape, target)
        with np.errstate(all="ignore"):
            data = data.astype(target, copy=True)
        return wrap(data)
    # A view: to whom the memory belongs can be seen from it, see assignment.py. An unpickled array may carry an equal
    # dtype that is another object; ours are compared by identity.
    return wrap(data.view(target))


def _needs_copy(source: DType, target: DType) -> InputError:
    return InputError(f"asarray: {source} cannot become {target} without a copy.", "copy=None")


def is_complex_data(data: Array) -> bool:
    return data.dtype.kind == "c"


def _scalar_dtype(value: complex) -> DType:
    return SCALAR_DTYPE[next(kind for cls, kind in SCALAR_KIND.items() if isinstance(value, cls))]


def from_scalar(value: complex, dtype: DType) -> Tensor:
    """A 0-d tensor from a Python number that the dtype can hold."""
    try:
        if isinstance(value, float) and is_integer(dtype):
            if not value.is_integer():
                raise OverflowError
            value = int(value)
        if abs(value) < 65504:  # fits into every floating type
            return wrap(np.array(value, dtype))
        with np.errstate(all="ignore"):  # a number too large for a floating type is infinite there
            return wrap(np.array(value, dtype))
    except (OverflowError, TypeError, ValueError) as error:
        raise DTypeError(f"tensor: the number {value!r} does not fit into {dtype}.", "a wider dtype") from error


def _from_sequence(obj: Sequence[Any], dtype: DType | None) -> Tensor:
    if _has_tensor(obj):
        parts = [part if type(part) in SCALAR_KIND else asarray(part) for part in obj]
        rows = promote("tensor", *parts)
        if len({row.shape for row in rows}) > 1:
            shapes = ", ".join(str(row.shape) for row in rows)
            raise ShapeError(f"tensor: the shapes {shapes} of a list differ.", "tensors of one shape")
        stacked = concatenate(*[reshape(row, shape=(1, *row.shape)) for row in rows], axis=0)
        return stacked if dtype is None else convert(stacked, dtype)
    try:
        data = np.array(obj)
    except ValueError as error:
        raise ShapeError(
            f"tensor: the nested lists are ragged ({error}).", "rows of one length; pad or mask"
        ) from error
    if data.dtype.kind in "OUSV" and data.dtype not in dtypes.KIND:
        raise DTypeError(
            f"tensor: the list holds elements of type {data.dtype}, which are not all numbers.",
            "numbers of one kind",
        )
    if dtype is None:
        dtype = _default_for(obj, data)
    if is_integer(dtype) and data.size and not _fits(data, dtype):
        raise DTypeError(f"tensor: not all numbers of the list fit into {dtype}.", "a wider or a floating dtype")
    return _from_numpy(data, dtype, False if data.dtype == dtype else None)


def _default_for(obj: object, data: Array) -> DType:
    """The dtype of a list: Python's numbers take the default types, NumPy's arrays keep theirs."""
    while isinstance(obj, (list, tuple)) and obj:
        obj = obj[0]
    if isinstance(obj, np.ndarray):
        return as_dtype(data.dtype)
    if data.dtype == dtypes.float64 or data.size == 0:
        return dtypes.default_float
    return dtypes.default_complex if is_complex_data(data) else as_dtype(data.dtype)


def _fits(data: Array, dtype: DType) -> bool:
    """Whether integers can hold the data exactly."""
    if data.dtype.kind == "f" and not np.all(data == np.trunc(data)):
        return False
    info = np.iinfo(dtype)
    return bool(data.dtype.kind != "c" and info.min <= data.min() and data.max() <= info.max)


def _has_tensor(obj: object, depth: int = 0) -> bool:
    if not isinstance(obj, (list, tuple)):
        return isinstance(obj, Tensor)
    if depth == 64:
        raise ShapeError("tensor: the list is nested more than 64 levels deep, or contains itself.", "at most 64 axes")
    return any(_has_tensor(o, depth + 1) for o in obj)


# --- operands of functions


def is_operand(x: object) -> TypeGuard[Tensor | Array | Number]:
    """Whether operators accept x: a tensor, an array or a number."""
    return isinstance(x, (Tensor, np.ndarray, np.generic, bool, int, float, complex))


def scalar_kind(x: object) -> int | None:
    """The kind of a Python number (or of a traced one), None for tensors."""
    kind = SCALAR_KIND.get(type(x))
    if kind is None and isinstance(x, Tracer):
        return getattr(x, "weak", None)
    return kind


def as_operand(name: str, x: ArrayLike) -> Any:
    """x as a tensor or a plain Python number."""
    if isinstance(x, Tensor) or type(x) in SCALAR_KIND:
        return x
    if isinstance(x, np.generic) and type(x.item()) in SCALAR_KIND:
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


def promote(name: str, *xs: ArrayLike) -> list[Tensor]:
    """The operands as tensors of one dtype. Python numbers take the dtype of the tensors."""
    if len(xs) == 2:  # a tensor and a number, the frequent case
        x, y = xs
        if isinstance(x, Tensor) and isinstance(y, Tensor) and x.dtype is y.dtype:
            return [x, y]
        if isinstance(x, Tensor):
            if SCALAR_KIND.get(type(y), 4) <= KIND[x.dtype] and scalar_kind(x) is None:
                return [x, from_scalar(y, x.dtype)]  # type: ignore[arg-type]  # its type is that of a number
        elif isinstance(y, Tensor) and SCALAR_KIND.get(type(x), 4) <= KIND[y.dtype] and scalar_kind(y) is None:
            return [from_scalar(x, y.dtype), y]  # type: ignore[arg-type]  # as above
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
        common = SCALAR_DTYPE[kind]
    elif kind >= 0:
        common = with_scalar(common, kind)
    if common is dtypes.float32 and current().settings.autocast is not None:
        common = _beside_parameters(xs_)
    return [convert(x, common) for x in xs_]


def _beside_parameters(xs: Sequence[object]) -> DType:
    """The common dtype inside `wl.autocast`: parameters take the type of low precision that the others have."""
    others = {x.dtype for x in xs if isinstance(x, Tensor) and not (isinstance(x, Cell) and x.trainable)}
    low = current().settings.autocast
    return low if others == {low} else dtypes.float32  # type: ignore[return-value]  # the caller has looked


def for_products(*xs: Tensor) -> tuple[Tensor, ...]:
    """Factors, inside `wl.autocast` in its type of low precision; doubles, integers and complex numbers stay."""
    low = current().settings.autocast
    if low is None or any(x.dtype not in SHORT for x in xs):
        return xs
    return tuple(convert(x, low) for x in xs)


def for_sums(x: Tensor) -> Tensor:
    """What is to be summed, inside `wl.autocast` in float32 if its own type has few digits."""
    return p.astype(x, dtype=dtypes.float32) if current().settings.autocast is not None and is_half(x.dtype) else x


def promote_kind(name: str, kinds: p.Kinds, *xs: ArrayLike) -> list[Tensor]:
    """Like `promote`, and refuse kinds of numbers that the operation does not take."""
    xs_ = promote(name, *xs)
    if KIND[xs_[0].dtype] not in kinds:
        p.check_kind(name, kinds, xs_[0])
    return xs_


def convert(x: Tensor | complex, dtype: DType) -> Tensor:
    """A tensor or a Python number with this dtype."""
    if isinstance(x, Tensor):
        return x if x.dtype == dtype else p.astype(x, dtype=dtype)
    return from_scalar(x, dtype)


def convert_into(name: str, x: ArrayLike, dtype: DType) -> Tensor:
    """An operand with the dtype of the tensor that it is written into; no fractions into integers."""
    operand = as_operand(name, x)
    kind = SCALAR_KIND[type(operand)] if type(operand) in SCALAR_KIND else KIND[operand.dtype]
    if kind > KIND[dtype] and kind > 1:
        raise DTypeError(
            f"{name}: {getattr(operand, 'dtype', repr(operand))} does not fit into a tensor of {dtype}.",
            f"x.astype(wl.{dtype})",
        )
    return convert(operand, dtype)


def promote_inexact(name: str, *xs: ArrayLike) -> list[Tensor]:
    """Like `promote`, with integers turned into the default floating type."""
    xs_ = promote(name, *xs)
    if is_inexact(xs_[0].dtype):
        return xs_
    return [p.astype(x, dtype=dtypes.default_float) for x in xs_]


def as_tensor(name: str, x: ArrayLike) -> Tensor:
    """One operand as a tensor."""
    if isinstance(x, Tensor):
        return x
    operand = as_operand(name, x)
    return operand if isinstance(operand, Tensor) else from_scalar(operand, _scalar_dtype(operand))


def as_result(x: Tensor) -> Tensor:
    """The argument x as a result of its own: it may be assigned to without changing the argument."""
    return interpreter.read(x) if isinstance(x, Cell) else alias(x)


def as_inexact(name: str, x: ArrayLike) -> Tensor:
    """One operand as a floating or complex tensor."""
    if type(x) is Tensor and x._data.dtype.kind == "f":
        return x
    x = as_tensor(name, x)
    return x if is_inexact(x.dtype) else p.astype(x, dtype=dtypes.default_float)


def as_real(name: str, x: ArrayLike) -> Tensor:
    """One operand as a floating tensor."""
    x = as_inexact(name, x)
    if is_complex(x.dtype):
        raise DTypeError(f"{name}: takes real tensors, received {x.dtype}.", "wl.real(x) or wl.abs(x)")
    return x


def as_ordered(name: str, x: ArrayLike) -> Tensor:
    """One operand as a tensor of numbers that have an order."""
    x = as_tensor(name, x)
    if is_complex(x.dtype):
        raise DTypeError(f"{name}: {x.dtype} has no order.", "wl.abs(x) or wl.real(x)")
    return x


def as_matrices(name: str, x: ArrayLike) -> Tensor:
    """One operand as a tensor with at least two axes, the last of which are those of matrices."""
    x = as_tensor(name, x)
    if x.ndim < 2:
        raise ShapeError(f"{name}: a tensor of shape {x.shape} is not a matrix.", "at least two axes")
    return x


def as_shape(name: str, shape: ShapeLike | Tensor) -> tuple[int, ...]:
    """A shape as a tuple of Python integers."""
    if isinstance(shape, (int, np.integer)) or (isinstance(shape, Tensor) and not shape.ndim):
        return (operator.index(shape),)
    try:
        return tuple(n if type(n) is int else n.__index__() for n in shape)
    except (TypeError, AttributeError) as error:
        raise ShapeError(f"{name}: {shape!r} is not a shape.", "a tuple of integers") from error


def check_device(name: str, device: str | None) -> None:
    """Refuse devices other than the only one there is."""
    if device is not None and str(device) != "cpu":
        raise InputError(f"{name}: there is no device {device!r}.", 'device="cpu"')
