"""What layers of sequences cost, over lengths: to train, for one more token, and in memory. Book, chapter 13.

                          training     one more token   kept of n tokens
    convolution           n k          k                k
    attention, cache      n^2          n                n
    AFT with all biases   n^2          n                n
    all with a state      n            1                1

These are multiply-adds and numbers as functions of the length n, features and a kernel of k places being fixed.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from ... import arrays
from ...core.arguments import as_int, as_list, shown
from ...core.errors import InputError
from ...core.tensor import Tensor
from ...inspect.counting import count
from ...nn.attention.multi_head import MultiHeadAttention
from ...nn.linear_attention.attention_free import AFTFull, AFTSimple
from ...nn.linear_attention.linear_attention import LinearAttention
from ...nn.linear_attention.rwkv import RWKVTimeMix
from ...nn.module.module import Module
from ...nn.recurrent.cells import LSTMCell, RNNCell
from ...nn.recurrent.recurrent import Recurrent
from ...nn.sequences.cache import Cache
from ...nn.sequences.reading import ReadsOn, reads_on
from ...nn.state_space.causal_conv import CausalDepthwiseConv
from ...nn.state_space.lru import LRU
from ...nn.state_space.mamba import MambaBlock
from ...random.continuous import normal
from ...random.keys import key as make_key
from ...transforms.derivatives import grad
from ...transforms.imperative import no_grad
from ...transforms.jit.jit import jit
from ...viz.plot import Curve, plot

__all__ = ["LayerComparison", "LayerCost", "compare_layers"]

Maker: TypeAlias = Callable[[int, int], Module]  # of features and the largest length
WHAT = ("train_work", "step_work", "state_bytes", "train_seconds", "step_seconds")
TITLES = {
    "train_work": "multiply-adds of a training pass",
    "step_work": "multiply-adds of one more token",
    "state_bytes": "bytes kept of what was read",
    "train_seconds": "seconds of a training pass",
    "step_seconds": "seconds of one more token",
}
LAYERS: dict[str, Maker] = {
    "convolution": lambda e, n: CausalDepthwiseConv(e, 4),
    "attention": lambda e, n: MultiHeadAttention(e, max(1, e // 32), causal=True),
    "linear attention": lambda e, n: LinearAttention(e, max(1, e // 32)),
    "AFT": lambda e, n: AFTSimple(e, causal=True),
    "AFT full": lambda e, n: AFTFull(e, n, causal=True),
    "RNN": lambda e, n: Recurrent(RNNCell(e, e)),
    "LSTM": lambda e, n: Recurrent(LSTMCell(e, e)),
    "SSM": lambda e, n: LRU(e, e, e),
    "RWKV": lambda e, n: RWKVTimeMix(e),
    "Mamba": lambda e, n: MambaBlock(e),
}


@dataclass(frozen=True)
class LayerCost:
    """What a layer costs for sequences of one length; seconds are NaN if they were not measured."""

    layer: str
    length: int
    train_work: int
    step_work: int
    state_bytes: int
    train_seconds: float = math.nan
    step_seconds: float = math.nan


@dataclass(frozen=True)
class LayerComparison:
    """The costs of layers over lengths: `print` shows a table, `picture` curves, `order` how they grow."""

    costs: tuple[LayerCost, ...]

    def layers(self) -> list[str]:
        """The names of the layers."""
        return list(dict.fromkeys(cost.layer for cost in self.costs))

    def values(self, layer: str, what: str) -> tuple[list[int], list[float]]:
        """The lengths, and one of the costs of a layer for each: "train_work", "step_seconds" ..."""
        if what not in WHAT:
            raise InputError(f"LayerComparison: there is no cost {shown(what)}.", f"one of {', '.join(WHAT)}")
        found = [cost for cost in self.costs if cost.layer == layer]
        if not found:
            raise InputError(f"LayerComparison: there is no layer {shown(layer)}.", f"one of {self.layers()}")
        return [cost.length for cost in found], [float(getattr(cost, what)) for cost in found]

    def order(self, layer: str, what: str) -> float:
        r"""The exponent p with which a cost grows as \(n^p\), from the two largest lengths."""
        lengths, values = self.values(layer, what)
        if len(lengths) < 2:
            raise InputError("LayerComparison: one length tells nothing about growth.", "two lengths or more")
        return math.log(values[-1] / values[-2]) / math.log(lengths[-1] / lengths[-2])

    def picture(self, what: str = "train_seconds") -> str:
        """A cost of all layers over the length, both as powers of 2, as the text of an SVG picture."""
        curves = []
        for layer in self.layers():
            lengths, values = self.values(layer, what)
            curves.append(Curve(np.log2(lengths), np.log2(values), layer))
        return plot(curves, title=TITLES[what], x_label="tokens (power of 2)", y_label=f"{what} (power of 2)")

    def __str__(self) -> str:
        timed = not all(math.isnan(cost.train_seconds) for cost in self.costs)
        head = ["layer", "tokens", "train work", "step work", "state bytes", *["train ms", "step us"][: 2 * timed]]
        rows = [head]
        for cost in self.costs:
            counted = (cost.length, cost.train_work, cost.step_work, cost.state_bytes)
            row = [cost.layer, *(f"{number:,}" for number in counted)]
            row += [f"{1e3 * cost.train_seconds:.2f}", f"{1e6 * cost.step_seconds:.0f}"][: 2 * timed]
            rows.append(row)
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        return "\n".join("  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in rows)


def compare_layers(
    layers: Sequence[str] | Mapping[str, Maker] | None = None,
    lengths: Sequence[int] = (128, 256, 512, 1024),
    *,
    features: int = 64,
    batch: int = 1,
    seconds: bool = True,
    repeats: int = 5,
) -> LayerComparison:
    r"""What layers cost for sequences of several lengths, counted and measured: a table and pictures. Book, chapter 13.

    >>> import wonderland as wl
    >>> found = wl.models.compare_layers(["attention", "RNN"], [64, 128], features=8, seconds=False)
    >>> found.order("attention", "state_bytes"), found.order("RNN", "state_bytes")
    (1.0, 0.0)

    `layers` are some of the names that are known (convolution, attention with its cache, linear attention, AFT, AFT
    full, RNN, LSTM, SSM, RWKV, Mamba), by default all, or functions of (features, largest length) by names of your own,
    which make layers over (batch, n, features) that read on. For each of them and each length n:

    - `train_work`: multiply-adds of the forward and the backward pass over (batch, n, features);
    - `step_work`: multiply-adds of one more token when n - 1 were read;
    - `state_bytes`: what the cache has of n tokens;
    - `train_seconds` and `step_seconds`: the shortest of `repeats` compiled calls of both, unless `seconds=False`.

    Work is counted from shapes (`wl.count`), so it is the same on every machine; elementwise work that a program does
    beside its products is in the seconds alone.
    """
    name = "compare_layers"
    makers = _makers(name, layers)
    sizes = sorted({as_int(name, "a length", n, 2) for n in as_list(name, "lengths", lengths)})
    if not sizes:
        raise InputError(f"{name}: there are no lengths.", "some, such as [128, 256]")
    e, rows = as_int(name, "features", features, 1), as_int(name, "batch", batch, 1)
    tries = as_int(name, "repeats", repeats, 1)
    costs = []
    for title, make in makers.items():
        for n in sizes:
            layer = make(e, n).eval()
            if not reads_on(layer):
                raise InputError(f"{name}: {title} does not read on.", "a layer with new_cache, extend and step")
            costs.append(_cost(title, layer, n, rows, e, tries if seconds else 0))
    return LayerComparison(tuple(costs))


def _makers(name: str, layers: Sequence[str] | Mapping[str, Maker] | None) -> Mapping[str, Maker]:
    if layers is None or isinstance(layers, Mapping):
        return LAYERS if layers is None else layers
    for layer in as_list(name, "layers", layers):
        if layer not in LAYERS:
            raise InputError(f"{name}: there is no layer {shown(layer)}.", f"some of {', '.join(LAYERS)}")
    return {layer: LAYERS[layer] for layer in layers}


def _train(layer: ReadsOn, x: Tensor) -> object:
    return grad(lambda layer: arrays.sum(arrays.square(layer(x))))(layer)


def _step(layer: ReadsOn, x: Tensor, cache: Cache) -> Tensor:
    return layer.step(x, cache)[0]


_train_compiled, _step_compiled = jit(_train), jit(_step)


def _cost(title: str, layer: ReadsOn, n: int, rows: int, e: int, repeats: int) -> LayerCost:
    x = normal((rows, n, e), key=make_key(0))
    with no_grad():
        _, cache = layer.extend(x[:, :-1], layer.new_cache(rows, n))
        _, read = layer.extend(x[:, -1:], cache.copy())
    found = LayerCost(
        title,
        n,
        count(_train, layer, x).multiply_adds,
        count(_step, layer, x[:, -1], cache.copy()).multiply_adds,
        read.nbytes,
    )
    if not repeats:
        return found
    train = _shortest(lambda: _train_compiled(layer, x), repeats)
    # each call reads on, so that every one has a cache of its own
    caches = [cache.copy() for _ in range(repeats + 1)]
    step = _shortest(lambda: _step_compiled(layer, x[:, -1], caches.pop()), repeats)
    return LayerCost(title, n, found.train_work, found.step_work, found.state_bytes, train, step)


def _shortest(call: Callable[[], object], repeats: int) -> float:
    """Of some calls after a first one, which compiles."""
    call()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times)
