"""Values as they are computed, where NaN and infinity come from, and what reads memory that nobody wrote.

`print` and `callback` show values from inside compiled programs. `nans()` watches every operation that is computed and
stops at the one that *made* the first NaN or infinity: its inputs are in order and its result is not. Operations that
only pass a NaN on are not reported. Book, section 6 (numerical stability).
"""

from __future__ import annotations

import builtins
import contextlib
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from . import arrays
from .core import trees
from .core.arguments import as_int
from .core.context import at, current, place
from .core.dtypes import is_inexact
from .core.errors import InputError, NonFiniteError, TraceError
from .core.primitive import Primitive
from .core.settings import set_from_now_on, setting
from .core.tensor import Tensor
from .core.typing import Array
from .hosting import callback

if TYPE_CHECKING:
    from .ir.graph import Equation

__all__ = ["callback", "check_finite", "disable_nans", "enable_nans", "filled_memory", "nans", "print"]

Tree = TypeVar("Tree")

_REMEDIES = {
    "log": "arguments above 0: wl.log(x + 1e-6); wl.log_softmax, wl.log_sigmoid, wl.xlogy of probabilities",
    "sqrt": "arguments above 0: wl.sqrt(x + 1e-6), or wl.norm, whose derivative at 0 is 0",
    "divide": "a divisor that cannot be 0: x / (y + 1e-6), or x / wl.where(y == 0, 1, y)",
    "exp": "smaller arguments: wl.softmax, wl.logsumexp, wl.softplus and wl.sigmoid do not overflow",
    "power": "a positive base, or an exponent of at least 1 if the base can be 0",
    "astype": "a dtype with a larger range",
}


class nans(setting):  # noqa: N801 - used as a function
    r"""Raise `wl.errors.NonFiniteError` at the operation that makes the first NaN or infinity.

    >>> import wonderland as wl
    >>> with wl.debug.nans():
    ...     wl.grad(lambda x: wl.sqrt(x).sum())(wl.tensor([4.0, 0.0]))
    Traceback (most recent call last):
        ...
    wonderland.errors.NonFiniteError: sqrt: the derivative of sqrt made inf in the backward pass: 1 of 2 ...

    The message names the operation, the path of the module, the user's line, and the pass: forward, or
    backward with the operation whose derivative was being computed (the line is then that of the forward
    pass). It works eagerly, in all transformations and inside `jit`, loops and branches; put it around the
    call of a jitted function, not inside. `@wl.debug.nans()` does it for a function. It concerns the thread
    or task in which it is used.

    An operation makes a NaN if its result has one and its inputs have none, as 0/0; it makes an infinity if
    its inputs are finite and its result is not, as log(0) or an overflow. Elementwise operations are judged
    element by element. So constants such as `wl.full(n, -wl.inf)` and masks made from them are fine, and so
    is a softmax over masked entries. With `inf=False` only NaN counts. With `inputs=True` a NaN that came in
    from outside (in the data, in a constant, computed before) is reported at the first operation that
    receives it; without, nothing is said about it.
    """

    __slots__ = ()

    def __init__(self, inf: bool = True, inputs: bool = False) -> None:
        if not isinstance(inf, bool) or not isinstance(inputs, bool):
            raise InputError("nans: inf and inputs are bools.", "@wl.debug.nans() with parentheses as a decorator")
        super().__init__("debug", Watch(inf, inputs))

    def __enter__(self) -> None:
        if (trace := current().trace) is not None and trace.staged:
            raise TraceError(
                "nans: in a traced function only the tracing would be watched, where nothing is computed.",
                "with wl.debug.nans(): around the call of the jitted function",
            )
        super().__enter__()


def print(template: str, /, *args: object, **kwargs: object) -> None:
    """Print `template.format(*args, **kwargs)` whenever the tensors among the arguments are computed.

    >>> import wonderland as wl
    >>> @wl.jit
    ... def f(x):
    ...     y = wl.exp(x)
    ...     wl.debug.print("at {step}: y = {}, sum {:.2f}", y, y.sum(), step=1)
    ...     return y.mean()
    >>> _ = f(wl.zeros(2))
    at 1: y = tensor([1., 1.]), sum 2.00

    Inside `jit`, loops, branches, `grad` and `vmap`; Python's own `print` shows what is being traced, once.
    """
    if not isinstance(template, str):
        raise InputError(f"print: the template is a {type(template).__name__}.", 'wl.debug.print("x = {}", x)')
    try:
        template.format(*args, **kwargs)
    except (IndexError, KeyError) as error:
        missing = "a value" if isinstance(error, IndexError) else repr(error.args[0])
        raise InputError(
            f"print: {template!r} has a place for which {missing} is missing.", "an argument for each {}"
        ) from None
    except (ValueError, TypeError):  # a format that traced values do not have; those with numbers may
        pass
    callback(_printed, template, *args, **kwargs)


def _printed(template: str, *args: object, **kwargs: object) -> None:
    builtins.print(template.format(*args, **kwargs), flush=True)


def enable_nans(inf: bool = True, inputs: bool = False) -> None:
    """Switch on what `nans()` does, until `disable_nans()`.

    >>> import wonderland as wl
    >>> wl.debug.enable_nans()
    >>> try:
    ...     wl.zeros(2) / wl.zeros(2)
    ... except wl.errors.NonFiniteError as error:
    ...     where = error.operation, error.phase
    >>> where
    ('divide', 'forward pass')
    >>> wl.debug.disable_nans()
    """
    set_from_now_on("debug", nans(inf, inputs).value)


def disable_nans() -> None:
    """Switch off what `enable_nans()` switched on."""
    set_from_now_on("debug", None)


def check_finite(tree: Tree, name: str = "value") -> Tree:
    """The tree itself; raises `wl.errors.NonFiniteError` if one of its tensors has a NaN or infinity.

    >>> import wonderland as wl
    >>> batch = wl.debug.check_finite({"x": wl.ones(3), "y": wl.arange(3)}, "batch")
    >>> wl.debug.check_finite({"x": wl.tensor([1.0, wl.nan])}, "batch")
    Traceback (most recent call last):
        ...
    wonderland.errors.NonFiniteError: check_finite: batch.x has NaN (1 of 2 elements ...
    """
    for path, leaf in trees.flatten_with_paths(tree)[0]:
        if not arrays.is_operand(leaf):
            continue
        data = leaf._item_data() if isinstance(leaf, Tensor) else arrays.asarray(leaf)._data
        if not is_inexact(data.dtype):
            continue
        bad = ~np.isfinite(data)
        if bad.any():
            label = ".".join([name, *map(str, path)])
            first = [int(i) for i in np.argwhere(bad)[0]]
            where = f"; the first at {first}" if data.ndim else ""
            raise NonFiniteError(
                f"check_finite: {label} has {_kinds(data)} ({bad.sum()} of {data.size} elements of "
                f"{data.dtype}{list(data.shape)}{where}).",
                "wl.debug.nans() around the computation to find the operation that made it, or cleaner data",
            )
    return tree


def filled_memory(byte: int = 0xFF) -> setting:
    """Compiled programs find this byte in all memory that they have not written to: a check of the compiler itself.

    >>> import wonderland as wl
    >>> with wl.debug.filled_memory():
    ...     wl.jit(lambda x: wl.softmax(x).sum(axis=0))(wl.zeros((3, 2)))
    tensor([1.5, 1.5])

    Filled are the arena and the memory of results, before every run. 0xFF makes a NaN of every floating type, so a
    result that depends on memory from before is seen at once; any other byte makes another garbage.
    """
    return setting("fill", as_int("filled_memory", "byte", byte, 0) & 0xFF)


class Watch:
    """Looks at every computed operation: called by the interpreter, and by the evaluator of graphs."""

    def __init__(self, inf: bool, inputs: bool) -> None:
        self.inf = inf
        self.inputs = inputs

    def __call__(
        self, primitive: Primitive, args: Sequence[Tensor], outs: Sequence[Tensor], equation: Equation | None = None
    ) -> None:
        if primitive.linearize is not None or primitive.name in ("custom_jvp", "custom_linear"):
            return  # it consists of other operations, which were looked at one by one
        ins = [a._data for a in args if is_inexact(a.dtype)]
        if self.inputs:
            for data in ins:
                if np.isnan(data).any():
                    with _placed(equation):
                        raise _from_outside(primitive, data)
        for out in outs:
            if is_inexact(out.dtype) and not np.isfinite(out._data).all() and args:
                made = self._made(primitive, ins, out._data)
                if made.any():
                    with _placed(equation):
                        raise _report(primitive, args, out._data, made)

    def _made(self, primitive: Primitive, ins: list[Array], out: Array) -> Array:
        """Which elements of the result are not finite and do not owe that to the inputs."""
        if not primitive.elementwise:  # every element of the inputs may be behind it
            ins = [np.asarray(_one_of_all(data)) for data in ins]
        nan_in, inf_in = np.zeros((), bool), np.zeros((), bool)
        for data in ins:
            nan_in = nan_in | np.isnan(data)
            inf_in = inf_in | np.isinf(data)
        made = np.isnan(out) & ~nan_in
        if self.inf:
            made = made | (np.isinf(out) & ~nan_in & ~inf_in)
        return np.asarray(made)


def _one_of_all(data: Array) -> float:
    """A number that is NaN or infinite if some element is."""
    if np.isnan(data).any():
        return np.nan
    return np.inf if np.isinf(data).any() else 0.0


def _placed(equation: Equation | None) -> contextlib.AbstractContextManager[None]:
    """Inside, errors point to where the equation was traced."""
    if equation is None:
        return contextlib.nullcontext()
    return at(equation.source, equation.module, equation.phase)


def _report(primitive: Primitive, args: Sequence[Tensor], out: Array, made: Array) -> NonFiniteError:
    phase = place().phase
    mode, _, name = phase.partition(", derivative of ")
    subject = f"{name}: the derivative of {name}" if name else f"{primitive.name}:"
    received = " and ".join(_summary(a._data) for a in args)
    error = NonFiniteError(
        f"{subject} made {_kinds(out[made])} in the {mode}: {made.sum()} of {out.size} elements of "
        f"{primitive.name} of {received}.",
        _REMEDIES.get(name) or _REMEDIES.get(primitive.name) or "smaller arguments, in the operation's domain",
    )
    error.operation, error.phase = name or primitive.name, phase
    return error


def _from_outside(primitive: Primitive, data: Array) -> NonFiniteError:
    phase = place().phase
    error = NonFiniteError(
        f"{primitive.name}: received a NaN that came in from outside ({np.isnan(data).sum()} of {data.size} "
        f"elements of {data.dtype}{list(data.shape)}): in the data, in a constant, or computed before nans() "
        "was switched on.",
        'wl.debug.check_finite(batch, "batch") on the data; wl.debug.nans() around the whole computation',
    )
    error.operation, error.phase = primitive.name, phase
    return error


def _kinds(data: Array) -> str:
    """What is not finite in the data, in words."""
    return " and ".join(_found(data))


def _found(data: Array) -> Iterator[str]:
    if np.isnan(data).any():
        yield "NaN"
    if data.dtype.kind == "c":
        if np.isinf(data).any():
            yield "inf"
        return
    if (data == np.inf).any():
        yield "inf"
    if (data == -np.inf).any():
        yield "-inf"


def _summary(data: Array) -> str:
    """A tensor in a few words: its type, and its number or the range of its numbers."""
    kind = f"{data.dtype}{list(data.shape)}"
    if data.size == 0 or data.dtype.kind in "bc":
        return kind
    if data.size == 1:
        return f"{kind} = {data.reshape(()).item():.6g}"
    return f"{kind} from {np.nanmin(data):.6g} to {np.nanmax(data):.6g}"
