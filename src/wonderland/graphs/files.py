"""Graphs in `.npz` files: our own, and those in which citation networks and other graphs are passed around."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Mapping

import numpy as np

from ..core.errors import InputError
from ..core.tensor import Tensor
from ..core.typing import Array, PathLike
from ..data.formats.files import damaged
from ..data.formats.numpy_files import read_npz
from ..storage.atomic import write_atomically
from ..storage.bounds import array_bytes, unpacked_limit
from ..storage.parsing import parse_json
from .graph import Graph

_TENSORS = ("weight", "x", "edge_attr", "u", "y", "edge_y")
_FORMAT = "wonderland_graph"

# what others call the same things, in the order in which they are looked for
_EDGES = ("edge_index", "edges", "edge_list")
_FEATURES = ("x", "features", "attr_matrix", "node_features")
_LABELS = ("y", "labels", "label", "targets")
_WEIGHTS = ("edge_weight", "weights", "edge_weights")
_PARTS = {"train": "train", "val": "val", "valid": "val", "validation": "val", "test": "test"}


def save(graph: Graph, path: PathLike) -> None:
    """Write a graph to an `.npz` file, which appears whole or not at all; `load` gives it back.

    >>> import os, tempfile, wonderland as wl
    >>> path = os.path.join(tempfile.mkdtemp(), "graph.npz")
    >>> wl.graphs.save(wl.graphs.path_graph(3).with_(x=wl.ones((3, 2))), path)
    >>> wl.graphs.load(path)
    Graph(3 nodes, 2 undirected edges, x (3, 2))

    Among the props arrays and plain values (numbers, texts, lists, dicts) are kept, others are refused.
    """
    if graph.num_graphs != 1:
        raise InputError("graphs.save: a batch is many graphs.", "batch.to_graphs(), one file for each")
    rows, cols = graph.ends()
    arrays: dict[str, Array] = {_FORMAT: np.array(1), "n": np.array(graph.n), "ends": np.stack([rows, cols])}
    arrays |= {name: np.asarray(value) for name in _TENSORS if (value := getattr(graph, name)) is not None}
    arrays |= {f"mask:{name}": np.asarray(mask) for name, mask in graph.masks.items()}
    plain = {}
    for name, value in graph.props.items():
        if isinstance(value, (np.ndarray, Tensor)):
            arrays[f"prop:{name}"] = np.asarray(value)
        else:
            plain[name] = value
    try:
        text = json.dumps(plain, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise InputError(
            f"graphs.save: the props have no form in a file ({error}).", "graph.with_(props=None)"
        ) from None
    arrays["props"] = np.frombuffer(text.encode(), np.uint8)
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **arrays)  # type: ignore[arg-type]
    write_atomically(path, buffer.getvalue())


def load(path: PathLike) -> Graph:
    """The graph of an `.npz` file: one that `save` wrote, or one with the usual names.

    - Edges: `edge_index` or `edges`, (2, m) senders and receivers or (m, 2) pairs; or the compressed rows of A
      (`adj_indptr`, `adj_indices`, `adj_shape`, `adj_data`).
    - Features: `x` or `features` (n, c); or their places and values, `feature_rows`, `feature_cols`, `feature_shape`
      and `feature_values` (1 without them); or compressed rows (`attr_indptr`, ...).
    - `y` or `labels`; masks `train`, `val` and `test`, or `train_mask` and so on: truth values or the nodes' numbers.

    Nothing in a file is executed, and what it promises is compared with its size.
    """
    arrays = read_npz(path)
    try:
        if _FORMAT in arrays:
            return _own(arrays)
        return _of_others(path, arrays)
    except (ValueError, TypeError, IndexError, OverflowError) as error:
        reason = str(error).split("\n")[0]
        raise damaged("graphs.load", path, "a graph", ValueError(reason)) from None


def _own(arrays: Mapping[str, Array]) -> Graph:
    if missing := [name for name in ("n", "ends", "props") if name not in arrays]:
        raise ValueError(f"there is no {missing[0]!r}")
    props: dict[str, object] = dict(parse_json(arrays["props"].tobytes()))
    props |= {name[5:]: value for name, value in arrays.items() if name.startswith("prop:")}
    ends, n = arrays["ends"], int(arrays["n"])
    if ends.ndim != 2 or ends.shape[0] != 2:
        raise ValueError(f"ends of edges have the shape {ends.shape}")
    _check_nodes(n, arrays)
    return Graph(
        n,
        ends.T,
        arrays.get("weight"),
        **{name: arrays[name] for name in _TENSORS[1:] if name in arrays},  # type: ignore[arg-type]
        masks={name[5:]: mask for name, mask in arrays.items() if name.startswith("mask:")},
        props=props,
    )


def _check_nodes(n: int, arrays: Mapping[str, Array]) -> None:
    """A number of nodes costs memory, so a small file may not ask for too many."""
    most = max(100 * sum(array.nbytes for array in arrays.values()), 1 << 24)
    if not 0 <= n <= most:
        raise ValueError(f"{n:,} nodes in a file of this size")


def _of_others(path: PathLike, arrays: dict[str, Array]) -> Graph:
    x = _first(arrays, _FEATURES)
    if x is None:
        x = _sparse_features(path, arrays)
    y = _first(arrays, _LABELS)
    if "adj_indptr" in arrays:
        starts, cols = arrays["adj_indptr"].astype(np.int64), arrays["adj_indices"].astype(np.int64)
        n = int(arrays["adj_shape"][0]) if "adj_shape" in arrays else len(starts) - 1
        pairs, weights = np.stack([_unpacked(starts, len(cols), n), cols], axis=1), arrays.get("adj_data")
        if weights is not None and (weights == 1).all():
            weights = None
    else:
        edges = _first(arrays, _EDGES)
        if edges is None:
            raise ValueError(
                f"no edges among {', '.join(map(repr, arrays)) or 'nothing'}; they are called {_EDGES[0]!r}"
            )
        if edges.ndim != 2 or 2 not in edges.shape:
            raise ValueError(f"edges of the shape {edges.shape}")
        pairs = edges[::-1].T if edges.shape[0] == 2 else edges
        weights = _first(arrays, _WEIGHTS)
        sizes = [len(a) for a in (x, y) if a is not None and a.ndim]
        n = sizes[0] if sizes else int(pairs.max(initial=-1)) + 1
        n = int(arrays["num_nodes"]) if "num_nodes" in arrays else n
    _check_nodes(n, arrays)
    if y is not None and y.ndim == 2 and y.shape[1] == 1:
        y = y[:, 0]
    masks = {}
    for name, part in _PARTS.items():
        for key in (name, f"{name}_mask", f"{name}_idx", f"idx_{name}"):
            if key in arrays:
                masks[part] = _mask(key, arrays[key], n)
    return Graph(n, pairs, weights, x=x, y=y, masks=masks, edge_attr=arrays.get("edge_attr"))


def _first(arrays: Mapping[str, Array], names: tuple[str, ...]) -> Array | None:
    return next((arrays[name] for name in names if name in arrays), None)


def _mask(name: str, values: Array, n: int) -> Array:
    if values.dtype == np.bool_ or (values.shape == (n,) and values.dtype.kind in "iu" and values.max(initial=0) <= 1):
        return values.astype(bool)
    if values.dtype.kind not in "iu" or values.ndim != 1:
        raise ValueError(f"{name!r} is {values.dtype}{list(values.shape)}")
    found = np.zeros(n, bool)
    found[values] = True
    return found


def _unpacked(starts: Array, entries: int, rows: int) -> Array:
    """The row of each entry of compressed rows."""
    if len(starts) != rows + 1 or starts[0] != 0 or starts[-1] != entries or (np.diff(starts) < 0).any():
        raise ValueError("rows that do not begin and end where the entries do")
    return np.repeat(np.arange(rows), np.diff(starts))


def _sparse_features(path: PathLike, arrays: Mapping[str, Array]) -> Array | None:
    if "feature_rows" in arrays:
        names = ("feature_cols", "feature_shape")
        rows = arrays["feature_rows"]
    elif "attr_indptr" in arrays:
        names = ("attr_indices", "attr_shape")
        rows = np.zeros(0, np.int64)
    else:
        return None
    if missing := [name for name in names if name not in arrays]:
        raise ValueError(f"features without {missing[0]!r}")
    cols, shape = (arrays[name] for name in names)
    sizes = tuple(int(size) for size in shape.reshape(-1))
    limit = unpacked_limit(os.path.getsize(path))
    if len(sizes) != 2 or array_bytes(sizes, 4) > limit:
        raise ValueError(f"features of the shape {sizes}, which takes more than {limit:,} bytes")
    if "attr_indptr" in arrays and "feature_rows" not in arrays:
        rows = _unpacked(arrays["attr_indptr"].astype(np.int64), len(cols), sizes[0])
    values = arrays.get("feature_values", arrays.get("attr_data"))
    found = np.zeros(sizes, np.float32)
    if len(rows) != len(cols) or (cols.size and (rows.min() < 0 or cols.min() < 0)):
        raise ValueError(f"{len(rows)} rows and {len(cols)} columns of features")
    found[rows, cols] = 1 if values is None else values
    return found
