"""When all equations are scheduled: stores that nobody reads are dropped, kernels become native steps, and what is the
same in every turn of a loop moves in front of it."""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Sequence
from typing import Any

from ...ir.graph import Equation
from .contractions import Contraction
from .kernels.kernel import Item, Kernel, Reduce
from .steps import Control, Fallback, Label, Loop, Step
from .values import Buffer, leaves


def finished(steps: list[Any], origins: dict[int, list[Equation]]) -> list[Step]:
    """The native steps of closed kernels and contractions. `origins` tells which equation a step comes from."""
    read: set[Buffer] = set()
    done: list[Sequence[Any]] = []
    for step in reversed(steps):  # who reads a buffer comes after who writes it
        made: Sequence[Any] = [step]
        if isinstance(step, Contraction):
            step.stores = [(view, value) for view, value in step.stores if _wanted(view.buffer, read)]
            made = step.close() if step.stores else []
            read.update(v.buffer for v in step.operands if made)
            inside = [v for _, value in step.stores for v in leaves(value)]
            read.update(v.buffer for v in inside if v.buffer is not step.target.buffer)
        elif isinstance(step, Kernel):
            step.items = _needed(step, read)
            made = step.close() if step.items else []
            read.update(step.reads)
        else:
            read.update(step.reads)
        origins.update((id(m), origins[id(step)]) for m in made if id(step) in origins)
        done.append(made)
    return [step for made in reversed(done) for step in made]


def _wanted(buffer: Buffer, read: set[Buffer]) -> bool:
    return buffer.kind in ("output", "moving", "carry") or buffer in read


def _needed(kernel: Kernel, read: set[Buffer]) -> list[Item]:
    """Items without those that nobody reads; reductions that only the kernel itself reads stay, silently."""
    kept: list[Item] = []
    used: set[Buffer] = set()
    for item in reversed(kernel.items):
        mine = isinstance(item, Reduce) and item.target.buffer in used
        if mine or _wanted(item.target.buffer, read):
            kept.append(item)
            used.update(v.buffer for v in leaves(item.value))
            if mine and not _wanted(item.target.buffer, read):
                kernel.silent.add(item.target.buffer)
    return kept[::-1]


def hoist(steps: list[Step], loops: list[Loop]) -> None:
    """Move what loops do in every turn with the same result in front of them: a weight is packed once."""
    position = {id(step): i for i, step in enumerate(steps)}
    for loop in loops:  # inner ones come first, and leave the borders of those around them where they are
        if loop.repeats:
            _hoist(steps, position[id(loop.begin)], position[id(loop.end)])


def _hoist(steps: list[Step], begin: int, end: int) -> None:
    inside = steps[begin:end]
    written = Tally(b for step in inside for b in step.writes)
    written.update([b.base for b in written if b.base is not None])  # a sequence, one step after the other
    before = ("input", "constant", "arena")
    fixed = {b for step in inside for b in step.reads if b not in written and b.kind in before}
    moved: list[Step] = []
    kept: list[Step] = []
    for step in inside:
        routine = not isinstance(step, (Control, Fallback, Label))
        alone = all(b.kind == "arena" and written[b] == 1 for b in step.writes)
        if routine and alone and all(b in fixed or b in step.writes for b in step.reads):
            moved.append(step)
            fixed.update(step.writes)
        else:
            kept.append(step)
    steps[begin:end] = moved + kept
