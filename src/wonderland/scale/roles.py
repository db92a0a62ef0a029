"""Which axis of a layer's weights tensor parallelism splits: columns, then rows, so that a pair needs one sum.

x (b, in) is on every device. With the columns of W1 (in, hidden) split, each device has some hidden units; with the
rows of W2 (hidden, out) split the same way it multiplies just these, and the sum over devices is the result. Attention
is such a pair by heads, an MLP by hidden units. A bias goes with its columns. Tables of words are split by words.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..core.cell import Cell
from ..nn.attention.multi_head import MultiHeadAttention
from ..nn.layers.convolution import Conv1d, Conv2d, Conv3d
from ..nn.layers.embedding import Embedding
from ..nn.layers.gated import GatedLinear
from ..nn.layers.linear import Linear
from ..nn.layers.weighted import Weighted
from ..nn.mixing.feed_forward import FeedForward, GatedFeedForward
from ..nn.module.members import Member, members, walk
from ..nn.module.module import Module

AXIS = "model"  # the axis of the mesh
# What a layer's parts are called: those whose columns are split, and those whose rows are.
_COLUMNS = ("query", "key", "value", "qkv", "up", "gate")
_ROWS = ("output", "down")
_RECURRENT = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")  # gates lie side by side along the last axis


def split_axes(root: Module) -> dict[int, int]:
    """The axis along which a cell is split over "model", by the id of the cell; those without one stay whole."""
    found: dict[int, int] = {}
    for _, member in walk(root):
        if isinstance(member, Module):
            for cell, axis in _of_module(member):
                found.setdefault(id(cell), axis)  # a parent, which knows more, comes before its parts
    return found


def heads_of(root: Module) -> dict[int, int]:
    """How many heads lie along the split axis of the cells of attention, by the id of the cell."""
    found: dict[int, int] = {}
    for _, member in walk(root):
        if isinstance(member, MultiHeadAttention):
            for name, part in members(member).items():
                if isinstance(part, Linear):
                    few = name in ("key", "value", "qkv")  # heads of keys may be fewer than those of queries
                    count = member.kv_heads if few else member.num_heads
                    found.update((id(cell), count) for cell in (part.weight, part.bias) if cell is not None)
    return found


def _of_module(module: Module) -> Iterator[tuple[Cell, int]]:
    parts = members(module)
    if isinstance(module, (MultiHeadAttention, FeedForward, GatedFeedForward, GatedLinear)):
        for name, part in parts.items():
            if isinstance(part, Linear) and name in _COLUMNS:
                yield from _columns(part)
            elif isinstance(part, Linear) and name in _ROWS:
                yield from _rows(part)
    elif isinstance(module, Embedding):
        yield module.weight, 0
    elif isinstance(module, (Linear, Conv1d, Conv2d, Conv3d)):
        yield from _columns(module)
    else:
        yield from _in_turn(parts)
        for name, part in parts.items():
            if isinstance(part, Cell) and part.ndim and name.startswith(_RECURRENT):
                yield part, part.ndim - 1


def _in_turn(parts: dict[str, Member]) -> Iterator[tuple[Cell, int]]:
    """Linear layers of a list, where each reads what the one before it gives: columns and rows take turns."""
    before: Linear | None = None
    for name, part in parts.items():
        if not isinstance(part, Linear) or not name.rpartition(".")[2].isdigit():
            continue
        if before is not None and before.out_features == part.in_features:
            yield from _rows(part)
            before = None
        else:
            yield from _columns(part)
            before = part


def _columns(layer: Weighted) -> Iterator[tuple[Cell, int]]:
    for cell in (layer.weight, layer.bias):
        if isinstance(cell, Cell) and cell.ndim:
            yield cell, cell.ndim - 1


def _rows(layer: Linear) -> Iterator[tuple[Cell, int]]:
    yield layer.weight, 0
    if isinstance(layer.bias, Cell):
        yield layer.bias, -1  # whole: it is added once, to the sum
