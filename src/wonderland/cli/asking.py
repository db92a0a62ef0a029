"""`wonderland evaluate`, `predict` and `generate`: a trained model measured, and asked."""

from __future__ import annotations

import argparse
import csv
import io
import json
import sys
from typing import Any

from ..core.errors import FileError, InputError, ModuleError
from .parsing import Commands, UsageError, add_command
from .training import mistake, shown

EVALUATE = """\
Measure a trained model: on the test data of its run, or on other data of the same kind.

examples:
  wonderland evaluate runs/digits-cnn
  wonderland evaluate runs/flowers-linear --data more_flowers.csv --set target=species"""

PREDICT = """\
What a trained model says about inputs: a line for each, with the class and its probability, or the number.

examples:
  wonderland predict runs/digits-cnn --data images.npy
  wonderland predict runs/flowers-linear --data new_flowers.csv --json
  wonderland predict runs/cora-gcn --data more_papers.npz"""

GENERATE = """\
A text that a trained model writes: the continuation of a prompt, or what a seq2seq model makes of it. The model is that
of a run, or of a folder as Hugging Face publishes it (config.json, model.safetensors, tokenizer.json).

examples:
  wonderland train --model gpt --data shakespeare.txt
  wonderland generate runs/shakespeare-gpt --prompt "ROMEO:" --length 500 --stream
  wonderland generate runs/pairs-seq2seq --prompt "how are you?" --beams 4"""


def add_to(commands: Commands) -> None:
    command = add_command(commands, "evaluate", "measure a trained model on data", EVALUATE, run_evaluate)
    command.add_argument("run_folder", metavar="RUN", help="the folder of a run, or its model.safetensors")
    command.add_argument("--data", metavar="NAME|PATH", help="other data (default: the test part of the run's own)")
    command.add_argument("--part", default="test", help="train, validation or test (default), of the run's own data")
    _add_shared(command)
    command = add_command(commands, "predict", "apply a trained model to inputs", PREDICT, run_predict)
    command.add_argument("run_folder", metavar="RUN", help="the folder of a run, or its model.safetensors")
    command.add_argument("--data", metavar="NAME|PATH", required=True, help="the inputs")
    _add_shared(command)
    command.add_argument("--out", metavar="FILE", help="write there instead of on the screen")
    command = add_command(commands, "generate", "let a model write", GENERATE, run_generate)
    command.add_argument("run_folder", metavar="RUN_OR_FOLDER", help="the folder of a run, or of a published model")
    command.add_argument("--prompt", default="", help="how the text begins, or what it is about")
    command.add_argument("--length", type=int, default=300, metavar="N", help="the most tokens to write (300)")
    command.add_argument("--temperature", type=float, metavar="T", help="0 is the likeliest text (0.8; 0 for seq2seq)")
    command.add_argument("--top-k", type=int, metavar="K", help="draw among the K likeliest tokens")
    command.add_argument("--top-p", type=float, metavar="P", help="draw among those that have the share P together")
    command.add_argument("--min-p", type=float, metavar="P", help="draw among those above P times the likeliest")
    command.add_argument("--repetition-penalty", type=float, metavar="R", help="above 1: fewer tokens again")
    command.add_argument("--beams", type=int, metavar="N", help="search for the likeliest text with N beginnings")
    command.add_argument("--stop", action="append", metavar="TEXT", help="end before this text (may be repeated)")
    command.add_argument("--seed", type=int, metavar="N", help="another one gives another text (0)")
    command.add_argument("--stream", action="store_true", help="show the text as it is written")
    command.add_argument("--json", action="store_true", help="print JSON; with --stream a line for each piece")


def _add_shared(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--set", metavar="KEY=VALUE", action="append", default=[], help="an option of the data's reader"
    )
    command.add_argument("--json", action="store_true", help="print JSON")


def run_evaluate(options: argparse.Namespace) -> None:
    from ..recipes import evaluate

    try:
        found = evaluate(options.run_folder, _data(options), options.part)
    except (InputError, FileError, ModuleError) as error:
        raise mistake(error) from None
    print(json.dumps(found, indent=1) if options.json else f"{shown(found)}   ({found['examples']} examples)")


def run_predict(options: argparse.Namespace) -> None:
    from ..recipes import predict
    from ..storage import write_atomically

    try:
        found = predict(options.run_folder, _data(options) or {})
        text = json.dumps(found, indent=1) + "\n" if options.json else _table(found)
        if options.out:
            write_atomically(options.out, text)
        else:
            sys.stdout.write(text)
    except (InputError, FileError, ModuleError) as error:
        raise mistake(error) from None


SETTINGS = ("temperature", "top_k", "top_p", "min_p", "repetition_penalty", "beams", "stop", "seed")


def run_generate(options: argparse.Namespace) -> None:
    from ..recipes import generate, stream

    settings = {name: getattr(options, name) for name in SETTINGS}
    asked = (options.run_folder, options.prompt, options.length)
    try:
        if not options.stream:
            text = generate(*asked, **settings)
            print(json.dumps({"prompt": options.prompt, "text": text}) if options.json else text)
            return
        for piece in stream(*asked, **settings):
            print(json.dumps({"piece": piece}) if options.json else piece, end="\n" if options.json else "", flush=True)
        if not options.json:
            print()
    except (InputError, FileError, ModuleError) as error:
        raise mistake(error) from None


def _data(options: argparse.Namespace) -> dict[str, Any] | None:
    from ..recipes.settings import as_value

    if options.data is None:
        if options.set:
            raise UsageError("--set is for the reader of --data, which is missing")
        return None
    found: dict[str, Any] = {"name": options.data}
    for text in options.set:
        name, equals, value = text.partition("=")
        if not equals:
            raise UsageError(f"{text!r} is not of the form KEY=VALUE")
        found[name.removeprefix("data.").strip()] = as_value(value.strip())
    return found


def _table(found: dict[str, Any]) -> str:
    """Predictions as CSV."""
    out = io.StringIO()
    rows = csv.writer(out, lineterminator="\n")
    if "node" in found:
        numbers = [p if isinstance(p, list) else [p] for p in found["predictions"]]
        sure = [[f"{c:.4f}"] for c in found["confidence"]] if "confidence" in found else [[] for _ in numbers]
        rows.writerow(["node", *(["prediction"] * len(numbers[0])), *(["confidence"] if sure[0] else [])])
        rows.writerows([name, *p, *c] for name, p, c in zip(found["node"], numbers, sure, strict=True))
    elif "confidence" in found:
        rows.writerow(["prediction", "confidence"])
        rows.writerows([p, f"{c:.4f}"] for p, c in zip(found["predictions"], found["confidence"], strict=True))
    elif isinstance(found["predictions"][0], str):
        rows.writerow(["prediction"])
        rows.writerows([text] for text in found["predictions"])
    else:
        width = len(found["predictions"][0])
        rows.writerow(["prediction"] if width == 1 else [f"prediction_{i}" for i in range(width)])
        rows.writerows([f"{value:.7g}" for value in row] for row in found["predictions"])
    return out.getvalue()
