"""Sets of graphs in the format of TU Dortmund: a folder of text files, one line per edge, node or graph.

DS_A.txt                  "i, j": an edge, nodes counted from 1 through all graphs
DS_graph_indicator.txt    the number of each node's graph, from 1
DS_graph_labels.txt       the class of each graph, or DS_graph_attributes.txt, its numbers
DS_node_labels.txt, DS_node_attributes.txt, DS_edge_labels.txt, DS_edge_attributes.txt    where there are any
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ..core.errors import InputError
from ..core.typing import Array, PathLike
from ..data.formats.files import as_path, damaged, read_bytes
from ..storage.bounds import LEAST_TEXT
from .checking import examples
from .datasets import GraphList
from .graph import Graph

_ENDINGS = (".txt", ".txt.gz")


def read_tu(folder: PathLike, name: str | None = None, *, attributes: bool = True, labels: bool = True) -> GraphList:
    """The graphs of a folder such as MUTAG's, with one label each.

    Features x of a node are its attributes and then a one-hot code of its labels (of several, one after the other), and
    so are those of an edge; without either there are none. Classes are numbered from 0 in the order of their labels,
    which are `target_names`. `name` is DS, and may be left out if the folder has one set; `attributes=False` takes the
    labels alone. A set without labels of graphs has the numbers of graph_attributes as y; with `labels=False`
    graphs have none, and need none.
    """
    where = as_path("read_tu", folder)
    if not where.is_dir():
        raise InputError(f"read_tu: {str(where)!r} is no folder.", "the folder that has DS_A.txt in it")
    name = _name(where, name)
    needed = [part for part in ("A", "graph_indicator") if _file(where, name, part) is None]
    if labels and all(_file(where, name, part) is None for part in ("graph_labels", "graph_attributes")):
        needed.append("graph_labels")
    if needed:
        missing = ", ".join(f"{name}_{part}.txt" for part in needed)
        raise InputError(f"read_tu: {str(where)!r} has no {missing}.", "all files of the set in one folder")
    pairs = _whole(where, name, "A", 2)
    owner = _whole(where, name, "graph_indicator", 1)[:, 0]
    n = len(owner)
    targets, names = _targets(where, name) if labels else (None, ())
    count = int(owner.max(initial=0)) if targets is None else len(targets)
    _check_range(where, name, "graph_indicator", owner[:, None], count, "graphs")
    _check_range(where, name, "A", pairs, n, "nodes")
    pairs, owner = pairs - 1, owner - 1
    apart = np.flatnonzero(owner[pairs[:, 0]] != owner[pairs[:, 1]]) if len(pairs) else np.zeros(0, int)
    if len(apart):
        file = _file(where, name, "A")
        raise InputError(
            f"read_tu: {len(apart):,} of {len(pairs):,} edges in {str(file)!r} join two graphs: "
            f"{examples(apart, pairs + 1)} (lines from 0).",
            "edges inside of a graph",
        )
    x = _features(where, name, "node", n, attributes)
    edge_attr = _features(where, name, "edge", len(pairs), attributes)
    order, which = np.argsort(owner, kind="stable"), np.argsort(owner[pairs[:, 0]], kind="stable")
    every = np.arange(count + 1)
    bounds, edge_bounds = np.searchsorted(owner[order], every), np.searchsorted(owner[pairs[:, 0]][which], every)
    place = np.empty(n, np.int64)
    place[order] = np.arange(n)
    graphs = []
    for k in range(count):
        nodes, edges = order[bounds[k] : bounds[k + 1]], which[edge_bounds[k] : edge_bounds[k + 1]]
        graphs.append(
            Graph(
                len(nodes),
                place[pairs[edges]] - bounds[k],
                x=None if x is None else x[nodes],
                edge_attr=None if edge_attr is None else edge_attr[edges],
                y=None if targets is None else targets[k] if targets.ndim == 1 else targets[k : k + 1],
            )
        )
    return GraphList(graphs, target_names=names, name=name)


def node_label_kinds(folder: PathLike, name: str | None = None) -> list[list[int]] | None:
    """The labels that nodes of a set have, sorted, for each kind of label: what their one-hot codes stand for."""
    where = as_path("read_tu", folder)
    name = _name(where, name)
    if _file(where, name, "node_labels") is None:
        return None
    return [np.unique(column).tolist() for column in _whole(where, name, "node_labels", None).T]


def _name(folder: Path, name: str | None) -> str:
    if name is not None:
        return name
    sets = sorted({p.name.removesuffix(e).removesuffix("_A") for e in _ENDINGS for p in folder.glob(f"*_A{e}")})
    if len(sets) != 1:
        found = f"the sets {', '.join(sets)}" if sets else "no file that ends in _A.txt"
        raise InputError(
            f"read_tu: {str(folder)!r} has {found}.", "read_tu(folder, name)" if sets else "the folder of a set"
        )
    return sets[0]


def _file(folder: Path, name: str, part: str) -> Path | None:
    places = (folder / f"{name}_{part}{ending}" for ending in _ENDINGS)
    return next((place for place in places if place.is_file()), None)


def _numbers(folder: Path, name: str, part: str, columns: int | None, rows: int | None, dtype: type) -> Array:
    """The numbers of a file, (lines, columns)."""
    path = _file(folder, name, part)
    assert path is not None
    data = read_bytes("read_tu", path, least=LEAST_TEXT)
    lines = [line for line in data.split(b"\n") if line.strip()]
    width = len(lines[0].replace(b",", b" ").split()) if lines else (columns or 1)
    try:
        found: Array = np.array(data.replace(b",", b" ").split(), dtype=np.bytes_).astype(dtype)
    except ValueError as error:
        raise damaged("read_tu", path, "numbers between commas", error) from None
    if columns is not None and width != columns:
        raise damaged("read_tu", path, f"{columns} numbers a line, found {width} in the first")
    if found.size != width * len(lines):
        odd = next(i for i, line in enumerate(lines) if len(line.replace(b",", b" ").split()) != width)
        raise damaged("read_tu", path, f"{width} numbers a line as in the first, line {odd + 1} has others")
    if rows is not None and len(lines) != rows:
        raise damaged("read_tu", path, f"{rows:,} lines, found {len(lines):,}")
    if dtype is float and not np.isfinite(found).all():
        raise damaged("read_tu", path, "finite numbers")
    return found.reshape(-1, width)


def _whole(folder: Path, name: str, part: str, columns: int | None, rows: int | None = None) -> Array:
    return _numbers(folder, name, part, columns, rows, int)


def _targets(folder: Path, name: str) -> tuple[Array, tuple[str, ...]]:
    if _file(folder, name, "graph_labels") is None:
        return _numbers(folder, name, "graph_attributes", None, None, float).astype(np.float32), ()
    values = _numbers(folder, name, "graph_labels", 1, None, float)[:, 0]
    kinds, codes = np.unique(values, return_inverse=True)
    return codes.astype(np.int64), tuple(f"{kind:g}" for kind in kinds)


def _features(folder: Path, name: str, of: str, rows: int, attributes: bool) -> Array | None:
    parts = []
    if attributes and _file(folder, name, f"{of}_attributes") is not None:
        parts.append(_numbers(folder, name, f"{of}_attributes", None, rows, float).astype(np.float32))
    if _file(folder, name, f"{of}_labels") is not None:
        for column in _whole(folder, name, f"{of}_labels", None, rows).T:
            kinds, codes = np.unique(column, return_inverse=True)
            if len(kinds) > 4096:
                path = _file(folder, name, f"{of}_labels")
                raise damaged("read_tu", str(path), f"labels, found {len(kinds):,} different ones")
            parts.append(np.eye(len(kinds), dtype=np.float32)[codes])
    return np.concatenate(parts, axis=1) if parts else None


def _check_range(folder: Path, name: str, part: str, values: Array, most: int, what: str) -> None:
    wrong = np.flatnonzero(((values < 1) | (values > most)).any(axis=1))
    if len(wrong):
        others = f"{len(wrong):,} lines have others: {examples(wrong, values)} (lines from 0)"
        raise damaged("read_tu", str(_file(folder, name, part)), f"numbers of {what} from 1 to {most:,}; {others}")
