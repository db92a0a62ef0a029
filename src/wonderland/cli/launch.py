"""`wonderland launch`: several processes that train one model together on this machine."""

from __future__ import annotations

import argparse
import os
import sys
import threading
from collections.abc import Callable, Sequence

from ..core import starting
from ..core.errors import InputError
from ..distributed.launching import Ending, launch
from ..distributed.mpi import check_installed
from .parsing import Commands, UsageError, add_command
from .training import mistake

HELP = """\
Run a command or a program in several processes that compute as one: each reads its part of every batch, and their
gradients are added up in a fixed order. Losses are those of one process with the same batch size, up to rounding, and
the same bits run after run. Only the first process writes files and shows progress.

The processes share the processors of this machine, unless WONDERLAND_THREADS says how many threads each has. When one
of them dies, the others are ended; with --restarts the run goes on from its last checkpoint. On many machines use the
launcher that is there: srun, mpiexec, torchrun and Kubernetes are understood (docs/scale.md).

needs: pip install 'wonderland[cluster]'

examples:
  wonderland launch -n 2 train --data flowers.csv
  wonderland launch -n 4 --restarts 3 train --model gpt --data shakespeare.txt --set checkpoint_every=100
  wonderland launch -n 2 program.py --its-own options"""

MISTAKE = 2  # the exit code of a command with a mistake: another try has the same one


def add_to(commands: Commands) -> None:
    command = add_command(commands, "launch", "run a command in several processes that compute as one", HELP, run)
    command.add_argument("-n", "--processes", metavar="N", type=int, required=True, help="how many processes")
    command.add_argument("--restarts", metavar="N", type=int, default=0, help="how often to try again after a failure")
    command.add_argument(
        "command_line", metavar="COMMAND", nargs=argparse.REMAINDER, help="train ..., or PROGRAM.py ..."
    )


def run(options: argparse.Namespace) -> None:
    if options.processes < 1 or options.restarts < 0:
        raise UsageError(f"-n {options.processes} --restarts {options.restarts}\n  try: one process or more")
    words = options.command_line
    command = _command(words)
    try:
        check_installed()
    except InputError as error:
        raise mistake(error) from None
    for attempt in range(options.restarts + 1):
        ending = launch(command, options.processes, _writer())
        if ending.code == 0:
            return
        again = attempt < options.restarts and not ending.interrupted and ending.code != MISTAKE
        if ending.interrupted:
            raise SystemExit(starting.INTERRUPTED)
        _say(ending, again, attempt + 1, options.restarts)
        if not again:
            raise SystemExit(ending.code)
        command = _command([word for word in words if word != "--fresh"])  # what was begun anew goes on


def _command(words: Sequence[str]) -> list[str]:
    if not words:
        raise UsageError("there is no command\n  try: wonderland launch -n 2 train")
    if words[0].endswith(".py") or words[0] == "-m":
        return [sys.executable, *words]
    if words[0] == "train":
        return [sys.executable, "-m", "wonderland", *words]
    raise UsageError(f"{words[0]!r} does not run in several processes\n  try: train, or a program such as train.py")


def _writer() -> Callable[[int, bytes, bool], None]:
    """What hands lines on: results of the first process as they are, notes of the others with their rank in front."""
    lock = threading.Lock()

    def write(rank: int, line: bytes, is_error: bool) -> None:
        if rank and is_error:
            line = f"[{rank}] ".encode() + line
        with lock:
            os.write(2 if is_error else 1, line)

    return write


def _say(ending: Ending, again: bool, attempt: int, restarts: int) -> None:
    then = f"; restart {attempt} of {restarts} goes on from the last checkpoint" if again else ""
    print(f"wonderland launch: {ending.message}{then}", file=sys.stderr, flush=True)
