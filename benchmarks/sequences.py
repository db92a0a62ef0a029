"""Attention over long sequences: the arena of a forward pass and of a training step, and time, by their length.

Memory is linear: twice the tokens take twice the bytes, whatever the kind of attention. A matrix of scores would take
four times as many. The work is quadratic all the same, unless the softmax is given up; what theory saves and what a
clock shows are two things. Book, sections 11.2.1 and 11.2.2.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import wonderland as wl
from wonderland import nn

from .interleaved import best_times
from .options import Options
from .printed import Table

LENGTHS = (512, 1024, 2048, 4096)
E, HEADS = 64, 4


def main(options: Options | None = None) -> None:
    columns = ["attention", *[f"{n:,}" for n in LENGTHS], "last / first", "linear"]
    for what, program in (("a forward pass", forward), ("a training step", training)):
        title = f"Memory of {what} over n tokens: KiB of intermediate values per token (e = {E}, {HEADS} heads)"
        table = Table(title, columns, options or Options(), widths=(24, 8))
        for name, settings, masked in kinds():
            layer = nn.MultiHeadAttention(E, HEADS, **settings)
            found = [program(layer, n, masked) / 1024 / n for n in LENGTHS]
            growth = found[-1] / found[0]
            table.row(name, *[f"{x:.2f}" for x in found], f"{growth:.2f}", "yes" if growth < 1.5 else "no")

    show_times(options or Options())
    show_crossovers(options or Options())
    show_layers(options or Options())


def kinds() -> list[tuple[str, dict[str, Any], bool]]:
    """Names, settings, and whether some tokens are padding."""
    return [
        ("whole", {}, False),
        ("causal", {"causal": True}, False),
        ("padded", {}, True),
        ("causal, padded", {"causal": True}, True),
        ("window of 128", {"causal": True, "window": 128}, False),
        ("rotary", {"causal": True, "positions": nn.Rotary(E // HEADS)}, False),
        ("ALiBi", {"causal": True, "positions": nn.ALiBi(HEADS)}, False),
        ("ALiBi, trained", {"causal": True, "positions": nn.ALiBi(HEADS, trainable=True)}, False),
        ("shared keys", {"causal": True, "kv_heads": 1}, False),
    ]


def forward(layer: nn.Module, n: int, masked: bool) -> int:
    return _arena(lambda layer, x, lengths: layer(x, lengths=lengths), layer, n, masked)


def training(layer: nn.Module, n: int, masked: bool) -> int:
    def loss(layer: nn.Module, x: wl.Tensor, lengths: wl.Tensor | None) -> wl.Tensor:
        return wl.sum(layer(x, lengths=lengths) ** 2)

    return _arena(lambda layer, x, lengths: wl.value_and_grad(loss)(layer, x, lengths), layer, n, masked)


def _arena(f: Callable[..., object], layer: nn.Module, n: int, masked: bool) -> int:
    x = wl.ones((1, n, E))
    return wl.explain(wl.jit(f), layer, x, wl.tensor([n - 7]) if masked else None).arena_bytes


# --- work, bytes and seconds


@dataclass(frozen=True)
class Row:
    """One way to compute attention over n tokens: its work, the bytes of its intermediate values, and its time."""

    way: str
    n: int
    multiply_adds: int
    bytes: int
    seconds: float = 0.0

    @property
    def gflops(self) -> float:
        return 2e-9 * self.multiply_adds / self.seconds


def naive(q: wl.Tensor, k: wl.Tensor, v: wl.Tensor) -> wl.Tensor:
    """With the matrix of scores in memory."""
    return nn.functional.attention_with_weights(q, k, v)[0]


def in_tiles(q: wl.Tensor, k: wl.Tensor, v: wl.Tensor) -> wl.Tensor:
    """A tile of scores at a time."""
    return nn.functional.scaled_dot_product_attention(q, k, v)


def linear(q: wl.Tensor, k: wl.Tensor, v: wl.Tensor) -> wl.Tensor:
    """Products of positive features instead of exponentials of products: another function, and linear work."""
    return nn.functional.linear_attention(q, k, v)


WAYS: dict[str, Callable[[wl.Tensor, wl.Tensor, wl.Tensor], wl.Tensor]] = {
    "naive": naive, "in tiles": in_tiles, "linear": linear,
}  # fmt: skip


def attention_work(way: str, n: int) -> Row:
    """What one way computes and keeps, without running it."""
    x = wl.ones((HEADS, n, E // HEADS))
    return Row(way, n, wl.count(WAYS[way], x, x, x).multiply_adds, wl.explain(wl.jit(WAYS[way]), x, x, x).arena_bytes)


def timings(lengths: Sequence[int] = LENGTHS, rounds: int = 5) -> list[Row]:
    """All ways at all lengths; the ways take turns."""
    rows = []
    for n in lengths:
        x = wl.random.normal((HEADS, n, E // HEADS), key=wl.random.key(0))
        runs = {way: functools.partial(wl.jit(f), x, x, x) for way, f in WAYS.items()}
        best = best_times(runs, rounds, 0.05)
        rows += [replace(attention_work(way, n), seconds=best[way]) for way in WAYS]
    return rows


def show_times(options: Options) -> None:
    columns = ["way", "n", "multiply-adds", "bytes", "ms", "GFLOP/s"]
    table = Table(f"Attention of {HEADS} heads of {E // HEADS}, forward", columns, options, widths=(12, 12))
    for row in timings():
        cells = f"{row.multiply_adds:,}", f"{row.bytes:,}", f"{row.seconds * 1e3:.2f}", f"{row.gflops:.1f}"
        table.row(row.way, str(row.n), *cells)


# --- from how many tokens on the softmax costs more than it is worth


def crossover(
    size: int, causal: bool, lengths: Sequence[int] = (16, 32, 64, 128, 256, 512), rounds: int = 5
) -> tuple[int | None, dict[int, tuple[float, float]]]:
    """The first length from which on linear attention is faster, and the seconds of both, linear first. Book, 13.1.1.

    Counted in multiply-adds it is about the size of a head; a clock shows a multiple of it.
    """
    linear = wl.jit(lambda q, k, v: nn.functional.linear_attention(q, k, v, causal=causal))
    softmax = wl.jit(lambda q, k, v: nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal))
    found = {}
    for n in lengths:
        x = wl.random.normal((16, n, size), key=wl.random.key(0))
        runs = {"linear": functools.partial(linear, x, x, x), "softmax": functools.partial(softmax, x, x, x)}
        best = best_times(runs, rounds, 0.02)
        found[n] = best["linear"], best["softmax"]
    slower = [n for n, (ours, theirs) in found.items() if ours >= theirs]
    return next((n for n in lengths if n > max(slower, default=0)), None), found


def show_crossovers(options: Options) -> None:
    columns = ["head", "causal", "faster from", "ratio at 512"]
    table = Table("From how many tokens on linear attention is faster, forward", columns, options, widths=(12, 12))
    for size in (16, 32, 64):
        for causal in (False, True):
            first, found = crossover(size, causal)
            ours, theirs = found[512]
            table.row(str(size), "yes" if causal else "no", str(first), f"{theirs / ours:.1f}")


# --- layers that wait for the step before, and those that do not


def layer_timings(lengths: Sequence[int] = (64, 128, 256, 512), rounds: int = 5) -> dict[tuple[str, int], float]:
    """Seconds of a training step of an LSTM and of self-attention, by the length: n steps in turn, or all at once."""
    found: dict[tuple[str, int], float] = {}
    for n in lengths:
        x = wl.random.normal((8, n, E), key=wl.random.key(0))
        layers = {"LSTM": nn.LSTM(E, E, batch_first=True), "self-attention": nn.MultiHeadAttention(E, HEADS)}
        runs = {name: functools.partial(_layer_step, layer, x) for name, layer in layers.items()}
        found |= {(name, n): best for name, best in best_times(runs, rounds, 0.05).items()}
    return found


@wl.jit
def _layer_step(layer: nn.Module, x: wl.Tensor) -> object:
    def loss(layer: nn.Module, x: wl.Tensor) -> wl.Tensor:
        y = layer(x)
        return wl.sum((y[0] if isinstance(y, tuple) else y) ** 2)

    return wl.grad(loss)(layer, x)


def show_layers(options: Options) -> None:
    found = layer_timings()
    table = Table(f"A training step of one layer, 8 rows, e = {E}", ["layer", "n", "ms"], options, widths=(16, 10))
    for (name, n), seconds in sorted(found.items()):
        table.row(name, str(n), f"{seconds * 1e3:.2f}")


def picture(rows: Sequence[Row]) -> str:
    """GFLOP/s against the length, as SVG."""
    curves = []
    for way in WAYS:
        mine = [row for row in rows if row.way == way]
        curves.append(wl.viz.Curve([row.n for row in mine], [row.gflops for row in mine], way))
    return wl.viz.plot(curves, title="Attention, forward", x_label="tokens", y_label="GFLOP/s")


if __name__ == "__main__":
    main()
