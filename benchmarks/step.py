"""`python -m benchmarks.step gpt`: the time of one training step of a workload, as a line of JSON (see measuring.py).

`--backend numpy` runs the graphs without native code. `--share` adds the multiply-adds of the matrix products,
convolutions and attentions of a step, in GFLOP/s, and their share of what all threads of the machine could do.
"""

from __future__ import annotations

from typing import Any

import wonderland as wl

from .convolutions import CONVOLUTIONS
from .eager import EAGER
from .fourier import FOURIER
from .graphs import GRAPHS
from .inference import INFERENCE
from .large import LARGE
from .measuring import arguments, figures, line
from .operations import OPERATIONS
from .products import PRODUCTS
from .recurrences import RECURRENCES
from .sparse import SPARSE
from .variety import VARIETY
from .workloads import WORKLOADS

KINDS = (
    WORKLOADS,
    EAGER,
    VARIETY,
    OPERATIONS,
    CONVOLUTIONS,
    PRODUCTS,
    RECURRENCES,
    GRAPHS,
    SPARSE,
    FOURIER,
    LARGE,
    INFERENCE,
)
ALL = {name: make for kind in KINDS for name, make in kind.items()}
CONTRACTIONS = ("matrix product", "convolution", "attention")


def share(step: Any, seconds: float) -> dict[str, float]:
    """The GFLOP/s of a step (a partial call) that takes `seconds`, and their share of the machine's peak."""
    from wonderland.inspect.limits import limits

    products = [part for part in wl.explain(step.func, *step.args).steps if part.kind in CONTRACTIONS]
    done = sum(part.multiply_adds for part in products)
    least = sum(part.multiply_adds / limits().of(part.wide) for part in products)  # seconds, at the peak
    return {"gflops": 2e-9 * done / seconds, "share": least / seconds}


def main() -> None:
    parser = arguments("benchmarks.step", ALL)
    parser.add_argument("--backend", default="native", help="native (the default) or numpy")
    parser.add_argument("--share", action="store_true", help="also GFLOP/s and the share of the machine's peak")
    options = parser.parse_args()
    wl.set_backend(options.backend)
    for name in options.workloads:
        found, step = figures(ALL[name], options.seconds)
        if options.share:
            found |= share(step, found["step_ms"] / 1e3)
        line(name, "wonderland", found)


if __name__ == "__main__":
    main()
