"""How long `import wonderland` takes beside `import numpy`, and the first call of a training step beside JAX's.

Everything is measured in fresh interpreters, imports with compiled bytecode; first_calls.py has the second part, and
many_sizes.py what batches of forty sizes take beside one.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time

from . import first_calls, many_sizes
from .options import Options
from .printed import compared, comparison

ROUNDS = 9


def _seconds(statement: str, environment: dict[str, str]) -> float:
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", statement], check=True, env=environment)
    return time.perf_counter() - start


def main(options: Options | None = None) -> None:
    options = options or Options()
    if not options.workloads:
        imports(options)
        many_sizes.main(options)
    first_calls.main(options)


def imports(options: Options) -> None:
    best = {"pass": 1e9, "import numpy": 1e9, "import wonderland": 1e9}
    with tempfile.TemporaryDirectory() as cache:
        # both find their bytecode in one place, as after an ordinary installation
        environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": cache}
        for _ in range(ROUNDS):
            for statement in best:
                best[statement] = min(best[statement], _seconds(statement, environment))
    numpy, ours = (best[s] - best["pass"] for s in ("import numpy", "import wonderland"))
    table = comparison("Time to import", options)
    more, against = f"{(ours - numpy) * 1e3:+.0f} ms; at most + 100 ms", "import numpy, which is part of it"
    table.row("import wonderland", *compared(ours * 1e3, numpy * 1e3, "ms", against, more))


if __name__ == "__main__":
    main()
