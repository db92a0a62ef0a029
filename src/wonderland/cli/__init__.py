"""The command line: `wonderland train`, `evaluate`, `predict`, `list` and `trace`."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from .. import __version__
from ..errors import WonderlandError
from . import asking, listing, trace, training
from .parsing import Parser, UsageError

COMMANDS = (training, asking, listing, trace)  # in the order of the help


def parser() -> Parser:
    top = Parser("wonderland", description="Differentiable programming in pure Python.", allow_abbrev=False)
    top.add_argument("--version", action="version", version=f"wonderland {__version__}")
    commands = top.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for module in COMMANDS:
        module.add_to(commands)
    return top


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command. The exit code is 0; 2 after a mistake in the command or its input; 1 if a run failed; 130 after
    Ctrl-C."""
    top = parser()
    texts = list(sys.argv[1:] if argv is None else argv)
    options = trace.parse(top, texts) if texts[:1] == ["trace"] else top.parse_args(texts)
    try:
        options.run(options)
        sys.stdout.flush()
    except UsageError as error:
        return _fail(options.command, str(error), 2)
    except WonderlandError as error:
        return _fail(options.command, _plain(error), getattr(error, "exit_code", 1))
    except KeyboardInterrupt as error:
        where = f" {error}" if str(error) else ""
        return _fail(options.command, f"interrupted{where}; the same command goes on from there", 130)
    except BrokenPipeError:  # the reader has seen enough, as in `wonderland trace ... | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


def _fail(command: str, message: str, code: int) -> int:
    print(f"wonderland {command}: error: {message}", file=sys.stderr)
    return code


def _plain(error: WonderlandError) -> str:
    """What happened and the remedy, without the places in the code: there is no code of the user's here."""
    return "\n".join(line for line in str(error).splitlines() if not line.startswith(("  inside:", "  at:")))
