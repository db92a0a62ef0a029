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


def check(cpu: str, least: int, *which: str) -> None:
    compiled, ran = map(int, run(cpu, "-m", "tests.engines.processors", *which).split())
    assert compiled > least
    assert ran == (compiled if Host().has.get(KINDS[cpu].needs) else 0)


@pytest.mark.parametrize("cpu", ["x86-64-v2", "x86-64-v4", "neoverse-n1"])
def test_every_primitive_is_compiled_and_where_possible_run(cpu: str) -> None:
    check(cpu, 150)


@pytest.mark.parametrize("cpu", ["apple-m1"])  # as neoverse-n1, but for the system
def test_every_kernel_is_compiled_and_where_possible_run(cpu: str) -> None:
    check(cpu, 60, "kernels")


@pytest.mark.parametrize("cpu", ["x86-64-v2", "x86-64-v3"])
def test_float16_is_rounded_once_with_and_without_instructions(cpu: str) -> None:
    if not Host().has.get(KINDS[cpu].needs):
        pytest.skip(f"the host cannot run code for {cpu}")
    run(cpu, "-c", HALF)


def test_an_unknown_processor_is_refused() -> None:
    script = "import wonderland as wl\ntry: wl.jit(wl.exp)(wl.ones(2))\nexcept wl.errors.InputError as e: print(e)"
    assert "WONDERLAND_CPU: 'z80' is unknown" in run("z80", "-c", script)


PAIRS = """
import wonderland as wl
from wonderland.engines.native.machine import machine
from wonderland.engines.native.products.steps import product_steps
from wonderland.engines.native.program import text_of
from wonderland.engines.native.values import Buffer, Hole, View, whole

def product(low, turned):
    cpu, dtype = machine().cpu, wl.ones((), dtype=low).dtype
    x, w = (whole(Buffer("input", a * b, dtype), (a, b)) for a, b in ((24, 40), (40, 36)))
    if turned:
        w = View(w.buffer, (40, 36), (1, 40), 0)
    hole = Hole((24, 36), dtype)
    steps = product_steps(cpu, x, w, hole, [(whole(Buffer("output", 24 * 36, dtype), (24, 36)), hole)])
    print(sum(machine().assembly(text_of(step, cpu, "routine")).count("vdpbf16ps") for step in steps))

product("bfloat16", False), product("bfloat16", True), product("float16", False)
"""


def test_products_of_bfloat16_use_the_instruction_for_pairs() -> None:
    plain, turned, other = map(int, run("cooperlake", "-c", PAIRS).split())
    assert plain > 0
    assert turned > 0
    assert other == 0
