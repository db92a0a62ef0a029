"""The state of a module as a flat dict, and back. Book, section 1 (models are shared as weights)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from ... import arrays
from ...core.cell import Cell
from ...core.errors import ModuleError
from ...core.interpreter import assign
from ...core.tensor import Tensor, alias
from ...core.typing import ArrayLike
from .members import Stateful, cells


class Loaded(NamedTuple):
    """What a load that was not strict left out."""

    missing: list[str]
    unexpected: list[str]


def state_dict(module: Stateful) -> dict[str, Tensor]:
    """The values of the parameters and the persistent buffers; a shared one once, under its first path."""
    return {path: alias(cell.value) for path, cell in cells(module) if cell.persistent}


def load_state_dict(module: Stateful, values: Mapping[str, ArrayLike], strict: bool) -> Loaded:
    """Put values into the cells of the module: all of them, or none if one does not fit."""
    paths = dict(cells(module, again=True))
    wanted = {id(cell): path for path, cell in cells(module) if cell.persistent}
    unexpected = [path for path in values if path not in paths]
    problems = [f"{path}: the module has no such parameter or buffer" for path in unexpected if strict]
    chosen: dict[int, tuple[str, Cell, Tensor]] = {}
    for path, value in values.items():
        cell = paths.get(path)
        if cell is None:
            continue
        try:
            value = arrays.asarray(value, copy=True if isinstance(value, np.ndarray) else None)
        except Exception:
            problems.append(f"{path}: a {type(value).__name__} is not a tensor")
            continue
        if (value.shape, value.dtype) != (cell.shape, cell.dtype):
            problems.append(f"{path}: expected {_kind(cell)}, received {_kind(value)}")
        elif id(cell) in chosen and not _same(chosen[id(cell)][2], value):
            problems.append(f"{path}: is shared with {chosen[id(cell)][0]}, but their values differ")
        else:
            chosen.setdefault(id(cell), (path, cell, value))
    given = {id(paths[path]) for path in values if path in paths}
    missing = [path for cell, path in wanted.items() if cell not in given]
    if strict:
        problems += [f"{path}: is missing" for path in missing]
    if problems:
        listed = "".join(f"\n  - {problem}" for problem in problems)
        raise ModuleError(
            f"load_state_dict: the state does not fit {type(module).__name__}; nothing was changed.{listed}",
            "the state of a model with the same settings; strict=False to skip missing and unexpected names; "
            "model.astype(...) first for another dtype",
        )
    for _, cell, value in chosen.values():
        assign(cell, value)
    return Loaded(missing, unexpected)


def _kind(value: Tensor) -> str:
    return f"{value.dtype}{list(value.shape)}"


def _same(a: Tensor, b: Tensor) -> bool:
    return a is b or np.asarray(a).tobytes() == np.asarray(b).tobytes()
