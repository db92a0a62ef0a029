"""A small GPT over characters learns a text by heart, and writes it down again. Book, chapter 11, practice.

    python examples/mini_gpt.py                      # a few lines, in some seconds
    python examples/mini_gpt.py shakespeare.txt      # a whole file: its last tenth is for testing, in some minutes
    python examples/mini_gpt.py shakespeare.txt 200  # for so many steps

The perplexity is exp(mean of -log p(character | characters before it)): among how many characters it seems to guess.
"""

from __future__ import annotations

import math
import sys
import time

import numpy as np

import wonderland as wl

VERSE = """\
Tyger Tyger, burning bright,
In the forests of the night;
What immortal hand or eye,
Could frame thy fearful symmetry?
"""


def windows(ids: np.ndarray, context: int, stride: int) -> tuple[np.ndarray, np.ndarray]:
    """Inputs (n, context), and targets, which are the same one character later."""
    rows = np.lib.stride_tricks.sliding_window_view(ids, context + 1)[::stride]
    return rows[:, :-1], rows[:, 1:]


def fit(model: wl.models.GPT, data: tuple[np.ndarray, np.ndarray], steps: int, batch: int, lr: float) -> None:
    """So many steps of Muon for the matrices and AdamW for the rest; the rate rises, then falls by a cosine."""
    sampler = wl.data.RandomSampler(len(data[0]), num_samples=steps * batch)
    body = [(path, p) for path, p in model.named_parameters() if path.startswith("stack") and p.ndim == 2]
    rest = [(path, p) for path, p in model.named_parameters() if not (path.startswith("stack") and p.ndim == 2)]
    warm = steps // 20 + 1
    wl.train.fit(
        model,
        wl.nn.CrossEntropyLoss(),
        wl.data.DataLoader(wl.data.TensorDataset(*data), batch, sampler=sampler),
        epochs=1,
        optimizer=wl.optim.Muon([{"params": body}, {"params": rest, "use_muon": False}], lr, weight_decay=0.1),
        schedule=wl.optim.schedules.warmup(warm, wl.optim.schedules.cosine(lr, steps - warm)),
        clip_norm=1.0,
        progress=False,
    )


def perplexity(model: wl.models.GPT, data: tuple[np.ndarray, np.ndarray]) -> float:
    metric = wl.metrics.Perplexity()
    return wl.train.evaluate(model, "cross_entropy", data, metrics=metric, batch_size=32)["perplexity"]


def main(file: str | None = None, steps: int | None = None) -> tuple[str, float]:
    wl.random.seed(0)
    text = VERSE
    if file is not None:
        with open(file, encoding="utf-8") as source:
            text = source.read()
    tokenizer = wl.text.CharTokenizer.train(text)
    ids = np.asarray(tokenizer.encode(text))
    small = file is None
    context, size = (
        (48, {"embed_dim": 32, "num_heads": 4, "depth": 2})
        if small
        else (128, {"embed_dim": 128, "num_heads": 4, "depth": 4})
    )
    model = wl.models.GPT(tokenizer.vocab_size, context, positions="rotary", **size)
    print(f"{len(ids):,} characters of {tokenizer.vocab_size} kinds; {model.num_parameters():,} parameters")
    end = len(ids) if small else len(ids) * 9 // 10
    train, test = windows(ids[:end], context, 1 if small else 32), windows(ids[end - context - 1 :], context, context)
    before = perplexity(model, test)
    start = time.perf_counter()
    fit(model, train, steps or (300 if small else 1000), batch=16 if small else 32, lr=0.008)
    seconds = time.perf_counter() - start
    after = perplexity(model, train if small else test)
    what = "the text" if small else "the last tenth"
    print(f"perplexity of {what}: {before:.1f} at first, {after:.3f} after {seconds:.0f} s", end="")
    print(f"; {math.log2(after):.3f} bits per character")
    prompt = text[: context // 2] if small else "ROMEO:\n"
    count = len(text) - len(prompt) if small else 400
    settings = {"temperature": 0.0} if small else {"temperature": 0.8, "key": wl.random.key(1)}
    written = wl.generation.generate_text(model, tokenizer, prompt, count, **settings)
    print("---\n" + written)
    if small:
        print(f"--- {'the text, by heart' if written == text else 'not yet the text'}")
    return written, after


if __name__ == "__main__":
    main(*sys.argv[1:2], *map(int, sys.argv[2:3]))
