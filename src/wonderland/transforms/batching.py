"""`vmap`: a function of one example becomes a function of many. Book, section 2.4 (exercises) and 6.4.2.

Inside, a batched value carries the batch as its first axis and hides it; every primitive's batching rule works on the
whole batch at once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .. import array, trees
from ..context import state, switch
from ..dtypes import DType
from ..errors import AxisError, InputError, ShapeError, TraceError
from ..interpreter import bind
from ..primitives.primitive import Primitive
from ..primitives.structure import broadcast_to
from ..tensor import Cell, Shape, Tensor, Tracer


class BatchTracer(Tracer):
    """Many values of one shape, held along axis 0 of `value`."""

    __slots__ = ("value",)

    def __init__(self, trace: BatchTrace, value: Any) -> None:
        self.trace = trace
        self.value = value

    @property
    def shape(self) -> Shape:
        return self.value.shape[1:]  # type: ignore[no-any-return]

    @property
    def dtype(self) -> DType:
        return self.value.dtype  # type: ignore[no-any-return]

    def _concrete(self, what: str) -> np.ndarray[Any, Any]:
        raise TraceError(
            f"{what}: a batched value of shape {self.shape} under vmap stands for many values, so it is not one {what}.",
            "wl.where or wl.cond in place of Python's if; functions of wonderland in place of NumPy's",
        )

    def __repr__(self) -> str:
        return f"batched({self.value!r})"


class BatchTrace:
    """The interpreter of `vmap`."""

    __slots__ = ("parent", "size", "staged", "written")
    concrete = False

    def __init__(self, parent: Any, size: int) -> None:
        self.parent = parent
        self.size = size
        self.staged: bool = parent is not None and parent.staged
        self.written: dict[int, Cell] = {}

    def process(self, primitive: Primitive, args: Any, params: dict[str, Any]) -> Any:
        batched = [type(arg) is BatchTracer and arg.trace is self for arg in args]
        values = [arg.value if b else arg for arg, b in zip(args, batched, strict=True)]
        previous = switch(self.parent)
        try:
            if not any(batched):
                return bind(primitive, *values, **params)
            if primitive.batch is None:
                raise TraceError(f"{primitive.name}: has no batching rule, so it does not work under vmap.")
            out = primitive.batch(values, batched, **params)
        finally:
            switch(previous)
        if primitive.multiple:
            return [BatchTracer(self, o) for o in out]
        return BatchTracer(self, out)

    def read(self, cell: Cell, value: Tensor) -> Tensor:
        return self.parent.read(cell, value)  # type: ignore[no-any-return]

    def note_write(self, cell: Cell) -> None:
        self.written[id(cell)] = cell
        if self.parent is not None:
            self.parent.note_write(cell)

    def note_create(self, cell: Cell) -> None:
        self.written[id(cell)] = cell
        if self.parent is not None:
            self.parent.note_create(cell)

    def finish(self, swapped: dict[int, Any]) -> None:
        for cell in self.written.values():
            value = cell.value
            if isinstance(value, BatchTracer) and value.trace is self and id(cell) not in swapped:
                cell.value = swapped.get(id(cell), value.value[0])
                raise TraceError(
                    f"vmap: a {type(cell).__name__} of shape {cell.shape} shared by the batch was assigned a value that "
                    "differs from example to example.",
                    "a mean over the batch outside vmap, eval mode, or in_axes for the module so that each example has its own",
                )


def _axes_of(name: str, axes: Any, tree: Any) -> list[Any]:
    """One axis (or None) per closed leaf of `tree`; `axes` may be a prefix of it."""
    leaves, _ = trees.flatten(tree, open_objects=False)
    if axes is None or isinstance(axes, int):
        return [axes] * len(leaves)
    if isinstance(axes, (list, tuple)) and isinstance(tree, (list, tuple)) and len(axes) == len(tree):
        return [a for ax, child in zip(axes, tree, strict=True) for a in _axes_of(name, ax, child)]
    if isinstance(axes, dict) and isinstance(tree, dict) and set(axes) == set(tree):
        return [a for key in sorted(tree) for a in _axes_of(name, axes[key], tree[key])]
    raise InputError(f"vmap: {name}={axes!r} does not match the structure of the arguments.", "an int, None, or a prefix tree")


def vmap(f: Callable[..., Any], in_axes: Any = 0, out_axes: Any = 0, *, axis_size: int | None = None) -> Callable[..., Any]:
    """Map f over an axis of its arguments, all at once.

    >>> import wonderland as wl
    >>> per_example = wl.vmap(wl.grad(lambda w, x: (w * x).sum() ** 2), in_axes=(None, 0))
    >>> per_example(wl.ones(2), wl.tensor([[1.0, 0.0], [1.0, 2.0]]))
    tensor([[ 2.,  0.],
            [ 6., 12.]])

    `in_axes` names the mapped axis of each argument (None: the same for every example) and may be a tree that is a prefix
    of the arguments; keyword arguments are mapped over axis 0. `out_axes` places the axis in the results. Random numbers
    drawn from a key that is not mapped are the same for every example; map over `wl.random.split(key, n)` otherwise.
    """

    def wrapper(*args: Any, **kwargs: Any) -> Any:
        spec = in_axes if isinstance(in_axes, (tuple, list)) else (in_axes,) * len(args)
        if len(spec) != len(args):
            raise InputError(f"vmap: in_axes has {len(spec)} entries for {len(args)} arguments.", "one entry per argument")
        tree = (tuple(args), kwargs)
        leaves, structure = trees.flatten(tree, open_objects=False)
        axes = _axes_of("in_axes", tuple(spec), tuple(args)) + [0] * (len(leaves) - len(trees.flatten(tuple(args), open_objects=False)[0]))
        sizes: dict[int, str] = {}
        moved: list[Any] = []
        cells: list[tuple[Cell, Any]] = []
        for leaf, axis in zip(leaves, axes, strict=True):
            if axis is None:
                moved.append(None)
                continue
            if trees.is_stateful(leaf):
                for cell in trees.flatten(leaf)[0]:
                    value = _front(cell.value, axis)
                    sizes.setdefault(value.shape[0], f"shape {cell.shape}")
                    cells.append((cell, value))
                moved.append(None)
                continue
            value = _front(leaf if isinstance(leaf, Tensor) else array.asarray(leaf), axis)
            sizes.setdefault(value.shape[0], f"axis {axis} of shape {getattr(leaf, 'shape', ())}")
            moved.append(value)
        if axis_size is not None:
            sizes.setdefault(axis_size, f"axis_size={axis_size}")
        if len(sizes) != 1:
            if not sizes:
                raise InputError("vmap: no argument is mapped.", "in_axes with at least one axis, or axis_size")
            listed = ", ".join(f"{n} from {origin}" for n, origin in sizes.items())
            raise ShapeError(f"vmap: the mapped axes have different sizes: {listed}.", "arguments with the same number of examples")
        (size,) = sizes
        trace = BatchTrace(state.trace, size)
        inputs = [leaf if m is None else BatchTracer(trace, m) for leaf, m in zip(leaves, moved, strict=True)]
        new_args, new_kwargs = trees.unflatten(structure, inputs)
        before = {id(cell): cell.value for cell, _ in cells}
        previous = switch(trace)
        for cell, value in cells:
            cell.value = BatchTracer(trace, value)
        try:
            out = f(*new_args, **new_kwargs)
            trace.finish(before)
        finally:
            for cell, _ in cells:
                now = cell.value
                written = id(cell) in trace.written and isinstance(now, BatchTracer)
                cell.value = now.value if written else before[id(cell)]
            switch(previous)
        out_leaves, out_structure = trees.flatten(out, open_objects=False)
        places = _axes_of("out_axes", out_axes, out)
        results = [_finish(trace, leaf, axis) for leaf, axis in zip(out_leaves, places, strict=True)]
        return trees.unflatten(out_structure, results)

    wrapper.__name__ = f"vmap_of_{getattr(f, '__name__', 'function')}"
    wrapper.__wrapped__ = f  # type: ignore[attr-defined]
    return wrapper


def _front(value: Any, axis: int) -> Any:
    if not value.shape or not -value.ndim <= axis < value.ndim:
        raise AxisError(
            f"vmap: axis {axis} of a tensor of shape {value.shape} cannot be mapped.", "in_axes=None for arguments without that axis"
        )
    return value if axis == 0 else array.moveaxis(value, axis, 0)


def _finish(trace: BatchTrace, leaf: Any, axis: int | None) -> Any:
    if not array.is_operand(leaf):
        raise InputError(f"vmap: the function returned a {type(leaf).__name__}, not a tensor.")
    if isinstance(leaf, BatchTracer) and leaf.trace is trace:
        if axis is None:
            raise InputError("vmap: out_axes is None for a result that differs from example to example.", "out_axes=0")
        return leaf.value if axis == 0 else array.moveaxis(leaf.value, 0, axis)
    value = leaf if isinstance(leaf, Tensor) else array.asarray(leaf)
    if axis is None:
        return value
    value = broadcast_to(value, shape=(trace.size, *value.shape))
    return value if axis == 0 else array.moveaxis(value, 0, axis)
