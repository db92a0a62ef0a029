"""The command line: `python -m tools.fuzz --minutes 1 --seed 0`."""

from __future__ import annotations

import argparse
import importlib
import os
import sys


def main() -> int:
    """Run a campaign; 1 if it found something."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.fuzz", description="Random programs on an engine and the reference."
    )
    parser.add_argument("--minutes", type=float, default=1.0, help="how long")
    parser.add_argument("--seed", type=int, default=0, help="another seed, other programs")
    parser.add_argument("--programs", type=int, help="stop after so many programs")
    parser.add_argument("--first", type=int, default=0, help="the number of the first program")
    parser.add_argument("--only", type=int, help="this program alone")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1, help="processes")
    parser.add_argument("--engine", choices=["native", "xla"], default="native", help="what is tried")
    parser.add_argument("--readers", action="store_true", help="damaged files instead of programs")
    parser.add_argument("--as-found", action="store_true", help="do not make failing programs smaller")
    options = parser.parse_args()

    def show(text: str) -> None:
        print(text, flush=True)

    if options.readers:
        readers = importlib.import_module("tools.fuzz.readers")  # which loads every reader of the package
        found = readers.run(60 * options.minutes, options.seed, show)
    elif options.only is not None:
        from .campaign import failure
        from .outcome import Outcome

        text = failure(options.seed, options.only, not options.as_found, options.engine)
        found = Outcome(1, [] if text is None else [text])
        show(text or "nothing is wrong")
    else:
        from . import campaign

        small = not options.as_found
        found = campaign.run(
            60 * options.minutes,
            options.seed,
            show,
            options.programs,
            options.workers,
            options.first,
            small,
            options.engine,
        )
    show(f"{found.tried} tried, {len(found.failures)} failures (seed {options.seed})")
    return 1 if found.failures else 0


if __name__ == "__main__":
    sys.exit(main())
