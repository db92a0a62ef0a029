"""Layers that put a margin around sequences, images and volumes: (..., *spatial, channels)."""

from __future__ import annotations

from ... import arrays
from ...core.arguments import as_int, shown
from ...core.errors import InputError, ShapeError
from ...core.tensor import Tensor
from ...core.typing import ArrayLike
from ..functional.windows import PaddingLike
from ..module.module import Module

__all__ = [
    "ConstantPad1d", "ConstantPad2d", "ConstantPad3d", "ZeroPad1d", "ZeroPad2d", "ZeroPad3d", "ReflectionPad1d",
    "ReflectionPad2d", "ReflectionPad3d", "ReplicationPad1d", "ReplicationPad2d", "ReplicationPad3d", "CircularPad1d",
    "CircularPad2d", "CircularPad3d",
]  # fmt: skip


class Padding(Module):
    """The margin of `axes` spatial axes, of a kind that a subclass names.

    `padding` is one number for all sides, or two for each axis as PyTorch has them: those of the last spatial axis
    first, (left, right, top, bottom, front, back). Negative numbers cut away.
    """

    axes: int
    mode: str

    def __init__(self, padding: PaddingLike) -> None:
        name = type(self).__name__
        given = padding if isinstance(padding, (tuple, list)) else (padding,) * (2 * self.axes)
        if len(given) != 2 * self.axes:
            raise InputError(
                f"{name}: padding={shown(padding)} for {self.axes} spatial axes.",
                f"a number, or {2 * self.axes} of them",
            )
        self.padding = tuple(as_int(name, "padding", n) for n in given)

    def pairs(self) -> list[tuple[int, int]]:
        """(before, after) for every spatial axis, the first one first."""
        return [(self.padding[i], self.padding[i + 1]) for i in range(2 * self.axes - 2, -1, -2)]

    def forward(self, x: ArrayLike) -> Tensor:
        x = arrays.asarray(x)
        name, pairs = type(self).__name__, self.pairs()
        if x.ndim < self.axes + 1:
            raise ShapeError(f"{name}: an input of shape {x.shape}.", f"(..., {self.axes} spatial axes, channels)")
        spatial = x.shape[-self.axes - 1 : -1]
        if any(
            n + low + high < 0 or n + min(low, 0) + min(high, 0) < 0
            for n, (low, high) in zip(spatial, pairs, strict=True)
        ):
            raise ShapeError(f"{name}: a spatial shape {spatial} with the margins {pairs}.", "smaller cuts")
        cuts = tuple(slice(max(-low, 0), n - max(-high, 0)) for n, (low, high) in zip(spatial, pairs, strict=True))
        x = x[(..., *cuts, slice(None))]
        grown = [(max(low, 0), max(high, 0)) for low, high in pairs]
        self._check(name, x.shape[-self.axes - 1 : -1], grown)
        return self._padded(x, [(0, 0)] * (x.ndim - self.axes - 1) + grown + [(0, 0)])

    def _check(self, name: str, spatial: tuple[int, ...], grown: list[tuple[int, int]]) -> None:
        """Mirrored and repeated images are at least as large as their margins."""
        least = {"reflect": 1, "wrap": 0}.get(self.mode)
        if least is not None and any(max(pair) > n - least for n, pair in zip(spatial, grown, strict=True)):
            raise ShapeError(
                f"{name}: margins {grown} of a spatial shape {spatial}.",
                "margins smaller than the image" if least else "margins not larger than the image",
            )

    def _padded(self, x: Tensor, widths: list[tuple[int, int]]) -> Tensor:
        return arrays.pad(x, widths, mode=self.mode)

    def extra_repr(self) -> str:
        return f"padding={self.padding}"


class _Constant(Padding):
    mode = "constant"

    def __init__(self, padding: PaddingLike, value: float = 0.0) -> None:
        super().__init__(padding)
        self.value = value

    def _padded(self, x: Tensor, widths: list[tuple[int, int]]) -> Tensor:
        return arrays.pad(x, widths, constant_values=self.value)

    def extra_repr(self) -> str:
        return f"padding={self.padding}" + (f", value={self.value}" if self.value else "")


class ConstantPad1d(_Constant):
    """A margin of one number around sequences (..., t, c).

    >>> import wonderland as wl
    >>> wl.nn.ConstantPad1d((1, 2), 5.0)(wl.zeros((1, 2, 1)))[0, :, 0]
    tensor([5., 0., 0., 5., 5.])
    """

    axes = 1


class ConstantPad2d(_Constant):
    """A margin of one number around images (..., h, w, c): (left, right, top, bottom).

    >>> import wonderland as wl
    >>> wl.nn.ConstantPad2d((1, 2, 0, 1), 5.0)(wl.zeros((1, 4, 4, 3))).shape
    (1, 5, 7, 3)
    """

    axes = 2


class ConstantPad3d(_Constant):
    """A margin of one number around volumes (..., d, h, w, c): (left, right, top, bottom, front, back).

    >>> import wonderland as wl
    >>> wl.nn.ConstantPad3d(1, 5.0)(wl.zeros((4, 4, 4, 3))).shape
    (6, 6, 6, 3)
    """

    axes = 3


class ZeroPad1d(_Constant):
    """Zeros around sequences (..., t, c).

    >>> import wonderland as wl
    >>> wl.nn.ZeroPad1d(1)(wl.ones((2, 1)))[:, 0]
    tensor([0., 1., 1., 0.])
    """

    axes = 1

    def __init__(self, padding: PaddingLike) -> None:
        super().__init__(padding)


class ZeroPad2d(ZeroPad1d):
    """Zeros around images (..., h, w, c); negative numbers cut away.

    >>> import wonderland as wl
    >>> wl.nn.ZeroPad2d((1, -1, 0, 0))(wl.ones((1, 2, 1)))[..., 0]
    tensor([[0., 1.]])
    """

    axes = 2


class ZeroPad3d(ZeroPad1d):
    """Zeros around volumes (..., d, h, w, c).

    >>> import wonderland as wl
    >>> wl.nn.ZeroPad3d(2)(wl.ones((1, 1, 1, 3))).shape
    (5, 5, 5, 3)
    """

    axes = 3


class ReflectionPad1d(Padding):
    """Sequences (..., t, c) mirrored at their ends, which are not repeated.

    >>> import wonderland as wl
    >>> wl.nn.ReflectionPad1d(2)(wl.arange(4.0)[:, None])[:, 0]
    tensor([2., 1., 0., 1., 2., 3., 2., 1.])
    """

    axes, mode = 1, "reflect"


class ReflectionPad2d(ReflectionPad1d):
    """Images (..., h, w, c) mirrored at their edges, which are not repeated.

    >>> import wonderland as wl
    >>> wl.nn.ReflectionPad2d(2)(wl.ones((1, 4, 4, 3))).shape
    (1, 8, 8, 3)
    """

    axes = 2


class ReflectionPad3d(ReflectionPad1d):
    """Volumes (..., d, h, w, c) mirrored at their faces, which are not repeated.

    >>> import wonderland as wl
    >>> wl.nn.ReflectionPad3d(1)(wl.ones((2, 2, 2, 1))).shape
    (4, 4, 4, 1)
    """

    axes = 3


class ReplicationPad1d(Padding):
    """Sequences (..., t, c) whose ends are repeated.

    >>> import wonderland as wl
    >>> wl.nn.ReplicationPad1d(2)(wl.arange(3.0)[:, None])[:, 0]
    tensor([0., 0., 0., 1., 2., 2., 2.])
    """

    axes, mode = 1, "edge"


class ReplicationPad2d(ReplicationPad1d):
    """Images (..., h, w, c) whose edges are repeated.

    >>> import wonderland as wl
    >>> wl.nn.ReplicationPad2d((1, 0, 2, 0))(wl.ones((1, 4, 4, 3))).shape
    (1, 6, 5, 3)
    """

    axes = 2


class ReplicationPad3d(ReplicationPad1d):
    """Volumes (..., d, h, w, c) whose faces are repeated.

    >>> import wonderland as wl
    >>> wl.nn.ReplicationPad3d(1)(wl.ones((2, 2, 2, 1))).shape
    (4, 4, 4, 1)
    """

    axes = 3


class CircularPad1d(Padding):
    """Sequences (..., t, c) that go on with their other end.

    >>> import wonderland as wl
    >>> wl.nn.CircularPad1d(1)(wl.arange(3.0)[:, None])[:, 0]
    tensor([2., 0., 1., 2., 0.])
    """

    axes, mode = 1, "wrap"


class CircularPad2d(CircularPad1d):
    """Images (..., h, w, c) that go on with their other side.

    >>> import wonderland as wl
    >>> wl.nn.CircularPad2d(1)(wl.ones((1, 4, 4, 3))).shape
    (1, 6, 6, 3)
    """

    axes = 2


class CircularPad3d(CircularPad1d):
    """Volumes (..., d, h, w, c) that go on with their other side.

    >>> import wonderland as wl
    >>> wl.nn.CircularPad3d(1)(wl.ones((2, 2, 2, 1))).shape
    (4, 4, 4, 1)
    """

    axes = 3
