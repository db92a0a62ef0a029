"""`export_stablehlo`: a compiled function as a file that XLA runs on machines that have no Wonderland."""

from __future__ import annotations

import importlib
import importlib.util
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

from ..core.errors import InputError
from ..core.primitive import Aval, aval_of
from ..core.typing import Array
from ..engines.choosing import require
from ..ir.sizes import Extent, at
from ..storage.atomic import write_atomically
from ..transforms.jit.jit import traced_as
from ..transforms.jit.sizes import Dynamic
from .all_sizes import for_all_sizes

PLATFORMS = ("cpu", "cuda", "rocm", "tpu")


class Exported(NamedTuple):
    """A function as StableHLO. Made by `wl.export_stablehlo`. A size that varies is written n, or 4n where it is there
    four times.
    """

    text: str  # StableHLO, as MLIR
    data: bytes  # the same with its types and platforms, as jax.export writes it
    platforms: tuple[str, ...]
    states: tuple[Array, ...]  # the first inputs: parameters and buffers as they were
    inputs: tuple[Aval, ...]  # of all inputs: the states, then the tensors of the arguments
    outputs: tuple[Aval, ...]  # behind the check: the results, then the new states
    least: int | None = None  # the smallest batch, if its size may vary

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a file: the text if its name ends in .mlir, else the bytes, which `jax.export.deserialize` reads."""
        whole = self.text.encode() if Path(path).suffix == ".mlir" else self.data
        write_atomically(path, whole)

    def call(self, *arrays: Array) -> list[Array]:
        """Run it here, on JAX's default device; without states, with those that it was exported with."""
        given = arrays if len(arrays) == len(self.inputs) else (*self.states, *arrays)
        self._check([aval_of(a) for a in given])
        xla = _xla()
        return list(xla.called(xla.restored(self.data), given))

    def _check(self, given: list[Aval]) -> None:
        n = next((rows for x, y in zip(self.inputs, given, strict=False) for rows in _rows(x, y)), 0)
        if [Aval(tuple(at(size, n) for size in x.shape), x.dtype) for x in self.inputs] != given:
            wanted, got = (", ".join(map(str, avals)) for avals in (self.inputs, given))
            raise InputError(f"export_stablehlo: arrays of {got}.", f"arrays of {wanted}")
        if self.least is not None and n < self.least:
            raise InputError(f"export_stablehlo: a batch of {n} rows.", f"{self.least} or more")


def _rows(x: Aval, y: Aval) -> Iterator[int]:
    """How many rows a batch has, from what it is given as."""
    for size, found in zip(x.shape, y.shape, strict=False):
        if isinstance(size, Extent):
            yield found // size.outer


def export_stablehlo(
    f: Callable[..., object],
    *args: object,
    platforms: Sequence[str] = ("cpu", "cuda", "tpu"),
    dynamic: Dynamic | None = None,
    **kwargs: object,
) -> Exported:
    """f for arguments like these as StableHLO, for platforms that need not be there.

    >>> import wonderland as wl
    >>> made = wl.export_stablehlo(lambda x: wl.tanh(x).sum(), wl.ones(3))  # doctest: +SKIP
    >>> made.save("f.mlir")  # doctest: +SKIP

    A function with state (a training step) takes the state as its first inputs and gives the new state behind its
    results. The first output is a check: 0, or the number of the operation that refused its arguments, such as an index
    out of range. Tensors that f refers to are constants of the program. Sizes are those of the arguments.

    `dynamic` names arguments with a batch in front, as for `wl.jit`; the program then takes batches of all sizes:

    >>> made = wl.export_stablehlo(wl.tanh, wl.ones((8, 3)), dynamic={"x": {0: "batch"}})  # doctest: +SKIP
    >>> made.call(np.ones((5, 3), np.float32))[1].shape  # doctest: +SKIP
    (5, 3)

    f is traced at eight sizes up to 4,099 and has to do the same at all of them; a single row is left out where it is a
    case of its own (`made.least` is 2 then). Numbers that come from the size, such as the 1/n of a mean, are computed
    in the program. Where no program serves all sizes, an error names the equation and the reason.
    """
    require("xla")
    if importlib.util.find_spec("flatbuffers") is None:
        raise InputError("export_stablehlo: it needs flatbuffers.", "pip install wonderland[xla]")
    for name in platforms:
        if name not in PLATFORMS:
            raise InputError(f"export_stablehlo: there is no platform {name!r}.", " or ".join(map(repr, PLATFORMS)))
    if not platforms:
        raise InputError("export_stablehlo: no platform is named.", 'platforms=["cpu", "cuda", "tpu"]')
    least = None
    if dynamic is None:
        traced, arguments = traced_as("export_stablehlo", f, args, kwargs)
        graph, ends = traced.graph, len(traced.graph.inputs)
        constants = [c._data for c in traced.captured]
        made = _xla().exported(graph, constants, platforms)
    else:
        found = for_all_sizes("export_stablehlo", f, args, kwargs, dynamic)
        traced, arguments, graph, least = found.traced, found.arguments, found.graph, found.least
        constants, ends = found.constants, len(graph.inputs) - len(found.formulas)
        made = _xla().exported_for_all(graph, constants, platforms, found.name, least, found.formulas)
    states = tuple(cell.value._data for cell in traced.pick_read(arguments.cells))
    inputs = tuple(v.aval for v in graph.inputs[len(constants) : ends])
    outputs = tuple(a.aval for a in graph.outputs)
    return Exported(made.mlir_module(), bytes(made.serialize()), tuple(platforms), states, inputs, outputs, least)


def _xla() -> ModuleType:
    return importlib.import_module("..engines.xla.export", __package__)  # with JAX, which few programs need
