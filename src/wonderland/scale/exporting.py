"""`export_stablehlo`: a compiled function as a file that XLA runs on machines that have no Wonderland."""

from __future__ import annotations

import importlib
import importlib.util
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

from ..core.errors import InputError
from ..core.primitive import Aval, aval_of
from ..core.typing import Array
from ..engines.choosing import require
from ..storage.atomic import write_atomically
from ..transforms.jit.jit import traced_as

PLATFORMS = ("cpu", "cuda", "rocm", "tpu")


class Exported(NamedTuple):
    """A function as StableHLO. Made by `wl.export_stablehlo`."""

    text: str  # StableHLO, as MLIR
    data: bytes  # the same with its types and platforms, as jax.export writes it
    platforms: tuple[str, ...]
    states: tuple[Array, ...]  # the first inputs: parameters and buffers as they were
    inputs: tuple[Aval, ...]  # of all inputs: the states, then the tensors of the arguments
    outputs: tuple[Aval, ...]  # behind the check: the results, then the new states

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a file: the text if its name ends in .mlir, else the bytes, which `jax.export.deserialize` reads."""
        whole = self.text.encode() if Path(path).suffix == ".mlir" else self.data
        write_atomically(path, whole)

    def call(self, *arrays: Array) -> list[Array]:
        """Run it here, on JAX's default device; without states, with those that it was exported with."""
        given = arrays if len(arrays) == len(self.inputs) else (*self.states, *arrays)
        if [aval_of(a) for a in given] != list(self.inputs):
            wanted, got = (", ".join(map(str, avals)) for avals in (self.inputs, map(aval_of, given)))
            raise InputError(f"export_stablehlo: arrays of {got}.", f"arrays of {wanted}")
        xla = _xla()
        return list(xla.called(xla.restored(self.data), given))


def export_stablehlo(
    f: Callable[..., object], *args: object, platforms: Sequence[str] = ("cpu", "cuda", "tpu"), **kwargs: object
) -> Exported:
    """f for arguments like these as StableHLO, for platforms that need not be there.

    >>> import wonderland as wl
    >>> made = wl.export_stablehlo(lambda x: wl.tanh(x).sum(), wl.ones(3))  # doctest: +SKIP
    >>> made.save("f.mlir")  # doctest: +SKIP

    A function with state (a training step) takes the state as its first inputs and gives the new state behind its
    results. The first output is a check: 0, or the number of the operation that refused its arguments, such as an index
    out of range. Tensors that f refers to are constants of the program. Sizes are those of the arguments.
    """
    require("xla")
    if importlib.util.find_spec("flatbuffers") is None:
        raise InputError("export_stablehlo: it needs flatbuffers.", "pip install wonderland[xla]")
    for name in platforms:
        if name not in PLATFORMS:
            raise InputError(f"export_stablehlo: there is no platform {name!r}.", " or ".join(map(repr, PLATFORMS)))
    if not platforms:
        raise InputError("export_stablehlo: no platform is named.", 'platforms=["cpu", "cuda", "tpu"]')
    traced, arguments = traced_as("export_stablehlo", f, args, kwargs)
    constants = [c._data for c in traced.captured]
    states = tuple(cell.value._data for cell in traced.pick_read(arguments.cells))
    made = _xla().exported(traced.graph, constants, platforms)
    inputs = tuple(v.aval for v in traced.graph.inputs[len(constants) :])
    outputs = tuple(a.aval for a in traced.graph.outputs)
    return Exported(made.mlir_module(), bytes(made.serialize()), tuple(platforms), states, inputs, outputs)


def _xla() -> ModuleType:
    return importlib.import_module("..engines.xla.export", __package__)  # with JAX, which few programs need
