"""Which steps make a matrix product: in which orientation, what to pack before, and what to add up after."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Container
from typing import cast

from ....core import dtypes
from ....ir.sizes import Extent, varying
from ..processor import Processor
from ..text.builder import STORED, computed
from ..tuning import FAR_FACTOR, FAR_PARTS, FAR_ROWS, LEAST_ROWS
from ..values import Buffer, Hole, View, reshape_strides, transposed, whole
from . import amx
from .amx import Tiles
from .blocks import Blocks
from .by_rows import ByRows
from .dots import Dots
from .dots import cost as dots_cost
from .epilogue import Epilogue, Stores
from .model import block, lanes
from .narrow import Narrow, suits
from .packing import Pack, in_panels, packed, widened
from .product import Product
from .streamed import Streamed, few_rows
from .totals import Total
from .widened import Widened

Kind = Callable[[Processor, View, View, Epilogue], Product | Dots | Streamed | Narrow | Tiles]
Steps = list[Pack | Product | Dots | ByRows | Streamed | Narrow | Tiles | Total]


def product_steps(cpu: Processor, x: View, y: View, hole: Hole, stores: Stores, fixed: Container[Buffer] = ()) -> Steps:
    """The steps that compute out[..., i, j] = sum_k x[..., i, k] y[..., k, j] and store values in which `hole` is out.

    x, y: views of shapes lead + (m, k) and lead + (k, n). The views that the steps read may be copies in memory of
    their own, made by steps that come first and depend on one factor alone. Copies of what is `fixed` cost nothing:
    they are made once, before the loop that the product is in.
    """
    epilogue = Epilogue(hole, stores)
    x, y, epilogue = _merged(x, y, epilogue)
    if varying((*x.shape[-2:], *y.shape[-2:])):
        return _general(cpu, x, y, epilogue, fixed)
    for left, right, after in ((x, y, epilogue), (_turned(y), _turned(x), epilogue.transposed())):
        if few_rows(cpu, left, right):
            if 1 not in right.strides[-2:]:
                continue
            packs: Steps = []
            along = right.strides[-1] != 1
            if computed(left.dtype) != STORED[left.dtype] or (along and left.strides[-1] != 1):
                pack, left = packed(cpu, left)
                packs.append(pack)
            if along:
                return [*packs, ByRows(cpu, left, _turned(right), after)]
            return packs + _streamed(cpu, left, right, after)
    (m, k), n = x.shape[-2:], y.shape[-1]
    if amx.suits(cpu, x.dtype, m, k, n) and all(1 in v.strides[-2:] for v in (x, y)):
        return _shared(cpu, x, y, epilogue, Tiles)
    if suits(cpu, x, y):
        return _shared(cpu, x, y, epilogue, Narrow)
    across = (_turned(y), _turned(x))
    choices: list[tuple[View, View, Epilogue, bool]] = [
        (x, y, epilogue, False),
        (*across, epilogue.transposed(), False),
        (*across, epilogue, True),
    ]
    costs = [_cycles(cpu, a, b, e, t, fixed) * (1.0 if a is x else 1.03) for a, b, e, t in choices]
    for left, right, after, turned in choices[:2]:
        # a few columns that are brought into rows, for dot products with rows that are long
        pack, rows = packed(cpu, left)
        if left.shape[-2] < lanes(cpu, x) <= right.shape[-1] and _summed_along_memory(cpu, rows, right, fixed):
            cost = _cycles(cpu, rows, right, after, turned, fixed) + _packing_cycles(left, fixed)
            if cost < min(costs):
                return [pack, *_shared(cpu, rows, right, after, Dots)]
    x, y, epilogue, turned = choices[costs.index(min(costs))]
    steps: Steps = []
    if _summed_along_memory(cpu, x, y, fixed) and not turned:
        return _shared(cpu, x, y, epilogue, Dots)
    panels = None
    width = Product(cpu, x, y, epilogue, turned).width if y.buffer in fixed and y.shape[-2] >= 16 else 0
    if width and y.shape[-1] > width:
        pack, y, panels = in_panels(cpu, y, width, widened(y))
        steps.append(pack)
    elif (y.strides[-1] != 1 and y.shape[-1] > 1) or computed(y.dtype) != STORED[y.dtype]:
        pack, y = packed(cpu, y)
        steps.append(pack)
    if computed(x.dtype) != STORED[x.dtype] or (1 not in x.strides[-2:] and min(x.shape[-2:]) > 1 and y.shape[-1] > 64):
        pack, x = packed(cpu, x)
        steps.append(pack)
    kind = functools.partial(Product, turned=turned, panels=panels)
    step = kind(cpu, x, y, epilogue)
    if step.gathered and step.blocks.counts[2] >= 4:  # rather once than for every chunk of columns
        pack, x = packed(cpu, x)
        steps.append(pack)
        step = kind(cpu, x, y, epilogue)
    if turned:
        parts = _along(step)
        return [*steps, *([step] if parts == 1 else _parts(cpu, x, y, epilogue, kind, parts, turned))]
    return steps + _shared(cpu, x, y, epilogue, kind)


def widened_steps(
    cpu: Processor, x: View, y: View, scales: View | None, group: int, hole: Hole, stores: Stores
) -> Steps:
    """The same for y of few bits, which stays so in memory; scales, of groups of k, are (groups, n)."""
    x, y, epilogue = _merged(x, y, Epilogue(hole, stores))
    pack, y, panels = in_panels(cpu, y, Product(cpu, x, y, epilogue).width, y.dtype)
    steps: Steps = [pack]
    if 1 not in x.strides[-2:]:
        pack, x = packed(cpu, x)
        steps.append(pack)
    if scales is None:
        return steps + _shared(cpu, x, y, epilogue, functools.partial(Widened, panels=panels))
    pack, scales = packed(cpu, scales)
    return [*steps, pack, Widened(cpu, x, y, epilogue, panels, scales, group)]


def _general(cpu: Processor, x: View, y: View, epilogue: Epilogue, fixed: Container[Buffer]) -> Steps:
    """A product with a batch in its rows, its sum or in front: one step that has bounds at run time."""
    choices = [(x, y, epilogue)]
    if varying(x.shape)[-1:] == [len(x.shape) - 1]:  # either factor may be on the left of a sum over a batch
        choices.append((_turned(y), _turned(x), epilogue.transposed()))
    costs = [_cycles(cpu, a, b, e, False, fixed) for a, b, e in choices]
    x, y, epilogue = choices[costs.index(min(costs))]
    steps: Steps = []
    if (y.strides[-1] != 1 and y.shape[-1] > 1) or computed(y.dtype) != STORED[y.dtype]:
        pack, y = packed(cpu, y)
        steps.append(pack)
    if computed(x.dtype) != STORED[x.dtype]:
        turned = isinstance(x.shape[-1], Extent)  # a batch in front, also in the copy
        pack, copy = packed(cpu, _turned(x) if turned else x)
        steps.append(pack)
        x = _turned(copy) if turned else copy
    return [*steps, Product(cpu, x, y, epilogue)]


def _streamed(cpu: Processor, x: View, y: View, epilogue: Epilogue) -> Steps:
    """A few rows times a large matrix: shared out by whole rows of it, as long as the sums stay in the cache."""
    step = Streamed(cpu, x, y, epilogue)
    parts = min(step.pieces // step.chunks, x.shape[-1] // LEAST_ROWS)
    return [step] if parts < 2 else _parts(cpu, x, y, epilogue, Streamed, parts)


def _merged(x: View, y: View, epilogue: Epilogue) -> tuple[View, View, Epilogue]:
    """Many matrices times the same one are one tall matrix."""
    *lead, m, k = x.shape
    if not lead or any(s for s, size in zip(y.strides[:-2], lead, strict=True) if size > 1):
        return x, y, epilogue
    strides = reshape_strides(x.shape, x.strides, (math.prod(lead) * m, k))
    merged = epilogue.merged()
    if strides is None or merged is None:
        return x, y, epilogue
    tall = View(x.buffer, (math.prod(lead) * m, k), strides, x.offset)
    return tall, View(y.buffer, y.shape[-2:], y.strides[-2:], y.offset), merged


def _turned(view: View) -> View:
    rank = len(view.shape)
    return cast(View, transposed(view, (*range(rank - 2), rank - 1, rank - 2)))


def _summed_along_memory(cpu: Processor, x: View, y: View, fixed: Container[Buffer]) -> bool:
    """Whether dot products are the better way: few rows, and no row of y to read as vectors."""
    m, k, n, w = int(x.shape[-2]), int(x.shape[-1]), int(y.shape[-1]), lanes(cpu, x)
    along = (
        not varying((*x.shape[-2:], *y.shape[-2:]))
        and x.strides[-1] == 1
        and y.strides[-2] == 1
        and computed(x.dtype) == STORED[x.dtype]
        and k > 1
    )
    packing = block(cpu.registers, m, -(-n // w), k)[0] + _packing_cycles(y, fixed)
    return along and (y.strides[-1] != 1 or n == 1) and dots_cost(cpu.registers, m, n, k, w) < packing


def _cycles(cpu: Processor, x: View, y: View, epilogue: Epilogue, turned: bool, fixed: Container[Buffer]) -> float:
    """About how many cycles one matrix of a product takes."""
    m, k, n, w = int(x.shape[-2]), int(x.shape[-1]), int(y.shape[-1]), lanes(cpu, x)
    stores = (1.5 * epilogue.strided() + 0.5 * turned) * m * n
    if _summed_along_memory(cpu, x, y, fixed) and not turned:
        return dots_cost(cpu.registers, m, n, k, w) + stores
    # numbers of x on ever new pages
    far = abs(x.strides[-1]) * x.dtype.itemsize
    slower = 1.1 if far >= FAR_ROWS and far * k >= FAR_FACTOR else 1.0
    return slower * block(cpu.registers, m, -(-n // w), k)[0] + _packing_cycles(y, fixed) + stores


def _packing_cycles(y: View, fixed: Container[Buffer]) -> float:
    """What it takes to bring y into rows, if that is needed; a step by itself costs some microseconds, too."""
    k, n = map(int, y.shape[-2:])
    if y.strides[-1] == 1 or n == 1 or y.buffer in fixed:
        return 0.0
    one = 3.0 if k * n > 1 << 18 else 0.45 if y.strides[-2] == 1 else 1.0  # beyond the second-level cache, it is slow
    return 15_000 / int(math.prod(y.shape[:-2])) + one * k * n


def _shared(cpu: Processor, x: View, y: View, epilogue: Epilogue, kind: Kind) -> Steps:
    """A product as one step, or in parts of its sum when there are too few other ways to share the work."""
    (m, k), n, lead = x.shape[-2:], y.shape[-1], x.shape[:-2]
    step = kind(cpu, x, y, epilogue)
    microseconds = step.blocks.microseconds
    best, parts = step.blocks.traffic * k * (2 if step.chunks < 4 else 1), 1
    for count in (2, 4, 8, 16, 32):
        if k // count >= 256 and microseconds > 60:
            cut = Blocks((*lead, count), m, n, *step.blocks.steps, microseconds)
            traffic = cut.traffic * (k // count) + 2 * math.prod(lead) * count * m * n
            if traffic < 0.8 * best:
                best, parts = traffic, count
    if isinstance(step, Product):
        parts = max(parts, _along(step))
    return [step] if parts == 1 else _parts(cpu, x, y, epilogue, kind, parts)


def _along(step: Product) -> int:
    """Into how many parts of its sum to cut a product of a few rows with many long ones, as gradients of weights are.

    Chunks of columns would all go through all pages of the large factor, and leave each after a few bytes.
    """
    far = abs(step.y.strides[-2]) * step.size
    wide = far >= FAR_ROWS and far * step.k >= FAR_FACTOR and step.k >= 2 * FAR_PARTS * step.m
    return FAR_PARTS if wide and step.blocks.count == 1 and step.chunks >= FAR_PARTS else 1


def _parts(cpu: Processor, x: View, y: View, epilogue: Epilogue, kind: Kind, parts: int, turned: bool = False) -> Steps:
    """A product in parts of its sum, and a step that adds them; turned, the parts are transposed already."""
    (m, k), n, lead = x.shape[-2:], y.shape[-1], x.shape[:-2]
    length, rest = divmod(k, parts)
    dtype = dtypes.float32 if dtypes.is_half(x.dtype) else x.dtype
    buffer = Buffer("arena", math.prod(lead) * (parts + (rest > 0)) * m * n, dtype)
    size = (n, m) if turned else (m, n)
    sums = whole(buffer, (*lead, parts + (rest > 0), *size))

    def piece(first: int, count: int, length: int) -> Product | Dots | Streamed | Narrow | Tiles:
        """Parts of the sum, as many matrices."""
        start = first * (k // parts)
        left, right = (
            View(
                view.buffer,
                (*lead, count, *shape),
                (*view.strides[:-2], length * step, *view.strides[-2:]),
                view.offset + start * step,
            )
            for view, shape, step in ((x, (m, length), x.strides[-1]), (y, (length, n), y.strides[-2]))
        )
        out = View(buffer, (*lead, count, *size), sums.strides, first * m * n)
        hole = Hole(out.shape, dtype)
        after = Epilogue(hole, [(out, hole)])
        return kind(cpu, left, right, after)

    pieces = [piece(0, parts, length)] + ([piece(parts, 1, rest)] if rest else [])
    return [*pieces, Total(cpu, sums, epilogue)]
