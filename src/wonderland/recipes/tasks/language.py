"""Language models: a text in, the same text one token later out. Book, sections 8.4 and 11.2.4."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from ... import metrics, nn
from ...core.errors import FileError, InputError
from ...metrics.metric import Metric
from ...text import BPETokenizer, ByteTokenizer, CharTokenizer, Tokenizer, WordTokenizer
from ..inputs import Options, refuse_options
from .task import Arrays, Known, Prepared, Task
from .written import language_outcome

TOKENIZERS = ("char", "word", "byte", "bpe")
IGNORED = -100  # the target of a token that does not count


class Language(Task):
    """Windows of `context` tokens of a text file: its last tenth is for testing, the piece before it to validate."""

    name = "language"
    batch = 32
    instead = "`wonderland generate` for a text"
    needs = "tokenizer"

    def has_classes(self, about: Options) -> bool:
        return True  # the tokens

    def prepare(
        self, data: Options, validation: float, seed: int, *, run: Known = None, sequences: bool = False
    ) -> Prepared:
        refuse_options(self.name, data, ("context", "stride", "tokenizer", "vocabulary"))
        context, stride = counted(data, "context", 128, 2), counted(data, "stride", 32)
        text = read_text(str(data["name"]))
        tokenizer = _trained(text, data) if run is None else tokenizer_of(run)
        ids = encoded_text(tokenizer, text, str(data["name"]))
        n = len(ids)
        test, held = cut_points(str(data["name"]), n, context + 1, validation)
        about = {"tokenizer": tokenizer.to_str(), "context": context, "characters_per_token": len(text) / n}
        middle = _windows(ids[held:test], context, context) if validation else None
        parts = _windows(ids[:held], context, stride), middle, _overlapping(ids[test:], context)
        return Prepared(str(data["name"]), *parts, (context,), tokenizer.vocab_size, about)

    def everything(self, data: Options, run: Options, sequences: bool) -> tuple[Arrays, int, list[str]]:
        context = counted(data, "context", 128, 2)
        ids = encoded_text(tokenizer_of(run), read_text(str(data["name"])), str(data["name"]))
        if len(ids) <= context:
            raise InputError(
                f"{data['name']}: {len(ids)} tokens are too few for a window of {context}.", "a longer text"
            )
        return _overlapping(ids, context), 0, []

    def like_those_of(self, settings: Options, data: Options, run: Options, targets: bool) -> Options:
        refuse_options(self.name, data, ("context", "stride"))
        return {**{name: settings[name] for name in ("context", "stride") if name in settings}, **data}

    def loss(self, smoothing: float, about: Options) -> nn.Module:
        return nn.CrossEntropyLoss(label_smoothing=smoothing)

    def metrics(self, about: Options) -> list[Metric]:
        return [metrics.Perplexity(), metrics.BitsPerCharacter(about["characters_per_token"])]

    def outcome(self, model: nn.Module, data: Prepared) -> dict[str, Any]:
        return {"language": language_outcome(model, tokenizer_of(data.about), data)}


def tokenizer_of(about: Options) -> Tokenizer:
    """The tokenizer that belongs to a model."""
    return Tokenizer.from_str(about["tokenizer"])


def counted(data: Options, name: str, default: int, least: int = 1) -> int:
    """An option of the data that is a whole number."""
    value = data.get(name, default)
    if type(value) is not int or value < least:
        raise InputError(f"data.{name} = {value!r}.", f"a whole number from {least} on, such as {default}")
    return value


def is_texts(source: object) -> bool:
    """Whether a source is a list of texts in memory."""
    return isinstance(source, (list, tuple)) and bool(source) and all(isinstance(text, str) for text in source)


def read_text(path: str) -> str:
    """The text of a file in UTF-8, or of standard input if the path is "-"."""
    try:
        if path == "-":
            found = sys.stdin.buffer.read()
        else:
            with open(path, "rb") as file:
                found = file.read()
    except OSError as error:
        raise FileError(f"cannot read {path}: {error.strerror}.", "--data with the path of a text file") from None
    try:
        text = found.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = found[: error.start].count(b"\n") + 1
        raise FileError(
            f"{path} is no text in UTF-8: byte {found[error.start]:#x} in line {line}.",
            "the text in UTF-8; `iconv -f latin1 -t utf-8` converts one in Latin-1",
        ) from None
    if "\0" in text:
        raise FileError(f"{path} is no text: it has a zero byte.", "a text file")
    return text.replace("\r\n", "\n")


def encoded_text(tokenizer: Tokenizer, text: str, name: str) -> np.ndarray:
    """The tokens of a text, without any around it; special ones that are written in it are text."""
    ids = tokenizer.encode(text, add_bos=False, add_eos=False, split_special_tokens=True)
    if not len(ids):
        raise InputError(f"{name}: the text is empty.", "a text file with something in it")
    return np.asarray(ids, np.int64)


def cut_points(name: str, n: int, least: int, validation: float) -> tuple[int, int]:
    """Where the test part of n tokens begins, and the part to validate with, each of `least` tokens or more."""
    test = n - max(n // 10, least)
    held = test - max(round(test * validation), least) if validation else test
    if held < least:
        raise InputError(
            f"{name}: {n} tokens are too few for windows of {least - 1}.", "a longer text, or --set data.context=16"
        )
    return test, held


def _trained(text: str, data: Options) -> Tokenizer:
    kind = str(data.get("tokenizer", "char"))
    if kind not in TOKENIZERS:
        raise InputError(f"there is no tokenizer {kind!r}.", f"one of {', '.join(TOKENIZERS)}")
    if not text:
        raise InputError(f"{data['name']}: the text is empty.", "a text file with something in it")
    if "vocabulary" in data and kind in ("char", "byte"):
        raise InputError(f"data.vocabulary: the tokenizer {kind} has a size of its own.", "tokenizer word or bpe")
    vocabulary = counted(data, "vocabulary", 1000)
    if kind == "word":
        return WordTokenizer.train(text, vocabulary, special_tokens=["[UNK]"], keep_spaces=True)
    if kind == "bpe":
        return BPETokenizer.train(text, vocabulary)
    return CharTokenizer.train(text) if kind == "char" else ByteTokenizer()


def _windows(ids: np.ndarray, context: int, stride: int) -> Arrays:
    rows = np.lib.stride_tricks.sliding_window_view(ids, context + 1)[::stride]
    return rows[:, :-1], rows[:, 1:]


def _overlapping(ids: np.ndarray, context: int) -> Arrays:
    """Windows that begin every half context, and of which the later half counts: each token is predicted from half a
    context or more, but for those at the very beginning."""
    half = context // 2
    x, y = _windows(ids, context, half)
    y = y.copy()
    y[1:, : context - half] = IGNORED
    return x, y
