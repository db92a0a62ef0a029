"""From a graph to a function of JAX: every equation becomes the operations of XLA that its primitive's rule names.

A rule takes the values of the inputs and the parameters of the primitive, as `impl` does in NumPy. Rules that need more
(those that check values, carry graphs or call Python) take the `Lowering` first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import jax
import jax.numpy as jnp
import numpy as np

from ...core.errors import GraphError
from ...core.primitive import Aval
from ...ir.expansion import expansion
from ...ir.graph import Atom, Equation, Graph, Literal, Var
from ...ir.simplify import simplify
from ...primitives.composed import Composed
from . import attention, contractions, elementwise, fourier, indexing, matrices, movement, nested, random_words, windows
from .status import Checks, Message

Results = list[jax.Array]

PLAIN: dict[str, Callable[..., jax.Array | Results]] = {
    **elementwise.PLAIN,
    **movement.PLAIN,
    **contractions.PLAIN,
    **windows.PLAIN,
    **attention.PLAIN,
    **fourier.PLAIN,
    **matrices.PLAIN,
    **random_words.PLAIN,
}
WITH_LOWERING: dict[str, Callable[..., jax.Array | Results]] = {
    **elementwise.CHECKED,
    **indexing.CHECKED,
    **matrices.CHECKED,
    **nested.RULES,
}


class Lowering:
    """The way through a graph and the graphs in it, with the checks that are met on it."""

    def __init__(self) -> None:
        self.checks = Checks()
        self.raised: list[BaseException] = []  # by functions of the user's that the program called
        self.calls_python = False
        self._at: list[Equation] = []

    def refuse(self, bad: jax.Array, values: jax.Array, message: Message) -> None:
        """Note that the equation at hand does not take the first of the values that is `bad`."""
        self.checks.add(self._at[-1], bad, values, message)

    @property
    def equation(self) -> Equation | None:
        """The equation at hand; when something was raised, the one that raised it."""
        return self._at[-1] if self._at else None

    @property
    def outputs(self) -> list[Aval]:
        """What the equation at hand gives."""
        return [v.aval for v in self._at[-1].outputs]

    def graph(self, graph: Graph, args: Sequence[jax.Array]) -> Results:
        """The results of a graph."""
        graph = simplify(graph)
        values: dict[Var, jax.Array] = dict(zip(graph.inputs, args, strict=True))

        def value(atom: Atom) -> jax.Array:
            return jnp.asarray(atom.data) if isinstance(atom, Literal) else values[atom]

        for equation in graph.equations:
            self._at.append(equation)
            with jax.named_scope(equation.module or equation.primitive.name):
                results = self._equation(equation, [value(a) for a in equation.inputs])
            self._at.pop()
            for var, result in zip(equation.outputs, results, strict=True):
                if result.shape != var.shape or result.dtype != var.dtype:
                    raise GraphError(f"{equation.primitive}: XLA gives {result.aval} in place of {var.aval}.")
                values[var] = result
        return [value(a) for a in graph.outputs]

    def _equation(self, equation: Equation, args: list[jax.Array]) -> Sequence[jax.Array]:
        primitive = equation.primitive
        if isinstance(primitive, Composed):
            return self._formula(primitive, args, equation.params)
        if primitive.name in PLAIN:
            out = PLAIN[primitive.name](*args, **equation.params)
        elif primitive.name in WITH_LOWERING:
            out = WITH_LOWERING[primitive.name](self, *args, **equation.params)
        else:
            raise GraphError(f"{primitive}: XLA has no rule for it.", 'wl.using_backend("native")')
        return out if isinstance(out, list) else [out]

    def _formula(self, primitive: Composed, args: list[jax.Array], params: Mapping[str, object]) -> Results:
        """A composed primitive as what it consists of; element by element, where a size is not known."""
        if not all(isinstance(n, int) for a in args for n in a.shape):
            shape = jnp.broadcast_shapes(*[a.shape for a in args])
            flat = [jnp.broadcast_to(a, shape).ravel() for a in args]
            found = jax.vmap(lambda *each: self._formula(primitive, list(each), params))(*flat)
            return [x.reshape(shape) for x in found]
        staged = expansion(primitive, tuple(Aval(a.shape, np.dtype(a.dtype)) for a in args), dict(params))
        return self.graph(staged.graph, [*[jnp.asarray(c._data) for c in staged.captured], *args])
