"""Weights that are 0: counted, or made so for good. Book, section 9.2.1."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple, TypeVar

import numpy as np

from ... import arrays
from ...core.arguments import as_number
from ...core.errors import InputError
from ...core.typing import Array
from ..layers.convolution import _Convolution
from ..layers.linear import Linear
from ..module.module import Module
from ..module.parameter import Parameter
from ..module.reparameterization import Masked, Reparameterized
from .surgery import is_place, replace_submodule

__all__ = ["Sparsity", "sparsity", "prune"]

M = TypeVar("M", bound=Module)


class Sparsity(NamedTuple):
    """How many weights are 0, or nearly so: all together, and for each parameter."""

    fraction: float
    zeros: int
    total: int
    parameters: dict[str, float]


def sparsity(model: Module, tol: float = 0.0) -> Sparsity:
    r"""The share of weights with \(|w| \le\) `tol`. Book, section 9.2.1, footnote 6.

    >>> import wonderland as wl
    >>> report = wl.nn.sparsity(wl.nn.Linear.from_matrix([[0.0, 1.0], [0.0, 1e-4]]), tol=1e-3)
    >>> report.fraction, report.parameters
    (0.75, {'weight': 0.75})

    Masked and otherwise computed weights count as they are used.
    """
    tol = as_number("sparsity", "tol", tol)
    found: dict[str, Array] = {}
    hidden: set[int] = set()
    for path, module in model.named_modules():
        if isinstance(module, Reparameterized):
            hidden.update(id(cell) for name, cell in vars(module).items() if name != "layer")
            found[f"{path}.{module.name}".lstrip(".")] = np.asarray(module.weight)
    for path, parameter in model.named_parameters():
        if id(parameter) not in hidden:
            found[path] = np.asarray(parameter)
    small = {path: int(np.count_nonzero(np.abs(w) <= tol)) for path, w in found.items()}
    total = sum(w.size for w in found.values())
    shares = {path: small[path] / max(w.size, 1) for path, w in found.items()}
    return Sparsity(sum(small.values()) / max(total, 1), sum(small.values()), total, shares)


def prune(model: M, fraction: float, places: str | Iterable[str] = "*") -> M:
    """Magnitude pruning: the given share of the smallest weights of every linear and convolutional layer is 0 for good.

    >>> import wonderland as wl
    >>> model = wl.nn.Sequential(wl.nn.Linear.from_matrix([[3.0, -1.0], [0.5, 2.0]]))
    >>> wl.nn.prune(model, 0.5)[0].weight
    tensor([[3., 0.],
            [0., 2.]])

    The layers at `places` (patterns of paths, or a list of them) are replaced by `Masked` ones in the model, which may
    be trained further and pruned again. Biases stay.
    """
    if not 0.0 <= as_number("prune", "fraction", fraction) <= 1.0:
        raise InputError(f"prune: fraction={fraction!r}.", "a number from 0 to 1")
    chosen: list[tuple[str, Any]] = [
        (path, module)
        for path, module in model.named_modules()
        if path and is_place(path, places) and (isinstance(module, Masked) or _has_weights(module))
    ]
    if not chosen:
        raise InputError(
            f"prune: no linear or convolutional layer inside this {type(model).__name__} is at {places!r}.",
            "patterns of paths, as model.named_modules() gives them; nn.Masked for a single layer",
        )
    for path, module in chosen:
        size = np.abs(np.asarray(module.weight))
        mask = np.ones(size.shape, bool)
        mask.flat[np.argsort(size, axis=None, kind="stable")[: round(fraction * size.size)]] = False
        if isinstance(module, Masked):
            module.mask.assign(arrays.asarray(mask))
            module.kept.assign(arrays.where(module.mask, module.kept.value, 0.0))
        else:
            replace_submodule(model, path, Masked(module, mask))
    return model


def _has_weights(module: Module) -> bool:
    """Whether it is a linear or convolutional layer with a weight of its own."""
    return isinstance(module, (Linear, _Convolution)) and isinstance(module.weight, Parameter)
