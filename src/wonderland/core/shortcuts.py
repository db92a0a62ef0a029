"""The short way of elementwise functions, reductions and views: from small tensors to NumPy and back.

    @of_two(p.add)
    def add(x1: ArrayLike, x2: ArrayLike, /) -> Tensor:
        return p.add(*promote("add", x1, x2))

Most arguments are tensors of one type, or such a tensor and a number: nothing is to be converted, recorded, traced,
checked or shown to a debugger, and what remains is a ufunc. Large tensors of one type are handed to the primitive, for
which there may be a kernel. Everything else goes the long way, which is the function as it is written (its
`__wrapped__`). So does what NumPy refuses: the long way explains it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import FunctionType
from typing import TYPE_CHECKING, TypeAlias, TypeGuard, TypeVar

import numpy as np

from . import dtypes
from .context import current
from .evaluation import SMALL
from .tensor import Tensor, new
from .typing import Array

if TYPE_CHECKING:
    from .dtypes import DType
    from .primitive import Primitive

Function = TypeVar("Function", bound=Callable[..., Tensor])

Bounds: TypeAlias = dict["DType", tuple[int, int]]

# Beside arrays of these types NumPy takes a number of Python that lies between the two bounds in their type.
_FRACTIONS: Bounds = dict.fromkeys(
    (dtypes.float16, dtypes.float32, dtypes.float64, dtypes.complex64, dtypes.complex128), (-65504, 65504)
)
_INTEGERS: Bounds = dict.fromkeys(dtypes.SIGNED + dtypes.UNSIGNED, (-1, 128))
_NUMBERS: dict[type, Bounds] = {float: _FRACTIONS, int: _FRACTIONS | _INTEGERS}
_NONE = (0, 0)


def of_one(primitive: Primitive) -> Callable[[Function], Function]:
    """Gives a function that applies an elementwise primitive to one tensor its short way."""
    impl, takes = primitive.impl, primitive.takes
    tensor, array, asarray, make, state, small = Tensor, np.ndarray, np.asarray, new, current, SMALL

    def shorten(long: Function) -> Function:
        def short(x, /):  # type: ignore[no-untyped-def]  # has the type of the long one
            if type(x) is tensor and x._node is None:
                a = x._data
                if a.dtype in takes and a.size > small:
                    return primitive(x)
                if a.dtype in takes and state().plain:
                    try:
                        out = impl(a)
                    except Exception:
                        pass  # the long way says what is wrong
                    else:
                        result = make(tensor)  # as `wrap` does, without a call
                        result._data = out if type(out) is array else asarray(out)
                        result._node = None
                        return result
            return long(x)

        return _in_place_of(long, short)

    return shorten


def of_two(primitive: Primitive) -> Callable[[Function], Function]:
    """Gives a function that applies an elementwise primitive to two operands its short way."""
    impl, takes = primitive.impl, primitive.takes
    numbers = _NUMBERS if isinstance(impl, np.ufunc) else {}  # others know arrays alone
    fits_beside = functools.partial(_fits_beside, takes)
    tensor, array, asarray, make, state, small = Tensor, np.ndarray, np.asarray, new, current, SMALL

    def shorten(long: Function) -> Function:
        def short(x1, x2, /):  # type: ignore[no-untyped-def]  # has the type of the long one
            fit = False
            if type(x1) is tensor:
                if type(x2) is tensor:
                    if x1._node is None and x2._node is None:
                        a, b = x1._data, x2._data
                        dtype = a.dtype
                        fit = dtype is b.dtype and dtype in takes
                        if fit and (a.size > small or b.size > small):
                            return primitive(x1, x2)
                elif type(x2) in numbers:
                    a, b = x1._data, x2
                    fit = fits_beside(x1, x2)
            elif type(x1) in numbers and type(x2) is tensor:
                a, b = x1, x2._data
                fit = fits_beside(x2, x1)
            if fit and state().plain:
                try:
                    out = impl(a, b)
                except Exception:
                    pass  # as above
                else:
                    result = make(tensor)
                    result._data = out if type(out) is array else asarray(out)
                    result._node = None
                    return result
            return long(x1, x2)

        return _in_place_of(long, short)

    return shorten


def of_axes(primitive: Primitive) -> Callable[[Function], Function]:
    """Gives a function that reduces a tensor over an axis, or all, its short way."""
    impl, takes = primitive.impl, primitive.takes
    tensor, array, asarray, make, state, small = Tensor, np.ndarray, np.asarray, new, current, SMALL

    def shorten(long: Function) -> Function:
        def short(x, /, axis=None, **more):  # type: ignore[no-untyped-def]  # has the type of the long one
            if type(x) is tensor and not more and x._node is None:
                a = x._data
                named = type(axis) is int and a.ndim  # NumPy knows an axis of a scalar
                if a.size > small and a.dtype in takes and (axis is None or (named and -a.ndim <= axis < a.ndim)):
                    return primitive(x, axes=tuple(range(a.ndim)) if axis is None else (axis % a.ndim,))
                if (axis is None or named) and a.dtype in takes and state().plain:
                    try:
                        out = impl(a, axis)
                    except Exception:
                        pass  # as above
                    else:
                        result = make(tensor)
                        result._data = out if type(out) is array else asarray(out)
                        result._node = None
                        return result
            return long(x, axis, **more)

        return _in_place_of(long, short)

    return shorten


def of_view(take: Callable[..., Array]) -> Callable[[Function], Function]:
    """Gives a function whose result is a view of a tensor its short way: `take(array, ...)`.

    That raises an error where something is not as it usually is.
    """
    tensor, make, state = Tensor, new, current

    def shorten(long: Function) -> Function:
        def short(x, /, *how, **more):  # type: ignore[no-untyped-def]  # has the type of the long one
            if type(x) is tensor and x._node is None and not more and state().plain:
                try:
                    out = take(x._data, *how)
                except Exception:
                    pass  # the long way says what is wrong
                else:
                    result = make(tensor)
                    result._data = out
                    result._node = None
                    return result
            return long(x, *how, **more)

        return _in_place_of(long, short)

    return shorten


def _fits_beside(takes: frozenset[DType], x: Tensor, number: float) -> bool:
    """Whether x is small and not recorded, and NumPy makes of a number beside it what `promote` would make of it."""
    dtype = x._data.dtype
    low, high = _NUMBERS[type(number)].get(dtype, _NONE)
    return low < number < high and x._node is None and dtype in takes and x._data.size <= SMALL


def is_plain(x: object) -> TypeGuard[Tensor]:
    """Whether x is a tensor that is computed with at once, so that views of it may be taken without more ado."""
    return type(x) is Tensor and x._node is None and current().plain


def _in_place_of(long: Function, short: Callable[..., Tensor]) -> Function:
    """The short way under the name of the long one and in its module, for errors, profiles, pickle and doctest.

    The globals are those of that module, so all that the short way needs is in its closure.
    """
    code = short.__code__.replace(co_name=long.__name__, co_qualname=long.__qualname__)
    made = FunctionType(code, long.__globals__, long.__name__, short.__defaults__, short.__closure__)
    return functools.update_wrapper(made, long)  # type: ignore[return-value]
