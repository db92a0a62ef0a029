"""The tensor: an n-dimensional value over a NumPy buffer that nobody else writes to.

`Tensor` holds a computed value. `Tracer` is its subclass for values inside a transformation: it has a shape and a
dtype, and every operation on it is handled by the interpreter that made it. `Distant` is that for computed values that
are in the memory of an accelerator. Users see one type.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import numpy as np

from . import dtypes
from .dtypes import DType
from .errors import ConversionError, DTypeError, GradientError, IndexOutOfRange, InputError, ProcessError, TraceError
from .showing import as_html
from .typing import Array, DTypeLike, Number

if TYPE_CHECKING:
    from ..arrays.arithmetic_methods import ArithmeticMethods
    from ..arrays.torch_methods import TorchMethods
    from ..transforms.imperative import Recorded as Imperative
    from .tape import Recorded

    class Given(TorchMethods, ArithmeticMethods, Imperative):
        """What is given to the class below from above, see core/giving.py."""
else:
    Given = object

Shape = tuple[int, ...]
Converted = TypeVar("Converted", int, float)


class Tensor(Given):
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

    _data: Array
    _node: Recorded  # what recorded this value in the imperative style, see transforms/imperative.py

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
        """Where the value lives: "cpu" in the host's memory, else one of `wl.devices()`, such as "gpu:0"."""
        return "cpu"

    def to_device(self, device: object, /, *, stream: object = None) -> Tensor:
        """This tensor on a device: "cpu", the host's memory, or one of `wl.devices()`."""
        if stream is not None:
            raise InputError(f"to_device: stream={stream!r} is not there.", "x.to_device(device)")
        return self if str(device) == self.device == "cpu" else _movers[0](self, str(device))

    def to(self, target: DTypeLike) -> Tensor:
        """This tensor with another dtype, or on a device: `x.to(wl.float64)`, `x.to("cpu")`."""
        return self.to_device(target) if is_device(target) else self.astype(target)

    # --- to Python and NumPy

    def _concrete(self, what: str) -> Array:
        """The NumPy buffer, for a use that needs the numbers themselves."""
        return self._data

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> Array:
        data = self._concrete("a NumPy array")
        if dtype is not None and data.dtype != dtype:
            if copy is False:
                raise ValueError("a copy is needed to change the dtype")
            return data.astype(dtype)
        return data.copy() if copy else read_only(data)

    def numpy(self) -> Array:
        """The value as a read-only NumPy array that shares memory with the tensor."""
        return self.__array__()

    def __dlpack__(
        self,
        *,
        stream: int | None = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
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

    def _item_data(self) -> Array:
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

    def _converted(self, kind: Callable[[Any], Converted], what: str) -> Converted:
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

    def _repr_html_(self) -> str | None:
        return as_html("tensor", self)

    def __format__(self, spec: str) -> str:
        return format(self._item_data().item(), spec) if spec and self.size == 1 else format(str(self), spec)

    def __reduce__(self) -> tuple[object, ...]:
        return (_restore, (self._concrete("a pickle"), self.requires_grad and self.is_leaf))

    def __copy__(self) -> Tensor:
        return self.copy()

    def copy(self) -> Tensor:
        """A tensor with the same value in memory of its own."""
        copied = alias(self)
        if type(copied) is Tensor:
            copied._data = copied._data.copy()
        return copied  # nobody writes to what is elsewhere: assignment brings it here first

    clone = copy

    def __deepcopy__(self, memo: dict[int, Tensor]) -> Tensor:
        """A copy that gathers gradients of its own if this tensor does."""
        if not (self.requires_grad and self.is_leaf):
            return memo.setdefault(id(self), self.copy())
        return memo.setdefault(id(self), unrecorded(self).copy().requires_grad_())


_movers: list[Callable[[Tensor, str], Tensor]] = []


def moved_by(mover: Callable[[Tensor, str], Tensor]) -> None:
    """Have tensors brought to devices by this function."""
    _movers[:] = [mover]


def is_device(target: object) -> bool:
    """Whether a text names a device, here or elsewhere, and no dtype."""
    return isinstance(target, str) and target.partition(":")[0] in ("cpu", "cuda", "gpu", "mps", "tpu", "xpu")


def wrap(data: Array | Number) -> Tensor:
    """The tensor over a NumPy result."""
    t = new(Tensor)
    t._data = data if type(data) is np.ndarray else np.asarray(data)
    t._node = None
    return t


def alias(x: Tensor) -> Tensor:
    """Another tensor with the same value and record: where one is changed by assignment, the other is not."""
    if type(x) is Tensor:
        t = new(Tensor)
        t._data = x._data
    elif type(x) is Distant:
        t = x._again()
    else:
        return x  # traced values do not change, and a cell is meant to
    t._node = x._node
    return t


def unrecorded(x: Tensor) -> Tensor:
    """Another tensor with the same value and without a record; traced values have none."""
    other = alias(x)
    if other is not x:
        other._node = None
    return other


new = object.__new__


def _restore(data: Array, requires_grad: bool = False) -> Tensor:
    restored = wrap(data.view(dtypes.as_dtype(data.dtype)))
    return restored.requires_grad_() if requires_grad else restored


def read_only(data: Array) -> Array:
    view = data.view()
    view.flags.writeable = False
    return view


def format_array(data: Array, name: str, extra: str = "") -> str:
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
    def _node(self) -> None:  # type: ignore[override]  # a slot in Tensor; nobody records a traced value
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

    def __reduce__(self) -> tuple[object, ...]:
        raise TraceError(
            "pickle: a traced value has no numbers to save.", "save the results of the transformed function"
        )

    def requires_grad_(self, requires_grad: bool = True) -> Tensor:
        raise GradientError(
            "requires_grad_: inside a transformation (wl.grad, wl.jit) gradients are the transformation's matter.",
            "wl.grad(f)(x), or call requires_grad_() outside",
        )


class Far(Protocol):
    """An array in the memory of a device, as an engine has it. NumPy can bring it to the host."""

    @property
    def shape(self) -> Shape: ...
    @property
    def dtype(self) -> DType: ...
    @property
    def sharding(self) -> Any: ...
    @property
    def is_fully_addressable(self) -> bool: ...
    @property
    def is_fully_replicated(self) -> bool: ...


class Distant(Tensor):
    """A value on a device. When somebody looks at its numbers they come to the host, once.

    Assignment changes the copy on the host, and nothing is `far` from then on.
    """

    __slots__ = ("far",)
    far: Far | None

    def __init__(self, far: Far) -> None:
        self.far = far
        self._node = None

    @property
    def _data(self) -> Array:  # a slot in Tensor, here filled when it is asked for
        try:
            data: Array = _near.__get__(self)
        except AttributeError:
            if self.far is not None and not (self.far.is_fully_addressable or self.far.is_fully_replicated):
                raise beyond(self.far) from None
            try:
                data = np.asarray(self.far)
            except RuntimeError as error:  # overwritten by a step that a thread of the user's runs
                raise InputError(
                    f"read: a tensor of shape {self.shape} on {self.device} is gone: {error}",
                    "copies of parameters (x.copy()) for what runs beside a training step",
                ) from error
            _near.__set__(self, data)
        return data

    @_data.setter
    def _data(self, data: Array) -> None:
        _near.__set__(self, data)
        self.far = None

    @property
    def near(self) -> bool:
        """Whether the host has its numbers."""
        return _holds(self)

    def _again(self) -> Distant:
        """Another tensor with the same value."""
        t = new(Distant)
        t.far = self.far
        if self.near:
            _near.__set__(t, self._data)
        return t

    @property
    def shape(self) -> Shape:
        return self._data.shape if self.far is None else self.far.shape

    @property
    def dtype(self) -> DType:
        return self._data.dtype if self.far is None else self.far.dtype

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def device(self) -> str:
        return "cpu" if self.far is None else place_of(self.far)


VALUES = (Tensor, Distant)  # the classes of computed values
_near: Any = Tensor._data  # the slot


def _holds(x: Distant) -> bool:
    try:
        _near.__get__(x)
    except AttributeError:
        return False
    return True


def beyond(far: Far) -> ProcessError:
    """The error for an array of which other processes have parts: to collect it here, all would have to take part."""
    return ProcessError(
        f"read: a tensor of shape {far.shape} on {place_of(far)} has parts in other processes.",
        'wl.shard(model, "data", mesh=mesh) in all processes, which makes it whole in each; a checkpoint; or '
        "wl.no_grad() around a compiled function, which keeps nothing for backward() then",
    )


def place_of(far: Far) -> str:
    """The device of an array, as in `wl.devices()`, or how many there are."""
    devices = sorted(far.sharding.device_set, key=lambda device: device.id)
    first = f"{devices[0].platform}:{devices[0].id}"
    return first if len(devices) == 1 else f"{first} to {devices[-1].platform}:{devices[-1].id}"
