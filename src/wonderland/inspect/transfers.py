"""`collectives`: what a compiled function sends between the devices of a mesh."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from types import MethodType, ModuleType
from typing import TYPE_CHECKING

from ..engines.choosing import device_name, require
from ..transforms.jit.jit import Jitted, jit

if TYPE_CHECKING:
    from ..engines.xla.collectives import Collective
    from ..engines.xla.inspection import Compiled


class Transfers:
    """What a program sends. Prints as a table; `listed` has the records, `text` what XLA compiled."""

    def __init__(self, name: str, listed: list[Collective], flops: float, text: str) -> None:
        self.name, self.listed, self.flops, self.text = name, listed, flops, text

    @property
    def sent(self) -> int:
        """The bytes that each device sends, if those of a group stand in a ring."""
        return sum(c.sent for c in self.listed)

    def __str__(self) -> str:
        rows = [("", "bytes", "devices", "times", "sent", "for")]
        for c in sorted(self.listed, key=lambda c: -c.sent):
            times = str(c.times) if c.certain else f"{c.times}?"
            rows.append((c.kind, f"{c.bytes:,}", str(c.group), times, f"{c.sent:,}", ", ".join(c.modules)))
        rows.append(("total", "", "", "", f"{self.sent:,}", ""))
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = [
            f"{self.name}: {len(self.listed)} collectives, {self.flops:,.0f} operations on each device by XLA's count"
        ]
        for first, *numbers, last in rows:
            cells = [n.rjust(width) for n, width in zip(numbers, widths[1:-1], strict=True)]
            lines.append("  ".join([first.ljust(widths[0]), *cells, last]).rstrip())
        return "\n".join(lines)

    __repr__ = __str__


def collectives(f: Callable[..., object], *args: object, **kwargs: object) -> Transfers:
    """What XLA's program for `f(*args)` sends between devices, with the modules that it is for.

    >>> import wonderland as wl
    >>> print(wl.collectives(step, model, optimizer, x, y))  # doctest: +SKIP
    step: 1 collectives, 307,462 operations on each device by XLA's count
                 bytes  devices  times     sent  for
    all-reduce  99,460        8      1  174,055  sum, layers.0, layers.2
    total                               174,055

    These are the gradients of an MLP with 24,864 parameters on `wl.mesh(data=8)`, and its loss, in one message.
    "bytes" are those of one device: of the sum, or of what has been collected. "times" counts turns of loops, with a
    question mark where their number is not known (they count once) and for branches. "sent" is what each device sends
    if those that take part stand in a ring. f is compiled for tensors where the arguments are (`wl.shard`), and not
    called; `wl.ShapeDtype` stands for a tensor that does not exist.
    """
    require("xla")
    jitted = f.__func__ if isinstance(f, MethodType) else f
    if isinstance(f, MethodType) and isinstance(jitted, Jitted):
        args = (f.__self__, *args)
    elif not isinstance(jitted, Jitted):
        jitted = jit(f)
    traced, arguments = jitted._find(args, kwargs)[:2]
    operands = [*traced.captured, *[c.value for c in traced.pick_read(arguments.cells)], *arguments.operands]
    made = _xla("inspection").compiled(traced.graph, operands, device_name())
    return transfers(jitted._name, made)


def transfers(name: str, made: Compiled) -> Transfers:
    """What a compiled program sends."""
    return Transfers(name, _xla("collectives").collectives(made.text), made.operations, made.text)


def _xla(name: str) -> ModuleType:
    return importlib.import_module(f"..engines.xla.{name}", __package__)  # with JAX, which few programs need
