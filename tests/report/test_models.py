"""The model in a report: its table, the graph of what flows where, and histograms."""

from __future__ import annotations

import numpy as np
import pytest

import wonderland as wl
from tests.report.reading import Reader
from wonderland.report.models import MOST_HISTOGRAMS, MOST_NODES, graph_picture, model_section, spread_section


class Residual(wl.nn.Module):
    def __init__(self):
        self.first = wl.nn.Linear(4, 4)
        self.second = wl.nn.Linear(4, 4)

    def forward(self, x):
        h = self.first(x)
        return self.second(wl.relu(h)) + h


def edges(picture):
    return sum(attribute == ("path", "class", "edge") for attribute in Reader(picture).attributes)


def test_the_summary_adds_up():
    model = wl.nn.Sequential(wl.nn.Linear(6, 5), wl.nn.ReLU(), wl.nn.Linear(5, 2))
    page = Reader(model_section(model, np.zeros((3, 6), np.float32)).html)
    rows = page.table("path", "module", "output shape", "parameters", "multiply-adds")
    assert rows[1] == ["0", "Linear", "1 × 5", "35", "30"]
    assert rows[-1][3:] == ["47", "40"]
    parameters = page.table("parameter", "shape", "numbers", "mean")
    assert [row[:3] for row in parameters][:2] == [["0.weight", "6×5", "30"], ["0.bias", "5", "5"]]
    weight = np.asarray(model[0].weight)
    expected = [weight.mean(), weight.std(), weight.min(), weight.max()]
    np.testing.assert_allclose([float(cell) for cell in parameters[0][3:]], expected, rtol=1e-3)


def test_the_graph_shows_what_flows_around_a_layer():
    model = Residual()
    picture = graph_picture(model, wl.make_graph(model)(wl.zeros((1, 4))))
    text = "".join(Reader(picture).texts)
    for word in ("first  Linear", "second  Linear", "relu", "add", "1 × 4"):
        assert word in text
    assert edges(picture) == 5, "input-first, first-relu, relu-second, second-add, first-add"


class Shared(wl.nn.Module):
    """Two layers that multiply by one computed tensor, of a table or of nothing."""

    def __init__(self, learned):
        self.first, self.second, self.table = wl.nn.Linear(4, 4), wl.nn.Linear(4, 4), wl.nn.Embedding(3, 4)
        self.learned = learned

    def forward(self, x):
        ones = self.table(wl.arange(1)) if self.learned else wl.exp(wl.ones((1, 4)))
        return self.second(wl.relu(self.first(x) * ones)) * ones


@pytest.mark.parametrize("learned", [False, True])
def test_constants_that_are_shared_have_no_edges(learned):
    model = Shared(learned)
    picture = graph_picture(model, wl.make_graph(model)(wl.zeros((1, 4))))
    text = "".join(Reader(picture).texts)
    assert edges(picture) == 4, "input-first, first-multiply, multiply-second, second-multiply"
    assert "Embedding" not in text
    assert "exp" not in text


def test_what_is_made_for_one_place_keeps_its_edge():
    model = wl.models.GPT(20, 8, 16, 2, 2)
    picture = graph_picture(model, wl.make_graph(model)(wl.zeros((1, 8), dtype=wl.int64)))
    assert "positions" in "".join(Reader(picture).texts), "the table of positions is added once"
    assert "iota" not in "".join(Reader(picture).texts)


def test_a_deep_model_is_shown_by_its_outer_modules_and_a_huge_one_not_at_all():
    def block():
        return wl.nn.Sequential(*[layer for _ in range(6) for layer in (wl.nn.Linear(2, 2), wl.nn.Tanh())])

    deep = wl.nn.Sequential(*[block() for _ in range(5)])
    picture = graph_picture(deep, wl.make_graph(deep)(wl.zeros((1, 2))))
    assert edges(picture) == 5, "60 layers are 5 blocks"
    assert "36" in "".join(Reader(picture).texts), "with the parameters of all that is in them"
    long = wl.nn.Sequential(*[layer for _ in range(MOST_NODES) for layer in (wl.nn.Linear(1, 1), wl.nn.Tanh())])
    assert graph_picture(long, wl.make_graph(long)(wl.zeros((1, 1)))) is None


def test_a_model_that_does_not_take_the_examples_is_still_reported():
    html = model_section(wl.nn.Linear(3, 2), np.zeros((5, 7), np.float32)).html
    page = Reader(html)
    assert "The model could not be followed on one of the examples" in "".join(page.texts)
    assert len(page.table("parameter")) == 2


def test_the_report_changes_nothing_in_the_model():
    model = wl.nn.Sequential(wl.nn.Linear(3, 4), wl.nn.BatchNorm(4), wl.nn.Dropout(0.5))
    before = {name: np.array(t) for name, t in model.state_dict().items()}
    model_section(model, np.ones((2, 3), np.float32))
    assert model.training
    for name, t in model.state_dict().items():
        np.testing.assert_array_equal(t, before[name])


def test_histograms_count_every_number():
    values = {"w": np.random.default_rng(0).normal(size=(20, 10)), "b": np.array([1.0, np.nan, 1.0])}
    section = spread_section("Parameters", values, "parameters")
    w, b = section.pictures["parameters"]
    assert (w.title, b.title) == ("w (200)", "b (3, 1 not finite)")
    np.testing.assert_array_equal(w.shapes[0].heights, np.histogram(values["w"], w.shapes[0].edges)[0])
    assert b.shapes[0].heights.sum() == 2


def test_arrays_without_numbers():
    assert spread_section("Gradients", {}, "gradients") is None
    assert spread_section("Gradients", {"empty": np.zeros(0)}, "gradients") is None
    assert "bad: none of its 2 numbers is finite." in spread_section("G", {"bad": [np.nan, np.inf]}, "g").html


def test_many_parameters_are_folded_and_at_last_cut():
    many = {f"p{i}": np.arange(i + 2.0) for i in range(MOST_HISTOGRAMS + 5)}
    section = spread_section("Parameters", many, "parameters")
    page = Reader(section.html)
    assert len(page.captions) == MOST_HISTOGRAMS
    assert "p0 (2)" not in page.captions, "the smallest are left out"
    assert page.tags.count("details") == 1
    assert f"The largest {MOST_HISTOGRAMS} of {MOST_HISTOGRAMS + 5} are shown." in "".join(page.texts)


@pytest.mark.parametrize("dtype", [wl.bfloat16, wl.float16, wl.float64])
def test_parameters_of_other_types(dtype):
    model = wl.nn.Linear(3, 2, dtype=dtype)
    Reader(model_section(model).html)
    assert spread_section("Parameters", dict(model.named_parameters()), "parameters") is not None
