"""What `explain` says of a function on the engine "xla": what XLA compiled, its memory, and what devices send."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from types import ModuleType
from typing import TYPE_CHECKING, NoReturn

from ..core.errors import InputError
from ..core.primitive import Aval
from ..core.tensor import Tensor
from ..engines.choosing import device_name, require
from ..ir.graph import Graph
from .explanation import Explanation
from .transfers import Transfers, transfers

if TYPE_CHECKING:
    from ..engines.xla.inspection import Compiled


class OnXLA(Explanation):
    """A function as XLA compiled it. Prints its instructions, memory and collectives.

    XLA has no steps of ours: `.text` is its program, `.transfers` what devices send. What tells of native code
    (`.steps`, `.llvm`, `.arena_bytes` and so on) is not there.
    """

    def __init__(self, name: str, made: Compiled, why: str) -> None:
        self.name, self.made, self.text = name, made, made.text
        self._why = why
        self.transfers: Transfers = transfers(name, made)
        self.instructions: dict[str, int] = dict(_xla("collectives").instructions(made.text).most_common())

    def __getattr__(self, name: str) -> NoReturn:
        raise AttributeError(f'{name!r} tells of native code, and this is XLA\'s: see .text, or use "native"')

    @property
    def summary(self) -> str:
        devices, made = self.made.devices, self.made
        where = devices[0] if len(devices) == 1 else f"{len(devices)} devices, {devices[0]} to {devices[-1]}"
        each = "" if len(devices) == 1 else " on each"
        return f"by XLA on {where}; {made.operations:,.0f} operations, {made.accessed:,.0f} bytes{each} by its count"

    @property
    def bytes(self) -> int:
        """The bytes that instructions read and write on each device, by XLA's count."""
        return int(self.made.accessed)

    def __str__(self) -> str:
        made = self.made
        kinds = ", ".join(kind if n == 1 else f"{kind} ({n} times)" for kind, n in self.instructions.items())
        lines = [f"{self.name}: {self.summary}", f"instructions: {kinds or 'none'}"]
        each = "memory" if len(made.devices) == 1 else "memory of each device"
        lines.append(
            f"{each}: {made.arguments:,} bytes of arguments, {made.results:,} of results, "
            f"of which {made.reused:,} take the place of arguments, {made.temporary:,} of intermediate values"
        )
        if self.transfers.listed:
            lines += ["between devices:", *[f"  {line}" for line in str(self.transfers).splitlines()[1:]]]
        elif len(made.devices) > 1:
            lines.append("between devices: nothing")
        return "\n".join(lines)

    __repr__ = __str__


def on_xla(name: str, graph: Graph, operands: Sequence[Tensor | Aval] | None, why: str) -> OnXLA:
    """What XLA makes of a graph for operands that are where these are; without any, what ran last."""
    require("xla")
    inspection = _xla("inspection")
    made = inspection.last(graph) if operands is None else inspection.compiled(graph, operands, device_name())
    if made is None:
        raise InputError(f"explain: {name} has not run on devices.", "the arguments: wl.explain(f, *args)")
    return OnXLA(name, made, why)


def _xla(name: str) -> ModuleType:
    return importlib.import_module(f"..engines.xla.{name}", __package__)  # with JAX, which few programs need
