"""`wonderland list`: the models, data and settings that `wonderland train` knows."""

from __future__ import annotations

import argparse
import textwrap
from collections.abc import Iterable, Sequence
from types import ModuleType
from typing import TYPE_CHECKING

from .parsing import Commands, UsageError, add_command

if TYPE_CHECKING:
    from ..recipes.meanings import Setting

WIDTH = 100  # columns of a terminal
HELP = """\
Show what `wonderland train` knows: models and their options, data, and settings with their meaning, what they may be
and their defaults.

examples:
  wonderland list models
  wonderland list settings
  wonderland list mlp            a model and its options
  wonderland list lr             a setting"""


def add_to(commands: Commands) -> None:
    command = add_command(commands, "list", "show the models, data and settings", HELP, run)
    command.add_argument(
        "what", nargs="?", metavar="WHAT", help="models, data, settings, or the name of a model or setting (all)"
    )


def run(options: argparse.Namespace) -> None:
    parts = {"models": models, "data": data, "settings": settings}
    if options.what not in (None, *parts):
        print(one(options.what))
        return
    chosen = [options.what] if options.what else list(parts)
    print("\n\n".join(f"{name}\n{parts[name]()}" for name in chosen))


def models() -> str:
    meanings = known()
    rows: list[tuple[str, str]] = []
    for name, entry in meanings.MODELS.items():
        rows.append((name, entry.description))
        rows += [("", f"model.task = {', '.join(entry.tasks)}")] if entry.also else []
        rows += [("", f"{s.name} = {s.default}   {s.meaning}") for s in meanings.of_model(name)]
    return table(rows)


def data() -> str:
    from ..data import list_datasets

    rows = [
        (entry.name, f"{entry.description} ({'needs scikit-learn' if entry.kind == 'sklearn' else entry.kind})")
        for entry in list_datasets()
    ]
    rows += [
        ("citations", "a made citation network: 600 articles, 5 fields (a graph)"),
        ("karate", "the karate club: 34 members, 2 clubs (a graph)"),
        ("motifs", "trees with a ring, a house or a clique in them (graphs)"),
        (
            "a path",
            "a table (CSV, Parquet, Arrow, JSON lines), NPY, NPZ, IDX (MNIST), CIFAR's binary files, a folder of "
            "images or sounds, a text, or pairs of texts; a graph as NPZ or as CSV of edges with data.nodes, a folder "
            "of graphs in the TU format",
        ),
    ]
    return table(rows)


def settings() -> str:
    """Settings of training and of data; those of models stand with the models."""
    meanings = known()
    heads = (
        "  of training: --set NAME=VALUE; a model has habits of its own, which come before these defaults",
        "  of data: --set data.NAME=VALUE",
        "  of every model: --set model.NAME=VALUE",
    )
    parts = (meanings.of_training(), meanings.of_data(), meanings.of_any_model())
    return "\n\n".join(f"{head}\n\n{described(part)}" for head, part in zip(heads, parts, strict=True)) + (
        "\n\n  of one model: `wonderland list models`, or `wonderland list NAME`"
    )


def one(name: str) -> str:
    """A model with its options and habits, or a setting."""
    meanings = known()
    every = [*meanings.of_training(), *meanings.of_data(), *meanings.of_any_model()]
    if found := [setting for setting in every if name in (setting.name, setting.name.rpartition(".")[2])]:
        return described(found)
    if name not in meanings.MODELS:
        raise UsageError(f"list: there is no {name!r}\n  try: models, data, settings, a model or a setting")
    entry = meanings.MODELS[name]
    lines = [f"{name}: {entry.description}", ""]
    if entry.also:
        lines += [f"  model.task   one of {', '.join(entry.tasks)}; without it what the data are for"]
    lines += [described(meanings.of_model(name)) or "  no options"]
    if entry.train:
        habits = ", ".join(f"{key}={meanings.written(value)}" for key, value in entry.train.items())
        lines += ["", *textwrap.wrap(f"trained with {habits}", WIDTH, initial_indent="  ", subsequent_indent="  ")]
    return "\n".join(lines)


def described(settings: Iterable[Setting]) -> str:
    """Settings as they are shown: name and default, then the sentence and what is allowed."""
    lines = []
    for setting in settings:
        head = f"  {setting.name} = {setting.default}"
        lines += [
            head,
            *textwrap.wrap(
                f"{setting.meaning}; {setting.kind}: {setting.allowed}",
                WIDTH,
                initial_indent="      ",
                subsequent_indent="      ",
            ),
        ]
    return "\n".join(lines)


def table(rows: Sequence[tuple[str, str]]) -> str:
    """Two columns, of which the second is wrapped.

    >>> print(table([("a", "one"), ("long", "two")]))
      a     one
      long  two
    """
    width = max(len(name) for name, _ in rows)
    lines = []
    for name, text in rows:
        lines += textwrap.wrap(text, WIDTH, initial_indent=f"  {name:<{width}}  ", subsequent_indent=" " * (width + 6))
    return "\n".join(lines)


def known() -> ModuleType:
    """What settings mean, and the models: they take a while to load, so only when somebody asks."""
    from ..recipes import meanings

    return meanings
