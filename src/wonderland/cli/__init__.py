"""The command line: `wonderland train`, `evaluate`, `predict`, `example`, `list` and `trace`."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from ..core import __version__, starting
from ..core.errors import WonderlandError
from . import asking, examples, launch, listing, trace, training
from .parsing import Parser, UsageError

COMMANDS = (training, launch, asking, examples, listing, trace)  # in the order of the help
WAY_IN = """\
Differentiable programming in pure Python. To begin with:

  wonderland train                              a network that reads digits, in less than a minute
  wonderland example flowers.csv                write a table to try things with
  wonderland train --data flowers.csv           or a table, a folder of images, a text of your own
  wonderland predict runs/flowers-tabular --data flowers.csv
  wonderland list                               the models, data and settings that there are
  wonderland trace "x1*x2 + sin(x1)" x1=2 x2=5  a derivative, step by step

wonderland --help lists the commands, wonderland COMMAND --help tells about one."""


def parser() -> Parser:
    top = Parser("wonderland", description="Differentiable programming in pure Python.", allow_abbrev=False)
    top.add_argument("--version", action="version", version=f"wonderland {__version__}")
    commands = top.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for module in COMMANDS:
        module.add_to(commands)
    return top


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command. The exit code is 0; 2 after a mistake in the command or its input; 1 if a run failed; 130 after
    Ctrl-C. Without arguments the process is the command, and ends with it."""
    if argv is not None:
        return _run(argv)
    try:
        starting.raise_again()
        return _run(sys.argv[1:])
    except KeyboardInterrupt:  # a second one, while the first was being handled
        return starting.INTERRUPTED
    finally:
        starting.leave_at_once()


def _run(argv: Sequence[str]) -> int:
    name = "wonderland"
    try:
        top = parser()
        texts = list(argv)
        if not texts:
            print(WAY_IN)
            return 0
        options = trace.parse(top, texts) if texts[:1] == ["trace"] else top.parse_args(texts)
        name = f"wonderland {options.command}"
        options.run(options)
        sys.stdout.flush()
    except UsageError as error:
        return _fail(name, str(error), 2)
    except WonderlandError as error:
        return _fail(name, _plain(error), getattr(error, "exit_code", 1))
    except KeyboardInterrupt as error:
        # what a training run says when it has saved where it is
        where = f" {error}; the same command goes on from there" if str(error) else ""
        return _fail(name, f"interrupted{where}", starting.INTERRUPTED)
    except BrokenPipeError:  # the reader has seen enough, as in `wonderland trace ... | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except Exception as error:
        if not _was_interrupted(error):
            raise
        return _fail(name, "interrupted", starting.INTERRUPTED)
    return 0


def _was_interrupted(error: BaseException | None) -> bool:
    """Whether an error came of Ctrl-C: in the middle of an import, it may be reported as something else."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__cause__ or error.__context__
    return error is not None


def _fail(name: str, message: str, code: int) -> int:
    print(f"{name}: error: {message}", file=sys.stderr)
    return code


def _plain(error: WonderlandError) -> str:
    """What happened and the remedy, without the places in the code: there is no code of the user's here."""
    return "\n".join(line for line in str(error).splitlines() if not line.startswith(("  inside:", "  at:")))
