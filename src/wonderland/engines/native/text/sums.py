"""Long sums in parts: a running sum of n terms can lose log2(n) bits, one of parts of parts hardly any.

No accumulator takes more than LONGEST terms one after the other. A longer sum is one of parts, of PART terms each, and
where these are still too many, of parts of parts. So its error is at most LONGEST + PART * levels roundings of the sum
of absolute values: in float32 6e-5 of it for a thousand terms as for a billion; in practice some hundred times less.
"""

from __future__ import annotations

from ..tuning import LONGEST, PART
from .builder import Builder, Turn


def levels(terms: int) -> int:
    """How many times a sum is cut into parts, one level around the other."""
    count = 0
    while terms > LONGEST:
        terms = -(-terms // PART)
        count += 1
    return count


def sum_with(
    b: Builder,
    kind: str,
    sums: list[str],
    stop: str | int,
    step: int,
    turn: Turn,
    start: str | int = 0,
    *,
    turns: int,
    terms: int = 1,
) -> list[str]:
    """`Builder.loop_with` for accumulators of floating-point sums, all of one type.

    `turns` is how often the loop runs at most, `terms` what one turn adds to each accumulator.
    """
    each = -(-PART // terms)  # turns of a part

    def cut(level: int, sums: list[str], start: str | int, stop: str | int) -> list[str]:
        if level == 0:
            return b.loop_with([(kind, s) for s in sums], stop, step, turn, start)
        span = step * each * PART ** (level - 1)

        def part(i: str, totals: list[str]) -> list[str]:
            end = b.intrinsic("smin", "i64", b.emit(f"add nsw i64 {i}, {span}"), str(stop))
            made = cut(level - 1, ["zeroinitializer"] * len(totals), i, end)
            return [b.emit(f"fadd {kind} {total}, {s}") for total, s in zip(totals, made, strict=True)]

        return b.loop_with([(kind, s) for s in sums], stop, span, part, start)

    return cut(levels(turns * terms), sums, start, stop)
