"""From rules to layouts: along which axes of a mesh each tensor of a tree is split.

A placement has an entry for each axis of a tensor: the name of a mesh axis that it is split over, a tuple of names, or
None. Everything here is arithmetic on names and shapes; devices are asked for when values are placed.
"""

from __future__ import annotations

import difflib
import itertools
import math
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import NamedTuple, TypeAlias

from ..core.cell import Cell
from ..core.errors import InputError, ModuleError
from ..nn.module.lazy import Lazy
from ..nn.module.members import walk
from ..nn.module.module import Module
from .mesh import Mesh
from .roles import AXIS, heads_of, split_axes

Split: TypeAlias = str | tuple[str, ...] | None
Placement: TypeAlias = tuple[Split, ...]
Patterns: TypeAlias = Mapping[str, Sequence[Split]]
Rules: TypeAlias = "str | Patterns | tuple[str | Patterns, ...]"

READY = ("data", "full", "tensor")
SMALL = 4096  # bytes; to collect a tensor below this takes longer than its share of the memory is worth


class Placed(NamedTuple):
    """Where one tensor goes."""

    path: str
    cell: Cell
    placement: Placement
    refused: str = ""  # what could not be split, and why


@dataclass(frozen=True)
class Layout:
    """Where all tensors of a tree go. Made by `layout`."""

    mesh: Mesh
    placed: tuple[Placed, ...]

    def __getitem__(self, path: str) -> Placement:
        """The placement of the tensor with this path."""
        return next(p.placement for p in self.placed if p.path == path)

    @property
    def refused(self) -> tuple[Placed, ...]:
        """The tensors that are less split than the rules ask for."""
        return tuple(p for p in self.placed if p.refused)


def layout(tree: object, mesh: Mesh, rules: Rules, known: Mapping[int, Placement] | None = None) -> Layout:
    """The placement of every tensor in a module, an optimizer, or a tuple, list or dict of them.

    >>> import wonderland as wl
    >>> model = wl.models.MLP(64, [256], 16)
    >>> layout(model, wl.mesh(data=2, model=4), "tensor")["layers.0.weight"]
    (None, 'model')
    >>> layout(model, wl.mesh(data=8), {"*.weight": ("data",)})["layers.2.weight"]
    ('data', None)

    Rules are patterns of paths (the first that matches counts, what none matches stays whole), or the name of a ready
    rule, or a tuple of these, of which patterns come first:

    "data": every device has everything, and a part of each batch. "full": each tensor is split over all axes of
    the mesh along its largest axis that divides, and collected where it is used. "tensor": over the axis "model",
    weights by columns and rows in turn (see scale/roles.py); ("full", "tensor") splits over the other axes what
    "tensor" leaves.

    What optimizers remember of a parameter goes where the parameter is. `known` has placements of cells outside the
    tree, by id; they are not listed. Sizes that do not divide stay whole, and a warning tells which.
    """
    owners = list(_owners(tree))
    by_cell, patterns, ready = dict(known or {}), _patterns(mesh, rules), _ready(mesh, rules)
    if unknown := {name for _, given in patterns for split in given for name in names_of(split)} - set(mesh.axes):
        raise InputError(f"shard: {mesh} has no axis {min(unknown)!r}.", " or ".join(map(repr, mesh.axes)))
    placed: list[Placed] = []
    paths: list[str] = []  # within their modules, as patterns see them
    for prefix, owner in sorted(owners, key=lambda pair: _is_optimizer(pair[1])):  # after what they optimize
        optimizer = _is_optimizer(owner)
        columns, heads = ({}, {}) if optimizer else (split_axes(owner), heads_of(owner))
        follows = _followed(owner) if optimizer else {}
        for path, cell in _cells(owner):
            if id(cell) in by_cell:
                continue  # shared with another module, or a parameter that an optimizer knows
            if optimizer:
                if path.startswith("groups.") and ".params." in path:
                    raise InputError(
                        f"shard: the parameter {path.partition('.params.')[2]} of {type(owner).__name__} is in no "
                        "module of the tree.",
                        "the model with its optimizer: shard((model, optimizer), ...)",
                    )
                made = Placed(path, cell, _following(cell, follows.get(id(cell)), by_cell))
            else:
                paths.append(path)
                made = _place(path, cell, mesh, patterns, ready, columns.get(id(cell), -1), heads.get(id(cell), 0))
            by_cell[id(cell)] = made.placement
            placed.append(made._replace(path=prefix + made.path))
    _check_reached(patterns, paths)
    whole = Layout(mesh, tuple(placed))
    _warn(whole)
    return whole


# --- what there is


def _owners(tree: object, prefix: str = "") -> Iterator[tuple[str, Module]]:
    """The modules and optimizers of a tree, with the beginning of their paths."""
    if isinstance(tree, Module):
        yield prefix, tree
    elif isinstance(tree, Mapping):
        for name, part in tree.items():
            yield from _owners(part, f"{prefix}{name}.")
    elif isinstance(tree, (tuple, list)):
        for i, part in enumerate(tree):
            yield from _owners(part, f"{prefix}{i}.")
    else:
        raise InputError(
            f"shard: {type(tree).__name__} is neither a module nor an optimizer.", "a module, or (model, optimizer)"
        )


def cells_of(tree: object) -> Iterator[tuple[str, Cell]]:
    """The cells of a tree by path, each once."""
    seen: set[int] = set()
    for prefix, owner in sorted(_owners(tree), key=lambda pair: _is_optimizer(pair[1])):
        for path, cell in _cells(owner):
            if id(cell) not in seen:
                seen.add(id(cell))
                yield prefix + path, cell


def _is_optimizer(owner: Module) -> bool:
    groups = vars(owner).get("groups")
    return isinstance(groups, tuple) and all(hasattr(g, "params") and hasattr(g, "state") for g in groups)


def _cells(owner: Module) -> Iterator[tuple[str, Cell]]:
    """All cells by path; those of optimizers with the paths of their `state_dict`."""
    for path, member in walk(owner):
        if isinstance(member, Lazy):
            raise ModuleError(f"shard: {path} has no shape yet.", "call the model once, or give its sizes")
        if isinstance(member, Cell):
            yield (_shorter(path) if _is_optimizer(owner) else path), member


def _shorter(path: str) -> str:
    """`groups.0.state.mean.w` as `groups.0.mean.w`."""
    parts = path.split(".")
    return ".".join(parts[:2] + parts[3:]) if parts[0] == "groups" and parts[2] in ("state", "shared") else path


def _followed(optimizer: Module) -> dict[int, Cell]:
    """The parameter that a cell of an optimizer's belongs to, by the id of the cell."""
    return {
        id(cell): group.params[name]
        for group in vars(optimizer)["groups"]
        for kind in group.state.values()
        for name, cell in kind.items()
    }


def _following(cell: Cell, parameter: Cell | None, by_cell: Mapping[int, Placement]) -> Placement:
    """As the parameter, along axes of the same size: some rules keep rows and columns alone."""
    if parameter is None or parameter.ndim != cell.ndim:
        return (None,) * cell.ndim
    pairs = zip(cell.shape, parameter.shape, by_cell[id(parameter)], strict=True)
    return tuple(split if size == whole else None for size, whole, split in pairs)


# --- rules


def names_of(split: Split) -> tuple[str, ...]:
    """The mesh axes that one axis of a tensor is split over."""
    return () if split is None else (split,) if isinstance(split, str) else tuple(split)


def _listed(rules: Rules) -> tuple[str | Patterns, ...]:
    return rules if isinstance(rules, tuple) else (rules,)


def _ready(mesh: Mesh, rules: Rules) -> frozenset[str]:
    names = [rule for rule in _listed(rules) if not isinstance(rule, Mapping)]
    for name in names:
        if name not in READY:
            known = " or ".join(map(repr, READY))
            raise InputError(f"shard: there is no rule {name!r}.", f"{known}, or patterns: {{'*.weight': ('data',)}}")
    if "tensor" in names and AXIS not in mesh.axes:
        raise InputError(f'shard: "tensor" splits over an axis {AXIS!r}, and {mesh} has none.', "wl.mesh(model=...)")
    if not rules and not isinstance(rules, Mapping):
        raise InputError("shard: no rule is given.", "'data' or 'full' or 'tensor'")
    return frozenset(str(name) for name in names)


def _patterns(mesh: Mesh, rules: Rules) -> list[tuple[str, Placement]]:
    found: list[tuple[str, Placement]] = []
    for rule in _listed(rules):
        for pattern, given in rule.items() if isinstance(rule, Mapping) else ():
            if isinstance(given, str) or not isinstance(given, Sequence):
                raise InputError(f"shard: the rule {pattern!r} has {given!r}.", f"a tuple, such as ({mesh.axes[0]!r},)")
            names = [name for split in given for name in names_of(split)]
            if twice := [name for i, name in enumerate(names) if name in names[:i]]:
                raise InputError(
                    f"shard: the rule {pattern!r} uses the axis {twice[0]!r} twice: {tuple(given)}.",
                    "each axis of the mesh for one axis of a tensor",
                )
            found.append((pattern, tuple(given)))
    return found


def _check_reached(patterns: list[tuple[str, Placement]], paths: list[str]) -> None:
    """Every rule is the first for some path; a rule without an effect is a mistake."""
    if not paths:
        return
    first = {next((i for i, (p, _) in enumerate(patterns) if fnmatchcase(path, p)), None) for path in paths}
    for i, (pattern, _) in enumerate(patterns):
        if i in first:
            continue
        if any(fnmatchcase(path, pattern) for path in paths):
            raise InputError(f"shard: {pattern!r} is never reached, since rules before it match.", "put it first")
        near = difflib.get_close_matches(pattern, paths, 3, 0.3) or paths[:3]
        raise InputError(f"shard: the rule {pattern!r} matches no tensor.", "paths such as " + ", ".join(near))


# --- one tensor


def _place(
    path: str,
    cell: Cell,
    mesh: Mesh,
    patterns: list[tuple[str, Placement]],
    ready: frozenset[str],
    axis: int,
    heads: int,
) -> Placed:
    whole: Placement = (None,) * cell.ndim
    for pattern, given in patterns:
        if fnmatchcase(path, pattern):
            if len(given) > cell.ndim:
                raise InputError(
                    f"shard: the rule {pattern!r} has {len(given)} entries, and {path} of shape {cell.shape} has "
                    f"{cell.ndim} axes.",
                    "a pattern that matches fewer paths, or a shorter tuple",
                )
            return Placed(path, cell, *_divided(cell, (*given, *whole[len(given) :]), mesh))
    made = Placed(path, cell, whole)
    if "tensor" in ready and axis >= 0:
        wanted = (*whole[:axis], AXIS, *whole[axis + 1 :])
        parts = mesh.parts([AXIS])
        if heads % parts:
            made = Placed(path, cell, whole, f"{heads} heads over {mesh.described([AXIS])}")
        else:
            made = Placed(path, cell, *_divided(cell, wanted, mesh))
    if "full" in ready:
        free = [a for a in mesh.axes if a != AXIS or "tensor" not in ready]
        placement, refused = _spread(cell, made.placement, free, mesh)
        made = made._replace(placement=placement, refused="; ".join(filter(None, (made.refused, refused))))
    return made


def _divided(cell: Cell, wanted: Placement, mesh: Mesh) -> tuple[Placement, str]:
    """What was wanted where sizes divide, and what stays whole."""
    refused = []
    found = []
    for axis, (size, split) in enumerate(zip(cell.shape, wanted, strict=True)):
        names = names_of(split)
        divides = size % mesh.parts(names) == 0
        found.append(split if divides else None)
        if not divides:
            refused.append(f"axis {axis} of size {size} over {mesh.described(names)}")
    return tuple(found), "; ".join(refused)


def _spread(cell: Cell, placement: Placement, axes: list[str], mesh: Mesh) -> tuple[Placement, str]:
    """The tensor split further, over as many of these axes as can be, along the largest of its axes that divides."""
    axes = [a for a in axes if mesh.parts([a]) > 1]
    if not axes or cell.size * cell.dtype.itemsize < SMALL:
        return placement, ""
    most = [c for n in range(len(axes), 0, -1) for c in itertools.combinations(axes, n)]
    for names in sorted(most, key=lambda c: (-len(c), -mesh.parts(c))):
        for i in sorted(range(cell.ndim), key=lambda i: (placement[i] is not None, -cell.shape[i])):
            together = (*names_of(placement[i]), *names)
            if cell.shape[i] % mesh.parts(together) == 0:
                split = together if len(together) > 1 else together[0]
                refused = "" if len(names) == len(axes) else _no_axis(cell, axes, mesh)
                return (*placement[:i], split, *placement[i + 1 :]), refused
    return placement, _no_axis(cell, axes, mesh)


def _no_axis(cell: Cell, axes: list[str], mesh: Mesh) -> str:
    return f"no axis of {cell.shape} over {mesh.described(axes)}"


def _warn(made: Layout) -> None:
    """One warning for all that stays whole though a rule would split it."""
    if refused := made.refused:
        first = "; ".join(f"{p.path}: {p.refused}" for p in refused[:3])
        more = f" and {len(refused) - 3} more" if len(refused) > 3 else ""
        warnings.warn(f"shard: not split, for sizes do not divide: {first}{more}.", stacklevel=3)


def parts_of(placement: Placement, mesh: Mesh) -> int:
    """Into how many different parts a tensor is cut."""
    return math.prod(mesh.parts(names_of(split)) for split in placement)
