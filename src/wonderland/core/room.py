"""How much memory there is. What can never fit is refused before anything is allocated, compiled or written.

The limit is what the process could have if everything else stood still: the memory of the machine and its swap space,
or what its control group (a container, a batch job) or the limit of its address space leaves it. So nothing is refused
that could work; what is below the limit may still fail, if others need the memory.
"""

from __future__ import annotations

import contextlib
import functools
import os
import pathlib
import sys

from .errors import SizeError

GIBIBYTE = 2**30


def memory() -> int:
    """The bytes that this process could have."""
    limit = _machine()
    with contextlib.suppress(ImportError, OSError):
        import resource  # not on Windows

        most, _ = resource.getrlimit(resource.RLIMIT_AS)
        if most != resource.RLIM_INFINITY:
            limit = min(limit, most)
    return limit


@functools.cache
def _machine() -> int:
    """The bytes that the machine has, or the control group in which we run."""
    limit = sys.maxsize  # where the system does not say, the allocation itself will
    with contextlib.suppress(AttributeError, ValueError, OSError):
        limit = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    with contextlib.suppress(OSError):
        limit = min([limit, *group_limits(pathlib.Path("/proc/self/cgroup"), pathlib.Path("/sys/fs/cgroup"))])
    return limit + _swap()


def _swap() -> int:
    with contextlib.suppress(OSError, ValueError, StopIteration), open("/proc/meminfo") as file:
        return 1024 * int(next(line for line in file if line.startswith("SwapTotal")).split()[1])
    return 0


def group_limits(groups: pathlib.Path, root: pathlib.Path) -> list[int]:
    """The limits of the control groups of a process: its own and those above, of either version of the interface."""
    limits = []
    for line in groups.read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers not in ("", "memory"):
            continue
        place = root / controllers / path.lstrip("/")
        for folder in (place, *place.parents):  # in a container the path may be that of the host, and the root ours
            for name in ("memory.max", "memory.limit_in_bytes"):
                with contextlib.suppress(OSError, ValueError):  # not there, or "max"
                    limits.append(int((folder / name).read_text()))
            if folder == root:
                break
    return limits


def check_room(name: str, nbytes: int, what: str, remedy: str) -> None:
    """Refuse `what` (its subject in plural or singular with its verb) if its bytes can never fit.

    >>> check_room("train", 10**18, "the weights need", "fewer of them")
    Traceback (most recent call last):
        ...
    wonderland.errors.SizeError: train: the weights need 931,322,574.6 GiB, the machine has ... GiB.
      try: fewer of them
    ...
    """
    if nbytes > GIBIBYTE and nbytes > (limit := memory()):
        raise SizeError(
            f"{name}: {what} {nbytes / GIBIBYTE:,.1f} GiB, the machine has {limit / GIBIBYTE:,.1f} GiB.", remedy
        )
