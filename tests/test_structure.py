"""How the package hangs together, see tools/structure.py."""

from __future__ import annotations

import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from tools.structure import (
    INSIDE,
    LATE,
    ORDER,
    SOURCE,
    TOP,
    Import,
    Module,
    against_the_order,
    counts,
    cycles,
    cycles_of,
    edges,
    floor,
    modules,
    order,
)

# These may only become smaller: imports in functions, which load what few programs need, annotations with Any, lines of
# the longest module, and the modules that `import wonderland` loads (of ours, and of others besides NumPy's).
MOST = {"in functions": 25, "Any": 720, "lines": 490}
LOADED = {"ours": 88, "others": 20}


@cache
def package() -> tuple[dict[str, Module], dict[str, list[Import]]]:
    known = modules()
    return known, edges(known)


def test_imports_have_one_direction() -> None:
    imports = package()[1]
    assert cycles_of(imports, [TOP, LATE, INSIDE]) == []
    assert [(name, i.target) for name, found in imports.items() for i in found if i.kind == LATE] == []


def test_folders_import_from_those_above_them() -> None:
    (known, imports), floors = package(), order(ORDER.read_text(encoding="utf-8"))
    assert [name for name in floors if not (SOURCE / name).exists()] == []
    entrances = {"wonderland", "wonderland.__main__"}  # they lead to everything
    assert {name for name, module in known.items() if floor(module, floors) is None} == entrances
    assert against_the_order(known, imports, floors) == []


def test_the_house_gets_no_more_crooked() -> None:
    known, imports = package()
    inside = {(name, i.line) for name, found in imports.items() for i in found if i.kind == INSIDE}
    every = [counts(module) for module in known.values()]
    found = {"in functions": len(inside), "Any": sum(c.anys for c in every), "lines": max(c.lines for c in every)}
    assert {name: n for name, n in found.items() if n > MOST[name]} == {}


def test_importing_loads_little() -> None:
    """What takes time is loaded when it is first used; modules can be counted, and seconds cannot."""
    script = "import numpy, sys; before = set(sys.modules); import wonderland; print(*set(sys.modules) - before)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    loaded = done.stdout.split()
    ours = [name for name in loaded if name.partition(".")[0] == "wonderland"]
    assert len(ours) <= LOADED["ours"]
    assert len(loaded) - len(ours) <= LOADED["others"]
    assert {"llvmlite", "inspect", "wonderland.nn", "wonderland.transforms.jit"}.isdisjoint(loaded)


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


def test_the_order_is_that_of_the_list() -> None:
    page = "Text `x/` here.\n\n    core/          values\n                   shapes\n    fft.py, nn/a/  more\n    nn/\n"
    floors = order(page)
    assert floors == ["core/", "fft.py", "nn/a/", "nn/"]
    texts = {
        "wonderland.core.x": "from .. import fft",
        "wonderland.fft": "from .core import x",
        "wonderland.nn.a.b": "from .. import c",
        "wonderland.nn.c": "from .a import b",
    }
    paths = {name: SOURCE.joinpath(*name.split(".")[1:]).with_suffix(".py") for name in texts}
    known = {name: Module(name, paths[name], text) for name, text in texts.items()}
    assert against_the_order(known, edges(known), floors) == [
        "wonderland.core.x:1 imports wonderland.fft, but fft.py stands below core/",
        "wonderland.nn.a.b:1 imports wonderland.nn.c, but nn/ stands below nn/a/",
    ]


def test_a_long_chain_needs_no_recursion() -> None:
    n = 20_000
    assert [len(g) for g in cycles({str(i): [str((i + 1) % n)] for i in range(n)})] == [n]


def test_counts() -> None:
    found = counts(module("# one\nx: Any = 1  # two\ndef f(a: Any, b: int, *c: list[Any], **d: str) -> Any: ...\n"))
    assert (found.lines, found.comments, found.parameters, found.untold, found.anys) == (3, 2, 4, 1, 4)
