"""What tensors and cells can do: operators, and functions as methods, which are given to the classes from here."""

from __future__ import annotations

from sys import getrefcount
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from .. import arrays
from ..core import interpreter
from ..core.cell import Cell
from ..core.context import current
from ..core.errors import InputError, TraceError
from ..core.giving import given_to
from ..core.naming import without_hints
from ..core.shortcuts import of_axes, of_one, of_two, of_view
from ..core.tensor import Tensor, Tracer, new, unrecorded
from ..core.typing import Array, ArrayLike, Axes, DTypeLike, Index, ShapeLike
from ..primitives import elementwise as p
from ..primitives import reduction as r
from ..primitives.structure import sum_
from . import numpy_functions
from .updates import At


@given_to(Tensor)
class Methods:
    """The operators and methods of a tensor."""

    _data: Array
    _node: Any

    if TYPE_CHECKING:

        def __array__(self, *args: Any, **kwargs: Any) -> Array: ...  # a tensor's own, for which this is ArrayLike

    def __init__(self, data: ArrayLike, dtype: DTypeLike | None = None) -> None:
        made = arrays.tensor(data, dtype=dtype)
        if isinstance(made, Tracer):
            raise TraceError("Tensor: a traced value already is a tensor.", "wl.tensor(...) for lists of traced values")
        self._data = made._data
        self._node = None

    def __dir__(self) -> list[str]:
        return without_hints(self, object.__dir__(self))

    @property
    @of_view(np.ndarray.transpose)
    def T(self) -> Tensor:  # noqa: N802 - NumPy's name
        """All axes reversed; for a vector the vector itself."""
        return arrays.transpose(self)

    @property
    def mT(self) -> Tensor:  # noqa: N802 - the Array API's name
        """The last two axes swapped."""
        return arrays.matrix_transpose(self)

    @property
    def H(self) -> Tensor:  # noqa: N802 - the name in formulas
        """The conjugate of `mT`."""
        return arrays.conj(arrays.matrix_transpose(self))

    @property
    def real(self) -> Tensor:
        """The real part."""
        return arrays.real(self)

    @property
    def imag(self) -> Tensor:
        """The imaginary part; zero for real tensors."""
        return arrays.imag(self)

    @property
    def at(self: Any) -> At:
        """Functional updates: `x.at[i].set(v)` is a copy of x with x[i] replaced by v; also add, multiply, min, max."""
        return arrays.At(self)

    def __array_namespace__(self, *, api_version: str | None = None) -> Any:
        if api_version is not None and api_version not in ("2021.12", "2022.12", "2023.12", "2024.12"):
            raise InputError(f"__array_namespace__: version {api_version!r} is not supported.", '"2024.12"')
        return numpy_functions.public()

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        """NumPy's elementwise functions are ours of the same name: np.exp(x) is wl.exp(x), derivative included."""
        return numpy_functions.apply_ufunc(ufunc, method, inputs, kwargs)

    def __array_function__(self, f: Any, types: Any, args: Any, kwargs: Any) -> Any:
        """NumPy's other functions work on the numbers and give NumPy arrays; traced values have none to give."""
        return numpy_functions.apply_function(f, args, kwargs)

    # --- operators

    def __add__(self, other: ArrayLike) -> Tensor:
        return arrays.add(self, other)

    def __radd__(self, other: ArrayLike) -> Tensor:
        return arrays.add(other, self)

    def __sub__(self, other: ArrayLike) -> Tensor:
        return arrays.subtract(self, other)

    def __rsub__(self, other: ArrayLike) -> Tensor:
        return arrays.subtract(other, self)

    def __mul__(self, other: ArrayLike) -> Tensor:
        return arrays.multiply(self, other)

    def __rmul__(self, other: ArrayLike) -> Tensor:
        return arrays.multiply(other, self)

    def __truediv__(self, other: ArrayLike) -> Tensor:
        return arrays.divide(self, other)

    def __rtruediv__(self, other: ArrayLike) -> Tensor:
        return arrays.divide(other, self)

    def __floordiv__(self, other: ArrayLike) -> Tensor:
        return arrays.floor_divide(self, other)

    def __rfloordiv__(self, other: ArrayLike) -> Tensor:
        return arrays.floor_divide(other, self)

    def __mod__(self, other: ArrayLike) -> Tensor:
        return arrays.remainder(self, other)

    def __rmod__(self, other: ArrayLike) -> Tensor:
        return arrays.remainder(other, self)

    def __divmod__(self, other: ArrayLike) -> tuple[Tensor, Tensor]:
        return arrays.floor_divide(self, other), arrays.remainder(self, other)

    def __rdivmod__(self, other: ArrayLike) -> tuple[Tensor, Tensor]:
        return arrays.floor_divide(other, self), arrays.remainder(other, self)

    def __pow__(self, other: ArrayLike) -> Tensor:
        return arrays.pow(self, other)

    def __rpow__(self, other: ArrayLike) -> Tensor:
        return arrays.pow(other, self)

    def __matmul__(self, other: ArrayLike) -> Tensor:
        if not isinstance(other, Tensor) and getattr(type(other), "__array_ufunc__", self) is None:
            # it knows better, as sparse matrices do
            return cast(Tensor, NotImplemented)
        return arrays.matmul(self, other)

    def __rmatmul__(self, other: ArrayLike) -> Tensor:
        return arrays.matmul(other, self)

    def __neg__(self) -> Tensor:
        return arrays.negative(self)

    def __pos__(self) -> Tensor:
        return arrays.positive(self)

    def __abs__(self) -> Tensor:
        return arrays.abs(self)

    def __invert__(self) -> Tensor:
        return arrays.bitwise_invert(self)

    def __and__(self, other: ArrayLike) -> Tensor:
        return arrays.bitwise_and(self, other)

    __rand__ = __and__

    def __or__(self, other: ArrayLike) -> Tensor:
        return arrays.bitwise_or(self, other)

    __ror__ = __or__

    def __xor__(self, other: ArrayLike) -> Tensor:
        return arrays.bitwise_xor(self, other)

    __rxor__ = __xor__

    def __lshift__(self, other: ArrayLike) -> Tensor:
        return arrays.bitwise_left_shift(self, other)

    def __rlshift__(self, other: ArrayLike) -> Tensor:
        return arrays.bitwise_left_shift(other, self)

    def __rshift__(self, other: ArrayLike) -> Tensor:
        return arrays.bitwise_right_shift(self, other)

    def __rrshift__(self, other: ArrayLike) -> Tensor:
        return arrays.bitwise_right_shift(other, self)

    __hash__ = object.__hash__

    def __eq__(self, other: object) -> Tensor:  # type: ignore[override]  # object's gives a bool
        return arrays.equal(self, other) if arrays.is_operand(other) else cast(Tensor, NotImplemented)

    def __ne__(self, other: object) -> Tensor:  # type: ignore[override]  # as above
        return arrays.not_equal(self, other) if arrays.is_operand(other) else cast(Tensor, NotImplemented)

    def __lt__(self, other: ArrayLike) -> Tensor:
        return arrays.less(self, other)

    def __le__(self, other: ArrayLike) -> Tensor:
        return arrays.less_equal(self, other)

    def __gt__(self, other: ArrayLike) -> Tensor:
        return arrays.greater(self, other)

    def __ge__(self, other: ArrayLike) -> Tensor:
        return arrays.greater_equal(self, other)

    def __getitem__(self: Any, index: Index) -> Tensor:
        return arrays.getitem(self, index)

    def __setitem__(self: Any, index: Index, value: ArrayLike) -> None:
        """Change elements of this tensor and of no other: who shares its memory keeps the old numbers.

        >>> import wonderland as wl
        >>> x = wl.zeros(3)
        >>> y = x.copy()
        >>> x[1:] = 5.0
        >>> x, y
        (tensor([0., 5., 5.]), tensor([0., 0., 0.]))

        Refused inside transformations and for tensors whose gradient is recorded: there, x = x.at[i].set(v). Also
        refused for views of what is still in use, as `row = x[0]; row[1] = v` or `x[0][1] = v`, through which NumPy
        would write: there, x[0, 1] = v.
        """
        holders = getrefcount(self)
        arrays.assign_item(self, index, value, holders)

    # --- methods: the functions of the same name

    def astype(self, dtype: DTypeLike, *, copy: bool = True) -> Tensor:
        return arrays.astype(self, dtype, copy=copy)

    def reshape(self, *shape: ShapeLike) -> Tensor:
        sizes = shape if len(shape) != 1 or type(shape[0]) is int else shape[0]
        if type(self) is Tensor and self._node is None and type(sizes) is tuple and current().plain:
            try:  # the short way, see core/shortcuts.py
                out = self._data.reshape(sizes)  # type: ignore[arg-type]  # if not, NumPy says so
                if out.shape == sizes or min(sizes) == -1:
                    result = new(Tensor)
                    result._data, result._node = out, None
                    return result
            except Exception:
                pass  # the long way says what is wrong
        return arrays.reshape(self, sizes)  # type: ignore[arg-type]  # or a tuple of them

    view = reshape

    def ravel(self) -> Tensor:
        return arrays.reshape(self, (-1,))

    def flatten(self, start_axis: int = 0, end_axis: int = -1) -> Tensor:
        return arrays.flatten(self, start_axis, end_axis)

    def transpose(self, *axes: ShapeLike) -> Tensor:
        """The axes in another order, as in NumPy; reversed if no order is given. `swapaxes` swaps two of them."""
        order = axes[0] if len(axes) == 1 and not isinstance(axes[0], int) else axes or None
        if axes in ((0, 1), (-2, -1)):  # in NumPy nothing moves, and PyTorch's users mean that they swap
            raise InputError(
                f"transpose: {axes} leaves the axes of a matrix as they are, while PyTorch's transpose swaps two axes.",
                f"x.swapaxes{axes} or x.T to swap them, x.transpose([{axes[0]}, {axes[1]}]) for this order",
            )
        return arrays.transpose(self, order)  # type: ignore[arg-type]  # or several integers

    def swapaxes(self, axis1: int, axis2: int) -> Tensor:
        return arrays.swapaxes(self, axis1, axis2)

    def squeeze(self, axis: Axes = None) -> Tensor:
        return arrays.squeeze(self, axis)

    def unsqueeze(self, axis: int) -> Tensor:
        return arrays.expand_dims(self, axis=axis)

    def broadcast_to(self, shape: ShapeLike) -> Tensor:
        return arrays.broadcast_to(self, shape)

    def repeat(self, repeats: ArrayLike, *more: int, axis: int | None = None) -> Tensor:
        """Each element repeated along an axis, as in NumPy; `tile` repeats the whole, which PyTorch calls `repeat`."""
        if more:  # NumPy's second argument is the axis, PyTorch's another number
            sizes = ", ".join(map(str, (repeats, *more)))
            raise InputError(
                f"repeat: ({sizes}) means one thing in NumPy and another in PyTorch.",
                f"x.repeat({repeats}, axis={more[0]}) for each element, x.tile({sizes}) for the whole",
            )
        return arrays.repeat(self, repeats, axis=axis)

    def take(self, indices: ArrayLike, axis: int | None = None) -> Tensor:
        return arrays.take(self, indices, axis=axis)

    def sum(self, axis: Axes = None, *, dtype: DTypeLike | None = None, keepdims: bool = False) -> Tensor:
        return arrays.sum(self, axis=axis, dtype=dtype, keepdims=keepdims)

    def prod(self, axis: Axes = None, *, dtype: DTypeLike | None = None, keepdims: bool = False) -> Tensor:
        return arrays.prod(self, axis=axis, dtype=dtype, keepdims=keepdims)

    def mean(self, axis: Axes = None, *, keepdims: bool = False) -> Tensor:
        return arrays.mean(self, axis=axis, keepdims=keepdims)

    def var(self, axis: Axes = None, *, correction: float = 0.0, keepdims: bool = False) -> Tensor:
        return arrays.var(self, axis=axis, correction=correction, keepdims=keepdims)

    def std(self, axis: Axes = None, *, correction: float = 0.0, keepdims: bool = False) -> Tensor:
        return arrays.std(self, axis=axis, correction=correction, keepdims=keepdims)

    def max(self, axis: Axes = None, *, keepdims: bool = False) -> Tensor:
        return arrays.max(self, axis=axis, keepdims=keepdims)

    def min(self, axis: Axes = None, *, keepdims: bool = False) -> Tensor:
        return arrays.min(self, axis=axis, keepdims=keepdims)

    def median(self, axis: Axes = None, *, keepdims: bool = False) -> Tensor:
        return arrays.median(self, axis=axis, keepdims=keepdims)

    def quantile(self, q: ArrayLike, axis: Axes = None, *, method: str = "linear", keepdims: bool = False) -> Tensor:
        return arrays.quantile(self, q, axis=axis, method=method, keepdims=keepdims)

    def any(self, axis: Axes = None, *, keepdims: bool = False) -> Tensor:
        return arrays.any(self, axis=axis, keepdims=keepdims)

    def all(self, axis: Axes = None, *, keepdims: bool = False) -> Tensor:
        return arrays.all(self, axis=axis, keepdims=keepdims)

    def argmax(self, axis: int | None = None, *, keepdims: bool = False) -> Tensor:
        return arrays.argmax(self, axis=axis, keepdims=keepdims)

    def argmin(self, axis: int | None = None, *, keepdims: bool = False) -> Tensor:
        return arrays.argmin(self, axis=axis, keepdims=keepdims)

    def sort(self, axis: int = -1, *, descending: bool = False) -> Tensor:
        return arrays.sort(self, axis=axis, descending=descending)

    def argsort(self, axis: int = -1, *, descending: bool = False) -> Tensor:
        return arrays.argsort(self, axis=axis, descending=descending)

    def cumsum(self, axis: int | None = None) -> Tensor:
        return arrays.cumsum(self, axis)

    def cumprod(self, axis: int | None = None) -> Tensor:
        return arrays.cumprod(self, axis)

    def dot(self, other: ArrayLike) -> Tensor:
        return arrays.dot(self, other)

    def conj(self) -> Tensor:
        return arrays.conj(self)

    def round(self, decimals: int = 0) -> Tensor:
        return arrays.round(self, decimals)

    def clip(self, min: ArrayLike | None = None, max: ArrayLike | None = None) -> Tensor:
        return arrays.clip(self, min, max)

    def abs(self) -> Tensor:
        return arrays.abs(self)

    def exp(self) -> Tensor:
        return arrays.exp(self)

    def log(self) -> Tensor:
        return arrays.log(self)

    def sqrt(self) -> Tensor:
        return arrays.sqrt(self)

    def square(self) -> Tensor:
        return arrays.square(self)

    def sin(self) -> Tensor:
        return arrays.sin(self)

    def cos(self) -> Tensor:
        return arrays.cos(self)

    def tanh(self) -> Tensor:
        return arrays.tanh(self)

    def detach(self: Any) -> Tensor:
        """The same value, cut off from the recorded operations."""
        return arrays.stop_gradient(self)


SHORT = {
    of_one: {"__neg__": p.negative, "__abs__": p.abs_, "__invert__": p.bitwise_invert},
    of_two: {
        "__add__": p.add,
        "__sub__": p.subtract,
        "__mul__": p.multiply,
        "__truediv__": p.divide,
        "__floordiv__": p.floor_divide,
        "__mod__": p.remainder,
        "__and__": p.bitwise_and,
        "__or__": p.bitwise_or,
        "__xor__": p.bitwise_xor,
        "__lshift__": p.bitwise_left_shift,
        "__rshift__": p.bitwise_right_shift,
        "__eq__": p.equal,
        "__ne__": p.not_equal,
        "__lt__": p.less,
        "__le__": p.less_equal,
        "__gt__": p.greater,
        "__ge__": p.greater_equal,
    },
    of_axes: {"sum": sum_, "prod": r.prod, "max": r.max_, "min": r.min_, "any": r.any_, "all": r.all_},
}
for _shortened, _methods in SHORT.items():
    for _name, _primitive in _methods.items():
        setattr(Tensor, _name, _shortened(_primitive)(getattr(Tensor, _name)))


@given_to(Cell)
class CellMethods(Tensor):
    """How a cell is made, read and changed."""

    def __init__(self, data: ArrayLike, dtype: DTypeLike | None = None) -> None:
        value = arrays.asarray(data, dtype=dtype, copy=True if isinstance(data, np.ndarray) else None)
        self._leaf = None
        self._outside = unrecorded(value)  # without its imperative record
        self._inside = None
        if (trace := current().trace) is not None:
            trace.note_create(self)  # type: ignore[arg-type]  # it is a cell: the method is given to Cell

    def __setitem__(self, index: Index, value: ArrayLike) -> None:
        self.assign(self.at[index].set(value))

    def copy(self: Any) -> Tensor:
        return interpreter.read(self)

    clone = copy

    def assign(self: Any, value: Tensor) -> None:
        """Put a new value of the same shape into the cell; `interpreter.assign` does the bookkeeping."""
        interpreter.assign(self, value)
