"""What a primitive is: one record with all its rules.

    impl       NumPy arrays in, NumPy array out: the meaning
    abstract   shapes and dtypes in, `Aval` out; raises the error that explains a bad call
    jvp        the derivative: for argument i, `rule(t, out, *args, **params)` maps its tangent to a tangent of out.
               LINEAR means "the primitive itself with the tangent in place of the argument", ZERO "constant almost
               everywhere", None "not differentiable, say so". The last entry serves all further arguments.
               A function instead of a tuple handles all arguments: `jvp(primals, tangents, out, **params)`.
    transpose  for an argument in which the primitive is linear, `rule(ct, *args, **params)` maps the adjoint of out
               to the adjoint of the argument (whose place in args holds a `Tangent`: only its shape and dtype are
               known). A function instead of a tuple handles all: `transpose(ct, args, **params)` -> list.
    batch      `batch(args, batched, **params)`: evaluates many at once; args that are batched carry the batch as
               axis 0, and so does the result (of several, those that are `Shared` do not, see batching.py)
    linearize  in place of jvp, for primitives that carry graphs or functions: `linearize(primals, tangents, **params)`
               gives the results and their tangents at once, see transforms/call.py
    cost       multiply-adds (or comparable operations) of one evaluation, from shapes; one per element if None

and facts:

    multiple      the result is a list
    elementwise   it broadcasts, and an element depends on the same one of the arguments
    view          the result is its argument, seen in another way: nothing is computed or copied
    free          it moves elements and does no arithmetic, as views do, too
    alternatives  of the graphs that it carries, one runs
    foreign       it runs a function of the user's, whose errors are his own
    single        from how many elements (or what `cost`) on a kernel for it alone is faster than NumPy; 0: never
    effect        it does something besides giving a result: it stays where it is, though nobody needs its result
    takes         the types of arguments, one for all, that functions hand to it as they are; see shortcuts.py

Reverse mode is derived from jvp and transpose; there is no third rule to keep in step.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from .dtypes import DType
from .interpreter import bind
from .tensor import Shape
from .typing import Shaped

Rule = Callable[..., Any]


class Aval(NamedTuple):
    """An abstract value: what is known of a tensor without computing it."""

    shape: Shape
    dtype: DType

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        return self.size * self.dtype.itemsize

    def __str__(self) -> str:
        return f"{self.dtype}[{','.join(map(str, self.shape))}]"


def aval_of(x: Shaped) -> Aval:
    """The abstract value of a tensor or an array."""
    return Aval(x.shape, x.dtype)


class Marker:
    """A named entry of a rule table that is not a function."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return self.name


LINEAR = Marker("LINEAR")
ZERO = Marker("ZERO")

Derivative = Rule | Marker | None  # with respect to one argument

TABLE: dict[str, Primitive] = {}


class Primitive:
    """One operation with all its rules; calling it runs it under the current interpreter."""

    __slots__ = (
        "abstract",
        "alternatives",
        "batch",
        "cost",
        "effect",
        "elementwise",
        "foreign",
        "free",
        "impl",
        "jvp",
        "linearize",
        "multiple",
        "name",
        "single",
        "takes",
        "transpose",
        "view",
    )

    def __init__(
        self,
        name: str,
        impl: Rule,
        abstract: Rule,
        jvp: Sequence[Derivative] | Rule = (),
        transpose: Sequence[Rule | None] | Rule = (),
        batch: Rule | None = None,
        multiple: bool = False,
        linearize: Rule | None = None,
        cost: Rule | None = None,
        elementwise: bool = False,
        view: bool = False,
        free: bool = False,
        alternatives: bool = False,
        foreign: bool = False,
        effect: bool = False,
        single: int = 0,
        takes: frozenset[DType] = frozenset(),
    ) -> None:
        self.name = name
        self.impl = impl
        self.abstract = abstract
        self.jvp = jvp
        self.transpose = transpose
        self.batch = batch
        self.multiple = multiple
        self.linearize = linearize
        self.cost = cost
        self.elementwise = elementwise
        self.view = view
        self.free = free or view
        self.alternatives = alternatives
        self.foreign = foreign
        self.effect = effect
        self.single = single
        self.takes = takes
        self._declare()

    def _declare(self) -> None:
        if self.name in TABLE:
            raise ValueError(f"the primitive {self.name} is declared twice")
        TABLE[self.name] = self

    __call__ = bind  # with no call in between: every operation goes this way

    def __repr__(self) -> str:
        return self.name
