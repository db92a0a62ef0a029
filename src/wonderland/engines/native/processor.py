"""The processor that code is written for: everything the compiler asks about it, as data.

The whole engine takes one as an argument, `cpu`. So code can be written for narrower vectors than the host's, and
looked at for machines that are not there.
"""

from __future__ import annotations

import ctypes
import sys
from typing import NamedTuple

from ...core.errors import InputError
from .caches import Caches, of_this_machine
from .llvm import Host, initialize_every_target


class Processor(NamedTuple):
    """A processor. LLVM knows it by the first three."""

    triple: str
    name: str
    features: str
    vector_bytes: int
    registers: int  # that hold vectors
    converts_half: bool  # float16 from and to float32, by instructions
    pairs_of_bfloat16: bool = False  # multiplied and added to float32, by an instruction (AVX512-BF16)
    byte_products: str = ""  # the instruction that adds up products of int8, if any: see products/byte_products.py
    tiles: bool = False  # multiplied in registers of their own, of bfloat16 and int8 (AMX): see products/amx.py
    first_cache: int = Caches().first  # bytes; on a machine that is not there, what most have
    second_cache: int = Caches().second

    def lanes(self, itemsize: int) -> int:
        """How many elements of so many bytes a vector holds."""
        return self.vector_bytes // itemsize


class Kind(NamedTuple):
    """A kind of processor that can be asked for by name."""

    vector_bytes: int
    registers: int
    converts_half: bool
    needs: str  # the feature that a host needs to run its code
    triple: str | None = None  # None: that of the host
    pairs_of_bfloat16: bool = False
    byte_products: str = ""
    tiles: bool = False


# WONDERLAND_CPU chooses one, to try its code where the host can run it and to compile it where it cannot. The first two
# have no fused multiply-add.
KINDS = {
    "x86-64-v2": Kind(16, 16, False, "sse4.2", byte_products="pmaddwd"),
    "sandybridge": Kind(32, 16, False, "avx"),
    "x86-64-v3": Kind(32, 16, True, "avx2", byte_products="pmaddwd"),
    "alderlake": Kind(32, 16, True, "avxvnni", byte_products="vpdpbusd"),
    "x86-64-v4": Kind(64, 32, True, "avx512f", byte_products="pmaddwd"),
    "cascadelake": Kind(64, 32, True, "avx512vnni", byte_products="vpdpbusd"),
    "cooperlake": Kind(64, 32, True, "avx512bf16", pairs_of_bfloat16=True, byte_products="vpdpbusd"),
    "sapphirerapids": Kind(64, 32, True, "amx-tile", pairs_of_bfloat16=True, byte_products="vpdpbusd", tiles=True),
    "neoverse-n1": Kind(16, 32, True, "neon", "aarch64-unknown-linux-gnu", byte_products="sdot"),
    "apple-m1": Kind(16, 32, True, "neon", "arm64-apple-macosx11.0.0", byte_products="sdot"),
}


def of_host(host: Host) -> Processor:
    """The processor of this machine."""
    has = host.has
    if has.get("avx512f"):
        vector_bytes, registers = 64, 32
    elif has.get("avx2"):
        vector_bytes, registers = 32, 16
    else:
        vector_bytes, registers = 16, 32 if has.get("neon") else 16
    converts_half = has.get("f16c", "sse2" not in has)  # processors other than x86 do
    pairs = vector_bytes == 64 and has.get("avx512bf16", False)
    products = _byte_products(has, vector_bytes)
    tiles = vector_bytes == 64 and all(has.get(f"amx-{part}") for part in ("tile", "bf16", "int8"))
    caches = of_this_machine()
    return Processor(
        host.triple,
        host.cpu,
        host.features,
        vector_bytes,
        registers,
        converts_half,
        pairs,
        products,
        tiles and tiles_granted(host),
        caches.first,
        caches.second,
    )


def _byte_products(has: dict[str, bool], vector_bytes: int) -> str:
    """The instruction for products of int8, on whole vectors."""
    fours = {64: "avx512vnni", 32: "avxvnni"}.get(vector_bytes, "")
    pairs = {64: "avx512bw", 32: "avx2", 16: "sse4.1"}[vector_bytes]
    choices = ((fours, "vpdpbusd"), (pairs, "pmaddwd"), ("dotprod", "sdot"))
    return next((name for feature, name in choices if has.get(feature)), "")


def tiles_granted(host: Host) -> bool:
    """Whether the process may use tiles: they make the state of a thread so much larger that Linux wants to be asked.

    The answer holds for all threads, and for processes that are forked.
    """
    if sys.platform != "linux" or not host.triple.startswith("x86_64"):
        return False
    arch_prctl, request, tile_data = map(ctypes.c_long, (158, 0x1023, 18))
    return bool(ctypes.CDLL(None).syscall(arch_prctl, request, tile_data) == 0)


def named(name: str, host: Host) -> tuple[Processor, bool]:
    """The processor of a name, and whether the host can run its code."""
    if name not in KINDS:
        raise InputError(f"WONDERLAND_CPU: {name!r} is unknown.", " or ".join(map(repr, KINDS)))
    kind = KINDS[name]
    if kind.triple is not None:
        initialize_every_target()
    processor = Processor(
        kind.triple or host.triple,
        name,
        "",
        kind.vector_bytes,
        kind.registers,
        kind.converts_half,
        kind.pairs_of_bfloat16,
        kind.byte_products,
        kind.tiles,
    )
    same_system = kind.triple is None or kind.triple.split("-")[0] == host.triple.split("-")[0]
    runs = same_system and host.has.get(kind.needs, False)
    return processor, runs and (not kind.tiles or tiles_granted(host))
