"""What tasks on graphs share: examples are nodes, pairs or graphs by number, and a batch brings their graph along."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from ... import arrays, nn
from ...core.errors import InputError
from ...core.tensor import Tensor
from ...core.typing import ArrayLike
from ...data import DataLoader, TensorDataset
from ...graphs import Batch, Graph
from ...graphs.sampling import NeighborSampler
from ..graph_inputs import options_like
from ..inputs import Options
from ..targets import restored
from .task import Arrays, Prepared, Task


class Asked(NamedTuple):
    """The input of a model: which nodes (k,), pairs (k, 2) or graphs (k,) the outputs are for, and the graph of them.

    It is a tree, whose first axis is that of the examples.
    """

    which: ArrayLike
    graph: Graph


class GraphPart(tuple[np.ndarray, np.ndarray]):
    """Numbers of examples and their targets, with `make`, which makes of some of both a batch (Asked, targets)."""

    make: Callable[..., tuple[Asked, np.ndarray]]

    def __new__(
        cls, which: np.ndarray, targets: np.ndarray, make: Callable[..., tuple[Asked, np.ndarray]]
    ) -> GraphPart:
        made = super().__new__(cls, (which, targets))
        made.make = make
        return made


class InOneGraph:
    """Batches whose examples are nodes or pairs of one graph, the whole of which comes along."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph

    def __call__(self, batch: Arrays) -> tuple[Asked, np.ndarray]:
        return Asked(batch[0], self.graph), batch[1]


class OfManyGraphs:
    """Batches of whole graphs, as blocks of one that is filled up: to a multiple of what so many graphs of the set have
    on average. The multiples are few, so few programs are compiled, whatever the sizes of the graphs.

    >>> import wonderland as wl
    >>> make = OfManyGraphs([wl.graphs.path_graph(n).with_(x=wl.ones((n, 1))) for n in range(2, 30)])
    >>> some = [np.random.default_rng(i).integers(0, 28, 16) for i in range(100)]
    >>> len({make((which, which))[0].graph.n for which in some}) < 5
    True
    """

    def __init__(self, graphs: Sequence[Graph]) -> None:
        self.graphs = graphs
        self.nodes = np.array([graph.n for graph in graphs])
        self.edges = np.array([graph.num_edges for graph in graphs])

    def __call__(self, batch: Arrays) -> tuple[Asked, np.ndarray]:
        which = np.asarray(batch[0])
        joined = Batch.from_graphs([self.graphs[i] for i in which.tolist()])
        usual = len(which) * self.nodes.mean() + 1, max(len(which) * self.edges.mean(), 1.0)
        most = max((joined.n + 1) / usual[0], joined.num_edges / usual[1])
        step = math.ceil(most * 4) / 4 if most < 2 else 2.0 ** math.ceil(math.log2(most))
        nodes, edges = (max(math.ceil(step * size), 1) for size in usual)
        return Asked(np.arange(len(which)), joined.padded(nodes=max(nodes, joined.n + 1), edges=edges)), batch[1]


class Neighborhoods:
    """Batches of some nodes with a part of their neighbourhoods, drawn anew each time: for graphs that are too large to
    be taken whole."""

    random = True

    def __init__(self, graph: Graph, fanouts: Sequence[int]) -> None:
        self.sampler = NeighborSampler(graph, fanouts)

    def __call__(self, batch: Arrays, rng: np.random.Generator) -> tuple[Asked, np.ndarray]:
        part = self.sampler.sample(batch[0], seed=rng)
        return Asked(np.arange(part.seeds), Batch.from_graphs([part.graph]).padded()), batch[1]


class GraphNet(nn.Module):
    """A network on graphs as a model of `Asked`: the outputs that are asked for.

    `head` is "nodes", whose outputs are rows of the network's, "graphs", the same for its rows by graph, or "links",
    the products of the rows of two nodes.
    """

    def __init__(self, net: nn.Module, head: str) -> None:
        self.net, self.head = net, head

    def forward(self, asked: Asked) -> Tensor:
        if asked.graph.x is None:
            raise InputError("GraphNet: the graph has no features.", "graph.with_(x=...)")
        which = arrays.asarray(asked.which)
        h = self.net(asked.graph.x, asked.graph)
        if self.head == "links":
            return arrays.sum(h[which[:, 0]] * h[which[:, 1]], axis=-1)
        return h[which]


class GraphTask(Task):
    """The base of tasks on graphs."""

    batch = 64
    head: str = ""  # of `GraphNet`

    def around(self, model: nn.Module, x: np.ndarray, about: Options) -> nn.Module:
        net, *rest = restored(GraphNet(model, self.head), about)
        return nn.Sequential(net, *rest) if rest else net

    def drawn_anew(self, part: Arrays, about: Options) -> Callable[..., object]:
        return part_of(part).make

    def batches(self, part: Arrays, about: Options) -> DataLoader:
        make = part_of(part).make
        return DataLoader(TensorDataset(*part), batch_size=self.at_once(part, self.batch), batch_transform=make)

    def first(self, part: Arrays, about: Options) -> object:
        return next(iter(self.batches(part, about)))

    def check_alike(self, part: Arrays, shape: tuple[int, ...]) -> None:
        """Graphs have been compared with those of the run when they were read."""
        if not len(part[0]):
            raise InputError("there are no examples.", "data that are not empty")

    def unsuited(self, data: Prepared) -> dict[str, str]:
        return {"noise": "the inputs are graphs", "augment": "the inputs are graphs"}

    def like_those_of(self, settings: Options, data: Options, run: Options, targets: bool) -> Options:
        return options_like(settings, data, targets)


def part_of(part: Arrays) -> GraphPart:
    """A part, which is one of graphs."""
    assert isinstance(part, GraphPart)
    return part
