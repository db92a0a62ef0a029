"""The devices of several processes as those of one program: what engines with devices are told when processes join."""

from __future__ import annotations

import socket

from ..engines.choosing import get_backend
from ..engines.engine import WithDevices, far_engine
from .agreement import agree
from .environment import find_place
from .group import Group

_joined: set[str] = set()  # engines whose devices make meshes over all processes


def join_devices(group: Group) -> WithDevices | None:
    """The engine that is chosen, if it has devices, with those of all processes of a group; all of them call it.

    The first call lets the processes find each other a second time: messages of our own go by MPI, and what programs
    send between devices is the engine's matter.
    """
    name = get_backend()
    engine = far_engine(name)
    if group.size > 1 and name not in _joined:
        agree(group, "distributed", {"the engine": name})
        if engine is None:
            return None
        group.by_all("distributed", engine.check_unused)
        machines = group.gather(socket.gethostname())
        address = _address(group, machines)
        place = machines[: group.rank].count(machines[group.rank])
        engine.join(group, address, place if machines.count(machines[group.rank]) > 1 else None)
        _joined.add(name)
    return engine


def _address(group: Group, machines: list[str]) -> str:
    """Where process 0 is to be found: at a free port of its machine, by the name that its launcher knows."""
    found = ""
    if group.rank == 0:
        place = find_place()
        known = place.coordinator.rpartition(":")[0] if place is not None and place.coordinator else ""
        one = len(set(machines)) == 1
        host = "127.0.0.1" if one else known if known and not known.startswith(("127.", "localhost")) else machines[0]
        with socket.create_server(("127.0.0.1" if one else "", 0)) as free:
            found = f"{host}:{free.getsockname()[1]}"
    return group.gather(found)[0]
