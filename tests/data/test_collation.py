"""Batches from examples: stacked or padded."""

from __future__ import annotations

import numpy as np
import pytest

import wonderland as wl
from wonderland import data
from wonderland.errors import DTypeError, InputError, ShapeError


def test_numbers_take_the_types_of_tensors():
    x, (a, b), text = data.collate([(1.5, (2, True), "p"), (2.5, (3, False), "q")])
    assert (x.dtype, a.dtype, b.dtype) == (np.float32, np.int64, np.bool_)
    assert x.tolist() == [1.5, 2.5]
    assert text == ["p", "q"]
    mixed = data.collate([1, 2.5])
    assert mixed.dtype == np.float32
    found = data.collate([{"x": np.zeros(3), "y": wl.ones(2)}] * 4)
    assert found["x"].shape == (4, 3)
    assert found["y"].dtype == np.float32


def test_structures_and_shapes_must_agree():
    with pytest.raises(InputError, match="example 1 of the batch has the structure"):
        data.collate([{"x": 1}, {"y": 1}])
    with pytest.raises(InputError, match="example 1 of the batch is no tuple of 2 parts"):
        data.collate([(1, 2), (1, 2, 3)])
    with pytest.raises(ShapeError, match=r"part 1 differ: \(2,\) of the first example, \(3,\) of example 1") as caught:
        data.collate([(0, np.zeros(2)), (0, np.zeros(3))])
    assert "pad_value" in str(caught.value)
    with pytest.raises(InputError, match="no examples"):
        data.collate([])
    with pytest.raises(DTypeError, match="a object is not a number"):
        data.collate([object(), object()])


def test_padding():
    examples = [(np.arange(n), np.arange(n) + 10, n) for n in (3, 1, 2)]
    x, y, n = data.PadCollate((0, -100, None))(examples)
    assert x.values.tolist() == [[0, 1, 2], [0, 0, 0], [0, 1, 0]]
    assert y.values.tolist() == [[10, 11, 12], [10, -100, -100], [10, 11, -100]]
    assert x.lengths.tolist() == n.tolist() == [3, 1, 2]
    assert x.mask.sum(axis=1).tolist() == [3, 1, 2]
    vectors = data.PadCollate(-1.0, to_multiple=4)([np.ones((3, 2)), np.ones((1, 2))])
    assert vectors.values.shape == (2, 4, 2)
    assert (vectors.values[1, 1:] == -1).all()
    assert data.PadCollate(length=7)([[1], [2, 3]]).values.shape == (2, 7)
    with pytest.raises(ShapeError, match="more than length=1"):
        data.PadCollate(length=1)([np.zeros(2)])
    with pytest.raises(ShapeError, match="beyond the first axis"):
        data.PadCollate()([np.zeros((2, 3)), np.zeros((2, 4))])
    with pytest.raises(InputError, match="nothing for part 1"):
        data.PadCollate((0,))([(np.zeros(2), np.zeros(2))])
    with pytest.raises(InputError, match="not a length"):
        data.PadCollate(to_multiple=0)


def test_a_padded_batch_goes_through_the_loader_and_jit():
    sequences = [np.arange(n, dtype=np.float32) for n in (2, 4, 3)]
    loader = data.DataLoader(sequences, batch_size=3, pad_value=0.0)
    (batch,) = loader

    @wl.jit
    def mean(batch):
        return wl.where(batch.mask, batch.values, 0.0).sum(axis=1) / batch.lengths

    np.testing.assert_allclose(mean(batch), [0.5, 1.5, 1.0])
    np.testing.assert_array_equal(batch.mask, wl.arange(4) < batch.lengths[:, None])
