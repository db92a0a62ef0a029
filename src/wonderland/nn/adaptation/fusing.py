"""Linear layers without a function between them are one linear layer. Book, E.5.1 and E.5.2."""

from __future__ import annotations

from itertools import pairwise

from ... import arrays
from ...core.errors import ModuleError, ShapeError
from ..layers.identity import Identity
from ..layers.linear import Linear
from ..module.containers import Layer, Sequential
from ..module.module import Module
from ..module.parameter import Parameter

__all__ = ["fuse_linear", "collapse", "stacked_linear"]


def fuse_linear(first: Linear, second: Linear) -> Linear:
    r"""One layer for two: \((xW_1 + b_1)W_2 + b_2 = xA + c\) with \(A = W_1 W_2\), \(c = b_1 W_2 + b_2\). Book, E.5.2.

    >>> import wonderland as wl
    >>> one, two = wl.nn.Linear(3, 4), wl.nn.Linear(4, 2)
    >>> x = wl.random.normal((5, 3))
    >>> bool(wl.allclose(wl.nn.fuse_linear(one, two)(x), two(one(x)), atol=1e-5))
    True
    """
    for layer in (first, second):
        if type(layer) is not Linear or not isinstance(layer.weight, Parameter):
            raise ModuleError(f"fuse_linear: received a {type(layer).__name__}.", "two linear layers with parameters")
    if first.out_features != second.in_features:
        raise ShapeError(
            f"fuse_linear: {first.out_features} outputs do not fit {second.in_features} inputs of the second layer.",
            "layers in the order in which they are applied",
        )
    matrix = arrays.matmul(first.weight, second.weight)
    shift = None if first.bias is None else arrays.matmul(first.bias, second.weight)
    if second.bias is not None:
        shift = second.bias if shift is None else shift + second.bias
    return Linear.from_matrix(arrays.stop_gradient(matrix), None if shift is None else arrays.stop_gradient(shift))


def collapse(model: Module) -> Sequential | Linear:
    """A `Sequential` in which every run of linear layers is fused; a single `Linear` if nothing else is left.

    >>> import wonderland as wl
    >>> deep = wl.nn.Sequential(wl.nn.Linear(3, 8), wl.nn.Linear(8, 8), wl.nn.Linear(8, 2))
    >>> wl.nn.collapse(deep)
    Linear(in_features=3, out_features=2, bias=True)
    """
    if isinstance(model, Linear):
        return model
    if not isinstance(model, Sequential):
        raise ModuleError(f"collapse: a {type(model).__name__} does not list its layers.", "a Sequential")
    layers: list[Layer] = []
    for layer in _flat(model):
        if layers and type(layer) is Linear and type(layers[-1]) is Linear:
            layers[-1] = fuse_linear(layers[-1], layer)
        else:
            layers.append(layer)
    return layers[0] if len(layers) == 1 and isinstance(layers[0], Linear) else Sequential(*layers)


def stacked_linear(model: Module) -> list[tuple[str, str]]:
    """The paths of linear layers that directly follow each other, in pairs: the second adds nothing.

    >>> import wonderland as wl
    >>> wl.nn.stacked_linear(wl.nn.Sequential(wl.nn.Linear(3, 8), wl.nn.Linear(8, 2), wl.relu, wl.nn.Linear(2, 1)))
    [('0', '1')]
    """
    found: list[tuple[str, str]] = []
    for path, module in model.named_modules():
        if not isinstance(module, Sequential):
            continue
        entries = [(i, layer) for i, layer in enumerate(module) if not isinstance(layer, Identity)]
        for (i, one), (j, two) in pairwise(entries):
            if type(one) is Linear and type(two) is Linear:
                prefix = f"{path}." if path else ""
                found.append((f"{prefix}{i}", f"{prefix}{j}"))
    return found


def _flat(model: Sequential) -> list[Layer]:
    """The layers, also of a Sequential inside, without those that do nothing."""
    layers: list[Layer] = []
    for layer in model:
        layers += _flat(layer) if type(layer) is Sequential else [] if isinstance(layer, Identity) else [layer]
    return layers
