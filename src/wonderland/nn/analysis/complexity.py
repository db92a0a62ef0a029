"""What layers over sequences cost: the table of the notes, section 5.6.3. Book, section 11.2.1."""

from __future__ import annotations

import math
from typing import NamedTuple

from ...core.arguments import as_int
from ...core.errors import InputError

__all__ = ["Complexity", "complexity"]


class Complexity(NamedTuple):
    """Multiply-adds up to a constant, steps that must wait for each other, and how far apart two tokens can be."""

    operations: int
    sequential: int
    path: int


KINDS = ("self-attention", "recurrent", "convolution", "restricted")


def complexity(layer: str, n: int, d: int, kernel: int = 3, window: int | None = None) -> Complexity:
    r"""The cost of a layer over n tokens of d features, as it grows. Notes, section 5.6.3.

    >>> complexity("self-attention", n=1000, d=512)
    Complexity(operations=512000000, sequential=1, path=1)
    >>> complexity("recurrent", n=1000, d=512)
    Complexity(operations=262144000, sequential=1000, path=1000)

    | layer | operations | sequential | path |
    |---|---|---|---|
    | "self-attention" | \(n^2 d\) | 1 | 1 |
    | "recurrent" | \(n d^2\) | n | n |
    | "convolution", with dilations, of size k | \(k n d^2\) | 1 | \(\log_k n\) |
    | "restricted", attention to a window of r tokens | \(r n d\) | 1 | n / r |

    What a layer of your own really takes is counted by `wl.count`.
    """
    name = "complexity"
    n, d, k = as_int(name, "n", n, 1), as_int(name, "d", d, 1), as_int(name, "kernel", kernel, 2)
    if layer not in KINDS:
        raise InputError(f"{name}: a layer {layer!r}.", f"one of {', '.join(map(repr, KINDS))}")
    if (window is None) == (layer == "restricted"):
        raise InputError(f"{name}: window={window} for {layer!r}.", 'window=... with "restricted" alone')
    if layer == "self-attention":
        return Complexity(n * n * d, 1, 1)
    if layer == "recurrent":
        return Complexity(n * d * d, n, n)
    if layer == "convolution":
        return Complexity(k * n * d * d, 1, max(1, math.ceil(math.log(n, k) - 1e-9)))
    r = as_int(name, "window", window, 1)
    return Complexity(r * n * d, 1, math.ceil(n / r))
