"""Forward mode: the value of a function together with its derivative along a direction. Book, section 6.2."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple, overload

from ..core import trees
from ..core.context import current
from ..core.errors import GradientError
from ..core.tangents import JVPTrace, JVPTracer
from ..core.tensor import Tensor, alias
from ..core.typing import Tangents
from ..primitives.creation import zeros_like
from .inputs import Inputs, check_function, lower, output_leaves, split_aux
from .signatures import Aux, Result


@overload
def jvp(
    f: Callable[..., Result], primals: Sequence[object], tangents: Sequence[object], *, has_aux: Literal[False] = False
) -> tuple[Result, Result]: ...
@overload
def jvp(
    f: Callable[..., tuple[Result, Aux]],
    primals: Sequence[object],
    tangents: Sequence[object],
    *,
    has_aux: Literal[True],
) -> tuple[Result, Result, Aux]: ...
def jvp(
    f: Callable[..., object], primals: Sequence[object], tangents: Sequence[object], *, has_aux: bool = False
) -> tuple[Any, ...]:
    r"""The value of f and its derivative along a direction: \(f(x)\) and \(J_f(x)\,t\).

    >>> import wonderland as wl
    >>> value, tangent = wl.jvp(lambda x: x**2, (wl.tensor(3.0),), (wl.tensor(1.0),))
    >>> print(value, tangent)
    tensor(9.) tensor(6.)

    `primals` and `tangents` are tuples of trees of one structure, one entry per argument of f. With `has_aux`, f
    returns a pair whose second entry is passed through. Book, section 6.4.1 (footnote 3) and E.2.20.
    """
    check_function("jvp", f)
    if not isinstance(primals, (tuple, list)) or not isinstance(tangents, (tuple, list)):
        raise GradientError(
            "jvp: the values and tangents are given as tuples, one entry per argument.", "wl.jvp(f, (x,), (t,))"
        )
    inputs = Inputs("jvp", tuple(primals))
    found = call_with_tangents("jvp", f, inputs, inputs.matching(tuple(tangents)), {}, has_aux)
    value = trees.unflatten(found.structure, [alias(v) for v in found.values])
    tangent = trees.unflatten(found.structure, found.filled_tangents())
    return (value, tangent, found.aux) if has_aux else (value, tangent)


class Outcome(NamedTuple):
    """What a function gave: the leaves of its value, their tangents (None: zero), and what else it returned."""

    values: list[Tensor]
    tangents: Tangents
    structure: trees.Structure
    aux: Any

    def filled_tangents(self) -> list[Tensor]:
        """The tangents, with zeros where there are none."""
        return [zeros_like(v) if t is None else alias(t) for v, t in zip(self.values, self.tangents, strict=True)]


def call_with_tangents(
    name: str,
    f: Callable[..., object],
    inputs: Inputs,
    tangents: Sequence[Tensor],
    kwargs: dict[str, object],
    has_aux: bool,
    later: bool = False,
) -> Outcome:
    """Run f with a tangent for every leaf of its inputs: a number, or one that records itself."""
    trace = JVPTrace(current().trace, later)
    tracers = [JVPTracer(trace, v, t) for v, t in zip(inputs.values, tangents, strict=True)]
    out = inputs.call(trace, f, tracers, kwargs)
    aux = None
    if has_aux:
        out, aux = split_aux(name, out)
        aux = lower(trace, aux)
    leaves, structure = output_leaves(name, out)
    pairs = [trace.split(leaf) for leaf in leaves]
    return Outcome([p for p, _ in pairs], [t for _, t in pairs], structure, aux)
