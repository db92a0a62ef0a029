"""What programs send between devices, from the text of XLA."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from wonderland.engines.xla.collectives import Collective, collectives, instructions

HEAD = "HloModule jit_f, is_scheduled=true, num_partitions=8\n\n"


def entry(*lines: str) -> str:
    return HEAD + "ENTRY %main (p: f32[8]) -> f32[8] {\n" + "".join(f"  {line}\n" for line in lines) + "}\n"


@pytest.mark.parametrize(
    "line, kind, size, group",
    [
        ("%a = f32[8,64]{1,0} all-reduce(%d), replica_groups=[2,4]<=[8], to_apply=%add", "all-reduce", 2048, 4),
        ("%a = (f32[], bf16[32]{0}) all-reduce(%d, %e), replica_groups={{0,1},{2,3}}", "all-reduce", 68, 2),
        ("%a = f32[8]{0} all-reduce-start(%d), replica_groups={}, to_apply=%add", "all-reduce", 32, 8),
        (
            "%a = f32[64]{0} all-gather(%d), replica_groups=mesh['x'=2,'y'=4] {'y'}, dimensions={0}",
            "all-gather",
            256,
            4,
        ),
        ("%a = (f32[8]{0}, f32[64]{0}) all-gather-start(%d), replica_groups=[1,8]<=[8]", "all-gather", 256, 8),
        ("%a = f32[8]{0} reduce-scatter(%d), replica_groups=[2,4]<=[8], to_apply=%add", "reduce-scatter", 128, 4),
        ("%a = (s8[4]{0}, s8[4]{0}) all-to-all(%d, %e), replica_groups={{0,1}}", "all-to-all", 8, 2),
        (
            "%a = (pred[4]{0}, pred[4]{0}, u32[], u32[]) collective-permute-start(%d), "
            "source_target_pairs={{0,1},{1,2},{2,0}}",
            "collective-permute",
            4,
            3,
        ),
    ],
)
def test_one_instruction(line: str, kind: str, size: int, group: int) -> None:
    assert collectives(entry(line)) == [Collective(kind, size, group, 1, True, ())]


def test_what_is_no_collective() -> None:
    lines = ["%d = f32[8]{0} all-reduce-done(%a)", "%t = f32[8]{0} get-tuple-element(%all-gather.1), index=0"]
    assert collectives(entry(*lines)) == []


def test_kinds_of_instructions() -> None:
    body = "%body (s: f32[8]) -> f32[8] {\n  %t = f32[8]{0} tanh(%s)\n}\n"
    fused = "%fused (s: f32[8]) -> f32[8] {\n  %e = f32[8]{0} exponential(%s)\n}\n"
    lines = [
        "%p = f32[8]{0} parameter(0)",
        "%f = (f32[8]{0}, s32[]) fusion(%p), kind=kLoop, calls=%fused",
        "%w = f32[8]{0:T(8,128)} while(%p), condition=%c, body=%body",
        "%a = f32[8]{0} all-reduce(%w), to_apply=%add",
    ]
    text = entry(*lines).replace("ENTRY", f"{body}\n{fused}\nENTRY")
    assert instructions(text) == {"fusion": 1, "while": 1, "tanh": 1, "all-reduce": 1}


def test_what_a_ring_sends() -> None:
    """A sum that all get is scattered sums that are collected."""
    scatter, gather, both = (
        Collective(k, 800, 8, 3, True, ()).sent for k in ("reduce-scatter", "all-gather", "all-reduce")
    )
    assert scatter == gather == 3 * 700
    assert both == scatter + gather


PROGRAM = """
import jax, jax.numpy as jnp
from jax.sharding import NamedSharding, PartitionSpec as P
from wonderland.engines.xla.collectives import collectives

mesh = jax.make_mesh((2, 4), ("data", "model"))

def f(up, down, x, mixes):
    with jax.named_scope("mlp.up"):
        hidden = jnp.tanh(x @ up)
    with jax.named_scope("mlp.down"):
        y = hidden @ down
    def turn(y, mix):
        with jax.named_scope("loop.mix"):
            return jnp.tanh(y @ mix), None
    y, _ = jax.lax.scan(turn, y, mixes)
    with jax.named_scope("loss"):
        return jnp.sum(y)

specs = [P(None, "model"), P("model", None), P("data", None), P(None, None, "model")]
shapes = [(64, 128), (128, 64), (16, 64), (5, 64, 64)]
compiled = jax.jit(f, in_shardings=[NamedSharding(mesh, s) for s in specs]).lower(
    *[jax.ShapeDtypeStruct(s, jnp.float32) for s in shapes]
).compile()
for c in collectives(compiled.as_text()):
    print(c.kind, c.bytes, c.group, c.times, c.certain, *c.modules)
"""


def test_a_program_on_eight_devices() -> None:
    """Columns, then rows: one sum over the axis that splits them; a loop that collects its state in each turn."""
    pytest.importorskip("jax")
    flags = {"XLA_FLAGS": "--xla_force_host_platform_device_count=8", "JAX_PLATFORMS": "cpu"}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True, env={**os.environ, **flags}
    )
    found = done.stdout.splitlines()
    assert f"all-reduce {8 * 64 * 4} 4 1 True mlp.down" in found
    assert f"all-gather {8 * 64 * 4} 4 5 True loop.mix" in found
    assert any(line.startswith("all-reduce 4 ") and line.endswith("loss") for line in found)
    assert not any("mlp.up" in line for line in found)
