"""A graph from two tables: a list of edges, and the nodes with their features, a target and a part."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..core.arguments import shown
from ..core.errors import InputError
from ..data.formats.delimited import read_csv, read_rows
from ..data.formats.schema import TableSchema
from ..data.tables.delimited_columns import is_number
from ..graphs import Graph
from .inputs import Options

OF_TABLES = ("nodes", "target", "id", "split", "weight", "directed", "delimiter")
IDS = ("id", "node", "node_id", "name")  # columns that name nodes if nothing is said
SPLITS = ("split", "part")
WEIGHTS = ("weight",)
PARTS = {"train": "train", "training": "train", "val": "val", "valid": "val", "validation": "val", "test": "test"}


@dataclass(frozen=True)
class Tables:
    """A graph whose nodes have features, texts of a target ("" if it is not known), names, and masks."""

    graph: Graph
    schema: TableSchema | None
    targets: list[str] | None
    ids: list[str]


def read_tables(options: Options, schema: TableSchema | None, targets: bool) -> Tables:
    """The graph of `name`, a table of edges, and `nodes`, a table of nodes; see the errors for what both have to be."""
    path, nodes = str(options["name"]), options.get("nodes")
    if nodes is None:
        if targets:
            raise InputError(
                f"{path}: a list of edges has nothing to predict.", "--set data.nodes=nodes.csv data.target=COLUMN"
            )
        ends, weights, _ = _edges(path, options)
        ids = sorted({name for pair in ends for name in pair}, key=_in_order)
        return Tables(_graph(path, ids, ends, weights, options), None, None, ids)
    if not isinstance(nodes, str):
        raise InputError(f"data.nodes = {shown(nodes)}.", "the path of a table with a row per node")
    names, rows, lines, header = read_rows(nodes, True if _named(options) else None, options.get("delimiter"))
    id_place = _place(nodes, names, options, "id", IDS)
    ids = [row[id_place].strip() for row in rows] if id_place is not None else [str(i) for i in range(len(rows))]
    if len(set(ids)) < len(ids):
        seen: dict[str, int] = {}
        again = next(i for i, name in enumerate(ids) if seen.setdefault(name, i) != i)
        raise InputError(
            f"{nodes}: the node {ids[again]!r} is in lines {lines[seen[ids[again]]]} and {lines[again]}.",
            "a row per node, or --set data.id=COLUMN with their names",
        )
    target = _place(nodes, names, options, "target", ()) if targets or "target" in options else None
    split = _place(nodes, names, options, "split", SPLITS)
    others = {place for place in (id_place, target, split) if place is not None}
    columns = [names[i] for i in range(len(names)) if i not in others]
    found, x = None, None
    if columns or schema is not None:
        how = {"columns": columns} if schema is None else {"like": schema}
        record = read_csv(nodes, header=header, delimiter=options.get("delimiter"), **how)
        found, x = record.schema, record.features
    ends, weights, lines_of = _edges(path, options)
    known = set(ids)
    if strange := [(pair, line) for pair, line in zip(ends, lines_of, strict=True) if not known.issuperset(pair)]:
        pair, line = strange[0]
        raise InputError(
            f"{path}: {len(strange)} edges of nodes that {nodes} has not, as {pair[0]} - {pair[1]} in line {line}.",
            "a row for each node" + ("" if id_place is not None else ", or --set data.id=COLUMN with their names"),
        )
    graph = _graph(path, ids, ends, weights, options)
    masks = {} if split is None else _masks(nodes, [row[split] for row in rows], lines)
    graph = graph.with_(x=x, masks=masks)
    texts = None if target is None else ["" if _missing(row[target]) else row[target].strip() for row in rows]
    return Tables(graph, found, texts, ids)


def as_targets(source: str, texts: Sequence[str], known: Sequence[str] | None) -> tuple[np.ndarray, tuple[str, ...]]:
    """Texts as classes and their names, with -1 where there is none, or as numbers, with NaN there.

    >>> as_targets("nodes.csv", ["b", "", "a"], None)
    (array([ 1, -1,  0]), ('a', 'b'))
    """
    there = [text for text in texts if text]
    if not there:
        raise InputError(f"{source}: no node has a target.", "a column with some")
    numbers = all(is_number(text) for text in there)
    whole = numbers and all(float(text).is_integer() for text in there)
    if known == [] or (known is None and numbers and not whole):
        if not numbers:
            odd = next(text for text in there if not is_number(text))
            raise InputError(f"{source}: the target {odd!r} is no number.", "numbers, as those of the run")
        return np.array([float(text) if text else np.nan for text in texts], np.float32), ()
    names = tuple(known) if known is not None else tuple(sorted(set(there), key=_in_order))
    place = {name: i for i, name in enumerate(names)}
    if strange := [text for text in there if text not in place]:
        raise InputError(f"{source}: the class {strange[0]!r} is new to the run.", f"one of {shown(list(names))}")
    return np.array([place[text] if text else -1 for text in texts], np.int64), names


def _named(options: Options) -> bool:
    return any(isinstance(options.get(which), str) for which in ("target", "id", "split"))


def _place(path: str, names: list[str], options: Options, which: str, usual: Sequence[str]) -> int | None:
    wanted = options.get(which)
    lower = [name.lower() for name in names]
    if wanted is None:
        if which == "target":
            raise InputError(
                f"{path}: which column is to be predicted?", f"--set data.target=... of {', '.join(names)}"
            )
        return next((lower.index(name) for name in usual if name in lower), None)
    if wanted in names:
        return names.index(str(wanted))
    if type(wanted) is int and 0 <= wanted < len(names):
        return wanted
    raise InputError(
        f"{path}: there is no column {shown(wanted)}.", f"--set data.{which}=... with one of {', '.join(names)}"
    )


def _edges(path: str, options: Options) -> tuple[list[tuple[str, str]], np.ndarray | None, list[int]]:
    """The pairs of names of a table, the weights if it has some, and the lines."""
    names, rows, lines, header = read_rows(path, None, options.get("delimiter"))
    if header is False and not all(is_number(field) for field in rows[0][:2]) and _is_title(rows):
        names, rows, lines = [name.strip() for name in rows[0]], rows[1:], lines[1:]
    weight = _place(path, names, options, "weight", WEIGHTS)
    if (
        len(names) < 2
        or (len(names) > 3 and weight is None)
        or (len(names) == 3 and weight is None and not _numbers(rows, 2))
    ):
        raise InputError(
            f"{path}: {len(names)} columns ({', '.join(names[:5])}) are no edges.",
            "two columns with the names of nodes, and one with weights; for a table of examples --model mlp",
        )
    weight = 2 if weight is None and len(names) == 3 else weight
    values = None
    if weight is not None:
        for row, line in zip(rows, lines, strict=True):
            if not is_number(row[weight]):
                raise InputError(f"{path}: the weight {row[weight]!r} in line {line}.", "numbers")
        values = np.array([float(row[weight]) for row in rows], np.float32)
    first, second = (i for i in range(len(names)) if i != weight)
    return [(row[first].strip(), row[second].strip()) for row in rows], values, lines


def _is_title(rows: Sequence[Sequence[str]]) -> bool:
    """Whether the first row of names has none of the names of the others, as ("from", "to")."""
    rest = {field.strip() for row in rows[1:] for field in row[:2]}
    return len(rows) > 1 and not any(field.strip() in rest for field in rows[0][:2])


def _numbers(rows: Sequence[Sequence[str]], place: int) -> bool:
    return all(is_number(row[place]) for row in rows)


def _graph(
    path: str, ids: Sequence[str], ends: Sequence[tuple[str, str]], weights: np.ndarray | None, options: Options
) -> Graph:
    directed = options.get("directed", False)
    if not isinstance(directed, bool):
        raise InputError(f"data.directed = {shown(directed)}.", "true or false")
    place = {name: i for i, name in enumerate(ids)}
    pairs = np.array([(place[a], place[b]) for a, b in ends], np.int64).reshape(-1, 2)
    if directed:  # the second reads from the first
        return Graph(len(ids), pairs[:, ::-1], weights)
    return Graph(len(ids), pairs, weights, directed=False)


def _masks(path: str, texts: Sequence[str], lines: Sequence[int]) -> dict[str, np.ndarray]:
    found = [PARTS.get(text.strip().lower(), "" if _missing(text) else None) for text in texts]
    if None in found:
        odd = found.index(None)
        raise InputError(f"{path}: the part {texts[odd]!r} in line {lines[odd]}.", "train, val, test or nothing")
    return {part: np.array([f == part for f in found]) for part in ("train", "val", "test") if part in found}


def _missing(text: str) -> bool:
    return text.strip().lower() in ("", "na", "n/a", "nan", "null", "none", "?")


def _in_order(text: str) -> tuple[int, float, str]:
    """Numbers by size, then texts."""
    return (0, float(text), text) if is_number(text) else (1, 0.0, text)
