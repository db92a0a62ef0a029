"""An operation computed with NumPy, or by a kernel of its own where it is large; and what becomes of its errors."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
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
from .sightings import Sightings
from .tensor import Tensor, wrap
from .typing import Array, Shaped
from .views import lie

if TYPE_CHECKING:
    from .primitive import Primitive

SMALL = 1 << 13  # elements of an argument, up to which nobody is faster than NumPy
KEPT = 512  # kernels, the last ones
Results = Array | list[Array]  # a list of a primitive that gives one
Kernel = Callable[[list[Array]], Results]  # from the arguments to what `impl` gives
_seen = Sightings()
_kernels: dict[Hashable, Kernel | None] = {}  # None: NumPy does it
# makes the kernel of an operation on arguments like these; an engine gives it, see wonderland/__init__.py
_makers: list[Callable[[Primitive, list[Array], dict[str, object]], Kernel | None]] = []


def made_by(maker: Callable[[Primitive, list[Array], dict[str, object]], Kernel | None]) -> None:
    """From now on large operations that come again are computed by the kernels of an engine."""
    _makers[:] = [maker]


def compute(primitive: Primitive, data: list[Array], params: dict[str, object]) -> Results:
    """What `impl` gives: by a native kernel, if the arguments are large and operations like this one come often."""
    if primitive.single and (data[0].size > SMALL or data[-1].size > SMALL):
        kernel = _kernel(primitive, data, params)
        if kernel is not None:
            return kernel(data)
    return primitive.impl(*data, **params)


def _kernel(primitive: Primitive, data: list[Array], params: dict[str, object]) -> Kernel | None:
    settings = current().settings
    if settings.backend == "numpy" or settings.debug is not None or data[-1].dtype.kind != "f" or not _makers:
        return None
    key = (primitive, *params.items(), *map(lie, data))
    try:
        return _kernels[key]
    except TypeError:  # a setting that may change
        return None
    except KeyError:
        work = max([a.size for a in data]) if primitive.cost is None else _cost(primitive, data, params)
        if work < primitive.single or not _seen.enough(hash(key), work, 32 * primitive.single):
            return None
    kernel = _kernels[key] = _makers[0](primitive, data, params)
    if len(_kernels) > KEPT:
        _kernels.pop(next(iter(_kernels)), None)
    return kernel


def _cost(primitive: Primitive, data: list[Array], params: dict[str, object]) -> int:
    try:
        return primitive.cost(*data, **params)  # type: ignore[misc]  # there is one
    except WonderlandError:  # arguments that do not fit together: NumPy refuses them, too
        return 0


def evaluate(primitive: Primitive, values: Sequence[Tensor], params: dict[str, object]) -> Any:
    """Compute with NumPy, and show the result to the debugger if there is one."""
    try:
        out = compute(primitive, [value._data for value in values], params)
    except Exception as error:
        out = recover(primitive, values, params, error)
    outs: Any = [wrap(o) for o in out] if primitive.multiple else wrap(out)  # type: ignore[arg-type]  # one array
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
