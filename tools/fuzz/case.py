"""A program as a list of Python expressions, so that it can be run, shortened and printed."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, replace
from types import CodeType
from typing import Any, NamedTuple

import numpy as np

from . import transformed
from .inputs import NAMES, Input

SNIPPET = """\
from __future__ import annotations

import numpy as np

import wonderland as wl

F = wl.nn.functional


def f({names}):
{lines}
    return [{results}]


{source}

def run(backend):
    inputs = [
        {inputs},
    ]
    with wl.using_backend(backend), np.errstate(all="ignore"):
        return [np.asarray(y) for y in wl.tree.leaves({call})]


for got, expected in zip(run("native"), run("numpy"), strict=True):
    print(got, expected, sep="\\n")
"""


class Line(NamedTuple):
    """A value of a program: its name and the expression that makes it of earlier ones."""

    name: str
    text: str


@dataclass(frozen=True)
class Case:
    """Inputs, lines, the names of the results, and what is done with the function: a name of `transformed`."""

    inputs: tuple[Input, ...]
    lines: tuple[Line, ...]
    results: tuple[str, ...]
    kind: str = "value"

    def function(self) -> Callable[..., list[Any]]:
        """The program as a function of its inputs."""
        code = [(line.name, compile(line.text, line.name, "eval")) for line in self.lines]
        return lambda *xs: evaluated(dict(zip([i.name for i in self.inputs], xs, strict=True)), code, self.results)

    def arrays(self) -> list[np.ndarray[Any, Any]]:
        return [i.array() for i in self.inputs]

    def snippet(self) -> str:
        """A script that shows the results of both engines."""
        rule = transformed.KINDS[self.kind]
        staged = rule not in transformed.STATEFUL
        call = f"wl.jit(lambda *xs: {rule.__name__}(f, *xs))(*inputs)" if staged else f"{rule.__name__}(f, *inputs)"
        return SNIPPET.format(
            names=", ".join(i.name for i in self.inputs),
            lines="\n".join(f"    {line.name} = {line.text}" for line in self.lines),
            results=", ".join(self.results),
            inputs=",\n        ".join(f"wl.asarray({i.text})" for i in self.inputs),
            source="\n\n".join(inspect.getsource(g) for g in [*transformed.NEEDS.get(rule, ()), rule]),
            call=call,
        )

    def alive(self) -> Case:
        """Without the lines and inputs that nobody reads."""
        needed = set(self.results)
        lines: list[Line] = []
        for line in reversed(self.lines):
            if line.name in needed:
                lines.append(line)
                needed.update(compile(line.text, "", "eval").co_names, _inner_names(line.text))
        inputs = [i for i in self.inputs if i.name in needed]
        return replace(self, inputs=tuple(inputs), lines=tuple(lines[::-1]))


def _inner_names(text: str) -> set[str]:
    """The names in the functions of an expression."""
    found: set[str] = set()
    pending = [compile(text, "", "eval")]
    while pending:
        code = pending.pop()
        found.update(code.co_names)
        pending += [c for c in code.co_consts if isinstance(c, CodeType)]
    return found


def evaluated(values: dict[str, Any], code: list[tuple[str, CodeType]], results: tuple[str, ...]) -> list[Any]:
    space = NAMES | values
    for name, text in code:
        space[name] = eval(text, space)
    return [space[name] for name in results]
