"""Classes of texts: a table with a column of texts and one of classes. Book, section 8.2."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from typing import Any

import numpy as np

from ...data import DatasetRecord
from ...errors import FileError, InputError
from ...text import Tokenizer, WordTokenizer
from .supervised import Supervised, answers, checked, described, parts, rows_of
from .task import Prepared

SPECIAL = ["[PAD]", "[UNK]"]


class Texts(Supervised):
    """Words as tokens; texts are cut to `length` tokens or filled up to it."""

    name = "texts"

    def prepare(self, data: Mapping[str, Any], validation: float, seed: int) -> Prepared:
        path, length = str(data["name"]), int(data.get("length", 64))
        texts, labels = read_column(path, data.get("text", "text")), read_column(path, data.get("target", "target"))
        names = tuple(sorted(set(labels)))
        classes = np.array([names.index(label) for label in labels], np.int64)
        _, y, names = checked(DatasetRecord(np.zeros((len(texts), 1), np.float32), classes, path, target_names=names))
        rest, held, test = parts(DatasetRecord(np.zeros((len(texts), 1)), y, path), y, names, validation, seed)
        size = int(data.get("vocabulary", 10_000))
        tokenizer = WordTokenizer.train([texts[i] for i in rest], size, special_tokens=SPECIAL, lowercase=True)
        x = encoded(tokenizer, texts, length)
        about = {"class_names": list(names), "tokenizer": tokenizer.to_str(), "vocabulary": tokenizer.vocab_size}
        return Prepared(path, *rows_of(x, y, rest, held, test), (length,), len(names), about)

    def around(self, model: Any, x: Any) -> Any:
        return model

    def outcome(self, model: Any, data: Prepared) -> dict[str, Any]:
        return {**super().outcome(model, data), "examples": None}

    def predict(self, model: Any, data: Mapping[str, Any], shape: tuple[int, ...], about: Mapping[str, Any]) -> Any:
        texts = read_column(str(data["name"]), data.get("text", "text"))
        x = encoded(Tokenizer.from_str(about["tokenizer"]), texts, shape[0])
        return described(answers(model, x, about["class_names"]), about["class_names"])


def encoded(tokenizer: Tokenizer, texts: list[str], length: int) -> Any:
    """Tokens (n, length); 0 is padding, and a text without a word is one unknown one."""
    x = np.zeros((len(texts), length), np.int64)
    for row, text in zip(x, texts, strict=True):
        ids = np.asarray(tokenizer.encode(text))[:length]
        row[: len(ids)] = ids
        if not len(ids):
            row[0] = 1
    return x


def read_column(path: str, column: Any) -> list[str]:
    """The texts of a column of a CSV file."""
    try:
        with open(path, encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file, delimiter="\t" if path.endswith(".tsv") else ","))
    except OSError as error:
        raise FileError(f"cannot read {path}: {error.strerror}.", "--data with the path of a CSV file") from None
    if not rows:
        raise InputError(f"{path}: there are no rows.", "a table with a header and rows")
    if column not in rows[0]:
        raise InputError(
            f"{path}: there is no column {column!r}.",
            f"--set data.text=... and --set data.target=... with one of {', '.join(map(str, rows[0]))}",
        )
    return [row[column] or "" for row in rows]
