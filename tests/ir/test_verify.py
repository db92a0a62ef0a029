"""Every rule of a graph, broken on purpose."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import wonderland as wl
from wonderland.core.primitive import TABLE
from wonderland.core.primitive import Aval as Type
from wonderland.errors import GraphError
from wonderland.ir import Equation, Graph, Literal, Var, verify

VECTOR = Type((3,), wl.float32)
SCALAR = Type((), wl.float32)


def sine(x: Any, y: Var) -> Equation:
    return Equation(TABLE["sin"], [x], {}, [y])


def simple() -> tuple[Graph, Var, Var]:
    x, y = Var(VECTOR), Var(VECTOR)
    return Graph([x], [sine(x, y)], [y], "f"), x, y


def refused(graph: Graph, *words: str) -> None:
    with pytest.raises(GraphError) as caught:
        verify(graph)
    for word in words:
        assert word in str(caught.value)


def test_a_good_graph_passes() -> None:
    verify(simple()[0])
    verify(Graph([], [], [Literal(np.array(1.0, np.float32))]))


def test_an_input_appears_once() -> None:
    graph, x, _ = simple()
    graph.inputs.append(x)
    refused(graph, "f:", "twice")


def test_inputs_are_variables() -> None:
    graph, _, _ = simple()
    graph.inputs.append(Literal(np.array(1.0, np.float32)))  # type: ignore[arg-type]
    refused(graph, "Literal", "not a variable")


def test_a_variable_is_defined_before_it_is_used() -> None:
    graph, _, y = simple()
    z = Var(VECTOR)
    graph.equations.insert(0, sine(y, z))
    refused(graph, "equation 0 (sin)", "float32[3]", "not defined")


def test_a_variable_is_assigned_once() -> None:
    graph, x, y = simple()
    graph.equations.append(sine(x, y))
    refused(graph, "equation 1 (sin)", "twice")
    graph.equations[1] = sine(y, x)
    refused(graph, "twice")


def test_outputs_are_defined() -> None:
    graph, _, _ = simple()
    graph.outputs.append(Var(VECTOR))
    refused(graph, "returns", "not defined")


def test_atoms_are_variables_or_literals() -> None:
    graph, _, _ = simple()
    graph.outputs.append(3.0)  # type: ignore[arg-type]
    refused(graph, "returns", "float")
    graph, _, _ = simple()
    graph.equations[0].outputs[0] = Literal(np.zeros((), np.float32))  # type: ignore[call-overload]
    graph.equations[0].inputs[0] = Literal(np.zeros((), np.float32))
    refused(graph, "assigns to a Literal")


def test_literals_are_scalars_of_their_type() -> None:
    graph, _, _ = simple()
    graph.outputs.append(Literal(np.zeros(2, np.float32)))
    refused(graph, "literal of shape (2,)")


@pytest.mark.parametrize("aval", [SCALAR, Type((3,), wl.float64), Type((4,), wl.float32)], ids=str)
def test_results_have_the_type_that_the_primitive_gives(aval: Type) -> None:
    x, y = Var(VECTOR), Var(aval)
    refused(Graph([x], [sine(x, y)], [y]), str(aval), str(VECTOR))


def test_the_number_of_results_is_that_of_the_primitive() -> None:
    graph, _, _ = simple()
    graph.equations[0].outputs.append(Var(VECTOR))
    refused(graph, "float32[3]', 'float32[3]")


def test_shapes_that_a_primitive_refuses_are_errors_of_the_graph() -> None:
    x, y, z = Var(VECTOR), Var(Type((4,), wl.float32)), Var(VECTOR)
    refused(Graph([x, y], [Equation(TABLE["add"], [x, y], {}, [z])], [z]), "(add)", "refuses")


def test_missing_operands_and_parameters_are_errors_of_the_graph() -> None:
    x, y = Var(VECTOR), Var(VECTOR)
    refused(Graph([x], [Equation(TABLE["sin"], [], {}, [y])], [y]), "(sin)", "refuses")
    refused(Graph([x], [Equation(TABLE["sin"], [x], {"axis": 1}, [y])], [y]), "(sin)", "refuses")


# --- graphs inside equations


def of(f: Any, *args: Any) -> Graph:
    graph = wl.make_graph(f)(*args)
    verify(graph)
    return graph


def carrier(graph: Graph, name: str) -> Equation:
    return next(e for e in graph.equations if e.primitive.name == name)


def test_a_graph_inside_an_equation_is_verified() -> None:
    graph = of(lambda x: wl.scan(lambda c, e: (c + e, c), x[0], x), wl.ones(3))
    body = carrier(graph, "scan").params["body"]
    body.outputs[1] = Var(SCALAR)
    refused(graph, "not defined")


def test_a_graph_inside_an_equation_cannot_use_variables_from_outside() -> None:
    graph = of(lambda x: wl.jit(wl.sin)(wl.cos(x)), wl.ones(3))
    inner = carrier(graph, "call").params["graph"]
    inner.equations[0].inputs[0] = graph.inputs[0]
    refused(graph, "sin", "not defined")


@pytest.mark.parametrize("name", ["call", "checkpoint", "scan", "while", "branch"])
def test_operands_have_the_types_of_the_inner_graph(name: str) -> None:
    x = wl.ones(3)
    programs: dict[str, Any] = {
        "call": wl.jit(wl.sin),
        "checkpoint": wl.checkpoint(wl.sin),
        "scan": lambda x: wl.scan(lambda c, e: (wl.sin(c), None), x, None, length=2)[0],
        "while": lambda x: wl.while_loop(lambda c: c.sum() > 0, wl.sin, x),
        "branch": lambda x: wl.cond(x.sum() > 0, wl.sin, wl.cos, x),
    }
    graph = of(programs[name], x)
    equation = carrier(graph, name)
    place = next(i for i, a in enumerate(equation.inputs) if a.shape == (3,))
    other = Var(Type((4,), wl.float32))
    graph.inputs.append(other)
    equation.inputs[place] = other
    refused(graph, "float32[4]")


def test_the_branches_give_results_of_one_type() -> None:
    graph = of(lambda x: wl.cond(x.sum() > 0, wl.sin, wl.cos, x), wl.ones(3))
    equation = carrier(graph, "branch")
    other = of(lambda x: x.sum(), wl.ones(3))
    equation.params["branches"] = (equation.params["branches"][0], other)
    refused(graph, "different types")


def test_a_loop_gives_back_what_it_takes() -> None:
    graph = of(lambda x: wl.while_loop(lambda c: c.sum() > 0, wl.sin, x), wl.ones(3))
    body = carrier(graph, "while").params["body"]
    body.outputs[0] = Literal(np.zeros((), np.float32))
    refused(graph, "float32[]")


def test_a_scan_takes_sequences_of_its_length() -> None:
    graph = of(lambda x: wl.scan(lambda c, e: (c + e, c), x[0], x), wl.ones(3))
    carrier(graph, "scan").params["length"] = 4
    refused(graph, "4 steps")
