"""Looking at a model for designs that work against themselves. Book, sections 9.3.2 and 9.4.1."""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

from ... import arrays
from ..activations.activations import Activation, Sigmoid, Softplus
from ..activations.piecewise import ReLU, ReLU6
from ..adaptation.fusing import stacked_linear
from ..layers.convolution import _Convolution
from ..layers.dropout import Dropout, StochasticDepth
from ..layers.identity import Identity
from ..layers.linear import Linear
from ..layers.normalization import _ChannelNorm
from ..layers.residual import Residual, ResidualStack, Skip
from ..module.containers import Layer, Sequential
from ..module.module import Module

__all__ = ["Finding", "lint"]

_NOT_NEGATIVE = (ReLU, ReLU6, Sigmoid, Softplus)
_KEEP_SIGNS = (Dropout, StochasticDepth)
_NOT_NEGATIVE_FUNCTIONS = {"relu", "relu6", "sigmoid", "softplus"}


class Finding(NamedTuple):
    """What is odd about the module at a path, and what to write instead."""

    path: str
    rule: str
    message: str


def lint(model: Module) -> list[Finding]:
    """What could be left out or should be changed in a model.

    >>> import wonderland as wl
    >>> model = wl.nn.Sequential(wl.nn.Linear(4, 8), wl.nn.BatchNorm1d(8), wl.nn.ReLU())
    >>> [(finding.path, finding.rule) for finding in wl.nn.lint(model)]
    [('0', 'bias-before-norm')]

    - `bias-before-norm`: in a `Sequential`, a bias right before batch or instance normalization is subtracted again
      with the mean; its gradient is 0. Use `bias=False`.
    - `residual-ends-positive`: the path of a residual connection ends in ReLU or another function that is never
      negative, so that values can only grow from block to block. Leave the last activation out.
    - `stacked-linear`: a linear layer directly after another computes nothing that one could not. Put a function
      between them.
    """
    found = [
        Finding(path, "stacked-linear", f"no function stands between {before!r} and it: one layer would do.")
        for before, path in stacked_linear(model)
    ]
    for path, module in model.named_modules():
        if isinstance(module, Sequential):
            found += _biases(path, list(module))
        added = isinstance(module, (Residual, ResidualStack)) or (isinstance(module, Skip) and module.combine == "add")
        if added:
            f = module.blocks[0] if isinstance(module, ResidualStack) and len(module.blocks) else vars(module).get("f")
            if _never_negative(_last(f)):
                found.append(
                    Finding(
                        path,
                        "residual-ends-positive",
                        f"the path around which {type(module).__name__} adds ends in an activation that is never "
                        "negative: values can only grow. Leave it out.",
                    )
                )
    return found


def _biases(path: str, layers: list[Layer]) -> list[Finding]:
    found = []
    for i, (layer, after) in enumerate(pairwise(layers)):
        weighted = isinstance(layer, (Linear, _Convolution)) and layer.bias is not None
        if weighted and isinstance(after, _ChannelNorm):
            message = f"{type(after).__name__} takes away the bias of the {type(layer).__name__} before it: bias=False."
            found.append(Finding(f"{path}.{i}" if path else str(i), "bias-before-norm", message))
    return found


def _last(f: object) -> object:
    """The last layer that decides about signs."""
    if not isinstance(f, Sequential):
        return f
    return next((_last(layer) for layer in reversed(list(f)) if not isinstance(layer, (Identity, *_KEEP_SIGNS))), None)


def _never_negative(f: object) -> bool:
    if isinstance(f, _NOT_NEGATIVE):
        return True
    f = f.function if isinstance(f, Activation) else f
    name = getattr(f, "__name__", "")
    return name in _NOT_NEGATIVE_FUNCTIONS and f is getattr(arrays, name, None)
