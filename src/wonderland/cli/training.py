"""`wonderland train`: a model and data by name, and everything that a run leaves."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Mapping
from typing import Any

from ..core.errors import FileError, InputError, SizeError, WonderlandError
from .parsing import Commands, UsageError, add_command

HELP = """\
Train a model on data, show the progress, and write checkpoints, weights, results and a report into a folder. Without
arguments: a small convolutional network on 1,797 handwritten digits, in less than a minute.

A run that was interrupted goes on when the same command is given again.

examples:
  wonderland train
  wonderland train --model mlp --data digits --set epochs=60 --set model.hidden=[128,64]
  wonderland train --model linear --data flowers.csv --set data.target=species
  wonderland train --model gpt --data shakespeare.txt
  wonderland train --model seq2seq --data pairs.tsv
  wonderland train --model gcn --data cora.npz
  wonderland train --model sage --data edges.csv --set data.nodes=nodes.csv --set data.target=label
  wonderland train --model gcn --data cora.npz --set model.task=links
  wonderland train --model gin --data MUTAG
  wonderland train settings.toml --set lr=0.01

a settings file:
  model = "mlp"
  data = "digits"
  [train]
  epochs = 60
  lr = 0.01

`wonderland list` shows the models, data and settings."""


def add_to(commands: Commands) -> None:
    command = add_command(commands, "train", "train a model and report how good it is", HELP, run)
    command.add_argument("file", metavar="FILE", nargs="?", help="settings in TOML")
    command.add_argument("--model", metavar="NAME", help="see `wonderland list models`")
    command.add_argument("--data", metavar="NAME|PATH", help="see `wonderland list data`, or a file or folder")
    command.add_argument("--set", metavar="KEY=VALUE", action="append", default=[], help="change a setting")
    command.add_argument("--out", metavar="FOLDER", help="where the results go (default: runs/DATA-MODEL)")
    command.add_argument("--fresh", action="store_true", help="start anew if the folder has a run")
    command.add_argument("--quiet", action="store_true", help="show the result only")


def run(options: argparse.Namespace) -> None:
    from .. import recipes

    try:
        settings = recipes.Settings.of(options.model, options.data, options.file, options.set)
        start = time.perf_counter()
        done = recipes.run(settings, options.out, fresh=options.fresh, progress=False if options.quiet else None)
    except (InputError, FileError, SizeError) as error:
        if isinstance(error, ArithmeticError):
            raise
        raise mistake(error) from None
    seconds = time.perf_counter() - start
    if done.history.stopped and not options.quiet:
        print(f"stopped after epoch {len(done.history)}: {done.history.stopped}", file=sys.stderr)
    print(f"test {shown(done.results)}   ({seconds:.0f} s)")
    for path in done.files:
        print(f"wrote {path}")


def shown(results: Mapping[str, Any]) -> str:
    """Results in one line, accuracies in percent."""
    texts = []
    for name, value in results.items():
        if name == "f1" or name.endswith("accuracy"):
            texts.append(f"{name} {100 * value:.2f} %")
        elif isinstance(value, float):
            texts.append(f"{name} {value:.4g}")
    return "   ".join(texts)


def mistake(error: WonderlandError) -> UsageError:
    """A mistake in what was asked for, as one message."""
    message, _, rest = str(error).partition("\n")
    remedy = next((line.strip() for line in rest.splitlines() if line.startswith("  try:")), "")
    return UsageError(f"{message}\n  {remedy}" if remedy else message)
