"""Graphs of thousands of equations: every pass takes time in proportion, and none recurses."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import wonderland as wl
from wonderland.engines.numpy.evaluate import evaluate, interpret
from wonderland.ir.cost import cost_of
from wonderland.ir.graph import Graph
from wonderland.ir.printing import to_text
from wonderland.ir.simplify import remove_dead, share_common
from wonderland.ir.verify import verify

SIZES = 300, 1_200  # equations
X = wl.ones((3, 1))


@contextlib.contextmanager
def shallow(frames: int) -> Iterator[None]:
    """Python's stack, with room for a few more frames only."""
    depth, frame, limit = 0, sys._getframe(), sys.getrecursionlimit()
    while frame is not None:
        depth, frame = depth + 1, frame.f_back  # type: ignore[assignment]
    sys.setrecursionlimit(depth + frames)
    try:
        yield
    finally:
        sys.setrecursionlimit(limit)


def work(f: Callable[[], Any]) -> int:
    """How many lines f executes, in all functions: a measure that does not depend on the machine."""
    count = 0

    def note(frame: Any, event: str, argument: Any) -> Any:
        nonlocal count
        count += 1
        return note

    before = sys.gettrace()
    sys.settrace(note)
    try:
        f()
    finally:
        sys.settrace(before)
    return count


def chain(size: int) -> Callable[[Any], Any]:
    """One operation after the other."""

    def f(x: Any) -> Any:
        for _ in range(size // 2):
            x = wl.sin(x) * 0.5
        return x

    return f


def views(size: int) -> Callable[[Any], Any]:
    """Views of views of views."""

    def f(x: Any) -> Any:
        for _ in range(size // 2):
            x = x.T
            x = wl.reshape(x, x.shape[::-1])
        return x

    return f


def fan(size: int) -> Callable[[Any], Any]:
    """Many operations on one value, and their sum."""

    def f(x: Any) -> Any:
        terms = [x * float(i) for i in range(size // 2)]
        return sum(terms[1:], terms[0])

    return f


def shared(size: int) -> Callable[[Any], Any]:
    """Values that are used twice, by values that are used twice: as a tree, it would have no end."""

    def f(x: Any) -> Any:
        for _ in range(size):
            x = x + x
        return x

    return f


PASSES: dict[str, Callable[[Graph], Any]] = {
    "verify": verify,
    "remove_dead": remove_dead,
    "share_common": share_common,
    "print": to_text,
    "evaluate": lambda graph: evaluate(graph, [np.ones((3, 1), np.float32)]),
    "interpret": lambda graph: interpret(graph, [X]),
    "grad": lambda graph: wl.grad(lambda x: interpret(graph, [x])[0].sum())(X),
    "jvp": lambda graph: wl.jvp(lambda x: interpret(graph, [x])[0], (X,), (X,)),
    "vmap": lambda graph: wl.vmap(lambda x: interpret(graph, [x])[0])(X[None]),
    "trace": lambda graph: wl.make_graph(lambda x: interpret(graph, [x])[0])(X),
    "trace grad": lambda graph: wl.make_graph(wl.grad(lambda x: interpret(graph, [x])[0].sum()))(X),
    "count": cost_of,
}


@pytest.fixture(scope="module", params=[chain, views, fan, shared], ids=lambda f: f.__name__)
def graphs(request: Any) -> list[Graph]:
    with shallow(120):
        made = [wl.make_graph(request.param(size))(X) for size in SIZES]
    assert [len(graph.equations) >= size - 1 for graph, size in zip(made, SIZES, strict=True)] == [True, True]
    return made


@pytest.mark.parametrize("name", PASSES)
def test_the_work_is_in_proportion_to_the_graph(name: str, graphs: list[Graph]) -> None:
    with shallow(150):
        few, many = (work(lambda graph=graph: PASSES[name](graph)) for graph in graphs)  # type: ignore[misc]
    assert many <= 1.2 * SIZES[1] / SIZES[0] * few + 1000


def test_a_long_chain_has_the_value_of_its_steps() -> None:
    with shallow(150):
        graph = wl.make_graph(chain(4_000))(X)
        verify(graph)
        (y,) = evaluate(graph, [np.ones((3, 1), np.float32)])
    want = np.ones((3, 1), np.float32)
    for _ in range(2_000):
        want = np.sin(want) * np.float32(0.5)
    np.testing.assert_array_equal(y, want)
