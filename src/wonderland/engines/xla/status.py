"""What a program refuses: index errors and their like, which compiled code notes and Python raises after the call.

A program has one status, which goes through it with its values, into loops and out of them: the number of the first
check that failed (0: none), and what it failed on, an integer and a floating number. Every check has a message.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from ...core.errors import WonderlandError
from ...ir.graph import Equation
from ..numpy.evaluate import located

Message = Callable[[int], WonderlandError]  # from what was refused to the error


class Status(NamedTuple):
    """The first check that failed."""

    check: jax.Array  # its number, 0 if none did
    word: jax.Array  # what it failed on, if that is an integer
    number: jax.Array  # and if it is not


def nothing() -> Status:
    return Status(jnp.zeros((), jnp.int32), jnp.zeros((), jnp.int64), jnp.zeros((), jnp.float64))


class Check(NamedTuple):
    """One place of a program that may refuse values."""

    equation: Equation
    dtype: np.dtype[np.generic]  # of what is refused
    message: Message


class Checks:
    """All checks of a program, and its status so far."""

    def __init__(self) -> None:
        self.known: list[Check] = []
        self.status = nothing()

    def add(self, equation: Equation, bad: jax.Array, values: jax.Array, message: Message) -> None:
        """Refuse the first of the values that is `bad`; the two have one shape."""
        if not bad.size:
            return
        self.known.append(Check(equation, np.dtype(values.dtype), message))
        flat = bad.ravel()
        first = values.ravel()[jnp.argmax(flat)]
        whole = jnp.issubdtype(values.dtype, jnp.integer)
        found = Status(
            jnp.asarray(len(self.known), jnp.int32),
            first.astype(jnp.int64) if whole else jnp.zeros((), jnp.int64),
            jnp.zeros((), jnp.float64) if whole else first.astype(jnp.float64),
        )
        fails = (self.status.check == 0) & flat.any()
        self.status = Status(*[lax.select(fails, new, old) for new, old in zip(found, self.status, strict=True)])

    def raise_(self, status: Status) -> None:
        """Raise the error of a program that has run, if it refused something."""
        number = int(status.check)
        if number:
            equation, dtype, message = self.known[number - 1]
            word = np.asarray(status.word if dtype.kind in "iu" else status.number).astype(dtype)
            raise located(equation, message(word.reshape(1)[0]))
