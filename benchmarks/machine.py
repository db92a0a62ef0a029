"""The day, the machine and the versions that figures belong to, in one line."""

from __future__ import annotations

import datetime
import importlib.metadata
import pathlib
import platform
import subprocess

from .measuring import threads
from .options import Options

CPUS = pathlib.Path("/proc/cpuinfo")
VECTORS = {"avx512f": "AVX-512", "avx2": "AVX2", "asimd": "NEON"}  # the widest first
# holds everybody to AVX2 where there is AVX-512; see UNHELD in options.py
AVX2 = {
    "WONDERLAND_CPU": "x86-64-v3",
    "OPENBLAS_CORETYPE": "Haswell",  # NumPy's products
    "ATEN_CPU_CAPABILITY": "avx2",  # PyTorch, with its libraries
    "ONEDNN_MAX_CPU_ISA": "AVX2",
    "MKL_ENABLE_INSTRUCTIONS": "AVX2",
}


def describe(options: Options) -> str:
    versions = [f"Python {platform.python_version()}", f"NumPy {importlib.metadata.version('numpy')}"]
    versions += [f"{name} {found}" for name in ("torch", "jax") if (found := _version(options.peers, name))]
    return f"{datetime.date.today()}, {threads()} threads, {_processor(options.avx2)}, {', '.join(versions)}."


def _processor(held: bool) -> str:
    if not CPUS.exists():
        return platform.processor() or platform.machine()
    lines = [line.partition(":") for line in CPUS.read_text().splitlines()]
    fields = {key.strip(): value.strip() for key, _, value in lines}
    flags = fields.get("flags", fields.get("Features", "")).split()
    vectors = [name for flag, name in VECTORS.items() if flag in flags][:1]
    vectors += ["everybody held to AVX2"] if held else []
    return ", ".join([fields.get("model name", platform.machine()), *vectors])


def _version(python: str, package: str) -> str | None:
    ask = f"import importlib.metadata; print(importlib.metadata.version({package!r}))"
    done = subprocess.run([python, "-c", ask], capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else None
