"""Several processes that compute as one: each has a part of every batch, and gradients meet in sums of a fixed order.

    wonderland launch -n 2 train.py

See docs/scale.md. The processes are started by `wonderland launch`, or on many machines by `srun`, `mpiexec`,
`torchrun` or Kubernetes; messages are carried by MPI (`pip install 'wonderland[cluster]'`).
"""

from ..core.naming import hints_for as _hints_for
from .joining import barrier, get_group, get_rank, get_world_size, init, is_initialized, shutdown
from .sums import all_gather, all_mean, all_sum, broadcast

# fmt: off
__all__ = [
    "init", "shutdown", "is_initialized", "get_group", "get_rank", "get_world_size", "barrier",
    "all_sum", "all_mean", "all_gather", "broadcast",
]

_hints_for(globals())
