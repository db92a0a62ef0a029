"""What a module does to shapes, and how much it costs, without computing anything."""

from __future__ import annotations

import contextlib
from typing import Any, NamedTuple

from ...arrays.conversion import as_shape
from ...core import dtypes, trees
from ...core.giving import given_to
from ...core.primitive import Aval
from ...core.showing import as_html
from ...core.tensor import Tensor
from ...core.typing import DTypeLike, ShapeLike
from ...transforms.jit.jit import eval_shape
from ..module.members import members
from ..module.module import Module
from ..module.parameter import Parameter

__all__ = ["Summary", "summary"]


class Row(NamedTuple):
    """One call of a module."""

    path: str
    kind: str
    shape: object
    parameters: int
    multiply_adds: int | None


class Summary:
    """The rows of a summary and their totals; prints as a table."""

    def __init__(self, rows: list[Row], parameters: int, trainable: int, multiply_adds: int) -> None:
        self.rows = rows
        self.parameters = parameters
        self.trainable = trainable
        self.multiply_adds = multiply_adds

    def _repr_html_(self) -> str | None:
        return as_html("summary", self)

    def __repr__(self) -> str:
        table = [("path", "module", "output shape", "parameters", "multiply-adds")]
        for row in self.rows:
            cost = "" if row.multiply_adds is None else f"{row.multiply_adds:,}"
            table.append((row.path, row.kind, str(row.shape), f"{row.parameters:,}", cost))
        table.append(("total", "", "", f"{self.parameters:,}", f"{self.multiply_adds:,}"))
        widths = [max(map(len, column)) for column in zip(*table, strict=True)]
        lines = []
        for cells in table:
            words = [c.ljust(w) if i < 3 else c.rjust(w) for i, (c, w) in enumerate(zip(cells, widths, strict=True))]
            lines.append("  ".join(words).rstrip())
        rule = "-" * max(map(len, lines))
        frozen = self.parameters - self.trainable
        notes = [f"trainable: {self.trainable:,}, frozen: {frozen:,}"] if frozen else []
        return "\n".join([lines[0], rule, *lines[1:-1], rule, lines[-1], *notes])


def summary(module: Module, *inputs: object) -> Summary:
    """A table of the calls in a forward pass: output shapes, parameters and, where known, multiply-adds.

    >>> import wonderland as wl
    >>> wl.nn.summary(wl.nn.Sequential(wl.nn.Linear(64, 128), wl.tanh, wl.nn.Linear(128, 10)), (32, 64))
    path   module      output shape  parameters  multiply-adds
    ----------------------------------------------------------
           Sequential  (32, 10)               0
    0      Linear      (32, 128)          8,320        262,144
    2      Linear      (32, 10)           1,290         40,960
    ----------------------------------------------------------
    total                                 9,610        303,104

    The inputs are examples, shapes (of float32), or `wl.ShapeDtype(shape, dtype)`; nothing is computed, and
    no state changes, but lazy modules get their parameters. A row counts the parameters of the module itself
    that no earlier call has counted, so the column adds up.
    """
    rows: list[Row] = []
    counted: set[int] = set()
    multiply_adds = 0
    paths = {id(m): path for path, m in module.named_modules()}

    def note(called: Module, args: tuple[object, ...], output: object) -> None:
        nonlocal multiply_adds
        own = [c for c in members(called).values() if isinstance(c, Parameter) and id(c) not in counted]
        counted.update(id(c) for c in own)
        cost = called.multiply_adds(args, output)
        multiply_adds += cost or 0
        row = Row(paths[id(called)], type(called).__name__, shapes(output), sum(c.size for c in own), cost)
        rows[places.pop()] = row

    places: list[int] = []

    def begin(called: Module, args: tuple[object, ...]) -> None:
        places.append(len(rows))
        rows.append(Row("", "", None, 0, None))  # filled in when its output is known; the outer module stays above

    with contextlib.ExitStack() as stack:
        for inner in module.modules():
            stack.enter_context(inner.register_forward_pre_hook(begin))
            stack.enter_context(inner.register_forward_hook(note))
        eval_shape(module, *[example(x) for x in inputs])
    return Summary(rows, module.num_parameters(), module.num_parameters(trainable_only=True), multiply_adds)


def output_shape(module: Module, input_shape: ShapeLike, dtype: DTypeLike) -> Any:
    """The shape of the output for such an input; a tree of shapes for a tree of outputs."""
    return shapes(eval_shape(module, Aval(as_shape("output_shape", input_shape), dtypes.as_dtype(dtype))))


def example(x: object) -> object:
    """A shape as an abstract tensor of float32; anything else as it is."""
    if isinstance(x, (tuple, list)) and type(x) in (tuple, list) and all(type(n) is int for n in x):
        return Aval(tuple(x), dtypes.default_float)
    return x


def shapes(output: object) -> Any:
    leaves, structure = trees.flatten(output, open_objects=False)
    return trees.unflatten(structure, [x.shape if isinstance(x, (Tensor, Aval)) else x for x in leaves])


@given_to(Module)
class Summarized:
    """What modules tell about themselves."""

    def output_shape(self: Any, input_shape: ShapeLike, dtype: DTypeLike = dtypes.float32) -> Any:
        """The shape of the output for an input of this shape, without computing it. Book, Fig. 1.3.

        >>> import wonderland as wl
        >>> wl.nn.Sequential(wl.nn.Linear(64, 128), wl.tanh, wl.nn.Linear(128, 10)).output_shape((32, 64))
        (32, 10)
        """
        return output_shape(self, input_shape, dtype)

    def summary(self: Any, *inputs: object) -> Summary:
        """A table of the modules with output shapes and numbers of parameters; see `wl.nn.summary`."""
        return summary(self, *inputs)
