"""`python -m benchmarks report steps --peers PYTHON`: measure sections and write their tables into docs/performance.md.

A table stands between two marks, `<!-- steps -->` and `<!-- end of steps -->`, below a line with the day, the
processor and the versions. Only what a section measured anew is replaced; a section without marks is added at the
end. A machine that is busy gives no figures: it is asked for its processors before a section begins, and again when
it ends. With `--busy` the tables are written all the same, and say so.
"""

from __future__ import annotations

import pathlib
import subprocess
import sys
import time

from .machine import describe
from .measuring import threads
from .options import Options
from .rivals import ROOT

PAGE = ROOT / "docs" / "performance.md"
QUIET = 0.95  # the share of its time that a thread computes when nobody else does
BUSY = "Measured while other programs used the machine: figures show what is measured rather than what is reached."
SPIN = """
import time
wall, own = time.perf_counter(), time.process_time()
while time.perf_counter() - wall < {seconds}:
    pass
print((time.process_time() - own) / (time.perf_counter() - wall))
"""


def free(seconds: float = 0.5) -> float:
    """The share of the processors that this process could have: what one program on each gets, at least."""
    command = [sys.executable, "-c", SPIN.format(seconds=seconds)]
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(threads())]
    return min(float(process.communicate()[0]) for process in running)


def marked(page: str, section: str, text: str) -> str:
    """The page with the text between the marks of a section, which are added at the end where there are none."""
    begin, end = f"<!-- {section} -->", f"<!-- end of {section} -->"
    block = f"{begin}\n\n{text.strip()}\n\n{end}"
    if begin not in page:
        return f"{page.rstrip()}\n\n### {section}\n\n{block}\n"
    before, _, rest = page.partition(begin)
    _, found, after = rest.partition(end)
    if not found:
        sys.exit(f"benchmarks: {PAGE.name} has {begin} without {end}; add it behind the tables of the section")
    return before + block + after


def measured(section: str, options: Options) -> str:
    """What a section prints, as Markdown."""
    command = [sys.executable, "-m", "benchmarks", section, *options.workloads, "--markdown", "--peers", options.peers]
    command += [f"--rounds={options.rounds}", f"--seconds={options.seconds}"]
    command += ["--skip", *options.skip] if options.skip else []
    command += ["--only", *options.only] if options.only else []
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        sys.exit(f"benchmarks: {section} failed; {PAGE.name} is as it was")
    return done.stdout.partition("\n")[2]  # without the line that describes the machine


def main(options: Options, page: pathlib.Path = PAGE) -> None:
    """Sections are written one by one, so that an interrupted run keeps what it has."""
    for section in options.sections:
        before = free()
        if before < QUIET and not options.busy:
            sys.exit(
                f"benchmarks: the machine is busy, {before:.0%} of a processor is free for each thread; "
                "wait, or write tables that say so with --busy"
            )
        start = time.perf_counter()
        tables = measured(section, options)
        note = "" if min(before, free()) >= QUIET else f"\n\n{BUSY}"
        text = f"{describe(options)}{note}\n\n{tables.strip()}"
        name = f"{section} with AVX2" if options.avx2 else section
        page.write_text(marked(page.read_text(encoding="utf-8"), name, text), encoding="utf-8")
        print(f"{section}: {time.perf_counter() - start:.0f} s, written to {page}", flush=True)
