"""The tensor: an n-dimensional value over a NumPy buffer that nobody else writes to.

`Tensor` holds a computed value. `Tracer` is its subclass for values inside a transformation: it has a shape and a
dtype, and every operation on it is handled by the interpreter that made it. Users see one type.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from sys import getrefcount
from typing import Any, cast

import numpy as np

from . import dtypes
from .dtypes import DType
from .errors import ConversionError, DTypeError, GradientError, IndexOutOfRange, InputError, TraceError

Shape = tuple[int, ...]


class Tensor:
    """An array of elements of one type.

    >>> import wonderland as wl
    >>> x = wl.tensor([[1.0, 2.0], [3.0, 4.0]])
    >>> x.shape, x.dtype, x.ndim
    ((2, 2), dtype('float32'), 2)
    >>> (x @ x).sum()
    tensor(54.)

    Make one with `wl.tensor`, `wl.asarray` or a creation function. Operators follow NumPy; two tensors of different
    types combine as `wl.result_type` says. `x[i] = v` changes x and nothing else, see `__setitem__`. Book, section 2.1.
    """

    __slots__ = ("__weakref__", "_data", "_node")
    __array_priority__ = 1000  # NumPy arrays leave mixed operators to us
    __hash__ = object.__hash__

    _data: np.ndarray[Any, Any]
    _node: Any  # what recorded this value in the imperative style, see transforms/imperative.py

    def __init__(self, data: Any, dtype: Any = None) -> None:
        made = arrays.tensor(data, dtype=dtype)
        if isinstance(made, Tracer):
            raise TraceError("Tensor: a traced value already is a tensor.", "wl.tensor(...) for lists of traced values")
        self._data = made._data
        self._node = None

    # --- what it is

    @property
    def shape(self) -> Shape:
        """The sizes of the axes."""
        return self._data.shape

    @property
    def dtype(self) -> DType:
        """The type of every element."""
        return self._data.dtype

    @property
    def ndim(self) -> int:
        """The number of axes: 0 for a scalar, 1 for a vector, 2 for a matrix."""
        return self._data.ndim

    @property
    def size(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        """The number of bytes of all elements."""
        return self.size * self.dtype.itemsize

    @property
    def itemsize(self) -> int:
        """The number of bytes of one element."""
        return self.dtype.itemsize

    @property
    def device(self) -> str:
        """Where the value lives; always "cpu"."""
        return "cpu"

    def to_device(self, device: Any, /, *, stream: Any = None) -> Tensor:
        """This tensor on a device; there is only "cpu"."""
        if str(device) != "cpu" or stream is not None:
            raise InputError(f"to_device: there is no device {device!r}.", 'the device "cpu"')
        return self

    def to(self, target: Any) -> Tensor:
        """This tensor with another dtype, or on a device: `x.to(wl.float64)`, `x.to("cpu")`."""
        return self.to_device(target) if target == "cpu" else self.astype(target)

    @property
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
    def at(self) -> Any:
        """Functional updates: `x.at[i].set(v)` is a copy of x with x[i] replaced by v; also add, multiply, min, max."""
        return arrays.At(self)

    def __array_namespace__(self, *, api_version: str | None = None) -> Any:
        if api_version is not None and api_version not in ("2021.12", "2022.12", "2023.12", "2024.12"):
            raise InputError(f"__array_namespace__: version {api_version!r} is not supported.", '"2024.12"')
        import wonderland

        return wonderland

    # --- to Python and NumPy

    def _concrete(self, what: str) -> np.ndarray[Any, Any]:
        """The NumPy buffer, for a use that needs the numbers themselves."""
        return self._data

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        data = self._concrete("a NumPy array")
        if dtype is not None and data.dtype != dtype:
            if copy is False:
                raise ValueError("a copy is needed to change the dtype")
            return data.astype(dtype)
        return data.copy() if copy else read_only(data)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        """NumPy's elementwise functions are ours of the same name: np.exp(x) is wl.exp(x), derivative included."""
        return numpy_functions.apply_ufunc(ufunc, method, inputs, kwargs)

    def __array_function__(self, f: Any, types: Any, args: Any, kwargs: Any) -> Any:
        """NumPy's other functions work on the numbers and give NumPy arrays; traced values have none to give."""
        return numpy_functions.apply_function(f, args, kwargs)

    def numpy(self) -> np.ndarray[Any, Any]:
        """The value as a read-only NumPy array that shares memory with the tensor."""
        return self.__array__()

    def __dlpack__(
        self, *, stream: Any = None, max_version: Any = None, dl_device: Any = None, copy: Any = None
    ) -> Any:
        data = self._concrete("a DLPack capsule")
        if max_version is not None and tuple(max_version) >= (1, 0):  # the protocol can say "read-only"
            data = read_only(data)
        elif not data.flags.writeable:
            data = data.copy()
        return data.__dlpack__(stream=stream, max_version=max_version, dl_device=dl_device, copy=copy)

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)

    def item(self, *index: int) -> Any:
        """The only element, or the one at `index`, as a Python number. Cut off from derivatives."""
        data = self._item_data()
        if not index and data.size != 1:
            raise InputError(f"item: a tensor of shape {self.shape} has {data.size} elements.", "x.tolist()")
        try:
            return data.item(*index)
        except (IndexError, OverflowError, TypeError, ValueError) as error:
            raise IndexOutOfRange(
                f"item: there is no element {index} in a tensor of shape {self.shape}.", "one integer per axis"
            ) from error

    def _item_data(self) -> np.ndarray[Any, Any]:
        return self._concrete("a Python number")

    def tolist(self) -> Any:
        """The value as nested Python lists."""
        return self._item_data().tolist()

    def _scalar(self, what: str) -> Any:
        if self.size != 1:
            raise InputError(
                f"{what}: only a tensor with one element is a {what}, not one of shape {self.shape}.",
                "a reduction such as x.any(), x.all() or x.sum()" if what == "bool" else "x.sum() or x[index]",
            )
        return self._concrete(what).reshape(()).item()

    def _converted(self, kind: Any, what: str) -> Any:
        value = self._scalar(what)
        try:
            return kind(value)
        except (OverflowError, TypeError, ValueError) as error:
            raise ConversionError(
                f"{what}: {value} has no counterpart among Python's {what}s.", "a finite real number, x.item()"
            ) from error

    def __bool__(self) -> bool:
        return bool(self._scalar("bool"))

    def __int__(self) -> int:
        return self._converted(int, "int")

    def __float__(self) -> float:
        return self._converted(float, "float")

    def __complex__(self) -> complex:
        return complex(self._scalar("complex"))

    def __index__(self) -> int:
        if not dtypes.is_integer(self.dtype) or self.ndim:
            raise DTypeError(
                f"index: a {self.dtype} tensor of shape {self.shape} is not an integer.", "int(x) or x.astype(int)"
            )
        return int(self._scalar("int"))

    def __len__(self) -> int:
        if not self.shape:
            raise ConversionError("len: a 0-d tensor has no length.", "x.size")
        return self.shape[0]

    def __iter__(self) -> Iterator[Tensor]:
        if not self.shape:
            raise ConversionError("iter: a 0-d tensor has no axis to iterate over.", "x.item() for its value")
        return iter([self[i] for i in range(self.shape[0])])

    def __repr__(self) -> str:
        return format_array(self._data, "tensor")

    def __format__(self, spec: str) -> str:
        return format(self._item_data().item(), spec) if spec and self.size == 1 else format(str(self), spec)

    def __reduce__(self) -> Any:
        return (_restore, (self._concrete("a pickle"), self.requires_grad and self.is_leaf))

    def __copy__(self) -> Tensor:
        return self.copy()

    def __deepcopy__(self, memo: Any) -> Tensor:
        """A copy that gathers gradients of its own if this tensor does."""
        if not (self.requires_grad and self.is_leaf):
            return memo.setdefault(id(self), self.copy())
        return memo.setdefault(id(self), wrap(self._data).requires_grad_())

    # --- operators

    def __add__(self, other: Any) -> Tensor:
        return arrays.add(self, other)

    def __radd__(self, other: Any) -> Tensor:
        return arrays.add(other, self)

    def __sub__(self, other: Any) -> Tensor:
        return arrays.subtract(self, other)

    def __rsub__(self, other: Any) -> Tensor:
        return arrays.subtract(other, self)

    def __mul__(self, other: Any) -> Tensor:
        return arrays.multiply(self, other)

    def __rmul__(self, other: Any) -> Tensor:
        return arrays.multiply(other, self)

    def __truediv__(self, other: Any) -> Tensor:
        return arrays.divide(self, other)

    def __rtruediv__(self, other: Any) -> Tensor:
        return arrays.divide(other, self)

    def __floordiv__(self, other: Any) -> Tensor:
        return arrays.floor_divide(self, other)

    def __rfloordiv__(self, other: Any) -> Tensor:
        return arrays.floor_divide(other, self)

    def __mod__(self, other: Any) -> Tensor:
        return arrays.remainder(self, other)

    def __rmod__(self, other: Any) -> Tensor:
        return arrays.remainder(other, self)

    def __divmod__(self, other: Any) -> tuple[Tensor, Tensor]:
        return arrays.floor_divide(self, other), arrays.remainder(self, other)

    def __rdivmod__(self, other: Any) -> tuple[Tensor, Tensor]:
        return arrays.floor_divide(other, self), arrays.remainder(other, self)

    def __pow__(self, other: Any) -> Tensor:
        return arrays.pow(self, other)

    def __rpow__(self, other: Any) -> Tensor:
        return arrays.pow(other, self)

    def __matmul__(self, other: Any) -> Tensor:
        return arrays.matmul(self, other)

    def __rmatmul__(self, other: Any) -> Tensor:
        return arrays.matmul(other, self)

    def __neg__(self) -> Tensor:
        return arrays.negative(self)

    def __pos__(self) -> Tensor:
        return arrays.positive(self)

    def __abs__(self) -> Tensor:
        return arrays.abs(self)

    def __invert__(self) -> Tensor:
        return arrays.bitwise_invert(self)

    def __and__(self, other: Any) -> Tensor:
        return arrays.bitwise_and(self, other)

    __rand__ = __and__

    def __or__(self, other: Any) -> Tensor:
        return arrays.bitwise_or(self, other)

    __ror__ = __or__

    def __xor__(self, other: Any) -> Tensor:
        return arrays.bitwise_xor(self, other)

    __rxor__ = __xor__

    def __lshift__(self, other: Any) -> Tensor:
        return arrays.bitwise_left_shift(self, other)

    def __rlshift__(self, other: Any) -> Tensor:
        return arrays.bitwise_left_shift(other, self)

    def __rshift__(self, other: Any) -> Tensor:
        return arrays.bitwise_right_shift(self, other)

    def __rrshift__(self, other: Any) -> Tensor:
        return arrays.bitwise_right_shift(other, self)

    def __eq__(self, other: Any) -> Tensor:  # type: ignore[override]  # object's gives a bool
        return arrays.equal(self, other) if arrays.is_operand(other) else cast(Tensor, NotImplemented)

    def __ne__(self, other: Any) -> Tensor:  # type: ignore[override]  # as above
        return arrays.not_equal(self, other) if arrays.is_operand(other) else cast(Tensor, NotImplemented)

    def __lt__(self, other: Any) -> Tensor:
        return arrays.less(self, other)

    def __le__(self, other: Any) -> Tensor:
        return arrays.less_equal(self, other)

    def __gt__(self, other: Any) -> Tensor:
        return arrays.greater(self, other)

    def __ge__(self, other: Any) -> Tensor:
        return arrays.greater_equal(self, other)

    def __getitem__(self, index: Any) -> Tensor:
        return arrays.getitem(self, index)

    def __setitem__(self, index: Any, value: Any) -> None:
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

    def astype(self, dtype: Any, *, copy: bool = True) -> Tensor:
        return arrays.astype(self, dtype, copy=copy)

    def copy(self) -> Tensor:
        """A tensor with the same value in memory of its own."""
        copied = alias(self)
        if type(copied) is Tensor:
            copied._data = copied._data.copy()
        return copied

    clone = copy

    def reshape(self, *shape: Any) -> Tensor:
        return arrays.reshape(self, shape[0] if len(shape) == 1 else shape)

    view = reshape

    def ravel(self) -> Tensor:
        return arrays.reshape(self, (-1,))

    def flatten(self, start_axis: int = 0, end_axis: int = -1) -> Tensor:
        return arrays.flatten(self, start_axis, end_axis)

    def transpose(self, *axes: Any) -> Tensor:
        return arrays.transpose(self, axes[0] if len(axes) == 1 and not isinstance(axes[0], int) else axes or None)

    permute = transpose

    def swapaxes(self, axis1: int, axis2: int) -> Tensor:
        return arrays.swapaxes(self, axis1, axis2)

    def squeeze(self, axis: Any = None) -> Tensor:
        return arrays.squeeze(self, axis)

    def unsqueeze(self, axis: int) -> Tensor:
        return arrays.expand_dims(self, axis=axis)

    def broadcast_to(self, shape: Shape) -> Tensor:
        return arrays.broadcast_to(self, shape)

    def repeat(self, repeats: Any, axis: int | None = None) -> Tensor:
        return arrays.repeat(self, repeats, axis=axis)

    def take(self, indices: Any, axis: int | None = None) -> Tensor:
        return arrays.take(self, indices, axis=axis)

    def sum(self, axis: Any = None, *, dtype: Any = None, keepdims: bool = False) -> Tensor:
        return arrays.sum(self, axis=axis, dtype=dtype, keepdims=keepdims)

    def prod(self, axis: Any = None, *, dtype: Any = None, keepdims: bool = False) -> Tensor:
        return arrays.prod(self, axis=axis, dtype=dtype, keepdims=keepdims)

    def mean(self, axis: Any = None, *, keepdims: bool = False) -> Tensor:
        return arrays.mean(self, axis=axis, keepdims=keepdims)

    def var(self, axis: Any = None, *, correction: Any = 0.0, keepdims: bool = False) -> Tensor:
        return arrays.var(self, axis=axis, correction=correction, keepdims=keepdims)

    def std(self, axis: Any = None, *, correction: Any = 0.0, keepdims: bool = False) -> Tensor:
        return arrays.std(self, axis=axis, correction=correction, keepdims=keepdims)

    def max(self, axis: Any = None, *, keepdims: bool = False) -> Tensor:
        return arrays.max(self, axis=axis, keepdims=keepdims)

    def min(self, axis: Any = None, *, keepdims: bool = False) -> Tensor:
        return arrays.min(self, axis=axis, keepdims=keepdims)

    def median(self, axis: Any = None, *, keepdims: bool = False) -> Tensor:
        return arrays.median(self, axis=axis, keepdims=keepdims)

    def quantile(self, q: Any, axis: Any = None, *, method: str = "linear", keepdims: bool = False) -> Tensor:
        return arrays.quantile(self, q, axis=axis, method=method, keepdims=keepdims)

    def any(self, axis: Any = None, *, keepdims: bool = False) -> Tensor:
        return arrays.any(self, axis=axis, keepdims=keepdims)

    def all(self, axis: Any = None, *, keepdims: bool = False) -> Tensor:
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

    def dot(self, other: Any) -> Tensor:
        return arrays.dot(self, other)

    def conj(self) -> Tensor:
        return arrays.conj(self)

    def round(self, decimals: int = 0) -> Tensor:
        return arrays.round(self, decimals)

    def clip(self, min: Any = None, max: Any = None) -> Tensor:
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

    # --- the imperative style, see transforms/imperative.py

    @property
    def requires_grad(self) -> bool:
        """Whether operations on this tensor are recorded for `backward()`."""
        return self._node is not None

    def requires_grad_(self, requires_grad: bool = True) -> Tensor:
        """Ask for gradients with respect to this tensor; returns the tensor itself."""
        return imperative.requires_grad_(self, requires_grad)

    @property
    def grad(self) -> Tensor | None:
        """The gradient accumulated by `backward()`; None before."""
        return imperative.grad_of(self)

    @grad.setter
    def grad(self, value: Tensor | None) -> None:
        imperative.set_grad(self, value)

    @property
    def grad_fn(self) -> Any:
        """The operation that made this tensor, if it was recorded; None for leaves."""
        return imperative.grad_fn(self)

    @property
    def is_leaf(self) -> bool:
        """Whether no recorded operation made this tensor."""
        return imperative.grad_fn(self) is None

    def backward(self, gradient: Any = None, *, retain_graph: bool = False, create_graph: bool = False) -> None:
        """Walk the recorded operations backwards and add the gradients to the leaves' `.grad`."""
        imperative.backward(self, gradient, retain_graph=retain_graph, create_graph=create_graph)

    def retain_grad(self) -> None:
        """Keep the gradient of this intermediate value in `.grad`, too."""
        imperative.retain_grad(self)

    def register_hook(self, hook: Any) -> Any:
        """Call `hook(gradient)` when the gradient of this tensor is known; its result, if any, replaces it."""
        return imperative.register_hook(self, hook)

    def zero_grad(self) -> None:
        """Forget the accumulated gradient."""
        imperative.set_grad(self, None)

    def detach(self) -> Tensor:
        """The same value, cut off from the recorded operations."""
        return arrays.stop_gradient(self)


def wrap(data: Any) -> Tensor:
    """The tensor over a NumPy result."""
    t = _new(Tensor)
    t._data = data if type(data) is np.ndarray else np.asarray(data)
    t._node = None
    return t


def alias(x: Tensor) -> Tensor:
    """Another tensor with the same value and record: where one is changed by assignment, the other is not."""
    if type(x) is not Tensor:
        return x  # traced values do not change, and a cell is meant to
    t = _new(Tensor)
    t._data = x._data
    t._node = x._node
    return t


_new = object.__new__


def _restore(data: np.ndarray[Any, Any], requires_grad: bool = False) -> Tensor:
    restored = arrays.asarray(data)
    return restored.requires_grad_() if requires_grad else restored


def read_only(data: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    view = data.view()
    view.flags.writeable = False
    return view


def format_array(data: np.ndarray[Any, Any], name: str, extra: str = "") -> str:
    """The text of a tensor: its numbers, and its shape and dtype where the numbers do not show them."""
    body = np.array2string(data, separator=", ", prefix=name + "(", threshold=200, edgeitems=3)
    note = "" if data.dtype in (dtypes.float32, dtypes.int64, dtypes.bool_) else f", dtype={data.dtype}"
    shape = f", shape={data.shape}" if (data.size == 0 and data.shape != (0,)) or data.size > 200 else ""
    return f"{name}({body}{shape}{note}{extra})"


def noun(what: str) -> str:
    """What a value was to become, in the words of an error: "float" is a Python float, "a mask" itself."""
    return what if " " in what else f"a Python {what}"


class Tracer(Tensor):
    """A value inside a transformation: its shape and dtype are known, its numbers belong to an interpreter."""

    __slots__ = ("trace",)
    trace: Any

    @property
    def _node(self) -> Any:
        return None

    @property
    def shape(self) -> Shape:
        raise NotImplementedError

    @property
    def dtype(self) -> DType:
        raise NotImplementedError

    @property
    def ndim(self) -> int:
        return len(self.shape)

    def __reduce__(self) -> Any:
        raise TraceError(
            "pickle: a traced value has no numbers to save.", "save the results of the transformed function"
        )

    def requires_grad_(self, requires_grad: bool = True) -> Tensor:
        raise GradientError(
            "requires_grad_: inside a transformation (wl.grad, wl.jit) gradients are the transformation's matter.",
            "wl.grad(f)(x), or call requires_grad_() outside",
        )


# The functions behind the methods need the class above, so they are imported below it.
from . import arrays, numpy_functions  # noqa: E402
from .transforms import imperative  # noqa: E402
