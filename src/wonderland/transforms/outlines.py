"""Programs for the outlines of recordings, see pulling.py."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from ..core.context import uncollected
from ..core.forking import open_after_fork
from ..core.primitive import Aval
from ..core.settings import as_recorded
from ..core.tensor import Tensor, wrap
from ..core.typing import Array, Tangents
from ..engines.choosing import get_backend
from ..engines.repeated import Repeated
from ..ir.deriving import pure
from ..ir.graph import Equation, carried
from ..primitives.layout import part_of

if TYPE_CHECKING:
    from .pulling import Kind, Linear, Slot, Whole

KEPT = 64  # programs, those that were used last
Steps: TypeAlias = "tuple[Whole | Linear, ...]"
Key: TypeAlias = "tuple[Steps, tuple[Kind, ...], tuple[Slot, ...], tuple[Slot, ...]]"
# pulls adjoints back through steps that were applied to given numbers
Pull: TypeAlias = "Callable[[Steps, dict[int, Tensor], dict[Slot, Tensor]], dict[Slot, Tensor]]"


class Program:
    """The backward pass of all recordings with one outline. Call it with their numbers."""

    def __init__(self, key: Key, pull: Pull) -> None:
        steps, kinds, first, last = key
        numbers = {i: wrap(np.array(kind[2], kind[1])) for i, kind in enumerate(kinds) if len(kind) == 3}
        parts = {i: (kind[2], kind[3]) for i, kind in enumerate(kinds) if len(kind) == 4}
        self._inputs = [i for i in range(len(kinds)) if i not in numbers and i not in parts]

        def f(*args: Tensor) -> list[Tensor]:
            values = {**numbers, **dict(zip(self._inputs, args, strict=True))}
            values |= {i: part_of(values[whole], part) for i, (part, whole) in parts.items()}
            seeds = [values[i] for i in range(len(kinds) - len(first), len(kinds))]
            adjoints = pull(steps, values, dict(zip(first, seeds, strict=True)))
            found = [adjoints.get(slot) for slot in last]
            self._given = [ct is not None for ct in found]
            return [ct for ct in found if ct is not None]

        with as_recorded():
            self._run = Repeated(pure(f, [Aval(*kinds[i][:2]) for i in self._inputs], "backward"))
        self._whole, self._full = len(self._inputs) == len(kinds), all(self._given)

    def __call__(self, arrays: Sequence[Array]) -> Tangents:
        return self.entered(arrays) or self._adjoints(self._run(*[arrays[i] for i in self._inputs]))

    def entered(self, arrays: Sequence[Array]) -> Tangents | None:
        """The adjoints by a function of C; None if there is none for such arrays and settings."""
        enter = self._run.enter
        if enter is None:
            return None
        outs = enter(*arrays) if self._whole else enter(*[arrays[i] for i in self._inputs])
        return None if outs is None else self._adjoints(outs)

    def _adjoints(self, outs: Sequence[Tensor]) -> Tangents:
        if self._full:
            return [*outs]
        made = iter(outs)
        return [next(made) if on else None for on in self._given]


# By the hashes of their outlines, with these; None: one that is not to be compiled.
_programs: dict[int, tuple[Key, Program | None]] = {}
_NOTHING = 0, (None, None)
_lock = open_after_fork(threading.Lock())


def again(number: int, key: Key, arrays: Sequence[Array]) -> Tangents | None:
    """The adjoints by the program that was used last, if that is for this outline, and nothing is to be prepared."""
    with _lock:
        last, (known, made) = next(reversed(_programs.items()), _NOTHING)
    return made.entered(arrays) if last == number and made is not None and known == key else None


def program(number: int, key: Key, pull: Pull) -> Program | None:
    """The program for an outline with this hash, made when it is first asked for; None if there is to be none."""
    if get_backend() == "numpy":
        return None
    with _lock:
        known = _programs.pop(number, None)
        if known is not None and known[0] == key:
            _programs[number] = known  # again at the end
            return known[1]
    made = uncollected(Program, key, pull) if all(map(_is_ours, key[0])) else None
    with _lock:
        _programs[number] = key, made
        if len(_programs) > KEPT:
            del _programs[next(iter(_programs))]
    return made


def _is_ours(step: Whole | Linear) -> bool:
    """Whether transposing an operation calls no function of the user's, which may print or look at numbers."""
    primitive, params = step[:2]
    if primitive.foreign or primitive.effect:
        return False
    return primitive.linearize is None or any(True for _ in carried(Equation(primitive, [], dict(params), [])))
