"""What a report shows of a language model: what it writes or fills in, how sure it is, attention, positions."""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import generation, nn, random
from ...core.tensor import Tensor
from ...models import CausalLanguageModel, MaskedLanguageModel
from ...nn.attention.absolute_positions import LearnedPositions
from ...text import Tokenizer
from ...train.evaluation import evaluating, predict
from .task import Arrays, Prepared

PROMPT, LENGTH = 32, 160  # tokens
READ = 14  # tokens whose attention is shown
MAPS = 6  # heads that are shown


def language_outcome(model: nn.Module, tokenizer: Tokenizer, data: Prepared) -> dict[str, Any]:
    """Samples after beginnings of the test text, the trace of one, weights of heads, and how alike positions are."""
    ids = data.test[0]
    size = min(PROMPT, ids.shape[1] // 2)
    prompts = [ids[place, :size] for place in (0, len(ids) // 2)]
    found = generation.generate(model, prompts, LENGTH, temperature=0.8, key=random.key(0))
    samples = [(tokenizer.decode(row[:size]), tokenizer.decode(row[size:])) for row in found]
    tokens = found[0][: ids.shape[1]]
    readable = readable_tokens(tokenizer)
    chain = generation.trace(model, tokens, start=size, name_of=readable.__getitem__)
    shown: dict[str, Any] = {"samples": samples, "trace": chain}
    if isinstance(model, CausalLanguageModel) and isinstance(model.stack, nn.TransformerStack):
        with evaluating(model):
            maps = nn.attention_maps(model, tokens[None, :READ])
        shown["attention"] = (head_weights(maps), [readable[token] for token in tokens[:READ].tolist()])
    return shown | positions_outcome(model)


def masked_outcome(model: MaskedLanguageModel, tokenizer: Tokenizer, test: Arrays, ignored: int) -> dict[str, Any]:
    """Two texts of the test part with the likeliest tokens in the place of hidden ones, weights of heads, positions."""
    x, y = (part[:: max(1, len(part) // 2)][:2] for part in test)
    scores = np.asarray(predict(model, x), np.float64)
    chances = np.exp(scores - scores.max(-1, keepdims=True))
    chances /= chances.sum(-1, keepdims=True)
    readable = readable_tokens(tokenizer)
    texts = [
        [
            (readable[token], None if truth == ignored else (readable[best.argmax()], readable[truth], best.max()))
            for token, truth, best in zip(row, targets, probabilities, strict=True)
        ]
        for row, targets, probabilities in zip(x.tolist(), y.tolist(), chances, strict=True)
    ]
    with evaluating(model):
        maps = nn.attention_maps(model.bert.stack, model.bert.vectors(x[:1, :READ]))
    shown = {"filled": texts, "attention": (head_weights(maps), [readable[token] for token in x[0, :READ].tolist()])}
    return shown | positions_outcome(model)


def readable_tokens(tokenizer: Tokenizer) -> list[str]:
    """What each token stands for, or its name if that is nothing."""
    return [tokenizer.decode([token]) or tokenizer.id_to_token(token) for token in range(tokenizer.vocab_size)]


def positions_outcome(model: nn.Module) -> dict[str, Any]:
    """How alike the positions are, if they are learned."""
    found = [part for part in model.modules() if isinstance(part, LearnedPositions)]
    return {"positions": nn.position_similarity(found[0])} if found else {}


def head_weights(maps: list[Tensor]) -> list[tuple[str, np.ndarray]]:
    """Some heads' weights (t, t) of one text with what they are called: of the first and the last block."""
    found = []
    for number in sorted({0, len(maps) - 1}):
        heads = maps[number].numpy()[0][: MAPS // 2]
        found += [(f"block {number + 1}, head {head + 1}", weights) for head, weights in enumerate(heads)]
    return found
