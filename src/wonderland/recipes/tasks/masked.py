"""Masked language models: a text with some tokens hidden in, the hidden tokens out. Book, section 11.2.4."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ... import metrics, nn, train
from ...core.errors import InputError
from ...data.masking import IGNORED, MaskedTokens
from ...metrics.metric import Metric
from ...models import MaskedLanguageModel
from ...text import CharTokenizer, Tokenizer, WordPieceTokenizer
from ..inputs import Options, refuse_options
from ..predictions import Predictions
from .language import counted, cut_points, encoded_text, is_texts, read_text, tokenizer_of
from .task import Arrays, Known, Prepared, Task
from .written import masked_outcome

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
PAD, UNK, CLS, SEP, MASK = range(5)  # their ids, for they come first
TOKENIZERS = ("word_piece", "char")


class Masked(Task):
    """Windows of `context` tokens, [CLS] and [SEP] among them; the share `masked` is hidden, in each epoch another."""

    name = "masked"
    batch = 32
    instead = "a text file with [MASK] in its lines"
    needs = "tokenizer"

    def has_classes(self, about: Options) -> bool:
        return True  # the tokens

    def prepare(
        self, data: Options, validation: float, seed: int, *, run: Known = None, sequences: bool = False
    ) -> Prepared:
        refuse_options(self.name, data, ("context", "stride", "tokenizer", "vocabulary", "masked"))
        context = counted(data, "context", 64, 4)
        stride, share = counted(data, "stride", context - 2), data.get("masked", 0.15)
        if type(share) is not float or not 0 < share < 1:
            raise InputError(f"data.masked = {share!r}.", "a share of the tokens, such as 0.15")
        name = str(data["name"])
        text = read_text(name)
        tokenizer = _trained(text, data) if run is None else tokenizer_of(run)
        ids = encoded_text(tokenizer, text, name)
        test, held = cut_points(name, len(ids), context - 1, validation)
        about = {
            "tokenizer": tokenizer.to_str(),
            "context": context,
            "masked": share,
            "vocabulary": tokenizer.vocab_size,
        }
        rows = [_rows(ids[:held], context, stride), _rows(ids[held:test], context), _rows(ids[test:], context)]
        rng = np.random.default_rng(seed)
        first, middle, last = (Hiding(about)((part, np.full(part.shape, IGNORED)), rng) for part in rows)
        return Prepared(name, first, middle if validation else None, last, (context,), tokenizer.vocab_size, about)

    def like_those_of(self, settings: Options, data: Options, run: Options, targets: bool) -> Options:
        kept = ("context", "stride", "masked") if targets else ()
        refuse_options(self.name, data, kept)
        return {**{name: settings[name] for name in kept if name in settings}, **data}

    def drawn_anew(self, part: Arrays, about: Options) -> Callable[..., Arrays]:
        return Hiding(about)

    def loss(self, smoothing: float, about: Options) -> nn.Module:
        return nn.CrossEntropyLoss(label_smoothing=smoothing)

    def metrics(self, about: Options) -> list[Metric]:
        return [metrics.TokenAccuracy(), metrics.Perplexity()]

    def outcome(self, model: nn.Module, data: Prepared) -> dict[str, Any]:
        assert isinstance(model, MaskedLanguageModel)
        return {"language": masked_outcome(model, tokenizer_of(data.about), data.test, IGNORED)}

    def predict(self, model: nn.Module, data: Options, shape: tuple[int, ...], about: Options) -> Predictions:
        """The lines of a text file with the likeliest token in the place of every [MASK], and its probability."""
        tokenizer, source = tokenizer_of(about), data["name"]
        name = "the texts" if is_texts(source) else str(source)
        lines = [line for line in (source if is_texts(source) else read_text(name).split("\n")) if line.strip()]
        x = np.zeros((len(lines), shape[0]), np.int64)
        for row, line in zip(x, lines, strict=True):
            ids = [CLS, *tokenizer.encode(line, add_bos=False, add_eos=False).tolist(), SEP]
            if MASK not in ids or len(ids) > shape[0]:
                what = "no [MASK]" if MASK not in ids else f"{len(ids)} tokens, the model takes {shape[0]}"
                raise InputError(f"{name}: the line {line[:40]!r} has {what}.", "short lines such as: the [MASK] sat")
            row[: len(ids)] = ids
        if not lines:
            raise InputError(f"{name}: there are no lines.", "a line for each example, with [MASK] in it")
        scores = np.asarray(train.predict(Filling(model), x), np.float64)
        scores[..., : len(SPECIAL)] = -np.inf  # what was hidden is text
        chances = np.exp(scores - scores.max(-1, keepdims=True))
        chances /= chances.sum(-1, keepdims=True)
        filled = np.where(x == MASK, chances.argmax(-1), x)
        sure = [float(c[row == MASK].max(-1).min()) for c, row in zip(chances, x, strict=True)]
        return Predictions([tokenizer.decode(row[row != PAD]) for row in filled], confidence=np.array(sure))


class Filling(nn.Module):
    """A masked language model that does not see padding, which is the token 0."""

    def __init__(self, net: nn.Module) -> None:
        self.net = net

    def forward(self, tokens):  # type: ignore[no-untyped-def]
        return self.net(tokens, token_mask=tokens != PAD)


class Hiding:
    """Hides tokens of a batch, other ones each time: those that were hidden before come back from the targets."""

    random = True

    def __init__(self, about: Options) -> None:
        self.share, self.vocabulary = about["masked"], about["vocabulary"]

    def __call__(self, batch: Arrays, rng: np.random.Generator) -> Arrays:
        visible, targets = map(np.asarray, batch)
        task = MaskedTokens(
            np.where(targets == IGNORED, visible, targets), MASK, self.share, vocabulary_size=self.vocabulary,
            random_share=0.1, keep_share=0.1, special=(PAD, UNK, CLS, SEP, MASK),
        )  # fmt: skip
        drawn = [task.draw(index, rng) for index in range(len(task))]
        return np.stack([x for x, _ in drawn]), np.stack([y for _, y in drawn])


def _trained(text: str, data: Options) -> Tokenizer:
    kind = str(data.get("tokenizer", "word_piece"))
    if kind not in TOKENIZERS:
        raise InputError(f"there is no tokenizer {kind!r} for this.", f"one of {', '.join(TOKENIZERS)}")
    if not text.strip():
        raise InputError(f"{data['name']}: the text is empty.", "a text file with something in it")
    if kind == "char":
        if "vocabulary" in data:
            raise InputError("data.vocabulary: the tokenizer char has a size of its own.", "tokenizer word_piece")
        return CharTokenizer.train(text, special_tokens=SPECIAL)
    return WordPieceTokenizer.train(text, counted(data, "vocabulary", 2000), special_tokens=SPECIAL)


def _rows(ids: np.ndarray, context: int, stride: int | None = None) -> np.ndarray:
    inner = context - 2
    if len(ids) < inner:
        return np.zeros((0, context), np.int64)
    rows = np.lib.stride_tricks.sliding_window_view(ids, inner)[:: stride or inner]
    return np.concatenate([np.full((len(rows), 1), CLS), rows, np.full((len(rows), 1), SEP)], axis=1)
