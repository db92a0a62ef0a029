"""Code for other processors than the host: narrower vectors, no fused multiply-add, no instructions for float16.

`tools.check` runs more of the compiler's tests for such a processor.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from wonderland.engines.native.llvm import Host
from wonderland.engines.native.processor import KINDS

ROOT = Path(__file__).parents[2]

HALF = """
import numpy as np, wonderland as wl
halves = np.arange(65536, dtype=np.uint16).view(np.float16)
wide = halves.astype(np.float32)
found = np.asarray(wl.jit(lambda x: x.astype("float32"))(wl.asarray(halves)))
number = ~np.isnan(wide)
assert (found.view(np.uint32) == wide.view(np.uint32))[number].all() and np.isnan(found[~number]).all()
between = np.abs(wide[number])  # and what lies next to them, between them, and anywhere
between = np.unique(between[np.isfinite(between)])
some = np.random.default_rng(0).integers(0, 2**32, 100_000, dtype=np.uint32).view(np.float32)
x = np.concatenate([between, np.nextafter(between, 1e30), (between[1:] + between[:-1]) / 2, some, [65520, np.inf]])
x = np.concatenate([x, -x]).astype(np.float32)
with np.errstate(all="ignore"):
    narrow = x.astype(np.float16)
found = np.asarray(wl.jit(lambda x: x.astype("float16"))(wl.asarray(x)))
number = ~np.isnan(x)
assert (found.view(np.uint16) == narrow.view(np.uint16))[number].all() and np.isnan(found[~number]).all()
"""


def run(cpu: str, *arguments: str) -> str:
    environment = os.environ | {"WONDERLAND_CPU": cpu, "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)])}
    done = subprocess.run(
        [sys.executable, *arguments], env=environment, capture_output=True, text=True, stdin=subprocess.DEVNULL
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("cpu", ["x86-64-v2", "x86-64-v4", "neoverse-n1", "apple-m1"])
def test_every_primitive_is_compiled_and_where_possible_run(cpu: str) -> None:
    compiled, ran = map(int, run(cpu, "-m", "tests.engines.processors").split())
    assert compiled > 150
    assert ran == (compiled if Host().has.get(KINDS[cpu].needs) else 0)


@pytest.mark.parametrize("cpu", ["x86-64-v2", "x86-64-v3"])
def test_float16_is_rounded_once_with_and_without_instructions(cpu: str) -> None:
    if not Host().has.get(KINDS[cpu].needs):
        pytest.skip(f"the host cannot run code for {cpu}")
    run(cpu, "-c", HALF)


def test_an_unknown_processor_is_refused() -> None:
    script = "import wonderland as wl\ntry: wl.jit(wl.exp)(wl.ones(2))\nexcept wl.errors.InputError as e: print(e)"
    assert "WONDERLAND_CPU: 'z80' is unknown" in run("z80", "-c", script)
