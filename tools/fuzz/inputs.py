"""Random inputs, as Python expressions: what a report prints is what was computed with."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

import wonderland as wl

Pick = np.random.Generator
Shape = tuple[int, ...]
NAMES = {"wl": wl, "np": np, "F": wl.nn.functional}  # what the expressions of a program may refer to

LARGEST = 400_000  # elements of a value
SIZES = (1, 1, 2, 3, 3, 4, 5, 5, 7, 8, 9, 15, 16, 17, 24, 31, 33, 64, 65)
LARGE: tuple[Shape, ...] = (
    (3, 5, 4335),
    (100003,),
    (17, 4096),
    (4096, 17),
    (3, 100003),
    (100003, 3),
    (100003, 1),
    (1, 70001),
    (65, 66, 67),
    (2, 3, 5, 2111),
    (1025, 129),
    (300, 1000),
    (40, 3, 30, 30),
    (20000, 2, 3),
    (257, 257),
)
FLOATS = ("float16", "bfloat16", "float32", "float64")
INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
COMPLEXES = ("complex64", "complex128")
# zeros, units, the smallest and largest numbers of the narrow types, and what is no number
SPECIAL = "[0.0, -0.0, 1.0, -1.0, 1e-40, -6e-8, 1e-300, 65504.0, 3e38, 1e300, np.inf, -np.inf, np.nan, np.nan]"


class Input(NamedTuple):
    """An input of a program: its name and the expression that makes the array."""

    name: str
    text: str

    def array(self) -> np.ndarray[Any, Any]:
        with np.errstate(all="ignore"):
            return np.asarray(eval(self.text, dict(NAMES)))


def random_shape(pick: Pick) -> Shape:
    """Mostly small, sometimes of many chunks, sometimes empty."""
    chance = pick.random()
    if chance < 0.2:
        return LARGE[int(pick.integers(len(LARGE)))]
    rank = int(pick.choice([0, 1, 2, 2, 3, 3, 4]))
    while True:
        shape = tuple(int(pick.choice(SIZES)) for _ in range(rank))
        if math.prod(shape) <= 5000:
            break
    if rank and chance > 0.96:
        k = int(pick.integers(rank))
        shape = shape[:k] + (0,) + shape[k + 1 :]
    return shape


def random_dtype(pick: Pick) -> str:
    chance = pick.random()
    if chance < 0.72:
        return str(pick.choice(FLOATS, p=[0.15, 0.2, 0.4, 0.25]))
    if chance < 0.88:
        return str(pick.choice(INTEGERS))
    return str(pick.choice(COMPLEXES)) if chance < 0.95 else "bool"


def random_layout(pick: Pick, text: str, rank: int) -> str:
    """Mostly the array as it is, sometimes a view of it whose elements do not lie one behind the other."""
    if rank and pick.random() < 0.12:
        views = ["[::-1]", "[::2]"] + ([".swapaxes(0, -1)", "[:, ::-1]"] if rank > 1 else [])
        return text + str(pick.choice(views))
    return text


def random_input(pick: Pick, shape: Shape, dtype: str, special: bool) -> str:
    """The expression of an array. `special`: with NaN, infinities, zeros, subnormal and huge numbers among the rest."""
    rng = f"np.random.default_rng({int(pick.integers(1000))})"
    to = f".astype(wl.{dtype})"
    if dtype == "bool":
        return f"({rng}.random({shape}) < 0.5)"
    if dtype in INTEGERS:
        low, high = int(wl.iinfo(dtype).min), int(wl.iinfo(dtype).max)
        if not special:
            low, high = max(low, -9), 9
        return f"{rng}.integers({low}, {high}, {shape}, wl.{dtype}, endpoint=True)"
    normal = "r.normal(size={0})" if dtype in FLOATS else "(r.normal(size={0}) + 1j * r.normal(size={0}))"
    normal = normal.format(shape)
    if special:
        odd = f"r.choice({SPECIAL}, {shape})"
        if dtype in COMPLEXES:
            odd = f"({odd} + 1j * r.choice({SPECIAL}, {shape}))"
        share = pick.choice([0.003, 0.1, 0.5])
        return f"np.where((r := {rng}).random({shape}) < {share}, {odd}, {normal}){to}"
    if pick.random() < 0.15:  # many equal numbers
        return f"{rng}.integers(-3, 4, {shape}){to}"
    return normal.replace("r.", "(r := " + rng + ").", 1) + to
