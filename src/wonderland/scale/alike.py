"""Whether two graphs mean the same, by example.

They are computed in double precision, in which rounding is no excuse: in single precision a gradient that is 0 but for
rounding becomes a step of an optimizer that divides by its size.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..core.dtypes import DType, is_complex, is_floating
from ..core.errors import WonderlandError
from ..core.primitive import Aval
from ..core.typing import Array
from ..engines.numpy.evaluate import evaluate
from ..ir.graph import Atom, Equation, Graph, Literal, Var

CLOSE = 1e-6  # relative to the largest element


def alike(one: Graph, ones: Sequence[Array], other: Graph, others: Sequence[Array]) -> bool:
    """Whether graphs give the same for these arrays, of which both are a function."""
    try:
        found, wanted = (evaluate(_wide(g), [*map(_widened, xs)]) for g, xs in ((one, ones), (other, others)))
    except WonderlandError:  # one of them refuses them
        return False
    return len(found) == len(wanted) and all(map(_close, found, wanted))


def _close(x: Array, y: Array) -> bool:
    if x.shape != y.shape or x.dtype != y.dtype:
        return False
    if x.dtype.kind not in "fc":
        return np.array_equal(x, y)
    size = np.max(np.abs(y), initial=0, where=np.isfinite(y))
    return np.allclose(x, y, rtol=CLOSE, atol=CLOSE * size, equal_nan=True)


def _double(dtype: DType) -> DType:
    if is_floating(dtype):
        return np.dtype(np.float64)
    return np.dtype(np.complex128) if is_complex(dtype) else dtype


def _widened(x: Array) -> Array:
    return np.asarray(x).astype(_double(x.dtype), copy=False)


def _wide(graph: Graph) -> Graph:
    """The graph in double precision."""
    names: dict[Var, Var] = {}

    def of(given: list[Var]) -> list[Var]:
        for x in given:
            names[x] = Var(Aval(x.shape, _double(x.dtype)))
        return [names[x] for x in given]

    def atom(x: Atom) -> Atom:
        return Literal(_widened(x.data)) if isinstance(x, Literal) else names[x]

    def param(x: object) -> object:
        return _double(x) if isinstance(x, np.dtype) else x

    inputs = of(graph.inputs)
    equations = [
        Equation(
            e.primitive, [atom(x) for x in e.inputs], {key: param(v) for key, v in e.params.items()}, of(e.outputs)
        )
        for e in graph.equations
    ]
    return Graph(inputs, equations, [atom(x) for x in graph.outputs], graph.name)
