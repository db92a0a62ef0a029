"""The steps and operations of `benchmarks/eager.py` in PyTorch."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from ..measuring import Step
from .torch_workloads import WORKLOADS


def _operation(f: Callable[[Tensor, Tensor], Tensor]) -> Callable[[], Step]:
    def make() -> Step:
        x, y = torch.randn(4096, 256), torch.randn(4096, 256)
        return lambda: f(x, y)

    return make


EAGER: dict[str, Callable[[], Step]] = {
    "eager_mlp_tiny": WORKLOADS["mlp_tiny"],
    "eager_mlp": WORKLOADS["mlp"],
    "eager_mlp_imperative": WORKLOADS["mlp"],
    "eager_gpt": WORKLOADS["gpt"],
    "eager_add": _operation(lambda x, y: x + y),
    "eager_exp": _operation(lambda x, y: x.exp()),
    "eager_tanh": _operation(lambda x, y: x.tanh()),
    "eager_sum": _operation(lambda x, y: x.sum()),
    "eager_sum_rows": _operation(lambda x, y: x.sum(dim=1)),
    "eager_max_columns": _operation(lambda x, y: x.amax(dim=0)),
    "eager_product": _operation(lambda x, y: x[:256] @ y.T),
}
