"""Recordings pulled back: operation by operation, or by one program. Book, sections 6.3 and 6.4.

`pull_back` visits the recorded linear operations in reverse order and calls one transpose rule per needed argument.

A recording is known when its backward pass begins, so it can be written down as an `Outline`: which operations there
were, what they were applied to, and which adjoints are wanted; the numbers are arguments. When an outline was seen
often enough, the same rules are traced to a graph (outlines.py), which runs like any other.
"""

from __future__ import annotations

import contextlib
import heapq
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from ..core.context import BACKWARD, FORWARD, at, current
from ..core.dtypes import DType, is_complex
from ..core.errors import GradientError
from ..core.interpreter import Later, Node, Tangent, bind
from ..core.primitive import Primitive
from ..core.settings import as_recorded, lenient
from ..core.sightings import Sightings
from ..core.tangents import add_tangents, tangent_of
from ..core.tape import Record
from ..core.tensor import Shape, Tensor
from ..core.typing import Array, Tangents
from ..core.views import Part, address, memory, part
from ..primitives.elementwise import conj

if TYPE_CHECKING:
    from .outlines import Key

Slot: TypeAlias = int  # which adjoint: that of an input, or of a result of an operation
Params: TypeAlias = tuple[tuple[str, object], ...]
Place: TypeAlias = int  # of an array among the numbers
# An operation that is linearised when it is transposed: its arguments, its results, the adjoints of both.
Whole: TypeAlias = tuple[
    Primitive, Params, tuple[Place, ...], tuple[Place, ...], tuple[Slot | None, ...], tuple[Slot, ...]
]
# A linear operation: each argument is a number, or a tangent with its slot; whether there is one result or a list.
Linear: TypeAlias = tuple[Primitive, Params, tuple[Place | tuple[Slot, Shape, DType], ...], bool, tuple[Slot, ...]]
# of an array; with the number itself if it is small, or what it sees of its memory and the place of that
Kind: TypeAlias = tuple[Shape, DType] | tuple[Shape, DType, float] | tuple[Shape, DType, Part, Place]

# Small numbers, as factors and exponents are, are written into programs; others are arguments, so that a setting that
# changes with every step does not make every step another one.
SMALL = frozenset(n / 2 for n in range(-8, 9))
seen = Sightings()
# gives the adjoints for an outline and numbers like the last ones; there from the first program on
_again: list[Callable[[int, Key, list[Array]], Tangents | None]] = []


def pull_back(seeds: Sequence[tuple[Tangent, Tensor]], wanted: Sequence[Tangent], *, free: bool) -> Tangents:
    """The adjoints of the tangents `wanted`, given adjoints of others; None where there is no path.

    With `free`, the recording is taken apart on the way, so that its memory is released as the walk goes.
    """
    adjoints: dict[int, Any] = {}  # of one result a tensor, of several a list
    waiting: list[int] = []
    nodes: dict[int, Node] = {}

    def receive(tangent: Tangent, ct: Tensor) -> None:
        order, node = tangent.order, tangent.node
        if node is not None and node.outs is not None:
            if order not in adjoints:
                adjoints[order] = [None] * len(node.outs)
                nodes[order] = node
                heapq.heappush(waiting, -order)
            cts = adjoints[order]
            cts[tangent.index] = add_tangents(cts[tangent.index], ct)
        elif order in adjoints:
            adjoints[order] = adjoints[order] + ct
        else:
            adjoints[order] = ct
            if node is not None:
                nodes[order] = node
                heapq.heappush(waiting, -order)

    for tangent, ct in seeds:
        receive(tangent, ct)
    with as_recorded():
        while waiting:
            order = -heapq.heappop(waiting)
            node = nodes.pop(order)
            ct = adjoints.pop(order)
            for arg, arg_ct in zip(node.args, transposed(node, ct), strict=False):
                if arg_ct is not None:
                    receive(arg, arg_ct)
            if free:
                node.args = ()
    return [adjoints.get(t.order) for t in wanted]


def transposed(node: Node, ct: Tensor | Tangents) -> Tangents:
    """The adjoints of a linear operation's arguments."""
    if node.place is None:
        return _transposed(node, ct)
    source, module, phase = node.place
    with at(source, module, f"{BACKWARD}, derivative of {node.primitive.name}" if phase == FORWARD else phase):
        return _transposed(node, ct)


def _transposed(node: Node, ct: Tensor | Tangents) -> Tangents:
    primitive, args, params = node.primitive, node.args, node.params
    if type(node) is Later and isinstance(ct, Tensor):
        varied = [type(arg) is Tangent for arg in args]
        return adjoints_of(primitive, node.primals, varied, [node.out], params, {0: ct})
    rules = primitive.transpose
    if callable(rules):
        return rules(ct, args, **params)
    cts: Tangents = []
    for i, arg in enumerate(args):
        if type(arg) is not Tangent:
            cts.append(None)
            continue
        rule = rules[i] if i < len(rules) else None
        if rule is None:
            raise GradientError(
                f"{primitive.name}: has no transpose with respect to argument {i}.",
                "wl.jvp, or wl.custom_vjp to define one",
            )
        cts.append(rule(ct, *args, **params))
    return cts


def recorded(outputs: Sequence[Tangent | None]) -> dict[int, Node]:
    """The recorded operations behind some tangents (None: zero), by their numbers."""
    nodes: dict[int, Node] = {}
    stack = [t for t in outputs if t is not None]
    while stack:
        t = stack.pop()
        if t.node is not None and t.order not in nodes:
            nodes[t.order] = t.node
            stack.extend(a for a in t.node.args if type(a) is Tangent)
    return nodes


def push_forward(
    outputs: Sequence[Tangent | None],
    inputs: Sequence[Tangent],
    values: Sequence[Tensor],
    residuals: dict[int, Tensor] | None = None,
) -> Tangents:
    """Evaluate recorded tangents for given values of the inputs; None stands for zero.

    `residuals` gives other values, by identity, for the constants of the recording.
    """
    residuals = residuals or {}
    known: dict[int, Any] = {t.order: v for t, v in zip(inputs, values, strict=True)}
    nodes = recorded(outputs)

    def value(t: Tangent) -> Tensor:
        found = known[t.order]
        return found[t.index] if t.node is not None and t.node.outs is not None else found

    with lenient():  # what was recorded under vmap has a batch axis that the user did not write
        for order in sorted(nodes):
            node = nodes[order]
            args = [value(a) if type(a) is Tangent else residuals.get(id(a), a) for a in node.args]
            with contextlib.nullcontext() if node.place is None else at(*node.place):
                known[order] = bind(node.primitive, *args, **node.params)
    return [None if t is None else value(t) for t in outputs]


def adjoints_of(
    primitive: Primitive,
    primals: list[Tensor],
    varied: Sequence[bool],
    outs: list[Tensor],
    params: dict[str, object],
    cts: Mapping[int, Tensor],
) -> Tangents:
    """Linearise one primitive and transpose it: the adjoints of the arguments that vary, from those of results."""
    tangents = [Tangent(p.shape, p.dtype) if on else None for p, on in zip(primals, varied, strict=True)]
    made = tangent_of(primitive, primals, tangents, outs if primitive.multiple else outs[0], params)
    made = made if primitive.multiple else [made]
    seeds = [(t, cts[i]) for i, t in enumerate(made) if t is not None and i in cts]
    found = iter(pull_back(seeds, [t for t in tangents if t is not None], free=True))
    return [None if t is None else next(found) for t in tangents]


# --- programs for recordings that come again


class Outline:
    """A recording as it is written down: numbers, each once, and the operations, the last one first."""

    __slots__ = ("_memories", "_places", "_slots", "arrays", "kinds", "steps")

    def __init__(self) -> None:
        self.steps: list[Whole | Linear] = []
        self.arrays: list[Array] = []
        self.kinds: list[Kind] = []
        self._slots: dict[Hashable, Slot] = {}
        self._places: dict[int, Place] = {}
        self._memories: dict[Hashable, Place] = {}

    def slot(self, value: Hashable) -> Slot:
        slots = self._slots
        return slots.setdefault(value, len(slots))

    def place(self, array: Array) -> Place:
        found = self._places.get(id(array))
        if found is None:
            shape = array.shape
            kind: Kind = (shape, array.dtype) if shape and array.flags.c_contiguous else self._kind(array)
            found = self._places[id(array)] = len(self.arrays)  # after its kind, which may add the memory before it
            self.arrays.append(array)
            self.kinds.append(kind)
        return found

    def _kind(self, array: Array) -> Kind:
        shape, dtype = array.shape, array.dtype
        if not shape:
            number = array.item() if dtype.kind == "f" else None
            return (shape, dtype, number) if number in SMALL else (shape, dtype)
        seen = part(array)
        if seen is None:
            return shape, dtype
        whole = memory(array)
        assert whole is not None
        known = address(whole), whole.size, dtype
        if known not in self._memories:  # parts of one memory share it
            self._memories[known] = len(self.arrays)
            self.arrays.append(whole)
            self.kinds.append((whole.shape, dtype))
        return shape, dtype, seen, self._memories[known]


def at_once() -> bool:
    """Whether operations run at once here, and nobody looks at them."""
    state = current()
    return state.trace is None and state.plain


def of_tangents(seeds: Sequence[tuple[Tangent, Tensor]], wanted: Sequence[Tangent]) -> Tangents | None:
    """The adjoints of tangents, as `pull_back` gives them; None if there is no program for this recording."""
    outline = Outline()
    slot, place, steps = outline.slot, outline.place, outline.steps
    first = tuple([slot((t.order, t.index)) for t, _ in seeds])
    nodes = recorded([t for t, _ in seeds])
    for order in sorted(nodes, reverse=True):
        node = nodes[order]
        params = tuple(node.params.items())
        if type(node) is Later:
            primals: list[Place] = []
            for number in node.primals:
                if number._node is not None:
                    return None  # `backward()` wants to know what becomes of it
                primals.append(place(number._data))
            args = [None if a is None else slot((a.order, a.index)) for a in node.args]
            result = slot((order, 0))
            steps.append((node.primitive, params, tuple(primals), (place(node.out._data),), tuple(args), (result,)))
        else:
            results = tuple([slot((order, i)) for i in range(1 if node.outs is None else len(node.outs))])
            mixed: list[Place | tuple[Slot, Shape, DType]] = []
            for arg in node.args:
                if type(arg) is Tangent:
                    mixed.append((slot((arg.order, arg.index)), arg.shape, arg.dtype))
                elif arg._node is not None:
                    return None
                else:
                    mixed.append(place(arg._data))
            steps.append((node.primitive, params, tuple(mixed), node.outs is None, results))
    last = tuple([slot((t.order, t.index)) for t in wanted])
    return _run(outline, first, [ct for _, ct in seeds], last)


def of_records(start: tuple[Record, int], seed: Tensor, free: bool) -> bool:
    """Give the leaves behind a recorded value their gradients. False: there is no program for this recording."""
    found = _behind(start[0])
    if found is None:
        return False
    outline = Outline()
    slot, place = outline.slot, outline.place
    first = (slot(start),)
    leaves: list[Record] = []
    for order in sorted(found, reverse=True):
        record = found[order]
        if record.primitive is None:
            leaves.append(record)
            continue
        args: list[Slot | None] = []
        primals = []
        for arg in record.args:
            primals.append(place(arg._data))
            node = arg._node
            args.append(None if node is None else slot(node))
        outs = tuple([place(out) for out in record.outs])
        results = tuple([slot((record, i)) for i in range(len(outs))])
        params = tuple(record.params.items())
        outline.steps.append((record.primitive, params, tuple(primals), outs, tuple(args), results))
    last = tuple([slot((leaf, 0)) for leaf in leaves])
    gradients = _run(outline, first, [seed], last)
    if gradients is None:
        return False
    for leaf, gradient in zip(leaves, gradients, strict=True):
        if gradient is not None:
            gradient = conj(gradient) if is_complex(gradient.dtype) else gradient
            leaf.grad[0] = leaf.grad[0] + gradient if 0 in leaf.grad else gradient
    if free:
        for record in found.values():
            record.args = record.outs = None
    return True


def _behind(start: Record) -> dict[int, Record] | None:
    """The records behind one, by their numbers; None if somebody waits for what is in between, or it was released."""
    found = {start.order: start}
    stack = [start]
    while stack:
        record = stack.pop()
        if record.primitive is None:
            if record.hooks:
                return None
            continue
        if record.hooks or record.retained or record.args is None:
            return None
        for arg in record.args:
            node = arg._node
            if node is not None and node[0].order not in found:
                found[node[0].order] = node[0]
                stack.append(node[0])
    return found


def _run(outline: Outline, first: tuple[Slot, ...], seeds: list[Tensor], last: tuple[Slot, ...]) -> Tangents | None:
    kinds = (*outline.kinds, *[(ct._data.shape, ct._data.dtype) for ct in seeds])
    key = (tuple(outline.steps), kinds, first, last)
    arrays = [*outline.arrays, *[ct._data for ct in seeds]]
    try:
        number = hash(key)
    except TypeError:  # a setting that may change
        return None
    if _again and (made := _again[0](number, key, arrays)) is not None:
        return made
    if not seen.enough(number, sum([array.size for array in outline.arrays])):
        return None
    from .outlines import again, program  # the engines load with it

    _again[:] = [again]
    found = program(number, key, _pulled)
    return None if found is None else found(arrays)


def _pulled(
    steps: Sequence[Whole | Linear], values: dict[int, Tensor], adjoints: dict[Slot, Tensor]
) -> dict[Slot, Tensor]:
    """The adjoints that are left when those of the results were pulled back through all steps."""
    for step in steps:
        primitive, params, results = step[0], dict(step[1]), step[-1]
        cts = {i: adjoints.pop(slot) for i, slot in enumerate(results) if slot in adjoints}
        if not cts:
            continue
        slots: list[Slot | None]
        if len(step) == 6:
            slots = list(step[4])
            primals, outs = [values[i] for i in step[2]], [values[i] for i in step[3]]
            found = adjoints_of(primitive, primals, [slot is not None for slot in slots], outs, params, cts)
        else:
            slots = [None if isinstance(a, int) else a[0] for a in step[2]]
            args = [values[a] if isinstance(a, int) else Tangent(a[1], a[2]) for a in step[2]]
            given = cts[0] if step[3] else [cts.get(i) for i in range(len(results))]
            found = transposed(Node(primitive, args, params), given)
        for slot, ct in zip(slots, found, strict=False):
            total = None if slot is None else add_tangents(adjoints.get(slot), ct)
            if slot is not None and total is not None:
                adjoints[slot] = total
    return adjoints
