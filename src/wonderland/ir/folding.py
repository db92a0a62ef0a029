"""Scales and shifts of channels behind a convolution go into its filter, where all of these are steady.

    (conv(x, w) + b - m) s + t   =   conv(x, w s) + ((b - m) s + t)

So the batch normalisation of a trained network costs nothing but the addition of a bias: the filter on the right is
made once for many calls. In half precision the filter would be rounded once more, so there it stays as it is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection

from ..core.dtypes import float32, float64
from ..core.primitive import Aval, Primitive
from ..primitives.elementwise import add, multiply, negative, subtract
from .graph import Atom, Equation, Graph, Var, has_effect

FOLDED = (add, subtract, multiply)


def folded(graph: Graph, steady: Collection[int]) -> Graph:
    """The graph with steady scales and shifts in the filters of convolutions. `steady`: positions of inputs."""
    if not steady or not any(e.primitive.name == "convolution" for e in graph.equations):
        return graph
    fold = _Fold(graph, steady_values(graph, steady))
    return Graph(graph.inputs, fold.equations(), graph.outputs, graph.name, is_simple=True)


def steady_values(graph: Graph, steady: Collection[int]) -> set[Atom]:
    """What depends on steady inputs alone."""
    found: set[Atom] = {graph.inputs[i] for i in steady}
    for equation in graph.equations if steady else ():
        if all(a in found for a in equation.inputs if isinstance(a, Var)) and not has_effect(equation):
            found.update(equation.outputs)
    return found


class _Fold:
    def __init__(self, graph: Graph, steady: set[Atom]) -> None:
        self.graph, self.steady = graph, steady
        self.first: list[Equation] = []  # those of steady values alone
        self.rest: list[Equation] = []
        for equation in graph.equations:
            known = equation.outputs and steady.issuperset(equation.outputs)
            (self.first if known else self.rest).append(equation)
        self.uses = Counter(a for e in graph.equations for a in e.inputs if isinstance(a, Var))
        self.uses.update(a for a in graph.outputs if isinstance(a, Var))
        self.readers = {a: e for e in self.rest for a in e.inputs if isinstance(a, Var)}

    def equations(self) -> list[Equation]:
        gone: set[int] = set()
        made: list[Equation] = []
        for equation in self.rest:
            if id(equation) in gone:
                continue
            chain = self._chain(equation)
            if any(e.primitive is multiply for e in chain):
                gone.update(map(id, chain))
                made += self._together(equation, chain)
            else:
                made.append(equation)
        return [*self.first, *made]

    def _chain(self, equation: Equation) -> list[Equation]:
        """The scales and shifts behind a convolution that nobody looks into."""
        chain: list[Equation] = []
        if equation.primitive.name != "convolution" or equation.inputs[1] not in self.steady:
            return chain
        value = equation.outputs[0]
        while value.dtype in (float32, float64) and self.uses[value] == 1 and value in self.readers:
            reader = self.readers[value]
            if reader.primitive not in FOLDED or reader.outputs[0].aval != value.aval:
                break
            left, right = reader.inputs
            other = right if left is value else left
            turned = reader.primitive is subtract and other is left
            if turned or not self._of_channels(other, value):
                break
            chain.append(reader)
            value = reader.outputs[0]
        return chain

    def _of_channels(self, atom: Atom, value: Var) -> bool:
        """Whether a factor or summand is steady and the same at all places."""
        known = not isinstance(atom, Var) or atom in self.steady
        return known and atom.shape in ((), value.shape[-1:]) and atom.dtype == value.dtype

    def _together(self, equation: Equation, chain: list[Equation]) -> list[Equation]:
        """A convolution and what is behind it, as one with another filter, and a sum."""
        scale: Atom | None = None
        shift: Atom | None = None
        value = equation.outputs[0]
        for e in chain:
            left, right = e.inputs
            other = right if left is value else left
            if e.primitive is multiply:
                scale = other if scale is None else self._steady(multiply, scale, other)
                shift = None if shift is None else self._steady(multiply, shift, other)
            elif shift is None:
                shift = other if e.primitive is add else self._steady(negative, other)
            else:
                shift = self._steady(e.primitive, shift, other)
            value = e.outputs[0]
        x, w = equation.inputs
        assert scale is not None
        result = value if shift is None else Var(value.aval)
        made = [_like(equation, equation.primitive, [x, self._steady(multiply, w, scale)], result, equation.params)]
        if shift is not None:
            made.append(_like(chain[-1], add, [result, shift], value))
        return made

    def _steady(self, primitive: Primitive, *inputs: Atom) -> Var:
        shape = max((a.shape for a in inputs), key=len)
        out = Var(Aval(shape, inputs[0].dtype))
        source = self.first[-1] if self.first else self.rest[0]
        self.first.append(_like(source, primitive, [*inputs], out))
        return out


def _like(
    e: Equation, primitive: Primitive, inputs: list[Atom], out: Var, params: dict[str, object] | None = None
) -> Equation:
    """An equation that comes from the same place as another."""
    return Equation(primitive, inputs, params or {}, [out], e.source, e.module, e.phase)
