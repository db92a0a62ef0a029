"""The initialisers in place, by the names that PyTorch has for them: `kaiming_normal_(layer.weight)`.

Each takes a parameter (or another cell), then what its initialiser takes, and `key`; it returns the parameter.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...core.cell import Cell
from ...core.errors import InputError
from ...core.tensor import Tensor
from ...core.typing import KeyLike
from ...transforms.imperative import no_grad
from . import schemes
from .initializer import Initializer

__all__ = [
    "zeros_", "ones_", "constant_", "normal_", "uniform_", "trunc_normal_", "variance_scaling_", "xavier_normal_",
    "xavier_uniform_", "kaiming_normal_", "kaiming_uniform_", "lecun_normal_", "lecun_uniform_", "orthogonal_",
    "sparse_", "eye_", "dirac_",
]  # fmt: skip


def put(name: str, cell: object, init: Callable[..., Tensor], key: KeyLike = None) -> Cell:
    """Draw a new value for a cell."""
    if not isinstance(cell, Cell):
        raise InputError(
            f"{name}: a {type(cell).__name__} cannot be changed in place.",
            "a Parameter; for a new tensor, the function without the underscore",
        )
    with no_grad():
        cell.assign(init(cell.shape, key=key, dtype=cell.dtype))
    return cell


def _in_place(scheme: Callable[..., Initializer]) -> Callable[..., Cell]:
    name = f"{scheme.__name__}_"

    def draw(tensor: Cell, *args: Any, key: KeyLike = None, **settings: Any) -> Cell:
        return put(name, tensor, scheme(*args, **settings), key)

    draw.__name__ = draw.__qualname__ = name
    draw.__doc__ = f"`wl.nn.init.{scheme.__name__}` in place: `{name}(parameter, ..., key=None)`."
    return draw


zeros_ = _in_place(schemes.zeros)
ones_ = _in_place(schemes.ones)
constant_ = _in_place(schemes.constant)
normal_ = _in_place(schemes.normal)
uniform_ = _in_place(schemes.uniform)
trunc_normal_ = _in_place(schemes.trunc_normal)
variance_scaling_ = _in_place(schemes.variance_scaling)
xavier_normal_ = _in_place(schemes.xavier_normal)
xavier_uniform_ = _in_place(schemes.xavier_uniform)
kaiming_normal_ = _in_place(schemes.kaiming_normal)
kaiming_uniform_ = _in_place(schemes.kaiming_uniform)
lecun_normal_ = _in_place(schemes.lecun_normal)
lecun_uniform_ = _in_place(schemes.lecun_uniform)
orthogonal_ = _in_place(schemes.orthogonal)
sparse_ = _in_place(schemes.sparse)
eye_ = _in_place(schemes.eye)
dirac_ = _in_place(schemes.dirac)
