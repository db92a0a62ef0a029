"""What an engine is, and which ones there are.

An engine makes a program of a graph. Programs of all engines take the same arguments and keep the same promises:

- **results** agree with `numpy/evaluate.py`, which is the meaning, for every dtype; docs/compiler.md says how closely;
- **errors** are ours, and tell where the equation was traced; an error leaves all arrays as they were;
- **state**: a result may be written to the memory of the input that it replaces (`Graph.states`) only if that input is
  `owned`. From the first such write on nothing fails, and `deliver` hands over all new state even if Ctrl-C comes;
- **threads**: a program may be called from several at a time. How many work on it does not change a bit of a result;
- **devices**: programs take arrays of the host and give such. Those of an engine that is `distant` also have `stay`,
  which takes and gives arrays on devices;
- **dtypes**: all of them. What an engine cannot do by itself it leaves to NumPy, equation by equation.

An engine is a folder here with an `ENGINE`, and a row of the table below; it is loaded when it first runs something.
`tests/engines/test_engine.py` holds every row to the promises.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import os
from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple, Protocol, cast

from ..core.handover import Delivery
from ..core.tensor import Distant, Far, Tensor
from ..core.typing import Array
from ..ir.graph import Graph

Split = str | tuple[str, ...] | None  # the axes of a mesh over which an axis of an array is split


class Program(Protocol):
    """A graph that can be run."""

    def __call__(self, arrays: list[Array], owned: Collection[int], deliver: Delivery | None) -> list[Array]:
        """The arrays of the outputs, from those of the inputs; those at the places `owned` are the caller's alone.

        `deliver(outputs, given)` puts new state in place; `given` tells which inputs outputs took the memory of.
        """


class Engine(Protocol):
    """Makes programs."""

    def program(self, graph: Graph) -> Program:
        """The program of a graph. It stays in `graph.programs`, by the engine's name, as long as the engine likes."""


class Rows(Protocol):
    """What carries a row of bytes from each process to all, see distributed/group.py."""

    def gather(self, row: Array) -> Array: ...


class Processes(Protocol):
    """Processes that are to compute together on all their devices."""

    rank: int
    size: int

    @property
    def transport(self) -> Rows: ...


class Place(Protocol):
    """Where a program of an engine that has devices runs. How a value lies there is a matter of the engine's."""

    whole: object  # how values lie that are not split

    @property
    def spans(self) -> bool:
        """Whether some of its devices belong to other processes."""

    @property
    def share(self) -> tuple[int, int, int]:
        """(i, n, parts): this process needs part i of n of the rows of a batch, or all if `parts` does not divide."""

    def has(self, value: Far) -> bool:
        """Whether a value is there."""

    def split(self, value: Tensor) -> object:
        """How a batch is to lie there."""

    def like(self, value: Tensor, others: Iterable[Tensor]) -> object:
        """How state is to lie that comes there, beside other state."""


class Distantly(Program, Protocol):
    """A program whose results may stay where they are."""

    overwrites: bool  # whether it takes the memory of state for the new one

    def stay(self, arrays: Sequence[Far], deliver: Delivery | None, where: Place) -> Sequence[Tensor]:
        """The outputs as tensors on devices, and new state put in place."""


class WithDevices(Engine, Protocol):
    """An engine that keeps values on devices."""

    def devices(self) -> list[str]:
        """Their names."""

    def check_device(self, device: str) -> None:
        """Raise if there is none of that name."""

    def placement(self, operands: Sequence[Tensor], device: str | None) -> Place:
        """Where a program runs that takes these tensors, if a device was chosen or not."""

    def over_mesh(self, axes: Sequence[str], sizes: Sequence[int], split: Sequence[Split]) -> object:
        """How an array lies whose axes are split over axes of a mesh."""

    def everywhere(self) -> int:
        """How many devices the largest mesh has."""

    def check_unused(self) -> None:
        """Raise if it is too late for other processes to join this one."""

    def join(self, group: Processes, address: str, place_on_machine: int | None) -> None:
        """Become one of several processes whose devices make meshes together. All of them call it."""

    def assembled(self, x: Tensor, first: int, count: int, where: Place) -> Distant:
        """A batch of `count` rows on a mesh, of which this process has some, from number `first` on."""

    def brought(self, x: Tensor, where: object) -> Distant:
        """A copy of a value that lies like this."""

    def moved(self, x: Tensor, device: str) -> Distant:
        """A copy of a value on a device."""


class Row(NamedTuple):
    """An engine that can be chosen by name."""

    folder: str
    package: str | None = None  # that has to be installed
    extra: str | None = None  # of ours that brings it
    posix: bool = False  # whether it needs the threads of POSIX
    distant: bool = False  # whether it keeps values on devices, see `Distant`

    @property
    def missing(self) -> str | None:
        """What keeps it from running here."""
        if self.package is not None and importlib.util.find_spec(self.package) is None:
            return f"it needs {self.package}" + (f" (pip install wonderland[{self.extra}])" if self.extra else "")
        if self.posix and os.name != "posix":
            return "it runs on Linux and macOS"
        return None


TABLE = {
    "numpy": Row("numpy"),
    "native": Row("native", package="llvmlite", posix=True),
    "xla": Row("xla", package="jax", extra="xla", distant=True),
}


def far_engine(name: str) -> WithDevices | None:
    """The engine of that name if it keeps values on devices, else None."""
    return cast(WithDevices, engine(name)) if TABLE[name].distant else None


@functools.cache
def engine(name: str) -> Engine:
    """The engine of that name."""
    found: Engine = importlib.import_module(f".{TABLE[name].folder}.engine", __package__).ENGINE
    return found
