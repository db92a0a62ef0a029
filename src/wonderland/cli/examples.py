"""`wonderland example`: files to try things with."""

from __future__ import annotations

import argparse

from ..core.errors import FileError, InputError
from .listing import table
from .parsing import Commands, add_command
from .training import mistake

HELP = """\
Write an example: a table, a text, a folder of images or sounds, to try `wonderland train` with. Without a name it
shows which there are.

example:
  wonderland example flowers.csv && wonderland train --data flowers.csv"""


def add_to(commands: Commands) -> None:
    command = add_command(commands, "example", "write a file to try things with", HELP, run)
    command.add_argument("name", metavar="NAME", nargs="?", help="which one; without it they are listed")
    command.add_argument("--out", metavar="PATH", help="where it goes (default: here, under its name)")


def run(options: argparse.Namespace) -> None:
    from ..recipes.example_files import EXAMPLES, write_example

    if options.name is None:
        print(table([(name, f"{example.description}: {example.command}") for name, example in EXAMPLES.items()]))
        return
    try:
        path = write_example(options.name, options.out)
    except (InputError, FileError) as error:
        raise mistake(error) from None
    print(f"wrote {path}")
    print(f"next: {EXAMPLES[options.name].command}")
