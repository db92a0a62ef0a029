"""Making a failing case small: every step is tried, and kept if the case still fails in the same way."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

import wonderland as wl

from .case import Case, Line
from .inputs import Input

Fails = Callable[[Case], bool]
SHOWN = 40  # elements of an array that is written out
_NUMBER = re.compile(r"(?<![\w.])\d+(?![\w.])")


def minimised(case: Case, fails: Fails, seconds: float = 60.0) -> Case:
    """A smaller case that fails, too."""
    end = time.monotonic() + seconds

    def still(candidate: Case) -> bool:
        if time.monotonic() > end:
            return False
        try:
            return fails(candidate)
        except Exception:  # what cannot be traced or run is no smaller case of the same
            return False

    changed = True
    while changed and time.monotonic() < end:
        changed = False
        for steps in (_results, _kinds, _cut_lines, _unwrapped, _sizes, _fillings):
            for candidate in _improving(case, steps, still):
                case, changed = candidate, True
    return _written_out(case, still)


def _improving(case: Case, steps: Callable[[Case], Iterator[Case]], still: Fails) -> Iterator[Case]:
    """Every improvement that holds; after each, the steps begin anew."""
    tried: set[Case] = set()
    again = True
    while again:
        again = False
        for candidate in steps(case):
            if candidate != case and candidate not in tried:
                tried.add(candidate)
                if still(candidate):
                    case, again = candidate, True
                    yield case
                    break


def _results(case: Case) -> Iterator[Case]:
    """One result is enough; an earlier value may do."""
    for name in [*case.results, *[line.name for line in case.lines]]:
        if case.results != (name,):
            yield replace(case, results=(name,)).alive()


def _kinds(case: Case) -> Iterator[Case]:
    order = ["value", "grad", "jvp", "value and grad", "vmap"]
    for kind in order[: order.index(case.kind)] if case.kind in order else order:
        yield replace(case, kind=kind)


def _cut_lines(case: Case) -> Iterator[Case]:
    """A line becomes an input with the same numbers, or simpler ones."""
    for k, line in reversed(list(enumerate(case.lines))):
        for text in _constants(case, k):
            inputs = (*case.inputs, Input(line.name, text))
            yield replace(case, inputs=inputs, lines=case.lines[:k] + case.lines[k + 1 :]).alive()


def _constants(case: Case, k: int) -> Iterator[str]:
    """Expressions for the value of a line."""
    name = case.lines[k].name
    upto = replace(case, lines=case.lines[: k + 1], results=(name,))
    try:
        with wl.using_backend("numpy"), np.errstate(all="ignore"):
            found = np.asarray(upto.function()(*[wl.asarray(a) for a in case.arrays()])[0])
    except wl.errors.WonderlandError:
        return  # the error is what the program is about
    if found.size <= SHOWN:
        yield _literal(found)
    else:
        yield from _simple(found.shape, found.dtype)


def _simple(shape: tuple[int, ...], dtype: Any) -> Iterator[str]:
    yield f"np.ones({shape}, wl.{dtype.name})"
    if dtype.name != "bool":
        yield f"(np.arange({int(np.prod(shape))}) % 7).reshape({shape}).astype(wl.{dtype.name})"
    if wl.isdtype(dtype, ("real floating", "complex floating")):
        yield f"np.random.default_rng(0).normal(size={shape}).astype(wl.{dtype.name})"


def _literal(x: np.ndarray[Any, Any]) -> str:
    exact = x.astype(np.float64) if x.dtype.name in ("bfloat16", "float16", "float32") else x
    exact = exact.astype(np.complex128) if x.dtype.kind == "c" else exact
    text = re.sub(
        r"\b(nan|inf)j?\b", lambda m: f"np.{m[1]}" + (" * 1j" if m[0].endswith("j") else ""), repr(exact.tolist())
    )
    shape = f".reshape({x.shape})" if x.size == 0 else ""
    return f"np.array({text}, wl.{x.dtype.name}){shape}"


def _unwrapped(case: Case) -> Iterator[Case]:
    """An argument of a function in place of its value."""
    for k, line in enumerate(case.lines):
        names = [n for n in re.findall(r"\b[xv]\d+\b", line.text) if n != line.name]
        for name in dict.fromkeys(names):
            if line.text != name:
                yield replace(case, lines=(*case.lines[:k], Line(line.name, name), *case.lines[k + 1 :])).alive()


def _sizes(case: Case) -> Iterator[Case]:
    """Another number in place of one, wherever it stands."""
    texts = [*[i.text for i in case.inputs], *[line.text for line in case.lines]]
    numbers = sorted({int(n) for text in texts for n in _NUMBER.findall(text)}, reverse=True)
    for n in numbers:
        for m in dict.fromkeys([1, 2, n // 8, n // 2, 3 * n // 4, n - 1]):
            if 0 < m < n:
                inputs = tuple(Input(i.name, _with(i.text, n, m)) for i in case.inputs)
                yield replace(case, inputs=inputs, lines=tuple(Line(x.name, _with(x.text, n, m)) for x in case.lines))


def _with(text: str, n: int, m: int) -> str:
    return _NUMBER.sub(lambda found: str(m) if int(found[0]) == n else found[0], text)


def _fillings(case: Case) -> Iterator[Case]:
    """Simpler numbers in the inputs."""
    for k, i in enumerate(case.inputs):
        x = i.array()
        simple = list(_simple(x.shape, x.dtype))
        if i.text in simple:
            simple = simple[: simple.index(i.text)]
        elif x.size <= SHOWN and i.text.startswith("np.array("):
            simple += _rounder(x)
        for text in simple:
            yield replace(case, inputs=(*case.inputs[:k], Input(i.name, text), *case.inputs[k + 1 :]))


def _rounder(x: np.ndarray[Any, Any]) -> list[str]:
    """The array with one element replaced by 1."""
    made = []
    for j in range(x.size):
        if x.reshape(-1)[j] != 1:
            other = x.copy()
            other.reshape(-1)[j] = 1
            made.append(_literal(other))
    return made


def _written_out(case: Case, still: Fails) -> Case:
    """Small inputs as their numbers, and those made simple."""
    for k, i in enumerate(case.inputs):
        if i.array().size <= SHOWN and not i.text.startswith("np.array("):
            literal = Input(i.name, _literal(i.array()))
            candidate = replace(case, inputs=(*case.inputs[:k], literal, *case.inputs[k + 1 :]))
            if still(candidate):
                case = candidate
    for candidate in _improving(case, _fillings, still):
        case = candidate
    return case
