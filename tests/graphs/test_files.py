"""Readers of graphs: what was written comes back, and what is damaged is refused by name."""

from __future__ import annotations

import contextlib
import gzip

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

import wonderland as wl
from tests.graphs.test_graph import any_graph, dense, worked
from wonderland.errors import InputError, WonderlandError


@given(any_graph())
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_saved_graphs_come_back(tmp_path, graph):
    graph = graph.with_(
        edge_attr=np.arange(graph.num_edges),
        u=[1.0, 2.0],
        y=np.arange(graph.n),
        masks={"train": np.arange(graph.n) % 2 == 0},
        props={"name": "a graph", "numbers": np.arange(3)},
    )
    wl.graphs.save(graph, tmp_path / "graph.npz")
    back = wl.graphs.load(tmp_path / "graph.npz")
    assert back.edges.tolist() == graph.edges.tolist()
    assert back.n == graph.n
    for name in ("weight", "x", "edge_attr", "u", "y"):
        np.testing.assert_array_equal(getattr(back, name), getattr(graph, name))
        assert getattr(back, name).dtype == getattr(graph, name).dtype
    assert back.masks["train"].tolist() == graph.masks["train"].tolist()
    assert back.props["name"] == "a graph"
    assert back.props["numbers"].tolist() == [0, 1, 2]


def test_what_cannot_be_saved_is_refused(tmp_path):
    with pytest.raises(InputError, match="props have no form"):
        wl.graphs.save(worked().with_(props={"f": object()}), tmp_path / "a.npz")
    with pytest.raises(InputError, match="many graphs"):
        wl.graphs.save(wl.graphs.Batch.from_graphs([worked(), worked()]), tmp_path / "a.npz")


def test_files_of_citation_networks(tmp_path):
    path = tmp_path / "cora.npz"
    shape = {"feature_rows": [0, 2], "feature_cols": [1, 3], "feature_shape": [3, 4]}
    edges = np.array([[0, 1, 1], [1, 0, 2]])
    np.savez(path, **shape, edges=edges, labels=np.array([0, 1, 1]), train=np.array([True, False, False]))
    graph = wl.graphs.load(path)
    assert graph.x.tolist() == [[0, 1, 0, 0], [0, 0, 0, 0], [0, 0, 0, 1]]
    assert graph.edge_index.tolist() == edges.tolist()
    assert graph.y.tolist() == [0, 1, 1]
    assert graph.masks["train"].tolist() == [True, False, False]
    names = {"adj_indptr": [0, 1, 2, 2], "adj_indices": [1, 0], "adj_shape": [3, 3], "adj_data": [1.0, 1.0]}
    np.savez(path, **names, attr_indptr=[0, 1, 1, 2], attr_indices=[1, 0], attr_shape=[3, 2], attr_data=[2.0, 3.0])
    rows = wl.graphs.load(path)
    assert rows.coo() == [[0, 1], [1, 0]]
    assert rows.x.tolist() == [[0, 2], [0, 0], [3, 0]]
    np.savez(path, edge_index=edges, x=np.eye(3), y=[[0], [1], [0]], train_mask=[1, 0, 0], test_idx=[2])
    pyg = wl.graphs.load(path)
    assert pyg.y.tolist() == [0, 1, 0]
    assert {name: mask.tolist() for name, mask in pyg.masks.items()} == {
        "train": [True, False, False],
        "test": [False, False, True],
    }


@pytest.mark.parametrize(
    "arrays, message",
    [
        ({"x": np.eye(3)}, "no edges among 'x'"),
        ({"edges": np.array([[0, 5], [1, 0]]), "x": np.eye(2)}, "1 of 2 edges are outside"),
        ({"edges": np.zeros((3, 3), int)}, r"edges of the shape \(3, 3\)"),
        (
            {"edges": np.zeros((2, 1), int), "feature_rows": [0], "feature_cols": [0]},
            "features without",
        ),
        (
            {"edges": np.zeros((2, 1), int), "feature_rows": [0], "feature_cols": [0], "feature_shape": [10**6, 10**6]},
            "takes more than",
        ),
        ({"edges": np.zeros((2, 1), int), "num_nodes": 10**12}, "nodes in a file of this size"),
        ({"adj_indptr": [0, 5], "adj_indices": [0], "adj_shape": [1, 1]}, "rows that do not begin"),
        ({"wonderland_graph": 1, "n": 3}, "there is no 'ends'"),
        ({"edges": np.zeros((2, 1), int), "train": [7]}, "out of bounds"),
    ],
)
def test_damaged_files_are_refused(tmp_path, arrays, message):
    path = tmp_path / "bad.npz"
    np.savez(path, **arrays)
    with pytest.raises(InputError, match=message):
        wl.graphs.load(path)


# --- the format of TU Dortmund

FILES = {
    "A": "1, 2\n2, 1\n2, 3\n3, 2\n4, 5\n5, 4\n",
    "graph_indicator": "1\n1\n1\n2\n2\n",
    "graph_labels": "1\n-1\n",
    "node_labels": "0\n3\n0\n3\n7\n",
    "edge_labels": "0\n0\n1\n1\n0\n0\n",
    "node_attributes": "0.5, 1\n1.5, 2\n2.5, 3\n3.5, 4\n4.5, 5\n",
}


def folder(tmp_path, **changes):
    for name, text in {**FILES, **changes}.items():
        if text is not None:
            (tmp_path / f"DS_{name}.txt").write_text(text)
    return tmp_path


def test_sets_of_graphs(tmp_path):
    data = wl.graphs.read_tu(folder(tmp_path))
    assert repr(data) == "GraphList('DS', 2 graphs, 2 classes)"
    assert data.target_names == ("-1", "1")
    assert data.y.tolist() == [1, 0]
    first, second = data.graphs
    np.testing.assert_array_equal(dense(first), [[0, 1, 0], [1, 0, 1], [0, 1, 0]])
    np.testing.assert_array_equal(dense(second), [[0, 1], [1, 0]])
    assert first.x.tolist() == [[0.5, 1, 1, 0, 0], [1.5, 2, 0, 1, 0], [2.5, 3, 1, 0, 0]]
    assert first.edge_attr.tolist() == [[1, 0], [1, 0], [0, 1], [0, 1]]
    assert wl.graphs.read_tu(tmp_path, "DS", attributes=False).graphs[0].x.shape == (3, 3)
    (tmp_path / "DS_A.txt").unlink()
    (tmp_path / "DS_A.txt.gz").write_bytes(gzip.compress(FILES["A"].encode()))
    assert wl.graphs.read_tu(tmp_path).graphs[0].coo() == first.coo()


def test_nodes_of_a_graph_need_not_stand_together(tmp_path):
    changes = {"graph_indicator": "1\n2\n1\n2\n1\n", "A": "1, 3\n3, 1\n2, 4\n4, 2\n5, 3\n3, 5\n"}
    data = wl.graphs.read_tu(folder(tmp_path, **changes))
    assert data.graphs[0].coo() == [[0, 1], [1, 0], [1, 2], [2, 1]]
    assert data.graphs[1].coo() == [[0, 1], [1, 0]]
    assert data.graphs[0].x[:, 0].tolist() == [0.5, 2.5, 4.5]


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"graph_indicator": None, "graph_labels": None}, "has no DS_graph_indicator.txt, DS_graph_labels.txt"),
        ({"A": None}, "no file that ends in _A.txt"),
        ({"A": "1, 2\n2, 9\n", "edge_labels": None}, r"1 lines have others: row 1: \(2, 9\)"),
        ({"A": "1, 2\n1, 4\n", "edge_labels": None}, r"1 of 2 edges .* join two graphs: row 1: \(1, 4\)"),
        ({"A": "1, 2\n1\n", "edge_labels": None}, "2 numbers a line as in the first, line 2"),
        ({"A": "1, 2, 3\n"}, "2 numbers a line, found 3"),
        ({"A": "1, x\n"}, "numbers between commas"),
        ({"node_labels": "0\n1\n"}, "5 lines, found 2"),
        ({"edge_labels": "0\n1\n"}, "6 lines, found 2"),
        ({"graph_indicator": "1\n1\n1\n2\n3\n"}, "numbers of graphs from 1 to 2"),
        ({"node_attributes": "nan\n1\n1\n1\n1\n"}, "finite numbers"),
    ],
)
def test_damaged_sets_are_refused(tmp_path, changes, message):
    with pytest.raises(InputError, match=message):
        wl.graphs.read_tu(folder(tmp_path, **changes))


def test_several_sets_and_no_folder(tmp_path):
    folder(tmp_path)
    (tmp_path / "OTHER_A.txt").write_text("1, 2\n")
    with pytest.raises(InputError, match="the sets DS, OTHER"):
        wl.graphs.read_tu(tmp_path)
    with pytest.raises(InputError, match="is no folder"):
        wl.graphs.read_tu(tmp_path / "OTHER_A.txt")


@given(any_graph())
@settings(max_examples=5, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_damage_is_one_of_our_errors(tmp_path, graph):
    path = tmp_path / "graph.npz"
    wl.graphs.save(graph, path)
    whole = path.read_bytes()
    rng = np.random.default_rng(graph.num_edges)
    for _ in range(30):
        data = bytearray(whole)
        data[int(rng.integers(len(data)))] ^= int(rng.integers(1, 256))
        path.write_bytes(bytes(data[: int(rng.integers(1, len(data) + 1))]) if rng.random() < 0.3 else bytes(data))
        with contextlib.suppress(WonderlandError):
            wl.graphs.load(path)


# --- tables


def test_edges_by_names_and_numbers(tmp_path):
    edges, nodes = tmp_path / "edges.csv", tmp_path / "nodes.csv"
    edges.write_text("a,b,weight,age\nx,y,2.5,1\ny,z,1,7\n")
    graph = wl.graphs.read_edge_list(edges)
    assert graph.props["names"] == ("x", "y", "z")
    np.testing.assert_allclose(dense(graph), [[0, 2.5, 0], [2.5, 0, 1], [0, 1, 0]])
    assert graph.edge_attr[:, 0].tolist() == [1, 7, 1, 7]
    directed = wl.graphs.read_edge_list(edges, directed=True)
    np.testing.assert_allclose(dense(directed), [[0, 2.5, 0], [0, 0, 1], [0, 0, 0]])
    nodes.write_text("size,name,kind\n1,z,red\n2,y,blue\n3,x,red\n4,w,green\n")
    named = wl.graphs.read_edge_list(edges, nodes, target="kind", id_column="name")
    assert named.props["names"] == ("z", "y", "x", "w")
    assert named.x.tolist() == [[1], [2], [3], [4]]
    assert named.y.tolist() == [2, 0, 2, 1]
    assert named.props["target_names"] == ("blue", "green", "red")
    assert named.neighbors(3).tolist() == []
    edges.write_text("10,9\n9,2\n")
    numbers = wl.graphs.read_edge_list(edges)
    assert numbers.props["names"] == ("2", "9", "10")
    assert wl.graphs.read_edge_list(edges, n=12).coo() == [[2, 9], [9, 2], [9, 10], [10, 9]]


@pytest.mark.parametrize(
    "edges, nodes, message",
    [
        ("x,y\nx,q\nq,r\n", "name,age\nx,1\ny,2\n", r"2 of 3 edges .* not there: line 2: \('x', 'q'\)"),
        ("a,b,weight\nx,y,1\nx,y,heavy\n", None, "1 of 2 values of the column 'weight' .* line 3: 'heavy'"),
        ("x,y\n", "name,age\nx,1\ny,2\nx,3\n", "1 of 3 nodes .* more than once: 'x' in lines 2 and 4"),
        ("x\ny\n", None, "two columns or more"),
    ],
)
def test_tables_that_do_not_fit(tmp_path, edges, nodes, message):
    (tmp_path / "edges.csv").write_text(edges)
    table = None
    if nodes is not None:
        table = tmp_path / "nodes.csv"
        table.write_text(nodes)
    with pytest.raises(InputError, match=message):
        wl.graphs.read_edge_list(tmp_path / "edges.csv", table)


def test_a_missing_column(tmp_path):
    (tmp_path / "edges.csv").write_text("x,y\n")
    (tmp_path / "nodes.csv").write_text("name,age\nx,1\ny,2\n")
    with pytest.raises(InputError, match="no column 'id'"):
        wl.graphs.read_edge_list(tmp_path / "edges.csv", tmp_path / "nodes.csv", id_column="id")


def test_two_names_are_no_header_unless_they_look_like_one(tmp_path):
    path = tmp_path / "edges.csv"
    path.write_text("ann,bob\ncid,dan\n")
    assert wl.graphs.read_edge_list(path).num_undirected_edges == 2
    assert wl.graphs.read_edge_list(path, header=True).props["names"] == ("cid", "dan")
    path.write_text("Source,Target\ncid,dan\n")
    assert wl.graphs.read_edge_list(path).props["names"] == ("cid", "dan")
    nodes = tmp_path / "nodes.csv"
    nodes.write_text("name,age\nSource,1\nTarget,2\ncid,3\ndan,4\n")
    assert wl.graphs.read_edge_list(path, nodes).num_undirected_edges == 2  # they are nodes here
