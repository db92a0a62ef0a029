"""Classes of texts: a table with a column of texts and one of classes. Book, section 8.2."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ... import nn
from ...core.errors import InputError
from ...data import DatasetRecord
from ...data.tables.reading import read_table
from ...data.tables.table import Column, Table
from ...text import Tokenizer, WordTokenizer
from ..inputs import Options, refuse_options
from ..table_inputs import with_target
from .supervised import Supervised, checked, parts, rows_of
from .task import Known, Prepared, Whole

OF_FILES = ("delimiter", "encoding", "expect_size", "expect_sha256")
SPECIAL = ["[PAD]", "[UNK]"]


class Texts(Supervised):
    """Words as tokens; texts are cut to `length` tokens or filled up to it."""

    name = "texts"

    def prepare(
        self, data: Options, validation: float, seed: int, *, run: Known = None, sequences: bool = False
    ) -> Prepared:
        refuse_options(self.name, data, ("text", "target", "length", "vocabulary", *OF_FILES))
        inputs, notes = columns_of(data, run), list[str]()
        table = _labelled(read_texts(data, inputs["text"]), inputs["target"], notes)
        texts = table[inputs["text"]].strings().tolist()
        known = None if run is None else run["class_names"]
        y, names = _classes(table, inputs["target"], known)
        rest, held, test = parts(DatasetRecord(np.zeros((len(y), 1)), y, table.name), y, names, validation, seed)
        tokenizer = _trained([texts[i] for i in rest], data) if run is None else Tokenizer.from_str(run["tokenizer"])
        length = int(data.get("length", 64))
        x = encoded(tokenizer, texts, length)
        about = {
            "class_names": list(names),
            "tokenizer": tokenizer.to_str(),
            "vocabulary": tokenizer.vocab_size,
            "inputs": inputs,
        }
        cut = rows_of(x, y, rest, held, test)
        return Prepared(table.name, *cut, (length,), len(names), about, notes=tuple(notes))

    def read_all(self, data: Options, run: Options, *, targets: bool, sequences: bool = False) -> Whole:
        inputs = columns_of(data, run)
        table = read_texts(data, inputs["text"])
        n, y = len(table), None
        if targets:
            table = _labelled(table, inputs["target"], [])
            y, _ = _classes(table, inputs["target"], run["class_names"], least=1)
        column = table[inputs["text"]]
        gone = np.count_nonzero(column.missing)
        notes = (f"{gone:,} texts are missing, and read as one unknown word",) if gone else ()
        x = encoded(Tokenizer.from_str(run["tokenizer"]), column.strings().tolist(), int(data.get("length", 64)))
        return Whole(x, y, table, (), n - len(table), notes)

    def like_those_of(self, settings: Options, data: Options, run: Options, targets: bool) -> Options:
        columns = ("text", "target") if targets else ("text",)
        refuse_options(self.name, data, (*columns, *OF_FILES))
        return {**{name: settings[name] for name in (*columns, "length") if name in settings}, **data}

    def around(self, model: nn.Module, x: np.ndarray, about: Options) -> nn.Module:
        return model

    def outcome(self, model: nn.Module, data: Prepared) -> dict[str, Any]:
        return {**super().outcome(model, data), "examples": None}

    def evidence(self, model: nn.Module, data: Prepared, outcome: Options) -> Options | None:
        told = super().evidence(model, data, outcome)
        return None if told is None else {**told, "form": "codes"}


def _trained(texts: list[str], data: Options) -> Tokenizer:
    size = int(data.get("vocabulary", 10_000))
    return WordTokenizer.train(texts, size, special_tokens=SPECIAL, lowercase=True)


def encoded(tokenizer: Tokenizer, texts: list[str], length: int) -> np.ndarray:
    """Tokens (n, length); 0 is padding, and a text without a word is one unknown one."""
    x = np.zeros((len(texts), length), np.int64)
    for row, text in zip(x, texts, strict=True):
        ids = np.asarray(tokenizer.encode(text))[:length]
        row[: len(ids)] = ids
        if not len(ids):
            row[0] = 1
    return x


def columns_of(data: Options, run: Known) -> dict[str, str]:
    """The names of the columns of texts and of classes: as they are said, or as they were in training."""
    known = {"text": "text", "target": "target"} if run is None else run.get("inputs", {})
    return {which: str(data.get(which, name)) for which, name in known.items()}


def read_texts(data: Options, column: str) -> Table:
    """The table of a source; a list of texts is its column of texts."""
    source = data["name"]
    if isinstance(source, (list, tuple)) and source and all(isinstance(text, str) for text in source):
        source = {column: list(source)}
    table = read_table(source, **{name: data[name] for name in OF_FILES if name in data})
    if not len(table):
        raise InputError(f"{table.name}: there are no texts.", "a table that is not empty")
    column_of(table, column, "data.text")
    return table


def column_of(table: Table, name: str, option: str) -> Column:
    """A column, or the error that says which option names it."""
    if name not in table.columns:
        raise InputError(
            f"{table.name}: there is no column {name!r}.",
            f"--set {option}=... with one of {', '.join(map(str, table.names))}",
        )
    return table[name]


def _labelled(table: Table, target: str, notes: list[str]) -> Table:
    """The rows whose class is there."""
    column_of(table, target, "data.target")
    return with_target(table, target, notes)


def _classes(
    table: Table, target: str, known: Sequence[str] | None, least: int = 5
) -> tuple[np.ndarray, tuple[str, ...]]:
    """The numbers of the classes among those that are known, or else among the table's; and their names."""
    labels = table[target].strings().tolist()
    names = tuple(sorted(set(labels)))
    place = {name: i for i, name in enumerate(names)}
    classes = np.array([place[label] for label in labels], np.int64)
    record = DatasetRecord(np.zeros((len(labels), 1), np.float32), classes, table.name, target_names=names)
    _, y, chosen = checked(record, known, least=least)
    return y, chosen
