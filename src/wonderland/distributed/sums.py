"""Sums and means over processes, eagerly and inside compiled programs: many tensors in one message."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypeVar

import numpy as np

from ..arrays import asarray, astype, concat, ones, reshape
from ..core import trees
from ..core.cell import Cell
from ..core.context import Group as Meeting
from ..core.dtypes import DType, bool_, float32, is_half
from ..core.errors import DTypeError
from ..core.interpreter import read
from ..core.tensor import Tensor
from ..core.typing import ArrayLike
from ..primitives.meeting import all_sum as primitive
from ..storage.safetensors import decode, encode
from .joining import get_group

Tree = TypeVar("Tree")  # of tensors


def all_sum(tree: Tree) -> Tree:
    r"""\(x_0 + x_1 + \dots + x_{n-1}\) over the processes, for every tensor of a tree; all get the same bits.

    >>> import wonderland as wl
    >>> wl.distributed.all_sum({"w": wl.ones(2)})  # of one process
    {'w': tensor([1., 1.])}

    The sum is made in the order of the ranks, so it is the same run after run. It works inside `jit` and is
    differentiated: what comes back to each process is the sum of what comes back to all.
    """
    group = get_group()
    leaves, structure = _tensors("all_sum", tree)
    return trees.unflatten(structure, leaves if group.size == 1 else summed(group, leaves))


def all_mean(tree: Tree, weight: ArrayLike | None = None) -> Tree:
    r"""The mean over the processes, \(\sum_r w_r x_r / \sum_r w_r\), for every tensor of a tree, as of gradients.

    >>> import wonderland as wl
    >>> wl.distributed.all_mean([wl.tensor([1.0, 2.0])])  # of one process
    [tensor([1., 2.])]

    In a loop of your own, between the gradient and the step of the optimizer:

        loss, grads = wl.value_and_grad(loss_of)(model, x, y)
        loss, grads = wl.distributed.all_mean((loss, grads))
        optimizer.step(grads)

    `weight` is how much this process counts, as the number of its examples; without it all count alike. All tensors go
    in one message; see `all_sum` for the order of the sum.
    """
    group = get_group()
    leaves, structure = _tensors("all_mean", tree)
    for leaf in leaves:
        if leaf.dtype.kind not in "fcV":
            raise DTypeError(f"all_mean: a tensor of {leaf.dtype}.", "all_sum, or x.astype(wl.float32)")
    if group.size == 1:
        return trees.unflatten(structure, leaves)
    return trees.unflatten(structure, weighted_mean(group, leaves, weight)[0])


def all_gather(x: ArrayLike) -> Tensor:
    """The tensors of all processes in the order of ranks, stacked along a new first axis; they have one shape.

    >>> import wonderland as wl
    >>> wl.distributed.all_gather(wl.tensor([1.0, 2.0]))
    tensor([[1., 2.]])
    """
    group = get_group()
    array = np.ascontiguousarray(np.asarray(asarray(x)))
    rows = [decode(found, "all_gather")[0]["x"] for found in group.gather_bytes(b"".join(encode({"x": array})))]
    return asarray(np.stack([np.asarray(row) for row in rows]))


def broadcast(tree: Tree) -> Tree:
    """The tensors of process 0, in all processes.

    >>> import wonderland as wl
    >>> wl.distributed.broadcast(wl.tensor([1.0, 2.0]))
    tensor([1., 2.])
    """
    group = get_group()
    leaves, structure = _tensors("broadcast", tree)
    named = {str(i): np.asarray(leaf) for i, leaf in enumerate(leaves)} if group.rank == 0 else {}
    first = decode(group.gather_bytes(b"".join(encode(named)))[0], "broadcast")[0]
    return trees.unflatten(structure, [first[str(i)] for i in range(len(leaves))])


# --- for those who know their group


def weighted_mean(
    group: Meeting, leaves: Sequence[Tensor], weight: ArrayLike | None = None
) -> tuple[list[Tensor], Tensor]:
    """The means of tensors, and the sum of the weights."""
    own = ones((), dtype=float32) if weight is None else astype(asarray(weight), float32)
    wide = [astype(leaf, float32) if is_half(leaf.dtype) else leaf for leaf in leaves]
    *totals, count = summed(group, [*(leaf * own for leaf in wide), own])
    return [astype(total / count, leaf.dtype) for total, leaf in zip(totals, leaves, strict=True)], count


def summed(group: Meeting, leaves: Sequence[Tensor]) -> list[Tensor]:
    """The sums of tensors: one message for all that have a dtype."""
    made: dict[int, Tensor] = {}
    kinds: dict[DType, list[int]] = {}
    for place, leaf in enumerate(leaves):
        kinds.setdefault(leaf.dtype, []).append(place)
    for places in kinds.values():
        total = primitive(concat([reshape(leaves[place], (-1,)) for place in places]), group=group)
        start = 0
        for place in places:
            shape = leaves[place].shape
            end = start + math.prod(shape)
            made[place], start = reshape(total[start:end], shape), end
    return [made[place] for place in range(len(leaves))]


def _tensors(name: str, tree: object) -> tuple[list[Tensor], trees.Structure]:
    leaves, structure = trees.flatten(tree)
    found = [read(leaf) if isinstance(leaf, Cell) else asarray(leaf) for leaf in leaves]
    for leaf in found:
        if leaf.dtype == bool_:
            raise DTypeError(f"{name}: a tensor of truth values.", "x.astype(wl.int64)")
    return found, structure
