"""Ctrl-C at any moment of the command: one line, exit code 130, no traceback.

The moment is not left to chance: a hook that Python starts with sends the signal when a certain module is imported.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import wonderland as wl
from wonderland.cli import main
from wonderland.core import starting

SRC = Path(wl.__file__).resolve().parent.parent
HOOK = """
import os, signal, sys

def hear(event, details):
    if event == os.environ["EVENT"] and os.environ["AT"] in str(details[0]) and not heard:
        heard.append(True)
        os.write(2, b"now;")
        os.kill(os.getpid(), signal.SIGINT)

heard = []
sys.addaudithook(hear)
"""

pytestmark = pytest.mark.skipif(os.name == "nt", reason="Windows sends Ctrl-C to a whole console")


def interrupted(tmp_path: Path, command: list[str], event: str, at: str) -> subprocess.CompletedProcess[str]:
    (tmp_path / "sitecustomize.py").write_text(HOOK)
    paths = os.pathsep.join([str(tmp_path), str(SRC)])
    environment = os.environ | {"PYTHONPATH": paths, "EVENT": event, "AT": at}
    done = subprocess.run(
        [sys.executable, *command], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120
    )
    assert done.stderr.count("now;") == 1, done.stderr  # the moment has come
    return done


TRAIN = ["train", "--model", "linear", "--data", "iris", "--set", "epochs=2", "--quiet", "--out", "run"]


@pytest.mark.parametrize(
    ("command", "event", "at"),
    [
        (["--help"], "import", "numpy"),  # the first thing that takes long
        (["--version"], "import", "numpy._core._multiarray_umath"),  # in the middle of it
        (["--help"], "import", "wonderland.cli.parsing"),  # the last thing before the command
        (["trace", "x*x", "x=2"], "import", "wonderland.wengert"),  # the command imports what it needs
        (["list"], "import", "wonderland.recipes"),
        (TRAIN, "open", "iris.npz"),  # data are read
        (TRAIN, "import", "llvmlite"),  # compiling begins
        (TRAIN, "open", "results.json"),  # and at the end
    ],
)
def test_one_line_and_the_exit_code(command: list[str], event: str, at: str, tmp_path: Path) -> None:
    done = interrupted(tmp_path, ["-m", "wonderland", *command], event, at)
    assert done.returncode == 130, done.stderr
    assert "interrupted" in done.stderr
    lines = [line for line in done.stderr.replace("now;", "").splitlines() if line and " compiling " not in line]
    assert len(lines) == 1
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


def test_an_interrupt_that_python_wrapped_is_one(capsys: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """While a class is being made, Python reports it as a RuntimeError."""

    class Interrupting:
        def __set_name__(self, owner: Any, name: str) -> None:
            raise KeyboardInterrupt

    def make(options: Any) -> None:
        type("Made", (), {"x": Interrupting()})

    monkeypatch.setattr("wonderland.cli.listing.models", lambda: make(None))
    assert main(["list", "models"]) == 130
    assert capsys.readouterr().err == "wonderland list: error: interrupted\n"
    monkeypatch.setattr("wonderland.cli.listing.models", lambda: int("no number"))
    with pytest.raises(ValueError, match="no number"):  # a defect stays one
        main(["list", "models"])


def test_the_script_that_is_installed(tmp_path: Path) -> None:
    script = tmp_path / "wonderland"
    script.write_text("import sys\nfrom wonderland.cli import main\nif __name__ == '__main__':\n    sys.exit(main())\n")
    done = interrupted(tmp_path, [str(script), "--help"], "import", "numpy")
    assert (done.returncode, done.stderr.splitlines()) == (130, ["now;", "wonderland: interrupted"])


def test_a_program_that_imports_us_keeps_its_exception(tmp_path: Path) -> None:
    program = "try:\n    import wonderland\nexcept KeyboardInterrupt:\n    print('heard')\n"
    done = interrupted(tmp_path, ["-c", program], "import", "wonderland.core.tensor")
    assert (done.returncode, done.stdout) == (0, "heard\n")


def test_a_command_in_the_background_goes_on(tmp_path: Path) -> None:
    """A shell starts such processes deaf to Ctrl-C."""
    program = (
        "import runpy, signal, sys\n"
        "signal.signal(signal.SIGINT, signal.SIG_IGN)\n"
        "sys.argv = ['wonderland', '--version']\n"
        "runpy.run_module('wonderland')\n"
    )
    done = interrupted(tmp_path, ["-c", program], "import", "wonderland.core.tensor")
    assert (done.returncode, done.stdout) == (0, f"wonderland {wl.__version__}\n")


@pytest.mark.parametrize(
    ("first", "original", "expected"),
    [
        ("-m", ["python", "-m", "wonderland", "train"], True),
        ("-m", ["python", "-X", "dev", "-mwonderland"], True),
        ("-m", ["python", "-m", "pytest"], False),
        ("/usr/bin/wonderland", ["python", "/usr/bin/wonderland"], True),
        ("wonderland.exe", ["wonderland.exe"], True),
        ("train.py", ["python", "train.py", "wonderland"], False),
        ("", ["python"], False),
    ],
)
def test_what_a_command_is(first: str, original: list[str], expected: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", [first])
    monkeypatch.setattr(sys, "orig_argv", original)
    assert starting.is_command() == expected


def test_main_in_a_program_leaves_its_handler(capsys: Any) -> None:
    before = signal.getsignal(signal.SIGINT)
    assert main(["trace", "x*x", "x=2"]) == 0
    assert signal.getsignal(signal.SIGINT) is before
