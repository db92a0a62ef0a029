"""`wonderland list`: the models, data and settings that `wonderland train` knows."""

from __future__ import annotations

import argparse
import dataclasses

from .parsing import Commands, add_command

HELP = """\
Show what `wonderland train` knows: models and their options, data, and the settings of training with their defaults."""


def add_to(commands: Commands) -> None:
    command = add_command(commands, "list", "show the models, data and settings", HELP, run)
    command.add_argument("what", nargs="?", choices=("models", "data", "settings"), help="one of them (default: all)")


def run(options: argparse.Namespace) -> None:
    parts = {"models": models, "data": data, "settings": settings}
    chosen = [options.what] if options.what else list(parts)
    print("\n\n".join(f"{name}\n{table(parts[name]())}" for name in chosen))


def models() -> list[tuple[str, str]]:
    from ..recipes import MODELS

    rows = []
    for name, entry in MODELS.items():
        rows.append((name, entry.description))
        rows += [("", f"model.task = {', '.join(entry.tasks)}")] if entry.also else []
        rows += [("", f"model.{option} = {_toml(default)}") for option, default in entry.options().items()]
    return rows


def data() -> list[tuple[str, str]]:
    from ..data import list_datasets

    rows = [
        (entry.name, f"{entry.description} ({'needs scikit-learn' if entry.kind == 'sklearn' else entry.kind})")
        for entry in list_datasets()
    ]
    rows += [
        ("citations", "a made citation network: 600 articles, 5 fields (a graph)"),
        ("karate", "the karate club: 34 members, 2 clubs (a graph)"),
        ("motifs", "trees with a ring, a house or a clique in them (graphs)"),
    ]
    return [
        *rows,
        (
            "a path",
            "CSV, Parquet, NPY, NPZ, IDX (MNIST), CIFAR's binary files, a folder of images, a text, or pairs of texts; "
            "a graph as NPZ or as CSV of edges with data.nodes, a folder of graphs in the TU format",
        ),
    ]


def settings() -> list[tuple[str, str]]:
    from ..recipes import TrainSettings

    return [(field.name, _toml(field.default)) for field in dataclasses.fields(TrainSettings)]


def table(rows: list[tuple[str, str]]) -> str:
    """Two columns.

    >>> print(table([("a", "one"), ("long", "two")]))
      a     one
      long  two
    """
    width = max(len(name) for name, _ in rows)
    return "\n".join(f"  {name:<{width}}  {text}" for name, text in rows)


def _toml(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return str(list(value))
    return f'"{value}"' if isinstance(value, str) else "none" if value is None else str(value)
