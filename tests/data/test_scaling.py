"""Scalers, against scikit-learn; fitted on the training data alone."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn import preprocessing

import wonderland as wl
from wonderland import data
from wonderland.errors import InputError, ModuleError, ShapeError

RNG = np.random.default_rng(0)
X = RNG.normal(size=(50, 4)) * [1.0, 100.0, 1e-3, 1.0] + [0.0, 5.0, -3.0, 1e6]
NEW = RNG.normal(size=(7, 4)) * 10

PAIRS = [
    (data.StandardScaler(), preprocessing.StandardScaler()),
    (data.StandardScaler(with_mean=False), preprocessing.StandardScaler(with_mean=False)),
    (data.MinMaxScaler(), preprocessing.MinMaxScaler()),
    (data.MinMaxScaler((-1, 3), clip=True), preprocessing.MinMaxScaler((-1, 3), clip=True)),
    (data.RobustScaler(), preprocessing.RobustScaler()),
    (data.RobustScaler((10, 80)), preprocessing.RobustScaler(quantile_range=(10, 80))),
]


@pytest.mark.parametrize(("ours", "theirs"), PAIRS)
def test_against_scikit_learn(ours, theirs):
    np.testing.assert_allclose(ours.fit_transform(X), theirs.fit_transform(X), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(ours.transform(NEW), theirs.transform(NEW), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(ours.inverse_transform(ours.transform(X)), X, rtol=1e-9, atol=1e-8)


@pytest.mark.book("9-53", name="wl.data.MinMaxScaler")
def test_min_max():
    x = np.concatenate([X, np.full((50, 1), 7.0)], axis=1)
    z = data.MinMaxScaler().fit_transform(x)
    np.testing.assert_allclose(z.min(axis=0), 0.0, atol=1e-12)
    np.testing.assert_allclose(z.max(axis=0), [1, 1, 1, 1, 0], atol=1e-12)  # a constant column is no NaN
    np.testing.assert_allclose(data.MinMaxScaler((2, 5)).fit_transform(x)[:, 4], 2.0)
    with pytest.raises(InputError, match="is empty"):
        data.MinMaxScaler((1, 1))


@pytest.mark.book("9-54", name="wl.data.StandardScaler")
def test_standard_scaling_knows_the_training_data_only():
    x_train, x_test = data.train_test_split(X, test_size=0.3)
    scaler = data.StandardScaler().fit(x_train)
    z = scaler.transform(x_train)
    np.testing.assert_allclose(z.mean(axis=0), 0.0, atol=1e-8)
    np.testing.assert_allclose(z.std(axis=0), 1.0, rtol=1e-8)
    # another test set changes nothing; one that was fitted on shows in the statistics
    before = scaler.state_dict()
    scaler.transform(x_test * 1000)
    np.testing.assert_array_equal(scaler.mean_, x_train.mean(axis=0))
    np.testing.assert_array_equal(scaler.state_dict()["scale"], before["scale"])
    assert not np.allclose(data.StandardScaler().fit(X).mean_, scaler.mean_)
    constant = data.StandardScaler().fit_transform(np.full((5, 2), 0.1))
    np.testing.assert_array_equal(constant, 0.0)


def test_tensors_types_and_axes():
    scaler = data.StandardScaler().fit(X)
    z = scaler.transform(wl.tensor(X))
    assert isinstance(z, wl.Tensor)
    np.testing.assert_allclose(z, scaler.transform(X))
    np.testing.assert_allclose(wl.jit(scaler.transform)(wl.tensor(X)), z, rtol=1e-12)
    gradient = wl.grad(lambda x: scaler.transform(x).sum())(wl.tensor(X))
    np.testing.assert_allclose(gradient[0], 1 / scaler.scale_)
    assert scaler.transform(X.astype(np.float32)).dtype == np.float32
    assert data.MinMaxScaler().fit_transform(np.arange(6).reshape(3, 2)).dtype == np.float32
    images = RNG.integers(256, size=(5, 4, 4, 3))
    z = data.StandardScaler().fit_transform(images)  # a channel is a column
    np.testing.assert_allclose(z.mean(axis=(0, 1, 2)), 0.0, atol=1e-6)
    np.testing.assert_allclose(data.StandardScaler().fit(images).transform(images[0]), z[0], rtol=1e-6)
    other = data.StandardScaler()
    other.load_state_dict(scaler.state_dict())
    np.testing.assert_array_equal(other.transform(X), scaler.transform(X))


def test_refusals():
    with pytest.raises(ModuleError, match="used before fit"):
        data.StandardScaler().transform(X)
    with pytest.raises(ShapeError, match=r"x\[:, None\]"):
        data.StandardScaler().fit(X[:, 0])
    with pytest.raises(InputError, match="is empty"):
        data.MinMaxScaler().fit(np.zeros((0, 3)))
    with pytest.raises(InputError, match="column 1 has NaN"):
        data.RobustScaler().fit([[1.0, np.nan], [2.0, 3.0]])
    with pytest.raises(ShapeError, match="fitted on 4 columns"):
        data.StandardScaler().fit(X).transform(X[:, :3])
    with pytest.raises(InputError, match="no range of percents"):
        data.RobustScaler((75, 25))
