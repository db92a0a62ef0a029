"""An operation computed with NumPy, and what becomes of its errors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .context import current
from .errors import (
    DTypeError,
    IndexOutOfRange,
    InputError,
    LinearAlgebraError,
    SizeError,
    WonderlandError,
)
from .tensor import Tensor, wrap
from .typing import Shaped

if TYPE_CHECKING:
    from .primitive import Primitive


def evaluate(primitive: Primitive, values: Sequence[Tensor], params: dict[str, object]) -> Any:
    """Compute with NumPy, and show the result to the debugger if there is one."""
    try:
        out = primitive.impl(*[value._data for value in values], **params)
    except Exception as error:
        out = recover(primitive, values, params, error)
    outs: Any = [wrap(o) for o in out] if primitive.multiple else wrap(out)
    debug = current().settings.debug
    if debug is not None:
        debug(primitive, values, outs if primitive.multiple else [outs])
    return outs


def recover(primitive: Primitive, args: Sequence[Tensor], params: dict[str, object], error: Exception) -> Any:
    """Turn an exception from NumPy into one that explains the call; a warning made an error is no error for us."""
    if isinstance(error, WonderlandError) or primitive.foreign:
        raise error
    if isinstance(error, RuntimeWarning):
        with np.errstate(all="ignore"):
            return primitive.impl(*[arg._data for arg in args], **params)
    primitive.abstract(*args, **params)  # explains wrong shapes and dtypes
    raise explained(primitive, args, error) from error


def explained(primitive: Primitive, args: Sequence[Shaped], error: Exception) -> WonderlandError:
    """An exception from NumPy as one of ours, with the operation and what it received."""
    got = ", ".join(f"{arg.dtype}{list(arg.shape)}" for arg in args)
    message = f"{primitive.name}: {error} (received {got})."
    if isinstance(error, MemoryError):
        return SizeError(message, "smaller shapes, or a loop over parts of the data")
    if isinstance(error, np.linalg.LinAlgError):
        return LinearAlgebraError(
            message, "check that the matrix is invertible; adding a small multiple of wl.eye(n) helps"
        )
    if isinstance(error, IndexError):
        return IndexOutOfRange(message, "indices from -n to n - 1 for an axis of size n")
    if isinstance(error, TypeError):
        return DTypeError(message, "convert with x.astype(...)")
    return InputError(message, "arguments for which the operation is defined")
