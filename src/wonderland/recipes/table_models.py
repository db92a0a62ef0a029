"""How the model for tables is built for the catalogue, and trained: by the size of the table."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from .. import nn
from ..arrays import asarray
from ..data.tables.schema import Schema
from ..models import Tabular
from .inputs import Options

NUMBERS = ("number", "count", "ordinal", "date")  # kinds of columns whose features are numbers, but for the indicators
USUAL: Options = {"lr": 3e-3, "weight_decay": 1.0, "schedule": "cosine", "warmup": 0.1, "patience": 15}


def tabular(
    shape: tuple[int, ...],
    outputs: int,
    hidden: int | Sequence[int] = (128, 128),
    members: int = 8,
    bins: int = 16,
    dropout: float = 0.4,
    *,
    class_names: Sequence[str],
    inputs: Options | None,
) -> nn.Module:
    """A linear model beside networks that share most weights, on numbers in bins. Book, sections 5.2 and 9.2."""
    features = math.prod(shape)
    numeric = numbers_of(inputs)
    model = Tabular(
        features,
        outputs,
        hidden=hidden,
        members=members,
        bins=bins,
        dropout=dropout,
        classes=bool(class_names),
        numeric=numeric,
    )
    return model if len(shape) == 1 else nn.Sequential(nn.Flatten(), model)


def numbers_of(inputs: Options | None) -> tuple[int, ...] | None:
    """The places of the features that are numbers, by the schema of a run; None without one: all of them."""
    if not inputs or inputs.get("kind") != "table":
        return None
    schema = Schema.of_dict(inputs["schema"])
    names = schema.feature_names
    return tuple(
        i
        for group in schema.groups
        for i in range(group.start, group.stop)
        if group.kind in NUMBERS and names[i] != f"{group.column} is missing"
    )


def look_at(model: nn.Module, x: np.ndarray, scaled: nn.Module | None = None) -> None:
    """Show the inputs that are trained on to a model for tables, which takes its bins from them."""
    for part in model.modules():
        if isinstance(part, Tabular):
            part.look_at(np.asarray(x if scaled is None else scaled(asarray(x))).reshape(len(x), -1))


def by_size(examples: int) -> Options:
    """How long to train, and with how many rows at a time.

    >>> by_size(100)
    {'batch_size': 256, 'steps': 600, 'epochs': 30}
    >>> [by_size(n)["steps"] * by_size(n)["batch_size"] // n for n in (1_000, 20_000, 1_000_000)]  # passes
    [153, 29, 12]

    Small tables are passed through often: 600 steps take seconds, and the best of 30 moments is kept. Of large ones a
    few passes are enough.
    """
    batch = min(max(256, 2 ** round(math.log2(max(examples, 1) / 200))), 4096)
    steps = min(max(30 * examples // batch, 600), 3000)
    return {"batch_size": batch, "steps": steps, "epochs": 30}
