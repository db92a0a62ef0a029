"""Which heads of a small GPT matter, and what each part adds to its residual stream. Book, section 10.1.3.

python examples/head_ablation.py          # some seconds
python examples/head_ablation.py 600      # more steps

The task is to copy: after a separator the same digits come again, so tokens must look back by a fixed distance.
"""

from __future__ import annotations

import sys

import numpy as np

import wonderland as wl

DIGITS, LENGTH, SEPARATOR = 8, 6, 8


def sequences(count: int, seed: int) -> np.ndarray:
    """Random digits, the separator, and the same digits: (count, 2 LENGTH + 1)."""
    digits = np.random.default_rng(seed).integers(0, DIGITS, (count, LENGTH))
    return np.concatenate([digits, np.full((count, 1), SEPARATOR), digits], axis=1)


def loss_of(model: wl.models.GPT, tokens: wl.Tensor) -> wl.Tensor:
    """Cross-entropy of the second half; nobody can know the first."""
    logits = model(tokens[:, :-1])[:, LENGTH:]
    return wl.nn.functional.cross_entropy(logits, tokens[:, LENGTH + 1 :])


def trained(steps: int) -> wl.models.GPT:
    model = wl.models.GPT(DIGITS + 1, 2 * LENGTH, 32, 4, 2, key=wl.random.key(0))
    optimizer = wl.optim.AdamW(model, lr=3e-3)

    @wl.jit
    def step(model: wl.models.GPT, optimizer: wl.optim.AdamW, tokens: wl.Tensor) -> wl.Tensor:
        loss, grads = wl.value_and_grad(loss_of)(model, tokens)
        optimizer.step(grads)
        return loss

    for i in range(steps):
        step(model, optimizer, wl.asarray(sequences(64, i)))
    return model


def main(steps: int = 250) -> None:
    model, tokens = trained(steps), wl.asarray(sequences(64, 10_000))
    print(f"loss {float(loss_of(model, tokens)):.4f} after {steps} steps, {np.log(DIGITS):.4f} by chance")

    print("\nloss without a head, more by")
    for block, row in enumerate(wl.nn.head_ablation(model, lambda: loss_of(model, tokens))):
        print(f"  block {block}: " + "  ".join(f"head {head} {more:+.4f}" for head, more in enumerate(row)))

    stream = wl.nn.residual_stream(model, tokens[:, :-1])
    whole = model.stack.norm(stream.final)
    error = float(wl.max(wl.abs(model.logits(whole) - model(tokens[:, :-1]))))
    print(f"\nthe parts of the stream add up to it: the logits differ by {error:.1e}; how long they are")
    for name, part in zip(stream.names, stream.parts, strict=True):
        print(f"  {name:12s} {float(wl.mean(wl.sqrt(wl.sum(part * part, axis=-1)))):8.3f}")

    looked = np.asarray(wl.nn.attention_maps(model, tokens[:, :-1])[0])[:, :, LENGTH:].mean(axis=(0, 2))
    print("\nwhere the heads of the first block look while they copy, mean weight by place")
    for head, row in enumerate(looked):
        print(f"  head {head}: " + " ".join(f"{weight:.2f}" for weight in row))


if __name__ == "__main__":
    main(*(int(argument) for argument in sys.argv[1:2]))
