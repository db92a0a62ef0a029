"""Language models: a text in, the same text one token later out. Book, section 8.4."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ... import metrics, nn
from ...errors import FileError, InputError
from ...text import BPETokenizer, ByteTokenizer, CharTokenizer, Tokenizer, WordTokenizer
from ..inputs import refuse_options
from .task import Arrays, Known, Prepared, Task

TOKENIZERS = ("char", "word", "byte", "bpe")


class Language(Task):
    """Windows of `context` tokens of a text file: its last tenth is for testing, the piece before it to validate."""

    name = "language"
    batch = 32
    instead = "`wonderland generate` for a text"
    needs = "tokenizer"

    def has_classes(self, about: Mapping[str, Any]) -> bool:
        return True  # the tokens

    def prepare(
        self, data: Mapping[str, Any], validation: float, seed: int, *, run: Known = None, sequences: bool = False
    ) -> Prepared:
        refuse_options(self.name, data, ("context", "stride", "tokenizer", "vocabulary"))
        context, stride = int(data.get("context", 128)), int(data.get("stride", 32))
        text = read_text(str(data["name"]))
        tokenizer = _trained(text, data) if run is None else tokenizer_of(run)
        ids = np.asarray(tokenizer.encode(text), np.int64)
        n = len(ids)
        test = n - max(n // 10, context + 1)
        held = test - max(round(test * validation), context + 1) if validation else test
        if held < context + 1:
            raise InputError(f"{data['name']}: {n} tokens are too few for windows of {context}.", "a longer text")
        about = {"tokenizer": tokenizer.to_str(), "context": context, "characters_per_token": len(text) / n}
        cut = [_windows(ids[a:b], context, stride if b == held else context) for a, b in _ranges(held, test, n)]
        middle = cut[1] if validation else None
        return Prepared(str(data["name"]), cut[0], middle, cut[-1], (context,), tokenizer.vocab_size, about)

    def like_those_of(
        self, settings: Mapping[str, Any], data: Mapping[str, Any], run: Mapping[str, Any], targets: bool
    ) -> dict[str, Any]:
        refuse_options(self.name, data, ("context", "stride"))
        return {**{name: settings[name] for name in ("context", "stride") if name in settings}, **data}

    def loss(self, smoothing: float, about: Mapping[str, Any]) -> nn.Module:
        return nn.CrossEntropyLoss(label_smoothing=smoothing)

    def metrics(self, about: Mapping[str, Any]) -> list[Any]:
        return [metrics.BitsPerCharacter(about["characters_per_token"])]


def tokenizer_of(about: Mapping[str, Any]) -> Tokenizer:
    """The tokenizer that belongs to a model."""
    return Tokenizer.from_str(about["tokenizer"])


def read_text(path: str) -> str:
    """The text of a file."""
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except OSError as error:
        raise FileError(f"cannot read {path}: {error.strerror}.", "--data with the path of a text file") from None
    except UnicodeDecodeError:
        raise FileError(f"{path} is no text in UTF-8.", "a text file") from None


def _trained(text: str, data: Mapping[str, Any]) -> Tokenizer:
    kind = str(data.get("tokenizer", "char"))
    if kind not in TOKENIZERS:
        raise InputError(f"there is no tokenizer {kind!r}.", f"one of {', '.join(TOKENIZERS)}")
    if not text:
        raise InputError("the text is empty.", "a text file with something in it")
    if "vocabulary" in data and kind in ("char", "byte"):
        raise InputError(f"data.vocabulary: the tokenizer {kind} has a size of its own.", "tokenizer word or bpe")
    vocabulary = int(data.get("vocabulary", 1000))
    if kind == "word":
        return WordTokenizer.train(text, vocabulary, special_tokens=["[UNK]"], keep_spaces=True)
    if kind == "bpe":
        return BPETokenizer.train(text, vocabulary)
    return CharTokenizer.train(text) if kind == "char" else ByteTokenizer()


def _ranges(held: int, test: int, n: int) -> list[tuple[int, int]]:
    return [(a, b) for a, b in ((0, held), (held, test), (test, n)) if b > a]


def _windows(ids: Any, context: int, stride: int) -> Arrays:
    rows = np.lib.stride_tricks.sliding_window_view(ids, context + 1)[::stride]
    return rows[:, :-1], rows[:, 1:]
