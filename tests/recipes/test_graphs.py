"""Recipes on graphs: nodes, sets of graphs and links, from files and by name; what is kept, and what is refused."""

from __future__ import annotations

import json

import numpy as np
import pytest

import wonderland as wl
from wonderland import recipes
from wonderland.cli import main
from wonderland.core.errors import InputError
from wonderland.recipes import Settings
from wonderland.recipes.catalogue import build, entry_for
from wonderland.recipes.tasks import TASKS
from wonderland.recipes.tasks.graph_outcomes import attention, before_last
from wonderland.recipes.tasks.graph_parts import Asked, GraphNet, OfManyGraphs

SMALL = ["data.n=150", "data.words=60", "data.classes=3"]


def quick(folder, *changes, model="gcn", data="citations", **settings):
    chosen = Settings.of(model=model, data=data, changes=["epochs=40", *changes])
    return recipes.run(chosen, folder, progress=False, png=False, **settings)


def prepared(task, data, validation=0.1, seed=0):
    return TASKS[task].prepare(data, validation, seed)


def write_tu(folder, graphs, labels, kinds):
    """A set in the TU format: graphs as lists of (n, edges), their labels, and those of their nodes."""
    folder.mkdir()
    edges, indicator, start = [], [], 1
    for k, (n, pairs) in enumerate(graphs, 1):
        edges += [f"{i + start}, {j + start}\n{j + start}, {i + start}" for i, j in pairs]
        indicator += [str(k)] * n
        start += n
    for name, lines in {"A": edges, "graph_indicator": indicator, "graph_labels": labels, "node_labels": kinds}.items():
        if lines is not None:
            (folder / f"S_{name}.txt").write_text("\n".join(map(str, lines)) + "\n")


def tables(folder, targets=("a", "b", "a", "b", "a", "b", "", "a"), split=None):
    """Eight nodes in a ring, as a table of edges and one of nodes."""
    ring = "".join(f"n{i},n{(i + 1) % 8}\n" for i in range(8))
    (folder / "edges.csv").write_text("from,to\n" + ring)
    rows = [f"n{i},{i}.5,{'red' if i % 2 else 'blue'},{y}" for i, y in enumerate(targets)]
    if split is not None:
        rows = [f"{row},{part}" for row, part in zip(rows, split, strict=True)]
    (folder / "nodes.csv").write_text("id,size,colour,kind" + ",split" * (split is not None) + "\n" + "\n".join(rows))
    return {"name": str(folder / "edges.csv"), "nodes": str(folder / "nodes.csv"), "target": "kind"}


# --- nodes


@pytest.mark.book("12.83", name="wonderland train --model gcn")
def test_a_run_on_nodes_and_questions_about_new_ones(tmp_path, capsys):
    """A convolution beats a classifier that sees no citations; other graphs are read as those of the run."""
    done = quick(tmp_path / "run", *SMALL)
    graph = wl.graphs.citation_network(150, 3, 60)
    x, y, masks = np.asarray(graph.x), np.asarray(graph.y), {k: np.asarray(m) for k, m in graph.masks.items()}
    words = wl.models.LogisticRegression(l2=1e-3).fit(x[masks["train"]], y[masks["train"]]).predict(x[masks["test"]])
    alone = float((np.asarray(words) == y[masks["test"]]).mean())
    assert done.results["accuracy"] > max(alone, 0.6)
    assert recipes.evaluate(tmp_path / "run")["accuracy"] == pytest.approx(done.results["accuracy"])
    # a graph with more nodes, of the same kind
    more = wl.graphs.citation_network(200, 3, 60, seed=5)
    wl.graphs.save(more, tmp_path / "more.npz")
    found = recipes.evaluate(tmp_path / "run", {"name": str(tmp_path / "more.npz")})
    assert found["accuracy"] > 0.5
    assert main(["predict", str(tmp_path / "run"), "--data", str(tmp_path / "more.npz")]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "node,prediction,confidence"
    assert len(lines) == 201
    wl.graphs.save(wl.graphs.citation_network(100, 3, 50), tmp_path / "other.npz")
    with pytest.raises(InputError, match="50 features, those of the run had 60"):
        recipes.predict(tmp_path / "run", {"name": str(tmp_path / "other.npz")})
    page = (tmp_path / "run" / "report.html").read_text()
    for part in ("homophily", "Degrees of the nodes", "Accuracy by degree", "Principal components", "red ring"):
        assert part in page


def test_an_interrupted_run_goes_on_with_the_same_bits(tmp_path):
    class Stop(wl.train.Callback):
        def on_epoch_end(self, trainer, record):
            if record["epoch"] == 3:
                raise KeyboardInterrupt

    straight = quick(tmp_path / "a", *SMALL, "epochs=6")
    with pytest.raises(KeyboardInterrupt):
        quick(tmp_path / "b", *SMALL, "epochs=6", callbacks=[Stop()])
    resumed = quick(tmp_path / "b", *SMALL, "epochs=6")
    for name, value in straight.model.state_dict().items():
        assert (np.asarray(value) == np.asarray(resumed.model.state_dict()[name])).all()


@pytest.mark.book("12.49", "A7-24", name=["wl.models.GCN", "wl.graphs.Graph.masks"])
def test_nodes_without_a_label_matter_by_their_features_alone():
    graph = wl.graphs.stochastic_block_model([40, 40], 0.2, 0.01, seed=1)
    y = np.asarray(graph.y)
    known = np.flatnonzero(np.isin(np.arange(80), [0, 1, 40, 41]))
    graph = graph.with_(x=np.random.default_rng(0).normal(size=(80, 4)).astype(np.float32) + 0.7 * y[:, None], y=None)
    wl.random.seed(0)
    net = GraphNet(wl.models.GCN([4, 16, 2]), "nodes")
    loss = wl.nn.CrossEntropyLoss()

    def cost(x, labels):
        return loss(net(Asked(known, graph.with_(x=x))), labels[known])

    labels = wl.tensor(y)
    # the mean over the labelled nodes, and not over all
    logits = np.asarray(net(Asked(np.arange(80), graph)), np.float64)
    each = np.log(np.exp(logits).sum(1)) - logits[np.arange(80), y]
    assert float(cost(graph.x, labels)) == pytest.approx(each[known].mean(), rel=1e-5)
    slope = np.abs(np.asarray(wl.grad(cost)(graph.x, labels))).sum(axis=1)
    near = np.setdiff1d(graph.k_hop(known, 1), known)
    assert (slope[near] > 0).all()
    assert (slope[np.setdiff1d(np.arange(80), graph.k_hop(known, 2))] == 0).all()
    others = wl.tensor(np.where(np.isin(np.arange(80), known), y, 1 - y))  # other labels where they are not known
    assert float(cost(graph.x, others)) == float(cost(graph.x, labels))
    batch = (Asked(known, graph), y[known])
    wl.train.fit(net, loss, [batch], 60, optimizer=wl.optim.Adam, lr=0.02, progress=False)
    rest = np.setdiff1d(np.arange(80), known)
    guess = np.asarray(wl.train.predict(net, [(Asked(np.arange(80), graph), y)])).argmax(-1)  # once, after training
    assert (guess[rest] == y[rest]).mean() > 0.9


def test_inductive_training_sees_no_other_nodes():
    data = prepared("nodes", {"name": "citations", "n": 200, "words": 40, "inductive": True})
    graph = data.test.make.graph
    train, held = data.train.make.graph, data.validation.make.graph
    masks = wl.graphs.citation_network(200, words=40).masks
    counts = [int(np.asarray(masks[name]).sum()) for name in ("train", "val")]
    assert (train.n, held.n, graph.n) == (counts[0], sum(counts), 200)
    inside = np.flatnonzero(np.asarray(masks["train"]))
    rows, cols = graph.ends()
    assert train.num_edges == int((np.isin(rows, inside) & np.isin(cols, inside)).sum())
    np.testing.assert_array_equal(np.asarray(train.x), np.asarray(graph.x)[inside])
    assert len(data.train[0]) == counts[0]
    assert data.validation[0].max() < held.n


def test_sampled_neighbourhoods_have_the_features_and_targets_of_their_nodes():
    data = prepared("nodes", {"name": "citations", "n": 200, "words": 40, "neighbors": [3, 2]})
    whole_graph = data.test.make.graph
    which, y = data.train
    asked, targets = data.train.make((which[:10], y[:10]), np.random.default_rng(0))
    assert asked.graph.n < 200
    assert asked.graph.num_edges < whole_graph.num_edges
    np.testing.assert_array_equal(np.asarray(asked.graph.x)[:10], np.asarray(whole_graph.x)[which[:10]])
    np.testing.assert_array_equal(targets, y[:10])
    assert TASKS["nodes"].at_once(data.train, 10) == 10
    assert TASKS["nodes"].at_once(data.test, 10) == len(data.test[0])


def test_numbers_of_nodes(tmp_path):
    rng = np.random.default_rng(0)
    graph = wl.graphs.erdos_renyi(120, 0.05)
    x = rng.normal(size=(120, 3)).astype(np.float32)
    mean = np.asarray(graph.add_self_loops().normalize("sym").to_dense()) @ x
    wl.graphs.save(
        graph.with_(x=x, y=(4e5 + 1e5 * mean @ [1.0, -2.0, 0.5]).astype(np.float32)), tmp_path / "numbers.npz"
    )
    changes = ["lr=0.05", "epochs=100", "weight_decay=0.0", "model.dropout=0.0", "model.depth=1"]
    done = quick(tmp_path / "run", *changes, data=str(tmp_path / "numbers.npz"))
    assert done.results["r2"] > 0.8
    assert "Residuals" in (tmp_path / "run" / "report.html").read_text()


def test_tables_of_edges_and_nodes(tmp_path):
    data = prepared("nodes", tables(tmp_path), validation=0.0)
    assert data.about["class_names"] == ["a", "b"]
    assert data.shape == (3,)  # size, and two colours
    assert len(data.train[0]) + len(data.test[0]) == 7  # one has no target
    kept = data.about["inputs"]
    assert kept["schema"]["features"] == {"size": None, "colour": ["blue", "red"]}
    again = TASKS["nodes"].prepare(tables(tmp_path), 0.0, 0, run=json.loads(json.dumps(data.about)))
    np.testing.assert_array_equal(np.asarray(again.test.make.graph.x), np.asarray(data.test.make.graph.x))
    other = tables(tmp_path)
    (tmp_path / "nodes.csv").write_text((tmp_path / "nodes.csv").read_text().replace("red", "green"))
    with pytest.raises(InputError, match="green"):
        TASKS["nodes"].prepare(other, 0.0, 0, run=data.about)


def test_parts_that_a_table_says(tmp_path):
    split = ["train", "train", "val", "val", "test", "test", "", "test"]
    data = prepared("nodes", tables(tmp_path, split=split))
    assert [part[0].tolist() for part in (data.train, data.validation, data.test)] == [[0, 1], [2, 3], [4, 5, 7]]


# --- sets of graphs


@pytest.mark.book("12.53", name=["wl.graphs.SingleGraph", "wl.graphs.GraphList"])
def test_one_graph_and_many_go_into_the_same_trainer(tmp_path):
    """A set in the TU format is learned as one graph is; other folders are read by the labels that the run knows."""
    rng = np.random.default_rng(0)
    graphs, labels, kinds = [], [], []
    for k in range(60):
        n = int(rng.integers(4, 12))
        pairs = [(i, i + 1) for i in range(n - 1)] + ([(n - 1, 0), (0, 2)] if k % 2 else [])
        graphs.append((n, pairs))
        labels.append(1 if k % 2 else -1)
        kinds += rng.choice([1, 4, 7], n).tolist()
    write_tu(tmp_path / "set", graphs, labels, kinds)
    done = quick(
        tmp_path / "run",
        "epochs=12",
        "lr=0.01",
        "batch_size=8",
        "model.depth=2",
        model="gin",
        data=str(tmp_path / "set"),
    )
    assert done.results["accuracy"] >= 0.9
    assert "Examples" in (tmp_path / "run" / "report.html").read_text()
    # a folder whose nodes have fewer kinds of labels
    write_tu(tmp_path / "new", graphs[:4], None, [7] * sum(n for n, _ in graphs[:4]))
    found = recipes.predict(tmp_path / "run", {"name": str(tmp_path / "new")})
    assert len(found.predictions) == 4
    assert set(found.predictions) <= {"-1", "1"}
    write_tu(tmp_path / "strange", graphs[:4], [1, -1, 1, -1], [8] * sum(n for n, _ in graphs[:4]))
    with pytest.raises(InputError, match="the node label 8 is new"):
        recipes.predict(tmp_path / "run", {"name": str(tmp_path / "strange")})


@pytest.mark.book("A7-25", name=["wl.models.GIN", "wl.models.GraphHead", "wl.graphs.Batch"])
@pytest.mark.parametrize("model", ["gcn", "gat", "sage", "gin", "graph_transformer"])
def test_a_batch_gives_what_its_graphs_give_one_by_one(model):
    data = prepared("graphs", {"name": "motifs", "graphs": 20})
    wl.random.seed(0)
    net = GraphNet(build({"name": model}, data.shape, data.outputs, {**data.about, "task": "graphs"}), "graphs").eval()
    which = np.arange(6)
    make = data.test.make
    together = np.asarray(net(make((which, which))[0]))
    alone = [np.asarray(net(make((which[k : k + 1], which))[0]))[0] for k in which]
    assert together.shape == (6, 3)
    np.testing.assert_allclose(together, alone, rtol=2e-4, atol=2e-5)


def test_graphs_of_many_sizes_come_in_a_handful_of_shapes():
    rng = np.random.default_rng(0)
    sizes = rng.integers(3, 200, 300)
    graphs = [wl.graphs.path_graph(int(n)).with_(x=np.ones((n, 2), np.float32)) for n in sizes]
    make = OfManyGraphs(graphs)
    shapes = {(a.graph.n, a.graph.num_edges) for a in (make((rng.permutation(300)[:32],) * 2)[0] for _ in range(60))}
    assert len(shapes) <= 5


# --- links


def test_no_edge_to_be_tested_is_in_the_graph():
    data = prepared("links", {"name": "citations", "n": 200, "words": 40}, validation=0.1)
    whole_graph = wl.graphs.citation_network(200, words=40)
    codes = {tuple(sorted(pair)) for pair in np.stack(whole_graph.ends(), 1).tolist()}
    seen = {tuple(sorted(pair)) for pair in np.stack(data.test.make.graph.ends(), 1).tolist()}
    for part in (data.validation, data.test):
        pairs = [tuple(sorted(pair)) for pair in part[0].tolist()]
        true = {pair for pair, y in zip(pairs, part[1], strict=True) if y == 1}
        false = {pair for pair, y in zip(pairs, part[1], strict=True) if y == 0}
        assert true <= codes
        assert not true & seen
        assert not false & codes
        assert len(true) == len(false)
    drawn = [data.train.make(data.train, np.random.default_rng(k))[0].which[len(data.train[0]) :] for k in (0, 1)]
    assert (drawn[0] != drawn[1]).any()
    assert not {tuple(sorted(pair)) for pair in drawn[0].tolist()} & seen


def test_a_run_on_links_and_the_likeliest_new_ones(tmp_path):
    done = quick(tmp_path / "run", "model.task=links", "data.n=120", "data.degree=8.0", "data.words=80")
    assert done.results["auc"] > 0.6
    wl.graphs.save(graph := wl.graphs.citation_network(130, words=80, degree=8.0, seed=3), tmp_path / "new.npz")
    found = recipes.predict(tmp_path / "run", {"name": str(tmp_path / "new.npz"), "top": 7})
    assert len(found.predictions) == 7
    pairs = {tuple(map(int, text.split(" - "))) for text in found.predictions}
    assert not pairs & {tuple(pair) for pair in np.stack(graph.ends(), 1).tolist()}
    assert found.confidence.tolist() == sorted(found.confidence, reverse=True)


# --- what a report shows


def test_features_before_the_last_layer_and_attention():
    data = prepared("nodes", {"name": "karate"})
    graph = data.test.make.graph
    wl.random.seed(0)
    net = GraphNet(build({"name": "gat"}, data.shape, 2, {"task": "nodes"}), "nodes")
    assert before_last(net, Asked(np.arange(34), graph)).shape == (34, 64)
    weights, (rows, _) = attention(net, graph), graph.ends()
    shares = np.bincount(rows, weights)  # the rest is what a node pays to itself
    assert ((shares > 0) & (shares < 1)).all()
    assert attention(GraphNet(wl.models.GCN([34, 4, 2]), "nodes"), graph) is None


# --- what is refused


def test_tasks_by_the_data(tmp_path):
    tasks = [entry_for({"name": "gin"}, {"name": name}).task for name in ("motifs", "karate", str(tmp_path))]
    assert tasks == ["graphs", "nodes", "graphs"]
    assert entry_for({"name": "gcn", "task": "links"}, {"name": "karate"}).task == "links"


def npz(folder, **changes):
    """The karate club in a file with the usual names, some arrays of which are others, or missing."""
    graph = wl.graphs.karate_club()
    arrays = {"edge_index": np.asarray(graph.edge_index), "x": np.asarray(graph.x), "y": np.asarray(graph.y)}
    arrays |= {f"{name}_mask": np.asarray(mask) for name, mask in graph.masks.items()}
    kept = {name: value for name, value in {**arrays, **changes}.items() if value is not None}
    np.savez(folder / "graph.npz", **kept)
    return str(folder / "graph.npz")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"edge_index": None}, "there are no edges, so it is no graph.*--model mlp"),
        ({"y": None}, "nothing to predict.*model.task=links"),
        ({"test_mask": np.ones(34, bool)}, "2 nodes are in both masks, 'train' and 'test', as 0, 33"),
        ({"train_mask": np.arange(34) == 0}, "all nodes to train on are of one class, 0"),
        ({"train_mask": np.zeros(34, bool)}, "no node with a target is in the mask 'train'"),
        ({"y": np.zeros(34, np.int64)}, "one class only"),
        ({"edge_index": np.array([[0, 40], [1, 2]])}, "40"),
        ({"x": np.full((34, 2), np.nan, np.float32)}, "68 numbers of the features of nodes are NaN"),
    ],
)
def test_files_with_a_missing_or_wrong_part(tmp_path, changes, message):
    with pytest.raises(InputError, match=f"(?s){message}"):
        prepared("nodes", {"name": npz(tmp_path, **changes)})


def test_folders_with_a_missing_part(tmp_path):
    write_tu(tmp_path / "set", [(2, [(0, 1)])] * 6, [0, 1] * 3, None)
    (tmp_path / "set" / "S_A.txt").unlink()
    with pytest.raises(InputError, match=r"_A\.txt"):
        prepared("graphs", {"name": str(tmp_path / "set")})
    write_tu(tmp_path / "one", [(2, [(0, 1)])] * 6, [3] * 6, None)
    with pytest.raises(InputError, match="one class only, 3"):
        prepared("graphs", {"name": str(tmp_path / "one")})


def test_labels_of_nodes_may_be_separated_by_spaces(tmp_path):
    write_tu(tmp_path / "S", [(2, [(0, 1)])] * 6, [0, 1] * 3, ["3 0", "5 1"] * 6)
    data = prepared("graphs", {"name": str(tmp_path / "S")})
    assert data.about["inputs"]["kinds"] == [[3, 5], [0, 1]]


def test_features_of_edges_are_said_to_be_unused(tmp_path):
    write_tu(tmp_path / "S", [(2, [(0, 1)])] * 6, [0, 1] * 3, [0, 1] * 6)
    count = len((tmp_path / "S" / "S_A.txt").read_text().splitlines())
    (tmp_path / "S" / "S_edge_labels.txt").write_text("\n".join(str(i % 2) for i in range(count)))
    with pytest.warns(UserWarning, match="features of edges are not used"):
        prepared("graphs", {"name": str(tmp_path / "S")}, validation=0.0)


def test_tables_that_do_not_fit(tmp_path):
    data = tables(tmp_path)
    with pytest.raises(InputError, match=r"(?s)nothing to predict.*data.nodes"):
        prepared("nodes", {"name": data["name"]})
    with pytest.raises(InputError, match="no column 'sort'"):
        prepared("nodes", {**data, "target": "sort"})
    (tmp_path / "edges.csv").write_text("from,to\nn1,n2\nn3,n99\n")
    with pytest.raises(InputError, match=r"1 edges of nodes .* as n3 - n99 in line 3"):
        prepared("nodes", data)
    (tmp_path / "edges.csv").write_text("a,b,c,d\n1,2,x,3\n")
    with pytest.raises(InputError, match=r"(?s)no edges.*--model mlp"):
        prepared("nodes", data)


def test_models_and_data_of_different_kinds(tmp_path):
    with pytest.raises(InputError, match=r"(?s)digits: there is no such graph.*--model mlp"):
        prepared("nodes", {"name": "digits"})
    for name in (npz(tmp_path), "karate"):
        with pytest.raises(InputError, match=r"(?s)is a graph.*--model gcn"):
            quick(tmp_path / "run", model="mlp", data=name)
    with pytest.raises(InputError, match=r"(?s)one graph.*model.task=graphs"):
        prepared("nodes", {"name": "motifs"})
    with pytest.raises(InputError, match=r"(?s)batch_size.*whole graph"):
        quick(tmp_path / "run", "batch_size=8", data="karate")


def test_identity_features_are_for_the_same_nodes(tmp_path):
    data = {"name": npz(tmp_path, x=None)}
    about = prepared("nodes", data).about
    assert about["inputs"]["made"] == "identity"
    wl.graphs.save(wl.graphs.karate_club().with_(x=None, props=None).subgraph(np.arange(20)), tmp_path / "part.npz")
    with pytest.raises(InputError, match=r"(?s)20 nodes, the run had 34.*data.features=degree"):
        TASKS["nodes"].prepare({"name": str(tmp_path / "part.npz")}, 0.0, 0, run=about)
