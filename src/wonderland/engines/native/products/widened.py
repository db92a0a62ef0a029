"""Products of many rows with a matrix of few bits, which lies in panels as it is stored.

For a few blocks of rows, vectors of the panel become numbers in registers, whenever they are read. For more of them, or
where numbers have scales of their own, a panel is widened once by each chunk, to memory that is near.
"""

from __future__ import annotations

from ....core import dtypes
from ....core.dtypes import DType
from ..processor import Processor
from ..text.builder import typed, widen
from ..text.routine import Routine
from ..tuning import READ_AGAIN
from ..values import View
from .epilogue import Epilogue
from .packing import Panels
from .product import Product


class Widened(Product):
    """out[..., i, j] = sum_k x[..., i, k] y[..., k, j] scales[k // group, j], then an epilogue.

    y is of int8 or bfloat16 and lies in panels; scales may be left out.
    """

    def __init__(
        self,
        cpu: Processor,
        x: View,
        y: View,
        epilogue: Epilogue,
        panels: Panels,
        scales: View | None = None,
        group: int = 0,
    ) -> None:
        self.scales, self.shared = scales, group  # rows of y that have the same scales
        super().__init__(cpu, x, y, epilogue, panels=panels)
        if scales is not None:
            self.factors = [*self.factors, scales]
            self.views, self.reads = [scales, *self.views], [scales.buffer, *self.reads]

    def describe(self) -> str:
        return f"{super().describe()} {self.shared}"

    def _is_copied(self, height: int) -> bool:
        return self.scales is not None or height > READ_AGAIN * self.rows

    def _numbers(self, r: Routine, y: str, c: int, columns: int) -> str:
        return as_number(r, super()._numbers(r, y, c, columns), self.y.dtype, self.scalar, self.w)

    def _scaled(self, r: Routine, number: str, k: str, j: str, n: int) -> str:
        if self.scales is None:
            return number
        row = r.b.emit(f"udiv i64 {k}, {self.shared}")
        place = r.at(r.pointer(self.scales), self.scalar, self.scales.strides, [row, j])
        scales = r.load_vector(place, self.scalar, self.size, self.w, n)
        return r.b.emit(f"fmul {self.kind} {number}, {scales}")


def as_number(r: Routine, found: str, dtype: DType, scalar: str, w: int) -> str:
    """A vector of int8 or bfloat16 as it is computed with."""
    b, kind = r.b, typed(scalar, w)
    if dtype == dtypes.bfloat16:
        single = widen(b, found, dtype, w)
        return single if scalar == "float" else b.emit(f"fpext {typed('float', w)} {single} to {kind}")
    wide = b.emit(f"sext {typed('i8', w)} {found} to {typed('i32', w)}")
    return b.emit(f"sitofp {typed('i32', w)} {wide} to {kind}")
