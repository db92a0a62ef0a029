"""The gradient of a filter in fewer products: Winograd's method, where the output's adjoint has the part of the filter.

    gradient = A [ sum over tiles of (B d B') * (G c G') ] A'

c are m x m places of the adjoint, d the (m + r - 1) x (m + r - 1) places of the input that they belong to: a
correlation with m x m taps, whose result is the r x r taps of the filter. Over all tiles these are (m + r - 1)^2
products of matrices, channels of the input x tiles times tiles x channels of the output.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from ..labels import Work
from ..processor import Processor
from ..products.epilogue import Epilogue, Stores, WithEpilogue
from ..products.steps import product_steps
from ..steps import Native
from ..text.builder import computed
from ..text.routine import Routine
from ..values import Buffer, Hole, Value, View, transposed
from .patches import lanes_of
from .points import Lanes, Method
from .winograd_tiles import Seen, TransformTiles, apart_of


class FromPoints(WithEpilogue):
    """The gradient (taps, taps, in, out), the hole, from its products (points, in, out), and an epilogue."""

    def __init__(self, cpu: Processor, method: Method, products: View, hole: Hole, stores: Stores) -> None:
        super().__init__([products], Epilogue(hole, stores))
        self.method, self.products = method, products
        self.scalar, self.lanes = computed(products.dtype), lanes_of(cpu, products.dtype)
        self.chunks = products.shape[1]

    @property
    def work(self) -> Work:
        return self.followed(f"sum of {self.method.places} points {self.epilogue.hole.shape}", 0)

    def describe(self) -> str:
        return f"{self.method.sizes} {super().describe()}"

    def emit(self, r: Routine) -> None:
        def vector(i: str, w: int, n: int) -> None:
            points = [r.load(self.products, [str(p), r.chunk, i], w, n) for p in range(self.method.places)]
            side = self.method.across.side
            rows = [points[at : at + side] for at in range(0, len(points), side)]
            for p, value in enumerate(self.method.of_output(Lanes(r.b, self.scalar, w), rows)):
                tap = [str(digit) for digit in divmod(p, self.method.across.size)]
                self.epilogue.emit(r, [*tap, r.chunk, i], value, w, n)

        r.vectors(self.products.shape[2], self.lanes, vector)


def winograd_gradient_steps(
    cpu: Processor, method: Method, x: Value, ct: Value, hole: Hole, stores: Stores, low: Sequence[int]
) -> Sequence[Native]:
    """The steps of the gradient of a filter, with `low` zeros before x."""
    places, (inner, out) = ct.shape[-3:-1], hole.shape[-2:]
    seen = TransformTiles(cpu, method, x, places, low, Seen(method.taps, method.sides, method.of_input))
    others = TransformTiles(cpu, method, ct, places, (0, 0), Seen(method.taps, method.taps, method.of_filter))
    apart = apart_of(inner * out, seen.boxes.dtype)
    buffer = Buffer("arena", method.places * apart, seen.boxes.dtype)
    products = View(buffer, (method.places, inner, out), (apart, out, 1))
    made = Hole(products.shape, seen.boxes.dtype)
    turned = cast(View, transposed(seen.matrices, (0, 2, 1)))
    steps = product_steps(cpu, turned, others.matrices, made, [(products, made)])
    return [seen, others, *steps, FromPoints(cpu, method, products, hole, stores)]
