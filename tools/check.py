"""Run every check of the project, in order, and stop at the first that fails: `python -m tools.check`."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

# What depends on the engine that runs graphs is also tested with the reference.
ENGINE = ("tests/transforms", "tests/graph", "tests/nn", "tests/optim", "tests/random")

OLDER = {"OPENBLAS_CORETYPE": "Nehalem"}

# A name, the arguments of `python -m`, and settings of the environment. All tests come last, so that their summary ends
# the output.
STEPS: tuple[tuple[str, tuple[str, ...], dict[str, str]], ...] = (
    ("lint", ("ruff", "check"), {}),
    ("format", ("ruff", "format", "--check"), {}),
    ("types", ("mypy",), {}),
    ("map of the book", ("tools.book_map", "--check"), {}),
    ("random programs", ("tools.fuzz", "--minutes", "1", "--seed", "0"), {}),
    # NumPy's BLAS as an older processor has it: its last digits are others
    ("tests with NumPy", ("pytest", "-q", "-n", "2", *ENGINE), {"WONDERLAND_BACKEND": "numpy"} | OLDER),
    ("tests", ("pytest", "-n", "2"), {}),
)


def main() -> int:
    """Run the steps; return the exit code of the first that fails, or 0."""
    for name, arguments, settings in STEPS:
        print(f"== {name}: {' '.join(arguments)}", flush=True)
        start = time.perf_counter()
        command = [sys.executable, "-m", *arguments]
        environment = os.environ | settings
        code = subprocess.run(command, cwd=ROOT, stdin=subprocess.DEVNULL, env=environment).returncode
        if (name, arguments, settings) == STEPS[-1]:
            return code
        verdict = "ok" if code == 0 else "FAILED"
        print(f"   {verdict}, {time.perf_counter() - start:.1f} s", flush=True)
        if code:
            return code
    return 0


if __name__ == "__main__":
    sys.exit(main())
