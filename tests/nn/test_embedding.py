"""Embedding: rows of a table."""

from __future__ import annotations

import numpy as np
import pytest

import wonderland as wl
from wonderland import nn
from wonderland.errors import DTypeError, IndexOutOfRange, InputError, ShapeError

IDS = np.array([[0, 3, 3], [1, 0, 3]])


@pytest.mark.book("8-38", "A4-05", name="wl.nn.Embedding")
@pytest.mark.parametrize("dtype", [wl.float32, wl.float64])
def test_rows_and_their_gradients(dtype):
    layer = nn.Embedding(5, 2, dtype=dtype)
    out = layer(wl.asarray(IDS))
    assert out.dtype == dtype
    assert layer.output_shape(IDS.shape, wl.int64) == out.shape == (2, 3, 2)
    np.testing.assert_array_equal(out, layer.weight.numpy()[IDS])
    np.testing.assert_array_equal(wl.jit(layer)(wl.asarray(IDS)), out)
    c = np.arange(12.0).reshape(2, 3, 2)
    gradient = wl.grad(lambda m: (m(wl.asarray(IDS)) * wl.asarray(c, dtype=dtype)).sum())(layer)["weight"]
    expected = np.zeros((5, 2))
    np.add.at(expected, IDS, c)
    np.testing.assert_array_equal(gradient, expected)
    assert not gradient.numpy()[[2, 4]].any()


@pytest.mark.book("A4-04", "A4-02", name="wl.nn.Embedding")
def test_a_lookup_is_the_product_with_one_hot_vectors_for_less_work():
    layer = nn.Embedding(300, 8, dtype=wl.float64)
    bias = wl.random.normal((8,), dtype=wl.float64)
    ids = wl.asarray(IDS)
    one_hot = wl.one_hot(ids, 300, dtype=wl.float64)
    np.testing.assert_allclose(layer(ids), one_hot @ layer.weight, rtol=1e-12)
    np.testing.assert_allclose(wl.tanh(layer(ids) + bias), wl.tanh(one_hot @ layer.weight + bias), rtol=1e-12)
    lookup = wl.count(layer, ids).multiply_adds
    product = wl.count(lambda i: wl.one_hot(i, 300, dtype=wl.float64) @ layer.weight, ids).multiply_adds
    assert lookup < 300 * 8 < 6 * 300 * 8 <= product


@pytest.mark.book("A4-07", name="wl.nn.Embedding")
def test_the_gradients_of_several_uses_add_up():
    layer = nn.Embedding(5, 2, dtype=wl.float64)
    first, second = wl.tensor([0, 1]), wl.tensor([1, 4])
    use = lambda i, c: lambda m: (c * m(i) ** 2).sum()
    both = wl.grad(lambda m: use(first, 1.0)(m) + use(second, 3.0)(m))(layer)["weight"]
    apart = [wl.grad(use(first, 1.0))(layer)["weight"], wl.grad(use(second, 3.0))(layer)["weight"]]
    np.testing.assert_allclose(both, apart[0] + apart[1], rtol=1e-12)

    class Tied(nn.Module):  # the same table as the input and the output layer
        def __init__(self):
            self.table = layer
            self.out = layer.weight

        def forward(self, i):
            return self.table(i) @ self.out.mT

    model = Tied()
    assert [path for path, _ in model.named_parameters()] == ["table.weight"]
    loss = lambda read, out: ((read @ out.mT)[:, 3] ** 2).sum()
    w = layer.weight.value
    parts = wl.grad(lambda a, b: loss(a[wl.asarray([0, 1])], b), (0, 1))(w, w)
    total = wl.grad(lambda m: (m(first)[:, 3] ** 2).sum())(model)["table.weight"]
    np.testing.assert_allclose(total, parts[0] + parts[1], rtol=1e-12)


@pytest.mark.book("A4-08", name="wl.models.nearest_neighbors")
def test_categories_with_the_same_effect_become_similar():
    # of 6 categories the pairs (0, 1), (2, 3), (4, 5) have the same effects on three outputs
    effects = wl.asarray(np.eye(3, dtype=np.float32)[[0, 0, 1, 1, 2, 2]] * 4 - 2)
    model = nn.Sequential(nn.Embedding(6, 4, key=wl.random.key(0)), nn.Linear(4, 3, bias=False, key=wl.random.key(1)))
    optimizer = wl.optim.Adam(model, lr=0.05)
    ids = wl.arange(6)

    @wl.jit
    def step(model, optimizer):
        # a little decay, for what has no effect
        loss = lambda m: ((m(ids) - effects) ** 2).mean() + 0.02 * (m[0].weight ** 2).mean()
        value, grads = wl.value_and_grad(loss)(model)
        optimizer.step(grads)
        return value

    for _ in range(400):
        step(model, optimizer)
    table = model[0].weight.value
    for category in range(6):
        similarity, nearest = wl.models.nearest_neighbors(table, category, k=1)
        assert nearest.tolist() == [category ^ 1]
        assert float(similarity[0]) > 0.95


def test_long_rows_are_shortened():
    table = wl.tensor([[3.0, 4.0], [0.3, 0.4], [0.0, 0.0]])
    layer = nn.Embedding(3, 2, max_norm=1.0)
    layer.weight = table
    np.testing.assert_allclose(layer(wl.arange(3)), [[0.6, 0.8], [0.3, 0.4], [0.0, 0.0]], rtol=1e-6)
    np.testing.assert_allclose(wl.jit(layer)(wl.arange(3)), layer(wl.arange(3)), rtol=1e-6)
    assert "max_norm=1.0" in repr(layer)
    with pytest.raises(InputError, match="max_norm"):
        nn.Embedding(3, 2, max_norm=0.0)


def test_the_table_starts_normal():
    values = nn.Embedding(400, 50, key=wl.random.key(0)).weight.numpy()
    assert abs(values.mean()) < 0.02
    np.testing.assert_allclose(values.std(), 1.0, atol=0.02)


@pytest.mark.parametrize("padding", [3, -2])
def test_padding_is_zero_and_stays(padding):
    layer = nn.Embedding(5, 2, padding_idx=padding)
    assert layer.weight.numpy()[3].tolist() == [0.0, 0.0]
    gradient = wl.grad(lambda m: m(wl.asarray(IDS)).sum())(layer)["weight"].numpy()
    assert gradient.tolist() == [[2.0, 2.0], [1.0, 1.0], [0.0, 0.0], [0.0, 0.0], [0.0, 0.0]]
    assert "padding_idx=3" in repr(layer)


def test_a_given_table():
    layer = nn.Embedding.from_pretrained(wl.eye(3))
    assert not layer.weight.trainable
    assert nn.Embedding.from_pretrained(wl.eye(3), freeze=False).weight.trainable
    with pytest.raises(ShapeError, match=r"a table of shape \(3,\)"):
        nn.Embedding.from_pretrained(wl.ones(3))


@pytest.mark.parametrize("wrap", [lambda f: f, wl.jit])
@pytest.mark.parametrize("number", [5, -1, 100])
def test_numbers_outside_the_table_raise(wrap, number):
    with pytest.raises(IndexOutOfRange):
        wrap(nn.Embedding(5, 2))(wl.tensor([0, number]))


def test_bad_input():
    with pytest.raises(DTypeError, match="integers, received float32"):
        nn.Embedding(5, 2)(wl.ones(3))
    with pytest.raises(InputError, match="padding_idx=5 in 5 rows"):
        nn.Embedding(5, 2, padding_idx=5)
    with pytest.raises(InputError, match="num_embeddings"):
        nn.Embedding(-1, 2)
    with pytest.raises(ShapeError, match="a table of shape"):
        nn.functional.embedding(wl.tensor(0), wl.ones(3))
    with pytest.raises(InputError, match="padding_idx=9"):
        nn.functional.embedding(wl.tensor(0), wl.ones((3, 2)), 9)
