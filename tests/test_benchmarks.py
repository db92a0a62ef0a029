"""How measurements become figures and tables."""

from __future__ import annotations

import sys

import pytest

from benchmarks import measuring
from benchmarks.options import SECTIONS, Options, parse
from benchmarks.printed import Ratios, Table, geometric_mean
from benchmarks.rivals import OURS, Rival, run
from benchmarks.steps import Results, compete


def test_a_step_is_called_and_measured():
    calls = []
    found, step = measuring.figures(lambda: lambda: calls.append(1), 0.01)
    assert len(calls) > 16
    assert 0 < found["step_ms"] < 1e3
    assert found["rss_mb"] >= found["steady_mb"]
    calls.clear()
    measuring.figures(lambda: step, 0)
    assert calls == [1]  # the first call alone


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


def test_the_command_line(capsys):
    assert parse([]).sections == SECTIONS
    options = parse(["steps", "mlp", "cnn", "--rounds", "1", "--skip", "jax", "--peers", "python"])
    assert (options.sections, options.workloads) == (("steps",), ("mlp", "cnn"))
    assert (options.rounds, options.skip, options.peers) == (1, ("jax",), "python")
    with pytest.raises(SystemExit):
        parse(["mlp"])
    assert "no section" in capsys.readouterr().err
