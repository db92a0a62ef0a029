"""Positions by name: what is added to the tokens, and what attention adds to its scores. Book, section 10.2."""

from __future__ import annotations

from collections.abc import Callable

from ...core.arguments import shown
from ...core.errors import InputError
from ...core.tensor import Tensor
from ...core.typing import DTypeLike
from ...nn.attention.absolute_positions import AbsolutePositions, LearnedPositions, SinusoidalPositions
from ...nn.attention.relative_positions import ALiBi, RelativeBias, ScoreBias
from ...nn.attention.rotary import Rotary

BEFORE = ("learned", "sinusoidal")  # added once, before the first block
WITHIN = ("relative", "rotary", "alibi")  # in the attention of every block


def check_positions(name: str, positions: str | None, known: tuple[str, ...] = (*BEFORE, *WITHIN)) -> None:
    """Refuse a name that is none of the known ones."""
    if positions is not None and positions not in known:
        raise InputError(f"{name}: positions={shown(positions)}.", f"one of {', '.join(map(repr, known))}, or None")


def positions_before(
    positions: str | None, length: int, e: int, dtype: DTypeLike | None, key: Tensor, std: float = 0.02
) -> AbsolutePositions | None:
    """The layer that adds positions to tokens, if they are of such a kind; learned ones start from N(0, std²)."""
    if positions == "learned":
        return LearnedPositions(length, e, std, dtype=dtype, key=key)
    return SinusoidalPositions(e) if positions == "sinusoidal" else None


def positions_within(
    positions: str | None, length: int, heads: int, head_size: int, dtype: DTypeLike | None
) -> Callable[[], Rotary | ScoreBias | None]:
    """What makes the positions of each block's attention: a trained bias of its own, or one rotation for all."""
    if positions == "relative":
        return lambda: RelativeBias(heads, length, dtype=dtype)
    shared: Rotary | ScoreBias | None = None
    if positions == "rotary":
        shared = Rotary(head_size)
    elif positions == "alibi":
        shared = ALiBi(heads)
    return lambda: shared
