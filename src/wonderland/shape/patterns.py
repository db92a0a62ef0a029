"""Patterns such as "b h w 3", matched against shapes: names are bound to sizes. Book, notation."""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, cast

from ..core.errors import DTypeError, InputError, ShapeError

__all__ = ["check"]

Shape = tuple[int, ...]


def check(x: object, pattern: str, /, *more: Any, **sizes: int | Shape) -> dict[str, Any]:
    """Check the shape of a tensor against a pattern, and return the sizes that its names stand for.

    >>> import wonderland as wl
    >>> X, w, y = wl.zeros((50, 3)), wl.zeros((3, 1)), wl.zeros((50, 1))
    >>> wl.shape.check(X, "n c", w, "c 1", y, "n 1")
    {'n': 50, 'c': 3}
    >>> wl.shape.check(wl.zeros((2, 7, 4)), "*batch d", d=4)
    {'d': 4, 'batch': (2, 7)}

    Several tensors, each followed by its pattern, share the names; `sizes` are names that are known before. A
    size that does not fit raises `ShapeError`. Tensors inside transformations have shapes, so it works under
    `jit`, `grad` and `vmap` alike. Book, notation: X ~ (b, h, w, 3).
    """
    if len(more) % 2:
        raise InputError("shape.check: the last tensor has no pattern.", 'wl.shape.check(x, "n d", y, "n")')
    bindings = Bindings(sizes)
    pairs = [(x, pattern), *zip(more[::2], more[1::2], strict=True)]
    for i, (value, text) in enumerate(pairs):
        where = "shape.check" if len(pairs) == 1 else f"shape.check, tensor {i}"
        bindings.match(where, shape_of(where, value), text)
    bindings.solve()
    return bindings.sizes


# --- patterns


class Dim(NamedTuple):
    """One entry of a pattern: its text, and its size if it is a number."""

    text: str
    size: int | None = None

    @property
    def variadic(self) -> bool:
        return self.text == "..." or self.text.startswith("*")


def parse(pattern: str) -> tuple[Dim, ...]:
    """The entries of a pattern."""
    if not isinstance(pattern, str):
        raise InputError(f"shape: the pattern is a {type(pattern).__name__}.", 'a string such as "b h w 3"')
    return _parse(pattern)


@functools.lru_cache(maxsize=1024)
def _parse(pattern: str) -> tuple[Dim, ...]:
    text = pattern.strip()
    if text.startswith("(") and text.endswith(")") and ("," in text or text == "()"):
        text = text[1:-1]
    dims = tuple(_dim(pattern, token) for token in text.replace(",", " ").split())
    if sum(dim.variadic for dim in dims) > 1:
        raise InputError(f"shape: {pattern!r} has more than one '...' or '*name'.", "one of them")
    return dims


def _dim(pattern: str, token: str) -> Dim:
    if token.isdecimal():
        return Dim(token, int(token))
    name = token.removeprefix("*")
    if token != "..." and not name.isidentifier() and (name != token or not _is_formula(token)):
        raise InputError(
            f"shape: {token!r} in {pattern!r} is not an entry of a pattern.",
            "a name, a number, _, ..., *name, or a formula such as 2*d without spaces",
        )
    return Dim(token)


_OPERATORS: dict[type, Callable[[int, int], int]] = {
    ast.Add: int.__add__,
    ast.Sub: int.__sub__,
    ast.Mult: int.__mul__,
    ast.FloorDiv: int.__floordiv__,
}


def _is_formula(text: str) -> bool:
    try:
        nodes = list(ast.walk(ast.parse(text, mode="eval").body))
    except (SyntaxError, ValueError, MemoryError, RecursionError):  # as Python's parser says no
        return False
    kinds = (ast.BinOp, ast.Name, ast.Load, *_OPERATORS)
    return all(isinstance(n, kinds) or (isinstance(n, ast.Constant) and type(n.value) is int) for n in nodes)


def _evaluate(node: ast.AST, sizes: dict[str, Any]) -> int:
    """The value of a formula; a name that is not known raises KeyError."""
    if isinstance(node, ast.BinOp):
        return _OPERATORS[type(node.op)](_evaluate(node.left, sizes), _evaluate(node.right, sizes))
    if isinstance(node, ast.Name):
        return int(sizes[node.id])
    assert isinstance(node, ast.Constant)
    return cast(int, node.value)


class Bindings:
    """The sizes that names stand for, and where each was seen first."""

    def __init__(self, sizes: Mapping[str, int | Shape] | None = None) -> None:
        self.sizes: dict[str, Any] = dict(sizes or {})
        self.seen: dict[str, str] = dict.fromkeys(self.sizes, "given")
        self.formulas: list[tuple[str, Shape, str, int, str]] = []

    def copy(self) -> Bindings:
        other = Bindings(self.sizes)
        other.seen, other.formulas = dict(self.seen), list(self.formulas)
        return other

    def match(self, where: str, shape: Shape, pattern: str) -> None:
        """Bind the names of a pattern to the sizes of a shape, or raise."""
        dims = parse(pattern)
        several = next((i for i, dim in enumerate(dims) if dim.variadic), None)
        before, after = (dims, ()) if several is None else (dims[:several], dims[several + 1 :])
        named = len(before) + len(after)
        fits = len(shape) == named if several is None else len(shape) >= named
        if not fits:
            least = "at least " if several is not None else ""
            raise ShapeError(
                f"{where}: shape {shape} has {len(shape)} axes, but {pattern!r} has {least}{named}.",
                "one entry per axis, or ... for any number of axes",
            )
        for axis, dim in [*enumerate(before), *enumerate(after, len(shape) - len(after))]:
            self.match_axis(where, shape, pattern, axis, dim)
        if several is not None and dims[several].text != "...":
            self.bind(where, shape, pattern, dims[several].text[1:], shape[several : len(shape) - len(after)], None)

    def match_axis(self, where: str, shape: Shape, pattern: str, axis: int, dim: Dim) -> None:
        n = shape[axis]
        if dim.size is not None:
            if n != dim.size:
                dims = parse(pattern)
                raise ShapeError(
                    f"{where}: shape {shape} does not match {pattern!r}: axis {axis} has size {n}, not {dim.size}.",
                    f"a tensor of shape ({', '.join(d.text for d in dims)})",
                )
        elif dim.text.isidentifier():
            if dim.text != "_":
                self.bind(where, shape, pattern, dim.text, n, axis)
        else:
            self.formulas.append((where, shape, pattern, axis, dim.text))

    def bind(self, where: str, shape: Shape, pattern: str, name: str, size: int | Shape, axis: int | None) -> None:
        place = f"axis {axis} of shape {shape}" if axis is not None else f"shape {shape}"
        if name in self.sizes and self.sizes[name] != size:
            raise ShapeError(
                f"{where}: shape {shape} does not match {pattern!r}: "
                f"{name} is {size} here, but {self.sizes[name]} before ({self.seen[name]}).",
                f"one size for every {name}",
            )
        self.sizes.setdefault(name, size)
        self.seen.setdefault(name, place)

    def solve(self) -> None:
        """Check the formulas, now that all names are known."""
        waiting, self.formulas = self.formulas, []
        for where, shape, pattern, axis, text in waiting:
            try:
                expected = _evaluate(ast.parse(text, mode="eval").body, self.sizes)
            except (KeyError, TypeError, ZeroDivisionError) as error:
                raise InputError(
                    f"{where}: the formula {text!r} in {pattern!r} has no value ({error!r}).",
                    f"its names as entries of a pattern, or as arguments; known are {sorted(self.sizes)}",
                ) from None
            if shape[axis] != expected:
                raise ShapeError(
                    f"{where}: shape {shape} does not match {pattern!r}: "
                    f"axis {axis} has size {shape[axis]}, but {text} is {expected}.",
                    f"sizes for which {text} holds",
                )


def shape_of(where: str, value: object) -> Shape:
    """The shape of a tensor, an array or a number."""
    if isinstance(value, (bool, int, float, complex)):
        return ()
    shape = getattr(value, "shape", None)
    if not isinstance(shape, tuple):
        raise DTypeError(f"{where}: a {type(value).__name__} has no shape.", "a tensor; wl.tensor(x) for lists")
    return shape
