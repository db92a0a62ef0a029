"""The model: what it does to shapes, how its parts are joined, and how its parameters and gradients are spread."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import groupby
from typing import Any

import numpy as np

from .. import arrays
from ..core.dtypes import is_real
from ..core.errors import InputError
from ..core.tensor import Tensor
from ..core.typing import Array, ArrayLike
from ..ir.graph import Equation, Graph, Var
from ..nn.analysis.summary import summary
from ..nn.module.module import Module
from ..transforms.jit.jit import make_graph
from ..viz.graph import Edge, Node, draw
from .page import details, facts, figures, inline, paragraph, table
from .pictures import Picture, Section, histogram_of

MOST_NODES = 40  # of a graph that can be read
MOST_HISTOGRAMS = 200
OPENED = 12  # histograms that are not folded away
IN_PNG = 24


def model_section(model: Module, examples: Any = None) -> Section:
    """The summary, the graph of a forward pass if there is an example, and a table of the parameters."""
    parameters = {path: np.asarray(p) for path, p in model.named_parameters()}
    count = sum(p.size for p in parameters.values())
    trainable = model.num_parameters(trainable_only=True)
    pairs: list[tuple[str, object]] = [("model", type(model).__name__), ("parameters", count)]
    parts = [facts(pairs if trainable == count else [*pairs, ("trainable", trainable)])]
    if examples is not None:
        try:
            parts.append(_forward_pass(model, arrays.asarray(np.asarray(examples[:1]))))
        except (
            Exception
        ) as error:  # whatever a model does not like about the example, the report is still to be written
            reason = str(error).splitlines()[0] if str(error) else type(error).__name__
            parts.append(paragraph(f"The model could not be followed on one of the examples: {reason}"))
    rows = [[path, "×".join(map(str, p.shape)) or "scalar", p.size, *_moments(p)] for path, p in parameters.items()]
    if rows:
        head = ["parameter", "shape", "numbers", "mean", "deviation", "smallest", "largest"]
        parts.append(details(f"{len(rows):,} parameters", table(head, rows), opened=len(rows) <= OPENED))
    return Section("Model", "\n".join(parts))


def spread_section(title: str, arrays: Mapping[str, ArrayLike], name: str) -> Section | None:
    """Histograms of arrays by path; nothing if there are none."""
    flat = {path: np.asarray(values, np.float64) for path, values in arrays.items()}
    chosen = sorted(flat, key=lambda path: -flat[path].size)[:MOST_HISTOGRAMS]
    pictures: list[Picture] = []
    notes = []
    for path in (path for path in flat if path in set(chosen)):
        finite = np.isfinite(flat[path])
        if finite.any():
            missing = flat[path].size - int(np.count_nonzero(finite))
            said = f", {missing:,} not finite" if missing else ""
            pictures.append(histogram_of(f"{path} ({flat[path].size:,}{said})", flat[path]))
        elif flat[path].size:
            notes.append(paragraph(f"{path}: none of its {flat[path].size:,} numbers is finite."))
    if not pictures and not notes:
        return None
    if len(flat) > len(chosen):
        notes.append(paragraph(f"The largest {len(chosen):,} of {len(flat):,} are shown."))
    first, rest = pictures[:OPENED], pictures[OPENED:]
    html = "".join(notes) + figures(first, "small")
    if rest:
        html += details(f"{len(rest):,} more", figures(rest, "small"))
    return Section(title, html, {name: pictures[:IN_PNG]} if pictures else {})


def gradients_of(gradients: object) -> dict[str, Any]:
    """Gradients as arrays by path; other things are refused."""
    if not isinstance(gradients, Mapping):
        raise InputError(f"report: gradients of type {type(gradients).__name__}.", "a dict from paths to arrays")
    found = {}
    for path, values in gradients.items():
        found[str(path)] = np.asarray(values)
        if not is_real(found[str(path)].dtype):
            raise InputError(f"report: the gradient {path!r} is of type {found[str(path)].dtype}.", "numbers")
    return found


def _moments(p: Array) -> list[object]:
    values = p.astype(np.float64)
    if not values.size:
        return [None] * 4
    with np.errstate(invalid="ignore", over="ignore"):  # parameters of a run that failed
        return [float(f(values)) for f in (np.mean, np.std, np.min, np.max)]


def _forward_pass(model: Module, example: Tensor) -> str:
    told = summary(model, example)
    head = ["path", "module", "output shape", "parameters", "multiply-adds"]
    rows = [[row.path or "·", row.kind, _shape(row.shape), row.parameters, row.multiply_adds] for row in told.rows]
    total = ["total", "", "", told.parameters, told.multiply_adds]
    graph = make_graph(model.copy().eval())(example)
    picture = graph_picture(model, graph)
    drawn = f'<h3>Graph</h3><div class="scroll">{inline(picture)}</div>' if picture else ""
    return table(head, [*rows, total], caption="A forward pass of one example") + drawn


def graph_picture(model: Module, graph: Graph) -> str | None:
    """The modules that a forward pass goes through and what flows between them; None if there are too many to show.

    Equations of one module that follow each other are one card. The modules are as deep as there is room for. What is
    computed from nothing, as a tensor of ones or the numbers of positions, is left out: it is made once and used by
    many, so its arrows would hide the way of the data.
    """
    computed = reached(graph, {id(v) for v in graph.inputs})
    equations = [e for e in graph.equations if any(id(v) in computed for v in e.outputs)]
    deepest = max((_path(e).count(".") + 1 for e in equations), default=0)
    for depth in range(deepest, 0, -1):
        keyed = [(_cut(_path(e), depth), e) for e in equations]
        runs = [(key, [e for _, e in run]) for key, run in groupby(keyed, lambda pair: pair[0])]
        if len(runs) <= MOST_NODES:
            return _drawn(model, graph, runs, depth)
    return None


def reached(graph: Graph, start: set[int]) -> set[int]:
    """The ids of all variables that depend on some, and of these."""
    found = set(start)
    for equation in graph.equations:
        if any(id(v) in found for v in equation.inputs):
            found |= {id(v) for v in equation.outputs}
    return found


def shared_aside(graph: Graph, runs: list[tuple[str, list[Equation]]]) -> set[int]:
    """The ids of variables that do not depend on the input and that several cards use, as tables of angles."""
    flowing = reached(graph, {id(graph.inputs[-1])})
    users: dict[int, set[int]] = {}
    for number, (_, equations) in enumerate(runs):
        for variable in (v for e in equations for v in e.inputs if isinstance(v, Var)):
            users.setdefault(id(variable), set()).add(number)
    return {key for key, numbers in users.items() if key not in flowing and len(numbers) > 1}


def _drawn(model: Module, graph: Graph, runs: list[tuple[str, list[Equation]]], depth: int) -> str:
    counts: dict[str, int] = {}
    for path, p in model.named_parameters():
        key = _cut(path.rpartition(".")[0], depth)
        counts[key] = counts.get(key, 0) + p.size
    source = graph.inputs[-1]
    maker: dict[int, int] = {id(source): -1}
    nodes = [Node(-1, "input", [("shape", _shape(source.shape))], "input")]
    edges: dict[tuple[int, int], Edge] = {}
    aside = shared_aside(graph, runs)
    for number, (key, equations) in enumerate(runs):
        for variable in (v for e in equations for v in e.inputs if isinstance(v, Var)):
            if (start := maker.get(id(variable), number)) != number and id(variable) not in aside:
                edges.setdefault((start, number), Edge(start, number))
        maker |= {id(v): number for e in equations for v in e.outputs}
        last = equations[-1].outputs[-1]
        rows = [("output", _shape(last.shape))]
        if key and (size := counts.pop(key, 0)):
            rows.append(("parameters", f"{size:,}"))
        names = list(dict.fromkeys(e.primitive.name for e in equations))
        title = type(model.get_submodule(key)).__name__ if key else ", ".join(names[:3]) + (" …" if names[3:] else "")
        is_last = any(v is result for result in graph.outputs for e in equations for v in e.outputs)
        nodes.append(Node(number, title, rows, "output" if is_last else "operation", name=key))
    joined = {end for pair in edges for end in pair}
    return draw(
        [n for n in nodes if n.id in joined or not joined], edges.values(), title="Graph of the model", down=True
    )


def _path(equation: Equation) -> str:
    """The path of the module that an equation belongs to, "" for the model itself: "path (Class)" is "Class" there."""
    path, inner, _ = (equation.module or "").partition(" (")
    return path if inner else ""


def _cut(path: str, depth: int) -> str:
    return ".".join(path.split(".")[:depth])


def _shape(shape: object) -> str:
    return (
        " × ".join(map(str, shape)) if isinstance(shape, tuple) and all(type(n) is int for n in shape) else str(shape)
    )
