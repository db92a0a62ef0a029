"""The numbers of a classifier's report, against scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn import metrics as sk

import wonderland as wl
from tests.report.reading import Reader
from wonderland.report.classification import classification_section, confusion_picture
from wonderland.report.outcomes import read


def guesses(n=400, classes=4, seed=0, sharpness=3.0):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, classes, n)
    logits = sharpness * np.eye(classes)[y] * rng.random((n, 1)) + rng.normal(size=(n, classes))
    p = np.exp(logits)
    return p / p.sum(axis=1, keepdims=True), y


def number(text):
    return None if text == "–" else float(text.replace(",", ""))


@pytest.mark.book("4.78", name="wl.report.write")
def test_tables_and_matrix_agree_with_scikit_learn():
    p, y = guesses()
    names = ["cat", "dog", "<emu>", "fox"]
    classes, _ = classification_section(read(p, y, names))
    page = Reader(classes.html)
    found = p.argmax(axis=1)
    rows = page.table("class", "precision", "recall", "F1", "support")
    expected = np.stack(sk.precision_recall_fscore_support(y, found), axis=1)
    assert [row[0] for row in rows] == names
    np.testing.assert_allclose([[number(cell) for cell in row[1:]] for row in rows], expected, rtol=1e-3)
    (heat,) = classes.pictures["confusion"]
    np.testing.assert_array_equal(heat.counts, sk.confusion_matrix(y, found))
    np.testing.assert_allclose(heat.shares, sk.confusion_matrix(y, found, normalize="true"))
    text = "".join(page.texts)
    assert f"accuracy{sk.accuracy_score(y, found):.4g}" in text
    assert f"mean F1{sk.f1_score(y, found, average='macro'):.4g}" in text
    assert "<emu> → cat" in text, "what a cell says when pointed at"


@pytest.mark.book("4.67", name="wl.report.write")
def test_the_reliability_diagram_has_the_accuracy_of_every_bin():
    p, y = guesses()
    _, confidence = classification_section(read(p, y))
    sure, right = p.max(axis=1), p.argmax(axis=1) == y
    place = np.minimum((sure * 10).astype(int), 9)
    bars = confidence.pictures["reliability"][0].shapes[0]
    gap = 0.0
    for i in range(10):
        inside = place == i
        if inside.any():
            assert bars.heights[i] == pytest.approx(right[inside].mean())
            gap += inside.mean() * abs(right[inside].mean() - sure[inside].mean())
        else:
            assert np.isnan(bars.heights[i])
    page = Reader(confidence.html)
    assert f"ECE{gap:.4g}" in "".join(page.texts)
    rows = page.table("confidence", "examples", "mean confidence", "accuracy")
    assert sum(number(row[1]) for row in rows) == len(y)
    spread = confidence.pictures["reliability"][1].shapes
    np.testing.assert_array_equal(spread[0].heights, np.histogram(sure, 20, (0, 1))[0])
    np.testing.assert_array_equal(spread[1].heights, np.histogram(sure[~right], 20, (0, 1))[0])


def test_a_class_that_never_comes_has_no_recall():
    p, y = guesses(classes=3)
    p = np.concatenate([p, np.zeros((len(p), 2))], axis=1)
    p[0] = [0, 0, 0, 0, 1]
    classes, _ = classification_section(read(p, y))
    rows = Reader(classes.html).table("class", "precision")
    assert rows[3] == ["3", "–", "–", "–", "0"], "neither there nor predicted"
    assert rows[4] == ["4", "0", "–", "0", "0"], "predicted once, wrongly"
    found = p.argmax(axis=1)
    expected = sk.recall_score(y, found, labels=range(5), average="macro", zero_division=np.nan)
    assert f"mean recall{expected:.4g}" in "".join(Reader(classes.html).texts)


@pytest.mark.parametrize(
    "p, y, names",
    [
        ([[1.0, 0.0], [0.9, 0.1]], [0, 0], ()),  # one class in the targets
        ([[1.0], [1.0]], [0, 0], ["only"]),  # one class at all
        ([[0.3, 0.7]], [1], ()),  # one example
        ([0.2, 0.9, 0.4], [0, 1, 1], ["no", "yes"]),  # probabilities of the second of two
        ([[0.25, 0.75], [0.5, 0.5]], [[0, 1], [1, 0]], ()),  # one-hot
    ],
)
def test_small_cases(p, y, names):
    for section in classification_section(read(p, y, names)):
        Reader(section.html)


def test_of_a_thousand_classes_the_most_confused_are_shown(tmp_path):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 1000, 3000)
    found = y.copy()
    confused = np.arange(100, 300, 10)
    for k in confused:
        found[rng.choice(3000, 5, replace=False)] = k
    counts = np.zeros((1000, 1000), int)
    np.add.at(counts, (y, found), 1)
    heat, note = confusion_picture(counts, [str(i) for i in range(1000)])
    assert heat.counts.shape == (20, 20)
    assert "20 of 1,000 classes" in note
    mistakes = sk.confusion_matrix(y, found, labels=range(1000))
    np.fill_diagonal(mistakes, 0)
    by_class = mistakes.sum(0) + mistakes.sum(1)
    chosen = [int(name) for name in heat.names]
    assert by_class[chosen].min() >= np.delete(by_class, chosen).max()
    p = np.full((3000, 1000), 1e-4)
    p[np.arange(3000), found] += 1 - 0.1
    written = wl.report.write(
        tmp_path / "many.html", title="many", history=wl.train.History(), predictions=p, targets=y, png=False
    )
    with open(written[0], encoding="utf-8") as file:
        page = Reader(file.read())
    assert len(page.table("class", "precision")) == 1000
    assert page.tags.count("details") == 2, "the long table and the bins are folded"
