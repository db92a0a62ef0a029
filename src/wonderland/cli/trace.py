"""`wonderland trace FORMULA NAME=VALUE ...`: a formula step by step."""

from __future__ import annotations

import argparse
import json
import sys
import unicodedata
from collections.abc import Sequence
from typing import TYPE_CHECKING

from .parsing import Commands, Parser, UsageError, add_command

if TYPE_CHECKING:
    from ..wengert import Trace

TRACE_HELP = """\
Evaluate a formula with the framework's own primitives and show every step: the values (primal trace),
the derivatives with respect to each input (tangents, forward mode), and the derivatives of the result with
respect to each value (adjoints, reverse mode).

A formula has numbers, names, + - * / **, parentheses, the constants pi and e, and functions such as
log exp sqrt sin cos tan tanh sigmoid relu abs min max.

example:
  wonderland trace "log(x1) + x1*x2 - sin(x2)" x1=2 x2=5 --svg graph.svg"""


def add_to(commands: Commands) -> None:
    trace = add_command(
        commands, "trace", "show a formula's values, tangents and adjoints step by step", TRACE_HELP, run_trace
    )
    trace.add_argument("formula", metavar="FORMULA", help="for example 'log(x1) + x1*x2 - sin(x2)'")
    trace.add_argument(
        "values",
        metavar="NAME=VALUE",
        nargs="*",
        default=[],
        help="a value for each name; 2, -1e-3 and pi/2 are values",
    )
    trace.add_argument("--forward", action="store_true", help="show the tangents only (without either: both)")
    trace.add_argument("--reverse", action="store_true", help="show the adjoints only")
    trace.add_argument(
        "--precision", metavar="N", type=_precision, default=6, help="significant digits, 1 to 17 (default 6)"
    )
    trace.add_argument("--json", action="store_true", help="print JSON instead of tables")
    trace.add_argument("--svg", metavar="FILE", help="also write the graph as an SVG picture")


def _precision(text: str) -> int:
    if not text.isascii() or not text.isdigit() or not 1 <= int(text) <= 17:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1 to 17")
    return int(text)


def parse(top: Parser, texts: Sequence[str]) -> argparse.Namespace:
    """The options of the command; a value may also stand behind an option, where argparse does not look for it."""
    options, rest = top.parse_known_args([_protected(text) for text in texts])
    if unknown := [text for text in rest if text.startswith("-")]:
        top.error(f"unknown option {unknown[0]}; see wonderland {options.command} --help")
    options.values = [*options.values, *rest]
    return options


def _protected(text: str) -> str:
    """A formula that begins with a minus sign would be taken for an option; a space in front of it helps."""
    minus = text[:1] == "-" and text[1:2] not in ("", "-") and text != "-h"
    return f" {text}" if minus else text


def run_trace(options: argparse.Namespace) -> None:
    """The command `trace`."""
    import numpy as np

    from ..wengert import Formula, FormulaError, trace

    both = options.forward == options.reverse
    shown = {"forward": both or options.forward, "reverse": both or options.reverse}
    try:
        with np.errstate(all="ignore"):  # what is not finite is reported below
            formula = Formula(options.formula)
            traced = trace(formula, **_values(options.values))
            output = _as_json(traced, shown) if options.json else traced.table(**shown, precision=options.precision)
            picture = traced.svg(precision=min(options.precision, 6)) if options.svg is not None else ""
            adjoints = traced.adjoints()
    except FormulaError as error:
        raise UsageError(error.summary) from None
    if options.svg is not None:
        try:
            with open(options.svg, "w", encoding="utf-8") as file:
                file.write(picture)
        except OSError as error:
            raise UsageError(f"cannot write {options.svg}: {error.strerror}") from None
    print(output)
    for name, adjoint in adjoints.items():
        if not np.isfinite(adjoint.item()):
            print(f"wonderland trace: note: the derivative by {name} is {adjoint.item()} here", file=sys.stderr)


def _values(texts: Sequence[str]) -> dict[str, float]:
    """The values of the arguments `name=number`; the number may be a formula without names, such as pi/2."""
    from ..wengert import Formula, FormulaError

    values: dict[str, float] = {}
    for text in texts:
        name, equals, number = (part.strip() for part in text.partition("="))
        name = unicodedata.normalize("NFKC", name)  # as Python reads names
        if not equals or not name.isidentifier():
            raise UsageError(f"{text.strip()!r} is not of the form NAME=NUMBER")
        if name in values:
            raise UsageError(f"{name} has two values")
        try:
            values[name] = Formula(number)().item()
        except FormulaError:
            raise UsageError(f"the value of {name} is {number!r}, which is not a number") from None
    return values


def _as_json(traced: Trace, shown: dict[str, bool]) -> str:
    return json.dumps(traced.data(**shown), indent=2, ensure_ascii=False, allow_nan=False)
