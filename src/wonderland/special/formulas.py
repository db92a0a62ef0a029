"""Derivatives of composed primitives that are taken of their formulas."""

from __future__ import annotations

from ..core.primitive import Derivative
from ..core.tensor import Tensor
from ..ir.expansion import expanded
from ..primitives.composed import Composed, rule_of
from ..primitives.creation import ones_like
from ..transforms.forward import jvp


def differentiate_formula(primitive: Composed, *arguments: int) -> None:
    """Take the derivative with respect to these arguments of the formula."""
    rules: list[Derivative] = list(primitive.jvp)  # type: ignore[arg-type]  # a tuple of rules
    for i in arguments:
        rules[i] = rule_of(_through_formula(primitive, i))
    primitive.jvp = tuple(rules)


def _through_formula(primitive: Composed, argument: int) -> Derivative:
    """The factor of an argument whose derivative is taken of the formula."""

    def factor(out: Tensor, *args: Tensor, **params: object) -> Tensor:
        def f(x: Tensor) -> Tensor:
            return expanded(primitive, *args[:argument], x, *args[argument + 1 :], **params)

        at = args[argument]
        return jvp(f, (at,), (ones_like(at),))[1]

    return factor
