"""Five kinds of language models over characters learn the same text for the same time. Book, chapters 8, 11 and 13.

    python examples/character_models.py                          # a few lines, 100 steps each
    python examples/character_models.py shakespeare.txt          # a whole file, 90 seconds each
    python examples/character_models.py shakespeare.txt 300 gpt  # so many seconds, and only some of them

The models are those of `wonderland train`, and so are the optimizer and its settings. The last tenth of a file is for
testing: bits per character there. How many steps fit into the time is found from the first ones.
"""

from __future__ import annotations

import sys
import time

import numpy as np

import wonderland as wl
from wonderland import recipes
from wonderland.optim.by_name import muon

VERSE = """\
Tyger Tyger, burning bright,
In the forests of the night;
What immortal hand or eye,
Could frame thy fearful symmetry?
"""
MODELS = ("wavenet", "gpt", "lstm", "rwkv", "mamba")
SMALL = {"wavenet": {"channels": 16, "dilations": [1, 2, 4, 8]}, "gpt": {"embed_dim": 16, "depth": 1}}
FIRST = 8  # steps that are timed
STEPS = 100  # for a few lines


def windows(ids: np.ndarray, context: int, stride: int) -> tuple[np.ndarray, np.ndarray]:
    """Inputs (n, context), and targets, which are the same one character later."""
    rows = np.lib.stride_tricks.sliding_window_view(ids, context + 1)[::stride]
    return rows[:, :-1], rows[:, 1:]


def batches(data: tuple[np.ndarray, np.ndarray], count: int, batch: int) -> wl.data.DataLoader:
    """So many batches, drawn by chance."""
    sampler = wl.data.RandomSampler(len(data[0]), num_samples=count * batch)
    return wl.data.DataLoader(wl.data.TensorDataset(*data), batch, sampler=sampler)


def trained(
    name: str, size: int, data: tuple[np.ndarray, np.ndarray], seconds: float, batch: int, lr: float
) -> tuple[wl.nn.Module, int]:
    """A model of a name after so many seconds, or some steps if there are none, and the number of its steps."""
    settings = {"name": name, **(SMALL.get(name, {"embed_dim": 16, "depth": 1}) if size < 50 else {})}

    def run(steps: int) -> tuple[wl.nn.Module, float]:
        wl.random.seed(0)
        model = recipes.build(settings, data[0].shape[1:], size, {"task": "language"})
        start = time.perf_counter()
        wl.train.fit(
            model,
            wl.nn.CrossEntropyLoss(),
            batches(data, steps, batch),
            epochs=1,
            optimizer=muon(model, lr, weight_decay=0.1),
            schedule=wl.optim.schedules.warmup(steps // 20 + 1, wl.optim.schedules.cosine(lr, steps)),
            clip_norm=1.0,
            progress=False,
        )
        return model, time.perf_counter() - start

    if not seconds:
        return run(STEPS)[0], STEPS
    run(FIRST)  # compiles
    some, more = run(FIRST)[1], run(5 * FIRST)[1]  # their difference has neither the beginning nor the end of a run
    steps = max(FIRST, int(seconds * 4 * FIRST / max(more - some, more / 2)))
    return run(steps)[0], steps


def main(file: str | None = None, seconds: float | None = None, *names: str) -> dict[str, float]:
    small = file is None
    text = VERSE
    if file is not None:
        with open(file, encoding="utf-8") as source:
            text = source.read()
    tokenizer = wl.text.CharTokenizer.train(text)
    ids = np.asarray(tokenizer.encode(text))
    context, end = (32, len(ids)) if small else (128, len(ids) * 9 // 10)
    data = windows(ids[:end], context, 1 if small else 32)
    test = data if small else windows(ids[end:], context, context)
    seconds = (0.0 if small else 90.0) if seconds is None else float(seconds)
    budget = f"{seconds:g} s" if seconds else f"{STEPS} steps"
    print(f"{len(ids):,} characters of {tokenizer.vocab_size} kinds, {budget} for each model")
    print(f"{'model':10}{'parameters':>12}{'steps':>8}{'bits per character':>20}")
    found = {}
    for name in names or MODELS:
        model, steps = trained(name, tokenizer.vocab_size, data, seconds, 16 if small else 32, 8e-3)
        loss = wl.train.evaluate(model, "cross_entropy", test, batch_size=32)["loss"]
        found[name] = loss / np.log(2)
        print(f"{name:10}{model.num_parameters():>12,}{steps:>8,}{found[name]:>20.3f}", flush=True)
    return found


if __name__ == "__main__":
    main(*sys.argv[1:])
