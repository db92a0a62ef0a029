"""The cell: a place for a tensor that may change. Everything in the package that changes is one."""

from __future__ import annotations

import os
import weakref
from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from itertools import chain, islice, repeat, starmap
from threading import get_ident
from typing import TYPE_CHECKING, Any

from .context import Scope, current
from .dtypes import DType
from .errors import TraceError
from .tensor import VALUES, Shape, Tensor, Tracer, alias
from .typing import Array

if TYPE_CHECKING:
    from ..arrays.methods import CellMethods as Given  # what is given to the class below from above, see core/giving.py
    from .tape import Recorded
else:
    Given = Tensor


class Cell(Given):
    """A named place for a tensor that may change: a parameter, or a buffer of a module, or a random stream.

    Used in an operation it stands for its value. While a transformation runs, what it puts into cells is seen in its
    own context alone; other threads and tasks go on seeing the last value from outside.
    """

    __slots__ = ("_inside", "_leaf", "_outside")
    _outside: Tensor  # the value outside all transformations
    _inside: dict[Scope, Tensor] | None  # the values inside them, by the outermost one
    _leaf: Recorded
    trainable: bool = False  # whether `grad` of a module differentiates with respect to it
    persistent: bool = True  # whether a module's `state_dict` contains it
    permanent: bool = False  # whether it is the same one for ever, however the structure of modules changes

    @property
    def value(self) -> Tensor:
        """What the cell holds, in this context."""
        rest.now = None  # see `Resting`
        if self._inside and (inside := self._inside.get(current().scope)) is not None:  # type: ignore[arg-type]
            return inside
        return self._outside

    @value.setter
    def value(self, value: Tensor) -> None:
        if current().trace is not None or isinstance(value, Tracer):
            self.hold(value)
        else:
            self.settle(value)

    @property
    def _held(self) -> Tensor:
        """The value for a look that leaves nobody with it."""
        if self._inside and (inside := self._inside.get(current().scope)) is not None:  # type: ignore[arg-type]
            return inside
        return self._outside

    @property
    def inside(self) -> Tensor | None:
        """What a transformation that we are in put in, if one did."""
        return self._inside.get(current().scope) if self._inside else None  # type: ignore[arg-type]  # None: not there

    def hold(self, value: Tensor) -> None:
        """Put a value in for the transformation that we are in alone, until `restore`."""
        scope = current().scope
        if scope is None:
            raise TraceError(
                f"assign: a traced value of shape {value.shape} was to go into a {type(self).__name__} outside the "
                "transformation that traced it.",
                "assign inside the transformed function, or return the value and assign the result",
            )
        if self._inside is None:
            self._inside = {}
        self._inside[scope] = value

    def restore(self, inside: Tensor | None) -> None:
        """Put back what was found `inside` before; None: the value outside counts again."""
        if inside is not None:
            self.hold(inside)
        else:
            self.release()

    def release(self) -> Tensor:
        """What the cell holds; from now on, the value outside counts again."""
        rest.now = None
        inside = self._inside.pop(current().scope, None) if self._inside else None  # type: ignore[arg-type]
        return self._outside if inside is None else inside

    def settle(self, value: Tensor) -> None:
        """Make this the value outside, and for this context."""
        if self._inside:
            self.release()
        self.put(alias(value))  # what becomes of the tensor that was given is no matter of the cell's

    def put(self, value: Tensor) -> None:
        """Make this very tensor the value outside."""
        old = self._outside
        rest.now = None
        self._outside = value
        rest.now = None  # and after, for a thread that looked in between
        if rest.runs:
            rest.replaced([self], [old])

    @property
    def _data(self) -> Array:  # type: ignore[override]  # a slot in Tensor, here computed
        return self.value._concrete("a NumPy array")

    @property
    def _node(self) -> Recorded:
        return None if type(self.inside) in VALUES else self._leaf  # gradients are for its own value, not for a guest

    @_node.setter
    def _node(self, node: Recorded) -> None:
        rest.now = None
        self._leaf = node

    @property
    def shape(self) -> Shape:
        return self._held.shape

    @property
    def dtype(self) -> DType:
        return self._held.dtype

    @property
    def ndim(self) -> int:
        return self._held.ndim

    @property
    def device(self) -> str:
        return self._held.device

    def _concrete(self, what: str) -> Array:
        return self.value._concrete(what)

    def _item_data(self) -> Array:
        return self._held._item_data()

    def __repr__(self) -> str:
        return type(self).__name__.lower() + repr(self.value).removeprefix("tensor")

    def settings(self) -> tuple[tuple[str, Any], ...]:
        """What makes the cell besides its value, as keyword arguments of its class."""
        return ()

    def __reduce__(self) -> tuple[object, ...]:
        return (_restore_cell, (type(self), self.value._concrete("a pickle"), self.settings()))

    def __copy__(self) -> Tensor:
        return type(self)(self.value, **dict(self.settings()))

    def __deepcopy__(self, memo: dict[int, Tensor]) -> Tensor:
        copy = memo[id(self)] = self.__copy__()
        return copy


def _restore_cell(kind: type[Cell], data: Array, settings: tuple[tuple[str, Any], ...]) -> Cell:
    return kind(data, **dict(settings))


# --- cells at rest


LISTED = 64  # snapshots: who overwrites state goes through them


class Rest:
    """A time during which nobody looks into a cell or puts something in. Known by its identity."""

    __slots__ = ()


class Snapshot:
    """The state that compiled calls have read whose results may be differentiated later, for their records.

    While one of them lives, its arrays are not overwritten: they are shared, as reference counts show; and who does not
    look at these, as the rest goes on, looks at the `snapshots` of the rest.
    """

    __slots__ = ("__weakref__", "arrays", "nodes")

    def __init__(self, arrays: Sequence[Array], nodes: Sequence[Recorded]) -> None:
        self.arrays = arrays
        self.nodes = nodes  # what was recorded of each, and the leaves of parameters


Replaced = tuple[Cell, str, Tensor]  # a cell, the name of its field, and what was there


class Run:
    """A call that is going on. Of its cells it holds what keeps them alive; `touched` finds them."""

    __slots__ = ("replaced", "settling", "spared", "thread")
    certain = False  # whether it is among the `runs` only while it goes on, whatever interrupts, and in no Python

    def __init__(self) -> None:
        self.thread = get_ident()
        self.replaced: dict[int, Replaced] = {}  # what was in cells that it writes
        self.spared: dict[int, Tensor] = {}  # and in others
        # gives iterators that put what was replaced into its cells again, as it is then: without a step of Python
        self.settling = map(starmap, repeat(setattr), map(dict.values, repeat(self.replaced)))

    def touched(self) -> tuple[Sequence[Cell], Sequence[Cell]]:
        """The cells that it reads, and those that it writes."""
        raise NotImplementedError

    def keep(self, cell: Cell, old: Tensor) -> None:
        """A cell holds another value by now."""
        if any(cell is mine for mine in self.touched()[1]):
            self.replaced.setdefault(id(cell), (cell, "_outside", old))
        else:
            self.spared[id(old)] = old

    def delivery(self) -> Iterable[object]:
        """Puts what the run has written into its cells again, should others have replaced it; see `handing_over`."""
        return chain.from_iterable(islice(self.settling, 1))


class Resting:
    """While nobody looks into a cell or puts something in, compiled calls need not look into them either.

    A call that has found its state in cells, and shared with nobody, notes the rest that goes on (`begin`). Whoever
    takes a tensor out of a cell or puts one in ends it, for all cells at once: that costs nothing and forgets nobody.
    If the same rest still goes on at the next call, its state is where it was, and still nobody else's.

    Such a call holds cells but not what is in them. So while it runs it is among the `runs`, and who replaces the value
    of a cell meanwhile hands them the old one (`replaced`): native code may be working on it.

    A call that is recorded takes values out of cells for longer, and yet the rest goes on: that would end with every
    such call. Its snapshot is listed instead, while it lives, for those that overwrite state.
    """

    def __init__(self) -> None:
        self.now: Rest | None = None
        self.runs: set[Run] = set()  # one thread at a time adds to it, see transforms/jit
        self.snapshots: set[weakref.ref[Snapshot]] = set()  # of the rest that goes on
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self.runs.clear)  # the runs of other threads end there

    def begin(self) -> Rest:
        """The rest that goes on, or a new one."""
        rest = self.now
        if rest is None:
            rest = self._another()
        return rest

    def _another(self) -> Rest:
        """A new rest. Who found state during those before looks at reference counts first, which show snapshots."""
        self.snapshots.clear()
        self.now = rest = Rest()
        return rest

    def renewed(self, rest: Rest) -> Rest:
        """Another rest in place of this one: cells are about to get new values from who knows that nobody has them."""
        if self.now is not rest:
            self.now = None
            return rest
        return self._another()

    def keep(self, snapshot: Snapshot) -> None:
        """List a snapshot while it lives."""
        # a function of C, as what Ctrl-C raises in one of ours would be lost: nobody has called it
        self.snapshots.add(weakref.ref(snapshot, self.snapshots.discard))
        if len(self.snapshots) > LISTED:
            self.now = None  # so the list begins anew

    def keeps(self, arrays: AbstractSet[int]) -> bool:
        """Whether a snapshot has one of these arrays, told by their identities."""
        snapshots = [reference() for reference in [*self.snapshots]]
        return any(not arrays.isdisjoint(map(id, s.arrays)) for s in snapshots if s is not None)

    def replaced(self, cells: Iterable[Cell], old: Iterable[Tensor]) -> None:
        """Cells have got new values. Who calls this holds the old ones until it is done."""
        self.now = None
        if self.runs:
            for cell, value in zip(cells, old, strict=True):
                for run in [*self.runs]:
                    run.keep(cell, value)


rest = Resting()
