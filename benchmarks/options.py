"""What can be asked of the benchmarks on the command line."""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass

SECTIONS = (
    "start",
    "eager",
    "memory",
    "native",
    "steps",
    "variety",
    "large",
    "load",
    "recurrences",
    "sparse",
    "fourier",
    "graphs",
    "operations",
    "products",
    "convolutions",
    "calls",
    "inference",
    "loop",
    "loader",
    "sequences",
    "streaming",
    "decode",
    "long",
    "tables",
    "tables_reading",
)

# These cannot be held to AVX2: the products of both use what the processor has, also where XLA is told not to.
UNHELD = ("jax", "onnxruntime")


@dataclass(frozen=True)
class Options:
    sections: tuple[str, ...] = SECTIONS
    workloads: tuple[str, ...] = ()  # empty: all of a section
    peers: str = sys.executable
    skip: tuple[str, ...] = ()
    rounds: int = 3
    seconds: float = 4.0
    markdown: bool = False
    only: tuple[str, ...] = ()  # tables; empty: all of them
    report: bool = False  # whether docs/performance.md is written
    busy: bool = False  # even if others use the machine
    avx2: bool = False  # whether all are held to AVX2


def parse(arguments: list[str]) -> Options:
    """Names of sections come first; others are workloads, and limit the sections that have some."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=f"Sections: {', '.join(SECTIONS)}.")
    parser.add_argument(
        "names",
        nargs="*",
        help="sections (all of them by default), then workloads; before them, \
report writes their tables into docs/performance.md",
    )
    parser.add_argument("--busy", action="store_true", help="report also while others use the machine, and say so")
    parser.add_argument(
        "--avx2", action="store_true", help="as on a processor without AVX-512; leaves out who cannot be held to that"
    )
    parser.add_argument("--peers", default=sys.executable, metavar="PYTHON", help="an interpreter with torch and jax")
    parser.add_argument("--skip", nargs="+", default=[], metavar="PEER", help="peers to leave out")
    parser.add_argument("--rounds", type=int, default=3, help="how often everybody is measured (3)")
    parser.add_argument("--seconds", type=float, default=4.0, help="how long each time (4)")
    parser.add_argument("--markdown", action="store_true", help="tables for docs/performance.md, of ratios alone")
    parser.add_argument("--only", nargs="+", default=[], metavar="NAME", help="tables of the section tables")
    given = parser.parse_args(arguments)
    report = given.names[:1] == ["report"]
    names = given.names[1:] if report else given.names
    if given.busy and not report:
        parser.error("--busy is for report: python -m benchmarks report --busy")
    sections = tuple(name for name in names if name in SECTIONS)
    workloads = tuple(name for name in names if name not in SECTIONS)
    if workloads and not sections:
        parser.error(f"{', '.join(workloads)}: no section; one of {', '.join(SECTIONS)}")
    return Options(
        sections or SECTIONS,
        workloads,
        given.peers,
        (*given.skip, *(UNHELD if given.avx2 else ())),
        given.rounds,
        given.seconds,
        given.markdown,
        tuple(given.only),
        report,
        given.busy,
        given.avx2,
    )
