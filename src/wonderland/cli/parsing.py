"""What the commands share: a parser that reports mistakes in one message."""

from __future__ import annotations

import argparse
import functools
from collections.abc import Callable
from typing import NoReturn, TypeAlias

from ..core.errors import InputError


class UsageError(Exception):
    """A mistake in the command; its text is the one message that is shown."""


class Parser(argparse.ArgumentParser):
    """A parser that reports a mistake in one message, without repeating the usage."""

    more: Callable[[], str] | None = None  # what stands below the help, if it takes a while to find out

    def format_help(self) -> str:
        """The text of --help."""
        text = super().format_help()
        return text if self.more is None else f"{text}\nsettings\n{self.more()}\n"

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: error: {message}\n")


Commands: TypeAlias = "argparse._SubParsersAction[Parser]"


def add_command(
    commands: Commands, name: str, summary: str, description: str, run: Callable[[argparse.Namespace], None]
) -> Parser:
    """A command, with the text of its help as it is written."""
    command: Parser = commands.add_parser(
        name,
        help=summary,
        description=description,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    command.set_defaults(run=run)
    return command


def add_engine(command: Parser) -> None:
    """The options that say which engine runs programs, and on which device."""
    command.add_argument("--engine", metavar="NAME", help="what runs programs: native (default), numpy or xla")
    command.add_argument("--device", metavar="NAME", help="of the engine xla: cpu:1, gpu:0 (see wl.devices())")
    command.set_defaults(run=functools.partial(_on_engine, command.get_default("run")))


def _on_engine(run: Callable[[argparse.Namespace], None], options: argparse.Namespace) -> None:
    if options.engine is None and options.device is None:
        run(options)
        return
    from ..engines.choosing import get_backend, using_backend

    try:
        chosen = using_backend(options.engine or get_backend(), options.device)
    except InputError as error:
        raise UsageError(str(error)) from None
    with chosen:
        run(options)
