"""`vmap`: a function of one example becomes a function of many. Book, section 2.4 (exercises) and 6.4.2.

Inside, a batched value carries the batch as its first axis and hides it; every primitive's batching rule works on the
whole batch at once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias, TypeGuard

from .. import arrays
from ..core import trees
from ..core.arguments import as_function, named_after
from ..core.cell import Cell
from ..core.context import Trace, current, enter, leave, restoring, step_out
from ..core.dtypes import DType
from ..core.errors import AxisError, InputError, ShapeError, TraceError, WonderlandError
from ..core.interpreter import bind, read
from ..core.primitive import Primitive
from ..core.tensor import Shape, Tensor, Tracer, alias, noun, wrap
from ..core.typing import Array
from ..primitives.structure import broadcast_to
from .signatures import Function, P, Result

# One axis for all, None for none, or a tree of them that is a prefix of the arguments.
AxisTree: TypeAlias = "int | Sequence[AxisTree] | Mapping[Any, AxisTree] | None"


class BatchTracer(Tracer):
    """Many values of one shape, held along axis 0 of `value`."""

    __slots__ = ("value",)

    def __init__(self, trace: BatchTrace, value: Tensor) -> None:
        self.trace = trace
        self.value = value

    @property
    def shape(self) -> Shape:
        return self.value.shape[1:]

    @property
    def dtype(self) -> DType:
        return self.value.dtype

    def _concrete(self, what: str) -> Array:
        raise TraceError(
            f"{what}: a batched value of shape {self.shape} under vmap stands for many values, not for {noun(what)}.",
            "wl.where or wl.cond in place of Python's if; functions of wonderland in place of NumPy's",
        )

    def __repr__(self) -> str:
        return f"batched({self.value!r})"


class Shared:
    """One of several results of a batching rule that is the same for all examples, without the batch."""

    __slots__ = ("value",)

    def __init__(self, value: Tensor) -> None:
        self.value = value


class BatchTrace:
    """The interpreter of `vmap`."""

    __slots__ = ("created", "parent", "size", "staged", "written")
    concrete = False

    def __init__(self, parent: Trace | None, size: int) -> None:
        self.parent = parent
        self.size = size
        self.staged: bool = parent is not None and parent.staged
        self.written: dict[int, tuple[Cell, Tensor | None]] = {}  # with the value before the first write
        self.created: list[Cell] = []

    def process(self, primitive: Primitive, args: Sequence[Any], params: dict[str, object]) -> Any:
        batched = [type(arg) is BatchTracer and arg.trace is self for arg in args]
        values = [arg.value if b else arg for arg, b in zip(args, batched, strict=True)]
        inside = step_out()
        try:
            if not any(batched):
                return bind(primitive, *values, **params)
            if primitive.batch is None:
                raise TraceError(
                    f"{primitive.name}: has no batching rule, so it does not work under vmap.",
                    "a Python loop or wl.map",
                )
            out = primitive.batch(values, batched, **params)
        except WonderlandError:
            primitive.abstract(*args, **params)  # explains wrong shapes as the user sees them, without the batch
            raise
        finally:
            leave(inside)
        if primitive.multiple:
            return [o.value if type(o) is Shared else BatchTracer(self, o) for o in out]
        return BatchTracer(self, out)

    def read(self, cell: Cell, value: Tensor) -> Tensor:
        assert self.parent is not None  # only staged interpreters are asked, and this one is if its parent is
        return self.parent.read(cell, value)

    def note_write(self, cell: Cell) -> None:
        self.written.setdefault(id(cell), (cell, cell.inside))
        if self.parent is not None:
            self.parent.note_write(cell)

    def note_create(self, cell: Cell) -> None:
        self.created.append(cell)

    def take(self, mapped: list[tuple[Cell, Tensor | None]]) -> dict[int, Tensor]:
        """Take the values out of the cells, by the identities of the cells."""
        concerned = [cell for cell, _ in (*mapped, *self.written.values())] + self.created
        return {identity: cell.release() for identity, cell in {id(cell): cell for cell in concerned}.items()}

    def finish(self, mapped: list[tuple[Cell, Tensor | None]], taken: dict[int, Tensor]) -> list[Cell]:
        """Give the cells the values that they have outside this trace, by those that were taken.

        Returns the cells, not mapped themselves, that were given a value per example; these are put back to what they
        were.
        """
        refused = []
        for cell, before in mapped:
            now = taken[id(cell)]
            if id(cell) not in self.written:
                cell.restore(before)
            elif self._is_mine(now):
                cell.value = now.value if now.value._node is None else wrap(now.value._data)
            else:  # the same new value for every example
                cell.value = broadcast_to(now, shape=(self.size, *now.shape))
        for cell in self.created:  # one with a value per example ends with the example
            if not self._is_mine(taken[id(cell)]):
                cell.value = taken[id(cell)]
                if self.parent is not None:
                    self.parent.note_create(cell)
        done = {id(cell) for cell, _ in mapped}
        for cell, before in self.written.values():
            if id(cell) in done:
                continue
            if self._is_mine(taken[id(cell)]):
                cell.restore(before)
                refused.append(cell)
            else:
                cell.value = taken[id(cell)]  # from here on it is a value of the outer interpreter
        return refused

    def _is_mine(self, value: Tensor) -> TypeGuard[BatchTracer]:
        return isinstance(value, BatchTracer) and value.trace is self


def _axes_of(name: str, axes: AxisTree, tree: object) -> list[int | None]:
    """One axis (or None) per closed leaf of `tree`; `axes` may be a prefix of it."""
    leaves, _ = trees.flatten(tree, open_objects=False)
    if axes is None or isinstance(axes, int):
        return [axes] * len(leaves)
    if isinstance(axes, (list, tuple)) and isinstance(tree, (list, tuple)) and len(axes) == len(tree):
        return [a for ax, child in zip(axes, tree, strict=True) for a in _axes_of(name, ax, child)]
    if isinstance(axes, dict) and isinstance(tree, dict) and set(axes) == set(tree):
        keys = trees.structure(dict.fromkeys(tree)).meta  # in the order in which they are flattened
        return [a for key in keys for a in _axes_of(name, axes[key], tree[key])]
    raise InputError(
        f"vmap: {name}={axes!r} does not match the structure of the arguments.", "an int, None, or a prefix tree"
    )


def vmap(
    f: Callable[P, Result], in_axes: AxisTree = 0, out_axes: AxisTree = 0, *, axis_size: int | None = None
) -> Function[P, Result]:
    """Map f over an axis of its arguments, all at once.

    >>> import wonderland as wl
    >>> per_example = wl.vmap(wl.grad(lambda w, x: (w * x).sum() ** 2), in_axes=(None, 0))
    >>> per_example(wl.ones(2), wl.tensor([[1.0, 0.0], [1.0, 2.0]]))
    tensor([[ 2.,  0.],
            [ 6., 12.]])

    `in_axes` names the mapped axis of each argument (None: the same for every example) and may be a tree
    that is a prefix of the arguments; keyword arguments are mapped over axis 0. `out_axes` places the axis
    in the results. Random numbers drawn from a key that is not mapped are the same for every example; map
    over `wl.random.split(key, n)` otherwise.
    """
    as_function("vmap", f)

    def wrapper(*args: P.args, **kwargs: P.kwargs) -> Result:
        inputs = MappedInputs(args, kwargs, in_axes, axis_size)
        trace = BatchTrace(current().trace, inputs.size)
        out = inputs.call(trace, f)
        leaves, structure = trees.flatten(out, open_objects=False)
        places = _axes_of("out_axes", out_axes, out)
        results = [_finish(trace, leaf, axis) for leaf, axis in zip(leaves, places, strict=True)]
        return trees.unflatten(structure, results)

    return named_after(f, "vmap", wrapper)  # type: ignore[arg-type]  # see Function


class MappedInputs:
    """The arguments of a mapped function: the values to map, batch in front, and the number of examples."""

    def __init__(
        self, args: tuple[object, ...], kwargs: dict[str, object], in_axes: AxisTree, axis_size: int | None
    ) -> None:
        spec = in_axes if isinstance(in_axes, (tuple, list)) else (in_axes,) * len(args)
        if len(spec) != len(args):
            raise InputError(
                f"vmap: in_axes has {len(spec)} entries for {len(args)} arguments.", "one entry per argument"
            )
        self.leaves, self.structure = trees.flatten((args, kwargs), open_objects=False)
        axes = _axes_of("in_axes", tuple(spec), args)
        axes += [0] * (len(self.leaves) - len(axes))  # keyword arguments
        self.values: dict[int, Tensor] = {}  # by the position of the leaf
        self.cells: list[tuple[Cell, Tensor]] = []
        sizes: dict[int, str] = {} if axis_size is None else {axis_size: f"axis_size={axis_size}"}
        for i, (leaf, axis) in enumerate(zip(self.leaves, axes, strict=True)):
            if axis is None:
                continue
            if trees.is_stateful(leaf):
                mapped = [(cell, _front(read(cell), axis)) for cell in trees.leaves(leaf)]
                self.cells += mapped
                sizes |= {value.shape[0]: f"a cell of shape {cell.shape}" for cell, value in mapped}
            else:
                tensor = leaf if isinstance(leaf, Tensor) else arrays.asarray(leaf)
                self.values[i] = _front(tensor, axis)
                sizes[self.values[i].shape[0]] = f"axis {axis} of shape {tensor.shape}"
        if not sizes:
            raise InputError("vmap: no argument is mapped.", "in_axes with at least one axis, or axis_size")
        if len(sizes) > 1:
            listed = ", ".join(f"{n} from {origin}" for n, origin in sizes.items())
            raise ShapeError(
                f"vmap: the mapped axes have different sizes: {listed}.", "arguments with the same number of examples"
            )
        (self.size,) = sizes

    @restoring
    def call(self, trace: BatchTrace, f: Callable[..., object]) -> object:
        """Run f on batched values; modules that are mapped hold them in their cells meanwhile."""
        leaves = list(self.leaves)
        for i, value in self.values.items():
            leaves[i] = BatchTracer(trace, value)
        args, kwargs = trees.unflatten(self.structure, leaves)
        before = [(cell, cell.inside) for cell, _ in self.cells]
        refused: list[Cell] = []
        outer = enter(trace)
        try:
            for cell, value in self.cells:
                cell.hold(BatchTracer(trace, value))
            out = f(*args, **kwargs)
        finally:
            taken = trace.take(before)
            leave(outer)
            refused = trace.finish(before, taken)
        if refused:
            raise TraceError(
                f"vmap: a {type(refused[0]).__name__} of shape {refused[0].shape} shared by all examples was given a "
                "value that differs from example to example.",
                "eval mode, an update outside vmap, or in_axes=0 for the module so that each example has its own",
            )
        return out


def _front(value: Tensor, axis: int) -> Tensor:
    if not value.shape or not -value.ndim <= axis < value.ndim:
        raise AxisError(
            f"vmap: axis {axis} of a tensor of shape {value.shape} cannot be mapped.",
            "in_axes=None for arguments without that axis",
        )
    return value if axis == 0 else arrays.moveaxis(value, axis, 0)


def _finish(trace: BatchTrace, leaf: object, axis: int | None) -> Tensor:
    if not arrays.is_operand(leaf):
        raise InputError(
            f"vmap: the function returned a {type(leaf).__name__}, not a tensor.", "tensors or trees of tensors"
        )
    if isinstance(leaf, BatchTracer) and leaf.trace is trace:
        if axis is None:
            raise InputError("vmap: out_axes is None for a result that differs from example to example.", "out_axes=0")
        return alias(leaf.value) if axis == 0 else arrays.moveaxis(leaf.value, 0, axis)
    value = alias(leaf) if isinstance(leaf, Tensor) else arrays.asarray(leaf)
    if axis is None:
        return value
    value = broadcast_to(value, shape=(trace.size, *value.shape))
    return value if axis == 0 else arrays.moveaxis(value, 0, axis)
