"""The README is true: its code runs and prints what it says, its picture is current, its links are good."""

from __future__ import annotations

import re
import shlex
import tomllib
from pathlib import Path

import pytest

from wonderland.cli import main, parser
from wonderland.recipes.example_files import EXAMPLES

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language):
    return re.findall(rf"^```{language}\n(.*?)^```", README, re.MULTILINE | re.DOTALL)


def test_the_code_runs_and_prints_what_its_comments_say(capsys):
    code = "\n".join(blocks("python"))
    expected = re.findall(r"^print\(.*\)  # (.*)$", code, re.MULTILINE)
    assert len(expected) == code.count("print(")
    exec(compile(code, "README.md", "exec"), {"__name__": "readme"})
    assert capsys.readouterr().out.splitlines() == expected


def test_the_commands_print_what_is_shown(capsys):
    (session,) = blocks("console")
    command, output = session.split("\n", 1)
    program, *arguments = shlex.split(command.removeprefix("$ "))
    assert program == "wonderland"
    assert main(arguments) == 0
    assert capsys.readouterr().out == output


def test_the_picture_is_what_the_command_draws(tmp_path, capsys):
    run = re.search(r"^    (wonderland trace .*)$", README, re.MULTILINE).group(1)
    file = tmp_path / "trace.svg"
    assert main([*shlex.split(run)[1:], "--svg", str(file)]) == 0
    capsys.readouterr()
    shown = ROOT / "docs" / "images" / "trace.svg"
    assert shown.read_text(encoding="utf-8") == file.read_text(encoding="utf-8"), f"run: {run} --svg {shown}"


def test_the_commands_for_training_are_understood():
    """What they do is tested with `wonderland train` itself (tests/recipes)."""
    assert "\n    pip install . && wonderland train\n" in README
    commands = re.findall(
        r"^    (wonderland (?:train|evaluate|predict|list|example|generate).*?)(?:  +#.*)?$", README, re.MULTILINE
    )
    commands = [part for command in commands for part in command.split(" && ")]
    assert len(commands) == 16
    written = {"runs/digits-cnn"}
    for command in commands:
        options = parser().parse_args(shlex.split(command)[1:])
        assert callable(options.run)
        if options.command == "example":
            assert options.name in EXAMPLES
            written.add(options.name)
        if options.command == "train":
            assert options.data is None or options.data in written, f"{command}: nothing writes {options.data}"
            written.add(f"runs/{Path(options.data or 'x').stem}-")
        if options.command in ("predict", "evaluate", "generate"):
            assert options.run_folder.startswith(tuple(written)), f"{command}: nothing trains {options.run_folder}"
            assert options.command != "predict" or options.data.partition("/")[0] in written


def test_the_installed_command_is_the_one_that_is_tested():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["scripts"] == {"wonderland": "wonderland.cli:main"}
    assert "test" in project["optional-dependencies"]
    assert "pip install -e '.[test]' && .venv/bin/python -m tools.check" in README


@pytest.mark.parametrize("target", re.findall(r"\]\((.*?)\)", README))
def test_links_lead_somewhere(target):
    assert (ROOT / target).exists()
