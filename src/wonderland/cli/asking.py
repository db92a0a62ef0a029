"""`wonderland evaluate`, `predict` and `generate`: a trained model measured, and asked."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable
from typing import Any

from ..core.errors import FileError, InputError, ModuleError
from .parsing import Commands, Parser, UsageError, add_command, add_engine
from .training import mistake, shown

EVALUATE = """\
Measure a trained model: on the test data of its run, or on all of other data of the same kind. Rows whose target is
missing are left out and counted; what is odd about the data is said on standard error.

examples:
  wonderland evaluate runs/digits-cnn
  wonderland evaluate runs/digits-cnn --part validation
  wonderland evaluate runs/flowers-linear --data more_flowers.csv --set target=species"""

PREDICT = """\
What a trained model says about inputs: a line for each, with the class and its probability, or the number. Inputs are a
table (CSV, Parquet, Arrow, JSON lines), whose columns are taken by name, arrays, an image, a sound, a folder of either,
texts, a series or a graph. What is odd about them is said on standard error.

examples:
  wonderland predict runs/digits-cnn --data images.npy
  wonderland predict runs/flowers-linear --data new_flowers.csv --probabilities --out predictions.csv
  wonderland predict runs/flowers-linear --data new_flowers.csv --sets 0.9 --json
  wonderland predict runs/houses-tabular --data new_houses.parquet --interval 0.9
  tail -n 100 flowers.jsonl | wonderland predict runs/flowers-linear --data -
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
    command.add_argument(
        "--data", metavar="NAME|PATH|-", help="other data, all of which are measured; - is standard input"
    )
    command.add_argument("--part", help="train, validation or test (default), of the run's own data")
    _add_shared(command)
    command = add_command(commands, "predict", "apply a trained model to inputs", PREDICT, run_predict)
    command.add_argument("run_folder", metavar="RUN", help="the folder of a run, or its model.safetensors")
    command.add_argument("--data", metavar="NAME|PATH|-", required=True, help="the inputs; - is standard input")
    _add_shared(command)
    command.add_argument("--out", metavar="FILE", help="write there: .csv, .json, .jsonl or .parquet, by its ending")
    command.add_argument("--probabilities", action="store_true", help="a column for the probability of each class")
    command.add_argument(
        "--interval", type=float, metavar="P", help="numbers: ends that have the truth between, as 0.9"
    )
    command.add_argument("--sets", type=float, metavar="P", help="classes: a set that has the true one, as 0.9")
    command.add_argument("--threshold", type=float, metavar="P", help="two classes: the second from this probability")
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
    command.add_argument("--quantize", metavar="DTYPE", help="weights of few bits: int8, int4 or bfloat16")
    command.add_argument("--activations", metavar="DTYPE", help="what these are multiplied by: float or int8 (float)")
    command.add_argument("--cache-dtype", metavar="DTYPE", help="of keys and values that are kept: float16 or bfloat16")
    command.add_argument("--stream", action="store_true", help="show the text as it is written")
    command.add_argument("--json", action="store_true", help="print JSON; with --stream a line for each piece")
    add_engine(command)


def _add_shared(command: Parser) -> None:
    command.add_argument(
        "--set", metavar="KEY=VALUE", action="append", default=[], help="an option of the data's reader"
    )
    command.add_argument("--json", action="store_true", help="print JSON")
    add_engine(command)


def run_evaluate(options: argparse.Namespace) -> None:
    from ..recipes import evaluate

    try:
        found = evaluate(options.run_folder, _data(options), options.part)
    except (InputError, FileError, ModuleError) as error:
        raise mistake(error) from None
    _say(found["notes"])
    if options.json:
        print(json.dumps(found, indent=1))
        return
    left = f", {found['left_out']} left out without a target" if found["left_out"] else ""
    print(f"{shown(found)}   ({found['examples']} examples{left})")


def run_predict(options: argparse.Namespace) -> None:
    from ..recipes import predict
    from ..recipes.predictions import ending

    if options.json and options.out:
        raise UsageError("--json is for the screen; --out FILE.json writes a file")
    asked = {name: getattr(options, name) for name in ("interval", "sets", "threshold")}
    try:
        if options.out:
            ending(options.out)  # before the work
        found = predict(options.run_folder, _data(options) or {}, **asked)
        _say(found.notes)
        if options.out:
            found.write(options.out, probabilities=options.probabilities)
        elif options.json:
            sys.stdout.write(found.to_json(probabilities=True) + "\n")
        else:
            sys.stdout.write(found.to_csv(probabilities=options.probabilities))
    except (InputError, FileError, ModuleError) as error:
        raise mistake(error) from None


def _say(notes: Iterable[str]) -> None:
    """Notes about data, apart from what is asked for."""
    for note in notes:
        print(f"note: {note}", file=sys.stderr)


SETTINGS = (
    "temperature",
    "top_k",
    "top_p",
    "min_p",
    "repetition_penalty",
    "cache_dtype",
    "beams",
    "stop",
    "seed",
    "quantize",
    "activations",
)


def run_generate(options: argparse.Namespace) -> None:
    from ..recipes import generate, stream

    settings = {name: getattr(options, name) for name in SETTINGS}
    settings["note"] = lambda text: _say([text])
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
