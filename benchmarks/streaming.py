"""Layers with a state: the time of one more token, however many came before, and of training over n steps.

A recurrence keeps a state of a fixed size, so a token costs the same after ten tokens and after ten thousand; attention
with a cache of keys looks at all of them. For training it is the other way round: a nonlinear recurrence must wait for
every step, while a linear one may also be computed by an associative scan. Each of its applications multiplies two
powers of A, which takes e^3 multiply-adds for a dense A of state size e, and e for a diagonal one: this is why
state-space models have diagonal ones. Book, sections 13.1.1, 13.2.2 and 13.3.2.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import wonderland as wl
from wonderland import nn

from .interleaved import best_times
from .options import Options
from .printed import Table

LENGTHS = (256, 1024, 4096)
SIZES = (16, 64, 256)  # of the state, for the powers of A
E = 64
STEPS = 64
Times = dict[tuple[str, int], float]


def main(options: Options | None = None) -> None:
    sections = (
        (f"One more token after n, e = {E}", "n", LENGTHS, token_times),
        (f"Gradient of a layer over n steps, 8 rows, e = {E}", "n", LENGTHS, training_times),
        (f"All powers of A, and all states, of {STEPS} steps by an associative scan", "e", SIZES, power_times),
    )
    for title, letter, sizes, timed in sections:
        found = timed()
        columns = ["layer", *[f"{letter} = {n:,}, µs" for n in sizes], "last / first"]
        table = Table(title, columns, options or Options(), widths=(24, 16))
        for name in dict.fromkeys(name for name, _ in found):
            row = [found[name, n] for n in sizes]
            table.row(name, *[f"{1e6 * seconds:,.0f}" for seconds in row], f"{row[-1] / row[0]:.1f}")


@wl.jit
def _step(layer: nn.ReadsOn, x: wl.Tensor, cache: nn.Cache) -> wl.Tensor:
    return layer.step(x, cache)[0]


def token_times(lengths: Sequence[int] = LENGTHS, rounds: int = 5) -> Times:
    """Seconds of a step with a cache that has read n tokens, of a recurrence and of attention."""
    found: Times = {}
    x = wl.random.normal((1, E), key=wl.random.key(0))
    for n in lengths:
        runs = {}
        layers: dict[str, Any] = {
            "recurrence": wl.models.EchoStateNetwork(E, E),
            "attention": nn.MultiHeadAttention(E, 4, causal=True),
        }
        for name, layer in layers.items():
            cache = layer.new_cache(1, n + 1)
            layer.extend(wl.random.normal((1, n, E), key=wl.random.key(1)), cache)
            runs[name] = functools.partial(_read_again, layer, x, cache, n)
        with wl.no_grad():  # else what the cache held before is kept for a backward pass
            found |= {(name, n): best for name, best in best_times(runs, rounds, 0.02).items()}
    return found


def _read_again(layer: nn.ReadsOn, x: wl.Tensor, cache: nn.Cache, n: int) -> wl.Tensor:
    """A step at the same length each time."""
    y = _step(layer, x, cache)
    cache.lengths = wl.full((1,), n, dtype=wl.int64)
    return y


def elman(weight: wl.Tensor, x: wl.Tensor) -> wl.Tensor:
    """tanh(s A + x), which waits for every step."""

    def step(s: wl.Tensor, now: wl.Tensor) -> tuple[wl.Tensor, wl.Tensor]:
        s = wl.tanh(s @ weight + now)
        return s, s

    return wl.scan(step, wl.zeros(x.shape[1:]), x)[1]


def diagonal(weight: wl.Tensor, x: wl.Tensor, method: str = "sequential") -> wl.Tensor:
    """a s + x with a diagonal matrix, the recurrence of a state-space model."""
    return nn.functional.linear_recurrence(wl.sigmoid(weight[0]), x, axis=0, method=method)


WAYS: dict[str, Callable[[wl.Tensor, wl.Tensor], wl.Tensor]] = {
    "nonlinear recurrence": elman,
    "linear, step by step": diagonal,
    "linear, associative scan": functools.partial(diagonal, method="associative"),
}


def training_times(lengths: Sequence[int] = LENGTHS, rounds: int = 3, ways: Sequence[str] = tuple(WAYS)) -> Times:
    """Seconds of the gradient of recurrences over n steps by their weights."""
    found: Times = {}
    weight = wl.random.orthogonal((E, E), key=wl.random.key(0))
    for n in lengths:
        x = wl.random.normal((n, 8, E), key=wl.random.key(1))
        runs = {}
        for name in ways:
            f = WAYS[name]
            runs[name] = functools.partial(wl.jit(wl.grad(lambda w, x, f=f: wl.sum(f(w, x) ** 2))), weight, x)
        found |= {(name, n): best for name, best in best_times(runs, rounds, 0.02).items()}
    return found


def power_times(sizes: Sequence[int] = SIZES, rounds: int = 3) -> Times:
    """Seconds of `nn.ssm_scan` over states of several sizes, with a dense and with a diagonal A."""
    found: Times = {}
    scan = wl.jit(nn.ssm_scan)
    for e in sizes:
        inputs = wl.random.normal((STEPS, e), key=wl.random.key(0))
        dense = wl.random.orthogonal((e, e), key=wl.random.key(1))
        matrices = {"dense": dense, "diagonal": wl.diagonal(dense)}
        runs = {name: functools.partial(scan, matrix, inputs) for name, matrix in matrices.items()}
        found |= {(name, e): best for name, best in best_times(runs, rounds, 0.02).items()}
    return found


if __name__ == "__main__":
    main()
