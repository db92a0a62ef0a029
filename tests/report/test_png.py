"""PNG files beside the page: valid images that show something."""

from __future__ import annotations

import io
import os

import numpy as np
import pytest
from PIL import Image

import wonderland as wl
from wonderland.report import png
from wonderland.report.pictures import Heat, Plot, histogram_of
from wonderland.report.pictures import Image as Pixels
from wonderland.viz import Bars, Curve


def image_of(content):
    image = Image.open(io.BytesIO(content))
    image.load()
    assert image.format == "PNG"
    return np.asarray(image.convert("RGB"))


def test_the_files_of_a_report(tmp_path):
    history = wl.train.History([{"epoch": i, "loss": 1 / i} for i in (1, 2, 3)])
    p = np.random.default_rng(0).dirichlet(np.ones(3), 30)
    written = wl.report.write(
        tmp_path / "run.html",
        title="t",
        history=history,
        predictions=p,
        targets=np.arange(30) % 3,
        class_names=["$x_1$", "日本", "c" * 50],
        gradients={"a_$b": np.arange(5.0)},
    )
    names = [os.path.basename(path) for path in written]
    assert names == ["run.html", "run-curves.png", "run-confusion.png", "run-reliability.png", "run-gradients.png"]
    assert sorted(os.listdir(tmp_path)) == sorted(names)
    for path in written[1:]:
        with open(path, "rb") as file:
            pixels = image_of(file.read())
        assert (pixels == 255).all(axis=-1).any(), "on white paper"
        assert len(np.unique(pixels.reshape(-1, 3), axis=0)) > 3


def test_colours_are_where_the_numbers_are():
    colour = np.array([0xDC, 0x26, 0x26])
    curve = Curve([0.0, 1.0], [0.0, 1.0], colour="#dc2626")
    pixels = image_of(png.draw([Plot("rising", [curve])])).astype(int)
    rows, columns = np.nonzero((np.abs(pixels - colour) < 40).all(axis=-1))
    assert np.corrcoef(rows, columns)[0, 1] < -0.99, "from the lower left to the upper right"


def test_the_diagonal_of_a_confusion_matrix_is_dark():
    heat = Heat("m", np.diag([5, 5]), np.eye(2), ["a", "b"])
    pixels = image_of(png.draw([heat])).mean(axis=-1)
    rows, columns = np.nonzero(pixels < 90)
    middle = pixels.shape[1] / 2
    assert rows[columns < middle].mean() < rows[columns > middle].mean()


def test_all_kinds_in_all_numbers():
    pixels = np.zeros((4, 5, 3), np.uint8)
    sizes = []
    for many in (1, 4, 9):
        pictures = [histogram_of(f"p{i}", [1.0, 2.0, 3.0]) for i in range(many)]
        sizes.append(image_of(png.draw(pictures)).shape)
    assert sizes[0][0] < sizes[2][0]
    image_of(png.draw([Pixels("an image", pixels), Pixels("grey", pixels[:, :, :1])]))


@pytest.mark.parametrize("y", [[np.nan, 1.0, np.inf], [1e308, -1e308, 0.0], [1.0, 1.0, 1.0]])
def test_wild_numbers(y):
    image_of(png.draw([Plot("wild", [Curve([1.0, 2.0, 3.0], y, "_hidden")])]))


def test_bars_without_height_leave_an_empty_frame():
    image_of(png.draw([Plot("nothing yet", [Bars([0.0, 1.0], [0.0])])]))


def test_no_global_state_of_matplotlib_changes():
    import matplotlib

    before = dict(matplotlib.rcParams)
    png.draw([histogram_of("p", [1.0, 2.0])])
    assert dict(matplotlib.rcParams) == before
