"""Classes of texts: a table with a column of texts and one of classes. Book, section 8.2."""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import nn
from ...core.errors import InputError
from ...data import DatasetRecord
from ...data.formats.delimited import read_rows
from ...text import Tokenizer, WordTokenizer
from ..inputs import Options, refuse_options
from ..predictions import Predictions
from .supervised import Supervised, answers, checked, parts, rows_of
from .task import Known, Prepared

OF_FILES = ("delimiter", "expect_size", "expect_sha256")
SPECIAL = ["[PAD]", "[UNK]"]


class Texts(Supervised):
    """Words as tokens; texts are cut to `length` tokens or filled up to it."""

    name = "texts"

    def prepare(
        self, data: Options, validation: float, seed: int, *, run: Known = None, sequences: bool = False
    ) -> Prepared:
        refuse_options(self.name, data, ("text", "target", "length", "vocabulary", *OF_FILES))
        inputs = columns_of(data, run)
        texts, labels = (read_column(data, inputs[which], f"data.{which}") for which in ("text", "target"))
        path, length = str(data["name"]), int(data.get("length", 64))
        names = tuple(sorted(set(labels)))
        classes = np.array([names.index(label) for label in labels], np.int64)
        record = DatasetRecord(np.zeros((len(texts), 1), np.float32), classes, path, target_names=names)
        _, y, names = checked(record, None if run is None else run["class_names"])
        rest, held, test = parts(DatasetRecord(np.zeros((len(texts), 1)), y, path), y, names, validation, seed)
        tokenizer = _trained([texts[i] for i in rest], data) if run is None else Tokenizer.from_str(run["tokenizer"])
        x = encoded(tokenizer, texts, length)
        about = {
            "class_names": list(names),
            "tokenizer": tokenizer.to_str(),
            "vocabulary": tokenizer.vocab_size,
            "inputs": inputs,
        }
        return Prepared(path, *rows_of(x, y, rest, held, test), (length,), len(names), about)

    def like_those_of(self, settings: Options, data: Options, run: Options, targets: bool) -> Options:
        columns = ("text", "target") if targets else ("text",)
        refuse_options(self.name, data, (*columns, *OF_FILES))
        return {**{name: settings[name] for name in (*columns, "length") if name in settings}, **data}

    def around(self, model: nn.Module, x: np.ndarray, about: Options) -> nn.Module:
        return model

    def outcome(self, model: nn.Module, data: Prepared) -> dict[str, Any]:
        return {**super().outcome(model, data), "examples": None}

    def predict(self, model: nn.Module, data: Options, shape: tuple[int, ...], about: Options) -> Predictions:
        texts = read_column(data, columns_of(data, about)["text"], "data.text")
        x = encoded(Tokenizer.from_str(about["tokenizer"]), texts, shape[0])
        return Predictions.of(answers(model, x, about["class_names"]), about["class_names"])


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


def read_column(data: Options, column: str, option: str) -> list[str]:
    """The texts of a column of a CSV file."""
    names, rows, _, _ = read_rows(data["name"], True, *(data.get(option) for option in OF_FILES))
    if column not in names:
        raise InputError(
            f"{data['name']}: there is no column {column!r}.",
            f"--set {option}=... with one of {', '.join(names)}",
        )
    place = names.index(column)
    return [row[place] for row in rows]
