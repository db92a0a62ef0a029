"""Which of several processes this one is, as the program that started them says in environment variables."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from ..core.errors import InputError

LAUNCHED = "WONDERLAND_LAUNCHED"  # set by `wonderland launch`
COORDINATOR = "WONDERLAND_COORDINATOR"  # host:port at which the processes find each other


class Launcher(NamedTuple):
    """The variables in which a launcher says who is who: of all processes, and of those on the same machine."""

    name: str
    rank: str
    size: str
    local_rank: str
    local_size: str


LAUNCHERS = (
    Launcher("Open MPI", *(f"OMPI_COMM_WORLD_{part}" for part in ("RANK", "SIZE", "LOCAL_RANK", "LOCAL_SIZE"))),
    Launcher("MPICH", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"),
    Launcher("wonderland launch or torchrun", "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"),
    Launcher("Kubernetes", "JOB_COMPLETION_INDEX", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"),
    # inside a step that `srun` has started, and not in the script around it, which runs once
    Launcher("Slurm", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", "SLURM_STEP_TASKS_PER_NODE"),
)


@dataclass(frozen=True)
class Place:
    """A process among others: its number, how many there are, the same on its machine, and where they find each other.

    >>> place = find_place({"RANK": "1", "WORLD_SIZE": "4", "MASTER_ADDR": "node-0", "MASTER_PORT": "29500"})
    >>> place.rank, place.size, place.coordinator
    (1, 4, 'node-0:29500')
    """

    launcher: str
    rank: int
    size: int
    local_rank: int
    local_size: int
    coordinator: str | None


def find_place(environment: Mapping[str, str] | None = None) -> Place | None:
    """Where this process stands; None if nobody has started several."""
    known = os.environ if environment is None else environment
    for launcher in LAUNCHERS:
        if launcher.rank not in known or (launcher.size not in known and launcher.name in ("Kubernetes", "Slurm")):
            continue
        if launcher.size not in known:
            raise InputError(
                f"distributed: {launcher.rank}={known[launcher.rank]} is set, and {launcher.size} is not.",
                f"{launcher.size} with the number of processes, or `wonderland launch -n N`",
            )
        size = _number(known, launcher.size, 1)
        rank = _number(known, launcher.rank, 0)
        if rank >= size:
            raise InputError(
                f"distributed: {launcher.rank}={rank} of {launcher.size}={size} processes.", f"ranks 0 to {size - 1}"
            )
        local_rank = _number(known, launcher.local_rank, 0) if launcher.local_rank in known else 0
        local_size = _number(known, launcher.local_size, 1) if launcher.local_size in known else 1
        return Place(launcher.name, rank, size, local_rank, local_size, _coordinator(known))
    return None


def _number(known: Mapping[str, str], name: str, least: int) -> int:
    text = known[name]
    found = re.fullmatch(r"(\d{1,9})(\(x\d+\))?(,.*)?", text)  # Slurm writes 2(x3),1 for tasks on nodes
    if found is None or int(found[1]) < least:
        raise InputError(f"distributed: {name}={text!r}.", f"a whole number, {least} or more")
    return int(found[1])


def _coordinator(known: Mapping[str, str]) -> str | None:
    if COORDINATOR in known:
        host, _, port = known[COORDINATOR].rpartition(":")
        if not host or not port.isdigit():
            raise InputError(f"distributed: {COORDINATOR}={known[COORDINATOR]!r}.", "host:port, as node-0:29400")
        return known[COORDINATOR]
    if "MASTER_ADDR" in known and "MASTER_PORT" in known:
        taken = "TORCHELASTIC_RUN_ID" in known  # torchrun itself listens at its port while its processes run
        return f"{known['MASTER_ADDR']}:{_number(known, 'MASTER_PORT', 1) + taken}"
    if "SLURM_STEP_NODELIST" in known and "SLURM_JOB_ID" in known:
        # as others do: the first machine, at a port that follows from the number of the job
        return f"{_first_host(known['SLURM_STEP_NODELIST'])}:{61440 + _number(known, 'SLURM_JOB_ID', 0) % 4096}"
    return None


def _first_host(nodes: str) -> str:
    """The first name in a list as Slurm writes it.

    >>> _first_host("node[07-09,12],other"), _first_host("a1,b2")
    ('node07', 'a1')
    """
    found = re.match(r"([^,\[]+)(?:\[(\d+)[^\]]*\]([^,]*))?", nodes)
    return nodes if found is None else "".join(part or "" for part in found.groups())
