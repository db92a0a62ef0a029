"""How fast tables are read: a CSV file of a million rows and 30 columns, in processes of their own."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from .options import Options
from .printed import Table

ROWS = 1_000_000
_PART = 50_000
_WORDS = np.array(
    [
        "the",
        "quick",
        "brown",
        "fox",
        "jumps",
        "over",
        "lazy",
        "dogs",
        "while",
        "rain",
        "falls",
        "on",
        "old",
        "stone",
        "roofs",
        "in",
        "spring",
    ]
)

# the time and memory of a reading are those of a fresh process
_PROGRAM = """
import json, resource, sys, time
import wonderland as wl
wl.data.read_table({"a": [1]})
wall, cpu = time.perf_counter(), time.process_time()
table = wl.data.read_table(sys.argv[1])
wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
kinds = [column.kind for column in table.columns.values()]
print(json.dumps({"wall": wall, "cpu": cpu, "peak": peak, "rows": len(table), "numbers": kinds.count("number")}))
"""


def main(options: Options | None = None) -> None:
    title = f"A CSV file of {ROWS:,} rows and 30 columns"
    columns = ["form", "MB", "seconds", "of a processor", "MB at most"]
    table = Table(title, columns, options or Options(), widths=(34, 10))
    with tempfile.TemporaryDirectory() as folder:
        for name, quoted in (("without quotes", False), ("with quoted texts", True)):
            path = Path(folder, "table.csv")
            write(path, ROWS, quoted)
            done = subprocess.run(
                [sys.executable, "-c", _PROGRAM, str(path)], capture_output=True, text=True, check=True
            )
            found = json.loads(done.stdout)
            assert (found["rows"], found["numbers"]) == (ROWS, 20)
            size = path.stat().st_size / 1e6
            table.row(name, f"{size:.0f}", f"{found['wall']:.1f}", f"{found['cpu']:.1f}", f"{found['peak']:.0f}")


def write(path: Path, rows: int, quoted: bool) -> None:
    """20 columns of numbers with some gaps, 5 of categories, a day, a time, a text, a name for each row, a class."""
    random = np.random.default_rng(0)
    names = [f"n{i}" for i in range(20)] + [f"c{i}" for i in range(5)] + ["day", "time", "note", "id", "class"]
    categories = [np.array([f"{c}{i}" for i in range(k)]) for c, k in zip("abcde", (2, 5, 12, 50, 300), strict=True)]
    with path.open("w") as file:
        file.write(",".join(names) + "\n")
        for start in range(0, rows, _PART):
            n = min(_PART, rows - start)
            reals = [(random.normal(size=n) * 10.0 ** (i % 4)).round(i % 5 + 1) for i in range(14)]
            fields = [list(map(repr, column.tolist())) for column in reals]
            fields += [list(map(str, random.integers(0, 10 ** (i + 1), n).tolist())) for i in range(6)]
            for column in (0, 3, 15):
                for row in np.flatnonzero(random.random(n) < 0.05):
                    fields[column][row] = ""
            fields += [known[random.integers(0, len(known), n)].tolist() for known in categories]
            fields.append((np.datetime64("2015-01-01") + random.integers(0, 3000, n)).astype(str).tolist())
            fields.append((np.datetime64("2015-01-01T00:00:00") + random.integers(0, 10**8, n)).astype(str).tolist())
            between = ", " if quoted else " "
            notes = [between.join(words) for words in _WORDS[random.integers(0, len(_WORDS), (n, 8))].tolist()]
            fields.append([f'"{note}"' for note in notes] if quoted else notes)
            fields.append([f"user-{i:07d}" for i in range(start, start + n)])
            fields.append(["yes" if x else "no" for x in random.random(n) < 0.3])
            file.write("\n".join(map(",".join, zip(*fields, strict=True))) + "\n")


if __name__ == "__main__":
    main()
