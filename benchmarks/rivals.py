"""Ours and the peers that are installed, run in turn, each in a process of its own."""

from __future__ import annotations

import json
import math
import os
import pathlib
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from .options import Options

ROOT = pathlib.Path(__file__).parents[1]
PATIENCE = 900  # seconds for one process
OURS = "wonderland"
Lines = dict[str, dict[str, Any]]  # what a process printed, by workload


@dataclass(frozen=True)
class Rival:
    name: str
    package: str
    command: tuple[str, ...]  # to be followed by names of workloads
    cache: str | None = None  # the environment variable that says where compiled code is kept
    cold_rounds: int = 0  # in how many rounds compiling anew is measured


def rivals(options: Options, operations: bool = False, onnx: bool = False) -> list[Rival]:
    """Who takes part; JAX has no single operations here, and ONNX Runtime forward passes alone."""
    torch = (options.peers, "-m", "benchmarks.peers.torch_step")
    everybody = [
        Rival(OURS, OURS, (sys.executable, "-m", "benchmarks.step"), "WONDERLAND_CACHE", options.rounds),
        Rival("torch", "torch", torch),
        # compiling takes so long that once must do
        Rival("torch.compile", "torch", (*torch, "--compile"), "TORCHINDUCTOR_CACHE_DIR", 1),
        Rival("jax", "jax", (options.peers, "-m", "benchmarks.peers.jax_step")),
    ]
    if operations:
        everybody = everybody[:2]
    if onnx:
        everybody.append(Rival("onnxruntime", "onnxruntime", (options.peers, "-m", "benchmarks.peers.onnx_step")))
    return [r for r in everybody if r.name not in options.skip and (r.name == OURS or has(options.peers, r))]


def has(python: str, rival: Rival) -> bool:
    test = f"import importlib.util, sys; sys.exit(importlib.util.find_spec({rival.package!r}) is None)"
    found = subprocess.run([python, "-c", test], check=False).returncode == 0
    if not found:
        print(f"{rival.name}: {python} has no {rival.package}; --peers names an interpreter that has", file=sys.stderr)
    return found


def run(rival: Rival, names: Iterable[str], seconds: float, cache: str | None = None, *more: str) -> Lines:
    """What one process measures; what fails is told and left out."""
    environment = dict(os.environ) | ({rival.cache: cache} if rival.cache and cache else {})
    command = [*rival.command, *names, f"--seconds={seconds}", *more]
    try:
        done = subprocess.run(
            command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=PATIENCE, check=False
        )
    except subprocess.TimeoutExpired:
        print(f"{' '.join(command)}: no answer in {PATIENCE} s", file=sys.stderr)
        return {}
    if done.returncode:
        print(f"{' '.join(command)} failed\n{done.stderr[-600:]}", file=sys.stderr)
    lines = [json.loads(text) for text in done.stdout.splitlines() if text.startswith("{")]
    return {line["workload"]: line for line in lines}


def best_seconds(everybody: list[Rival], names: list[str], options: Options) -> dict[str, dict[str, float]]:
    """The best time of every workload, by rival: each round asks one process of each, for all of them."""
    best: dict[str, dict[str, float]] = {rival.name: {} for rival in everybody}
    for _ in range(options.rounds):
        for rival in everybody:
            for name, line in run(rival, names, options.seconds / 10).items():
                best[rival.name][name] = min(line["step_ms"] / 1e3, best[rival.name].get(name, math.inf))
    return best
