"""The command line: what it prints, and one clear message with exit code 2 for every mistake."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

import wonderland as wl
from wonderland.cli import main
from wonderland.recipes import MODELS
from wonderland.recipes.example_files import EXAMPLES
from wonderland.recipes.meanings import of_data, of_model, of_training

SRC = Path(wl.__file__).resolve().parent.parent
FORMULA = "log(x1) + x1*x2 - sin(x2)"


def run(*arguments, **options):
    """The command in a process of its own."""
    environment = os.environ | {"PYTHONPATH": str(SRC)}
    command = [sys.executable, "-m", "wonderland", *arguments]
    return subprocess.run(command, capture_output=True, text=True, env=environment, timeout=60, **options)


@pytest.mark.book("S-06", name="wonderland trace")
def test_the_worked_example_of_reverse_mode(capsys):
    assert main(["trace", FORMULA, "x1=2", "x2=5", "--precision", "4"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    for line in (
        "v1 = log(x1)    0.6931",
        "v2 = x1 * x2   10",
        "v3 = sin(x2)   -0.9589",
        "v4 = v1 + v2   10.69",
        "v5 = v4 - v3   11.65",
        "dv5 = dv4 - dv3       5.5     1.716",
        "dy/dx1   5.5",
        "dy/dx2   1.716",
    ):
        assert f"  {line}\n" in out


def test_forward_or_reverse_only(capsys):
    main(["trace", FORMULA, "x1=2", "x2=5", "--forward"])
    forward = capsys.readouterr().out
    main(["trace", FORMULA, "x1=2", "x2=5", "--reverse"])
    reverse = capsys.readouterr().out
    main(["trace", FORMULA, "x1=2", "x2=5", "--forward", "--reverse"])
    both = capsys.readouterr().out
    assert ("Tangent" in forward, "Adjoint" in forward) == (True, False)
    assert ("Tangent" in reverse, "Adjoint" in reverse) == (False, True)
    assert ("Tangent" in both, "Adjoint" in both) == (True, True)


def test_json(capsys):
    assert main(["trace", FORMULA, "x1=2", "x2=5", "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["gradient"]["x1"] == 5.5
    assert data["tangents"]["x2"]["v5"] == pytest.approx(data["gradient"]["x2"])
    main(["trace", FORMULA, "x1=2", "x2=5", "--json", "--forward"])
    assert "adjoints" not in json.loads(capsys.readouterr().out)


def test_svg(tmp_path, capsys):
    file = tmp_path / "graph.svg"
    assert main(["trace", FORMULA, "x1=2", "x2=5", "--svg", str(file)]) == 0
    assert "Primal" in capsys.readouterr().out
    assert ET.parse(file).getroot().tag == "{http://www.w3.org/2000/svg}svg"


@pytest.mark.parametrize(
    "arguments",
    [
        ["-x*y", "x=2", "y=3"],
        ["-x*y", "x=2", "--precision", "3", "y=3"],
        ["--reverse", "-x*y", "y=3", "x=2"],
        ["--precision=3", "-x * y", "x = 2", "y= 3"],
        ["-x*y", "x=4/2", "y=+3"],
        ["--", "-x*y", "x=2", "y=3"],
    ],
)
def test_minus_signs_spaces_and_the_order_of_arguments(arguments, capsys):
    assert main(["trace", *arguments]) == 0
    out = capsys.readouterr().out
    assert "-x * y" in out or "-x*y" in out
    assert "-6" in out


def test_any_name_can_be_used(capsys):
    assert main(["trace", "f + self + args + α", "f=1", "self=2", "args=3", "α=4", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["values"] == [10.0]


def test_values_may_be_constant_expressions(capsys):
    assert main(["trace", "sin(x)", "x=pi/2", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["values"] == [1.0]


def test_an_infinite_derivative_is_shown_and_noted(capsys):
    assert main(["trace", "sqrt(x)", "x=0"]) == 0
    out, err = capsys.readouterr()
    assert "dy/dx   inf" in out
    assert err == "wonderland trace: note: the derivative by x is inf here\n"
    assert main(["trace", "sqrt(x)", "x=0", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["gradient"] == {"x": "inf"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["dance"], "invalid choice: 'dance'"),
        (["--fast"], "required: COMMAND"),
        (["trace"], "required: FORMULA"),
        (["trace", ""], "the formula is empty"),
        (["trace", "x"], "x has no value; add x=NUMBER\n  x\n  ^"),
        (["trace", "x", "x=1", "z=2"], "z has a value but is not in the formula; it uses x"),
        (["trace", "x", "x=1", "x=2"], "x has two values"),
        (["trace", "x", "x"], "'x' is not of the form NAME=NUMBER"),
        (["trace", "x", "1=x"], "'1=x' is not of the form NAME=NUMBER"),
        (["trace", "x", "x="], "the value of x is '', which is not a number"),
        (["trace", "x", "x=two"], "the value of x is 'two', which is not a number"),
        (["trace", "x", "x=nan"], "the value of x is 'nan', which is not a number"),
        (["trace", "x", "x=1/0"], "the value of x is '1/0', which is not a number"),
        (["trace", "x", "-v"], "'-v' is not of the form NAME=NUMBER"),
        (["trace", "x", "x=1", "--fast"], "unknown option --fast"),
        (["trace", "x", "x=1", "--forw"], "unknown option --forw"),
        (["trace", "x + (2", "x=1"], "syntax error: '(' was never closed\n  x + (2\n      ^"),
        (["trace", "sine(x)", "x=1"], "unknown function sine; did you mean sin?\n  sine(x)\n  ^"),
        (["trace", "log(x)", "x=-1"], "log(x) with -1 is nan: outside the domain of log"),
        (["trace", "1/x", "x=0"], "1/x with 1 and 0 is inf: a division by zero\n  1/x\n   ^"),
        (["trace", "sin", "sin=1"], "sin is a function"),
        (["trace", "x", "x=1", "--precision", "0"], "'0' is not a whole number from 1 to 17"),
        (["trace", "x", "x=1", "--precision", "99"], "'99' is not a whole number from 1 to 17"),
        (["trace", "x", "x=1", "--precision", "²"], "'²' is not a whole number from 1 to 17"),
        (
            ["trace", "x", "x=1", "--svg", "/no/such/folder/graph.svg"],
            "cannot write /no/such/folder/graph.svg",
        ),
        (["trace", "x", "x=1", "--svg"], "--svg: expected one argument"),
        (["trace", "x", "x=1", "--svg", ""], "cannot write"),
        (["trace", "x", "x=1", "--svg", "."], "cannot write .: Is a directory"),
        (["trace", "x*\udcff", "x=1"], "cannot be read"),
        (["trace", "2or x", "x=1"], "only numbers, names"),
    ],
)
def test_mistakes_give_one_message_and_exit_code_2(arguments, message, capsys):
    try:
        code = main(arguments)
    except SystemExit as stop:
        code = stop.code
    out, err = capsys.readouterr()
    assert code == 2
    assert out == ""
    assert message in err
    assert err.startswith("wonderland")
    assert err.count("error") == 1 or "syntax error" in err
    assert "Traceback" not in err


def test_without_arguments_it_shows_the_way_in(capsys):
    assert main([]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert len(out.splitlines()) < 15
    commands = [line.split("  ")[1] for line in out.splitlines() if line.startswith("  wonderland")]
    assert {command.split()[1] for command in commands} >= {"train", "example", "predict", "list"}
    assert all(len(line) <= 100 for line in out.splitlines())


def test_help_of_training_has_every_setting_with_its_meaning(capsys):
    with pytest.raises(SystemExit):
        main(["train", "--help"])
    out = capsys.readouterr().out
    for setting in (*of_training(), *of_data()):
        assert f"{setting.name} = {setting.default}" in out
        assert len(setting.meaning) > 10
        assert setting.kind
        assert setting.allowed
    assert main(["list", "lr"]) == 0
    assert "the highest learning rate; float: above 0" in capsys.readouterr().out
    assert main(["list", "mlp"]) == 0
    assert "model.hidden = [256, 128]" in capsys.readouterr().out
    assert main(["list", "from"]) == 0
    assert "model.from = none" in capsys.readouterr().out
    assert main(["list", "learning"]) == 2
    assert "there is no 'learning'" in capsys.readouterr().err


@pytest.mark.parametrize("name", MODELS)
def test_every_option_of_a_model_has_a_meaning(name):
    assert [setting.name for setting in of_model(name)] == [f"model.{option}" for option in MODELS[name].options()]


@pytest.mark.parametrize("name", EXAMPLES)
def test_examples_are_written_once_and_whole(name, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["example", name]) == 0
    assert (tmp_path / name).exists()
    assert EXAMPLES[name].command in capsys.readouterr().out
    assert main(["example", name]) == 2
    assert "exists already" in capsys.readouterr().err


def test_examples_are_listed_and_unknown_ones_refused(capsys, tmp_path):
    assert main(["example"]) == 0
    assert "flowers.csv" in capsys.readouterr().out
    assert main(["example", "flower.csv"]) == 2
    assert "no example 'flower.csv'" in capsys.readouterr().err
    assert main(["example", "flowers.csv", "--out", str(tmp_path / "new" / "f.csv")]) == 0
    assert len((tmp_path / "new" / "f.csv").read_text().splitlines()) == 151


def test_version_and_help(capsys):
    for arguments, text in (
        (["--version"], f"wonderland {wl.__version__}\n"),
        (["--help"], "trace"),
        (["trace", "--help"], "--svg FILE"),
        (["trace", "-h"], "example:"),
    ):
        with pytest.raises(SystemExit) as stop:
            main(arguments)
        assert stop.value.code == 0
        assert text in capsys.readouterr().out


def test_as_a_process():
    done = run("trace", FORMULA, "x1=2", "x2=5")
    assert (done.returncode, done.stderr) == (0, "")
    assert "dy/dx2   1.71634" in done.stdout
    done = run("trace", "log(x)", "x=-1")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 3, "a message, the formula and the caret; no warning of NumPy's"


def test_a_reader_that_stops_early_is_no_error():
    environment = os.environ | {"PYTHONPATH": str(SRC)}
    long = "+".join(f"sin(x*{i})" for i in range(60))
    command = [sys.executable, "-m", "wonderland", "trace", long, "x=1"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    ) as process:
        process.stdout.close()
        assert process.stderr.read() == ""
        assert process.wait(60) == 0


def test_importing_the_package_does_not_import_what_people_look_at():
    code = (
        "import sys, wonderland; "
        "print([m for m in ('wonderland.cli', 'wonderland.viz', 'wonderland.wengert') if m in sys.modules])"
    )
    environment = os.environ | {"PYTHONPATH": str(SRC)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, timeout=60)
    assert done.stdout == "[]\n"
