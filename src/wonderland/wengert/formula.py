"""Formulas as text: a small part of Python's expressions, checked first and never evaluated by Python."""

from __future__ import annotations

import ast
import difflib
import functools
import math
import operator
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from .. import arrays
from ..core.errors import InputError
from ..core.tensor import Tensor
from ..core.typing import ArrayLike


class FormulaError(InputError):
    """A formula that cannot be read or evaluated; `summary` is the message with a caret at the place."""

    def __init__(self, message: str, text: str = "", column: int | None = None) -> None:
        self.summary = message if column is None else f"{message}\n{_marked(text, column)}"
        super().__init__(self.summary)


def _marked(text: str, column: int, width: int = 76) -> str:
    """The text with a caret below a column; of a long text the part around it."""
    start = max(0, min(column - width // 2, len(text) - width))
    part = text[start : start + width]
    before, after = "..." if start else "", "..." if start + width < len(text) else ""
    return f"  {before}{part}{after}\n  {' ' * (len(before) + column - start)}^"


OPERATORS: dict[type[ast.AST], Callable[..., Tensor]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: operator.pow,
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
}

# functions of one argument
UNARY: dict[str, Callable[..., Tensor]] = {
    f.__name__: f
    for f in (
        *(arrays.exp, arrays.expm1, arrays.log, arrays.log1p, arrays.log2, arrays.log10, arrays.sqrt, arrays.square),
        *(arrays.sin, arrays.cos, arrays.tan, arrays.asin, arrays.acos, arrays.atan),
        *(arrays.sinh, arrays.cosh, arrays.tanh, arrays.asinh, arrays.acosh, arrays.atanh),
        *(arrays.sigmoid, arrays.relu, arrays.softplus, arrays.erf, arrays.abs, arrays.sign),
    )
} | {"ln": arrays.log}
BINARY = {"atan2": arrays.atan2, "hypot": arrays.hypot, "logaddexp": arrays.logaddexp, "pow": arrays.pow}
FOLDS = {"max": arrays.maximum, "min": arrays.minimum}  # two or more arguments, taken in pairs
FUNCTIONS = UNARY | BINARY | FOLDS
# defined everywhere, but soon too large for float64
GROWING = frozenset(("cosh", "exp", "expm1", "pow", "sinh", "square"))
CONSTANTS = {"pi": math.pi, "e": math.e}


class Formula:
    """A formula that can be called with values for its names.

    >>> import wonderland as wl
    >>> f = Formula("log(x1) + x1*x2 - sin(x2)")
    >>> f.names
    ('x1', 'x2')
    >>> print(f"{f(x1=2.0, x2=5.0):.3f}")
    11.652

    It may use `+ - * / **`, parentheses, numbers, the constants pi and e, names, and the functions in
    `FUNCTIONS`. Python numbers are taken as float64; tensors work, too, element by element.
    """

    def __init__(self, text: str) -> None:
        self.text = " ".join(text.split())
        self.order = self._in_order(self._parse())
        self.uses = tuple(dict.fromkeys(node.id for node in self.order if isinstance(node, ast.Name)))
        self.names = tuple(name for name in self.uses if name not in CONSTANTS)

    def __repr__(self) -> str:
        return f"Formula({self.text!r})"

    # --- reading

    def _parse(self) -> ast.expr:
        if not self.text:
            raise FormulaError("the formula is empty")
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # what Python warns about is refused below
                return ast.parse(self.text, mode="eval").body
        except SyntaxError as error:
            # the offset counts from 1, and may point behind the end
            column = min(max((error.offset or 1) - 1, 0), len(self.text))
            raise FormulaError(f"syntax error: {error.msg}", self.text, column) from None
        except (RecursionError, MemoryError, ValueError) as error:
            reason = "it is nested too deeply" if not isinstance(error, ValueError) else str(error)
            raise FormulaError(f"the formula cannot be read: {reason}") from None

    def _in_order(self, root: ast.expr) -> list[ast.expr]:
        """The nodes in the order of evaluation, operands first, each one checked."""
        backwards, stack = [], [root]
        while stack:
            node = stack.pop()
            self._check(node)
            backwards.append(node)
            stack.extend(_operands(node))  # the last one is visited next
        return backwards[::-1]

    def _check(self, node: ast.expr) -> None:
        match node:
            case ast.Constant(value=value):
                if type(value) is not int and type(value) is not float:
                    raise self._error(f"{value!r} is not a real number", node)
                if not _fits(value):
                    raise self._error("this number is too large for float64", node)
            case ast.Name(id=name):
                if name in FUNCTIONS:
                    raise self._error(f"{name} is a function: write {name}(...)", node)
            case ast.BinOp(op=op) | ast.UnaryOp(op=op):
                if type(op) not in OPERATORS:
                    hint = "; write a power as **" if isinstance(op, ast.BitXor) else ""
                    raise self._error(f"this operator is not supported, only + - * / **{hint}", node)
            case ast.Call(func=ast.Name(id=name), args=args, keywords=keywords):
                self._check_call(node, name, len(args), bool(keywords))
            case _:
                raise self._error("only numbers, names, + - * / **, parentheses and functions can be used", node)

    def _check_call(self, node: ast.expr, name: str, count: int, keywords: bool) -> None:
        if name not in FUNCTIONS:
            close = difflib.get_close_matches(name, FUNCTIONS, 1)
            hint = f"did you mean {close[0]}?" if close else f"known are {', '.join(sorted(FUNCTIONS))}"
            raise self._error(f"unknown function {name}; {hint}", node)
        if keywords:
            raise self._error(f"{name} takes no arguments by name", node)
        if name in FOLDS:
            fits, wanted = count >= 2, "two or more arguments"
        else:
            fits, wanted = (count == 1, "one argument") if name in UNARY else (count == 2, "two arguments")
        if not fits:
            raise self._error(f"{name} takes {wanted}, not {count}", node)

    def _error(self, message: str, node: ast.expr) -> FormulaError:
        """A mistake at a node: where it begins, or at its operator."""
        place = node.col_offset if not isinstance(node, ast.BinOp) else node.left.end_col_offset or 0
        column = len(self.text.encode()[:place].decode())  # the parser counts bytes
        while isinstance(node, ast.BinOp) and self.text[column] in ") ":
            column += 1
        return FormulaError(message, self.text, column)

    # --- evaluating

    def __call__(self, /, **values: ArrayLike) -> Any:
        self.check_names(tuple(values))
        known = {
            name: v if isinstance(v, Tensor) else arrays.asarray(np.asarray(v, float)) for name, v in values.items()
        }
        results: dict[int, Any] = {}
        for node in self.order:
            args = [results[id(operand)] for operand in _operands(node)]
            result = results[id(node)] = _apply(node, args, known)
            self._check_result(node, args, result)
        return result if isinstance(result, Tensor) else arrays.asarray(np.float64(result))

    def check_names(self, given: tuple[str, ...]) -> None:
        """Refuse values that are missing or that the formula does not use."""
        for name in given:
            if name in FUNCTIONS:
                raise FormulaError(f"{name} is a function and cannot have a value")
            if name not in self.uses:
                used = f"it uses {', '.join(self.names)}" if self.names else "it has no names"
                raise FormulaError(f"{name} has a value but is not in the formula; {used}")
        for node in self.order:
            if isinstance(node, ast.Name) and node.id not in given and node.id not in CONSTANTS:
                raise self._error(f"{node.id} has no value; add {node.id}=NUMBER", node)

    def _check_result(self, node: ast.expr, args: list[Any], result: Any) -> None:
        """Point to the first operation that leaves the real numbers."""
        if not isinstance(result, Tensor) or np.isfinite(result._item_data()).all():
            return
        data = result._item_data()
        bad = data[~np.isfinite(data)][0]
        values = [arg._item_data() if isinstance(arg, Tensor) else np.float64(arg) for arg in args]
        what = ast.get_source_segment(self.text, node) or ""
        if all(value.ndim == 0 for value in values):
            what += f" with {' and '.join(f'{value:g}' for value in values)}"
        raise self._error(f"{what} is {bad}: {_reason(node, values, bad)}", node)


def _reason(node: ast.expr, values: list[Any], bad: Any) -> str:
    match node:
        case ast.BinOp(op=ast.Div()) if np.any(values[1] == 0):
            return "a division by zero"
        case ast.BinOp(op=ast.Pow()) if np.any(values[0] == 0):
            return "a division by zero"
        case ast.Call(func=ast.Name(id=name)) if name not in GROWING:
            return f"outside the domain of {name}"
    return "not a real number" if np.isnan(bad) else "too large for float64"


def _apply(node: ast.expr, args: list[Any], known: dict[str, Any]) -> Any:
    """The value of a node, given those of its operands."""
    match node:
        case ast.Constant(value=value):
            # integers stay integers, for x**2 is a square
            return value if isinstance(value, int) and abs(value) < 2**53 else float(value)  # type: ignore[arg-type]
        case ast.Name(id=name):
            return known[name] if name in known else CONSTANTS[name]
        case ast.UnaryOp(op=op):
            return OPERATORS[type(op)](*args)
        case ast.BinOp(op=op):
            return OPERATORS[type(op)](*_with_tensor(args))
        case ast.Call(func=ast.Name(id=name)):
            args = _with_tensor(args)
            return functools.reduce(FOLDS[name], args) if name in FOLDS else FUNCTIONS[name](*args)
    raise AssertionError("the formula was checked before")


def _operands(node: ast.expr) -> list[ast.expr]:
    """The operands of a node, from left to right."""
    match node:
        case ast.BinOp(left=left, right=right):
            return [left, right]
        case ast.UnaryOp(operand=operand):
            return [operand]
        case ast.Call(args=args):
            return args
    return []


def _with_tensor(args: list[Any]) -> list[Any]:
    """The operands, with a tensor among them: Python's own integers have no bounds (2**10**9)."""
    if any(isinstance(arg, Tensor) for arg in args):
        return args
    return [arrays.asarray(np.float64(args[0])), *args[1:]]


def _fits(value: float) -> bool:
    try:
        return math.isfinite(float(value))
    except OverflowError:
        return False
