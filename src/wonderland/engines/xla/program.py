"""A graph as a program of XLA: compiled by JAX, called with arrays, checked afterwards.

JAX's settings belong to its user. So 64 bits and exact products are asked for by its context managers, wherever
something is traced or called.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import chain, repeat, starmap
from typing import cast

import jax
import numpy as np
from jax.sharding import Sharding

from ...core.context import exhaust
from ...core.errors import InputError
from ...core.handover import Delivery
from ...core.tensor import Distant, new
from ...core.typing import Array
from ...ir.graph import Graph
from .lowering import Lowering
from .placement import Placement
from .status import Status

Outputs = tuple[Status, list[jax.Array]]
# On processors the older of XLA's two code generators, which compiles most programs many times as fast.
OPTIONS = {"xla_cpu_use_fusion_emitters": False}


@contextlib.contextmanager
def exact() -> Iterator[None]:
    """All types are what they are, and products of float32 have its precision."""
    with jax.enable_x64(True), jax.default_matmul_precision("highest"):
        yield


class Program:
    """A compiled graph. JAX compiles it when it is first called, once for each kind of placement.

    State that stays on its device is donated: new state takes its memory. So the state has to be put in place by the
    call itself, in which no other Python code runs, and where something is refused the new state is the old one.
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.lowering: Lowering  # of the last trace; all are alike
        self._function: Callable[..., Outputs] = jax.jit(self._traced, compiler_options=OPTIONS)
        self._compiled: dict[tuple[Sharding, ...], jax.stages.Compiled] = {}
        with exact():  # what cannot be lowered is known now
            self._function.trace(*[jax.ShapeDtypeStruct(v.shape, v.dtype) for v in graph.inputs])

    def _traced(self, *arrays: jax.Array) -> Outputs:
        self.lowering = lowering = Lowering()
        outs = lowering.graph(self.graph, arrays)
        return lowering.checks.status, outs

    def _kept(self, *arrays: jax.Array) -> list[jax.Array]:
        """The status and the outputs, with the old state if something was refused."""
        status, outs = self._traced(*arrays)
        if self.lowering.checks.known:
            for new, old in self.graph.states.items():
                outs[new] = jax.lax.select(status.check == 0, outs[new], arrays[old])
        return [*status, *outs]

    def __call__(self, arrays: list[Array], owned: Collection[int], deliver: Delivery | None) -> list[Array]:
        with exact(), self._what_python_raised():
            status, outs = self._function(*arrays)
            found = [np.asarray(o) for o in outs]
        if self.lowering.checks.known:
            self.lowering.checks.raise_(status)
        if deliver is not None:
            exhaust(deliver(found, {}))
        return found

    # --- values that stay on the device

    @property
    def overwrites(self) -> bool:
        """Whether it may take the memory of its state: not if Python may raise, or if an error leaves no old value."""
        lowering, states = self.lowering, self.graph.states
        complete = len(states) == len(self.graph.outputs) - self.graph.results
        return bool(states) and not lowering.calls_python and (complete or not lowering.checks.known)

    def stay(self, arrays: list[jax.Array], deliver: Delivery | None, where: Placement) -> list[Distant]:
        """The outputs, on the devices of the inputs. Those at the places of states are overwritten if it `overwrites`.

        `deliver` is given tensors.
        """
        fresh = [new(Distant) for _ in range(3 + len(self.graph.outputs))]  # of the status, and the outputs
        exhaust(map(setattr, fresh, repeat("_node"), repeat(None)))
        outs = fresh[3:]
        delivery = deliver(outs, {}) if deliver is not None else ()  # type: ignore[arg-type]  # see handover.py
        with exact(), self._what_python_raised():
            filled = map(
                setattr, fresh, repeat("far"), chain.from_iterable(starmap(self.made(arrays, where), [arrays]))
            )
            if self.overwrites:
                exhaust(chain(filled, delivery))  # one call into C: Ctrl-C comes before or after it
                self._check(fresh)
                return outs
            exhaust(filled)
            if self.lowering.calls_python:
                jax.block_until_ready([out.far for out in fresh])
        self._check(fresh)
        exhaust(delivery)
        return outs

    def _check(self, fresh: list[Distant]) -> None:
        if self.lowering.checks.known:
            self.lowering.checks.raise_(Status(*[cast(jax.Array, one.far) for one in fresh[:3]]))

    def made(self, arrays: Sequence[jax.Array | jax.ShapeDtypeStruct], where: Placement) -> jax.stages.Compiled:
        """The function for arrays that are placed like these: new state is placed as the old one was."""
        key = tuple(a.sharding for a in arrays)
        made = self._compiled.get(key)
        if made is None:
            if where.spans and self.lowering.calls_python:
                raise InputError(
                    f"{self.graph.name}: a program on the devices of several processes calls Python functions, such as "
                    "wl.debug.print, wl.pure_callback or the sums of wl.distributed.",
                    "leave them out: on a mesh over all processes a loss is that of the whole batch, and XLA adds up",
                )
            states = self.graph.states
            whole = [
                arrays[states[i]].sharding if i in states else self._follows(i, arrays, where)
                for i in range(len(self.graph.outputs))
            ]
            function = jax.jit(
                self._kept,
                donate_argnums=tuple(states.values()) if self.overwrites else (),
                out_shardings=[*[where.whole] * 3, *whole],
                compiler_options=OPTIONS,
            )
            made = self._compiled[key] = function.lower(*arrays).compile()  # so that calls need no Python
        return made

    @property
    def last(self) -> tuple[jax.stages.Compiled, Sharding] | None:
        """What was compiled last for values on devices, and where one of them lies."""
        return next(((made, key[0]) for key, made in reversed(self._compiled.items()) if key), None)

    def _follows(self, output: int, arrays: Sequence[jax.Array | jax.ShapeDtypeStruct], where: Placement) -> Sharding:
        """Where an output goes that is no new value of an input: made state lies as the state of its shape does."""
        shape = self.graph.outputs[output].shape
        if output >= self.graph.results and shape:
            for place in range(self.graph.constants, self.graph.constants + self.graph.cells):
                if arrays[place].shape == shape:
                    return arrays[place].sharding
        return where.whole

    @contextlib.contextmanager
    def _what_python_raised(self) -> Iterator[None]:
        """Errors of functions of the user's that the program called are theirs."""
        try:
            yield
        except jax.errors.JaxRuntimeError as error:
            raised, self.lowering.raised = self.lowering.raised, []
            if raised:
                raise raised[0] from error
            raise
