"""The steps of a program in the order in which they run, where each comes from, and what is checked on the way."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ...core.errors import WonderlandError
from ...ir.graph import Equation
from .contractions import Contraction
from .finishing import finished, hoist
from .kernels.kernel import Kernel
from .steps import Loop, Step
from .values import Buffer, View

Error = Callable[[int, int], WonderlandError]  # from the word that was noted, and the mark
Check = tuple[Equation, Error]


class Emission:
    """The first part of a schedule: steps are appended, and finished when all are there."""

    def __init__(self) -> None:
        self.steps: list[Step] = []
        self.loops: list[Loop] = []
        self.status = Buffer("status", 0, np.dtype(np.int64))
        self.begun = Buffer("word", 1, np.dtype(np.int64))  # whether state is being overwritten
        self.checks: list[Check] = []  # what may be found wrong while the program runs; two words of status each
        self.origins: dict[int, list[Equation]] = {}  # the equations that a step was made for, by its id
        self._equation: Equation | None = None  # the one that is being scheduled

    def emit(self, *steps: Step | Kernel | Contraction) -> None:
        """The next steps. Kernels and contractions become native steps when all is known."""
        self.steps.extend(steps)  # type: ignore[arg-type]  # see `finish`

    def enclose(self, loop: Loop) -> None:
        """The extent of a loop whose begin and end are among the steps."""
        self.loops.append(loop)

    def check(self, equation: Equation, error: Error) -> View:
        """Where routines note what they find wrong: a mark, not 0, and a word; `error(word, mark)` is made of them."""
        self.checks.append((equation, error))
        return View(self.status, (2,), (1,), 2 * len(self.checks) - 2)

    def made_for(self, equation: Equation | None) -> None:
        """The steps that follow come from this equation."""
        self._equation = equation

    def note(self, step: Kernel | Contraction) -> None:
        """The equation that is being scheduled adds to a step."""
        noted = self.origins.setdefault(id(step), [])
        if self._equation is not None:
            noted.append(self._equation)

    def finish(self) -> None:
        """Closed kernels and contractions become native steps."""
        self.steps = finished(self.steps, self.origins)
        hoist(self.steps, self.loops)
        self.status.size = 2 * len(self.checks)
