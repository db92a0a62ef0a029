"""The worst mistakes, in order, with pictures where the examples are images."""

from __future__ import annotations

import base64
import io

import numpy as np
import pytest
from PIL import Image

import wonderland as wl
from tests.report.reading import Reader
from wonderland.data.tables import Column, Table
from wonderland.report.mistakes import MOST, as_bytes, mistakes_section
from wonderland.report.outcomes import read


def hundred(seed=0):
    rng = np.random.default_rng(seed)
    return rng.dirichlet(np.ones(3), 100), rng.integers(0, 3, 100)


def pictures(page):
    data = [value for tag, name, value in page.attributes if tag == "img" and name == "src"]
    return [Image.open(io.BytesIO(base64.b64decode(text.partition(",")[2]))) for text in data]


def test_the_most_confident_mistakes_come_first():
    p, y = hundred()
    x = np.arange(100.0)[:, None] * np.ones(3)
    rows = Reader(mistakes_section(read(p, y, ["a", "b", "c"]), x).html).table("example", "true", "predicted")
    wrong = [i for i in range(100) if p[i].argmax() != y[i]]
    expected = sorted(wrong, key=lambda i: -p[i].max())[:MOST]
    assert [int(row[0]) for row in rows] == expected
    for row, i in zip(rows, expected, strict=True):
        assert row[1:3] == ["abc"[y[i]], "abc"[p[i].argmax()]]
        assert float(row[3]) == pytest.approx(p[i].max(), abs=1e-4)
        assert row[4] == f"{i}, {i}, {i}"


@pytest.mark.parametrize("channels", [1, 3])
def test_images_are_the_images(channels):
    p, y = hundred()
    x = np.random.default_rng(1).integers(0, 256, (100, 5, 7, channels)).astype(np.uint8)
    section = mistakes_section(read(p, y), x)
    page = Reader(section.html)
    wrong = [i for i in range(100) if p[i].argmax() != y[i]]
    expected = sorted(wrong, key=lambda i: -p[i].max())[:MOST]
    shown = pictures(page)
    assert len(shown) == len(section.pictures["mistakes"]) == len(expected)
    for image, i in zip(shown, expected, strict=True):
        np.testing.assert_array_equal(np.asarray(image).reshape(5, 7, channels), x[i])
    alts = [value for tag, name, value in page.attributes if tag == "img" and name == "alt"]
    assert alts[0].startswith(f"Example {expected[0]}: true {y[expected[0]]}, predicted")


def test_the_shades_of_images():
    unit = np.array([0.0, 0.5, 1.0]).reshape(1, 1, 3, 1)
    assert as_bytes(unit).ravel().tolist() == [0, 128, 255]
    assert as_bytes(unit / 2).ravel().tolist() == [0, 64, 128], "numbers from 0 to 1 are what they are"
    assert as_bytes(4 * unit - 2).ravel().tolist() == [0, 128, 255], "others are scaled to their range"
    assert as_bytes(np.array([np.nan, np.inf]).reshape(1, 1, 2, 1)).ravel().tolist() == [0, 255]
    assert as_bytes(np.zeros((1, 1000, 300, 3), np.uint8)).shape == (1, 125, 38, 3), "large images are made smaller"


def test_texts_and_lists_of_any_length_can_be_examples():
    p, y = [[0.9, 0.1], [0.8, 0.2]], [1, 1]
    html = mistakes_section(read(p, y), ["a < b", "c"]).html
    assert Reader(html).table("example")[0][-1] == "a < b"
    html = mistakes_section(read(p, y), [[1.0, 2.0], [3.0]]).html
    assert [row[-1] for row in Reader(html).table("example")] == ["1, 2", "3"]
    html = mistakes_section(read(p, y), wl.zeros((2, 40))).html
    assert Reader(html).table("example")[0][-1].endswith("0, …")


def test_the_largest_errors_of_a_regression():
    rows = Reader(mistakes_section(read([1.0, 5.0, np.nan, 2.0], [1.0, 2.0, 2.0, 1.0]), np.eye(4)).html).table(
        "example"
    )
    assert [row[:4] for row in rows] == [["1", "2", "5", "3"], ["3", "1", "2", "1"]]


def test_no_mistakes():
    assert "Every prediction is right." in mistakes_section(read([[1.0, 0.0]], [0]), [[1.0]]).html


@pytest.mark.parametrize("examples", [np.zeros((99, 2)), 3.0, np.zeros((100, 0))])
def test_examples_must_belong_to_the_targets(examples):
    p, y = hundred()
    with pytest.raises(wl.errors.WonderlandError, match="report: examples of shape"):
        mistakes_section(read(p, y), examples)


def test_examples_have_the_names_of_their_files():
    p, y, names = [[0.9, 0.1], [0.2, 0.8], [0.7, 0.3]], [1, 1, 1], ["a.png", "b.png", "c<1>.png"]
    section = mistakes_section(read(p, y), np.zeros((3, 4, 4, 1), np.uint8), names)
    assert [image.title.partition(":")[0] for image in section.pictures["mistakes"]] == ["a.png", "c<1>.png"]
    assert "c&lt;1&gt;.png: true 1" in section.html
    rows = Reader(mistakes_section(read(p, y), np.zeros((3, 2)), names).html).table("example")
    assert [row[0] for row in rows] == ["a.png", "c<1>.png"]
    with pytest.raises(wl.errors.ShapeError, match="2 names of 3 examples"):
        mistakes_section(read(p, y), np.zeros((3, 2)), names[:2])


def test_rows_of_a_table_are_shown_as_they_were_written():
    p, y = np.array([[0.9, 0.1], [0.2, 0.8]]), np.array([1, 1])
    city = Column("city", np.array([0, -1], np.int32), ("Rome",))
    asked = Table("t", {"age": Column("age", np.array([31.0, 4.5])), "city": city})
    section = mistakes_section(read(p, y, ["cat", "dog"]), np.zeros((2, 3)), asked=asked)
    assert Reader(section.html).table("example", "true", "predicted")[0][-1] == "age 31, city Rome"
    wrong = mistakes_section(read(p[::-1], y), np.zeros((2, 3)), asked=asked)
    assert Reader(wrong.html).table("example")[0][-1] == "age 4.5, city missing"
