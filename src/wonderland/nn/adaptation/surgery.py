"""Modules in a model replaced by others, and parameters made one. Notes, sections 8 and 8.5."""

from __future__ import annotations

import fnmatch
from collections.abc import Hashable, Iterable, Mapping
from typing import TypeVar

from ...core.arguments import shown
from ...core.cell import Cell
from ...core.context import note_structure_change
from ...core.errors import ModuleError, ShapeError
from ..module.containers import Layer
from ..module.members import cells
from ..module.module import Module
from ..module.parameter import Parameter

__all__ = ["replace_submodule", "tie"]

M = TypeVar("M", bound=Module)


def is_place(path: str, places: str | Iterable[str]) -> bool:
    """Whether a path is, or matches, one of the patterns.

    >>> is_place("blocks.3.attention", "blocks.*.attention"), is_place("head", ["body", "head"])
    (True, True)
    """
    patterns = [places] if isinstance(places, str) else list(places)
    return any(fnmatch.fnmatchcase(path, pattern) for pattern in patterns)


def replace_submodule(model: Module, path: str, module: Layer | Cell) -> None:
    """Put another module (or parameter) at a path such as `blocks.3.attention`, in place.

    >>> import wonderland as wl
    >>> model = wl.nn.Sequential(wl.nn.Linear(2, 3), wl.nn.ReLU())
    >>> wl.nn.replace_submodule(model, "1", wl.nn.Tanh())
    >>> model[1]
    Tanh()
    """
    *steps, last = path.split(".")
    owner: object = model
    for step in steps:
        owner = _inside(model, path, owner, step)
    _inside(model, path, owner, last)
    if isinstance(owner, Module):
        setattr(owner, last, module)
    elif isinstance(owner, list):
        owner[int(last)] = module
    elif isinstance(owner, dict):
        owner[_key(owner, last)] = module
    else:
        raise ModuleError(
            f"replace_submodule: {path!r} is in a {type(owner).__name__}, which cannot be changed.", "a list"
        )
    note_structure_change()


def tie(model: M, source: str, *targets: str) -> M:
    """Make one parameter of several: those at the target paths become the one at the source path.

    >>> import wonderland as wl
    >>> model = wl.nn.Sequential(wl.nn.Linear(3, 3), wl.nn.Linear(3, 3))
    >>> wl.nn.tie(model, "0.weight", "1.weight").num_parameters()
    15

    It is listed once and saved once, and its gradients add up. Notes, section 8.
    """
    found = dict(cells(model, again=True))
    for path in (source, *targets):
        if not isinstance(found.get(path), Parameter):
            raise ModuleError(
                f"tie: this {type(model).__name__} has no parameter {path!r}.",
                "a path such as " + ", ".join(repr(p) for p, _ in model.named_parameters()[:3]),
            )
        if (found[path].shape, found[path].dtype) != (found[source].shape, found[source].dtype):
            raise ShapeError(
                f"tie: {path!r} is {found[path].dtype}{list(found[path].shape)}, "
                f"{source!r} is {found[source].dtype}{list(found[source].shape)}.",
                "parameters of one shape and dtype",
            )
    for path in targets:
        replace_submodule(model, path, found[source])
    return model


def _inside(model: Module, path: str, owner: object, step: str) -> object:
    """What is in a module, list or dict under a name."""
    if isinstance(owner, Module) and step in vars(owner):
        return vars(owner)[step]
    if isinstance(owner, (list, tuple)) and step.isdigit() and int(step) < len(owner):
        return owner[int(step)]
    if isinstance(owner, dict) and any(str(key) == step for key in owner):
        return owner[_key(owner, step)]
    raise ModuleError(
        f"replace_submodule: this {type(model).__name__} has nothing at {shown(path)}.",
        "a path as model.named_modules() gives it",
    )


def _key(owner: Mapping[Hashable, object], step: str) -> Hashable:
    return next(key for key in owner if str(key) == step)
