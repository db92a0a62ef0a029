"""Run every check of the project, in order, and stop at the first that fails: `python -m tools.check`."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

# A name and the arguments of `python -m`. Pytest comes last, so that its summary ends the output.
STEPS = (
    ("lint", ("ruff", "check")),
    ("format", ("ruff", "format", "--check")),
    ("types", ("mypy",)),
    ("map of the book", ("tools.book_map", "--check")),
    ("tests", ("pytest", "-n", "2")),
)


def main() -> int:
    """Run the steps; return the exit code of the first that fails, or 0."""
    for name, arguments in STEPS:
        print(f"== {name}: {' '.join(arguments)}", flush=True)
        start = time.perf_counter()
        command = [sys.executable, "-m", *arguments]
        code = subprocess.run(command, cwd=ROOT, stdin=subprocess.DEVNULL).returncode
        if arguments[0] == "pytest":
            return code
        verdict = "ok" if code == 0 else "FAILED"
        print(f"   {verdict}, {time.perf_counter() - start:.1f} s", flush=True)
        if code:
            return code
    return 0


if __name__ == "__main__":
    sys.exit(main())
