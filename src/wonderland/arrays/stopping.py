"""Values as constants."""

from __future__ import annotations

from typing import TypeVar, overload

from ..core import trees
from ..core.tensor import Tensor, unrecorded
from ..primitives.structure import stop

__all__ = ["stop_gradient"]


Tree = TypeVar("Tree")


@overload
def stop_gradient(x: Tensor) -> Tensor: ...
@overload
def stop_gradient(x: Tree) -> Tree: ...
def stop_gradient(x: object) -> object:
    """x as a constant: its derivative is zero. Works on trees.

    >>> import wonderland as wl
    >>> print(wl.grad(lambda x: x * wl.stop_gradient(x))(3.0))
    tensor(3.)
    """
    if isinstance(x, Tensor):
        out = stop(x)
        return unrecorded(out) if out._node is not None else out
    return trees.map(lambda leaf: stop_gradient(leaf) if isinstance(leaf, Tensor) else leaf, x)
