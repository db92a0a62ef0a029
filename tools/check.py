"""Run every check of the project, in order, and stop at the first that fails: `python -m tools.check`.

With `--coverage`, which needs pytest-cov, the tests also tell which lines of the package they reach.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

# What depends on the engine that runs graphs is also tested with the reference.
ENGINE = ("tests/transforms", "tests/ir", "tests/nn", "tests/optim", "tests/random")

# Each process gets one half in order, so that what a file shares is made once, and then takes from the other's.
HALVES = ("-n", "2", "--dist", "worksteal")

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
    ("tests with NumPy", ("pytest", "-q", *HALVES, *ENGINE), {"WONDERLAND_BACKEND": "numpy"} | OLDER),
    ("tests", ("pytest", *HALVES, "--durations=40"), {}),  # what takes long must be worth it
)


COVERAGE = ("--cov=wonderland", "--cov-report=term:skip-covered")


def main() -> int:
    """Run the steps; return the exit code of the first that fails, or 0."""
    parser = argparse.ArgumentParser(prog="python -m tools.check", description=__doc__)
    parser.add_argument("--coverage", action="store_true", help="which lines the tests reach")
    coverage = COVERAGE if parser.parse_args().coverage else ()
    if coverage and importlib.util.find_spec("pytest_cov") is None:
        parser.error("--coverage needs pytest-cov: pip install pytest-cov")
    for name, arguments, settings in STEPS:
        print(f"== {name}: {' '.join(arguments)}", flush=True)
        start = time.perf_counter()
        last = name == STEPS[-1][0]
        command = [sys.executable, "-m", *arguments, *(coverage if last else ())]
        environment = os.environ | settings
        code = subprocess.run(command, cwd=ROOT, stdin=subprocess.DEVNULL, env=environment).returncode
        if last:
            return code
        verdict = "ok" if code == 0 else "FAILED"
        print(f"   {verdict}, {time.perf_counter() - start:.1f} s", flush=True)
        if code:
            return code
    return 0


if __name__ == "__main__":
    sys.exit(main())
