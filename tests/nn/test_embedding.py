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
