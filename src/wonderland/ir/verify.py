"""The rules that every graph keeps, checked: single assignment, definition before use, and types that agree."""

from __future__ import annotations

from ..core.errors import GraphError
from ..core.primitive import Aval
from .graph import Equation, Graph, Literal, Var, carried


def verify(graph: Graph) -> None:
    """Raise `GraphError` if the graph, or a graph inside it, breaks a rule."""
    _verify(graph, set())


def _verify(graph: Graph, done: set[Graph]) -> None:
    """Each graph once, also if several equations carry it."""
    if graph in done:
        return
    done.add(graph)
    defined: set[Var] = set()
    for var in graph.inputs:
        if not isinstance(var, Var):
            raise GraphError(f"{graph.name}: an input is a {type(var).__name__}, not a variable.")
        if var in defined:
            raise GraphError(f"{graph.name}: an input appears twice.")
        defined.add(var)
    for i, equation in enumerate(graph.equations):
        place = f"{graph.name}, equation {i} ({equation.primitive.name})"
        for atom in equation.inputs:
            _check_defined(f"{place}: uses", atom, defined)
        for inner in carried(equation):
            _verify(inner, done)
        expected = _types(place, equation)
        if [tuple(a) for a in expected] != [tuple(v.aval) for v in equation.outputs]:
            raise GraphError(
                f"{place}: results are typed {[str(v.aval) for v in equation.outputs]}, "
                f"but the primitive gives {[str(a) for a in expected]}."
            )
        for var in equation.outputs:
            if not isinstance(var, Var):
                raise GraphError(f"{place}: assigns to a {type(var).__name__}, not to a variable.")
            if var in defined:
                raise GraphError(f"{place}: assigns a variable twice.")
            defined.add(var)
    for atom in graph.outputs:
        _check_defined(f"{graph.name}: returns", atom, defined)


def _check_defined(what: str, atom: object, defined: set[Var]) -> None:
    if isinstance(atom, Literal):
        if atom.data.shape != () or atom.data.dtype != atom.dtype:
            raise GraphError(f"{what} a literal of shape {atom.data.shape} that is typed {atom.aval}.")
    elif not isinstance(atom, Var):
        raise GraphError(f"{what} a {type(atom).__name__}, which is neither a variable nor a literal.")
    elif atom not in defined:
        raise GraphError(f"{what} a variable of {atom.aval} that is not defined before.")


def _types(place: str, equation: Equation) -> list[Aval]:
    """The types of an equation's results, from its primitive and the types of its inputs."""
    try:
        avals = equation.primitive.abstract(*equation.inputs, **equation.params)
    except GraphError:
        raise
    except Exception as error:  # whatever a rule trips over, the graph is to blame
        message = str(error).partition("\n")[0]
        raise GraphError(f"{place}: the primitive refuses its inputs: {message}") from error
    return list(avals) if equation.primitive.multiple else [avals]
