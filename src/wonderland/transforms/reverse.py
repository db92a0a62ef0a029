"""Reverse mode: linearise, then walk the recording backwards. Book, sections 6.3 and 6.4.

The forward pass runs under the interpreter of forward mode with tangents that record themselves; the recording is
pulled back operation by operation, or, if its like came before, by a compiled program (pulling.py).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Concatenate, Literal, overload

from .. import arrays
from ..core import trees
from ..core.arguments import named_after
from ..core.dtypes import is_complex, is_inexact
from ..core.errors import GradientError
from ..core.interpreter import Tangent
from ..core.tensor import Tensor, alias
from ..core.typing import Tangents
from ..primitives.creation import ones_like, zeros_like
from .forward import call_with_tangents
from .inputs import Inputs, argument_positions, check_function, check_like
from .pulling import at_once, of_tangents, pull_back, push_forward, recorded
from .signatures import Aux, Function, Model, P, Result, Varied


class Recording:
    """A function evaluated at a point together with the recording of its derivative."""

    def __init__(
        self,
        name: str,
        f: Callable[..., object],
        inputs: Inputs,
        kwargs: dict[str, object],
        has_aux: bool,
        once: bool = False,
    ) -> None:
        """`once`: it will be pulled back at once and never again."""
        later = once and at_once()
        self.inputs = inputs
        self.out_tangents: list[Any]  # those that recorded themselves; None: zero
        self.tangents = [Tangent(v.shape, v.dtype) for v in inputs.values]
        self.values, self.out_tangents, self.structure, self.aux = call_with_tangents(
            name, f, inputs, self.tangents, kwargs, has_aux, later
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
        found = of_tangents(seeds, self.tangents) if free and at_once() else None
        if found is None:
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
        recording = Recording("grad", f, Inputs("grad", args, positions), kwargs, has_aux, once=True)
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
