"""The order of equations: sums over a whole tensor that need not wait for each other come together.

Between two contractions, equations are taken by how many sums over leading axes they wait for (the mean of a batch,
then its variance, ...). So all sums of one depth meet in one pass over their tensor.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...ir.graph import Equation, Var, has_effect
from .lowering import RULES


def ordered(equations: Sequence[Equation]) -> list[Equation]:
    """The equations in an order that keeps what depends on what."""
    result: list[Equation] = []
    stretch: list[Equation] = []
    for equation in equations:
        lowered = RULES.get(equation.primitive.name)
        if (lowered is not None and lowered.alone) or has_effect(equation):
            result += [*_by_depth(stretch), equation]
            stretch = []
        else:
            stretch.append(equation)
    return result + _by_depth(stretch)


def _by_depth(equations: list[Equation]) -> list[Equation]:
    depth: dict[Var, int] = {}
    found: list[tuple[int, Equation]] = []
    for equation in equations:
        own = max((depth.get(a, 0) for a in equation.inputs if isinstance(a, Var)), default=0)
        found.append((own, equation))
        after = own + _takes_a_pass(equation)
        if after:
            depth.update(dict.fromkeys(equation.outputs, after))
    if not depth:
        return equations
    return [equation for _, equation in sorted(found, key=lambda pair: pair[0])]


def _takes_a_pass(equation: Equation) -> bool:
    """Whether an equation reduces axes in front of one that it keeps."""
    lowered = RULES.get(equation.primitive.name)
    if lowered is None or not lowered.reduction:
        return False
    shape, axes = equation.inputs[0].shape, equation.params["axes"]
    kept = [i for i, n in enumerate(shape) if i not in axes and n > 1]
    return bool(kept) and any(a < kept[-1] and shape[a] > 1 for a in axes)
