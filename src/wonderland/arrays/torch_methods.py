"""Methods that PyTorch's users type, with PyTorch's meaning: `x.float()`, `x.expand(-1, 3)`, `x.masked_fill(m, v)`.

Their axes are called `axis`, as everywhere here. Where NumPy's arrays have a method of the same name, NumPy's meaning
holds (`repeat`, `transpose`, `nonzero`, `max`, `sort`); see docs/terms.md.
"""

from __future__ import annotations

import builtins
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

from .. import arrays
from ..core import dtypes
from ..core.arguments import as_int
from ..core.dtypes import DType
from ..core.errors import ShapeError
from ..core.giving import given_to
from ..core.habits import TENSORS
from ..core.naming import refuse
from ..core.tensor import Tensor, alias
from ..core.typing import ArrayLike, Ints, ShapeLike
from .methods import Methods
from .sorting import TopK

# The methods below are called as these types are.
Int = builtins.int
Bool = builtins.bool

if TYPE_CHECKING:

    class _Tensor(Methods):
        """What these methods know of a tensor."""

        @property
        def shape(self) -> tuple[int, ...]: ...
        @property
        def dtype(self) -> DType: ...
        @property
        def ndim(self) -> int: ...
        @property
        def size(self) -> int: ...
        @property
        def itemsize(self) -> int: ...
else:
    _Tensor = object


@given_to(Tensor)
class TorchMethods(_Tensor):
    """Methods of tensors that have their names from PyTorch."""

    # --- other types, and what a tensor is

    def float(self) -> Tensor:
        """As float32."""
        return arrays.astype(self, dtypes.float32)

    def double(self) -> Tensor:
        """As float64."""
        return arrays.astype(self, dtypes.float64)

    def half(self) -> Tensor:
        """As float16."""
        return arrays.astype(self, dtypes.float16)

    def bfloat16(self) -> Tensor:
        """As bfloat16."""
        return arrays.astype(self, dtypes.bfloat16)

    def long(self) -> Tensor:
        """As int64."""
        return arrays.astype(self, dtypes.int64)

    def int(self) -> Tensor:
        """As int32."""
        return arrays.astype(self, dtypes.int32)

    def short(self) -> Tensor:
        """As int16."""
        return arrays.astype(self, dtypes.int16)

    def byte(self) -> Tensor:
        """As uint8."""
        return arrays.astype(self, dtypes.uint8)

    def bool(self) -> Tensor:
        """As truth values: whether an element is not zero."""
        return arrays.astype(self, dtypes.bool_)

    def type_as(self, other: Tensor) -> Tensor:
        """With the dtype of another tensor."""
        return arrays.astype(self, other.dtype)

    def numel(self) -> Int:
        """The number of elements, `x.size`."""
        return self.size

    def nelement(self) -> Int:
        """The number of elements, `x.size`."""
        return self.size

    def dim(self) -> Int:
        """The number of axes, `x.ndim`."""
        return self.ndim

    def element_size(self) -> Int:
        """The number of bytes of an element."""
        return self.itemsize

    def is_floating_point(self) -> Bool:
        """Whether the elements are floating-point numbers."""
        return dtypes.is_floating(self.dtype)

    def is_contiguous(self) -> Bool:
        """True: how the numbers lie in memory is not the program's matter."""
        return True

    def contiguous(self) -> Tensor:
        """The tensor itself: how its numbers lie in memory is not the program's matter."""
        return alias(cast(Tensor, self))

    def cpu(self) -> Tensor:
        """The tensor itself: all tensors are on the CPU."""
        return alias(cast(Tensor, self))

    # --- shapes

    def t(self) -> Tensor:
        """A matrix transposed; a vector or a number as it is."""
        if self.ndim > 2:
            raise ShapeError(f"t: a tensor of shape {self.shape} is not a matrix.", "x.mT, or x.swapaxes(i, j)")
        return arrays.transpose(self)

    def expand(self, *sizes: ShapeLike) -> Tensor:
        """Axes of size 1 repeated to the sizes given; -1 keeps a size. New axes come first.

        >>> import wonderland as wl
        >>> wl.tensor([[1.0], [2.0]]).expand(-1, 3)
        tensor([[1., 1., 1.],
                [2., 2., 2.]])
        """
        wanted = _sizes("expand", sizes)
        new = len(wanted) - self.ndim
        if new < 0 or -1 in wanted[:new]:
            raise ShapeError(
                f"expand: {wanted} for a tensor of shape {self.shape}.",
                "a size for each of its axes, -1 to keep one, and sizes of new axes before them",
            )
        kept = [
            *wanted[:new],
            *(have if want == -1 else want for want, have in zip(wanted[new:], self.shape, strict=True)),
        ]
        return arrays.broadcast_to(self, kept)

    def expand_as(self, other: Tensor) -> Tensor:
        """Repeated to the shape of another tensor."""
        return arrays.broadcast_to(self, other.shape)

    def view_as(self, other: Tensor) -> Tensor:
        """In the shape of another tensor."""
        return arrays.reshape(self, other.shape)

    def reshape_as(self, other: Tensor) -> Tensor:
        """In the shape of another tensor."""
        return arrays.reshape(self, other.shape)

    def unflatten(self, axis: Int, sizes: ShapeLike) -> Tensor:
        """An axis as several ones, of which one may have the size -1."""
        at = _axis("unflatten", self, axis)
        inner = [sizes] if isinstance(sizes, Int) else list(sizes)
        return arrays.reshape(self, (*self.shape[:at], *inner, *self.shape[at + 1 :]))

    def permute(self, *axes: ShapeLike) -> Tensor:
        """The axes in another order."""
        return arrays.transpose(self, _sizes("permute", axes))

    def movedim(self, source: Ints, destination: Ints) -> Tensor:
        """Axes moved to other positions."""
        return arrays.moveaxis(self, source, destination)

    def moveaxis(self, source: Ints, destination: Ints) -> Tensor:
        """Axes moved to other positions."""
        return arrays.moveaxis(self, source, destination)

    def swapdims(self, axis1: Int, axis2: Int) -> Tensor:
        """Two axes swapped."""
        return arrays.swapaxes(self, axis1, axis2)

    def tile(self, *repetitions: ShapeLike) -> Tensor:
        """The tensor as a whole repeated along each axis; what PyTorch calls `repeat`."""
        return arrays.tile(self, _sizes("tile", repetitions))

    def repeat_interleave(self, repeats: ArrayLike, axis: Int | None = None) -> Tensor:
        """Each element repeated along an axis; what NumPy calls `repeat`."""
        return arrays.repeat(self, repeats, axis=axis)

    def chunk(self, chunks: Int, axis: Int = 0) -> tuple[Tensor, ...]:
        """Cut along an axis into so many pieces of one size, the last one smaller; fewer if the axis is short.

        >>> import wonderland as wl
        >>> [piece.tolist() for piece in wl.arange(5).chunk(3)]
        [[0, 1], [2, 3], [4]]
        """
        n = self.shape[_axis("chunk", self, axis)]
        pieces = as_int("chunk", "chunks", chunks, least=1)
        return TorchMethods.split(self, max(1, math.ceil(n / pieces)), axis)

    def split(self, split_size: Int | Sequence[Int], axis: Int = 0) -> tuple[Tensor, ...]:
        """Cut along an axis into pieces of one size (the last one may be smaller), or of the sizes listed.

        >>> import wonderland as wl
        >>> [piece.tolist() for piece in wl.arange(5).split(2)]
        [[0, 1], [2, 3], [4]]

        It is PyTorch's. The function `wl.split(x, n)` is NumPy's: n pieces.
        """
        at = _axis("split", self, axis)
        n = self.shape[at]
        if isinstance(split_size, (list, tuple)):
            sizes = [as_int("split", "split_size", size, least=0) for size in split_size]
            if sum(sizes) != n:
                raise ShapeError(f"split: sizes {sizes} for an axis of size {n}.", "sizes that add up to it")
        else:
            size = as_int("split", "split_size", split_size, least=1)
            sizes = [min(size, n - start) for start in range(0, n, size)] or [0]
        ends = [sum(sizes[: i + 1]) for i in range(len(sizes) - 1)]
        return tuple(arrays.split(self, ends, axis=at))

    def unbind(self, axis: Int = 0) -> tuple[Tensor, ...]:
        """The slices along an axis."""
        return arrays.unstack(self, axis=axis)

    def roll(self, shifts: Ints, axis: Ints | None = None) -> Tensor:
        """Elements moved along an axis; what falls off the end comes back at the start."""
        return arrays.roll(self, shifts, axis)

    def flip(self, *axes: ShapeLike) -> Tensor:
        """The order reversed along the axes; along all of them if none is named, as in NumPy."""
        return arrays.flip(self, tuple(_sizes("flip", axes)) if axes else None)

    def narrow(self, axis: Int, start: Int, length: Int) -> Tensor:
        """`length` elements of an axis from `start` on."""
        at = _axis("narrow", self, axis)
        start, length = as_int("narrow", "start", start), as_int("narrow", "length", length, least=0)
        start += self.shape[at] if start < 0 else 0
        if start < 0 or start + length > self.shape[at]:
            raise ShapeError(
                f"narrow: {start} to {start + length} of an axis of size {self.shape[at]}.", "what is there"
            )
        return self[(*[slice(None)] * at, slice(start, start + length))]

    def select(self, axis: Int, index: Int) -> Tensor:
        """The slice at an index of an axis."""
        return self[(*[slice(None)] * _axis("select", self, axis), index)]

    # --- elements by position

    def gather(self, axis: Int, index: ArrayLike) -> Tensor:
        """out[i, j] = x[index[i, j], j] for axis 0, and likewise along others, see `wl.gather`."""
        return arrays.gather(self, axis, index)

    def scatter(self, axis: Int, index: ArrayLike, src: ArrayLike, *, reduce: str | None = None) -> Tensor:
        """The tensor with out[index[i, j], j] = src[i, j] for axis 0, and likewise along others, see `wl.scatter`."""
        return arrays.scatter(self, axis, index, src, reduce=reduce)

    def scatter_add(self, axis: Int, index: ArrayLike, src: ArrayLike) -> Tensor:
        """The tensor with src[i, j] added at [index[i, j], j] for axis 0, see `wl.scatter_add`."""
        return arrays.scatter_add(self, axis, index, src)

    def index_select(self, axis: Int, index: ArrayLike) -> Tensor:
        """The slices at the positions of a vector along an axis."""
        return arrays.index_select(self, axis, index)

    def index_add(self, axis: Int, index: ArrayLike, source: ArrayLike, *, alpha: ArrayLike = 1) -> Tensor:
        """The tensor with slices of `source` added at the positions of a vector along an axis."""
        return arrays.index_add(self, axis, index, source, alpha=alpha)

    def masked_fill(self, mask: ArrayLike, value: ArrayLike) -> Tensor:
        """The tensor with `value` where the mask is true.

        >>> import wonderland as wl
        >>> x = wl.tensor([1.0, -2.0, 3.0])
        >>> x.masked_fill(x < 0, 0.0)
        tensor([1., 0., 3.])
        """
        return arrays.masked_fill(self, mask, value)

    def masked_select(self, mask: ArrayLike) -> Tensor:
        """The elements where the mask is true, as a vector; the mask is repeated to the shape of the tensor."""
        shape = arrays.broadcast_shapes(self.shape, arrays.asarray(mask).shape)
        return arrays.broadcast_to(self, shape)[arrays.broadcast_to(mask, shape)]

    def where(self, condition: ArrayLike, other: ArrayLike) -> Tensor:
        """The tensor where the condition holds, `other` elsewhere."""
        return arrays.where(condition, self, other)

    def topk(self, k: Int, axis: Int = -1, largest: Bool = True) -> TopK:
        """The k largest (or smallest) elements along an axis, best first, and where they are."""
        return arrays.topk(self, k, axis=axis, largest=largest)

    def nonzero(self) -> tuple[Tensor, ...]:
        """The positions of the elements that are not zero, one vector per axis, as in NumPy; `argwhere` has rows."""
        return arrays.nonzero(self)

    def argwhere(self) -> Tensor:
        """The positions of the elements that are not zero, one row each."""
        return arrays.argwhere(self)

    def unique(self) -> Tensor:
        """The distinct elements in order."""
        return arrays.unique(self)

    def tril(self, diagonal: Int = 0) -> Tensor:
        """The lower triangle of the last two axes."""
        return arrays.tril(self, k=diagonal)

    def triu(self, diagonal: Int = 0) -> Tensor:
        """The upper triangle of the last two axes."""
        return arrays.triu(self, k=diagonal)


def _sizes(name: str, values: tuple[ShapeLike, ...]) -> list[builtins.int]:
    """Integers given one by one, or all in one sequence."""
    listed = values[0] if len(values) == 1 and isinstance(values[0], (list, tuple)) else values
    return [as_int(name, "a size" if name in ("expand", "tile") else "an axis", value) for value in listed]


def _axis(name: str, x: TorchMethods, axis: object) -> builtins.int:
    found = as_int(name, "axis", axis)
    if not -x.ndim <= found < x.ndim:
        raise ShapeError(f"{name}: there is no axis {found} in a tensor of shape {x.shape}.", "an axis that it has")
    return found % x.ndim


refuse(Tensor, TENSORS)
