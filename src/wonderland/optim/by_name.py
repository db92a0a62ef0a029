"""Optimizers by name, as in `fit(..., optimizer="adamw")` and in the settings of a run."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from ..core.naming import look_up
from ..nn.attention.absolute_positions import LearnedPositions
from ..nn.layers.embedding import Embedding
from ..nn.module.module import Module
from .adadelta import Adadelta
from .adafactor import Adafactor
from .adagrad import Adagrad
from .adam import Adam, AdamW
from .adam_relatives import Adamax, NAdam, RAdam
from .asgd import ASGD
from .lamb import LAMB
from .lion import Lion
from .momentum import Nesterov
from .muon import Muon
from .optimizer import Optimizer
from .rmsprop import RMSprop
from .rprop import Rprop
from .sgd import SGD


def muon(model: Module, lr: float = 1e-3, weight_decay: float = 0.1) -> Muon:
    """Muon for the matrices of layers; AdamW for vectors, and for tables, whose rows are vectors of their own."""
    tables = {
        id(p) for part in model.modules() if isinstance(part, (Embedding, LearnedPositions)) for p in part.parameters()
    }
    named = list(model.named_parameters())
    groups = [
        {"params": [(path, p) for path, p in named if (id(p) in tables) != of_layers], "use_muon": of_layers}
        for of_layers in (True, False)
    ]
    return Muon([group for group in groups if group["params"]], lr, weight_decay=weight_decay)


# Each takes a model, a learning rate and a weight decay, and has defaults for the last two.
OPTIMIZERS: dict[str, Callable[..., Optimizer]] = {
    "sgd": SGD,
    "momentum": partial(SGD, momentum=0.9),
    "nesterov": Nesterov,
    "rmsprop": RMSprop,
    "adagrad": Adagrad,
    "adam": Adam,
    "adamw": AdamW,
    "nadam": NAdam,
    "radam": RAdam,
    "adamax": Adamax,
    "lion": Lion,
    "muon": muon,
    "adafactor": Adafactor,
    "lamb": LAMB,
    "asgd": ASGD,
}
# By name in Python alone: they find their own step sizes, and weight decay does little or nothing in them.
_MORE: dict[str, Callable[..., Optimizer]] = {"adadelta": Adadelta, "rprop": Rprop}
_ELSEWHERE = {
    "lbfgs": "wl.optim.minimize(loss, model), which runs L-BFGS on all data at once; or 'adam'",
    "ftrl": "'adagrad', which it came from",
    "adam_w": "'adamw'",
    "rms_prop": "'rmsprop'",
}


def optimizer_named(name: str, model: Any, lr: float | None = None) -> Optimizer:
    """The optimizer of a name for the parameters of a model, with the rate `lr` or its own default.

    >>> import wonderland as wl
    >>> model = wl.nn.Linear(2, 3)
    >>> type(optimizer_named("adamw", model)).__name__, float(optimizer_named("sgd", model, lr=0.5).lr)
    ('AdamW', 0.5)
    """
    make = look_up("optimizer", name, {**OPTIMIZERS, **_MORE}, _ELSEWHERE)
    return make(model) if lr is None else make(model, lr=lr)
