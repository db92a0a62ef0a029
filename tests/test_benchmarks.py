"""How measurements become figures and tables."""

from __future__ import annotations

import re
import sys

import numpy as np
import pytest

from benchmarks import decoding, first_calls, many_sizes, measuring, report, tables
from benchmarks.machine import AVX2, describe
from benchmarks.messy import messy
from benchmarks.options import SECTIONS, Options, parse
from benchmarks.printed import Ratios, Table, geometric_mean
from benchmarks.public_tables import PublicTable
from benchmarks.rivals import OURS, Rival, run
from benchmarks.step import ALL, KINDS
from benchmarks.steps import Results, compete
from wonderland.engines.native.processor import KINDS as KINDS_OF_PROCESSORS


def test_a_step_is_called_and_measured():
    calls = []
    found, step = measuring.figures(lambda: lambda: calls.append(1), 0.01)
    assert len(calls) > 16
    assert 0 < found["step_ms"] < 1e3
    assert found["rss_mb"] >= found["steady_mb"]
    calls.clear()
    measuring.figures(lambda: step, 0)
    assert calls == [1]  # the first call alone


def test_a_disturbed_prompt_does_not_make_tokens_look_fast(monkeypatch):
    now, disturbed = [0.0], iter([0.0, 0.0, 0.5, 0.0, 0.0, 0.9, 0.0, 0.0])  # two calls before, then three rounds

    def write(length, count):
        now[0] += 1.0 + 0.125 * count + next(disturbed)

    monkeypatch.setattr(decoding.time, "perf_counter", lambda: now[0])
    token, prompt = decoding.seconds_of(write, 16, 3)
    assert (token, prompt) == (0.125, 1.125)


def test_results_take_the_best_of_all_rounds():
    lines = [
        {
            "step_ms": 2.0,
            "first_s": 0.3,
            "rss_mb": 90.0,
            "base_mb": 50.0,
            "steady_mb": 80.0,
            "gflops": 5.0,
            "share": 0.1,
        },
        {
            "step_ms": 1.0,
            "first_s": 0.4,
            "rss_mb": 95.0,
            "base_mb": 50.0,
            "steady_mb": 90.0,
            "gflops": 9.0,
            "share": 0.2,
        },
    ]
    results = Results(lines, cold=[{"first_s": 2.0, "rss_mb": 120.0}, {"first_s": 3.0, "rss_mb": 110.0}])
    assert (results.milliseconds, results.first, results.warm) == (1.0, 2.0, 0.3)
    assert results.megabytes == 60.0  # compiling took the most
    assert Results(lines).megabytes == 40.0
    assert results.steady == 30.0
    assert results.share == (9.0, 0.2)
    assert Results(lines).first == 0.3
    assert Results(lines).warm is None
    assert Results().milliseconds is None


# takes 5 s for its first call without its folder of compiled code, and 1 s with it
PROGRAM = """
import json, os, sys
folder = os.environ["A_CACHE"]
line = {"workload": sys.argv[1], "step_ms": 3.0, "first_s": 1.0 if os.path.exists(folder) else 5.0, "rss_mb": 2.0}
os.makedirs(folder, exist_ok=True)
print("hello")
print(json.dumps(line | {"base_mb": 1.0, "steady_mb": 2.0, "seconds": sys.argv[2]}))
"""


@pytest.mark.parametrize("cold_rounds", [1, 2])
def test_first_calls_are_measured_without_and_with_compiled_code(cold_rounds):
    rival = Rival("peer", "", (sys.executable, "-c", PROGRAM), "A_CACHE", cold_rounds)
    results = compete("mlp", [rival], Options(rounds=2, seconds=0.5))["peer"]
    assert [line["first_s"] for line in results.cold] == [5.0] * cold_rounds
    assert [line["first_s"] for line in results.lines] == [1.0, 1.0]
    assert {line["seconds"] for line in results.lines} == {"--seconds=0.5"}
    assert (results.first, results.warm, results.milliseconds) == (5.0, 1.0, 3.0)


def test_a_process_that_fails_is_reported_and_left_out(capsys):
    assert run(Rival("peer", "", (sys.executable, "-c", "raise SystemExit('no luck')")), ["mlp"], 0) == {}
    assert "no luck" in capsys.readouterr().err


def test_tables(capsys):
    table = Table("title", ["workload", "ms", "ratio"], Options(), absolute=["ms"])
    assert capsys.readouterr().out == ""
    table.row("mlp", "3", "1.50")
    title, header, row = capsys.readouterr().out.strip().splitlines()
    assert title == "title"
    assert header.split() == ["workload", "ms", "ratio"]
    assert row.split() == ["mlp", "3", "1.50"]
    table = Table("title", ["workload", "ms", "ratio"], Options(markdown=True), absolute=["ms"])
    table.row("mlp", "3", "1.50")
    assert capsys.readouterr().out == "\ntitle\n\n| workload | ratio |\n| --- | --- |\n| mlp | 1.50 |\n"


def test_ratios_are_the_peers_over_ours(capsys):
    table = Ratios("times", "ms", ["torch", "jax"], Options(markdown=True))
    table.row("mlp", {OURS: 2.0, "torch": 8.0, "jax": 4.0})
    table.row("cnn", {OURS: 2.0, "torch": 2.0, "jax": None})
    table.means()
    rows = capsys.readouterr().out.splitlines()[-3:]
    assert [row.strip("| ").split("|") for row in rows] == [
        ["mlp ", " 4.00 ", " 2.00 ", " 2.00"],
        ["cnn ", " 1.00 ", "  ", " 1.00"],
        ["geometric mean ", " 2.00 ", " 2.00 ", " 1.41"],
    ]


def test_geometric_mean():
    assert geometric_mean([1.0, None, 4.0]) == pytest.approx(2.0)
    assert geometric_mean([None]) is None


# --- tables


def made_table(classes, n=60):
    rng = np.random.default_rng(0)
    x, z = rng.normal(size=(2, n)).round(3).tolist()
    target = ["yes" if a > 0.4 else "no" for a in x] if classes else [2 * a for a in x]
    return PublicTable("made", {"x": x, "z": z, "w": [*range(n)], "y": target}, "y", classes)


@pytest.mark.parametrize("classes", [True, False])
def test_messy_tables_are_the_same_each_time_and_keep_their_target(classes):
    table = made_table(classes)
    first, second = messy(table), messy(table)
    assert first == second
    assert set(table.columns) < set(first.columns)
    assert list(first.columns) != [*table.columns, *(name for name in first.columns if name not in table.columns)]
    assert len(first) < len(table)  # a class is rarer, or large numbers are
    kept = iter(table.columns["y"])
    assert all(value in kept for value in first.columns["y"])  # rows are left out, and no target changes
    written = [value for name in ("x", "z") for value in first.columns[name]]
    assert None in written
    assert any(isinstance(value, str) for value in written)
    assert len(set(first.columns["number"])) == len(first)
    assert len(set(first.columns["unit"])) == 1


def test_folds_hold_every_row_out_once():
    table = made_table(True)
    parts = tables.folds(table, 5)
    assert sorted(w for _, test in parts for w in test.columns["w"]) == table.columns["w"]
    for train, test in parts:
        assert not set(train.columns["w"]) & set(test.columns["w"])
        assert len(train) + len(test) == len(table)
        assert 0 < test.columns["y"].count("yes") < len(test)


def test_scores_of_tables():
    truth = np.array([1.0, 2.0, 3.0])
    assert tables.score(truth, truth, False) == 1
    assert tables.score(truth, np.full(3, 2.0), False) == 0
    assert tables.score(np.array(["a", "b"]), np.array(["a", "a"]), True) == 0.5


def test_tables_beside_scikit_learn(capsys, monkeypatch):
    pytest.importorskip("sklearn")
    found = []

    def once(train, test):  # the smallest table, through files; the messy one is not trained a second time
        found.append(ours(train, test) if not found else (np.zeros(len(test)), ["columns"]))
        return found[-1]

    ours = tables.ours
    monkeypatch.setattr(tables, "ours", once)
    tables.main(Options(only=("linnerud",), rounds=1))
    lines = capsys.readouterr().out.strip().splitlines()
    assert [line.split()[-1] for line in lines[2:4]] == ["ok", "columns"]
    assert lines[-1].startswith("mean ")
    assert np.isfinite(found[0][0]).all()
    with pytest.raises(SystemExit, match="no table"):
        tables.main(Options(only=("iriss",)))


def test_no_two_workloads_have_one_name():
    assert len(ALL) == sum(map(len, KINDS))


def test_the_command_line(capsys):
    assert parse([]).sections == SECTIONS
    options = parse(["steps", "mlp", "cnn", "--rounds", "1", "--skip", "jax", "--peers", "python"])
    assert (options.sections, options.workloads) == (("steps",), ("mlp", "cnn"))
    assert (options.rounds, options.skip, options.peers) == (1, ("jax",), "python")
    assert parse(["tables", "--only", "iris", "cars"]).only == ("iris", "cars")
    with pytest.raises(SystemExit):
        parse(["mlp"])
    assert "no section" in capsys.readouterr().err
    assert not parse(["steps"]).report
    options = parse(["report", "steps", "mlp", "--busy"])
    assert (options.report, options.busy, options.sections, options.workloads) == (True, True, ("steps",), ("mlp",))
    assert parse(["report"]).sections == SECTIONS
    with pytest.raises(SystemExit):
        parse(["steps", "--busy"])
    assert "--busy is for report" in capsys.readouterr().err


# --- the report


def test_a_section_takes_the_place_of_its_last_tables():
    page = "# Performance\n\n<!-- steps -->\n\nold\n\n<!-- end of steps -->\n\nmore\n"
    page = report.marked(page, "steps", "new\n")
    assert page == "# Performance\n\n<!-- steps -->\n\nnew\n\n<!-- end of steps -->\n\nmore\n"
    assert report.marked(page, "steps", "new") == page
    longer = report.marked(page, "eager", "other")
    assert longer.startswith(page)
    assert longer.endswith("### eager\n\n<!-- eager -->\n\nother\n\n<!-- end of eager -->\n")
    with pytest.raises(SystemExit, match="without <!-- end of steps -->"):
        report.marked("<!-- steps -->\nold\n", "steps", "new")


def test_a_report_says_when_and_where_it_was_measured(monkeypatch, tmp_path):
    page = tmp_path / "page.md"
    page.write_text("before\n")
    monkeypatch.setattr(report, "measured", lambda section, options: f"| {section} |")
    shares = iter([1.0, 1.0, 0.99, 0.4, 0.4])
    monkeypatch.setattr(report, "free", lambda: next(shares))
    report.main(Options(("eager",)), page)
    first = page.read_text()
    assert "| eager |" in first
    assert describe(Options()) in first
    assert report.BUSY not in first
    report.main(Options(("eager",)), page)  # others began while it was measured
    assert report.BUSY in page.read_text()
    with pytest.raises(SystemExit, match="the machine is busy, 40% of a processor"):
        report.main(Options(("eager",)), page)
    shares = iter([0.4, 1.0])
    report.main(Options(("steps",), busy=True), page)
    assert page.read_text().count(report.BUSY) == 2
    shares = iter([1.0, 1.0])
    report.main(Options(("eager",), avx2=True), page)  # a table of its own
    assert page.read_text().count("| eager |") == 2
    assert page.read_text().count("held to AVX2") == 1


def test_everybody_can_be_held_to_avx2():
    held = parse(["steps", "mlp", "--avx2", "--skip", "torch.compile"])
    assert held.avx2
    assert set(held.skip) == {"torch.compile", "jax", "onnxruntime"}
    assert not parse(["steps", "mlp"]).avx2
    assert AVX2["WONDERLAND_CPU"] in KINDS_OF_PROCESSORS


def test_every_section_of_the_page_is_one_that_is_measured():
    marks = re.findall(r"^<!-- (\w+(?: with AVX2)?) -->$", report.PAGE.read_text(), re.MULTILINE)
    assert marks
    assert len(set(marks)) == len(marks)
    assert {mark.removesuffix(" with AVX2") for mark in marks} <= set(SECTIONS)
    for section in marks:
        report.marked(report.PAGE.read_text(), section, "")  # it has an end


def test_the_share_of_the_processors_that_is_free():
    assert 0 < report.free(0.05) < 1.2


def test_first_calls_are_measured_cold_and_from_disk(monkeypatch):
    ours = Rival(OURS, "", (sys.executable, "-c", PROGRAM), "A_CACHE")
    jax = Rival("jax", "", (sys.executable, "-c", PROGRAM), "A_CACHE")
    monkeypatch.setattr(first_calls, "rivals", lambda options: [ours, jax])
    results = first_calls.measured("mlp", Options(rounds=2))
    assert (results[OURS].first, results[OURS].warm) == (5.0, 1.0)
    assert results["jax"].first == 5.0


@pytest.mark.parametrize("which", many_sizes.MAKERS)
@pytest.mark.parametrize("named", [False, True])
def test_every_size_of_a_batch_is_called_once(which, named):
    times = many_sizes.measured(which, named, range(3, 6))
    assert len(times) == 3
    assert all(wall > 0 and computed >= 0 for wall, computed in times)
