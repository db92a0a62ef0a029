"""Products with sparse matrices and reductions over segments, forward and with gradients, beside SciPy and PyTorch.

| name | what |
|---|---|
| spmm_16, spmm_64, spmm_128 | sparse times dense with so many features, 100000 nodes and 1000000 edges |
| spmm_transposed_64 | with the transpose |
| spmm_grad_64 | the product, and the gradients of the values and of the dense operand |
| spmm_heads | 8 heads of 8 features, a matrix for each |
| sampled_64 | inner products of the ends of every edge |
| segment_sum_8, segment_max_8 | over the edges of every node, (edges, 8) |
| segment_softmax_8 | the same, weights for every edge |
| spmm_cora_16, spmm_cora_64, spmm_cora_grad_16 | of Cora's size: 2708 nodes, 10556 edges |

The graph is that of `made_graphs.network`, in float32. PyTorch may choose between CSR matrices and gathers with
`index_add` or `scatter_reduce` (see peers/torch_sparse.py).

The second table has our products beside SciPy's, and beside a plain copy: how many bytes a second the product moves, as
a share of those that a copy of 256 MB reads and writes. What must move are the entries (values and indices), the
result, and the dense operand: every gathered row where it is larger than NEAR bytes, and else each row once.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from typing import Any

import numpy as np

import wonderland as wl
from wonderland import sparse

from . import steps
from .made_graphs import Made, citations, network
from .measuring import best_time
from .options import Options
from .printed import Table
from .workloads import Step

NEAR = 1 << 20  # bytes of a dense operand that stays in a second cache


def drawn(*shape: int, seed: int = 0) -> Any:
    return np.random.default_rng([seed, *shape]).normal(size=shape).astype(np.float32)


def pattern_of(made: Made) -> sparse.Pattern:
    return sparse.Pattern.of(made.receivers, made.senders, (made.nodes, made.nodes))


def product(make: Callable[..., Made], features: int, transposed: bool = False, **sizes: int) -> Step:
    made = make(**sizes, features=1)
    pattern = pattern_of(made)
    pattern = pattern.T if transposed else pattern
    args = wl.tensor(drawn(pattern.nnz)), pattern, wl.tensor(drawn(made.nodes, features))
    return functools.partial(wl.jit(sparse.matmul), *args)


def with_gradients(make: Callable[..., Made], features: int, **sizes: int) -> Step:
    made = make(**sizes, features=1)
    pattern, weights = pattern_of(made), wl.tensor(drawn(made.nodes, features, seed=1))

    def value(v: wl.Tensor, x: wl.Tensor, pattern: sparse.Pattern) -> wl.Tensor:
        return (sparse.matmul(v, pattern, x) * weights).sum()

    f = wl.jit(wl.value_and_grad(value, argnums=(0, 1)))
    return functools.partial(f, wl.tensor(drawn(pattern.nnz)), wl.tensor(drawn(made.nodes, features)), pattern)


def heads(count: int = 8, features: int = 8, **sizes: int) -> Step:
    made = network(**sizes, features=1)
    pattern = pattern_of(made)
    args = wl.tensor(drawn(pattern.nnz, count)), pattern, wl.tensor(drawn(made.nodes, count, features))
    return functools.partial(wl.jit(sparse.matmul), *args)


def sampled(features: int, **sizes: int) -> Step:
    made = network(**sizes, features=1)
    a, b = (wl.tensor(drawn(made.nodes, features, seed=seed)) for seed in (0, 1))
    return functools.partial(wl.jit(sparse.sampled_matmul), a, b, pattern_of(made))


def segments(name: str, width: int = 8, **sizes: int) -> Step:
    lines = pattern_of(network(**sizes, features=1)).rows
    return functools.partial(wl.jit(getattr(sparse, name)), wl.tensor(drawn(lines.entries, width)), lines)


SPARSE: dict[str, Callable[..., Step]] = {
    **{f"spmm_{c}": functools.partial(product, network, c) for c in (16, 64, 128)},
    "spmm_transposed_64": functools.partial(product, network, 64, transposed=True),
    "spmm_grad_64": functools.partial(with_gradients, network, 64),
    "spmm_heads": heads,
    "sampled_64": functools.partial(sampled, 64),
    **{f"{name}_8": functools.partial(segments, name) for name in ("segment_sum", "segment_max", "segment_softmax")},
    **{f"spmm_cora_{c}": functools.partial(product, citations, c) for c in (16, 64)},
    "spmm_cora_grad_16": functools.partial(with_gradients, citations, 16),
}


def bytes_moved(nodes: int, edges: int, features: int) -> int:
    """What a product of float32 numbers with indices of 32 bits must read and write."""
    dense = 4 * nodes * features
    read = 4 * edges * features if dense > NEAR else dense
    return read + dense + 8 * edges + 4 * (nodes + 1)


def beside_a_copy(options: Options) -> None:
    """Ours and SciPy's products in turn, and a copy."""
    scipy = importlib.import_module("scipy.sparse")
    columns = ["product", "ours ms", "SciPy / ours", "GB/s", "of a plain copy"]
    table = Table("Sparse times dense, beside SciPy and a plain copy", columns, options, absolute=["ours ms", "GB/s"])
    source = np.ones(1 << 25, np.float32)
    target = np.empty_like(source)
    for size, make in (("large", network), ("cora", citations)):
        made = make(features=1)
        v = drawn(len(made.senders))
        matrix = scipy.csr_array((v, (made.receivers, made.senders)), shape=(made.nodes, made.nodes))
        for features in (16, 64, 128):
            x, ours = drawn(made.nodes, features), product(make, features)
            ours()
            turns = [
                (
                    best_time(ours, options.seconds / 6),
                    best_time(functools.partial(matrix.__matmul__, x), options.seconds / 6),
                    best_time(functools.partial(np.copyto, target, source), options.seconds / 6),
                )
                for _ in range(options.rounds)
            ]
            mine, theirs, copy = (min(column) for column in zip(*turns, strict=True))
            rate = bytes_moved(made.nodes, len(v), features) / mine
            share = rate / (2 * source.nbytes / copy)
            cells = f"{mine * 1e3:.3f}", f"{theirs / mine:.2f}", f"{rate / 1e9:.1f}", f"{share:.0%}"
            table.row(f"{size}, {features} features", *cells)


def main(options: Options | None = None) -> None:
    options = options or Options()
    steps.main(options, SPARSE, measures=1, jax=False)
    if not options.workloads:
        beside_a_copy(options)


if __name__ == "__main__":
    main()
