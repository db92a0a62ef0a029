"""Sums over the steps of a loop that one operation after the loop gives.

What every step reads has an adjoint to which every step adds. For a weight the part of a step is a matrix product: of
what met the weight, and of the adjoint that came back. All these products together are one product of the sequences,
which is faster than many small ones, and more exact; the loop hands the sequences out instead of adding up. Most of
them are there anyway: what met a weight was kept for this, and what came back is the adjoint of a gate's input.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from ...core.tensor import Tensor
from ...ir.graph import Atom, Equation, Graph, Var
from ...ir.simplify import remove_dead
from ...primitives.contraction import matmul
from ...primitives.elementwise import add
from ...primitives.structure import reshape, sum_, transpose

VIEWS = (reshape, transpose)


class Operand(NamedTuple):
    """What a step computes of one of its values by reshapes and transposes."""

    root: Var
    views: tuple[Equation, ...]

    def of_all(self, sequence: Tensor) -> Tensor:
        """The same of the values of all steps, which the first axis runs through."""
        for view in self.views:
            rule = view.primitive.batch
            assert rule is not None
            sequence = rule([sequence], [True], **view.params)
        return sequence


class Total(NamedTuple):
    """A sum over all steps, of matrix products or of sums."""

    equation: Equation
    operands: tuple[Operand, ...]
    views: tuple[Equation, ...]  # of the result

    def of(self, sequences: Sequence[Tensor]) -> Tensor:
        """The sum, from the values of all steps at the roots of the operands."""
        xs = [operand.of_all(s) for operand, s in zip(self.operands, sequences, strict=True)]
        made = _products(xs[0], xs[1]) if self.equation.primitive is matmul else _sums(xs[0], self.equation)
        for view in self.views:
            made = view.primitive(made, **view.params)
        return made


def _products(x: Tensor, y: Tensor) -> Tensor:
    """The sum over t of x[t] @ y[t]: steps are more of what a product sums over."""
    n, *lead, rows, inner = x.shape
    columns, axes = y.shape[-1], range(1, len(lead) + 1)
    k = len(lead)
    x = reshape(transpose(x, axes=(*axes, k + 1, 0, k + 2)), shape=(*lead, rows, n * inner))
    y = reshape(transpose(y, axes=(*axes, 0, k + 1, k + 2)), shape=(*lead, n * inner, columns))
    return matmul(x, y)


def _sums(x: Tensor, equation: Equation) -> Tensor:
    return sum_(x, axes=(0, *[axis + 1 for axis in equation.params["axes"]]))


class Split(NamedTuple):
    """A step whose sums are taken apart."""

    graph: Graph  # outputs: what is left of the sums, the other outputs, and the values to hand out
    left: tuple[int, ...]  # for every sum, how many terms the loop goes on to add
    totals: tuple[tuple[Total, ...], ...]  # for every sum, what is added after the loop
    handed: tuple[Var, ...]


def split(step: Graph, sums: Sequence[Atom], others: Sequence[Atom], there: Sequence[Atom], room: int) -> Split:
    """Take from a step what can be computed of sequences after the loop.

    `sums` and `others` are its outputs, those that are added up and the rest; `there` are the values of which the
    sequences exist anyway, and `room` is how many further numbers may be handed out in every step.
    """
    made = {equation.outputs[0]: equation for equation in step.equations if len(equation.outputs) == 1}
    terms = [_terms(atom, made) for atom in sums]
    found = {atom: _total(atom, made) for some in terms for atom in some if isinstance(atom, Var)}
    inputs = set(step.inputs)
    known, handed = {a for a in there if isinstance(a, Var)}, list[Var]()
    taken: dict[Atom, Total] = {}
    for primitive in (matmul, sum_):  # a sum is little work for a loop: it must not take room
        for atom, total in found.items():
            if total is None or total.equation.primitive is not primitive:
                continue
            new = dict.fromkeys(operand.root for operand in total.operands if operand.root not in known)
            size = sum(math.prod(root.shape) for root in new)
            if (new and primitive is sum_) or size > room or any(root in inputs for root in new):
                continue
            room -= size
            known.update(new)
            handed += new
            taken[atom] = total
    left = [[atom for atom in some if atom not in taken] for some in terms]
    outputs = [*[atom for some in left for atom in some], *others, *handed]
    return Split(
        remove_dead(Graph(step.inputs, step.equations, outputs, step.name)),
        tuple(len(some) for some in left),
        tuple(tuple(taken[atom] for atom in some if atom in taken) for some in terms),
        tuple(handed),
    )


def _terms(atom: Atom, made: dict[Var, Equation]) -> list[Atom]:
    """What an output is the sum of."""
    terms: list[Atom] = []
    waiting = [atom]
    while waiting:
        one = waiting.pop()
        equation = made.get(one) if isinstance(one, Var) else None
        if equation is not None and equation.primitive is add and all(a.shape == one.shape for a in equation.inputs):
            waiting += reversed(equation.inputs)
        else:
            terms.append(one)
    return terms


def _total(atom: Var, made: dict[Var, Equation]) -> Total | None:
    """How a term can be summed over all steps at once."""
    result = _operand(atom, made)
    equation = made.get(result.root)
    if equation is None or equation.primitive not in (matmul, sum_):
        return None
    if any(not isinstance(a, Var) for a in equation.inputs):
        return None
    if equation.primitive is matmul and equation.inputs[0].shape[:-2] != equation.inputs[1].shape[:-2]:
        return None
    operands = tuple(_operand(a, made) for a in equation.inputs if isinstance(a, Var))
    return Total(equation, operands, result.views)


def _operand(atom: Var, made: dict[Var, Equation]) -> Operand:
    views: list[Equation] = []
    while (equation := made.get(atom)) is not None and equation.primitive in VIEWS:
        inner = equation.inputs[0]
        if not isinstance(inner, Var):
            break
        views.append(equation)
        atom = inner
    return Operand(atom, tuple(reversed(views)))
