"""Where the processes of MPI find each other if no program of MPI has started them.

MPICH asks its launcher for the addresses of the other processes in a small language of lines, the first version of the
process management interface (PMI): put, get, barrier. This is the answering side, for `wonderland launch`, torchrun,
Kubernetes and whatever else sets RANK and WORLD_SIZE. All that processes tell each other later goes through MPI.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import secrets
import socket
import threading
import time
from collections.abc import Callable

from ..core.errors import ProcessError

PATIENCE = 120.0  # seconds until all processes must have come: they may start at different times


class MeetingPoint:
    """Answers `size` processes, each in a thread of its own, until they have left."""

    def __init__(self, size: int, host: str = "127.0.0.1", port: int = 0) -> None:
        self.size = size
        self.hosts: dict[int, str] = {}
        self.values: dict[str, str] = {}
        self.name = f"wonderland_{secrets.token_hex(8)}"  # MPI calls shared memory by it, which no two runs may share
        self._all_here = threading.Barrier(size, action=self._map_hosts)
        self._socket = socket.create_server((host, port), backlog=size)
        self.port = self._socket.getsockname()[1]

    def serve(self) -> None:
        """Let all processes in, and answer until the last one has left."""
        self._socket.settimeout(PATIENCE)
        threads = []
        with self._socket:
            for _ in range(self.size):
                try:
                    visitor, _ = self._socket.accept()
                except OSError:  # somebody did not come, or the run is over: those who wait are told
                    self._all_here.abort()
                    break
                threads.append(threading.Thread(target=self._answer, args=(visitor,), daemon=True))
                threads[-1].start()
        for thread in threads:
            thread.join()

    def close(self) -> None:
        """Let nobody in any more."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()

    def _map_hosts(self) -> None:
        """Say which ranks share a machine, and so memory: (first machine, machines, processes on each), ..."""
        names = list(dict.fromkeys(self.hosts[rank] for rank in range(self.size)))
        runs = [(host, len(list(run))) for host, run in itertools.groupby(self.hosts[r] for r in range(self.size))]
        blocks = ",".join(f"({names.index(host)},1,{count})" for host, count in runs)
        self.values.setdefault("PMI_process_mapping", f"(vector,{blocks})")

    def _answer(self, visitor: socket.socket) -> None:
        # a process that dies is its launcher's business; its connection just ends
        with visitor, visitor.makefile("rwb") as lines, contextlib.suppress(OSError, threading.BrokenBarrierError):
            rank, host = lines.readline().decode().split()
            self.hosts[int(rank)] = host
            self._all_here.wait(PATIENCE)
            for line in lines:
                asked = dict(word.partition("=")[::2] for word in line.decode().split())
                answer = ANSWERS.get(asked.get("cmd", ""), _unknown)(self, asked)
                lines.write(f"{answer}\n".encode())
                lines.flush()


def _put(point: MeetingPoint, asked: dict[str, str]) -> str:
    point.values[asked["key"]] = asked["value"]
    return "cmd=put_result rc=0 msg=success"


def _get(point: MeetingPoint, asked: dict[str, str]) -> str:
    found = point.values.get(asked["key"])
    if found is None:
        return "cmd=get_result rc=-1 msg=key_not_found value=unknown"
    return f"cmd=get_result rc=0 msg=success value={found}"


def _barrier(point: MeetingPoint, asked: dict[str, str]) -> str:
    point._all_here.wait()
    return "cmd=barrier_out rc=0"


def _unknown(point: MeetingPoint, asked: dict[str, str]) -> str:
    return f"cmd={asked.get('cmd', 'nothing')} rc=-1 msg=unknown"


ANSWERS: dict[str, Callable[[MeetingPoint, dict[str, str]], str]] = {
    "init": lambda point, asked: "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0",
    "get_maxes": lambda point, asked: "cmd=maxes kvsname_max=256 keylen_max=64 vallen_max=1024 rc=0",
    "get_appnum": lambda point, asked: "cmd=appnum appnum=0 rc=0",
    "get_my_kvsname": lambda point, asked: f"cmd=my_kvsname kvsname={point.name} rc=0",
    "get_universe_size": lambda point, asked: f"cmd=universe_size size={point.size} rc=0",
    "put": _put,
    "get": _get,
    "barrier_in": _barrier,
    "finalize": lambda point, asked: "cmd=finalize_ack rc=0",
}


def go_to(address: str, rank: int, size: int) -> None:
    """Connect this process with the meeting point, so that MPI finds the connection when it starts."""
    host, _, port = address.rpartition(":")
    end = time.monotonic() + PATIENCE
    while True:
        try:
            connection = socket.create_connection((host, int(port)), timeout=PATIENCE)
            break
        except OSError as error:
            if time.monotonic() > end:
                raise ProcessError(
                    f"distributed: process {rank} does not reach process 0 at {address}: {error.strerror or error}.",
                    "MASTER_ADDR and MASTER_PORT that all machines reach, and as many processes as WORLD_SIZE says",
                ) from None
            time.sleep(0.1)  # the first process may be a little later
    connection.settimeout(None)
    connection.sendall(f"{rank} {socket.gethostname()}\n".encode())
    os.environ |= {"PMI_FD": str(connection.detach()), "PMI_RANK": str(rank), "PMI_SIZE": str(size)}
