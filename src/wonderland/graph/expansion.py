"""Formulas over primitives as graphs: what a composed primitive consists of, for compilers and for derivatives."""

from __future__ import annotations

import functools
from types import SimpleNamespace
from typing import Any

from .. import arrays
from ..dtypes import float64
from ..primitives.composed import NUMPY, Composed, rule_of
from ..primitives.creation import ones_like
from ..primitives.elementwise import astype
from ..primitives.primitive import Aval
from ..tensor import wrap
from ..transforms.forward import jvp
from .stage import Staged, stage

# The functions of formulas, on tensors.
TENSORS = SimpleNamespace(
    **{name: getattr(arrays, name) for name in vars(NUMPY) if not name.startswith("constant")},
    constant=wrap,
    constant_part=arrays.stop_gradient,
)


def expanded(primitive: Composed, *args: Any, **params: Any) -> Any:
    """The value as the formula makes it of other primitives."""
    found = primitive.formula(TENSORS, *[astype(a, dtype=float64) for a in args], **params)
    return astype(found, dtype=args[0].dtype)


def expansion(primitive: Composed, avals: tuple[Aval, ...], params: dict[str, Any]) -> Staged:
    """The formula as a graph, traced once for each type of arguments."""
    key = (avals, tuple(sorted(params.items())))
    if key not in primitive.graphs:
        f = functools.partial(expanded, primitive, **params)
        primitive.graphs[key] = stage(lambda *args: [f(*args)], list(avals), name=primitive.name, parent=None)
    return primitive.graphs[key]


def differentiate_formula(primitive: Composed, *arguments: int) -> None:
    """Take the derivative with respect to these arguments of the formula."""
    rules: Any = list(primitive.jvp)  # type: ignore[arg-type]  # a tuple of rules
    for i in arguments:
        rules[i] = rule_of(_through_formula(primitive, i))
    primitive.jvp = tuple(rules)


def _through_formula(primitive: Composed, argument: int) -> Any:
    """The factor of an argument whose derivative is taken of the formula."""

    def factor(out: Any, *args: Any, **params: Any) -> Any:
        def f(x: Any) -> Any:
            return expanded(primitive, *args[:argument], x, *args[argument + 1 :], **params)

        at = args[argument]
        return jvp(f, (at,), (ones_like(at),))[1]

    return factor
