"""What a function costs and what its derivative keeps, without running it. Book, 2.1.2, 6.2, 6.3."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ..core.interpreter import Tangent
from ..core.primitive import aval_of
from ..ir.cost import Cost, cost_of
from ..transforms.inputs import Inputs
from ..transforms.jit.jit import make_graph
from ..transforms.reverse import Recording, recorded


def count(f: Callable[..., object], *args: object, **kwargs: object) -> Cost:
    """What `f(*args)` costs. Arguments may be `wl.ShapeDtype`; nothing is computed.

    >>> import wonderland as wl
    >>> cost = wl.count(lambda x, y: x @ y, wl.ShapeDtype((2, 3), wl.float32), wl.ShapeDtype((3, 5), wl.float32))
    >>> cost.multiply_adds, cost.bytes
    (30, 124)

    `wl.count(wl.grad(f), x)` counts the forward and the backward pass together.
    """
    return cost_of(make_graph(f)(*args, **kwargs))


@dataclass
class Saved:
    """The values that a forward pass keeps for its backward pass."""

    entries: list[tuple[str, tuple[int, ...], int]]  # the linear operation that needs it, shape, bytes

    @property
    def bytes(self) -> int:
        return sum(size for _, _, size in self.entries)

    def __str__(self) -> str:
        lines = [f"{name:<16} {shape!s:<20} {size:>12,}" for name, shape, size in self.entries]
        return "\n".join([*lines, f"{'total':<37} {self.bytes:>12,}"])


def saved(f: Callable[..., object], *args: object) -> Saved:
    """What reverse mode keeps of f between forward and backward pass: each value once, the arguments not counted.

    >>> import wonderland as wl
    >>> wl.saved(lambda x: wl.sin(wl.sin(x)).sum(), wl.ones(4)).bytes  # two cosines of 4 float32 numbers
    32
    """
    recording = Recording("saved", f, Inputs("saved", args), {}, False)
    given = {id(v) for v in recording.inputs.values}
    found: dict[int, tuple[str, tuple[int, ...], int]] = {}
    for node in recorded(recording.out_tangents).values():
        for arg in node.args:
            if type(arg) is not Tangent and id(arg) not in given:
                owner = arg._data if arg._data.base is None else arg._data.base
                found[id(owner)] = (node.primitive.name, arg.shape, aval_of(arg).nbytes)
    return Saved(sorted(found.values(), key=lambda entry: -entry[2]))
