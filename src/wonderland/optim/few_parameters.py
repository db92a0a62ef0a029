"""Steps of optimizers of few parameters outside of `jit`, as programs that make new state of the old one.

To find out that nobody else holds so few numbers, so that they could be updated where they lie (compiled.py), takes
longer than to make new ones. They are compiled from a certain step of the optimizer on: what is trained twice from one
seed, or goes on from a checkpoint, ends at the same numbers, and what takes a few steps does not wait for a compiler.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Sequence
from operator import attrgetter
from typing import TYPE_CHECKING

from ..core.cell import Cell, rest
from ..core.context import exhaust
from ..core.handover import handing_over
from ..core.sightings import CALLS_OF_FEW
from ..core.tensor import Tensor
from ..core.typing import Array
from ..engines.repeated import Repeated
from ..ir.deriving import once
from ..ir.graph import Graph
from ..transforms.jit.constants import opened
from ..transforms.jit.jit import Jitted

if TYPE_CHECKING:
    from .optimizer import Optimizer

_data, _outside = attrgetter("_data"), attrgetter("_outside")


class Steps:
    """Steps of one optimizer with gradients for certain parameters."""

    def __init__(
        self, optimizer: Optimizer, gradients: Sequence[Tensor | None], grads: object, program: Jitted[..., None]
    ) -> None:
        """`grads` is what `step` was given, of which the gradients are those of all parameters in order."""
        self._parts = opened(optimizer)
        parameters = [p for group in optimizer.groups for p in group.params.values()]
        self._trainable = [p.trainable for p in parameters]
        pairs = [*zip(parameters, gradients, strict=True)]
        self._moved = [p for p, g in pairs if g is not None]
        self._left = [p for p, g in pairs if g is None and p.trainable]
        given = [g for g in gradients if g is not None]
        names = {id(g): name for name, g in grads.items()} if isinstance(grads, dict) else {}
        # those of the gradients in a dict; none, if they cannot be told
        self._names = [names[id(g)] for g in given] if len(given) == len(names) == len(grads) else []  # type: ignore[arg-type]
        traced, arguments = program.traced(optimizer, *gradients)
        self.possible = not traced.made_cells and len(arguments.operands) == len(given)
        self._constants = traced.captured
        self._read: Sequence[Cell] = traced.pick_read(arguments.cells)
        self._written: Sequence[Cell] = traced.pick_written(arguments.cells)
        self._run = once(traced.graph, "few", lambda: Repeated(_without_state(traced.graph)))

    def stands(self, optimizer: Optimizer) -> bool:
        """Whether the optimizer is as it was."""
        before, now = self._parts, opened(optimizer)
        if now is before:
            return True
        self._parts = now
        trainable = [p.trainable for group in optimizer.groups for p in group.params.values()]
        return now.kind is before.kind and now.identities == before.identities and trainable == self._trainable

    def gradients(self, grads: object) -> list[Tensor] | None:
        """The gradients in order, if there are such as before."""
        if grads is None:
            found: list[Tensor | None] = [p.grad for p in self._moved]
            if any(p.grad is not None for p in self._left):
                return None
        elif type(grads) is dict and len(grads) == len(self._names):
            found = [*map(grads.get, self._names)]
        else:
            return None
        tensors = [g for g in found if type(g) is Tensor]
        return tensors if len(tensors) == len(found) else None

    def enter(self, gradients: Sequence[Tensor]) -> bool:
        """Take a step if there is a function of C for it, under settings such as these. False: nothing was done."""
        if self._run.enter is None:
            return False
        outs = self._run.enter(*self._arrays(gradients))
        if outs is None:
            return False
        self._put(outs)
        return True

    def take(self, gradients: Sequence[Tensor]) -> None:
        """Take a step."""
        self._put(self._run(*self._arrays(gradients)))

    def _arrays(self, gradients: Sequence[Tensor]) -> list[Array]:
        rest.now = None  # we look at state, see core/cell.py
        return [*map(_data, (*self._constants, *map(_outside, self._read), *gradients))]

    def _put(self, values: Sequence[Tensor]) -> None:
        old = [*map(_outside, self._written)]
        exhaust(handing_over(self._written, values))
        rest.replaced(self._written, old)


def _without_state(graph: Graph) -> Graph:
    """The graph whose outputs are new values, and nobody's in place of old ones."""
    return Graph(graph.inputs, graph.equations, graph.outputs, graph.name)


_known: dict[int, tuple[weakref.ref[Optimizer], Steps]] = {}  # the last kind of step, by the optimizer's identity


def again(optimizer: Optimizer, grads: object) -> bool:
    """Take a step that is like the last one. False: it is not, or none is known, and nothing was done."""
    known = _known.get(id(optimizer))
    if known is None or known[0]() is not optimizer or not (due(optimizer) and known[1].stands(optimizer)):
        return False
    gradients = known[1].gradients(grads)
    return gradients is not None and known[1].enter(gradients)


def due(optimizer: Optimizer) -> bool:
    """Whether an optimizer has come to the steps that are compiled."""
    return int(optimizer.count._outside._data) >= CALLS_OF_FEW


def advance(
    optimizer: Optimizer, gradients: Sequence[Tensor | None], grads: object, program: Jitted[..., None]
) -> bool:
    """Take a step whose gradients are those of all parameters in order. False: this is not to be, nothing was done."""
    if optimizer.count.inside is not None or not due(optimizer):
        return False
    steps = Steps(optimizer, gradients, grads, program)
    if not steps.possible:
        return False
    steps.take([g for g in gradients if g is not None])
    # a function of C, as what Ctrl-C raises in one of ours would be lost: nobody has called it
    forget = functools.partial(_known.pop, id(optimizer))
    _known[id(optimizer)] = weakref.ref(optimizer, forget), steps
    return True
