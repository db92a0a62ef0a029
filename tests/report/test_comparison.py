"""Runs over each other: each with its colour, events as red dots."""

from __future__ import annotations

import numpy as np
import pytest

import wonderland as wl
from tests.report.reading import read
from wonderland.report.comparison import comparison_pictures
from wonderland.report.curves import EVENT


def run(losses, **event):
    records = [
        {"epoch": i + 1, "step": 5 * (i + 1), "loss": loss, "validation_loss": loss + 0.5, "seconds": 1.0}
        for i, loss in enumerate(losses)
    ]
    history = wl.train.History(records)
    history.events += [event] if event else []
    return history


@pytest.mark.book("A3-43b", name="wl.report.compare")
def test_two_runs_with_their_events():
    runs = {"batch 128": run([2.0, 1.0, 0.5], step=10, text="learning rate 0.01"), "batch 8192": run([3.0, 2.5])}
    (picture,) = comparison_pictures(runs)
    lines = [shape for shape in picture.shapes if not shape.dots]
    assert [(line.label, line.dashed) for line in lines] == [
        ("", True), ("batch 128", False), ("", True), ("batch 8192", False),
    ]  # fmt: skip
    assert lines[0].colour == lines[1].colour != lines[2].colour == lines[3].colour
    np.testing.assert_allclose(lines[1].y, [2.5, 1.5, 1.0])
    training, validation = [shape for shape in picture.shapes if shape.dots]
    assert training.colour == validation.colour == EVENT
    np.testing.assert_allclose([training.x, training.y], [[2.0], [1.0]])
    np.testing.assert_allclose([validation.x, validation.y], [[2.0], [1.5]])


def test_the_page_has_the_best_epoch_of_every_run(tmp_path):
    runs = {"<one>": run([2.0, 0.5, 1.0]), "two": run([3.0, np.nan]), "none": wl.train.History()}
    written = wl.report.compare(tmp_path / "runs.html", runs, png=True)
    assert [path.rsplit("/", 1)[-1] for path in written] == ["runs.html", "runs-curves.png"]
    page = read(written[0])
    assert page.headings == ["Comparison of runs", "Runs", "Versions"]
    rows = page.table("run", "epochs", "best epoch", "loss", "validation loss")
    assert [row[:5] for row in rows] == [
        ["<one>", "3", "2", "0.5", "1"],
        ["two", "2", "1", "3", "3.5"],
        ["none", "0", "–", "–", "–"],
    ]


def test_twelve_runs_and_things_that_only_some_measured(tmp_path):
    runs = {f"run {i}": run([1.0 + i, 0.5 + i]) for i in range(12)}
    runs["run 3"].records[0]["accuracy"] = 0.5
    assert [picture.title.partition(":")[0] for picture in comparison_pictures(runs)] == ["Loss", "Accuracy"]
    read(wl.report.compare(tmp_path / "runs.html", runs, png=False)[0])


@pytest.mark.parametrize("runs", [{}, [run([1.0])], {"a": [1.0]}])
def test_what_is_no_set_of_runs(tmp_path, runs):
    with pytest.raises(wl.errors.InputError, match="compare"):
        wl.report.compare(tmp_path / "runs.html", runs)
