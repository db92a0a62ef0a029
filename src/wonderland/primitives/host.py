"""Python functions inside a program: to look at values as they are computed, and to compute some of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np

from ..core.dtypes import bool_
from ..core.errors import InputError
from ..core.primitive import ZERO, Aval, Primitive
from ..core.tensor import Tensor
from ..core.typing import Array
from .structure import broadcast_to

HostFunction: TypeAlias = Callable[..., Sequence[Array] | None]  # of arrays that it may keep


class Hosted:
    """A Python function as a parameter, known by identity; what it may keep are copies."""

    __slots__ = ("function", "name")

    def __init__(self, function: HostFunction, name: str) -> None:
        self.function, self.name = function, name

    def __call__(self, *data: Array) -> Sequence[Array] | None:
        return self.function(*[np.array(d) for d in data])  # compiled programs write over their memory

    def __repr__(self) -> str:
        return f"<{self.name}>"


def _observe(*data: Array, function: Hosted) -> Array:
    function(*data)
    return np.zeros((), bool)


def _observe_many(args: list[Tensor], batched: list[bool], function: Hosted) -> Tensor:
    size = next(arg.shape[0] for arg, is_batched in zip(args, batched, strict=True) if is_batched)

    def one_by_one(*data: Array) -> None:
        for i in range(size):
            function(*[d[i] if is_batched else d for d, is_batched in zip(data, batched, strict=True)])

    done = observe(*args, function=Hosted(one_by_one, function.name))
    return broadcast_to(done, shape=(size,))


# The result says that it was done; nobody reads it. That there is one lets all that goes through graphs treat it as
# any other equation.
observe: Primitive = Primitive(
    "observe",
    _observe,
    lambda *args, function: Aval((), bool_),
    jvp=(ZERO,),
    batch=_observe_many,
    foreign=True,
    effect=True,
)


def _hosted(*data: Array, function: Hosted, avals: tuple[Aval, ...]) -> list[Array]:
    made = [np.asarray(value) for value in function(*data) or ()]
    found = [Aval(value.shape, value.dtype) for value in made]
    if found != list(avals):
        raise InputError(
            f"pure_callback: {function.name} gave {', '.join(map(str, found)) or 'nothing'} instead of "
            f"{', '.join(map(str, avals))}.",
            "a function whose results have the shapes and dtypes that were said",
        )
    return made


def _hosted_many(
    args: list[Tensor], batched: list[bool], function: Hosted, avals: tuple[Aval, ...]
) -> Sequence[Tensor]:
    size = next(arg.shape[0] for arg, is_batched in zip(args, batched, strict=True) if is_batched)

    def one_by_one(*data: Array) -> list[Array]:
        rows = [
            _hosted(
                *[d[i] if is_batched else d for d, is_batched in zip(data, batched, strict=True)],
                function=function,
                avals=avals,
            )
            for i in range(size)
        ]
        return [np.stack(column) for column in zip(*rows, strict=True)]

    many = tuple(Aval((size, *aval.shape), aval.dtype) for aval in avals)
    return host_call(*args, function=Hosted(one_by_one, function.name), avals=many)


host_call: Primitive = Primitive(
    "pure_callback",
    _hosted,
    lambda *args, function, avals: list(avals),
    jvp=(None,),  # Python code has no derivative that we know
    batch=_hosted_many,
    multiple=True,
    foreign=True,
)
