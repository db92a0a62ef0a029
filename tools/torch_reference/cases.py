"""What a case is, and the numbers that it is computed with."""

from __future__ import annotations

import zlib
from dataclasses import dataclass, field
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Case:
    """A module, or a function of nn.functional, by the name that both libraries have for it.

    `inputs` are arrays in our layout, or shapes of normal numbers; the last ones have `names` if they are passed by
    name. All that are floating get gradients, unless `wrt` lists the positions. `modes` is a letter for each pass
    through the same module, "t" in training and "e" in evaluation mode. With `channels_first`, PyTorch has the channels
    of all floating inputs (but those at the positions `kept`) and of the output along axis 1. `wrapped_by` is a
    function that changes the layer's weight, `before` one of nn.functional that the first input goes through (along its
    last axis), with gradients for what goes in. A `tolerance` above 1e-10 is for what PyTorch itself rounds.
    """

    name: str
    inputs: tuple[Any, ...]
    args: tuple[Any, ...] = ()
    settings: dict[str, Any] = field(default_factory=dict)
    modes: str = "e"
    channels_first: bool = False
    names: tuple[str, ...] = ()
    wrt: tuple[int, ...] | None = None
    kept: tuple[int, ...] = ()
    wrapped_by: str | None = None
    before: str | None = None
    tolerance: float | None = None

    def heading(self) -> dict[str, Any]:
        """What both libraries are told, as the file has it."""
        rare = {key: getattr(self, key) for key in ("names", "wrapped_by", "before", "tolerance")}
        told = {"name": self.name, "args": self.args, "settings": self.settings}
        return plain(told | {key: value for key, value in rare.items() if value})

    def rng(self) -> np.random.Generator:
        """A generator for this case alone."""
        shapes = [x if isinstance(x, tuple) else np.shape(x) for x in self.inputs]
        return np.random.default_rng(zlib.crc32(repr((self.heading(), shapes)).encode()))


def drawn(rng: np.random.Generator, shape: tuple[int, ...], scale: float = 1.0) -> np.ndarray:
    """Normal numbers with three decimals, which are short in a file and exact when read."""
    return np.round(rng.normal(size=shape) * scale, 3)


def plain(value: Any) -> Any:
    """Arrays, tuples and their trees as JSON has them, numbers with 12 digits."""
    if isinstance(value, dict):
        return {key: plain(v) for key, v in value.items()}
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    return float(f"{value:.12g}") if isinstance(value, float) else value
