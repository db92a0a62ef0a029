"""Windows and datasets for forecasting, and splits that keep the order of time."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import wonderland as wl
from wonderland import series
from wonderland.errors import IndexOutOfRange, InputError, ShapeError


@pytest.mark.book("8-48", "8-50", name=("wl.series.make_windows", "wl.series.sliding_windows"))
def test_windows_of_the_book():
    x = np.random.default_rng(0).normal(size=(20, 3))
    X, y = series.make_windows(x, 12)
    assert (X.shape, y.shape) == ((8, 12, 3), (8, 3))
    for i in range(8):
        np.testing.assert_array_equal(X[i], x[i : i + 12])
        np.testing.assert_array_equal(y[i], x[i + 12])
    X, y = series.make_windows(x, 4, 3, stride=2, gap=1)
    assert y.shape == (len(X), 3, 3)
    for i in range(len(X)):
        np.testing.assert_array_equal(X[i], x[2 * i : 2 * i + 4])
        np.testing.assert_array_equal(y[i], x[2 * i + 5 : 2 * i + 8])
    assert series.sliding_windows(np.arange(7), 3, 2)[..., 0].tolist() == [[0, 1, 2], [2, 3, 4], [4, 5, 6]]


@settings(max_examples=30)
@given(st.integers(1, 25), st.integers(1, 8), st.integers(1, 4), st.integers(1, 3), st.integers(0, 2))
def test_the_dataset_holds_the_same_windows(n, context, horizon, stride, gap):
    x = np.arange(2.0 * n).reshape(n, 2)
    if n < context + horizon + gap:
        with pytest.raises(InputError, match="no window"):
            series.ForecastDataset(x, context, horizon, stride=stride, gap=gap)
        return
    X, y = series.make_windows(x, context, horizon, stride=stride, gap=gap)
    dataset = series.ForecastDataset(x, context, horizon, stride=stride, gap=gap)
    assert len(dataset) == len(X)
    for i, (a, b) in enumerate(dataset):
        np.testing.assert_array_equal(a, X[i])
        np.testing.assert_array_equal(b, y[i])
        np.testing.assert_array_equal(x[dataset.target_times(i)[1]], y[i])


@pytest.mark.book("8-01", "8-09", "8-62", name=("wl.series.ForecastDataset", "wl.series.shift_targets"))
def test_what_an_example_holds():
    x = np.random.default_rng(1).normal(size=(30, 3)).astype(np.float32)
    calendar = np.arange(60.0).reshape(30, 2)
    (past, known), y = series.ForecastDataset(x, 5, 2, exogenous=calendar, targets=[2, 0])[4]
    np.testing.assert_array_equal(past, x[4:9])
    np.testing.assert_array_equal(known, calendar[4:11])
    np.testing.assert_array_equal(y, x[9:11][:, [2, 0]])
    assert series.ForecastDataset(x, 5)[0][1].shape == (3,)
    a, b = series.ForecastDataset(x, 5, every_step=True)[7]
    np.testing.assert_array_equal(b, x[8:13])
    _, after = series.ForecastDataset(x, 5)[7]
    np.testing.assert_array_equal(np.asarray(series.shift_targets(a, after)), b)
    loader = wl.data.DataLoader(series.ForecastDataset(x, 5, 2, exogenous=calendar), batch_size=4)
    (past, known), y = next(iter(loader))
    assert (past.shape, known.shape, y.shape) == ((4, 5, 3), (4, 7, 2), (4, 2, 3))


def test_several_series_of_different_lengths():
    parts = [np.arange(6.0), np.arange(100.0, 104.0), np.arange(200.0, 209.0)]
    dataset = series.ForecastDataset(parts, 3)
    assert len(dataset) == 3 + 1 + 6
    for x, y in dataset:
        np.testing.assert_array_equal(np.append(x[:, 0], y), np.arange(x[0, 0], x[0, 0] + 4))  # never across two
    assert dataset.target_times(3) == (1, np.array([3]))
    assert [float(y[0]) for _, y in series.ForecastDataset(parts, 3, within=(4, 6))] == [4, 5, 204, 205]


@pytest.mark.book("8-51", name="wl.series.forecast_split")
@pytest.mark.parametrize("options", [{}, {"horizon": 3}, {"every_step": True}, {"gap": 2, "stride": 2}])
def test_no_target_is_seen_before_its_time(options):
    x = np.arange(60.0)
    parts = series.forecast_split(x, 6, val_size=0.2, test_size=0.25, **options)
    times = [np.concatenate([part.target_times(i)[1] for i in range(len(part))]) for part in parts]
    assert times[0].max() < times[1].min() <= times[1].max() < times[2].min()
    assert (times[0].max(), times[1].max(), times[2].max()) <= (32, 44, 59)
    inputs = np.concatenate([a[:, 0] for a, _ in parts[0]])
    assert inputs.max() <= times[0].max()  # nothing to learn from is later than what is learned
    train, test = series.forecast_split(x, 6, **options)
    assert len(train) > len(test)
    # windows that are split at random do overlap
    whole = series.ForecastDataset(x, 6)
    some, others = wl.data.train_test_split(whole, test_size=0.25)
    seen = {float(v) for a, _ in some for v in a[:, 0]}
    assert any(float(y[0]) in seen for _, y in others)


def test_bad_series_are_refused():
    with pytest.raises(ShapeError, match=r"a series of shape \(2, 2, 2\)"):
        series.make_windows(np.zeros((2, 2, 2)), 1)
    with pytest.raises(ShapeError, match="5 times are too few for a window of 6"):
        series.make_windows(np.zeros(5), 5)
    with pytest.raises(InputError, match="context=0"):
        series.ForecastDataset(np.zeros(5), 0)
    with pytest.raises(InputError, match="NaN or infinities, first row 3"):
        series.ForecastDataset(np.array([0, 1, 2, np.nan, 4]), 2)
    with pytest.raises(InputError, match=r"targets=\[3\] of 2 channels"):
        series.ForecastDataset(np.zeros((9, 2)), 2, targets=[3])
    with pytest.raises(ShapeError, match="exogenous series of lengths"):
        series.ForecastDataset(np.zeros(9), 2, exogenous=np.zeros(8))
    with pytest.raises(ShapeError, match=r"\[1, 2\] channels"):
        series.ForecastDataset([np.zeros(9), np.zeros((9, 2))], 2)
    with pytest.raises(InputError, match="every_step with horizon=3"):
        series.ForecastDataset(np.zeros(9), 2, 3, every_step=True)
    with pytest.raises(IndexOutOfRange, match="no example 7"):
        series.ForecastDataset(np.zeros(9), 2)[7]
    with pytest.raises(InputError, match=r"test_size=1\.5"):
        series.forecast_split(np.zeros(9), 2, test_size=1.5)
    with pytest.raises(InputError, match="leave some in each"):
        series.forecast_split(np.zeros(9), 2, val_size=0.6, test_size=0.6)
