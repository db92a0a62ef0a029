"""Control flow as instructions of the runtime: scans, while loops and branches run without Python.

A sequence is read and written through a buffer that moves: its address in the table is advanced in every step. The
state of a loop has two buffers, one that is read and one that is written; their addresses are exchanged after every
step. State that is also a result of every step is written there alone, and the next step reads it there.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from ...core import dtypes
from ...ir.graph import Atom, Equation, Graph, Var, has_effect
from .runtime import Op as Code
from .steps import Control, Label, Loop
from .values import Buffer, Const, Op, Value, View, whole

if TYPE_CHECKING:
    from .schedule import Schedule


class _Extent:
    """A loop that is being scheduled: what its frame keeps alive from before its first to behind its last step."""

    def __init__(self, s: Schedule, repeats: bool = True) -> None:
        self.s = s
        self.loop = Loop(repeats)
        self.alive: list[Buffer] = []

    def begin(self) -> None:
        self.s.close_all()
        self.s.emit(self.loop.begin)
        self.s.emit(Control(Code.SET, self._counter(), 0, alive=self.alive))

    def _counter(self) -> Buffer:
        self.counter = Buffer("word", 1, dtypes.int64)
        return self.counter

    def end(self) -> None:
        self.s.close_all()
        self.s.emit(Control(Code.SET, self.counter, 0, alive=self.alive))
        self.s.emit(self.loop.end)
        self.s.enclose(self.loop)


def _moving(view: View, extent: _Extent, length: int, reverse: bool) -> tuple[View, Control, Control]:
    """A view of one step of a sequence, how it is set at the start, and how it is advanced."""
    item, step = view.dtype.itemsize, view.strides[0]
    buffer = Buffer("moving", math.prod(view.shape[1:]), view.dtype)
    buffer.base = view.buffer
    start = (view.offset + (step * (length - 1) if reverse else 0)) * item
    extent.alive.append(view.buffer)
    first = Control(Code.MOVE, buffer, view.buffer, start)
    advance = Control(Code.ADD, buffer, (-step if reverse else step) * item)
    return View(buffer, view.shape[1:], view.strides[1:]), first, advance


def scan(s: Schedule, e: Equation) -> bool:
    body: Graph = e.params["body"]
    consts, carry, length, reverse = (e.params[k] for k in ("consts", "carry", "length", "reverse"))
    if length == 0:
        return False
    n = consts + carry
    for var, atom in zip(body.inputs[:consts], e.inputs[:consts], strict=True):
        s.bind(var, _fixed(s, s.value(atom)))
    _hoist(s, body, consts)
    shared = _shared(body, carry)
    own = [i for i in range(carry) if i not in shared]
    with s.repeating():
        extent = _Extent(s)
        state = _state(s, extent, [e.inputs[consts + i] for i in own], [body.inputs[consts + i] for i in own])
        setup: list[Control] = []
        advances: list[Control] = []
        for var, atom in zip(body.inputs[n:], e.inputs[n:], strict=True):
            view = s.in_memory(s.value(atom))
            step, first, advance = _moving(view, extent, length, reverse)
            s.bind(var, step)
            setup.append(first)
            advances.append(advance)
        results = []
        targets = []
        for out in e.outputs[carry:]:
            result = s.new(out.shape, out.dtype)
            target, first, advance = _moving(result, extent, length, reverse)
            results.append(result)
            targets.append(target)
            setup.append(first)
            advances.append(advance)
        follow: list[Control] = []
        for i, j in shared.items():
            start = s.contiguous(s.value(e.inputs[consts + i]))
            step, first, _ = _moving(
                View(start.buffer, (1, *start.shape), (0, *start.strides), start.offset), extent, 1, reverse
            )
            s.bind(body.inputs[consts + i], step)
            setup.append(first)
            follow.append(Control(Code.MOVE, step.buffer, targets[j].buffer, 0))
        again = Label()
        extent.begin()
        s.emit(*setup, again)
        places = {i: whole(new, e.outputs[i].shape) for i, (_, new) in zip(own, state, strict=True)}
        places |= {i: targets[j] for i, j in shared.items()}
        _want(s, body, [places[i] for i in range(carry)] + targets)
        s.run(Graph(body.inputs, _apart(body, consts)[1], body.outputs, body.name))
        for target, atom in zip(targets, body.outputs[carry:], strict=True):
            s.put(target, s.value(atom))
        swaps = _next(s, state, [s.value(body.outputs[i]) for i in own])
        s.close_all()
        s.emit(*swaps, *follow, *advances, Control(Code.NEXT, extent.counter, length, again))
        extent.end()
    for i, (current, _) in zip(own, state, strict=True):
        s.bind(e.outputs[i], whole(current, e.outputs[i].shape))
    for out, result in zip(e.outputs[carry:], results, strict=True):
        s.bind(out, result)
    for i, j in shared.items():
        s.bind(e.outputs[i], _step_of(results[j], 0 if reverse else length - 1))
    return True


def _step_of(view: View, i: int) -> View:
    return View(view.buffer, view.shape[1:], view.strides[1:], view.offset + i * view.strides[0])


def _shared(body: Graph, carry: int) -> dict[int, int]:
    """Which parts of the state, by position, are results of every step as well, and which ones."""
    made = {out for q in body.equations for out in q.outputs}
    ys = {atom: j for j, atom in reversed(list(enumerate(body.outputs[carry:])))}
    return {i: ys[atom] for i, atom in enumerate(body.outputs[:carry]) if atom in ys and atom in made}


def _fixed(s: Schedule, value: Value) -> Value:
    """What a loop reads in every step is computed before it."""
    return value if isinstance(value, (Const, View)) else s.in_memory(value)


def _want(s: Schedule, body: Graph, targets: list[View]) -> None:
    """Let the results of a step be computed where they are needed."""
    made = {out for q in body.equations for out in q.outputs}
    for atom, target in zip(body.outputs, targets, strict=True):
        if isinstance(atom, Var) and atom in made:
            s.want(atom, target)


def _apart(body: Graph, consts: int) -> tuple[list[Equation], list[Equation]]:
    """The equations that follow from a loop's constants alone, and those that have to run in every step."""
    known = set(body.inputs[:consts])
    fixed: list[Equation] = []
    moving: list[Equation] = []
    for q in body.equations:
        same = not has_effect(q) and all(a in known for a in q.inputs if isinstance(a, Var))
        (fixed if same else moving).append(q)
        known.update(q.outputs if same else ())
    return fixed, moving


def _hoist(s: Schedule, body: Graph, consts: int) -> None:
    """Compute before a loop what is the same in every step."""
    fixed, moving = _apart(body, consts)
    s.run(Graph(body.inputs, fixed, body.outputs, body.name))
    inside = {a for q in moving for a in q.inputs} | set(body.outputs)
    for q in fixed:
        for out in q.outputs:
            if out in inside:
                s.bind(out, _fixed(s, s.value(out)))


State = list[tuple[Buffer, Buffer]]


def _state(s: Schedule, extent: _Extent, atoms: list[Atom], inputs: list[Var]) -> State:
    """Two buffers for every part of the state, the first filled with the initial value."""
    state = []
    for var, atom in zip(inputs, atoms, strict=True):
        size = math.prod(var.shape)
        current, following = Buffer("carry", size, var.dtype), Buffer("carry", size, var.dtype)
        value = s.value(atom)
        s.copy(value, whole(current, var.shape))
        extent.alive += [current, following]
        s.bind(var, whole(current, var.shape))
        state.append((current, following))
    return state


def _next(s: Schedule, state: State, new: list[Value]) -> list[Control]:
    """Write the new state beside the old one; the exchange of their addresses follows."""
    swaps = []
    for (current, following), value in zip(state, new, strict=True):
        if isinstance(value, View) and value.buffer is current and value.is_contiguous():
            continue
        s.put(whole(following, value.shape), value)
        swaps.append(Control(Code.SWAP, current, following))
    return swaps


def repeat(s: Schedule, e: Equation) -> bool:
    cond: Graph = e.params["cond"]
    body: Graph = e.params["body"]
    consts = e.params["consts"]
    fixed = [_fixed(s, s.value(a)) for a in e.inputs[:consts]]
    extent = _Extent(s)
    state = _state(s, extent, e.inputs[consts:], body.inputs[consts:])
    again, out = Label(), Label()
    flag = Buffer("carry", 1, dtypes.bool_)
    extent.alive.append(flag)
    extent.begin()
    s.emit(again)
    for var, value in zip(cond.inputs[:consts], fixed, strict=True):
        s.bind(var, value)
    for var, (current, _) in zip(cond.inputs[consts:], state, strict=True):
        s.bind(var, whole(current, var.shape))
    s.run(cond)
    s.copy(s.value(cond.outputs[0]), whole(flag, ()))
    s.close_all()
    s.emit(Control(Code.UNLESS, flag, 0, out))
    for var, value in zip(body.inputs[:consts], fixed, strict=True):
        s.bind(var, value)
    _want(s, body, [whole(following, out.shape) for (_, following), out in zip(state, e.outputs, strict=True)])
    s.run(body)
    swaps = _next(s, state, [s.value(a) for a in body.outputs])
    s.close_all()
    s.emit(*swaps, Control(Code.GO, again), out)
    extent.end()
    for var, (current, _) in zip(e.outputs, state, strict=True):
        s.bind(var, whole(current, var.shape))
    return True


def branch(s: Schedule, e: Equation) -> bool:
    branches: tuple[Graph, ...] = e.params["branches"]
    index = s.value(e.inputs[0])
    wide = Op("astype", [index], (), dtypes.int64)
    low = Op("maximum", [wide, Const(0, dtypes.int64, ())], (), dtypes.int64)
    high = Op("minimum", [low, Const(len(branches) - 1, dtypes.int64, ())], (), dtypes.int64)
    chosen = Buffer("carry", 1, dtypes.int64)
    s.copy(high, whole(chosen, ()))
    args = [_fixed(s, s.value(a)) for a in e.inputs[1:]]
    results = [s.new(out.shape, out.dtype) for out in e.outputs]
    extent = _Extent(s, repeats=False)
    extent.alive += [chosen, *[r.buffer for r in results]]
    extent.begin()
    after = Label()
    for i, graph in enumerate(branches):
        other = Label()
        s.emit(Control(Code.DIFFERS, chosen, i, other))
        for var, value in zip(graph.inputs, args, strict=True):
            s.bind(var, value)
        s.run(graph)
        for result, atom in zip(results, graph.outputs, strict=True):
            if result.buffer.size:
                s.store(result, s.value(atom))
        s.close_all()
        s.emit(Control(Code.GO, after), other)
    s.emit(after)
    extent.end()
    for var, result in zip(e.outputs, results, strict=True):
        s.bind(var, result)
    return True
