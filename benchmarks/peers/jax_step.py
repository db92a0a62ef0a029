"""`python -m benchmarks.peers.jax_step gpt`: as `benchmarks.step`, in JAX under jit."""

from __future__ import annotations

from ..measuring import arguments, figures, line
from .jax_graphs import GRAPHS
from .jax_inference import INFERENCE
from .jax_large import LARGE
from .jax_recurrences import RECURRENCES
from .jax_variety import VARIETY
from .jax_workloads import WORKLOADS

ALL = WORKLOADS | VARIETY | RECURRENCES | GRAPHS | INFERENCE | LARGE


def main() -> None:
    # JAX takes as many threads as the process has processors and offers no setting
    options = arguments("benchmarks.peers.jax_step", ALL).parse_args()
    for name in options.workloads:
        found, _ = figures(ALL[name], options.seconds)
        line(name, "jax", found)


if __name__ == "__main__":
    main()
