"""Trees of classes: Huffman's are the shallowest, clustered ones keep similar classes together."""

from __future__ import annotations

import numpy as np
import pytest

import wonderland as wl
from wonderland.errors import InputError, ShapeError
from wonderland.nn.layers.class_trees import (
    arities,
    balanced_tree,
    check_tree,
    clustered_tree,
    expected_depth,
    flat_tree,
    huffman_tree,
    leaf_depths,
    leaf_paths,
)


@pytest.mark.book("A4-24", name="wl.nn.huffman_tree")
def test_huffman_depths():
    p = [0.5, 0.25, 0.125, 0.125]
    tree = huffman_tree(p)
    assert leaf_depths(tree).tolist() == [1, 2, 3, 3]
    assert expected_depth(tree, p) == 1.75
    for seed in range(5):
        q = np.random.default_rng(seed).dirichlet(np.full(20, 0.3))
        entropy = -(q * np.log2(np.maximum(q, 1e-300))).sum()
        depth = expected_depth(huffman_tree(q), q)
        assert entropy - 1e-12 <= depth < entropy + 1
        assert depth <= expected_depth(balanced_tree(20), q)
    assert leaf_depths(huffman_tree([1] * 8)).tolist() == [3] * 8


@pytest.mark.parametrize("classes", [2, 3, 7, 16, 33])
@pytest.mark.parametrize("arity", [2, 3, 5])
def test_every_tree_has_each_class_once(classes, arity):
    vectors = np.random.default_rng(0).normal(size=(classes, 3))
    trees = [flat_tree(classes), balanced_tree(classes, arity), clustered_tree(vectors, arity, key=wl.random.key(0))]
    for tree in [*trees, huffman_tree(np.arange(classes) + 1)]:
        assert check_tree("test", tree) == classes
        assert sum(k - 1 for k in arities(tree)) == classes - 1
        assert sorted(dict(leaf_paths(tree))) == list(range(classes))
    depths = leaf_depths(balanced_tree(classes, arity))
    assert depths.max() == int(np.ceil(np.log(classes) / np.log(arity) - 1e-12))


@pytest.mark.book("A4-25", name="wl.nn.clustered_tree")
def test_similar_classes_share_a_branch():
    centers = np.array([[0.0, 0.0], [50.0, 0.0], [0.0, 50.0]])
    groups = np.random.default_rng(0).permutation(np.repeat([0, 1, 2], 4))
    vectors = centers[groups] + np.random.default_rng(1).normal(size=(12, 2))
    tree = clustered_tree(vectors, arity=3, key=wl.random.key(0))
    assert len(tree) == 3
    for branch in tree:
        assert len({groups[leaf] for leaf, _ in leaf_paths(branch)}) == 1
    assert check_tree("test", clustered_tree(np.ones((9, 2)), key=wl.random.key(0))) == 9  # nothing to tell apart


def test_bad_input():
    with pytest.raises(InputError, match="has 1 children"):
        check_tree("test", ((0,), 1))
    with pytest.raises(InputError, match="each once"):
        check_tree("test", (0, 2))
    with pytest.raises(InputError, match="each once"):
        check_tree("test", (0, (0, 1)))
    with pytest.raises(InputError, match="holds a list"):
        check_tree("test", [0, 1])
    with pytest.raises(InputError, match="classes=1"):
        flat_tree(1)
    with pytest.raises(InputError, match="negative"):
        huffman_tree([0.5, -0.5])
    with pytest.raises(ShapeError, match="frequencies"):
        expected_depth((0, 1), [1.0])
    with pytest.raises(ShapeError, match="vectors of shape"):
        clustered_tree(np.zeros(3))
