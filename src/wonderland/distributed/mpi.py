"""Messages by MPI, through mpi4py: what carries arrays between the processes of a group."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
import time
from collections.abc import Callable
from types import ModuleType

import numpy as np

from ..core.errors import InputError, ProcessError
from ..core.typing import Array
from . import meeting_point
from .environment import LAUNCHED, Place

BUSY = 0.02  # seconds of waiting at full speed; who waits longer leaves the processor to others
FAREWELL = 2.0  # seconds to wait for the others at the end
# what programs that start MPI's processes themselves set
_STARTED_BY_MPI = ("PMI_FD", "PMI_PORT", "PMIX_NAMESPACE", "OMPI_COMM_WORLD_SIZE")


class MPITransport:
    """A communicator of MPI. Waiting is done here, so that Ctrl-C is heard and a long wait costs no processor."""

    def __init__(self, mpi: ModuleType) -> None:
        self.mpi, self.size = mpi, mpi.COMM_WORLD.size
        self.communicator = mpi.COMM_WORLD.Dup()
        self.farewell = mpi.COMM_WORLD.Dup()  # a process that fails may be the only one that says good-bye

    def exchange(self, rows: Array) -> Array:
        received = np.empty_like(rows)
        self._wait(self.communicator.Ialltoall(self._bytes(rows), self._bytes(received)).Test)
        return received

    def gather(self, row: Array) -> Array:
        received = np.empty((self.size, *row.shape), row.dtype)
        self._wait(self.communicator.Iallgather(self._bytes(row), self._bytes(received)).Test)
        return received

    def close(self) -> None:
        request = self.farewell.Ibarrier()
        end = time.monotonic() + FAREWELL
        while not request.Test():
            if time.monotonic() > end:  # the others do not come: there is nothing to end in order
                return
            time.sleep(0.001)
        self.mpi.Finalize()

    def _bytes(self, array: Array) -> list[object]:
        return [array.reshape(-1).view(np.uint8), self.mpi.BYTE]

    def _wait(self, done: Callable[[], bool]) -> None:
        end = time.monotonic() + BUSY
        while not done():
            time.sleep(0.0 if time.monotonic() < end else 0.0005)


def connect(place: Place) -> MPITransport:
    """Start MPI in this process, whoever has started the process."""
    check_installed()
    if not any(name in os.environ for name in _STARTED_BY_MPI):
        if place.coordinator is None:
            raise InputError(
                f"distributed: {place.size} processes by {place.launcher}, which do not know where to find each other.",
                "MASTER_ADDR and MASTER_PORT, the same in all processes",
            )
        if place.rank == 0 and LAUNCHED not in os.environ:
            _, _, port = place.coordinator.rpartition(":")
            start = f"import {meeting_point.__name__} as point; point.MeetingPoint({place.size}, '', {port}).serve()"
            subprocess.Popen([sys.executable, "-c", start], stdin=subprocess.DEVNULL, start_new_session=True)
        meeting_point.go_to(place.coordinator, place.rank, place.size)
    settings = importlib.import_module("mpi4py").rc
    settings.initialize, settings.finalize = False, False  # a process that has failed would wait for the others
    try:
        mpi = importlib.import_module("mpi4py.MPI")
        if not mpi.Is_initialized():
            mpi.Init_thread(mpi.THREAD_SERIALIZED)
    except (ImportError, RuntimeError) as error:
        raise ProcessError(
            f"distributed: MPI does not start ({error}).", "pip install 'wonderland[cluster]', which brings MPICH"
        ) from None
    communicator = mpi.COMM_WORLD
    if (communicator.rank, communicator.size) != (place.rank, place.size):
        library = mpi.Get_library_version().split("\n")[0].strip()
        raise ProcessError(
            f"distributed: {place.launcher} says process {place.rank} of {place.size}, MPI ({library}) says "
            f"{communicator.rank} of {communicator.size}.",
            "the launcher of this MPI (mpiexec), or MPICH: pip install 'wonderland[cluster]'",
        )
    return MPITransport(mpi)


def check_installed() -> None:
    """Refuse to begin without mpi4py."""
    try:
        importlib.import_module("mpi4py")
    except ImportError:
        raise InputError(
            "distributed: mpi4py is not installed.", "pip install 'wonderland[cluster]' (MPI, some 20 MB)"
        ) from None
