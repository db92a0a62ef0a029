"""A run from the command line diagnoses its model: in results.json, in the report, and in the last lines."""

from __future__ import annotations

import json

import numpy as np
import pytest

import wonderland as wl
from tests.report.reading import read
from tests.report.test_places import check
from wonderland.cli import main
from wonderland.recipes.kept import read_findings
from wonderland.recipes.tasks import TASKS


def test_a_table_with_a_rare_class(tmp_path, capsys):
    rng = np.random.default_rng(0)
    lines = ["age,city,left"]
    for i in range(300):
        lines.append(f"{rng.normal(45, 15):.1f},{rng.choice(['Rome', 'Pisa'])},{'yes' if i % 12 == 0 else 'no'}")
    path = tmp_path / "churn.csv"
    path.write_text("\n".join(lines))
    folder = tmp_path / "run"
    arguments = ["--model", "linear", "--data", str(path), "--set", "data.target=left", "--set", "epochs=2"]
    main(["train", *arguments, "--out", str(folder), "--quiet"])
    told = capsys.readouterr()
    results = json.loads((folder / "results.json").read_text())
    share = results["baselines"]["majority class"]["accuracy"]
    assert share == results["test"]["baseline_accuracy"]
    assert results["baselines"]["model"]["accuracy"] == results["test"]["accuracy"]
    assert set(results["importance"]) == {"age", "city"}
    assert results["findings"] == wl.runs.open(folder).findings
    assert "majority" in {finding["kind"] for finding in results["findings"]}
    shown = " ".join(told.err.split())
    assert "seldom found" in shown or "share of the commonest class" in shown
    page = read(folder / "report.html")
    assert page.headings[1] == "Findings"
    assert {"Beside baselines", "Columns that matter"} <= set(page.headings)
    rows = page.table("", "accuracy", "balanced accuracy", "log loss")
    assert [row[0] for row in rows] == ["model", "majority class", "class shares", "linear model"]
    check(folder / "report.html", 5)


def test_forecasts_have_the_last_value_beside_them():
    task = TASKS["forecasting"]
    data = task.prepare({"name": "sines", "context": 16, "n": 300}, 0.1, 0)
    model = wl.nn.Identity()  # it forecasts that nothing changes
    found = wl.report.examine(**task.evidence(model, data, task.outcome(model, data)))
    assert {"last value", "mean", "linear model"} <= set(found.baselines)
    assert found.measures == pytest.approx(found.baselines["last value"])
    assert found.baselines["linear model"]["rmse"] < found.measures["rmse"] < found.baselines["mean"]["rmse"]
    assert "linear is better" in {finding.kind for finding in found.findings}


def test_damaged_findings_are_refused(tmp_path):
    path = tmp_path / "results.json"
    for text in ('{"findings": 3}', '{"findings": [1]}', '{"findings": [{"text": 1}]}', "[]"):
        path.write_text(text)
        with pytest.raises(wl.errors.FileError, match="damaged"):
            read_findings(str(path))
    path.write_text('{"test": {}}')
    assert read_findings(str(path)) == [], "of an earlier version"
