"""Trees, and all their leaves as one vector: `wl.tree`. See core/trees.py."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from . import arrays
from .core import trees
from .core.dtypes import is_complex
from .core.errors import TreeError
from .core.tensor import Tensor
from .core.trees import *  # noqa: F403 - all that is public there
from .core.trees import flatten, unflatten

__all__ = ["ravel"]
__all__ += trees.__all__

Tree = TypeVar("Tree")


def ravel(tree: Tree) -> tuple[Tensor, Callable[[Tensor], Tree]]:
    """All leaves as one vector, and the function that takes such a vector back to a tree. Book, section 6.1.

    >>> import wonderland as wl
    >>> vector, back = ravel({"W": wl.ones((3, 2)), "b": wl.zeros(2)})
    >>> vector.shape, back(vector)["W"].shape
    ((8,), (3, 2))
    """
    parts, shape = flatten(tree)
    parts = [arrays.asarray(p) for p in parts]
    if not parts:
        return arrays.zeros((0,)), lambda vector: unflatten(shape, [])
    vector = arrays.concat([arrays.reshape(p, (-1,)) for p in parts])
    sizes = [(p.shape, p.dtype, p.size) for p in parts]

    def back(flat: Tensor) -> Tree:
        if flat.shape != vector.shape:
            raise TreeError(
                f"ravel: the vector has shape {flat.shape}, expected {vector.shape}.",
                "a vector like the one that ravel gave",
            )
        pieces, start = [], 0
        for shape_, dtype, size in sizes:
            piece = arrays.reshape(flat[start : start + size], shape_)
            pieces.append(arrays.astype(piece if is_complex(dtype) else arrays.real(piece), dtype))
            start += size
        return unflatten(shape, pieces)

    return vector, back
