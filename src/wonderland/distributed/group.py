"""A group of processes that compute together: what each of them holds is added up in the order of their ranks.

An element of a sum is x_0 + x_1 + ... + x_{n-1}, in this order, whoever computes it and whenever messages arrive. So
all processes hold the same bits, and n of them give the same result run after run.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Protocol, TypeVar

import numpy as np

from ..core.dtypes import is_half
from ..core.errors import ProcessError, WonderlandError
from ..core.typing import Array

SMALL = 2**16  # bytes of an array that everybody sends to everybody; of larger ones, each process adds up a part
Value = TypeVar("Value")


class Transport(Protocol):
    """What carries bytes between processes. All of them call the same methods in the same order."""

    def exchange(self, rows: Array) -> Array:
        """Row j of mine goes to process j; row i of the result came from process i."""

    def gather(self, row: Array) -> Array:
        """The rows of all processes, in the order of their ranks."""

    def close(self) -> None:
        """The end of a run that went well."""


class Group:
    """Processes with ranks 0 to n - 1. Alone, without a transport, a process is a group of one."""

    def __init__(self, rank: int = 0, size: int = 1, transport: Transport | None = None) -> None:
        self.rank, self.size = rank, size
        self._transport = transport

    @property
    def transport(self) -> Transport:
        assert self._transport is not None  # only a group of one has none, and it asks for nothing
        return self._transport

    def __repr__(self) -> str:
        return f"<process {self.rank} of {self.size}>"

    def sum(self, x: Array) -> Array:
        """The sum of the processes' arrays, which have one shape and dtype; those of sixteen bits are rounded once."""
        if self.size == 1:
            return np.array(x)
        flat = np.ascontiguousarray(x).reshape(-1)
        if flat.nbytes <= SMALL:
            total = _in_order(self.transport.gather(flat))
        else:
            part = -(-flat.size // self.size)
            rows = np.zeros(self.size * part, flat.dtype)
            rows[: flat.size] = flat
            mine = _in_order(self.transport.exchange(rows.reshape(self.size, part)))
            total = self.transport.gather(mine).reshape(-1)[: flat.size]
        return total.reshape(x.shape)

    def gather_bytes(self, contents: bytes) -> list[bytes]:
        """What each process has, of any length."""
        if self.size == 1:
            return [contents]
        lengths = self.transport.gather(np.array([len(contents)], np.int64)).reshape(-1).tolist()
        padded = np.zeros(max(max(lengths), 1), np.uint8)
        padded[: len(contents)] = np.frombuffer(contents, np.uint8)
        rows = self.transport.gather(padded)
        return [row[:length].tobytes() for row, length in zip(rows, lengths, strict=True)]

    def gather(self, value: Value) -> list[Value]:
        """What each process has, in the order of ranks: plain data, as in JSON."""
        if self.size == 1:
            return [value]
        return [json.loads(found) for found in self.gather_bytes(json.dumps(value).encode())]

    def by_first(self, what: str, f: Callable[[], Value]) -> Value | None:
        """Let the first process do something while the others wait; if it fails, the error is raised everywhere."""
        return self.by_all(what, f if self.rank == 0 else lambda: None)

    def by_all(self, what: str, f: Callable[[], Value]) -> Value:
        """Let every process do something; if one fails, nobody goes on."""
        found, error = None, None
        try:
            found = f()
        except WonderlandError as failed:
            error = failed
        if self.size > 1:
            told = self.gather(None if error is None else str(error).partition("\n")[0])
            if error is None and any(told):
                rank = next(i for i, text in enumerate(told) if text is not None)
                error = ProcessError(f"{what}: process {rank} has failed: {told[rank]}", "what its own error says")
        if error is not None:
            raise error
        return found  # type: ignore[return-value]  # without an error there is one


def _in_order(rows: Array) -> Array:
    """The sum of rows, first to last; halves are added in float32."""
    dtype = rows.dtype
    total = rows[0].astype(np.float32) if is_half(dtype) else rows[0].copy()
    for row in rows[1:]:
        total += row  # += with a row of sixteen bits widens it
    return total.astype(dtype, copy=False)
