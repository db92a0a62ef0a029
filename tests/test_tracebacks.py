"""What a user sees on the terminal: tracebacks that end in the user's own line, and no warnings of ours."""

from __future__ import annotations

import os
import subprocess
import sys
import types
from pathlib import Path
from typing import Any

import pytest

import wonderland as wl
from wonderland.core import tracebacks

SOURCE = str(Path(wl.__file__).parent.parent)


def run(script: str, tmp_path: Path, *options: str, **variables: str) -> str:
    """What a script writes to stderr."""
    path = tmp_path / "script.py"
    path.write_text(script)
    environment = {**os.environ, "PYTHONPATH": SOURCE, **variables}
    done = subprocess.run([sys.executable, *options, path], env=environment, capture_output=True, text=True, timeout=60)
    return done.stderr


def frames(stderr: str) -> list[str]:
    return [line.strip() for line in stderr.splitlines() if line.startswith("  File ")]


BAD_CALL = """
import wonderland as wl

def loss(x):
    return (x @ wl.ones((4, 5))).sum()  # here

wl.jit(wl.grad(loss))(wl.ones((2, 3)))
"""


def test_the_last_frame_is_the_users(tmp_path: Path) -> None:
    stderr = run(BAD_CALL, tmp_path)
    assert [f.rpartition(", in ")[2] for f in frames(stderr)] == ["<module>", "loss"]
    assert all("script.py" in f for f in frames(stderr))
    assert "ShapeError: matmul: shapes (2, 3) and (4, 5)" in stderr
    assert f"at: {tmp_path / 'script.py'}:5 in loss: return (x @ wl.ones((4, 5))).sum()  # here" in stderr
    assert "WONDERLAND_TRACEBACK=full" in stderr


def test_all_frames_on_request(tmp_path: Path) -> None:
    stderr = run(BAD_CALL, tmp_path, WONDERLAND_TRACEBACK="full")
    assert any(os.path.join("wonderland", "transforms", "jit", "jit.py") in f for f in frames(stderr))
    assert "frames inside wonderland are hidden" not in stderr


def test_threads(tmp_path: Path) -> None:
    stderr = run(BAD_CALL.replace("wl.jit(wl.grad(loss))(wl.ones((2, 3)))", """
import threading
thread = threading.Thread(target=wl.grad(loss), args=(wl.ones((2, 3)),))
thread.start()
thread.join()
"""), tmp_path)  # fmt: skip
    assert "Exception in thread" in stderr
    assert "in loss" in frames(stderr)[-1]
    assert not any(f"{os.sep}wonderland{os.sep}" in f for f in frames(stderr))


def test_errors_of_the_users_own_function(tmp_path: Path) -> None:
    """An exception that passes through the package on its way loses only the package's frames."""
    stderr = run(BAD_CALL.replace("(x @ wl.ones((4, 5))).sum()", "1 / 0"), tmp_path)
    assert [f.rpartition(", in ")[2] for f in frames(stderr)] == ["<module>", "loss"]
    assert "ZeroDivisionError" in stderr


def test_a_defect_of_the_package_shows_everything(tmp_path: Path) -> None:
    stderr = run("from wonderland.core import trees\ntrees._build(None, iter(()), [])\n", tmp_path)
    assert "AttributeError" in stderr
    assert os.path.join("wonderland", "core", "trees.py") in frames(stderr)[-1]
    assert "hidden" not in stderr


def test_what_numpy_said_is_not_shown_twice(tmp_path: Path) -> None:
    stderr = run("import wonderland as wl\nwl.linalg.inv(wl.zeros((2, 2)))\n", tmp_path)
    assert "LinearAlgebraError: inv" in stderr
    assert "direct cause" not in stderr
    assert len(frames(stderr)) == 1


NUMPY = "import numpy as np\nimport wonderland as wl\n"


def test_numpy_between_the_user_and_the_package(tmp_path: Path) -> None:
    """The last frame and the line of the message are still the user's."""
    stderr = run(NUMPY + "wl.jit(lambda x: np.vectorize(lambda y: y)(x))(wl.ones(3))\n", tmp_path)
    assert "TraceError: " in stderr
    assert "script.py:3 in <lambda>: wl.jit(" in stderr
    assert all("script.py" in f for f in frames(stderr))


def test_numpys_own_errors_keep_numpys_frames(tmp_path: Path) -> None:
    stderr = run(NUMPY + "wl.grad(lambda x: np.linalg.inv(np.zeros((2, 2))))(1.0)\n", tmp_path)
    assert "LinAlgError" in stderr
    assert "script.py" in frames(stderr)[1]
    assert "numpy" in frames(stderr)[-1]
    assert not any(f"{os.sep}wonderland{os.sep}" in f for f in frames(stderr))


def test_causes_of_the_user_are_kept(tmp_path: Path) -> None:
    stderr = run("""
import wonderland as wl
try:
    wl.zeros(2) + wl.zeros(3)
except ValueError as error:
    raise RuntimeError("no batch") from error
""", tmp_path)  # fmt: skip
    assert "ShapeError: add: shapes (2,) and (3,)" in stderr
    assert "RuntimeError: no batch" in stderr
    assert all("script.py" in f for f in frames(stderr))
    assert len(frames(stderr)) == 2


def test_other_hooks_are_called_too(tmp_path: Path) -> None:
    stderr = run("""
import sys
before = sys.excepthook
def mine(kind, error, tb):
    print("mine:", kind.__name__, tb is error.__traceback__, file=sys.stderr)
sys.excepthook = mine
import wonderland as wl
wl.zeros(2) + wl.zeros(3)
""", tmp_path)  # fmt: skip
    assert stderr.strip() == "mine: ShapeError True"


def test_installing_twice_changes_nothing() -> None:
    hook = sys.excepthook
    try:
        tracebacks.install()
        installed = sys.excepthook
        tracebacks.install()
        assert sys.excepthook is installed
    finally:
        sys.excepthook = hook


def test_ipython(monkeypatch: pytest.MonkeyPatch) -> None:
    """IPython is asked to show our errors through the filter, by its documented `set_custom_exc`."""

    class Shell:
        def set_custom_exc(self, kinds: tuple[type, ...], handler: Any) -> None:
            self.kinds, self.handler = kinds, handler

        def showtraceback(self, what: Any, tb_offset: int | None) -> None:
            self.shown = what

    shell = Shell()
    module = types.ModuleType("IPython")
    module.get_ipython = lambda: shell  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "IPython", module)
    monkeypatch.setattr(sys, "excepthook", sys.__excepthook__)
    monkeypatch.setattr("threading.excepthook", lambda args: None)
    tracebacks.install()
    assert shell.kinds == (wl.errors.WonderlandError, TypeError, ImportError)
    with pytest.raises(wl.errors.ShapeError) as info:
        wl.zeros(2) + wl.zeros(3)
    error = info.value
    shell.handler(shell, type(error), error, error.__traceback__, tb_offset=1)
    kind, shown, traceback = shell.shown
    assert (kind, shown) == (wl.errors.ShapeError, error)
    assert traceback.tb_next is None
    assert traceback.tb_frame.f_code.co_name == "test_ipython"


def test_exceptions_that_are_caught_keep_their_frames() -> None:
    with pytest.raises(wl.errors.ShapeError) as info:
        wl.zeros(2) + wl.zeros(3)
    assert any("wonderland" in str(entry.path) for entry in info.traceback[1:])


# --- warnings

WARN = """
import wonderland as wl
x = wl.zeros(2).requires_grad_()
print(wl.log(wl.zeros(1)), wl.zeros(1) / wl.zeros(1), wl.exp(wl.full(1, 1e4)), wl.sqrt(wl.full(1, -1.0)))
print(wl.grad(lambda x: wl.log(x).sum())(wl.zeros(2)), wl.jit(lambda x: 1 / x)(wl.zeros(2)), wl.tensor(1e300))
wl.log(x).sum().backward()
print(wl.full(3, 3e38).sum(), wl.full((2, 2), 1e30) @ wl.full((2, 2), 1e30))
print(wl.tensor(1e300, dtype=wl.float64).astype(wl.float16), wl.linalg.det(wl.full((2, 2), wl.nan)))
print(wl.cumulative_sum(wl.full(3, 3e38)), wl.prod(wl.full(3, 3e38)), wl.tensor([2.0**31]) ** 10, x.grad)
"""


@pytest.mark.parametrize("options", [(), ("-W", "error"), ("-W", "default"), ("-X", "dev")], ids=" ".join)
def test_nothing_is_warned_about(options: tuple[str, ...], tmp_path: Path) -> None:
    """NumPy's floating-point warnings never reach the user, whatever the options."""
    assert run(WARN, tmp_path, *options) == ""


def test_warnings_made_errors_later_are_no_errors(tmp_path: Path) -> None:
    """Also with filters that a program sets after the import, as test runners do."""
    script = WARN.replace("\nx =", "\nimport warnings\nwarnings.simplefilter('error')\nx =", 1)
    assert run(script, tmp_path) == ""


def test_the_users_own_warnings_are_shown(tmp_path: Path) -> None:
    stderr = run("import numpy as np\nimport wonderland as wl\nnp.log(np.zeros(1))\n", tmp_path)
    assert "script.py:3: RuntimeWarning: divide by zero" in stderr
