"""Who can remember over a lag of 200 steps, and who can choose what to remember?

    python examples/delay_tasks.py               # two layers and a lag of 20, in seconds
    python examples/delay_tasks.py all           # the table, some minutes on two cores
    python examples/delay_tasks.py gru mamba     # some of its layers

In the delay task a symbol of eight comes first, and has to be told after 200 blanks. In selective copying four symbols
stand at random places among 200, and have to be told in their order. Each model is one or two blocks of a layer between
the same embedding and the same logits, with the same features and examples. Examples to learn from have all lags up to
200, blanks in front of them; the share of right symbols is that of 500 others with a lag of 200. Whoever guesses has
12.5 %.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable

import numpy as np

import wonderland as wl

nn = wl.nn
E = 64  # features
SYMBOLS = 8


def gated(cell: nn.GRUCell | nn.LSTMCell, lag: int, keep: int, write: int | None = None) -> nn.Module:
    """A cell whose units begin to remember for 1, ..., lag steps: the biases of its gates say for how long.

    `keep` is the place of the gate that keeps the state among those of the cell, `write` that of one that lets new
    things in, which then begins as its opposite.
    """
    times = np.log(np.linspace(1, max(lag - 1, 2), E))
    assert cell.bias_ih is not None
    biases = np.array(cell.bias_ih.numpy())
    biases[keep * E : (keep + 1) * E] = times
    if write is not None:
        biases[write * E : (write + 1) * E] = -times
    cell.bias_ih = wl.asarray(biases)
    return nn.Recurrent(cell)


LAYERS: dict[str, Callable[[int], nn.Module]] = {
    "elman": lambda lag: nn.Recurrent(nn.RNNCell(E, E)),
    "gru": lambda lag: gated(nn.GRUCell(E, E), lag, keep=1),
    "lstm": lambda lag: gated(nn.LSTMCell(E, E), lag, keep=1, write=0),
    "lru": lambda lag: nn.LRU(E, E, E, r_min=0.9, r_max=0.999, max_phase=math.pi / 10),
    "rwkv": lambda lag: nn.RWKVTimeMix(E),
    "mamba": lambda lag: nn.MambaBlock(E),
    "attention": lambda lag: nn.MultiHeadAttention(E, 4, causal=True, positions=nn.Rotary(E // 4)),
}
TASKS = {
    "delay": (wl.data.make_delay_task, 1),
    "selective copy": (wl.data.make_selective_copy_task, 4),
}


def model_of(layer: str, lag: int, depth: int) -> wl.models.SequenceLanguageModel:
    blocks = [nn.MixingBlock(LAYERS[layer](lag), E, norm="rms", mult=2) for _ in range(depth)]
    return wl.models.SequenceLanguageModel(SYMBOLS + 2, E, blocks)


def examples(task: str, lag: int, batch: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Some examples of a lag up to the largest one, with blanks in front so that all are as long."""
    make, length = TASKS[task]
    short = int(np.random.default_rng(seed).integers(length, lag + 1))
    x, y = make(batch, short, length=length, symbols=SYMBOLS, seed=seed)
    front = ((0, 0), (lag - short, 0))
    return np.pad(x, front), np.pad(y, front, constant_values=-100)


@wl.jit
def step(model: nn.Module, optimizer: wl.optim.Optimizer, x: np.ndarray, y: np.ndarray) -> wl.Tensor:
    def loss(model: nn.Module) -> wl.Tensor:
        return nn.functional.cross_entropy(model(x), y)  # targets of -100 do not count

    value, grads = wl.value_and_grad(loss)(model)
    optimizer.step(wl.optim.clip_grad_norm(grads, 1.0)[0])
    return value


def share_right(model: nn.Module, x: np.ndarray, y: np.ndarray) -> float:
    """Of the symbols that are asked for."""
    model.eval()
    found = np.concatenate([np.asarray(wl.jit(lambda m, x: m(x).argmax(-1))(model, part)) for part in np.split(x, 5)])
    model.train()
    return float((found == y)[y >= 0].mean())


def trial(task: str, layer: str, lag: int, steps: int, batch: int = 32) -> tuple[float, int, float]:
    """The share of right symbols after training, the steps that it took, and the seconds."""
    wl.random.seed(0)
    make, length = TASKS[task]
    model = model_of(layer, lag, 1 if task == "delay" else 2)
    optimizer = wl.optim.AdamW(model, 3e-3, weight_decay=0.0)
    test = make(500, lag, length=length, symbols=SYMBOLS, seed=1)
    start, right, done = time.perf_counter(), 0.0, 0
    for done in range(1, steps + 1):
        step(model, optimizer, *examples(task, lag, batch, seed=1000 + done))
        if done % (steps // 10) == 0:
            right = share_right(model, *test)
            if right > 0.99:
                break
    return right, done, time.perf_counter() - start


def main(
    layers: list[str] | None = None, lag: int = 200, steps: int = 1500, tasks: tuple[str, ...] = tuple(TASKS)
) -> dict[tuple[str, str], float]:
    """Print the table: a line for each layer and task, as they are done."""
    print(f"lag {lag}: {'layer':>10s}  {'task':<15s} {'right':>6s} {'steps':>6s} {'seconds':>8s}")
    found = {}
    for task in tasks:
        for layer in layers or LAYERS:
            right, done, seconds = trial(task, layer, lag, steps)
            found[task, layer] = right
            verdict = "solved" if right > 0.95 else "at chance" if right < 0.2 else "in part"
            print(
                f"         {layer:>10s}  {task:<15s} {100 * right:5.1f}% {done:6d} {seconds:8.0f}  {verdict}",
                flush=True,
            )
    return found


if __name__ == "__main__":
    chosen = sys.argv[1:]
    if chosen:
        main(None if chosen == ["all"] else chosen)
    else:
        main(["elman", "gru"], lag=20, steps=100, tasks=("delay",))
