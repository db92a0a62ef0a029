"""Graphs in text: a list of edges, and a table of the nodes."""

from __future__ import annotations

import numpy as np

from ..core.errors import InputError
from ..core.typing import Array, PathLike
from ..data.formats.delimited import read_csv, read_rows
from ..data.formats.files import damaged
from ..data.tables.delimited_columns import is_number
from .graph import Graph

_FEW = 3
# what people call the two ends
# fmt: off
_HEADERS = frozenset((
    "a", "b", "u", "v", "i", "j", "from", "to", "source", "target", "src", "dst", "start", "end", "node1",
    "node2", "node_1", "node_2", "sender", "receiver", "head", "tail", "source_id", "target_id", "id1", "id2",
    "id_1", "id_2", "parent", "child", "cited", "citing",
))
# fmt: on


def read_edge_list(
    path: PathLike,
    nodes: PathLike | None = None,
    *,
    target: str | int | None = None,
    id_column: str | int = 0,
    weight: str | None = "weight",
    directed: bool = False,
    n: int | None = None,
    header: bool | None = None,
    delimiter: str | None = None,
) -> Graph:
    """The graph of a table of edges (CSV), whose first two columns name the two nodes, and of a table of nodes.

    >>> import pathlib, tempfile, wonderland as wl
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> _ = (folder / "edges.csv").write_text("from,to,weight\\nann,bob,2\\nbob,cid,1\\n")
    >>> _ = (folder / "nodes.csv").write_text("name,age,team\\nann,31,red\\nbob,25,blue\\ncid,40,red\\ndan,19,blue\\n")
    >>> graph = wl.graphs.read_edge_list(folder / "edges.csv", folder / "nodes.csv", target="team")
    >>> graph
    Graph(4 nodes, 2 undirected edges, weighted, x (4, 1), y (4,) of nodes, props names, target_names)
    >>> graph.props["names"], graph.y.tolist()
    (('ann', 'bob', 'cid', 'dan'), [1, 0, 1, 0])

    - A line "a,b" of a directed graph is the pair (a, b): a reads from b. Otherwise both directions are stored.
    - The column called `weight` has the weights, other columns of numbers become features of the edges.
    - With a table of nodes they have its order; the column `id_column` names them, `target` are labels (y, classes
      numbered in sorted order), and the others become features as `wl.data.read_csv` makes them. An edge of a node
      that is not there is refused.
    - Without one the nodes are those of the edges, sorted (as numbers, if they are integers); with `n` names are
      integers from 0 to n - 1, and mean themselves.
    - Whether line 1 is a header is seen from numbers below it, or from what it says; `header` settles it.
    """
    known, props, fields = _nodes(nodes, target, id_column, delimiter) if nodes is not None else ([], {}, {})
    names, rows, lines = _edges(path, header, delimiter, known)
    ends = np.array([[row[0].strip(), row[1].strip()] for row in rows]).reshape(-1, 2)
    if nodes is not None:
        index = {name: i for i, name in enumerate(known)}
    elif n is not None:
        index = {str(i): i for i in range(n)}
    else:
        known = _sorted(np.unique(ends).tolist())
        index = {name: i for i, name in enumerate(known)}
        if known != [str(i) for i in range(len(known))]:
            props = {"names": tuple(known)}
    places = np.array([[index.get(name, -1) for name in pair] for pair in ends.tolist()]).reshape(-1, 2)
    wrong = np.flatnonzero((places < 0).any(axis=1))
    if len(wrong):
        few = ", ".join(f"line {lines[i]}: {tuple(ends[i].tolist())}" for i in wrong[:_FEW])
        raise InputError(
            f"read_edge_list: {len(wrong):,} of {len(ends):,} edges in {str(path)!r} name nodes that are not there: "
            f"{few}{', ...' if len(wrong) > _FEW else ''}.",
            f"names of the column {id_column!r} of the table of nodes" if nodes is not None else f"numbers below {n}",
        )
    weights, columns = None, []
    for k, name in enumerate(names[2:], 2):
        column = _column(path, name, [row[k] for row in rows], lines)
        if name == weight:
            weights = column
        else:
            columns.append(column)
    count = len(known) if n is None or nodes is not None else n
    return Graph(
        count,
        places,
        weights,
        edge_attr=np.stack(columns, axis=1) if columns else None,
        props=props,
        directed=bool(directed),
        **fields,  # type: ignore[arg-type]
    )


def _edges(
    path: PathLike, header: bool | None, delimiter: str | None, known: list[str]
) -> tuple[list[str], list[list[str]], list[int]]:
    """The names of the columns, the rows, and their lines. Two names may be a header, and they may be nodes."""
    names, rows, lines, _ = read_rows(path, False, delimiter)
    if len(names) < 2:
        raise damaged("read_edge_list", path, "two columns or more")
    first = [field.strip() for field in rows[0]]
    if header is None:
        if any(is_number(field) for field in first):
            header = False
        elif any(is_number(field) for row in rows[1:] for field in row):
            header = True
        else:
            header = not set(first[:2]) <= set(known) if known else {name.lower() for name in first[:2]} <= _HEADERS
    return (first, rows[1:], lines[1:]) if header else (names, rows, lines)


def _sorted(names: list[str]) -> list[str]:
    whole = all(name.isascii() and name.isdigit() and len(name) < 19 for name in names)
    return sorted(names, key=int) if whole else sorted(names)


def _column(path: PathLike, name: str, values: list[str], lines: list[int]) -> Array:
    wrong = [i for i, value in enumerate(values) if not is_number(value)]
    if wrong:
        i = wrong[0]
        raise InputError(
            f"read_edge_list: {len(wrong):,} of {len(values):,} values of the column {name!r} in {str(path)!r} are no "
            f"numbers: line {lines[i]}: {values[i]!r}.",
            "columns of numbers behind the two nodes",
        )
    return np.array([float(value) for value in values], np.float32)


def _nodes(
    path: PathLike, target: str | int | None, id_column: str | int, delimiter: str | None
) -> tuple[list[str], dict[str, object], dict[str, Array | None]]:
    """The names of the nodes, what is to be remembered of them, and their features and labels."""
    names, rows, lines, header = read_rows(path, True if isinstance(id_column, str) else None, delimiter)
    place = names.index(id_column) if id_column in names else id_column
    if not isinstance(place, int) or not -len(names) <= place < len(names):
        raise InputError(f"read_edge_list: {str(path)!r} has no column {id_column!r}.", f"one of {', '.join(names)}")
    place %= len(names)
    ids = [row[place].strip() for row in rows]
    first: dict[str, int] = {}
    twice = [i for i, name in enumerate(ids) if first.setdefault(name, i) != i]
    if twice:
        i = twice[0]
        raise InputError(
            f"read_edge_list: {len(twice):,} of {len(ids):,} nodes in {str(path)!r} are there more than once: "
            f"{ids[i]!r} in lines {lines[first[ids[i]]]} and {lines[i]}.",
            "one line per node",
        )
    chosen = target if target is None or isinstance(target, str) else names[target]
    columns = [name for k, name in enumerate(names) if k != place and name != chosen]
    props: dict[str, object] = {"names": tuple(ids)}
    fields: dict[str, Array | None] = {}
    if columns or chosen is not None:
        table = read_csv(path, target=chosen, columns=columns or [names[place]], header=header, delimiter=delimiter)
        fields = {"x": table.features if columns else None, "y": table.targets}
        if table.target_names:
            props["target_names"] = table.target_names
    return ids, props, fields
