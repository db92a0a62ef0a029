"""Hierarchical softmax: products along paths, sparse gradients, and what it costs."""

from __future__ import annotations

import numpy as np
import pytest

import wonderland as wl
from wonderland import nn
from wonderland.errors import DTypeError, IndexOutOfRange, InputError, ShapeError
from wonderland.nn.layers.class_trees import (
    arities,
    balanced_tree,
    clustered_tree,
    flat_tree,
    huffman_tree,
    leaf_depths,
)

TREES = {
    "flat": flat_tree(7),
    "balanced": balanced_tree(7),
    "wide": balanced_tree(11, 3),
    "huffman": huffman_tree([20, 10, 5, 3, 2, 1, 1, 1]),
    "mixed": ((0, 1, 2, 3), 4, (5, (6, 7, (8, 9)))),
}
Z = wl.random.normal((2, 3, 4), key=wl.random.key(1), dtype=wl.float64)


def made(tree, features=4):
    layer = nn.HierarchicalSoftmax(features, tree, dtype=wl.float64, key=wl.random.key(0))
    layer.bias = wl.random.normal(layer.bias.shape, key=wl.random.key(5), dtype=wl.float64)
    return layer


def by_hand(layer, tree, z):
    """Probabilities of all leaves by recursion: the vertex's softmax times that of the branch."""
    W, b = layer.weight.numpy(), layer.bias.numpy()
    out, used = np.zeros(layer.classes), 0

    def visit(here, p):
        nonlocal used
        if not isinstance(here, tuple):
            out[here] = p
            return
        rows = slice(used, used + len(here) - 1)
        used += len(here) - 1
        scores = np.exp(np.concatenate([[0.0], W[rows] @ z + b[rows]]))
        for child, share in zip(here, scores / scores.sum(), strict=True):
            visit(child, p * share)

    visit(tree, 1.0)
    return out


@pytest.mark.book("A4-21", name="wl.nn.HierarchicalSoftmax")
@pytest.mark.parametrize("kind", TREES)
def test_leaves_have_the_products_along_their_paths(kind):
    tree = TREES[kind]
    layer = made(tree)
    probs = layer.probs(Z).numpy()
    np.testing.assert_allclose(probs.sum(-1), 1.0, rtol=1e-12)
    for i in np.ndindex(2, 3):
        np.testing.assert_allclose(probs[i], by_hand(layer, tree, Z.numpy()[i]), rtol=1e-10)
    for c in range(layer.classes):
        y = wl.full((2, 3), c)
        np.testing.assert_allclose(layer.log_prob(Z, y), np.log(probs[..., c]), rtol=1e-9)
    np.testing.assert_allclose(wl.jit(layer)(Z, y), layer(Z, y), rtol=1e-12)
    np.testing.assert_allclose(layer(Z, y), -np.log(probs[..., -1]).mean(), rtol=1e-9)
    np.testing.assert_array_equal(layer.predict(Z), probs.argmax(-1))
    wl.check_grads(lambda z: layer(z, y), (Z,), order=1)
    # the path and the whole distribution have the same gradients
    short = wl.grad(lambda m: m(Z, y))(layer)
    whole = wl.grad(lambda m: -m.log_probs(Z)[..., -1].mean())(layer)
    for path, g in short.items():
        np.testing.assert_allclose(g, whole[path], atol=1e-12)
    assert layer.num_parameters() == (layer.classes - 1) * 5


@pytest.mark.book("A4-22", name="wl.nn.HierarchicalSoftmax")
def test_the_leaf_0101_of_sixteen():
    layer = made(balanced_tree(16))
    assert (len(arities(layer.tree)), layer.weight.shape[0]) == (15, 15)
    z, y = Z[0, :1], wl.tensor([0b0101])
    sigma = lambda v: 1 / (1 + np.exp(-v))
    # vertices are numbered root first, each before those below it: "", "0", "01", "010"
    W, b, code = layer.weight.numpy(), layer.bias.numpy(), z.numpy()[0]
    left = [0, 1, 5, 6]
    eta = W[left] @ code + b[left]
    expected = (1 - sigma(eta[0])) * sigma(eta[1]) * (1 - sigma(eta[2])) * sigma(eta[3])
    np.testing.assert_allclose(wl.exp(layer.log_prob(z, y)), [expected], rtol=1e-10)
    for f in (wl.grad, lambda f: wl.jit(wl.grad(f))):
        grads = f(lambda m: m(z, y))(layer)
        assert np.flatnonzero(np.abs(grads["weight"].numpy()).sum(1)).tolist() == left
        assert np.flatnonzero(grads["bias"].numpy()).tolist() == left
    wl.check_grads(lambda z: layer(z, y), (z,), order=1)


@pytest.mark.book("A4-23", "A4-20", name="wl.nn.HierarchicalSoftmax")
def test_what_a_class_costs():
    assert nn.HierarchicalSoftmax(4, 16).cost().tolist() == [4] * 16
    assert nn.HierarchicalSoftmax(4, flat_tree(16)).cost().tolist() == [15] * 16  # as slow as a softmax
    tree = TREES["huffman"]
    np.testing.assert_array_equal(nn.HierarchicalSoftmax(4, tree).cost(), leaf_depths(tree))
    # the work of a plain softmax layer grows with the classes, that of a path with their logarithm
    z, y = wl.ones((1, 64)), wl.tensor([3])
    softmax, path = [], []
    for classes in (64, 1024):
        linear, layer = nn.Linear(64, classes), nn.HierarchicalSoftmax(64, classes)
        softmax.append(wl.count(lambda z, m=linear: nn.functional.cross_entropy(m(z), y), z).multiply_adds)
        path.append(wl.count(lambda z, m=layer: m(z, y), z).multiply_adds)
    np.testing.assert_allclose(softmax[1] / softmax[0], 1024 / 64, rtol=0.01)
    np.testing.assert_allclose(path[1] / path[0], 10 / 6, rtol=0.05)
    assert path[1] < softmax[1] / 10


def test_it_learns_if_the_questions_are_easy():
    rng = np.random.default_rng(0)
    centers = 3 * rng.normal(size=(6, 4))
    y = np.repeat(np.arange(6), 20)
    X = (centers[y] + 0.5 * rng.normal(size=(120, 4))).astype(np.float32)
    layer = nn.HierarchicalSoftmax(4, clustered_tree(centers, key=wl.random.key(1)), key=wl.random.key(0))
    optimizer = wl.optim.Adam(layer, lr=0.1)

    @wl.jit
    def step(layer, optimizer, x, y):
        loss, grads = wl.value_and_grad(lambda m, x, y: m(x, y))(layer, x, y)
        optimizer.step(grads)
        return loss

    for _ in range(150):
        step(layer, optimizer, wl.asarray(X), wl.asarray(y))
    assert (layer.predict(wl.asarray(X)).numpy() == y).mean() > 0.95


def test_bad_input():
    layer = nn.HierarchicalSoftmax(4, 16)
    with pytest.raises(IndexOutOfRange):
        layer.log_prob(wl.ones((1, 4)), wl.tensor([16]))
    with pytest.raises(IndexOutOfRange):
        layer.log_prob(wl.ones((1, 4)), wl.tensor([-1]))
    with pytest.raises(DTypeError, match="classes of float32"):
        layer.log_prob(wl.ones((1, 4)), wl.ones(1))
    with pytest.raises(ShapeError, match=r"codes of shape \(1, 3\)"):
        layer.log_prob(wl.ones((1, 3)), wl.tensor([1]))
    with pytest.raises(ShapeError, match=r"classes \(2,\)"):
        layer.log_prob(wl.ones((1, 4)), wl.tensor([1, 2]))
    with pytest.raises(InputError, match="each once"):
        nn.HierarchicalSoftmax(4, (0, (1, 3)))
