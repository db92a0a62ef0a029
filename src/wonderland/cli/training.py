"""`wonderland train`: a model and data by name, and everything that a run leaves."""

from __future__ import annotations

import argparse
import sys
import textwrap
import time
from collections.abc import Mapping, Sequence
from typing import Any

from ..core.errors import FileError, InputError, SizeError, WonderlandError
from .listing import settings
from .parsing import Commands, UsageError, add_command, add_engine

HELP = """\
Train a model on data, show the progress, and write checkpoints, weights, results and a report into a folder. Without
arguments: a small convolutional network on 1,797 handwritten digits, in less than a minute.

A run that was interrupted goes on when the same command is given again.

With data of one's own and no model, the model is chosen by what the data are; of a table a plan is shown first: what
each column is and how it becomes numbers. `wonderland example` writes files to try this with.

examples:
  wonderland train
  wonderland train --data flowers.csv --set data.target=species
  wonderland train --data houses.csv --set data.target=price --set data.columns.sold=ignore
  wonderland train --data photos                          a folder with a subfolder for each class
  wonderland train --data new_photos --set model.from=runs/photos-resnet --set freeze=backbone
  wonderland train --model mlp --data digits --set epochs=60 --set model.hidden=[128,64]
  wonderland train --model gpt --data shakespeare.txt
  wonderland train --model seq2seq --data pairs.tsv
  wonderland train --model gcn --data cora.npz
  wonderland train --model sage --data edges.csv --set data.nodes=nodes.csv --set data.target=label
  wonderland train --model gcn --data cora.npz --set model.task=links
  wonderland train --model gin --data MUTAG
  wonderland train settings.toml --set lr=0.01

a settings file:
  model = "mlp"
  [data]
  name = "flowers.csv"
  target = "species"
  [data.columns]
  petal_width = "ignore"
  [train]
  epochs = 60
  lr = 0.01

`wonderland list` shows the models, data and settings; `wonderland list NAME` one of them."""


def add_to(commands: Commands) -> None:
    command = add_command(commands, "train", "train a model and report how good it is", HELP, run)
    command.more = settings
    command.add_argument("file", metavar="FILE", nargs="?", help="settings in TOML")
    command.add_argument("--model", metavar="NAME", help="see `wonderland list models`")
    command.add_argument("--data", metavar="NAME|PATH", help="see `wonderland list data`, or a file or folder")
    command.add_argument(
        "--set",
        metavar="KEY=VALUE",
        action="append",
        default=[],
        help="change a setting: lr=0.01, data.target=species, model.depth=3",
    )
    command.add_argument("--out", metavar="FOLDER", help="where the results go (default: runs/DATA-MODEL)")
    command.add_argument("--fresh", action="store_true", help="start anew if the folder has a run")
    command.add_argument("--quiet", action="store_true", help="show the result only")
    add_engine(command)


def run(options: argparse.Namespace) -> None:
    from .. import distributed, recipes

    try:
        first = distributed.init().rank == 0  # of the processes that a launcher has started
        options.quiet = options.quiet or not first
        settings = recipes.Settings.of(options.model, options.data, options.file, options.set)
        if settings.chosen and not options.quiet:
            print(f"model {settings.chosen}; --model NAME for another", file=sys.stderr)
        start = time.perf_counter()
        done = recipes.run(settings, options.out, fresh=options.fresh, progress=False if options.quiet else None)
    except (InputError, FileError, SizeError) as error:
        if isinstance(error, ArithmeticError):
            raise
        raise mistake(error) from None
    if not first:
        return
    seconds = time.perf_counter() - start
    if done.history.stopped and not options.quiet:
        print(f"stopped after epoch {len(done.history)}: {done.history.stopped}", file=sys.stderr)
    print(f"test {shown(done.results)}   ({seconds:.0f} s)")
    for line in doubts(done.results):
        print(textwrap.fill(f"note: {line}", 100, subsequent_indent="  "), file=sys.stderr)
    said = ("majority", "mean") if doubts(done.results) else ()
    for line in found_out([one for one in done.findings if one.get("kind") not in said]):
        print(textwrap.fill(line, 100, subsequent_indent="  "), file=sys.stderr)
    for path in done.files:
        print(f"wrote {path}")


def found_out(findings: Sequence[Mapping[str, str]], most: int = 3) -> list[str]:
    """The worst findings in a line each; what is merely good to know stands in the report.

    >>> found_out([{"severity": "warning", "text": "It overfits.", "remedy": "more data."}, {"severity": "note"}])
    ['warning: It overfits. Remedy: more data.']
    """
    worst = [one for one in findings if one.get("severity") != "note"]
    return [f"{one['severity']}: {one['text']} Remedy: {one['remedy']}" for one in worst[:most]]


def doubts(results: Mapping[str, float]) -> list[str]:
    """What to say about results that are no better than no model at all.

    >>> doubts({"accuracy": 0.91, "baseline_accuracy": 0.91})[0][:60]
    'accuracy 91.00 % is no more than the share of the commonest '
    >>> doubts({"r2": 0.7, "mae": 3.0, "baseline_mae": 5.0})
    []
    """
    accuracy, share = results.get("accuracy"), results.get("baseline_accuracy")
    if accuracy is not None and share is not None and accuracy <= share:
        return [
            f"accuracy {100 * accuracy:.2f} % is no more than the share of the commonest class, {100 * share:.2f} %: "
            "always saying this class is as good. Look at f1; --set class_weights=balanced lets classes count alike"
        ]
    if results.get("r2", 1.0) <= 0:
        return [f"r2 {results['r2']:.3g}: the mean of the targets is as good a prediction, or a better one"]
    return []


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
