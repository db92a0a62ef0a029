"""The memory of a backward pass through a chain of layers, with and without checkpoints."""

from __future__ import annotations

import math
import tracemalloc
from collections.abc import Callable

import wonderland as wl

from .options import Options
from .printed import Table

ACTIVATION = (64, 256)  # float32: 64 KiB


def peak_activations(f: Callable[[wl.Tensor], wl.Tensor]) -> float:
    """The peak of a gradient's memory, in activations."""
    x = wl.full(ACTIVATION, 0.5)
    wl.grad(f)(x)  # traces checkpoints, loads modules
    tracemalloc.start()
    wl.grad(f)(x)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak / x.nbytes


def main(options: Options | None = None) -> None:
    title = "Memory of a backward pass through L layers, in activations (aims: L, and 2 sqrt(L) with checkpoints)"
    table = Table(title, ["L", "plain", "checkpoint every sqrt(L) layers"], options or Options())
    for layers in (16, 64, 256):
        blocks: list[Callable[[wl.Tensor], wl.Tensor]] = [wl.sin] * layers

        def plain(x: wl.Tensor, blocks: list[Callable[[wl.Tensor], wl.Tensor]] = blocks) -> wl.Tensor:
            for block in blocks:
                x = block(x)
            return x.sum()

        segments = wl.checkpoint_sequential(blocks, round(math.sqrt(layers)))
        kept = peak_activations(plain)
        few = peak_activations(lambda x, run=segments: run(x).sum())  # type: ignore[misc]
        table.row(str(layers), f"{kept:.1f}", f"{few:.1f}")


if __name__ == "__main__":
    main()
