"""Several processes as one job of XLA: joining them, and comparing what each of them brings to a mesh of all devices.

Every process runs the same programs in the same order, each on its own devices; XLA carries what goes between them.
"""

from __future__ import annotations

import atexit
import hashlib
import os
import sys

import jax
import numpy as np

from ...core.errors import InputError, ProcessError
from ...core.typing import Array
from ..engine import Processes

# what says which accelerators a process sees, if several share a machine
_CHOSEN = ("CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "JAX_LOCAL_DEVICE_IDS")
_job: Processes | None = None


def joined() -> bool:
    """Whether this process is one of several."""
    return _job is not None


def check_unused() -> None:
    """Raise if this process has touched its devices: it is too late then for others to join it."""
    if jax.distributed.is_initialized():
        raise InputError(
            "distributed: jax.distributed.initialize() was called before.",
            "wl.distributed.init() alone, which calls it with the addresses that MPI knows",
        )
    try:  # refused in any case: for what was done before, or for its number, which is beyond the last
        jax.distributed.initialize("nobody:1", num_processes=1, process_id=1, cluster_detection_method="deactivate")
    except ValueError:
        return
    except RuntimeError:
        raise InputError(
            "distributed: JAX has used its devices before the processes have joined.",
            'wl.set_backend("xla") and wl.distributed.init() first in the program, before anything is computed on XLA',
        ) from None


def join(processes: Processes, address: str, place_on_machine: int | None) -> None:
    """Become one of several processes that find each other at an address. All of them call it.

    `place_on_machine` is the number of the process among those of its machine, if these are several: each of them takes
    the accelerator of that number, unless its environment says which. Processors are not shared out.
    """
    global _job
    mine = None if place_on_machine is None or any(name in os.environ for name in _CHOSEN) else [place_on_machine]
    jax.config.update("jax_cpu_collectives_implementation", "gloo")
    try:
        jax.distributed.initialize(
            address,
            num_processes=processes.size,
            process_id=processes.rank,
            local_device_ids=mine,
            cluster_detection_method="deactivate",  # the launcher was asked before, by distributed/environment.py
            coordinator_bind_address=address if address.startswith("127.") else None,
        )
    except RuntimeError as error:
        raise ProcessError(
            f"distributed: process {processes.rank} does not meet the others on XLA at {address}: {error}",
            "MASTER_ADDR or WONDERLAND_COORDINATOR with a name of the first machine by which all reach it",
        ) from error
    _job = processes
    atexit.register(_leave)


def compare(x: Array) -> None:
    """`ProcessError` in all processes if they do not bring the same value."""
    assert _job is not None  # or no device would be elsewhere
    array = np.ascontiguousarray(x)
    digest = hashlib.blake2b(f"{array.dtype}{x.shape}".encode(), digest_size=16)
    digest.update(array.reshape(-1).view(np.uint8).data)
    found = _job.transport.gather(np.frombuffer(digest.digest(), np.uint8))
    other = (found != found[0]).any(axis=1)
    if other.any():
        raise ProcessError(
            f"mesh: a tensor of {x.dtype} and shape {x.shape} that goes to the devices of all processes has other "
            f"numbers in process {int(other.argmax())} than in process 0.",
            "the same model (wl.random.seed) and the same whole batch in all of them; `fit` reads a part in each",
        )


def _leave() -> None:
    """After an error that nobody has caught the others will not come, and JAX would wait for them: end at once."""
    if hasattr(sys, "last_value"):
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(130 if isinstance(sys.last_value, KeyboardInterrupt) else 1)
