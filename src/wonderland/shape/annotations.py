"""Annotations with patterns, such as `Float["b h w 3"]`, and their checks. Book, notation."""

from __future__ import annotations

import contextlib
import functools
import inspect
import sys
import types
import typing
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import numpy as np

from ..core.dtypes import KIND
from ..core.errors import DTypeError, InputError, ShapeError
from ..core.tensor import Tensor
from .patterns import Bindings, parse, shape_of

__all__ = ["Any", "Bool", "Complex", "Float", "Int", "Num", "checked", "enable_checks"]

F = TypeVar("F", bound=Callable[..., object])
Value = typing.Any  # `Any` is an annotation of this module


class Spec(NamedTuple):
    """What an annotation asks of a tensor: kinds of numbers, by name, and a pattern."""

    kind: str
    pattern: str


_KINDS: dict[str, tuple[int, ...]] = {
    "Any": (0, 1, 2, 3),
    "Bool": (0,),
    "Int": (1,),
    "Float": (2,),
    "Complex": (3,),
    "Num": (1, 2, 3),
}

if TYPE_CHECKING:
    from typing import Annotated as Any
    from typing import Annotated as Bool
    from typing import Annotated as Complex
    from typing import Annotated as Float
    from typing import Annotated as Int
    from typing import Annotated as Num
else:

    class Annotation:
        """`Float["b h w 3"]` or `Float[wl.Tensor, "b h w 3"]`: a tensor of this kind and shape."""

        def __init__(self, kind: str) -> None:
            self.kind = kind

        def __getitem__(self, item: Value) -> Value:
            base, pattern = item if isinstance(item, tuple) else (Tensor, item)
            parse(pattern)
            return typing.Annotated[base, Spec(self.kind, pattern)]

        def __repr__(self) -> str:
            return f"wonderland.shape.{self.kind}"

    Any, Bool, Complex, Float, Int, Num = map(Annotation, ("Any", "Bool", "Complex", "Float", "Int", "Num"))


def _specs(hint: object) -> list[Spec]:
    """The specs of an annotation itself."""
    return [meta for meta in getattr(hint, "__metadata__", ()) if isinstance(meta, Spec)]


def _has_spec(hint: object) -> bool:
    return bool(_specs(hint)) or any(_has_spec(part) for part in typing.get_args(hint))


def _verify(where: str, value: object, hint: object, bindings: Bindings) -> None:
    """Check a value against an annotation: of a tensor, of an optional one, or of a list or tuple of them."""
    origin = typing.get_origin(hint)
    parts = typing.get_args(hint)
    if specs := _specs(hint):
        for spec in specs:
            _verify_kind(where, value, spec.kind)
            bindings.match(where, shape_of(where, value), spec.pattern)
    elif origin in (typing.Union, types.UnionType):
        if hasattr(value, "shape"):
            _verify_one(where, value, [part for part in parts if _has_spec(part)], bindings)
    elif origin is tuple and (len(parts) != 2 or parts[1] is not Ellipsis):
        if not isinstance(value, tuple) or len(value) != len(parts):
            raise InputError(
                f"{where}: expected a tuple of {len(parts)}, received {type(value).__name__}.",
                "a tuple of that length",
            )
        for i, (item, part) in enumerate(zip(value, parts, strict=True)):
            if _has_spec(part):
                _verify(f"{where}[{i}]", item, part, bindings)
    elif isinstance(value, Iterable) and parts and _has_spec(parts[0]):
        for i, item in enumerate(value):
            _verify(f"{where}[{i}]", item, parts[0], bindings)


def _verify_one(where: str, value: object, hints: list[object], bindings: Bindings) -> None:
    """Check a value against alternatives, one of which must fit."""
    for i, hint in enumerate(hints):
        trial = bindings.copy()
        try:
            _verify(where, value, hint, trial)
        except (ShapeError, DTypeError):
            if i == len(hints) - 1:
                raise
        else:
            bindings.__dict__.update(trial.__dict__)
            return


def _verify_kind(where: str, value: object, kind: str) -> None:
    dtype = getattr(value, "dtype", None)
    if dtype is None and isinstance(value, (bool, int, float, complex)):
        dtype = np.dtype(type(value))
    if kind != "Any" and KIND.get(dtype) not in _KINDS[kind]:
        found = type(value).__name__ if dtype is None else dtype
        raise DTypeError(f"{where}: {found} is not {kind}.", f"x.astype(...), or another annotation than {kind}")


def _hints(f: Callable[..., object]) -> dict[str, object]:
    """The annotations of a function that have patterns."""
    try:
        found = typing.get_type_hints(f, include_extras=True)
    except NameError as error:
        raise InputError(
            f"shape.checked: the annotations of {f.__qualname__} cannot be read ({error}).",
            "names that can be found at the top of the module",
        ) from error
    return {name: hint for name, hint in found.items() if _has_spec(hint)}


def checked(f: F) -> F:
    """A function whose annotated shapes and kinds are checked at every call; names are shared within a call.

    >>> import wonderland as wl
    >>> @wl.shape.checked
    ... def predict(X: wl.shape.Float["n c"], w: wl.shape.Float["c"]) -> wl.shape.Float["n"]:
    ...     return X @ w
    >>> try:
    ...     predict(wl.zeros((5, 3)), wl.zeros(4))
    ... except wl.errors.ShapeError as error:
    ...     print(str(error).splitlines()[0])
    predict, argument w: shape (4,) does not match 'c': c is 4 here, but 3 before (axis 1 of shape (5, 3)).

    Annotations may be optional (`Float["n"] | None`), and may stand in `list[...]` and `tuple[...]`.
    """
    signature = inspect.signature(f)
    hints: dict[str, object] | None = None  # read at the first call, when all names are defined

    @functools.wraps(f)
    def wrapper(*args: object, **kwargs: object) -> object:
        nonlocal hints
        if hints is None:
            hints = _hints(f)
        try:
            bound = signature.bind(*args, **kwargs)
        except TypeError:
            return f(*args, **kwargs)  # which says what is wrong with the arguments
        bindings = Bindings()
        for name, value in bound.arguments.items():
            if name in hints:
                for item in _items(signature.parameters[name], value):
                    _verify(f"{f.__qualname__}, argument {name}", item, hints[name], bindings)
        bindings.solve()
        result = f(*args, **kwargs)
        if "return" in hints:
            _verify(f"{f.__qualname__}, result", result, hints["return"], bindings)
            bindings.solve()
        return result

    wrapper.__shapes_checked__ = True  # type: ignore[attr-defined]  # functions take attributes
    return typing.cast(F, wrapper)


def _items(parameter: inspect.Parameter, value: Value) -> Iterable[object]:
    """The values that the annotation of a parameter speaks of: all of them for `*args` and `**kwargs`."""
    if parameter.kind is parameter.VAR_KEYWORD:
        return list(value.values())
    return value if parameter.kind is parameter.VAR_POSITIONAL else [value]


class Checks:
    """The functions that `enable_checks` put checks around; `disable()` or the end of a `with` takes them off."""

    def __init__(self) -> None:
        self.changed: list[tuple[types.ModuleType | type, str, object]] = []

    def wrap(self, owner: types.ModuleType | type) -> None:
        """Put checks around the annotated functions of a module or a class."""
        module = owner.__name__ if isinstance(owner, types.ModuleType) else owner.__module__
        for name, value in list(vars(owner).items()):
            if inspect.isclass(value) and value.__module__ == module and value is not owner:
                self.wrap(value)
            elif inspect.isfunction(value) and value.__module__ == module and _is_annotated(value):
                self.changed.append((owner, name, value))
                setattr(owner, name, checked(value))

    def disable(self) -> None:
        """Take the checks off again."""
        while self.changed:
            owner, name, value = self.changed.pop()
            setattr(owner, name, value)

    def __enter__(self) -> Checks:
        return self

    def __exit__(self, *exception: object) -> None:
        self.disable()


def _is_annotated(f: Callable[..., object]) -> bool:
    if getattr(f, "__shapes_checked__", False):
        return False
    with contextlib.suppress(InputError):
        return bool(_hints(f))
    return False


def enable_checks(*modules: types.ModuleType) -> Checks:
    """Check the shape annotations of all functions and methods of the modules (of the calling module if none is named).

    >>> import types, wonderland as wl
    >>> model = types.ModuleType("model")
    >>> def double(x: wl.shape.Float["n"]) -> wl.shape.Float["n"]:
    ...     return wl.concat([x, x])
    >>> double.__module__, model.double = "model", double
    >>> with wl.shape.enable_checks(model):
    ...     try:
    ...         model.double(wl.ones(2))
    ...     except wl.errors.ShapeError as error:
    ...         print(str(error).splitlines()[0])
    double, result: shape (4,) does not match 'n': n is 4 here, but 2 before (axis 0 of shape (2,)).

    Meant for tests: the modules themselves need no decorator and pay nothing otherwise. The result takes the
    checks off again with `disable()`, or at the end of a `with`.
    """
    checks = Checks()
    for module in modules or (sys.modules[sys._getframe(1).f_globals["__name__"]],):
        checks.wrap(module)
    return checks
