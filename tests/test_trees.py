"""Trees: leaves and structure there and back, paths, several trees at once, objects with state, cycles."""

from __future__ import annotations

import collections
import dataclasses
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import wonderland as wl
from wonderland.core import trees


class Point(NamedTuple):
    x: Any
    y: Any


@dataclasses.dataclass
class Layer:
    weight: Any
    name: str = dataclasses.field(default="layer", metadata={"static": True})


leaves = st.integers() | st.floats(allow_nan=False) | st.text(max_size=3)
nested = st.recursive(
    leaves | st.none(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(st.text(max_size=2), inner, max_size=3)
        | st.builds(Point, inner, inner)
        | st.builds(Layer, inner, st.text(max_size=2))
    ),
    max_leaves=12,
)


@given(nested)
def test_there_and_back(tree: Any) -> None:
    found, structure = wl.tree.flatten(tree)
    assert structure.leaf_count == len(found)
    assert wl.tree.unflatten(structure, found) == tree
    assert wl.tree.leaves(tree) == found
    assert wl.tree.structure(tree) == structure
    assert hash(structure) == hash(wl.tree.structure(tree))
    pairs, same = wl.tree.flatten_with_paths(tree)
    assert same == structure
    assert [leaf for _, leaf in pairs] == found
    for path, leaf in pairs:
        node = tree
        for key in path:
            node = getattr(node, key) if isinstance(node, (Point, Layer)) else node[key]  # type: ignore[call-overload]
        assert node == leaf


@given(nested)
def test_map(tree: Any) -> None:
    twice = wl.tree.map(lambda leaf: (leaf, leaf), tree)
    assert wl.tree.leaves(wl.tree.map(lambda leaf: 0, tree)) == [0] * len(wl.tree.leaves(tree))
    assert wl.tree.map(lambda a, b: a == b, tree, tree) == wl.tree.map(lambda leaf: True, tree)
    del twice


def test_order_of_keys_does_not_matter() -> None:
    a, b = {"x": 1, "y": 2}, {"y": 2, "x": 1}
    assert wl.tree.structure(a) == wl.tree.structure(b)
    assert wl.tree.leaves(a) == wl.tree.leaves(b) == [1, 2]
    assert wl.tree.leaves(collections.OrderedDict(y=2, x=1)) == [1, 2]
    assert wl.tree.leaves({3: "c", 1: "a"}) == ["c", "a"]  # other keys stay in their order


def test_structures_that_differ() -> None:
    for other in ([1, 2], (1,), {"a": 1}, [1, None]):
        with pytest.raises(wl.errors.TreeError, match=r"\*"):
            wl.tree.map(lambda a, b: a, [1], other)
    assert wl.tree.structure(Layer(1, "a")) != wl.tree.structure(Layer(1, "b"))
    with pytest.raises(wl.errors.TreeError, match="2 leaves received 1"):
        wl.tree.unflatten(wl.tree.structure([1, 2]), [1])


def test_cycles_and_depth() -> None:
    loop: list[Any] = [1]
    loop.append({"again": loop})
    with pytest.raises(wl.errors.TreeError, match="contains itself"):
        wl.tree.flatten(loop)
    shared = [1]
    assert wl.tree.leaves([shared, shared]) == [1, 1]  # twice the same list is no cycle
    deep: Any = 1
    for _ in range(5000):
        deep = [deep]
    with pytest.raises(wl.errors.TreeError, match="levels deep"):
        wl.tree.flatten(deep)


def test_registered_classes() -> None:
    class Pair:
        def __init__(self, a: Any, b: Any, tag: str) -> None:
            self.a, self.b, self.tag = a, b, tag

    wl.tree.register(Pair, lambda p: ((p.a, p.b), p.tag), lambda tag, parts: Pair(*parts, tag))  # type: ignore[call-arg]
    found, structure = wl.tree.flatten(Pair(1, [2, 3], "t"))
    assert found == [1, 2, 3]
    back = wl.tree.unflatten(structure, [10, 20, 30])
    assert (back.a, back.b, back.tag) == (10, [20, 30], "t")
    assert wl.tree.structure(Pair(1, 2, "t")) == wl.tree.structure(Pair(3, 4, "t"))
    assert wl.tree.structure(Pair(1, 2, "t")) != wl.tree.structure(Pair(1, 2, "u"))
    gradient = wl.grad(lambda p: p.a * p.b)(Pair(wl.tensor(2.0), wl.tensor(3.0), "t"))
    assert (gradient.a.item(), gradient.b.item()) == (3, 2)


def test_modules_are_nodes_whose_leaves_are_cells() -> None:
    layer = wl.nn.Linear(2, 3)
    found, structure = wl.tree.flatten({"model": layer, "again": layer})
    assert len(found) == 2  # weight and bias, once
    again = wl.tree.unflatten(structure, found)
    assert again["model"] is again["again"]
    closed, _ = wl.tree.flatten({"model": layer}, open_objects=False)
    assert closed == [layer]
    assert trees.is_stateful(layer)
    assert not trees.is_stateful([layer])


def test_ravel() -> None:
    tree = {"W": wl.asarray(np.arange(6.0).reshape(2, 3)), "b": [wl.tensor([7.0], wl.float32), 8.0]}
    vector, back = wl.tree.ravel(tree)
    assert vector.tolist() == [0, 1, 2, 3, 4, 5, 7, 8]
    same = back(vector)
    assert same["W"].dtype == wl.float64  # type: ignore[attr-defined]
    assert same["b"][0].dtype == wl.float32  # type: ignore[index]
    np.testing.assert_array_equal(same["W"].numpy(), tree["W"].numpy())  # type: ignore[attr-defined]
    g = wl.grad(lambda v: (back(v)["W"] ** 2).sum())(vector)  # type: ignore[operator]
    assert g.tolist() == [0, 2, 4, 6, 8, 10, 0, 0]
    with pytest.raises(wl.errors.TreeError, match="expected"):
        back(vector[:-1])
    empty, nothing = wl.tree.ravel({})
    assert empty.shape == (0,)
    assert nothing(empty) == {}
    z, parts = wl.tree.ravel([wl.tensor([1 + 2j]), wl.tensor([3.0])])
    assert parts(z)[1].dtype == wl.float32
    assert parts(z)[0].tolist() == [1 + 2j]
