"""`python -m benchmarks.peers.torch_step gpt`: as `benchmarks.step`, in PyTorch; `--compile` uses `torch.compile`."""

from __future__ import annotations

import importlib.util

import torch

from ..measuring import arguments, figures, line, threads
from . import torch_workloads
from .torch_convolutions import CONVOLUTIONS
from .torch_eager import EAGER
from .torch_fourier import FOURIER
from .torch_inference import INFERENCE
from .torch_large import LARGE
from .torch_operations import OPERATIONS
from .torch_products import PRODUCTS
from .torch_recurrences import RECURRENCES
from .torch_sparse import SPARSE
from .torch_variety import VARIETY
from .torch_workloads import WORKLOADS

ALL = WORKLOADS | EAGER | VARIETY | OPERATIONS | CONVOLUTIONS | PRODUCTS | RECURRENCES | SPARSE | FOURIER | INFERENCE
ALL |= LARGE
if importlib.util.find_spec("torch_geometric") is not None:
    from .torch_graphs import GRAPHS

    ALL |= GRAPHS


def main() -> None:
    parser = arguments("benchmarks.peers.torch_step", ALL)
    parser.add_argument("--compile", action="store_true", help="models and functions by torch.compile")
    options = parser.parse_args()
    torch.set_num_threads(threads())
    torch_workloads.compiling = options.compile
    for name in options.workloads:
        found, _ = figures(ALL[name], options.seconds)
        line(name, "torch.compile" if options.compile else "torch", found)


if __name__ == "__main__":
    main()
