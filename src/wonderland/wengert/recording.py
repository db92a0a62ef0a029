"""The interpreter that writes a trace: it computes every primitive and notes it down."""

from __future__ import annotations

import inspect
import itertools
import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .. import arrays
from ..core import trees
from ..core.cell import Cell
from ..core.context import current, leave, step_out
from ..core.dtypes import DType, float64
from ..core.errors import InputError, TraceError
from ..core.interpreter import bind
from ..core.primitive import Primitive
from ..core.tensor import Shape, Tensor, Tracer, format_array, noun
from ..core.typing import Array
from ..transforms.inputs import Inputs, output_leaves
from .formula import Formula, FormulaError
from .program import Step, Trace


class RecordedTracer(Tracer):
    """A value with the name that it has in the trace."""

    __slots__ = ("name", "value")

    def __init__(self, trace: Recorder, name: str, value: Tensor) -> None:
        self.trace = trace
        self.name = name
        self.value = value

    @property
    def shape(self) -> Shape:
        return self.value.shape

    @property
    def dtype(self) -> DType:
        return self.value.dtype

    def _concrete(self, what: str) -> Array:
        if what in ("bool", "int"):  # control flow follows the value
            return self.value._concrete(what)
        raise TraceError(
            f"{what}: turning a traced value into {noun(what)} would cut the trace off.",
            "functions of wonderland instead of math or NumPy, x.item() if the cut is meant",
        )

    def _item_data(self) -> Array:
        return self.value._item_data()

    def __repr__(self) -> str:
        return format_array(self.value._data, "tensor", f", traced as {self.name}")


class Recorder:
    """The interpreter of a trace. Operations on constants alone are computed and not listed."""

    staged = False
    parent = None
    concrete = True

    def __init__(self, prefix: str) -> None:
        self.prefix = prefix
        self.steps: list[Step] = []
        self.written: list[Cell] = []

    def process(self, primitive: Primitive, args: Sequence[Any], params: dict[str, object]) -> Any:
        own = [isinstance(arg, RecordedTracer) and arg.trace is self for arg in args]
        values = [arg.value if mine else arg for arg, mine in zip(args, own, strict=True)]
        inside = step_out()
        try:
            out = bind(primitive, *values, **params)
        finally:
            leave(inside)
        if not any(own):
            return out
        names = tuple(arg.name if mine else arg for arg, mine in zip(args, own, strict=True))
        step = Step(f"{self.prefix}{len(self.steps) + 1}", primitive, names, params, out)
        self.steps.append(step)
        tracers = [RecordedTracer(self, name, value) for name, value in step.outputs.items()]
        return tracers if primitive.multiple else tracers[0]

    def note_write(self, cell: Cell) -> None:
        self.written.append(cell)

    note_create = note_write

    def finish(self) -> list[tuple[Cell, Tensor]]:
        """Cells that were written, with the values that they keep."""
        return [(cell, self.value(cell.release())) for cell in {id(cell): cell for cell in self.written}.values()]

    def value(self, x: Tensor) -> Tensor:
        return x.value if isinstance(x, RecordedTracer) and x.trace is self else x


def trace(f: Callable[..., object] | str | Formula, /, *args: object, **values: object) -> Trace:
    """Run a function, or a formula, and list the primitives that it runs.

    >>> import wonderland as wl
    >>> from wonderland import wengert
    >>> t = wengert.trace("log(x1) + x1*x2 - sin(x2)", x1=2, x2=5)
    >>> print(t.table(forward=False, reverse=False, precision=4))
    y = log(x1) + x1*x2 - sin(x2)
    <BLANKLINE>
    Primal trace
      x1                2
      x2                5
      v1 = log(x1)      0.6931
      v2 = x1 * x2     10
      v3 = sin(x2)     -0.9589
      v4 = v1 + v2     10.69
      v5 = v4 - v3     11.65
      y  = v5          11.65
    >>> t.adjoints()["x1"].item()
    5.5
    >>> t = wengert.trace(lambda x, w: wl.tanh(x @ w).sum(), wl.ones((1, 2)), wl.ones((2, 3)))
    >>> [step.primitive.name for step in t.steps]
    ['matmul', 'tanh', 'sum']

    The steps of a function are listed as they were executed; those of a formula level by level. Python
    numbers become float64, tensors keep their type, and arguments may be trees and modules. A function sees
    values, so `if` and loops work; the trace holds the branch that was taken. Book, section 6.1 (E.6.1);
    slides, worked example of reverse mode.
    """
    if current().trace is not None:
        raise TraceError(
            "wengert.trace: a trace shows numbers, so it cannot run inside a transformation.",
            "trace wl.grad(f) instead",
        )
    if isinstance(f, str):
        f = Formula(f)
    title = f.text if isinstance(f, Formula) else ""
    if isinstance(f, Formula):
        if args:
            raise FormulaError("the values of a formula are given by name: trace(formula, x=2.0)")
        f.check_names(tuple(values))
        values = {name: values[name] for name in sorted(values, key=list(f.uses).index)}
    parameters = _parameter_names(f)
    # by position where that is possible, as the wrappers of wl.grad and relatives need it
    while len(args) < len(parameters) and parameters[len(args)] in values:
        args = (*args, values.pop(parameters[len(args)]))
    count, keys = len(args), tuple(values)
    labels = parameters[:count] if count <= len(parameters) else [f"x{i + 1}" for i in range(count)]

    def positional(*xs: Any) -> object:
        return f(*xs[:count], **dict(zip(keys, xs[count:], strict=True)))

    inputs = Inputs("trace", tuple(_as_inputs(value) for value in (*args, *values.values())))
    names = _leaf_names([*labels, *keys], inputs)
    candidates = itertools.chain("vwu", ("_" * n + "v" for n in itertools.count(1)))
    prefix = next(p for p in candidates if not any(re.fullmatch(rf"{p}\d+", name) for name in names))
    recorder = Recorder(prefix)
    known = dict(zip(names, inputs.values, strict=True))
    out = inputs.call(recorder, positional, [RecordedTracer(recorder, n, value) for n, value in known.items()])
    leaves, structure = output_leaves("trace", out)
    outputs = [leaf.name if isinstance(leaf, RecordedTracer) else leaf for leaf in leaves]
    made = Trace(known, recorder.steps, outputs, structure, title)
    return made.by_level() if title else made


def _as_inputs(tree: object) -> object:
    """The argument with its Python numbers and NumPy arrays as floating tensors."""

    def convert(x: object) -> object:
        if isinstance(x, (bool, int, float)):
            return arrays.asarray(float(x), dtype=float64)
        if isinstance(x, (np.ndarray, np.generic)):
            return arrays.asarray(x, dtype=None if x.dtype.kind in "fc" else float64)
        return x

    leaves, structure = trees.flatten(tree, open_objects=False)
    return trees.unflatten(structure, [convert(leaf) for leaf in leaves])


def _parameter_names(f: Callable[..., object]) -> list[str]:
    """The names of the parameters that can be given by position; none if the function does not tell."""
    try:
        parameters = list(inspect.signature(f).parameters.values())
    except (TypeError, ValueError):
        return []
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return [p.name for p in parameters if p.kind in kinds]


def _leaf_names(labels: list[str], inputs: Inputs) -> list[str]:
    """A name for every leaf: that of its argument, followed by the path within it."""
    names: list[str] = []
    for label, arg, (_, _, entries) in zip(labels, inputs.args, inputs.layout, strict=True):
        paths = [path for path, _ in trees.flatten_with_paths(arg, open_objects=False)[0]]
        for path, entry in zip(paths, entries, strict=True):
            name = ".".join([label, *map(str, path)])
            names += [f"{name}.{key}" for key in entry] if isinstance(entry, list) else [name]
    if len(set(names)) < len(names):
        raise InputError(f"trace: two inputs have the same name among {names}.", "different names for the arguments")
    return names
