"""How the package hangs together, see tools/structure.py."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.structure import INSIDE, LATE, TOP, Import, Module, counts, cycles, cycles_of, edges, modules

# These may only become smaller: imports in functions, which load what few programs need, and annotations with Any.
MOST = {"in functions": 30, "Any": 6_730}


def test_imports_have_one_direction() -> None:
    imports = edges(modules())
    assert cycles_of(imports, [TOP, LATE, INSIDE]) == []
    assert [(name, i.target) for name, found in imports.items() for i in found if i.kind == LATE] == []


def test_the_house_gets_no_more_crooked() -> None:
    known = modules()
    inside = {(name, i.line) for name, found in edges(known).items() for i in found if i.kind == INSIDE}
    found = {"in functions": len(inside), "Any": sum(counts(module).anys for module in known.values())}
    assert {name: n for name, n in found.items() if n > MOST[name]} == {}


# --- the instrument itself


def module(text: str, name: str = "wonderland.a.b") -> Module:
    return Module(name, Path(name.rpartition(".")[2] + ".py"), text)


def test_kinds_of_imports() -> None:
    text = """
import wonderland.c
from typing import TYPE_CHECKING
from . import d, missing
from .d import something
if TYPE_CHECKING:
    from .. import e

def f():
    from ..c import g
    if TYPE_CHECKING:
        from .. import e

class C:
    from .. import e

from ..e import h
"""
    known = ["wonderland.a", "wonderland.a.d", "wonderland.c", "wonderland.e"]
    assert list(module(text).imports(known)) == [
        Import("wonderland.c", 2, TOP),
        Import("wonderland.a.d", 4, TOP),
        Import("wonderland.a", 4, TOP),
        Import("wonderland.a.d", 5, TOP),
        Import("wonderland.c", 10, INSIDE),
        Import("wonderland.e", 15, LATE),
        Import("wonderland.e", 17, LATE),
    ]


@pytest.mark.parametrize(
    "graph, groups",
    [
        ({"a": "b", "b": "c", "c": ""}, []),
        ({"a": "b", "b": "ac", "c": ""}, [["a", "b"]]),
        ({"a": "bc", "b": "d", "c": "d", "d": "c"}, [["c", "d"]]),
        ({"a": "b", "b": "c", "c": "a", "d": "ae", "e": "d"}, [["a", "b", "c"], ["d", "e"]]),
        ({"a": "a"}, [["a"]]),
    ],
)
def test_cycles(graph: dict[str, str], groups: list[list[str]]) -> None:
    assert cycles(graph) == groups


def test_a_long_chain_needs_no_recursion() -> None:
    n = 20_000
    assert [len(g) for g in cycles({str(i): [str((i + 1) % n)] for i in range(n)})] == [n]


def test_counts() -> None:
    found = counts(module("# one\nx: Any = 1  # two\ndef f(a: Any, b: int, *c: list[Any], **d: str) -> Any: ...\n"))
    assert (found.lines, found.comments, found.parameters, found.untold, found.anys) == (3, 2, 4, 1, 4)
