"""A trace as text: expressions, numbers, and columns that line up at the decimal point."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from ..core.dtypes import is_inexact
from ..core.typing import ArrayLike

if TYPE_CHECKING:
    from ..core.tensor import Tensor
    from .program import Contribution, Step, Trace

INFIX = {
    "add": "+", "subtract": "-", "multiply": "*", "divide": "/", "power": "**", "matmul": "@",
    "less": "<", "less_equal": "<=", "greater": ">", "greater_equal": ">=", "equal": "==", "not_equal": "!=",
}  # fmt: skip
LARGEST = 6  # the most elements of a tensor that are written out
LONGEST = 40  # characters of a parameter

# --- numbers and expressions


def number(x: ArrayLike, precision: int) -> str:
    """A Python number with so many significant digits."""
    if isinstance(x, bool | int):
        return str(x)
    if isinstance(x, complex):
        return f"{x:.{precision}g}"
    text = f"{x:.{precision}g}"
    return "0" if text == "-0" else text


def tensor_text(value: Tensor, precision: int) -> str:
    """A scalar or a few elements as numbers, otherwise type and shape."""
    if value.size > LARGEST or value.ndim > 1:
        return f"{value.dtype}[{', '.join(map(str, value.shape))}]"
    if value.ndim == 0:
        return number(value.item(), precision)
    return f"[{', '.join(number(x, precision) for x in value.tolist())}]"


def expression(step: Step, precision: int = 6) -> str:
    """The right-hand side of a step: `x1 * x2`, `sin(x2)`, `sum(v1, axes=(0,))`."""
    name = step.primitive.name
    args = [a if isinstance(a, str) else tensor_text(a, precision) for a in step.args]
    if name in INFIX and len(args) == 2:
        return f"{args[0]} {INFIX[name]} {args[1]}"
    if name == "negative":
        return f"-{args[0]}"
    if name == "square":
        return f"{args[0]} ** 2"
    params = [f"{key}={_short(value)}" for key, value in step.params.items()]
    return f"{name}({', '.join(args + params)})"


def _short(value: object) -> str:
    text = " ".join(str(value).split())
    return text if len(text) <= LONGEST else text[: LONGEST - 3] + "..."


# --- columns


def lined_up(texts: Iterable[str]) -> list[str]:
    """Numbers with their decimal points below each other; other text begins at the left."""
    texts = list(texts)
    places = [_point(text) for text in texts]
    before = max((place for place in places if place is not None), default=0)
    return [text if place is None else " " * (before - place) + text for text, place in zip(texts, places, strict=True)]


def _point(text: str) -> int | None:
    """Where the integer part of a number ends; None if the text is not a number."""
    if not text.lstrip("-")[:1].isdigit():
        return None
    return next((i for i, character in enumerate(text) if character in ".e"), len(text))


def rows_of(columns: list[list[str]], gap: str = "   ") -> list[str]:
    """Columns of text, side by side, indented by two."""
    padded = [[text.ljust(max(map(len, column))) for text in column] for column in columns if column]
    return [("  " + gap.join(cells)).rstrip() for cells in zip(*padded, strict=True)]


# --- the three tables


def text(trace: Trace, *, forward: bool, reverse: bool, precision: int) -> str:
    parts = [f"{result_name(trace)} = {trace.title}"] if trace.title else []
    parts.append(primal_table(trace, precision))
    if forward:
        parts.append(tangent_table(trace, precision))
    if reverse:
        parts.append(adjoint_table(trace, precision))
    return "\n\n".join(parts)


def result_name(trace: Trace) -> str:
    """y, unless an input is called that."""
    candidates = itertools.chain(("y", "f"), ("_" * n + "y" for n in itertools.count(1)))
    return next(name for name in candidates if name not in trace.inputs)


def _assignments(trace: Trace) -> list[tuple[str, str, Any]]:
    """(name, expression, value) of every line, the results last."""
    lines: list[tuple[str, str, Any]] = [(name, "", value) for name, value in trace.inputs.items()]
    for step in trace.steps:
        if step.primitive.multiple:
            lines.append((step.name, step.expression, None))
            lines += [(name, "", value) for name, value in step.outputs.items()]
        else:
            lines.append((step.name, step.expression, step.value))
    known = trace.values
    results = [(o, known[o]) if isinstance(o, str) else (tensor_text(o, 6), o) for o in trace.outputs]
    for i, (name, value) in enumerate(results):
        lines.append((result_name(trace) + (f"[{i}]" if len(results) > 1 else ""), name, value))
    return lines


def _left_sides(lines: Iterable[tuple[str, str]]) -> list[str]:
    """`name = expression` with the equals signs below each other."""
    lines = list(lines)
    width = max((len(name) for name, expression in lines if expression), default=0)
    return [f"{name.ljust(width)} = {expression}" if expression else name for name, expression in lines]


def primal_table(trace: Trace, precision: int) -> str:
    lines = _assignments(trace)
    values = lined_up("" if value is None else tensor_text(value, precision) for _, _, value in lines)
    return "\n".join(["Primal trace", *rows_of([_left_sides((n, e) for n, e, _ in lines), values])])


def tangent_table(trace: Trace, precision: int) -> str:
    """A column per scalar input: the derivative of every value with respect to it."""
    head = "Tangent trace (forward mode)"
    moving = [name for name, value in trace.inputs.items() if value.shape == ()]
    if not trace.inputs:
        return f"{head}\n  no inputs"
    if not moving:
        return f"{head}\n  no scalar input; trace.tangents(name=direction) gives the tangents along a direction"
    tangents = {name: trace.tangents(**{name: 1.0}) for name in moving}
    smooth = [(name, value) for name, value in trace.values.items() if is_inexact(value.dtype)]
    rules = _tangent_rules(trace, precision)
    left = ["", *_left_sides((f"d{name}", rules.get(name, "")) for name, _ in smooth)]
    columns = [left]
    for moved in moving:
        texts = lined_up(tensor_text(tangents[moved][name], precision) for name, _ in smooth)
        columns.append([f"d/d{moved}", *texts])
    return "\n".join([head, *rows_of(columns)])


def _tangent_rules(trace: Trace, precision: int) -> dict[str, str]:
    """For scalar steps the tangent as a sum of derivative times tangent, with numbers: `5 dx1 + 2 dx2`."""
    rules = {}
    for step in trace.steps:
        terms = ""
        for name, partial in trace.partials(step):
            if partial is None:
                break
            value = partial.item()
            sign = "-" if isinstance(value, float) and value < 0 else "+"
            size = number(-value if sign == "-" else value, precision)
            term = f"d{name}" if size == "1" else f"{size} d{name}"
            if terms:
                terms += f" {sign} {term}"
            else:
                terms = term if sign == "+" else f"-{term}"
        else:
            rules[step.name] = terms or "0"
    return rules


def adjoint_table(trace: Trace, precision: int) -> str:
    """A line per contribution, from the result back to the inputs."""
    y = result_name(trace)
    head = "Adjoint trace (reverse mode)"
    if not trace.scalar:
        return f"{head}\n  the result is not one scalar; trace.adjoints(seed) takes an adjoint of it"
    result = trace.outputs[0]
    seen, steps, updates, totals = "", ["step"], ["contribution"], []
    if isinstance(result, str):
        steps.append("start")
        updates.append(f"adj {result} = 1")
        totals.append((result, "1"))
    for c in trace.contributions():
        steps.append("" if c.step.name == seen else str(c.step))
        seen = c.step.name
        updates.append(f"adj {c.target} += {_product(c, precision)}")
        totals.append((c.target, tensor_text(c.total, precision)))
    target = max((len(name) for name, _ in totals), default=0)
    values = lined_up(value for _, value in totals)
    total = [
        "adjoint so far",
        *(f"adj {n.ljust(target)} = {v}" for (n, _), v in zip(totals, values, strict=True)),
    ]
    adjoints = trace.adjoints()
    gradient = [(f"d{y}/d{name}", tensor_text(adjoints[name], precision)) for name in trace.inputs]
    names = [name for name, _ in gradient]
    table = rows_of([steps, updates, total])
    closing = rows_of([names, lined_up(value for _, value in gradient)]) if gradient else ["  no inputs"]
    return "\n".join([head, *table, "", "Gradient", *closing])


def _product(contribution: Contribution, precision: int) -> str:
    value = tensor_text(contribution.value, precision)
    if contribution.partial is None:
        return value
    partial = number(contribution.partial.item(), precision)
    factor = f"({partial})" if partial.startswith("-") else partial
    return f"adj {contribution.step.name} * {factor} = {value}"


# --- the same for machines


def data(trace: Trace, *, forward: bool, reverse: bool) -> dict[str, Any]:
    found: dict[str, Any] = {
        "formula": trace.title or None,
        "inputs": _plain_all(trace.inputs),
        "steps": [
            {
                "name": step.name,
                "primitive": step.primitive.name,
                "args": [a if isinstance(a, str) else _plain(a) for a in step.args],
                "expression": step.expression,
                "value": [_plain(v) for v in step.value] if step.primitive.multiple else _plain(step.value),
            }
            for step in trace.steps
        ],
        "outputs": [o if isinstance(o, str) else _plain(o) for o in trace.outputs],
        "values": [_plain(trace.values[o]) if isinstance(o, str) else _plain(o) for o in trace.outputs],
    }
    if forward:
        scalars = [name for name, value in trace.inputs.items() if value.shape == ()]
        found["tangents"] = {name: _plain_all(trace.tangents(**{name: 1.0})) for name in scalars}
    if reverse:
        found["contributions"] = [
            {
                "step": c.step.name,
                "target": c.target,
                "partial": None if c.partial is None else _plain(c.partial),
                "value": _plain(c.value),
                "total": _plain(c.total),
            }
            for c in trace.contributions()
        ]
        adjoints = trace.adjoints()
        found["adjoints"] = _plain_all(adjoints)
        found["gradient"] = _plain_all({name: adjoints[name] for name in trace.inputs})
    return found


def _plain_all(values: Mapping[str, Tensor]) -> dict[str, Any]:
    return {name: _plain(value) for name, value in values.items()}


def _plain(value: Tensor) -> Any:
    """Nested lists of numbers; JSON has no infinity and no NaN, so these become text."""

    def clean(x: Any) -> Any:
        if isinstance(x, list):
            return [clean(y) for y in x]
        if isinstance(x, complex):
            return [clean(x.real), clean(x.imag)]
        return str(x) if isinstance(x, float) and not math.isfinite(x) else x

    return clean(value.tolist())
