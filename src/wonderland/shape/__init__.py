"""Shapes as the book writes them: X ~ (b, h, w, 3), checked at run time.

>>> import wonderland as wl
>>> images = wl.zeros((8, 32, 32, 3))
>>> wl.shape.check(images, "b h w 3")
{'b': 8, 'h': 32, 'w': 32}

A pattern has one entry per axis: a name (the same size wherever it occurs), a number (exactly that size), `_`
(any size), a formula such as `2*d` or `h*w` of names that occur elsewhere, and at most one of `...` (any
number of axes) or `*batch` (the same, with a name). Commas and parentheses may be written as the book does,
too: "(b, h, w, 3)". Book, notation.

As annotations, patterns are checked where that is asked for with `checked` or `enable_checks`:

>>> @wl.shape.checked
... def attention(q: wl.shape.Float["t d"], k: wl.shape.Float["s d"]) -> wl.shape.Float["t s"]:
...     return wl.softmax(q @ k.T)
>>> attention(wl.zeros((2, 4)), wl.zeros((3, 4))).shape
(2, 3)

`Float[wl.Tensor, "t d"]` says the same in a form that type checkers read as `wl.Tensor`. (Linters take the
strings for types: `# ruff: noqa: F722, F821, UP037` at the top of a file tells ruff that they are not.)

`strict` guards against accidental broadcasting, such as (n, 1) with (n,) into (n, n). Book, Box C.2.1.
"""

from .annotations import Any, Bool, Complex, Float, Int, Num, checked, enable_checks
from .patterns import check
from .strictness import set_strict, strict

__all__ = [
    "Any",
    "Bool",
    "Complex",
    "Float",
    "Int",
    "Num",
    "check",
    "checked",
    "enable_checks",
    "set_strict",
    "strict",
]
