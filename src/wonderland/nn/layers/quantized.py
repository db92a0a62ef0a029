"""Layers whose weights have few bits: int8, int4 or bfloat16, made numbers as they are read. See `wl.quantize`."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ... import arrays
from ...arrays.conversion import as_tensor
from ...core import dtypes
from ...core.errors import DTypeError, InputError, ShapeError
from ...core.tensor import Tensor
from ...core.typing import Array, ArrayLike
from ...primitives import quantized as p
from ...primitives.rounded import rounded_matmul
from ..functional.lookup import counted_from_zero
from ..module.module import Module
from ..module.parameter import Buffer, Held, Parameter
from .embedding import Embedding
from .linear import Linear

__all__ = ["QuantizedEmbedding", "QuantizedLinear"]

KINDS = ("bfloat16", "int8", "int4")
ACTIVATIONS = ("float", "int8")  # what the other factor of a product is
USUAL_GROUP = {"int4": 32}  # numbers with one scale; of the others a whole row has one
TRIED = np.linspace(0.7, 1.0, 7, dtype=np.float32)  # parts of the range that four bits are spread over


class Stored(NamedTuple):
    """A matrix (rows, features) in few bits, and what became of its numbers."""

    values: Array
    scales: Array | None
    numbers: Array


def stored(matrix: Array, kind: str, group: int) -> Stored:
    """The nearest matrix of few bits: each group of a row is integers times one number."""
    if kind == "bfloat16":
        values = matrix.astype(dtypes.bfloat16, order="C")
        return Stored(values, None, values.astype(np.float32))
    rows, features = matrix.shape
    count = p.groups_of(features, group)
    wide = np.zeros((rows, count * group), np.float32)
    wide[:, :features] = matrix
    parts = wide.reshape(rows, count, group)
    scales = _scales(parts, 127.0) if kind == "int8" else _fitted(parts)
    low, high = (-127, 127) if kind == "int8" else (-8, 7)
    numbers = np.clip(np.rint(_divided(parts, scales)), low, high)
    values = np.ascontiguousarray(numbers.astype(np.int8).reshape(rows, -1)[:, :features])
    found = (numbers * scales[..., None]).reshape(rows, -1)[:, :features]
    return Stored(values if kind == "int8" else p.packed(values), scales, found)


def _scales(parts: Array, most: float) -> Array:
    return np.abs(parts).max(axis=-1, initial=0.0) / np.float32(most)


def _divided(parts: Array, scales: Array) -> Array:
    return parts / np.where(scales == 0, np.float32(1), scales)[..., None]


def _fitted(parts: Array) -> Array:
    """Scales of four bits, -8 to 7, with the least squared error among some: the largest number is the -8 of one."""
    place = np.abs(parts).argmax(axis=-1, keepdims=True)
    largest = np.take_along_axis(parts, place, axis=-1)[..., 0] / np.float32(-8)
    best, error = largest, np.full(largest.shape, np.inf, np.float32)
    for share in TRIED:
        scales = share * largest
        left = parts - np.clip(np.rint(_divided(parts, scales)), -8, 7) * scales[..., None]
        squared = np.square(left).sum(axis=-1)
        best, error = np.where(squared < error, scales, best), np.minimum(squared, error)
    return best


class Quantized(Module):
    """What quantized layers share: a matrix of `rows` and `features`, in few bits."""

    values: Held[Buffer]
    scales: Buffer | None
    features: int

    @property
    def weight(self) -> Tensor:
        """The numbers that are stored, as the layer has them that this one was made of."""
        raise NotImplementedError

    @property
    def weight_dtype(self) -> dtypes.DType:
        """The dtype of the numbers that inputs are multiplied by."""
        return self.dtype

    def _hold(
        self, matrix: Stored, features: int, kind: str, group: int, dtype: dtypes.DType, activations: str
    ) -> None:
        self.values = Buffer(arrays.tensor(matrix.values))
        self.scales = None if matrix.scales is None else Buffer(arrays.tensor(matrix.scales))
        self.features, self.kind, self.group, self.dtype = features, kind, group, dtype
        self.activations = activations

    def _matrix(self) -> list[Tensor]:
        held = [self.values] if self.scales is None else [self.values, self.scales]
        return [as_tensor(type(self).__name__, cell) for cell in held]

    def _product(self, x: ArrayLike) -> Tensor:
        """x W^T on the last axis."""
        given = as_tensor(type(self).__name__, x)
        given = given if dtypes.is_inexact(given.dtype) else arrays.astype(given, self.dtype)
        if not given.ndim or given.shape[-1] != self.features:
            raise ShapeError(f"{self._describe()}: an input of shape {given.shape}.", f"(..., {self.features})")
        made: Tensor
        if self.activations == "int8":
            made = rounded_matmul(given, *self._matrix(), features=self.features)
        else:
            made = p.quantized_matmul(given, *self._matrix(), features=self.features, group=self.group)
        return made

    def _numbers(self, *matrix: Tensor) -> Tensor:
        made: Tensor = p.dequantize(*matrix, features=self.features, group=self.group, dtype=self.dtype)
        return made

    def _bits(self) -> str:
        grouped = f", group_size={self.group}" if self.scales is not None and self.group < self.features else ""
        rounded = "" if self.activations == "float" else f", activations={self.activations}"
        return f"{self.kind}{grouped}{rounded}"


class QuantizedLinear(Quantized):
    r"""\(y = x W + b\) with a W of few bits: int8, int4 or bfloat16. `wl.quantize` makes them of `Linear` layers.

    >>> import wonderland as wl
    >>> layer = wl.nn.Linear.from_matrix([[127.0, 1.0], [2.0, 0.5]])
    >>> small = wl.nn.QuantizedLinear(layer, "int8")
    >>> small
    QuantizedLinear(in_features=2, out_features=2, bias=False, int8)
    >>> small.values
    buffer([[127,   2],
            [127,  64]], dtype=int8)
    >>> small.weight
    tensor([[127.      ,   1.      ],
            [  2.      ,   0.503937]])

    `values` are W's columns as rows, (out_features, in_features), `scales` (out_features, groups): one for each
    `group_size` numbers of a row, or for a whole row. `weight` are the numbers that they stand for. The derivative is
    with respect to x and b. With `activations="int8"` rows of x are rounded, too; derivatives are as without.
    """

    def __init__(
        self, layer: Linear, dtype: str = "int8", group_size: int | None = None, activations: str = "float"
    ) -> None:
        kind, group = as_kind("QuantizedLinear", dtype), layer.in_features
        activations = as_activations("QuantizedLinear", activations, kind, group_size)
        if group is None:
            raise InputError("QuantizedLinear: a lazy layer has no weights yet.", "a call of the layer before")
        self.in_features, self.out_features = group, layer.out_features
        matrix = np.asarray(layer.weight).astype(np.float32).T
        group = as_group("QuantizedLinear", kind, group_size, self.in_features)
        self._hold(stored(matrix, kind, group), self.in_features, kind, group, layer.weight.dtype, activations)
        self.bias = None if layer.bias is None else Parameter(layer.bias.value, trainable=layer.bias.trainable)

    @property
    def weight(self) -> Tensor:
        """The numbers that are stored, (in_features, out_features)."""
        return arrays.swapaxes(self._numbers(*self._matrix()), 0, 1)

    def forward(self, x: ArrayLike) -> Tensor:
        y = self._product(x)
        return y if self.bias is None else y + self.bias

    def multiply_adds(self, args: tuple[Tensor, ...], output: Tensor) -> int | None:
        return output.size * self.in_features

    def extra_repr(self) -> str:
        sizes = f"in_features={self.in_features}, out_features={self.out_features}, bias={self.bias is not None}"
        return f"{sizes}, {self._bits()}"


class QuantizedEmbedding(Quantized):
    r"""\(W_i\) from a table of few bits, of which the rows that are asked for become numbers.

    >>> import wonderland as wl
    >>> small = wl.nn.QuantizedEmbedding(wl.nn.Embedding(96, 128), "int4")
    >>> small, small(wl.tensor([3, 95])).shape, small.values.shape
    (QuantizedEmbedding(num_embeddings=96, embedding_dim=128, int4, group_size=32), (2, 128), (96, 64))
    """

    def __init__(
        self, layer: Embedding, dtype: str = "int8", group_size: int | None = None, activations: str = "float"
    ) -> None:
        kind = as_kind("QuantizedEmbedding", dtype)
        activations = as_activations("QuantizedEmbedding", activations, kind, group_size)
        if layer.max_norm is not None:
            raise InputError("QuantizedEmbedding: a table whose rows are shortened.", "an Embedding without max_norm")
        self.num_embeddings, self.embedding_dim = layer.num_embeddings, layer.embedding_dim
        group = as_group("QuantizedEmbedding", kind, group_size, self.embedding_dim)
        matrix = np.asarray(layer.weight).astype(np.float32)
        self._hold(stored(matrix, kind, group), self.embedding_dim, kind, group, layer.weight.dtype, activations)

    @property
    def weight(self) -> Tensor:
        """The numbers that are stored, (num_embeddings, embedding_dim)."""
        return self._numbers(*self._matrix())

    def forward(self, index: ArrayLike) -> Tensor:
        chosen = as_tensor("QuantizedEmbedding", index)
        if not dtypes.is_integer(chosen.dtype):
            raise DTypeError(f"{self._describe()}: rows are chosen by integers, received {chosen.dtype}.", "integers")
        rows = counted_from_zero(chosen, self.num_embeddings)
        return self._numbers(*[arrays.take(part, rows, axis=0) for part in self._matrix()])

    def attend(self, x: ArrayLike) -> Tensor:
        """The products of vectors (..., embedding_dim) with all rows: (..., num_embeddings)."""
        return self._product(x)

    def extra_repr(self) -> str:
        return f"num_embeddings={self.num_embeddings}, embedding_dim={self.embedding_dim}, {self._bits()}"


def as_kind(name: str, dtype: object) -> str:
    """The name of a form of few bits."""
    kind = dtype if isinstance(dtype, str) else getattr(dtype, "name", "")
    if kind not in KINDS:
        raise InputError(f"{name}: dtype={dtype!r}.", "one of " + ", ".join(map(repr, KINDS)))
    return kind


def as_group(name: str, kind: str, group_size: int | None, features: int) -> int:
    """How many numbers of a row have one scale: all with -1."""
    if group_size is not None and kind == "bfloat16":
        raise InputError(f"{name}: group_size={group_size!r} for bfloat16, which has no scales.", "without group_size")
    size = USUAL_GROUP.get(kind, -1) if group_size is None else group_size
    if not isinstance(size, int) or (size != -1 and (size < p.BLOCK or size % p.BLOCK)):
        raise InputError(
            f"{name}: group_size={group_size!r}.", f"a multiple of {p.BLOCK}, or -1 for one scale of a whole row"
        )
    return max(features, 1) if size == -1 else min(size, max(features, 1))


def as_activations(name: str, activations: object, kind: str, group_size: int | None) -> str:
    """What the rows are that weights of a form are multiplied by."""
    if activations not in ACTIVATIONS:
        raise InputError(f"{name}: activations={activations!r}.", "one of " + ", ".join(map(repr, ACTIVATIONS)))
    if activations == "int8" and kind != "int8":
        raise InputError(
            f"{name}: activations='int8' with weights of {kind}.", "weights of int8, or activations='float'"
        )
    if activations == "int8" and group_size not in (None, -1):
        raise InputError(
            f"{name}: activations='int8' with group_size={group_size!r}: a sum of integers has one scale.",
            "without group_size, or activations='float'",
        )
    return str(activations)
