"""Initialisers applied to models, by name and by kind of layer, and a check of what a model starts from."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import NamedTuple, TypeAlias, TypeVar

import numpy as np

from ...core.errors import InputError, ModuleError
from ...random.streams import Source, Stream
from ..module.members import members
from ..module.module import Module, matches
from ..module.parameter import Parameter
from .in_place import put
from .initializer import fans
from .naming import InitializerLike, as_initializer

__all__ = ["InitializationWarning", "apply", "initialize", "check"]

M = TypeVar("M", bound=Module)
Kinds: TypeAlias = type[Module] | tuple[type[Module], ...]


class InitializationWarning(UserWarning):
    """Weights from which training cannot start well."""


def apply(model: M, pattern: str, init: InitializerLike, key: Source = None) -> M:
    """Draw the parameters whose path is, lies below or matches `pattern` again.

    >>> import wonderland as wl
    >>> model = wl.nn.Sequential(wl.nn.Linear(2, 3), wl.relu, wl.nn.Linear(3, 1))
    >>> _ = wl.nn.init.apply(model, "*.bias", wl.nn.init.zeros())
    >>> model[0].bias
    parameter([0., 0., 0.])

    `init` is an initialiser or the name of one. With `key` (a key, a seed or a stream) the numbers are always the same.
    """
    chosen = as_initializer("init.apply", init)
    found = [(path, p) for path, p in model.named_parameters() if matches(path, pattern)]
    if not found:
        raise ModuleError(
            f"init.apply: no parameter of this {type(model).__name__} matches {pattern!r}.",
            "a path such as " + ", ".join(repr(path) for path, _ in model.named_parameters()[:3]),
        )
    stream = _as_stream(key)
    for _, parameter in found:
        put("init.apply", parameter, chosen, stream)
    return model


def initialize(
    model: M,
    weights: InitializerLike | Mapping[Kinds, InitializerLike] = "kaiming_normal",
    biases: InitializerLike | None = "zeros",
    key: Source = None,
) -> M:
    """Draw the weights and biases of a model again, by kind of layer.

    >>> import wonderland as wl
    >>> model = wl.nn.Sequential(wl.nn.Embedding(9, 4), wl.nn.Linear(4, 3))
    >>> table = {wl.nn.Linear: "xavier_uniform", wl.nn.Embedding: wl.nn.init.normal(std=0.02)}
    >>> wl.nn.init.initialize(model, table, key=0)[1].bias
    parameter([0., 0., 0.])

    `weights` is an initialiser for linear layers and convolutions, or a table from kinds of modules to initialisers of
    their `weight`, of which the first that fits counts. The `bias` of a layer that gets a new weight starts
    from `biases` (None: it stays).
    """
    from ..layers.convolution import _Convolution  # they take initialisers themselves
    from ..layers.linear import Linear

    if not isinstance(weights, Mapping):
        weights = {(Linear, _Convolution): weights}
    table = [(kind, as_initializer("initialize", init)) for kind, init in weights.items()]
    model.parameters()  # all exist
    stream = _as_stream(key)
    found = False
    for module in model.modules():
        own = members(module)
        init = next((init for kind, init in table if isinstance(module, kind)), None)
        if init is None or not isinstance(own.get("weight"), Parameter):
            continue
        found = True
        put("initialize", own["weight"], init, stream)
        if biases is not None and isinstance(own.get("bias"), Parameter):
            put("initialize", own["bias"], as_initializer("initialize", biases), stream)
    if not found:
        kinds = ", ".join(k.__name__ for kind, _ in table for k in (kind if isinstance(kind, tuple) else (kind,)))
        raise InputError(
            f"initialize: this {type(model).__name__} has no layer of {kinds}.", "kinds of layers that it has"
        )
    return model


class Finding(NamedTuple):
    """A parameter that starts badly."""

    path: str
    problem: str


def check(model: Module, *, warn: bool = True) -> list[Finding]:
    """The weights from which training cannot start well; each is an `InitializationWarning`, unless `warn` is false.

    >>> import wonderland as wl
    >>> layer = wl.nn.Linear(64, 10, init=wl.nn.init.zeros())
    >>> wl.nn.init.check(layer, warn=False)
    [Finding(path='weight', problem='is zero: it passes no gradient to the layers before it')]

    Zeros pass no gradient on; equal columns make units that get the same gradient and stay the same; weights whose
    deviation is not about one over the root of the number of inputs make signals grow or vanish from layer to layer.
    Looked at are linear layers, convolutions, and the matrices of modules of your own.
    """
    found = []
    matrices = [
        (f"{path}.{name}" if path else name, parameter)
        for path, module in model.named_modules()
        if _multiplies(module)
        for name, parameter in members(module).items()
        if isinstance(parameter, Parameter) and parameter.ndim > 1 and parameter.size
    ]
    model.parameters()  # all exist
    for path, parameter in matrices:
        w = np.asarray(parameter, dtype=np.float64).reshape(-1, parameter.shape[-1])
        size = np.sqrt(np.mean(w * w) * fans(parameter.shape)[0])
        if not np.isfinite(w).all():
            problem = "has entries that are not finite"
        elif not w.any():
            problem = "is zero: it passes no gradient to the layers before it"
        elif (w == w[:1, :1]).all() and w.size > 1:
            problem = "is constant: all units get the same gradient and stay the same"
        elif w.shape[1] > 1 and (w == w[:, :1]).all():
            problem = "has equal columns: all units get the same gradient and stay the same"
        elif size > 3:
            problem = f"is unscaled: its outputs have about {size:.1f} times the size of its inputs"
        elif size < 0.05:
            problem = f"is small: its outputs have about {size:.2g} times the size of its inputs"
        else:
            continue
        found.append(Finding(path, problem))
    if warn:
        for path, problem in found:
            warnings.warn(
                f"{path} {problem}; wl.nn.init.initialize(model) starts it anew", InitializationWarning, stacklevel=2
            )
    return found


def _multiplies(module: Module) -> bool:
    """Whether the matrices of a module are weights between inputs and outputs; tables and the like are not."""
    from ..layers.convolution import _Convolution  # they take initialisers themselves
    from ..layers.linear import Linear

    return isinstance(module, (Linear, _Convolution)) or not type(module).__module__.startswith("wonderland.")


def _as_stream(key: Source) -> Stream | None:
    return key if key is None or isinstance(key, Stream) else Stream(key)
