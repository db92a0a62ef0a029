"""The course of a run: the numbers of its table, the marks on its curves, and histories that went wrong."""

from __future__ import annotations

import numpy as np
import pytest

import wonderland as wl
from tests.report.reading import Reader
from wonderland.report.curves import (
    EVENT,
    best_epoch,
    curve_pictures,
    curves_section,
    event_epochs,
    series,
    thin,
)


def history_of(losses, **others):
    records = [{"epoch": i + 1, "step": 10 * (i + 1), "loss": loss} for i, loss in enumerate(losses)]
    for name, values in others.items():
        for record, value in zip(records, values, strict=True):
            record[name] = value
    return wl.train.History(records)


def test_the_best_epoch_has_the_least_validation_loss():
    history = history_of([3.0, 2.0, 1.0, 0.5], validation_loss=[3.0, 1.0, 2.0, np.nan])
    assert best_epoch(history)["epoch"] == 2
    assert best_epoch(history_of([3.0, -np.inf, np.nan, 1.0]))["epoch"] == 4, "infinite losses are no success"
    assert best_epoch(history_of([np.nan])) is None
    page = Reader(curves_section(history).html)
    assert page.table("", "first", "best", "last")[2] == ["loss", "3", "2", "0.5"]
    labels = [shape.label for shape in curve_pictures(history)[0].shapes]
    assert labels == ["training", "validation", "best, epoch 2"]


@pytest.mark.book("A3-43b", name="wl.report.write")
def test_events_are_red_dots_on_the_curves_at_their_steps():
    history = history_of([4.0, 2.0, 1.0], lr=[0.1, 0.1, 0.01])
    history.events.append({"step": 25, "epoch": 2, "text": "learning rate 0.01"})
    np.testing.assert_allclose(event_epochs(history), [2.5])
    (dots,) = [shape for shape in curve_pictures(history)[0].shapes if shape.colour == EVENT]
    assert dots.dots
    np.testing.assert_allclose([dots.x, dots.y], [[2.5], [1.5]])  # half way between 2 and 1
    page = Reader(curves_section(history).html)
    assert page.table("epoch", "step", "what happened") == [["2", "25", "learning rate 0.01"]]


def test_an_event_without_a_step_stands_at_its_epoch():
    history = wl.train.History([{"epoch": 1, "loss": 1.0}, {"epoch": 2, "loss": 0.5}])
    history.events += [{"epoch": 2, "text": "a"}, {"text": "nowhere"}]
    assert event_epochs(history).tolist() == [2.0]


@pytest.mark.parametrize(
    "losses",
    [
        [],
        [1.0],
        [np.nan, np.nan],
        [np.inf, 1.0, -np.inf, np.nan, 0.5],
        [1e308, -1e308, 1e308],
        [1e300, 1e300],
        [5e-324, 0.0],
        [1.0, 1.0 + 2e-16],
        [1e10, 1.0, 1e-8],
        [0.0, 0.0],
        [3, 2, 1],
    ],
)
def test_no_numbers_break_the_pictures(losses):
    section = curves_section(history_of(losses))
    page = Reader(section.html)
    drawn = [value for _, name, value in page.attributes if name in ("points", "cx", "cy", "x", "y", "width", "height")]
    assert not any(word in value for value in drawn for word in ("nan", "inf"))
    assert ("Loss" in "".join(page.captions)) == bool(np.isfinite(np.array(losses, float)).any())


def test_values_that_are_no_numbers_have_no_curve():
    history = history_of([1.0, 0.5], confusion=[[[1, 2], [3, 4]]] * 2, note=["a", "b"], maybe=[None, 0.5])
    assert [picture.title for picture in curve_pictures(history)] == ["Loss", "Maybe"]
    Reader(curves_section(history).html)


def test_losses_over_many_decades_and_learning_rates_have_an_axis_of_powers_of_ten():
    history = history_of([1e3, 1.0, 1e-3], lr=[1e-3, 1e-4, 1e-5])
    history.events.append({"step": 15, "text": "half way between two epochs"})
    losses, rates = curve_pictures(history)
    assert (losses.title, rates.title) == ("Loss", "Learning rate")
    np.testing.assert_allclose(losses.shapes[0].y, [1e3, 1.0, 1e-3])
    (dot,) = [shape for shape in losses.shapes if shape.colour == EVENT]
    np.testing.assert_allclose(dot.y, [np.sqrt(1e3)], err_msg="on the line as it is drawn")
    svg = rates.drawing().svg()
    for words in ("10⁻³", "10⁻⁴", "10⁻⁵"):
        assert f">{words}<" in svg
    assert "log" not in svg


def test_epochs_are_whole_numbers_even_if_there_is_but_one():
    svg = curve_pictures(history_of([1.0]))[0].drawing().svg()
    assert ">1<" in svg
    assert "<circle" in svg, "a curve of one point can be seen"
    assert ">1.5<" not in curve_pictures(history_of([1.0, 0.5]))[0].drawing().svg()


def test_thousands_of_epochs_make_a_small_picture_that_keeps_peaks_and_gaps():
    y = np.random.default_rng(0).normal(size=20_000)
    y[[7_000, 13_000]] = 50.0, -50.0
    y[15_000:15_500] = np.nan
    kept_x, kept_y = thin(np.arange(20_000.0), y)
    assert len(kept_x) <= 1000
    assert (np.nanmax(kept_y), np.nanmin(kept_y)) == (50.0, -50.0)
    assert np.isnan(kept_y).any()
    np.testing.assert_array_equal(kept_y, y[kept_x.astype(int)])
    assert (np.diff(kept_x) > 0).all()
    assert len(curves_section(history_of(y.tolist())).html) < 100_000


def test_a_series_skips_epochs_without_the_value():
    history = wl.train.History([{"epoch": 1, "loss": 1.0}, {"epoch": 2}, {"epoch": 3, "loss": 0.5}])
    x, y = series(history, "loss")
    assert (x.tolist(), y.tolist()) == ([1.0, 3.0], [1.0, 0.5])


def test_why_a_run_stopped_is_said():
    history = history_of([1.0])
    history.stopped = "no better since epoch 3"
    assert "The run stopped early: no better since epoch 3." in "".join(Reader(curves_section(history).html).texts)
