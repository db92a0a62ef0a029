"""Becoming one of several processes, and leaving them."""

from __future__ import annotations

import atexit
import os
import sys
import threading

from ..engines.native.threads import get_threads, is_chosen, set_threads
from .agreement import agree, of_program
from .devices import join_devices
from .environment import LAUNCHED, find_place
from .group import Group
from .mpi import connect

LIFELINE = "WONDERLAND_LIFELINE"  # a pipe that ends when `wonderland launch` does
_alone = Group()
_group: Group | None = None


def init() -> Group:
    """Join the processes that were started together with this one; the group of all of them, see `get_group`.

    >>> import wonderland as wl
    >>> wl.distributed.init()  # here nobody has started others
    <process 0 of 1>

    The first call waits until all processes have come and compares their programs: other code, another command or
    other `WONDERLAND_` variables are refused in all of them. A program that was started alone is a group of one, so the
    same program runs with and without `wonderland launch`. Processes on one machine share its processors, unless
    WONDERLAND_THREADS says how many threads each of them has; results do not depend on it. With the engine "xla" their
    devices make meshes together from then on (`wl.shard`), so it is called before anything is computed on a device.
    """
    global _group
    if _group is None:
        place = find_place()
        if place is None or place.size == 1:
            return _alone
        if LIFELINE in os.environ:
            _end_with_launcher(int(os.environ.pop(LIFELINE)))
        group = Group(place.rank, place.size, connect(place))
        agree(group, "distributed", of_program())
        if place.local_size > 1 and not is_chosen():
            set_threads(min(get_threads(), max(1, (os.cpu_count() or 1) // place.local_size)))
        _group = group
        atexit.register(_leave)
        join_devices(group)
    return _group


def is_initialized() -> bool:
    """Whether this process has joined others."""
    return _group is not None


def get_group() -> Group:
    """The group of all processes, with `rank` and `size`; one of this process alone before `init`."""
    return _group or _alone


def get_rank() -> int:
    """The number of this process, from 0; 0 before `init`.

    >>> import wonderland as wl
    >>> wl.distributed.get_rank(), wl.distributed.get_world_size()
    (0, 1)
    """
    return get_group().rank


def get_world_size() -> int:
    """How many processes compute together; 1 before `init`."""
    return get_group().size


def barrier() -> None:
    """Wait until all processes are here."""
    get_group().gather(None)


def shutdown() -> None:
    """Leave the group, together with all others. At the end of a program this happens by itself."""
    global _group
    group, _group = _group, None
    if group is not None:
        group.transport.close()


def joined_if_launched() -> Group:
    """The group for what works with or without one: joined if `wonderland launch` has started this process."""
    return init() if LAUNCHED in os.environ else get_group()


def _leave() -> None:
    if not hasattr(sys, "last_value"):  # an error that nobody has caught: the others will not come
        shutdown()


def _end_with_launcher(descriptor: int) -> None:
    """End this process when the launcher is gone, however that came about: nobody else would."""

    def watch() -> None:
        os.read(descriptor, 1)  # nothing is ever written
        os._exit(1)

    threading.Thread(target=watch, name="wonderland-lifeline", daemon=True).start()
