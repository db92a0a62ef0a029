"""Which layers are in training mode: for a while, for dropout alone, or by mistake. Book, section 9.3.1."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

from ... import arrays
from ...core.arguments import as_int
from ...core.context import user_level
from ...core.errors import ModuleError
from ...core.tensor import Tensor
from ...core.typing import ArrayLike
from ..layers.convolution import Conv1d, Conv2d, Conv3d
from ..layers.dropout import Dropout
from ..layers.identity import Identity
from ..layers.linear import Linear
from ..layers.normalization import BatchNorm
from .containers import Sequential
from .module import Module

__all__ = ["MCPrediction", "kept_modes", "enable_dropout_only", "mc_predict", "weight_scaling", "warn_if_training"]


class MCPrediction(NamedTuple):
    """The mean and the standard deviation of several predictions."""

    mean: Tensor
    std: Tensor


@contextlib.contextmanager
def kept_modes(model: Module) -> Iterator[None]:
    """Every module in the model gets its `training` back at the end.

    >>> import wonderland as wl
    >>> model = wl.nn.Sequential(wl.nn.Dropout(0.5))
    >>> with wl.nn.kept_modes(model):
    ...     _ = model.eval()
    >>> model.training
    True
    """
    before = [(module, module.training) for module in model.modules()]
    try:
        yield
    finally:
        for module, training in before:
            if module.training != training:
                module.training = training


@contextlib.contextmanager
def enable_dropout_only(model: Module) -> Iterator[None]:
    """Dropout layers (and their relatives) train, all others are in `eval()`; the modes before come back at the end.

    >>> import wonderland as wl
    >>> model = wl.nn.Sequential(wl.nn.Dropout(0.5), wl.nn.BatchNorm1d(2))
    >>> with wl.nn.enable_dropout_only(model):
    ...     model[0].training, model[1].training
    (True, False)
    >>> model[1].training
    True

    So predictions are random, but batch normalization uses its running statistics and leaves them alone. Book,
    section 9.3.1.
    """
    with kept_modes(model):
        for module in model.eval().modules():
            if getattr(module, "_drops", False):
                module.training = True
        yield


def mc_predict(model: Module, x: ArrayLike, k: int = 10) -> MCPrediction:
    r"""Monte Carlo dropout: the mean and the standard deviation of k predictions with new masks. Book, section 9.3.1.

    >>> import wonderland as wl
    >>> model = wl.nn.Sequential(wl.nn.Linear(2, 8), wl.nn.ReLU(), wl.nn.Dropout(0.5), wl.nn.Linear(8, 1)).eval()
    >>> mean, std = wl.nn.mc_predict(model, wl.ones((4, 2)), k=20)
    >>> mean.shape, bool((std > 0).all()), model.training
    ((4, 1), True, False)

    The standard deviation, over k - 1, says how sure the model is; the mean itself has the error
    \(\mathrm{std}/\sqrt{k}\). See `enable_dropout_only`: no state but random streams changes.
    """
    k = as_int("mc_predict", "k", k, 2)
    if not any(getattr(module, "_drops", False) for module in model.modules()):
        raise ModuleError("mc_predict: the model has no dropout, so that all predictions agree.", "wl.nn.Dropout in it")
    with enable_dropout_only(model):
        members = arrays.stack([model(x) for _ in range(k)])
    return MCPrediction(arrays.mean(members, axis=0), arrays.std(members, axis=0, correction=1))


def weight_scaling(model: Module) -> Module:
    """A copy whose weights contain the factors of dropout that is not inverted: weights times the share kept.

    >>> import wonderland as wl
    >>> model = wl.nn.Sequential(wl.nn.Dropout(drop=0.25, inverted=False), wl.nn.Linear.from_matrix([[4.0]]))
    >>> scaled = wl.nn.weight_scaling(model)
    >>> scaled[0], scaled[1].weight
    (Identity(), parameter([[3.]]))

    Every `Dropout(inverted=False)` directly before a linear or convolutional layer in a `Sequential` is taken out. For
    a linear model this is the mean over all masks, for others an approximation. Inverted dropout needs none of it.
    Book, section 9.3.1.
    """
    model = model.copy()
    for module in model.modules():
        if isinstance(module, Sequential):
            for i, (layer, after) in enumerate(pairwise(module)):
                scaled = isinstance(layer, Dropout) and not layer.inverted
                if scaled and isinstance(after, (Linear, Conv1d, Conv2d, Conv3d)):
                    after.weight = after.weight * (1.0 - layer.p)
                    module[i] = Identity()
    return model


def warn_if_training(model: Module) -> list[str]:
    """Warn of layers that do something else while training, before a prediction; their paths.

    >>> import wonderland as wl
    >>> wl.nn.warn_if_training(wl.nn.Sequential(wl.nn.Linear(2, 2), wl.nn.Dropout(0.5)).eval())
    []

    Forgetting `model.eval()` makes predictions random (dropout), or dependent on the rest of the batch (batch
    normalization). Book, section 9.3.1.
    """
    found = [
        path
        for path, module in model.named_modules()
        if module.training and (getattr(module, "_drops", False) or isinstance(module, BatchNorm))
    ]
    if found:
        listed = ", ".join(repr(path) for path in found[:3])
        warnings.warn(
            f"prediction in training mode: {listed} of this {type(model).__name__} behave as in training. "
            "Call model.eval() first.",
            stacklevel=user_level(),
        )
    return found
