"""Formulas over primitives as graphs: what a composed primitive consists of, for compilers."""

from __future__ import annotations

import functools
from types import SimpleNamespace

from .. import arrays
from ..core.dtypes import float64
from ..core.primitive import Aval
from ..core.tensor import Tensor, wrap
from ..primitives.composed import NUMPY, Composed
from ..primitives.elementwise import astype
from .stage import Staged, stage

# The functions of formulas, on tensors.
TENSORS = SimpleNamespace(
    **{name: getattr(arrays, name) for name in vars(NUMPY) if not name.startswith("constant")},
    constant=wrap,
    constant_part=arrays.stop_gradient,
)


def expanded(primitive: Composed, *args: Tensor, **params: object) -> Tensor:
    """The value as the formula makes it of other primitives."""
    found = primitive.formula(TENSORS, *[astype(a, dtype=float64) for a in args], **params)
    return astype(found, dtype=args[0].dtype)


def expansion(primitive: Composed, avals: tuple[Aval, ...], params: dict[str, object]) -> Staged:
    """The formula as a graph, traced once for each type of arguments."""
    key = (avals, tuple(sorted(params.items())))
    if key not in primitive.graphs:
        f = functools.partial(expanded, primitive, **params)
        primitive.graphs[key] = stage(lambda *args: [f(*args)], list(avals), name=primitive.name, parent=None)
    return primitive.graphs[key]
