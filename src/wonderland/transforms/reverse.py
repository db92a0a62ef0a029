"""Reverse mode: linearise, then walk the recording backwards. Book, sections 6.3 and 6.4.

The forward pass runs under the interpreter of forward mode with tangents that record themselves. `pull_back` then
visits the recorded linear operations in reverse order and calls one transpose rule per needed argument.
"""

from __future__ import annotations

import contextlib
import heapq
from collections.abc import Callable, Sequence
from typing import Any, Concatenate, Literal, overload

from .. import arrays
from ..core import trees
from ..core.arguments import named_after
from ..core.context import BACKWARD, FORWARD, at
from ..core.dtypes import is_complex, is_inexact
from ..core.errors import GradientError
from ..core.interpreter import Node, Tangent, bind
from ..core.settings import as_recorded, lenient
from ..core.tangents import add_tangents
from ..core.tensor import Tensor, alias
from ..core.typing import Tangents
from ..primitives.creation import ones_like, zeros_like
from .forward import call_with_tangents
from .inputs import Inputs, argument_positions, check_function, check_like
from .signatures import Aux, Function, Model, P, Result, Varied


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


class Recording:
    """A function evaluated at a point together with the recording of its derivative."""

    def __init__(
        self, name: str, f: Callable[..., object], inputs: Inputs, kwargs: dict[str, object], has_aux: bool
    ) -> None:
        self.inputs = inputs
        self.out_tangents: list[Any]  # those that recorded themselves; None: zero
        self.tangents = [Tangent(v.shape, v.dtype) for v in inputs.values]
        self.values, self.out_tangents, self.structure, self.aux = call_with_tangents(
            name, f, inputs, self.tangents, kwargs, has_aux
        )

    def keep(self) -> None:
        """Make the recording independent of tensors that others hold and may change by assignment."""
        for node in recorded(self.out_tangents).values():
            node.args = [alias(arg) for arg in node.args]

    @property
    def value(self) -> Any:
        return trees.unflatten(self.structure, [alias(value) for value in self.values])

    def adjoints(self, cts: Tangents, *, free: bool) -> list[Tensor]:
        """The adjoints of all input leaves for adjoints of the outputs."""
        seeds = [(t, ct) for t, ct in zip(self.out_tangents, cts, strict=True) if t is not None and ct is not None]
        if free:
            self.out_tangents = []
        found = pull_back(seeds, self.tangents, free=free)
        # one adjoint may belong to several inputs, or be that of the output
        return [zeros_like(v) if ct is None else alias(ct) for v, ct in zip(self.inputs.values, found, strict=True)]


@overload
def vjp(
    f: Callable[..., Result], *primals: object, has_aux: Literal[False] = False
) -> tuple[Result, Callable[[Result], tuple[Any, ...]]]: ...
@overload
def vjp(
    f: Callable[..., tuple[Result, Aux]], *primals: object, has_aux: Literal[True]
) -> tuple[Result, Callable[[Result], tuple[Any, ...]], Aux]: ...
def vjp(f: Callable[..., object], *primals: object, has_aux: bool = False) -> Any:
    r"""The value of f, and the function \(v \mapsto v^\top J_f(x)\) that pulls adjoints back to the arguments.

    >>> import wonderland as wl
    >>> W = wl.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    >>> y, pull = wl.vjp(lambda x: W @ x, wl.ones(3))
    >>> pull(wl.tensor([1.0, 0.0]))
    (tensor([1., 2., 3.]),)

    The second result takes a tree like f's value and returns a tuple, one entry per argument; it can be called any
    number of times. For complex values adjoints and tangents pair as Re(v t). Book, section 6.4.1 (D.6.2).
    """
    check_function("vjp", f)
    recording = Recording("vjp", f, Inputs("vjp", primals), {}, has_aux)
    recording.keep()

    def pull(ct: object) -> tuple[Any, ...]:
        leaves, structure = trees.flatten(ct, open_objects=False)
        if structure != recording.structure:
            raise GradientError(
                f"vjp: the adjoint has structure {structure}, the function's value {recording.structure}.",
                "an adjoint in the same tree as the value",
            )
        cts: Tangents = []
        for value, leaf in zip(recording.values, leaves, strict=True):
            if not is_inexact(value.dtype):
                cts.append(None)
                continue
            leaf = leaf if isinstance(leaf, arrays.Tensor) else arrays.asarray(leaf, dtype=value.dtype)
            cts.append(check_like("vjp", "adjoint", leaf, value))
        return recording.inputs.gather(recording.adjoints(cts, free=False))

    return (recording.value, pull, recording.aux) if has_aux else (recording.value, pull)


def linearize(f: Callable[..., Result], *primals: object) -> tuple[Result, Callable[..., Result]]:
    r"""The value of f at x, and its derivative there as a linear function \(t \mapsto J_f(x)\,t\).

    >>> import wonderland as wl
    >>> y, df = wl.linearize(lambda x: x**2 - 1.5 * x, wl.tensor(0.5))
    >>> print(y + df(wl.tensor(0.01)))
    tensor(-0.505)

    f is run once; the linear function takes tangents like the arguments. Book, section 2.2.3 (Box C.2.6).
    """
    check_function("linearize", f)
    recording = Recording("linearize", f, Inputs("linearize", primals), {}, False)
    recording.keep()

    def push(*tangents: object) -> Result:
        values = recording.inputs.matching(tangents)
        found = push_forward(recording.out_tangents, recording.tangents, values)
        filled = [zeros_like(v) if t is None else alias(t) for v, t in zip(recording.values, found, strict=True)]
        return trees.unflatten(recording.structure, filled)

    return recording.value, push


@overload
def value_and_grad(
    f: Callable[Concatenate[Tensor, P], object], argnums: Literal[0] = 0, *, has_aux: Literal[False] = False
) -> Function[Concatenate[Varied, P], tuple[Tensor, Tensor]]: ...
@overload
def value_and_grad(
    f: Callable[Concatenate[Model, P], object], argnums: Literal[0] = 0, *, has_aux: Literal[False] = False
) -> Function[Concatenate[Model, P], tuple[Tensor, dict[str, Tensor]]]: ...
@overload
def value_and_grad(
    f: Callable[P, object], argnums: int | tuple[int, ...] = 0, *, has_aux: bool = False
) -> Function[P, tuple[Any, Any]]: ...
def value_and_grad(
    f: Callable[..., object], argnums: int | tuple[int, ...] = 0, *, has_aux: bool = False
) -> Callable[..., Any]:
    r"""A function that returns f's scalar value and its gradient.

    >>> import wonderland as wl
    >>> value, gradient = wl.value_and_grad(lambda x: (x**2).sum())(wl.tensor([1.0, 2.0]))
    >>> print(value, gradient)
    tensor(5.) tensor([2., 4.])

    The gradient has the shape of the argument; for a tree it is a tree of the same structure, and for a module a dict
    from the paths of its trainable parameters. `argnums` chooses the arguments; a tuple gives a tuple. With
    `has_aux` f returns (value, aux) and the result is ((value, aux), gradient). For a complex argument z = x + iy the
    gradient is df/dx + i df/dy, the direction of steepest ascent. Book, section 6.4.2.
    """
    check_function("grad", f)

    def wrapper(*args: object, **kwargs: object) -> object:
        positions = argument_positions("grad", argnums, len(args))
        recording = Recording("grad", f, Inputs("grad", args, positions), kwargs, has_aux)
        value = _scalar(recording)
        cts = recording.adjoints([ones_like(value)], free=True)
        gradients = recording.inputs.gather([arrays.conj(ct) if is_complex(ct.dtype) else ct for ct in cts])
        result = gradients[0] if isinstance(argnums, int) else gradients
        return ((value, recording.aux), result) if has_aux else (value, result)

    return named_after(f, "value_and_grad", wrapper)


def _scalar(recording: Recording) -> Tensor:
    if recording.structure.kind != "leaf":
        raise GradientError(
            f"grad: the function returned {recording.structure}, not one scalar.",
            "return the scalar alone, or (scalar, aux) with has_aux=True",
        )
    value = recording.values[0]
    if value.shape != ():
        raise GradientError(
            f"grad: the function returned a tensor of shape {value.shape}; only a scalar has a gradient.",
            "sum or mean the result; wl.vjp for an adjoint of your own; wl.jacobian for all derivatives",
        )
    if not is_inexact(value.dtype) or is_complex(value.dtype):
        raise GradientError(f"grad: the function returned {value.dtype}, which has no gradient.", "a real scalar")
    return value


@overload
def grad(
    f: Callable[Concatenate[Tensor, P], object], argnums: Literal[0] = 0, *, has_aux: Literal[False] = False
) -> Function[Concatenate[Varied, P], Tensor]: ...
@overload
def grad(
    f: Callable[Concatenate[Model, P], object], argnums: Literal[0] = 0, *, has_aux: Literal[False] = False
) -> Function[Concatenate[Model, P], dict[str, Tensor]]: ...
@overload
def grad(f: Callable[P, object], argnums: int | tuple[int, ...] = 0, *, has_aux: bool = False) -> Function[P, Any]: ...
def grad(f: Callable[..., object], argnums: int | tuple[int, ...] = 0, *, has_aux: bool = False) -> Callable[..., Any]:
    r"""A function that returns the gradient of f, \(\nabla f(x)\). See `value_and_grad` for the options.

    >>> import wonderland as wl
    >>> wl.grad(lambda x: (x**2).sum())(wl.tensor([1.0, 2.0, 3.0]))
    tensor([2., 4., 6.])
    >>> print(wl.grad(wl.grad(lambda x: x**3))(2.0))
    tensor(12.)

    Book, sections 2.2.2 and 6.4.2 (E.6.13, Box C.6.2).
    """
    both = value_and_grad(f, argnums, has_aux=has_aux)

    def wrapper(*args: object, **kwargs: object) -> object:
        value, gradient = both(*args, **kwargs)
        return (gradient, value[1]) if has_aux else gradient

    return named_after(f, "grad", wrapper)
