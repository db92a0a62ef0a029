"""What a program sends between devices, read from the text of what XLA compiled.

An instruction is a line such as

    %all-reduce.2 = f32[8,64]{1,0} all-reduce(%dot), replica_groups=[2,4]<=[8], to_apply=%add,
        metadata={op_name="jit(f)/blocks.0.mlp.down/dot_general"}

The scope in `op_name` is the path of the module, because graphs are lowered under it.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

KINDS = ("all-reduce", "all-gather", "reduce-scatter", "all-to-all", "collective-permute")
_BITS = {"pred": 8, "token": 0, "bf16": 16, "c64": 64, "c128": 128}  # others have theirs in their names
_COMPUTATION = re.compile(r"^(ENTRY )?%?([\w.\-]+) \(.*\{$")
_INSTRUCTION = re.compile(rf"= (.*?) ({'|'.join(KINDS)})(-start)?\(")
_OPERATION = re.compile(r" = .*?[\])}] ([a-z][a-z\-]*)\(")
_FREE = ("parameter", "constant", "tuple", "get-tuple-element", "bitcast", "partition-id")
_SHAPE = re.compile(r"\b([a-z]+\d*(?:e\d+m\d+\w*)?)\[([\d,]*)\]")
_WHILE = re.compile(r" while\(.*body=%?([\w.\-]+)")
_TRIPS = re.compile(r'"known_trip_count":\{"n":"(\d+)"\}')
_CALLS = re.compile(r"(?:calls|to_apply|true_computation|false_computation)=%?([\w.\-]+)")
_BRANCHES = re.compile(r"branch_computations=\{([^}]*)\}")
_OWN = re.compile(r"^(jit\(.*\)|while|body|cond|closed_call|checkpoint|branch_\d+_fun)$")  # scopes that JAX adds


class Collective(NamedTuple):
    """Devices that exchange something, at one place of a program."""

    kind: str
    bytes: int  # of what is summed, collected or exchanged, on one device
    group: int  # how many devices take part together
    times: int  # how often in a run
    certain: bool  # false in loops whose number of turns is not known; they are counted once
    modules: tuple[str, ...]  # the paths of the modules that it is for

    @property
    def sent(self) -> int:
        """What each device sends in a run if the devices of a group stand in a ring."""
        n = max(self.group, 1)
        if self.kind == "collective-permute":
            return self.times * self.bytes
        rounds = 2 if self.kind == "all-reduce" else 1  # scattered sums, which are then collected
        return self.times * rounds * self.bytes * (n - 1) // n


def collectives(text: str) -> list[Collective]:
    """All collectives of a compiled program (`compiled.as_text()`), in the order of the text."""
    bodies = dict(_computations(text))
    often = _times(bodies)
    devices = int(found.group(1)) if (found := re.search(r"num_partitions=(\d+)", text)) else 1
    return [
        _collective(line, match, *often[name], devices)
        for name, lines in bodies.items()
        if name in often
        for line in lines
        if (match := _INSTRUCTION.search(line))
    ]


def instructions(text: str) -> Counter[str]:
    """How many instructions of each kind a compiled program has; those of loops count once, a fusion is one."""
    bodies, found, known = dict(_computations(text)), Counter[str](), set[str]()

    def visit(name: str) -> None:
        if name in known:
            return
        known.add(name)
        for line in bodies.get(name, ()):
            match = _OPERATION.search(line)
            kind = match.group(1) if match else ""
            if kind and kind not in _FREE:
                found[kind] += 1
            if kind in ("while", "conditional", "call"):
                listed = (name for names in _BRANCHES.findall(line) for name in names.split(","))
                for inner in [*_WHILE.findall(line), *_CALLS.findall(line), *listed]:
                    visit(inner.strip().lstrip("%"))

    visit("ENTRY")
    return found


def _computations(text: str) -> Iterator[tuple[str, list[str]]]:
    """The lines of each computation; that of the whole program is called ENTRY."""
    name, lines = "", list[str]()
    for line in text.splitlines():
        if match := _COMPUTATION.match(line):
            name, lines = "ENTRY" if match.group(1) else match.group(2), []
        elif line == "}" and name:
            yield name, lines
            name = ""
        else:
            lines.append(line)


def _times(bodies: dict[str, list[str]]) -> dict[str, tuple[int, bool]]:
    """How often each computation runs, and whether that is certain."""
    found: dict[str, tuple[int, bool]] = {}

    def visit(name: str, times: int, certain: bool) -> None:
        before, sure = found.get(name, (0, True))
        found[name] = before + times, sure and certain
        for line in bodies.get(name, ()):
            if loop := _WHILE.search(line):
                trips = _TRIPS.search(line)
                visit(loop.group(1), times * (int(trips.group(1)) if trips else 1), certain and trips is not None)
            elif branches := _BRANCHES.search(line):
                for inner in branches.group(1).split(","):
                    visit(inner.strip().lstrip("%"), times, False)  # one of them runs
            else:
                for inner in _CALLS.findall(line):
                    visit(inner, times, certain)

    visit("ENTRY", 1, True)
    return found


def _collective(line: str, match: re.Match[str], times: int, certain: bool, devices: int) -> Collective:
    result, kind, started = match.groups()
    sizes = [_bytes(*shape) for shape in _SHAPE.findall(result)]
    if started and kind == "all-gather":
        sizes = sizes[len(sizes) // 2 :]  # what goes in comes first
    elif started and kind == "collective-permute":
        sizes = sizes[1:2]
    group = _group(line, devices)
    whole = sum(sizes) * (group if kind == "reduce-scatter" else 1)
    return Collective(kind, whole, group, times, certain, _modules(line))


def _bytes(dtype: str, sizes: str) -> int:
    bits = _BITS.get(dtype)
    if bits is None:
        digits = re.search(r"\d+", dtype)
        bits = int(digits.group()) if digits else 0
    return math.prod(int(n) for n in sizes.split(",") if n) * bits // 8


def _group(line: str, devices: int) -> int:
    """The size of a group, in each of the ways in which XLA writes them."""
    if match := re.search(r"replica_groups=\[\d+,(\d+)\]", line):  # [groups, size]<=[...]
        return int(match.group(1))
    if match := re.search(r"replica_groups=mesh\[([^\]]*)\] \{([^}]*)\}", line):  # by axes of a mesh
        sizes = {name: int(size) for name, size in re.findall(r"'([^']+)'=(\d+)", match.group(1))}
        return math.prod(sizes[name] for name in re.findall(r"'([^']+)'", match.group(2)))
    if match := re.search(r"replica_groups=\{\{([\d,]*)\}", line):
        return len(match.group(1).split(","))
    if match := re.search(r"source_target_pairs=\{([^=]*?)\}\}", line):
        return len(set(re.findall(r"\d+", match.group(1))))
    return devices


def _modules(line: str) -> tuple[str, ...]:
    """The scopes under which what is sent was computed; several where XLA sends the results of several together."""
    match = re.search(r'op_name="([^"]*)"', line)
    if match is None:
        return ()
    name = re.sub(r"^jit\([^)]*\)/\((.*)\)$", r"\1", match.group(1))
    found = []
    for path in name.split(":"):
        scopes = [part for part in path.split("/") if not _OWN.match(part)]
        module = scopes[0].partition(" (")[0] if len(scopes) > 1 else ""  # without its class
        if module and module not in found:
            found.append(module)
    return tuple(found)
