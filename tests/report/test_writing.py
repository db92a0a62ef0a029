"""A whole report: self-contained, with the sections that the data allow, written whole or not at all."""

from __future__ import annotations

import os

import numpy as np
import pytest

import wonderland as wl
from tests.report.reading import read
from wonderland.report import png as png_files
from wonderland.report import writing

NASTY = '<script>alert("x")</script> & </title><img src=http://evil.example/x.png onerror=alert(1)> $\\frac$'


def a_history(epochs=4):
    return wl.train.History(
        [
            {"epoch": i, "step": 10 * i, "loss": 1 / i, "validation_loss": 1.5 / i, "accuracy": 1 - 0.5 / i,
             "validation_accuracy": 1 - 0.6 / i, "lr": 0.1, "seconds": 0.5}
            for i in range(1, epochs + 1)
        ]
    )  # fmt: skip


def some_probabilities(n=60, classes=3, seed=0):
    rng = np.random.default_rng(seed)
    return rng.dirichlet(np.ones(classes), n), rng.integers(0, classes, n)


@pytest.fixture
def path(tmp_path):
    return str(tmp_path / "report.html")


def sections(page):
    return page.headings[1:]


def test_only_a_title_and_a_history(path):
    assert wl.report.write(path, title="Bare", history=a_history(), png=False) == [path]
    page = read(path)
    assert page.headings == ["Bare", "Training", "Versions"]


def test_every_section_appears_with_its_data_and_only_then(path):
    p, y = some_probabilities()
    model = wl.nn.Sequential(wl.nn.Flatten(), wl.nn.Linear(16, 3))
    everything = {
        "model": model,
        "settings": {"epochs": 4},
        "predictions": p,
        "targets": y,
        "class_names": ["a", "b", "c"],
        "examples": np.random.default_rng(1).random((60, 4, 4, 1)).astype(np.float32),
        "gradients": {"1.weight": np.ones((16, 3))},
    }
    wl.report.write(path, title="All", history=a_history(), png=False, **everything)
    expected = ["Training", "Predictions", "Confidence", "Mistakes", "Model", "Graph", "Parameters", "Gradients"]
    assert sections(read(path)) == [*expected, "Settings", "Versions"]

    for missing, gone in (
        ("model", {"Model", "Graph", "Parameters"}),
        ("settings", {"Settings"}),
        ("gradients", {"Gradients"}),
        ("examples", {"Mistakes", "Graph"}),
    ):
        wl.report.write(path, title="All", history=a_history(), png=False, **{**everything, missing: None})
        assert sections(read(path)) == [name for name in [*expected, "Settings", "Versions"] if name not in gone]


def test_the_text_of_users_is_text(path):
    p, y = some_probabilities()
    history = a_history()
    history.records[0][NASTY] = 1.0
    history.events.append({"step": 15, "epoch": 2, "text": NASTY})
    history.stopped = NASTY
    wl.report.write(
        path,
        title=NASTY,
        history=history,
        settings={NASTY: NASTY, "deep": {NASTY: [NASTY]}},
        predictions=p,
        targets=y,
        class_names=[NASTY, "b", "c"],
        examples=[NASTY] * 60,
        gradients={NASTY: [1.0, 2.0]},
    )
    page = read(path)  # fails on scripts, handlers and foreign addresses
    assert page.headings[0] == NASTY
    assert [NASTY, NASTY] in page.table("setting", "value")
    assert "".join(page.texts).count(NASTY) >= 5


def test_nothing_of_pictures_is_lost_between_svg_and_page(path):
    wl.report.write(path, title="Curves", history=a_history(), png=False)
    page = read(path)
    assert page.captions == ["Loss", "Accuracy", "Learning rate"]
    spoken = [value for tag, name, value in page.attributes if tag == "svg" and name == "aria-label"]
    assert spoken == page.captions, "a screen reader says what a caption says"
    assert page.tags.count("style") == 1, "the style of all pictures stands once, in the head"


def test_files_are_whole_or_not_there_at_all(path, monkeypatch):
    with open(path, "w", encoding="utf-8") as file:
        file.write("old")

    def broken(pictures):
        raise RuntimeError("no picture today")

    monkeypatch.setattr(png_files, "draw", broken)
    monkeypatch.setattr(png_files, "available", lambda: True)
    with pytest.raises(RuntimeError):
        wl.report.write(path, title="t", history=a_history())
    with open(path, encoding="utf-8") as file:
        assert file.read() == "old"
    assert os.listdir(os.path.dirname(path)) == ["report.html"], "nothing is left lying about"


def test_files_are_written_by_the_one_function_that_does_it_atomically(path, monkeypatch):
    written = []
    monkeypatch.setattr(writing, "write_atomically", lambda place, content: written.append(place))
    assert wl.report.write(path, title="t", history=a_history()) == written
    assert not os.path.exists(path)


def test_without_matplotlib_there_is_the_page_alone(path, monkeypatch):
    monkeypatch.setattr(png_files, "available", lambda: False)
    assert wl.report.write(path, title="t", history=a_history()) == [path]


def test_folders_are_made(tmp_path):
    path = tmp_path / "runs" / "first" / "report.html"
    assert wl.report.write(path, title="t", history=a_history(), png=False) == [str(path)]
    assert path.exists()


@pytest.mark.parametrize(
    "given, error, words",
    [
        ({"history": [0.5, 0.2]}, wl.errors.InputError, "a history of type list"),
        ({"predictions": [[0.5, 0.5]]}, wl.errors.InputError, "predictions without targets"),
        ({"targets": [1]}, wl.errors.InputError, "targets without predictions"),
        ({"settings": ["lr", 0.1]}, wl.errors.InputError, "settings of type list"),
        ({"gradients": [1.0]}, wl.errors.InputError, "gradients of type list"),
        ({"gradients": {"w": ["a"]}}, wl.errors.InputError, "the gradient 'w' is of type"),
        ({"path": "report.pdf"}, wl.errors.InputError, "'report.pdf'"),
    ],
)
def test_what_does_not_fit_is_explained(path, given, error, words):
    arguments = {"path": path, "title": "t", "history": a_history(), "png": False, **given}
    with pytest.raises(error, match=words):
        wl.report.write(arguments.pop("path"), **arguments)
    assert not os.path.exists(path)


def test_a_report_of_a_real_run(path):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(96, 2)).astype(np.float32)
    y = (x[:, 0] > x[:, 1]).astype(np.int64)
    model = wl.nn.Sequential(wl.nn.Linear(2, 8), wl.nn.Tanh(), wl.nn.Linear(8, 2))
    watch = wl.train.Watch()
    history = wl.train.fit(
        model, wl.nn.CrossEntropyLoss(), (x, y), epochs=3, lr=0.05, validation=0.25, metrics=wl.metrics.Accuracy(),
        callbacks=[watch], progress=False, jit=False,
    )  # fmt: skip
    p = wl.softmax(model(wl.tensor(x)))
    wl.report.write(
        path, title="Two classes", history=history, model=model, predictions=p, targets=y, examples=x,
        gradients=watch.gradients, png=False,
    )  # fmt: skip
    page = read(path)
    (loss,) = [row for row in page.table("", "first", "best", "last") if row[0] == "loss"]
    assert float(loss[1]) == pytest.approx(history["loss"][0], rel=1e-3)
    assert {"Loss", "Accuracy", "Gradient norm", "0.weight (16)"} <= set(page.captions)
