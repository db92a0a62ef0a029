"""`shardings`: a table of what lies where on a mesh, and what it takes on each device."""

from __future__ import annotations

from collections.abc import Iterator

from ..core.errors import InputError
from ..core.tensor import Distant
from .mesh import Mesh
from .rules import Layout, Placed, Placement, Rules, cells_of, layout, parts_of


class Shardings:
    """What each device of a mesh holds of a tree. Prints as a table; `layout` has the placements."""

    def __init__(self, found: Layout) -> None:
        self.layout = found

    @property
    def bytes(self) -> int:
        """On each device."""
        return sum(self.bytes_of(placed) for placed in self.layout.placed)

    @property
    def whole_bytes(self) -> int:
        """On each device if each had everything."""
        return sum(placed.cell.size * placed.cell.dtype.itemsize for placed in self.layout.placed)

    def bytes_of(self, placed: Placed) -> int:
        """Of one tensor, on each device."""
        return placed.cell.size * placed.cell.dtype.itemsize // parts_of(placed.placement, self.layout.mesh)

    def _rows(self) -> Iterator[tuple[str, ...]]:
        yield "path", "shape", "dtype", "placement", "bytes per device"
        for placed in self.layout.placed:
            shape = "x".join(map(str, placed.cell.shape)) or "scalar"
            yield placed.path, shape, str(placed.cell.dtype), described(placed.placement), f"{self.bytes_of(placed):,}"
        yield "total", "", "", "", f"{self.bytes:,}"
        yield "if each had all", "", "", "", f"{self.whole_bytes:,}"

    def __str__(self) -> str:
        rows = list(self._rows())
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = [str(self.layout.mesh)]
        for *texts, number in rows:
            cells = [text.ljust(width) for text, width in zip(texts, widths, strict=False)]
            lines.append("  ".join([*cells, number.rjust(widths[-1])]))
        lines += [f"not split: {placed.path}: {placed.refused}" for placed in self.layout.refused]
        return "\n".join(lines)

    __repr__ = __str__


def shardings(tree: object, rules: Rules | None = None, *, mesh: Mesh | None = None) -> Shardings:
    """What each device holds of a model, or of (model, optimizer): now, or by such rules on such a mesh.

    >>> import wonderland as wl
    >>> print(wl.shardings(wl.nn.Linear(64, 32), ("full", "tensor"), mesh=wl.mesh(data=2, model=4)))
    mesh(data=2, model=4)
    path             shape  dtype    placement    bytes per device
    weight           64x32  float32  data, model             1,024
    bias             32     float32  model                      32
    total                                                    1,056
    if each had all                                          8,320

    With a mesh nothing is placed, and its devices need not be there; rules, by default "data", are those of
    `wonderland.scale.rules.layout`. What they would split and sizes do not allow is listed below the table. Without a
    mesh it is read from the tensors where they are.
    """
    if mesh is not None:
        return Shardings(layout(tree, mesh, "data" if rules is None else rules))
    if rules is not None:
        raise InputError("shardings: rules without a mesh.", "shardings(model, rules, mesh=wl.mesh(data=8))")
    return Shardings(_found(tree))


def _found(tree: object) -> Layout:
    """Where tensors are."""
    grid: Mesh | None = None
    placed = []
    for path, cell in cells_of(tree):
        value = cell.value
        sharding = value.far.sharding if type(value) is Distant and value.far is not None else None
        spec = getattr(sharding, "spec", None)
        if sharding is None or spec is None:  # on one device, or on the host
            placed.append(Placed(path, cell, (None,) * cell.ndim, f"it is on {value.device}, and not on the mesh"))
            continue
        grid = grid or Mesh(*map(tuple, zip(*sharding.mesh.shape.items(), strict=True)))
        placed.append(Placed(path, cell, (*spec, *[None] * (cell.ndim - len(spec)))))
    if grid is None:
        raise InputError("shardings: nothing of it is on a mesh.", "shardings(model, rules, mesh=wl.mesh(data=8))")
    return Layout(grid, tuple(placed))


def described(placement: Placement) -> str:
    """`data, model`, with `-` for an axis that stays whole and `data+model` for one that both split."""
    if not any(placement):
        return "whole"
    return ", ".join("-" if s is None else s if isinstance(s, str) else "+".join(s) for s in placement)
