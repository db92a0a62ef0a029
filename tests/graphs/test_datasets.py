"""Datasets of graphs, loaders, sampled neighbourhoods, splits, and the sets that come with the package."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import wonderland as wl
from tests.graphs.test_graph import any_graph, dense
from wonderland.errors import InputError
from wonderland.graphs import Batch, Graph


def made_graphs(count: int, seed: int = 0) -> list[Graph]:
    """Rings and stars with a few random edges: the label says which."""
    rng = np.random.default_rng(seed)
    graphs = []
    for k in range(count):
        n = int(rng.integers(5, 12))
        graph = wl.graphs.ring_graph(n) if k % 2 else wl.graphs.star_graph(n)
        degrees = graph.degree().numpy()[:, None]
        graphs.append(graph.with_(x=np.concatenate([degrees / n, np.ones_like(degrees)], axis=1), y=k % 2))
    return graphs


class NodeModel(wl.nn.Module):
    """Two convolutions."""

    def __init__(self, c: int, classes: int, graphs: bool = False):
        self.first, self.second = wl.nn.Linear(c, 16), wl.nn.Linear(16, classes)
        self.graphs = graphs

    def forward(self, graph):
        h = graph.x
        for layer in (self.first, self.second):
            h = wl.relu(h) if layer is self.second else h
            mixed = wl.sparse.matmul(graph.normalize("row").weight, graph.pattern, layer(h))
            h = mixed + layer(h)
        return wl.sparse.segment_sum(h, graph.nodes)[: graph.real_graphs] if self.graphs else h


@pytest.mark.book("12.53", "A7-25", name=("wl.graphs.SingleGraph", "wl.graphs.GraphList"))
def test_one_graph_and_many_run_in_the_same_trainer():
    wl.random.seed(0)
    club = wl.graphs.karate_club()
    single = wl.graphs.SingleGraph(club, "train")
    model = NodeModel(34, 2)
    wl.train.fit(model, "cross_entropy", single, epochs=40, lr=0.02, batch_size=1, progress=False)
    found = np.asarray(model(club)).argmax(axis=1)
    assert (found == np.asarray(club.y)).mean() > 0.8  # from two labels
    data = wl.graphs.GraphList(made_graphs(60))
    train, test = data.split([40, 20])
    model = NodeModel(2, 2, graphs=True)
    wl.train.fit(model, "cross_entropy", train, epochs=25, lr=0.02, batch_size=16, progress=False)
    right = 0
    for batch, y in wl.data.DataLoader(test, batch_size=20):
        right += int((np.asarray(model(batch)).argmax(axis=1) == np.asarray(y)).sum())
    assert right >= 18
    # the batch gives what graphs give one by one
    graphs = [data.graphs[int(i)] for i in test.indices]
    batch, _ = wl.graphs.collate_graphs(graphs)
    one_by_one = np.concatenate([np.asarray(model(g)) for g in graphs])
    np.testing.assert_allclose(model(batch), one_by_one, rtol=1e-4, atol=1e-5)


@pytest.mark.book("A7-24", name="wl.graphs.SingleGraph")
def test_only_labels_of_the_mask_enter_the_loss_and_all_features_do():
    graph = wl.graphs.path_graph(4).with_(x=np.eye(4, dtype=np.float32), y=[0, 1, 0, 1])
    mask = np.array([True, False, False, False])
    _, targets = wl.graphs.SingleGraph(graph, mask)[0]
    assert targets.tolist() == [0, -100, -100, -100]
    model = NodeModel(4, 2)

    def loss(x, y):
        return wl.nn.functional.cross_entropy(model(graph.with_(x=x)), wl.asarray(y))

    gradient = np.abs(np.asarray(wl.grad(lambda x: loss(x, targets))(graph.x))).sum(axis=1)
    assert (gradient[1:3] > 0).all()  # features of neighbours without a label count
    whole = float(loss(graph.x, targets))
    for others in ([0, 1, 1, 1], [0, 0, 0, 0]):
        _, same = wl.graphs.SingleGraph(graph.with_(y=others), mask)[0]
        assert float(loss(graph.x, same)) == whole
    numbers = wl.graphs.SingleGraph(graph.with_(y=[0.5, 1.5, 2.5, 3.5]), mask)[0][1]
    assert numbers[1].tolist() == [True, False, False, False]
    masked = wl.data.masked_loss(wl.nn.functional.mse_loss)(wl.zeros(4), numbers)
    assert float(masked) == 0.25
    part = wl.graphs.SingleGraph(graph, mask).part(~mask)
    assert part[0][1].tolist() == [-100, 1, 0, 1]
    with pytest.raises(InputError, match="no labels"):
        wl.graphs.SingleGraph(Graph(2), None)


def test_lists_of_graphs():
    data = wl.graphs.GraphList(made_graphs(10), target_names=["star", "ring"])
    _, y = data[3]
    assert (int(y), len(data), data.num_classes) == (1, 10, 2)
    assert data.y.tolist() == [0, 1] * 5
    batch, labels = data.__getitems__([0, 1, 2])
    assert isinstance(batch, Batch)
    assert batch.is_padded
    assert labels.tolist() == [0, 1, 0]
    plain = wl.graphs.GraphList([g.with_(y=None) for g in data.graphs], pad=False)
    assert not plain.__getitems__([0, 1]).is_padded
    with pytest.raises(InputError, match="1 of 2 graphs have no label, as graph 1"):
        wl.graphs.GraphList([Graph(1, y=0), Graph(1)])
    nodes = wl.graphs.GraphList([Graph(2, y=[0, 1]), Graph(1, y=[1])])
    batch, labels = nodes.__getitems__([0, 1])
    assert labels.tolist()[:3] == [0, 1, 1]
    assert set(labels.tolist()[3:]) == {-100}


def test_loaders_shuffle_and_repeat():
    graphs = [g.with_(u=[float(k)]) for k, g in enumerate(made_graphs(40))]

    def epochs(**settings):
        loader = wl.graphs.GraphLoader(graphs, 8, **settings)
        return [[b.u[: b.real_graphs, 0].tolist() for b, _ in loader] for _ in range(2)]

    first, second = epochs()
    assert sorted(np.concatenate(first)) == sorted(np.concatenate(second)) == list(range(40))
    assert first != second
    assert epochs() == [first, second]
    assert epochs(shuffle=False)[0][0] == list(range(8))
    by_size = wl.graphs.GraphLoader(graphs, 8, by_size=True)
    for batch, _ in by_size:
        sizes = [g.n for g in batch.to_graphs()]
        assert max(sizes) - min(sizes) <= 3
    loader = wl.graphs.GraphLoader(graphs, 8)
    batches = iter(loader)
    next(batches)
    other = wl.graphs.GraphLoader(graphs, 8)
    other.load_state_dict(loader.state_dict())
    assert [y.tolist() for _, y in other] == [y.tolist() for _, y in batches]


# --- neighbourhoods


def two_layers(graph, W):
    h = wl.tanh(wl.sparse.matmul(graph.weight, graph.pattern, graph.x @ W[0]))
    return wl.tanh(wl.sparse.matmul(graph.weight, graph.pattern, h @ W[1]))


@pytest.mark.book("12.62", name="wl.graphs.NeighborSampler")
@given(any_graph(least=2), st.integers(0, 3))
@settings(max_examples=25, deadline=None)
def test_all_neighbours_give_exact_results(graph, seed):
    rng = np.random.default_rng(seed)
    W = rng.normal(size=(2, 3, 3))
    graph = graph.normalize("row")
    seeds = rng.permutation(graph.n)[:2]
    part = wl.graphs.NeighborSampler(graph, [-1, -1]).sample(seeds, seed=0)
    assert part.nodes[: part.seeds].tolist() == seeds.tolist()
    assert len(np.unique(part.nodes)) == part.graph.n
    np.testing.assert_allclose(two_layers(part.graph, W)[:2], np.asarray(two_layers(graph, W))[seeds], atol=1e-12)
    assert set(part.nodes) <= set(graph.k_hop(seeds, 2))
    np.testing.assert_array_equal(part.graph.x, graph.x.numpy()[part.nodes])


def test_fan_outs_bound_the_neighbours():
    graph = wl.graphs.barabasi_albert(500, 4).with_(edge_attr=np.arange(2 * (4 * 495 + 10)))
    sampler = wl.graphs.NeighborSampler(graph, [3, 2])
    part = sampler.sample(np.arange(50), seed=1)
    degrees = np.bincount(part.graph.ends()[0], minlength=part.graph.n)
    whole = np.bincount(graph.ends()[0], minlength=500)
    assert (degrees[:50] == np.minimum(whole[part.nodes[:50]], 3)).all()
    assert degrees[50:].max() <= 2
    rows, cols = graph.ends()
    for (i, j), e in zip(part.graph.edges.tolist(), part.graph.edge_attr.tolist(), strict=True):
        assert (part.nodes[i], part.nodes[j]) == (rows[e], cols[e])
    assert len(set(map(tuple, part.graph.edges.tolist()))) == part.graph.num_edges  # without replacement
    again = sampler.sample(np.arange(50), seed=1)
    assert again.graph.edges.tolist() == part.graph.edges.tolist()
    assert sampler.sample(np.arange(50), seed=2).graph.edges.tolist() != part.graph.edges.tolist()
    # every neighbour is as likely as another
    star = wl.graphs.star_graph(6)
    counts = np.zeros(6)
    for k in range(400):
        counts[wl.graphs.NeighborSampler(star, [2]).sample([0], seed=k).nodes[1:]] += 1
    np.testing.assert_allclose(counts[1:] / 400, 0.4, atol=0.08)
    with pytest.raises(InputError, match="more than once"):
        sampler.sample([1, 1])


def test_loaders_of_neighbourhoods():
    graph = wl.graphs.stochastic_block_model([100, 100], 0.1, 0.01).with_(x=np.arange(200.0)[:, None])
    graph = wl.graphs.split_nodes(graph, per_class=30, val=20, test=50)
    loader = wl.graphs.NeighborLoader(graph, [4, 4], "train", batch_size=25)
    seen, sizes = [], set()
    for part, y in loader:
        labels = np.asarray(y)
        seeds = np.asarray(part.x)[labels >= 0, 0].astype(int)
        seen += seeds.tolist()
        assert (np.asarray(graph.y)[seeds] == labels[labels >= 0]).all()
        sizes.add((part.n, part.num_edges))
    assert sorted(seen) == np.flatnonzero(np.asarray(graph.masks["train"])).tolist()
    assert len(loader) == 3
    first = [part.x.tolist() for part, _ in wl.graphs.NeighborLoader(graph, [4, 4], "train", batch_size=25)]
    assert first == [part.x.tolist() for part, _ in wl.graphs.NeighborLoader(graph, [4, 4], "train", batch_size=25)]


# --- splits


@given(any_graph(least=2), st.integers(0, 5))
@settings(max_examples=30, deadline=None)
def test_negative_edges_are_no_edges(graph, seed):
    M = dense(graph) != 0
    pairs = wl.graphs.negative_edges(graph, seed=seed).numpy()
    assert not M[pairs[:, 0], pairs[:, 1]].any()
    assert (pairs[:, 0] != pairs[:, 1]).all()
    assert len(np.unique(pairs, axis=0)) == len(pairs)
    free = (~M & ~np.eye(graph.n, dtype=bool)).sum() // (2 if graph.is_undirected else 1)
    every = wl.graphs.negative_edges(graph, int(free), seed=seed)
    assert every.shape == (free, 2)
    with pytest.raises(InputError, match="only"):
        wl.graphs.negative_edges(graph, int(free) + 1)


@pytest.mark.book("A7-02", name=("wl.graphs.split_edges", "wl.graphs.split_nodes"))
@pytest.mark.parametrize("directed", [False, True])
def test_nothing_of_the_test_is_seen_in_training(directed):
    graph = wl.graphs.erdos_renyi(60, 0.15, seed=1)
    if directed:
        rows, cols = graph.ends()
        graph = Graph(60, np.stack([rows, cols], axis=1)[rows % 3 < cols % 3])
    split = wl.graphs.split_edges(graph, 0.1, 0.2)
    message = {tuple(pair) for pair in split.graph.edges.tolist()}
    whole = {tuple(pair) for pair in graph.edges.tolist()}
    total = len(whole) // (1 if directed else 2)
    counts, negatives = [], []
    for part in (split.train, split.val, split.test):
        right = {tuple(p) for p, y in zip(part.pairs.tolist(), part.y.tolist(), strict=True) if y}
        wrong = {tuple(p) for p, y in zip(part.pairs.tolist(), part.y.tolist(), strict=True) if not y}
        counts.append(len(right))
        negatives.append(wrong)
        assert right <= whole
        assert not wrong & whole
        if part is not split.train:  # in neither direction
            assert not message & (right | {(j, i) for i, j in right if not directed})
        else:
            assert right <= message
    assert counts[1:] == [round(0.1 * total), round(0.2 * total)]
    assert sum(counts) == total
    assert not (negatives[0] & negatives[1]) | (negatives[0] & negatives[2]) | (negatives[1] & negatives[2])
    assert split.graph.is_undirected != directed
    nodes = wl.graphs.split_nodes(wl.graphs.citation_network(), per_class=4, val=0.2, test=100)
    parts = np.stack([np.asarray(mask) for mask in nodes.masks.values()])
    assert parts.sum(axis=0).max() == 1
    assert parts.sum(axis=1).tolist() == [20, 120, 100]
    assert np.bincount(np.asarray(nodes.y)[parts[0]]).tolist() == [4] * 5
    with pytest.raises(InputError, match="smaller parts"):
        wl.graphs.split_nodes(nodes, 500, 100, 100)


# --- sets that come along


def test_the_karate_club():
    club = wl.graphs.karate_club()
    assert (club.n, club.num_undirected_edges) == (34, 78)
    assert np.bincount(np.asarray(club.y)).tolist() == [17, 17]
    degrees = club.degree().numpy().astype(int)
    assert (degrees[0], degrees[33], degrees[32], degrees[11]) == (16, 17, 12, 1)
    assert wl.graphs.diameter(club) == 5
    # the Fiedler vector finds the clubs but for one or two members
    found = wl.graphs.spectral_bisection(club)
    assert (found == np.asarray(club.y)).mean() > 0.9


def test_the_made_citation_network():
    graph = wl.graphs.citation_network(seed=3)
    assert wl.graphs.citation_network(seed=3).coo() == graph.coo()
    assert 3 < graph.degree().numpy().mean() < 5
    assert 0.75 < wl.graphs.edge_homophily(graph) < 0.85
    assert set(np.unique(graph.x)) == {0.0, 1.0}
    x, y = np.asarray(graph.x), np.asarray(graph.y)
    # words tell the field, and those of neighbours tell more
    train, test = (np.asarray(graph.masks[name]) for name in ("train", "test"))

    def accuracy(features):
        centres = np.stack([features[train & (y == k)].mean(axis=0) for k in range(5)])
        centres /= np.linalg.norm(centres, axis=1, keepdims=True)
        return ((features @ centres.T).argmax(axis=1) == y)[test].mean()

    mixed = np.asarray(wl.graphs.diffuse(graph.add_self_loops().normalize("row"), x, 2))
    assert 0.3 < accuracy(x) < accuracy(mixed) - 0.1
