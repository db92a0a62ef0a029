"""Sums of products of int8: the instructions that processors have for them, behind one face.

| instruction | in each lane of 32 bits | on |
|---|---|---|
| `vpdpbusd` | four products, of bytes without a sign and bytes with one, are added | AVX512-VNNI, AVX-VNNI |
| `sdot` | four products are added | aarch64 with `dotprod` |
| `pmaddwd` | the sum of two products of 16 bits | SSE2, AVX2, AVX512-BW |
| none | one product | any |

For the first, 128 is added to the numbers of the matrix (their first bit is turned), and 128 times the sum of the rows
is taken off at the end. All sums are those of integers modulo 2^32, so what is in between may be anything.
"""

from __future__ import annotations

from ....primitives.rounded import MOST_TERMS
from ..processor import Processor
from ..text.builder import splat, typed
from ..text.routine import Routine

RAISED = 128  # what is added to the numbers of the matrix for `vpdpbusd`
BITS = {"vpdpbusd": 8, "sdot": 8, "pmaddwd": 16, "": 32}  # of a number in a register
PAIRS = {4: "sse2.pmadd.wd", 8: "avx2.pmadd.wd", 16: "avx512.pmaddw.d.512"}  # by lanes


class ByteProducts:
    """What adds up products of int8 in the lanes of a vector of int32."""

    def __init__(self, cpu: Processor, terms: int) -> None:
        self.name = cpu.byte_products
        if self.name == "vpdpbusd" and terms > MOST_TERMS:
            self.name = "pmaddwd"  # sums in parts need no sums of parts of rows
        self.w = cpu.lanes(4)
        self.bits = BITS[self.name]
        self.columns = 32 // self.bits * self.w  # that a vector holds

    @property
    def raises(self) -> bool:
        """Whether the numbers of the matrix are too large by `RAISED`."""
        return self.name == "vpdpbusd"

    def row(self, r: Routine, place: str, n: int) -> str:
        """The next numbers of a row, of which there are n; the others are 0."""
        found = r.load_vector(place, "i8", 1, self.columns, n)
        if self.bits == 8:
            return found
        return r.b.emit(f"sext {typed('i8', self.columns)} {found} to {typed(f'i{self.bits}', self.columns)}")

    def matrix(self, r: Routine, place: str, n: int) -> str:
        """The next numbers of a row of the matrix."""
        found = self.row(r, place, n)
        if not self.raises:
            return found
        return r.b.emit(f"xor {typed('i8', self.columns)} {found}, {splat(str(-RAISED), 'i8', self.columns)}")

    def add(self, r: Routine, total: str, matrix: str, row: str) -> str:
        """total + the products, some in each lane."""
        b, sums, numbers = r.b, typed("i32", self.w), typed(f"i{self.bits}", self.columns)
        if self.name == "":
            return b.emit(f"add {sums} {total}, {b.emit(f'mul {sums} {matrix}, {row}')}")
        if self.name == "pmaddwd":
            name = f"@llvm.x86.{PAIRS[self.w]}"
            b.declarations.add(f"declare {sums} {name}({numbers}, {numbers})")
            return b.emit(f"add {sums} {total}, {b.emit(f'call {sums} {name}({numbers} {matrix}, {numbers} {row})')}")
        x86 = self.name == "vpdpbusd"
        name = f"@llvm.x86.avx512.vpdpbusd.{32 * self.w}" if x86 else f"@llvm.aarch64.neon.sdot.v{self.w}i32.v16i8"
        b.declarations.add(f"declare {sums} {name}({sums}, {numbers}, {numbers})")
        return b.emit(f"call {sums} {name}({sums} {total}, {numbers} {matrix}, {numbers} {row})")
