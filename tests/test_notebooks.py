"""What notebooks show: well-formed HTML with the numbers in it, pictures where they make sense, a table of progress."""

from __future__ import annotations

import base64
import io
import re
import sys
from html.parser import HTMLParser
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest

import wonderland as wl
from wonderland import nn
from wonderland.errors import InputError
from wonderland.storage.svg import SVG
from wonderland.train import progress

EMPTY = {"img", "br", "rect", "circle", "line", "polyline", "path", "image"}


class Reader(HTMLParser):
    """Checks that tags are closed in order, and keeps the cells of tables."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.cells: list[str] = []
        self.count: dict[str, int] = {}
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.count[tag] = self.count.get(tag, 0) + 1
        if tag not in EMPTY:
            self.open.append(tag)
        if tag in ("td", "th"):
            self.cells.append("")

    def handle_startendtag(self, tag, attrs):
        self.count[tag] = self.count.get(tag, 0) + 1

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] in ("td", "th"):
            self.cells[-1] += data


def test_tensors_are_tables():
    x = wl.tensor([[1.5, -2.0], [wl.nan, 4.0]])
    found = Reader(x._repr_html_())
    assert found.cells == ["", "0", "1", "0", "1.5", "-2", "1", "nan", "4"]
    assert "tensor (2, 2), float32, from -2 to 4, mean 1.167, 1 not finite" in x._repr_html_()
    assert wl.tensor(2.0)._repr_html_() is None  # its text says all
    assert wl.zeros((0, 3))._repr_html_() is None
    large = Reader(wl.arange(400).reshape(20, 20)._repr_html_())
    assert len(large.cells) == 10 * 10  # names and four from each end, with a gap between
    assert large.cells.count("…") == 10 + 9  # a row and a column
    assert "399" in large.cells
    assert "200" not in large.cells


def test_no_values_under_a_transformation():
    seen = []
    wl.jit(lambda x: seen.append(x._repr_html_()) or x)(wl.ones((3, 3)))
    assert seen == [None]


@pytest.mark.parametrize(
    "data, side",
    [
        (np.linspace(-3, 5, 24 * 30).reshape(24, 30), (24, 30)),
        (np.random.default_rng(0).integers(0, 256, (16, 20, 3), dtype=np.uint8), (16, 20)),
        (np.random.default_rng(0).random((5, 8, 9, 1)), (2 * 8 + 1, 3 * 9 + 2)),
    ],
)
def test_what_looks_like_a_picture_is_shown_as_one(data, side):
    text = wl.tensor(data)._repr_html_()
    Reader(text)
    png = base64.b64decode(re.search(r'base64,([^"]+)"', text)[1])
    image = pytest.importorskip("PIL.Image").open(io.BytesIO(png))
    assert image.size == side[::-1]
    if data.ndim == 2:
        np.testing.assert_allclose(np.asarray(image), (data - data.min()) / (data.max() - data.min()) * 255, atol=0.51)


def test_long_vectors_are_curves():
    assert Reader(wl.linspace(0.0, 1.0, 50)._repr_html_()).count["polyline"] == 1
    assert "svg" not in Reader(wl.ones(5)._repr_html_()).count


def test_modules_are_trees_that_fold():
    model = nn.Sequential(nn.Linear(3, 4), wl.tanh, nn.Sequential(nn.Linear(4, 2), nn.Dropout(0.5))).freeze("0")
    text = model._repr_html_()
    found = Reader(text)
    assert found.count["details"] == 4
    assert "26 parameters" in text
    assert "tanh" in text
    assert "frozen" in text
    assert "[3, 4]" in text or "[4, 3]" in text


def test_summaries_and_histories():
    text = nn.Sequential(nn.Linear(64, 128), wl.tanh, nn.Linear(128, 10)).summary((32, 64))._repr_html_()
    assert Reader(text).cells[-5:] == ["total", "", "", "9,610", "303,104"]
    history = wl.train.History(
        [{"epoch": i, "loss": 1 / i, "validation_loss": 1 / i + (i == 3), "name": "<x>"} for i in (1, 2, 3)]
    )
    cells = Reader(history._repr_html_()).cells
    assert cells[:8] == ["", "first", "best validation loss", "last", "epoch", "1", "2", "3"]
    assert wl.train.History()._repr_html_() is None


def test_pictures_are_shown_and_saved(tmp_path):
    picture = wl.viz.plot([([0, 1], [0, 1])], title="a < b")
    assert isinstance(picture, SVG)
    assert picture._repr_svg_() == str(picture)
    assert repr(picture) == "SVG(640 x 400, 'a &lt; b')"
    assert picture.save(tmp_path / "line.svg") is picture
    assert (tmp_path / "line.svg").read_text(encoding="utf-8") == str(picture)
    with pytest.raises(InputError, match=r"\.svg"):
        picture.save(tmp_path / "line.png")


class Shown:
    """Stands in for what IPython displays with."""

    def __init__(self) -> None:
        self.pages: list[str] = []

    def HTML(self, text):  # noqa: N802 - IPython's name
        return text

    def display(self, page, display_id):
        assert display_id
        self.update(page)
        return self

    def update(self, page):
        Reader(page)
        self.pages.append(page)


def test_progress_is_a_table_in_a_notebook(monkeypatch):
    ipython = ModuleType("IPython")
    ipython.get_ipython = lambda: SimpleNamespace(kernel=1)  # type: ignore[attr-defined]
    shown = Shown()
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "IPython.display", shown)
    x = wl.random.normal((32, 2), key=wl.random.key(0))
    wl.train.fit(nn.Linear(2, 1), "mse_loss", (x, x.sum(axis=1, keepdims=True)), epochs=20, batch_size=16)
    cells = Reader(shown.pages[-1]).cells
    assert cells[0] == "epoch"
    assert cells.count("…") > 0
    epochs = [row for row in cells if row in ("1", "3", "4", "8", "9", "20")]
    assert {"1", "3", "9", "20"} <= set(epochs)
    assert "8" not in epochs


def test_a_line_of_an_epoch_fits():
    record = {"epoch": 3, "loss": 0.123456, "accuracy": 0.98, "validation_loss": 0.2, "validation_accuracy": 0.97}
    record |= {"validation_expected_calibration_error": 0.1, "lr": 1e-3, "gradient_norm": 2.5}
    text = progress.line("epoch 13/30", record, 12.3, 400)
    assert text == "epoch 13/30  loss 0.1235  val loss 0.2  val accuracy 0.97  val expected calibration error 0.1"
    short = {name: value for name, value in record.items() if "calibration" not in name}
    assert progress.line("epoch 13/30", short, 12.3, 400) == (
        "epoch 13/30  loss 0.1235  accuracy 0.98  validation loss 0.2  validation accuracy 0.97  12.3 s"
    )
