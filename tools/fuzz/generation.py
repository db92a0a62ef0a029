"""Program number n of a seed: the same on any machine, whoever computes it."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from wonderland.core.dtypes import as_dtype
from wonderland.core.primitive import Aval
from wonderland.ir.stage import stage

from .case import Case
from .statements import STATEMENTS
from .transformed import KINDS
from .writer import UnsuitableError, Writer, random_inputs

_NAMES = list(STATEMENTS)
_WEIGHTS = np.array([weight for _, weight in STATEMENTS.values()])
# how often each transformation is asked for
_KINDS = {
    "value": 9,
    "grad": 3,
    "value and grad": 1.5,
    "jvp": 1.2,
    "vmap": 1.2,
    "vmap of grad": 0.6,
    "grad of grad": 0.6,
    "adjoint": 1,
    "state": 1.2,
}
assert set(_KINDS) == set(KINDS)


def random_case(seed: int, number: int, statements: Sequence[str] = (), kind: str | None = None) -> Case:
    """A random program, of some statements only if they are named. `RefusedError`: it cannot be traced, but should."""
    pick = np.random.default_rng([seed, number])
    inputs = random_inputs(pick)
    avals = [Aval(a.shape, as_dtype(a.dtype)) for a in (i.array() for i in inputs)]
    made: list[Case] = []

    def write(*tracers: Any) -> list[Any]:
        writer = Writer(pick, list(zip(inputs, tracers, strict=True)))
        wanted = len(statements) or int(pick.choice([1, 1, 2, 2, 3, 4, 5, 7]))
        written: list[str] = []
        for _ in range(3 * wanted):
            name = statements[len(written)] if statements else str(pick.choice(_NAMES, p=_WEIGHTS / _WEIGHTS.sum()))
            try:
                STATEMENTS[name][0](writer)
            except UnsuitableError:
                continue
            written.append(writer.lines[-1].name)
            if len(written) == wanted:
                break
        results = written[-1:] + [name for name in written[:-1] if pick.random() < 0.25]
        made.append(writer.case(results or [inputs[0].name]).alive())
        return []

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of means of nothing and the like
        stage(write, avals)
    names, weights = list(_KINDS), np.array(list(_KINDS.values()))
    return replace(made[0], kind=kind or str(pick.choice(names, p=weights / weights.sum())))
