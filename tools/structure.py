"""How the package hangs together: `python -m tools.structure` prints a table, `--imports` also the edges behind it.

The source is parsed, never imported. The order of the folders is the list in docs/architecture.md. An import is one of
three kinds: *at the top* of a module, *late* (below the first definition, so that two modules can import each other) or
*in a function*. Imports for type checkers alone do not count.
"""

from __future__ import annotations

import argparse
import ast
import io
import re
import tokenize
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

PACKAGE = "wonderland"
PROJECT = Path(__file__).resolve().parent.parent
SOURCE = PROJECT / "src" / PACKAGE
ORDER = PROJECT / "docs" / "architecture.md"

Function = ast.FunctionDef | ast.AsyncFunctionDef
TOP, LATE, INSIDE = "at the top", "late", "in a function"


@dataclass(frozen=True)
class Import:
    target: str  # a module of the package
    line: int
    kind: str


@dataclass(frozen=True)
class Module:
    name: str
    path: Path
    text: str = field(repr=False)

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text)

    @property
    def package(self) -> str:
        """The package that its relative imports start from."""
        return self.name if self.path.name == "__init__.py" else self.name.rpartition(".")[0]

    def imports(self, known: Iterable[str]) -> Iterator[Import]:
        """The modules among the `known` that it imports."""
        names = set(known)
        first = min((node.lineno for node in self.tree.body if isinstance(node, Function | ast.ClassDef)), default=None)
        for node, inside in _import_statements(self.tree, False):
            late = first is not None and node.lineno > first
            kind = INSIDE if inside else LATE if late else TOP
            for target in dict.fromkeys(self._targets(node, names)):
                yield Import(target, node.lineno, kind)

    def _targets(self, node: ast.Import | ast.ImportFrom, known: set[str]) -> Iterator[str]:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in known)
            return
        above = self.package.split(".")[: len(self.package.split(".")) - node.level + 1] if node.level else []
        base = ".".join([*above, *([node.module] if node.module else [])])
        for alias in node.names:
            named = f"{base}.{alias.name}"
            yield from (name for name in (named if named in known else base,) if name in known)


def _import_statements(node: ast.AST, inside: bool) -> Iterator[tuple[ast.Import | ast.ImportFrom, bool]]:
    """The imports below a node, and whether they stand in a function."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import | ast.ImportFrom):
            yield child, inside
        elif not (isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING"):
            yield from _import_statements(child, inside or isinstance(child, Function | ast.Lambda))


def modules(source: Path = SOURCE) -> dict[str, Module]:
    """The modules of the package, by name."""
    found = {}
    for path in sorted(source.rglob("*.py")):
        parts = [PACKAGE, *path.relative_to(source).with_suffix("").parts]
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        found[name] = Module(name, path, path.read_text(encoding="utf-8"))
    return found


def edges(known: Mapping[str, Module]) -> dict[str, list[Import]]:
    return {name: list(module.imports(known)) for name, module in known.items()}


def cycles(graph: Mapping[str, Iterable[str]]) -> list[list[str]]:
    """The groups of nodes that reach each other, the largest first (Tarjan's algorithm, without recursion)."""
    order: dict[str, int] = {}
    low: dict[str, int] = {}
    open_nodes: dict[str, None] = {}
    found: list[list[str]] = []
    for root in graph:
        if root in order:
            continue
        path = [(root, iter(graph[root]))]
        order[root] = low[root] = len(order)
        open_nodes[root] = None
        while path:
            node, rest = path[-1]
            following = next((n for n in rest if n not in order or n in open_nodes), None)
            if following is None:
                path.pop()
                if path:
                    low[path[-1][0]] = min(low[path[-1][0]], low[node])
                if low[node] == order[node]:
                    names = list(open_nodes)
                    group = names[names.index(node) :]
                    for name in group:
                        del open_nodes[name]
                    if len(group) > 1 or node in graph[node]:
                        found.append(sorted(group))
            elif following in order:
                low[node] = min(low[node], order[following])
            else:
                order[following] = low[following] = len(order)
                open_nodes[following] = None
                path.append((following, iter(graph[following])))
    return sorted(found, key=len, reverse=True)


def cycles_of(imports: Mapping[str, list[Import]], kinds: Iterable[str]) -> list[list[str]]:
    """The cycles that imports of some kinds make."""
    chosen = set(kinds)
    return cycles({name: [i.target for i in found if i.kind in chosen] for name, found in imports.items()})


def order(text: str) -> list[str]:
    """The folders and files of the list in a page: indented lines that begin with `core/` or `fft.py, shape/`."""
    lines = re.findall(r"^    ((?:[\w/]+(?:/|\.py)(?:, )?)+)(?:  |$)", text, re.MULTILINE)
    return [name for line in lines for name in line.split(", ")]


def floor(module: Module, known: Sequence[str], source: Path = SOURCE) -> int | None:
    """Where a module stands in the order: by its own name, or by that of the nearest folder."""
    path = module.path.relative_to(source)
    names = [path.as_posix(), *(f"{folder.as_posix()}/" for folder in path.parents)]
    return next((known.index(name) for name in names if name in known), None)


def against_the_order(
    known: Mapping[str, Module], imports: Mapping[str, list[Import]], floors: Sequence[str]
) -> list[str]:
    """The imports from a folder further down the list."""
    found = []
    for name, several in imports.items():
        here = floor(known[name], floors)
        for one in several:
            there = floor(known[one.target], floors)
            if here is not None and there is not None and there > here:
                found.append(f"{name}:{one.line} imports {one.target}, but {floors[there]} stands below {floors[here]}")
    return found


@dataclass(frozen=True)
class Counts:
    """What one module has."""

    lines: int
    comments: int  # lines that are a comment alone, or end in one
    parameters: int
    untold: int  # parameters typed Any
    anys: int  # annotations with Any in them


def counts(module: Module) -> Counts:
    tokens = tokenize.generate_tokens(io.StringIO(module.text).readline)
    comments = sum(token.type == tokenize.COMMENT for token in tokens)
    parameters = untold = anys = 0
    for node in ast.walk(module.tree):
        if isinstance(node, Function):
            everybody = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
            everybody += [a for a in (node.args.vararg, node.args.kwarg) if a]
            told = [a.annotation for a in everybody if a.annotation]
            parameters += len(told)
            untold += sum(isinstance(a, ast.Name) and a.id == "Any" for a in told)
            anys += sum(_has_any(a) for a in [*told, node.returns])
        elif isinstance(node, ast.AnnAssign):
            anys += _has_any(node.annotation)
    return Counts(len(module.text.splitlines()), comments, parameters, untold, anys)


def _has_any(annotation: ast.expr | None) -> bool:
    return annotation is not None and any(isinstance(n, ast.Name) and n.id == "Any" for n in ast.walk(annotation))


def table() -> list[tuple[str, str]]:
    """What there is to say, in words and numbers."""
    known = modules()
    imports = edges(known)
    each = [counts(module) for module in known.values()]
    lines, parameters = sum(c.lines for c in each), sum(c.parameters for c in each)

    def largest(*kinds: str) -> str:
        return str(max(map(len, cycles_of(imports, kinds)), default=0))

    def statements(kind: str) -> str:
        return str(len({(name, i.line) for name, found in imports.items() for i in found if i.kind == kind}))

    longest = max(known.values(), key=lambda m: m.text.count("\n"))
    return [
        ("modules", str(len(known))),
        ("lines", f"{lines:,}"),
        ("late imports", statements(LATE)),
        ("imports in functions", statements(INSIDE)),
        ("largest cycle of imports", largest(TOP, LATE)),
        ("the same with those in functions", largest(TOP, LATE, INSIDE)),
        ("lines with a comment", f"{sum(c.comments for c in each) / lines:.1%}"),
        ("parameters typed Any", f"{sum(c.untold for c in each) / parameters:.1%}"),
        ("annotations with Any", f"{sum(c.anys for c in each):,}"),
        ("longest module", f"{longest.name}, {longest.text.count(chr(10))} lines"),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tools.structure", description=__doc__)
    parser.add_argument("--imports", action="store_true", help="the cycles, and all imports that are not at the top")
    options = parser.parse_args()
    for what, found in table():
        print(f"{what:36}{found}")
    if options.imports:
        known = modules()
        imports = edges(known)
        for line in against_the_order(known, imports, order(ORDER.read_text(encoding="utf-8"))):
            print(f"\n{line}")
        for group in cycles_of(imports, [TOP, LATE, INSIDE]):
            print(f"\ncycle of {len(group)}: {', '.join(group)}")
        for kind in (LATE, INSIDE):
            print(f"\n{kind}")
            for name, several in imports.items():
                for one in several:
                    if one.kind == kind:
                        print(f"  {name}:{one.line}  {one.target}")


if __name__ == "__main__":
    main()
