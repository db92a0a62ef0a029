"""Files to try things with: small, and made on the spot from what comes with the package."""

from __future__ import annotations

import ast
import csv
import inspect
import io
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from .. import models, nn
from ..core.errors import FileError, InputError
from ..data.builtin.bundled import digits, iris
from ..data.builtin.shapes import SHAPES, make_shapes
from ..data.builtin.sounds import write_sounds
from ..storage.atomic import write_atomically


class Example(NamedTuple):
    """A file or folder that can be written: what is in it, and what to do with it."""

    description: str
    command: str
    write: Callable[[Path], None]


def write_example(name: str, path: str | os.PathLike[str] | None = None) -> str:
    """Write an example, by default under its own name in this folder; where it is. Nothing is overwritten.

    >>> import tempfile
    >>> from wonderland.data.tables import read_table
    >>> table = read_table(write_example("flowers.csv", os.path.join(tempfile.mkdtemp(), "flowers.csv")))
    >>> len(table), table.names[-1]
    (150, 'species')
    """
    if name not in EXAMPLES:
        raise InputError(f"there is no example {name!r}.", f"one of {', '.join(EXAMPLES)}")
    place = Path(os.fspath(path) if path is not None else name).expanduser()
    if place.exists():
        raise FileError(f"{place} exists already.", "another name, or without the file that is there")
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        EXAMPLES[name].write(place)
    except OSError as error:
        raise FileError(f"cannot write {place}: {error.strerror}.", "a folder that you may write to") from None
    return str(place)


def _table(path: Path, rows: Sequence[Sequence[object]], delimiter: str = ",") -> None:
    out = io.StringIO()
    csv.writer(out, delimiter=delimiter, lineterminator="\n").writerows(rows)
    write_atomically(path, out.getvalue())


def _flowers(path: Path) -> None:
    record = iris()
    names = [name.removesuffix(" (cm)").replace(" ", "_") for name in record.feature_names]
    rows = [
        [*(f"{value:.1f}" for value in x), record.target_names[int(y)]] for x, y in zip(*record.arrays, strict=True)
    ]
    _table(path, [[*names, "species"], *rows])


def _houses(path: Path) -> None:
    """Made prices: mostly a sum of what is in the columns, with gaps, categories, a date and a text."""
    rng, n = np.random.default_rng(0), 800
    area, rooms, built = rng.uniform(30, 250, n), rng.integers(1, 8, n), rng.integers(1900, 2024, n)
    places = {"centre": 90_000.0, "harbour": 40_000.0, "hills": 60_000.0, "suburb": 0.0}
    place = rng.choice(list(places), n, p=[0.2, 0.2, 0.1, 0.5])
    state = rng.choice(["poor", "fair", "good", "excellent"], n)
    day = np.datetime64("2021-01-01") + rng.integers(0, 1000, n)
    words = {"garden": 15_000.0, "garage": 10_000.0, "lift": 5_000.0, "view": 20_000.0, "quiet": 4_000.0}
    words |= {"balcony": 6_000.0, "cellar": 3_000.0, "damp": -12_000.0, "noisy": -8_000.0}
    texts = [list(rng.choice(list(words), rng.integers(1, 6), replace=False)) for _ in range(n)]
    worth = {"poor": -40_000.0, "fair": 0.0, "good": 20_000.0, "excellent": 45_000.0}
    price = 60_000 + 2_200 * area + 8_000 * rooms + 400 * (built - 1960) + np.array([places[p] for p in place])
    price += np.array([worth[s] for s in state]) + np.array([sum(words[w] for w in text) for text in texts])
    price += 60 * (day - np.datetime64("2021-01-01")).astype(int) + rng.normal(0, 8_000, n)
    gaps = rng.random((n, 3)) < (0.01, 0.1, 0.03)
    rows: list[list[object]] = [["id", "area", "rooms", "built", "place", "state", "sold", "notes", "price"]]
    for i in range(n):
        text = " and ".join([", ".join(texts[i][:-1]), texts[i][-1]]) if len(texts[i]) > 1 else texts[i][0]
        row = [f"H{i:04d}", f"{area[i]:.1f}", rooms[i], built[i], place[i], state[i], day[i], text, f"{price[i]:.0f}"]
        for column, gap in zip((1, 3, 4), gaps[i], strict=True):
            row[column] = "" if gap else row[column]
        rows.append(row)
    _table(path, rows)


def _images(path: Path) -> None:
    np.save(path, digits().test.features[:10])


def _text(path: Path) -> None:
    """What the package says about its layers and models: some hundred kilobytes of English and formulas."""
    said: list[str] = []
    for package in (nn, models):
        root = Path(inspect.getfile(package)).parent
        for file in sorted(root.rglob("*.py")):
            tree = ast.parse(file.read_text(encoding="utf-8"))
            kinds = (ast.Module, ast.ClassDef, ast.FunctionDef)
            said += [text for node in ast.walk(tree) if isinstance(node, kinds) and (text := ast.get_docstring(node))]
    write_atomically(path, "\n\n".join(said) + "\n")


def _pairs(path: Path) -> None:
    """Dates in words, and as numbers."""
    rng = np.random.default_rng(0)
    days = np.unique(np.datetime64("1950-01-01") + rng.integers(0, 30_000, 4000))
    rng.shuffle(days)
    rows = [[f"{day.item():%A}, {day.item().day} {day.item():%B %Y}", str(day)] for day in days]
    _table(path, [["source", "target"], *rows], "\t")


def _photos(path: Path) -> None:
    """Small images of shapes, a folder for each."""
    for i, (image, label) in enumerate(zip(*make_shapes(200), strict=True)):
        place = path / SHAPES[int(label)]
        place.mkdir(parents=True, exist_ok=True)
        np.save(place / f"{i:03d}.npy", image)


def _sounds(path: Path) -> None:
    write_sounds(path)


TRAIN = "wonderland train --data "
EXAMPLES: dict[str, Example] = {
    "flowers.csv": Example("150 flowers: four lengths and the kind", f"{TRAIN}flowers.csv", _flowers),
    "houses.csv": Example(
        "800 made houses with gaps, categories, dates and texts", f"{TRAIN}houses.csv --set data.target=price", _houses
    ),
    "images.npy": Example(
        "ten handwritten digits", "wonderland train && wonderland predict runs/digits-cnn --data images.npy", _images
    ),
    "some_text.txt": Example("what the package says about itself", f"{TRAIN}some_text.txt", _text),
    "pairs.tsv": Example("dates in words and in numbers", "wonderland train --model seq2seq --data pairs.tsv", _pairs),
    "photos": Example("a folder of small images of four shapes", f"{TRAIN}photos", _photos),
    "sounds": Example("a folder of WAV files", f"{TRAIN}sounds", _sounds),
}
