"""Positions as a bias of the scores, a function of query and key places, in every layer. Book, section 10.2.3.

A module here is called as `bias(query_places, key_places)`, with (..., t) and (..., s), and gives (..., heads, t, s),
which is added to the scores. Where it depends on i - j alone, a sequence may be shifted, and a model read on, without
any change of the scores.
"""

from __future__ import annotations

import math

import numpy as np

from ... import arrays
from ...core import dtypes
from ...core.arguments import as_int
from ...core.errors import InputError
from ...core.tensor import Tensor
from ...core.typing import Array, DTypeLike
from ...transforms.control.loops import runs_in_python
from ..module.module import Module
from ..module.parameter import Buffer, Held, Parameter

__all__ = ["ALiBi", "BucketedBias", "RelativeBias", "ScoreBias"]


class ScoreBias(Module):
    """The base of biases: `heads`, and a call with the places of queries and keys."""

    heads: int

    def forward(self, queries: Tensor, keys: Tensor) -> Tensor:
        raise NotImplementedError


def _offsets(queries: Tensor, keys: Tensor) -> Tensor:
    """j - i for queries at i and keys at j: (..., t, s)."""
    return arrays.expand_dims(keys, -2) - arrays.expand_dims(queries, -1)


class RelativeBias(ScoreBias):
    r"""\(B_{ij} = b_{j-i}\), a trained number for each offset and head; or a free \(B_{ij}\). Book, section 10.2.3.

    >>> import wonderland as wl
    >>> bias = wl.nn.RelativeBias(heads=8, max_length=32)
    >>> bias(wl.arange(5), wl.arange(7)).shape, bias.weight.shape
    ((8, 5, 7), (8, 63))

    Offsets of `max_length` and more share the numbers of the largest. With `free=True` there is a number for each pair
    of places below `max_length`, weight (heads, max_length, max_length), and later places raise. All start from 0.
    """

    weight: Held[Parameter]

    def __init__(self, heads: int, max_length: int, free: bool = False, dtype: DTypeLike | None = None) -> None:
        self.heads = as_int("RelativeBias", "heads", heads, 1)
        self.max_length, self.free = as_int("RelativeBias", "max_length", max_length, 1), bool(free)
        m = self.max_length
        shape = (self.heads, m, m) if free else (self.heads, 2 * m - 1)
        self.weight = Parameter(arrays.zeros(shape, dtype=dtype or dtypes.default_float))

    def forward(self, queries: Tensor, keys: Tensor) -> Tensor:
        m = self.max_length
        if not self.free:
            found = arrays.clip(_offsets(queries, keys), 1 - m, m - 1) + (m - 1)
            return _by_heads(self.weight, found)
        if runs_in_python() and queries.size and keys.size:
            last = max(int(np.max(queries.numpy())), int(np.max(keys.numpy())))
            if last >= m:
                raise InputError(f"{self._describe()}: place {last}.", f"places below {m}, or free=False")
        pairs = arrays.expand_dims(queries, -1) * m + arrays.expand_dims(keys, -2)
        return _by_heads(arrays.reshape(self.weight, (self.heads, m * m)), pairs)

    def extra_repr(self) -> str:
        return ", ".join([f"{self.heads}, {self.max_length}", *self._changed(free=False)])


def _by_heads(table: Tensor, index: Tensor) -> Tensor:
    """Numbers of a table (heads, n) for indices (..., t, s): (..., heads, t, s)."""
    return arrays.moveaxis(arrays.take(table, index, axis=1), 0, -3)


class BucketedBias(ScoreBias):
    r"""A trained number for each bucket of offsets and head, as T5 has it: near ones alone, far ones together.

    >>> import wonderland as wl
    >>> bias = wl.nn.BucketedBias(heads=8, buckets=32, max_distance=128)
    >>> bias(wl.arange(5), wl.arange(7)).shape, bias.weight.shape
    ((8, 5, 7), (32, 8))

    Half of the buckets are for one distance each; the others grow in proportion to the distance up to `max_distance`.
    Unless `bidirectional` is false, half of all are for keys after the query; else those share the first bucket.
    """

    weight: Held[Parameter]

    def __init__(
        self,
        heads: int,
        buckets: int = 32,
        max_distance: int = 128,
        bidirectional: bool = True,
        dtype: DTypeLike | None = None,
    ) -> None:
        self.heads = as_int("BucketedBias", "heads", heads, 1)
        self.buckets, self.bidirectional = as_int("BucketedBias", "buckets", buckets, 4), bool(bidirectional)
        self.max_distance = as_int("BucketedBias", "max_distance", max_distance, 2)
        if self.max_distance <= self._sides()[0] // 2:
            raise InputError(f"BucketedBias: max_distance={max_distance} for {buckets} buckets.", "a larger distance")
        self.weight = Parameter(arrays.zeros((self.buckets, self.heads), dtype=dtype or dtypes.default_float))

    def _sides(self) -> tuple[int, int]:
        """Buckets for one direction, and how many directions."""
        return (self.buckets // 2, 2) if self.bidirectional else (self.buckets, 1)

    def bucket(self, offsets: Tensor) -> Tensor:
        """The bucket of offsets j - i."""
        count, sides = self._sides()
        distance = arrays.abs(offsets) if sides == 2 else arrays.maximum(-offsets, 0)
        table = arrays.asarray(_buckets(count, self.max_distance))
        found = arrays.take(table, arrays.minimum(distance, self.max_distance), axis=0)
        return arrays.where(offsets > 0, found + count, found) if sides == 2 else found

    def forward(self, queries: Tensor, keys: Tensor) -> Tensor:
        found = arrays.take(self.weight, self.bucket(_offsets(queries, keys)), axis=0)
        return arrays.moveaxis(found, -1, -3)

    def extra_repr(self) -> str:
        return ", ".join([str(self.heads), *self._changed(buckets=32, max_distance=128, bidirectional=True)])


def _buckets(count: int, max_distance: int) -> Array:
    """The bucket of each distance from 0 to the largest, in float32 as published models were trained with it."""
    exact = count // 2
    distance = np.arange(max_distance + 1)
    ratio = np.log(np.maximum(distance, 1).astype(np.float32) / np.float32(exact)) / np.float32(
        math.log(max_distance / exact)
    )
    far = exact + (ratio * np.float32(count - exact)).astype(np.int64)
    return np.where(distance < exact, distance, np.minimum(far, count - 1))


class ALiBi(ScoreBias):
    r"""\(-m_h |i - j|\): scores fall with the distance, by a slope for each head. Book, section 10.2.3.

    >>> import wonderland as wl
    >>> wl.nn.ALiBi(8).slopes.tolist()[:3]
    [0.5, 0.25, 0.125]

    The slopes are \(2^{-8h/H}\) for the heads h = 1, ..., H and are not trained, as in the original; the book trains
    them, `trainable=True`. (For an H that is no power of two, those of the next lower one, then every other one of
    the next higher one.) There is no largest place.
    """

    slopes: Held[Parameter | Buffer]

    def __init__(self, heads: int, trainable: bool = False, dtype: DTypeLike | None = None) -> None:
        self.heads = as_int("ALiBi", "heads", heads, 1)
        start = arrays.asarray(alibi_slopes(self.heads), dtype=dtype or dtypes.default_float)
        self.slopes = Parameter(start) if trainable else Buffer(start)

    def forward(self, queries: Tensor, keys: Tensor) -> Tensor:
        slopes = self.slopes
        distance = arrays.astype(arrays.abs(_offsets(queries, keys)), slopes.dtype)
        return -arrays.reshape(slopes, (self.heads, 1, 1)) * arrays.expand_dims(distance, -3)

    def extra_repr(self) -> str:
        return f"{self.heads}" + (", trainable=True" if isinstance(self.slopes, Parameter) else "")


def alibi_slopes(heads: int) -> Array:
    """The slopes of heads.

    >>> alibi_slopes(4).tolist(), alibi_slopes(3).tolist()
    ([0.25, 0.0625, 0.015625, 0.00390625], [0.0625, 0.00390625, 0.25])
    """
    power = 1 << (heads.bit_length() - 1)
    own = 2.0 ** (-8.0 * np.arange(1, power + 1) / power)
    between = 2.0 ** (-8.0 * np.arange(1, 2 * power + 1, 2) / (2 * power))
    return np.concatenate([own, between[: heads - power]])
