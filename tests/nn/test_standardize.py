"""Inputs standardized inside the model."""

import numpy as np
import pytest
from sklearn.preprocessing import StandardScaler

import wonderland as wl
from wonderland.nn import Standardize

X = np.random.default_rng(0).normal(size=(50, 3)) * [1.0, 10.0, 0.0] + [5.0, -3.0, 2.0]


@pytest.mark.book("9-54", name="wl.nn.Standardize")
def test_the_numbers_of_scikit_learn():
    layer = Standardize.of(X).astype(wl.float64)
    found = np.asarray(layer(wl.asarray(X)))
    np.testing.assert_allclose(found, StandardScaler().fit_transform(X), atol=1e-5)
    np.testing.assert_array_equal(np.asarray(wl.jit(lambda m, x: m(x))(layer, wl.asarray(X))), found)


def test_statistics_are_state_and_not_trained():
    layer = Standardize.of(X)
    assert layer.parameters() == []
    other = Standardize.of(np.zeros((2, 3)))
    other.load_state_dict(layer.state_dict())
    np.testing.assert_array_equal(np.asarray(other.mean), np.asarray(layer.mean))


def test_bytes_become_floating_and_images_share_a_scale():
    images = np.arange(2 * 4 * 4, dtype=np.uint8).reshape(2, 4, 4, 1)
    layer = Standardize.of(images, axis=(0, 1, 2, 3))
    out = np.asarray(layer(wl.asarray(images)))
    assert out.dtype == np.float32
    assert abs(out.mean()) < 1e-6
    assert abs(out.std() - 1) < 1e-5


@pytest.mark.parametrize("bad", [np.zeros(3), np.zeros((0, 3)), np.array([[np.nan, 1.0]])])
def test_what_has_no_statistics(bad):
    with pytest.raises(wl.errors.InputError, match="Standardize"):
        Standardize.of(bad)
