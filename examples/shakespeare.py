"""A causal convolutional network that learns to write, character by character. Book, sections 8.3 and 8.4.

    python examples/shakespeare.py                # fourteen lines, in a few seconds: it learns some of them by heart
    python examples/shakespeare.py FILE [EPOCHS]  # a text of your own, such as all plays of Shakespeare in one file

The first nine tenths of the text are for training, the last tenth says how well the model predicts text that it never
saw: -log2 p(character | those before), in bits. For a million characters of Shakespeare it is 2.5 after one epoch,
which two cores do in less than two minutes.
"""

from __future__ import annotations

import sys
import time

import numpy as np

import wonderland as wl

SONNET = """Shall I compare thee to a summer's day?
Thou art more lovely and more temperate:
Rough winds do shake the darling buds of May,
And summer's lease hath all too short a date;
Sometime too hot the eye of heaven shines,
And often is his gold complexion dimm'd;
And every fair from fair sometime declines,
By chance or nature's changing course untrimm'd;
But thy eternal summer shall not fade,
Nor lose possession of that fair thou ow'st;
Nor shall death brag thou wander'st in his shade,
When in eternal lines to time thou grow'st:
So long as men can breathe or eyes can see,
So long lives this, and this gives life to thee.
"""


def fit(model: wl.models.ConvLanguageModel, ids: np.ndarray, context: int, batch: int, epochs: int, lr: float) -> int:
    """Learn to predict each character from those before it in windows of the text; the number of steps."""
    windows = wl.data.NextTokenDataset(ids, context, stride=context // 2)
    loader = wl.data.DataLoader(windows, batch_size=min(batch, len(windows)), shuffle=True, drop_last=True)
    steps = epochs * len(loader)
    wl.train.fit(
        model,
        wl.nn.CrossEntropyLoss(),
        loader,
        epochs=epochs,
        optimizer=wl.optim.AdamW(model, lr, betas=(0.9, 0.99), weight_decay=0.01),
        schedule=wl.optim.schedules.one_cycle(lr, steps),
        clip_norm=1.0,
        progress=False,
    )
    return steps


def bits_per_character(model: wl.models.ConvLanguageModel, ids: np.ndarray, chunk: int = 2048) -> float:
    """The mean of -log2 p(character | all before it), from one pass over the text, a chunk at a time."""

    @wl.jit
    def read(model, tokens, targets, cache):
        logits, _ = model.extend(tokens, cache)  # the cache is changed in place
        return wl.nn.functional.cross_entropy(logits, targets, reduction="sum")

    total, cache = 0.0, model.new_cache(1)
    for start in range(0, len(ids) - 1, chunk):
        piece = ids[None, start : start + chunk + 1]
        total += read(model, piece[:, :-1], piece[:, 1:], cache).item()
    return total / (len(ids) - 1) / np.log(2)


def main(file: str | None = None, epochs: int | None = None) -> float:
    wl.random.seed(0)
    text = SONNET
    if file is not None:
        with open(file, encoding="utf-8") as source:
            text = source.read()
    tokenizer = wl.text.CharTokenizer.train(text)
    ids = np.asarray(tokenizer.encode(text))
    train, test = ids[: len(ids) * 9 // 10], ids[len(ids) * 9 // 10 :]
    small = len(ids) < 20_000
    channels, dilations = (16, (1, 2, 4)) if small else (64, (1, 2, 4, 8, 16, 32))
    model = wl.models.ConvLanguageModel(
        tokenizer.vocab_size, channels, dilations, kernel_size=3, skip_channels=2 * channels
    )
    print(f"{len(ids):,} characters of {tokenizer.vocab_size} kinds; {model.num_parameters():,} parameters")
    print(f"a prediction sees {model.receptive_field} characters")
    start = time.perf_counter()
    if small:
        steps = fit(model, train, context=32, batch=8, epochs=epochs or 40, lr=0.02)
    else:
        steps = fit(model, train, context=128, batch=16, epochs=epochs or 1, lr=0.005)
    seconds = time.perf_counter() - start
    print(f"{steps} steps in {seconds:.0f} s, {steps / seconds:.1f} steps/s")
    bits = {"seen": bits_per_character(model, train[: len(test)]), "new": bits_per_character(model, test)}
    print(f"bits per character: {bits['seen']:.3f} of text that it saw, {bits['new']:.3f} of the last tenth")
    prompt = text[: text.index("\n") + 1] if small else "ROMEO:\n"
    print("---\n" + wl.generation.generate_text(model, tokenizer, prompt, 300, temperature=0.8, key=wl.random.key(1)))
    return bits["new"]


if __name__ == "__main__":
    main(*sys.argv[1:2], *map(int, sys.argv[2:3]))
