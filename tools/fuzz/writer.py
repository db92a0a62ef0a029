"""Writing a random program, line by line, while it is traced: shapes and dtypes are known, numbers are not.

Discontinuous functions (rounding, comparisons, orders, indices) are mostly given what follows from the inputs without
rounding, so that both engines decide alike; `rounding.py` recognises the cases in which they may differ.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import wonderland as wl

from .case import Case, Line
from .inputs import LARGEST, NAMES, Input, Pick, Shape, random_dtype, random_input, random_layout, random_shape

FLOAT, COMPLEX, INTEGER, BOOL = "float", "complex", "integer", "bool"
INEXACT = (FLOAT, COMPLEX)
NUMERIC = (FLOAT, COMPLEX, INTEGER)
REAL = (FLOAT, INTEGER)
ANY = (*NUMERIC, BOOL)


def kind_of(dtype: Any) -> str:
    for kind, name in ((FLOAT, "real floating"), (COMPLEX, "complex floating"), (BOOL, "bool")):
        if wl.isdtype(dtype, name):
            return kind
    return INTEGER


class UnsuitableError(Exception):
    """There is nothing to make this statement of."""


class Writer:
    """A program under way: the names of its values with what is known of them."""

    def __init__(self, pick: Pick, inputs: Sequence[tuple[Input, Any]]) -> None:
        self.pick = pick
        self.inputs = [i for i, _ in inputs]
        self.values: dict[str, Any] = {i.name: tracer for i, tracer in inputs}
        self.exact = {i.name for i in self.inputs}  # what is the same to the last bit for every engine
        self.lines: list[Line] = []

    # --- choices

    def among(self, *choices: Any) -> Any:
        if not choices:
            raise UnsuitableError
        return choices[int(self.pick.integers(len(choices)))]

    def chance(self, p: float) -> bool:
        return bool(self.pick.random() < p)

    def number(self, low: int, high: int) -> int:
        """An integer of low, .., high - 1."""
        return int(self.pick.integers(low, high))

    def shape(self, name: str) -> Shape:
        return tuple(self.values[name].shape)

    def rank(self, name: str) -> int:
        return len(self.shape(name))

    def size(self, name: str) -> int:
        return math.prod(self.shape(name))

    def dtype(self, name: str) -> str:
        return str(self.values[name].dtype.name)

    def axis(self, name: str) -> int:
        n = self.rank(name)
        return self.number(-n, n)

    def axes(self, name: str) -> tuple[int, ...] | None:
        """A set of axes, None for all."""
        chosen = tuple(a for a in range(self.rank(name)) if self.chance(0.5))
        return chosen if chosen or self.chance(0.1) else None

    # --- values

    def one(self, kinds: Sequence[str] = INEXACT, rank: int = 0, most: int = LARGEST, exact: bool = False) -> str:
        """The name of a value of some kind with at least so many axes, rather a late one."""
        found = [
            name
            for name, x in self.values.items()
            if kind_of(x.dtype) in kinds and self.size(name) <= most and (not exact or name in self.exact)
        ]
        if not found:
            return self._converted(kinds, rank, most, exact)
        name = found[min(len(found) - 1, int(len(found) * self.pick.random() ** 0.5))]
        if self.rank(name) < rank:
            missing = rank - self.rank(name)
            front = self.number(0, missing + 1)
            shape = (1,) * front + self.shape(name) + (1,) * (missing - front)
            name = self.add(f"{name}.reshape({shape})", exact=name in self.exact)
        return name

    def _converted(self, kinds: Sequence[str], rank: int, most: int, exact: bool) -> str:
        """A value of another kind, or a part of one that is too large."""
        found = [n for n in self.values if not exact or n in self.exact]
        name = self.among(*found)
        if self.size(name) > most:
            name = self.add(f"{name}.reshape(-1)[:{self.number(1, most + 1)}]", exact=name in self.exact)
        if kind_of(self.values[name].dtype) not in kinds:
            kind = kinds[0]
            was = kind_of(self.values[name].dtype)
            to = {FLOAT: "wl.float32", COMPLEX: "wl.complex64", INTEGER: "wl.int32", BOOL: "wl.bool"}[kind]
            text = f"{name}.astype({to})"
            if was == COMPLEX and kind != COMPLEX:
                text = f"wl.real({name}).astype({to})"
            if kind == INTEGER and was != BOOL:
                text = f"({'wl.real(' + name + ')' if was == COMPLEX else name} > 0).astype({to})"
            name = self.add(text, exact=name in self.exact)
        return self.one(kinds, rank, most, exact)

    def fitted(self, name: str, shape: Shape) -> str:
        """A value of this shape made of the elements of another one."""
        n, size = math.prod(shape), self.size(name)
        if shape == self.shape(name):
            return name
        if size == n:
            return self.add(f"{name}.reshape({shape})", exact=name in self.exact)
        if size == 0 and n:
            return self.add(f"wl.full({shape}, 0.5).astype(wl.{self.dtype(name)})", exact=True)
        flat = f"{name}.reshape(-1)"
        if size < n:
            flat = f"wl.tile({flat}, {-(-n // size)})"
        return self.add(f"{flat}[:{n}].reshape({shape})", exact=name in self.exact)

    def weight(self, like: str, shape: Shape) -> str:
        """A value of this shape and of the dtype of another one."""
        kind = kind_of(self.values[like].dtype)
        if kind in INEXACT and self.chance(0.4):
            text = f"np.random.default_rng({self.number(0, 1000)}).normal(size={shape})"
            return self.add(f"wl.asarray({text}.astype(wl.{self.dtype(like)}))", exact=True)
        name = self.one((kind,))
        name = self.fitted(name, shape)
        if self.dtype(name) != self.dtype(like):
            name = self.add(f"{name}.astype(wl.{self.dtype(like)})", exact=False)
        return name

    def partner(self, name: str, kinds: Sequence[str] | None = None) -> str:
        """A value that broadcasts against another one, of its shape or less."""
        other = self.one(kinds or (kind_of(self.values[name].dtype),))
        shape = self.shape(name)
        if self.chance(0.3) and self.shape(other) == shape:
            return other
        kept = shape[self.number(0, len(shape) + 1) :]
        return self.fitted(other, tuple(n if self.chance(0.7) else 1 for n in kept))

    def indices(self, shape: Shape, size: int) -> str:
        """Integers from -size to size - 1, from the data or constants, in some integer type."""
        if self.chance(0.5):
            text = f"np.random.default_rng({self.number(0, 1000)}).integers({-size}, {size}, {shape})"
            return self.add(f"wl.asarray({text})", exact=True)
        name = self.fitted(self.one(REAL, exact=True), shape)
        x = f"wl.nan_to_num({name} * 1.0, posinf=1.0, neginf=-1.0)"
        return self.add(
            f"wl.floor(wl.clip({x}.astype(wl.float64), -1e6, 1e6) * 97).astype(wl.int64) % {size}", exact=True
        )

    # --- lines

    def add(self, text: str, exact: bool = False) -> str:
        """The name of the value of an expression. An expression that our own errors refuse is `UnsuitableError`."""
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", RuntimeWarning)  # the mean of nothing
                value = eval(text, NAMES | self.values)
        except wl.errors.WonderlandError as error:
            raise UnsuitableError(text) from error
        except Exception as error:
            raise RefusedError(self, text) from error
        if value.size > LARGEST:
            raise UnsuitableError(text)
        name = f"v{len(self.lines)}"
        self.lines.append(Line(name, text))
        self.values[name] = value
        if exact:
            self.exact.add(name)
        return name

    def case(self, results: Sequence[str]) -> Case:
        return Case(tuple(self.inputs), tuple(self.lines), tuple(results))


class RefusedError(Exception):
    """Tracing a line ended in an exception that is not one of ours."""

    def __init__(self, writer: Writer, text: str) -> None:
        super().__init__(text)
        self.case = Case(tuple(writer.inputs), (*writer.lines, Line("bad", text)), ("bad",)).alive()


Statement = Callable[[Writer], None]


def random_inputs(pick: Pick) -> list[Input]:
    """One to three inputs, mostly of one dtype."""
    dtype, special = random_dtype(pick), bool(pick.random() < 0.25)
    inputs = []
    for i in range(int(pick.choice([1, 2, 2, 3]))):
        own = dtype if pick.random() < 0.75 else random_dtype(pick)
        shape = random_shape(pick)
        text = random_input(pick, shape, own, special)
        inputs.append(Input(f"x{i}", random_layout(pick, text, len(shape))))
    return inputs
