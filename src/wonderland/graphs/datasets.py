"""Datasets of graphs: one graph whose nodes are the examples, or many graphs. Book, section 12.2.3.

Both go into `wl.data.DataLoader` and `wl.train.fit`: a batch is `(graph, targets)`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..arrays import asarray
from ..core.arguments import as_list
from ..core.errors import InputError
from ..core.tensor import Tensor
from ..core.typing import Array, ArrayLike
from ..data.dataset import Dataset
from ..data.loader import DataLoader
from ..data.masking import IGNORED
from ..data.samplers import BucketBatchSampler
from .batch import Batch
from .graph import Graph

Targets = Tensor | tuple[Tensor, Tensor]  # those that do not count are -100, or said by a mask
Pair = tuple[Graph, Targets]


def masked_targets(y: ArrayLike, mask: ArrayLike | None) -> Targets:
    """Targets of which only some count: classes with -100 elsewhere, as `cross_entropy` wants them, or (y, mask).

    >>> masked_targets([2, 0, 1], [True, False, True])
    tensor([   2, -100,    1])

    Numbers come with their mask, for `wl.data.masked_loss`.
    """
    labels = asarray(y)
    if mask is None:
        return labels
    chosen = asarray(mask)
    if labels.dtype.kind in "iu":
        return asarray(np.where(np.asarray(chosen), np.asarray(labels), IGNORED).astype(np.int64))
    wide = np.asarray(chosen).reshape((-1,) + (1,) * (labels.ndim - 1))
    return labels, asarray(np.broadcast_to(wide, labels.shape).copy())


class SingleGraph(Dataset[Pair]):
    """One graph, of which some nodes have labels that count: an example, and a batch, is `(graph, targets)`.

    >>> import wonderland as wl
    >>> graph = wl.graphs.Graph(3, [(0, 1)], y=[0, 1, 1], masks={"train": [True, False, False]})
    >>> data = wl.graphs.SingleGraph(graph, "train")
    >>> len(data), data[0][1].tolist()
    (1, [0, -100, -100])

    All nodes pass through the model, and the loss is the mean over those of the mask (a name, or truth values);
    their number, and not n, is what it is divided by. `part("test")` is the same graph with another mask. Book,
    section 12.2.3.
    """

    def __init__(self, graph: Graph, mask: str | ArrayLike | None = "train", y: ArrayLike | None = None) -> None:
        labels = graph.y if y is None else asarray(y)
        if labels is None or labels.shape[:1] != (graph.n,):
            what = "no labels" if labels is None else f"labels of shape {labels.shape}"
            raise InputError(
                f"SingleGraph: {what} for {graph.n} nodes.",
                "a graph with y, one label per node",
            )
        chosen = graph.mask(mask) if isinstance(mask, str) else None if mask is None else asarray(mask)
        if chosen is not None and (chosen.shape != (graph.n,) or chosen.dtype != np.bool_):
            raise InputError(f"SingleGraph: a mask {chosen.dtype}{list(chosen.shape)}.", f"{graph.n} truth values")
        self.graph, self.mask, self.y = graph, chosen, labels

    def part(self, mask: str | ArrayLike | None) -> SingleGraph:
        """The same graph and labels with another mask."""
        return SingleGraph(self.graph, mask, self.y)

    def __len__(self) -> int:
        return 1

    def __getitem__(self, index: int) -> Pair:
        self._place(index)
        return self.graph, masked_targets(self.y, self.mask)

    def __getitems__(self, indices: Sequence[int] | Array) -> Pair:
        return self[0]

    def __repr__(self) -> str:
        counted = self.graph.n if self.mask is None else int(np.asarray(self.mask).sum())
        return f"SingleGraph({self.graph!r}, {counted:,} labels)"


class GraphList(Dataset[Graph | Pair]):
    """Many graphs: example i is `(graph, y)`, or the graph alone if it has no label; a batch is a `Batch` of them.

    >>> import wonderland as wl
    >>> graphs = [wl.graphs.path_graph(n).with_(y=n % 2) for n in (3, 4, 5)]
    >>> data = wl.graphs.GraphList(graphs)
    >>> batch, y = next(iter(wl.data.DataLoader(data, batch_size=2)))
    >>> batch.real_graphs, y.tolist()
    (2, [1, 0])

    Batches are padded to few sizes (`Batch.padded`) unless `pad=False`, so that a compiled step is compiled a few times
    only; y has the labels of the real graphs, which are the first. Where nodes have the labels, those of padding are
    -100 (numbers come with a mask). `train, test = data.split([0.9, 0.1])` gives parts. Book, section 12.2.4.
    """

    def __init__(
        self, graphs: Sequence[Graph], *, pad: bool = True, target_names: Sequence[str] = (), name: str = "graphs"
    ) -> None:
        self.graphs: list[Graph] = as_list("GraphList", "graphs", graphs)
        if not all(isinstance(graph, Graph) for graph in self.graphs):
            raise InputError("GraphList: not a list of graphs.", "GraphList([wl.graphs.Graph(...), ...])")
        missing = [i for i, graph in enumerate(self.graphs) if graph.y is None]
        if missing and len(missing) < len(self.graphs):
            raise InputError(
                f"GraphList: {len(missing)} of {len(self.graphs)} graphs have no label, as graph {missing[0]}.",
                "labels for all, or for none",
            )
        self.labelled = bool(self.graphs) and not missing
        self.pad, self.target_names, self.name = pad, tuple(target_names), name

    @property
    def num_classes(self) -> int:
        """How many classes there are, by their names; 0 if they have none."""
        return len(self.target_names)

    @property
    def y(self) -> Array:
        """The labels of all graphs, (number of graphs, ...)."""
        if not self.labelled or any(graph.y_of != "graph" for graph in self.graphs):
            raise InputError("GraphList: the graphs have no labels of their own.", "Graph(..., y=label)")
        rows = [np.asarray(graph.y) for graph in self.graphs]
        return np.stack([row.reshape(row.shape[1:]) if row.ndim else row for row in rows])

    def __len__(self) -> int:
        return len(self.graphs)

    def __getitem__(self, index: int) -> Graph | Pair:
        graph = self.graphs[self._place(index)]
        return graph if graph.y is None else (graph, graph.y)

    def __getitems__(self, indices: Sequence[int] | Array) -> Graph | Pair:
        return collate_graphs([self.graphs[int(i)] for i in indices], pad=self.pad)

    def __repr__(self) -> str:
        classes = f", {self.num_classes} classes" if self.target_names else ""
        return f"GraphList({self.name!r}, {len(self):,} graphs{classes})"


def collate_graphs(graphs: Sequence[Graph | Pair], pad: bool = True) -> Graph | Pair:
    """The batch of some graphs, or of pairs `(graph, y)`, for `DataLoader(collate_fn=...)`; see `GraphList`."""
    parts = [part[0].with_(y=part[1]) if isinstance(part, tuple) else part for part in graphs]
    batch = Batch.from_graphs(parts)
    labels = batch.y
    found = batch.padded() if pad else batch
    if labels is None:
        return found
    if batch.y_of == "graph":
        return found, labels
    assert found.y is not None
    return found, masked_targets(found.y, found.node_mask)


class GraphLoader(DataLoader):
    """Batches of graphs in a random order, of graphs of like sizes: `(batch, y)`.

    >>> import wonderland as wl
    >>> graphs = [wl.graphs.path_graph(3 + n % 40).with_(y=n % 2) for n in range(256)]
    >>> sizes = [batch.n for batch, y in wl.graphs.GraphLoader(graphs, batch_size=64, by_size=True)]
    >>> len(sizes), sum(sizes) < 1.3 * sum(graph.n for graph in graphs)
    (4, True)

    With `by_size` a batch has graphs of about one size, which makes for little padding in dense batches. Everything
    else is `wl.data.DataLoader`'s.
    """

    def __init__(
        self,
        graphs: Sequence[Graph] | Dataset[Graph | Pair],
        batch_size: int = 32,
        shuffle: bool = True,
        *,
        by_size: bool = False,
        pad: bool = True,
        drop_last: bool = False,
        seed: int | None = 0,
        prefetch: int = 2,
    ) -> None:
        data = graphs if isinstance(graphs, Dataset) else GraphList(graphs, pad=pad)
        if by_size:
            sizes = [_size(example) for example in data]
            sampler = BucketBatchSampler(sizes, batch_size, shuffle=shuffle, drop_last=drop_last)
            super().__init__(data, batch_sampler=sampler, seed=seed, prefetch=prefetch)
        else:
            super().__init__(data, batch_size, shuffle, drop_last=drop_last, seed=seed, prefetch=prefetch)


def _size(example: Graph | Pair) -> int:
    return (example[0] if isinstance(example, tuple) else example).n
