"""Models on graphs: what they compute, what they promise, and that they learn from few labels."""

from __future__ import annotations

import numpy as np
import pytest

import wonderland as wl
from tests.models.promises import learns, same_when_compiled, survives_saving
from wonderland import models, nn
from wonderland.errors import InputError, ShapeError

C = 4


def graph_of(n=10, m=24, seed=0):
    rng = np.random.default_rng(seed)
    pairs = [(i, j) for i in range(n) for j in range(i)]
    chosen = [pairs[k] for k in rng.choice(len(pairs), m, replace=False)]
    return wl.graphs.Graph(n, chosen, directed=False)


def features(n=10, seed=1, dtype=wl.float64):
    return wl.asarray(np.random.default_rng(seed).normal(size=(n, C)), dtype=dtype)


def close(left, right, tolerance=1e-9):
    np.testing.assert_allclose(np.asarray(left), np.asarray(right), rtol=tolerance, atol=tolerance)


MODELS = {
    "GCN": lambda: models.GCN([C, 8, 3]),
    "GCN-deep": lambda: models.GCN([C, 8, 8, 3], norm="graph", residual=True, dropout=0.5),
    "GAT": lambda: models.GAT([C, 4, 3], heads=2, dropout=0.6, attention_dropout=0.6, norm="layer"),
    "GAT-dynamic": lambda: models.GAT([C, 4, 4, 3], heads=2, dynamic=True, residual=True),
    "GraphSAGE": lambda: models.GraphSAGE([C, 8, 3], norm="batch"),
    "GraphSAGE-max": lambda: models.GraphSAGE([C, 8, 3], aggregate="max"),
    "GIN": lambda: models.GIN([C, 8, 8], jump=True, norm="pair"),
    "GIN-batch": lambda: models.GIN([C, 8], mlp_norm="batch"),
    "GraphTransformer": lambda: models.GraphTransformer(C, 8, 3, num_heads=2, structural="random_walk"),
    "GRNClassifier": lambda: models.GRNClassifier(C, 6, 3),
    "GatedGraphClassifier": lambda: models.GatedGraphClassifier(C, 6, 3, T=2),
    "GraphModel": lambda: models.GraphModel(models.GCN([C, 8, 8]), models.NodeHead(8, 3, hidden=5)),
}
every = pytest.mark.parametrize("name", MODELS)


@every
@pytest.mark.book("12.47", name="models.GraphModel")
def test_permuted_nodes_are_permuted_afterwards(name):
    model = MODELS[name]().astype(wl.float64).eval()
    assert nn.check_graph_equivariance(model, features(), graph_of()) < 1e-8


@every
def test_promises(name, tmp_path):
    graph, x = graph_of(), features(dtype=wl.float32)
    same_when_compiled(MODELS[name](), x, graph, roundings=3000)

    def make(seed):
        wl.random.seed(seed)
        return MODELS[name]()

    survives_saving(make, tmp_path, x, graph)
    model = MODELS[name]().eval()
    if hasattr(model, "prepare"):
        prepared = model.prepare(graph)
        close(model(x, prepared), model(x, graph), 1e-5)
        close(wl.jit(lambda m, x, g: m(x, g))(model, x, prepared), model(x, graph), 1e-5)


@every
def test_batches_and_dense_graphs(name):
    model = MODELS[name]().astype(wl.float64).eval()
    parts = [(features(n, seed=n), graph_of(n, m)) for n, m in ((10, 24), (5, 6), (3, 1))]
    assert nn.check_batched_graphs(model, parts) < 1e-9
    assert nn.check_dense_graph(model, *parts[0]) < 1e-9


@pytest.mark.book("12.42", name="models.GCN")
def test_the_two_layers_of_a_gcn():
    graph, x = graph_of(), features()
    model = models.GCN([C, 6, 3], activation="tanh", bias=False).astype(wl.float64)
    assert model.num_parameters() == C * 6 + 6 * 3
    a = np.asarray(graph.to_dense(wl.float64)) + np.eye(10)
    d = 1 / np.sqrt(a.sum(1))
    a = d[:, None] * a * d
    w1, w2 = (np.asarray(layer.lin.weight) for layer in model.layers)
    close(model(x, graph), a @ np.tanh(a @ x.numpy() @ w1) @ w2)
    grads = wl.grad(lambda model: (model(x, graph) ** 3).sum())(model)
    step = 1e-6
    for layer, path in zip(model.layers, ("layers.0.lin.weight", "layers.1.lin.weight"), strict=True):
        start = np.array(layer.lin.weight)
        way = np.random.default_rng(0).normal(size=start.shape)
        ends = []
        for sign in (1, -1):
            layer.lin.weight = start + sign * step * way
            ends.append((model(x, graph) ** 3).sum().item())
        layer.lin.weight = start
        numeric = (ends[0] - ends[1]) / (2 * step)
        assert abs(numeric - float((grads[path].numpy() * way).sum())) < 1e-6 * max(1, abs(numeric))


@pytest.mark.book("12.48", name="models.NodeHead")
def test_node_heads():
    head, h = models.NodeHead(5, 3, hidden=7).astype(wl.float64), wl.random.normal((10, 5), dtype=wl.float64)
    assert head(h).shape == (10, 3)
    probabilities = head.probabilities(h)
    assert wl.is_simplex(probabilities)
    scores = np.exp(np.asarray(head.nn(h)))
    close(probabilities, scores / scores.sum(1, keepdims=True))


@pytest.mark.book("12.50", name="models.EdgeHead")
def test_edge_heads_by_concatenation_are_not_symmetric():
    graph, h = graph_of(), wl.random.normal((10, 5), dtype=wl.float64)
    plain, symmetric = (models.EdgeHead(5, 2, mode, hidden=6).astype(wl.float64) for mode in ("concat", "symmetric"))
    i, j = graph.edges.numpy().T
    close(plain(h, graph), plain.nn(wl.asarray(np.concatenate([h.numpy()[i], h.numpy()[j]], axis=1))))
    back = graph.edges.numpy()[:, ::-1]
    assert np.abs(np.asarray(plain(h, graph)) - np.asarray(plain(h, graph, back))).max() > 1e-3
    np.testing.assert_array_equal(symmetric(h, graph), symmetric(h, graph, back))
    labelled = graph.edges[:4]
    close(plain(h, graph, labelled), plain(h, graph)[:4])
    with pytest.raises(InputError, match="nodes from 0 to 10, of 10"):
        plain(h, graph, [[0, 10]])
    with pytest.raises(ShapeError, match="pairs"):
        plain(h, graph, [[0, 1, 2]])
    with pytest.raises(InputError, match="mode='cat'"):
        models.EdgeHead(5, 2, "cat")


@pytest.mark.book("12.51", name="models.EdgeHead")
def test_links_by_products_are_learned():
    """Two groups, of whose edges some are hidden: products of embeddings find them again."""
    rng = np.random.default_rng(0)
    y = np.arange(40) % 2
    pairs = np.argwhere(np.triu(rng.uniform(size=(40, 40)) < np.where(y[:, None] == y, 0.5, 0.03), 1))
    hidden = rng.uniform(size=len(pairs)) < 0.2
    graph = wl.graphs.Graph(40, pairs[~hidden], directed=False)
    model = models.GraphModel(models.GCN([40, 16, 8]), models.EdgeHead(mode="dot"))
    x = wl.eye(40)
    linked = {tuple(pair) for pair in pairs.tolist()}
    others = [(i, j) for i in range(40) for j in range(i + 1, 40) if y[i] != y[j] and (i, j) not in linked]
    none = np.array(others)
    picked = none[rng.choice(len(none), len(pairs[~hidden]), replace=False)]
    known = np.concatenate([pairs[~hidden], picked])
    labels = np.repeat([1.0, 0.0], len(picked)).astype(np.float32)

    def loss(model, x):
        return nn.functional.binary_cross_entropy_with_logits(model(x, graph, known), wl.asarray(labels))

    first, last = learns(model, loss, x, steps=80, lr=0.02)
    assert last < 0.6 * first
    tried = np.concatenate([pairs[hidden], none[: hidden.sum()]])
    scores = np.asarray(model(x, graph, tried))
    right, wrong = scores[: hidden.sum()], scores[hidden.sum() :]
    assert (right[:, None] > wrong).mean() > 0.75  # the area under the curve
    h = model.backbone(x, graph)
    np.testing.assert_array_equal(model.head(h, graph, tried), model.head(h, graph, tried[:, ::-1]))


@pytest.mark.book("12.52", "A7-25", "A7-26", name="models.GraphHead")
@pytest.mark.parametrize("pool", ["mean", "sum", "max", "attention"])
def test_graph_heads(pool):
    graph, x = graph_of(), features()
    model = models.GraphModel(models.GCN([C, 6]), models.GraphHead(6, 2, pool, hidden=5)).astype(wl.float64)
    assert model(x, graph).shape == (2,)
    assert nn.check_graph_invariance(model, x, graph) < 1e-10
    h = np.asarray(model.backbone(x, graph))
    if pool != "attention":
        close(model(x, graph), model.head.nn(wl.asarray(getattr(np, pool)(h, axis=0))))
    parts = [(features(n, seed=n), graph_of(n, m)) for n, m in ((10, 24), (5, 6), (3, 1))]
    assert nn.check_batched_graphs(model, parts) < 1e-10
    batch = wl.graphs.Batch.from_graphs([graph for _, graph in parts])
    padded = batch.padded()
    rows = wl.concat([*(x for x, _ in parts), wl.ones((padded.n - batch.n, C), dtype=wl.float64)])
    close(model(rows, padded)[:3], model(rows[: batch.n], batch))


# --- few labels


def blocks(n=60, p_in=0.4, p_out=0.02, seed=0):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 3
    pairs = np.argwhere(np.triu(rng.uniform(size=(n, n)) < np.where(y[:, None] == y, p_in, p_out), 1))
    return wl.graphs.Graph(n, pairs, y=y, directed=False), y


@pytest.mark.book("12.49", "A7-24", "A7-30", name="models.masked_cross_entropy")
def test_semi_supervised_classification_of_nodes():
    graph, y = blocks()
    labelled = np.arange(60) < 9  # three of each
    x = wl.eye(60)
    model = models.GCN([60, 16, 3])

    def loss(model, x, y):
        return models.masked_cross_entropy(model(x, graph), y, labelled)

    first, last = learns(model, loss, x, wl.asarray(y), steps=60, lr=0.02)
    assert last < 0.3 * first
    model.eval()
    right = np.asarray(wl.argmax(model(x, graph), axis=1)) == y
    assert right[~labelled].mean() > 0.9
    # what is not labelled does not enter the loss, but its features do
    other = np.where(labelled, y, (y + 1) % 3)
    assert loss(model, x, wl.asarray(y)).item() == loss(model, x, wl.asarray(other)).item()
    grad = np.asarray(wl.grad(lambda x: loss(model, x, wl.asarray(y)))(x))
    near = np.unique(np.concatenate([graph.k_hop(i, 2) for i in range(9)]))
    assert (np.abs(grad[near]).max(axis=1) > 0).all()
    logits = model(x, graph)
    close(loss(model, x, wl.asarray(y)), nn.functional.cross_entropy(logits[:9], wl.asarray(y[:9])), 1e-6)


@pytest.mark.book("A7-30", name="models.GRNClassifier")
def test_a_recurrent_graph_network_learns():
    graph, y = blocks(45)
    labelled = np.arange(45) < 12
    x = wl.asarray(np.random.default_rng(0).normal(size=(45, C)) + 1.5 * np.eye(4)[y], dtype=wl.float32)
    model = models.GRNClassifier(C, 8, 3, limit=0.7, tol=1e-4)

    def loss(model, x):
        return models.masked_cross_entropy(model(x, graph), wl.asarray(y), labelled)

    first, last = learns(model, loss, x, steps=60, lr=0.03)
    assert last < 0.5 * first
    assert (np.asarray(wl.argmax(model(x, graph), axis=1)) == y)[~labelled].mean() > 0.8


@pytest.mark.book("12.29", "12.31", name="models.manifold_loss")
def test_manifold_regularisation():
    graph, _ = blocks()
    x = wl.asarray(np.random.default_rng(0).normal(size=(60, C)))
    target = wl.asarray(np.random.default_rng(1).normal(size=60))
    roughness = []

    def squares(f):
        return ((f - target) ** 2).sum()

    for strength in (0.0, 0.01, 0.1, 1.0, 10.0):
        model = nn.Linear(C, 1).astype(wl.float64)
        model.weight, model.bias = np.zeros((C, 1)), np.zeros(1)
        optimizer = wl.optim.Adam(model, lr=0.05)

        def loss(model, strength=strength):
            return models.manifold_loss(squares, model(x)[:, 0], graph, strength)

        @wl.jit
        def step(model, optimizer, loss=loss):
            optimizer.step(wl.grad(loss)(model))

        for _ in range(400):
            step(model, optimizer)
        f = np.asarray(model(x))[:, 0]
        roughness.append(wl.graphs.laplacian_quadratic(graph, wl.asarray(f)).item())
        if strength == 0.0:  # plain least squares
            rows = np.concatenate([x.numpy(), np.ones((60, 1))], axis=1)
            expected = rows @ np.linalg.lstsq(rows, target.numpy(), rcond=None)[0]
            close(f, expected, 1e-3)
    assert (np.diff(roughness) < 0).all()
    close(model(x[:5]), model(x)[:5])  # the graph is not needed any more
    with pytest.raises(InputError, match="weight=-1"):
        models.manifold_loss(lambda f: f.sum(), x[:, 0], graph, -1)


def test_labels_spread_to_neighbours():
    graph, y = blocks()
    labelled = np.arange(60) < 9
    scores = models.label_spreading(graph, y, labelled, 3)
    assert (np.asarray(wl.argmax(scores, axis=1)) == y)[~labelled].mean() > 0.9
    s = np.asarray(graph.normalize("sym", wl.float64).to_dense(wl.float64))
    exact = 0.1 * np.linalg.solve(np.eye(60) - 0.9 * s, np.eye(3)[y] * labelled[:, None])
    close(models.label_spreading(graph, y, labelled, 3, steps=300), exact, 1e-4)
