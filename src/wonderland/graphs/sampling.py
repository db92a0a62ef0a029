"""Parts of graphs that are too large to be taken whole: sampled neighbourhoods. Book, section 12.2.4 (GraphSAGE)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from ..core.arguments import as_int, as_list
from ..core.errors import InputError
from ..core.typing import Array, ArrayLike
from ..data.generators import EXAMPLE, ORDER, Seed, generator
from ..data.randomness import as_generator
from .batch import Batch
from .datasets import Targets, masked_targets
from .graph import Graph
from .structure import lines_of, neighbors_of


class Neighborhood(NamedTuple):
    """A sampled part of a graph: the graph of it, the numbers its nodes have in the whole, and how many are seeds.

    The seeds are the first nodes.
    """

    graph: Graph
    nodes: Array
    seeds: int


class NeighborSampler:
    """Neighbourhoods of nodes for a model of so many layers: of each node at most `fanouts[k]` neighbours in hop k.

    >>> import wonderland as wl
    >>> sampler = wl.graphs.NeighborSampler(wl.graphs.barabasi_albert(1000), [5, 3])
    >>> part = sampler.sample([10, 20], seed=0)
    >>> part.nodes[: part.seeds].tolist(), part.graph.n <= 2 * (1 + 5 + 5 * 3)
    ([10, 20], True)

    A fan-out of -1 takes all neighbours; with -1 in every hop the outputs of a model with as many layers are exact at
    the seeds. Weights go along, so a normalisation is done before, on the whole graph: in the part nodes have other
    degrees. Neighbours are drawn without replacement, all nodes of a hop at once.
    """

    def __init__(self, graph: Graph, fanouts: Sequence[int]) -> None:
        hops = [
            as_int("NeighborSampler", "fanouts", f, least=-1) for f in as_list("NeighborSampler", "fanouts", fanouts)
        ]
        if not hops:
            raise InputError("NeighborSampler: there are no hops.", "fanouts=[10, 5], one for each layer")
        self.graph, self.fanouts = graph, hops
        self._starts, self._others = lines_of(graph)
        self._order = np.asarray(graph.pattern.rows.order).astype(np.int64)

    def sample(self, seeds: ArrayLike, *, seed: Seed = None) -> Neighborhood:
        """The neighbourhood of some different nodes; the same seed gives the same one."""
        rng = as_generator("NeighborSampler", seed)
        roots = self.graph.select_nodes(seeds)
        if len(np.unique(roots)) < len(roots):
            raise InputError("NeighborSampler: a node is asked for more than once.", "different nodes")
        place = np.full(self.graph.n, -1)
        place[roots] = np.arange(len(roots))
        nodes, front, edges = [roots], roots, []
        count = len(roots)
        for fanout in self.fanouts:
            found = self._draw(front, fanout, rng)
            edges.append(found)
            reached = np.unique(self._others[found])
            front = reached[place[reached] < 0]  # the others have been asked already
            place[front] = count + np.arange(len(front))
            count += len(front)
            nodes.append(front)
        chosen = np.concatenate(nodes)
        kept = self._order[np.concatenate(edges)]
        rows, cols = self.graph.ends()
        whole = self.graph
        part = whole._copy(
            n=len(chosen),
            _ends=(place[rows[kept]], place[cols[kept]]),
            _pattern=None,
            _undirected=None,
            weight=None if whole.weight is None else whole.weight[kept],
            edge_attr=None if whole.edge_attr is None else whole.edge_attr[kept],
            edge_y=None if whole.edge_y is None else whole.edge_y[kept],
            **whole._at_nodes(chosen),
        )
        return Neighborhood(part, chosen, len(roots))

    def _draw(self, nodes: Array, fanout: int, rng: np.random.Generator) -> Array:
        """Places of some neighbours of each node, in the order of the rows."""
        places, owner = neighbors_of(self._starts, self._others, nodes)
        if fanout < 0 or not len(places):
            return places
        counts = self._starts[nodes + 1] - self._starts[nodes]
        few = counts[owner] <= fanout
        # of those with more: the neighbours with the smallest of random numbers
        many, whose = places[~few], owner[~few]
        order = np.lexsort((rng.random(len(many)), whose))
        sizes = counts[counts > fanout]
        rank = np.arange(len(many)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        return np.concatenate([places[few], many[order[rank < fanout]]])


class NeighborLoader:
    """Batches of neighbourhoods for training on a large graph: `(part, targets)`, whose seeds come first.

    >>> import wonderland as wl
    >>> graph = wl.graphs.stochastic_block_model([300, 300], 0.05, 0.005)
    >>> loader = wl.graphs.NeighborLoader(graph, [5, 5], batch_size=100)
    >>> part, y = next(iter(loader))
    >>> len(loader), y.shape == (part.n,), int((y >= 0).sum())
    (6, True, 100)

    `nodes` are the seeds (integers, a mask or its name; all by default), in a new random order every epoch. Parts are
    padded to few sizes, as batches are, so that few programs are compiled. Targets are those of all nodes of the part,
    -100 where they do not count: everywhere but at the seeds. Numbers come with a mask, (y, mask).
    """

    def __init__(
        self,
        graph: Graph,
        fanouts: Sequence[int],
        nodes: str | ArrayLike | None = None,
        batch_size: int = 512,
        shuffle: bool = True,
        *,
        pad: bool = True,
        seed: int = 0,
    ) -> None:
        if graph.y is None or graph.y_of != "nodes":
            raise InputError("NeighborLoader: the nodes have no labels.", "graph.with_(y=labels)")
        self.sampler = NeighborSampler(graph, fanouts)
        mask = graph.mask(nodes) if isinstance(nodes, str) else nodes
        self.nodes = np.arange(graph.n) if mask is None else graph.select_nodes(mask)
        self.batch_size = as_int("NeighborLoader", "batch_size", batch_size, least=1)
        self.shuffle, self.pad, self.seed, self.epoch = shuffle, pad, as_int("NeighborLoader", "seed", seed), 0

    def __len__(self) -> int:
        return math.ceil(len(self.nodes) / self.batch_size)

    def __iter__(self) -> Iterator[tuple[Graph, Targets]]:
        epoch, self.epoch = self.epoch, self.epoch + 1
        order = generator(self.seed, epoch, purpose=ORDER).permutation(self.nodes) if self.shuffle else self.nodes
        for number in range(len(self)):
            seeds = order[number * self.batch_size : (number + 1) * self.batch_size]
            yield self.batch(seeds, generator(self.seed, epoch, number, EXAMPLE))

    def batch(self, seeds: ArrayLike, seed: Seed = 0) -> tuple[Graph, Targets]:
        """The batch of some seeds."""
        graph, _, count = self.sampler.sample(seeds, seed=seed)
        graph = graph.with_(props=None)
        if self.pad:
            graph = Batch.from_graphs([graph]).padded()
        assert graph.y is not None
        return graph, masked_targets(graph.y, np.arange(graph.n) < count)
