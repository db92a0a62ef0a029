"""Write `docs/book.md`, the map from every row of the book to the public names and the tests that show it.

Tests say which rows they show: `@pytest.mark.book("6-35", "B6-09", name="wl.vjp")`. Their files are parsed,
never imported, so the map can be written before the package works. Rows without code, and rows that tests show only in
part, stand with the reason and with what is missing in `docs/no_code.tsv` and `docs/partial.tsv`.

    python -m tools.book_map            write docs/book.md
    python -m tools.book_map --check    exit with 1 if docs/book.md is not what would be written
"""

from __future__ import annotations

import argparse
import ast
import csv
import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
COMMAND = "python -m tools.book_map"

NAMESPACES = ("wl", "nn")  # how tests call the package and its layers
# So common in tests that they tell nothing.
SCENERY = frozenset({"wl.tensor", "wl.asarray", "wl.float32", "wl.float64"})
MOST_NAMES = 4  # of the names found in a test; names given in the marker are all listed

Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


class MapError(Exception):
    """The markers or the tables contradict each other; one problem a line."""


@dataclass(frozen=True)
class Row:
    """A statement of the book, the notes or the slides."""

    id: str
    source: str
    item: str


@dataclass(frozen=True)
class Mark:
    """A marker on a test: which row it shows, where, and with which public names."""

    row: str
    test: str  # path::name
    place: str  # path:line
    given: tuple[str, ...]  # by the marker's `name`
    found: tuple[str, ...]  # in the code of the test


# Reading


def read_table(path: Path, columns: tuple[str, ...]) -> list[list[str]]:
    """The lines of a tab-separated file below its header; the first column identifies the line."""
    with path.open(encoding="utf-8", newline="") as file:
        header, *lines = list(csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE)) or [[]]
    problems = []
    if tuple(header) != columns:
        problems.append(f"{path}: the columns are {header}, they should be {list(columns)}")
    seen: set[str] = set()
    for number, line in enumerate(lines, start=2):
        if len(line) != len(columns) or not all(line):
            problems.append(f"{path}:{number}: a line needs {len(columns)} non-empty cells, received {line}")
        elif line[0] in seen:
            problems.append(f"{path}:{number}: row {line[0]} is there twice")
        else:
            seen.add(line[0])
    if problems:
        raise MapError("\n".join(problems))
    return lines


class MarkerReader:
    """Finds the markers of one test file."""

    def __init__(self, path: Path, label: str) -> None:
        self.label = label
        self.tree = ast.parse(path.read_text(encoding="utf-8"), filename=str(path))
        self.problems: list[str] = []
        self.marks: list[Mark] = []
        self.placed: set[ast.AST] = set()  # marker expressions that were found on a test
        self.aliases: set[str] = set()  # book = pytest.mark.book
        self.globals: dict[str, ast.AST] = {}  # what a name in a decorator may stand for
        for statement in self.tree.body:
            for name, value in assignments(statement):
                self.globals[name] = value
                if is_marker(value, self.aliases):
                    self.aliases.add(name)
                    self.placed.add(value)
            if isinstance(statement, ast.FunctionDef) and not statement.name.startswith("test"):
                self.globals[statement.name] = statement  # may return the cases of a parametrized test

    def read(self) -> list[Mark]:
        """All markers of the file, in the order of the source."""
        self.attach([self.globals.get("pytestmark")], self.label, [self.tree])
        for node, name in definitions(self.tree, f"{self.label}::"):
            owners: list[ast.AST | None] = list(node.decorator_list)
            if isinstance(node, ast.ClassDef):
                owners += [v for s in node.body for n, v in assignments(s) if n == "pytestmark"]
            self.attach(owners, name, [*node.body, *node.decorator_list])
        for part in (n for n in ast.walk(self.tree) if isinstance(n, ast.Attribute | ast.Name)):
            stray = is_marker(part, self.aliases) and part not in self.placed
            if stray and isinstance(part.ctx, ast.Load):
                self.problems.append(f"{self.label}:{part.lineno}: this book marker is not called on a test")
        if self.problems:
            raise MapError("\n".join(self.problems))
        return self.marks

    def attach(self, owners: Iterable[ast.AST | None], test: str, code: list[ast.AST]) -> None:
        """Record every marker in the expressions `owners` as belonging to `test`."""
        for call in self.calls([owner for owner in owners if owner is not None], set()):
            self.placed.add(call.func)
            place = f"{self.label}:{call.lineno}"
            rows = [text for argument in call.args for text in literals(argument)]
            given = [text for keyword in call.keywords for text in literals(keyword.value)]
            if None in rows + given or any(keyword.arg != "name" for keyword in call.keywords):
                self.problems.append(f'{place}: only literals, please: pytest.mark.book("6-35", name="wl.vjp")')
            elif not rows:
                self.problems.append(f"{place}: this book marker names no row")
            else:
                names, found = tuple(filter(None, given)), names_used(code)
                self.marks += [Mark(row, test, place, names, found) for row in rows if row is not None]

    def calls(self, nodes: Iterable[ast.AST], seen: set[str]) -> Iterator[ast.Call]:
        """The marker calls inside the nodes, and inside the module's variables that they mention."""
        for node in nodes:
            for part in ast.walk(node):
                if isinstance(part, ast.Call) and is_marker(part.func, self.aliases):
                    yield part
                elif isinstance(part, ast.Name) and part.id in self.globals and part.id not in seen:
                    seen.add(part.id)
                    yield from self.calls([self.globals[part.id]], seen)


def assignments(statement: ast.stmt) -> Iterator[tuple[str, ast.expr]]:
    """`name = value` pairs of one statement."""
    if isinstance(statement, ast.Assign):
        yield from ((target.id, statement.value) for target in statement.targets if isinstance(target, ast.Name))
    elif isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name) and statement.value:
        yield statement.target.id, statement.value


def definitions(node: ast.AST, prefix: str) -> Iterator[tuple[Definition, str]]:
    """The test functions and test classes in a file, also those inside classes and `if` blocks."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            if child.name.startswith("test"):
                yield child, prefix + child.name
        elif isinstance(child, ast.ClassDef):
            if child.name.startswith("Test"):
                yield child, prefix + child.name
                yield from definitions(child, f"{prefix}{child.name}::")
        elif isinstance(child, ast.stmt):
            yield from definitions(child, prefix)


def dotted(node: ast.AST) -> str:
    """`a.b.c` as text; "" for anything else."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute) and (left := dotted(node.value)):
        return f"{left}.{node.attr}"
    return ""


def is_marker(node: ast.AST, aliases: set[str]) -> bool:
    """Whether an expression is `pytest.mark.book` or another name for it."""
    text = dotted(node)
    return text in ("pytest.mark.book", "mark.book") or text in aliases


def literals(node: ast.expr) -> list[str | None]:
    """The strings of a literal, or of a tuple or list of them; None for what is not a string literal."""
    if isinstance(node, ast.Tuple | ast.List):
        return [text for element in node.elts for text in literals(element)]
    return [node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None]


def names_used(code: list[ast.AST]) -> tuple[str, ...]:
    """The public names of the package that the code mentions, in the order of the source, each once."""
    names: list[str] = []
    for node in code:
        attributes = [part for part in ast.walk(node) if isinstance(part, ast.Attribute)]
        inner = {part.value for part in attributes}  # the `wl.linalg` of `wl.linalg.inv`
        chains = [part for part in attributes if part not in inner]
        for part in sorted(chains, key=lambda part: (part.lineno, part.col_offset, part.end_col_offset or 0)):
            namespace, *rest = dotted(part).split(".")
            if namespace in NAMESPACES and not any(name.startswith("_") for name in rest):
                names.append(dotted(part))
    telling = [name for name in names if name not in SCENERY]
    return tuple(dict.fromkeys(telling or names))


def read_marks(root: Path) -> list[Mark]:
    """The markers of all test files, by path and then in the order of the source."""
    marks, problems = [], []
    for path in sorted((root / "tests").rglob("test_*.py"), key=lambda path: path.as_posix()):
        try:
            marks += MarkerReader(path, path.relative_to(root).as_posix()).read()
        except SyntaxError as error:
            problems.append(f"{path.relative_to(root).as_posix()}:{error.lineno}: {error.msg}")
        except MapError as error:
            problems.append(str(error))
    if problems:
        raise MapError("\n".join(problems))
    return marks


# Writing


def build(root: Path) -> str:
    """The text of `docs/book.md` for the tables and tests under `root`."""
    rows = [Row(*line) for line in read_table(root / "docs" / "rows.tsv", ("id", "source", "item"))]
    no_code = dict(read_table(root / "docs" / "no_code.tsv", ("id", "reason")))
    partial = dict(read_table(root / "docs" / "partial.tsv", ("id", "missing")))
    marks = read_marks(root)
    known, marked = {row.id for row in rows}, {mark.row for mark in marks}
    tables = {"no_code": no_code, "partial": partial}
    problems = [
        f"docs/{name}.tsv: row {id} is not in docs/rows.tsv"
        for name, table in tables.items()
        for id in table
        if id not in known
    ]
    problems += [
        f"docs/partial.tsv: row {id} has no test; take it out" for id in partial if id in known and id not in marked
    ]
    for mark in marks:
        if mark.row not in known:
            problems.append(f"{mark.place}: row {mark.row} is not in docs/rows.tsv")
        elif mark.row in no_code:
            problems.append(f"{mark.place}: row {mark.row} has a test; take it out of docs/no_code.tsv")
    if problems:
        raise MapError("\n".join(problems))

    shown: dict[str, list[Mark]] = {}
    for mark in marks:
        shown.setdefault(mark.row, []).append(mark)
    return render(rows, shown, no_code, partial)


def render(rows: list[Row], shown: dict[str, list[Mark]], no_code: dict[str, str], partial: dict[str, str]) -> str:
    """The page: a table for each source, the rows shown in part, those without code, those to come."""
    whole = [row for row in rows if row.id in shown and row.id not in partial]
    to_come = [row for row in rows if row.id not in shown and row.id not in no_code]
    lines = [
        "# The book, row by row",
        "",
        f"<!-- Written by `{COMMAND}` from docs/*.tsv and the markers on the tests. -->",
        "",
        "What the book *Alice's Adventures in a Differentiable Wonderland*, two sets of notes (A: lecture",
        "notes, B: notes on the book, C: where they disagree) and a set of slides ask for; the public names",
        "that answer, and the tests that show it.",
        "",
        f"Of {len(rows)} rows, {len(whole)} are shown by tests, {len(partial)} in part, {len(no_code)} call for no",
        f"code and {len(to_come)} are still to come.",
    ]
    for source, group in groupby(whole, key=lambda row: row.source):
        lines += ["", f"## {title(source)}", "", "| row | item | public names | tests |", "|---|---|---|---|"]
        lines += [f"| {row.id} | {escape(row.item)} | {evidence(shown[row.id])} |" for row in group]
    if partial:
        lines += ["", "## Rows that are shown in part", ""]
        lines += ["| row | item | missing | public names | tests |", "|---|---|---|---|---|"]
        for row in rows:
            if row.id in partial:
                cells = [row.id, escape(row.item), partial[row.id].replace("|", "\\|"), evidence(shown[row.id])]
                lines.append(f"| {' | '.join(cells)} |")
    if no_code:
        lines += ["", "## Rows that call for no code", "", "| row | item | reason |", "|---|---|---|"]
        for row in rows:
            if row.id in no_code:
                lines.append(f"| {row.id} | {escape(row.item)} | {escape(no_code[row.id])} |")
    if to_come:
        lines += ["", "## Rows still to come", ""]
        position = {row.id: index for index, row in enumerate(rows)}
        for source, group in groupby(to_come, key=lambda row: row.source):
            lines.append(f"- {title(source)}: {', '.join(ranges([row.id for row in group], position))}")
    return "\n".join(lines) + "\n"


def evidence(marks: list[Mark]) -> str:
    """The public names and the tests of a row, as two cells."""
    names = (f"`{name}`" for name in public_names(marks))
    tests = dict.fromkeys(f"`{mark.test}`" for mark in marks)
    return f"{', '.join(names)} | {'<br>'.join(tests)}"


def public_names(marks: list[Mark]) -> list[str]:
    """The names that the markers give or, if none does, the first few that the tests use."""
    given = dict.fromkeys(name for mark in marks for name in mark.given)
    found = dict.fromkeys(name for mark in marks for name in mark.found)
    return list(given) or list(found)[:MOST_NAMES]


def title(source: str) -> str:
    """`book ch. 6` as a heading: `Book, chapter 6`."""
    text = source.replace("book ch.", "book, chapter").replace("book app.", "book, appendix")
    return text[:1].upper() + text[1:]


def escape(text: str) -> str:
    """Text that Markdown shows as it is, in a cell of a table."""
    return re.sub(r"([\\|*~<`])", r"\\\1", text)


def ranges(ids: list[str], position: dict[str, int]) -> Iterator[str]:
    """Ids with runs of neighbours joined: 1.01, 1.03-1.07."""
    for _, run in groupby(enumerate(ids), key=lambda pair: position[pair[1]] - pair[0]):
        members = [id for _, id in run]
        yield from members if len(members) < 3 else [f"{members[0]} to {members[-1]}"]


def main(arguments: list[str] | None = None, root: Path = ROOT) -> int:
    """The command line; returns the exit code."""
    parser = argparse.ArgumentParser(prog=COMMAND, description="Write docs/book.md from the tests' markers.")
    parser.add_argument("--check", action="store_true", help="write nothing, exit with 1 if it is stale")
    check = parser.parse_args(arguments).check
    try:
        text = build(root)
    except MapError as error:
        print(error, file=sys.stderr)
        return 1
    page = root / "docs" / "book.md"
    if not check:
        page.write_text(text, encoding="utf-8", newline="\n")
    elif not page.exists() or page.read_text(encoding="utf-8") != text:
        print(f"docs/book.md is stale: run `{COMMAND}` and commit the result.", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
