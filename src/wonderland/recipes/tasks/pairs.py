"""From one text to another: a table with a column of sources and one of targets. Book, section 11.1."""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import generation, metrics, nn
from ...core.arguments import shown
from ...core.errors import InputError
from ...data import DatasetRecord
from ...data.formats.delimited import read_rows
from ...metrics.metric import Metric
from ...models import EncoderDecoder
from ...text import BPETokenizer, CharTokenizer, Tokenizer, WordTokenizer
from ..inputs import Options, refuse_options
from ..predictions import Predictions
from .language import counted, is_texts, read_text, tokenizer_of
from .supervised import parts, rows_of
from .task import Arrays, Known, Prepared, Task

SPECIAL = ["[PAD]", "[UNK]", "[BOS]", "[EOS]"]
PAD, UNK, BOS, EOS = range(4)  # their ids, for they come first
TOKENIZERS = ("char", "word", "bpe")
OF_FILES = ("source", "target", "delimiter")
LONGEST = 1024  # tokens of a text
SHOWN = 200  # outputs that are written for a report


class Pairs(Task):
    """Sources and targets as tokens of one vocabulary, filled up to the longest of each; equal sources stay together.

    An input is a source and the tokens before each of the target's, side by side. An output is right if all of it is.
    """

    name = "pairs"
    needs = "tokenizer"
    batch = 64

    def has_classes(self, about: Options) -> bool:
        return True  # the tokens

    def prepare(
        self, data: Options, validation: float, seed: int, *, run: Known = None, sequences: bool = False
    ) -> Prepared:
        refuse_options(self.name, data, (*OF_FILES, "tokenizer", "vocabulary"))
        name = str(data["name"])
        sources, targets = read_pairs(data)
        first, held, last = _parts(name, sources, validation, seed)
        if run is None:
            tokenizer = _trained([text for i in first for text in (sources[i], targets[i])], data)
            lengths = None
        else:
            tokenizer, lengths = tokenizer_of(run), (run["source_length"], run["target_length"])
        x = _padded(name, [_encoded(tokenizer, text) for text in sources], lengths and lengths[0])
        y = _padded(name, [[*_encoded(tokenizer, text), EOS] for text in targets], lengths and lengths[1])
        before = np.concatenate([np.full((len(y), 1), BOS), np.where(y[:, :-1] == EOS, PAD, y[:, :-1])], axis=1)
        both = np.concatenate([x, before], axis=1)
        about = {
            "tokenizer": tokenizer.to_str(),
            "source_length": x.shape[1],
            "target_length": y.shape[1],
            "start_token": BOS,
        }
        cut = rows_of(both, y, first, held, last)
        return Prepared(name, *cut, (both.shape[1],), tokenizer.vocab_size, about)

    def like_those_of(self, settings: Options, data: Options, run: Options, targets: bool) -> Options:
        columns = OF_FILES if targets else ("source", "delimiter")
        refuse_options(self.name, data, columns)
        return {**{name: settings[name] for name in columns if name in settings}, **data}

    def loss(self, smoothing: float, about: Options) -> nn.Module:
        return nn.CrossEntropyLoss(ignore_index=PAD, label_smoothing=smoothing)

    def metrics(self, about: Options) -> list[Metric]:
        return [metrics.TokenAccuracy(PAD)]

    def measure(self, model: nn.Module, part: Arrays, about: Options) -> dict[str, Any]:
        found = super().measure(model, part, about)
        outputs = written(model, part[0], about)
        found["whole_output_accuracy"] = float(np.mean([_same(o, y) for o, y in zip(outputs, part[1], strict=True)]))
        return found

    def outcome(self, model: nn.Module, data: Prepared) -> dict[str, Any]:
        x, y = (part[:SHOWN] for part in data.test)
        tokenizer, outputs = tokenizer_of(data.about), written(model, x, data.about)
        length = data.about["source_length"]
        pairs = [
            (
                _decoded(tokenizer, source),
                _decoded(tokenizer, target),
                _decoded(tokenizer, output),
                _same(output, target),
            )
            for source, target, output in zip(x[:, :length], y, outputs, strict=True)
        ]
        return {"language": {"pairs": pairs}}

    def predict(self, model: nn.Module, data: Options, shape: tuple[int, ...], about: Options) -> Predictions:
        """What the model writes for the sources of a file, a line or row each."""
        tokenizer = tokenizer_of(about)
        rows = [_encoded(tokenizer, text) for text in read_sources(data)]
        x = _padded("the sources", rows, max(about["source_length"], max(map(len, rows))))
        outputs = written(model, x, {**about, "source_length": x.shape[1]})
        return Predictions([_decoded(tokenizer, output) for output in outputs])


def written(model: nn.Module, x: np.ndarray, about: Options) -> list[np.ndarray]:
    """The likeliest tokens that follow each other, for each source in (n, source_length, ...)."""
    net = model.get_submodule("net")
    assert isinstance(net, EncoderDecoder)
    found: list[np.ndarray] = []
    for start in range(0, len(x), Pairs.batch):
        source = x[start : start + Pairs.batch, : about["source_length"]]
        settings: dict[str, Any] = {"source": source, "source_mask": source != PAD, "stop_tokens": EOS}
        found += generation.greedy(net, None, about["target_length"] + 8, **settings)
    return [row[row != BOS] for row in found]


def read_pairs(data: Options) -> tuple[list[str], list[str]]:
    """The texts of the two columns: those that are named, or the first and the second of two."""
    path = str(data["name"])
    names, rows, lines = _table(data, path)
    chosen = [_column(path, names, data, which, place) for place, which in enumerate(("source", "target"))]
    if len(names) < 2 or (len(names) > 2 and names[0].startswith("column_") and "source" not in data):
        raise InputError(
            f"{path}: {len(names)} columns in line {lines[0]}, and no names of two.",
            "a source and a target with a tab between them, or --set data.source=... data.target=...",
        )
    for row, line in zip(rows, lines, strict=True):
        for place, which in zip(chosen, ("source", "target"), strict=True):
            if not row[place].strip():
                raise InputError(f"{path}: line {line} has no {which}.", "a text in both columns, or without the line")
    sources, targets = ([row[place].strip() for row in rows] for place in chosen)
    if len(sources) < 5:
        raise InputError(f"{path}: {len(sources)} pairs are too few to train and to test.", "five or more")
    return sources, targets


def read_sources(data: Options) -> list[str]:
    """The texts to ask a model about: the column of sources, or the lines of a file without columns."""
    if is_texts(data["name"]):
        if empty := [i for i, text in enumerate(data["name"]) if not text.strip()]:
            raise InputError(f"the text {empty[0]} is empty.", "texts with something in them")
        return [text.strip() for text in data["name"]]
    path = str(data["name"])
    names, rows, lines = _table(data, path)
    place = _column(path, names, data, "source", 0)
    for row, line in zip(rows, lines, strict=True):
        if not row[place].strip():
            raise InputError(f"{path}: line {line} has no source.", "a text in each row")
    return [row[place].strip() for row in rows]


def _table(data: Options, path: str) -> tuple[list[str], list[list[str]], list[int]]:
    """The names of the columns, the rows, and their lines. Fields between tabs are as they are: they have no quotes."""
    named = any(isinstance(data.get(which), str) for which in ("source", "target"))
    delimiter = data.get("delimiter")
    if path.lower().endswith((".csv", ".csv.gz")) or delimiter not in (None, "\t"):
        names, rows, lines, _ = read_rows(path, True if named else None, delimiter)
    else:
        texts = [
            (line.split("\t"), number) for number, line in enumerate(read_text(path).split("\n"), 1) if line.strip()
        ]
        if not texts:
            raise InputError(f"{path} is empty.", "a file with rows")
        width = len(texts[0][0])
        for fields, number in texts:
            if len(fields) != width:
                raise InputError(
                    f"{path}: line {number} has {len(fields)} columns, line {texts[0][1]} has {width}.",
                    "the same number of tabs in every line",
                )
        rows, lines = [fields for fields, _ in texts], [number for _, number in texts]
        names = [f"column_{i}" for i in range(width)]
        if named:
            names, rows, lines = [name.strip() for name in rows[0]], rows[1:], lines[1:]
    if [name.strip().lower() for name in rows[0][:2]] == ["source", "target"]:
        names, rows, lines = [name.strip() for name in rows[0]], rows[1:], lines[1:]
    if not rows:
        raise InputError(f"{path} has a header and no rows.", "a file with rows")
    return names, rows, lines


def _column(path: str, names: list[str], data: Options, which: str, place: int) -> int:
    wanted = data.get(which)
    if type(wanted) is int and 0 <= wanted < len(names):
        return wanted
    lower = [name.lower() for name in names]
    if wanted is None:
        return lower.index(which) if which in lower else min(place, len(names) - 1)
    if wanted in names:
        return names.index(wanted)
    if which == "source" and len(names) == 1:
        return 0  # a file of sources alone, without a header
    raise InputError(
        f"{path}: there is no column {shown(wanted)}.", f"--set data.{which}=... with one of {', '.join(names)}"
    )


def _parts(
    name: str, sources: list[str], validation: float, seed: int
) -> tuple[np.ndarray, np.ndarray | None, np.ndarray]:
    """The rows to train on, to validate with and to test with; no source is in two of them."""
    _, group = np.unique(sources, return_inverse=True)
    several = int(group.max()) + 1
    if several < 5:
        raise InputError(f"{name}: {several} different sources are too few to train and to test.", "five or more")
    record = DatasetRecord(np.zeros((several, 1)), np.zeros(several), name)
    first, held, last = parts(record, np.zeros(several), (), validation, seed)

    def rows(chosen: np.ndarray) -> np.ndarray:
        return np.flatnonzero(np.isin(group, chosen))

    return rows(first), None if held is None else rows(held), rows(last)


def _trained(texts: list[str], data: Options) -> Tokenizer:
    kind = str(data.get("tokenizer", "char"))
    if kind not in TOKENIZERS:
        raise InputError(f"there is no tokenizer {kind!r} for this.", f"one of {', '.join(TOKENIZERS)}")
    if kind == "char":
        if "vocabulary" in data:
            raise InputError("data.vocabulary: the tokenizer char has a size of its own.", "tokenizer word or bpe")
        return CharTokenizer.train(texts, special_tokens=SPECIAL)
    vocabulary = counted(data, "vocabulary", 2000)
    if kind == "bpe":
        return BPETokenizer.train(texts, vocabulary, special_tokens=SPECIAL)
    return WordTokenizer.train(texts, vocabulary, special_tokens=SPECIAL, keep_spaces=True)


def _encoded(tokenizer: Tokenizer, text: str) -> list[int]:
    return tokenizer.encode(text, add_bos=False, add_eos=False, split_special_tokens=True).tolist()


def _decoded(tokenizer: Tokenizer, ids: np.ndarray) -> str:
    return tokenizer.decode(ids[(ids != PAD) & (ids != EOS)])


def _padded(name: str, rows: list[list[int]], length: int | None) -> np.ndarray:
    """Tokens (n, length), or as long as the longest; 0 is padding."""
    longest = max(map(len, rows))
    most = LONGEST if length is None else length
    if longest > most:
        place = int(np.argmax([len(row) for row in rows]))
        raise InputError(
            f"{name}: pair {place + 1} has a text of {longest} tokens, at most {most} are possible.",
            "shorter texts, or --set data.tokenizer=bpe" if length is None else "texts like those of the training",
        )
    x = np.zeros((len(rows), longest if length is None else length), np.int64)
    for line, row in zip(x, rows, strict=True):
        line[: len(row)] = row
    return x


def _same(output: np.ndarray, target: np.ndarray) -> bool:
    """Whether an output is right: all tokens up to the end."""
    return output.tolist() == target[target != PAD].tolist()
