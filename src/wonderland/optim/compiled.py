"""Steps of optimizers outside of `jit` as compiled programs, where there are many parameters; inside, traced once.

The program computes what `Optimizer.step` says, reads and writes the cells as any compiled function does (in place,
where nobody else holds the old values), and is kept or forgotten as theirs are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..core.context import current
from ..core.sightings import MANY
from ..core.tensor import Tensor
from ..engines.choosing import get_backend
from ..engines.engine import TABLE
from ..ir.stage import GraphTrace
from ..transforms.imperative import no_grad
from ..transforms.jit.jit import Jitted
from . import few_parameters

if TYPE_CHECKING:
    from .optimizer import Optimizer

_OURS = __package__.partition(".")[0] + "."


def _advance(optimizer: Optimizer, *gradients: Tensor | None) -> None:
    optimizer._advance(gradients)


_program = Jitted(_advance)


def advance(optimizer: Optimizer, gradients: Sequence[Tensor | None], grads: object) -> bool:
    """Take a step by a compiled program, if that pays. False: nothing was done.

    `grads` is what `step` was given, of which the gradients are those of all parameters in order.
    """
    state = current()
    traced = type(state.trace) is GraphTrace
    if not type(optimizer).__module__.startswith(_OURS) or not optimizer.__tree_steady__():
        return False  # code of the user's own, which may print or look at numbers
    if traced:
        _program.spliced(optimizer, *gradients)  # the same for batches of all sizes
        return True
    if state.trace is not None or not state.plain or get_backend() == "numpy":
        return False
    # by their size alone, not by how often they came: what is trained twice from one seed ends at the same numbers
    if sum([g.size for g in gradients if g is not None]) < MANY:
        near = not TABLE[get_backend()].distant  # state on devices stays there
        return near and few_parameters.advance(optimizer, gradients, grads, _program)
    with no_grad():
        _program(optimizer, *gradients)
    return True
