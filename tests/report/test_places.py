"""No text is cut off and no two overlap in any picture of any report."""

from __future__ import annotations

import re

import numpy as np
import pytest

import wonderland as wl
from tests.viz.places import faults
from wonderland.report.page import STYLES

LONG = "Reggio di Calabria and its surroundings"


def pictures(path):
    """The pictures of a page, each with the style that the page has for them."""
    html = path.read_text(encoding="utf-8")
    whole, depth, start = [], 0, 0
    for match in re.finditer(r"<svg |</svg>", html):  # a picture may have another one inside
        if match.group() == "<svg ":
            start = match.start() if depth == 0 else start
            depth += 1
        else:
            depth -= 1
            if depth == 0:
                whole.append(html[start : match.end()])
    styled = []
    for svg in whole:
        kind = re.search(r'class="([^"]*)"', svg).group(1).split()
        rules = "".join(rule for rule in re.findall(r"\.wl-[^{]*\{[^}]*\}", STYLES) if rule[1:].split(" ")[0] in kind)
        inside = svg.index(">") + 1
        styled.append(
            svg[:inside].replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1)
            + f"<style>{rules}</style>"
            + svg[inside:]
        )
    return styled


def check(path, least):
    found = pictures(path)
    assert len(found) >= least
    assert [fault for svg in found for fault in faults(svg)] == []


def history(epochs, losses=None):
    rng = np.random.default_rng(0)
    losses = 10.0 ** -np.linspace(-2, 3, epochs) if losses is None else losses
    records = [
        {
            "epoch": i + 1,
            "step": 7 * (i + 1),
            "loss": v,
            "validation_loss": v * 1.1,
            "lr": 10.0 ** -(i % 5),
            "accuracy": p,
        }
        for i, (v, p) in enumerate(zip(losses, rng.random(epochs), strict=True))
    ]
    told = wl.train.History(records)
    told.events.append({"epoch": 1, "text": "an event"})
    return told


@pytest.mark.parametrize("epochs, classes", [(1, 2), (40, 5), (2, 24)])
def test_reports_of_classifiers(tmp_path, epochs, classes):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(300, 4)).astype(np.float32)
    y = rng.integers(0, classes, 300)
    wl.random.seed(0)
    model = wl.nn.Sequential(wl.nn.Linear(4, 8), wl.nn.ReLU(), wl.nn.Linear(8, classes))
    p = wl.softmax(model(wl.tensor(x)))
    path = tmp_path / "report.html"
    names = [f"{LONG} {k}" for k in range(classes)]
    features = [f"{LONG} {k}, in thousands of euro" for k in range(4)]
    wl.report.write(
        path, title=LONG, history=history(epochs), model=model, predictions=p, targets=y, class_names=names, examples=x,
        training=(x[:150], y[:150]), feature_names=features, png=False,
    )  # fmt: skip
    check(path, 12)


@pytest.mark.parametrize("size", [1e-12, 1.0, 4e5, 3e14])
def test_reports_of_numbers(tmp_path, size):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(80, 2)).astype(np.float32)
    y = size * (5 + x @ [[1.0, 2.0], [3.0, 0.1]])
    model = wl.nn.Linear(2, 2)
    path = tmp_path / "report.html"
    losses = size * np.exp(-np.arange(6.0))
    wl.report.write(
        path, title="numbers", history=history(6, losses), model=model, predictions=y * 1.1, targets=y, examples=x,
        gradients={"weight": size * rng.normal(size=(2, 2))}, png=False,
    )  # fmt: skip
    check(path, 8)


def test_reports_of_language_models_and_comparisons(tmp_path):
    words = ["the", "quick", "brown", "foxes", "jumped", "over", "extraordinarily", "lazy", "dogs", "."]
    weights = np.tril(np.ones((10, 10))) / np.arange(1, 11)[:, None]
    path = tmp_path / "report.html"
    told = {"attention": ([("layer 1, head 1", weights)], words), "positions": np.eye(10)}
    wl.report.write(path, title="writer", history=history(3), language=told, png=False)
    check(path, 4)
    runs = {f"run {i} with {LONG}": history(3 + i) for i in range(12)}
    wl.report.compare(tmp_path / "runs.html", runs, png=False)
    check(tmp_path / "runs.html", 3)


@pytest.mark.parametrize("n", [12, 60, 400])
def test_reports_of_graphs(tmp_path, n):
    rng = np.random.default_rng(0)
    graph = wl.graphs.Graph(n, [(i, int(rng.integers(0, i))) for i in range(1, n)], directed=False)
    true, guess = rng.integers(0, 3, n), rng.integers(0, 3, n)
    told = {
        "graph": graph, "names": [f"{LONG} {k}" for k in range(3)], "true": true, "predicted": guess,
        "confidence": rng.random(n), "embedding": rng.normal(size=(n, 4)),
    }  # fmt: skip
    path = tmp_path / "report.html"
    wl.report.write(path, title="graph", history=history(2), graphs=told, png=False)
    check(path, 6)
