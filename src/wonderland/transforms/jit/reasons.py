"""Why a function was traced: what is new in a call, beside those that it knew; and a warning if that goes on and on."""

from __future__ import annotations

import os
import warnings
from collections import deque
from dataclasses import dataclass
from types import CodeType

import numpy as np

from ...arrays.conversion import SCALAR_KIND
from ...core import trees
from ...core.arguments import shown
from ...core.cell import Cell
from ...core.context import PACKAGE, user_level
from ...core.errors import RetraceWarning
from ...core.primitive import Aval
from ...core.tensor import Tensor
from .constants import opened
from .environment import Environment

MANY = 16  # traces of a function
OFTEN = 10  # calls for each trace: with fewer, tracing is what the time goes into
REMEMBERED = 64  # calls that others are compared with

# functions of the package serve all models of a program, but for those that are made for one training
OF_ONE_MODEL = os.path.join(PACKAGE, "train") + os.sep

LENGTHS = "a few lengths, and a mask of what is real: wl.data.bucket_lengths, wl.data.PadCollate(to=...)"
SHAPES = (
    "batches of one size (drop_last=True), or few sizes: pad to the next of them "
    "(wl.data.BucketBatchSampler, wl.data.pad_sequence)"
)
DTYPES = "x.astype(...) before the call, so that there is one dtype"
STATIC = "a tensor or a number in its place, or a function for each value if there are few"
SURROUNDINGS = "pass it as an argument, or keep it in a module's buffer"
NEW_STATE = "make modules, optimizers and random streams outside of the function"


@dataclass(frozen=True)
class Reason:
    """What made a function be traced, and what would avoid it ("" for the first time)."""

    text: str
    remedy: str = ""

    def __str__(self) -> str:
        return f"{self.text}\n  try: {self.remedy}" if self.remedy else self.text


class Reasons:
    """The calls for which a function was traced."""

    def __init__(self, f: object, name: str) -> None:
        self._code: CodeType | None = getattr(f, "__code__", None)
        self._name = name
        self._calls: deque[dict[str, str]] = deque(maxlen=REMEMBERED)  # the last one first
        self._environment: Environment | None = None  # of the last one
        file = "" if self._code is None else self._code.co_filename
        self.warns = not file.startswith(PACKAGE) or file.startswith(OF_ONE_MODEL)
        self.count = 0  # traces so far
        self.calls = 0
        self.last: Reason | None = None

    def traced(
        self,
        args: tuple[object, ...],
        kwargs: dict[str, object],
        environment: Environment,
        reusable: bool,
        shares: bool = False,
        refused: str = "",
    ) -> None:
        """Note that a call was traced. `shares`: for a program that serves other sizes, too; `refused`: why not."""
        found = self._described(args, kwargs)
        self.last = self._reason(found, environment, reusable, refused)
        self._calls.appendleft(found)
        self._environment = environment
        if shares:
            self.last = Reason(self.last.text)
            return
        self.count += 1
        if self.count >= MANY and self.warns and self.calls < OFTEN * self.count:
            self.warns = False  # once
            warnings.warn(
                f"{self._name} was traced and compiled {self.count} times in {self.calls} calls. "
                f"The last time: {self.last.text} Try {self.last.remedy}.",
                RetraceWarning,
                stacklevel=user_level(),
            )

    def _reason(self, found: dict[str, str], environment: Environment, reusable: bool, refused: str) -> Reason:
        if not reusable:
            return Reason("the function makes new state, or uses values of a transformation around it.", NEW_STATE)
        if self._environment is None:
            return Reason("this was the first call.")
        if self._environment.key != environment.key:
            name = environment.differing(self._environment)
            return Reason(f"{name}, which the function refers to, has changed.", SURROUNDINGS)
        nearest = min(self._calls, key=lambda known: len(_differing(known, found)))
        names = _differing(nearest, found)
        if not names:
            return Reason("a module that it reaches has changed its structure, or the trace was forgotten.", NEW_STATE)
        name = names[0]
        more = f" (and {len(names) - 1} more)" if len(names) > 1 else ""
        if name not in nearest or name not in found:
            change = (
                f"is {found[name]}, and was not there" if name in found else f"was {nearest[name]}, and is not there"
            )
            return Reason(f"the argument {name} {change}{more}.", "arguments of one structure")
        text = f"the argument {name} is {found[name]} and was {nearest[name]}{more}"
        axes = _axes(nearest[name], found[name])
        if axes and axes[0] > 0:
            numbers = " and ".join(map(str, axes))
            why = "One program serves all sizes of an axis in front alone."
            return Reason(f"{text}: each size of axis {numbers} is compiled. {why}", LENGTHS)
        if axes and refused:
            return Reason(f"{text}: each size is compiled, as no program serves all of them: {refused}.", SHAPES)
        text += "."
        if not found[name].endswith("]"):
            return Reason(text, STATIC)
        return Reason(text, SHAPES if found[name].split("[")[0] == nearest[name].split("[")[0] else DTYPES)

    def _described(self, args: tuple[object, ...], kwargs: dict[str, object]) -> dict[str, str]:
        """All that a trace depends on in arguments, by their names."""
        names = self._code.co_varnames[: self._code.co_argcount] if self._code is not None else ()
        named = {names[i] if i < len(names) else f"number {i}": arg for i, arg in enumerate(args)}
        pairs, _ = trees.flatten_with_paths({**named, **kwargs}, open_objects=False)
        return {".".join(map(str, path)): _leaf(leaf) for path, leaf in pairs}


def _differing(before: dict[str, str], now: dict[str, str]) -> list[str]:
    return [name for name in {**now, **before} if before.get(name) != now.get(name)]


def _axes(before: str, now: str) -> list[int]:
    """The axes in which two tensors differ; none if they differ otherwise."""
    (kind, _, sizes), (other, _, others) = before.partition("["), now.partition("[")
    pairs = [*zip(sizes.split(","), others.split(","), strict=False)]
    if kind != other or sizes.count(",") != others.count(",") or not now.endswith("]"):
        return []
    return [axis for axis, (m, n) in enumerate(pairs) if m != n]


def _leaf(value: object) -> str:
    """What a trace depends on in an argument."""
    if isinstance(value, (Tensor, np.ndarray, Aval, Cell)):
        return f"{value.dtype}[{','.join(map(str, value.shape))}]"
    if type(value) in SCALAR_KIND and type(value) is not bool:
        return f"a Python {type(value).__name__}"  # whose value may be any
    if trees.is_stateful(value):
        return f"a {type(value).__name__} of {len(opened(value).cells):,} parts"
    return shown(value)
