"""The products and reductions of `benchmarks/sparse.py` in PyTorch: the fastest of several forms.

Matrices are CSR where PyTorch has the operation for them. Otherwise rows are gathered, and added by `index_add` or
`scatter_reduce`. The transpose is stored, as ours is, and the gradient of a product is written with it.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ..made_graphs import Made, citations, network
from ..measuring import Step, faster

warnings.filterwarnings("ignore", message="Sparse CSR tensor support is in beta")


def drawn(*shape: int, seed: int = 0) -> Tensor:
    return torch.from_numpy(np.random.default_rng([seed, *shape]).normal(size=shape).astype(np.float32))


def ends(made: Made) -> tuple[Tensor, Tensor]:
    return torch.from_numpy(made.receivers), torch.from_numpy(made.senders)


def matrix(rows: Tensor, cols: Tensor, values: Tensor, nodes: int) -> Tensor:
    return torch.sparse_coo_tensor(torch.stack([rows, cols]), values, (nodes, nodes)).coalesce().to_sparse_csr()


def gathered(rows: Tensor, cols: Tensor, values: Tensor, x: Tensor) -> Tensor:
    wide = values.reshape(*values.shape, *[1] * (x.ndim - values.ndim))
    return torch.zeros_like(x).index_add_(0, rows, x[cols] * wide)


def product(make: Callable[..., Made], features: int, transposed: bool = False) -> Step:
    made = make(features=1)
    rows, cols = ends(made)[::-1] if transposed else ends(made)
    values, x = drawn(len(rows)), drawn(made.nodes, features)
    a = matrix(rows, cols, values, made.nodes)
    return faster(lambda: a @ x, functools.partial(gathered, rows, cols, values, x))


def with_gradients(make: Callable[..., Made], features: int) -> Step:
    made = make(features=1)
    rows, cols = ends(made)
    values, x, weights = drawn(len(rows)), drawn(made.nodes, features), drawn(made.nodes, features, seed=1)
    a, back = matrix(rows, cols, values, made.nodes), matrix(cols, rows, values, made.nodes)
    pattern = matrix(rows, cols, torch.zeros(len(rows)), made.nodes)

    def by_matrices() -> Any:
        value = ((a @ x) * weights).sum()
        return value, torch.sparse.sampled_addmm(pattern, weights, x.T, beta=0.0), back @ weights

    def by_dots() -> Any:
        return ((a @ x) * weights).sum(), (weights[rows] * x[cols]).sum(-1), back @ weights

    def by_gathers() -> Any:
        v, y = values.clone().requires_grad_(), x.clone().requires_grad_()
        return torch.autograd.grad((gathered(rows, cols, v, y) * weights).sum(), (v, y))

    return faster(*[form for form in (by_matrices, by_dots, by_gathers) if works(form)])


def works(step: Step) -> bool:
    """Whether this build has the operation: `sampled_addmm` needs a library that not every one comes with."""
    try:
        step()
    except RuntimeError:
        return False
    return True


def heads(count: int = 8, features: int = 8) -> Step:
    made = network(features=1)
    rows, cols = ends(made)
    values, x = drawn(len(rows), count), drawn(made.nodes, count, features)
    matrices = [matrix(rows, cols, values[:, i], made.nodes) for i in range(count)]
    columns = [x[:, i].contiguous() for i in range(count)]

    def by_matrices() -> Tensor:
        return torch.stack([a @ y for a, y in zip(matrices, columns, strict=True)], 1)

    return faster(by_matrices, functools.partial(gathered, rows, cols, values, x))


def sampled(features: int) -> Step:
    made = network(features=1)
    rows, cols = ends(made)
    a, b = (drawn(made.nodes, features, seed=seed) for seed in (0, 1))
    pattern = matrix(rows, cols, torch.zeros(len(rows)), made.nodes)
    forms: list[Step] = [lambda: (a[rows] * b[cols]).sum(-1), lambda: torch.einsum("ec,ec->e", a[rows], b[cols])]
    by_matrix = functools.partial(torch.sparse.sampled_addmm, pattern, a, b.T, beta=0.0)
    return faster(*forms, *([by_matrix] if works(by_matrix) else []))


def reduced(e: Tensor, rows: Tensor, nodes: int, how: str) -> Tensor:
    wide = rows[:, None].expand_as(e)
    return torch.zeros(nodes, e.shape[1]).scatter_reduce(0, wide, e, how, include_self=False)


def segments(name: str, width: int = 8) -> Step:
    made = network(features=1)
    rows, _ = ends(made)
    e = drawn(len(rows), width)
    lengths = torch.bincount(rows, minlength=made.nodes)

    def softmax() -> Tensor:
        terms = torch.exp(e - reduced(e, rows, made.nodes, "amax")[rows])
        return terms / torch.zeros(made.nodes, width).index_add_(0, rows, terms)[rows]

    forms: dict[str, list[Step]] = {
        "segment_sum": [
            lambda: torch.zeros(made.nodes, width).index_add_(0, rows, e),
            lambda: reduced(e, rows, made.nodes, "sum"),
            lambda: torch.segment_reduce(e, "sum", lengths=lengths),
        ],
        "segment_max": [
            lambda: reduced(e, rows, made.nodes, "amax"),
            lambda: torch.segment_reduce(e, "max", lengths=lengths),
        ],
        "segment_softmax": [softmax],
    }
    return faster(*forms[name])


SPARSE: dict[str, Callable[[], Step]] = {
    "spmm_16": functools.partial(product, network, 16),
    "spmm_64": functools.partial(product, network, 64),
    "spmm_128": functools.partial(product, network, 128),
    "spmm_transposed_64": functools.partial(product, network, 64, transposed=True),
    "spmm_grad_64": functools.partial(with_gradients, network, 64),
    "spmm_heads": heads,
    "sampled_64": functools.partial(sampled, 64),
    "segment_sum_8": functools.partial(segments, "segment_sum"),
    "segment_max_8": functools.partial(segments, "segment_max"),
    "segment_softmax_8": functools.partial(segments, "segment_softmax"),
    "spmm_cora_16": functools.partial(product, citations, 16),
    "spmm_cora_64": functools.partial(product, citations, 64),
    "spmm_cora_grad_16": functools.partial(with_gradients, citations, 16),
}
