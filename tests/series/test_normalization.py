"""Normalisation and differences, and back again; baselines; generated series; augmentation."""

from __future__ import annotations

import numpy as np
import pytest

import wonderland as wl
from wonderland import series
from wonderland.errors import DTypeError, InputError, ShapeError

T = wl.data.transforms


@pytest.mark.book("8-49", name=("wl.series.normalize", "wl.series.difference", "wl.series.integrate"))
def test_transformed_series_come_back():
    x = np.random.default_rng(0).normal(size=(4, 23, 2)).cumsum(axis=1) + 100
    n = series.normalize(x)
    np.testing.assert_allclose(np.asarray(n.values).mean(axis=1), 0, atol=1e-9)
    np.testing.assert_allclose(np.asarray(n.values).std(axis=1), 1, atol=1e-4)
    np.testing.assert_allclose(np.asarray(n.restore(n.values)), x, rtol=1e-12)
    for lag in (1, 3, 7):
        d = series.difference(x, lag)
        np.testing.assert_allclose(np.asarray(d), x[:, lag:] - x[:, :-lag])
        np.testing.assert_allclose(np.asarray(series.integrate(d, x[:, :lag])), x, rtol=1e-10)
        np.testing.assert_allclose(np.asarray(wl.jit(series.integrate)(d, x[:, :lag])), x, rtol=1e-10)
        wl.check_grads(lambda x, lag=lag: series.integrate(series.difference(x, lag), 2.0 * x[:, :lag]), (x[:2],))
    np.testing.assert_array_equal(np.asarray(series.difference(x[0, :, 0], axis=0)), np.diff(x[0, :, 0]))
    # a trend is gone after one difference, a season after one with its period as lag
    seasonal = series.make_seasonal(48, 12, noise=0.0, dtype=np.float64)
    np.testing.assert_allclose(np.asarray(series.difference(seasonal, 12)), 12 * 0.05)
    np.testing.assert_allclose(np.asarray(series.difference(series.difference(seasonal, 12))), 0, atol=1e-12)


@pytest.mark.book("8-25", name="wl.series.normalize")
def test_padding_has_no_part_in_the_statistics():
    rng = np.random.default_rng(1)
    sequences = [rng.normal(size=(n, 2)) + 5 for n in (7, 4)]
    batch = wl.data.pad_sequence(sequences, batch_first=True, padding_value=99.0)
    values, center, scale = series.normalize(batch, wl.data.lengths_to_mask([7, 4]))
    for i, x in enumerate(sequences):
        alone = series.normalize(x)
        np.testing.assert_allclose(np.asarray(values)[i, : len(x)], np.asarray(alone.values), atol=1e-12)
        np.testing.assert_allclose(np.asarray(scale)[i], np.asarray(alone.scale), rtol=1e-12)
        np.testing.assert_allclose(np.asarray(center)[i], np.asarray(alone.center), rtol=1e-12)
    assert (np.asarray(values)[1, 4:] == 0).all()
    wl.check_grads(
        lambda x: series.normalize(x, wl.data.lengths_to_mask([7, 4])).values, (np.where(batch == 99, 0, batch),)
    )
    with pytest.raises(ShapeError, match=r"a mask of shape \(2, 5\)"):
        series.normalize(batch, np.ones((2, 5)))


def test_bad_differences_are_refused():
    with pytest.raises(ShapeError, match="3 times and lag=3"):
        series.difference(np.zeros((3, 1)), 3)
    with pytest.raises(ShapeError, match="a start of shape"):
        series.integrate(np.zeros((3, 1)), np.zeros((1, 2)))
    with pytest.raises(ShapeError, match="is empty"):
        series.integrate(np.zeros((3, 1)), np.zeros((0, 1)))
    with pytest.raises(ShapeError, match="a series of shape"):
        series.normalize(np.zeros(3))


def test_baselines():
    x = series.make_seasonal(40, 8, trend=0.0, noise=0.0, dtype=np.float64)
    np.testing.assert_allclose(np.asarray(series.seasonal_naive(x[:24], 16, 8)), x[24:])
    line = np.arange(10.0)[:, None] * [[1.0, -2.0]]
    np.testing.assert_allclose(np.asarray(series.drift(line[:6], 4)), line[6:])
    batch = np.stack([line, 2 * line])
    for f in (series.naive, series.drift, series.historical_mean):
        y = np.asarray(f(batch, 3))
        assert y.shape == (2, 3, 2)
        np.testing.assert_array_equal(y[1], np.asarray(f(2 * line, 3)))
        np.testing.assert_allclose(np.asarray(wl.jit(lambda b, f=f: f(b, 3))(batch)), y)
    assert np.asarray(series.naive(line, 2)).tolist() == [[9, -18], [9, -18]]
    with pytest.raises(ShapeError, match="8 times or more"):
        series.seasonal_naive(x[:7], 1, 8)
    with pytest.raises(InputError, match="horizon=0"):
        series.naive(x, 0)


def test_generated_series_follow_their_formulas():
    np.testing.assert_allclose(
        series.make_sines(50, [7, 11], [1.0, 3.0], dtype=float)[:, 0],
        np.sin(2 * np.pi * np.arange(50) / 7) + 3 * np.sin(2 * np.pi * np.arange(50) / 11),
    )
    # an AR(2) has the autocorrelation r1 = a1 / (1 - a2), and what its coefficients leave is the noise
    x = series.make_ar(20_000, [0.5, 0.3], noise=2.0, dtype=float)[:, 0]
    centered = x - x.mean()
    assert (centered[1:] @ centered[:-1]) / (centered @ centered) == pytest.approx(0.5 / 0.7, abs=0.03)
    assert (x[2:] - 0.5 * x[1:-1] - 0.3 * x[:-2]).std() == pytest.approx(2.0, rel=0.02)
    assert series.make_ar(20_000, [0.5], constant=3.0).mean() == pytest.approx(6.0, abs=0.1)
    walk = series.make_random_walk(5000, 2, drift=0.5, dtype=float)
    assert (walk[0] == 0).all()
    np.testing.assert_allclose(np.diff(walk, axis=0).mean(axis=0), 0.5, atol=0.05)
    assert np.diff(walk, axis=0).std() == pytest.approx(1.0, rel=0.05)
    for make in (series.make_ar, series.make_random_walk, series.make_seasonal):
        np.testing.assert_array_equal(make(20, seed=3), make(20, seed=3))
        assert (make(20, seed=3) != make(20, seed=4)).any()


def test_the_lorenz_system_has_its_fixed_point_and_its_derivative():
    fixed = np.array([np.sqrt(72), np.sqrt(72), 27.0])
    np.testing.assert_allclose(series.make_lorenz(20, start=fixed, dtype=float), np.tile(fixed, (20, 1)), rtol=1e-9)
    x = series.make_lorenz(50, 1e-3, dtype=float)
    rate = (x[2:] - x[:-2]) / 2e-3
    a, b, c = x[1:-1].T
    np.testing.assert_allclose(rate, np.stack([10 * (b - a), a * (28 - c) - b, a * b - 8 / 3 * c], 1), atol=2e-2)
    # chaos: two neighbours part
    near = series.make_lorenz(1500, start=(1.0, 1.0, 1.0 + 1e-6))
    assert np.abs(near[-1] - series.make_lorenz(1500)[-1]).max() > 1


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: series.make_ar(10, [1.0]), "not stationary"),
        (lambda: series.make_ar(10, []), "no coefficients"),
        (lambda: series.make_sines(10, [0]), "periods above 0"),
        (lambda: series.make_sines(10, [2], [1.0, 2.0]), "as many amplitudes"),
        (lambda: series.make_lorenz(10, 0.0), "dt=0"),
        (lambda: series.make_random_walk(10, noise=-1), "noise=-1"),
        (lambda: series.make_seasonal(0), "n=0"),
    ],
)
def test_bad_settings_are_refused(make, message):
    with pytest.raises(InputError, match=message):
        make()


@pytest.mark.book("8-08", name=("wl.series.augmentation", "wl.data.transforms.check_label_safety"))
def test_time_is_not_turned_round():
    default = series.augmentation()
    assert T.check_label_safety(default, "sequences") == []
    assert not default.changes & {"vertical_flip", "horizontal_flip", "time_flip"}
    # a mirror image of (time, channels) has its times in reverse order, and this is reported
    assert [found.change for found in T.check_label_safety(T.RandomVerticalFlip(), "sequences")] == ["vertical_flip"]
    x = np.arange(50.0)[:, None] * [[1.0, 2.0]]
    for seed in range(20):
        y = default(x, np.random.default_rng(seed))
        assert y.shape == x.shape
        assert np.corrcoef(x[:, 0], y[:, 0])[0, 1] > 0.2
    np.testing.assert_array_equal(default(x, np.random.default_rng(3)), default(x, np.random.default_rng(3)))
    assert series.Jitter(0.0)(x, np.random.default_rng(0)).tolist() == x.tolist()
    assert (series.augmentation().eval()(x) == x).all()
    masked = series.RandomTimeMask(5)(x + 1, np.random.default_rng(1))
    assert 0 <= (masked == 0).all(axis=1).sum() <= 5
    loader = wl.data.DataLoader(wl.data.SequenceDataset([x.astype(np.float32)] * 3).map(default), batch_size=3)
    assert next(iter(loader)).shape == (3, 50, 2)
    with pytest.raises(ShapeError, match=r"a series of shape \(3,\)"):
        default(np.zeros(3), 0)
    with pytest.raises(DTypeError, match="int64"):
        series.RandomGain()(np.zeros((3, 1), np.int64), 0)
    with pytest.raises(InputError, match="std=-1"):
        series.Jitter(-1)
