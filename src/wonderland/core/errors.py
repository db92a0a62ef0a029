"""The one family of exceptions. A message says what was asked, what was received, what to do, and where.

Every class also derives from the built-in exception that NumPy's users would catch, so that
`except ValueError` and `except IndexError` keep working.

>>> import wonderland as wl
>>> try:
...     wl.zeros((2, 3)) @ wl.zeros((4, 5))
... except wl.errors.ShapeError as error:
...     print(str(error).splitlines()[0])
matmul: shapes (2, 3) and (4, 5) do not fit: the inner sizes 3 and 4 differ.
"""

from __future__ import annotations

from .context import place, user_call

__all__ = [
    "ArgumentError",
    "AxisError",
    "BroadcastError",
    "ConversionError",
    "DTypeError",
    "DepthError",
    "FileError",
    "GradientError",
    "GraphError",
    "IndexOutOfRange",
    "InputError",
    "LinearAlgebraError",
    "ModuleError",
    "NonFiniteError",
    "ProcessError",
    "RetraceWarning",
    "ShapeError",
    "SizeError",
    "TraceError",
    "TreeError",
    "WonderlandError",
]


class WonderlandError(Exception):
    """Any error that Wonderland raises on purpose. `hint` is the remedy."""

    def __init_subclass__(cls, **settings: object) -> None:
        super().__init_subclass__(**settings)
        cls.__module__ = "wonderland.errors"  # where users find it, and what a traceback shows

    def __init__(self, message: str, hint: str | None = None) -> None:
        lines = [message]
        if hint:
            lines.append(f"  try: {hint}")
        if (inside := user_call()) and message.partition(":")[0].rpartition(".")[2] != inside:
            lines.append(f"  inside: {inside}")
        here = place()
        if here.module:
            lines.append(f"  in module: {here.module}")
        if here.source:
            lines.append(f"  at: {here.source.text()}")
        super().__init__("\n".join(lines))
        self.hint = hint

    def __reduce__(self) -> tuple[object, ...]:
        # as it is, without the place where it is unpickled
        return (_restore, (type(self), self.args, self.__dict__))


def _restore(kind: type[WonderlandError], args: tuple[object, ...], attributes: dict[str, object]) -> WonderlandError:
    error = kind.__new__(kind)
    error.args = args
    error.__dict__.update(attributes)
    return error


class InputError(WonderlandError, ValueError):
    """An argument has a value that the operation cannot take."""


class ArgumentError(InputError, TypeError):
    """An argument of a name that the function does not have."""


class ShapeError(InputError):
    """Shapes that do not fit each other or the operation."""


class BroadcastError(ShapeError):
    """Broadcasting that looks like an accident, as (n, 1) with (n,), while `wl.shape.strict()` is on."""


class AxisError(InputError, IndexError):
    """An axis that the tensor does not have, or named twice."""


class IndexOutOfRange(WonderlandError, IndexError):  # noqa: N818 - says what happened
    """An index outside the axis that it indexes."""


class DTypeError(WonderlandError, TypeError):
    """An element type that the operation does not take, or types that do not combine."""


class ConversionError(InputError, OverflowError, TypeError):
    """A value that has no counterpart of the Python type asked for, as int(x) of NaN, or iter(x) of a 0-d tensor."""


class SizeError(WonderlandError, MemoryError):
    """A tensor that cannot fit into memory, refused before it is allocated."""


class LinearAlgebraError(WonderlandError, ArithmeticError):
    """A matrix that is singular, not positive definite, or on which an iteration did not converge."""


class GradientError(WonderlandError, TypeError):
    """A derivative that is not defined or was asked for in the wrong way."""


class TraceError(WonderlandError, TypeError):
    """A traced value used where only a computed one can be, or outside its transformation."""


class DepthError(WonderlandError, RecursionError):
    """Modules, calls or containers inside each other, more levels deep than can be followed."""


class TreeError(WonderlandError, TypeError):
    """Trees whose structures differ, that contain themselves, or whose leaves are not tensors."""


class ModuleError(WonderlandError, RuntimeError):
    """A module used before it is ready, or a state that does not belong to it."""


class FileError(WonderlandError, OSError):
    """A file that cannot be read or written, or whose contents are not what they should be."""


class ProcessError(WonderlandError, RuntimeError):
    """Processes that compute together and do not agree, or one of which has failed."""


class GraphError(WonderlandError, RuntimeError):
    """A graph that breaks its own rules: a defect of a pass, never of the user's program."""


class NonFiniteError(WonderlandError, ArithmeticError):
    """`wl.debug.nans()` found the operation that made the first NaN or infinity.

    `operation` is its name, and `phase` what it was computing, such as "backward pass, derivative of sqrt".
    """

    operation: str = ""
    phase: str = ""


class RetraceWarning(UserWarning):
    """A function is traced and compiled so often that this takes most of the time."""


RetraceWarning.__module__ = "wonderland.errors"
